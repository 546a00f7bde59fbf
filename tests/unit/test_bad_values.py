"""Bad values and shapes: a clear error or a defined answer, and never a hang, a NaN or a bare LinAlgError."""

import numpy as np
import pytest
from bad_inputs import (
    CLASSIFIERS,
    LABELS,
    REGRESSORS,
    N,
    X,
    Y,
    assert_sane,
    each,
    each_classifier,
    each_regressor,
    fitted,
    fitted_or_refused,
    refused,
    targets,
)
from scipy import sparse
from sklearn.base import clone, is_classifier
from sklearn.exceptions import DataConversionWarning, NotFittedError

from sparsebayes import RVR, SparseBayesClassifier, SparseBayesRegressor
from sparsebayes.basis import LinearSpline, Polynomial
from sparsebayes.inference.status import Status

pytestmark = pytest.mark.usefixtures("no_hang")

# -- values ------------------------------------------------------------------------------------------------


@each
@pytest.mark.parametrize(("value", "words"), [(np.nan, "NaN"), (np.inf, "infinity"), (-np.inf, "infinity")])
def test_values_that_are_not_finite(estimator, value, words):
    bad = X.copy()
    bad[3, 1] = value
    refused(estimator, bad, targets(estimator), words)
    bad_y = targets(estimator).astype(float)
    bad_y[2] = value
    refused(estimator, X, bad_y, words)


@each
@pytest.mark.parametrize(("value", "words"), [(np.nan, "NaN"), (np.inf, "infinity")])
def test_values_that_are_not_finite_in_prediction(estimator, value, words):
    model = clone(estimator).fit(X, targets(estimator))
    bad = X.copy()
    bad[3, 1] = value
    with pytest.raises(ValueError, match=words):
        model.predict(bad)


@pytest.mark.parametrize("estimator", [SparseBayesRegressor(), SparseBayesClassifier()], ids=str)
def test_values_that_are_not_finite_in_a_sparse_array(estimator):
    bad = X.copy()
    bad[3, 1] = np.nan
    refused(estimator, sparse.csr_array(bad), targets(estimator), "NaN")


@each
def test_strings_and_complex_numbers_in_X(estimator):
    refused(estimator, np.full((N, 3), "a"), targets(estimator), "convert string to float")
    refused(estimator, X.astype(complex), targets(estimator), "Complex data not supported")
    with pytest.raises(ValueError, match="Complex data not supported"):
        clone(estimator).fit(X, targets(estimator)).predict(X.astype(complex))


