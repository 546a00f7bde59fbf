"""Several classes, by the softmax."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import logsumexp, softmax

from .protocol import Array, Likelihood


@dataclass(frozen=True)
class Categorical(Likelihood):
    r""":math:`P(t_n=k) = e^{y_{nk}}/\sum_l e^{y_{nl}}`, counted ``weights[n]`` times.

    The report on Tipping 2001 prints a product over classes (eq. 21); it is read as the multinomial likelihood.

    Parameters
    ----------
    targets : ndarray of shape (N, K)
        One-hot classes.
    weights : ndarray of shape (N,)
        Sample weights.
    """

    targets: Array
    weights: Array

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and classes, (N, K)."""
        n, k = self.targets.shape
        return n, k

    def log_likelihood(self, y: Array) -> float:
        """Log likelihood of the outputs."""
        return float(self.weights @ (np.sum(self.targets * y, axis=1) - logsumexp(y, axis=1)))

    def gradient(self, y: Array) -> Array:
        r""":math:`t - p`."""
        return self.weights[:, None] * (self.targets - softmax(y, axis=1))

    def curvature(self, y: Array) -> Array:
        r""":math:`\mathrm{diag}(p)-pp^\top` for every row."""
        p = softmax(y, axis=1)
        block = -p[:, :, None] * p[:, None, :]
        diagonal = np.arange(p.shape[1])
        block[:, diagonal, diagonal] += p
        return self.weights[:, None, None] * block

    def curvature_change(self, y: Array, spread: Array) -> Array:
        r""":math:`p_k(a_k - p^\top a)` with :math:`a_i = V_{ii} - 2(Vp)_i`."""
        p = softmax(y, axis=1)
        a = np.einsum("nkk->nk", spread) - 2.0 * np.einsum("nkl,nl->nk", spread, p)
        return self.weights[:, None] * p * (a - np.sum(p * a, axis=1, keepdims=True))
