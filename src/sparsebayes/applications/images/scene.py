r"""The evidence of a registration: low-resolution images with the scene marginalised out (Tipping & Bishop 2003).

The scene is a Gaussian process.  Tipping & Bishop's covariance is one Gaussian; here it is one for every octave from
a pixel of the high resolution up,

.. math:: k(d) = \sum_i A_i \exp(-d^2/r_i^2),\qquad r_i = 2^i r_0 .

The blur is learned with :math:`A_i = A\,r_i/r_0`, for which the density of power falls about like that of images made
of edges, with the third power of the frequency: a single Gaussian would blame the blur for a spectrum that falls by
itself.  Once the blur is known, every octave may have a variance of its own.  A pixel sees the scene through a Gaussian
of standard deviation :math:`\tau`.  Both being Gaussian, the high-resolution image integrates out in closed form and
without a grid: two pixels that see places a distance d apart have the covariance

.. math:: \kappa(d) = \sum_i A_i \frac{r_i^2}{r_i^2+4\tau^2}\exp\Big(\frac{-d^2}{r_i^2+4\tau^2}\Big) ,

plus :math:`\sigma^2` for a pixel with itself.  The log evidence of a patch is that of a normal distribution, and its
gradient in all parameters follows from :math:`\partial\mathcal L/\partial\mathbf C =
\tfrac12(\mathbf a\mathbf a^\top - \mathbf C^{-1})` with :math:`\mathbf a = \mathbf C^{-1}\mathbf y`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cho_solve, cholesky, get_lapack_funcs

from sparsebayes.applications.images.pixels import Array
from sparsebayes.applications.images.registration import Motion, rotation_slope

(_INVERT,) = get_lapack_funcs(("potri",), (np.zeros(1),))
# The largest scale of the scene's covariance, in pixels of the low resolution.
_LARGEST = 8.0
# The variance of an octave grows with its scale like this power: that of edges, whose density of power is like k⁻³.
_TILT = 1.0


@dataclass(frozen=True)
class Scene:
    """What is known of the scene and of how it is seen; the unit is a pixel of the low resolution.

    Attributes
    ----------
    variances : (octaves,) ndarray
        A_i, the variance of every octave.
    blur : float
        τ, the standard deviation of the point spread.
    noise : float
        σ, the standard deviation of the noise.
    finest : float
        r₀, the finest scale.
    """

    variances: Array
    blur: float
    noise: float
    finest: float

    @classmethod
    def typical(cls, variance: float, blur: float, noise: float, finest: float) -> Scene:
        """A scene with the spectrum of edges, and this variance in the finest octave."""
        octaves = int(np.ceil(np.log2(_LARGEST / finest))) + 1
        return cls(variance * np.exp2(_TILT * np.arange(octaves, dtype=np.float64)), blur, noise, finest)

    @property
    def squared_scales(self) -> Array:
        """The r_i²."""
        return self.finest**2 * 4.0 ** np.arange(len(self.variances), dtype=np.float64)

    @property
    def logarithms(self) -> Array:
        """Every log A_i, log τ² and log σ²."""
        return np.log([*self.variances, self.blur**2, self.noise**2])

    def at(self, logarithms: Array) -> Scene:
        """The same scene with other parameters."""
        *variances, squared_blur, squared_noise = np.exp(logarithms).tolist()
        return Scene(np.array(variances), float(np.sqrt(squared_blur)), float(np.sqrt(squared_noise)), self.finest)


@dataclass(frozen=True)
class Patch:
    """Pixels of all images that see about the same part of the scene.

    Attributes
    ----------
    image : (n,) array of int
        Which image each pixel belongs to.
    pixels : (n, 2) ndarray
        Where in the image, relative to its centre.
    values : (n,) ndarray
        What they see, relative to the mean of the scene.
    """

    image: NDArray[np.intp]
    pixels: Array
    values: Array

    def places(self, motion: Motion) -> Array:
        """Where in the scene they look."""
        angles = motion.angles[self.image]
        cosine, sine = np.cos(angles), np.sin(angles)
        turned = np.column_stack(
            [
                cosine * self.pixels[:, 0] - sine * self.pixels[:, 1],
                sine * self.pixels[:, 0] + cosine * self.pixels[:, 1],
            ]
        )
        return turned + motion.shifts[self.image]


@dataclass(frozen=True)
class Gradient:
    """Derivatives of the log evidence, in the order of ``Scene.logarithms`` and of ``Motion``."""

    logarithms: Array
    shifts: Array
    angles: Array


def log_evidence(patches: Sequence[Patch], motion: Motion, scene: Scene) -> tuple[float, Gradient]:
    """Log evidence of patches taken as independent, and its gradient."""
    total = 0.0
    logarithms = np.zeros(len(scene.variances) + 2)
    shifts, angles = np.zeros_like(motion.shifts), np.zeros_like(motion.angles)
    for patch in patches:
        value, by_logarithms, by_place = _patch_evidence(patch, motion, scene)
        total += value
        logarithms += by_logarithms
        np.add.at(shifts, patch.image, by_place)
        for k in range(len(angles)):
            mine = patch.image == k
            angles[k] += np.sum(by_place[mine] * (patch.pixels[mine] @ rotation_slope(motion.angles[k]).T))
    return total, Gradient(logarithms, shifts, angles)


def _patch_evidence(patch: Patch, motion: Motion, scene: Scene) -> tuple[float, Array, Array]:
    """Log evidence, its derivatives in the scene's logarithms, and in the place of every pixel."""
    places = patch.places(motion)
    n = len(places)
    squares = np.sum(places**2, axis=1)
    distances = np.maximum(squares[:, None] + squares - 2.0 * places @ places.T, 0.0)  # d²
    covariance = _covariance(distances, scene)
    covariance[np.diag_indices(n)] += scene.noise**2
    factor = cholesky(covariance, lower=True, overwrite_a=True, check_finite=False)
    a = cho_solve((factor, True), patch.values, check_finite=False)
    value = -0.5 * float(patch.values @ a) - float(np.sum(np.log(np.diagonal(factor)))) - 0.5 * n * np.log(2.0 * np.pi)
    by_covariance = 0.5 * (a[:, None] * a - inverse_from_factor(factor))
    by_variances, by_blur, slope = _slopes(distances, scene, by_covariance)
    slope *= by_covariance
    by_place = 4.0 * (np.sum(slope, axis=1)[:, None] * places - slope @ places)
    by_noise = scene.noise**2 * float(np.trace(by_covariance))
    return value, np.array([*by_variances, by_blur, by_noise]), by_place


