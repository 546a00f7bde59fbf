"""Backfitting against exact algebra: sweeps, bound, gradients, and the whole solver."""

from itertools import islice

import numpy as np
import pytest
from scipy.special import expit
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import BayesianRidge

from sparsebayes import RVC, RVR, SparseBayesClassifier, SparseBayesRegressor, datasets
from sparsebayes.basis import RBF
from sparsebayes.design import DenseDesign
from sparsebayes.inference import Backfitting, Status
from sparsebayes.inference.models.problem import GaussianProblem
from sparsebayes.inference.solvers.backfitting import Branches


def problem_of(seed, n=60, m=90, targets=1, weights=None):
    rng = np.random.default_rng(seed)
    Phi = rng.standard_normal((n, m)) @ np.diag(rng.uniform(0.2, 3.0, m))
    T = rng.standard_normal((n, targets))
    weights = np.ones(n) if weights is None else weights
    return Phi, T, GaussianProblem(DenseDesign(Phi), T, weights, np.ones(m, dtype=bool))


def exact_mean(Phi, T, weights, alpha, noise):
    weighted = Phi.T * (weights / noise)
    return np.linalg.solve(weighted @ Phi + np.diag(alpha), weighted @ T)


@pytest.mark.parametrize("held", [True, False])
@pytest.mark.parametrize("way", ["conjugate", "sequential", "parallel"])
def test_at_fixed_precisions_every_way_ends_in_the_exact_posterior_mean(way, held, monkeypatch):
    if not held:  # as for dictionaries that do not fit in memory
        monkeypatch.setattr("sparsebayes.inference.solvers.backfitting._HELD_BYTES", 0)
    rng = np.random.default_rng(0)
    weights = rng.uniform(0.5, 2.0, 60)
    m = 8 if way == "parallel" else 90  # EM takes steps of 1/m
    Phi, T, problem = problem_of(1, m=m, targets=2, weights=weights)
    alpha, noise = rng.uniform(0.5, 5.0, m), 0.7
    branches = Branches(problem, np.arange(m), np.zeros((m, 2)), alpha)
    for gain in islice(getattr(branches, way)(noise), 200 if way == "conjugate" else 10_000):
        assert gain >= -1e-9
        if gain < 1e-15:
            break
    np.testing.assert_allclose(branches.weights, exact_mean(Phi, T, weights, alpha, noise), atol=1e-6)


@pytest.mark.parametrize("m", [20, 90])
def test_the_maximum_of_few_rows_or_functions_is_the_exact_posterior_mean(m):
    rng = np.random.default_rng(0)
    weights = rng.uniform(0.5, 2.0, 60)
    Phi, T, problem = problem_of(1, m=m, targets=2, weights=weights)
    alpha, noise = rng.uniform(0.5, 5.0, m), 0.7
    branches = Branches(problem, np.arange(m), np.zeros((m, 2)), alpha)
    nothing = branches._height(noise)
    assert branches.exact(noise)
    highest = branches._height(noise)
    assert highest > nothing
    np.testing.assert_allclose(branches.weights, exact_mean(Phi, T, weights, alpha, noise), rtol=1e-9, atol=1e-12)
    whitened = np.sqrt(weights)[:, None] * (T - Phi @ branches.weights)
    np.testing.assert_allclose(branches.residual, whitened, atol=1e-10)
    assert branches.exact(noise)
    assert branches._height(noise) - highest == pytest.approx(0.0, abs=1e-9)


@pytest.mark.parametrize(("n", "m", "noise"), [(120, 40, None), (200, 60, 0.09)])
def test_where_sweeps_reach_the_maximum_computing_it_gives_the_same_model(n, m, noise, monkeypatch):
    rng = np.random.default_rng(12)
    X = rng.standard_normal((n, m))
    y = X[:, :5] @ rng.uniform(1.0, 2.0, 5) + 0.3 * rng.standard_normal(n)
    computed = SparseBayesRegressor(solver="backfitting", noise_variance=noise).fit(X, y)
    monkeypatch.setattr("sparsebayes.inference.solvers.backfitting._FEW", 0)
    climbed = SparseBayesRegressor(solver="backfitting", noise_variance=noise).fit(X, y)
    np.testing.assert_array_equal(computed.relevance_, climbed.relevance_)
    np.testing.assert_allclose(computed.coef_, climbed.coef_, rtol=1e-3, atol=1e-5)
    assert computed.log_marginal_likelihood_ == pytest.approx(climbed.log_marginal_likelihood_, abs=1e-3)


