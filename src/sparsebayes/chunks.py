"""Rows that come a chunk at a time, because they do not fit in memory."""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

_ROWS = 1 << 16


@dataclass(frozen=True)
class Chunk:
    """Some rows: inputs, targets, and weights where they have any."""

    X: Any
    y: Any
    weight: Any = None


class Chunks(ABC):
    """A source of chunks.

    Attributes
    ----------
    again : bool
        Whether the rows can be read more than once.
    """

    again: bool = True

    @abstractmethod
    def __iter__(self) -> Iterator[Chunk]:
        """Yield all rows, in order."""


class ArrayChunks(Chunks):
    """Rows of arrays, which may be memory-mapped files: each chunk is read when its turn comes.

    Parameters
    ----------
    X : (N, d) array or data frame
        Inputs.
    y : (N,) or (N, T) array
        Targets.
    weight : (N,) array or number, optional
        Sample weights.
    rows : int
        Rows of a chunk.
    """

    def __init__(self, X: Any, y: Any, weight: Any = None, rows: int = _ROWS) -> None:
        if weight is not None and np.ndim(weight) == 0:  # one for all rows
            weight = np.broadcast_to(weight, len(X))
        lengths = {len(part) for part in (X, y, weight) if part is not None}
        if len(lengths) != 1:
            raise ValueError(f"X, y and weights have {sorted(lengths)} rows; expected one common number")
        self.X, self.y, self.weight, self.rows = X, y, weight, rows

    def __iter__(self) -> Iterator[Chunk]:
        for start in range(0, len(self.X), self.rows):
            part = slice(start, start + self.rows)
            yield Chunk(
                self.X[part],  # as it is: a data frame has names
                np.asarray(self.y[part]),
                None if self.weight is None else np.asarray(self.weight[part]),
            )


class ParquetChunks(Chunks):
    """Rows of Parquet files, read by batches of their row groups; needs pyarrow.

    Inputs are tables of pyarrow, whose names a model keeps and compares as it does those of a data frame.

    Parameters
    ----------
    path : path-like, or list of them
        The files, in order.
    target : str or list of str
        Column or columns of targets.
    columns : list of str, optional
        Columns of inputs; by default all others of the first file, which every file must have, in any order.
    weight : str, optional
        Column of sample weights.
    rows : int
        Largest number of rows of a chunk.
    """

    def __init__(
        self,
        path: Any,
        *,
        target: str | list[str],
        columns: list[str] | None = None,
        weight: str | None = None,
        rows: int = _ROWS,
    ) -> None:
        self.paths = [path] if isinstance(path, str | os.PathLike) else list(path)
        self.target, self.columns, self.weight, self.rows = target, columns, weight, rows

    def __iter__(self) -> Iterator[Chunk]:
        try:
            from pyarrow.parquet import ParquetFile
        except ImportError:
            raise ImportError("Parquet files need pyarrow: pip install 'sparsebayes[files]'") from None
        inputs = self.columns
        for path in self.paths:
            with ParquetFile(path) as file:
                inputs = self._inputs(path, file.schema_arrow.names, inputs)
                wanted = [*inputs, *self._targets, *([] if self.weight is None else [self.weight])]
                for batch in file.iter_batches(batch_size=self.rows, columns=wanted):
                    yield self._chunk(path, batch, inputs)

    @property
    def _targets(self) -> list[str]:
        return [self.target] if isinstance(self.target, str) else list(self.target)

    def _inputs(self, path: Any, present: list[str], wanted: list[str] | None) -> list[str]:
        """Columns of inputs: those wanted, which the first file decides in its order where none are named."""
        taken = {*self._targets, self.weight}
        others = [name for name in present if name not in taken]
        inputs = others if wanted is None else list(wanted)
        missing = [name for name in (*inputs, *taken) if name is not None and name not in present]
        if missing:
            raise ValueError(f"{os.fspath(path)} has no column {missing}; it has {present}")
        further = [name for name in others if name not in inputs] if self.columns is None else []
        if further:
            raise ValueError(
                f"{os.fspath(path)} has columns {further} that the files before it have not; name those wanted by "
                "columns="
            )
        return inputs

    def _chunk(self, path: Any, batch: Any, inputs: list[str]) -> Chunk:
        from pyarrow import table

        def numbers(name: str) -> NDArray[np.float64]:
            values = batch.column(name).to_numpy(zero_copy_only=False)
            if values.dtype.kind not in "fiub":
                raise ValueError(
                    f"column {name!r} of {os.fspath(path)} holds {values.dtype}, not numbers; leave it out by columns="
                )
            return values.astype(np.float64, copy=False)

        X = table({name: numbers(name) for name in inputs})
        y = np.column_stack([numbers(name) for name in self._targets])
        single = isinstance(self.target, str)
        return Chunk(X, y[:, 0] if single else y, None if self.weight is None else numbers(self.weight))


