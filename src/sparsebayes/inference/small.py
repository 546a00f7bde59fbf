r"""The posterior of a handful of weights, and all their precisions and the noise moved together.

With the active columns factored as :math:`\mathbf W^{1/2}\boldsymbol\Phi_a=\mathbf U\mathbf R` the evidence is a
function of :math:`(\mathbf R, \mathbf U^\top\mathbf t)` alone, and so are its derivatives in
:math:`a_j=\log\alpha_j` and :math:`b=\log\beta`.  From
:math:`\partial\boldsymbol\Sigma/\partial a_i=-\alpha_i\Sigma_{\cdot i}\Sigma_{i\cdot}` and
:math:`\partial\boldsymbol\mu/\partial a_i=-\alpha_i\Sigma_{\cdot i}\mu_i`,

.. math::

    \partial_{a_j}\mathcal L &= \tfrac12[1-\alpha_j(\Sigma_{jj}+\mu_j^2)], \qquad
    \partial_b\mathcal L = \tfrac12[N-\textstyle\sum_j\gamma_j-\beta\|\mathbf t-\mathbf y\|^2], \\
    \partial_{a_ia_j}\mathcal L &= \alpha_i\alpha_j\Sigma_{ij}(\tfrac12\Sigma_{ij}+\mu_i\mu_j)
        -\tfrac12\delta_{ij}\alpha_j(\Sigma_{jj}+\mu_j^2), \\
    \partial_{a_jb}\mathcal L &= \tfrac12\alpha_j v_j-\alpha_j\mu_j(\boldsymbol\Sigma\mathbf A\boldsymbol\mu)_j, \qquad
    v = \mathrm{diag}(\boldsymbol\Sigma-\boldsymbol\Sigma\mathbf A\boldsymbol\Sigma), \\
    \partial_{bb}\mathcal L &= -\tfrac12[\textstyle\sum_j\alpha_jv_j+\beta\|\mathbf t-\mathbf y\|^2]
        +(\mathbf A\boldsymbol\mu)^\top\boldsymbol\Sigma\,\mathbf A\boldsymbol\mu .
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from sparsebayes.inference.evidence import Array
from sparsebayes.inference.linalg import inverse_upper, log_det, try_cholesky

# Smallest diagonal entry of the Cholesky factor of the unit-diagonal precision at which it may stand in for the
# factorisation of the square roots: it then has lost no more than half of the digits.
_WELL_CONDITIONED = 1e-3
# Longest step of a log precision, or of the log noise, in one joint move.
_REACH = 3.0
# Multiples of the identity that are tried where the negative Hessian is not positive definite.
_SHIFTS = (0.0, *np.geomspace(1e-3, 1e9, 21).tolist())


@dataclass(frozen=True)
class SmallPosterior:
    r"""Posterior of the active weights at one :math:`(\boldsymbol\alpha, \beta)`.

    ``root`` is upper triangular with :math:`\boldsymbol\Sigma` = root rootᵀ.
    """

    mean: Array
    root: Array
    covariance: Array
    log_det_precision: float
    residual_sumsq: float

    @classmethod
    def solve(cls, R: Array, z: Array, rest: float, alpha: Array, beta: float) -> SmallPosterior:
        r"""Posterior from the factors; ``rest`` is the part of the targets outside the span of U.

        By Cholesky where the precision is well conditioned, else by QR of the stacked square roots, in which its
        condition number enters under a square root.
        """
        a = len(alpha)
        if a == 0:
            return cls(np.zeros((0, z.shape[1])), np.zeros((0, 0)), np.zeros((0, 0)), 0.0, rest + float(np.sum(z**2)))
        precision = beta * (R.T @ R)
        precision.flat[:: a + 1] += alpha
        scale = np.sqrt(np.diagonal(precision))
        factor = try_cholesky(precision / scale / scale[:, None])
        if factor is not None and np.min(np.diagonal(factor)) > _WELL_CONDITIONED:
            t = factor * scale
            root = inverse_upper(t)
            mean = root @ (root.T @ (beta * (R.T @ z)))
        else:
            stacked = np.zeros((len(R) + a, a))
            stacked[: len(R)] = np.sqrt(beta) * R
            np.fill_diagonal(stacked[len(R) :], np.sqrt(alpha))
            q, t = np.linalg.qr(stacked)
            root = inverse_upper(t)
            mean = root @ (q[: len(R)].T @ (np.sqrt(beta) * z))
        residual = rest + float(np.sum((z - R @ mean) ** 2))
        return cls(mean, root, root @ root.T, log_det(t), residual)


def alpha_hessian(covariance: Array, mean: Array, alpha: Array) -> Array:
    r"""Second derivatives of the evidence in all :math:`\log\alpha_j`; ``mean`` has a column for each target."""
    root = np.sqrt(alpha)  # in the units of the prior no product leaves the range of numbers
    covariance, mean = covariance * root * root[:, None], mean * root[:, None]
    targets = mean.shape[1]
    hessian = covariance * (0.5 * targets * covariance + mean @ mean.T)
    hessian.flat[:: len(alpha) + 1] -= 0.5 * (targets * np.diagonal(covariance) + np.sum(mean**2, axis=1))
    return hessian


def joint_newton(post: SmallPosterior, alpha: Array, beta: float, n: float, learn_noise: bool) -> tuple[Array, float]:
    r"""Newton's step in all :math:`\log\alpha_j`, and in :math:`\log\beta` (last) where the noise is learned.

    Where the evidence is not concave the Hessian is shifted until it is, so that the step always ascends at first.

    Returns
    -------
    step : ndarray of shape (a,) or (a + 1,)
        Changes of the logarithms, none larger than a few units.
    gain : float
        What the quadratic model promises.
    """
    covariance, mean, targets = post.covariance, post.mean, post.mean.shape[1]
    spread = targets * np.diagonal(covariance) + np.sum(mean**2, axis=1)
    gradient = 0.5 * (targets - alpha * spread)
    curvature = alpha_hessian(covariance, mean, alpha)
    if learn_noise:
        shrunk = alpha[:, None] * mean
        pulled = covariance @ shrunk
        v = np.diagonal(covariance) - np.square(covariance) @ alpha
        cross = alpha * (0.5 * targets * v - np.sum(mean * pulled, axis=1))
        fit = beta * post.residual_sumsq
        gamma = len(alpha) - float(alpha @ np.diagonal(covariance))
        along = -0.5 * (targets * float(alpha @ v) + fit) + float(np.sum(shrunk * pulled))
        a = len(alpha)
        bordered = np.empty((a + 1, a + 1))
        bordered[:a, :a] = curvature
        bordered[a, :a] = bordered[:a, a] = cross
        bordered[a, a] = along
        curvature = bordered
        gradient = np.append(gradient, 0.5 * (targets * (n - gamma) - fit))
    step = _ascend(-curvature, gradient)
    step = step / max(1.0, float(np.max(np.abs(step))) / _REACH)
    return step, 0.5 * float(gradient @ step)


def _ascend(hessian: Array, gradient: Array) -> Array:
    """Solve with the least multiple of the identity that makes the matrix positive definite."""
    size = len(gradient)
    for shift in _SHIFTS:
        factor = try_cholesky(hessian + shift * np.eye(size) if shift else hessian)
        if factor is not None:
            inverse = inverse_upper(factor)
            return inverse @ (inverse.T @ gradient)
    return np.zeros(size)
