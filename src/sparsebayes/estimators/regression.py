"""Assembly of a regression fit: targets, dictionary, solver, and the results in the user's units."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from sparsebayes.basis import Basis
from sparsebayes.estimators.checks import CONSTANT, VARIES
from sparsebayes.estimators.dictionary import Dictionary, Kept
from sparsebayes.estimators.learning import Learned, Part, learn_kernel
from sparsebayes.estimators.task import Task, warn_unconverged
from sparsebayes.inference import Certificate, ParameterStatus, Record, Result, Status
from sparsebayes.inference.fit.guard import run_guarded
from sparsebayes.inference.fit.robust import run_robust
from sparsebayes.inference.fit.settings import Warm
from sparsebayes.inference.fit.varying import LogVariance, run_varying
from sparsebayes.inference.models.problem import GaussianProblem
from sparsebayes.inference.objective import Support, SupportRule
from sparsebayes.inference.solvers.single_effects import Found
from sparsebayes.kernel_learning.process import spread_rows
from sparsebayes.likelihood import ROBUST, OutlierMixture, RobustNoise, StudentT
from sparsebayes.posterior import GaussianPosterior, PoissonPosterior, VaryingNoise
from sparsebayes.typing import Array

# Relative size of the rounding error of a centred target.
_ROUNDING = 4.0 * np.finfo(float).eps


def largest_entry(y: Array) -> Array:
    """The largest entry of each column, whatever its sign."""
    return np.maximum(np.max(y, axis=0), -np.min(y, axis=0))


def rounding_level(y: Array) -> Array:
    """What is left of a constant target after centring is below this: rounding error."""
    return _ROUNDING * largest_entry(y)


def weighted_mean(y: Array, weights: Array) -> Array:
    """Mean of each column; of one that does not vary no farther from its entries than these are from each other."""
    low = np.min(y, axis=0)
    flat = np.max(y, axis=0) - low <= rounding_level(y)
    # A sum of many equal numbers is rounded more than they are.
    about = np.where(flat, low, 0.0)
    return about + np.average(y - about, axis=0, weights=weights)


def mean_square(y: Array, weights: Array) -> Array:
    """Mean square of the centred targets; zero for a constant one."""
    residual = y - weighted_mean(y, weights)
    largest = largest_entry(residual)
    unit = np.where(largest > rounding_level(y), largest, 1.0)
    square = unit**2 * np.average((residual / unit) ** 2, axis=0, weights=weights)
    return np.where(largest > rounding_level(y), square, 0.0)


def weighted_median(y: Array, weights: Array) -> Array:
    """Middle of each column, a weight of k counting as k copies; of two middle rows, halfway between them."""
    order = np.argsort(y, axis=0)
    upto = np.cumsum(weights[order], axis=0)
    first = [np.argmax(reached, axis=0) for reached in (upto >= 0.5 * upto[-1], upto > 0.5 * upto[-1])]
    sides = [np.take_along_axis(y, np.take_along_axis(order, k[None], axis=0), axis=0)[0] for k in first]
    return 0.5 * sides[0] + 0.5 * sides[1]


@dataclass(frozen=True)
class TargetScale:
    """Affine map between the targets as given and as fitted, ``y = offset + scale * t``, one entry per target.

    What differs from the offset by no more than ``rounding`` is no more than the rounding of the targets as given.
    """

    offset: Array
    scale: Array
    rounding: Array

    @classmethod
    def of(
        cls,
        y: Array,
        weights: Array,
        *,
        centre: bool,
        fixed_noise: Array | None,
        shared: bool,
        robust: bool = False,
        taken_off: Array | float = 0.0,
    ) -> TargetScale:
        """Measure the targets, (N, T), about their means, or about their medians where outliers would move these.

        The scale of a target on its own is a power of two, so that scaling rounds nothing.  Targets that share their
        precisions are brought to one noise level: to unit variance where the noise is learned, to equal noise where it
        is given.  What was taken off them before is part of their magnitude, by which they were rounded.
        """
        middle = weighted_median if robust else weighted_mean
        offset = middle(y, weights) if centre else np.zeros(y.shape[1])
        residual = y - offset
        largest = largest_entry(residual)
        unit = np.where(largest > 0.0, largest, 1.0)
        rms = unit * np.sqrt(np.average((residual / unit) ** 2, axis=0, weights=weights))
        whole = largest_entry(y) + np.abs(taken_off)
        return cls.from_measures(offset, whole, largest, rms, fixed_noise=fixed_noise, shared=shared)

    @classmethod
    def from_measures(
        cls,
        offset: Array,
        magnitude: Array,
        largest: Array,
        rms: Array,
        *,
        fixed_noise: Array | None = None,
        shared: bool = False,
    ) -> TargetScale:
        """The map from what was measured: largest magnitudes, of the targets and about the offset, and their spread."""
        rounding = _ROUNDING * magnitude
        scale = np.where(largest > rounding, rms, np.maximum(rounding, np.finfo(float).tiny ** 0.25))
        if not shared:
            scale = np.exp2(np.round(np.log2(scale)))
        elif fixed_noise is not None:
            scale = np.sqrt(fixed_noise / np.max(fixed_noise)) * np.max(scale)
        return cls(offset, scale, rounding)

    def apply(self, y: Array) -> Array:
        """Targets as fitted; a constant target becomes exactly zero."""
        return np.where(self.constant(y), 0.0, (y - self.offset) / self.scale)

    def constant(self, y: Array) -> NDArray[np.bool_]:
        """Which targets do not vary."""
        return largest_entry(y - self.offset) <= self.rounding

    def part(self, columns: list[int]) -> TargetScale:
        """The map of some of the targets."""
        return TargetScale(self.offset[columns], self.scale[columns], self.rounding[columns])

    def shift(self, offset: Array) -> TargetScale:
        """The map to targets that had this taken off before."""
        return replace(self, offset=self.offset + offset)

    def evidence_shift(self, n: float) -> float:
        """What the log evidence of the targets as given is above that of the targets as fitted."""
        return -n * float(np.sum(np.log(self.scale)))

    def restore_certificate(self, certificate: Certificate, n: float) -> Certificate:
        """Certificate in the units of the targets as given."""
        shift = self.evidence_shift(n)
        return replace(
            certificate,
            log_evidence=certificate.log_evidence + shift,
            objective=certificate.objective + shift,
        )

    def restore_history(self, history: list[Record], n: float) -> list[Record]:
        """History in the units of the targets as given (of the first of several that share a support)."""
        shift, square = self.evidence_shift(n), float(self.scale[0] ** 2)
        return [
            replace(
                record,
                evidence=record.evidence + shift,
                objective=record.objective + shift,
                noise_variance=record.noise_variance * square,
            )
            for record in history
        ]


# Rows that widths are learned from at most, where each has one function: their dictionary is made dozens of times, and
# searched on parts of its rows.
MOST_ROWS = 5000
# Of more rows than these, so many are what widths are looked for on at first: what is found there is tried, and climbs
# on, on all of them.
_MANY_ROWS, SCREENING_ROWS = 1500, 1000


@dataclass(frozen=True)
class Targets:
    """Targets of a regression and what is asked of them.

    ``offset`` is what was taken off them already; with None they are as given, and centred here.
    """

    y: Array
    noise_variance: Array | None
    shared_support: bool
    likelihood: str = "gaussian"
    offset: Array | None = None
    noise: str = CONSTANT


@dataclass(frozen=True)
class TargetFit:
    """What was learned of one target, in its own units, in the order of the kept functions.

    ``noise`` is the noise model of a robust likelihood, None otherwise.  ``precisions`` are those of the rows, relative
    to the posterior's ``noise_variance``, where they differ.  ``effects`` are single effects, where they were searched.
    """

    alpha: Array
    posterior: GaussianPosterior | PoissonPosterior
    support: Support
    noise: RobustNoise | None = None
    precisions: Array | None = None
    effects: Found | None = None


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
    kernel: Basis | None = None
    parameters: dict[str, ParameterStatus] | None = None
    gain: dict[str, float] | None = None

    @property
    def tuned(self) -> bool:
        """Whether several parameters of the kernel are others than those given."""
        return len(self.parameters or ()) > 1 and (self.gain is None or any(self.gain.values()))


@dataclass(frozen=True)
class _Group:
    """One problem: a target, or several that share their support, scaled; the noise where it is given."""

    t: Array
    noise: float | None
    scale: TargetScale


@dataclass(frozen=True)
class Solved:
    """One problem solved, of one target or of several that share their support."""

    dictionary: Dictionary
    result: Result
    scale: TargetScale
    noise: RobustNoise | None = None
    variance: LogVariance | None = None

    @property
    def functions(self) -> set[int]:
        """Functions of the mean, and of the noise where it varies."""
        return {*self.result.active.indices, *(() if self.variance is None else self.variance.active.indices)}


def fit_regression(task: Task, targets: Targets, dictionary: Dictionary) -> RegressionFit:
    """Fit the targets, together where they share a support and one by one otherwise."""
    n_targets = targets.y.shape[1]
    shared = targets.shared_support and n_targets > 1
    scale = TargetScale.of(
        targets.y,
        task.weights,
        centre=task.fit_intercept and targets.offset is None,
        fixed_noise=targets.noise_variance,
        shared=shared,
        robust=targets.likelihood in ROBUST,
        taken_off=0.0 if targets.offset is None else targets.offset,
    )
    groups = _groups(targets, scale)
    problems: list[_Group] = []
    for group in groups:
        part = scale.part(group)
        t = part.apply(targets.y[:, group])
        part = part if targets.offset is None else part.shift(targets.offset[group])
        fixed = targets.noise_variance
        noise = None if fixed is None else float(fixed[group[0]] / part.scale[0] ** 2)
        if targets.likelihood in ROBUST and np.any(part.constant(targets.y[:, group])):
            raise ValueError(f"y is constant: likelihood={targets.likelihood!r} has no residuals to learn from")
        problems.append(_Group(t, noise, part))
    if task.gamma is not None:
        fit = _fit_kernel(task, dictionary, problems)
        return _in_order(fit, groups) if targets.shared_support else fit
    eligible, robust = dictionary.eligible, ROBUST.get(targets.likelihood)
    if targets.noise == VARIES:
        solved = [_solve_varying(task, dictionary, group, k) for k, group in enumerate(problems)]
    else:
        solved = [
            _solve(task, dictionary, eligible, one, task.warm(k), robust, k, task.progress.part(k, len(problems)))
            for k, one in enumerate(problems)
        ]
    task.leave([one.result for one in solved])
    task.close([one.result.status for one in solved])
    warn_unconverged([one.result.status for one in solved])
    fit = collect(task, solved)
    return _in_order(fit, groups) if targets.shared_support else fit


def _groups(targets: Targets, scale: TargetScale) -> list[list[int]]:
    """Targets that are fitted together, first those that share a support.

    A constant target has no noise that could be learned: it would count as so many residuals of zero for a noise that
    it shared with others, and make their error bars shorter.
    """
    every = range(targets.y.shape[1])
    if not targets.shared_support:
        return [[k] for k in every]
    constant = scale.constant(targets.y)
    if targets.noise_variance is not None or np.all(constant):
        return [list(every)]
    return [[k for k in every if not constant[k]], *([k] for k in every if constant[k])]


def _in_order(fit: RegressionFit, groups: list[list[int]]) -> RegressionFit:
    """Targets that share a support in the order in which they were given; it is their search that is reported."""
    order = np.argsort([k for group in groups for k in group])
    return replace(
        fit,
        targets=[fit.targets[k] for k in order],
        statuses=fit.statuses[:1],
        certificates=fit.certificates[:1],
        histories=fit.histories[:1],
        n_iter=fit.n_iter[:1],
    )


def _fit_kernel(task: Task, dictionary: Dictionary, groups: list[_Group]) -> RegressionFit:
    """Learn the parameters of the kernel, which independent targets share, with the rest; constant ones say nothing."""
    varying = [group for group in groups if np.any(group.t)] or groups
    most = int(MOST_ROWS * (len(task.X) / dictionary.n_candidates) ** 0.5)  # of several functions for each row, fewer
    if len(task.X) > most and dictionary.basis is not None:
        learned = _learn_on_some(task, dictionary, varying, most)
    else:
        learned = _learn(task, dictionary, varying)
    warn_unconverged([result.status for result in learned.results])
    plain, whole, results = replace(task, gamma=None, checkpoint=None), learned.dictionary, iter(learned.results)
    solved = [
        Solved(whole, next(results), group.scale)
        if any(group is one for one in varying)
        else _solve(plain, whole, whole.eligible, group, None, None, k)
        for k, group in enumerate(groups)
    ]
    return replace(collect(task, solved), kernel=learned.kernel, parameters=learned.parameters, gain=learned.gain)


def _learn(task: Task, dictionary: Dictionary, groups: list[_Group]) -> Learned:
    settings = [task.settings(noise_variance=group.noise) for group in groups]
    part = None
    if dictionary.n_candidates == len(task.X) > _MANY_ROWS and dictionary.basis is not None:
        rows, some, few = _some(task, groups, SCREENING_ROWS)
        part = Part(rows, some, _built(some, dictionary, dictionary.basis), _posing(some, few))
    return learn_kernel(task, dictionary, _posing(task, groups), settings, part)


def _posing(task: Task, groups: list[_Group]) -> Callable[[Dictionary], list[GaussianProblem]]:
    """What makes the problems of these targets on any dictionary."""

    def make(current: Dictionary) -> list[GaussianProblem]:
        eligible = current.eligible
        return [pose(task, current, eligible, group.t) for group in groups]

    return make


def _some(task: Task, groups: list[_Group], limit: int) -> tuple[NDArray[np.intp], Task, list[_Group]]:
    """At most so many rows, and the task and the targets of these."""
    rows = spread_rows(np.column_stack([group.t for group in groups]), limit)
    some = replace(task, X=task.X[rows], weights=task.weights[rows], checkpoint=None)
    return rows, some, [replace(group, t=group.t[rows]) for group in groups]


def _built(task: Task, like: Dictionary, basis: Basis | None) -> Dictionary:
    """The dictionary of a basis on the rows of a task, otherwise like another."""
    return Dictionary.build(
        task.X, basis, fit_intercept=task.fit_intercept, random_state=task.random_state, by_row=like.by_row
    )


def _learn_on_some(task: Task, dictionary: Dictionary, groups: list[_Group], most: int) -> Learned:
    """Learn the parameters from some of the rows; all of them decide between these parameters and those given."""
    _, some, few = _some(task, groups, most)
    learned = _learn(some, _built(some, dictionary, dictionary.basis), few)
    plain, found = replace(task, gamma=None), []
    for basis in (learned.kernel, dictionary.basis):
        whole = _built(task, dictionary, basis)
        solved = [_solve(plain, whole, whole.eligible, group, None, None, k) for k, group in enumerate(groups)]
        found.append((whole, [one.result for one in solved]))
    ours, given = (sum(result.certificate.log_evidence for result in results) for _, results in found)
    if ours >= given:
        return replace(learned, dictionary=found[0][0], results=found[0][1])
    names = () if dictionary.functions is None else (p.name for p in dictionary.functions.parameters)
    whole, results = found[1]
    return Learned(whole, results, dictionary.basis, dict.fromkeys(names, ParameterStatus.LEARNED))


def pose(
    task: Task,
    dictionary: Dictionary,
    eligible: NDArray[np.bool_],
    t: Array,
    offered: NDArray[np.bool_] | None = None,
) -> GaussianProblem:
    """The problem of these targets on a dictionary."""
    problem = GaussianProblem(
        dictionary.design,
        t,
        task.weights,
        eligible,
        task.bias(dictionary),
        dictionary.stand_in,
        dictionary.centre_rows(),
        inclusion_cost=task.rule(eligible, t.shape[1]).cost,
        offered=offered,
        landmarks=dictionary.landmarks,
        places=dictionary.places,
    )
    problem.rowwise = dictionary.rowwise
    if dictionary.sample is not None:
        rows = dictionary.sample.rows
        problem.sample = GaussianProblem(
            dictionary.sample.design,
            t[rows],
            dictionary.sample.share * task.weights[rows],
            eligible,
            problem.bias,
            inclusion_cost=problem.inclusion_cost,
        )
    return problem


def _solve(
    task: Task,
    dictionary: Dictionary,
    eligible: NDArray[np.bool_],
    group: _Group,
    warm: Warm | None,
    robust: type[OutlierMixture] | type[StudentT] | None,
    number: int,
    reached: Callable[[str, float], None] | None = None,
) -> Solved:
    """Run the solver on one problem; the dictionary comes back with the functions generated on the way."""
    generate, t = task.solver.candidates, group.t
    growing = task.solver.makes_functions
    current = dictionary

    def grow(kept: list[int], rng: np.random.Generator) -> GaussianProblem:
        nonlocal current
        if generate is not None:
            current = current.generate(task.X, kept, generate, rng)
            return pose(task, current, current.eligible, t)
        current = current.refine(task.X, kept)
        new = np.arange(current.design.shape[1]) >= dictionary.design.shape[1]
        usable = current.eligible
        return pose(task, current, usable & ~new, t, usable & new)

    settings = task.settings(number, noise_variance=group.noise, grow=grow if growing else None, warm=warm)
    problem = pose(task, dictionary, eligible, t)
    if robust is None:
        settings = settings if growing else replace(settings, reached=reached)
        result = run_guarded(problem, task.solver, settings, task.generator())
        return Solved(current, result, group.scale)
    found = run_robust(problem, robust, task.solver, settings, task.generator())
    return Solved(dictionary, _bounded(found.result, found.bound), group.scale, found.noise)


def _solve_varying(task: Task, dictionary: Dictionary, group: _Group, number: int) -> Solved:
    """Learn the mean and the noise of one target."""
    problem = pose(task, dictionary, dictionary.eligible, group.t)
    found = run_varying(problem, task.solver, task.settings(number, warm=task.warm(number)), task.generator())
    result = _bounded(found.result, found.bound, found.log_prior)
    return Solved(dictionary, result, group.scale, variance=found.noise)


def _bounded(result: Result, bound: float, log_prior: float = 0.0) -> Result:
    """A result whose objective is that of the last Gaussian problem, with the bound in its place.

    ``log_prior`` is the part of what the bound has beyond that problem's objective that is no evidence.
    """
    shift, certificate = bound - result.active.objective(), result.certificate
    return replace(
        result,
        certificate=replace(
            certificate,
            log_evidence=certificate.log_evidence + shift - log_prior,
            objective=certificate.objective + shift,
        ),
    )


def collect(task: Task, solved: list[Solved]) -> RegressionFit:
    """Results of the targets over the union of what they kept."""
    n = float(np.sum(task.weights))
    dictionary = max((one.dictionary for one in solved), key=lambda d: d.n_candidates)
    kept = dictionary.keep({i for one in solved for i in one.functions}, task.X.shape[1])
    return RegressionFit(
        kept=kept,
        dictionary=dictionary,
        targets=[fit for one in solved for fit in _target_fits(one, kept, task.weights)],
        log_evidence=sum(one.result.certificate.log_evidence + one.scale.evidence_shift(n) for one in solved),
        statuses=[one.result.status for one in solved],
        certificates=[
            replace(one.scale.restore_certificate(one.result.certificate, n), left_aside=one.dictionary.left_aside)
            for one in solved
        ],
        histories=[one.scale.restore_history(one.result.history, n) for one in solved],
        n_iter=[one.result.n_iter for one in solved],
        rule=task.rule(dictionary.eligible, len(solved[0].scale.scale)),
    )


def _target_fits(solved: Solved, kept: Kept, weights: Array) -> list[TargetFit]:
    active, noise, variance = solved.result.active, solved.noise, solved.variance
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
        precisions = None
        if variance is not None:
            varying = varying_noise(variance, kept, float(unit))
            # What predictions have for the noise of these rows: e^(o + φᵀm) alone, without the half of φᵀVφ, is less.
            mean = float(np.average(varying.variance(solved.dictionary.design.columns(kept.columns)), weights=weights))
            precisions = variance.precisions * mean / posterior.noise_variance
            posterior = replace(posterior, noise_variance=mean, varying=varying)
        effects = None if solved.result.effects is None else solved.result.effects.scaled(float(unit))
        fits.append(TargetFit(active.alpha[order] / unit**2, posterior, support, noise, precisions, effects))
    return fits


def varying_noise(noise: LogVariance, kept: Kept, unit: float) -> VaryingNoise:
    """The log variance over the kept functions, for a target in units of which the fit was ``unit``."""
    active = noise.active
    where, order = kept.order(active.indices)
    return VaryingNoise(
        functions=where,
        mean=active.mean[order],
        covariance=active.covariance[np.ix_(order, order)],
        offset=noise.offset + 2.0 * float(np.log(unit)),
    )
