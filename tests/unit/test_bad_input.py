"""Bad input gets a clear error or a defined answer, and never a hang, a NaN or a bare LinAlgError."""

import signal
import threading
from dataclasses import asdict

import numpy as np
import pytest
from scipy import sparse
from scipy.sparse.linalg import LinearOperator, aslinearoperator
from sklearn.base import clone, is_classifier
from sklearn.exceptions import ConvergenceWarning, DataConversionWarning, NotFittedError

from sparsebayes import RVC, RVR, Sequential, SparseBayesClassifier, SparseBayesRegressor
from sparsebayes.basis import RBF, LinearSpline, Polynomial
from sparsebayes.inference.status import Status

REGRESSORS = [RVR(), SparseBayesRegressor()]
CLASSIFIERS = [RVC(), SparseBayesClassifier(), RVC(multi_class="ovr")]
each = pytest.mark.parametrize("estimator", REGRESSORS + CLASSIFIERS, ids=str)
each_regressor = pytest.mark.parametrize("estimator", REGRESSORS, ids=str)
each_classifier = pytest.mark.parametrize("estimator", CLASSIFIERS, ids=str)

RNG = np.random.default_rng(0)
N = 20
X = RNG.standard_normal((N, 3))
Y = 2.0 * X[:, 0] + 0.1 * RNG.standard_normal(N)
LABELS = (X[:, 0] + 0.5 * RNG.standard_normal(N) > 0).astype(int)
# Fields of a certificate that are numbers whatever the model; kept_log_alpha is infinite where a deletion is due.
FINITE = (
    "log_evidence",
    "objective",
    "excluded_theta",
    "excluded_gain",
    "kept_gain",
    "noise_gradient",
    "noise_gain",
    "condition_number",
    "tol",
)


