r"""The outer loop of the robust likelihoods: rows weighed, a Gaussian problem solved, and again.

The bound :math:`\mathcal L_q + \sum_n\ell_n` has several maxima, and least squares is a poor place to begin where
outliers lie at the ends of the inputs: they draw the fit to themselves and look like data.  So where the dictionary is
small the loop begins from a *trimmed* fit (least trimmed squares: Rousseeuw & Van Driessen 2006).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy.stats import norm

from sparsebayes.inference.evidence import Array
from sparsebayes.inference.guard import run_guarded
from sparsebayes.inference.problem import GaussianProblem
from sparsebayes.inference.run import Result, Settings, run
from sparsebayes.inference.solver import Solver
from sparsebayes.likelihood import OutlierMixture, RobustNoise, StudentT

Rows = NDArray[np.bool_]

_ROUNDS = 100
_SEARCHES = 3
# Rounds end when no row weight changes by more; the bound itself has plateaus on the way.
_SETTLED = 5e-3
# A trimmed fit needs this many rows for each function.
_ROWS_PER_FUNCTION = 4
_SUBSETS = 500
# Rows within this many robust standard deviations of the trimmed fit begin as data; the factor makes the scale of the
# better half that of a Gaussian.
_NEAR = 2.5


@dataclass(frozen=True)
class RobustResult:
    """The last Gaussian problem's result, the noise model, and the bound on the log evidence."""

    result: Result
    noise: RobustNoise
    bound: float


def run_robust(
    problem: GaussianProblem,
    kind: type[OutlierMixture] | type[StudentT],
    solver: Solver,
    settings: Settings,
    rng: np.random.Generator,
) -> RobustResult:
    """Maximise the bound from every start, and keep the best.

    Parameters
    ----------
    problem : GaussianProblem
        One target; its weights say how often each row counts.
    kind : type
        Noise model.
    solver, settings, rng
        As in :func:`~sparsebayes.inference.run.run`.
    """
    target = problem.targets[:, 0]
    found = [_iterate(problem, kind.begin(target, rows), solver, settings, rng) for rows in _starts(problem)]
    return max(found, key=lambda result: result.bound)


def _iterate(
    problem: GaussianProblem, noise: RobustNoise, solver: Solver, settings: Settings, rng: np.random.Generator
) -> RobustResult:
    """Weigh and solve in turn until the weights settle; the best bound on the way is kept."""
    counts = problem.weights

    def solve(noise: RobustNoise, near: Result | None = None) -> RobustResult:
        weighted = problem.weighted(counts * noise.weights, noise.n_observations(counts))
        if near is None:
            result = run_guarded(weighted, solver, settings, rng)
        else:
            result = run(weighted, solver, replace(settings, begin=near.active), rng)
        return RobustResult(result, noise, result.active.objective() + noise.bound(counts))

    def reweigh(found: RobustResult) -> RobustNoise:
        squares, noise_variance = _expected_squares(problem, found.result), 1.0 / found.result.active.beta
        return found.noise.updated(squares, noise_variance, counts)

    best = solve(noise)
    for _ in range(_SEARCHES):
        latest = best
        for _ in range(_ROUNDS):
            before, latest = latest, solve(reweigh(latest), latest.result)
            if np.max(np.abs(latest.noise.weights - before.noise.weights)) < _SETTLED:
                break
        # Rows have been weighed for one local maximum: another may be better now.
        searched = solve(latest.noise)
        if searched.bound <= latest.bound + settings.tol:
            return max(best, latest, searched, key=lambda found: found.bound)
        best = searched
    return best


def _expected_squares(problem: GaussianProblem, result: Result) -> Array:
    """Expected squared residual of every row under the posterior of the weights."""
    active = result.active
    values = problem.design.columns(np.array(active.indices, dtype=np.intp))
    spread = np.einsum("na,na->n", values @ active.covariance, values)
    return (problem.targets[:, 0] - values @ active.mean[:, 0]) ** 2 + spread


def _starts(problem: GaussianProblem) -> Iterator[Rows]:
    """Rows that begin as data: those near a trimmed fit where functions are few, else all of them."""
    n = len(problem.weights)
    candidates = np.flatnonzero(problem.eligible)
    if 0 < _ROWS_PER_FUNCTION * len(candidates) <= n:
        yield near_trimmed_fit(problem.design.columns(candidates), problem.targets[:, 0])
    else:
        yield np.ones(n, dtype=np.bool_)


def near_trimmed_fit(columns: Array, target: Array) -> Rows:
    """Rows close to the least trimmed squares fit.

    Subsets are drawn from the rows sorted by their targets, so that the result does not depend on the order in which
    the rows came.
    """
    n, p = columns.shape
    half = (n + p + 1) // 2
    order = np.lexsort((*columns.T, target))
    rng = np.random.default_rng(0)
    fits = [_concentrate(columns, target, order[rng.choice(n, p, replace=False)], half) for _ in range(_SUBSETS)]
    trimmed, residuals = min(fits, key=lambda fit: fit[0])
    # Variance of the middle part of a Gaussian, so that the scale is that of all good rows.
    quantile = norm.ppf(0.5 * (1.0 + half / n))
    middle = 1.0 - 2.0 * quantile * norm.pdf(quantile) * n / half
    return residuals <= _NEAR**2 * trimmed / (half * middle)


def _concentrate(columns: Array, target: Array, rows: NDArray[np.intp], half: int) -> tuple[float, Array]:
    """Fit, keep the better half, fit again: the trimmed sum of squares falls until it stands still."""
    previous = np.inf
    while True:
        weights = np.linalg.lstsq(columns[rows], target[rows], rcond=None)[0]
        residuals = (target - columns @ weights) ** 2
        rows = np.argpartition(residuals, half - 1)[:half]
        trimmed = float(np.sum(residuals[rows]))
        if not trimmed < previous * (1.0 - 1e-12):
            return trimmed, residuals
        previous = trimmed
