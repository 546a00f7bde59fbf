r"""The evidence as a function of the kernel's parameters, its exact gradient, and a climb along it.

The functions in the model stay, and so do their centres; what moves is their shape, together with their precisions and
the noise.  With :math:`\mathbf G = \partial\mathcal L/\partial\boldsymbol\Phi` on the columns in the model, every
derivative is one inner product, :math:`\partial\mathcal L/\partial\log\theta = \sum_{nm}G_{nm}\,
\partial\phi_m(x_n)/\partial\log\theta`, whatever the kernel.

At the posterior mean the evidence is stationary in the weights, so
:math:`\mathbf G = \mathbf B[(\mathbf t-\mathbf y)\boldsymbol\mu^\top - T\,\boldsymbol\Phi\boldsymbol\Sigma]`, summed
over the T targets in its first term (``docs/dictionary.md``).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize

from sparsebayes.basis import Functions
from sparsebayes.inference.models.evidence import Array
from sparsebayes.inference.models.gaussian import SmallPosterior
from sparsebayes.inference.models.problem import FLOOR, GaussianProblem, Index

# How far one climb may move a log precision or the log noise, and a log parameter: beyond, other functions than those
# in the model would be called for.
_REACH = 6.0
_PARAMETER_REACH = 2.0


class Family(Protocol):
    """The dictionary as a function of the logarithms of the kernel's parameters, its centres fixed."""

    def columns(self, log_theta: Array, idx: Index) -> Array:
        """Columns of the dictionary, (N, k)."""
        ...

    def pullback(self, log_theta: Array, idx: Index, gradient: Array) -> Array:
        """Sum of ``gradient`` times the derivative of the columns, for every parameter."""
        ...


@dataclass(frozen=True)
class OnRows:
    """Functions with parameters, and an intercept, on some rows.

    Attributes
    ----------
    X : ndarray of shape (N, d)
        The rows.
    functions : Functions
        Without the intercept.
    bias : int or None
        Place of the intercept.
    """

    X: Array
    functions: Functions
    bias: int | None

    def columns(self, log_theta: Array, idx: Index) -> Array:
        """Columns of the dictionary; the intercept's is constant."""
        values, kernel = np.ones((self.X.shape[0], len(idx))), idx != self.bias
        values[:, kernel] = self._at(log_theta).evaluate(self.X, idx[kernel])
        return values

    def values(self, log_theta: Array) -> Array:
        """All columns."""
        values = self._at(log_theta).evaluate(self.X)
        return values if self.bias is None else np.insert(values, self.bias, 1.0, axis=1)

    def pullback(self, log_theta: Array, idx: Index, gradient: Array) -> Array:
        """Sum of ``gradient`` times the derivative of the columns, for every parameter."""
        kernel = idx != self.bias
        return self._at(log_theta).pullback(self.X, idx[kernel], gradient[:, kernel])

    def _at(self, log_theta: Array) -> Functions:
        return self.functions.with_parameters(np.exp(log_theta))


@dataclass(frozen=True)
class LogNormal:
    r"""Weak independent priors :math:`\log\theta_p \sim \mathcal N(\log\theta_p^0, s^2)`, and limits.

    Attributes
    ----------
    centre : ndarray of shape (P,)
        :math:`\log\theta^0`, from the extent of the data, so that nothing depends on units.
    width : ndarray of shape (P,)
        Standard deviations s.
    lower, upper : ndarray of shape (P,)
        Beyond these the functions no longer change.
    """

    centre: Array
    width: Array
    lower: Array
    upper: Array

    def log_density(self, log_theta: Array) -> float:
        """Up to its value at the centre."""
        return -0.5 * float(np.sum(((log_theta - self.centre) / self.width) ** 2))

    def gradient(self, log_theta: Array) -> Array:
        """Of the log density."""
        return -(log_theta - self.centre) / self.width**2


@dataclass(frozen=True)
class Evaluation:
    """Evidence of a model, and its derivatives with respect to its columns and to its log hyperparameters."""

    evidence: float
    columns: Array
    hyperparameters: Array


