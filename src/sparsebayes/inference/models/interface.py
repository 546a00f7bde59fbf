"""What a solver may ask of the functions in the model, whatever the likelihood."""

from __future__ import annotations

from abc import ABC, abstractmethod
from functools import cached_property
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from sparsebayes.inference.models.evidence import Array, Statistics, leave_one_out


class Active(ABC):
    r"""The functions in the model and their posterior; a model never changes, but gives rise to others.

    Attributes
    ----------
    problem : GaussianProblem or LaplaceProblem
        The problem that is solved.
    indices : list of int
        Functions in the model.
    alpha : ndarray of shape (a,)
        Their precisions.
    beta : float
        Inverse noise variance; 1 where the likelihood has none.
    mean, covariance : ndarray
        Posterior of their weights.
    exact : bool
        Whether the evidence is exact, the likelihood being Gaussian with a noise level.
    R, z, rest : ndarray of shape (u, a), ndarray of shape (u, T), float
        Where it is: coordinates of the active columns and of the targets in an orthonormal basis, and the sum of
        squares of the targets outside it.
    residual_sumsq : float
        Where it is: :math:`\|\mathbf t - \mathbf y\|^2` (weighted), over all targets.
    approximate : bool
        Whether gains are only predicted, to first order, and scoring the dictionary costs far more than re-estimating
        what is in the model.  A move that would not raise the objective then gives rise to no model.
    """

    problem: Any
    indices: list[int]
    alpha: Array
    beta: float
    mean: Array
    covariance: Array
    R: Array
    z: Array
    rest: float
    residual_sumsq: float
    exact: bool = False
    approximate: bool = False

    # -- what is known of it -------------------------------------------------------------------------------

    @property
    def size(self) -> int:
        """Number of functions in the model."""
        return len(self.indices)

    @cached_property
    def means(self) -> Array:
        """Posterior means, a column for each target, (a, T)."""
        return np.atleast_2d(self.mean.T).T

    @cached_property
    def variance(self) -> Array:
        r"""Posterior variances :math:`\Sigma_{jj}` of the weights."""
        return np.diagonal(self.covariance)

    @cached_property
    def well_determined(self) -> Array:
        r""":math:`\gamma_j = 1 - \alpha_j\Sigma_{jj}`."""
        return 1.0 - self.alpha * self.variance

    @property
    def used(self) -> float:
        """Share of the rows that the functions use up."""
        return self.problem.share(float(np.sum(self.well_determined)))

    @cached_property
    def follows(self) -> Array:
        r""":math:`\boldsymbol\Sigma\mathbf c`, with c the slope of :math:`\log|\boldsymbol\Sigma^{-1}|` in the weights.

        Zero wherever the evidence is exact (docs/classification.md, section 4).
        """
        return np.zeros(self.size)

    def squared_mean(self) -> Array:
        r""":math:`m_j` such that :math:`\partial\mathcal L/\partial\log\alpha_j = \tfrac T2(\gamma_j-\alpha_jm_j)`.

        That is :math:`\mu_j^2`, the mean over T targets, less :math:`\mu_j(\boldsymbol\Sigma\mathbf c)_j`.
        """
        return np.mean(self.means**2, axis=1) - self.means[:, 0] * self.follows

    @abstractmethod
    def evidence(self) -> float:
        """Log evidence."""

    def log_prior(self) -> float:
        """Log prior of the support, up to a constant: every function costs the same."""
        return -self.problem.inclusion_cost * self.size

    def objective(self) -> float:
        """What is maximised: log evidence and log prior."""
        return self.evidence() + self.log_prior()

    @abstractmethod
    def condition_number(self) -> float:
        """Of the posterior precision scaled to unit diagonal."""

    # -- scores --------------------------------------------------------------------------------------------

    @abstractmethod
    def statistics(self) -> Statistics:
        """Statistics of all functions."""

    @abstractmethod
    def inside(self) -> tuple[Array, Array]:
        """``S`` (a,) and ``Q`` (a, T) of the functions in the model."""

    def leave_one_out(self) -> tuple[Array, Array]:
        """``s`` and ``q²`` of the functions in the model, each left out of it: a mean over the targets, corrected."""
        s, q = leave_one_out(self.alpha, self.variance, self.means, *self.inside())
        return s, np.mean(q**2, axis=1) - q[:, 0] * self.follows / self.variance

    def _completed(self, s: Array, q2: Array, movable: NDArray[np.bool_], indices: list[int]) -> Statistics:
        """Statistics of all functions from those outside the model, whose own functions have these numbers."""
        alpha = np.full(len(s), np.inf)
        if self.size:
            alpha[indices] = self.alpha
            s[indices], q2[indices] = self.leave_one_out()
            movable[indices] = True
        return Statistics(alpha, s, q2, movable)

    def doubtful(self, functions: NDArray[np.intp]) -> NDArray[np.bool_]:
        """Which functions and the model are so nearly dependent that the predicted gain may be rounding."""
        return np.zeros(len(functions), dtype=np.bool_)

    def promising(self, count: int) -> tuple[NDArray[np.intp], Array]:
        """Columns outside the part of the dictionary that is searched that gain most, and what each would gain."""
        return np.zeros(0, dtype=np.intp), np.zeros(0)

    def linearised(self) -> tuple[Array, Array, Array, Array]:
        r"""The weighted Gaussian problem, of row weights B, that the likelihood is at the present weights.

        ``S`` (M,), ``Q`` (M, T), :math:`\boldsymbol\Phi^\top\mathbf B\boldsymbol\Phi_a\boldsymbol\Sigma` (M, a) and the
        squared norms (M,) of all functions.
        """
        raise TypeError(f"{type(self).__name__} has no rows to weigh")

    def beside(self, numbers: NDArray[np.intp], others: NDArray[np.intp]) -> tuple[Array, Array]:
        """Inner products in the curvature, and with the gradient, of the model's functions and of others.

        All by their numbers in the problem of which the present one is a part.
        """
        raise TypeError(f"{type(self).__name__} is of the whole dictionary")

    # -- other models --------------------------------------------------------------------------------------

    def like(
        self, problem: Any, indices: list[int], alpha: Array, *, beta: float | None = None, mean: Array | None = None
    ) -> Active:
        """The model of these functions of a problem, under the same likelihood, computed from the data.

        Its noise is the present one unless another is given; the weights at its mode need not be found again where they
        are known.
        """
        raise TypeError(f"{type(self).__name__} gives rise to no model of other functions")

    def for_single_moves(self) -> Active:
        """The same model in the form in which a single move does not compute everything anew, where there is one."""
        return self

    def narrowed(self) -> Active:
        """The same model in the form for single moves, once its functions are few enough for that to be cheaper."""
        return self

    def extended(self, problem: Any) -> Active:
        """The same model in the whole dictionary, or in a part of it whose first columns are the present ones."""
        indices = self.indices
        if problem.members is None:
            indices = self.problem.lift(indices)
        else:
            columns, outputs = self.problem.split(indices)
            indices = (outputs * problem.design.shape[1] + columns).tolist()
        return self.like(problem, indices, self.alpha, mean=self.mean)

    def with_precision(self, i: int, alpha: float) -> tuple[list[int], Array]:
        """Functions and precisions once function i has this precision, infinity meaning out."""
        if i not in self.indices:
            return [*self.indices, i], np.append(self.alpha, alpha)
        j = self.indices.index(i)
        if not np.isfinite(alpha):
            return [k for k in self.indices if k != i], np.delete(self.alpha, j)
        changed = self.alpha.copy()
        changed[j] = alpha
        return list(self.indices), changed

    def changed(self, i: int, alpha: float, at_least: float = 0.0) -> Active | None:
        """The model with about this precision of function i, infinity meaning out.

        Where gains are only predicted: None where that does not raise the objective, of an addition by ``at_least``.
        """
        return self.like(self.problem, *self.with_precision(i, alpha))

    def move_to(self, i: int, alpha: float) -> str:
        """What giving function i this precision is called."""
        if i not in self.indices:
            return "add"
        return "reestimate" if np.isfinite(alpha) else "delete"

    def joined(self, functions: list[int], alpha: Array, at_least: float) -> Active | None:
        """With several functions more, where gains are predicted; None where that does not gain ``at_least``."""
        raise TypeError(f"{type(self).__name__} predicts no gains")

    def settled(self, tol: float, *, learn_noise: bool) -> Active:
        """With all precisions, and the noise where it is learned, at their joint maximum."""
        return self

    @abstractmethod
    def moved(self, alpha: Array, beta: float) -> Self:
        """With all precisions, and the noise, changed together."""

    def _kept(self, stays: NDArray[np.bool_]) -> list[int]:
        """Some of the functions."""
        return [i for i, stay in zip(self.indices, stays, strict=True) if stay]

    @abstractmethod
    def restricted(self, stays: NDArray[np.bool_]) -> Self:
        """With some of its functions only."""

    def without(self, j: int) -> Active:
        """The model as it would be without its j-th function, all other precisions as they are."""
        return self.restricted(np.arange(self.size) != j)

    @abstractmethod
    def recompute(self) -> Active:
        """The same model, computed from nothing but the data."""
