r"""Rigid motion between images, and a first guess of it.

Pixel :math:`u` of image k, measured from the image's centre, sees the place :math:`p = \mathbf R(\theta_k)u + s_k` of
the scene, whose frame is that of the first image.  The unit is a pixel of the low resolution throughout.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.ndimage import gaussian_filter, spline_filter
from scipy.ndimage import map_coordinates as interpolate

from sparsebayes.applications.images.pixels import Array

# The first guess aligns blurred images, from much blur to little, as parts of the shorter side and in pixels.
_COARSEST = 1.0 / 12.0
_FINEST = 1.0
_STEPS = 12
_SETTLED = 1e-3


@dataclass(frozen=True)
class Motion:
    """Shifts and rotations of K images.

    Attributes
    ----------
    shifts : (K, 2) ndarray
        Down and to the right, in pixels.
    angles : (K,) ndarray
        In radians, from the first axis (down) towards the second.
    """

    shifts: Array
    angles: Array

    def places(self, k: int, pixels: Array) -> Array:
        """Where image k sees pixels given relative to its centre."""
        return pixels @ rotation(self.angles[k]).T + self.shifts[k]


def rotation(angle: float) -> Array:
    """The matrix R(θ)."""
    return np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])


def rotation_slope(angle: float) -> Array:
    """The derivative of R(θ)."""
    return np.array([[-np.sin(angle), -np.cos(angle)], [np.cos(angle), -np.sin(angle)]])


def centred_pixels(shape: tuple[int, ...]) -> Array:
    """Rows and columns of all pixels, relative to the centre of the image."""
    rows, columns = shape[:2]
    return np.argwhere(np.ones((rows, columns), dtype=bool)) - 0.5 * np.array([rows - 1.0, columns - 1.0])


def first_guess(images: Sequence[Array]) -> Motion:
    """Align every image with the first by least squares on blurred copies (Gauss-Newton, coarse to fine)."""
    shortest = min(images[0].shape)
    blur = max(_COARSEST * shortest, _FINEST)
    motions = np.zeros((len(images), 3))
    while True:
        reference = gaussian_filter(images[0], blur, mode="nearest")
        for k in range(1, len(images)):
            motions[k] = _align(reference, gaussian_filter(images[k], blur, mode="nearest"), motions[k])
        if blur <= _FINEST:
            return Motion(motions[:, :2], motions[:, 2])
        blur = max(0.5 * blur, _FINEST)


def _align(reference: Array, image: Array, motion: Array) -> Array:
    """Motion at which the reference, seen from the image's pixels, looks like the image."""
    pixels = centred_pixels(image.shape)
    middle = 0.5 * (np.array(image.shape) - 1.0)
    fine = spline_filter(reference, order=3)
    slopes = [spline_filter(slope, order=3) for slope in np.gradient(reference)]
    for _ in range(_STEPS):
        places = pixels @ rotation(motion[2]).T + motion[:2] + middle
        inside = np.all((places >= 1.0) & (places <= np.array(image.shape) - 2.0), axis=1)
        if np.sum(inside) < 16:
            break
        at = places[inside].T
        residual = image.ravel()[inside] - _look_up(fine, at)
        by_place = np.stack([_look_up(slope, at) for slope in slopes], axis=1)
        by_angle = np.sum(by_place * (pixels[inside] @ rotation_slope(motion[2]).T), axis=1)
        step = np.linalg.lstsq(np.column_stack([by_place, by_angle]), residual, rcond=None)[0]
        step *= min(1.0, 2.0 / max(float(np.linalg.norm(step[:2])), 1e-12))
        motion = motion + step
        if np.max(np.abs(step * [1.0, 1.0, max(image.shape)])) < _SETTLED:
            break
    return motion


def _look_up(coefficients: Array, places: NDArray[np.float64]) -> Array:
    return np.asarray(interpolate(coefficients, places, order=3, prefilter=False, mode="nearest"))
