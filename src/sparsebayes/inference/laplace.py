r"""Laplace's approximation: every non-Gaussian likelihood as a weighted Gaussian problem at its mode.

A function of a problem with K outputs is a pair (column m, output k), numbered :math:`kM + m`.  At the mode
:math:`\boldsymbol\mu` of the posterior the problem is Gaussian with the rows' curvature as weights (T&F eqs 11-14) and
:math:`Q = \boldsymbol\Phi^\top\nabla\log p`.  Two things make the search honest:

* a move stands only if the *true* evidence, computed at the new mode, rises;
* :math:`\log|\boldsymbol\Sigma^{-1}|` moves with the mode.  The linearised problem ignores that, so its stationary
  points are not those of the evidence.  It adds to :math:`q^2` the term :math:`-qD`, where :math:`D_m` is the
  derivative of :math:`\log|\boldsymbol\Sigma^{-1}|` with respect to :math:`w_m` while the other weights follow to their
  mode; that makes the slope of the evidence in every :math:`\alpha` exact, for one more product with the design.
"""

from __future__ import annotations

import copy

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize

from sparsebayes.design import Design
from sparsebayes.inference.evidence import Array, Statistics, best_alpha, best_moves, leave_one_out
from sparsebayes.inference.interface import Active
from sparsebayes.inference.linalg import cholesky, inverse_upper
from sparsebayes.inference.mode import ActiveColumns, LaplaceProblem, Mode, find_mode, mode_at

_RESOLVED = 1e-14
# An addition that does not gain enough is tried again with the precision this many times larger.
_WEAKER = (1.0, 4.0, 16.0, 64.0)
# How far one sweep may move a log precision; what wants to go further is for deletion to decide.
_REACH = 6.0
_SWEEP_STEPS = 20
_RELAXATIONS = 4
# Models up to this size have their precisions polished in the end, until the gradient is this small; a step may lower
# the evidence by rounding alone.
_POLISHED = 40
_POLISHING_STEPS = 12
_DIFFERENCE = 1e-5
_STATIONARY = 1e-10
# A function whose weight the data determine to a smaller part than this is zero: whether a sweep left it or a deletion
# took it is rounding.
_IDLE = 1e-8
_ROUNDING = 1e-12


