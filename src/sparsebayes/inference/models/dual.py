r"""The posterior in its dual form: one N×N factorisation, however many functions are in the model.

With the curvature :math:`\mathbf B = \mathbf F\mathbf F^\top` of the rows (:math:`\beta\mathbf W` in regression) and
:math:`\mathbf G = \mathbf I + \mathbf F^\top\boldsymbol\Phi\mathbf A^{-1}\boldsymbol\Phi^\top\mathbf F =
\mathbf T^\top\mathbf T` (in regression :math:`\mathbf C = \beta^{-1}\mathbf G`, report on Tipping 2001, eq. 11),

.. math::

    S_m = \|\mathbf T^{-\top}\mathbf F^\top\phi_m\|^2,\quad \mu_m = Q_m/\alpha_m,\quad \gamma_m = S_m/\alpha_m,\quad
    \boldsymbol\Sigma = \mathbf A^{-1} - \mathbf A^{-1}\boldsymbol\Phi^\top\mathbf F\mathbf G^{-1}\mathbf F^\top
    \boldsymbol\Phi\mathbf A^{-1},\quad
    \log|\boldsymbol\Sigma^{-1}| = \log|\mathbf A| + \log|\mathbf G| .

No difference of large numbers occurs in these, and functions may be as dependent as they like: what is factored is
never singular.
"""

from __future__ import annotations

import copy
from abc import abstractmethod
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import solve_triangular

from sparsebayes.inference.models.active import ActiveSet
from sparsebayes.inference.models.evidence import (
    Array,
    Statistics,
    gaussian_log_likelihood,
    leave_one_out,
    log_evidence,
)
from sparsebayes.inference.models.interface import Active
from sparsebayes.inference.models.laplace import LaplaceActive
from sparsebayes.inference.models.linalg import cholesky, inverse_upper, log_det
from sparsebayes.inference.models.mode import ActiveColumns, LaplaceProblem
from sparsebayes.inference.models.newton import Mode, find_mode
from sparsebayes.inference.models.problem import GaussianProblem

# Up to this bound on the condition number of G its Cholesky factor is good to ten digits; beyond, the factor comes from
# the square root of G, at twice the cost.
_WELL_CONDITIONED = 1e6
_RESOLVED = 1e-14
# The dual form is kept while there are more functions than this fraction of the rows.
_NARROW = 0.5


def factorise(scaled: Array) -> Array:
    r"""Upper triangular T with :math:`\mathbf T^\top\mathbf T = \mathbf I + \mathbf X\mathbf X^\top`."""
    rows = np.eye(len(scaled))
    if 1.0 + float(np.sum(scaled**2)) <= _WELL_CONDITIONED:
        return cholesky(rows + scaled @ scaled.T)
    return _triangle(np.vstack([scaled.T, rows]))


def _triangle(matrix: Array) -> Array:
    """Upper triangular factor of a QR factorisation, without the other one."""
    return np.asarray(np.linalg.qr(matrix, mode="r"))


