"""The mode of a non-Gaussian posterior, by damped Newton steps on the active columns."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Protocol, TypeVar

import numpy as np

from sparsebayes.inference.models.evidence import Array, log_evidence
from sparsebayes.inference.models.linalg import cholesky, log_det, solve_cholesky
from sparsebayes.inference.models.mode import ActiveColumns, Point

_NEWTON_STEPS = 200
# Newton stops when a full step would raise the log posterior by less than this (nats, relative to its size).
_NEWTON_DECREMENT = 1e-10
_ROUGH_DECREMENT = 1e-7
# The shortest part of a step, and the part of what it promises that it must bring.
_SHORTEST, _ENOUGH = 1e-12, 1e-4
# A trial is given up where this many times the rise of the evidence in the last step would not be enough.
_HOPE = 5.0


@dataclass(frozen=True)
class Mode:
    """Mode of the posterior of the active weights, and the evidence there.

    ``factor`` is the upper Cholesky factor of the posterior precision.
    """

    mean: Array
    point: Point
    precision: Array
    factor: Array
    evidence: float

    @property
    def outputs(self) -> Any:
        """Outputs of all rows, (N, K), or whatever stands for them where the rows are elsewhere."""
        return self.point.outputs


def find_mode(active: ActiveColumns, alpha: Array, start: Array, known: Point | None = None) -> Mode:
    """Damped Newton to the mode of the posterior (T&F eq. 10), from a warm start.

    The line search makes it converge from anywhere: the log posterior is strictly concave.

    Parameters
    ----------
    active : ActiveColumns
        The functions in the model.
    alpha, start : ndarray of shape (a,)
        Their precisions, and weights to begin with.
    known : Point, optional
        A point with the outputs of these weights, where there is one.
    """
    *_, last = _newton(active, alpha, start, known)
    return last.mode(alpha)


def find_better_mode(
    active: ActiveColumns, alpha: Array, start: Array, known: Point | None, beat: float
) -> Mode | None:
    """The mode, if the evidence there is above ``beat``; None as soon as that is out of reach.

    The evidence settles as fast as Newton's method converges: where even many times what the last step brought would
    not be enough, the steps to come are not made.  That is a guess, made only in a working set.
    """
    before, last = -np.inf, None
    guess = active.problem.parent is not None
    for last in _newton(active, alpha, start, known):
        if not guess:
            continue
        here = last.evidence(alpha)
        if here + last.decrement + _HOPE * max(0.0, here - before) < beat:
            return None
        before = here
    mode = None if last is None else last.mode(alpha)
    return mode if mode is not None and mode.evidence > beat else None


def mode_at(active: ActiveColumns, alpha: Array, weights: Array) -> Mode:
    """What there is at weights that are known to be the mode."""
    return _Stage.at(_Iterate.at(active, alpha, weights), alpha).mode(alpha)


@dataclass(frozen=True)
class _Iterate:
    """Weights, the likelihood there, and the log posterior up to a constant (T&F eq. 10)."""

    weights: Array
    point: Point
    height: float

    @classmethod
    def at(cls, active: ActiveColumns, alpha: Array, weights: Array, known: Point | None = None) -> _Iterate:
        point = active.at(weights, known)
        return cls(weights, point, point.fit - 0.5 * float(alpha @ weights**2))

    def moved(self, active: ActiveColumns, alpha: Array, step: Array, length: float) -> _Iterate:
        """A part of a step away."""
        return _Iterate.at(active, alpha, self.weights + length * step)


@dataclass(frozen=True)
class _Stage:
    """An iterate on the way to the mode, the precision there, and by what Newton's next step would raise its height."""

    iterate: _Iterate
    precision: Array
    factor: Array
    decrement: float = 0.0

    @classmethod
    def at(cls, iterate: _Iterate, alpha: Array) -> _Stage:
        precision = iterate.point.gram.copy()
        precision.flat[:: len(alpha) + 1] += alpha
        return cls(iterate, precision, cholesky(precision))

    def evidence(self, alpha: Array) -> float:
        """Laplace's evidence, were this the mode."""
        return log_evidence(self.iterate.point.fit, self.iterate.weights, alpha, log_det(self.factor))

    def mode(self, alpha: Array) -> Mode:
        """This as the mode."""
        return Mode(self.iterate.weights, self.iterate.point, self.precision, self.factor, self.evidence(alpha))


def _newton(active: ActiveColumns, alpha: Array, start: Array, known: Point | None) -> Iterator[_Stage]:
    """Damped Newton steps; the last stage is the mode."""
    # In a working set the mode is found only as closely as decisions need; what is reported is computed again.
    enough, last = (_NEWTON_DECREMENT, 2) if active.problem.parent is None else (_ROUGH_DECREMENT, 1)
    here = _Iterate.at(active, alpha, start, known)
    final = 0
    for _ in range(_NEWTON_STEPS if len(alpha) else 0):
        stage = _Stage.at(here, alpha)
        gradient = here.point.slope - alpha * here.weights
        step = solve_cholesky(stage.factor, gradient)
        decrement = float(gradient @ step)
        yield replace(stage, decrement=decrement)
        # Convergence is quadratic: two full steps, below what the height can resolve, settle log|Σ| to the last digits.
        final += decrement <= enough * max(1.0, abs(here.height))
        move = partial(here.moved, active, alpha, step)
        there = move(1.0) if final else line_search(move, here.height, decrement)
        if there is None:
            break
        here = there
        if final == last:
            break
    yield _Stage.at(here, alpha)


class Climbed(Protocol):
    """Somewhere on the way up."""

    @property
    def height(self) -> float:
        """What is to be large."""
        ...


C = TypeVar("C", bound=Climbed)


def line_search(at: Callable[[float], C], height: float, promise: float) -> C | None:
    """Where the largest of 1, ½, ¼, … of a step that ascends enough (Armijo) leads; None if none does.

    Parameters
    ----------
    at : callable
        Where a part of the step leads.
    height, promise : float
        Height of its beginning, and its product with the gradient.
    """
    length = 1.0
    while length > _SHORTEST:
        there = at(length)
        if there.height >= height + _ENOUGH * length * promise:
            return there
        length *= 0.5
    return None


def conjugate_gradients(
    curve: Callable[[Array], Array], right: Array, scaled: Callable[[Array], Array], part: float, most: int
) -> tuple[Array, bool]:
    """Solve ``curve(step) = right`` by conjugate gradients, until so small a part of the squared residual is left.

    ``scaled`` preconditions; with the step comes whether it was reached in so many directions at most.
    """
    found, left = np.zeros_like(right), right
    towards = scaled(left)
    direction, size = towards, float(np.vdot(left, towards))
    enough = part * size
    for _ in range(most if size > 0.0 else 0):
        curved = curve(direction)
        length = size / float(np.vdot(direction, curved))
        found, left = found + length * direction, left - length * curved
        towards = scaled(left)
        before, size = size, float(np.vdot(left, towards))
        if size <= enough:
            break
        direction = towards + (size / before) * direction
    return found, size <= enough