@each_regressor
def test_strings_and_complex_numbers_in_y(estimator):
    refused(estimator, X, np.array(["a", "b"] * (N // 2)), "convert string to float|y.*str")
    refused(estimator, X, Y.astype(complex), "Complex data not supported")
    refused(estimator, X, None, "requires y to be passed")


@each_regressor
@pytest.mark.parametrize("scale", [1e300, 1e160, 1e-160, 1e-300])
def test_targets_whose_squares_are_not_numbers(estimator, scale):
    refused(estimator, X, Y * scale, r"y has entries of magnitude .* rescale y")


@each_regressor
@pytest.mark.parametrize("scale", [1e140, 1e100, 1e-100, 1e-140])
def test_targets_far_from_one(estimator, scale):
    model = fitted(estimator, X, Y * scale)
    plain = fitted(estimator, X, Y)
    np.testing.assert_array_equal(model.relevance_, plain.relevance_)
    np.testing.assert_allclose(model.predict(X) / scale, plain.predict(X), rtol=1e-6, atol=1e-6)


@each
@pytest.mark.parametrize("scale", [1e300, 1e160, 1e-160, 1e-300])
def test_inputs_whose_squares_are_not_numbers(estimator, scale):
    refused(estimator, X * scale, targets(estimator), r"X has entries of magnitude .* rescale X")


@each
@pytest.mark.parametrize("scale", [1e140, 1e100, 1e77, 1e60, 1e-60, 1e-100, 1e-140])
def test_inputs_far_from_one(estimator, scale):
    """Within what is accepted, units make no difference."""
    model = fitted_or_refused(estimator, X * scale, targets(estimator))
    if model is not None:
        plain = fitted(estimator, X, targets(estimator))
        np.testing.assert_array_equal(model.relevance_, plain.relevance_)


@each
@pytest.mark.parametrize("scale", [1e140, 1e70, 1e-70, 1e-140, 1e-165])
def test_one_column_far_from_one(estimator, scale):
    fitted_or_refused(estimator, np.column_stack([X[:, :2], scale * X[:, 2]]), targets(estimator))
    fitted_or_refused(estimator, np.column_stack([X[:, 1:], scale * X[:, 0]]), targets(estimator))


@pytest.mark.parametrize(
    "estimator",
    [
        RVR("linear"),
        RVR("poly", gamma=1.0),
        SparseBayesRegressor(LinearSpline()),
        SparseBayesRegressor(Polynomial(3)),
    ],
    ids=str,
)
@pytest.mark.parametrize("scale", [1e100, 1e60, 1e-60, 1e-100])
def test_functions_that_leave_the_range_of_numbers(estimator, scale):
    """Functions of large inputs overflow, of small ones underflow: that is said, and not taken for irrelevance."""
    model = fitted_or_refused(estimator, X * scale, Y)
    if model is not None and estimator.get_params().get("kernel") == "linear":
        assert model.score(X * scale, Y) > 0.9


@pytest.mark.parametrize("further", [{"degree": 400}, {"coef0": 1e300}], ids=str)
def test_a_kernel_that_overflows(further):
    fitted_or_refused(RVR("poly", **further), X, Y)


def test_a_callable_kernel_that_fails():
    refused(RVR(lambda A, B: np.full((len(A), len(B)), np.nan)), X, Y, "NaN or infinity")
    refused(RVR(lambda A, B: np.zeros(3)), X, Y, r"shape \(3,\)")
    refused(RVR(lambda A, B: np.zeros((len(A), len(B) + 1))), X, Y, r"returned shape \(20, 21\); expected \(20, 20\)")
    model = fitted(RVR(lambda A, B: np.zeros((len(A), len(B)))), X, Y)
    assert model.status_ is Status.EMPTY


@each
@pytest.mark.parametrize("dtype", [np.int32, np.uint8, np.float32, bool])
def test_integers_and_other_numbers(estimator, dtype):
    numbers = (X > 0).astype(dtype) if dtype is bool else (3 * np.abs(X)).astype(dtype)
    y = targets(estimator) if is_classifier(estimator) else np.round(10 * Y).astype(int)
    fitted(estimator, numbers, y)


# -- shapes ------------------------------------------------------------------------------------------------


@each
def test_wrong_shapes(estimator):
    y = targets(estimator)
    refused(estimator, X[:, 0], y, "Expected 2D array, got 1D array")
    refused(estimator, X[None], y, "dim 3")
    refused(estimator, X, y[:-1], r"inconsistent numbers of samples: \[20, 19\]")
    refused(estimator, X[:-1], y, r"inconsistent numbers of samples: \[19, 20\]")
    refused(estimator, X, y[:, None, None], r"dim 3|1d array|shape")
    refused(estimator, X[:0], y[:0], r"0 sample\(s\)")
    refused(estimator, X[:, :0], y, r"0 feature\(s\)")
    refused(estimator, [[1.0, 2.0], [3.0]], [1, 2], "inhomogeneous|sequence")


@each
def test_wrong_shapes_in_prediction(estimator):
    model = clone(estimator).fit(X, targets(estimator))
    with pytest.raises(ValueError, match=r"X has 2 features, but .* is expecting 3 features"):
        model.predict(X[:, :2])
    with pytest.raises(ValueError, match="Expected 2D array"):
        model.predict(X[0])
    with pytest.raises(ValueError, match=r"0 sample\(s\)"):
        model.predict(X[:0])


@each_classifier
def test_labels_in_two_dimensions(estimator):
    refused(estimator, X, np.column_stack([LABELS, LABELS]), "1d array")
    with pytest.warns(DataConversionWarning, match="column-vector y"):
        model = clone(estimator).fit(X, LABELS[:, None])
    assert_sane(model, X)


@each_regressor
@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("noise_variance", [None, 0.1])
@pytest.mark.parametrize("n", [1, 2, 3])
def test_hardly_any_rows(estimator, fit_intercept, noise_variance, n):
    model = clone(estimator).set_params(fit_intercept=fit_intercept, noise_variance=noise_variance)
    model = fitted(model, X[:n], Y[:n])
    assert_sane(model, X)
    if n == 1 and fit_intercept:
        np.testing.assert_allclose(model.predict(X), Y[0])


@each_classifier
def test_one_row_is_one_class(estimator):
    refused(estimator, X[:1], LABELS[:1], "one class only")


@each_classifier
def test_two_rows(estimator):
    fitted(estimator, X[:2], [0, 1])


@each
def test_more_columns_than_rows(estimator):
    wide = np.random.default_rng(1).standard_normal((N, 200))
    fitted(estimator, wide, targets(estimator))


def test_no_fit_no_prediction():
    for estimator in REGRESSORS + CLASSIFIERS:
        with pytest.raises(NotFittedError):
            clone(estimator).predict(X)


# -- columns and targets that say nothing ------------------------------------------------------------------


@each
@pytest.mark.parametrize("constant", [0.0, 1.0, 2.5, -1e6])
def test_a_constant_column(estimator, constant):
    fitted(estimator, np.column_stack([X, np.full(N, constant)]), targets(estimator))


def test_a_zero_column_is_never_kept():
    for estimator in (SparseBayesRegressor(), SparseBayesClassifier()):
        model = fitted(estimator, np.column_stack([np.zeros(N), X, np.zeros(N)]), targets(estimator))
        assert not {0, 4} & set(model.relevance_)
        assert np.all(model.coef_[..., [0, 4]] == 0.0)


COPIES = {"equal": [X, X], "scaled": [X, -X, 3 * X], "bit": [X, X * (1 + 1e-15)], "near": [X, X + 1e-9 * X[::-1]]}


@each
@pytest.mark.parametrize("copies", COPIES.values(), ids=COPIES)
def test_duplicated_columns(estimator, copies):
    design = np.column_stack(copies)
    model = fitted(estimator, design, targets(estimator))
    if isinstance(estimator, SparseBayesRegressor | SparseBayesClassifier):
        # No two copies of the same column.
        assert len({int(c) % 3 for c in model.relevance_}) == len(model.relevance_)


@each
def test_rows_that_are_all_equal(estimator):
    """All features constant: the model says the same everywhere."""
    constant = np.full((N, 3), 2.0)
    model = fitted(estimator, constant, targets(estimator))
    if is_classifier(estimator):
        assert np.ptp(model.predict_proba(constant), axis=0).max() < 1e-12
    else:
        mean, std = model.predict(constant, return_std=True)
        np.testing.assert_allclose(mean, Y.mean(), rtol=1e-6, atol=0.1 * Y.std())
        np.testing.assert_allclose(std, Y.std(), rtol=0.1)


@each_classifier
@pytest.mark.parametrize("fit_intercept", [True, False])
def test_constant_features_and_unequal_classes(estimator, fit_intercept):
    """The intercept, or a constant feature in its place, learns how frequent the classes are."""
    constant = np.full((100, 3), 2.0)
    y = (np.arange(100) < 10).astype(int)
    model = fitted(clone(estimator).set_params(fit_intercept=fit_intercept), constant, y)
    np.testing.assert_allclose(model.predict_proba(constant)[:, 1], 0.1, atol=0.03)


@each_regressor
@pytest.mark.parametrize("constant", [0.0, 5.0, 1.0 / 3.0, -1e10, 1e140])
@pytest.mark.parametrize("noise_variance", [None, 0.3])
def test_constant_targets(estimator, constant, noise_variance):
    model = fitted(clone(estimator).set_params(noise_variance=noise_variance), X, np.full(N, constant))
    assert model.status_ is Status.CONSTANT
    assert len(model.relevance_) == 0
    mean, std = model.predict(X, return_std=True)
    np.testing.assert_allclose(mean, constant, rtol=1e-14)
    if noise_variance is not None:
        np.testing.assert_allclose(std, np.sqrt(0.3))
    else:
        assert np.all(std <= 1e-12 * max(1.0, abs(constant)))


@each_regressor
@pytest.mark.parametrize("constant", [0.0, 5.0, -1e10])
def test_constant_targets_without_an_intercept(estimator, constant):
    fitted(clone(estimator).set_params(fit_intercept=False), X, np.full(N, constant))


@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("noise_variance", [None, 4.0])
def test_an_empty_model_predicts_the_intercept_with_the_right_error_bar(fit_intercept, noise_variance):
    """A column that is orthogonal to the targets, and to the constant, is irrelevant."""
    column = np.array([1.0, -1.0] * 10)[:, None]
    y = 3.0 * fit_intercept + np.tile([1.0, 1.0, -1.0, -1.0], 5)
    model = SparseBayesRegressor(fit_intercept=fit_intercept, noise_variance=noise_variance).fit(column, y)
    assert_sane(model, column)
    assert model.status_ is Status.EMPTY
    assert len(model.relevance_) == 0
    assert model.relevance_functions_ == []
    mean, std = model.predict(np.array([[0.0], [7.0]]), return_std=True)
    np.testing.assert_allclose(mean, y.mean(), atol=1e-12)
    variance = np.mean((y - y.mean()) ** 2) if noise_variance is None else noise_variance
    np.testing.assert_allclose(std, np.sqrt(variance), rtol=1e-6)
    np.testing.assert_allclose(model.noise_variance_, variance, rtol=1e-6)
    expected = -0.5 * N * np.log(2 * np.pi * variance) - 0.5 * np.sum((y - y.mean()) ** 2) / variance
    np.testing.assert_allclose(model.log_marginal_likelihood_, expected, rtol=1e-9)


def test_an_empty_classifier_says_one_half():
    column = np.array([1.0, -1.0] * 10)[:, None]
    model = SparseBayesClassifier().fit(column, np.tile([0, 0, 1, 1], 5))
    assert_sane(model, column)
    assert model.status_ is Status.EMPTY
    np.testing.assert_allclose(model.predict_proba(column), 0.5)
    np.testing.assert_allclose(model.log_marginal_likelihood_, -20 * np.log(2), rtol=1e-12)


@pytest.mark.parametrize("solver", ["sequential", "mackay", "em", "variational", "backfitting", "subset"])
@pytest.mark.parametrize("likelihood", ["gaussian", "outliers", "student-t"])
def test_nothing_but_zero_columns(solver, likelihood):
    model = SparseBayesRegressor(fit_intercept=False, likelihood=likelihood, solver=solver)
    np.testing.assert_array_equal(model.fit(np.zeros((N, 1)), Y).predict(X[:, :1]), 0.0)


@pytest.mark.parametrize("constant", [0.1, -1 / 3, 7.7e-9])
@pytest.mark.parametrize("n", [300, 3000])
def test_many_equal_targets_do_not_vary_by_the_rounding_of_their_sum(constant, n):
    rng = np.random.default_rng(0)
    X, flat = rng.standard_normal((n, 3)), np.full(n, constant)
    y = X[:, 0] + 0.1 * rng.standard_normal(n)
    both = SparseBayesRegressor().fit(X, np.column_stack([flat, y]))
    assert both.status_[0] is Status.CONSTANT
    assert both.intercept_[0] == constant
    # A constant target is no data for the noise that the others share.
    both = SparseBayesRegressor(shared_support=True).fit(X, np.column_stack([flat, y]))
    np.testing.assert_allclose(both.noise_variance_[1], 0.01, rtol=0.2)
