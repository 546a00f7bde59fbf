"""Kernel parameters of an estimator by evidence: what is learned, where it begins, and what came of it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from functools import reduce
from typing import Any, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from sparsebayes.basis import Basis, Functions, Parameter, Sum
from sparsebayes.estimators.dictionary import Dictionary, Kept
from sparsebayes.estimators.left_out import LeftOut
from sparsebayes.estimators.task import Task, warn_unconverged
from sparsebayes.inference import ParameterStatus, Result, Settings, Status
from sparsebayes.inference.fit.folds import FOLDS
from sparsebayes.inference.fit.interrupt import asked_to_stop
from sparsebayes.inference.fit.run import run
from sparsebayes.inference.models.mode import LaplaceProblem
from sparsebayes.kernel_learning import Learned as Found
from sparsebayes.kernel_learning import Learner, Limits, Race, Search, learnable_limits, process_of, statuses
from sparsebayes.kernel_learning.gradients import OnRows
from sparsebayes.kernel_learning.learner import SEVERAL
from sparsebayes.kernel_learning.process import FEWER_ROWS
from sparsebayes.kernel_learning.trials import Factors, Interrupted, Problems, Trial

Array = NDArray[np.float64]
Index = NDArray[np.intp]
F = TypeVar("F", bound="Fit")
S = TypeVar("S")

# Multiples of the lengths to begin with that a race tries, and of those of a process, whose functions are on every row.
GRID = tuple(float(factor) for factor in 2.0 ** np.arange(-2.0, 2.5, 0.5))
_WIDER = (1.0, 2.0**0.5, 2.0)
# Standard deviation of the log parameters of restarts about the first start.
_JITTER = 1.0
# What "gamma" may be for each input to have a parameter of its own.
PER_INPUT = ("ard", "multiscale")


@dataclass(frozen=True)
class Kernels:
    """The basis of an estimator as a function of the log parameters of its kernels."""

    X: Array
    dictionary: Dictionary
    functions: Functions
    limits: Limits

    def at(self, log_theta: Array, factors: Factors = (1.0,)) -> Functions:
        """The functions at these parameters, their lengths times each of the factors."""
        parts = [self.functions.with_parameters(np.exp(place)) for place in self.places(log_theta, factors)]
        return reduce(Functions.join, parts)

    def places(self, log_theta: Array, factors: Factors) -> list[Array]:
        """Log parameters of each of the multiples."""
        return [log_theta if factor == 1.0 else self.limits.stretched(log_theta, factor) for factor in factors]

    def basis(self, log_theta: Array, factors: Factors) -> Basis:
        """The basis with these parameters."""
        parts: list[Basis] = []
        for place in self.places(log_theta, factors):
            learned: Any = clone(self.dictionary.basis)
            parts.append(learned.set_params(**self.at(place).settings))
        return parts[0] if len(parts) == 1 else Sum(*parts)


@dataclass(frozen=True)
class Family(Kernels):
    """The dictionary of an estimator, and the problems on it, as a function of the log parameters of its kernels."""

    make: Callable[[Dictionary], Problems]

    def columns(self, log_theta: Array, idx: Index) -> Array:
        """Columns of the dictionary; the intercept's is constant."""
        return self._on_rows().columns(log_theta, idx)

    def pullback(self, log_theta: Array, idx: Index, gradient: Array) -> Array:
        """Sum of ``gradient`` times the derivative of the columns, for every parameter."""
        return self._on_rows().pullback(log_theta, idx, gradient)

    def _on_rows(self) -> OnRows:
        return OnRows(self.X, self.functions, self.dictionary.bias)

    def rebuilt(self, log_theta: Array, factors: Factors = (1.0,)) -> Dictionary:
        """The dictionary at these parameters."""
        return self.dictionary.with_functions(self.X, self.at(log_theta, factors))

    def problems(self, log_theta: Array, factors: Factors = (1.0,)) -> Problems:
        """The problems on the dictionary rebuilt at these parameters."""
        return self.make(self.rebuilt(log_theta, factors))

    def as_built(self) -> Problems | None:
        """The problems on the dictionary as it was given, where it is so large that parts of it are searched."""
        other = self.dictionary.searched_in_parts(self.X)
        return None if other is None else self.make(other)