class LaplaceActive(Active):
    """The functions in the model, at the mode of their posterior.

    Attributes
    ----------
    indices, alpha : list of int, ndarray
        Functions in the model and their precisions.
    mean, covariance : ndarray of shape (a,), (a, a)
        Laplace's approximation of the posterior.
    """

    approximate = True

    def __init__(self, problem: LaplaceProblem) -> None:
        self.problem = problem
        self.beta = 1.0
        self.alpha = np.zeros(0)
        self._columns = problem.active([])
        self._commit(self._columns, self.alpha, find_mode(self._columns, self.alpha, np.zeros(0)))

    @classmethod
    def from_model(
        cls, problem: LaplaceProblem, indices: list[int], alpha: Array, mean: Array | None = None
    ) -> LaplaceActive:
        """Posterior of a given model, computed from nothing but the data; its mode where that is known already."""
        active = cls(problem)
        columns = problem.active(indices)
        mode = find_mode(columns, alpha, np.zeros(len(alpha))) if mean is None else mode_at(columns, alpha, mean)
        active._commit(columns, alpha.copy(), mode)
        return active

    def recompute(self) -> LaplaceActive:
        """The same functions from scratch, their precisions settled to the last digits."""
        problem, indices = self.problem, self.indices
        while problem.parent is not None:
            problem, indices = problem.parent, problem.lift(indices)
        active = LaplaceActive.from_model(problem, indices, self.alpha)
        stays = active.well_determined > _IDLE
        active = active if np.all(stays) else active.restricted(stays)
        active._polish()
        return active

    def _polish(self) -> None:
        """Newton's method on the gradient of the evidence in the log precisions, with its Jacobian by differences.

        A sweep stops anywhere on a flat ridge within its tolerance, so that rounding would decide where.  This makes
        the result depend on the data alone.
        """
        if not 0 < self.size <= _POLISHED:
            return
        for _ in range(_POLISHING_STEPS):
            here, gradient = np.log(self.alpha), self.gradient()
            if np.max(np.abs(gradient)) < _STATIONARY:
                return
            shifted = [self._at(here + shift).gradient() for shift in _DIFFERENCE * np.eye(self.size)]
            jacobian = (np.array(shifted) - gradient) / _DIFFERENCE
            step = np.linalg.lstsq(jacobian.T, -gradient, rcond=1e-12)[0]
            step = step / max(1.0, float(np.max(np.abs(step))))
            trial = self._at(np.asarray(here + step, dtype=np.float64))
            if trial.evidence() < self.evidence() - _ROUNDING * max(1.0, abs(self.evidence())):
                return
            self._commit(self._columns, trial.alpha, trial._mode)

    def _at(self, log_alpha: Array) -> LaplaceActive:
        """The same functions with other precisions."""
        other, alpha = self.copy(), np.exp(log_alpha)
        other._commit(self._columns, alpha, find_mode(self._columns, alpha, self.mean))
        return other

    def copy(self) -> LaplaceActive:
        """Independent copy; nothing inside is changed in place."""
        return copy.copy(self)

    def evidence(self) -> float:
        """Laplace's log evidence."""
        return self._mode.evidence

    def condition_number(self) -> float:
        """Of the posterior precision scaled to unit diagonal."""
        if self.size == 0:
            return 1.0
        scale = np.sqrt(np.diagonal(self._mode.precision))
        return float(np.linalg.cond(self._mode.precision / np.outer(scale, scale)))

    # -- statistics ----------------------------------------------------------------------------------------

    def leave_one_out(self) -> tuple[Array, Array]:
        """``s`` and the effective ``q²`` of the functions in the model, from small matrices alone."""
        variance = np.diagonal(self.covariance)
        data = self._mode.precision - np.diag(self.alpha)
        S = np.diagonal(data) - np.einsum("ij,jk,ki->i", data, self.covariance, data)
        s, q = leave_one_out(self.alpha, variance, self.mean[:, None], S, (self.alpha * self.mean)[:, None])
        return s, q[:, 0] ** 2 - q[:, 0] * (self.covariance @ self._bend) / variance

    def statistics(self) -> Statistics:
        """Statistics of all functions at the mode, computed once for every model."""
        if self._statistics is None:
            self._statistics = self._score(self.problem, self.problem.design, self.indices)
        return self._statistics

    def promising(self, count: int) -> tuple[NDArray[np.intp], Array]:
        """Columns of the problem of which the present one is a part that gain most, and what each would gain."""
        parent = self.problem.parent
        design = parent.design if parent.stand_in is None else parent.stand_in
        found = self._score(parent, design, self.problem.lift(self.indices))
        _, gain = best_moves(found.alpha, found.s, found.q2, 1, parent.inclusion_cost)
        by_column = np.max(np.where(found.movable, gain, 0.0).reshape(parent.n_outputs, -1), axis=0)
        by_column[self.problem.members] = 0.0
        gaining = np.flatnonzero(by_column > 0.0)
        best = gaining[np.argsort(-by_column[gaining], kind="stable")][:count]
        return best, by_column[best]

    def _score(self, problem: LaplaceProblem, design: Design, indices: list[int]) -> Statistics:
        """T&F eqs 24-25 at the mode, for the functions of ``design``."""
        found = self._columns.score(problem, design, self._mode.outputs, self._change, self._root, self._bend)
        norm, q = found.norm, found.quality
        alpha = np.full(problem.n_functions, np.inf)
        s, q2 = np.maximum(norm - found.explained, 0.0), q**2 - q * found.drift
        if self.size:
            alpha[indices] = self.alpha
            s[indices], q2[indices] = self.leave_one_out()
        movable = problem.eligible & (s > _RESOLVED * norm) & (norm > 0.0)
        movable[indices] = True
        return Statistics(alpha, s, q2, movable)

    def extend(self, problem: LaplaceProblem) -> None:
        """Continue on a larger part of the parent problem, whose first columns are the present ones."""
        columns, outputs = self.problem.split(self.indices)
        indices = (outputs * problem.design.shape[1] + columns).tolist()
        self.problem = problem
        self._commit(self._columns.on(problem, indices), self.alpha, self._mode)

    # -- moves: each stands only if the true evidence rises ------------------------------------------------

    def add(self, i: int, alpha: float, at_least: float = 0.0) -> bool:
        r"""Add function i, if that gains ``at_least``.

        The predicted precision may be too small where rows saturate; then larger ones are tried, as long as the slope
        of the evidence in :math:`1/\alpha_i` (exact at zero) promises enough.
        """
        columns = self._columns.add([i])
        start = np.append(self.mean, 0.0)
        found = self.statistics()
        slope = 0.5 * float(found.q2[i] - found.s[i])
        at_least += self.problem.inclusion_cost
        for factor in _WEAKER:
            if self._try(columns, np.append(self.alpha, factor * alpha), start, at_least):
                return True
            if slope / (factor * alpha) <= at_least:
                return False
        return False

    def add_together(self, functions: list[int], alpha: Array) -> bool:
        """Add several functions at once, if that raises the objective."""
        start = np.append(self.mean, np.zeros(len(functions)))
        costs = len(functions) * self.problem.inclusion_cost
        return self._try(self._columns.add(functions), np.append(self.alpha, alpha), start, costs)

    def relax(self, tol: float) -> int:
        """Move all precisions towards the maxima of their predicted gains, as long as that gains more than ``tol``.

        Far cheaper than a sweep, and enough between two additions.
        """
        changed = 0
        for _ in range(_RELAXATIONS if self.size else 0):
            before = self.evidence()
            s, q2 = self.leave_one_out()
            best = best_alpha(s, q2)
            alpha = np.clip(best, self.alpha * np.exp(-_REACH), self.alpha * np.exp(_REACH))
            if not self._try(self._columns, alpha, self.mean):
                break
            changed = self.size
            if self.evidence() - before < tol:
                break
        return changed

    def reestimate(self, j: int, alpha: float) -> bool:
        """Give the j-th function another precision, or one nearer to its own if that does not help."""
        for fraction in (1.0, 0.5, 0.25, 0.1):
            trial = self.alpha.copy()
            trial[j] = self.alpha[j] ** (1.0 - fraction) * alpha**fraction
            if self._try(self._columns, trial, self.mean):
                return True
        return False

    def delete(self, j: int) -> bool:
        """Take the j-th function out."""
        spared = -self.problem.inclusion_cost
        return self._try(self._columns.drop(j), np.delete(self.alpha, j), np.delete(self.mean, j), spared)

    def sweep(self, tol: float) -> int:
        r"""Climb over all :math:`\log\alpha` together, by a quasi-Newton method on the exact gradient.

        :math:`\partial\mathcal L/\partial\log\alpha_j = \tfrac12[1-\alpha_j(\Sigma_{jj}+w_j^2-w_j(\Sigma c)_j)]`, where
        :math:`c` is the derivative of :math:`\log|\boldsymbol\Sigma^{-1}|` with respect to the weights.  Fixed-point
        sweeps need hundreds of modes where weights are poorly determined; this needs a dozen.
        """
        if self.size == 0:
            return 0
        here = np.log(self.alpha)
        trial = self

        def descend(log_alpha: Array) -> tuple[float, Array]:
            nonlocal trial
            trial = trial._at(log_alpha)
            return -trial.evidence(), -trial.gradient()

        bounds = [(value - _REACH, value + _REACH) for value in here]
        found = minimize(
            descend,
            here,
            jac=True,
            method="L-BFGS-B",
            bounds=bounds,
            options={"gtol": np.sqrt(tol), "ftol": 0.0, "maxiter": _SWEEP_STEPS},
        )
        changed = int(np.sum(np.abs(found.x - here) > np.sqrt(tol)))
        alpha = np.exp(found.x)
        return changed if changed and self._try(self._columns, alpha, trial.mean) else 0

    def squared_mean(self) -> Array:
        r""":math:`w_j^2 - w_j(\Sigma c)_j`, so that the slope of the evidence is exact although its mode moves."""
        return self.mean**2 - self.mean * (self.covariance @ self._bend)

    def moved(self, alpha: Array, beta: float) -> LaplaceActive:
        """A copy at other precisions; there is no noise level."""
        return self._at(np.log(alpha))

    def restricted(self, stays: NDArray[np.bool_]) -> LaplaceActive:
        """A copy with some of its functions only."""
        other, keep = self.copy(), np.flatnonzero(stays)
        columns = self._columns.keep(keep.tolist())
        other._commit(columns, self.alpha[keep], find_mode(columns, self.alpha[keep], self.mean[keep]))
        return other

    def gradient(self) -> Array:
        r"""Derivative of the evidence with respect to :math:`\log\alpha` of the functions in the model."""
        return 0.5 * (1.0 - self.alpha * (self.variance + self.squared_mean()))

    def maintain(self) -> None:
        """Nothing drifts here: every accepted move was computed from the data."""

    def _try(self, columns: ActiveColumns, alpha: Array, start: Array, at_least: float = 0.0) -> bool:
        mode = find_mode(columns, alpha, start)
        if not mode.evidence > self._mode.evidence + at_least:
            return False
        self._commit(columns, alpha, mode)
        return True

    def _commit(self, columns: ActiveColumns, alpha: Array, mode: Mode) -> None:
        self._columns, self.alpha, self._mode = columns, alpha, mode
        self._statistics: Statistics | None = None
        self.indices, self.mean = columns.indices, mode.mean
        self._root = inverse_upper(cholesky(mode.precision))
        self.covariance = self._root @ self._root.T
        self._change, self._bend = columns.bend(mode.outputs, self.covariance)  # ∂log|Σ⁻¹| by outputs, by weights
