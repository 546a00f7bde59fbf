"""Assembly of a fit to counts."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from sparsebayes.estimators.dictionary import Dictionary
from sparsebayes.estimators.learning import solve_laplace
from sparsebayes.estimators.regression import RegressionFit, TargetFit, Targets
from sparsebayes.estimators.task import Task
from sparsebayes.inference.models.interface import Active
from sparsebayes.inference.models.mode import LaplaceProblem
from sparsebayes.inference.models.nearest import nearest_to_rates
from sparsebayes.inference.objective import Support
from sparsebayes.likelihood import Poisson
from sparsebayes.posterior import PoissonPosterior

Array = NDArray[np.float64]


def fit_counts(task: Task, targets: Targets, dictionary: Dictionary) -> RegressionFit:
    """Fit each column of counts by itself."""
    _check(task, targets)
    offsets = [_offset(task, counts) for counts in targets.y.T]
    likelihoods = [
        Poisson(np.ascontiguousarray(counts), task.weights, offset)
        for counts, offset in zip(targets.y.T, offsets, strict=True)
    ]
    eligible, cost = dictionary.eligible, task.rule(dictionary.eligible).cost
    bias = task.bias(dictionary)
    known = {"stand_in": dictionary.stand_in, "inclusion_cost": cost, "places": dictionary.places}
    problems = [LaplaceProblem(dictionary.design, one, eligible, bias, **known) for one in likelihoods]
    results = solve_laplace(task, problems)
    kept = dictionary.keep({i for result in results for i in result.active.indices}, task.X.shape[1])
    fits = []
    for result, counts, offset in zip(results, targets.y.T, offsets, strict=True):
        active = result.active
        where, order = kept.order(active.indices)
        mean, covariance = _posterior(task, active, counts, offset)
        posterior = PoissonPosterior(where, mean[order], covariance[np.ix_(order, order)], offset)
        fits.append(TargetFit(active.alpha[order], posterior, Support.of(active).take(order)))
    return RegressionFit(
        kept=kept,
        dictionary=dictionary,
        targets=fits,
        log_evidence=float(sum(result.certificate.log_evidence for result in results)),
        statuses=[result.status for result in results],
        certificates=[result.certificate for result in results],
        histories=[result.history for result in results],
        n_iter=[result.n_iter for result in results],
        rule=task.rule(eligible),
    )


def _posterior(task: Task, active: Active, counts: Array, offset: float) -> tuple[Array, Array]:
    """Mean and covariance of the Gaussian that is nearest to the posterior of the weights."""
    columns = np.asarray(active.problem.design.columns(np.array(active.indices, dtype=np.intp)), dtype=np.float64)
    return nearest_to_rates(columns, counts, task.weights, offset, active.alpha, active.mean)


def check_counts(y: Array) -> None:
    """Refuse targets that are no counts."""
    if np.any(y < 0.0) or np.any(y != np.round(y)):
        raise ValueError("y has entries that are no counts: likelihood='poisson' expects integers of at least 0")


def _check(task: Task, targets: Targets) -> None:
    check_counts(targets.y)
    if targets.noise_variance is not None:
        raise ValueError("noise_variance: likelihood='poisson' has none; the variance of a count is its rate; use None")


def _offset(task: Task, counts: Array) -> float:
    """Log of the mean count, so that the functions describe deviations from it; half a count where there is none."""
    if not task.fit_intercept:
        return 0.0
    total, rows = float(task.weights @ counts), float(np.sum(task.weights))
    # Of less than one row half a count would be more than one per row.
    return float(np.log(total / rows if total > 0.0 else 0.5 / max(rows, 1.0)))
