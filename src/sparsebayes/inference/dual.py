r"""The posterior in its dual form: one N×N factorisation, however many functions are in the model.

With :math:`\mathbf G = \mathbf I + \beta\boldsymbol\Phi\mathbf A^{-1}\boldsymbol\Phi^\top` (so
:math:`\mathbf C = \beta^{-1}\mathbf G`, report on Tipping 2001, eq. 11) and
:math:`\mathbf G = \mathbf T^\top\mathbf T`,

.. math::

    S_m = \beta\|\mathbf T^{-\top}\phi_m\|^2,\quad Q_m = \phi_m^\top\mathbf C^{-1}\mathbf t,\quad
    \mu_m = Q_m/\alpha_m,\quad \gamma_m = S_m/\alpha_m,\quad
    \log|\boldsymbol\Sigma^{-1}| = \log|\mathbf A| + \log|\mathbf G| .

No difference of large numbers occurs, and functions may be as dependent as they like: what is factored is never
singular.
"""

from __future__ import annotations

import copy
from typing import Self

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import solve_triangular

from sparsebayes.inference.active import ActiveSet
from sparsebayes.inference.evidence import Array, Statistics, leave_one_out, log_evidence
from sparsebayes.inference.interface import Active
from sparsebayes.inference.linalg import cholesky, inverse_upper, log_det
from sparsebayes.inference.problem import Problem
from sparsebayes.likelihood.gaussian import gaussian_log_likelihood

# Up to this bound on the condition number of G its Cholesky factor is good to ten digits; beyond, the factor comes from
# the square root of G, at twice the cost.
_WELL_CONDITIONED = 1e6
_RESOLVED = 1e-14


