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
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cho_solve
from scipy.optimize import minimize

from sparsebayes.design import Design
from sparsebayes.inference.evidence import Array, Statistics, leave_one_out, log_evidence
from sparsebayes.inference.interface import Active
from sparsebayes.inference.linalg import cholesky, inverse_upper, log_det
from sparsebayes.inference.problem import Index
from sparsebayes.likelihood import Likelihood

_NEWTON_STEPS = 200
# Newton stops when a full step would raise the log posterior by less than this (nats, relative to its size).
_NEWTON_DECREMENT = 1e-10
_RESOLVED = 1e-14
# An addition that does not gain enough is tried again with the precision this many times larger.
_WEAKER = (1.0, 4.0, 16.0, 64.0)
# How far one sweep may move a log precision; what wants to go further is for deletion to decide.
_REACH = 6.0
_SWEEP_STEPS = 20
# Models up to this size have their precisions polished in the end, until the gradient is this small; a step may lower
# the evidence by rounding alone.
_POLISHED = 40
_POLISHING_STEPS = 12
_DIFFERENCE = 1e-5
_STATIONARY = 1e-10
_ROUNDING = 1e-12


@dataclass(frozen=True)
class LaplaceProblem:
    """A design and a likelihood.

    Parameters
    ----------
    design : Design
        The dictionary on the rows.
    likelihood : Likelihood
        With its targets and weights.
    candidates : ndarray of bool, shape (M,)
        Columns that may enter the model.
    bias : int, optional
        Column of the constant function.
    inclusion_cost : float
        Log prior odds against a function, in nats.
    """

    design: Design
    likelihood: Likelihood
    candidates: NDArray[np.bool_]
    bias: int | None = None
    inclusion_cost: float = 0.0

    @property
    def n_outputs(self) -> int:
        """Outputs K of the likelihood."""
        return self.likelihood.shape[1]

    @property
    def n_functions(self) -> int:
        """Number of (column, output) pairs."""
        return self.design.shape[1] * self.n_outputs

    @property
    def n_targets(self) -> int:
        """One: the outputs are coupled by the likelihood, not by shared precisions."""
        return 1

    @property
    def eligible(self) -> NDArray[np.bool_]:
        """Functions that may enter the model."""
        return np.tile(self.candidates, self.n_outputs)

    def split(self, indices: list[int]) -> tuple[Index, Index]:
        """Columns and outputs of functions."""
        outputs, columns = np.divmod(np.array(indices, dtype=np.intp), self.design.shape[1])
        return columns, outputs


@dataclass(frozen=True)
class Mode:
    """Mode of the posterior of the active weights, and the evidence there."""

    mean: Array
    outputs: Array
    precision: Array
    evidence: float


class ActiveColumns:
    """The active columns and how their weights make the outputs."""

    def __init__(self, problem: LaplaceProblem, indices: list[int], values: Array | None = None) -> None:
        self.problem = problem
        self.indices = list(indices)
        columns, self.outputs = problem.split(indices)
        self.values = problem.design.columns(columns) if values is None else values
        self.groups = [np.flatnonzero(self.outputs == k) for k in range(problem.n_outputs)]

    def add(self, i: int) -> ActiveColumns:
        """With one function more."""
        column, _ = self.problem.split([i])
        values = np.column_stack([self.values, self.problem.design.columns(column)])
        return ActiveColumns(self.problem, [*self.indices, i], values)

    def drop(self, j: int) -> ActiveColumns:
        """With the j-th function left out."""
        keep = [k for k in range(len(self.indices)) if k != j]
        return ActiveColumns(self.problem, [self.indices[k] for k in keep], self.values[:, keep])

    def predict(self, weights: Array) -> Array:
        """Outputs, (N, K)."""
        y = np.zeros(self.problem.likelihood.shape)
        for k, group in enumerate(self.groups):
            y[:, k] = self.values[:, group] @ weights[group]
        return y

    def correlate(self, rows: Array) -> Array:
        """Inner product of every active function with its output's column of ``rows``, (N, K) -> (a,)."""
        return np.einsum("na,na->a", self.values, rows[:, self.outputs])

    def gram(self, blocks: Array) -> Array:
        r""":math:`\boldsymbol\Phi_a^\top\mathbf B\boldsymbol\Phi_a` for row blocks, (N, K, K)."""
        result = np.empty((len(self.indices), len(self.indices)))
        for k, left in enumerate(self.groups):
            for m, right in enumerate(self.groups[: k + 1]):
                part = self.values[:, left].T @ (blocks[:, k, m, None] * self.values[:, right])
                result[np.ix_(left, right)] = part
                result[np.ix_(right, left)] = part.T
        return result

    def spread(self, covariance: Array) -> Array:
        """Posterior covariance of the outputs of every row, (N, K, K)."""
        n, k_outputs = self.problem.likelihood.shape
        result = np.empty((n, k_outputs, k_outputs))
        for k, left in enumerate(self.groups):
            for m, right in enumerate(self.groups[: k + 1]):
                half = self.values[:, left] @ covariance[np.ix_(left, right)]
                result[:, k, m] = result[:, m, k] = np.einsum("na,na->n", half, self.values[:, right])
        return result

    def weigh(self, blocks: Array, mixing: Array) -> Array:
        r""":math:`\mathbf B_n\boldsymbol\Phi_n` times ``mixing`` for row blocks, (K, N, columns)."""
        mixed = np.stack([self.values[:, g] @ mixing[g] for g in self.groups], axis=1)  # (N, K, c)
        return np.einsum("nkl,nlc->knc", blocks, mixed)