class Held:
    """A model whose functions stay: its evidence as a function of their values and of the hyperparameters.

    ``logs`` are the log precisions, followed by log β where the noise is learned.

    Parameters
    ----------
    problem : GaussianProblem
        Targets and weights.
    indices, alpha, beta : list of int, ndarray, float
        The model.
    learn_noise : bool
        Whether β is free.
    """

    def __init__(
        self, problem: GaussianProblem, indices: list[int], alpha: Array, beta: float, learn_noise: bool
    ) -> None:
        self.problem = problem
        self.indices, self.functions = list(indices), np.array(indices, dtype=np.intp)
        self.beta = beta
        self.learn_noise = learn_noise
        self.logs = np.append(np.log(alpha), np.log(beta)) if learn_noise else np.log(alpha)

    @property
    def log_prior(self) -> float:
        """Log prior of its support, up to a constant."""
        return -self.problem.inclusion_cost * len(self.indices)

    @property
    def limits(self) -> list[tuple[float, float]]:
        """Bounds of the hyperparameters during one climb; the noise stays above its floor."""
        bounds = [(value - _REACH, value + _REACH) for value in self.logs]
        if self.learn_noise:
            floor = -float(np.log(FLOOR * self.problem.mean_square))
            bounds[-1] = (bounds[-1][0], max(min(bounds[-1][1], floor), float(self.logs[-1])))
        return bounds

    def evaluate(self, values: Array, logs: Array) -> Evaluation:
        """Evidence and gradient (the columns are factored, never squared)."""
        a, targets, n = len(self.indices), self.problem.n_targets, self.problem.n_effective
        alpha, beta = np.exp(logs[:a]), float(np.exp(logs[a])) if self.learn_noise else self.beta
        root = np.sqrt(self.problem.weights)[:, None]
        Phi, t = root * values, self.problem.target
        triangle = np.linalg.qr(np.column_stack([Phi, t]), mode="r")
        triangle = np.pad(triangle, ((0, max(a - len(triangle), 0)), (0, 0)))  # fewer rows than functions
        rest = float(np.sum(triangle[a:, a:] ** 2))
        post = SmallPosterior.of(triangle[:a, :a], triangle[:a, a:], rest, alpha, beta)
        evidence = post.evidence(alpha, beta, n)
        residual = t - Phi @ post.mean
        by_columns = root * (beta * (residual @ post.mean.T - targets * (Phi @ post.covariance)))
        variance = np.diagonal(post.covariance)
        by_alpha = 0.5 * (targets - alpha * (targets * variance + np.sum(post.mean**2, axis=1)))
        if not self.learn_noise:
            return Evaluation(evidence, by_columns, by_alpha)
        free = n - float(np.sum(1.0 - alpha * variance))
        by_beta = 0.5 * (targets * free - beta * post.residual_sumsq)
        return Evaluation(evidence, by_columns, np.append(by_alpha, by_beta))


@dataclass(frozen=True)
class Climbed:
    """Where a climb ended: the parameters, the hyperparameters of every model, and the objective."""

    log_theta: Array
    logs: list[Array]
    objective: float


def objective(
    family: Family, models: Sequence[Held], prior: LogNormal, log_theta: Array, logs: Sequence[Array]
) -> tuple[float, Array, list[Array]]:
    """Evidence plus log prior, with its gradient in the log parameters and in the hyperparameters of each model."""
    total, by_theta = prior.log_density(log_theta), prior.gradient(log_theta)
    by_logs = []
    for model, own in zip(models, logs, strict=True):
        found = model.evaluate(family.columns(log_theta, model.functions), own)
        total += found.evidence + model.log_prior
        by_theta = by_theta + family.pullback(log_theta, model.functions, found.columns)
        by_logs.append(found.hyperparameters)
    return total, by_theta, by_logs


def climb(
    family: Family,
    models: Sequence[Held],
    prior: LogNormal,
    log_theta: Array,
    steps: int,
    free: NDArray[np.bool_] | None = None,
) -> Climbed:
    """A few quasi-Newton steps on all of them together; never ends below where it began.

    ``free`` says which parameters may move; by default all of them.
    """
    sizes = np.cumsum([len(log_theta), *(len(model.logs) for model in models)])
    start = np.concatenate([log_theta, *(model.logs for model in models)])
    moving = np.ones(len(log_theta), dtype=bool) if free is None else free
    best = Climbed(log_theta, [model.logs for model in models], -np.inf)

    def descend(x: Array) -> tuple[float, Array]:
        nonlocal best
        theta, *logs = np.split(x, sizes[:-1])
        try:
            value, by_theta, by_logs = objective(family, models, prior, theta, logs)
        except np.linalg.LinAlgError:
            return np.inf, np.zeros_like(x)
        if value > best.objective:
            best = Climbed(theta.copy(), [own.copy() for own in logs], value)
        return -value, -np.concatenate([np.where(moving, by_theta, 0.0), *by_logs])

    reach = np.where(moving, _PARAMETER_REACH, 0.0)
    low = np.minimum(np.maximum(log_theta - reach, prior.lower), log_theta)
    high = np.maximum(np.minimum(log_theta + reach, prior.upper), log_theta)
    bounds = [*zip(low, high, strict=True), *(limit for model in models for limit in model.limits)]
    minimize(descend, start, jac=True, method="L-BFGS-B", bounds=bounds, options={"maxiter": steps, "ftol": 1e-12})
    return best
