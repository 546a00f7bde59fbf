"""Kernel parameters of an estimator by evidence: what is learned, where it begins, and what came of it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from sparsebayes.basis import Basis, Functions, Parameter
from sparsebayes.estimators.dictionary import Dictionary
from sparsebayes.estimators.task import Task, warn_unconverged
from sparsebayes.inference import ParameterStatus, Result, Settings, Status
from sparsebayes.inference.chains import Chain
from sparsebayes.inference.kernel_parameters import LogNormal
from sparsebayes.inference.learning import Learner, Problems
from sparsebayes.inference.mode import LaplaceProblem
from sparsebayes.inference.run import run

Array = NDArray[np.float64]
Index = NDArray[np.intp]

# Standard deviation of the prior of a log parameter: a factor of twenty is one standard deviation.
_WIDTH = 3.0
# One length for all inputs is expected near that of scikit-learn's gamma="scale"; a length for one input, where the
# functions hardly vary along it, so that an input is irrelevant unless the evidence says otherwise.
_IRRELEVANT = 30.0
# Lengths between these multiples of the extent of an input make a difference.
_SHORTEST, _LONGEST = 1e-4, 1e3
# A number without units may move by a factor of a thousand either way.
_ENDS = np.array([-7.0, 7.0])
# Functions as wide as this many times the extent of the data vary by a hundredth over all of it.
_INFINITE = 10.0
# A parameter is arbitrary where moving it by a factor of e either way changes the evidence by less.
_FLAT = 1e-3
# Lengths at which the search is made before the climb, as multiples of the first.
_PATH = (1.0, 2.0)
# Up to so many inputs, it is also made with each of them alone.
_FEW_INPUTS = 5
# Standard deviation of the log parameters of restarts about the first start.
_JITTER = 1.0


@dataclass(frozen=True)
class Family:
    """The dictionary of an estimator as a function of the log parameters of its kernels."""

    X: Array
    dictionary: Dictionary
    functions: Functions
    make: Callable[[Dictionary], Problems]

    def at(self, log_theta: Array) -> Functions:
        """The functions at these parameters."""
        return self.functions.with_parameters(np.exp(log_theta))

    def columns(self, log_theta: Array, idx: Index) -> Array:
        """Columns of the dictionary; the intercept's is constant."""
        values, kernel = np.ones((self.X.shape[0], len(idx))), idx != self.dictionary.bias
        values[:, kernel] = self.at(log_theta).evaluate(self.X, idx[kernel])
        return values

    def pullback(self, log_theta: Array, idx: Index, gradient: Array) -> Array:
        """Sum of ``gradient`` times the derivative of the columns, for every parameter."""
        kernel = idx != self.dictionary.bias
        return self.at(log_theta).pullback(self.X, idx[kernel], gradient[:, kernel])

    def rebuilt(self, log_theta: Array) -> Dictionary:
        """The dictionary at these parameters."""
        return self.dictionary.with_functions(self.X, self.at(log_theta))

    def problems(self, log_theta: Array) -> Problems:
        """The problems on the dictionary rebuilt at these parameters."""
        return self.make(self.rebuilt(log_theta))


@dataclass(frozen=True)
class Learned:
    """The dictionary at the parameters found, the results there, and what is known about each parameter."""

    dictionary: Dictionary
    results: list[Result]
    kernel: Basis | None = None
    parameters: dict[str, ParameterStatus] | None = None


def learn_kernel(
    task: Task, dictionary: Dictionary, make: Callable[[Dictionary], Problems], settings: Sequence[Settings]
) -> Learned:
    """Learn the parameters of the kernels in the dictionary with the rest of the model."""
    if dictionary.functions is None:
        raise ValueError(f"gamma={task.gamma!r} needs a kernel with parameters; the columns of X have none")
    functions = dictionary.functions
    if task.gamma == "ard":
        functions = _spread_out(functions.per_input(), task.X)
    if not functions.parameters:
        raise ValueError(
            f"gamma={task.gamma!r} needs a kernel with parameters that have derivatives, such as 'rbf'; "
            f"got {dictionary.basis!r}"
        )
    extent = np.ptp(task.X, axis=0)
    prior = _prior(functions.parameters, extent)
    family = Family(task.X, dictionary, functions, make)
    first = np.clip(np.log([p.value for p in functions.parameters]), prior.lower, prior.upper)
    alone = np.array([p.feature is not None and extent[p.feature] > 0.0 for p in functions.parameters])
    longest = np.where([p.length > 0 for p in functions.parameters], prior.upper, prior.lower)
    off = np.where(alone, longest, np.nan)
    lengths = np.array([float(p.length) for p in functions.parameters])
    learner = Learner(family, task.solver, settings, prior, task.generator(), off, lengths)
    path = [np.clip(first + np.log(factor) * lengths, prior.lower, prior.upper) for factor in _PATH]
    path += _one_input(first, off, functions.parameters)
    draws = task.restarts().standard_normal((task.n_restarts, len(first)))
    chain = learner.learn(path, list(np.clip(first + _JITTER * draws, prior.lower, prior.upper)))
    parameters = _judge(learner, chain, functions.parameters, extent)
    results = [_concluded(result, chain, k, parameters) for k, result in enumerate(chain.results)]
    if learner.interrupted:
        results = [replace(result, status=Status.INTERRUPTED) for result in results]
    kernel = _settled(dictionary.basis, family.at(chain.log_theta))
    return Learned(replace(family.rebuilt(chain.log_theta), basis=kernel), results, kernel, parameters)


