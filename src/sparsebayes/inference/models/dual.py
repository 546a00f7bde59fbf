r"""The posterior in its dual form: one N×N factorisation, however many functions are in the model.

With the curvature :math:`\mathbf B = \mathbf F\mathbf F^\top` of the rows (:math:`\beta\mathbf W` in regression) and
:math:`\mathbf G = \mathbf I + \mathbf F^\top\boldsymbol\Phi\mathbf A^{-1}\boldsymbol\Phi^\top\mathbf F =
\mathbf T^\top\mathbf T` (in regression :math:`\mathbf C = \beta^{-1}\mathbf G`, report on Tipping 2001, eq. 11),

.. math::

    S_m = \|\mathbf T^{-\top}\mathbf F^\top\phi_m\|^2,\quad \mu_m = Q_m/\alpha_m,\quad \gamma_m = S_m/\alpha_m,\quad
    \boldsymbol\Sigma = \mathbf A^{-1} - \mathbf A^{-1}\boldsymbol\Phi^\top\mathbf F\mathbf G^{-1}\mathbf F^\top
    \boldsymbol\Phi\mathbf A^{-1},\quad
    \log|\boldsymbol\Sigma^{-1}| = \log|\mathbf A| + \log|\mathbf G| .

No difference of large numbers occurs in these, and what is factored is never singular.
"""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import solve_triangular

from sparsebayes.inference.models.active import ActiveSet
from sparsebayes.inference.models.evidence import Array, Statistics, gaussian_evidence
from sparsebayes.inference.models.interface import Active
from sparsebayes.inference.models.laplace import LaplaceActive
from sparsebayes.inference.models.linalg import cholesky, inverse_upper, log_det
from sparsebayes.inference.models.mode import ActiveColumns, find_mode

# Up to this bound on the condition number of G its Cholesky factor is good to ten digits; beyond, the factor comes from
# the square root of G, at twice the cost.
_WELL_CONDITIONED = 1e6


class Dual(Active):
    """Any number of functions, factored over the rows; every change computes everything anew.

    It is for joint sweeps over many functions; ``recompute`` gives the form for single moves.
    """

    _Q: Array

    def _factored(self, tall: Array) -> None:
        """Everything that follows from the functions times the roots of the curvature."""
        self._factor = _triangle(tall / np.sqrt(self.alpha))
        self._half = solve_triangular(self._factor, tall, trans=1, check_finite=False)  # T⁻ᵀFᵀΦ
        self._S = np.einsum("na,na->a", self._half, self._half)

    @cached_property
    def well_determined(self) -> Array:
        r""":math:`\gamma_m = S_m/\alpha_m`."""
        return self._S / self.alpha

    @cached_property
    def variance(self) -> Array:
        r""":math:`\Sigma_{mm} = (1-\gamma_m)/\alpha_m`."""
        return np.maximum(1.0 - self.well_determined, np.finfo(float).eps) / self.alpha

    @cached_property
    def covariance(self) -> Array:  # pyright: ignore[reportIncompatibleVariableOverride]
        """Posterior covariance of the weights; only made when asked for, as it is large."""
        scaled = self._half / self.alpha
        return np.diag(1.0 / self.alpha) - scaled.T @ scaled

    def inside(self) -> tuple[Array, Array]:
        """``S`` and ``Q`` of the functions in the model."""
        return self._S, self._Q

    def statistics(self) -> Statistics:
        """Statistics of all functions."""
        return self.recompute().statistics()

    def condition_number(self) -> float:
        """Of the posterior precision scaled to unit diagonal."""
        return self.recompute().condition_number()

    def for_single_moves(self) -> Active:
        """The same model from the data, in the form for single moves."""
        return self.recompute()

    def narrowed(self) -> Active:
        """The same model in the form for single moves, once its functions are no more than the outputs of the rows."""
        return self.recompute() if self.size <= len(self._factor) else self


class DualActive(Dual):
    """Gaussian posterior of any number of functions."""

    exact = True
    rest = 0.0  # nothing of the targets is outside the basis of all rows, which is the unit one

    def __init__(
        self, problem: Any, indices: list[int], alpha: Array, beta: float, columns: Array | None = None
    ) -> None:
        self.problem, self.indices, self.alpha, self.beta = problem, list(indices), alpha.copy(), beta
        self.R = problem.columns(np.array(indices, dtype=np.intp)) if columns is None else columns
        self.z, root = problem.target, np.sqrt(beta)
        self._factored(root * self.R)
        white = root * solve_triangular(self._factor, self.z, trans=1, check_finite=False)
        self._Q = self._half.T @ white
        self.mean = self._Q / self.alpha[:, None]
        left = solve_triangular(self._factor, white, check_finite=False) / root  # t − y = G⁻¹t
        self.residual_sumsq = float(np.sum(left**2))

    def moved(self, alpha: Array, beta: float) -> DualActive:
        """The same functions at other hyperparameters."""
        return DualActive(self.problem, self.indices, alpha, beta, self.R)

    def restricted(self, stays: NDArray[np.bool_]) -> DualActive:
        """Some of the functions."""
        return DualActive(self.problem, self._kept(stays), self.alpha[stays], self.beta, self.R[:, stays])

    def evidence(self) -> float:
        """Log evidence."""
        log_det_precision = float(np.sum(np.log(self.alpha))) + log_det(self._factor)
        n = self.problem.n_effective
        return gaussian_evidence(self.residual_sumsq, self.mean, self.alpha, self.beta, log_det_precision, n)

    def recompute(self) -> ActiveSet:
        """The same model from the data, in the form for single moves."""
        return ActiveSet.from_model(self.problem, self.indices, self.alpha, self.beta)