def spectra():
    """Sixty smooth curves, scaled: neighbours are all but the same column."""
    rng = np.random.default_rng(13)
    centres = np.linspace(0.0, 1.0, 30)
    shapes = np.exp(-0.5 * ((np.linspace(0.0, 1.0, 401)[:, None] - centres) / 0.05) ** 2)
    X = rng.standard_normal((60, 30)) @ shapes.T + 1e-3 * rng.standard_normal((60, 401))
    y = X[:, 150] - X[:, 300] + 0.1 * rng.standard_normal(60)
    return (X - X.mean(axis=0)) / X.std(axis=0), y / y.std()


def test_nearly_dependent_columns_take_few_cycles_and_end_higher_than_sweeps_that_stop_short(monkeypatch):
    X, y = spectra()
    computed = SparseBayesRegressor(solver="backfitting").fit(X, y)
    assert len(computed.history_) < 200
    monkeypatch.setattr("sparsebayes.inference.solvers.backfitting._FEW", 0)
    with pytest.warns(ConvergenceWarning, match="raise max_iter"):
        climbed = SparseBayesRegressor(solver="backfitting", max_iter=len(computed.history_)).fit(X, y)
    assert computed.history_[-1].objective > climbed.history_[-1].objective


def test_cycles_factor_nothing_where_nobody_looks(monkeypatch):
    X, y = sinc()
    made, model = [], Backfitting.model
    monkeypatch.setattr(Backfitting, "model", lambda self, state: made.append(1) or model(self, state))
    found = RVR(gamma=0.1, solver="backfitting").fit(X, y)
    assert len(found.history_) > 5
    assert len(made) == 1


def test_a_sweep_is_backfitting_one_function_at_a_time():
    Phi, T, problem = problem_of(2)
    alpha, noise = np.linspace(0.1, 2.0, 90), 0.5
    branches = Branches(problem, np.arange(90), np.zeros((90, 1)), alpha)
    next(branches.sequential(noise))
    b = np.zeros(90)
    for m in range(90):
        fake = T[:, 0] - Phi @ b + Phi[:, m] * b[m]
        b[m] = Phi[:, m] @ fake / (Phi[:, m] @ Phi[:, m] + noise * alpha[m])  # eq. 6, with the precision
    np.testing.assert_allclose(branches.weights[:, 0], b, rtol=1e-10)


def sinc():
    return datasets.make_sinc(100, noise=0.1, random_state=3)


@pytest.mark.parametrize("settings", [{}, {"precisions": "single"}, {"updates": "sequential"}, {"a": 1e-3, "b": 1e-3}])
def test_the_bound_never_falls_and_lies_below_the_evidence(settings):
    X, y = sinc()
    models = []

    def look(record, active):
        if len(models) % 5 == 0:
            assert record.evidence <= active.evidence() + 1e-9
        models.append(record.objective)

    solver = Backfitting(callback=look, **settings)
    model = RVR(gamma=0.1, solver=solver).fit(X, y)
    assert np.all(np.diff(models) >= -1e-9 * np.maximum(100, np.abs(models[1:])))
    assert model.status_ is Status.BOUND
    assert model.certificate_.log_evidence >= model.history_[-1].evidence
    assert np.isfinite(model.certificate_.kept_gain)


def test_every_kept_function_is_relevant():
    X, y = sinc()
    model = RVR(gamma=0.1, solver="backfitting").fit(X, y)
    assert 3 <= len(model.relevance_) <= 12
    Phi = np.column_stack([np.exp(-0.1 * (X - X[model.relevance_].T) ** 2), np.ones(len(X))])[:, : len(model.alpha_)]
    C = model.noise_variance_ * np.eye(100) + (Phi / model.alpha_) @ Phi.T
    for j in range(Phi.shape[1]):
        rest = np.linalg.inv(C - np.outer(Phi[:, j], Phi[:, j]) / model.alpha_[j])
        assert (Phi[:, j] @ rest @ (y - y.mean())) ** 2 > Phi[:, j] @ rest @ Phi[:, j]


def test_a_single_precision_is_ridge_regression():
    rng = np.random.default_rng(5)
    X = rng.standard_normal((80, 6))
    y = X @ rng.standard_normal(6) + 0.5 * rng.standard_normal(80)
    model = SparseBayesRegressor(solver=Backfitting(precisions="single"), fit_intercept=False, tol=1e-8).fit(X, y)
    assert len(model.relevance_) == 6
    np.testing.assert_allclose(model.alpha_, model.alpha_[0])
    ridge = np.linalg.solve(X.T @ X + model.alpha_[0] * model.noise_variance_ * np.eye(6), X.T @ y)
    np.testing.assert_allclose(model.coef_, ridge, rtol=1e-8)


def test_more_functions_than_rows_with_a_single_precision():
    rng = np.random.default_rng(6)
    X = rng.standard_normal((20, 50))
    y = X[:, 0] + 0.1 * rng.standard_normal(20)
    model = SparseBayesRegressor(solver=Backfitting(precisions="single"), fit_intercept=False).fit(X, y)
    direct = X.T @ np.linalg.solve(X @ X.T + model.alpha_[0] * model.noise_variance_ * np.eye(20), y)
    np.testing.assert_allclose(model.coef_, direct, rtol=1e-6, atol=1e-10)


