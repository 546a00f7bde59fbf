"""Squared errors, whose size is what is learned."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .protocol import Array, Curvature, Likelihood

# Beyond these outputs the variance is not representable; a line search that strays there sees a cliff, not an overflow.
_LARGEST_LOG_RATIO = 600.0


@dataclass(frozen=True)
class SquaredErrors(Likelihood):
    r""":math:`e_n^2 \sim \mathrm{Gamma}(\tfrac12)` with mean :math:`\sigma_n^2 = e^{y_n+o}`, ``weights[n]`` times.

    The square of a Gaussian error has this distribution.  As a function of :math:`y_n` its density is proportional to
    that of the error itself, which is what is computed here:

    .. math:: \log\mathcal N(e_n\mid 0,\sigma_n^2)
              = -\tfrac12\left(\log 2\pi + y_n + o + e_n^2\,e^{-(y_n+o)}\right) .

    It is linear in :math:`e_n^2`: where the error is uncertain, its expected square gives the expected log density.

    Parameters
    ----------
    squares : ndarray of shape (N,)
        Squared errors, or their expectations.
    weights : ndarray of shape (N,)
        Sample weights.
    offset : float
        Log variance at zero output.
    """

    squares: Array
    weights: Array
    offset: float = 0.0

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and outputs, (N, 1)."""
        return len(self.squares), 1

    def ratio(self, y: Array) -> Array:
        r""":math:`e_n^2/\sigma_n^2`, which is :math:`\chi_1^2` where the variance is right."""
        log_ratio = np.clip(-(y[:, 0] + self.offset), -_LARGEST_LOG_RATIO, _LARGEST_LOG_RATIO)
        return self.squares * np.exp(log_ratio)

    def log_likelihood(self, y: Array) -> float:
        """Log density of the errors."""
        return -0.5 * float(self.weights @ (np.log(2.0 * np.pi) + y[:, 0] + self.offset + self.ratio(y)))

    def gradient(self, y: Array) -> Array:
        r""":math:`\tfrac12(e^2/\sigma^2 - 1)`."""
        return (0.5 * self.weights * (self.ratio(y) - 1.0))[:, None]

    def curvature(self, y: Array) -> Curvature:
        r""":math:`\tfrac12e^2/\sigma^2`."""
        return Curvature((0.5 * self.weights * self.ratio(y))[:, None])

    def curvature_change(self, y: Array, variance: Array, along: Array | None = None) -> Array:
        r""":math:`B'V = -BV`."""
        return -self.curvature(y).diagonal * variance
