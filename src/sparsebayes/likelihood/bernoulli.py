"""Two classes."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

from sparsebayes.basis.arrays import HOST, Place

from .protocol import Classes, Curvature


@dataclass(frozen=True)
class Bernoulli(Classes):
    r""":math:`P(t_n=1) = \sigma(y_n) = 1/(1+e^{-y_n})`, counted ``weights[n]`` times (T&F eq. 9).

    Parameters
    ----------
    targets : array of shape (N,)
        0 or 1.
    weights : array of shape (N,)
        Sample weights.
    place : Place
        Where these are.
    """

    targets: Any
    weights: Any
    place: Place = HOST

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and outputs, (N, 1)."""
        return int(self.targets.shape[0]), 1

    @cached_property
    def _signs(self) -> Any:
        return 2.0 * self.targets - 1.0

    def _tail(self, y: Any) -> Any:
        """:math:`e^{-|y|}`, in which nothing overflows and no digit is lost where rows saturate."""
        return self.place.xp.exp(-self.place.xp.abs(y))

    def log_likelihood(self, y: Any) -> float:
        r""":math:`\min(y', 0) - \log(1+e^{-|y'|})` of :math:`y'=\pm y`."""
        xp, signed = self.place.xp, self._signs * y[:, 0]
        below = 0.5 * (signed - xp.abs(signed))
        return float(self.weights @ (below - xp.log1p(self._tail(signed))))

    def gradient(self, y: Any) -> Any:
        r""":math:`t-\sigma(y)`, as :math:`\pm\sigma(\mp y)`."""
        xp, signed = self.place.xp, self._signs * y[:, 0]
        tail = self._tail(signed)
        small = xp.where(signed > 0.0, tail, xp.ones_like(tail)) / (1.0 + tail)
        return (self.weights * self._signs * small)[:, None]

    def curvature(self, y: Any) -> Curvature:
        r""":math:`\sigma(y)\sigma(-y) = e^{-|y|}/(1+e^{-|y|})^2` (T&F eq. 11)."""
        tail = self._tail(y[:, 0])
        return Curvature((self.weights * tail / (1.0 + tail) ** 2)[:, None])

    def curvature_change(self, y: Any, variance: Any, along: Any = None) -> Any:
        r""":math:`B'V = \sigma(y)\sigma(-y)(1-2\sigma(y))V`, where :math:`1-2\sigma(y) = -\tanh(y/2)`."""
        return self.curvature(y).diagonal * variance * -self.place.xp.tanh(0.5 * y)