class IterableChunks(Chunks):
    """Chunks from any iterable of ``(X, y)`` or ``(X, y, weight)``, or from a function that returns one.

    Parameters
    ----------
    source : iterable or callable
        A generator can be read once; a list, or a function that makes a new generator, as often as need be.
    """

    def __init__(self, source: Iterable[Any] | Callable[[], Iterable[Any]]) -> None:
        self.source = source
        self.again = callable(source) or not isinstance(source, Iterator)

    def __iter__(self) -> Iterator[Chunk]:
        source: Any = self.source() if callable(self.source) else self.source
        for item in source:
            if not isinstance(item, tuple) or len(item) not in (2, 3):
                raise ValueError(f"a chunk is of type {type(item).__name__}; expected a tuple (X, y) or (X, y, weight)")
            yield Chunk(*item)


def as_chunks(X: Any, y: Any, weight: Any = None) -> Chunks | None:
    """Chunks where X is a source of them or a memory-mapped file; None where it is anything else."""
    if isinstance(X, np.memmap) and y is not None:
        return ArrayChunks(X, y, weight)
    lazily = (callable(X) and not hasattr(X, "shape")) or isinstance(X, Iterator)  # a linear operator is callable
    if y is not None:
        if isinstance(X, Chunks) or lazily or _are_pairs(X):
            raise ValueError(
                f"y is of type {type(y).__name__} beside an X that comes in chunks, which bring their targets with "
                "them; leave y out, or pass all rows as one array"
            )
        return None
    if isinstance(X, Chunks):
        return X
    if lazily or (isinstance(X, list) and X and all(isinstance(item, tuple) for item in X)):
        source: Any = X
        return IterableChunks(source)
    return None


def _are_pairs(X: Any) -> bool:
    """Whether X lists chunks; a list of tuples of numbers is an array."""
    return isinstance(X, list) and len(X) > 0 and all(isinstance(item, tuple) and _is_pair(item) for item in X)


def _is_pair(item: tuple[Any, ...]) -> bool:
    shapes = [getattr(part, "shape", ()) for part in item]
    return len(item) in (2, 3) and len(shapes[0]) == 2 and len(shapes[1]) > 0


def weighed_rows(X: Any, weight: Any) -> Any:
    """Rows of positive weight; what is wrong with weights is said elsewhere."""
    if weight is None:
        return X
    try:
        return X[np.broadcast_to(np.asarray(weight, dtype=np.float64), len(X)) > 0.0]
    except (TypeError, ValueError):
        return X


def sample_rows(chunks: Chunks, count: int) -> Any:
    """Inputs of rows spread evenly over all chunks: all of positive weight, or every second, fourth, … of them."""
    kept: list[Any] = []
    step, position = 1, 0
    for chunk in chunks:
        X = weighed_rows(np.asarray(chunk.X), chunk.weight)
        kept.append(X[(-position) % step :: step].copy())  # a source may fill the same array again
        position += len(X)
        while sum(map(len, kept)) > count:
            whole = np.vstack(kept)
            kept, step = [whole[::2]], 2 * step
    return np.vstack(kept) if kept else np.zeros((0, 1))
