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

from collections.abc import Callable
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import get_lapack_funcs
from scipy.optimize import minimize

from sparsebayes.basis import Functions
from sparsebayes.basis.kernels import KernelFunctions
from sparsebayes.kernel_learning.gradients import LogNormal
from sparsebayes.kernel_learning.parameters import Limits

Array = NDArray[np.float64]
Index = NDArray[np.intp]

_CHOLESKY, _INVERT, _SOLVE = get_lapack_funcs(("potrf", "potri", "potrs"), (np.zeros(1),))

# Rows that a process is learned from at first, and at last: its cost is cubic in them.  Fewer where a fit takes a
# hundredth of a second.
ROWS = 400, 700
FEWER_ROWS = 200, 400
# Noise variance from which its search begins, as a part of the targets' mean square, and its steps, on some rows and on
# more of them.  A second search from a hundredth ends at the same place or lower on nine of the ledger's ten tables; on
# the tenth, where rows that occur twice let the noise vanish.  So it is made only where the first has found
# more noise than anything else; or, from a tenth again, next to none: one length too short for all inputs explains few
# rows whole, and where all lengths are free the noise does not come back.
_NOISE, _LOW_NOISE, _MOSTLY_NOISE, _NEXT_TO_NONE = 0.1, 0.01, 0.5, 1e-4
_STEPS, _SOME_STEPS, _FEW_STEPS = 60, 15, 5
# Fewer rows say nothing of widths.
_FEWEST = 5
# Range of the log amplitude and of the log noise, in units of the targets' mean square.
_AMPLITUDE = (-3.0, 9.0)
_LEVEL = (-14.0, 2.0)


