"""The relevance vector machine as it was published and programmed in 2001, for comparison of times.

All precisions are re-estimated together from the whole dictionary (report on Tipping 2001, eqs 9, 12, 13, 17 to 20), a
function leaves only when its precision exceeds 1e12, and the iterations end when no log precision in the model changes
by more than 1e-3 or after 5000 of them.  The library's ``solver="mackay"`` has the same fixed points, but lets
functions leave by the evidence, works with N x N matrices where that is less, and stops by what a sweep gains: it is
no measure of what the old algorithm cost.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cho_factor, cho_solve
from scipy.spatial.distance import cdist
from scipy.special import expit

from sparsebayes.typing import Array

_LEAVES = 1e12
_CHANGE = 1e-3
_SWEEPS = 5000
_NEWTON = 25
_TINY = 1e-300


@dataclass(frozen=True)
class OldRVM:
    """A fitted machine: Gaussian kernels on its vectors, and a bias as the last weight where it was kept."""

    vectors: Array
    weights: Array
    bias: float
    gamma: float
    sweeps: int

    def decision_function(self, X: Array) -> Array:
        """Values of the function."""
        return np.exp(-self.gamma * cdist(X, self.vectors, "sqeuclidean")) @ self.weights + self.bias


def fit_old_rvm(X: Array, y: Array, gamma: float, *, classes: bool = False) -> OldRVM:
    """Fit targets, or two classes 0 and 1, with Gaussian kernels on all rows and a bias."""
    Phi = np.column_stack([np.exp(-gamma * cdist(X, X, "sqeuclidean")), np.ones(len(X))])
    t = np.asarray(y, dtype=np.float64)
    kept, weights, sweeps = _classify(Phi, t) if classes else _regress(Phi, t)
    rows = kept < len(X)
    return OldRVM(X[kept[rows]], weights[rows], float(np.sum(weights[~rows])), gamma, sweeps)


def _regress(Phi: Array, t: Array) -> tuple[NDArray[np.intp], Array, int]:
    n, m = Phi.shape
    gram, linear = Phi.T @ Phi, Phi.T @ t
    kept, alpha, beta = np.arange(m), np.full(m, m / np.var(t)), 10.0 / np.var(t)
    mean = np.zeros(m)
    for sweep in range(1, _SWEEPS + 1):
        factor = cho_factor(beta * gram[np.ix_(kept, kept)] + np.diag(alpha))
        variance = np.diag(cho_solve(factor, np.eye(len(kept))))
        mean = cho_solve(factor, beta * linear[kept])
        gamma = 1.0 - alpha * variance  # eq. 12
        residual = t - Phi[:, kept] @ mean
        beta = (n - np.sum(gamma)) / (residual @ residual)  # eq. 13
        stays, alpha, done = _reestimate(alpha, gamma, mean)
        kept, mean = kept[stays], mean[stays]
        if done:
            return kept, mean, sweep
    return kept, mean, _SWEEPS


def _classify(Phi: Array, t: Array) -> tuple[NDArray[np.intp], Array, int]:
    m = Phi.shape[1]
    kept, alpha, mode = np.arange(m), np.full(m, float(m)), np.zeros(m)
    for sweep in range(1, _SWEEPS + 1):
        mode, factor = _find_mode(Phi[:, kept], t, alpha, mode)
        gamma = 1.0 - alpha * np.diag(cho_solve(factor, np.eye(len(kept))))
        stays, alpha, done = _reestimate(alpha, gamma, mode)
        kept, mode = kept[stays], mode[stays]
        if done:
            return kept, mode, sweep
    return kept, mode, _SWEEPS


def _reestimate(alpha: Array, gamma: Array, mean: Array) -> tuple[NDArray[np.bool_], Array, bool]:
    """Which functions stay, their new precisions, and whether these have come to rest."""
    new = np.maximum(gamma, _TINY) / np.maximum(mean**2, _TINY)
    stays = new < _LEAVES
    change = np.max(np.abs(np.log(new[stays] / alpha[stays])), initial=0.0)
    return stays, new[stays], bool(change < _CHANGE)


def _find_mode(Phi: Array, t: Array, alpha: Array, weights: Array) -> tuple[Array, tuple[Array, bool]]:
    """Iteratively reweighted least squares to the mode (eq. 17), steps halved where they would go down."""

    def objective(w: Array) -> float:
        y = Phi @ w
        return float(t @ y - np.sum(np.logaddexp(0.0, y)) - 0.5 * np.sum(alpha * w**2))

    value = objective(weights)
    for _ in range(_NEWTON):
        factor, step = _newton(Phi, t, alpha, weights)
        length = 1.0
        while (new := objective(weights + length * step)) < value and length > 1e-6:
            length /= 2.0
        if new < value:
            return weights, factor
        weights, gained, value = weights + length * step, new - value, new
        if gained < 1e-6:
            return weights, factor
    return weights, _newton(Phi, t, alpha, weights)[0]


def _newton(Phi: Array, t: Array, alpha: Array, weights: Array) -> tuple[tuple[Array, bool], Array]:
    """Factor of the Hessian (eq. 18), and the step that it suggests."""
    p = expit(Phi @ weights)
    factor = cho_factor((Phi.T * (p * (1.0 - p))) @ Phi + np.diag(alpha))
    return factor, cho_solve(factor, Phi.T @ (t - p) - alpha * weights)