def solve_laplace(
    task: Task, dictionary: Dictionary, make: Callable[[Dictionary], Sequence[LaplaceProblem]]
) -> Learned:
    """Solve problems with Laplace's approximation, at the kernel given or with its parameters learned."""
    problems = make(dictionary)
    if task.gamma is None:
        results = [
            run(problem, task.solver, task.settings(k, warm=task.warm(k)), task.generator())
            for k, problem in enumerate(problems)
        ]
        task.leave(results)
        task.close([result.status for result in results])
        learned = Learned(dictionary, results)
    else:
        learned = learn_kernel(task, dictionary, make, [task.settings() for _ in problems])
    warn_unconverged([result.status for result in learned.results], noise=False)
    return learned


def _one_input(first: Array, off: Array, parameters: Sequence[Parameter]) -> list[Array]:
    """Places with all inputs but one switched off, where there are two inputs or a few more."""
    owner = np.array([-1 if p.feature is None else p.feature for p in parameters])
    features = np.unique(owner[np.isfinite(off)])
    if not 2 <= len(features) <= _FEW_INPUTS:
        return []
    return [np.where(np.isfinite(off) & (owner != j), off, first) for j in features]


def _spread_out(functions: Functions, X: Array) -> Functions:
    """Begin with lengths in proportion to the spread of each input, at the same length over all."""
    spread = np.std(X, axis=0)
    scale = spread / np.sqrt(np.mean(spread**2)) if np.any(spread > 0.0) else np.ones(len(spread))
    scale = np.where(scale > 0.0, scale, 1.0)
    values = [p.value * (1.0 if p.feature is None else scale[p.feature] ** p.length) for p in functions.parameters]
    return functions.with_parameters(np.array(values))


def _prior(parameters: Sequence[Parameter], extent: Array) -> LogNormal:
    """Weak priors and limits in units of the data's extent."""
    centre, low, high = [], [], []
    for p in parameters:
        whole = float(np.sqrt(np.sum(extent**2))) if p.feature is None else float(extent[p.feature])
        whole = whole if whole > 0.0 and p.length else p.value
        expected = whole / np.sqrt(12.0) if p.feature is None else _IRRELEVANT * whole
        ends = sorted(p.length * np.log([_SHORTEST * whole, _LONGEST * whole])) if p.length else np.log(p.value) + _ENDS
        centre.append(p.length * np.log(expected) if p.length else np.log(p.value))
        low.append(min(ends[0], np.log(p.value)))
        high.append(max(ends[1], np.log(p.value)))
    return LogNormal(np.array(centre), np.full(len(centre), _WIDTH), np.array(low), np.array(high))


def _judge(
    learner: Learner, chain: Chain, parameters: Sequence[Parameter], extent: Array
) -> dict[str, ParameterStatus]:
    models = learner.models(chain)
    matters = learner.matters(chain, models) if any(len(m.indices) for m in models) else np.zeros(len(parameters), bool)
    found: dict[str, ParameterStatus] = {}
    for k, p in enumerate(parameters):
        value = chain.log_theta[k]
        whole = np.sqrt(np.sum(extent**2)) if p.feature is None else extent[p.feature]
        if whole == 0.0 and p.length:
            found[p.name] = ParameterStatus.CONSTANT
        elif not matters[k]:
            found[p.name] = ParameterStatus.FLAT if learner.used(chain, k) else ParameterStatus.UNUSED
        elif np.isfinite(learner.off[k]) and not learner.live(chain.log_theta)[k]:
            found[p.name] = ParameterStatus.OFF
        elif p.feature is None and p.length * (value - p.length * np.log(_INFINITE * whole)) > 0.0:
            found[p.name] = ParameterStatus.INFINITE
        elif value <= learner.prior.lower[k] or value >= learner.prior.upper[k]:
            found[p.name] = ParameterStatus.ZERO
        elif all(abs(learner.change(chain, k, shift)) < _FLAT for shift in (-1.0, 1.0)):
            found[p.name] = ParameterStatus.FLAT
        else:
            found[p.name] = ParameterStatus.LEARNED
    return found


def _concluded(result: Result, chain: Chain, k: int, parameters: dict[str, ParameterStatus]) -> Result:
    """The result of one problem with the history of its whole chain and a word on the kernel."""
    every_off = all(status is ParameterStatus.OFF for status in parameters.values())
    lost = every_off or any(status.degenerate for status in parameters.values())
    status = Status.KERNEL if lost and result.status is Status.CONVERGED else result.status
    certificate = replace(
        result.certificate,
        objective=result.certificate.log_evidence + chain.objective - _evidence(chain),
        start=chain.number,
    )
    history = chain.histories[k]
    return replace(result, status=status, certificate=certificate, history=history, n_iter=chain.n_iter[k])


def _evidence(chain: Chain) -> float:
    return sum(r.certificate.log_evidence for r in chain.results)


def _settled(basis: Basis | None, functions: Functions) -> Basis | None:
    """The basis with the parameters learned."""
    if basis is None:
        return None
    learned: Any = clone(basis)
    return learned.set_params(**functions.settings)