class Dual(Active):
    """Any number of functions, factored over the rows; every change computes everything anew.

    It is for joint sweeps over many functions; ``recompute`` gives the form for single moves.
    """

    _columns: Array
    _half: Array  # T⁻ᵀFᵀΦ
    _S: Array
    _Q: Array

    def __init__(self, problem: Any, indices: list[int], alpha: Array, beta: float = 1.0) -> None:
        self.problem = problem
        self._set(list(indices), self._values(indices), alpha, beta)

    @abstractmethod
    def _values(self, indices: list[int]) -> Array:
        """Columns of functions of the problem."""

    @abstractmethod
    def _solve(self) -> None:
        """Compute the posterior of the present columns, precisions and noise."""

    def _set(self, indices: list[int], columns: Array, alpha: Array, beta: float) -> None:
        self.indices, self._columns, self.alpha, self.beta = indices, columns, alpha.copy(), beta
        self._solve()
        self._S = np.einsum("na,na->a", self._half, self._half)

    def moved(self, alpha: Array, beta: float) -> Self:
        """The same functions at other hyperparameters."""
        return self._with(self.indices, self._columns, alpha, beta)

    def restricted(self, stays: NDArray[np.bool_]) -> Self:
        """Some of the functions."""
        kept = [i for i, stay in zip(self.indices, stays, strict=True) if stay]
        return self._with(kept, self._columns[:, stays], self.alpha[stays], self.beta)

    def _with(self, indices: list[int], columns: Array, alpha: Array, beta: float) -> Self:
        other = copy.copy(self)
        other._set(indices, columns, alpha, beta)
        return other

    def like(
        self, problem: Any, indices: list[int], alpha: Array, *, beta: float | None = None, mean: Array | None = None
    ) -> Self:
        """The model of these functions, factored anew."""
        return type(self)(problem, indices, alpha, self.beta if beta is None else beta)

    @property
    def well_determined(self) -> Array:
        r""":math:`\gamma_m = S_m/\alpha_m`."""
        return self._S / self.alpha

    @property
    def variance(self) -> Array:
        r""":math:`\Sigma_{mm} = (1-\gamma_m)/\alpha_m`."""
        return np.maximum(1.0 - self.well_determined, np.finfo(float).eps) / self.alpha

    @property
    def covariance(self) -> Array:  # pyright: ignore[reportIncompatibleVariableOverride]
        """Posterior covariance of the weights; only made when asked for, as it is large."""
        scaled = self._half / self.alpha
        return np.diag(1.0 / self.alpha) - scaled.T @ scaled

    def for_single_moves(self) -> Active:
        """The same model from the data, in the form for single moves."""
        return self.recompute()

    def leave_one_out(self) -> tuple[Array, Array]:
        """``s`` and mean ``q²`` of the functions in the model, each with itself left out."""
        mean = self.mean.reshape(self.size, -1)
        s, q = leave_one_out(self.alpha, self.variance, mean, self._S, self._Q)
        return s, np.mean(q**2, axis=1)


class DualActive(Dual):
    """Gaussian posterior of any number of functions."""

    exact = True
    rest = 0.0  # nothing of the targets is outside the basis of all rows

    problem: GaussianProblem

    def _values(self, indices: list[int]) -> Array:
        return self.problem.columns(np.array(indices, dtype=np.intp))

    def _solve(self) -> None:
        root, target = np.sqrt(self.beta), self.problem.target
        self._factor = factorise(root * self._columns / np.sqrt(self.alpha))
        self._half = root * solve_triangular(self._factor, self._columns, trans=1, check_finite=False)
        white = root * solve_triangular(self._factor, target, trans=1, check_finite=False)
        self._Q = self._half.T @ white
        self.mean = self._Q / self.alpha[:, None]
        left = solve_triangular(self._factor, white, check_finite=False) / root  # t − y = G⁻¹t
        self.residual_sumsq = float(np.sum(left**2))
        self.R, self.z = self._columns, target  # the basis of the rows is the unit one

    def evidence(self) -> float:
        """Log evidence."""
        targets = self.problem.n_targets
        fit = gaussian_log_likelihood(self.residual_sumsq, self.beta, targets * self.problem.n_effective)
        log_det_precision = float(np.sum(np.log(self.alpha))) + log_det(self._factor)
        return log_evidence(fit, self.mean, self.alpha, log_det_precision, targets)

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

    def narrowed(self) -> ActiveSet | DualActive:
        """The same model in the form for single moves, once its functions are far fewer than the rows."""
        return self.recompute() if self.size <= _NARROW * len(self.problem.target) else self

    def recompute(self) -> ActiveSet:
        """The same model from the data, in the form for single moves."""
        return ActiveSet.from_model(self.problem, self.indices, self.alpha, self.beta)


