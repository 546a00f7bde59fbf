"""Kernel parameters of an estimator by evidence: what is learned, where it begins, and what came of it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from functools import reduce
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from sparsebayes.basis import Basis, Functions, Sum
from sparsebayes.estimators.dictionary import Dictionary
from sparsebayes.estimators.task import Task, warn_unconverged
from sparsebayes.inference import ParameterStatus, Result, Settings, Status
from sparsebayes.inference.fit.run import run
from sparsebayes.inference.models.mode import LaplaceProblem
from sparsebayes.kernel_learning import Learned as Found
from sparsebayes.kernel_learning import Learner, Limits, learnable_limits, process_of, search_for, statuses
from sparsebayes.kernel_learning.gradients import OnRows
from sparsebayes.kernel_learning.trials import Factors, Problems, Trial

Array = NDArray[np.float64]
Index = NDArray[np.intp]

# Standard deviation of the log parameters of restarts about the first start.
_JITTER = 1.0
# What "gamma" may be for each input to have a parameter of its own.
PER_INPUT = ("ard", "multiscale")


@dataclass(frozen=True)
class Family:
    """The dictionary of an estimator as a function of the log parameters of its kernels."""

    X: Array
    dictionary: Dictionary
    functions: Functions
    limits: Limits
    make: Callable[[Dictionary], Problems]

    def at(self, log_theta: Array, factors: Factors = (1.0,)) -> Functions:
        """The functions at these parameters, their lengths times each of the factors."""
        parts = [self.functions.with_parameters(np.exp(place)) for place in self.places(log_theta, factors)]
        return reduce(Functions.join, parts)

    def places(self, log_theta: Array, factors: Factors) -> list[Array]:
        """Log parameters of each of the multiples."""
        return [log_theta if factor == 1.0 else self.limits.stretched(log_theta, factor) for factor in factors]

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

    def basis(self, log_theta: Array, factors: Factors) -> Basis | None:
        """The basis with the parameters learned."""
        if self.dictionary.basis is None:
            return None
        parts: list[Basis] = []
        for place in self.places(log_theta, factors):
            learned: Any = clone(self.dictionary.basis)
            parts.append(learned.set_params(**self.at(place).settings))
        return parts[0] if len(parts) == 1 else Sum(*parts)


@dataclass(frozen=True)
class Learned:
    """The dictionary at the parameters found, the results there, and what is known about each parameter.

    ``given`` is the kernel, with all parameters that might have been learned, as it was given.
    """

    dictionary: Dictionary
    results: list[Result]
    kernel: Basis | None = None
    parameters: dict[str, ParameterStatus] | None = None
    gain: dict[str, float] | None = None
    given: Basis | None = None


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
    family = Family(task.X, dictionary, functions, limits, make)
    several = task.gamma == "multiscale"
    draws = task.restarts().standard_normal((task.n_restarts, len(first)))
    restarts = list(np.clip(first + _JITTER * draws, limits.prior.lower, limits.prior.upper))
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
    parameters = _named(family.at(trial.log_theta, trial.factors), statuses(learner, found, functions, extent))
    results = [_concluded(result, found, k, parameters, limits) for k, result in enumerate(found.results)]
    kernel = family.basis(trial.log_theta, trial.factors)
    final = replace(family.rebuilt(trial.log_theta, trial.factors), basis=kernel)
    gain = None if found.gain is None else {k: v for k, v in asdict(found.gain).items() if v is not None}
    return Learned(final, results, kernel, parameters, gain, family.basis(given, (1.0,)))


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
    search = search_for(problems)(family, task.solver, settings, limits.prior, task.generator())
    process = None if finalists is not None else process_of(family.functions, task.X, problems, task.weights, limits)
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


def solve_laplace(
    task: Task, dictionary: Dictionary, make: Callable[[Dictionary], Sequence[LaplaceProblem]]
) -> Learned:
    """Solve problems with Laplace's approximation, at the kernel given or with its parameters learned."""
    if task.gamma is None:
        results = [
            run(problem, task.solver, task.settings(k, warm=task.warm(k)), task.generator())
            for k, problem in enumerate(make(dictionary))
        ]
        task.leave(results)
        task.close([result.status for result in results])
        learned = Learned(dictionary, results)
    else:
        learned = learn_kernel(task, dictionary, make, [task.settings() for _ in make(dictionary)])
    warn_unconverged([result.status for result in learned.results], noise=False)
    return learned


def _spread_out(functions: Functions, X: Array, weights: Array) -> Functions:
    """Begin with lengths in proportion to the spread of each input, at the same length over all."""
    spread = np.sqrt(np.average((X - np.average(X, axis=0, weights=weights)) ** 2, axis=0, weights=weights))
    scale = spread / np.sqrt(np.mean(spread**2)) if np.any(spread > 0.0) else np.ones(len(spread))
    scale = np.where(scale > 0.0, scale, 1.0)
    values = [p.value * (1.0 if p.feature is None else scale[p.feature] ** p.length) for p in functions.parameters]
    return functions.with_parameters(np.array(values))


def _named(functions: Functions, found: Sequence[ParameterStatus]) -> dict[str, ParameterStatus]:
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
