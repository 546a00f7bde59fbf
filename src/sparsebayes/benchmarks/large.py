"""Large real tables at default settings: seconds, memory, error and certificate at growing numbers of rows.

    python -m sparsebayes.benchmarks.large california 3000 18000

Every size is a fit in a process of its own, whose largest memory is the fit's; ``sparsebayes bench large`` runs the
tables and sizes of ``SIZES`` and prints a table.  Processor seconds count: elapsed ones depend on who else computes.
"""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import time
import warnings
from collections.abc import Iterator
from dataclasses import asdict, dataclass

import numpy as np

from sparsebayes import RVR
from sparsebayes.datasets import load
from sparsebayes.estimators.summary import listed

# Tables, by their names in ``sparsebayes.datasets``, and the training rows of each.
TABLES = {
    "california": "california_housing",
    "protein": "protein",
    "diamonds": "diamonds",
    "kegg": "kegg_undirected",
}
SIZES = {
    "california": (3000, 6000, 18_000),
    "protein": (3000, 10_000, 40_000),
    "diamonds": (3000, 50_000),
    "kegg": (3000, 60_000),
}
_TEST_ROWS = 2000


@dataclass(frozen=True)
class Fit:
    """One fit: sizes, what it cost, how good it is, and what its certificate covers."""

    table: str
    rows: int
    inputs: int
    processor_s: float
    elapsed_s: float
    memory_gb: float
    rmse: float
    functions: int
    status: str
    left_aside: int


def measure(table: str, rows: int, seed: int = 0) -> Fit:
    """Fit ``RVR()`` to this many rows, standardised; the error is that of 2,000 further rows."""
    bunch = load(TABLES[table])
    X, y = np.asarray(bunch.data, dtype=np.float64), np.asarray(bunch.target, dtype=np.float64)
    whole = np.isfinite(X).all(axis=1) & np.isfinite(y)
    X, y = X[whole], y[whole]
    order = np.random.default_rng(seed).permutation(len(y))
    test, train = order[:_TEST_ROWS], order[_TEST_ROWS : _TEST_ROWS + rows]
    mean, spread = X[train].mean(axis=0), X[train].std(axis=0)
    spread[spread == 0.0] = 1.0
    X = (X - mean) / spread
    begun, processor = time.perf_counter(), time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the status is in the table
        model = RVR().fit(X[train], y[train])
    processor, elapsed = time.process_time() - processor, time.perf_counter() - begun
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1.0 if sys.platform == "darwin" else 1024.0) / 1e9
    error = float(np.sqrt(np.mean((model.predict(X[test]) - y[test]) ** 2)))
    return Fit(
        table,
        len(train),
        X.shape[1],
        processor,
        elapsed,
        memory,
        error,
        len(model.relevance_),
        listed(model.status_)[0].name,
        listed(model.certificate_)[0].left_aside,
    )


def apart(table: str, rows: int) -> Fit:
    """The same in a process of its own, BLAS on one thread."""
    command = [sys.executable, "-m", "sparsebayes.benchmarks.large", table, str(rows)]
    environment = {**os.environ, "OPENBLAS_NUM_THREADS": "1"}
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    if done.returncode:
        raise RuntimeError(f"{table} with {rows} rows failed: {done.stderr.strip()[-500:]}")
    return Fit(**json.loads(done.stdout.splitlines()[-1]))


def run_large(tables: list[str]) -> Iterator[Fit]:
    """All sizes of these tables, as they are measured."""
    for table in tables:
        for rows in SIZES[table]:
            yield apart(table, rows)


def line(fit: Fit) -> str:
    """A line for the terminal."""
    aside = f", {fit.left_aside} no candidates" if fit.left_aside else ""
    return (
        f"{fit.table} {fit.rows} x {fit.inputs}: {fit.processor_s:.1f} s of the processor ({fit.elapsed_s:.0f} s), "
        f"{fit.memory_gb:.2f} GB, RMSE {fit.rmse:.4g}, {fit.functions} functions, {fit.status}{aside}"
    )


def growth(fits: list[Fit]) -> dict[str, float]:
    """Exponent of the processor seconds in the rows, from the smallest to the largest size of every table."""
    found = {}
    for table in dict.fromkeys(fit.table for fit in fits):
        sizes = sorted((fit for fit in fits if fit.table == table), key=lambda fit: fit.rows)
        if len(sizes) > 1:
            low, high = sizes[0], sizes[-1]
            found[table] = float(np.log(high.processor_s / low.processor_s) / np.log(high.rows / low.rows))
    return found


def main() -> None:
    """Measure one table at the sizes named, a line of JSON for each."""
    table, *rows = sys.argv[1:]
    for size in rows:
        print(json.dumps(asdict(measure(table, int(size)))), flush=True)


if __name__ == "__main__":
    main()
