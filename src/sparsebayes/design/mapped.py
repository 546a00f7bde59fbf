"""Φ that stays in a file: rows are read in blocks, and no more than one block is held."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sparsebayes.basis.base import Floats, positions

from .protocol import BLOCK_BYTES, Design, weighted_squares


class MappedDesign(Design):
    """The columns of a memory-mapped array.

    Parameters
    ----------
    Phi : (N, M) array
        Read by slices of rows; of any real dtype, converted block by block.
    max_bytes : int, default=64 MiB
        Memory for one block.
    shift : (M,) array, optional
        Taken off the columns as they are read.
    """

    def __init__(self, Phi: NDArray[Any], *, max_bytes: int = BLOCK_BYTES, shift: Floats | None = None) -> None:
        if Phi.ndim != 2:
            raise ValueError(f"Phi has shape {Phi.shape}; expected two dimensions (rows, columns)")
        if Phi.dtype.kind not in "fiub":
            raise TypeError(f"Phi has dtype {Phi.dtype}; expected real numbers")
        self._Phi = Phi
        self._shift = shift
        self._rows = max(1, max_bytes // (8 * max(1, Phi.shape[1])))

    @property
    def shape(self) -> tuple[int, int]:
        """The numbers (N, M) of rows and columns."""
        return self._Phi.shape[0], self._Phi.shape[1]

    def _parts(self) -> Iterator[tuple[slice, Floats]]:
        for start in range(0, len(self._Phi), self._rows):
            part = slice(start, start + self._rows)
            block = np.asarray(self._Phi[part], dtype=np.float64)
            yield part, block if self._shift is None else block - self._shift

    def columns(self, idx: Any) -> Floats:
        """Return Φ[:, idx], a new (N, k) array."""
        idx = positions(idx, self._Phi.shape[1])
        result = np.empty((len(self._Phi), len(idx)))
        for part, block in self._parts():
            result[part] = block[:, idx]
        return result

    def matvec(self, w: ArrayLike, idx: Any) -> Floats:
        """Return Φ[:, idx] w for weights (k,) or (k, T)."""
        w, idx = np.asarray(w, dtype=np.float64), positions(idx, self._Phi.shape[1])
        result = np.empty((len(self._Phi), *w.shape[1:]))
        for part, block in self._parts():
            result[part] = block[:, idx] @ w
        return result

    def correlate(self, V: ArrayLike) -> Floats:
        """Return Φᵀ V: (M,) for a vector (N,), (M, T) for a matrix (N, T)."""
        V = np.asarray(V, dtype=np.float64)
        result = np.zeros((self._Phi.shape[1], *V.shape[1:]))
        for part, block in self._parts():
            result += block.T @ V[part]
        return result

    def sqnorms(self, weights: ArrayLike | None = None) -> Floats:
        """Return the diagonal of Φᵀ diag(weights) Φ, (M,); the weights (N,) may have any sign."""
        rows = None if weights is None else self._row_weights(weights)
        result = np.zeros(self._Phi.shape[1])
        for part, block in self._parts():
            result += weighted_squares(block, None if rows is None else rows[part])
        return result
