"""Assembly of a regression fit: targets, dictionary, solver, and the results in the user's units."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from sparsebayes.estimators.dictionary import Dictionary, Kept
from sparsebayes.estimators.targets import TargetScale
from sparsebayes.estimators.task import Task, warn_unconverged
from sparsebayes.inference import Certificate, Record, Result, Status
from sparsebayes.inference.guard import run_guarded
from sparsebayes.inference.problem import GaussianProblem
from sparsebayes.inference.robust import run_robust
from sparsebayes.inference.support import Support, SupportRule
from sparsebayes.likelihood import ROBUST, OutlierMixture, RobustNoise, StudentT
from sparsebayes.posterior import GaussianPosterior, PoissonPosterior

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Targets:
    """Targets of a regression and what is asked of them."""

    y: Array
    noise_variance: Array | None
    shared_support: bool
    likelihood: str = "gaussian"


@dataclass(frozen=True)
class TargetFit:
    """What was learned of one target, in its own units, in the order of the kept functions.

    ``noise`` is the noise model of a robust likelihood, None otherwise.
    """

    alpha: Array
    posterior: GaussianPosterior | PoissonPosterior
    support: Support
    noise: RobustNoise | None = None


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
    rule: SupportRule


@dataclass(frozen=True)
class Solved:
    """One problem solved, of one target or of several that share their support."""

    dictionary: Dictionary
    result: Result
    scale: TargetScale
    noise: RobustNoise | None = None


def fit_regression(task: Task, targets: Targets, dictionary: Dictionary) -> RegressionFit:
    """Fit the targets, together where they share a support and one by one otherwise."""
    n_targets = targets.y.shape[1]
    shared = targets.shared_support and n_targets > 1
    scale = TargetScale.of(
        targets.y, task.weights, centre=task.fit_intercept, fixed_noise=targets.noise_variance, shared=shared
    )
    groups = [list(range(n_targets))] if targets.shared_support else [[k] for k in range(n_targets)]
    if task.solver.candidates is not None and len(groups) > 1:
        raise ValueError(
            "candidates: each target would generate its own functions; use shared_support=True, or one target"
        )
    if shared and targets.likelihood in ROBUST:
        raise ValueError(
            f"likelihood={targets.likelihood!r} weighs the rows of each target by itself: use shared_support=False"
        )
    eligible = dictionary.eligible
    solved: list[Solved] = []
    for group in groups:
        part = scale.part(group)
        fixed = targets.noise_variance
        noise = None if fixed is None else float(fixed[group[0]] / part.scale[0] ** 2)
        t = part.apply(targets.y[:, group])
        if targets.likelihood in ROBUST and part.constant(targets.y[:, group]):
            raise ValueError(f"y is constant: likelihood={targets.likelihood!r} has no residuals to learn from")
        solved.append(_solve(task, dictionary, eligible, t, noise, part, ROBUST.get(targets.likelihood)))
    warn_unconverged([one.result.status for one in solved])
    return collect(task, solved)


def _solve(
    task: Task,
    dictionary: Dictionary,
    eligible: NDArray[np.bool_],
    t: Array,
    noise: float | None,
    scale: TargetScale,
    robust: type[OutlierMixture] | type[StudentT] | None,
) -> Solved:
    """Run the solver on one problem; the dictionary comes back with the functions generated on the way."""
    bias = dictionary.constant() if task.solver.initialisation == "bias" else dictionary.bias
    generate = task.solver.candidates
    current = dictionary

    def pose(dictionary: Dictionary, eligible: NDArray[np.bool_]) -> GaussianProblem:
        cost = task.rule(eligible, t.shape[1]).cost
        return GaussianProblem(
            dictionary.design,
            t,
            task.weights,
            eligible,
            bias,
            dictionary.stand_in,
            dictionary.centre_rows(),
            inclusion_cost=cost,
        )

    def grow(kept: list[int], rng: np.random.Generator) -> GaussianProblem:
        nonlocal current
        current = current.generate(task.X, kept, generate, rng)
        return pose(current, current.eligible)

    settings = task.settings(noise_variance=noise, grow=None if generate is None else grow)
    problem = pose(dictionary, eligible)
    if robust is None:
        result = run_guarded(problem, task.solver, settings, task.generator())
        return Solved(current, result, scale)
    if generate is not None:
        raise ValueError("candidates: functions are generated on the way with likelihood='gaussian' only")
    found = run_robust(problem, robust, task.solver, settings, task.generator())
    shift = found.bound - found.result.active.objective()
    certificate = found.result.certificate
    certificate = replace(
        certificate, log_evidence=certificate.log_evidence + shift, objective=certificate.objective + shift
    )
    return Solved(dictionary, replace(found.result, certificate=certificate), scale, found.noise)


def collect(task: Task, solved: list[Solved]) -> RegressionFit:
    """Results of the targets over the union of what they kept."""
    n = float(np.sum(task.weights))
    dictionary = max((one.dictionary for one in solved), key=lambda d: d.n_candidates)
    kept = dictionary.keep({i for one in solved for i in one.result.active.indices}, task.X.shape[1])
    return RegressionFit(
        kept=kept,
        dictionary=dictionary,
        targets=[fit for one in solved for fit in _target_fits(one, kept)],
        log_evidence=sum(one.result.certificate.log_evidence + one.scale.evidence_shift(n) for one in solved),
        statuses=[one.result.status for one in solved],
        certificates=[one.scale.restore_certificate(one.result.certificate, n) for one in solved],
        histories=[one.scale.restore_history(one.result.history, n) for one in solved],
        n_iter=[one.result.n_iter for one in solved],
        rule=task.rule(dictionary.eligible, len(solved[0].scale.scale)),
    )


def _target_fits(solved: Solved, kept: Kept) -> list[TargetFit]:
    active, noise = solved.result.active, solved.noise
    where, order = kept.order(active.indices)
    support = Support.of(active).take(order)
    fits = []
    for k, (offset, unit) in enumerate(zip(solved.scale.offset, solved.scale.scale, strict=True)):
        posterior = GaussianPosterior(
            functions=where,
            mean=active.mean[order, k] * unit,
            covariance=active.covariance[np.ix_(order, order)] * unit**2,
            noise_variance=float(unit**2 / active.beta),
            offset=float(offset),
            degrees=noise.degrees if isinstance(noise, StudentT) else np.inf,
        )
        fits.append(TargetFit(active.alpha[order] / unit**2, posterior, support, noise))
    return fits
