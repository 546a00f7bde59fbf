"""The estimators as scikit-learn sees them: its own checks, copies, files and parameters."""

import os
import pickle
import subprocess
import sys

import joblib
import numpy as np
import pytest
from shared import classification, data_for, each, outputs, regression
from sklearn.base import clone, is_classifier, is_regressor
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV
from sklearn.utils.estimator_checks import parametrize_with_checks

from sparsebayes import RVC, RVR, Sequential, SparseBayesClassifier, SparseBayesRegressor
from sparsebayes.basis import RBF, Bias, Linear


@parametrize_with_checks(
    [
        RVR(),
        RVR(noise="varies"),
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
