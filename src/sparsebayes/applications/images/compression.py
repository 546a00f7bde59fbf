"""Image compression by sparse Bayesian regression (Tipping's lecture, "approximation").

The image is assumed noise-free; σ is the approximation error that is accepted, and decides how many functions of the
dictionary are worth their place.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import gammaln

from sparsebayes.applications.images.code import PlaneCode, SparseCode, default_basis, dictionary_of
from sparsebayes.applications.images.pixels import Array, Levels, as_image, to_planes, to_tiles
from sparsebayes.applications.images.tiles import Selection, TileDictionary, select
from sparsebayes.basis import Basis
from sparsebayes.basis.base import check_count, check_real

# Quantisation step of the weights over σ: where the price of a function and of a finer weight balance.
_STEP = 4.0
# Colour differences are seen less well and may be wrong by this much more.
_COLOUR = 1.5
# Rate control: σ is found on about this many tiles, within this logarithm of the bits asked for, in this range of grey
# levels; bits fall about like this power of σ, and never like one outside these.
_SAMPLE = 96
_CLOSE = 0.03
_FIRST_NOISE = 8.0
_NOISE_RANGE = (0.05, 500.0)
_USUAL_SLOPE = -1.2
_SLOPES = (-3.0, -0.4)
# The last bytes are won by the step, in this range of multiples, until this part of the bits is used.
_STEP_RANGE = (0.4, 6.0)
_FULL = 0.995
_TRIALS = 8
# Bits of the mean of a tile, and of the places of functions relative to all being equally likely, on usual images.
_MEAN_BITS = 5.0
_PLACES = 1.0
_LARGEST_TILE = 64


def compress(
    image: ArrayLike,
    *,
    basis: Basis | None = None,
    noise: float | None = None,
    tile: int = 16,
    bits_per_pixel: float | None = None,
    n_jobs: int | None = None,
) -> SparseCode:
    r"""Describe an image by a few functions per tile.

    Every tile is a regression :math:`t = \boldsymbol\Phi w + \epsilon` on its pixels with
    :math:`\epsilon\sim\mathcal N(0,\sigma^2)`, in which the evidence chooses the functions; their weights are
    quantised and entropy coded.

    Parameters
    ----------
    image : array-like, (rows, columns) or (rows, columns, 3)
        Grey or red-green-blue; uint8, uint16 or floats of any range.
    basis : Gabor, optional
        The dictionary, one for all tiles; a sum of several is allowed.
    noise : float, optional
        The approximation error σ that is accepted, in grey levels of 256.
    tile : int
        Side of the square tiles, from 4 to 64.
    bits_per_pixel : float, optional
        Largest size of the file, in bits per pixel; σ is then found from it.  0.5 where neither this nor ``noise`` is
        given.
    n_jobs : int, optional
        Processes, as in scikit-learn.

    Returns
    -------
    SparseCode
        Its ``to_bytes()`` is the file.

    Examples
    --------
    >>> import numpy as np
    >>> from sparsebayes.applications import compress, decompress
    >>> rows, columns = np.mgrid[:48, :64]
    >>> image = (128 + 90 * np.sin(rows / 7) * np.cos(columns / 9)).astype(np.uint8)
    >>> file = compress(image, noise=4.0).to_bytes()
    >>> len(file) < image.size / 8
    True
    >>> decompress(file).shape
    (48, 64)
    """
    pixels = as_image(image)
    tile = check_count("tile", tile)
    if not 4 <= tile <= _LARGEST_TILE:
        raise ValueError(f"tile={tile}; expected a side from 4 to {_LARGEST_TILE} pixels")
    if noise is not None and bits_per_pixel is not None:
        raise ValueError("noise and bits_per_pixel are both given; expected one: each follows from the other")
    dictionary_basis = default_basis() if basis is None else basis
    dictionary = dictionary_of(dictionary_basis, tile)
    levels = Levels.of(pixels)
    planes = to_planes(levels.to_grey_levels(pixels))
    job = _Job(dictionary, planes, levels, dictionary_basis, tile, n_jobs)
    if noise is not None:
        return job.code(_check_positive("noise", noise))
    target = _check_positive("bits_per_pixel", 0.5 if bits_per_pixel is None else bits_per_pixel)
    return job.within(target * pixels.shape[0] * pixels.shape[1])


def decompress(code: SparseCode | bytes | str | Path) -> NDArray[Any]:
    """Return the image of a code, of the bytes of its file, or of a file by its path."""
    if isinstance(code, str | Path):
        code = Path(code).read_bytes()
    if isinstance(code, bytes | bytearray | memoryview):
        code = SparseCode.from_bytes(bytes(code))
    if not isinstance(code, SparseCode):
        raise TypeError(f"code is of type {type(code).__name__}; expected a SparseCode, its bytes, or a path")
    return code.decode()


def _check_positive(name: str, value: Any) -> float:
    number = check_real(name, value)
    if number <= 0.0:
        raise ValueError(f"{name}={value!r}; expected a positive number")
    return number


@dataclass(frozen=True)
class _Described:
    """All tiles at one σ: the levels of their means, and the functions that describe what these leave."""

    noise: float
    mean_step: float
    means: list[NDArray[np.int64]]
    selections: list[list[Selection]]


@dataclass(frozen=True)
class _Job:
    """One image to be compressed."""

    dictionary: TileDictionary
    planes: list[Array]
    levels: Levels
    basis: Basis
    tile: int
    n_jobs: int | None

    def code(self, noise: float) -> SparseCode:
        """The code at one approximation error."""
        return self._quantise(self._describe(noise), 1.0)

    def within(self, bits: float) -> SparseCode:
        """A code of at most so many bits, and not many fewer."""
        described = self._describe(self._noise_for(bits))
        low, high = _STEP_RANGE
        at, size, best = 1.0, np.inf, None
        for _ in range(_TRIALS):
            code = self._quantise(described, at)
            size = 8.0 * len(code.to_bytes())
            if size <= bits:
                best, high = code, at
            else:
                low = at
            if _FULL * bits <= size <= bits:
                break
            at = float(np.sqrt(low * high))
        if best is None:
            pixels = self.planes[0].size
            raise ValueError(
                f"bits_per_pixel={bits / pixels:.3g} was not reached; the smallest file tried has {size / pixels:.3g} "
                "bits per pixel: ask for more bits, or for larger tiles"
            )
        return best

    def _describe(self, noise: float, every: int = 1) -> _Described:
        """Find the functions of every tile, or of a sample of the tiles."""
        mean_step = _as_stored(_STEP * noise / self.tile)  # that of a constant function of unit norm
        described = _Described(noise, mean_step, [], [])
        for number, plane in enumerate(self.planes):
            tiles = to_tiles(plane, self.tile)[::every]
            means = np.round(tiles.mean(axis=1) / mean_step).astype(np.int64)
            rest = tiles - mean_step * means[:, None]
            sigma = noise * (_COLOUR if number else 1.0)
            described.means.append(means)
            described.selections.append(select(self.dictionary, rest, sigma, self.n_jobs))
        return described

    def _quantise(self, described: _Described, ratio: float) -> SparseCode:
        """Round the weights to multiples of a step, this many times the usual one; zeros leave the code."""
        step = _as_stored(_STEP * described.noise * ratio)
        planes = []
        for plane, means, selections in zip(self.planes, described.means, described.selections, strict=True):
            functions, weights = [], []
            for selection in selections:
                rounded = np.round(selection.weights / step).astype(np.int64)
                functions.append(selection.functions[rounded != 0].tolist())
                weights.append(rounded[rounded != 0].tolist())
            planes.append(PlaneCode(plane.shape, means, tuple(functions), tuple(weights)))
        return SparseCode(tuple(planes), self.levels, self.basis, self.tile, step, described.mean_step)

    def _noise_for(self, bits: float) -> float:
        """The σ at which a sample of the tiles takes its part of the bits, by secants on logarithmic scales."""
        n_tiles = sum(len(to_tiles(plane, self.tile)) for plane in self.planes)
        every = max(1, n_tiles // _SAMPLE)
        noise, slope = _FIRST_NOISE, _USUAL_SLOPE
        before: tuple[float, float] | None = None
        for _ in range(_TRIALS):
            excess = float(np.log(self._expected_bits(noise, every) * every / bits))
            if abs(excess) < _CLOSE:
                break
            if before is not None and before[0] != noise:
                slope = float(np.clip((excess - before[1]) / np.log(noise / before[0]), *_SLOPES))
            before = (noise, excess)
            noise = float(np.clip(noise * np.exp(-excess / slope), *_NOISE_RANGE))
        return noise

    def _expected_bits(self, noise: float, every: int) -> float:
        """Bits of a sample of the tiles, by the entropies that the coder approaches."""
        described = self._describe(noise, every)
        n_functions = self.dictionary.Phi.shape[1]
        bits = 0.0
        for selections in described.selections:
            sizes = [np.abs(np.round(s.weights / (_STEP * noise))).astype(np.int64) for s in selections]
            counts = np.array([np.count_nonzero(size) for size in sizes], dtype=np.int64)
            bits += _MEAN_BITS * len(counts) + _entropy(counts)
            bits += _PLACES * float(np.sum(_log2_choose(n_functions, counts)))
            bits += _entropy(np.concatenate(sizes)[np.concatenate(sizes) > 0]) + float(np.sum(counts))
        return bits


def _entropy(values: NDArray[np.int64]) -> float:
    """Bits of a list of integers under their own frequencies."""
    if values.size == 0:
        return 0.0
    frequency = np.unique(values, return_counts=True)[1] / values.size
    return -float(values.size * np.sum(frequency * np.log2(frequency)))


def _log2_choose(n: int, k: NDArray[np.int64]) -> Array:
    return (gammaln(n + 1) - gammaln(k + 1) - gammaln(n - k + 1)) / np.log(2.0)


def _as_stored(step: float) -> float:
    """The step as the file holds it, in single precision."""
    return float(np.float32(step))
