"""Broad functions, of which none gains alone: the search must see through them (``inference/search/escapes.py``)."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from sklearn.linear_model import LinearRegression, LogisticRegression

from sparsebayes import RVC, RVR, SparseBayesRegressor
from sparsebayes.design import DenseDesign
from sparsebayes.inference import Status
from sparsebayes.inference.models.active import ActiveSet
from sparsebayes.inference.models.problem import GaussianProblem
from sparsebayes.inference.search.escapes import uncover

Array = NDArray[np.float64]

# Squared widths of hundreds and thousands of squared standard deviations of the inputs: all but linear.
BROAD = (1e-2, 1e-3, 1e-4)
SLOPES = np.array([1.0, -1.0, 0.5, 0.0, 0.0])


def inputs(seed: int) -> tuple[np.random.Generator, Array]:
    """Five standard normal inputs."""
    rng = np.random.default_rng(seed)
    return rng, rng.normal(size=(200, 5))


@pytest.mark.parametrize("gamma", BROAD)
@pytest.mark.parametrize("seed", range(3))
def test_two_classes(seed: int, gamma: float) -> None:
    """Kernels that are all but linear tell the classes apart as well as a linear model does."""
    rng, X = inputs(seed)
    y = (X @ SLOPES + rng.logistic(size=len(X)) > 0.0).astype(int)
    model: Any = RVC(gamma=gamma).fit(X, y)
    assert model.status_ is Status.CONVERGED
    assert model.log_marginal_likelihood_ > len(y) * np.log(0.5) + 10.0
    assert model.score(X, y) >= LogisticRegression().fit(X, y).score(X, y) - 0.05


@pytest.mark.parametrize("gamma", [*BROAD, 1e-5, 1e-7])
@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("seed", range(3))
def test_regression(seed: int, intercept: bool, gamma: float) -> None:
    """They explain a linear function as well as a linear model does."""
    rng, X = inputs(seed)
    y = 10.0 + X @ SLOPES + 0.3 * rng.normal(size=len(X))
    model: Any = RVR(gamma=gamma, fit_intercept=intercept).fit(X, y)
    assert model.certificate_.converged
    assert model.score(X, y) >= LinearRegression().fit(X, y).score(X, y) - 0.01


def test_three_classes() -> None:
    """The same of several classes, with an intercept each."""
    rng, X = inputs(0)
    y = np.digitize(X @ SLOPES + 0.5 * rng.logistic(size=len(X)), (-1.0, 1.0))
    model: Any = RVC(gamma=1e-4).fit(X, y)
    assert model.score(X, y) >= LogisticRegression().fit(X, y).score(X, y) - 0.05


@pytest.mark.parametrize("gamma", [1e-2, 5e-4, 2e-4])
@pytest.mark.parametrize("order", range(3))
def test_three_separable_classes(order: int, gamma: float) -> None:
    """The same of several classes, whatever the order of the rows."""
    X = np.random.default_rng(5).normal(size=(100, 2))
    y = np.digitize(X @ [1.0, -1.0], (-0.6, 0.6))
    rows = np.random.default_rng(order).permutation(len(X))
    model: Any = RVC(gamma=gamma).fit(X[rows], y[rows])
    assert model.log_marginal_likelihood_ > -30.0
    assert model.score(X, y) >= 0.98


@pytest.mark.parametrize("gamma", [8e-6, 1e-5, 2e-5])
@pytest.mark.parametrize("noise", [0.0, 1e-4, 0.1])
def test_outliers_and_next_to_no_noise(noise: float, gamma: float) -> None:
    """Rows are weighed after a fit that is all but exact, of large weights."""
    X = np.random.default_rng(0).normal(size=(100, 2))
    y = X @ [1.0, -1.0] + noise * np.random.default_rng(1).normal(size=100)
    model: Any = RVR(gamma=gamma, likelihood="student-t").fit(X, y)
    assert model.score(X, y) >= LinearRegression().fit(X, y).score(X, y) - 0.01


@pytest.mark.parametrize("slope", [0.0, 0.4])
def test_only_better_models_are_returned(slope: float) -> None:
    """Of targets without structure none, of others those that are better by nats; the given model stays as it is."""
    rises = []
    for seed in range(20):
        rng, X = inputs(seed)
        columns = np.column_stack([np.exp(-1e-3 * np.sum((X - x) ** 2, axis=1)) for x in X[:50]] + [np.ones(len(X))])
        targets = slope * X[:, :1] + rng.normal(size=(len(X), 1))
        problem = GaussianProblem(DenseDesign(columns), targets, np.ones(len(X)), np.ones(51, dtype=bool), 50)
        empty = ActiveSet(problem, 1.0)
        before = empty.objective()
        found = uncover(empty, 1e-3, learn_noise=True)
        assert empty.size == 0
        assert empty.objective() == before
        if found is not None:
            there = found[1]
            again = ActiveSet.from_model(problem, there.indices, there.alpha, there.beta)
            rises.append(again.objective() - before)
    assert (len(rises) > 3) == (slope > 0.0)
    assert all(rise > 3.0 for rise in rises)


@pytest.mark.parametrize("units", [[1.0] * 6, [100.0, *[1.0] * 5], [1.0, 1e4, 1e-3, 1e-6, 1.0, 1e3], [-1.0] * 6])
def test_units_of_columns_do_not_say_what_hides_others(units: list[float]) -> None:
    """Columns far from zero hide one another; without an intercept one of them has to stand in for it."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((40, 6)) + np.array([3.0, 300.0, 300.0, 600.0, 200.0, 400.0])
    y = X[:, 1] - 300.0 + 0.5 * rng.standard_normal(40)

    def found(columns: Array) -> tuple[int, Any]:
        problem = GaussianProblem(DenseDesign(columns), y[:, None], np.ones(40), np.ones(6, dtype=bool))
        grown = uncover(ActiveSet(problem, 1.0), 1e-6, learn_noise=True)
        assert grown is not None
        return grown

    function, model = found(X * units)
    assert function == 1
    assert model.indices == [3, 1]
    assert model.objective() == pytest.approx(found(X)[1].objective(), abs=1e-4)


@pytest.mark.parametrize("seed", [23, 43])
def test_units_of_columns_do_not_empty_a_model(seed: int) -> None:
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((40, 6)) + np.array([3.0, 30.0, 30.0, 60.0, 20.0, 40.0])
    y = X[:, 3] - 60.0 + 0.5 * rng.standard_normal(40)
    models = [SparseBayesRegressor(fit_intercept=False).fit(rows, y) for rows in (X, X * [100.0, 1, 1, 1, 1, 1])]
    assert set(models[0].relevance_) == set(models[1].relevance_)
    assert len(models[0].relevance_) > 0
