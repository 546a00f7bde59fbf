"""Φ that is never held: columns are made from the basis functions when they are needed."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from numpy.typing import ArrayLike

from sparsebayes.basis.base import Floats, Functions, as_inputs

from .protocol import BLOCK_BYTES, Design


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
    max_bytes : int, default=64 MiB
        Memory for one block; evaluating it may take two or three times that for a moment.
    """

    def __init__(
        self, functions: Functions, X: ArrayLike, *, block: int | None = None, max_bytes: int = BLOCK_BYTES
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
        """Return Φ[:, idx], a new (N, k) array."""
        return self._functions.evaluate(self._X, idx)

    def blocks(self) -> Iterator[slice]:
        """Yield runs of columns, in order, of the chosen width."""
        m = len(self._functions)
        for start in range(0, m, self._block):
            yield slice(start, min(start + self._block, m))
