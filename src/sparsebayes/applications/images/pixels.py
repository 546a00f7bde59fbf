"""Images as arrays: what is accepted, colour, tiles, and the quality of a reconstruction."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sparsebayes.typing import Array

# Luminance and the two colour differences of a red-green-blue pixel (ITU-R BT.601, as in JPEG).
_LUMINANCE = np.array(
    [[0.299, 0.587, 0.114], [-0.168735892, -0.331264108, 0.5], [0.5, -0.418687589, -0.081312411]],
)
_DTYPES = (np.uint8, np.uint16, np.float32, np.float64)


def as_image(image: ArrayLike, name: str = "image") -> NDArray[Any]:
    """Return a grey (h, w) or colour (h, w, 3) array, or say what is supported.

    Parameters
    ----------
    image : array-like
        Pixels of type uint8, uint16, float32 or float64.
    name : str
        What to call it in messages.
    """
    pixels = np.asarray(image)
    colour = pixels.ndim == 3 and pixels.shape[2] == 3
    if pixels.ndim != 2 and not colour:
        raise ValueError(
            f"{name} has shape {pixels.shape}; expected a grey image (rows, columns) or a colour one "
            "(rows, columns, 3): drop a fourth channel by image[:, :, :3]"
        )
    if pixels.size == 0:
        raise ValueError(f"{name} is empty, of shape {pixels.shape}; expected at least one pixel")
    if pixels.dtype not in _DTYPES:
        raise TypeError(
            f"{name} has dtype {pixels.dtype}; expected uint8, uint16, float32 or float64: convert it first"
        )
    if not np.isfinite(pixels).all():
        count = int(np.sum(~np.isfinite(pixels)))
        raise ValueError(
            f"{name} has {count} pixels that are NaN or infinite; expected finite ones: fill them in first"
        )
    return pixels


@dataclass(frozen=True)
class Levels:
    """The scale on which an image is coded: its values as 256 grey levels.

    Attributes
    ----------
    dtype : str
        Type of the pixels.
    low, high : float
        Values that become 0 and 255; the range of the type, or of the image where the pixels are floats.
    """

    dtype: str
    low: float
    high: float

    @classmethod
    def of(cls, image: NDArray[Any]) -> Levels:
        """Scale of this image."""
        if image.dtype.kind == "u":
            return cls(image.dtype.name, 0.0, float(np.iinfo(image.dtype).max))
        low, high = float(image.min()), float(image.max())
        return cls(image.dtype.name, low, high if high > low else low + 1.0)

    def to_grey_levels(self, image: NDArray[Any]) -> Array:
        """Pixels on the scale from 0 to 255."""
        return (image.astype(np.float64) - self.low) * (255.0 / (self.high - self.low))

    def from_grey_levels(self, levels: Array) -> NDArray[Any]:
        """Pixels of the original type and range."""
        values = self.low + np.clip(levels, 0.0, 255.0) * ((self.high - self.low) / 255.0)
        return (np.round(values) if self.dtype.startswith("u") else values).astype(self.dtype)


def to_planes(levels: Array) -> list[Array]:
    """One plane of a grey image; luminance and two colour differences at half the resolution of a colour one."""
    if levels.ndim == 2:
        return [levels]
    luminance, blue, red = np.moveaxis(levels @ _LUMINANCE.T, 2, 0)
    return [luminance, halve(blue), halve(red)]


def from_planes(planes: list[Array]) -> Array:
    """Inverse of :func:`to_planes`, up to the resolution of colour."""
    if len(planes) == 1:
        return planes[0]
    luminance = planes[0]
    full = [luminance, *(double(plane, luminance.shape) for plane in planes[1:])]
    return np.stack(full, axis=2) @ np.linalg.inv(_LUMINANCE).T


def halve(plane: Array) -> Array:
    """Means of 2 × 2 pixels; an odd edge is repeated."""
    rows, columns = plane.shape
    even = np.pad(plane, ((0, rows % 2), (0, columns % 2)), mode="edge")
    return even.reshape((rows + 1) // 2, 2, (columns + 1) // 2, 2).mean(axis=(1, 3))


def double(plane: Array, shape: tuple[int, ...]) -> Array:
    """Linear interpolation to twice the resolution, cropped to ``shape``."""
    for axis in (0, 1):
        plane = np.moveaxis(plane, axis, 0)
        edged = np.concatenate([plane[:1], plane, plane[-1:]])
        finer = np.empty((2 * len(plane), plane.shape[1]))
        finer[0::2] = 0.75 * edged[1:-1] + 0.25 * edged[:-2]
        finer[1::2] = 0.75 * edged[1:-1] + 0.25 * edged[2:]
        plane = np.moveaxis(finer, 0, axis)
    return plane[: shape[0], : shape[1]]


def to_tiles(plane: Array, tile: int) -> Array:
    """Square tiles row by row, each a row of ``tile²`` pixels; edges are repeated to fill the last ones."""
    rows, columns = grid_shape(plane.shape, tile)
    padded = np.pad(plane, ((0, rows * tile - plane.shape[0]), (0, columns * tile - plane.shape[1])), mode="edge")
    return padded.reshape(rows, tile, columns, tile).swapaxes(1, 2).reshape(rows * columns, tile * tile)


def from_tiles(tiles: Array, shape: tuple[int, ...], tile: int) -> Array:
    """Inverse of :func:`to_tiles`."""
    rows, columns = grid_shape(shape, tile)
    plane = tiles.reshape(rows, columns, tile, tile).swapaxes(1, 2).reshape(rows * tile, columns * tile)
    return plane[: shape[0], : shape[1]]


def grid_shape(shape: tuple[int, ...], tile: int) -> tuple[int, int]:
    """Numbers of tiles down and across."""
    return -(-shape[0] // tile), -(-shape[1] // tile)


def tile_pixels(tile: int) -> Array:
    """Row and column of every pixel of a tile, the inputs of its functions."""
    return np.argwhere(np.ones((tile, tile), dtype=bool)).astype(np.float64)


def psnr(image: ArrayLike, reference: ArrayLike, peak: float | None = None) -> float:
    """Peak signal-to-noise ratio in decibels, 10 log₁₀(peak² / mean squared error).

    Parameters
    ----------
    image, reference : array-like of one shape
        The reconstruction and the truth.
    peak : float, optional
        Largest possible pixel: by default that of the integer type of the reference, or 1 for floats.
    """
    image, reference = np.asarray(image), np.asarray(reference)
    if image.shape != reference.shape:
        raise ValueError(f"image has shape {image.shape}, reference {reference.shape}; expected one shape")
    if peak is None:
        peak = float(np.iinfo(reference.dtype).max) if reference.dtype.kind == "u" else 1.0
    error = float(np.mean((image.astype(np.float64) - reference.astype(np.float64)) ** 2))
    return float("inf") if error == 0.0 else 10.0 * float(np.log10(peak**2 / error))
