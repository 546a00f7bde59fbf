r"""The fan-in of backfitting: many functions, their weights, and what they leave unexplained.

The log posterior of the weights at noise :math:`s` and precisions :math:`\alpha`,

.. math::  -\frac{1}{2s}\|\mathbf t - \boldsymbol\Phi\mathbf b\|^2 - \tfrac12\sum_m\alpha_m b_m^2 ,

is climbed at O(NM) a sweep: every function in turn is regressed on its *fake target*, what all the others leave
(D'Souza et al. eq. 6).  Nothing is factored or inverted, unless rows or functions are so few that one small factor
gives the end of all sweeps for less than a few dozen of them cost.  Functions come in blocks whose inner products
:math:`\mathbf G` are kept, so that a sweep through a block is one forward substitution with the lower triangle of
:math:`\mathbf G + s\mathbf A`: exactly the Gauss-Seidel sweep, at the speed of matrix products.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import solve_triangular

from sparsebayes.inference.models.evidence import Array
from sparsebayes.inference.models.linalg import solve_cholesky, try_cholesky
from sparsebayes.inference.models.problem import GaussianProblem, Index

# Functions whose inner products are kept together.
_BLOCK = 64
# Columns are held in memory up to this many bytes, and fetched from the design block by block beyond.
_HELD_BYTES = 1 << 30
# Rows or functions up to which the maximum is computed instead of climbed to.  A step of conjugate gradients costs
# about 12 NM operations and a factor N²M, so this many rows are worth some 25 steps; where functions are nearly
# dependent 40 do not suffice, and cycles that stop short of the maximum follow one another by the thousand.
_FEW = 300


class Branches:
    r"""Functions with their weights and precisions, and the residuals of the (whitened) targets.

    Attributes
    ----------
    indices : ndarray of int, shape (m,)
        Functions of the problem.
    weights : ndarray of shape (m, T)
        Mean weights :math:`\langle b_m\rangle`.
    alpha : ndarray of shape (m,)
        Precisions.
    sqnorms : ndarray of shape (m,)
        :math:`\|\phi_m\|^2`, weighted.
    residual : ndarray of shape (N, T)
        :math:`\mathbf t-\boldsymbol\Phi\mathbf b`, whitened.
    """

    def __init__(self, problem: GaussianProblem, indices: Index, weights: Array, alpha: Array) -> None:
        self.problem = problem
        self.indices, self.weights, self.alpha = indices, weights.copy(), alpha.copy()
        self._held: Array | None = None
        if 8 * len(problem.target) * len(indices) <= _HELD_BYTES:
            self._held = np.asfortranarray(problem.columns(indices))
        self._prepare()

    def _prepare(self) -> None:
        self.__dict__.pop("_grams", None)
        self.sqnorms = self.problem.sqnorms[self.indices]
        self.residual = self.problem.target - self.product(self.weights)

    @cached_property
    def _grams(self) -> list[Array]:
        return [values.T @ values for _, values in self._blocks()]

    @property
    def size(self) -> int:
        """Number of functions."""
        return len(self.indices)

    @property
    def residual_sumsq(self) -> float:
        """Weighted sum of squares over all targets."""
        return float(np.sum(self.residual**2))

    @property
    def mean_squares(self) -> Array:
        r""":math:`\langle b_m\rangle^2`, the mean over targets that share their precisions."""
        return np.mean(self.weights**2, axis=1)

    def restrict(self, stays: NDArray[np.bool_]) -> None:
        """Leave some functions out."""
        self.indices, self.weights, self.alpha = self.indices[stays], self.weights[stays], self.alpha[stays]
        if self._held is not None:
            self._held = np.asfortranarray(self._held[:, stays])
        self._prepare()

    # -- products ------------------------------------------------------------------------------------------

    def _blocks(self, reverse: bool = False) -> Iterator[tuple[slice, Array]]:
        starts = range(0, self.size, _BLOCK)
        for start in reversed(starts) if reverse else starts:
            block = slice(start, min(start + _BLOCK, self.size))
            yield block, self._held[:, block] if self._held is not None else self.problem.columns(self.indices[block])

    def product(self, weights: Array) -> Array:
        r""":math:`\boldsymbol\Phi\mathbf w`, whitened."""
        result = np.zeros(self.problem.target.shape)
        for block, values in self._blocks():
            result += values @ weights[block]
        return result

    def correlate(self, rows: Array) -> Array:
        r""":math:`\boldsymbol\Phi^\top` times whitened vectors."""
        parts = [values.T @ rows for _, values in self._blocks()]
        return np.concatenate(parts) if parts else np.zeros((0, rows.shape[1]))

    def squares(self, variance: Array) -> Array:
        r""":math:`\sum_m v_m\phi_{im}^2` for every whitened row."""
        result = np.zeros(len(self.problem.target))
        for block, values in self._blocks():
            result += values**2 @ variance[block]
        return result

    def gradient(self, noise: float) -> Array:
        """Gradient of the log posterior of the weights, times the noise."""
        return self.correlate(self.residual) - noise * self.alpha[:, None] * self.weights

    # -- ways to climb -------------------------------------------------------------------------------------

    @property
    def few(self) -> bool:
        """Whether the maximum costs less than the way there."""
        return self._held is not None and min(self._held.shape) <= _FEW

    def exact(self, noise: float) -> float | None:
        r"""The maximum itself; returns the gain of the log posterior, or None where rounding is in the way.

        With functions no more than rows :math:`\mathbf b=(\boldsymbol\Phi^\top\boldsymbol\Phi+s\mathbf A)^{-1}
        \boldsymbol\Phi^\top\mathbf t`, else :math:`\mathbf b=\mathbf A^{-1}\boldsymbol\Phi^\top(\boldsymbol\Phi
        \mathbf A^{-1}\boldsymbol\Phi^\top+s\mathbf I)^{-1}\mathbf t`, of functions scaled by their prior deviations.
        """
        if self._held is None or not self.size:
            return None
        root = np.sqrt(self.alpha)
        scaled, target = self._held / root, self.problem.target
        wide = scaled.shape[1] > scaled.shape[0]
        square = scaled @ scaled.T if wide else scaled.T @ scaled
        square.flat[:: len(square) + 1] += noise
        factor = try_cholesky(square)
        if factor is None:
            return None
        if wide:
            dual = solve_cholesky(factor, target)
            dual += solve_cholesky(factor, target - scaled @ (scaled.T @ dual) - noise * dual)
            weights = scaled.T @ dual
        else:
            weights = solve_cholesky(factor, scaled.T @ target)
            weights += solve_cholesky(factor, scaled.T @ (target - scaled @ weights) - noise * weights)
        before, old = self._height(noise), (self.weights, self.residual)
        self.weights = weights / root[:, None]
        self.residual = target - self._held @ self.weights
        gain = self._height(noise) - before
        if gain < 0.0:  # nothing is left but rounding
            self.weights, self.residual = old
        return max(gain, 0.0)

    def parallel(self, noise: float, share: float) -> float:
        r"""All functions at once, by a fraction of the way (eq. 9, with :math:`\psi_{zm}` = share × noise).

        This is EM with the outputs of the functions as hidden variables; it ascends while the shares add up to no more
        than one.  Returns the gain of the log posterior.
        """
        before = self._height(noise)
        psi = share * noise
        total = (self.sqnorms + psi * self.alpha)[:, None]
        correlation = self.correlate(self.residual)
        self.weights = (self.sqnorms[:, None] * self.weights + share * correlation) / total
        self.residual = self.problem.target - self.product(self.weights)
        return self._height(noise) - before

    def sequential(self, noise: float) -> float:
        """Every function in turn, all the way (eq. 6, with the precisions); returns the gain of the log posterior."""
        before = self._height(noise)
        self._sweep(self.weights, self.residual, noise)
        return self._height(noise) - before

    def conjugate(self, noise: float, steps: int, tol: float) -> float:
        """Conjugate gradients in the metric of a sweep there and back; returns the gain of the last step.

        The sweeps are those of backfitting; choosing each direction conjugate to the last ones takes the square root of
        the number of sweeps that nearly dependent functions need otherwise.
        """
        direction = np.zeros_like(self.weights)
        last, gain = np.ones(self.weights.shape[1]), 0.0
        prior = noise * self.alpha[:, None]
        for step in range(steps):
            trial, rows = self.weights.copy(), self.residual.copy()
            self._sweep(trial, rows, noise)
            self._sweep(trial, rows, noise, back=True)
            change = trial - self.weights
            slope = np.sum(self.gradient(noise) * change, axis=0)
            direction = change + (slope / last if step else 0.0) * direction
            outputs = self.product(direction)
            curvature = np.sum(outputs**2, axis=0) + np.sum(prior * direction**2, axis=0)
            length = np.where(curvature > 0.0, slope / np.where(curvature > 0.0, curvature, 1.0), 0.0)
            self.weights += length * direction
            self.residual -= outputs * length
            last = np.where(slope > 0.0, slope, 1.0)
            gain = 0.5 * float(np.sum(length * slope)) / noise
            if gain <= tol:
                break
        return gain

    def _sweep(self, weights: Array, rows: Array, noise: float, *, back: bool = False) -> None:
        """One Gauss-Seidel sweep, in place."""
        for block, values in self._blocks(reverse=back):
            gram = self._grams[block.start // _BLOCK]
            prior = noise * self.alpha[block]
            triangle = (np.triu(gram) if back else np.tril(gram)) + np.diag(prior)
            target = values.T @ rows - prior[:, None] * weights[block]
            change = solve_triangular(triangle, target, lower=not back, check_finite=False)
            weights[block] += change
            rows -= values @ change

    def _height(self, noise: float) -> float:
        """Log posterior of the weights, up to a constant."""
        return -0.5 * (self.residual_sumsq / noise + float(np.sum(self.alpha @ self.weights**2)))
