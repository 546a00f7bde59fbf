"""What the extent of the data says about a kernel's parameters: weak priors, limits, and where an input is off."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sparsebayes.basis import Parameter
from sparsebayes.kernel_learning.gradients import LogNormal

Array = NDArray[np.float64]
Mask = NDArray[np.bool_]

# Standard deviation of the prior of a log parameter: a factor of twenty is one standard deviation.
_WIDTH = 3.0
# One length for all inputs is expected near that of scikit-learn's gamma="scale"; a length for one input, where the
# functions hardly vary along it, so that an input is irrelevant unless the evidence says otherwise.
_IRRELEVANT = 30.0
# Lengths between these multiples of the extent of an input make a difference.
_SHORTEST, _LONGEST = 1e-4, 1e3
# A number without units may move by a factor of a thousand either way.
_ENDS = np.array([-7.0, 7.0])
# How near a log length is to being off.
_NEARLY_OFF = 1.2


@dataclass(frozen=True)
class Limits:
    """Where parameters may be.

    Attributes
    ----------
    prior : LogNormal
        Weak priors and limits.
    off : ndarray of shape (P,)
        Log parameters at which an input is switched off; NaN where a parameter belongs to no single input.
    longer : ndarray of shape (P,)
        Change of the log parameters when all lengths grow by a factor of e.
    """

    prior: LogNormal
    off: Array
    longer: Array

    @property
    def per_input(self) -> bool:
        """Whether inputs have parameters of their own."""
        return bool(np.any(np.isfinite(self.off)))

    def live(self, log_theta: Array) -> Mask:
        """Parameters whose input is not switched off (a length beyond the limit is off too)."""
        with np.errstate(invalid="ignore"):
            return np.isnan(self.off) | (np.sign(self.longer) * (self.off - log_theta) > _NEARLY_OFF)

    def stretched(self, log_theta: Array, factor: float) -> Array:
        """All lengths longer by a factor, except those of inputs switched off; no input is thereby switched off."""
        there = np.clip(log_theta + np.log(factor) * self.longer, self.prior.lower, self.prior.upper)
        return np.where(self.live(log_theta) & self.live(there), there, log_theta)


def learnable_limits(parameters: Sequence[Parameter], extent: Array, beside: Array) -> Limits:
    """Priors and limits in units of the data's extent, wide enough for another place too."""
    centre, low, high, alone = [], [], [], []
    for p in parameters:
        whole = float(np.sqrt(np.sum(extent**2))) if p.feature is None else float(extent[p.feature])
        alone.append(p.feature is not None and whole > 0.0)
        whole = whole if whole > 0.0 and p.length else p.value
        expected = whole / np.sqrt(12.0) if p.feature is None else _IRRELEVANT * whole
        ends = sorted(p.length * np.log([_SHORTEST * whole, _LONGEST * whole])) if p.length else np.log(p.value) + _ENDS
        centre.append(p.length * np.log(expected) if p.length else np.log(p.value))
        low.append(min(ends[0], np.log(p.value)))
        high.append(max(ends[1], np.log(p.value)))
    lengths = np.array([float(p.length) for p in parameters])
    prior = LogNormal(np.array(centre), np.full(len(centre), _WIDTH), np.array(low), np.array(high))
    off = np.where(np.array(alone), np.where(lengths > 0.0, prior.upper, prior.lower), np.nan)
    wider = LogNormal(prior.centre, prior.width, np.minimum(prior.lower, beside), np.maximum(prior.upper, beside))
    return Limits(wider, off, lengths)
