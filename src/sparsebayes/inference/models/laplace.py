r"""Laplace's approximation: every non-Gaussian likelihood as a weighted Gaussian problem at its mode.

A function of a problem with K outputs is a pair (column m, output k), numbered :math:`kM + m`.  At the mode the problem
is Gaussian with the rows' curvature as weights (T&F eqs 11-14) and :math:`Q = \boldsymbol\Phi^\top\nabla\log p`.  A
term :math:`-qD` beside :math:`q^2` makes the slope of the evidence exact although :math:`\log|\boldsymbol\Sigma^{-1}|`
moves with the mode (docs/classification.md, section 4).  A move stands only if the evidence at the new mode rises.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sparsebayes.inference.models.evidence import Array, Statistics, alpha_hessian, best_moves
from sparsebayes.inference.models.interface import Active
from sparsebayes.inference.models.linalg import cholesky, condition, inverse_upper, largest, solve_cholesky
from sparsebayes.inference.models.mode import LaplaceProblem, Mode, Point, find_mode
from sparsebayes.inference.models.nearest import nearest_root
from sparsebayes.inference.models.screening import Measured

# An addition that does not gain enough is tried again with the precision this many times larger.
_WEAKER = (1.0, 4.0, 16.0, 64.0)
# Joint steps of one sweep at most, and the shortest part of a step that is tried: where rows saturate, the evidence has
# ridges this sharp.
_SWEEP_STEPS = 40
_SHORTEST = 1e-4
_SHORTER = 0.3
# How far one step may move a log precision, and the least curvature that it assumes.
_REACH = 3.0
_FLATTEST = 0.02
# Cosine between a step and the fall of the gradient below which nothing is learned from it.
_CURVED = 1e-3
# A function whose weight the data determine to a smaller part than this is zero: whether a sweep left it or a deletion
# took it is rounding.
_IDLE = 1e-8
# Part of a function that the model must leave over.  With less the inner products of the model's functions, in which
# their condition is squared, decide by rounding: covariances of nearly dependent functions lost the variance of outputs
# (rows of weight 10⁴: 20 where it is .0003), and their search took thirty times as long.
_RESOLVED = 1e-12
# Standard errors that a gain of rows that are left out must be above zero to count.
_CLEARLY = 2.0
# How closely the precisions of a model of up to so many functions are settled in the end, in nats: that makes it depend
# on the data and hardly on the way to it.
_CLOSE, _FEW = 1e-12, 40


class LaplaceActive(Active):
    """The functions in the model, at the mode of their posterior."""

    approximate = True

    def __init__(self, mode: Mode) -> None:
        self._mode, self._columns = mode, mode.point.columns
        self.problem, self.indices, self.beta = self._columns.problem, self._columns.indices, 1.0
        self.mean, self.alpha, self._root = mode.mean, mode.alpha, inverse_upper(mode.factor)
        self.covariance = self._root @ self._root.T

    @classmethod
    def from_model(
        cls, problem: LaplaceProblem, indices: Sequence[int] = (), alpha: Array | None = None, mean: Array | None = None
    ) -> LaplaceActive:
        """Posterior of a given model, computed from nothing but the data; its mode where that is known already."""
        columns, precisions = problem.active(list(indices)), np.zeros(0) if alpha is None else alpha
        if mean is None:
            return cls(find_mode(columns.at(np.zeros(len(precisions))), precisions))
        return cls(Mode(columns.at(mean), precisions))

    def like(
        self, problem: Any, indices: list[int], alpha: Array, *, beta: float | None = None, mean: Array | None = None
    ) -> LaplaceActive:
        """The model of these functions; it has no noise."""
        return LaplaceActive.from_model(problem, indices, alpha, mean)

    def linearised(self) -> tuple[Array, Array, Array, Array]:
        """At the mode (T&F eqs 24-25)."""
        directions = self._columns.directions(*self._expansion)
        found = (directions.place.fetch(list(each)) for each in directions.moments(self.problem.design))
        products, norms = (np.concatenate(parts) for parts in zip(*found, strict=True))
        inner = products[:, 2:]
        return norms - np.einsum("ma,ma->m", inner, inner), products[:, :1], inner @ self._root.T, norms

    def beside(self, numbers: NDArray[np.intp], others: NDArray[np.intp]) -> tuple[Array, Array]:
        """At the mode, the others without weight."""
        columns = self.problem.parent.active([*numbers.tolist(), *others.tolist()])
        point = columns.at(np.concatenate([self.mean, np.zeros(len(others))]))
        return point.gram, point.slope[:, None]

    def recompute(self) -> LaplaceActive:
        """The same functions on the data, the precisions of a few of them settled closely.

        The mode is found again from where it was: from zero Newton's method can rest far from one that is hardly known.
        """
        problem, indices = self.problem.whole(self.indices)
        active = LaplaceActive(find_mode(problem.active(indices).at(self.mean), self.alpha))
        stays = active.well_determined > _IDLE
        active = active if np.all(stays) else active.restricted(stays)
        return active.settled(_CLOSE if active.size <= _FEW else np.inf)

    def evidence(self) -> float:
        """Laplace's log evidence."""
        return self._mode.evidence

    def condition_number(self) -> float:
        """Of the posterior precision scaled to unit diagonal."""
        return condition(self._mode.factor)

    def nearest_covariance(self) -> Array:
        """Covariance of the Gaussian about the mode that is nearest to the posterior (``nearest.py``); of classes."""
        root = nearest_root(lambda root: self._columns.expected_gram(self.mean, root), self.alpha, self._root)
        return root @ root.T

    def best_share(self, shares: Sequence[float]) -> float:
        """The share of the covariance with which rows of two classes, each left out, are predicted best.

        It is the first one where no other gains clearly more: the functions were chosen on the same rows.
        """
        gain, square = self._columns.left_out_gains(self.mean, self.covariance, shares)
        return shares[int(np.argmax(np.where(gain > _CLEARLY * np.sqrt(square), gain, 0.0)))]

    # -- statistics ----------------------------------------------------------------------------------------

    def inside(self) -> tuple[Array, Array]:
        """``S`` and ``Q`` of the functions in the model, from small matrices alone."""
        data = self._mode.point.gram
        S = np.diagonal(data) - np.einsum("ij,ij->i", data @ self.covariance, data)
        return S, (self.alpha * self.mean)[:, None]

    def statistics(self) -> Statistics:
        """Statistics of all functions at the mode."""
        return self._statistics

    @cached_property
    def _statistics(self) -> Statistics:
        outside = self.problem.eligible
        outside[self.indices] = False
        return self._scored(self.problem, self._columns.screen(*self._expansion, outside), self.indices)

    def promising(self, count: int) -> tuple[NDArray[np.intp], Array]:
        """Columns outside the working set that gain most, and what each would gain."""
        parent = self.problem.parent
        design = parent.design if parent.stand_in is None else parent.stand_in
        measured = self._columns.measure(parent, design, *self._expansion)
        found = self._scored(parent, measured, self.problem.lift(self.indices))
        _, gain = best_moves(found.alpha, found.s, found.q2, 1, parent.inclusion_cost)
        by_column = np.max(np.where(found.movable, gain, 0.0).reshape(parent.n_outputs, -1), axis=0)
        by_column[self.problem.members] = 0.0
        gaining = np.flatnonzero(by_column > 0.0)
        best = gaining[largest(by_column[gaining], count)]
        return best, by_column[best]

    def _scored(self, problem: LaplaceProblem, found: Measured, indices: list[int]) -> Statistics:
        """Statistics of all functions of a problem, in which those of the model have these numbers."""
        movable = problem.eligible & (found.s > _RESOLVED * found.norm) & (found.norm > 0.0)
        return self._completed(found.s.copy(), found.q2, movable, indices)

    # -- moves: each stands only if the true evidence rises ------------------------------------------------

    def changed(self, i: int, alpha: float, at_least: float = 0.0) -> LaplaceActive | None:
        """With this precision of function i, of an addition this or a larger one."""
        if i not in self.indices:
            return self.joined([i], np.array([alpha]), at_least)
        others = np.array(self.indices) != i
        if np.isfinite(alpha):
            return self._tried(self._mode.point, np.where(others, self.alpha, alpha))
        return self._tried(self._left(others), self.alpha[others], -self.problem.inclusion_cost)

    def joined(self, functions: list[int], alpha: Array, at_least: float) -> LaplaceActive | None:
        r"""With several functions more, at precisions with which that gains ``at_least``.

        The predicted precisions may be too small where rows saturate; then larger ones are tried, as long as the slope
        of the evidence in :math:`1/\alpha_i` promises enough.
        """
        found = self.statistics()
        start = self.problem.active([*self.indices, *functions]).at(np.append(self.mean, np.zeros(len(functions))))
        promise = 0.5 * float(np.sum((found.q2[functions] - found.s[functions]) / alpha))
        at_least += len(functions) * self.problem.inclusion_cost
        for weaker in _WEAKER:
            if weaker > 1.0 and promise / weaker <= at_least:
                break
            larger = self._tried(start, np.append(self.alpha, weaker * alpha), at_least)
            if larger is not None:
                return larger
        return None

    def settled(self, tol: float, *, learn_noise: bool = False) -> LaplaceActive:
        r"""With all :math:`\log\alpha` at their joint maximum, and without functions that have no relevance there.

        By a quasi-Newton method (BFGS) on the exact gradient, from the Hessian of the linearised problem; every step
        stands only if the true evidence rises.
        """
        model, inverse, done = self, None, False
        needed: set[int] = set()  # without which it would be worse: not tried again with the same company
        for _ in range(_SWEEP_STEPS):
            if done:
                needed.clear()
            smaller = model._relevant(needed)
            if smaller is not None:
                model, inverse = smaller, None
            if done or not model.size:
                break
            fresh = inverse is None
            model, inverse, done = model._stepped(model._flat_inverse() if inverse is None else inverse, tol)
            done |= fresh and inverse is None
        changed = model.evidence() > self.evidence() or model.size < self.size
        return model if changed else self

    def _flat_inverse(self) -> Array:
        """Inverse of the negative Hessian of the linearised problem, made positive definite and bounded."""
        values, vectors = np.linalg.eigh(-alpha_hessian(self.covariance, self.mean[:, None], self.alpha))
        return (vectors / np.maximum(np.abs(values), _FLATTEST)) @ vectors.T

    def _stepped(self, inverse: Array, tol: float) -> tuple[LaplaceActive, Array | None, bool]:
        """The model after one joint step, or as much of it as ascends.

        With it come the inverse Hessian for the next step, None where no part of this one ascends, and whether the step
        promised less than ``tol``, or brought less although it was made in full.
        """
        gradient, part = self.gradient(), 1.0
        step = inverse @ gradient
        step *= min(1.0, _REACH / float(np.max(np.abs(step), initial=0.0) or 1.0))
        if 0.5 * float(gradient @ step) < tol:
            return self, inverse, True
        while part > _SHORTEST:
            there = self._tried(self._mode.point, self.alpha * np.exp(part * step))
            if there is not None:
                learned = _learn(inverse, part * step, gradient - there.gradient())
                return there, learned, there.evidence() - self.evidence() < tol and part == 1.0
            part *= _SHORTER
        return self, None, False

    def _relevant(self, needed: set[int]) -> LaplaceActive | None:
        """Without all functions that have no relevance; None where that lowers the objective, and they are needed."""
        s, q2 = self.leave_one_out()
        stays = q2 > s
        idle = {self.indices[j] for j in np.flatnonzero(~stays)}
        if idle <= needed:
            return None
        spared = len(idle) * self.problem.inclusion_cost
        smaller = self.restricted(stays)
        if smaller.evidence() >= self.evidence() - spared:
            return smaller
        needed |= idle
        return None

    def moved(self, alpha: Array, beta: float) -> LaplaceActive:
        """At other precisions; there is no noise level."""
        return LaplaceActive(find_mode(self._mode.point, alpha))

    def restricted(self, stays: NDArray[np.bool_]) -> LaplaceActive:
        """With some of its functions only."""
        return LaplaceActive(find_mode(self._left(stays), self.alpha[stays]))

    def _left(self, stays: NDArray[np.bool_]) -> Point:
        r"""Some of the functions, about where their mode is once the others are zero.

        With the others d and the rest r it is at :math:`w_r - \Sigma_{rd}\Sigma_{dd}^{-1}w_d` to first order.
        """
        goes = ~stays
        pull = solve_cholesky(cholesky(self.covariance[np.ix_(goes, goes)]), self.mean[goes])
        columns = self.problem.active(self._kept(stays))
        return columns.at(self.mean[stays] - self.covariance[np.ix_(stays, goes)] @ pull)

    def gradient(self) -> Array:
        r"""Derivative of the evidence with respect to :math:`\log\alpha` of the functions in the model."""
        return 0.5 * (1.0 - self.alpha * (self.variance + self.squared_mean()))

    def _tried(self, start: Point, alpha: Array, at_least: float = 0.0) -> LaplaceActive | None:
        """The model of these functions and precisions, if its evidence is higher by more than ``at_least``."""
        mode = find_mode(start, alpha)
        return LaplaceActive(mode) if mode.evidence > self.evidence() + at_least else None

    @cached_property
    def _expansion(self) -> tuple[Point, Any, Array, Array]:
        # The point at the mode, the change of log|Σ⁻¹| with the outputs, a root of Σ, and its change with the weights.
        change, bend = self._columns.bend(self._mode.point, self.covariance)
        return self._mode.point, change, self._root, bend

    @cached_property
    def follows(self) -> Array:
        r""":math:`\boldsymbol\Sigma\mathbf c`, which the mode adds to the slope of the evidence."""
        return self.covariance @ self._expansion[-1]


def _learn(inverse: Array, step: Array, change: Array) -> Array:
    """The inverse Hessian after a step along which the gradient fell by ``change`` (BFGS)."""
    along = float(step @ change)
    if along <= _CURVED * float(np.linalg.norm(step) * np.linalg.norm(change)):
        return inverse
    mixed = np.eye(len(step)) - np.outer(step, change) / along
    return mixed @ inverse @ mixed.T + np.outer(step, step) / along
