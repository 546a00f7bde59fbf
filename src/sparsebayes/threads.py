"""Who uses the cores: small algebra one thread, large products blocks of rows side by side.

A BLAS that starts threads of its own on matrices this small only makes them wait for each other; on a busy machine that
costs twenty times the work itself (compression of a kernel of 1,000 rows: 24 ms on one thread, 500 ms on two).
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from functools import cache, lru_cache
from typing import TypeVar

from joblib import effective_n_jobs
from threadpoolctl import ThreadpoolController

S = TypeVar("S")
T = TypeVar("T")

# Rows of a block that is worth a thread.
_ROWS = 2048
# How the threads of a pool are called.
_WORKER = "sparsebayes"


def one_thread() -> AbstractContextManager[object]:
    """BLAS on one thread."""
    return _blas().limit(limits=1, user_api="blas")


def side_by_side(work: Callable[[slice], T], rows: int) -> list[T]:
    """Call ``work`` on runs of rows, on all cores where there are many: NumPy and BLAS run outside Python's lock."""
    workers = min(effective_n_jobs(-1), rows // _ROWS) if rows >= 2 * _ROWS else 1
    if workers <= 1:
        return [work(slice(0, rows))]
    cuts = [rows * k // workers for k in range(workers + 1)]
    return on_all_cores(work, list(map(slice, cuts[:-1], cuts[1:])))


def on_all_cores(work: Callable[[S], T], items: Iterable[S]) -> list[T]:
    """Call ``work`` on every item; from one of the threads, which may all be waiting for each other, one by one."""
    if threading.current_thread().name.startswith(_WORKER):
        return list(map(work, items))
    return list(_pool(os.getpid(), effective_n_jobs(-1)).map(work, items))


@cache
def _pool(process: int, workers: int) -> ThreadPoolExecutor:
    """The threads of a process (a fork takes none along): to start them takes longer than most of their work."""
    return ThreadPoolExecutor(workers, _WORKER)


@lru_cache(maxsize=1)
def _blas() -> ThreadpoolController:
    """Handle on the BLAS libraries; finding them takes milliseconds, so it is done once."""
    return ThreadpoolController()
