"""Data in Dask collections: partitions stay with the workers, sums travel, the search runs here."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from hashlib import blake2b
from itertools import pairwise
from numbers import Integral
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sparsebayes.basis import Basis, Functions
from sparsebayes.basis.base import Joined, check_count
from sparsebayes.basis.kernels import Kernel, KernelFunctions, farthest_rows
from sparsebayes.design.centred import coarse
from sparsebayes.inference.rows.partitions import Partition
from sparsebayes.typing import Array, Index

# Up to this many rows every one of them is a candidate; beyond, so many are chosen that cover the inputs.
CANDIDATES = 2000
# Rows of a partition, evenly spaced, among which candidates are chosen; up to so many rows in all, among them all.
_LOOKED_AT = 20_000
# Contributions added by one task, so that no worker holds those of all partitions.
_FAN_IN = 8


def is_dask(X: Any) -> bool:
    """Whether X is a Dask collection, or a folder of Parquet files."""
    if isinstance(X, str | Path):
        return True
    return type(X).__module__.partition(".")[0] in ("dask", "dask_expr") and hasattr(X, "__dask_graph__")


def _dask() -> Any:
    try:
        import dask
        import dask.delayed
    except ImportError:
        raise ImportError("Dask collections and Parquet folders need Dask: pip install 'sparsebayes[dask]'") from None
    return dask


@dataclass(frozen=True)
class Cluster:
    """Partitions of rows, held by the workers (or, without a cluster, by this process).

    Attributes
    ----------
    partitions : list of delayed Partition
        The rows.
    sizes : ndarray of int
        Rows in each.
    n_features : int
        Columns of X.
    """

    partitions: list[Any]
    sizes: Index
    n_features: int

    @property
    def n_rows(self) -> int:
        """Rows in all."""
        return int(np.sum(self.sizes))

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns of X."""
        return self.n_rows, self.n_features

    @classmethod
    def gather(cls, X: Any, y: Any, numeric: bool) -> Cluster:
        """Take a Dask array, Dask DataFrame or Parquet folder, and the targets in the same partitions."""
        dask = _dask()
        X, y = _collections(X), y
        rows = _blocks(X, "X")
        if isinstance(y, str) and y not in getattr(X, "columns", ()):
            raise ValueError(f"y={y!r} is not a column of X")
        targets = [y] * len(rows) if isinstance(y, str) else _blocks(y, "y")
        if len(rows) != len(targets):
            raise ValueError(f"X has {len(rows)} partitions and y has {len(targets)}: expected the same partitions")
        raw = [dask.delayed(_read)(x, t, k) for k, (x, t) in enumerate(zip(rows, targets, strict=True))]
        raw = list(dask.persist(*raw))
        reports = compute([dask.delayed(_inspect)(part, numeric) for part in raw])
        _complain(reports)
        widths = {report[1] for report in reports if report[0]}
        if len(widths) != 1:
            raise ValueError(f"the partitions of X have {sorted(widths)} columns: expected one number, and rows")
        sizes = np.array([report[0] for report in reports], dtype=np.intp)
        starts = np.concatenate([[0], np.cumsum(sizes)[:-1]])
        placed = [dask.delayed(_place)(part, int(start)) for part, start in zip(raw, starts, strict=True)]
        filled = [part for part, size in zip(placed, sizes, strict=True) if size]
        return cls(list(dask.persist(*filled)), sizes, widths.pop())

    def stages(self, count: int) -> list[Cluster]:
        """The same rows in up to so many parts, one after the other."""
        cuts = np.linspace(0, len(self.partitions), min(count, len(self.partitions)) + 1).astype(int)
        return [replace(self, partitions=self.partitions[a:b]) for a, b in pairwise(cuts)]

    def digest(self) -> NDArray[np.uint8]:
        """What tells these rows from others: numbers that any other entry would change."""
        return np.frombuffer(self.merge(_contents, _join_contents), dtype=np.uint8)

    def relabelled(self, label: Callable[[NDArray[Any]], NDArray[Any]]) -> Cluster:
        """The same rows with other targets, made of theirs on the workers."""
        change = _dask().delayed(_relabelled, pure=False, traverse=False)
        return replace(self, partitions=[change(part, label) for part in self.partitions])

    def sum(self, work: Callable[..., tuple[Any, ...]], *arguments: Any) -> tuple[Any, ...]:
        """Sum over all partitions of what ``work(partition, *arguments)`` returns, in a fixed order, on the workers."""
        return self.merge(work, _add, *arguments)

    def merge(self, work: Callable[..., Any], join: Callable[[list[Any]], Any], *arguments: Any) -> Any:
        """Join what ``work`` returns for every partition, a few at a time, on the workers."""
        dask = _dask()
        # One object for all tasks: it travels once to each worker, not once with each task.
        shared = dask.delayed((work, arguments), pure=False, traverse=False)
        apply = dask.delayed(_apply, pure=False, traverse=False)
        level = [apply(part, shared) for part in self.partitions]
        while len(level) > 1:
            level = [dask.delayed(join)(level[k : k + _FAN_IN]) for k in range(0, len(level), _FAN_IN)]
        return compute(level)[0]


