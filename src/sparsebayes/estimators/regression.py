"""Assembly of a regression fit: targets, dictionary, solver, and the results in the user's units."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning

from sparsebayes.basis import Functions
from sparsebayes.estimators.dictionary import Dictionary, kept_functions
from sparsebayes.estimators.targets import TargetScale
from sparsebayes.inference import Certificate, Record, Result, Sequential, Settings, Status, run
from sparsebayes.inference.problem import GaussianProblem
from sparsebayes.posterior import GaussianPosterior

Array = NDArray[np.float64]
Index = NDArray[np.intp]


@dataclass(frozen=True)
class Task:
    """Everything that a fit needs, validated."""

    X: Any
    y: Array
    weights: Array
    noise_variance: Array | None
    shared_support: bool
    fit_intercept: bool
    solver: Sequential
    tol: float
    max_iter: int
    random_state: int | np.random.RandomState | None
    verbose: int


@dataclass(frozen=True)
class TargetFit:
    """What was learned of one target, in its own units; ``columns`` are sorted, the intercept last."""

    columns: Index
    alpha: Array
    posterior: GaussianPosterior


@dataclass(frozen=True)
class RegressionFit:
    """What was learned of all targets."""

    relevance: Index
    with_bias: bool
    functions: Functions | None
    dictionary: Dictionary
    targets: list[TargetFit]
    log_evidence: float
    statuses: list[Status]
    certificates: list[Certificate]
    histories: list[list[Record]]
    n_iter: list[int]


def fit_regression(task: Task, dictionary: Dictionary) -> RegressionFit:
    """Fit the targets, together where they share a support and one by one otherwise."""
    n_targets = task.y.shape[1]
    scale = TargetScale.of(
        task.y,
        task.weights,
        centre=task.fit_intercept,
        fixed_noise=task.noise_variance,
        shared=task.shared_support and n_targets > 1,
    )
    groups = [list(range(n_targets))] if task.shared_support else [[k] for k in range(n_targets)]
    eligible = dictionary.eligible
    fits: list[tuple[Dictionary, Result, TargetScale]] = []
    for group in groups:
        part = scale.part(group)
        fits.append((*_solve(task, dictionary, eligible, part.apply(task.y[:, group]), part, group), part))
    _warn([result.status for _, result, _ in fits])
    return _collect(task, fits)


def _solve(
    task: Task, dictionary: Dictionary, eligible: NDArray[np.bool_], t: Array, scale: TargetScale, group: list[int]
) -> tuple[Dictionary, Result]:
    """Run the solver on one problem; the dictionary comes back with the functions generated on the way."""
    fixed = None if task.noise_variance is None else float(task.noise_variance[group[0]] / scale.scale[0] ** 2)
    bias = dictionary.constant() if task.solver.initialisation == "bias" else dictionary.bias
    current = [dictionary]

    def grow(kept: list[int], rng: np.random.Generator) -> GaussianProblem:
        now = current[0]
        places = now.position(np.array([k for k in kept if k != now.bias], dtype=np.intp))
        centres = now.functions.restrict(places).centres if now.functions is not None else None
        current[0] = now.extend(task.X, task.solver.candidates(centres, rng))  # type: ignore[misc]
        return GaussianProblem(current[0].design, t, task.weights, current[0].eligible, bias)

    settings = Settings(
        tol=task.solver.tol or task.tol,
        max_iter=task.solver.max_iter or task.max_iter,
        noise_variance=fixed,
        grow=grow if task.solver.candidates is not None else None,
        observe=_progress(task.verbose),
    )
    seed = task.solver.random_state if task.solver.random_state is not None else task.random_state
    problem = GaussianProblem(dictionary.design, t, task.weights, eligible, bias)
    result = run(problem, task.solver, settings, _generator(seed))
    return current[0], result


def _collect(task: Task, fits: list[tuple[Dictionary, Result, TargetScale]]) -> RegressionFit:
    n = float(np.sum(task.weights))
    dictionary = max((d for d, _, _ in fits), key=lambda d: d.n_candidates)
    bias = dictionary.bias
    kept = {c for _, result, _ in fits for c in result.active.indices}
    with_bias = bias is not None and bias in kept
    columns = np.array(sorted(kept - {bias}), dtype=np.intp)
    everything = columns if not with_bias else np.append(columns, bias)
    place = {int(c): k for k, c in enumerate(everything)}
    targets = [fit for _, result, scale in fits for fit in _target_fits(result, scale, place)]
    relevance = dictionary.position(columns)
    return RegressionFit(
        relevance=relevance,
        with_bias=with_bias,
        functions=kept_functions(dictionary, relevance, with_bias, task.X.shape[1]),
        dictionary=dictionary,
        targets=targets,
        log_evidence=sum(r.certificate.log_evidence + s.evidence_shift(n) for _, r, s in fits),
        statuses=[r.status for _, r, _ in fits],
        certificates=[s.restore_certificate(r.certificate, n) for _, r, s in fits],
        histories=[s.restore_history(r.history, n) for _, r, s in fits],
        n_iter=[r.n_iter for _, r, _ in fits],
    )


def _target_fits(result: Result, scale: TargetScale, place: dict[int, int]) -> list[TargetFit]:
    active = result.active
    where = np.array([place[i] for i in active.indices], dtype=np.intp)
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
        columns = np.array(active.indices, dtype=np.intp)[order]
        fits.append(TargetFit(columns, active.alpha[order] / unit**2, posterior))
    return fits


def _warn(statuses: list[Status]) -> None:
    for status in statuses:
        if status is Status.MAX_ITER or status is Status.INTERRUPTED:
            warnings.warn(status.value, ConvergenceWarning, stacklevel=4)


def _progress(verbose: int) -> Any:
    if not verbose:
        return None
    count = 0

    def report(record: Record) -> None:
        nonlocal count
        count += 1
        if verbose > 1 or count % 50 == 0:
            print(
                f"start {record.start}  {record.move:<10}  functions {record.n_active:4d}  "
                f"objective {record.objective:.4f}"
            )

    return report


def _generator(random_state: int | np.random.RandomState | None) -> np.random.Generator:
    if isinstance(random_state, np.random.RandomState):
        return np.random.default_rng(random_state.randint(2**31))
    return np.random.default_rng(random_state)
