"""Assembly of a regression fit: targets, dictionary, solver, and the results in the user's units."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from sparsebayes.basis import Basis
from sparsebayes.estimators.dictionary import Dictionary, Kept
from sparsebayes.estimators.learning import Learned, learn_kernel
from sparsebayes.estimators.targets import TargetScale
from sparsebayes.estimators.task import Task, warn_unconverged
from sparsebayes.inference import Certificate, ParameterStatus, Record, Result, Status
from sparsebayes.inference.problem import GaussianProblem
from sparsebayes.inference.run import Warm, run
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
    kernel: Basis | None = None
    parameters: dict[str, ParameterStatus] | None = None


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
    if (task.solver.candidates is not None or task.solver.split_merge) and len(groups) > 1:
        raise ValueError(
            "candidates, split_merge: each target would generate its own functions; use shared_support=True, or one "
            "target"
        )
    parts = [scale.part(group) for group in groups]
    fixed = targets.noise_variance
    noise = [
        None if fixed is None else float(fixed[group[0]] / part.scale[0] ** 2)
        for group, part in zip(groups, parts, strict=True)
    ]
    scaled = [part.apply(targets.y[:, group]) for group, part in zip(groups, parts, strict=True)]
    learned = None
    if task.gamma is None:
        eligible = dictionary.eligible
        begin = [_at_noise(task.warm(k), level) for k, level in enumerate(noise)]
        solved = [_solve(task, dictionary, eligible, *each) for each in zip(scaled, noise, begin, strict=True)]
        task.leave([result for _, result in solved])
    else:
        learned = _learn(task, dictionary, scaled, noise)
        solved = [(learned.dictionary, result) for result in learned.results]
    warn_unconverged([result.status for _, result in solved])
    fit = _collect(task, [(*found, part) for found, part in zip(solved, parts, strict=True)])
    return fit if learned is None else replace(fit, kernel=learned.kernel, parameters=learned.parameters)


def _learn(task: Task, dictionary: Dictionary, targets: list[Array], noise: list[float | None]) -> Learned:
    """Learn the parameters of the kernel, which independent targets share, with the rest."""

    def make(current: Dictionary) -> list[GaussianProblem]:
        bias = current.constant() if task.solver.initialisation == "bias" else current.bias
        eligible = current.eligible
        return [GaussianProblem(current.design, t, task.weights, eligible, bias) for t in targets]

    if task.solver.candidates is not None or task.solver.split_merge:
        raise ValueError(
            f"candidates, split_merge: functions cannot be generated while gamma={task.gamma!r} changes them; "
            "fit again with the kernel_ that was learned"
        )
    return learn_kernel(task, dictionary, make, [task.settings(noise_variance=level) for level in noise])


def _solve(
    task: Task,
    dictionary: Dictionary,
    eligible: NDArray[np.bool_],
    t: Array,
    noise: float | None,
    warm: Warm | None,
) -> tuple[Dictionary, Result]:
    """Run the solver on one problem; the dictionary comes back with the functions generated on the way."""
    bias = dictionary.constant() if task.solver.initialisation == "bias" else dictionary.bias
    generate = task.solver.candidates
    current = dictionary

    def grow(kept: list[int], rng: np.random.Generator) -> GaussianProblem:
        nonlocal current
        if generate is not None:
            current = current.generate(task.X, kept, generate, rng)
            return GaussianProblem(current.design, t, task.weights, current.eligible, bias)
        current = current.refine(task.X, kept)
        new = np.arange(current.design.shape[1]) >= dictionary.design.shape[1]
        usable = current.eligible
        return GaussianProblem(current.design, t, task.weights, usable & ~new, bias, usable & new)

    growing = generate is not None or task.solver.split_merge
    settings = task.settings(noise_variance=noise, grow=grow if growing else None, warm=warm)
    problem = GaussianProblem(dictionary.design, t, task.weights, eligible, bias)
    result = run(problem, task.solver, settings, task.generator())
    return current, result


def _at_noise(warm: Warm | None, noise: float | None) -> Warm | None:
    """The model to begin from, at the noise that is given."""
    return warm if warm is None or noise is None else replace(warm, beta=1.0 / noise)


def _collect(task: Task, fits: list[tuple[Dictionary, Result, TargetScale]]) -> RegressionFit:
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
