r"""The exact posterior of a Gaussian model, from its columns in factored form (docs/sequential.md, sections 3 and 4).

The active columns are kept as :math:`\mathbf W^{1/2}\boldsymbol\Phi_a = \mathbf U\mathbf R` with orthonormal
:math:`\mathbf U`, and where moves are made with the correlations :math:`\mathbf C = \mathbf U^\top\mathbf
W^{1/2}\boldsymbol\Phi` of the whole dictionary.  From one model to the next only these factors are carried; all else is
computed from them anew (T&F eqs 6, 24, 25).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sparsebayes.design import RESOLVED, ScreenedDesign, projected
from sparsebayes.inference.models.evidence import Array, Statistics, best_moves
from sparsebayes.inference.models.gaussian import GaussianModel, Gram, SmallPosterior
from sparsebayes.inference.models.interface import Active
from sparsebayes.inference.models.linalg import condition, tall_qr
from sparsebayes.inference.models.problem import GaussianProblem
from sparsebayes.inference.models.screening import may_gain

# A column whose part outside the active span is below this fraction of its norm lies inside it: the remainder is
# rounding error, and normalising it would fill U with noise.
_IN_SPAN = 1e-13
# Largest variance inflation factor Σ_jj (α_j + β‖φ_j‖²) at which the factors alone give Q to nine digits.
_COLLINEAR = 1e5
# Entries of a dictionary that are evaluated for a certificate at most; beyond, it names the error of the compression.
_EVALUATED = 2_000_000_000


@dataclass(eq=False)
class Factors:
    r"""Columns of some functions as :math:`\mathbf U\mathbf R`, with targets and dictionary in the same coordinates.

    Attributes
    ----------
    U, R : ndarray of shape (rows, u), (u, a)
        Orthonormal basis of the columns, and their coordinates in it, a triangle.
    z, residual, rest : ndarray of shape (u, T), (rows, T), float
        Coordinates of the targets, the targets outside the basis, and their sum of squares.
    C : ndarray of shape (u, M)
        Correlations of the dictionary with the basis, made when a move first needs them.
    """

    problem: GaussianProblem
    U: Array
    R: Array
    _C: Array | None = None

    @classmethod
    def of(cls, problem: GaussianProblem, indices: list[int]) -> Factors:
        """Of functions of a problem, from the data."""
        return cls(problem, *tall_qr(problem.columns(np.array(indices, dtype=np.intp))))

    def __post_init__(self) -> None:
        self.z = self.U.T @ self.problem.target
        self.residual = self.problem.target - self.U @ self.z
        self.rest = float(np.sum(self.residual**2)) + self.problem.unexplained

    @property
    def C(self) -> Array:
        """Correlations of the dictionary with the basis."""
        if self._C is None:
            self._C = self.problem.correlate(self.U).T
        return self._C

    def grown(self, i: int) -> Factors:
        """With function i more, which enlarges the basis unless it lies in its span."""
        problem, (u, a), phi = self.problem, self.R.shape, self.problem.columns(np.array([i]))
        inner = np.zeros((u, 1))
        for _ in range(2):  # twice is enough (Kahan-Parlett)
            step = self.U.T @ phi
            phi = phi - self.U @ step
            inner += step
        rho = float(np.linalg.norm(phi))
        if rho <= _IN_SPAN * np.sqrt(problem.sqnorms[i]):
            return Factors(problem, self.U, np.hstack([self.R, inner]), self._C)
        new = phi / rho
        R = np.zeros((u + 1, a + 1))
        R[:u, :a], R[:u, a:], R[u, a] = self.R, inner, rho
        C = None if self._C is None else np.vstack([self._C, problem.correlate(new).T])
        return Factors(problem, np.hstack([self.U, new]), R, C)

    def restricted(self, stays: NDArray[np.bool_]) -> Factors:
        """Of some of the functions, whose span is smaller."""
        b = min(len(self.R), int(np.sum(stays)))
        q, r = np.linalg.qr(self.R[:, stays], mode="complete")
        C = None if self._C is None else q[:, :b].T @ self._C
        return Factors(self.problem, self.U @ q[:, :b], r[:b], C)


class ActiveSet(Active):
    """Posterior of the functions in the model, and S and Q of all functions.

    Attributes
    ----------
    posterior : SmallPosterior
        Of the weights (T&F eq. 6), as far as the ``factors`` tell.
    mean : ndarray of shape (a, T)
        Where functions are nearly collinear, refined on the columns.
    S, Q : ndarray of shape (M,), (M, T)
        Sparsity and quality of every function (T&F eqs 24-25).
    """

    exact = True

    def __init__(
        self,
        problem: GaussianProblem,
        beta: float,
        indices: Sequence[int] = (),
        alpha: Array | None = None,
        factors: Factors | None = None,
    ) -> None:
        self.problem, self.beta, self.indices = problem, beta, list(indices)
        self.alpha = np.zeros(0) if alpha is None else alpha.copy()
        self.factors = Factors.of(problem, self.indices) if factors is None else factors
        self.R, self.z, self.rest = self.factors.R, self.factors.z, self.factors.rest
        self.posterior = SmallPosterior.of(self.R, self.z, self.rest, self.alpha, beta)
        self.covariance, self.residual_sumsq = self.posterior.covariance, self.posterior.residual_sumsq

    @classmethod
    def from_model(cls, problem: GaussianProblem, indices: list[int], alpha: Array, beta: float) -> ActiveSet:
        """Posterior of a given model, computed from the data."""
        return cls(problem, beta, indices, alpha)

    def like(
        self, problem: Any, indices: list[int], alpha: Array, *, beta: float | None = None, mean: Array | None = None
    ) -> ActiveSet:
        """The model of these functions; its weights follow, so that known ones are of no use."""
        return ActiveSet.from_model(problem, indices, alpha, self.beta if beta is None else beta)

    def recompute(self) -> ActiveSet:
        """The same model from scratch, on the whole dictionary and the data themselves."""
        problem, indices, below = self.problem, self.indices, None
        while problem.parent is not None:
            below, indices, problem = problem, problem.lift(indices), problem.parent
        # What the stand-in says of the functions does not change with the model.
        screened = problem.screened(problem if isinstance(problem.design, ScreenedDesign) else below)
        model = ActiveSet.from_model(screened, indices, self.alpha, self.beta)
        return model._sharpened(screened.design) if isinstance(screened.design, ScreenedDesign) else model

    def _sharpened(self, design: ScreenedDesign) -> ActiveSet:
        """With the functions exact that bounds on what stands in for them cannot rule out (``screening.py``)."""
        problem, factors = self.problem, self.factors
        C = factors.C  # one pass over the stand-in's columns, from which S and Q follow before and after
        residual = factors.residual + factors.U @ (self.z - self.R @ self.mean)
        outside = problem.eligible.copy()
        outside[self.indices] = False
        contend = may_gain(self.S, self.Q, self.beta, residual, problem.weights, design.stand_in, outside)
        contend[self.indices] = True
        idx = np.flatnonzero(contend)
        if len(idx) * len(residual) > _EVALUATED:
            return self
        C[:, idx] = problem.exact_moments(idx, factors.U).T
        design.error = 0.0
        return self.moved(self.alpha, self.beta)

    # -- what the factors say ------------------------------------------------------------------------------

    def evidence(self) -> float:
        """Log evidence of the model."""
        return self.posterior.evidence(self.alpha, self.beta, self.problem.n_effective)

    @cached_property
    def fragile(self) -> bool:
        """Whether a variance inflation factor in the model is so large that rounding in the factors shows in Q."""
        precision = self.alpha + self.beta * self.problem.sqnorms[self.indices]
        return bool(np.any(precision * self.variance > _COLLINEAR))

    @property
    def _columns(self) -> Array:
        """Of the functions in the model, on the whitened rows."""
        return self.problem.columns(np.array(self.indices, dtype=np.intp))

    @cached_property
    def mean(self) -> Array:  # pyright: ignore[reportIncompatibleVariableOverride]
        """Posterior mean, where the model is fragile by iterative refinement on the columns themselves."""
        mean = self.posterior.mean
        if not self.fragile:
            return mean
        columns = self._columns
        for _ in range(2):
            gradient = self.beta * (columns.T @ (self.problem.target - columns @ mean)) - self.alpha[:, None] * mean
            mean = mean + self.covariance @ gradient
        return mean

    @property
    def S(self) -> Array:
        """Sparsity of every function."""
        return self._scored[0]

    @cached_property
    def Q(self) -> Array:
        """Quality of every function, of a fragile model from the residuals of the data."""
        if not self.fragile:
            return self._scored[1]
        return self.beta * self.problem.correlate(self.problem.target - self._columns @ self.mean)

    @cached_property
    def _scored(self) -> tuple[Array, Array]:
        """S and Q (T&F eqs 22, 24, 25) exactly from the factors; where C is not held, two numbers come for each."""
        beta, problem = self.beta, self.problem
        if not self.indices:
            return beta * problem.sqnorms, beta * problem.projection
        mixing, fitted = beta * (self.R @ self.posterior.root), self.R @ self.mean
        if self.factors._C is not None:
            C, rows = self.factors.C, np.hstack([fitted, mixing]).T  # T&F eq. 24: β Σ^{1/2}ᵀ Φᵀ W φ_m
            explained, squares = projected(lambda some: rows @ C[:, some], fitted.shape[1], C.shape[1])
        else:
            explained, squares = problem.project(self.factors.U @ fitted, self.factors.U @ mixing)
        return beta * problem.sqnorms - squares, beta * (problem.projection - explained)

    def inside(self) -> tuple[Array, Array]:
        """``S`` and ``Q`` of the functions in the model."""
        return self.S[self.indices], self.Q[self.indices]

    def statistics(self) -> Statistics:
        """Statistics of all functions."""
        s = np.maximum(self.S, 0.0)
        q2 = np.einsum("mt,mt->m", self.Q, self.Q) / self.Q.shape[1]
        movable = self.problem.eligible & (s > RESOLVED * self.beta * self.problem.sqnorms)
        return self._completed(s, q2, movable, self.indices)

    def promising(self, count: int) -> tuple[NDArray[np.intp], Array]:
        """Functions outside the working set that gain most, and what each would gain."""
        parent, part = self.problem.parent, self.problem
        residual = self.beta * (part.target - self._columns @ self.mean)
        basis = self.beta * (self.factors.U @ (self.R @ self.posterior.root))
        scale = parent.row_scale[:, None]
        found = parent.ranking.best(scale * residual, scale * basis, self.beta, part.members, count)
        out = np.full(len(found.s), np.inf)
        _, gain = best_moves(out, found.s, found.q2, parent.n_targets, parent.inclusion_cost)
        return found.numbers, gain

    def linearised(self) -> tuple[Array, Array, Array, Array]:
        """The problem itself."""
        cross = self.beta * (self.factors.C.T @ (self.R @ self.covariance))
        return self.S, self.Q, cross, self.beta * self.problem.sqnorms

    def beside(self, numbers: NDArray[np.intp], others: NDArray[np.intp]) -> tuple[Array, Array]:
        """Inner products of the model's functions and of others, and with the residuals, times beta."""
        whole = self.problem.parent
        columns = whole.columns(np.concatenate([numbers, others]))
        residual = whole.target - columns[:, : self.size] @ self.mean
        return self.beta * (columns.T @ columns), self.beta * (columns.T @ residual)

    def condition_number(self) -> float:
        """Of the posterior precision scaled to unit diagonal."""
        return condition(np.vstack([np.sqrt(self.beta) * self.R, np.diag(np.sqrt(self.alpha))]))

    def doubtful(self, functions: NDArray[np.intp]) -> NDArray[np.bool_]:
        """Which functions and the model are nearly dependent."""
        return self.fragile | (self.S[functions] < self.beta * self.problem.sqnorms[functions] / _COLLINEAR)

    # -- other models ----------------------------------------------------------------------------------------

    def changed(self, i: int, alpha: float, at_least: float = 0.0) -> ActiveSet:
        """With this precision of function i; many such moves follow, so that correlations are carried along."""
        _ = self.factors.C
        indices, precisions = self.with_precision(i, alpha)
        factors = self.factors
        if i not in self.indices:
            factors = factors.grown(i)
        elif i not in indices:
            factors = factors.restricted(np.array(self.indices) != i)
        return ActiveSet(self.problem, self.beta, indices, precisions, factors)

    def moved(self, alpha: Array, beta: float) -> ActiveSet:
        """At other hyperparameters, without a look at the data."""
        return ActiveSet(self.problem, beta, self.indices, alpha, self.factors)

    def restricted(self, stays: NDArray[np.bool_]) -> ActiveSet:
        """With some of its functions only."""
        return ActiveSet(self.problem, self.beta, self._kept(stays), self.alpha[stays], self.factors.restricted(stays))

    def settled(self, tol: float, *, learn_noise: bool) -> ActiveSet:
        """At the joint maximum, by the model of the loop."""
        part, here = self.problem.restrict(np.array(self.indices, dtype=np.intp)), list(range(self.size))
        begun = GaussianModel.weighing(Gram(part), here, self.alpha, self.beta, learn_noise, suffice=False)
        found = begun.settled(tol)
        return self.like(self.problem, [self.indices[k] for k in found.indices], found.alpha, beta=found.beta)
