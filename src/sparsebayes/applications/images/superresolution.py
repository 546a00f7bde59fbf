"""Super-resolution: one sharp image from several blurred, shifted and rotated ones (Tipping & Bishop 2003)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.ndimage import gaussian_filter
from scipy.optimize import minimize

from sparsebayes.applications.images.pixels import Array, as_image
from sparsebayes.applications.images.posterior import posterior_mean
from sparsebayes.applications.images.registration import Motion, centred_pixels, first_guess
from sparsebayes.applications.images.scene import Gradient, Patch, Scene, log_evidence
from sparsebayes.basis.base import check_count

# Patches: their side, in pixels of the low resolution, and how many there are at most down and across; few where the
# motion is learned, more where the scene's spectrum is, which differs from place to place.
_MOTION_PATCHES = (6, 3)
_SPECTRUM_PATCHES = (4, 7)
# Patches stay this far from the edges, beyond which other images may not see.
_MARGIN = 3
_SMALLEST = 12
# Where learning begins: variance of the finest octave and noise as parts of the images' variance and deviation, the
# blur in pixels of the low resolution.
_FIRST_VARIANCE = 0.05
_FIRST_BLUR = 0.4
_FIRST_NOISE = 0.05
# How far logarithms of variances, and the motion in pixels, may go from there; when the evidence has settled.
_LIMIT = 10.0
_FARTHEST = 1.5
# The motion is measured in parts of a pixel while it is learned.  A gradient says how fast the evidence rises and not
# how far: in whole pixels the first step leaves the neighbourhood of the guess where there is little blur, for places
# from which nothing leads back, and noise and blur then explain the disagreement.
_UNIT = 0.02
# So many steps are made with blur, noise and scene held at those of typical images.  Learned from the guess on, they
# would take its errors for noise in a scene without blur, in which no image says anything of the places between pixels.
_FIRST_STEPS = 30
_SETTLED = 1e-7
_SPECTRUM_STEPS = 20
_LARGEST_SCALE = 16


@dataclass(frozen=True)
class SuperResolution:
    """A sharp image, and what was learned on the way.

    Attributes
    ----------
    image : ndarray, (scale · rows, scale · columns[, 3])
        Posterior mean of the scene in the frame of the first image, in its units, not clipped to their range.
    motion : Motion
        Shift of every image against the first, in pixels of the low resolution, and its rotation in radians.
    blur : float
        Standard deviation of the point spread, in pixels of the low resolution.
    noise : float
        Standard deviation of the noise, in units of the images.
    log_evidence : float
        Log evidence of the patches.
    n_iter : int
        Iterations of the registration.
    """

    image: Array
    motion: Motion
    blur: float
    noise: float
    log_evidence: float
    n_iter: int


def super_resolve(
    images: Sequence[ArrayLike] | NDArray[np.float64], scale: int = 4, *, max_iter: int = 60
) -> SuperResolution:
    r"""Combine images of one scene into one of higher resolution.

    The scene is a Gaussian process seen by every image after a shift and a rotation through one Gaussian blur, with
    noise.  Shifts, rotations, blur, noise and the variance of the scene maximise the marginal likelihood of patches,
    in which the high-resolution image is integrated out; the image itself is then its posterior mean, computed for all
    pixels together by conjugate gradients.

    Parameters
    ----------
    images : sequence of (rows, columns) or (rows, columns, 3) arrays
        At least two images of one shape; the first defines the frame.  Colour images are registered by their
        luminance.
    scale : int
        How many times more rows and columns.
    max_iter : int
        Largest number of iterations of the registration.

    Returns
    -------
    SuperResolution
        The image is its ``image``.

    Examples
    --------
    >>> import numpy as np
    >>> from sparsebayes.applications import super_resolve
    >>> rng = np.random.default_rng(0)
    >>> rows, columns = np.mgrid[:16, :20] / 3.0
    >>> def look(down, right):
    ...     return np.sin(rows + down / 3) * np.cos(columns + right / 3) + 0.01 * rng.standard_normal(rows.shape)
    >>> result = super_resolve([look(0, 0), look(0.5, 0.2), look(-0.3, 0.6)], scale=2)
    >>> result.image.shape
    (32, 40)
    >>> bool(np.all(np.abs(result.motion.shifts[1] - [0.5, 0.2]) < 0.1))
    True
    """
    stack = _check_images(images)
    scale = check_count("scale", scale)
    if scale > _LARGEST_SCALE:
        raise ValueError(f"scale={scale}; expected at most {_LARGEST_SCALE}")
    max_iter = check_count("max_iter", max_iter)
    grey = stack if stack.ndim == 3 else stack.mean(axis=3)
    deviation = float(np.std(grey[0]))
    if deviation == 0.0:
        raise ValueError("images[0] is constant; expected an image with structure to register the others by")
    grey = (grey - np.mean(grey)) / deviation
    guess = first_guess(list(grey))
    begin = Scene.typical(_FIRST_VARIANCE, _FIRST_BLUR, _FIRST_NOISE, finest=1.0 / scale)
    side, most = _MOTION_PATCHES
    patches = _patches(grey, guess, side, _structured(grey[0], side, most))
    nearer, first_steps = _approach(patches, guess, begin, min(max_iter, _FIRST_STEPS))
    patches = _patches(grey, nearer, side, _structured(grey[0], side, most))
    motion, scene, value, n_iter = _register(patches, nearer, begin, max_iter)
    side, most = _SPECTRUM_PATCHES
    scene = _learn_spectrum(_patches(grey, motion, side, _even(grey[0].shape, side, most)), motion, scene)
    image = _sharpen(stack, motion, scene, scale)
    return SuperResolution(image, motion, scene.blur, scene.noise * deviation, value, first_steps + n_iter)


def _check_images(images: Sequence[ArrayLike] | NDArray[np.float64]) -> Array:
    arrays = [as_image(image, f"images[{k}]") for k, image in enumerate(images)]
    if len(arrays) < 2:
        raise ValueError(f"images has {len(arrays)} image(s); expected at least two of one scene")
    shapes = sorted({array.shape for array in arrays})
    if len(shapes) > 1:
        raise ValueError(f"images have shapes {shapes}; expected one common shape: crop them first")
    if min(shapes[0][:2]) < _SMALLEST:
        raise ValueError(f"images have shape {shapes[0]}; expected at least {_SMALLEST} rows and columns")
    return np.stack(arrays).astype(np.float64)


def _patches(images: Array, motion: Motion, side: int, centres: list[Array]) -> list[Patch]:
    """The pixels of all images that see the neighbourhoods of these places."""
    shape = images.shape[1:]
    pixels = centred_pixels(shape)
    patches = []
    for centre in centres:
        image, inside = [], []
        for k in range(len(images)):
            near = np.flatnonzero(np.all(np.abs(motion.places(k, pixels) - centre) <= 0.5 * side, axis=1))
            image.append(np.full(near.size, k, dtype=np.intp))
            inside.append(near)
        which, near = np.concatenate(image), np.concatenate(inside)
        patches.append(Patch(which, pixels[near], images.reshape(len(images), -1)[which, near]))
    return patches


def _even(shape: tuple[int, ...], side: int, most: int) -> list[Array]:
    """The middle of each cell of a coarse grid, relative to the centre of the image."""
    middles = [[0.5 * (cell.start + cell.stop - 1) for cell in _cuts(length, side, most)] for length in shape]
    return [np.array([row, column]) - 0.5 * (np.array(shape) - 1.0) for row in middles[0] for column in middles[1]]


def _structured(image: Array, side: int, most: int) -> list[Array]:
    """In each cell of a coarse grid the place where the image changes most in its least changing direction."""
    down, right = np.gradient(gaussian_filter(image, 0.7))
    window = 0.35 * side
    dd, rr, dr = (gaussian_filter(product, window) for product in (down * down, right * right, down * right))
    structure = 0.5 * (dd + rr) - np.sqrt(0.25 * (dd - rr) ** 2 + dr**2)
    limits = [_cuts(length, side, most) for length in image.shape]
    centres = []
    for rows in limits[0]:
        for columns in limits[1]:
            cell = structure[rows, columns]
            row, column = np.unravel_index(int(np.argmax(cell)), cell.shape)
            place = np.array([rows.start + row, columns.start + column], dtype=np.float64)
            centres.append(place - 0.5 * (np.array(image.shape) - 1.0))
    return centres


def _cuts(length: int, side: int, most: int) -> list[slice]:
    """Cells of one axis, fewer where the image is small."""
    margin = _MARGIN + side // 2
    room = length - 2 * margin
    cells = int(np.clip(room // side, 1, most))
    if room < 1:
        return [slice(length // 2, length // 2 + 1)]
    edges = margin + np.linspace(0, room, cells + 1).astype(int)
    return [slice(int(a), int(b)) for a, b in pairwise(edges)]


@dataclass(frozen=True)
class _Frame:
    """Motion as a vector of numbers of a size: shifts, and what angles shift at the rim, in parts of a pixel."""

    n_images: int
    lever: float

    @classmethod
    def of(cls, patches: list[Patch], motion: Motion) -> _Frame:
        return cls(len(motion.angles), max(float(np.max(np.abs(patch.pixels))) for patch in patches))

    def pack(self, motion: Motion) -> Array:
        """All but the first image's, which is the frame."""
        return np.append(motion.shifts[1:].ravel(), self.lever * motion.angles[1:]) / _UNIT

    def unpack(self, numbers: Array) -> Motion:
        shifts, angles = np.split(_UNIT * numbers, [2 * (self.n_images - 1)])
        return Motion(np.vstack([np.zeros(2), shifts.reshape(-1, 2)]), np.append(0.0, angles / self.lever))

    def slope(self, gradient: Gradient) -> Array:
        """Derivatives in the numbers."""
        return _UNIT * np.append(gradient.shifts[1:].ravel(), gradient.angles[1:] / self.lever)

    @staticmethod
    def bounds(numbers: Array) -> list[tuple[float, float]]:
        """How far each may go."""
        return [(value - _FARTHEST / _UNIT, value + _FARTHEST / _UNIT) for value in numbers]


