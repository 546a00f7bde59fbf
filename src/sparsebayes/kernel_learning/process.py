r"""The kernel's parameters of an exact Gaussian process: where the search for widths begins.

With all functions in the model and one amplitude for them, :math:`\mathbf C = a\mathbf K(\theta)+s\mathbf W^{-1}`,
there is no support to choose, so that the evidence

.. math::

    \log p(\mathbf t) = -\tfrac12\mathbf t^\top\mathbf C^{-1}\mathbf t - \tfrac12\log|2\pi\mathbf C|

is smooth in :math:`\log\theta` and has few maxima.  With :math:`\mathbf u=\mathbf C^{-1}\mathbf t` its derivative is
:math:`\partial/\partial\mathbf K=\tfrac a2(\mathbf{uu}^\top-\mathbf C^{-1})`, pulled back through the kernel as in
``gradients.py``.  A few hundred rows tell the widths well enough to begin from.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import get_lapack_funcs
from scipy.optimize import minimize

from sparsebayes.basis import Functions
from sparsebayes.basis.kernels import KernelFunctions
from sparsebayes.inference.models.mode import LaplaceProblem
from sparsebayes.inference.models.problem import GaussianProblem
from sparsebayes.kernel_learning.gradients import LogNormal
from sparsebayes.kernel_learning.parameters import Limits

Array = NDArray[np.float64]
Index = NDArray[np.intp]

_CHOLESKY, _INVERT = get_lapack_funcs(("potrf", "potri"), (np.zeros(1),))

# Rows that a process is learned from at first, and at last: its cost is cubic in them.
ROWS = 400
MORE_ROWS = 700
# Noise variance from which its search begins, as a part of the targets' mean square, and its steps, on some rows and on
# more of them.  A second search from a hundredth ends at the same place or lower on nine of the ledger's ten tables; on
# the tenth, where rows that occur twice let the noise vanish.  So it is made only where the first has found
# more noise than anything else.
_NOISE, _LOW_NOISE, _MOSTLY_NOISE = 0.1, 0.01, 0.5
_STEPS, _FEW_STEPS = 60, 10
# Fewer rows say nothing of widths.
_FEWEST = 5
# Range of the log amplitude and of the log noise, in units of the targets' mean square.
_AMPLITUDE = (-3.0, 9.0)
_LEVEL = (-14.0, 2.0)


@dataclass(frozen=True)
class Fitted:
    """A process at the maximum of its evidence plus log prior: log parameters, log amplitude and log noise."""

    log_theta: Array
    level: Array
    objective: float


class Process:
    """A Gaussian process on some of the rows, its kernel that of the functions.

    Parameters
    ----------
    functions : KernelFunctions
        Functions of a positive definite kernel.
    X : ndarray of shape (N, d)
        Training rows.
    targets : ndarray of shape (N, T)
        Targets that share the parameters.
    weights : ndarray of shape (N,)
        Row weights.
    prior : LogNormal
        Prior of the log parameters.
    """

    def __init__(self, functions: KernelFunctions, X: Array, targets: Array, weights: Array, prior: LogNormal) -> None:
        self.prior, self.all, self.kernel = prior, (X, targets, weights), functions
        self._take(ROWS)

    def _take(self, limit: int) -> None:
        """Stand on at most so many rows."""
        X, targets, weights = self.all
        rows = spread_rows(targets, limit)
        self.X = X[rows]
        centred = targets[rows] - np.average(targets[rows], axis=0, weights=weights[rows])
        scale = np.sqrt(np.average(centred**2, axis=0, weights=weights[rows]))
        self.t = centred / np.where(scale > 0.0, scale, 1.0)
        self.functions = self.kernel.at_centres(0, self.X)
        # A row of weight k is k copies of it; what they would say of the noise among themselves is left out.
        self.spread = 1.0 / weights[rows]

    def fit(self, first: Array, stop: Callable[[], bool]) -> Fitted:
        """On some rows; then a few steps on more of them."""
        level = np.array([0.0, np.log(_NOISE)])
        best = Fitted(first, level, -np.inf) if stop() else self._ascend(first, level, None)
        if best.level[1] > np.log(_MOSTLY_NOISE) and not stop():
            again = self._ascend(first, np.array([0.0, np.log(_LOW_NOISE)]), None)
            best = max(best, again, key=lambda one: one.objective)
        if len(self.all[0]) > ROWS and not stop():
            self._take(MORE_ROWS)
            best = self._ascend(best.log_theta, best.level, None, _FEW_STEPS)
        return best

    def without_weak(self, found: Fitted, off: Array, price: float, stop: Callable[[], bool]) -> Fitted:
        """Inputs whose switching off costs less than ``price`` nats switched off, the others learned again."""
        here, free = found, np.ones(len(off), dtype=bool)
        order = np.argsort(np.abs(found.log_theta - off))  # those that are off nearly, first
        for p in order[np.isfinite(off[order])]:
            if stop():
                return here
            there = here.log_theta.copy()
            there[p] = off[p]
            value = self.evaluate(there, here.level)[0]
            if value > here.objective - price:
                free[p] = False
                here = Fitted(there, here.level, value)
        return here if free.all() else self._ascend(here.log_theta, here.level, free, _FEW_STEPS)

    def _ascend(self, log_theta: Array, level: Array, free: NDArray[np.bool_] | None, steps: int = _STEPS) -> Fitted:
        n = len(log_theta)
        moving = np.ones(n, dtype=bool) if free is None else free
        best = Fitted(log_theta, level, -np.inf)

        def descend(x: Array) -> tuple[float, Array]:
            nonlocal best
            value, gradient = self.evaluate(x[:n], x[n:])
            if value > best.objective:
                best = Fitted(x[:n].copy(), x[n:].copy(), value)
            gradient[:n][~moving] = 0.0
            return (-value, -gradient) if np.isfinite(value) else (1e300, np.zeros(len(x)))

        low, high = np.where(moving, self.prior.lower, log_theta), np.where(moving, self.prior.upper, log_theta)
        start = np.concatenate([np.clip(log_theta, low, high), np.clip(level, *np.transpose([_AMPLITUDE, _LEVEL]))])
        bounds = [*zip(low, high, strict=True), _AMPLITUDE, _LEVEL]
        options = {"maxiter": steps, "ftol": 1e-7}
        minimize(descend, start, jac=True, method="L-BFGS-B", bounds=bounds, options=options)
        return best

    def evaluate(self, log_theta: Array, level: Array) -> tuple[float, Array]:
        """Log evidence plus log prior, and its gradient in the log parameters, the log amplitude and the log noise."""
        functions = self.functions.with_parameters(np.exp(log_theta))
        kernel = functions.evaluate(self.X)
        amplitude, noise = float(np.exp(level[0])), np.exp(level[1]) * self.spread
        covariance = amplitude * kernel
        covariance.flat[:: len(kernel) + 1] += noise
        factor, failed = _CHOLESKY(covariance, lower=1)
        if failed:
            return -np.inf, np.zeros(len(log_theta) + 2)
        log_det = 2.0 * float(np.sum(np.log(np.diagonal(factor))))
        inverse, _ = _INVERT(factor, lower=1)
        inverse = np.tril(inverse) + np.tril(inverse, -1).T
        u, targets = inverse @ self.t, self.t.shape[1]
        value = -0.5 * (float(np.vdot(self.t, u)) + targets * (log_det + len(kernel) * np.log(2.0 * np.pi)))
        gradient = 0.5 * (u @ u.T - targets * inverse)
        by_theta = functions.pullback(self.X, np.arange(len(kernel)), amplitude * gradient)
        by_level = [amplitude * float(np.vdot(gradient, kernel)), float(np.diagonal(gradient) @ noise)]
        by_theta = by_theta + self.prior.gradient(log_theta)
        return value + self.prior.log_density(log_theta), np.concatenate([by_theta, by_level])


def spread_rows(targets: Array, limit: int) -> Index:
    """At most so many rows, evenly spread in the order of their targets, so that the order of the rows is no matter."""
    n = len(targets)
    if n <= limit:
        return np.arange(n)
    order = np.lexsort(targets.T[::-1])
    return np.sort(order[np.linspace(0, n - 1, limit).astype(np.intp)])


def process_of(
    functions: Functions,
    X: Array,
    problems: Sequence[GaussianProblem | LaplaceProblem],
    weights: Array,
    limits: Limits,
) -> Process | None:
    """A process with the kernel of the functions, where that is positive definite.

    Other likelihoods stand in for their targets by their gradient at outputs of zero, as in least squares.
    """
    if not isinstance(functions, KernelFunctions) or not functions.compressible or len(X) < _FEWEST:
        return None
    targets = np.column_stack([_targets(problem) for problem in problems])
    if not np.any(np.ptp(targets, axis=0) > 0.0):
        return None
    return Process(functions, X, targets, weights, limits.prior)


def _targets(problem: GaussianProblem | LaplaceProblem) -> Array:
    if isinstance(problem, GaussianProblem):
        return problem.targets
    gradient = problem.likelihood.gradient(np.zeros(problem.likelihood.shape))
    return np.asarray(gradient, dtype=np.float64)
