"""Wherever the design lives, the model is the same."""

import numpy as np
import pytest
from scipy import sparse
from scipy.sparse.linalg import aslinearoperator

from sparsebayes import RVC, RVR, SparseBayesClassifier, SparseBayesRegressor, datasets
from sparsebayes.basis import RBF, Bias
from sparsebayes.estimators import dictionary

STORAGE = {
    "csr": sparse.csr_array,
    "csc": sparse.csc_array,
    "operator": aslinearoperator,
    "fortran": np.asfortranarray,
}


@pytest.fixture(params=sorted(STORAGE))
def store(request):
    return STORAGE[request.param]


def same(one, other, X, tolerance=1e-8):
    np.testing.assert_array_equal(one.relevance_, other.relevance_)
    np.testing.assert_allclose(one.predict(X), other.predict(X), rtol=0, atol=tolerance)
    assert one.log_marginal_likelihood_ == pytest.approx(other.log_marginal_likelihood_, abs=1e-6)


def test_linear_regression(store):
    X, y, _ = datasets.make_spikes(80, 60, 6, noise=0.05, random_state=0)
    X = X * (np.abs(X) > 0.05)
    dense = SparseBayesRegressor().fit(X, y)
    other = SparseBayesRegressor().fit(store(X), y)
    same(dense, other, X)
    np.testing.assert_allclose(other.predict(store(X)), dense.predict(X), atol=1e-8)


def test_linear_classification(store):
    rng = np.random.default_rng(1)
    X = rng.standard_normal((80, 10)) * (rng.random((80, 10)) < 0.7)
    y = (X[:, 0] - X[:, 3] + 0.5 * rng.standard_normal(80) > 0).astype(int)
    dense = SparseBayesClassifier().fit(X, y)
    other = SparseBayesClassifier().fit(store(X), y)
    np.testing.assert_array_equal(dense.relevance_, other.relevance_)
    np.testing.assert_allclose(other.predict_proba(store(X)), dense.predict_proba(X), atol=1e-8)


@pytest.mark.parametrize("make", [lambda: RVR(gamma=0.2), lambda: RVC(gamma=1.0)], ids=["RVR", "RVC"])
def test_lazy_columns(make, monkeypatch):
    rng = np.random.default_rng(2)
    X = rng.uniform(-3, 3, (120, 2))
    y = np.sin(X[:, 0]) + 0.2 * rng.standard_normal(120)
    target = (y > 0).astype(int) if isinstance(make(), RVC) else y
    dense = make().fit(X, target)
    monkeypatch.setattr(dictionary, "_DENSE_BYTES", 0)
    same(dense, make().fit(X, target), X)


def test_rvr_is_a_dictionary_of_kernels():
    X, y = datasets.make_sinc(100, random_state=3)
    kernel = RVR(gamma=1 / 9, fit_intercept=False).fit(X, y)
    basis = SparseBayesRegressor(RBF(3.0), fit_intercept=False).fit(X, y)
    same(kernel, basis, X)
    with_bias = SparseBayesRegressor(RBF(3.0) + Bias(), fit_intercept=False).fit(X, y - y.mean())
    same(RVR(gamma=1 / 9).fit(X, y - y.mean()), _without_bias(with_bias), X)


def _without_bias(model):
    """Number the functions as RVR does, which does not count the intercept."""
    model.relevance_ = model.relevance_[model.relevance_ < 100]
    return model


def test_one_against_the_rest_is_separate_fits():
    X, y = datasets.load("iris", return_X_y=True)
    together = RVC(multi_class="ovr", gamma=0.3).fit(X, y)
    alone = [RVC(gamma=0.3).fit(X, y == k) for k in range(3)]
    odds = np.column_stack([model.predict_proba(X)[:, 1] for model in alone])
    np.testing.assert_allclose(together.predict_proba(X), odds / odds.sum(axis=1, keepdims=True), atol=1e-10)
