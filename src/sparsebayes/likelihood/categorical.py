"""Several classes, by the softmax."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .expected import softmax
from .protocol import Array, Classes, Curvature


@dataclass(frozen=True)
class Categorical(Classes):
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
        below = y - np.max(y, axis=1, keepdims=True)
        total = np.log(np.sum(np.exp(below), axis=1))
        return float(self.weights @ (np.sum(self.targets * below, axis=1) - total))

    def gradient(self, y: Array) -> Array:
        r""":math:`t - p`."""
        p, others = _probabilities(y)
        return self.weights[:, None] * np.where(self.targets > 0.5, others, -p)

    def curvature(self, y: Array) -> Curvature:
        r""":math:`\mathrm{diag}(p)-pp^\top` for every row."""
        p, others = _probabilities(y)
        return Curvature(self.weights[:, None] * p * others, np.sqrt(self.weights)[:, None] * p)

    def curvature_change(self, y: Array, variance: Array, along: Array | None = None) -> Array:
        r""":math:`p_k(a_k - p^\top a)` with :math:`a_i = V_{ii} - 2(Vp)_i`."""
        p, root = softmax(np, y), np.sqrt(self.weights)[:, None]
        change = p * self.weights[:, None] * variance
        if along is not None:
            change -= 2.0 * p * root * along
        return change - p * np.sum(change, axis=1, keepdims=True)


def _probabilities(y: Array) -> tuple[Array, Array]:
    r""":math:`p` and :math:`1-p`, for the likeliest class as a sum, so that no digit is lost where it is small."""
    p = softmax(np, y)
    others, rows, best = 1.0 - p, np.arange(len(p)), np.argmax(p, axis=1)
    rest = p.copy()
    rest[rows, best] = 0.0
    others[rows, best] = np.sum(rest, axis=1)
    return p, others
