"""The sparse code of an image, and its file."""

from __future__ import annotations

import json
import struct
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sparsebayes.applications.images.models import IntegerModel, SubsetModel, unzigzag, zigzag
from sparsebayes.applications.images.pixels import Array, Levels, from_planes, from_tiles, grid_shape
from sparsebayes.applications.images.rangecoder import Decoder, Encoder
from sparsebayes.applications.images.tiles import TileDictionary
from sparsebayes.basis import Basis, Gabor

MAGIC = b"SBI1"
_DTYPES = ("uint8", "uint16", "float32", "float64")
# Larger numbers of neighbouring functions than these are one context each.
_ACTIVITY = (0, 2, 5, 9, 14, 20, 28)
_COUNTS = 64

Integers = NDArray[np.int64]


@dataclass(frozen=True)
class PlaneCode:
    """The code of one plane: per tile its level, which functions it uses, and their weights, all integers.

    Attributes
    ----------
    shape : tuple of int
        Rows and columns of pixels.
    means : (tiles,) array of int
        Weight of the constant function of every tile.
    functions : tuple of lists
        Functions of every tile, ascending.
    weights : tuple of lists
        Their weights, none zero.
    """

    shape: tuple[int, int]
    means: Integers
    functions: tuple[list[int], ...]
    weights: tuple[list[int], ...]


