"""Φ as a NumPy array in memory."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sparsebayes.basis.base import Floats, positions
from sparsebayes.threads import side_by_side

from .protocol import Design, weighted_squares

# Entries squared at once: small enough that a block stays in the cache between its two uses.
_SQUARED_ENTRIES = 1 << 17
# Products of a number with a number from which on threads are worth starting.
_MANY_PRODUCTS = 1 << 26
# Functions projected at once, so that their products stay in the cache.
_PROJECTED = 4096


class DenseDesign(Design):
    """Φ held as a two-dimensional array.

    Parameters
    ----------
    Phi : (N, M) ndarray
        Held without a copy where it is float64 or float32 and BLAS can read it (any row or column order with
        one unit stride); anything else is converted once. float32 halves the memory; products are then
        made in float64, block by block.
    """

    def __init__(self, Phi: NDArray[Any]) -> None:
        Phi = np.asarray(Phi)
        if Phi.ndim != 2:
            raise ValueError(f"Phi has shape {Phi.shape}; expected two dimensions (rows, columns)")
        if Phi.dtype.kind not in "fiub":
            raise TypeError(f"Phi has dtype {Phi.dtype}; expected real numbers")
        if Phi.dtype not in (np.float64, np.float32):
            Phi = Phi.astype(np.float64)
        # NumPy multiplies arrays that BLAS cannot read with plain loops, hundreds of times slower.
        self._Phi = Phi if _blas_can_read(Phi) else np.ascontiguousarray(Phi)
        self._by_rows = self._Phi.strides[1] <= self._Phi.strides[0]

    @property
    def shape(self) -> tuple[int, int]:
        """The numbers (N, M) of rows and columns."""
        return self._Phi.shape[0], self._Phi.shape[1]

    def columns(self, idx: Any) -> Floats:
        """Return Φ[:, idx], a new (N, k) array."""
        idx = positions(idx, self._Phi.shape[1])
        # Taking along the contiguous axis of Φ or of its transpose keeps the reads in order.
        taken = self._Phi.take(idx, axis=1) if self._by_rows else self._Phi.T.take(idx, axis=0).T
        return taken.astype(np.float64, copy=False)

    def rows(self, part: slice, idx: Any = slice(None)) -> Floats:
        """Return Φ[part, idx], a new array of all or some columns on a run of rows."""
        return self._Phi[part, idx].astype(np.float64)

    def correlate(self, V: ArrayLike) -> Floats:
        """Return Φᵀ V: (M,) for a vector (N,), (M, T) for a matrix (N, T)."""
        if self._Phi.dtype == np.float64:
            # With the few vectors on the left BLAS reads Φ as it lies, instead of rearranging it first.
            rows = np.asarray(V, dtype=np.float64).T
            if rows.size * self._Phi.shape[1] < _MANY_PRODUCTS:
                return (rows @ self._Phi).T
            parts = side_by_side(lambda some: (rows @ self._Phi[:, some]).T, self._Phi.shape[1])
            return parts[0] if len(parts) == 1 else np.concatenate(parts)
        return super().correlate(V)

    def project(self, V: Floats, P: Floats) -> tuple[Floats, Floats]:
        """Return Φᵀ V and, for every function, the sum of squares of Φᵀ P; the products themselves are not kept."""
        rows = np.hstack([V, P]).T
        return projected(
            lambda some: rows @ self._Phi[:, some].astype(np.float64, copy=False), V.shape[1], self._Phi.shape[1]
        )

    def sqnorms(self, weights: ArrayLike | None = None) -> Floats:
        """Return the diagonal of Φᵀ diag(weights) Φ, (M,); the weights (N,) may have any sign."""
        rows = None if weights is None else self._row_weights(weights)
        result = np.zeros(self._Phi.shape[1])
        if self._by_rows:
            for part in self._slices(axis=0):
                block = self._Phi[part].astype(np.float64, copy=False)
                result += weighted_squares(block, None if rows is None else rows[part])
        else:
            for part in self._slices(axis=1):
                block = self._Phi[:, part].astype(np.float64, copy=False)
                result[part] = weighted_squares(block, rows)
        return result

    def _slices(self, axis: int) -> Iterator[slice]:
        length = self._Phi.shape[axis]
        step = max(1, _SQUARED_ENTRIES // max(1, self._Phi.shape[1 - axis]))
        for start in range(0, length, step):
            yield slice(start, min(start + step, length))


def projected(products: Callable[[slice], Floats], k: int, functions: int) -> tuple[Floats, Floats]:
    """The first k rows of products with all functions, (M, k), and the sums of squares of the others, (M,).

    ``products(part)`` makes those with a run of the functions, (rows, part), which are not kept.
    """
    found, squares = np.empty((functions, k)), np.empty(functions)

    def score(part: slice) -> None:
        for start in range(part.start, part.stop, _PROJECTED):
            some = slice(start, min(start + _PROJECTED, part.stop))
            made = products(some)
            found[some] = made[:k].T
            squares[some] = np.einsum("pm,pm->m", made[k:], made[k:])

    side_by_side(score, functions)
    return found, squares


def _blas_can_read(A: NDArray[Any]) -> bool:
    size = A.itemsize
    rows, columns = A.shape
    by_row = A.strides[1] == size and A.strides[0] >= size * columns and A.strides[0] % size == 0
    by_column = A.strides[0] == size and A.strides[1] >= size * rows and A.strides[1] % size == 0
    return A.flags.aligned and A.dtype.isnative and (by_row or by_column)