def _relabelled(partition: Partition, label: Callable[[NDArray[Any]], NDArray[Any]]) -> Partition:
    return replace(partition, y=label(partition.y))


def compute(tasks: list[Any]) -> list[Any]:
    """Run tasks where Dask runs them now; a cluster that goes away is said to have."""
    dask = _dask()
    try:
        return list(dask.compute(*tasks))
    except Exception as error:
        kind, said = type(error), " ".join(str(error).split())
        cancelled = kind.__name__ in ("CancelledError", "FutureCancelledError")
        if cancelled or kind.__module__.startswith("distributed") or isinstance(error, TimeoutError | OSError):
            raise RuntimeError(
                f"the Dask cluster went away during the fit ({kind.__name__}: {said[:200]}); start it again (or "
                "give its workers more memory) and fit again: with checkpoint=, a regression goes on from where it was"
            ) from error
        raise


def _collections(X: Any) -> Any:
    """A Parquet folder as a frame; anything else as it is."""
    if isinstance(X, str | Path):
        try:
            import dask.dataframe as frames
        except ImportError:
            raise ImportError("a Parquet folder needs Dask's DataFrames: pip install 'sparsebayes[dask]'") from None
        if not Path(X).exists():
            raise FileNotFoundError(f"X={str(X)!r}: there is no such Parquet folder")
        return frames.read_parquet(str(X))
    return X


def columns_of(X: Any, without: Any = None) -> Any:
    """No rows, with the columns of a Dask collection, by name where they have any, all but one."""
    X = _collections(X)
    if hasattr(X, "chunks"):
        return np.empty((0, X.shape[1])) if X.ndim == 2 else None
    if not hasattr(X, "columns"):
        return None
    import pandas

    names: Any = [name for name in X.columns if not (isinstance(without, str) and name == without)]
    return pandas.DataFrame(columns=names)


def named(rows: Array, names: Any) -> Any:
    """Rows under these names; as they are where there are none."""
    if names is None:
        return rows
    import pandas

    return pandas.DataFrame(rows, columns=names)


def _blocks(collection: Any, name: str) -> list[Any]:
    """Delayed partitions of an array or a frame."""
    if not hasattr(collection, "to_delayed"):
        raise TypeError(
            f"{name} is of type {type(collection).__name__}; expected a Dask array or DataFrame, as the other is "
            "(dask.array.from_array makes one)"
        )
    if hasattr(collection, "chunks"):
        if collection.ndim == 2:
            collection = collection.rechunk({1: -1})
        return list(np.ravel(collection.to_delayed()))
    return list(collection.to_delayed())


def _read(X: Any, y: Any, number: int) -> tuple[Partition | None, str]:
    """Rows of a partition, or what is wrong with it; a name as y is a column of X."""
    if isinstance(y, str):
        X, y = X.drop(columns=[y]), X[y]
    rows = np.asarray(X)
    if rows.dtype.kind == "c":
        return None, f"partition {number} of X holds complex numbers: expected real ones"
    try:
        rows = np.asarray(rows, dtype=np.float64)
    except (TypeError, ValueError) as error:
        return None, f"partition {number} of X does not hold numbers ({error})"
    rows = rows.reshape(len(rows), int(np.prod(rows.shape[1:])))  # a partition may be empty
    targets = np.asarray(y)
    targets = targets[:, 0] if targets.ndim == 2 and targets.shape[1] == 1 else targets
    if targets.ndim != 1:
        return None, f"partition {number} of y has shape {targets.shape}; on a cluster y is one target a row"
    if len(rows) != len(targets):
        return None, f"partition {number} has {len(rows)} rows in X and {len(targets)} in y"
    if not np.all(np.isfinite(rows)):
        bad = int(np.flatnonzero(~np.isfinite(rows).all(axis=1))[0])
        return None, f"partition {number} of X contains NaN or infinity (its row {bad})"
    if targets.dtype.kind == "f" and not np.all(np.isfinite(targets)):
        return None, f"partition {number} of y contains NaN or infinity"
    return Partition(rows, targets), ""


