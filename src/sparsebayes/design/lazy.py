"""Φ that is never held: columns are made from the basis functions when they are needed."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from sparsebayes.basis.base import Floats, Functions, as_inputs, positions
from sparsebayes.threads import on_all_cores, side_by_side

from .protocol import Design, weighted_squares

# A block that stays in the cache between being made and being multiplied.
_BLOCK_BYTES = 1 << 23
# Rows on which columns are made at once.
_ROWS = 8192


class LazyDesign(Design):
    """Basis functions on inputs, evaluated again for every product, a block of columns at a time.

    Time is traded for memory: a product costs an evaluation of all the functions, and holds one block.

    Parameters
    ----------
    functions : Functions
        The M basis functions.
    X : (N, d) array-like
        The inputs of the N rows.
    block : int, optional
        Columns made at once. By default as many as ``max_bytes`` allows, and at least one.
    max_bytes : int, default=8 MiB
        Memory for one block; evaluating it may take two or three times that for a moment.
    """

    def __init__(
        self, functions: Functions, X: ArrayLike, *, block: int | None = None, max_bytes: int = _BLOCK_BYTES
    ) -> None:
        self._functions = functions
        self._X = as_inputs(X)
        if self._X.shape[1] != functions.n_features:
            raise ValueError(f"X has {self._X.shape[1]} features; the functions take {functions.n_features}")
        if block is not None and block < 1:
            raise ValueError(f"block={block!r}; expected a positive number of columns")
        self._block = block if block is not None else max(1, max_bytes // (8 * max(1, self._X.shape[0])))

    @property
    def functions(self) -> Functions:
        """The basis functions, one per column."""
        return self._functions

    @property
    def shape(self) -> tuple[int, int]:
        """The numbers (N, M) of rows and columns."""
        return self._X.shape[0], len(self._functions)

    def columns(self, idx: Any) -> Floats:
        """Return Φ[:, idx], a new (N, k) array, made on all cores."""
        place = positions(idx, len(self._functions))
        result = np.empty((len(self._X), len(place)))

        def fill(part: slice) -> None:
            for start in range(part.start, part.stop, _ROWS):
                rows = slice(start, min(start + _ROWS, part.stop))
                result[rows] = self._functions.evaluate(self._X[rows], place)

        side_by_side(fill, len(self._X))
        return result

    def rows(self, part: slice) -> Floats:
        """Return Φ[part], a new array of all columns on a run of rows."""
        return self._functions.evaluate(self._X[part])

    def correlate(self, V: ArrayLike) -> Floats:
        """Return Φᵀ V: (M,) for a vector (N,), (M, T) for a matrix (N, T)."""
        V = np.asarray(V, dtype=np.float64)
        return np.concatenate(self._map(lambda block: block.T @ V))

    def moments(self, V: ArrayLike, weights: ArrayLike | None = None) -> tuple[Floats, Floats]:
        """Return ``correlate(V)`` and ``sqnorms(weights)`` from one evaluation of the functions."""
        V = np.asarray(V, dtype=np.float64)
        rows = None if weights is None else self._row_weights(weights)
        found = self._map(lambda block: (block.T @ V, weighted_squares(block, rows)))
        return np.concatenate([products for products, _ in found]), np.concatenate([norms for _, norms in found])

    def _map(self, work: Callable[[Floats], Any]) -> list[Any]:
        """Apply ``work`` to every block of columns, on all cores: kernels and products run outside Python's lock."""
        return on_all_cores(lambda block: work(self._functions.evaluate(self._X, block)), self.blocks())

    def blocks(self) -> Iterator[slice]:
        """Yield runs of columns, in order, of the chosen width."""
        m = len(self._functions)
        for start in range(0, m, self._block):
            yield slice(start, min(start + self._block, m))