def inverse_from_factor(factor: Array) -> Array:
    """Inverse of a matrix from its lower Cholesky factor."""
    lower, _ = _INVERT(factor, lower=1)
    lower = np.tril(lower)
    return lower + np.tril(lower, -1).T


def _octaves(distances: Array, scene: Scene) -> Iterator[tuple[float, Array]]:
    """The width r_i² + 4τ² of every octave, and its part of κ at squared distances."""
    widening = 4.0 * scene.blur**2
    for variance, scale in zip(scene.variances, scene.squared_scales, strict=True):
        wide = scale + widening
        part = np.exp(distances * (-1.0 / wide))
        part *= variance * scale / wide
        yield wide, part


def _covariance(distances: Array, scene: Scene) -> Array:
    value = np.zeros_like(distances)
    for _, part in _octaves(distances, scene):
        value += part
    return value


def _slopes(distances: Array, scene: Scene, by_covariance: Array) -> tuple[list[float], float, Array]:
    """Derivatives of the evidence in every log A_i and in log τ², and that of κ in d²."""
    slope = np.zeros_like(distances)
    widening = 4.0 * scene.blur**2
    by_variances, by_blur = [], 0.0
    for wide, part in _octaves(distances, scene):
        slope -= part * (1.0 / wide)
        part *= by_covariance
        by_variances.append(float(np.sum(part)))
        by_blur += (widening / wide) * (float(np.vdot(part, distances)) / wide - by_variances[-1])
    return by_variances, by_blur, slope
