"""The estimators as scikit-learn sees them: its own checks, its tools around them, and everything X may come as."""

import functools
import os
import pickle
import subprocess
import sys

import joblib
import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import sparse
from scipy.sparse.linalg import LinearOperator, aslinearoperator
from sklearn import config_context
from sklearn.base import clone, is_classifier, is_regressor
from sklearn.calibration import CalibratedClassifierCV
from sklearn.exceptions import NotFittedError
from sklearn.inspection import permutation_importance
from sklearn.metrics.pairwise import laplacian_kernel, polynomial_kernel, rbf_kernel
from sklearn.model_selection import GridSearchCV, cross_val_predict, cross_val_score
from sklearn.multioutput import MultiOutputRegressor
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from sparsebayes import RVC, RVR, Sequential, SparseBayesClassifier, SparseBayesRegressor
from sparsebayes.basis import RBF, Bias, Linear

REGRESSORS = [RVR(), SparseBayesRegressor(), SparseBayesRegressor(basis=Bias() + RBF(1.0), fit_intercept=False)]
CLASSIFIERS = [RVC(), SparseBayesClassifier(), SparseBayesClassifier(basis=Linear() + RBF(1.0), fit_intercept=False)]
ESTIMATORS = REGRESSORS + CLASSIFIERS


@parametrize_with_checks(
    [
        RVR(),
        SparseBayesRegressor(),
        RVC(),
        SparseBayesClassifier(),
        RVC(multi_class="ovr"),
        SparseBayesRegressor(basis=RBF(1.0)),
    ]
)
def test_scikit_learn_checks(estimator, check):
    check(estimator)


