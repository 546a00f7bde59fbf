"""Assembly of a regression fit: targets, dictionary, solver, and the results in the user's units."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sparsebayes.estimators.dictionary import Dictionary, Kept
from sparsebayes.estimators.targets import TargetScale
from sparsebayes.estimators.task import Task, warn_unconverged
from sparsebayes.inference import Certificate, Record, Result, Status
from sparsebayes.inference.problem import GaussianProblem
from sparsebayes.inference.run import run
from sparsebayes.posterior import GaussianPosterior

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Targets:
    """Targets of a regression and what is asked of them."""

    y: Array
    noise_variance: Array | None
    shared_support: bool


@dataclass(frozen=True)
class TargetFit:
    """What was learned of one target, in its own units, in the order of the kept functions."""

    alpha: Array
    posterior: GaussianPosterior


@dataclass(frozen=True)
class RegressionFit:
    """What was learned of all targets."""

    kept: Kept
    dictionary: Dictionary
    targets: list[TargetFit]
    log_evidence: float
    statuses: list[Status]
    certificates: list[Certificate]
    histories: list[list[Record]]
    n_iter: list[int]


def fit_regression(task: Task, targets: Targets, dictionary: Dictionary) -> RegressionFit:
    """Fit the targets, together where they share a support and one by one otherwise."""
    n_targets = targets.y.shape[1]
    scale = TargetScale.of(
        targets.y,
        task.weights,
        centre=task.fit_intercept,
        fixed_noise=targets.noise_variance,
        shared=targets.shared_support and n_targets > 1,
    )
    groups = [list(range(n_targets))] if targets.shared_support else [[k] for k in range(n_targets)]
    if task.solver.candidates is not None and len(groups) > 1:
        raise ValueError(
            "candidates: each target would generate its own functions; use shared_support=True, or one target"
        )
    eligible = dictionary.eligible
    fits: list[tuple[Dictionary, Result, TargetScale]] = []
    for group in groups:
        part = scale.part(group)
        fixed = targets.noise_variance
        noise = None if fixed is None else float(fixed[group[0]] / part.scale[0] ** 2)
        fits.append((*_solve(task, dictionary, eligible, part.apply(targets.y[:, group]), noise), part))
    warn_unconverged([result.status for _, result, _ in fits])
    return collect(task, fits)


def _solve(
    task: Task, dictionary: Dictionary, eligible: NDArray[np.bool_], t: Array, noise: float | None
) -> tuple[Dictionary, Result]:
    """Run the solver on one problem; the dictionary comes back with the functions generated on the way."""
    bias = dictionary.constant() if task.solver.initialisation == "bias" else dictionary.bias
    generate = task.solver.candidates
    current = dictionary

    def grow(kept: list[int], rng: np.random.Generator) -> GaussianProblem:
        nonlocal current
        current = current.generate(task.X, kept, generate, rng)
        return GaussianProblem(current.design, t, task.weights, current.eligible, bias)

    settings = task.settings(noise_variance=noise, grow=None if generate is None else grow)
    problem = GaussianProblem(dictionary.design, t, task.weights, eligible, bias, dictionary.stand_in)
    result = run(problem, task.solver, settings, task.generator())
    return current, result


def collect(task: Task, fits: list[tuple[Dictionary, Result, TargetScale]]) -> RegressionFit:
    """Results of the targets over the union of what they kept."""
    n = float(np.sum(task.weights))
    dictionary = max((d for d, _, _ in fits), key=lambda d: d.n_candidates)
    kept = dictionary.keep({i for _, result, _ in fits for i in result.active.indices}, task.X.shape[1])
    return RegressionFit(
        kept=kept,
        dictionary=dictionary,
        targets=[fit for _, result, scale in fits for fit in _target_fits(result, scale, kept)],
        log_evidence=sum(r.certificate.log_evidence + s.evidence_shift(n) for _, r, s in fits),
        statuses=[r.status for _, r, _ in fits],
        certificates=[s.restore_certificate(r.certificate, n) for _, r, s in fits],
        histories=[s.restore_history(r.history, n) for _, r, s in fits],
        n_iter=[r.n_iter for _, r, _ in fits],
    )


def _target_fits(result: Result, scale: TargetScale, kept: Kept) -> list[TargetFit]:
    active = result.active
    where = np.array([kept.place[i] for i in active.indices], dtype=np.intp)
    order = np.argsort(where)
    fits = []
    for k, (offset, unit) in enumerate(zip(scale.offset, scale.scale, strict=True)):
        posterior = GaussianPosterior(
            functions=where[order],
            mean=active.mean[order, k] * unit,
            covariance=active.covariance[np.ix_(order, order)] * unit**2,
            noise_variance=float(unit**2 / active.beta),
            offset=float(offset),
        )
        fits.append(TargetFit(active.alpha[order] / unit**2, posterior))
    return fits
