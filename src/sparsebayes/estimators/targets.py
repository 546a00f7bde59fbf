"""Targets in natural units: centred, and scaled so that nothing depends on what they are measured in."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from sparsebayes.inference import Certificate, Record
from sparsebayes.typing import Array

# Relative size of the rounding error of a centred target.
_ROUNDING = 4.0 * np.finfo(float).eps


def rounding_level(y: Array) -> Array:
    """What is left of a constant target after centring is below this: rounding error."""
    return _ROUNDING * np.max(np.abs(y), axis=0)


def mean_square(y: Array, weights: Array) -> Array:
    """Mean square of the centred targets; zero for a constant one."""
    residual = y - np.average(y, axis=0, weights=weights)
    largest = np.max(np.abs(residual), axis=0)
    unit = np.where(largest > rounding_level(y), largest, 1.0)
    square = unit**2 * np.average((residual / unit) ** 2, axis=0, weights=weights)
    return np.where(largest > rounding_level(y), square, 0.0)


@dataclass(frozen=True)
class TargetScale:
    """Affine map between the targets as given and as fitted, ``y = offset + scale * t``, one entry per target."""

    offset: Array
    scale: Array

    @classmethod
    def of(cls, y: Array, weights: Array, *, centre: bool, fixed_noise: Array | None, shared: bool) -> TargetScale:
        """Measure the targets, (N, T).

        The scale of a target on its own is a power of two, so that scaling rounds nothing.  Targets that share their
        precisions are brought to one noise level: to unit variance where the noise is learned, to equal noise where it
        is given.
        """
        offset = np.average(y, axis=0, weights=weights) if centre else np.zeros(y.shape[1])
        residual = y - offset
        largest = np.max(np.abs(residual), axis=0)
        unit = np.where(largest > 0.0, largest, 1.0)
        rms = unit * np.sqrt(np.average((residual / unit) ** 2, axis=0, weights=weights))
        magnitude = np.max(np.abs(y), axis=0)
        return cls.from_measures(offset, magnitude, largest, rms, fixed_noise=fixed_noise, shared=shared)

    @classmethod
    def from_measures(
        cls,
        offset: Array,
        magnitude: Array,
        largest: Array,
        rms: Array,
        *,
        fixed_noise: Array | None = None,
        shared: bool = False,
    ) -> TargetScale:
        """The map from what was measured: largest magnitudes, of the targets and about the offset, and their spread."""
        rounding = _ROUNDING * magnitude
        scale = np.where(largest > rounding, rms, np.maximum(rounding, np.finfo(float).tiny ** 0.25))
        if not shared:
            scale = np.exp2(np.round(np.log2(scale)))
        elif fixed_noise is not None:
            scale = np.sqrt(fixed_noise / np.max(fixed_noise)) * np.max(scale)
        return cls(offset, scale)

    def apply(self, y: Array) -> Array:
        """Targets as fitted; a constant target becomes exactly zero."""
        return np.where(self.constant(y), 0.0, (y - self.offset) / self.scale)

    def constant(self, y: Array) -> NDArray[np.bool_]:
        """Which targets do not vary."""
        return np.max(np.abs(y - self.offset), axis=0) <= rounding_level(y)

    def part(self, columns: list[int]) -> TargetScale:
        """The map of some of the targets."""
        return TargetScale(self.offset[columns], self.scale[columns])

    def shift(self, offset: Array) -> TargetScale:
        """The map to targets that had this taken off before."""
        return TargetScale(self.offset + offset, self.scale)

    def evidence_shift(self, n: float) -> float:
        """What the log evidence of the targets as given is above that of the targets as fitted."""
        return -n * float(np.sum(np.log(self.scale)))

    def restore_certificate(self, certificate: Certificate, n: float) -> Certificate:
        """Certificate in the units of the targets as given."""
        shift = self.evidence_shift(n)
        return replace(
            certificate,
            log_evidence=certificate.log_evidence + shift,
            objective=certificate.objective + shift,
        )

    def restore_history(self, history: list[Record], n: float) -> list[Record]:
        """History in the units of the targets as given (of the first of several that share a support)."""
        shift, square = self.evidence_shift(n), float(self.scale[0] ** 2)
        return [
            replace(
                record,
                evidence=record.evidence + shift,
                objective=record.objective + shift,
                noise_variance=record.noise_variance * square,
            )
            for record in history
        ]
