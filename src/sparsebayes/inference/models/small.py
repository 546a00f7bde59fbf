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
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from sparsebayes.inference.models.evidence import Array, best_moves, gaussian_log_likelihood, log_evidence
from sparsebayes.inference.models.linalg import inverse_upper, log_det, reflected, solve_cholesky, try_cholesky

# Smallest diagonal entry of the Cholesky factor of the unit-diagonal precision at which it may stand in for the
# factorisation of the square roots: it then has lost no more than half of the digits.
WELL_CONDITIONED = 1e-3
# Longest step of a log precision, or of the log noise, in one joint move.
REACH = 3.0
# Multiples of the identity that are tried where the negative Hessian is not positive definite.
SHIFTS = (0.0, *np.geomspace(1e-3, 1e9, 21).tolist())


@dataclass(frozen=True)
class SmallProblem:
    r"""What the posterior of the active weights follows from, at any :math:`(\boldsymbol\alpha, \beta)`.

    Attributes
    ----------
    R, z : ndarray of shape (u, a), (u, T)
        Coordinates of the active columns, and of the targets, in an orthonormal basis.
    rest : float
        Sum of squares of the targets outside it.
    """

    R: Array
    z: Array
    rest: float

    @cached_property
    def gram(self) -> Array:
        r""":math:`\mathbf R^\top\mathbf R`."""
        return self.R.T @ self.R

    @cached_property
    def projection(self) -> Array:
        r""":math:`\mathbf R^\top\mathbf z`."""
        return self.R.T @ self.z


@dataclass(frozen=True)
class SmallPosterior:
    r"""Posterior of the active weights at one :math:`(\boldsymbol\alpha, \beta)`.

    ``root`` is upper triangular with :math:`\boldsymbol\Sigma` = root rootᵀ.
    """

    mean: Array
    root: Array
    log_det_precision: float
    residual_sumsq: float

    @classmethod
    def solve(cls, R: Array, z: Array, rest: float, alpha: Array, beta: float) -> SmallPosterior:
        """Posterior from the factors; ``rest`` is the part of the targets outside the span of U."""
        return cls.of(SmallProblem(R, z, rest), alpha, beta)

    @classmethod
    def of(cls, problem: SmallProblem, alpha: Array, beta: float) -> SmallPosterior:
        r"""Posterior of a problem.

        By Cholesky where the precision is well conditioned, else by QR of the stacked square roots, in which its
        condition number enters under a square root.
        """
        R, z, a = problem.R, problem.z, len(alpha)
        if a == 0:
            return cls(np.zeros((0, z.shape[1])), np.zeros((0, 0)), 0.0, problem.rest + float(np.vdot(z, z)))
        precision = beta * problem.gram
        diagonal = np.einsum("ii->i", precision)
        diagonal += alpha
        scale = np.sqrt(diagonal)
        t = try_cholesky(precision)
        if t is not None and (t.diagonal() / scale).min() > WELL_CONDITIONED:
            mean, root = solve_cholesky(t, beta * problem.projection), inverse_upper(t)
        else:
            t, half = reflected(np.sqrt(alpha), np.sqrt(beta) * R, np.sqrt(beta) * z)
            root = inverse_upper(t)
            mean = root @ half
        left = z - R @ mean
        return cls(mean, root, log_det(t), problem.rest + float(np.vdot(left, left)))

    @cached_property
    def covariance(self) -> Array:
        r""":math:`\boldsymbol\Sigma`."""
        return self.root @ self.root.T

    def evidence(self, alpha: Array, beta: float, n: float) -> float:
        """Log evidence of n observations, at the hyperparameters that this is the posterior of."""
        targets = self.mean.shape[1]
        fit = gaussian_log_likelihood(self.residual_sumsq, beta, targets * n)
        return log_evidence(fit, self.mean, alpha, self.log_det_precision, targets)


def sumsq(mean: Array) -> Array:
    """Sums of squares of the rows, of a single number mostly."""
    return mean[:, 0] * mean[:, 0] if mean.shape[1] == 1 else np.einsum("jt,jt->j", mean, mean)


def alpha_hessian(covariance: Array, mean: Array, alpha: Array) -> Array:
    r"""Second derivatives of the evidence in all :math:`\log\alpha_j`; ``mean`` has a column for each target."""
    root = np.sqrt(alpha)  # in the units of the prior no product leaves the range of numbers
    return _scaled_hessian(covariance * root * root[:, None], mean * root[:, None])


def _scaled_hessian(covariance: Array, mean: Array) -> Array:
    """Second derivatives of the evidence in all log precisions, of weights in the units of their prior."""
    targets = mean.shape[1]
    hessian = mean @ mean.T
    hessian += (0.5 * targets) * covariance
    hessian *= covariance
    diagonal = np.einsum("ii->i", hessian)
    diagonal -= 0.5 * (targets * covariance.diagonal() + sumsq(mean))
    return hessian


def joint_newton(
    mean: Array, covariance: Array, residual_sumsq: float, alpha: Array, beta: float, n: float, learn_noise: bool
) -> tuple[Array, float]:
    r"""Newton's step in all :math:`\log\alpha_j`, and in :math:`\log\beta` (last) where the noise is learned.

    Where the evidence is not concave the Hessian is shifted until it is, so that the step always ascends at first.

    Parameters
    ----------
    mean, covariance : ndarray of shape (a, T), (a, a)
        Posterior of the weights.
    residual_sumsq : float
        Sum of squared residuals over all targets.
    alpha, beta : ndarray of shape (a,), float
        Precisions and inverse noise variance.
    n : float
        Number of observations.
    learn_noise : bool
        Whether the noise moves too.

    Returns
    -------
    step : ndarray of shape (a,) or (a + 1,)
        Changes of the logarithms, none larger than a few units.
    gain : float
        What the quadratic model promises.
    """
    a, targets, root = len(alpha), mean.shape[1], np.sqrt(alpha)
    covariance, mean = covariance * root * root[:, None], mean * root[:, None]
    variance, squares, fit = covariance.diagonal(), sumsq(mean), beta * residual_sumsq
    gradient = np.empty(a + learn_noise)
    gradient[:a] = 0.5 * (targets - targets * variance - squares)
    hessian = np.empty((a + learn_noise, a + learn_noise))
    hessian[:a, :a] = _scaled_hessian(covariance, mean)
    if learn_noise:
        pulled = covariance @ mean
        v = variance - np.einsum("ij,ij->i", covariance, covariance)  # α_j v_j
        hessian[a, :a] = hessian[:a, a] = 0.5 * targets * v - (mean * pulled).sum(axis=1)
        hessian[a, a] = -0.5 * (targets * v.sum() + fit) + np.vdot(mean, pulled)
        gradient[a] = 0.5 * (targets * (n - a + variance.sum()) - fit)
    step = _ascend(np.negative(hessian, out=hessian), gradient)
    step /= max(1.0, float(np.abs(step).max()) / REACH)
    return step, 0.5 * float(gradient @ step)


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
