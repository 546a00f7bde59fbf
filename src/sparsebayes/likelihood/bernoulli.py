"""Two classes."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import expit

from .protocol import Array, Likelihood


@dataclass(frozen=True)
class Bernoulli(Likelihood):
    r""":math:`P(t_n=1) = \sigma(y_n) = 1/(1+e^{-y_n})`, counted ``weights[n]`` times (T&F eq. 9).

    Parameters
    ----------
    targets : ndarray of shape (N,)
        0 or 1.
    weights : ndarray of shape (N,)
        Sample weights.
    """

    targets: Array
    weights: Array

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and outputs, (N, 1)."""
        return len(self.targets), 1

    def log_likelihood(self, y: Array) -> float:
        """Log likelihood; the softplus keeps saturated rows exact."""
        signed = np.where(self.targets > 0.5, y[:, 0], -y[:, 0])
        return -float(self.weights @ np.logaddexp(0.0, -signed))

    def gradient(self, y: Array) -> Array:
        r""":math:`t-\sigma(y)`, as :math:`\pm\sigma(\mp y)` so that no digit is lost where it is small."""
        signed = np.where(self.targets > 0.5, 1.0, -1.0)
        return (self.weights * signed * expit(-signed * y[:, 0]))[:, None]

    def curvature(self, y: Array) -> Array:
        r""":math:`\sigma(y)\sigma(-y)` (T&F eq. 11)."""
        return (self.weights * expit(y[:, 0]) * expit(-y[:, 0]))[:, None, None]

    def curvature_change(self, y: Array, spread: Array) -> Array:
        r""":math:`B'V = \sigma(y)\sigma(-y)(1-2\sigma(y))V`."""
        return (self.curvature(y) * spread)[:, :, 0] * (1.0 - 2.0 * expit(y))
