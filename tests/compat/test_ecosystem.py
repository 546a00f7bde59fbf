"""Other packages around the estimators: SHAP, skops, PySINDy; and scikit-learn's tools taken together."""

import sys
import warnings

import numpy as np
import pandas as pd
import pytest
from shared import classification, data_for, each, one_of_each, outputs, regression
from sklearn import config_context
from sklearn.base import is_classifier
from sklearn.compose import ColumnTransformer
from sklearn.inspection import permutation_importance
from sklearn.model_selection import GridSearchCV, cross_val_predict, cross_validate
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler

from sparsebayes import RVC, RVR, ARDRegression, SparseBayesClassifier, SparseBayesRegressor
from sparsebayes.basis import RBF, Linear


def table(estimator, n=40):
    """A frame of numbers and categories, and a target that needs both."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {
            "size": rng.uniform(10.0, 200.0, n),
            "age": rng.uniform(0.0, 50.0, n),
            "town": rng.choice(["north", "south", "west"], n),
        }
    )
    value = frame["size"] / 50.0 + 2.0 * (frame["town"] == "south") + 0.1 * rng.standard_normal(n)
    return frame, np.where(value > 3.0, "dear", "cheap") if is_classifier(estimator) else value.to_numpy()


def mixed(estimator):
    columns = ColumnTransformer(
        [("numbers", StandardScaler(), ["size", "age"]), ("texts", OneHotEncoder(sparse_output=False), ["town"])]
    )
    return Pipeline([("columns", columns), ("model", estimator)])


@one_of_each
def test_column_transformer_in_a_pipeline(estimator):
    X, y = table(estimator)
    model = mixed(estimator).fit(X, y)
    assert model.score(X, y) > 0.8
    shuffled = X[["town", "age", "size"]]  # the transformer goes by name
    np.testing.assert_array_equal(model.predict(shuffled), model.predict(X))


@one_of_each
def test_set_output_names_what_the_model_gets(estimator):
    X, y = table(estimator)
    model = mixed(estimator).set_output(transform="pandas").fit(X, y)
    assert model[-1].feature_names_in_.tolist()[0] == "numbers__size"
    assert len(model[-1].feature_names_in_) == 5


@pytest.mark.parametrize(
    ("estimator", "grid"),
    [
        (RVR(), {"model__gamma": [0.1, 1.0], "columns__numbers__with_mean": [True, False]}),
        (SparseBayesRegressor(Linear() + RBF(1.0)), {"model__basis__rbf__width": [0.5, 2.0]}),
        (RVC(), {"model__gamma": [0.1, 1.0]}),
    ],
    ids=["RVR", "sum", "RVC"],
)
def test_grid_search_over_a_pipeline_of_columns(estimator, grid):
    X, y = table(estimator)
    search = GridSearchCV(mixed(estimator), grid, cv=3, error_score="raise").fit(X, y)
    assert set(search.best_params_) == set(grid)
    assert search.best_score_ > 0.5


@one_of_each
def test_cross_validation_of_a_pipeline_of_columns(estimator):
    X, y = table(estimator)
    assert len(cross_val_predict(mixed(estimator), X, y, cv=3)) == len(X)


@one_of_each
def test_weights_are_routed_through_a_pipeline_and_a_search(estimator):
    X, y = data_for(estimator)
    weight = np.linspace(0.5, 1.5, len(X))
    with config_context(enable_metadata_routing=True):
        model = estimator.set_fit_request(sample_weight=True).set_score_request(sample_weight=True)
        pipeline = make_pipeline(StandardScaler().set_fit_request(sample_weight=False), model)
        result = cross_validate(pipeline, X, y, params={"sample_weight": weight}, cv=3, error_score="raise")
    assert np.all(np.isfinite(result["test_score"]))


def test_permutation_importance_finds_the_inputs_that_matter():
    X, y = regression(60)
    found = permutation_importance(RVR().fit(X, y), X, y, n_repeats=3, random_state=0)
    assert np.argmin(found.importances_mean) == 2  # the third input is noise


@pytest.mark.filterwarnings("ignore")  # what SHAP and its dependencies warn of is theirs
class TestShap:
    @pytest.fixture
    def shap(self):
        return pytest.importorskip("shap", reason="needs the package shap")

    @pytest.mark.parametrize(
        "estimator", [RVR(gamma=0.5), SparseBayesRegressor(), ARDRegression()], ids=lambda e: type(e).__name__
    )
    def test_values_add_up_to_the_prediction(self, shap, estimator):
        X, y = regression(40)
        model = estimator.fit(X, y)
        explained = shap.Explainer(model.predict, X, seed=0)(X[:5])
        total = explained.base_values + explained.values.sum(axis=1)
        np.testing.assert_allclose(total, model.predict(X[:5]), atol=1e-6)

    def test_a_linear_model_is_explained_by_its_weights(self, shap):
        X, y = regression(40)
        model = SparseBayesRegressor().fit(X, y)
        values = shap.Explainer(model.predict, X, seed=0)(X[:5]).values
        np.testing.assert_allclose(values, (X[:5] - X.mean(axis=0)) * model.coef_, atol=1e-6)

    def test_probabilities(self, shap):
        X, y = classification(40)
        model = RVC().fit(X, y)
        explained = shap.Explainer(model.predict_proba, X, seed=0)(X[:5])
        total = explained.base_values + explained.values.sum(axis=1)
        np.testing.assert_allclose(total, model.predict_proba(X[:5]), atol=1e-6)


class TestSkops:
    @each
    def test_round_trip(self, estimator):
        io = pytest.importorskip("skops.io", reason="needs the package skops")
        X, y = data_for(estimator)
        model = estimator.fit(X, y)
        content = io.dumps(model)
        unknown = io.get_untrusted_types(data=content)
        # All that skops asks to be trusted is this library's own.
        assert unknown
        assert all(name.startswith("sparsebayes.") for name in unknown)
        again = io.loads(content, trusted=unknown)
        np.testing.assert_array_equal(outputs(again, X), outputs(model, X))
        assert again.status_ is model.status_

    def test_a_pipeline(self):
        io = pytest.importorskip("skops.io", reason="needs the package skops")
        X, y = regression()
        model = make_pipeline(StandardScaler(), SparseBayesRegressor(Linear() + RBF(1.0))).fit(X, y)
        content = io.dumps(model)
        again = io.loads(content, trusted=io.get_untrusted_types(data=content))
        np.testing.assert_array_equal(again.predict(X), model.predict(X))


def lorenz(t):
    from scipy.integrate import solve_ivp

    def slope(_, x):
        return [10.0 * (x[1] - x[0]), x[0] * (28.0 - x[2]) - x[1], x[0] * x[1] - 8.0 / 3.0 * x[2]]

    return solve_ivp(slope, (t[0], t[-1]), [-8.0, 8.0, 27.0], t_eval=t, rtol=1e-10, atol=1e-10).y.T


class TestPySINDy:
    @pytest.fixture
    def sindy(self):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # at import, and not of this library
            return pytest.importorskip("pysindy", reason="needs the extra sindy")

    @pytest.fixture
    def Optimizer(self, sindy):
        from sparsebayes.estimators.sindy import SparseBayesOptimizer

        return SparseBayesOptimizer

    @pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning")
    @pytest.mark.parametrize("settings", [{}, {"normalize_columns": True}, {"unbias": True}], ids=str)
    def test_the_lorenz_equations_are_found_without_a_threshold(self, sindy, Optimizer, settings):
        t = np.arange(0.0, 6.0, 0.002)
        optimizer = Optimizer(**settings)
        model = sindy.SINDy(optimizer=optimizer, feature_library=sindy.PolynomialLibrary(2))
        x = lorenz(t)
        rng = np.random.default_rng(0)
        slopes = np.column_stack(
            [10.0 * (x[:, 1] - x[:, 0]), x[:, 0] * (28.0 - x[:, 2]) - x[:, 1], x[:, 0] * x[:, 1] - 8.0 / 3.0 * x[:, 2]]
        )
        model.fit(x, t=t, x_dot=slopes + 0.5 * rng.standard_normal(slopes.shape), feature_names=["x", "y", "z"])
        names = model.get_feature_names()
        truth = [{"x": -10.0, "y": 10.0}, {"x": 28.0, "y": -1.0, "x z": -1.0}, {"z": -8.0 / 3.0, "x y": 1.0}]
        coefficients = model.coefficients()
        for equation, row in zip(truth, coefficients, strict=True):
            expected = np.array([equation.get(name, 0.0) for name in names])
            np.testing.assert_allclose(row, expected, atol=0.15)
            assert np.all(row[expected != 0.0] != 0.0)
        # No equation has more than a few of the ten terms, and the noise is found.
        assert np.count_nonzero(coefficients) <= 12
        np.testing.assert_allclose(np.sqrt(optimizer.model_.noise_variance_), 0.5, rtol=0.1)

    def test_standard_deviations_are_those_of_the_weights(self, Optimizer):
        rng = np.random.default_rng(0)
        X = rng.standard_normal((200, 6)) * [1.0, 10.0, 0.1, 1.0, 1.0, 1.0]
        y = X @ np.array([[1.0, 0.0, 20.0, 0.0, 0.0, 0.0], [0.0, 0.3, 0.0, 0.0, -1.0, 0.0]]).T
        y += 0.1 * rng.standard_normal(y.shape)
        plain, normed = Optimizer().fit(X, y), Optimizer(normalize_columns=True).fit(X, y)
        assert np.array_equal(plain.coef_ != 0.0, plain.coef_std_ > 0.0)
        np.testing.assert_allclose(normed.coef_, plain.coef_, rtol=1e-3, atol=1e-4)
        np.testing.assert_allclose(normed.coef_std_, plain.coef_std_, rtol=1e-3, atol=1e-4)
        assert plain.complexity == np.count_nonzero(plain.coef_)
        direct = SparseBayesRegressor(fit_intercept=False).fit(X, y)
        np.testing.assert_allclose(plain.coef_, direct.coef_)

    def test_the_missing_package_is_named(self, monkeypatch):
        monkeypatch.setitem(sys.modules, "pysindy.optimizers", None)
        monkeypatch.delitem(sys.modules, "sparsebayes.estimators.sindy", raising=False)
        with pytest.raises(ImportError, match=r"sparsebayes\[sindy\]"):
            import sparsebayes.estimators.sindy  # noqa: F401


def test_calibration_needs_nothing_special():
    from sklearn.calibration import CalibratedClassifierCV

    X, y = classification(60)
    model = CalibratedClassifierCV(SparseBayesClassifier(RBF(1.0)), cv=3).fit(X, y)
    np.testing.assert_allclose(model.predict_proba(X).sum(axis=1), 1.0)
    assert model.score(X, y) > 0.8