@dataclass(frozen=True)
class Learned:
    """The dictionary at the parameters found, the results there, and what is known about each parameter."""

    dictionary: Dictionary
    results: list[Result]
    kernel: Basis | None
    parameters: dict[str, ParameterStatus]
    gain: dict[str, float] | None = None


@dataclass(frozen=True)
class Part:
    """The same problems on some of the rows, each function centred on one of them."""

    rows: Index
    task: Task
    dictionary: Dictionary
    make: Callable[[Dictionary], Problems]


def learn_kernel(
    task: Task,
    dictionary: Dictionary,
    make: Callable[[Dictionary], Problems],
    settings: Sequence[Settings],
    part: Part | None = None,
) -> Learned:
    """Learn the parameters of the kernels in the dictionary with the rest of the model.

    Where there is a part of the rows, widths are looked for on that, and those found are tried on all rows.
    """
    functions, limits, given, first = _learnable(task, dictionary)
    family = Family(task.X, dictionary, functions, limits, make)
    several = task.gamma == "multiscale"
    restarts = _restarts(task, first, limits)
    if part is None:
        learner = _learner(task, family, settings, given, first, several)
        found = learner.learn(restarts)
    else:
        values = np.exp(first)
        few = _on_part(family, part, values)
        screened = _learner(part.task, few, settings, given, first, False).screen(restarts)
        learner = _learner(task, family, settings, given, first, several, screened.places)
        stopped = screened.stopped
        found = learner.learn() if stopped is None else learner.stopped_at(_carried(stopped, part, dictionary))
    trial = found.trial
    states = statuses(learner, found, functions, np.ptp(task.X, axis=0))
    parameters = _named(family.at(trial.log_theta, trial.factors), states)
    results = [_concluded(result, found, k, parameters, limits) for k, result in enumerate(found.results)]
    kernel = family.basis(trial.log_theta, trial.factors)
    final = replace(family.rebuilt(trial.log_theta, trial.factors), basis=kernel)
    gain = None if found.gain is None else {k: v for k, v in asdict(found.gain).items() if v is not None}
    return Learned(final, results, kernel, parameters, gain)


def _learnable(task: Task, dictionary: Dictionary) -> tuple[Functions, Limits, Array, Array]:
    """Functions with all parameters that may be learned, where these may be, those given, and those to begin with."""
    if dictionary.functions is None:
        raise ValueError(f"gamma={task.gamma!r} needs a kernel with parameters; the columns of X have none")
    functions = dictionary.functions
    if task.gamma in PER_INPUT:
        functions = functions.per_input()
    if not functions.parameters or (task.gamma == "multiscale" and not any(p.length for p in functions.parameters)):
        raise ValueError(
            f"gamma={task.gamma!r} needs a kernel with parameters that have derivatives, such as 'rbf'; "
            f"got {dictionary.basis!r}"
        )
    given = np.log([p.value for p in functions.parameters])
    functions = _spread_out(functions, task.X, task.weights) if task.gamma in PER_INPUT else functions
    extent = np.ptp(task.X, axis=0)
    limits = learnable_limits(functions.parameters, extent, given)
    first = np.clip(np.log([p.value for p in functions.parameters]), limits.prior.lower, limits.prior.upper)
    return functions, limits, given, first


def _restarts(task: Task, first: Array, limits: Limits) -> list[Array]:
    """Other log parameters to begin with, as many as are asked for."""
    draws = task.restarts().standard_normal((task.n_restarts, len(first)))
    return list(np.clip(first + _JITTER * draws, limits.prior.lower, limits.prior.upper))


