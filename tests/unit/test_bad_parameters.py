"""Bad parameters, operators and failed fits: a clear error or a defined answer, no hang, NaN or bare LinAlgError."""

import numpy as np
import pytest
from bad_inputs import (
    LABELS,
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
from scipy.sparse.linalg import LinearOperator, aslinearoperator
from sklearn.base import clone, is_classifier
from sklearn.exceptions import ConvergenceWarning, NotFittedError

from sparsebayes import RVC, RVR, Sequential, SparseBayesClassifier, SparseBayesRegressor
from sparsebayes.basis import RBF

pytestmark = pytest.mark.usefixtures("no_hang")

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
    words = r"gamma=.*expected a positive, finite number, or one of 'scale', 'auto', 'evidence'"
    refused(make(gamma=gamma), X, targets(make()), words)


@pytest.mark.parametrize("make", [RVR, SparseBayesRegressor])
def test_a_support_by_evidence_is_refused_where_a_squared_error_chooses(make):
    refused(make(solver="subset", support="conservative"), X, Y, "support='conservative'.*use support='evidence', or")


@pytest.mark.parametrize("make", [RVR, RVC])
def test_names_that_do_not_exist(make):
    y = targets(make())
    kernels = r"choose one of 'rbf', 'linear', 'poly', 'laplacian', 'sigmoid', 'precomputed'"
    for kernel in ("nope", "RBF", None, 3):
        refused(make(kernel), X, y, r"kernel=.*" + kernels)
    refused(make(gamma="nope"), X, y, r"gamma='nope'.*choose one of 'scale', 'auto'.*or a positive number")
    for solver in ("nope", None, 3, Sequential):
        refused(make(solver=solver), X, y, r"solver=.*one of 'sequential'.*, or an object such as Sequential\(\)")
    for name, known in {
        "selection": "'greedy', 'ordered', 'random'",
        "initialisation": "'projection', 'bias'",
        "effort": "'fast', 'default', 'thorough'",
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
    refused(model, operator(X), Y, "a sample_weight of zero leaves rows out", weight)
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