def _inspect(read: tuple[Partition | None, str], numeric: bool) -> tuple[int, int, str]:
    partition, problem = read
    if partition is None:
        return 0, 0, problem
    if numeric and len(partition.y) and partition.y.dtype.kind not in "fiub":
        return 0, 0, f"y has dtype {partition.y.dtype}: expected numbers"
    return len(partition.X), partition.X.shape[1], ""


def _complain(reports: list[tuple[int, int, str]]) -> None:
    problems = [problem for _, _, problem in reports if problem]
    if problems:
        more = f" (and {len(problems) - 1} partitions more)" if len(problems) > 1 else ""
        raise ValueError(problems[0] + more)
    if not any(size for size, _, _ in reports):
        raise ValueError("X has no rows in any partition")


def _place(read: tuple[Partition | None, str], first: int) -> Partition | None:
    partition, _ = read
    return None if partition is None else Partition(partition.X, partition.y, first)


def _apply(partition: Partition, asked: tuple[Callable[..., Any], tuple[Any, ...]]) -> Any:
    work, arguments = asked
    return work(partition, *arguments)


def _contents(partition: Partition) -> bytes:
    digest = blake2b(repr((partition.X.shape, partition.y.dtype.str)).encode())
    for rows in (partition.X, partition.y):
        digest.update(np.ascontiguousarray(rows).data)
    return digest.digest()


def _join_contents(parts: list[bytes]) -> bytes:
    return blake2b(b"".join(parts)).digest()


def _add(parts: list[tuple[Any, ...]]) -> tuple[Any, ...]:
    return tuple(sum(entries[1:], start=entries[0]) for entries in zip(*parts, strict=True))


# -- candidates -----------------------------------------------------------------------------------------------


def bind_on_cluster(basis: Basis, cluster: Cluster, random_state: Any) -> Functions:
    """Functions of a basis for rows that stay where they are."""
    parts = [_bind_term(term, cluster, random_state) for term in basis._terms()]
    return parts[0] if len(parts) == 1 else Joined(parts)


def _bind_term(basis: Basis, cluster: Cluster, random_state: Any) -> Functions:
    d = cluster.n_features
    if not isinstance(basis, Kernel) or not (basis.centres is None or isinstance(basis.centres, Integral)):
        return basis.bind(np.zeros((1, d)))  # it depends on no row
    kernel = basis._settled(d)
    if cluster.n_rows <= (CANDIDATES if basis.centres is None else _LOOKED_AT):
        centres, rows = cluster.merge(_all_rows, _stack)
        if basis.centres is not None:
            chosen = farthest_rows(kernel.scaled(centres), check_count("centres", basis.centres), random_state)
            centres, rows = centres[chosen], rows[chosen]
    else:
        count = CANDIDATES if basis.centres is None else int(basis.centres)
        centres, rows = cluster.merge(partial(_cover, kernel=kernel, count=count), partial(_cover_all, kernel, count))
        order = np.argsort(rows)
        centres, rows = centres[order], rows[order]
    return KernelFunctions(kernel, centres, rows)


def _all_rows(partition: Partition) -> tuple[Array, Index]:
    return partition.X, np.arange(partition.first, partition.first + len(partition.X), dtype=np.intp)


def _stack(parts: list[tuple[Array, Index]]) -> tuple[Array, Index]:
    return np.vstack([X for X, _ in parts]), np.concatenate([rows for _, rows in parts])