@dataclass(frozen=True)
class Raced:
    """The kernel under which rows that were left out are likeliest, and what is known about each parameter.

    ``gain`` is by how many nats a row is likelier than under the kernel given, and the standard error of that.
    """

    kernel: Basis
    parameters: dict[str, ParameterStatus]
    gain: dict[str, float]

    @property
    def unused(self) -> Raced:
        """The same where no function stayed."""
        states = {
            name: state if state is ParameterStatus.CONSTANT else ParameterStatus.UNUSED
            for name, state in self.parameters.items()
        }
        return replace(self, parameters=states)


class Fit(Protocol):
    """A fit that says which functions stayed."""

    @property
    def kept(self) -> Kept:
        """Its functions."""
        ...


def fit_by_race(
    task: Task, dictionary: Dictionary, targets: Array, left_out: LeftOut, fit: Callable[[Task, Basis | None], F]
) -> tuple[F, Raced | None]:
    """The fit with the kernel under which rows left out are likeliest, as if that had been given.

    Where the user interrupts, the fit with the one given and no word on kernels.

    Parameters
    ----------
    task, dictionary : Task, Dictionary
        The rows, and the dictionary with the kernel given.
    targets : ndarray of shape (N, T)
        What a Gaussian process has to explain that proposes kernels.
    left_out : LeftOut
        Who judges.
    fit : callable
        Fits all rows.
    """
    if task.checkpoint is not None:
        raise ValueError(
            f"checkpoint: fits at many kernels, which gamma={task.gamma!r} makes, are not kept; use checkpoint=None"
        )
    plain = replace(task, gamma=None, n_restarts=0)
    with asked_to_stop() as stop:
        given = fit(plain, dictionary.basis)
        try:
            raced = race_kernels(task, dictionary, targets, left_out, stop)
        except Interrupted:
            return given, None
        chosen = fit(plain, raced.kernel)
        return chosen, raced if len(chosen.kept.relevance) else raced.unused


def race_kernels(
    task: Task, dictionary: Dictionary, targets: Array, left_out: LeftOut, stop: Callable[[], bool]
) -> Raced:
    """Choose the lengths of the kernels by rows left out alone.

    The one given and multiples of it run first; then those that a Gaussian process proposes, where each input has a
    length of its own, run against the best, and several multiples together where they are asked for.
    """

    def density(k: int, fold: int) -> Array:
        found = left_out.of_fold(kernels.basis(*runners[k]), folds[fold])
        if stop():  # the fit may have been cut short
            raise Interrupted
        return found

    functions, limits, given, first = _learnable(task, dictionary)
    kernels = Kernels(task.X, dictionary, functions, limits)
    runners: list[tuple[Array, Factors]] = [(given, (1.0,))]
    folds = [fold for fold in range(FOLDS) if len(left_out.weights_of(fold))]
    race = Race(density, [left_out.weights_of(fold) for fold in folds])

    def entered(place: Array, several: Factors = (1.0,)) -> int:
        """Number of the kernel with these log parameters, which has run before or not."""
        for k, (known, other) in enumerate(runners):
            if several == other and np.allclose(place, known):
                return k
        runners.append((place, several))
        return len(runners) - 1

    grid = [entered(limits.stretched(first, factor)) for factor in GRID]
    best = race.fastest([0, *(k for k in race.reached(grid) if k)])
    places = _restarts(task, first, limits)
    process = process_of(functions, task.X, targets, task.weights, limits, FEWER_ROWS) if limits.per_input else None
    if process is not None:
        there = process.fit(first, limits, stop)
        places += [limits.stretched(there, factor) for factor in _WIDER]
    best = race.overtaken(best, [entered(place) for place in places])
    if task.gamma == "multiscale":
        best = race.overtaken(best, [entered(runners[best][0], several) for several in SEVERAL])
    lead, rows = race.lead(best, 0), float(np.sum(left_out.weights))
    states = [_state(p, k, runners[best][0], limits, task.X) for k, p in enumerate(functions.parameters)]
    return Raced(
        kernels.basis(*runners[best]),
        {name: state for name, state in _named(kernels.at(*runners[best]), states).items() if state is not None},
        {"density": lead.nats / rows, "density_error": lead.chance / rows},
    )


