"""Gaussian targets."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .protocol import Array, Curvature, Likelihood


def gaussian_log_likelihood(residual_sumsq: float, beta: float, n: float) -> float:
    r""":math:`\log \mathcal N(\mathbf t \mid \mathbf y, \beta^{-1}\mathbf I)` from the residual sum of squares."""
    return 0.5 * n * float(np.log(beta) - np.log(2.0 * np.pi)) - 0.5 * beta * residual_sumsq


@dataclass(frozen=True)
class Gaussian(Likelihood):
    r""":math:`t_n \sim \mathcal N(y_n, \beta^{-1})`, counted ``weights[n]`` times (T&F eq. 3)."""

    targets: Array
    weights: Array
    beta: float

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and outputs, (N, 1)."""
        return len(self.targets), 1

    def log_likelihood(self, y: Array) -> float:
        """Log likelihood of the outputs."""
        sumsq = float(self.weights @ (self.targets - y[:, 0]) ** 2)
        return gaussian_log_likelihood(sumsq, self.beta, float(np.sum(self.weights)))

    def gradient(self, y: Array) -> Array:
        """Weighted residuals."""
        return (self.beta * self.weights * (self.targets - y[:, 0]))[:, None]

    def curvature(self, y: Array) -> Curvature:
        """Inverse noise variance, the same wherever the outputs are."""
        return Curvature((self.beta * self.weights)[:, None])

    def curvature_change(self, y: Array, variance: Array, along: Array | None = None) -> Array:
        """Zero: the problem is quadratic."""
        return np.zeros_like(y)