def _approach(patches: list[Patch], guess: Motion, scene: Scene, max_iter: int) -> tuple[Motion, int]:
    """Maximise the evidence over the motion alone, the scene being held."""
    frame = _Frame.of(patches, guess)
    start = frame.pack(guess)

    def loss(numbers: Array) -> tuple[float, Array]:
        value, gradient = log_evidence(patches, frame.unpack(numbers), scene)
        return -value, -frame.slope(gradient)

    found = _minimise(loss, start, frame.bounds(start), max_iter)
    return frame.unpack(found.x), int(found.nit)


def _register(patches: list[Patch], guess: Motion, begin: Scene, max_iter: int) -> tuple[Motion, Scene, float, int]:
    """Maximise the evidence over everything but the frame, which is the first image's."""
    frame, octaves = _Frame.of(patches, guess), len(begin.variances)
    logarithms = np.append(0.0, begin.logarithms[octaves:])  # one factor for the variances of all octaves
    numbers = frame.pack(guess)
    bounds = [(value - _LIMIT, value + _LIMIT) for value in logarithms] + frame.bounds(numbers)

    def unpack(parameters: Array) -> tuple[Motion, Scene]:
        scene = begin.at(np.append(begin.logarithms[:octaves] + parameters[0], parameters[1:3]))
        return frame.unpack(parameters[3:]), scene

    def loss(parameters: Array) -> tuple[float, Array]:
        value, gradient = log_evidence(patches, *unpack(parameters))
        by_scene = np.append(np.sum(gradient.logarithms[:octaves]), gradient.logarithms[octaves:])
        return -value, -np.append(by_scene, frame.slope(gradient))

    found = _minimise(loss, np.append(logarithms, numbers), bounds, max_iter)
    return *unpack(found.x), -float(found.fun), int(found.nit)


