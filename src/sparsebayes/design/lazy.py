"""Φ that is never held: columns are made from the basis functions when they are needed."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import reduce
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from sparsebayes.basis.base import Floats, Functions, as_inputs, positions
from sparsebayes.threads import on_all_cores, side_by_side

from .protocol import Design, weighted_squares

# A block that stays in the cache between being made and being multiplied.
_BLOCK_BYTES = 1 << 23
# Rows on which they are made at once: what they are multiplied with is then read once for each block, and stays in the
# cache as well.
_ROWS = 2048


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
        Columns made at once, on a run of rows. By default as many as ``max_bytes`` allows, and at least one.
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
        rows = min(_ROWS, max(1, self._X.shape[0]))
        self._block = block if block is not None else max(1, max_bytes // (8 * rows))

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
            for rows in _runs(part):
                result[rows] = self._functions.evaluate(self._X[rows], place)

        side_by_side(fill, len(self._X))
        return result

    def rows(self, part: slice, idx: Any = slice(None)) -> Floats:
        """Return Φ[part, idx], a new array of all or some columns on a run of rows."""
        return self._functions.evaluate(self._X[part], idx)

    def correlate(self, V: ArrayLike) -> Floats:
        """Return Φᵀ V: (M,) for a vector (N,), (M, T) for a matrix (N, T)."""
        V = np.asarray(V, dtype=np.float64)
        return self._sums(lambda values, rows: (values.T @ V[rows],))[0]

    def moments(self, V: ArrayLike, weights: ArrayLike | None = None) -> tuple[Floats, Floats]:
        """Return ``correlate(V)`` and ``sqnorms(weights)`` from one evaluation of the functions."""
        V = np.asarray(V, dtype=np.float64)
        weigh = None if weights is None else self._row_weights(weights)
        products, norms = self._sums(
            lambda values, rows: (values.T @ V[rows], weighted_squares(values, None if weigh is None else weigh[rows]))
        )
        return products, norms

    def _sums(self, work: Callable[[Floats, slice], tuple[Floats, ...]]) -> tuple[Floats, ...]:
        """Sums over the rows of what ``work`` makes of the values of every block of columns and where their rows are.

        On all cores: kernels and products run outside Python's lock.
        """

        def over_rows(block: slice) -> tuple[Floats, ...]:
            runs = _runs(slice(0, len(self._X)))
            made = (work(self._functions.evaluate(self._X[rows], block), rows) for rows in runs)
            return reduce(lambda total, new: tuple(each + other for each, other in zip(total, new, strict=True)), made)

        return tuple(np.concatenate(parts) for parts in zip(*on_all_cores(over_rows, self.blocks()), strict=True))

    def blocks(self) -> Iterator[slice]:
        """Yield runs of columns, in order, of the chosen width."""
        m = len(self._functions)
        for start in range(0, m, self._block):
            yield slice(start, min(start + self._block, m))


def _runs(part: slice) -> Iterator[slice]:
    """A run of rows in short runs."""
    for start in range(part.start, part.stop, _ROWS):
        yield slice(start, min(start + _ROWS, part.stop))
