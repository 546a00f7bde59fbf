r"""The small posterior of the active set: add, re-estimate, delete.

The active columns are kept in factored form, :math:`\mathbf W^{1/2}\boldsymbol\Phi_a = \mathbf U\mathbf R` with
orthonormal :math:`\mathbf U`, together with the correlations :math:`\mathbf C = \mathbf U^\top\mathbf
W^{1/2}\boldsymbol\Phi` of the whole dictionary.  Every statistic then follows from small matrices: with the QR
factorisation of :math:`[\sqrt\beta\mathbf R; \mathbf A^{1/2}]` the condition number of the posterior precision
enters under a square root, which is what makes dictionaries such as the linear spline safe in double precision
(forming :math:`\boldsymbol\Phi^\top\boldsymbol\Phi` would square it).  Between exact refreshes the statistics are
carried by the rank-one formulae of Tipping & Faul 2003, Appendix A.
"""

from __future__ import annotations

import copy
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sparsebayes.inference.evidence import Array, Statistics, best_moves, leave_one_out, log_evidence
from sparsebayes.inference.interface import Active
from sparsebayes.inference.linalg import inverse_upper, log_det
from sparsebayes.inference.problem import Problem
from sparsebayes.likelihood.gaussian import gaussian_log_likelihood

# A column whose part outside the active span is below this fraction of its norm lies inside it: the remainder is
# rounding error, and normalising it would fill U with noise.
_IN_SPAN = 1e-13
# A candidate whose s is below this fraction of β‖φ‖² lies in the span of the model up to rounding: s, and with it the
# gain, has no correct digit.
_RESOLVED = 1e-14
# Largest variance inflation factor Σ_jj (α_j + β‖φ_j‖²) at which the factors alone give Q to nine digits.
_COLLINEAR = 1e5
# Exact refresh after this many rank-one updates, or as soon as the drift check says so.
_REFRESH_EVERY = 50
_DRIFT = 1e-9


@dataclass(frozen=True)
class SmallPosterior:
    r"""Posterior of the active weights at one :math:`(\boldsymbol\alpha, \beta)`.

    ``root`` is upper triangular with :math:`\boldsymbol\Sigma` = root rootᵀ.
    """

    mean: Array
    root: Array
    covariance: Array
    log_det_precision: float
    residual_sumsq: float

    @classmethod
    def solve(cls, R: Array, z: Array, rest: float, alpha: Array, beta: float) -> SmallPosterior:
        r"""Solve by QR of the stacked square roots; ``rest`` is the part of the targets outside the span of U."""
        a = len(alpha)
        if a == 0:
            return cls(np.zeros((0, z.shape[1])), np.zeros((0, 0)), np.zeros((0, 0)), 0.0, rest)
        stacked = np.zeros((2 * a, a))
        stacked[:a] = np.sqrt(beta) * R
        np.fill_diagonal(stacked[a:], np.sqrt(alpha))
        q, t = np.linalg.qr(stacked)
        root = inverse_upper(t)
        mean = root @ (q[:a].T @ (np.sqrt(beta) * z))
        residual = rest + float(np.sum((z - R @ mean) ** 2))
        return cls(mean, root, root @ root.T, log_det(t), residual)


