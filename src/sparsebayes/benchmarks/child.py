"""Measurements that need a process of their own, because its memory is what counts.

``python -m sparsebayes.benchmarks.child KIND N`` prints one JSON object.
"""

from __future__ import annotations

import json
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np

_COLUMNS = 10
_BLOCK = 50_000


def peak_memory() -> int:
    """Largest memory that this process has held, in bytes.

    Where the system says it of the process alone, that counts: the usual figure begins with its parent's memory.
    """
    import resource

    with suppress(OSError):
        for line in Path("/proc/self/status").read_text().splitlines():
            if line.startswith("VmHWM:"):
                return 1024 * int(line.split()[1])

    held = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return held if sys.platform == "darwin" else 1024 * held


def main(kind: str, n: int) -> dict[str, Any]:
    """Run one measurement."""
    warnings.simplefilter("ignore")
    own = _own_memory()
    try:
        with tempfile.TemporaryDirectory() as folder:
            return {"own": own} | _KINDS[kind](n, Path(folder))
    except ImportError as error:
        return {"absent": str(error)}


def _own_memory() -> int:
    """What the interpreter holds with everything imported, before there is any data."""
    from sparsebayes import SparseBayesRegressor

    SparseBayesRegressor().fit(*next(_blocks(200)))
    return peak_memory()


def _in_memory(n: int, folder: Path) -> dict[str, Any]:
    """The 2-D sinc with a candidate at every point."""
    from sparsebayes import RVR
    from sparsebayes.benchmarks.problems import sinc2d

    problem = sinc2d(n)
    began = time.perf_counter()
    model = RVR(gamma=problem.gamma or 1.0, storage="float32").fit(problem.X, problem.y)
    seconds, peak = time.perf_counter() - began, peak_memory()
    return _told(model, seconds, peak) | {"error": problem.error(np.asarray(model.predict(problem.X_test)))}


def _blocks(n: int) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Rows of a linear problem in which four of ten columns matter, made when they are needed."""
    weights = np.array([1.0, 0.0, -2.0, 0.0, 0.0, 0.5, 0.0, 0.0, 0.25, 0.0])
    for number, start in enumerate(range(0, n, _BLOCK)):
        rng = np.random.default_rng(number)
        X = rng.standard_normal((min(_BLOCK, n - start), _COLUMNS))
        yield X, 3.0 + X @ weights + 0.1 * rng.standard_normal(len(X))


def _columns(n: int, folder: Path) -> dict[str, Any]:
    parts = list(_blocks(n))
    return _linear(n, lambda model: model.fit(np.vstack([X for X, _ in parts]), np.concatenate([y for _, y in parts])))


def _memmap(n: int, folder: Path) -> dict[str, Any]:
    X = np.memmap(folder / "X", np.float64, "w+", shape=(n, _COLUMNS))
    y = np.memmap(folder / "y", np.float64, "w+", shape=(n,))
    for number, (rows, targets) in enumerate(_blocks(n)):
        X[number * _BLOCK : number * _BLOCK + len(rows)] = rows
        y[number * _BLOCK : number * _BLOCK + len(rows)] = targets
    X.flush()
    y.flush()
    mapped = np.memmap(folder / "X", np.float64, "r", shape=(n, _COLUMNS))
    targets = np.memmap(folder / "y", np.float64, "r", shape=(n,))
    return _linear(n, lambda model: model.fit(mapped, targets))


def _parquet(n: int, folder: Path) -> dict[str, Any]:
    import pyarrow as pa
    import pyarrow.parquet as pq

    from sparsebayes.chunks import ParquetChunks

    names = [f"x{j}" for j in range(_COLUMNS)]
    writer = None
    for X, y in _blocks(n):
        table = pa.table({**dict(zip(names, X.T, strict=True)), "y": y})
        writer = writer or pq.ParquetWriter(folder / "rows.parquet", table.schema)
        writer.write_table(table)
    if writer is not None:
        writer.close()
    return _linear(n, lambda model: model.fit(ParquetChunks(folder / "rows.parquet", target="y")))


def _stream(n: int, folder: Path) -> dict[str, Any]:
    """A file read in blocks, each of which is forgotten once ``partial_fit`` has seen it."""
    with (folder / "rows").open("wb") as file:
        for X, y in _blocks(n):
            np.column_stack([X, y]).tofile(file)

    def fit(model: Any) -> Any:
        with (folder / "rows").open("rb") as file:
            while len(rows := np.fromfile(file, count=_BLOCK * (_COLUMNS + 1)).reshape(-1, _COLUMNS + 1)):
                model.partial_fit(rows[:, :-1], rows[:, -1])
        return model

    return _linear(n, fit)


def _linear(n: int, fit: Callable[[Any], Any]) -> dict[str, Any]:
    from sparsebayes import SparseBayesRegressor

    began = time.perf_counter()
    model = fit(SparseBayesRegressor())
    seconds, peak = time.perf_counter() - began, peak_memory()
    X, y = next(_blocks(_BLOCK))
    error = float(np.sqrt(np.mean((np.asarray(model.predict(X)) - y) ** 2)))
    return _told(model, seconds, peak) | {"error": error, "predicted": np.asarray(model.predict(X[:1000])).tolist()}


def _told(model: Any, seconds: float, peak: int) -> dict[str, Any]:
    return {
        "seconds": seconds,
        "peak": peak,
        "vectors": len(model.relevance_),
        "support": model.relevance_.tolist(),
        "status": model.status_.name,
    }


_KINDS: dict[str, Callable[[int, Path], dict[str, Any]]] = {
    "memory": _in_memory,
    "columns": _columns,
    "memmap": _memmap,
    "parquet": _parquet,
    "stream": _stream,
}

if __name__ == "__main__":
    print(json.dumps(main(sys.argv[1], int(sys.argv[2]))))
