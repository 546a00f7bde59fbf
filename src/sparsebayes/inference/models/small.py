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

from sparsebayes.inference.models.compiled import How, Library, MadeOf, Task, library
from sparsebayes.inference.models.evidence import Array, best_moves, gaussian_log_likelihood, log_evidence
from sparsebayes.inference.models.linalg import BLOCK, inverse_upper, log_det, reflected, solve_cholesky, try_cholesky

# Steps of one joint settling at most, and lengths of a step that are tried one after the other.
STEPS = 60
LENGTHS = (1.0, 0.3, 0.1, 0.01)
# Smallest diagonal entry of the Cholesky factor of the unit-diagonal precision at which it may stand in for the
# factorisation of the square roots: it then has lost no more than half of the digits.
WELL_CONDITIONED = 1e-3
# Longest step of a log precision, or of the log noise, in one joint move.
REACH = 3.0
# Multiples of the identity that are tried where the negative Hessian is not positive definite.
SHIFTS = (0.0, *np.geomspace(1e-3, 1e9, 21).tolist())
# The same for the compiled settling.
_RULES = Task(made_of=MadeOf.EITHER, apart=WELL_CONDITIONED, steps=STEPS, reach=REACH, block=BLOCK)
_RULES.searching(LENGTHS, SHIFTS)


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

    def restrict(self, stays: NDArray[np.bool_]) -> SmallProblem:
        """The problem of some of the functions."""
        return SmallProblem(self.R[:, stays], self.z, self.rest)


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


class Settling:
    """A model on its way to the joint maximum of its precisions and, up to a limit, of its inverse noise variance.

    Beyond the papers: a single re-estimation per move needs hundreds of moves where functions overlap; Newton's method
    on the exact derivatives needs a handful, and ends at the maximum itself, so that the result depends on the data
    alone and not on the path.  Functions without relevance leave.  A step stands only if the objective does not fall.

    Parameters
    ----------
    small, post : SmallProblem, SmallPosterior
        The functions, and their posterior where it begins.
    alpha, beta : ndarray of shape (a,), float
        Their precisions and the inverse noise variance.
    n, cost : float
        Number of observations, and what a function costs in nats.
    beta_limit : float or None
        The largest inverse noise variance; None where the noise is not learned.
    """

    def __init__(
        self,
        small: SmallProblem,
        post: SmallPosterior,
        alpha: Array,
        beta: float,
        n: float,
        cost: float,
        beta_limit: float | None,
    ) -> None:
        self.small, self.post, self.alpha, self.beta = small, post, alpha, beta
        self.n, self.n_targets, self.cost = n, small.z.shape[1], cost
        self.learn = beta_limit is not None
        self.beta_limit = beta_limit or np.inf
        self.stays = np.ones(len(alpha), dtype=bool)
        self.level = self._worth(post, alpha, beta)

    def settle(self, tol: float) -> None:
        """Ascend until a step promises less than ``tol``, by the compiled function where there is one."""
        compiled = library()
        if compiled is None:
            self.climb(tol)
        else:
            self.compiled(compiled, tol)

    def _worth(self, post: SmallPosterior, alpha: Array, beta: float) -> float:
        return post.evidence(alpha, beta, self.n) - self.cost * len(alpha)

    def _accept(self, small: SmallProblem, alpha: Array, beta: float) -> bool:
        """Move there if the objective does not fall."""
        post = SmallPosterior.of(small, alpha, beta)
        level = self._worth(post, alpha, beta)
        if not level >= self.level:
            return False
        self.small, self.alpha, self.beta, self.post, self.level = small, alpha, beta, post, level
        return True

    def compiled(self, compiled: Library, tol: float) -> None:
        """What ``climb`` does, by the same statements in C."""
        R, z, a = self.small.R, self.small.z, len(self.alpha)
        missing = a - len(R)
        if missing:
            R, z = np.pad(R, ((0, missing), (0, 0))), np.pad(z, ((0, missing), (0, 0)))
        task = Task.from_buffer_copy(_RULES)
        task.learn_noise, task.most_certain, task.tol = self.learn, self.beta_limit, tol
        task.n, task.cost = self.n, self.cost
        found = compiled.settle(How.EXACTLY, task, R, z, self.alpha, self.beta, self.small.rest)
        if found is None:
            return
        self.stays[:] = False
        self.stays[found.functions] = True
        self.post = SmallPosterior(found.mean, found.inverse, 2.0 * found.log_diagonal, found.residual_sumsq)
        self.alpha, self.beta = found.alpha, found.beta
        self.level = found.log_evidence - self.cost * len(found.alpha)

    def climb(self, tol: float) -> None:
        """Ascend until a step promises less than ``tol``."""
        for _ in range(STEPS):
            leaves = self._idle()
            if leaves.any():
                if not self._leave(leaves):
                    return
            elif not len(leaves) or self._newton() < tol:
                return

    def _idle(self) -> NDArray[np.bool_]:
        r"""Functions that are best left out: :math:`q^2\le s` (T&F eq. 21), or not worth what they cost."""
        variance = self.post.covariance.diagonal()
        gamma = np.maximum(1.0 - self.alpha * variance, 0.0)
        return idle(self.alpha, variance, gamma, self.post.mean, self.cost)

    def _leave(self, leaves: NDArray[np.bool_]) -> bool:
        """Let go of what has no relevance: all of it at once, or else the one that matters least."""
        if self._without(leaves):
            return True
        least = np.argmin(np.where(leaves, sumsq(self.post.mean) * self.alpha, np.inf))
        return self._without(np.arange(len(leaves)) == least)

    def _without(self, leaves: NDArray[np.bool_]) -> bool:
        if not self._accept(self.small.restrict(~leaves), self.alpha[~leaves], self.beta):
            return False
        self.stays[np.flatnonzero(self.stays)[leaves]] = False
        return True

    def _newton(self) -> float:
        """One safeguarded Newton step; what it gained, or promised where that is below rounding."""
        post = self.post
        step, promise = joint_newton(
            post.mean, post.covariance, post.residual_sumsq, self.alpha, self.beta, self.n, self.learn
        )
        before = self.level
        for length in LENGTHS:
            alpha = self.alpha * np.exp(length * step[: len(self.alpha)])
            beta = min(self.beta * float(np.exp(length * step[-1])), self.beta_limit) if self.learn else self.beta
            if self._accept(self.small, alpha, beta):
                return max(self.level - before, promise if length == 1.0 else 0.0)
        return 0.0