class DualActive(Active):
    """Gaussian posterior of any number of functions, factored over the rows.

    Moves are made by computing everything anew; ``settle`` gives the factored form for cheap single moves once there
    are no more functions than rows.
    """

    problem: Problem

    def __init__(self, problem: Problem, indices: list[int], alpha: Array, beta: float) -> None:
        self.problem = problem
        self._columns = problem.columns(np.array(indices, dtype=np.intp))
        self._set(list(indices), alpha, beta)

    def _set(self, indices: list[int], alpha: Array, beta: float) -> None:
        self.indices, self.alpha, self.beta = indices, alpha.copy(), beta
        self._factor = self._factorise()
        root = np.sqrt(beta)
        self._half = root * solve_triangular(self._factor, self._columns, trans="T", check_finite=False)
        white = root * solve_triangular(self._factor, self.problem.target, trans="T", check_finite=False)
        self._S = np.einsum("na,na->a", self._half, self._half)
        self._Q = self._half.T @ white
        self.mean = self._Q / self.alpha[:, None]
        residual = solve_triangular(self._factor, white, check_finite=False) / root  # t − y = G⁻¹t
        self.residual_sumsq = float(np.sum(residual**2))

    def _factorise(self) -> Array:
        """Upper triangular T with TᵀT = G."""
        scaled = np.sqrt(self.beta) * self._columns / np.sqrt(self.alpha)
        rows = np.eye(len(scaled))
        if 1.0 + float(np.sum(scaled**2)) <= _WELL_CONDITIONED:
            return cholesky(rows + scaled @ scaled.T)
        return np.linalg.qr(np.vstack([scaled.T, rows]), mode="r")

    # -- what the sweeps ask ---------------------------------------------------------------------------------

    def moved(self, alpha: Array, beta: float) -> Self:
        """The same functions at other hyperparameters."""
        other = self.copy()
        other._set(self.indices, alpha, beta)
        return other

    def restricted(self, stays: NDArray[np.bool_]) -> Self:
        """Some of the functions."""
        other = self.copy()
        other._columns = self._columns[:, stays]
        other._set([i for i, kept in zip(self.indices, stays, strict=True) if kept], self.alpha[stays], self.beta)
        return other

    @property
    def well_determined(self) -> Array:
        r""":math:`\gamma_m = S_m/\alpha_m`."""
        return self._S / self.alpha

    @property
    def variance(self) -> Array:
        r""":math:`\Sigma_{mm} = (1-\gamma_m)/\alpha_m`."""
        return np.maximum(1.0 - self.well_determined, 0.0) / self.alpha

    def settle(self) -> ActiveSet:
        """The same model in factored form, where it has no more functions than rows."""
        return ActiveSet.from_model(self.problem, self.indices, self.alpha, self.beta)

    # -- the interface ---------------------------------------------------------------------------------------

    @property
    def covariance(self) -> Array:
        """Posterior covariance of the weights."""
        scaled = self._half / self.alpha
        return np.diag(1.0 / self.alpha) - scaled.T @ scaled

    @property
    def R(self) -> Array:
        """The columns as their own factor: the basis of the rows is the unit one."""
        return self._columns

    @property
    def z(self) -> Array:
        """The targets in the same basis."""
        return self.problem.target

    @property
    def rest(self) -> float:
        """Nothing of the targets is outside the basis of all rows."""
        return 0.0

    def evidence(self) -> float:
        """Log evidence."""
        targets = self.problem.n_targets
        fit = gaussian_log_likelihood(self.residual_sumsq, self.beta, targets * self.problem.n_effective)
        log_det_precision = float(np.sum(np.log(self.alpha))) + log_det(self._factor)
        return log_evidence(fit, self.mean, self.alpha, log_det_precision, targets)

    def leave_one_out(self) -> tuple[Array, Array]:
        """``s`` and mean ``q²`` of the functions in the model, each with itself left out."""
        variance = np.maximum(self.variance, np.finfo(float).eps / self.alpha)
        s, q = leave_one_out(self.alpha, variance, self.mean, self._S, self._Q)
        return s, np.mean(q**2, axis=1)

    def statistics(self) -> Statistics:
        """Statistics of all M functions."""
        root = np.sqrt(self.beta) * inverse_upper(self._factor)
        half = self.problem.correlate(root)
        s = np.einsum("mn,mn->m", half, half)
        q2 = np.mean((half @ (root.T @ self.problem.target)) ** 2, axis=1)
        alpha = np.full(self.problem.n_functions, np.inf)
        movable = self.problem.eligible & (s > _RESOLVED * self.beta * self.problem.sqnorms)
        if self.size:
            alpha[self.indices] = self.alpha
            s[self.indices], q2[self.indices] = self.leave_one_out()
            movable[self.indices] = True
        return Statistics(alpha, s, q2, movable)

    def condition_number(self) -> float:
        """Of the posterior precision scaled to unit diagonal."""
        stacked = np.vstack([np.sqrt(self.beta) * self._columns, np.diag(np.sqrt(self.alpha))])
        return float(np.linalg.cond(stacked / np.linalg.norm(stacked, axis=0)) ** 2)

    def add(self, i: int, alpha: float, at_least: float = 0.0) -> bool:
        """Add function i with this precision."""
        self._columns = np.column_stack([self._columns, self.problem.columns(np.array([i]))])
        self._set([*self.indices, i], np.append(self.alpha, alpha), self.beta)
        return True

    def reestimate(self, j: int, alpha: float) -> bool:
        """Give the j-th function this precision."""
        changed = self.alpha.copy()
        changed[j] = alpha
        self._set(self.indices, changed, self.beta)
        return True

    def delete(self, j: int) -> bool:
        """Take the j-th function out."""
        self._columns = np.delete(self._columns, j, axis=1)
        self._set([i for k, i in enumerate(self.indices) if k != j], np.delete(self.alpha, j), self.beta)
        return True

    def sweep(self, tol: float) -> int:
        """None: joint updates are the business of the solver that chose this form."""
        return 0

    def maintain(self) -> None:
        """Nothing drifts: every move was computed from the data."""

    def recompute(self) -> Active:
        """The same model from the data, in factored form where it fits."""
        if self.size <= len(self.problem.target):
            return self.settle()
        return DualActive(self.problem, self.indices, self.alpha, self.beta)

    def copy(self) -> Self:
        """Independent copy; nothing inside is changed in place."""
        return copy.copy(self)