def test_the_array_api_check_passes_where_scipy_lets_it_run():
    """scikit-learn skips this check unless SciPy's array API support is switched on before anything is imported."""
    program = """
from sklearn.utils.estimator_checks import estimator_checks_generator
from sparsebayes import RVC, RVR, SparseBayesClassifier, SparseBayesRegressor
for estimator in (RVR(), SparseBayesRegressor(), RVC(), SparseBayesClassifier()):
    ran = 0
    for instance, check in estimator_checks_generator(estimator):
        if check.func.__name__ == "check_array_api_input":
            check(instance)
            ran += 1
    assert ran == 1, estimator
print("all ran")
"""
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", program],
        env=os.environ | {"SCIPY_ARRAY_API": "1", "OPENBLAS_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout == "all ran\n"


def regression(n=30, d=3, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1.0, 1.0, (n, d))
    return X, 2.0 * X[:, 0] - X[:, 1] + 0.1 * rng.standard_normal(n)


def classification(n=30, k=2, seed=0):
    rng = np.random.default_rng(seed)
    angle = 2.0 * np.pi * np.arange(k) / k
    labels = np.arange(n) % k
    X = 1.5 * np.column_stack([np.cos(angle), np.sin(angle)])[labels] + 0.6 * rng.standard_normal((n, 2))
    return X, np.array(["ant", "bee", "cow", "dog"])[labels]


def data_for(estimator):
    """Two classes, because many take longer and most tools do not care."""
    return classification() if is_classifier(estimator) else regression()


def outputs(model, X):
    """Everything that a model says about X, as one array."""
    if is_classifier(model):
        return np.hstack([model.predict_proba(X), np.atleast_2d(model.decision_function(X).T).T])
    return np.column_stack(model.predict(X, return_std=True))


def ids(values):
    return [str(value).replace("\n", "") for value in values]


each = pytest.mark.parametrize("estimator", ESTIMATORS, ids=ids(ESTIMATORS))
each_regressor = pytest.mark.parametrize("estimator", REGRESSORS, ids=ids(REGRESSORS))
# One of each kind, where the others would say the same.
one_of_each = pytest.mark.parametrize(
    "estimator", [RVR(), SparseBayesRegressor(), RVC(), SparseBayesClassifier()], ids=lambda e: type(e).__name__
)


# -- identity, copies and files ----------------------------------------------------------------------------


@each
def test_kind_of_estimator(estimator):
    assert is_classifier(estimator) != is_regressor(estimator)


@each
def test_clone_has_the_same_settings_and_no_fit(estimator):
    X, y = data_for(estimator)
    model = clone(estimator).fit(X, y)
    copy = clone(model)
    assert repr(copy) == repr(estimator)
    with pytest.raises(NotFittedError):
        copy.predict(X)


@each
def test_fitting_leaves_the_settings_alone(estimator):
    X, y = data_for(estimator)
    model = clone(estimator)
    before = {name: repr(value) for name, value in model.get_params().items()}
    model.fit(X, y)
    assert {name: repr(value) for name, value in model.get_params().items()} == before


@each
def test_fitting_twice_is_fitting_once(estimator):
    X, y = data_for(estimator)
    model = clone(estimator).fit(X, y)
    first = outputs(model, X)
    other_X, other_y = (classification(seed=5) if is_classifier(estimator) else regression(seed=5, d=2))[:2]
    model.fit(other_X, other_y).fit(X, y)
    np.testing.assert_array_equal(outputs(model, X), first)


@each
def test_fitting_changes_neither_X_nor_y(estimator):
    X, y = data_for(estimator)
    X_before, y_before = X.copy(), y.copy()
    clone(estimator).fit(X, y)
    np.testing.assert_array_equal(X, X_before)
    np.testing.assert_array_equal(y, y_before)


@each
def test_pickle_round_trip(estimator):
    X, y = data_for(estimator)
    model = clone(estimator).fit(X, y)
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(outputs(again, X), outputs(model, X))
    assert repr(again) == repr(model)


@each
def test_pickle_of_an_unfitted_estimator(estimator):
    assert repr(pickle.loads(pickle.dumps(estimator))) == repr(estimator)


@each
def test_joblib_round_trip(estimator, tmp_path):
    X, y = data_for(estimator)
    model = clone(estimator).fit(X, y)
    joblib.dump(model, tmp_path / "model.joblib")
    again = joblib.load(tmp_path / "model.joblib")
    np.testing.assert_array_equal(outputs(again, X), outputs(model, X))


def test_pickle_of_a_model_with_a_solver_object_and_a_basis():
    X, y = regression()
    model = SparseBayesRegressor(basis=Linear() + RBF(1.0), solver=Sequential(selection="random"), random_state=3)
    model.fit(X, y)
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(again.predict(X), model.predict(X))
    assert again.solver.selection == "random"
    np.testing.assert_array_equal(clone(again).fit(X, y).predict(X), model.predict(X))


# -- parameters --------------------------------------------------------------------------------------------


@each
def test_get_and_set_params(estimator):
    copy = clone(estimator)
    assert set(copy.get_params(deep=False)) <= set(copy.get_params())
    assert copy.set_params(tol=0.01, max_iter=77) is copy
    assert (copy.get_params()["tol"], copy.get_params()["max_iter"]) == (0.01, 77)
    with pytest.raises(ValueError, match="Invalid parameter"):
        copy.set_params(no_such_parameter=1)


def test_parameters_of_the_solver_and_of_the_basis_are_reached():
    model = SparseBayesRegressor(basis=Linear() + RBF(1.0), solver=Sequential())
    model.set_params(solver__selection="ordered", basis__rbf__width=3.0)
    params = model.get_params()
    assert params["solver__selection"] == model.solver.selection == "ordered"
    assert params["basis__rbf__width"] == 3.0
    assert model.basis.get_params()["rbf__width"] == 3.0
    with pytest.raises(ValueError, match=r"no_such.*'?linear'?"):
        model.set_params(basis__no_such__width=3.0)
    with pytest.raises(ValueError, match="Invalid parameter"):
        model.set_params(solver__no_such=3.0)


def test_setting_a_parameter_of_a_clone_leaves_the_original_alone():
    model = SparseBayesRegressor(basis=Bias() + RBF(1.0), solver=Sequential())
    clone(model).set_params(basis__rbf__width=7.0, solver__selection="random")
    assert model.get_params()["basis__rbf__width"] == 1.0
    assert model.solver.selection == "greedy"


def test_grid_over_the_solver():
    X, y = regression()
    grid = {"solver__selection": ["greedy", "ordered", "random"], "solver__initialisation": ["projection", "bias"]}
    search = GridSearchCV(SparseBayesRegressor(solver=Sequential(), random_state=0), grid, cv=3).fit(X, y)
    assert len(search.cv_results_["params"]) == 6
    assert np.all(np.isfinite(search.cv_results_["mean_test_score"]))
    assert search.best_estimator_.solver.selection == search.best_params_["solver__selection"]
    assert search.best_score_ > 0.9


def test_grid_over_solvers_and_their_settings_in_a_classifier():
    X, y = classification(30)
    grid = {"solver": ["sequential", Sequential(selection="ordered")], "gamma": [0.1, 1.0]}
    search = GridSearchCV(RVC(), grid, cv=3).fit(X, y)
    assert np.all(np.isfinite(search.cv_results_["mean_test_score"]))


def test_grid_over_the_width_of_a_basis():
    X, y = regression()
    search = GridSearchCV(SparseBayesRegressor(basis=RBF(1.0)), {"basis__width": [0.05, 1.5]}, cv=3).fit(X, y)
    assert search.best_params_ == {"basis__width": 1.5}
    assert search.best_estimator_.basis.width == 1.5
    assert search.best_estimator_.relevance_functions_[0]["width"] == 1.5


def test_grid_over_the_width_in_a_sum():
    X, y = regression()
    estimator = SparseBayesRegressor(basis=Bias() + RBF(1.0), fit_intercept=False)
    search = GridSearchCV(estimator, {"basis__rbf__width": [0.05, 1.5]}, cv=3).fit(X, y)
    assert search.best_params_ == {"basis__rbf__width": 1.5}
    widths = {spec["width"] for spec in search.best_estimator_.relevance_functions_ if spec["kind"] == "rbf"}
    assert widths == {1.5}


def test_grid_over_kernels_and_gamma():
    X, y = regression()
    grid = {"kernel": ["rbf", "linear"], "gamma": ["scale", 0.5]}
    search = GridSearchCV(RVR(), grid, cv=3, n_jobs=1).fit(X, y)
    assert search.best_score_ > 0.9


# -- scikit-learn's tools ----------------------------------------------------------------------------------


@one_of_each
def test_pipeline_with_a_scaler(estimator):
    X, y = data_for(estimator)
    X = X * [1e3, 1e-3, 1.0][: X.shape[1]]
    model = make_pipeline(StandardScaler(), clone(estimator)).fit(X, y)
    direct = clone(estimator).fit(StandardScaler().fit_transform(X), y)
    np.testing.assert_array_equal(model.predict(X), direct.predict(StandardScaler().fit_transform(X)))
    assert model.score(X, y) > 0.8


@one_of_each
def test_cross_val_score(estimator):
    X, y = data_for(estimator)
    scores = cross_val_score(estimator, X, y, cv=3)
    assert np.all(scores > 0.6)


@pytest.mark.parametrize("estimator", [RVC(), RVC(multi_class="ovr"), SparseBayesClassifier()], ids=str)
def test_cross_val_predict_of_probabilities(estimator):
    X, y = classification(30, k=3)
    proba = cross_val_predict(estimator, X, y, cv=3, method="predict_proba")
    assert proba.shape == (30, 3)
    np.testing.assert_allclose(proba.sum(axis=1), 1.0, rtol=1e-12)
    assert np.mean(np.unique(y)[np.argmax(proba, axis=1)] == y) > 0.8


def test_cross_val_predict_of_decisions_for_two_classes():
    X, y = classification(40)
    decision = cross_val_predict(RVC(), X, y, cv=3, method="decision_function")
    assert decision.shape == (40,)
    assert np.mean((decision > 0) == (y == "bee")) > 0.8


def test_calibrated_classifier():
    X, y = classification(30)
    for method in ("sigmoid", "isotonic"):
        model = CalibratedClassifierCV(RVC(), method=method, cv=3).fit(X, y)
        np.testing.assert_allclose(model.predict_proba(X).sum(axis=1), 1.0, rtol=1e-12)
        assert model.score(X, y) > 0.8


@one_of_each
def test_permutation_importance(estimator):
    X, y = data_for(estimator)
    X = np.column_stack([X[:, :2], np.random.default_rng(1).uniform(-1, 1, len(X))])
    model = clone(estimator).fit(X, y)
    importance = permutation_importance(model, X, y, n_repeats=3, random_state=0).importances_mean
    assert importance[0] > importance[2]


@each_regressor
def test_one_model_for_each_target(estimator):
    X, y = regression(d=3)
    Y = np.column_stack([y, X[:, 2] + 0.1 * y])
    wrapped = MultiOutputRegressor(clone(estimator)).fit(X, Y)
    np.testing.assert_allclose(clone(estimator).fit(X, Y).predict(X), wrapped.predict(X), atol=1e-10)


@one_of_each
def test_set_output_is_of_no_concern(estimator):
    """A predictor has no transform: the setting neither fails in a pipeline nor changes what predict returns."""
    X, y = data_for(estimator)
    frame = pd.DataFrame(X, columns=[f"x{j}" for j in range(X.shape[1])])
    model = make_pipeline(StandardScaler(), clone(estimator)).set_output(transform="pandas").fit(frame, y)
    plain = make_pipeline(StandardScaler(), clone(estimator)).fit(frame, y)
    assert isinstance(model.predict(frame), np.ndarray)
    np.testing.assert_array_equal(model.predict(frame), plain.predict(frame))
    assert list(model[-1].feature_names_in_) == list(frame.columns)
    with config_context(transform_output="pandas"):
        assert isinstance(clone(estimator).fit(frame, y).predict(frame), np.ndarray)


@one_of_each
def test_sample_weight_is_routed(estimator):
    X, y = data_for(estimator)
    weight = np.where(np.arange(len(X)) % 2 == 0, 3.0, 1.0)
    scaled = StandardScaler().fit(X).transform(X)
    expected = outputs(clone(estimator).fit(scaled, y, sample_weight=weight), scaled)
    with config_context(enable_metadata_routing=True):
        model = clone(estimator).set_fit_request(sample_weight=True)
        chain = Pipeline([("scale", StandardScaler().set_fit_request(sample_weight=False)), ("model", model)])
        chain.fit(X, y, sample_weight=weight)
        np.testing.assert_array_equal(outputs(chain[-1], scaled), expected)
        scores = cross_val_score(
            clone(estimator).set_fit_request(sample_weight=True).set_score_request(sample_weight=True),
            X,
            y,
            cv=3,
            params={"sample_weight": weight},
        )
        assert np.all(np.isfinite(scores))
    assert np.any(outputs(clone(estimator).fit(scaled, y), scaled) != expected)


@one_of_each
def test_sample_weight_reaches_the_model_by_name_without_routing(estimator):
    X, y = data_for(estimator)
    weight = np.linspace(1.0, 3.0, len(X))
    chain = Pipeline([("scale", StandardScaler()), ("model", clone(estimator))]).fit(X, y, model__sample_weight=weight)
    scaled = chain[0].transform(X)
    expected = outputs(clone(estimator).fit(scaled, y, weight), scaled)
    np.testing.assert_array_equal(outputs(chain[-1], scaled), expected)


# -- tables ------------------------------------------------------------------------------------------------


def frames(X, names):
    return {"pandas": pd.DataFrame(X, columns=names), "polars": pl.DataFrame(X, schema=names)}


@each
@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_tables_in_and_names_kept(estimator, library):
    X, y = data_for(estimator)
    names = ["height", "weight", "age"][: X.shape[1]]
    frame = frames(X, names)[library]
    target = pd.Series(y) if library == "pandas" else pl.Series("y", y)
    model = clone(estimator).fit(frame, target)
    assert list(model.feature_names_in_) == names
    plain = clone(estimator).fit(X, y)
    assert not hasattr(plain, "feature_names_in_")
    np.testing.assert_allclose(outputs(model, frame), outputs(plain, X), rtol=1e-10, atol=1e-12)


@one_of_each
@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_columns_in_the_wrong_order_are_refused(estimator, library):
    X, y = data_for(estimator)
    names = ["height", "weight", "age"][: X.shape[1]]
    model = clone(estimator).fit(frames(X, names)[library], y)
    with pytest.raises(ValueError, match="same order"):
        model.predict(frames(X[:, ::-1], names[::-1])[library])
    with pytest.raises(ValueError, match="unseen at fit time"):
        model.predict(frames(X, ["height", "mass", "age"][: X.shape[1]])[library])
    with pytest.warns(UserWarning, match="does not have valid feature names"):
        model.predict(X)
    with pytest.warns(UserWarning, match="was fitted without feature names"):
        clone(estimator).fit(X, y).predict(frames(X, names)[library])


@one_of_each
def test_a_missing_value_in_a_table_is_refused(estimator):
    X, y = data_for(estimator)
    frame = pd.DataFrame(X)
    frame.columns = [f"x{j}" for j in range(X.shape[1])]
    frame.loc[3, "x1"] = None
    with pytest.raises(ValueError, match="NaN"):
        clone(estimator).fit(frame, y)


def test_labels_as_categories_and_as_strings_of_pandas():
    X, y = classification(30, k=3)
    plain = SparseBayesClassifier().fit(X, y)
    for labels in (pd.Series(y, dtype="category"), pd.Series(y, dtype="string"), pd.Series(y, dtype=object), list(y)):
        model = SparseBayesClassifier().fit(X, labels)
        assert list(model.classes_) == ["ant", "bee", "cow"]
        np.testing.assert_array_equal(model.predict(X).astype(str), plain.predict(X))


# -- dtypes and layouts ------------------------------------------------------------------------------------


@each
def test_layouts_make_no_difference(estimator):
    X, y = data_for(estimator)
    expected = outputs(clone(estimator).fit(X, y), X)
    read_only_X, read_only_y = X.copy(), y.copy()
    read_only_X.flags.writeable = read_only_y.flags.writeable = False
    wide = np.zeros((2 * len(X), 2 * X.shape[1]))
    wide[::2, ::2] = X
    variants = {
        "Fortran": (np.asfortranarray(X), y),
        "read-only": (read_only_X, read_only_y),
        "strided": (wide[::2, ::2], y),
        "reversed": (X[::-1, ::-1].copy()[::-1, ::-1], y),
        "lists": (X.tolist(), y.tolist()),
        "tuples": (tuple(map(tuple, X)), tuple(y)),
        "objects": (X.astype(object), y),
        "big-endian": (X.astype(">f8"), y),
    }
    for name, (X_variant, y_variant) in variants.items():
        model = clone(estimator).fit(X_variant, y_variant)
        np.testing.assert_allclose(outputs(model, X_variant), expected, rtol=1e-8, atol=1e-9, err_msg=name)
        np.testing.assert_allclose(outputs(model, X), expected, rtol=1e-8, atol=1e-9, err_msg=name)


@each
def test_float32_is_the_same_numbers_in_float64(estimator):
    X, y = data_for(estimator)
    X = X.astype(np.float32)
    if is_regressor(estimator):
        y = y.astype(np.float32)
        wide_y = y.astype(np.float64)
    else:
        wide_y = y
    model = clone(estimator).fit(X, y)
    wide = clone(estimator).fit(X.astype(np.float64), wide_y)
    np.testing.assert_array_equal(outputs(model, X), outputs(wide, X.astype(np.float64)))
    assert model.coef_.dtype == np.float64


@each
@pytest.mark.parametrize("dtype", [np.int8, np.int64, np.uint8, bool])
def test_integer_inputs(estimator, dtype):
    rng = np.random.default_rng(0)
    X = rng.integers(0, 2 if dtype is bool else 6, (30, 3)).astype(dtype)
    y = X[:, 0].astype(np.int64) * 2 + (rng.random(30) < 0.1)
    if is_classifier(estimator):
        y = (y > y.mean()).astype(np.int64)
    model = clone(estimator).fit(X, y)
    same = clone(estimator).fit(X.astype(np.float64), y if is_classifier(estimator) else y.astype(np.float64))
    np.testing.assert_array_equal(outputs(model, X), outputs(same, X.astype(np.float64)))
    if is_classifier(estimator):
        assert model.predict(X).dtype == y.dtype


# -- sparse arrays and operators ---------------------------------------------------------------------------


def sparse_problem(classes=0):
    """A problem with a sparse X: regression, or that many classes."""
    rng = np.random.default_rng(7)
    X = rng.standard_normal((60, 12)) * (rng.random((60, 12)) < 0.3)
    y = 3.0 * X[:, 2] - 2.0 * X[:, 11] + X[:, 7]
    if classes == 2:
        return X, (y + 0.3 * rng.standard_normal(60) > 0).astype(int)
    if classes == 3:
        return X, np.digitize(y + 0.3 * rng.standard_normal(60), [-1.0, 1.0])
    return X, y + 0.1 * rng.standard_normal(60) + 5.0


CONTAINERS = {
    "csr_array": sparse.csr_array,
    "csc_array": sparse.csc_array,
    "csr_matrix": sparse.csr_matrix,
    "csc_matrix": sparse.csc_matrix,
    "coo_array": sparse.coo_array,
    "operator": aslinearoperator,
    "operator of products": lambda X: LinearOperator(
        X.shape, matvec=lambda v: X @ v.ravel(), rmatvec=lambda v: X.T @ v.ravel(), dtype=X.dtype
    ),
}


@functools.cache
def dense_fit(fit_intercept, classes):
    X, y = sparse_problem(classes)
    return (SparseBayesClassifier if classes else SparseBayesRegressor)(fit_intercept=fit_intercept).fit(X, y)


def assert_storage_makes_no_difference(container, fit_intercept, classes):
    X, y = sparse_problem(classes)
    dense = dense_fit(fit_intercept, classes)
    model = clone(dense).fit(CONTAINERS[container](X), y)
    np.testing.assert_array_equal(model.relevance_, dense.relevance_)
    np.testing.assert_allclose(model.coef_, dense.coef_, rtol=1e-8, atol=1e-8)
    np.testing.assert_allclose(outputs(model, CONTAINERS[container](X)), outputs(dense, X), rtol=1e-8, atol=1e-8)
    np.testing.assert_allclose(outputs(model, X), outputs(dense, X), rtol=1e-8, atol=1e-8)


@pytest.mark.parametrize("container", CONTAINERS, ids=str)
@pytest.mark.parametrize("fit_intercept", [True, False])
def test_storage_makes_no_difference(container, fit_intercept):
    assert_storage_makes_no_difference(container, fit_intercept, classes=0)


@pytest.mark.parametrize("container", ["csr_array", "csc_array", "operator"])
@pytest.mark.parametrize("classes", [2, 3])
def test_storage_makes_no_difference_to_a_classifier(container, classes):
    assert_storage_makes_no_difference(container, classes == 2, classes)


@pytest.mark.parametrize("container", ["csr_array", "csc_array"])
def test_weights_and_sparse_arrays(container):
    X, y = sparse_problem()
    weight = np.arange(60) % 3.0
    dense = SparseBayesRegressor().fit(X, y, weight)
    model = SparseBayesRegressor().fit(CONTAINERS[container](X), y, weight)
    np.testing.assert_array_equal(model.relevance_, dense.relevance_)
    np.testing.assert_allclose(model.predict(CONTAINERS[container](X)), dense.predict(X), rtol=1e-8)


def test_positive_weights_and_an_operator():
    X, y = sparse_problem()
    weight = 1.0 + np.arange(60) % 3.0
    dense = SparseBayesRegressor().fit(X, y, weight)
    model = SparseBayesRegressor().fit(aslinearoperator(X), y, weight)
    np.testing.assert_array_equal(model.relevance_, dense.relevance_)
    np.testing.assert_allclose(model.predict(aslinearoperator(X)), dense.predict(X), rtol=1e-8)


@pytest.mark.parametrize("estimator", [RVR(), RVC(), SparseBayesRegressor(basis=RBF(1.0))], ids=lambda e: str(e))
def test_sparse_inputs_of_a_kernel_are_refused(estimator):
    X, y = sparse_problem(2)
    with pytest.raises(TypeError, match=r"[Ss]parse"):
        clone(estimator).fit(sparse.csr_array(X), y)


@pytest.mark.parametrize("estimator", [RVR(), RVC(), SparseBayesRegressor(basis=RBF(1.0))], ids=lambda e: str(e))
def test_an_operator_in_a_kernel_is_refused(estimator):
    X, y = sparse_problem(2)
    with pytest.raises((TypeError, ValueError)):
        clone(estimator).fit(aslinearoperator(X), y)


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