def _learn_spectrum(patches: list[Patch], motion: Motion, begin: Scene) -> Scene:
    """Variance of every octave over the whole scene, the registration, the blur and the noise being known."""
    known = begin.logarithms[-2:]
    start = begin.logarithms[:-2]

    def loss(variances: Array) -> tuple[float, Array]:
        value, gradient = log_evidence(patches, motion, begin.at(np.append(variances, known)))
        return -value, -gradient.logarithms[:-2]

    found = _minimise(loss, start, [(value - _LIMIT, value + _LIMIT) for value in start], _SPECTRUM_STEPS)
    return begin.at(np.append(found.x, known))


def _minimise(
    loss: Callable[[Array], tuple[float, Array]], start: Array, bounds: list[tuple[float, float]], max_iter: int
) -> Any:
    return minimize(
        loss, start, jac=True, method="L-BFGS-B", bounds=bounds, options={"maxiter": max_iter, "ftol": _SETTLED}
    )


def _sharpen(stack: Array, motion: Motion, scene: Scene, scale: int) -> Array:
    """Posterior mean of every channel, in units of the images."""
    channels = stack[..., None] if stack.ndim == 3 else stack
    sharp = posterior_mean(channels, motion, scene, scale)
    return sharp[..., 0] if stack.ndim == 3 else sharp