@dataclass(frozen=True)
class SparseCode:
    """An image as a few functions per tile, with quantised weights.

    Attributes
    ----------
    planes : tuple of PlaneCode
        The plane of a grey image; luminance and two colour differences of a colour one.
    levels : Levels
        Type and range of the pixels.
    basis : Gabor or sum of Gabors
        The dictionary.
    tile : int
        Side of a tile.
    step, mean_step : float
        Quantisation steps of the weights of functions of unit norm, and of the means of tiles, in grey levels.
    """

    planes: tuple[PlaneCode, ...]
    levels: Levels
    basis: Basis
    tile: int
    step: float
    mean_step: float

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of the image."""
        return self.planes[0].shape if len(self.planes) == 1 else (*self.planes[0].shape, 3)

    @property
    def n_functions(self) -> int:
        """Number of functions in use over all tiles, the constant ones not counted."""
        return sum(len(functions) for plane in self.planes for functions in plane.functions)

    def to_bytes(self) -> bytes:
        """The file: a short header, then everything through one range coder."""
        dictionary = cached_dictionary(_basis_text(self.basis), self.tile)
        coder = Encoder()
        models = [_PlaneModels(dictionary) for _ in range(min(len(self.planes), 2))]
        for plane, model in zip(self.planes, [models[0], models[-1], models[-1]], strict=False):
            model.encode(coder, plane, self.tile)
        return self._header() + coder.finish()

    @classmethod
    def from_bytes(cls, file: bytes) -> SparseCode:
        """Read what :meth:`to_bytes` wrote."""
        try:
            header, body = _read_header(bytes(file))
            dictionary = cached_dictionary(_basis_text(header["basis"]), header["tile"])
            coder = Decoder(body)
            models = [_PlaneModels(dictionary) for _ in range(min(len(header["shapes"]), 2))]
            order = [models[0], models[-1], models[-1]]
            planes = [
                model.decode(coder, shape, header["tile"])
                for shape, model in zip(header["shapes"], order, strict=False)
            ]
        except (struct.error, IndexError, KeyError, json.JSONDecodeError) as error:
            raise ValueError(f"the file is damaged or cut short: {error}") from error
        return cls(tuple(planes), header["levels"], header["basis"], header["tile"], *header["steps"])

    def decode(self) -> NDArray[Any]:
        """The image that the code describes."""
        dictionary = cached_dictionary(_basis_text(self.basis), self.tile)
        planes = [self._reconstruct(plane, dictionary) for plane in self.planes]
        return self.levels.from_grey_levels(from_planes(planes))

    def _reconstruct(self, plane: PlaneCode, dictionary: TileDictionary) -> Array:
        """Pixels of a plane."""
        tiles = np.repeat(self.mean_step * plane.means[:, None].astype(np.float64), self.tile**2, axis=1)
        for row, functions, weights in zip(tiles, plane.functions, plane.weights, strict=True):
            row += dictionary.Phi[:, functions] @ (self.step * np.array(weights, dtype=np.float64))
        return from_tiles(tiles, plane.shape, self.tile)

    def _header(self) -> bytes:
        rows, columns = self.planes[0].shape
        dtype = _DTYPES.index(self.levels.dtype)
        flags = dtype | (8 if len(self.planes) == 3 else 0) | (16 if _is_default(self.basis) else 0)
        header = MAGIC + struct.pack("<BBIIff", flags, self.tile, rows, columns, self.step, self.mean_step)
        if dtype >= 2:
            header += struct.pack("<dd", self.levels.low, self.levels.high)
        if not _is_default(self.basis):
            text = _basis_text(self.basis).encode()
            header += struct.pack("<H", len(text)) + text
        return header


def _read_header(file: bytes) -> tuple[dict[str, Any], bytes]:
    if file[: len(MAGIC)] != MAGIC:
        raise ValueError(f"the file begins with {file[:4]!r}; expected {MAGIC!r}, as written by SparseCode.to_bytes")
    layout = struct.Struct("<BBIIff")
    flags, tile, rows, columns, step, mean_step = layout.unpack_from(file, len(MAGIC))
    place = len(MAGIC) + layout.size
    dtype = _DTYPES[flags & 7]
    levels = Levels(dtype, 0.0, float(np.iinfo(dtype).max) if dtype.startswith("u") else 1.0)
    if dtype.startswith("f"):
        levels = Levels(dtype, *struct.unpack_from("<dd", file, place))
        place += 16
    basis: Basis = default_basis()
    if not flags & 16:
        (length,) = struct.unpack_from("<H", file, place)
        basis = _basis_from_text(file[place + 2 : place + 2 + length].decode())
        place += 2 + length
    small = ((rows + 1) // 2, (columns + 1) // 2)
    shapes = [(rows, columns), *([small, small] if flags & 8 else [])]
    header = {"tile": tile, "levels": levels, "basis": basis, "steps": (step, mean_step), "shapes": shapes}
    return header, file[place:]


class _PlaneModels:
    """Expectations about the planes of one kind."""

    def __init__(self, dictionary: TileDictionary) -> None:
        self._means = IntegerModel(40)
        self._counts = [IntegerModel(_COUNTS) for _ in range(len(_ACTIVITY) + 1)]
        self._subset = SubsetModel(dictionary.kinds)
        self._sizes = [IntegerModel(24) for _ in range(len(_ACTIVITY) + 1)]

    def encode(self, coder: Encoder, plane: PlaneCode, tile: int) -> None:
        """Write a plane, tile by tile."""
        neighbours = _Neighbours(grid_shape(plane.shape, tile))
        for mean, functions, weights in zip(plane.means.tolist(), plane.functions, plane.weights, strict=True):
            self._means.encode(coder, zigzag(mean - neighbours.expected_mean()))
            self._counts[neighbours.activity()].encode(coder, len(functions))
            self._subset.encode(coder, functions)
            sizes = self._sizes[_context(len(functions))]
            for weight in weights:
                sizes.encode(coder, abs(weight) - 1)
                coder.encode_bits(int(weight < 0), 1)
            neighbours.add(mean, len(functions))

    def decode(self, coder: Decoder, shape: tuple[int, int], tile: int) -> PlaneCode:
        """Read a plane, tile by tile."""
        grid = grid_shape(shape, tile)
        neighbours = _Neighbours(grid)
        means: list[int] = []
        functions: list[list[int]] = []
        weights: list[list[int]] = []
        for _ in range(grid[0] * grid[1]):
            means.append(neighbours.expected_mean() + unzigzag(self._means.decode(coder)))
            count = self._counts[neighbours.activity()].decode(coder)
            functions.append(self._subset.decode(coder, count))
            sizes = self._sizes[_context(count)]
            signed = []
            for _ in range(count):
                size = sizes.decode(coder) + 1
                signed.append(-size if coder.decode_bits(1) else size)
            weights.append(signed)
            neighbours.add(means[-1], count)
        return PlaneCode(shape, np.array(means, dtype=np.int64), tuple(functions), tuple(weights))


class _Neighbours:
    """What the tiles to the left, above and above left say about the next."""

    def __init__(self, grid: tuple[int, int]) -> None:
        self._columns = grid[1]
        self._means: list[int] = []
        self._counts: list[int] = []

    def add(self, mean: int, count: int) -> None:
        """One more tile."""
        self._means.append(mean)
        self._counts.append(count)

    def expected_mean(self) -> int:
        """Median of left, above, and the plane through the three (the predictor of LOCO-I)."""
        left, above, corner = self._around(self._means)
        if left is None or above is None or corner is None:
            known = left if left is not None else above
            return 0 if known is None else known
        return sorted((left, above, left + above - corner))[1]

    def activity(self) -> int:
        """Context of the number of functions."""
        left, above, _ = self._around(self._counts)
        known = [count for count in (left, above) if count is not None]
        return _context(sum(known) // len(known)) if known else 0

    def _around(self, values: list[int]) -> tuple[int | None, int | None, int | None]:
        place = len(values)
        row, column = divmod(place, self._columns)
        left = values[place - 1] if column else None
        above = values[place - self._columns] if row else None
        corner = values[place - self._columns - 1] if row and column else None
        return left, above, corner


def _context(count: int) -> int:
    return sum(count > limit for limit in _ACTIVITY)


# -- the basis, in words -----------------------------------------------------------------------------------


def default_basis() -> Gabor:
    """The dictionary used where none is given: waves of an octave and a half, in four widths and six directions."""
    return Gabor(widths=(1.0, 2.0, 4.0, 8.0), cycles=(0.25,), orientations=6, phases=2, aspect=2.0, spacing=1.5)


def _is_default(basis: Basis) -> bool:
    return _basis_text(basis) == _basis_text(default_basis())


def _basis_text(basis: Basis) -> str:
    terms = getattr(basis, "bases", (basis,))
    if not all(type(term) is Gabor for term in terms):
        raise TypeError(f"basis={basis!r}; expected Gabor(…) or a sum of these: a file holds their parameters only")
    return json.dumps([term.get_params() for term in terms], default=lambda value: np.asarray(value).tolist())


def _basis_from_text(text: str) -> Basis:
    first, *rest = (Gabor(**parameters) for parameters in json.loads(text))
    basis: Basis = first
    for term in rest:
        basis = basis + term
    return basis


@lru_cache(maxsize=4)
def cached_dictionary(text: str, tile: int) -> TileDictionary:
    """The dictionary of a basis given in words; a code of many images evaluates it once."""
    return TileDictionary.build(_basis_from_text(text), tile)


def dictionary_of(basis: Basis, tile: int) -> TileDictionary:
    """The dictionary of a basis on a tile."""
    return cached_dictionary(_basis_text(basis), tile)
