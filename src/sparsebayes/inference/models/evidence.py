r"""The objective of every solver, written once:

.. math::

    \mathcal{L} = \log p(\mathbf t \mid \boldsymbol\mu) - \tfrac12 \boldsymbol\mu^\top \mathbf A \boldsymbol\mu
                  + \tfrac12 \log|\mathbf A| + \tfrac12 \log|\boldsymbol\Sigma| ,

which is exact for a Gaussian likelihood (eq. 7 of Tipping & Faul 2003) and Laplace's approximation otherwise.  Its
dependence on a single :math:`\alpha` is :math:`\ell(\alpha)` of eq. 18, its maximum eq. 20-21.  All precisions and the
noise are moved together by Newton's method (docs/sequential.md, section 7).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sparsebayes.inference.models.linalg import solve_cholesky, try_cholesky
from sparsebayes.typing import Array

# Longest step of a log precision, or of the log noise, in one joint move.
REACH = 3.0
# Multiples of the identity that are tried where the negative Hessian is not positive definite.
SHIFTS = (0.0, *np.geomspace(1e-3, 1e9, 21).tolist())


@dataclass(frozen=True)
class Statistics:
    """What decides about every function.

    Attributes
    ----------
    alpha : ndarray of shape (M,)
        Present precisions, infinite outside the model.
    s, q2 : ndarray of shape (M,)
        Sparsity, and squared quality (mean over the targets), each function left out of the model itself (T&F eq. 23).
    movable : ndarray of bool, shape (M,)
        Functions in the model, and candidates that may enter and whose ``s`` is above rounding.
    """

    alpha: Array
    s: Array
    q2: Array
    movable: NDArray[np.bool_]


@dataclass(frozen=True)
class Scores:
    """What adding each function alone would gain (zero where it may not enter), and with which precision."""

    gain: Array
    alpha: Array


def gaussian_log_likelihood(residual_sumsq: float, beta: float, n: float) -> float:
    r""":math:`\log \mathcal N(\mathbf t \mid \mathbf y, \beta^{-1}\mathbf I)` from the residual sum of squares."""
    return 0.5 * n * float(np.log(beta) - np.log(2.0 * np.pi)) - 0.5 * beta * residual_sumsq


def gaussian_evidence(
    residual_sumsq: float, mean: Array, alpha: Array, beta: float, log_det_precision: float, n: float
) -> float:
    """Log evidence of n observations of every target (T&F eq. 7), from the posterior."""
    targets = mean.shape[1]
    fit = gaussian_log_likelihood(residual_sumsq, beta, targets * n)
    return log_evidence(fit, mean, alpha, log_det_precision, targets)


def log_evidence(
    log_likelihood: float, mean: Array, alpha: Array, log_det_precision: float, n_targets: int = 1
) -> float:
    r""":math:`\mathcal L` from the posterior of the active set.

    The log likelihood at the mean (or mode) of the weights, (a,) or (a, T), is summed over the targets that share the
    precisions; :math:`\log|\boldsymbol\Sigma^{-1}|` is that of one of them.
    """
    penalty = float((alpha @ (mean * mean)).sum())
    occam = float(np.log(alpha).sum()) - log_det_precision
    return log_likelihood - 0.5 * penalty + 0.5 * n_targets * occam


def contribution(alpha: Array, s: Array, q2: Array) -> Array:
    r"""Evidence :math:`\ell(\alpha)` that a function brings (T&F eq. 18); ``alpha = inf`` gives zero."""
    with np.errstate(divide="ignore", invalid="ignore"):
        value = 0.5 * (q2 / (alpha + s) - np.log1p(s / alpha))
    return np.where(np.isfinite(alpha), value, 0.0)


def best_alpha(s: Array, q2: Array) -> Array:
    r"""Maximiser of :math:`\ell(\alpha)`: :math:`s^2/(q^2-s)`, or infinity (T&F eqs 20-21)."""
    theta = q2 - s
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        return np.where(theta > 0.0, s * (s / theta), np.inf)


def best_additions(s: Array, q2: Array, n_targets: int, cost: float = 0.0) -> tuple[Array, Array]:
    """Best precisions of functions outside the model with q² > s, and what adding each gains (T&F eqs 18, 20, 27)."""
    with np.errstate(divide="ignore", over="ignore"):
        best = s * (s / (q2 - s))
        gain = 0.5 * n_targets * (q2 / (best + s) - np.log1p(s / best)) - cost
    return best, np.maximum(np.where(best > 0.0, gain, 0.0), 0.0)  # no precision is below the range of numbers


def best_moves(alpha: Array, s: Array, q2: Array, n_targets: int, cost: float = 0.0) -> tuple[Array, Array]:
    """Best precisions, and what each alone would gain from the present ones, a function in the model costing ``cost``.

    Gains of additions, re-estimations and deletions (T&F eqs 27, 32, 37) are differences of eq. 18.
    """
    # Nothing becomes of a function that is out and has no reason to enter, which are nearly all of a large dictionary.
    moving = np.flatnonzero((q2 > s) | np.isfinite(alpha))
    best, gain = np.full(len(alpha), np.inf), np.zeros(len(alpha))
    present, s, q2 = alpha[moving], s[moving], q2[moving]

    def worth(alpha: Array) -> Array:
        return n_targets * contribution(alpha, s, q2) - np.where(np.isfinite(alpha), cost, 0.0)

    there = best_alpha(s, q2)
    # A precision below the range of numbers is none that could be moved to.
    there = np.where(there > 0.0, there, present)
    if cost > 0.0:
        there = np.where(worth(there) > 0.0, there, np.inf)
    best[moving], gain[moving] = there, worth(there) - worth(present)
    return best, gain


def leave_one_out(alpha: Array, variance: Array, mean: Array, S: Array, Q: Array) -> tuple[Array, Array]:
    r"""``s`` and ``q`` of functions in the model, each with itself left out (T&F eq. 23).

    :math:`s = \gamma/\Sigma_{jj}` and :math:`q = \mu_j/\Sigma_{jj}`; where :math:`\gamma = 1-\alpha_j\Sigma_{jj}` has
    lost its digits, S and Q are used instead.  Means and qualities are (a, T), all else is (a,).
    """
    gamma = 1.0 - alpha * variance
    sharp = gamma > 0.5
    S = np.where(sharp, 0.0, np.maximum(S, 0.0))
    shrink = np.maximum(1.0 - S / alpha, 0.25)  # S/α = γ ≤ ½ here, but for rounding
    s = np.where(sharp, gamma / variance, S / shrink)
    return s, np.where(sharp[:, None], mean / variance[:, None], Q / shrink[:, None])


def sumsq(mean: Array) -> Array:
    """Sums of squares of the rows, of a single number mostly."""
    return mean[:, 0] * mean[:, 0] if mean.shape[1] == 1 else np.einsum("jt,jt->j", mean, mean)


def alpha_hessian(covariance: Array, mean: Array, alpha: Array) -> Array:
    r"""Second derivatives of the evidence in all :math:`\log\alpha_j`; ``mean`` has a column for each target."""
    root = np.sqrt(alpha)  # in the units of the prior no product leaves the range of numbers
    covariance, mean = covariance * root * root[:, None], mean * root[:, None]
    targets = mean.shape[1]
    hessian = mean @ mean.T
    hessian += (0.5 * targets) * covariance
    hessian *= covariance
    diagonal = np.einsum("ii->i", hessian)
    diagonal -= 0.5 * (targets * covariance.diagonal() + sumsq(mean))
    return hessian


def joint_newton(
    mean: Array, covariance: Array, residual_sumsq: float, alpha: Array, beta: float, n: float, learn_noise: bool
) -> Array:
    r"""Newton's step in all :math:`\log\alpha_j`, and in :math:`\log\beta` (last) where the noise is learned.

    Where the evidence is not concave the Hessian is shifted until it is; no logarithm changes by more than ``REACH``.
    The posterior is that of n observations of T targets: means (a, T), the covariance for one of them, and the sum of
    squared residuals over all.
    """
    a, targets, root = len(alpha), mean.shape[1], np.sqrt(alpha)
    hessian = np.empty((a + learn_noise, a + learn_noise))
    hessian[:a, :a] = alpha_hessian(covariance, mean, alpha)
    covariance, mean = covariance * root * root[:, None], mean * root[:, None]
    variance, squares, fit = covariance.diagonal(), sumsq(mean), beta * residual_sumsq
    gradient = np.empty(a + learn_noise)
    gradient[:a] = 0.5 * (targets - targets * variance - squares)
    if learn_noise:
        pulled = covariance @ mean
        v = variance - np.einsum("ij,ij->i", covariance, covariance)  # α_j v_j
        hessian[a, :a] = hessian[:a, a] = 0.5 * targets * v - (mean * pulled).sum(axis=1)
        hessian[a, a] = -0.5 * (targets * v.sum() + fit) + np.vdot(mean, pulled)
        gradient[a] = 0.5 * (targets * (n - a + variance.sum()) - fit)
    step = _ascend(np.negative(hessian, out=hessian), gradient)
    return step / max(1.0, float(np.abs(step).max()) / REACH)


def _ascend(hessian: Array, gradient: Array) -> Array:
    """Solve with the least multiple of the identity that makes the matrix positive definite."""
    for shift in SHIFTS:
        factor = try_cholesky(hessian + shift * np.eye(len(gradient)) if shift else hessian)
        if factor is not None:
            return solve_cholesky(factor, gradient)
    return np.zeros(len(gradient))


def idle(alpha: Array, variance: Array, gamma: Array, mean: Array, cost: float) -> NDArray[np.bool_]:
    r"""Functions that are best left out: :math:`q^2\le s` (T&F eq. 21), or not worth what they cost."""
    targets = mean.shape[1]
    mean2 = sumsq(mean) / targets
    if cost == 0.0:
        return mean2 <= gamma * variance
    return ~np.isfinite(best_moves(alpha, gamma / variance, mean2 / variance**2, targets, cost)[0])