def _cover(partition: Partition, *, kernel: Kernel, count: int) -> tuple[Array, Index]:
    """Rows of a partition that cover it."""
    X, rows = _all_rows(partition)
    step = max(1, len(X) // _LOOKED_AT)
    return _cover_all(kernel, count, [(X[::step], rows[::step])])


def _cover_all(kernel: Kernel, count: int, parts: list[tuple[Array, Index]]) -> tuple[Array, Index]:
    """Rows that cover all of these, each the farthest from those before it."""
    X, rows = _stack(parts)
    chosen = farthest_rows(kernel.scaled(X), count) if len(X) > count else np.arange(len(X))
    return X[chosen], rows[chosen]


# -- sums about the data ----------------------------------------------------------------------------------------


def input_sums(partition: Partition) -> tuple[Any, ...]:
    """Rows, and sums of the inputs."""
    return len(partition.X), partition.X.sum(axis=0)


def input_spread(partition: Partition, mean: float) -> tuple[Any, ...]:
    """Squares of the inputs about their mean."""
    return (float(np.square(partition.X - mean).sum()),)


def variance_of_inputs(cluster: Cluster) -> float:
    """Variance of all entries of X: two passes."""
    n, total = cluster.sum(input_sums)
    mean = float(np.mean(total / n))
    return float(cluster.sum(input_spread, mean)[0]) / (n * cluster.n_features)


def input_ranges(partition: Partition) -> tuple[Array, Array]:
    """Smallest and largest entry of each column."""
    return partition.X.min(axis=0), partition.X.max(axis=0)


def join_ranges(parts: list[tuple[Array, Array]]) -> tuple[Array, Array]:
    """Ranges of several."""
    lows, highs = zip(*parts, strict=True)
    return np.min(lows, axis=0), np.max(highs, axis=0)


def input_sums_about(partition: Partition, origin: Array) -> tuple[Any, ...]:
    """Sums of the inputs about an origin, and of their squares."""
    about = partition.X - origin
    return about.sum(axis=0), np.square(about).sum(axis=0)


def column_means(cluster: Cluster) -> Array:
    """Means of the columns by the rule of ``design/centred.py``, exactly the entry of a constant one: two passes."""
    low, _ = cluster.merge(input_ranges, join_ranges)
    mean, square = (total / cluster.n_rows for total in cluster.sum(input_sums_about, low))
    # Only the magnitude of the spread matters; where nearly all of it cancels, that of the mean is near enough.
    spread = np.sqrt(np.maximum(square - mean**2, 1e-12 * square))
    return coarse(low + mean, spread)


def target_sums(partition: Partition) -> tuple[Any, ...]:
    """Sum of the targets."""
    return (float(np.sum(partition.y, dtype=np.float64)),)


def target_spread(partition: Partition, offset: float) -> tuple[Any, ...]:
    """Squares of the targets about their mean."""
    return (float(np.square(partition.y.astype(np.float64) - offset).sum()),)


def magnitudes(partition: Partition, offset: float) -> tuple[float, ...]:
    """Largest magnitudes of inputs, targets, and targets about an offset; largest target, and minus the smallest."""
    y = partition.y.astype(np.float64)
    sizes = np.max(np.abs(partition.X)), np.max(np.abs(y)), np.max(np.abs(y - offset))
    return tuple(map(float, (*sizes, np.max(y), -np.min(y))))


def largest(parts: list[tuple[float, ...]]) -> tuple[float, ...]:
    """Entrywise maximum."""
    return tuple(max(entries) for entries in zip(*parts, strict=True))


def classes_of(partition: Partition) -> NDArray[Any]:
    """Labels in a partition."""
    return np.unique(partition.y)


def all_classes(parts: list[NDArray[Any]]) -> NDArray[Any]:
    """Labels in several."""
    return np.unique(np.concatenate(parts))


def predict_blocks(X: Any, predict: Callable[[Array], Any], width: int | None, dtype: Any) -> Any:
    """Predictions for a Dask collection, as a Dask array in the same partitions."""
    X = _collections(X)
    blocks = X if hasattr(X, "chunks") else X.to_dask_array()
    if blocks.ndim == 2:
        blocks = blocks.rechunk({1: -1})
    one = width is None
    empty = np.empty(0 if width is None else (0, width), dtype)
    return blocks.map_blocks(
        _call, predict, empty, dtype=dtype, **({"drop_axis": 1} if one else {"chunks": (blocks.chunks[0], (width,))})
    )


def _call(block: Array, predict: Callable[[Array], Any], empty: Any) -> Any:
    return predict(np.asarray(block, dtype=np.float64)) if len(block) else empty