def test_two_classes_by_the_bound_of_jaakkola_and_jordan():
    X, y = datasets.make_ripley(150, random_state=0)[:2]
    model = RVC(gamma=4.0, solver="backfitting").fit(X, y)
    objective = [record.objective for record in model.history_]
    assert np.all(np.diff(objective) >= -1e-7)
    assert model.score(X, y) > 0.8
    assert 1 <= len(model.relevance_) < 30
    values = np.column_stack([np.exp(-4.0 * ((X[:, None] - X[model.relevance_]) ** 2).sum(axis=2)), np.ones(len(X))])
    values = values[:, : len(model.alpha_.ravel())]
    weights = np.append(model.coef_.ravel(), model.intercept_)[: values.shape[1]]
    gradient = values.T @ (y - expit(values @ weights)) - model.alpha_.ravel() * weights
    np.testing.assert_allclose(gradient, 0.0, atol=1e-5)  # the posterior is at the mode of the exact likelihood


def test_several_classes_one_against_the_rest_and_not_jointly():
    rng = np.random.default_rng(7)
    X = np.vstack([rng.standard_normal((20, 2)) + centre for centre in ([0, 0], [4, 0], [0, 4])])
    y = np.repeat([0, 1, 2], 20)
    with pytest.raises(ValueError, match="multi_class='ovr'"):
        SparseBayesClassifier(RBF(2.0), solver="backfitting").fit(X, y)
    assert SparseBayesClassifier(RBF(2.0), solver="backfitting", multi_class="ovr").fit(X, y).score(X, y) > 0.9


@pytest.mark.parametrize("units", [[1.0, 1e-6, 1e6, 1.0, 1.0], [1.0, 1e-3, 1e3, 5.0, 1.0]])
def test_units_of_columns_change_nothing(units):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(100, 5))
    y = X[:, 0] - 2.0 * X[:, 1] + 0.5 * rng.normal(size=100)
    for target, estimator in [(y, SparseBayesRegressor), (y > 0.0, SparseBayesClassifier)]:
        model = estimator(solver="backfitting").fit(X, target)
        other = estimator(solver="backfitting").fit(X * units, target)
        np.testing.assert_array_equal(other.relevance_, model.relevance_)
        assert other.log_marginal_likelihood_ == pytest.approx(model.log_marginal_likelihood_, rel=1e-6)


def test_constant_targets_take_no_functions():
    model = SparseBayesRegressor(solver="backfitting").fit(
        np.random.default_rng(0).normal(size=(20, 3)), np.full(20, 5.0)
    )
    assert model.status_ is Status.CONSTANT
    np.testing.assert_array_equal(model.predict(np.zeros((2, 3))), 5.0)


def test_max_iter_is_said_with_the_remedy():
    X, y = sinc()
    with pytest.warns(ConvergenceWarning, match="raise max_iter"):
        model = RVR(gamma=0.1, solver="backfitting", max_iter=2).fit(X, y)
    assert model.n_iter_ == 2
    assert np.all(np.isfinite(model.predict(X)))


@pytest.mark.parametrize(
    ("name", "value"),
    [("precisions", "all"), ("updates", 3), ("inner", 0), ("initial", -1.0), ("a", -1), ("b", np.nan), ("a", 1.0)],
)
def test_settings_out_of_range(name, value):
    X, y = sinc()
    with pytest.raises(ValueError, match=r"choose one of|expected"):
        RVR(solver=Backfitting(**{name: value})).fit(X, y)


@pytest.mark.parametrize(("columns", "shift"), [(1, 0.0), (2, 0.0), (8, 3.0)])
def test_a_single_precision_is_the_ridge_of_the_same_evidence_and_leaves_the_constant_alone(columns, shift):
    rng = np.random.default_rng(columns)
    X = rng.normal(size=(60, columns)) + shift
    y = X @ np.linspace(0.4, 0.8, columns) + 0.8 * rng.normal(size=60) + shift
    model = SparseBayesRegressor(solver=Backfitting(precisions="single", updates="conjugate")).fit(X, y)
    free = {"alpha_1": 0, "alpha_2": 0, "lambda_1": 0, "lambda_2": 0}
    ridge = BayesianRidge(**free, tol=1e-12, max_iter=100_000).fit(X, y)
    np.testing.assert_allclose(model.coef_, ridge.coef_, rtol=0.02)
    np.testing.assert_allclose(model.alpha_.ravel()[:columns], ridge.lambda_, rtol=0.05)
    assert model.intercept_ == pytest.approx(ridge.intercept_, rel=0.02)
