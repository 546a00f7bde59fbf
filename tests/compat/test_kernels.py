"""Kernels by name, as functions and as matrices."""

import numpy as np
import pytest
from shared import classification, outputs
from sklearn.base import is_classifier
from sklearn.metrics.pairwise import laplacian_kernel, polynomial_kernel, rbf_kernel
from sklearn.model_selection import cross_val_score

from sparsebayes import RVC, RVR
from sparsebayes.basis import RBF, Linear, from_specifications

# -- kernels -----------------------------------------------------------------------------------------------


def kernel_data(estimator):
    if is_classifier(estimator):
        return classification(36)
    rng = np.random.default_rng(3)
    X = rng.uniform(-3, 3, (50, 2))
    return X, np.sin(X[:, 0]) + 0.3 * X[:, 1] + 0.1 * rng.standard_normal(50)


def make_rbf(A, B):
    return rbf_kernel(A, B, gamma=0.4)


def make_laplacian(A, B):
    return laplacian_kernel(A, B, gamma=0.4)


def make_cubic(A, B):
    return polynomial_kernel(A, B, degree=3, gamma=0.4, coef0=1.0)


NAMED = {
    "rbf": (make_rbf, {}),
    "laplacian": (make_laplacian, {}),
    "poly": (make_cubic, {"coef0": 1.0, "degree": 3}),
}
both_kinds = pytest.mark.parametrize("make", [RVR, RVC], ids=lambda make: make.__name__)


@both_kinds
@pytest.mark.parametrize("name", NAMED)
def test_a_named_kernel_is_its_callable_and_its_matrix(make, name):
    X, y = kernel_data(make())
    new = X[:20] + 0.1
    function, further = NAMED[name]
    named = make(name, gamma=0.4, **further).fit(X, y)
    called = make(function).fit(X, y)
    matrix = make("precomputed").fit(function(X, X), y)
    np.testing.assert_array_equal(called.relevance_, named.relevance_)
    np.testing.assert_array_equal(matrix.relevance_, named.relevance_)
    expected = outputs(named, new)
    np.testing.assert_allclose(outputs(called, new), expected, rtol=1e-6, atol=1e-6)
    np.testing.assert_allclose(outputs(matrix, function(new, X)), expected, rtol=1e-6, atol=1e-6)


@both_kinds
def test_a_precomputed_kernel_and_rows_of_weight_zero(make):
    """Rows of weight zero are neither data nor centres, however the kernel comes."""
    X, y = kernel_data(make())
    weight = np.where(np.arange(len(X)) % 3 == 0, 0.0, 1.0)
    named = make("rbf", gamma=0.4).fit(X, y, weight)
    matrix = make("precomputed").fit(make_rbf(X, X), y, weight)
    assert np.all(weight[named.relevance_] > 0)
    assert np.all(weight[matrix.relevance_] > 0)
    np.testing.assert_array_equal(matrix.relevance_, named.relevance_)
    np.testing.assert_allclose(outputs(matrix, make_rbf(X, X)), outputs(named, X), rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("kernel", [RBF(0.5) + RBF(2.0), Linear() + RBF(0.5), RBF(0.5) + Linear()], ids=repr)
@pytest.mark.parametrize("dropped", [0, 5])
def test_relevance_is_sorted_in_a_sum_of_kernels(kernel, dropped):
    """One entry for each kept function, in the order of the rows; a row stands as often as it has functions."""
    rng = np.random.default_rng(0)
    X = rng.uniform(-3, 3, (60, 1))
    y = np.sin(3 * X[:, 0]) * (X[:, 0] > 0) + X[:, 0] + 0.05 * rng.standard_normal(60)
    model = RVR(kernel).fit(X, y, (np.arange(60) >= dropped).astype(float))
    rows = model.relevance_
    assert np.all(np.diff(rows) >= 0)
    assert np.all((rows == -1) | (rows >= dropped))
    assert len(rows) == len(model.coef_)
    assert len(model.relevance_functions_) == len(model.alpha_) == len(model.sigma_)
    centres = [spec.get("centre", np.nan) for spec in model.relevance_functions_[: len(rows)]]
    for row, centre, vector in zip(rows, centres, model.relevance_vectors_, strict=True):
        np.testing.assert_array_equal(vector, centre if row < 0 else X[row])
    # Weights and precisions are in the same order as the functions: from them the prediction is made anew.
    functions = from_specifications(model.relevance_functions_, 1).evaluate(X)[:, : len(rows)]
    np.testing.assert_allclose(functions @ model.coef_ + model.intercept_, model.predict(X), rtol=1e-9, atol=1e-9)
    scale = np.diag(model.sigma_) * model.alpha_
    assert np.all((scale > 0) & (scale <= 1 + 1e-9))


@both_kinds
def test_a_precomputed_kernel_in_cross_validation(make):
    X, y = kernel_data(make())
    scores = cross_val_score(make("precomputed"), make_rbf(X, X), y, cv=3)
    np.testing.assert_allclose(scores, cross_val_score(make("rbf", gamma=0.4), X, y, cv=3), rtol=1e-4)


@both_kinds
@pytest.mark.parametrize("kernel", ["linear", "poly", "laplacian", "sigmoid", "rbf", RBF(1.0), Linear() + RBF(1.0)])
def test_every_kernel_runs(make, kernel):
    X, y = kernel_data(make())
    model = make(kernel, coef0=0.5 if kernel in ("poly", "sigmoid") else 0.0).fit(X, y)
    assert model.status_.converged
    said = outputs(model, X)
    assert np.all(np.isfinite(said))
    assert len(model.relevance_) == len(model.relevance_vectors_) == model.coef_.shape[-1]
    assert np.all(np.diff(model.relevance_) >= 0)


@both_kinds
def test_relevance_vectors_are_the_training_rows(make):
    X, y = kernel_data(make())
    model = make(gamma=0.4).fit(X, y)
    assert 0 < len(model.relevance_) < len(X)
    np.testing.assert_array_equal(model.relevance_vectors_, X[model.relevance_])


def test_gamma_means_what_it_means_in_scikit_learn():
    X, y = kernel_data(RVR())
    for name, gamma in {"scale": 1.0 / (X.shape[1] * X.var()), "auto": 0.5}.items():
        by_name, by_value = RVR(gamma=name).fit(X, y), RVR(gamma=gamma).fit(X, y)
        np.testing.assert_allclose(by_name.predict(X), by_value.predict(X), rtol=1e-6, atol=1e-8)


def test_predictions_of_a_kernel_model_by_hand():
    X, y = kernel_data(RVR())
    model = RVR(gamma=0.4).fit(X, y)
    by_hand = make_rbf(X, X[model.relevance_]) @ model.coef_ + model.intercept_
    np.testing.assert_allclose(model.predict(X), by_hand, rtol=1e-9, atol=1e-9)


def test_plug_in_decisions_of_a_kernel_classifier_by_hand():
    X, y = classification(30, k=3)
    model = RVC(gamma=0.4).fit(X, y)
    by_hand = make_rbf(X, X[model.relevance_]) @ model.coef_.T + model.intercept_
    odds = np.exp(by_hand - by_hand.max(axis=1, keepdims=True))
    expected = odds / odds.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(model.predict_proba(X, moderated=False), expected, rtol=1e-8, atol=1e-10)