@dataclass(frozen=True)
class Fitted:
    """A process at the maximum of its evidence plus log prior: log parameters, log amplitude and log noise."""

    log_theta: Array
    level: Array = field(default_factory=lambda: np.log([1.0, _NOISE]))
    objective: float = -np.inf


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
    rows : tuple of int
        How many of the rows it is learned from at first, and at last.
    """

    def __init__(
        self,
        functions: KernelFunctions,
        X: Array,
        targets: Array,
        weights: Array,
        prior: LogNormal,
        rows: tuple[int, int] = ROWS,
    ) -> None:
        # In an order of their own, so that of rows with the same target the same are drawn.  A row of weight k is k
        # copies of it; what they would say of the noise among themselves is left out.
        _, first, copies = np.unique(np.column_stack([X, targets]), axis=0, return_index=True, return_inverse=True)
        merged = np.bincount(copies.reshape(-1), weights)
        self.prior, self.all, self.kernel = prior, (X[first], targets[first], merged), functions
        self.rows = rows
        self._take(rows[0])

    def _take(self, limit: int) -> None:
        """Stand on at most so many rows."""
        X, targets, weights = self.all
        rows = spread_rows(targets, limit)
        self.X = X[rows]
        centred = targets[rows] - np.average(targets[rows], axis=0, weights=weights[rows])
        scale = np.sqrt(np.average(centred**2, axis=0, weights=weights[rows]))
        self.t = centred / np.where(scale > 0.0, scale, 1.0)
        self.functions = self.kernel.at_centres(0, self.X)
        self.spread = 1.0 / weights[rows]

    def fit(self, first: Array, limits: Limits, stop: Callable[[], bool]) -> Array:
        """Log parameters: one factor for all lengths, then all of them free, and idle inputs switched off."""
        every, scaled = np.eye(len(first)), self._ascend(Fitted(first), limits.longer[:, None])
        best = scaled if stop() else self._ascend(scaled, every)
        found = float(np.exp(best.level[1]))
        if not _NEXT_TO_NONE < found < _MOSTLY_NOISE and not stop():
            other = _LOW_NOISE if found > _NOISE else _NOISE
            again = self._ascend(replace(scaled, level=np.log([1.0, other])), every)
            best = max(best, again, key=lambda one: one.objective)
        best = self._without_idle(best, limits, stop)
        if len(self.all[0]) > self.rows[0] and not stop():
            self._take(self.rows[1])
            best = self._ascend(best, every[:, limits.live(best.log_theta)], _FEW_STEPS)
        return best.log_theta

    def _without_idle(self, found: Fitted, limits: Limits, stop: Callable[[], bool]) -> Fitted:
        """Inputs switched off that do not bring half of log Nd nats: what a parameter costs, of one of d inputs.

        Idle ones bring less than two.  Twice the price costs inputs that rows left out would have kept.  Until one
        brings more, the others climb without it: one of two alike does for both, at another length.
        """
        here, off, climbs = found, limits.off, True
        inputs = np.flatnonzero(np.isfinite(off))
        price = 0.5 * float(np.log(max(2, len(inputs)) * len(self.t)))
        for p in sorted(inputs.tolist(), key=lambda p: abs(found.log_theta[p] - off[p])):  # nearly off ones first
            if stop():
                break
            there = here.log_theta.copy()
            there[p] = off[p]
            without = replace(here, log_theta=there, objective=self.value(there, here.level))
            if climbs and without.objective <= here.objective - price:
                without = self._ascend(without, np.eye(len(there))[:, limits.live(there)], _SOME_STEPS)
                climbs = without.objective > here.objective - price
            here = without if without.objective > here.objective - price else here
        return here

    def _ascend(self, first: Fitted, directions: Array, steps: int = _STEPS) -> Fitted:
        """Climb with the log parameters free along the columns of a matrix, (P, k)."""
        k, best = directions.shape[1], replace(first, objective=-np.inf)

        def descend(x: Array) -> tuple[float, Array]:
            nonlocal best
            log_theta = first.log_theta + directions @ x[:k]
            value, gradient = self.evaluate(log_theta, x[k:])
            if value > best.objective:
                best = Fitted(log_theta, x[k:].copy(), value)
            along = np.concatenate([gradient[:-2] @ directions, gradient[-2:]])
            return (-value, -along) if np.isfinite(value) else (1e300, np.zeros(len(x)))

        # Every column leads away until the first parameter that it moves is at its limit.
        with np.errstate(divide="ignore", invalid="ignore"):
            ends = np.sort(
                [(end - first.log_theta)[:, None] / directions for end in (self.prior.lower, self.prior.upper)], 0
            )
        low, high = (
            np.nanmax(np.where(directions, ends[0], -np.inf), 0),
            np.nanmin(np.where(directions, ends[1], np.inf), 0),
        )
        bounds = [*zip(np.minimum(low, 0.0), np.maximum(high, 0.0), strict=True), _AMPLITUDE, _LEVEL]
        start = np.concatenate([np.zeros(k), np.clip(first.level, *np.transpose([_AMPLITUDE, _LEVEL]))])
        options = {"maxiter": steps, "ftol": 1e-5}
        minimize(descend, start, jac=True, method="L-BFGS-B", bounds=bounds, options=options)
        return best

    def value(self, log_theta: Array, level: Array) -> float:
        """Log evidence plus log prior."""
        factor = self._factored(self._kernel(log_theta).evaluate(self.X), level)
        return -np.inf if factor is None else self._value(log_theta, factor, _SOLVE(factor, self.t, lower=1)[0])

    def evaluate(self, log_theta: Array, level: Array) -> tuple[float, Array]:
        """Log evidence plus log prior, and its gradient in the log parameters, the log amplitude and the log noise."""
        functions = self._kernel(log_theta)
        kernel = functions.evaluate(self.X)
        factor = self._factored(kernel, level)
        if factor is None:
            return -np.inf, np.zeros(len(log_theta) + 2)
        u, targets = _SOLVE(factor, self.t, lower=1)[0], self.t.shape[1]
        value = self._value(log_theta, factor, u)
        # Of symmetric matrices the lower halves, twice, but for the diagonal: that is what LAPACK inverts.
        inverse, _ = _INVERT(factor, lower=1)
        gradient, amplitude = np.tril(u @ u.T - targets * inverse), float(np.exp(level[0]))
        gradient.flat[:: len(kernel) + 1] *= 0.5
        by_theta = functions.pullback(self.X, np.arange(len(kernel)), amplitude * gradient)
        noise = np.exp(level[1]) * self.spread
        by_level = [amplitude * float(np.vdot(gradient, kernel)), float(np.diagonal(gradient) @ noise)]
        return value, np.concatenate([by_theta + self.prior.gradient(log_theta), by_level])

    def _kernel(self, log_theta: Array) -> Functions:
        return self.functions.with_parameters(np.exp(log_theta))

    def _factored(self, kernel: Array, level: Array) -> Array | None:
        """Cholesky's factor of the covariance, where there is one."""
        covariance = float(np.exp(level[0])) * kernel
        covariance.flat[:: len(kernel) + 1] += np.exp(level[1]) * self.spread
        factor, failed = _CHOLESKY(covariance, lower=1)
        return None if failed else factor

    def _value(self, log_theta: Array, factor: Array, u: Array) -> float:
        log_det, (n, targets) = 2.0 * float(np.sum(np.log(np.diagonal(factor)))), self.t.shape
        fit = float(np.vdot(self.t, u)) + targets * (log_det + n * np.log(2.0 * np.pi))
        return self.prior.log_density(log_theta) - 0.5 * fit


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
    targets: Array,
    weights: Array,
    limits: Limits,
    rows: tuple[int, int] = ROWS,
) -> Process | None:
    """A process with the kernel of the functions, where that is positive definite."""
    if not isinstance(functions, KernelFunctions) or not functions.compressible or len(X) < _FEWEST:
        return None
    if not np.any(np.ptp(targets, axis=0) > 0.0):
        return None
    return Process(functions, X, targets, weights, limits.prior, rows)
