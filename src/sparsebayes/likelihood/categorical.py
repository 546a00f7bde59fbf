"""Several classes, by the softmax."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from sparsebayes.basis.arrays import HOST, Place

from .expected import softmax
from .protocol import Classes, Curvature


@dataclass(frozen=True)
class Categorical(Classes):
    r""":math:`P(t_n=k) = e^{y_{nk}}/\sum_l e^{y_{nl}}`, counted ``weights[n]`` times.

    The report on Tipping 2001 prints a product over classes (eq. 21); it is read as the multinomial likelihood.

    Parameters
    ----------
    targets : array of shape (N, K)
        One-hot classes.
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
        """Rows and classes, (N, K)."""
        return int(self.targets.shape[0]), int(self.targets.shape[1])

    def log_likelihood(self, y: Any) -> float:
        """Log likelihood of the outputs."""
        xp = self.place.xp
        below = y - xp.max(y, axis=1, keepdims=True)
        total = xp.log(xp.sum(xp.exp(below), axis=1))
        return float(self.weights @ (xp.sum(self.targets * below, axis=1) - total))

    def _probabilities(self, y: Any) -> tuple[Any, Any]:
        r""":math:`p` and :math:`1-p`, of a likely class as the sum of the others, so that it is exact where small."""
        xp, p = self.place.xp, softmax(self.place.xp, y)
        likely = p > 0.5  # one class at most
        rest = xp.sum(xp.where(likely, xp.zeros_like(p), p), axis=1, keepdims=True)
        return p, xp.where(likely, rest, 1.0 - p)

    def gradient(self, y: Any) -> Any:
        r""":math:`t - p`."""
        p, others = self._probabilities(y)
        return self.weights[:, None] * self.place.xp.where(self.targets > 0.5, others, -p)

    def curvature(self, y: Any) -> Curvature:
        r""":math:`\mathrm{diag}(p)-pp^\top` for every row."""
        p, others = self._probabilities(y)
        return Curvature(self.weights[:, None] * p * others, self.place.xp.sqrt(self.weights)[:, None] * p)

    def curvature_change(self, y: Any, variance: Any, along: Any = None) -> Any:
        r""":math:`p_k(a_k - p^\top a)` with :math:`a_i = V_{ii} - 2(Vp)_i`."""
        xp, p = self.place.xp, softmax(self.place.xp, y)
        change = p * self.weights[:, None] * variance
        if along is not None:
            change = change - 2.0 * p * xp.sqrt(self.weights)[:, None] * along
        return change - p * xp.sum(change, axis=1, keepdims=True)
