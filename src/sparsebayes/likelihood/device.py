"""Classes of rows on a device: ``bernoulli.py`` and ``categorical.py`` in the array API, log likelihood included."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from sparsebayes.basis.arrays import Place

from .expected import softmax
from .protocol import Classes, Curvature


def _expit(xp: Any, y: Any) -> Any:
    """The logistic, without overflow on either side."""
    small = xp.exp(-xp.abs(y))
    return xp.where(y >= 0.0, xp.ones_like(y), small) / (1.0 + small)


@dataclass(frozen=True)
class ArrayBernoulli(Classes):
    """Two classes.

    Parameters
    ----------
    place : Place
        Where the rows live.
    signs : (N,) array
        1 for rows of the class, -1 for the others.
    weights : (N,) array
        Sample weights.
    """

    place: Place = field()
    signs: Any
    weights: Any

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and outputs, (N, 1)."""
        return int(self.signs.shape[0]), 1

    def log_likelihood(self, y: Any) -> Any:
        """Log likelihood; the softplus keeps saturated rows exact."""
        signed = -self.signs * y[:, 0]
        return -self.place.xp.sum(self.weights * self.place.xp.logaddexp(self.place.xp.zeros_like(signed), signed))

    def gradient(self, y: Any) -> Any:
        r""":math:`t-\sigma(y)`, as :math:`\pm\sigma(\mp y)`."""
        return (self.weights * self.signs * _expit(self.place.xp, -self.signs * y[:, 0]))[:, None]

    def curvature(self, y: Any) -> Curvature:
        r""":math:`\sigma(y)\sigma(-y)` (T&F eq. 11)."""
        return Curvature(self.weights[:, None] * _expit(self.place.xp, y) * _expit(self.place.xp, -y))

    def curvature_change(self, y: Any, variance: Any, along: Any = None) -> Any:
        r""":math:`B'V = \sigma(y)\sigma(-y)(1-2\sigma(y))V`, where :math:`1-2\sigma(y) = -\tanh(y/2)`."""
        return self.curvature(y).diagonal * variance * -self.place.xp.tanh(0.5 * y)


@dataclass(frozen=True)
class ArrayCategorical(Classes):
    """Several classes, by the softmax.

    Parameters
    ----------
    place : Place
        Where the rows live.
    targets : (N, K) array
        One-hot classes.
    weights : (N,) array
        Sample weights.
    """

    place: Place = field()
    targets: Any
    weights: Any

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and classes, (N, K)."""
        return int(self.targets.shape[0]), int(self.targets.shape[1])

    def _shifted(self, y: Any) -> tuple[Any, Any]:
        """Outputs below the largest of their row, and the sums of their exponentials."""
        xp = self.place.xp
        low = y - xp.max(y, axis=1, keepdims=True)
        return low, xp.sum(xp.exp(low), axis=1, keepdims=True)

    def _probabilities(self, y: Any) -> tuple[Any, Any]:
        r""":math:`p` and :math:`1-p`, for the likeliest class as a sum, so that no digit is lost where it is small."""
        xp, p = self.place.xp, softmax(self.place.xp, y)
        classes = xp.arange(p.shape[1], device=self.place.device)
        best = xp.argmax(p, axis=1)[:, None] == classes[None, :]
        rest = xp.sum(xp.where(best, xp.zeros_like(p), p), axis=1, keepdims=True)
        return p, xp.where(best, rest, 1.0 - p)

    def log_likelihood(self, y: Any) -> Any:
        """Log likelihood of the outputs."""
        xp = self.place.xp
        low, total = self._shifted(y)
        return xp.sum(self.weights * (xp.sum(self.targets * low, axis=1) - xp.log(total[:, 0])))

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
        change = p * (self.weights[:, None] * variance - 2.0 * xp.sqrt(self.weights)[:, None] * along)
        return change - p * xp.sum(change, axis=1, keepdims=True)