def find_mode(active: ActiveColumns, alpha: Array, start: Array) -> Mode:
    """Damped Newton to the mode of the posterior (T&F eq. 10), from a warm start.

    The line search makes it converge from anywhere: the log posterior is strictly concave.
    """
    likelihood = active.problem.likelihood
    weights = start.copy()
    outputs = active.predict(weights)
    height = _log_posterior(active, outputs, alpha, weights)
    precision = active.gram(likelihood.curvature(outputs)) + np.diag(alpha)
    final = 0
    for _ in range(_NEWTON_STEPS if len(alpha) else 0):
        gradient = active.correlate(likelihood.gradient(outputs)) - alpha * weights
        step = cho_solve((cholesky(precision), False), gradient)
        decrement = float(gradient @ step)
        # Convergence is quadratic: two full steps, below what the height can resolve, settle log|Σ| to the last digits.
        final += decrement <= _NEWTON_DECREMENT * max(1.0, abs(height))
        length = 1.0 if final else _line_search(active, alpha, weights, step, height, decrement)
        weights = weights + length * step
        outputs = active.predict(weights)
        height = _log_posterior(active, outputs, alpha, weights)
        precision = active.gram(likelihood.curvature(outputs)) + np.diag(alpha)
        if final == 2 or length == 0.0:
            break
    evidence = log_evidence(likelihood.log_likelihood(outputs), weights, alpha, log_det(cholesky(precision)))
    return Mode(weights, outputs, precision, evidence)


def _log_posterior(active: ActiveColumns, outputs: Array, alpha: Array, weights: Array) -> float:
    """Log posterior up to a constant (T&F eq. 10)."""
    return active.problem.likelihood.log_likelihood(outputs) - 0.5 * float(alpha @ weights**2)


def _line_search(
    active: ActiveColumns, alpha: Array, weights: Array, step: Array, height: float, decrement: float
) -> float:
    """Largest of 1, ½, ¼, … that ascends enough (Armijo); zero if none does above rounding."""
    length = 1.0
    while length > 1e-12:
        trial = weights + length * step
        if _log_posterior(active, active.predict(trial), alpha, trial) >= height + 1e-4 * length * decrement:
            return length
        length *= 0.5
    return 0.0


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
        self._columns = ActiveColumns(problem, [])
        self._commit(self._columns, self.alpha, find_mode(self._columns, self.alpha, np.zeros(0)))

    @classmethod
    def from_model(cls, problem: LaplaceProblem, indices: list[int], alpha: Array) -> LaplaceActive:
        """Posterior of a given model, computed from nothing but the data."""
        active = cls(problem)
        columns = ActiveColumns(problem, indices)
        active._commit(columns, alpha.copy(), find_mode(columns, alpha, np.zeros(len(alpha))))
        return active

    def recompute(self) -> LaplaceActive:
        """The same functions from scratch, their precisions settled to the last digits."""
        active = LaplaceActive.from_model(self.problem, self.indices, self.alpha)
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
            self._statistics = self._score_dictionary()
        return self._statistics

    def _score_dictionary(self) -> Statistics:
        """T&F eqs 24-25 at the mode."""
        problem, likelihood = self.problem, self.problem.likelihood
        outputs = self._mode.outputs
        curvature = likelihood.curvature(outputs)
        design, k_outputs = problem.design, problem.n_outputs
        norms = np.concatenate([design.sqnorms(curvature[:, k, k]) for k in range(k_outputs)])
        rows = np.concatenate([likelihood.gradient(outputs), self._change], axis=1)  # two vectors for every output
        plain = design.correlate(rows)
        Q, D = plain[:, :k_outputs].T.ravel(), plain[:, k_outputs:].T.ravel()
        S = norms.copy()
        if self.size:
            root = self._root
            half = self._columns.weigh(curvature, root)
            P = np.concatenate([design.correlate(half[k]) for k in range(k_outputs)])
            S -= np.einsum("ma,ma->m", P, P)
            D = D - P @ (root.T @ self._bend)
        alpha = np.full(problem.n_functions, np.inf)
        s, q2 = np.maximum(S, 0.0), Q**2 - Q * D
        if self.size:
            alpha[self.indices] = self.alpha
            s[self.indices], q2[self.indices] = self.leave_one_out()
        movable = problem.eligible & (s > _RESOLVED * norms) & (norms > 0.0)
        movable[self.indices] = True
        return Statistics(alpha, s, q2, movable)

    # -- moves: each stands only if the true evidence rises ------------------------------------------------

    def add(self, i: int, alpha: float, at_least: float = 0.0) -> bool:
        r"""Add function i, if that gains ``at_least``.

        The predicted precision may be too small where rows saturate; then larger ones are tried, as long as the slope
        of the evidence in :math:`1/\alpha_i` (exact at zero) promises enough.
        """
        columns = self._columns.add(i)
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

    def gradient(self) -> Array:
        r"""Derivative of the evidence with respect to :math:`\log\alpha` of the functions in the model."""
        spread = np.diagonal(self.covariance) + self.mean**2 - self.mean * (self.covariance @ self._bend)
        return 0.5 * (1.0 - self.alpha * spread)

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
        spread = columns.spread(self.covariance)
        self._change = self.problem.likelihood.curvature_change(mode.outputs, spread)
        self._bend = columns.correlate(self._change)  # ∂log|Σ⁻¹|/∂w of the weights in the model
