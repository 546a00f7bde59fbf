"""Two classes."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from .protocol import Array, Classes, Curvature

# Largest log-odds whose exponential is a number.
_LARGEST = 700.0


@dataclass(frozen=True)
class Bernoulli(Classes):
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

    @cached_property
    def _signs(self) -> Array:
        return np.where(self.targets > 0.5, 1.0, -1.0)

    def log_likelihood(self, y: Array) -> float:
        """Log likelihood; the softplus keeps saturated rows exact."""
        signed = self._signs * y[:, 0]
        below = np.minimum(signed, 0.0)
        np.exp(np.negative(np.abs(signed, out=signed), out=signed), out=signed)
        return float(self.weights @ (below - np.log1p(signed, out=signed)))

    def gradient(self, y: Array) -> Array:
        r""":math:`t-\sigma(y)`, as :math:`\pm\sigma(\mp y)` so that no digit is lost where it is small."""
        odds = np.exp(np.minimum(self._signs * y[:, 0], _LARGEST))
        return (self.weights * self._signs / (1.0 + odds))[:, None]

    def curvature(self, y: Array) -> Curvature:
        r""":math:`\sigma(y)\sigma(-y) = e^{-|y|}/(1+e^{-|y|})^2` (T&F eq. 11)."""
        tail = np.exp(-np.abs(y[:, 0]))
        return Curvature((self.weights * tail / np.square(1.0 + tail))[:, None])

    def curvature_change(self, y: Array, variance: Array, along: Array | None = None) -> Array:
        r""":math:`B'V = \sigma(y)\sigma(-y)(1-2\sigma(y))V`, where :math:`1-2\sigma(y) = -\tanh(y/2)`."""
        return self.curvature(y).diagonal * variance * -np.tanh(0.5 * y)
