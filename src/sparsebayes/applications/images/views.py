"""Low-resolution views of a known scene, to try super-resolution on."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike
from scipy.ndimage import gaussian_filter, map_coordinates

from sparsebayes.applications.images.pixels import Array, as_image
from sparsebayes.applications.images.registration import Motion, centred_pixels
from sparsebayes.basis.base import check_count


def make_views(
    scene: ArrayLike,
    n_images: int = 16,
    *,
    scale: int = 4,
    shift: float = 2.0,
    degrees: float = 2.0,
    blur: float = 2.0**-1.5,
    noise: float = 0.01,
    random_state: int | np.random.Generator | None = None,
) -> tuple[list[Array], Motion]:
    """Blur a scene, look at it from shifted and rotated places, and add noise.

    Parameters
    ----------
    scene : (rows, columns) array-like
        The high-resolution image; sides are cropped to multiples of ``scale``.
    n_images : int
        Number of views; the first is neither shifted nor rotated.
    scale : int
        Pixels of the scene per pixel of a view, along each side.
    shift : float
        Largest shift along each side, in pixels of a view.
    degrees : float
        Largest rotation.
    blur : float
        Standard deviation of the blur in pixels of a view; the default is √2 pixels of the scene at ``scale=4``, the
        blur of Tipping & Bishop.
    noise : float
        Standard deviation of the noise, in units of the scene.
    random_state : int or Generator, optional
        Source of randomness.

    Returns
    -------
    images : list of ndarray
        The views.
    motion : Motion
        Their shifts (pixels of a view) and angles (radians).
    """
    pixels = as_image(scene, "scene").astype(np.float64)
    if pixels.ndim != 2:
        raise ValueError(f"scene has shape {pixels.shape}; expected a grey image (rows, columns)")
    n_images, scale = check_count("n_images", n_images), check_count("scale", scale)
    rng = np.random.default_rng(random_state)
    shape = (pixels.shape[0] // scale, pixels.shape[1] // scale)
    pixels = pixels[: scale * shape[0], : scale * shape[1]]
    shifts = rng.uniform(-shift, shift, (n_images, 2))
    angles = np.deg2rad(rng.uniform(-degrees, degrees, n_images))
    shifts[0], angles[0] = 0.0, 0.0
    motion = Motion(shifts, angles)
    blurred = gaussian_filter(pixels, scale * blur, mode="nearest")
    images = []
    for k in range(n_images):
        places = scale * motion.places(k, centred_pixels(shape)) + 0.5 * (np.array(pixels.shape) - 1.0)
        seen = np.asarray(map_coordinates(blurred, places.T, order=3, mode="nearest"))
        images.append((seen + noise * rng.standard_normal(len(seen))).reshape(shape))
    return images, motion


def registration_error(found: Motion, true: Motion, shape: tuple[int, ...]) -> float:
    """Largest distance, over all pixels of all images, between where they are found to look and where they do."""
    pixels = centred_pixels(shape)
    distances = [
        np.linalg.norm(found.places(k, pixels) - true.places(k, pixels), axis=1) for k in range(len(true.angles))
    ]
    return float(np.max(distances))