class ActiveSet(Active):
    """Posterior of the functions in the model, and S and Q of all functions.

    Attributes
    ----------
    indices : list of int
        Functions in the model, in the order of the rows of ``covariance``.
    alpha : ndarray of shape (a,)
        Their prior precisions.
    beta : float
        Inverse noise variance.
    mean, covariance : ndarray of shape (a, T), (a, a)
        Posterior of the weights (T&F eq. 6).
    S, Q : ndarray of shape (M,), (M, T)
        Sparsity and quality of every function (T&F eqs 24-25).
    """

    def __init__(self, problem: Problem, beta: float) -> None:
        self.problem = problem
        self.beta = beta
        self.indices: list[int] = []
        self.alpha = np.zeros(0)
        rows, targets = problem.target.shape
        self._U = np.zeros((rows, 8), order="F")
        self._C = np.zeros((8, problem.n_functions))
        self.R = np.zeros((0, 0))
        self.z = np.zeros((0, targets))
        self._residual = problem.target.copy()
        self.updates = 0
        self.refresh()

    @classmethod
    def from_model(cls, problem: Problem, indices: list[int], alpha: Array, beta: float) -> ActiveSet:
        """Posterior of a given model, computed from the data."""
        active = cls(problem, beta)
        active.indices, active.alpha = list(indices), alpha.copy()
        active.rebuild()
        return active

    def recompute(self) -> ActiveSet:
        """The same model from scratch."""
        return ActiveSet.from_model(self.problem, self.indices, self.alpha, self.beta)

    def copy(self) -> ActiveSet:
        """Independent copy on the same problem."""
        twin = copy.copy(self)
        for name in ("alpha", "_U", "_C", "R", "z", "_residual", "mean", "covariance", "S", "Q"):
            setattr(twin, name, getattr(self, name).copy())
        twin.indices = list(self.indices)
        return twin

    # -- what the factors say ------------------------------------------------------------------------------

    @property
    def size(self) -> int:
        """Number of functions in the model."""
        return len(self.indices)

    @property
    def C(self) -> Array:
        """Correlations of the dictionary with the orthonormal basis of the active columns, (a, M)."""
        return self._C[: self.size]

    @property
    def rest(self) -> float:
        """Sum of squares of the targets outside the span of the active columns."""
        return float(np.sum(self._residual**2))

    @property
    def well_determined(self) -> Array:
        r""":math:`\gamma_j = 1 - \alpha_j\Sigma_{jj}`."""
        return 1.0 - self.alpha * np.diagonal(self.covariance)

    @property
    def residual_sumsq(self) -> float:
        r""":math:`\|\mathbf t - \mathbf y\|^2` (weighted), over all targets."""
        return self.rest + float(np.sum((self.z - self.R @ self.mean) ** 2))

    def posterior(self, alpha: Array | None = None, beta: float | None = None) -> SmallPosterior:
        """Exact small posterior at other hyperparameters of the same functions (cost O(a³), no data touched)."""
        alpha = self.alpha if alpha is None else alpha
        beta = self.beta if beta is None else beta
        return SmallPosterior.solve(self.R, self.z, self.rest, alpha, beta)

    def evidence(
        self, post: SmallPosterior | None = None, alpha: Array | None = None, beta: float | None = None
    ) -> float:
        """Log evidence of the model, at the given hyperparameters or at the current ones."""
        post = self.posterior(alpha, beta) if post is None else post
        alpha = self.alpha if alpha is None else alpha
        beta = self.beta if beta is None else beta
        targets = self.problem.n_targets
        fit = gaussian_log_likelihood(post.residual_sumsq, beta, targets * self.problem.n_effective)
        return log_evidence(fit, post.mean, alpha, post.log_det_precision, targets)

    def leave_one_out(self) -> tuple[Array, Array]:
        """``s`` and mean ``q²`` of the functions in the model, each with itself left out."""
        variance = np.diagonal(self.covariance)
        s, q = leave_one_out(self.alpha, variance, self.mean, self.S[self.indices], self.Q[self.indices])
        return s, np.mean(q**2, axis=1)

    def statistics(self) -> Statistics:
        """Statistics of all M functions."""
        alpha = np.full(self.problem.n_functions, np.inf)
        s = np.maximum(self.S, 0.0)
        q2 = np.mean(self.Q**2, axis=1)
        movable = self.problem.eligible & (s > _RESOLVED * self.beta * self.problem.sqnorms)
        if self.size:
            alpha[self.indices] = self.alpha
            s[self.indices], q2[self.indices] = self.leave_one_out()
            movable[self.indices] = True
        return Statistics(alpha, s, q2, movable)

    def cross(self) -> Array:
        r""":math:`\beta\boldsymbol\Phi^\top\mathbf W\boldsymbol\Phi_a\boldsymbol\Sigma`, (M, a); see ``moves.py``."""
        return self.beta * (self.C.T @ (self.R @ self.covariance))

    def condition_number(self) -> float:
        """Of the posterior precision scaled to unit diagonal."""
        if self.size == 0:
            return 1.0
        stacked = np.vstack([np.sqrt(self.beta) * self.R, np.diag(np.sqrt(self.alpha))])
        return float(np.linalg.cond(stacked / np.linalg.norm(stacked, axis=0)) ** 2)

    # -- exact computation ---------------------------------------------------------------------------------

    def refresh(self, post: SmallPosterior | None = None) -> None:
        """Recompute the posterior, S and Q exactly from the factors (T&F eqs 6, 24, 25)."""
        post = self.posterior() if post is None else post
        self.mean, self.covariance = post.mean.copy(), post.covariance.copy()
        projected = (self.beta * (self.R @ post.root)).T @ self.C  # T&F eq. 24: β Σ^{1/2}ᵀ Φᵀ W φ_m
        self.S = self.beta * self.problem.sqnorms - np.einsum("am,am->m", projected, projected)
        if self.fragile:
            self._refine()
        else:
            self.Q = self.beta * (self.problem.projection - self.C.T @ (self.R @ self.mean))
        self.updates = 0

    @property
    def fragile(self) -> bool:
        """Whether a variance inflation factor in the model is so large that rounding in the factors shows in Q."""
        precision = self.alpha + self.beta * self.problem.sqnorms[self.indices]
        return bool(np.any(precision * np.diagonal(self.covariance) > _COLLINEAR))

    def _refine(self) -> None:
        """Iterative refinement of the mean on the columns themselves, and Q from the residuals of the data."""
        columns = self.problem.columns(np.array(self.indices, dtype=np.intp))
        for _ in range(2):
            residual = self.problem.target - columns @ self.mean
            gradient = self.beta * (columns.T @ residual) - self.alpha[:, None] * self.mean
            self.mean = self.mean + self.covariance @ gradient
        self.Q = self.beta * self.problem.correlate(self.problem.target - columns @ self.mean)

    def set_hyperparameters(self, alpha: Array, beta: float, post: SmallPosterior | None = None) -> None:
        """Change all α and the noise together."""
        self.alpha, self.beta = alpha.copy(), beta
        self.refresh(post)

    def rebuild(self) -> None:
        """Factor the active columns anew from the data, then refresh."""
        a = self.size
        self._reserve(a)
        basis, self.R = np.linalg.qr(self.problem.columns(np.array(self.indices, dtype=np.intp)))
        self._U[:, :a] = basis
        self._C[:a] = self.problem.correlate(basis).T
        self.z = basis.T @ self.problem.target
        self._residual = self.problem.target - basis @ self.z
        self.refresh()

    def drift(self) -> float:
        r"""How far the updated statistics are from :math:`Q_j=\alpha_j\mu_j` and :math:`S_j=\alpha_j\gamma_j`.

        Relative to the largest :math:`|Q|` and to :math:`\beta\|\phi\|^2`.
        """
        if self.size == 0:
            return 0.0
        idx = self.indices
        scale_q = max(float(np.max(np.abs(self.Q))), np.finfo(float).tiny)
        error_q = np.max(np.abs(self.Q[idx] - self.alpha[:, None] * self.mean)) / scale_q
        error_s = np.abs(self.S[idx] - self.alpha * self.well_determined) / (self.beta * self.problem.sqnorms[idx])
        return float(max(error_q, np.max(error_s)))

    # -- the three moves -----------------------------------------------------------------------------------

    def add(self, i: int, alpha: float, at_least: float = 0.0) -> bool:
        """Add function i with precision alpha (T&F A.2); False if it already lies in the span of the model."""
        beta = self.beta
        R, C, S_i, Q_i = self.R, self.C, self.S[i], self.Q[i].copy()
        coefficients = self._append(i, alpha)  # φ_i = U r in the enlarged basis
        if coefficients is None:
            return False
        inner, rho = coefficients[:-1], coefficients[-1]
        sigma_i = 1.0 / (alpha + S_i)
        mu_i = sigma_i * Q_i
        projected = beta * (R.T @ inner)  # β Φᵀ W φ_i
        spread = self.covariance @ projected
        outside = inner - R @ spread  # e_i in the old basis; its part along the new direction is ρ
        correlation = beta * (C.T @ outside + rho * self._C[self.size - 1])  # β φ_mᵀ e_i
        grown = np.empty((self.size, self.size))
        grown[:-1, :-1] = self.covariance + sigma_i * spread[:, None] * spread  # T&F eq. 28
        grown[:-1, -1] = grown[-1, :-1] = -sigma_i * spread
        grown[-1, -1] = sigma_i
        self.covariance = grown
        self.mean = np.vstack([self.mean - spread[:, None] * mu_i, mu_i])  # T&F eq. 29
        self.S = self.S - sigma_i * correlation**2  # T&F eq. 30
        self.Q = self.Q - correlation[:, None] * mu_i  # T&F eq. 31
        self.updates += 1
        return True

    def reestimate(self, j: int, alpha: float) -> bool:
        """Give the j-th function in the model another precision (T&F A.3)."""
        kappa = 1.0 / (self.covariance[j, j] + 1.0 / (alpha - self.alpha[j]))
        self._shift(j, kappa)
        self.alpha[j] = alpha
        return True

    def delete(self, j: int) -> bool:
        """Take the j-th function out of the model (T&F A.4)."""
        self._shift(j, 1.0 / self.covariance[j, j])
        keep = [k for k in range(self.size) if k != j]
        self.covariance = self.covariance[np.ix_(keep, keep)]
        self.mean = self.mean[keep]
        self._drop([j])
        return True

    def restrict(self, stays: NDArray[np.bool_]) -> None:
        """Delete several functions at once."""
        self._drop(np.flatnonzero(~stays).tolist())
        self.refresh()

    def sweep(self, tol: float) -> int:
        """Re-estimate together all precisions that gain; none if that gains less than the best of them alone.

        Over the active set s and q follow from the posterior, so this costs one small factorisation.
        """
        s, q2 = self.leave_one_out()
        best, gain = best_moves(self.alpha, s, q2, self.problem.n_targets)
        changed = (gain > tol) & np.isfinite(best)
        if np.sum(changed) < 2:
            return 0
        alpha = np.where(changed, best, self.alpha)
        post = self.posterior(alpha)
        if self.evidence(post, alpha) - self.evidence() < np.max(gain[changed]):
            return 0
        self.set_hyperparameters(alpha, self.beta, post)
        return int(np.sum(changed))

    def maintain(self) -> None:
        """Refresh exactly after many updates, or when they have drifted."""
        if self.updates >= _REFRESH_EVERY or self.drift() > _DRIFT:
            self.refresh()

    def extend(self, problem: Problem) -> None:
        """Continue on a larger dictionary whose first functions are the present ones."""
        fresh = problem.correlate(self._U[:, : self.size])[self.problem.n_functions :].T
        grown = np.zeros((len(self._C), problem.n_functions))
        grown[:, : self.problem.n_functions] = self._C
        grown[: self.size, self.problem.n_functions :] = fresh
        self._C, self.problem = grown, problem
        self.refresh()

    def _shift(self, j: int, kappa: float) -> None:
        """Rank-one change of the posterior and of S, Q along weight j (T&F eqs 33-36, 38-41)."""
        column = self.covariance[:, j].copy()
        mu = self.mean[j].copy()
        correlation = self.beta * (self.C.T @ (self.R @ column))
        self.covariance = self.covariance - kappa * column[:, None] * column
        self.mean = self.mean - kappa * column[:, None] * mu
        self.S = self.S + kappa * correlation**2
        self.Q = self.Q + kappa * correlation[:, None] * mu
        self.updates += 1

    # -- the factors ---------------------------------------------------------------------------------------

    def _append(self, i: int, alpha: float) -> Array | None:
        """Orthogonalise column i against U; return its coefficients in the enlarged basis, if it enlarges it."""
        a = self.size
        self._reserve(a + 1)
        phi = self.problem.columns(np.array([i]))[:, 0]
        U = self._U[:, :a]
        norm = np.sqrt(self.problem.sqnorms[i])
        inner = np.zeros(a)
        for _ in range(2):  # twice is enough (Kahan-Parlett)
            step = U.T @ phi
            phi = phi - U @ step
            inner += step
        rho = float(np.linalg.norm(phi))
        if rho <= _IN_SPAN * norm:
            return None
        self._U[:, a] = phi / rho
        self._C[a] = self.problem.correlate(self._U[:, a : a + 1])[:, 0]
        grown = np.zeros((a + 1, a + 1))
        grown[:a, :a] = self.R
        grown[:a, a], grown[a, a] = inner, rho
        self.R = grown
        new = self._U[:, a : a + 1]
        along = new.T @ self._residual
        self._residual -= new @ along
        self.z = np.vstack([self.z, along])
        self.indices.append(i)
        self.alpha = np.append(self.alpha, alpha)
        return np.append(inner, rho)

    def _drop(self, positions: list[int]) -> None:
        """Remove columns from the factors; the span shrinks, so what it explained returns to the residual."""
        a = self.size
        keep = [k for k in range(a) if k not in positions]
        q, r = np.linalg.qr(self.R[:, keep], mode="complete")
        b = len(keep)
        U = self._U[:, :a] @ q
        z = q.T @ self.z
        self._residual += U[:, b:] @ z[b:]
        self._C[:b] = q[:, :b].T @ self._C[:a]
        self._U[:, :b] = U[:, :b]
        self.R, self.z = r[:b], z[:b]
        self.indices = [self.indices[k] for k in keep]
        self.alpha = self.alpha[keep]

    def _reserve(self, size: int) -> None:
        """Grow the storage of U and C by doubling, so that adding costs no copy on average."""
        capacity = self._U.shape[1]
        if size <= capacity:
            return
        enlarged = max(size, 2 * capacity)
        U = np.zeros((self._U.shape[0], enlarged), order="F")
        C = np.zeros((enlarged, self._C.shape[1]))
        U[:, :capacity], C[:capacity] = self._U, self._C
        self._U, self._C = U, C
