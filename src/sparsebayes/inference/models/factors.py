r"""The active columns in factored form, :math:`\mathbf W^{1/2}\boldsymbol\Phi_a=\mathbf U\mathbf R`.

With them go the correlations of the whole dictionary with the orthonormal basis U, and the coordinates of the targets
in it.  Columns come and go one at a time; a function in the span of the others adds no column to U.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from sparsebayes.design import projected
from sparsebayes.inference.models.evidence import Array
from sparsebayes.inference.models.problem import GaussianProblem
from sparsebayes.inference.models.small import SmallPosterior, SmallProblem

# A column whose part outside the active span is below this fraction of its norm lies inside it: the remainder is
# rounding error, and normalising it would fill U with noise.
_IN_SPAN = 1e-13
# Functions are added together only where each has this part of its norm outside the span of all others.
_APART = 1e-3


class Factors:
    """U, R, C and z of the functions in the model, and the posterior, S and Q that follow from them exactly.

    Attributes
    ----------
    R, z : ndarray of shape (u, a), (u, T)
        Coordinates of the active columns, and of the targets, in the orthonormal basis U of u columns.
    """

    problem: Any
    indices: list[int]
    alpha: Array
    mean: Array

    def _clear(self, problem: GaussianProblem, beta: float) -> None:
        self.problem = problem
        self.beta = beta
        self.indices: list[int] = []
        self.alpha = np.zeros(0)
        rows, targets = problem.target.shape
        self._U = np.zeros((rows, 8), order="F")
        self._C: Array | None = None
        self.R = np.zeros((0, 0))
        self.z = np.zeros((0, targets))
        self._residual = problem.target.copy()
        self._post: SmallPosterior | None = None
        self._S: Array | None = None
        self._Q: Array | None = None
        self.updates = 0

    @property
    def U(self) -> Array:
        """Orthonormal basis of the active columns, (rows, u)."""
        return self._U[:, : len(self.R)]

    @property
    def C(self) -> Array:
        """Correlations of the dictionary with that basis, (u, M), made when a move first needs them."""
        return self._correlations()[: len(self.R)]

    def _correlations(self) -> Array:
        """Storage of C."""
        if self._C is None:
            found: Array = self.problem.correlate(self.U).T
            spare = self._U.shape[1] - len(self.R)
            self._C = np.vstack([found, np.zeros((spare, found.shape[1]))]) if spare else found
        return self._C

    @property
    def rest(self) -> float:
        """Sum of squares of the targets outside the span of U."""
        return float(np.sum(self._residual**2)) + self.problem.unexplained

    def posterior(self, alpha: Array | None = None, beta: float | None = None) -> SmallPosterior:
        """Exact small posterior at other hyperparameters of the same functions (cost O(a³), no data touched)."""
        if alpha is None and beta is None and self._post is not None:
            return self._post
        alpha = self.alpha if alpha is None else alpha
        beta = self.beta if beta is None else beta
        return SmallPosterior.of(self.small, alpha, beta)

    @property
    def small(self) -> SmallProblem:
        """What the posterior follows from."""
        return SmallProblem(self.R, self.z, self.rest)

    @property
    def S(self) -> Array:
        """Sparsity of every function."""
        if self._S is None:
            self._score()
        return self._S  # pyright: ignore[reportReturnType]

    @property
    def Q(self) -> Array:
        """Quality of every function."""
        if self._Q is None:
            self._score()
        return self._Q  # pyright: ignore[reportReturnType]

    def _score(self) -> None:
        """S and Q exactly from the factors (T&F eqs 24, 25); where C is not held, two numbers come back for each."""
        beta, problem = self.beta, self.problem
        if not self.indices:
            self._S, self._Q = beta * problem.sqnorms, beta * problem.projection
            return
        mixing, fitted = beta * (self.R @ self.posterior().root), self.R @ self.mean
        if self._C is None:
            explained, squares = problem.project(self.U @ fitted, self.U @ mixing)
        else:
            C, rows = self.C, np.hstack([fitted, mixing]).T  # T&F eq. 24: β Σ^{1/2}ᵀ Φᵀ W φ_m
            explained, squares = projected(lambda some: rows @ C[:, some], fitted.shape[1], C.shape[1])
        self._S = beta * problem.sqnorms - squares
        if self._Q is None:  # a fragile model has found it from the residuals of the data
            self._Q = beta * (problem.projection - explained)

    def _grown(self, i: int) -> tuple[Array, Array, Array, Array]:
        """What enlarges the basis by column i, (rows, 0 or 1), its coefficients in the old one, and R and z then."""
        u, a = self.R.shape
        phi = self.problem.columns(np.array([i]))
        inner = np.zeros((u, 1))
        for _ in range(2):  # twice is enough (Kahan-Parlett)
            step = self.U.T @ phi
            phi = phi - self.U @ step
            inner += step
        rho = float(np.linalg.norm(phi))
        if rho <= _IN_SPAN * np.sqrt(self.problem.sqnorms[i]):
            return phi[:, :0], inner[:, 0], np.hstack([self.R, inner]), self.z
        new = phi / rho
        R = np.zeros((u + 1, a + 1))
        R[:u, :a], R[:u, a:], R[u, a] = self.R, inner, rho
        return new, inner[:, 0], R, np.vstack([self.z, new.T @ self._residual])

    def _append(self, i: int, alpha: float) -> tuple[Array, float]:
        """Orthogonalise column i against U; return its coefficients, and the norm of what enlarges the basis."""
        u, self._post = len(self.R), None
        new, inner, self.R, self.z = self._grown(i)
        self.indices.append(i)
        self.alpha = np.append(self.alpha, alpha)
        if not new.shape[1]:
            return inner, 0.0
        self._reserve(u + 1)
        self._U[:, u : u + 1] = new
        if self._C is not None:
            self._C[u] = self.problem.correlate(new)[:, 0]
        self._residual -= new @ self.z[u:]
        return inner, float(self.R[u, -1])

    def _joined(self, functions: list[int]) -> tuple[Array, Array, Array] | None:
        """Columns that enlarge U by these functions, with R and z then; None where they are nearly dependent."""
        columns = self.problem.columns(np.array(functions, dtype=np.intp))
        inner = np.zeros((len(self.R), len(functions)))
        for _ in range(2):  # twice is enough (Kahan-Parlett)
            step = self.U.T @ columns
            columns = columns - self.U @ step
            inner += step
        fresh, triangle = np.linalg.qr(columns)
        if np.min(np.abs(np.diagonal(triangle)) / np.sqrt(self.problem.sqnorms[functions])) < _APART:
            return None
        R = np.block([[self.R, inner], [np.zeros((len(functions), self.R.shape[1])), triangle]])
        return fresh, R, np.vstack([self.z, fresh.T @ self._residual])

    def _join(self, functions: list[int], alpha: Array, fresh: Array, R: Array, z: Array) -> None:
        """Take in functions whose columns were factored by ``_joined``."""
        u, self._post = len(self.R), None
        self._reserve(len(R))
        self._U[:, u : len(R)] = fresh
        self._correlations()[u : len(R)] = self.problem.correlate(fresh).T
        self._residual -= fresh @ z[u:]
        self.R, self.z = R, z
        self.indices += functions
        self.alpha = alpha

    def _drop(self, positions: list[int]) -> None:
        """Remove columns from the factors; the span shrinks, so what it explained returns to the residual."""
        u, self._post = len(self.R), None
        keep = [k for k in range(len(self.indices)) if k not in positions]
        b = min(u, len(keep))
        q, r = np.linalg.qr(self.R[:, keep], mode="complete")
        z = q.T @ self.z
        self._residual += self.U @ (q[:, b:] @ z[b:])
        if self._C is not None:
            self._C[:b] = q[:, :b].T @ self._C[:u]
        self._U[:, :b] = self.U @ q[:, :b]
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
        U[:, :capacity] = self._U
        self._U = U
        if self._C is not None:
            C = np.zeros((enlarged, self._C.shape[1]))
            C[:capacity] = self._C
            self._C = C
