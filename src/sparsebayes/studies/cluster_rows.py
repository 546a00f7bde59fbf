"""Rows generated on the workers of a Dask cluster: time, memory, bytes over the wire, and passes, as rows are added.

    python -m sparsebayes.studies.cluster_rows --rows 10000000 --columns 5 --candidates 2000 --kill

Two workers of one thread and 2 GB each. Processor seconds count: elapsed ones depend on who else computes. Those of the
slower worker and of the client together are about what a fit takes on two cores of its own. ``--here`` makes all of it
in one process, and so says what each pass costs. With ``--kill`` the fit is made twice more, once as it was and once
with a worker killed in the middle, and both answers are compared with the first.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import signal
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from sparsebayes import SparseBayesRegressor
from sparsebayes.basis import RBF
from sparsebayes.estimators.cluster import Cluster
from sparsebayes.estimators.summary import listed

NOISE = 0.2
WORKERS: dict[str, Any] = {
    "n_workers": 2,
    "threads_per_worker": 1,
    "memory_limit": "2GB",
    "dashboard_address": ":0",
}


def make_rows(block: Any, block_info: Any = None, columns: int = 5) -> Any:
    """Rows of one partition, from a seed of its own; the target is the last column."""
    number = block_info[0]["chunk-location"][0]
    rng = np.random.default_rng(number)
    X = rng.uniform(-1.0, 1.0, (len(block), columns))
    return np.column_stack([X, target(X) + NOISE * rng.standard_normal(len(block))])


def target(X: Any) -> Any:
    """What the rows follow."""
    return np.sin(3.0 * X[:, 0]) + X[:, 1] * X[:, 2]


class Counter:
    """Passes over the rows, processor seconds of this process in each, and numbers of bytes that came back."""

    def __init__(self) -> None:
        self.passes, self.bytes = 0, 0
        self.seconds: dict[str, float] = {}
        self._merge = Cluster.merge

    def __enter__(self) -> Counter:
        def counted(cluster: Cluster, work: Any, join: Any, *arguments: Any) -> Any:
            begin = time.process_time()
            result = self._merge(cluster, work, join, *arguments)
            name = getattr(work, "func", work).__name__
            self.seconds[name] = self.seconds.get(name, 0.0) + time.process_time() - begin
            self.passes += 1
            self.bytes += sum(np.asarray(part).nbytes for part in (result if isinstance(result, tuple) else (result,)))
            return result

        Cluster.merge = counted  # pyright: ignore[reportAttributeAccessIssue]
        return self

    def __exit__(self, *_: object) -> None:
        Cluster.merge = self._merge


def main() -> None:
    """Fit, count, and print."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--columns", type=int, default=5)
    parser.add_argument("--candidates", type=int, default=2000)
    parser.add_argument("--width", type=float, default=1.0)
    parser.add_argument("--partitions", type=int, default=20)
    parser.add_argument("--here", action="store_true")
    parser.add_argument("--kill", action="store_true")
    arguments = parser.parse_args()
    import dask.array as da

    size = -(-arguments.rows // arguments.partitions)
    empty = da.zeros((arguments.rows, 1), chunks=(size, 1))
    table = empty.map_blocks(
        make_rows, columns=arguments.columns, dtype=float, chunks=(empty.chunks[0], (arguments.columns + 1,))
    )
    X, y = table[:, :-1], table[:, -1]
    model = SparseBayesRegressor(RBF(arguments.width, centres=arguments.candidates))
    with workers(arguments.here) as client:
        before, begin, own = wire(client), time.perf_counter(), time.process_time()
        with Counter() as counter:
            model.fit(X, y)
        own = time.process_time() - own
        spent = [] if client is None else list(client.run(_spent).values())
        report: dict[str, Any] = vars(arguments) | {
            "seconds": time.perf_counter() - begin,
            "processor_seconds_of_this_process": own,
            "processor_seconds_of_workers": [seconds for seconds, _ in spent],
            "worker_peak_gb": max((gigabytes for _, gigabytes in spent), default=None),
            "vectors": len(model.relevance_),
            "status": str(model.status_),
            "largest_gain_left": listed(model.certificate_)[0].excluded_gain,
            "noise_variance": model.noise_variance_,
            "rmse_of_the_function": error(model, arguments.columns),
            "passes": counter.passes,
            "bytes_to_client": counter.bytes,
            "bytes_between_workers": wire(client) - before,
            "peak_gb_of_this_process": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6,
        }
        if arguments.here:
            report["processor_seconds_of_passes"] = counter.seconds
        if arguments.kill:
            report["again"] = compare_again(client, model, X, y, kill=False)
            report["killed"] = compare_again(client, model, X, y, kill=True)
    print(json.dumps(report, indent=1))


@contextmanager
def workers(here: bool) -> Iterator[Any]:
    """Two workers and their client, or this process alone and None."""
    from dask import config
    from dask.distributed import Client, LocalCluster

    if here:
        with config.set(scheduler="synchronous"):
            yield None
    else:
        with LocalCluster(**WORKERS) as cluster, Client(cluster) as client:
            yield client


def error(model: SparseBayesRegressor, columns: int) -> float:
    """Root mean square error of the predictions on fresh rows, without noise."""
    X = np.random.default_rng(1_000_000).uniform(-1.0, 1.0, (20_000, columns))
    return float(np.sqrt(np.mean((model.predict(X) - target(X)) ** 2)))


def _spent() -> tuple[float, float]:
    """Processor seconds and largest memory of a worker, in GB."""
    return time.process_time(), resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6


def wire(client: Any) -> int:
    """Bytes that the workers have sent to each other."""
    return 0 if client is None else int(sum(client.run(_sent).values()))


def _sent(dask_worker: Any) -> int:
    return int(dask_worker.transfer_outgoing_bytes_total)


def compare_again(client: Any, model: SparseBayesRegressor, X: Any, y: Any, *, kill: bool) -> dict[str, Any]:
    """How a second fit, in which a worker may be killed at the second sum, differs from the first."""
    again = SparseBayesRegressor(model.basis)
    victim = next(iter(client.run(os.getpid).values()))
    original, calls = Cluster.merge, []

    def interrupted(cluster: Cluster, *arguments: Any) -> Any:
        calls.append(1)
        if kill and len(calls) == 2:
            os.kill(victim, signal.SIGKILL)
        return original(cluster, *arguments)

    Cluster.merge = interrupted  # pyright: ignore[reportAttributeAccessIssue]
    try:
        again.fit(X, y)
    finally:
        Cluster.merge = original
    same = np.array_equal(again.relevance_, model.relevance_)
    fresh = np.random.default_rng(1).uniform(-1.0, 1.0, (1000, X.shape[1]))
    first = np.asarray(model.predict(fresh))
    return {
        "same_support": bool(same),
        "same_to_the_last_bit": bool(same and np.array_equal(again.coef_, model.coef_)),
        "prediction_difference_per_sd": float(np.max(np.abs(np.asarray(again.predict(fresh)) - first)) / first.std()),
        "vectors_not_shared": len(np.setxor1d(again.relevance_, model.relevance_)),
    }


if __name__ == "__main__":
    main()