def _state(p: Parameter, k: int, log_theta: Array, limits: Limits, X: Array) -> ParameterStatus | None:
    """What a race says of a parameter; nothing of one that is no length."""
    if not p.length:
        return None
    if not np.any(np.ptp(X if p.feature is None else X[:, [p.feature]], axis=0)):
        return ParameterStatus.CONSTANT
    off = np.isfinite(limits.off[k]) and not limits.live(log_theta)[k]
    return ParameterStatus.OFF if off else ParameterStatus.LEARNED


def _learner(
    task: Task,
    family: Family,
    settings: Sequence[Settings],
    given: Array,
    first: Array,
    several: bool,
    finalists: Sequence[Array] | None = None,
) -> Learner:
    problems, limits = family.problems(given), family.limits
    search = Search(family, task.solver, settings, limits.prior, task.generator())
    process = None
    if finalists is None:
        targets = np.column_stack([problem.targets for problem in problems])
        process = process_of(family.functions, task.X, targets, task.weights, limits)
    return Learner(search, limits, given, first, process, several, finalists)


def _on_part(family: Family, part: Part, values: Array) -> Family:
    """The family on some of the rows, with the same parameters and limits."""
    functions = part.dictionary.functions
    if functions is None:
        raise TypeError("a part of the rows has functions with parameters, as all of them have")
    if len(functions.parameters) != len(values):
        functions = functions.per_input()
    return Family(part.task.X, part.dictionary, functions.with_parameters(values), family.limits, part.make)


def _carried(trial: Trial, part: Part, dictionary: Dictionary) -> Trial:
    """A trial on some of the rows with the numbers that its functions have among all of them."""

    def among_all(k: int) -> int:
        return int(part.rows[k]) if k < len(part.rows) or dictionary.bias is None else dictionary.bias

    models = tuple(replace(model, indices=[among_all(k) for k in model.indices]) for model in trial.models)
    return replace(trial, models=models)


def solve_laplace(task: Task, problems: Sequence[LaplaceProblem]) -> list[Result]:
    """Solve problems with Laplace's approximation."""
    results = [
        run(problem, task.solver, task.settings(k, warm=task.warm(k)), task.generator())
        for k, problem in enumerate(problems)
    ]
    task.leave(results)
    task.close([result.status for result in results])
    warn_unconverged([result.status for result in results], noise=False)
    return results


def _spread_out(functions: Functions, X: Array, weights: Array) -> Functions:
    """Begin with lengths in proportion to the spread of each input, at the same length over all."""
    spread = np.sqrt(np.average((X - np.average(X, axis=0, weights=weights)) ** 2, axis=0, weights=weights))
    scale = spread / np.sqrt(np.mean(spread**2)) if np.any(spread > 0.0) else np.ones(len(spread))
    scale = np.where(scale > 0.0, scale, 1.0)
    values = [p.value * (1.0 if p.feature is None else scale[p.feature] ** p.length) for p in functions.parameters]
    return functions.with_parameters(np.array(values))


def _named(functions: Functions, found: Sequence[S]) -> dict[str, S]:
    """The statuses by the names of the parameters; multiples of a length share that of the length."""
    return {p.name: found[k % len(found)] for k, p in enumerate(functions.parameters)}


def _concluded(result: Result, found: Found, k: int, parameters: dict[str, ParameterStatus], limits: Limits) -> Result:
    """The result of one problem with the history of all starts and a word on the kernel."""
    every_off = all(status is ParameterStatus.OFF for status in parameters.values())
    lost = every_off or any(status.degenerate for status in parameters.values())
    status = Status.KERNEL if lost and result.status is Status.CONVERGED else result.status
    height = result.certificate.objective + limits.prior.log_density(found.trial.log_theta)
    return replace(
        result,
        status=Status.INTERRUPTED if found.interrupted else status,
        certificate=replace(result.certificate, objective=height),
        history=found.histories[k],
        n_iter=result.n_iter + found.trial.n_iter[k],
    )
