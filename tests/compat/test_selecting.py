"""Models of columns as scikit-learn's selectors."""

import numpy as np
import pytest
from scipy import sparse
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LinearRegression
from sklearn.pipeline import make_pipeline

from sparsebayes import SparseBayesClassifier, SparseBayesRegressor
from sparsebayes.basis import RBF


def problem():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((100, 6))
    return X, X[:, 1] - 2.0 * X[:, 4] + 0.1 * rng.standard_normal(100)


@pytest.mark.parametrize("estimator", [SparseBayesRegressor(), SparseBayesClassifier()])
def test_columns_that_were_kept(estimator):
    X, y = problem()
    y = y > 0.0 if isinstance(estimator, SparseBayesClassifier) else y
    model = estimator.fit(X, y)
    mask = model.get_support()
    np.testing.assert_array_equal(np.flatnonzero(mask), model.relevance_)
    np.testing.assert_array_equal(model.get_support(indices=True), model.relevance_)
    np.testing.assert_array_equal(model.transform(X), X[:, mask])
    np.testing.assert_array_equal(model.transform(sparse.csr_array(X)).toarray(), X[:, mask])
    back = model.inverse_transform(model.transform(X))
    np.testing.assert_array_equal(back, np.where(mask, X, 0.0))
    assert list(model.get_feature_names_out()) == [f"x{j}" for j in model.relevance_]
    assert {1, 4} <= set(model.relevance_)


def test_a_step_before_another():
    X, y = problem()
    pipeline = make_pipeline(SparseBayesRegressor(), LinearRegression()).fit(X, y)
    assert pipeline[-1].n_features_in_ == len(pipeline[0].relevance_)
    assert pipeline.score(X, y) > 0.99


def test_names_of_a_frame():
    pandas = pytest.importorskip("pandas")
    X, y = problem()
    frame = pandas.DataFrame(X, columns=list("abcdef"))
    model = SparseBayesRegressor().fit(frame, y)
    assert set(model.get_feature_names_out()) >= {"b", "e"}
    with pytest.raises(ValueError, match="feature_names_in_"):
        model.get_feature_names_out(list("ghijkl"))


def test_functions_of_all_columns_select_none():
    X, y = problem()
    model = SparseBayesRegressor(RBF(2.0)).fit(X, y)
    assert not hasattr(model, "transform")
    assert not hasattr(model, "get_support")
    with pytest.raises(AttributeError):
        model.transform(X)


def test_wrong_calls():
    X, y = problem()
    with pytest.raises(NotFittedError):
        SparseBayesRegressor().get_support()
    model = SparseBayesRegressor().fit(X, y)
    with pytest.raises(ValueError, match="expected the"):
        model.inverse_transform(X)