@pytest.fixture(autouse=True)
def _no_hang():
    """A fit that takes this long on data this small will never end."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return

    def give_up(signum, frame):
        raise TimeoutError("the fit hangs")

    before = signal.signal(signal.SIGALRM, give_up)
    signal.alarm(20)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)


def targets(estimator):
    return LABELS if is_classifier(estimator) else Y


def as_list(value):
    return value if isinstance(value, list) else [value]


def assert_never_falls(history, certificate):
    """Within a start the objective never falls, and the model that is kept is not worse than where its start ended."""
    last = {}
    for record in history:
        slack = 1e-9 * max(1.0, abs(record.objective), N)
        assert record.objective >= last.get(record.start, -np.inf) - slack, record
        last[record.start] = record.objective
    if certificate.start in last:
        end = last[certificate.start]
        assert certificate.objective >= end - 1e-6 * max(1.0, abs(end))


def assert_sane(model, X):
    """A finite model: weights, precisions, evidence, certificate, and everything it says about X."""
    assert np.all(np.isfinite(model.coef_))
    assert np.all(np.isfinite(model.intercept_))
    assert np.all(np.asarray(model.alpha_) > 0)
    for covariance in as_list(model.sigma_):
        assert np.all(np.isfinite(covariance))
    assert np.isfinite(model.log_marginal_likelihood_)
    for certificate in as_list(model.certificate_):
        fields = asdict(certificate)
        assert all(np.isfinite(fields[name]) for name in FINITE), certificate
        assert not np.isnan(certificate.kept_log_alpha)
    for status, certificate in zip(as_list(model.status_), as_list(model.certificate_), strict=True):
        assert isinstance(status, Status)
        assert certificate.converged or not status.converged
    histories = model.history_ if model.history_ and isinstance(model.history_[0], list) else [model.history_]
    for history, certificate in zip(histories, as_list(model.certificate_), strict=True):
        assert_never_falls(history, certificate)
    if is_classifier(model):
        for moderated in (True, False):
            proba = model.predict_proba(X, moderated=moderated)
            assert np.all((proba >= 0) & (proba <= 1))
            np.testing.assert_allclose(proba.sum(axis=1), 1.0, rtol=1e-9)
        assert np.all(np.isfinite(model.decision_function(X)))
        assert set(model.predict(X)) <= set(model.classes_)
    else:
        assert np.all(np.asarray(model.noise_variance_) > 0)
        mean, std = model.predict(X, return_std=True)
        assert np.all(np.isfinite(mean))
        assert np.all(np.isfinite(std) & (std > 0))


def fitted(estimator, X, y, *further):
    model = clone(estimator).fit(X, y, *further)
    assert_sane(model, X)
    return model


def refused(estimator, X, y, words, *further, error=ValueError):
    """The fit fails in these words, and leaves nothing behind that could predict."""
    model = clone(estimator)
    with pytest.raises(error, match=words):
        model.fit(X, y, *further)
    with pytest.raises((NotFittedError, AttributeError)):
        model.predict(np.zeros((2, 3)))


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


def fitted_or_refused(estimator, X, y, *further):
    """Where both an answer and an error are right: nothing else may happen, warnings of NumPy least of all."""
    model = clone(estimator)
    try:
        model.fit(X, y, *further)
    except (ValueError, TypeError) as error:
        complaint = str(error)
    else:
        assert_sane(model, X)
        return model
    assert any(word in complaint for word in ("rescale", "magnitude", "overflow", "representable", "too large"))
    return None


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


# -- parameters --------------------------------------------------------------------------------------------


@each
@pytest.mark.parametrize("tol", ["a", None, 0, -1.0, np.nan, np.inf, 1j, True, [1e-3]])
def test_tol(estimator, tol):
    refused(clone(estimator).set_params(tol=tol), X, targets(estimator), r"tol=.*expected a positive, finite number")


@each
@pytest.mark.parametrize("max_iter", ["a", None, 0, -1, 2.5, np.nan, np.inf, True])
def test_max_iter(estimator, max_iter):
    model = clone(estimator).set_params(max_iter=max_iter)
    refused(model, X, targets(estimator), r"max_iter=.*expected a positive integer")


@pytest.mark.parametrize("make", [RVR, RVC])
@pytest.mark.parametrize("gamma", [None, 0, -1.0, np.nan, np.inf, 1j, True, [1.0]])
def test_gamma(make, gamma):
    refused(make(gamma=gamma), X, targets(make()), r"gamma=.*expected a positive, finite number")


@pytest.mark.parametrize("make", [RVR, RVC])
def test_names_that_do_not_exist(make):
    y = targets(make())
    kernels = r"choose one of 'rbf', 'linear', 'poly', 'laplacian', 'sigmoid', 'precomputed'"
    for kernel in ("nope", "RBF", None, 3):
        refused(make(kernel), X, y, r"kernel=.*" + kernels)
    refused(make(gamma="nope"), X, y, r"gamma='nope'.*choose one of 'scale', 'auto'")
    for solver in ("nope", None, 3, Sequential):
        refused(make(solver=solver), X, y, r"solver=.*choose one of 'sequential'")
    for name, known in {
        "selection": "'greedy', 'ordered', 'random'",
        "initialisation": "'projection', 'bias'",
        "noise": "'starts', 'schedule'",
    }.items():
        for value in ("nope", None, 3):
            words = rf"{name}=.*choose one of {known}"
            refused(make(solver=Sequential(**{name: value})), X, y, words)


@each_regressor
@pytest.mark.parametrize("likelihood", ["nope", None, 3])
def test_an_unknown_likelihood(estimator, likelihood):
    refused(clone(estimator).set_params(likelihood=likelihood), X, Y, r"likelihood=.*choose one of 'gaussian'")


@each_classifier
@pytest.mark.parametrize("multi_class", ["nope", "multinomial", None, 3])
def test_an_unknown_multi_class(estimator, multi_class):
    model = clone(estimator).set_params(multi_class=multi_class)
    refused(model, X, LABELS, r"multi_class=.*choose one of 'softmax', 'ovr'")


@each_regressor
@pytest.mark.parametrize("noise", [0, 0.0, -1.0, np.nan, np.inf, [1.0, 2.0], [1.0, -1.0], [], "a", 1j, {}])
def test_noise_variance(estimator, noise):
    model = clone(estimator).set_params(noise_variance=noise)
    refused(model, X, Y, r"noise_variance.*positive", error=(ValueError, TypeError))


@each_regressor
def test_noise_variance_of_several_targets(estimator):
    two = np.column_stack([Y, -Y])
    refused(clone(estimator).set_params(noise_variance=[0.1, 0.1, 0.1]), X, two, "noise_variance.*one for each target")
    refused(clone(estimator).set_params(noise_variance=[0.1, -0.1]), X, two, "noise_variance.*positive")
    model = fitted(clone(estimator).set_params(noise_variance=[0.1, 0.4]), X, two)
    np.testing.assert_allclose(model.noise_variance_, [0.1, 0.4])


@each_regressor
@pytest.mark.parametrize("noise", [1e-300, 1e-100, 1e-30, 1e-12, 1e12, 1e300])
def test_noise_variance_far_from_the_targets(estimator, noise):
    fitted_or_refused(clone(estimator).set_params(noise_variance=noise), X, Y)


@pytest.mark.parametrize("make", [SparseBayesRegressor, SparseBayesClassifier])
def test_a_basis_that_is_none(make):
    for basis in ("rbf", 3, RBF, [RBF(1.0)]):
        refused(make(basis=basis), X, targets(make()), "basis=.*expected a Basis", error=TypeError)
    for width in (0, -1.0, np.nan, "a", None, [1.0, 2.0]):
        refused(make(basis=RBF(width)), X, targets(make()), "width=.*expected a positive number")
    for centres in (0, -1, np.zeros((0, 3)), np.zeros((4, 2)), np.full((2, 3), np.nan)):
        refused(make(basis=RBF(1.0, centres=centres)), X, targets(make()), "centres")


@pytest.mark.parametrize("make", [SparseBayesRegressor, SparseBayesClassifier])
@pytest.mark.parametrize("tol", ["a", 0, -1.0, -1e-3, np.nan, np.inf, 1j, True])
def test_tol_of_the_solver(make, tol):
    model = make(solver=Sequential(tol=tol))
    refused(model, X, targets(make()), r"tol=.*expected a positive, finite number", error=(ValueError, TypeError))


@pytest.mark.parametrize("make", [SparseBayesRegressor, SparseBayesClassifier])
@pytest.mark.parametrize("max_iter", ["a", 0, -1, 2.5, np.nan, np.inf, True])
def test_max_iter_of_the_solver(make, max_iter):
    model = make(solver=Sequential(max_iter=max_iter))
    refused(model, X, targets(make()), r"max_iter=.*expected a positive integer", error=(ValueError, TypeError))


@pytest.mark.parametrize("name", ["noise_every", "rounds"])
@pytest.mark.parametrize("value", ["a", None, 0, -1, 2.5, np.nan])
def test_counts_of_the_solver(name, value):
    model = SparseBayesRegressor(solver=Sequential(**{name: value}))
    refused(model, X, Y, rf"{name}=.*expected a positive integer", error=(ValueError, TypeError))


@pytest.mark.parametrize("value", ["a", 0.1, None, (0.0,), (2.0,), (np.nan,), ("a",)])
def test_noise_fractions_of_the_solver(value):
    model = SparseBayesRegressor(solver=Sequential(noise_fractions=value))
    refused(model, X, Y, r"noise_fractions.*between 0 and 1", error=(ValueError, TypeError))


@pytest.mark.parametrize("name", ["callback", "candidates"])
def test_functions_of_the_solver_that_are_none(name):
    model = SparseBayesRegressor(RBF(1.0), solver=Sequential(**{name: 3}))
    refused(model, X, Y, rf"{name}=.*callable", error=(ValueError, TypeError))


def test_generated_candidates_need_centres():
    solver = Sequential(candidates=lambda centres, rng: centres)
    refused(SparseBayesRegressor(solver=solver), X, Y, "need a basis with centres")


def test_generated_candidates_that_make_no_sense():
    for made in (np.zeros((2, 5)), np.full((2, 3), np.nan), np.zeros(3)):
        solver = Sequential(candidates=lambda centres, rng, made=made: made)
        refused(SparseBayesRegressor(RBF(1.0), solver=solver), X, Y, "centres|candidates")


def test_generated_candidates_for_a_classifier_are_made_or_refused():
    called = []

    def generate(centres, rng):
        called.append(len(centres))
        return centres + 0.1 * rng.standard_normal(centres.shape)

    model = SparseBayesClassifier(RBF(1.0), solver=Sequential(candidates=generate))
    try:
        model.fit(X, LABELS)
    except ValueError as error:
        complaint = str(error)
    else:
        complaint = ""
    assert called or "candidates" in complaint, "candidates= was ignored"


# -- weights -----------------------------------------------------------------------------------------------


@each
def test_bad_weights(estimator):
    y = targets(estimator)
    ones = np.ones(N)
    negative, missing, infinite = ones.copy(), ones.copy(), ones.copy()
    negative[4], missing[4], infinite[4] = -1.0, np.nan, np.inf
    refused(estimator, X, y, "sample_weight has negative", negative)
    refused(estimator, X, y, "sample_weight has negative or non-finite", missing)
    refused(estimator, X, y, "sample_weight has negative or non-finite", infinite)
    refused(estimator, X, y, "sample_weight is zero on every row", np.zeros(N))
    refused(estimator, X, y, r"sample_weight has shape \(19,\): expected \(20,\)", ones[:-1])
    refused(estimator, X, y, r"sample_weight has shape \(20, 1\)", ones[:, None])


@each
@pytest.mark.parametrize("weight", ["a", ["a"] * N, np.ones(N) * 1j], ids=["string", "strings", "complex"])
def test_weights_of_another_type(estimator, weight):
    refused(estimator, X, targets(estimator), "sample_weight", weight, error=(ValueError, TypeError))


@each
@pytest.mark.parametrize("weight", [1e300, 1e150, 1e10, 1e8, 1e4, 1e-4, 1e-10, 1e-150, 1e-300])
def test_large_and_small_weights(estimator, weight):
    fitted_or_refused(estimator, X, targets(estimator), np.full(N, weight))


@each
def test_one_weight_above_all_others(estimator):
    weight = np.ones(N)
    weight[0] = 1e12
    fitted_or_refused(estimator, X, targets(estimator), weight)


@each
def test_a_single_row_with_a_weight(estimator):
    weight = np.zeros(N)
    weight[0] = 1.0
    if is_classifier(estimator):
        refused(estimator, X, LABELS, "one class only", weight)
    else:
        fitted(estimator, X, Y, weight)


@each_classifier
@pytest.mark.parametrize("class_weight", ["nope", -1.0, {5: 1.0}, {0: "a", 1: 1.0}])
def test_class_weights_that_make_no_sense(estimator, class_weight):
    words = "class_weight|convert string to float"
    refused(clone(estimator).set_params(class_weight=class_weight), X, LABELS, words)


@each_classifier
@pytest.mark.parametrize("weight", [-1.0, np.nan, np.inf])
def test_class_weights_that_are_negative_or_not_finite(estimator, weight):
    refused(clone(estimator).set_params(class_weight={0: weight, 1: 1.0}), X, LABELS, "class_weight|weight.*finite")


@each_classifier
def test_a_class_of_weight_zero(estimator):
    """Its rows are no data, so there is one class only: as with the same sample_weight."""
    refused(estimator, X, LABELS, "one class only", (LABELS == 1).astype(float))
    refused(clone(estimator).set_params(class_weight={0: 0.0, 1: 1.0}), X, LABELS, "one class only|class_weight")


# -- classes -----------------------------------------------------------------------------------------------


@each_classifier
def test_one_class_only(estimator):
    refused(estimator, X, np.zeros(N, dtype=int), "one class only.*at least 2 classes")
    refused(estimator, X, ["a"] * N, "one class only.*'a'.*at least 2 classes")


@each_classifier
@pytest.mark.parametrize(
    "y",
    [[1, "a"] * 10, [None, "a"] * 10, [None, 1] * 10, [("a",), "b"] * 10],
    ids=["int and str", "None and str", "None and int", "tuple and str"],
)
def test_labels_of_mixed_type(estimator, y):
    mixed = np.empty(N, dtype=object)
    mixed[:] = y
    refused(estimator, X, mixed, r"[Uu]nknown label type|label|type|mixed", error=(ValueError, TypeError))


@each_classifier
def test_continuous_labels(estimator):
    refused(estimator, X, Y, "Unknown label type: continuous")


@each_classifier
@pytest.mark.parametrize(
    "names", [[False, True], [-1, 1], [0.0, 2.0], ["b", "a"], ["", "long name"], [2**40, -5]], ids=str
)
def test_labels_of_any_one_type(estimator, names):
    y = np.array(names)[LABELS]
    model = fitted(estimator, X, y)
    assert list(model.classes_) == sorted(names)
    assert model.predict(X).dtype == y.dtype
    assert model.score(X, y) > 0.7


@each_classifier
def test_classes_that_were_not_seen(estimator):
    """Nothing can predict a class that training lacked; scoring against it counts an error."""
    model = fitted(estimator, X, LABELS)
    unseen = LABELS.copy()
    unseen[:5] = 7
    assert 7 not in model.predict(X)
    assert model.score(X, unseen) <= 0.75
    assert model.score(X, np.full(N, 7)) == 0.0


@each_classifier
@pytest.mark.parametrize("gap", [0.0, 100.0])
@pytest.mark.parametrize("fit_intercept", [True, False])
def test_perfectly_separable(estimator, gap, fit_intercept):
    x = np.linspace(-1.0, 1.0, 40)[:, None]
    x = x + gap * np.sign(x)
    y = (x[:, 0] > 0).astype(int)
    model = fitted(clone(estimator).set_params(fit_intercept=fit_intercept), x, y)
    assert model.score(x, y) == 1.0
    assert np.all(np.abs(model.coef_) < 1e6)


@each_classifier
def test_three_separable_classes(estimator):
    x = np.concatenate([np.linspace(-1, 1, 8) + centre for centre in (-10.0, 0.0, 10.0)])
    points = np.column_stack([x, np.abs(x)])
    y = np.repeat([0, 1, 2], 8)
    assert fitted(estimator, points, y).score(points, y) == 1.0


@pytest.mark.parametrize("multi_class", ["softmax", "ovr"])
@pytest.mark.parametrize("gamma", [1e-12, 1e-3, 1e3, 1e12, 1e300])
@pytest.mark.parametrize("classes", [2, 3])
def test_tiny_and_huge_widths(multi_class, gamma, classes):
    y = np.digitize(Y, [0.0] if classes == 2 else [-1.0, 1.0])
    model = fitted(RVC(gamma=gamma, multi_class=multi_class), X, y)
    assert_sane(model, 100.0 * X)


@each_regressor
def test_tiny_widths_in_regression(estimator):
    if isinstance(estimator, RVR):
        for gamma in (1e-300, 1e-12, 1e12, 1e300):
            fitted(RVR(gamma=gamma), X, Y)
            fitted(RVR(gamma=gamma, noise_variance=0.1), X, Y)


@each_classifier
@pytest.mark.parametrize("n", [3, 6])
def test_every_point_its_own_class(estimator, n):
    model = fitted(estimator, X[:n], np.arange(n))
    assert list(model.classes_) == list(range(n))
    assert model.predict_proba(X).shape == (N, n)


@each_classifier
def test_many_classes_of_one_point(estimator):
    fitted(estimator, X[:12], np.arange(12))


def imbalanced(where, n=10_001):
    """One point of the second class among n."""
    rng = np.random.default_rng(2)
    points = rng.standard_normal((n, 2))
    y = np.zeros(n, dtype=int)
    points[77], y[77] = where, 1
    return points, y


each_place = pytest.mark.parametrize("where", [(0.0, 0.0), (1.0, -1.0), (6.0, 6.0)], ids=["inside", "aside", "far"])
each_basis = pytest.mark.parametrize("basis", [None, RBF(1.0, centres=50)], ids=["columns", "kernel"])


@each_place
@each_basis
def test_extreme_imbalance(where, basis):
    points, y = imbalanced(where)
    model = SparseBayesClassifier(basis=basis).fit(points, y)
    assert_sane(model, points[::10])
    assert model.predict_proba(points, moderated=False)[:, 1].mean() < 1e-3


@each_place
@each_basis
def test_extreme_imbalance_is_seen_in_the_probabilities(where, basis):
    """A class of one in 10,000 is not expected in one row of ten.

    The probabilities at the mode say so; the moderated ones need not, because Laplace's posterior of a weight that a
    single row determines is wide, and symmetric where the true one is not.
    """
    points, y = imbalanced(where)
    model = SparseBayesClassifier(basis=basis).fit(points, y)
    assert model.predict_proba(points, moderated=False)[:, 1].mean() < 1e-2


@each_place
@each_basis
def test_extreme_imbalance_that_is_balanced_by_weights(where, basis):
    points, y = imbalanced(where, 3001)
    model = SparseBayesClassifier(basis=basis, class_weight="balanced").fit(points, y)
    assert_sane(model, points[::10])


@pytest.mark.parametrize("seed", range(6))
def test_a_heavy_point_among_many(seed):
    """Nearly separable data with weights far apart: the mode is hard to find, and must be found all the same."""
    rng = np.random.default_rng(seed)
    points = rng.standard_normal((1001, 2))
    y = np.zeros(1001, dtype=int)
    points[7], y[7] = (1.0, -1.0), 1
    model = SparseBayesClassifier(RBF(1.0, centres=20), class_weight="balanced").fit(points, y)
    assert_sane(model, points)


def test_extreme_imbalance_of_three_classes():
    points, y = imbalanced((6.0, 6.0))
    y[78] = 2
    model = SparseBayesClassifier(basis=RBF(1.0, centres=20)).fit(points[:3001], y[:3001])
    assert_sane(model, points[::10])


# -- operators ---------------------------------------------------------------------------------------------


def operator(values):
    """A linear operator, which has no entries that could be looked at."""
    return LinearOperator(
        values.shape, matvec=lambda v: values @ v.ravel(), rmatvec=lambda v: values.T @ v.ravel(), dtype=values.dtype
    )


def with_entry(value):
    bad = X.copy()
    bad[3, 1] = value
    return bad


@pytest.mark.parametrize("make", [SparseBayesRegressor, SparseBayesClassifier])
def test_an_operator_with_values_that_are_not_finite(make):
    for value in (np.nan, np.inf):
        refused(make(), operator(with_entry(value)), targets(make()), "NaN|infinity|finite")


@pytest.mark.parametrize("make", [SparseBayesRegressor, SparseBayesClassifier])
def test_an_operator_with_values_that_are_not_finite_in_prediction(make):
    model = make().fit(operator(X), targets(make()))
    bad = X.copy()
    bad[3] = np.nan
    with pytest.raises(ValueError, match=r"NaN|infinity|finite"):
        model.predict(operator(bad))


@pytest.mark.parametrize("scale", [1e200, 1e100])
def test_an_operator_with_huge_values(scale):
    fitted_or_refused(SparseBayesRegressor(), operator(X * scale), Y)


def test_an_operator_that_lacks_what_is_needed():
    model = SparseBayesRegressor()
    refused(model, LinearOperator(X.shape, matvec=lambda v: X @ v, dtype=float), Y, "rmatvec", error=TypeError)
    refused(model, aslinearoperator(X + 0j), Y, "complex128; expected real", error=TypeError)
    weight = np.arange(N) % 2.0
    refused(model, operator(X), Y, "sample_weight of zero needs the rows of X", weight)
    refused(model, operator(X), Y[:-1], "inconsistent numbers of samples")
    with pytest.raises(ValueError, match="X has 2 columns; the model was fitted on 3"):
        SparseBayesRegressor().fit(operator(X), Y).predict(operator(X[:, :2]))


@pytest.mark.parametrize(
    ("y", "words"),
    [
        (np.where(np.arange(N) == 2, np.nan, Y), r"\by contains NaN"),
        (np.where(np.arange(N) == 2, np.nan, Y).astype(object), r"\by contains NaN"),
        ([None, *Y[1:]], r"\by contains NaN|\by\b.*None"),
        (Y + 1j, "[Cc]omplex data"),
        (["a"] * N, "convert string to float"),
        (np.zeros((N, 2, 2)), "dim 3|shape"),
        (None, r"\by\b|1 dimension"),
        (3.0, r"\by\b|1 dimension"),
    ],
    ids=["NaN", "NaN objects", "None inside", "complex", "strings", "3-d", "None", "scalar"],
)
def test_targets_beside_an_operator(y, words):
    """They are checked as carefully as beside an array."""
    refused(SparseBayesRegressor(), operator(X), y, words, error=(ValueError, TypeError))


def test_an_operator_without_rows_or_columns():
    refused(SparseBayesRegressor(), operator(X[:0]), Y[:0], r"0 sample|empty|at least one")


# -- what a failed fit leaves behind -----------------------------------------------------------------------


@each
@pytest.mark.parametrize("change", [{"tol": -1.0}, {"solver": "nope"}, {"max_iter": 0}], ids=str)
def test_a_failed_first_fit_leaves_an_unfitted_model(estimator, change):
    model = clone(estimator).set_params(**change)
    with pytest.raises(ValueError, match=r"tol|solver|max_iter"):
        model.fit(X, targets(estimator))
    with pytest.raises(NotFittedError):
        model.predict(X)


@each
def test_a_failed_second_fit_leaves_the_first_or_nothing(estimator):
    """The model as it was, or none: not the old weights under new names."""
    model = clone(estimator).fit(X, targets(estimator))
    before = model.predict(X)
    other = np.array(["p", "q", "r"])[np.arange(N) % 3] if is_classifier(estimator) else -5.0 * Y
    with pytest.raises(ValueError, match="tol"):
        model.set_params(tol=-1.0).fit(X[:, ::-1], other)
    try:
        after = model.predict(X)
    except (NotFittedError, AttributeError):
        return
    np.testing.assert_array_equal(after, before)


@each
def test_a_failed_second_fit_on_other_columns(estimator):
    """A model of three columns does not predict from five."""
    model = clone(estimator).fit(X, targets(estimator))
    wide = np.column_stack([X, X[:, :2] ** 2])
    with pytest.raises(ValueError, match="sample_weight"):
        model.fit(wide, targets(estimator), np.full(N, -1.0))
    with pytest.raises((ValueError, NotFittedError, AttributeError)):
        model.predict(wide)


def test_a_callback_that_fails_leaves_an_unfitted_model():
    def fail(record, active):
        raise RuntimeError("no")

    model = SparseBayesRegressor(solver=Sequential(callback=fail))
    with pytest.raises(RuntimeError, match="no"):
        model.fit(X, Y)
    with pytest.raises((NotFittedError, AttributeError)):
        model.predict(X)


def test_a_fit_that_stops_early_says_so_and_is_usable():
    for make in (SparseBayesRegressor, RVR, SparseBayesClassifier, RVC):
        model = make(max_iter=1)
        with pytest.warns(ConvergenceWarning, match=r"max_iter.*raise max_iter"):
            model.fit(X, targets(model))
        assert not model.status_.converged
        assert_sane(model, X)
