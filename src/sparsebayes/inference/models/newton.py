"""The mode of a non-Gaussian posterior, by damped Newton steps on the active columns."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Protocol, TypeVar

import numpy as np

from sparsebayes.inference.models.evidence import Array, log_evidence
from sparsebayes.inference.models.linalg import cholesky, log_det, solve_cholesky
from sparsebayes.inference.models.mode import Point

_NEWTON_STEPS = 200
# Newton stops when a full step would raise the log posterior by less than this (nats, relative to its size).
_NEWTON_DECREMENT = 1e-10
_ROUGH_DECREMENT = 1e-7
# Where next to nothing holds weights of classes that can be separated, steps do no more than halve what is left: as
# many of them at most are made below what the height resolves, until less than this is left to gain.
_SLOW_STEPS, _SETTLED = 12, 1e-14
# The shortest part of a step, and the part of what it promises that it must bring.
_SHORTEST, _ENOUGH = 1e-12, 1e-4
# Directions of conjugate gradients at most, and what part of the squared residual they leave.
_DIRECTIONS, _LEFT = 25, 1e-3


@dataclass(frozen=True)
class Mode:
    """Weights on the way to the mode of their posterior, or there: the likelihood, and Laplace's evidence."""

    point: Point
    alpha: Array

    def moved(self, step: Array, length: float) -> Mode:
        """A part of a step away."""
        return Mode(self.point.columns.at(self.mean + length * step), self.alpha)

    @property
    def mean(self) -> Array:
        """The weights, (a,)."""
        return self.point.weights

    @property
    def height(self) -> float:
        """The log posterior up to a constant (T&F eq. 10)."""
        return self.point.fit - 0.5 * float(self.alpha @ self.mean**2)

    @cached_property
    def precision(self) -> Array:
        """Of the posterior, by Laplace (T&F eq. 11)."""
        precision = self.point.gram.copy()
        precision.flat[:: len(precision) + 1] += self.alpha
        return precision

    @cached_property
    def factor(self) -> Array:
        """Its upper Cholesky factor."""
        return cholesky(self.precision)

    @cached_property
    def evidence(self) -> float:
        """Laplace's evidence, where this is the mode."""
        return log_evidence(self.point.fit, self.mean, self.alpha, log_det(self.factor))


def find_mode(start: Point, alpha: Array) -> Mode:
    """Damped Newton to the mode of the posterior (T&F eq. 10), which is strictly concave, from a warm start."""
    # In a working set the mode is found only as closely as decisions need; what is reported is computed again.
    exact = start.columns.problem.parent is None
    enough, last = (_NEWTON_DECREMENT, 2) if exact else (_ROUGH_DECREMENT, 1)
    here, final = Mode(start, alpha), 0
    for _ in range(_NEWTON_STEPS if len(alpha) else 0):
        gradient = here.point.slope - alpha * here.mean
        step = solve_cholesky(here.factor, gradient)
        decrement = float(gradient @ step)
        # Convergence is quadratic: two full steps, below what the height can resolve, settle log|Σ| to the last digits.
        final += decrement <= enough * max(1.0, abs(here.height))
        move = partial(here.moved, step)
        there = move(1.0) if final else line_search(move, here.height, decrement)
        if there is None:
            break
        here = there
        if final >= last and (decrement <= _SETTLED or not exact or final == _SLOW_STEPS):
            break
    return here


class Climbed(Protocol):
    """Somewhere on the way up."""

    @property
    def height(self) -> float:
        """What is to be large."""
        ...


C = TypeVar("C", bound=Climbed)


def line_search(at: Callable[[float], C], height: float, promise: float) -> C | None:
    """Where the largest of 1, ½, ¼, … of a step that ascends enough (Armijo) leads; None if none does.

    ``at`` says where a part of the step leads, ``promise`` is the product of all of it with the gradient.
    """
    length = 1.0
    while length > _SHORTEST:
        there = at(length)
        if there.height >= height + _ENOUGH * length * promise:
            return there
        length *= 0.5
    return None


def conjugate_gradients(
    curve: Callable[[Array], Array], right: Array, scaled: Callable[[Array], Array]
) -> tuple[Array, bool]:
    """Solve ``curve(step) = right`` roughly, preconditioned by ``scaled``; and whether few directions were enough."""
    found, left = np.zeros_like(right), right
    towards = scaled(left)
    direction, size = towards, float(np.vdot(left, towards))
    enough = _LEFT * size
    for _ in range(_DIRECTIONS if size > 0.0 else 0):
        curved = curve(direction)
        length = size / float(np.vdot(direction, curved))
        found, left = found + length * direction, left - length * curved
        towards = scaled(left)
        before, size = size, float(np.vdot(left, towards))
        if size <= enough:
            break
        direction = towards + (size / before) * direction
    return found, size <= enough