class DualLaplace(Dual):
    r"""Laplace's posterior of any number of functions.

    With :math:`\mathbf A_k^{-1/2}\boldsymbol\Phi_k^\top = \mathbf U_k\mathbf R_k` for every output k, the prior of the
    outputs is that of :math:`\mathbf y_k=\mathbf R_k^\top\mathbf v` with independent unit normal :math:`\mathbf v`: a
    problem of the same kind with NK weights, whose mode has the same outputs and the same evidence.
    """

    def __init__(
        self, problem: Any, indices: list[int], alpha: Array, columns: Array | None = None, start: Array | None = None
    ) -> None:
        self.problem, self.indices, self.alpha, self.beta = problem, list(indices), alpha.copy(), 1.0
        functions, outputs = problem.split(indices)
        self._columns = problem.design.columns(functions) if columns is None else columns
        scaled = self._columns / np.sqrt(alpha)
        roots = [_upper(scaled[:, outputs == k].T) for k in range(problem.n_outputs)]
        stand_ins = [k * problem.design.shape[1] for k, root in enumerate(roots) for _ in root]
        reduced = ActiveColumns(problem, stand_ins, np.hstack([root.T for root in roots]))
        begun = start if start is not None and len(start) == len(stand_ins) else np.zeros(len(stand_ins))
        self._mode = find_mode(reduced.at(begun), np.ones(len(stand_ins)))
        root = inverse_upper(self._mode.factor)
        change, _ = reduced.bend(self._mode.point, root @ root.T)
        likelihood, at = problem.likelihood, self._mode.point.outputs
        # Row (l, n) of FᵀΦ: what function m of output k gives to the l-th direction of row n.
        factor = _curvature_root(likelihood.curvature(at).blocks())
        rows = np.einsum("nal,na->lna", factor[:, outputs, :], self._columns)
        self._factored(rows.reshape(factor.shape[0] * factor.shape[2], self.size))
        self._Q = np.einsum("na,na->a", self._columns, likelihood.gradient(at)[:, outputs])[:, None]
        self.mean = self._Q[:, 0] / self.alpha
        self._bent = np.einsum("na,na->a", self._columns, change[:, outputs]) / self.alpha

    @cached_property
    def follows(self) -> Array:
        r""":math:`\boldsymbol\Sigma\mathbf c`, which the mode adds to the slope of the evidence."""
        return self._bent - (self._half.T @ (self._half @ self._bent)) / self.alpha

    def moved(self, alpha: Array, beta: float) -> DualLaplace:
        """The same functions at other precisions."""
        return DualLaplace(self.problem, self.indices, alpha, self._columns, self._mode.mean)

    def restricted(self, stays: NDArray[np.bool_]) -> DualLaplace:
        """Some of the functions."""
        columns = self._columns[:, stays]
        return DualLaplace(self.problem, self._kept(stays), self.alpha[stays], columns, self._mode.mean)

    def evidence(self) -> float:
        """Laplace's log evidence."""
        return self._mode.evidence

    def recompute(self) -> LaplaceActive:
        """The same functions from the data, in the form for single moves."""
        return LaplaceActive.from_model(self.problem, self.indices, self.alpha)


def _triangle(scaled: Array) -> Array:
    r"""Upper triangular T with :math:`\mathbf T^\top\mathbf T = \mathbf I + \mathbf X\mathbf X^\top`."""
    rows = np.eye(len(scaled))
    if 1.0 + float(np.sum(scaled**2)) <= _WELL_CONDITIONED:
        return cholesky(rows + scaled @ scaled.T)
    return _upper(np.vstack([scaled.T, rows]))


def _upper(matrix: Array) -> Array:
    """Upper triangular factor of a QR factorisation, without the other one."""
    return np.asarray(np.linalg.qr(matrix, mode="r"))


def _curvature_root(blocks: Array) -> Array:
    r""":math:`\mathbf F_n` with :math:`\mathbf F_n\mathbf F_n^\top = \mathbf B_n`, which may be singular."""
    values, vectors = np.linalg.eigh(blocks)
    return vectors * np.sqrt(np.maximum(values, 0.0))[:, None, :]