class DualLaplace(Dual):
    r"""Laplace's posterior of any number of functions.

    With :math:`\mathbf A_k^{-1/2}\boldsymbol\Phi_k^\top = \mathbf U_k\mathbf R_k` for every output k, the prior of the
    outputs is that of :math:`\mathbf y_k=\mathbf R_k^\top\mathbf v` with independent unit normal :math:`\mathbf v`: a
    problem of the same kind with NK weights, whose mode has the same outputs and the same evidence.
    """

    problem: LaplaceProblem

    _start: Array = np.zeros(0)

    def _values(self, indices: list[int]) -> Array:
        return self.problem.design.columns(self.problem.split(indices)[0])

    def _solve(self) -> None:
        problem, likelihood = self.problem, self.problem.likelihood
        n, k_outputs = likelihood.shape
        _, outputs = problem.split(self.indices)
        scaled = self._columns / np.sqrt(self.alpha)
        roots = [_triangle(scaled[:, outputs == k].T) for k in range(k_outputs)]
        stand_ins = [k * problem.design.shape[1] for k, root in enumerate(roots) for _ in root]
        reduced = ActiveColumns(problem, stand_ins, np.hstack([root.T for root in roots]))
        start = self._start if len(self._start) == len(stand_ins) else np.zeros(len(stand_ins))
        self._mode: Mode = find_mode(reduced, np.ones(len(stand_ins)), start)
        self._start = self._mode.mean
        gradient = likelihood.gradient(self._mode.outputs)
        root = inverse_upper(cholesky(self._mode.precision))
        curvature = likelihood.curvature(self._mode.outputs)
        change = likelihood.curvature_change(self._mode.outputs, *reduced.spread(root @ root.T, curvature))
        factor = _curvature_root(curvature.blocks())
        # Row (l, n) of FᵀΦ: what function m of output k gives to the l-th direction of row n.
        tall = np.einsum("nal,na->lna", factor[:, outputs, :], self._columns).reshape(n * k_outputs, self.size)
        triangle = factorise(tall / np.sqrt(self.alpha))
        self._half = solve_triangular(triangle, tall, trans=1, check_finite=False)
        self._Q = np.einsum("na,na->a", self._columns, gradient[:, outputs])[:, None]
        self.mean = self._Q[:, 0] / self.alpha
        self._bend = np.einsum("na,na->a", self._columns, change[:, outputs])

    def squared_mean(self) -> Array:
        r""":math:`w_j^2 - w_j(\Sigma c)_j`, as in ``LaplaceActive``."""
        return self.mean**2 - self.mean * self._follows()

    def leave_one_out(self) -> tuple[Array, Array]:
        """``s`` and the effective ``q²``, as in ``LaplaceActive``."""
        s, q = leave_one_out(self.alpha, self.variance, self.mean[:, None], self._S, self._Q)
        return s, q[:, 0] ** 2 - q[:, 0] * self._follows() / self.variance

    def _follows(self) -> Array:
        r""":math:`\Sigma c`, with the derivative :math:`c` of :math:`\log|\Sigma^{-1}|` with respect to the weights."""
        scaled = self._bend / self.alpha
        return scaled - (self._half.T @ (self._half @ scaled)) / self.alpha

    def evidence(self) -> float:
        """Laplace's log evidence."""
        return self._mode.evidence

    def statistics(self) -> Statistics:
        """Statistics of all functions."""
        return self.recompute().statistics()

    def condition_number(self) -> float:
        """Of the posterior precision scaled to unit diagonal."""
        return self.recompute().condition_number()

    def narrowed(self) -> LaplaceActive | DualLaplace:
        """The same model in the form for single moves, once its functions are fewer than the outputs of the rows."""
        return self.recompute() if self.size <= int(np.prod(self.problem.likelihood.shape)) else self

    def recompute(self) -> LaplaceActive:
        """The same functions from the data, in the form for single moves."""
        return LaplaceActive.from_model(self.problem, self.indices, self.alpha)


def _curvature_root(blocks: Array) -> Array:
    r""":math:`\mathbf F_n` with :math:`\mathbf F_n\mathbf F_n^\top = \mathbf B_n`, which may be singular."""
    values, vectors = np.linalg.eigh(blocks)
    return vectors * np.sqrt(np.maximum(values, 0.0))[:, None, :]
