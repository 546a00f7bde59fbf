r"""Two classes by the bound of Jaakkola & Jordan: a Gaussian problem for every setting of its parameters.

For every :math:`\xi_n`, with :math:`\lambda(\xi) = \tanh(\xi/2)/(4\xi)`,

.. math::

    \log p(t_n|y_n) \ge (t_n-\tfrac12)y_n - \lambda(\xi_n)(y_n^2-\xi_n^2) + \log\sigma(\xi_n) - \tfrac12\xi_n ,

which is largest at :math:`\xi_n^2 = \langle y_n^2\rangle`; a move that raises it at fixed :math:`\xi` raises it further
when :math:`\xi` follows.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import log_expit

from sparsebayes.inference.models.active import ActiveSet
from sparsebayes.inference.models.dual import DualActive
from sparsebayes.inference.models.evidence import Array, Statistics
from sparsebayes.inference.models.interface import Active
from sparsebayes.inference.models.linalg import cholesky, inverse_upper
from sparsebayes.inference.models.mode import LaplaceProblem
from sparsebayes.inference.models.problem import GaussianProblem
from sparsebayes.likelihood import Bernoulli

# Below this the curvature of the bound is that of its series.
_SERIES = 1e-4
# The parameters of the bound follow a single move until they change by less than this, relatively.
_SETTLED = 1e-8
_ROUNDS = 500
# Up to so many functions they follow a joint sweep as far, too.
_FEW = 100


def bound_curvature(xi: Array) -> Array:
    r""":math:`2\lambda(\xi) = \tanh(\xi/2)/(2\xi)`, which is 1/4 at zero."""
    small = xi < _SERIES
    return np.where(small, 0.25 - xi**2 / 48.0, np.tanh(0.5 * xi) / (2.0 * np.where(small, 1.0, xi)))


def bound_problem(problem: LaplaceProblem, xi: Array) -> GaussianProblem:
    r"""The quadratic problem at :math:`\xi`, with unit noise: targets :math:`(t-\tfrac12)/2\lambda`."""
    likelihood, curvature = two_classes(problem), bound_curvature(xi)
    targets = (likelihood.targets - 0.5) / curvature
    return GaussianProblem(
        problem.design, targets[:, None], likelihood.weights * curvature, problem.candidates, problem.bias
    )


def bound_constant(problem: LaplaceProblem, xi: Array) -> float:
    r"""What the bound has beyond :math:`-\tfrac12\sum_n 2\lambda_n(\hat t_n-y_n)^2`."""
    curvature = bound_curvature(xi)
    rows = log_expit(xi) - 0.5 * xi + 0.5 * curvature * xi**2 + 0.125 / curvature  # with (t - ½)² = ¼
    return float(two_classes(problem).weights @ rows)


def two_classes(problem: LaplaceProblem) -> Bernoulli:
    """The likelihood, which is the logistic: solvers by the bound take no other."""
    likelihood = problem.likelihood
    if not isinstance(likelihood, Bernoulli):
        raise TypeError(f"the bound is of the logistic, not of a {type(likelihood).__name__}")
    return likelihood


class BoundActive(Active):
    """Functions of a two-class problem and their Gaussian posterior under the bound with parameters ``xi``, (N,)."""

    problem: LaplaceProblem

    def __init__(self, problem: LaplaceProblem, indices: list[int], alpha: Array, xi: Array) -> None:
        self.problem, self.xi, self.beta = problem, xi, 1.0
        make = DualActive if len(indices) > len(xi) else ActiveSet.from_model
        inner = self._inner = make(bound_problem(problem, xi), indices, alpha, 1.0)
        self.indices, self.alpha, self.mean = inner.indices, inner.alpha, inner.mean[:, 0]
        self.covariance, self.variance, self.well_determined = inner.covariance, inner.variance, inner.well_determined

    def evidence(self) -> float:
        """Lower bound on the log evidence."""
        # The Gaussian density of the inner problem has a normalisation that the bound has not.
        normalisation = 0.5 * self._inner.problem.n_effective * float(np.log(2.0 * np.pi))
        return self._inner.evidence() + normalisation + bound_constant(self.problem, self.xi)

    def statistics(self) -> Statistics:
        """Statistics of all functions at the present parameters of the bound."""
        return self._inner.statistics()

    def inside(self) -> tuple[Array, Array]:
        """``S`` and ``Q`` of the functions in the model."""
        return self._inner.inside()

    def condition_number(self) -> float:
        """Of the posterior precision scaled to unit diagonal."""
        return self._inner.condition_number()

    # -- moves -----------------------------------------------------------------------------------------------

    def like(
        self, problem: Any, indices: list[int], alpha: Array, *, beta: float | None = None, mean: Array | None = None
    ) -> BoundActive:
        """The model of these functions, at the best parameters of the bound."""
        columns = problem.design.columns(np.array(indices, dtype=np.intp))
        return BoundActive(problem, indices, alpha, _tighten(columns, alpha, self.xi, two_classes(problem)))

    def moved(self, alpha: Array, beta: float) -> BoundActive:
        r"""At other precisions, with :math:`\xi_n^2=\langle y_n^2\rangle` of the present posterior.

        Where functions are few, of the new one: that takes rounds of its own.
        """
        columns = self.problem.design.columns(np.array(self.indices, dtype=np.intp))
        xi = _second_moment(columns, self.mean, self.covariance)
        if self.size <= _FEW:
            xi = _tighten(columns, alpha, xi, two_classes(self.problem))
        return BoundActive(self.problem, self.indices, alpha, xi)

    def restricted(self, stays: NDArray[np.bool_]) -> BoundActive:
        """With some of its functions only."""
        return BoundActive(self.problem, self._kept(stays), self.alpha[stays], self.xi)

    def without(self, j: int) -> Active:
        """Without the j-th function, at the best parameters of the bound."""
        return super().without(j).recompute()

    def recompute(self) -> BoundActive:
        """The same functions from the data, at the best parameters of the bound."""
        return self.like(self.problem, self.indices, self.alpha)


def _second_moment(columns: Array, mean: Array, covariance: Array) -> Array:
    r""":math:`\sqrt{\langle y_n^2\rangle}`."""
    spread = np.einsum("na,na->n", columns @ covariance, columns)
    return np.sqrt(np.maximum(spread, 0.0) + (columns @ mean) ** 2)


def _tighten(columns: Array, alpha: Array, xi: Array, likelihood: Bernoulli) -> Array:
    r"""Best :math:`\xi` for given precisions, by iterating :math:`\xi_n^2=\langle y_n^2\rangle`."""
    if columns.shape[1] == 0:
        return np.zeros_like(xi)
    linear = columns.T @ (likelihood.weights * (likelihood.targets - 0.5))
    for _ in range(_ROUNDS):
        weights = likelihood.weights * bound_curvature(xi)
        root = inverse_upper(cholesky(columns.T @ (weights[:, None] * columns) + np.diag(alpha)))
        covariance = root @ root.T
        before, xi = xi, _second_moment(columns, covariance @ linear, covariance)
        if np.all(np.abs(xi - before) <= _SETTLED * (1.0 + xi)):
            break
    return xi
