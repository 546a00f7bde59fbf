"""Counts."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import gammaln

from .protocol import Array, Curvature, Likelihood

# Beyond this output the rate is not representable; a line search that strays there sees a cliff, not an overflow.
_LARGEST_LOG_RATE = 600.0


@dataclass(frozen=True)
class Poisson(Likelihood):
    r""":math:`t_n \sim \mathrm{Poisson}(e^{y_n + o})`, counted ``weights[n]`` times.

    Parameters
    ----------
    targets : ndarray of shape (N,)
        Counts.
    weights : ndarray of shape (N,)
        Sample weights.
    offset : float or ndarray of shape (N,)
        Log rate at zero output.
    """

    targets: Array
    weights: Array
    offset: Array | float = 0.0

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and outputs, (N, 1)."""
        return len(self.targets), 1

    def _rate(self, y: Array) -> Array:
        return np.exp(np.minimum(y[:, 0] + self.offset, _LARGEST_LOG_RATE))

    def log_likelihood(self, y: Array) -> float:
        r""":math:`t(y+o) - e^{y+o} - \log t!`."""
        log_rate = y[:, 0] + self.offset
        return float(self.weights @ (self.targets * log_rate - self._rate(y) - gammaln(self.targets + 1.0)))

    def gradient(self, y: Array) -> Array:
        r""":math:`t - e^{y+o}`."""
        return (self.weights * (self.targets - self._rate(y)))[:, None]

    def curvature(self, y: Array) -> Curvature:
        r""":math:`e^{y+o}`."""
        return Curvature((self.weights * self._rate(y))[:, None])

    def curvature_change(self, y: Array, variance: Array, along: Array | None = None) -> Array:
        r""":math:`B'V = e^{y+o}V`."""
        return self.curvature(y).diagonal * variance
