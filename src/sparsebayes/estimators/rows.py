"""Work on many rows: a block at a time, on all cores."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sparsebayes.threads import on_all_cores

# Rows of a block: its values under a few dozen functions stay in the cache between being made and being used.
_ROWS = 4096


def row_blocks(n: int, size: int = _ROWS) -> Iterator[slice]:
    """Yield runs of rows, in order."""
    for start in range(0, n, size):
        yield slice(start, min(start + size, n))


def distinct(X: NDArray[Any], y: NDArray[Any]) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """First of each of the different rows with their targets, in order, and which of them every row is a copy of."""
    told_by = np.column_stack([X, y])
    _, first, place = np.unique(told_by, axis=0, return_index=True, return_inverse=True)
    order = np.argsort(first)
    rank = np.empty(len(order), dtype=np.intp)
    rank[order] = np.arange(len(order))
    return first[order], rank[place.reshape(-1)]


def map_rows(work: Callable[[Any], NDArray[Any]], X: Any) -> NDArray[Any]:
    """Return ``work(X)``, one row of output per row of X, computed in blocks where X is a large array.

    Parameters
    ----------
    work : callable
        Gives an array with a row for every row that it gets; it must be safe to call from several threads.
    X : ndarray, sparse array or LinearOperator
        The rows; what cannot be cut cheaply is passed whole.
    """
    if not isinstance(X, np.ndarray) or X.shape[0] <= 2 * _ROWS:
        return work(X)
    first, *others = row_blocks(X.shape[0])
    head = work(X[first])
    result = np.empty((X.shape[0], *head.shape[1:]), dtype=head.dtype)
    result[first] = head

    def fill(block: slice) -> None:
        result[block] = work(X[block])

    on_all_cores(fill, others)
    return result
