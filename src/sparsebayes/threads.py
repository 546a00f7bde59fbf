"""BLAS on one thread where the algebra is small."""

from __future__ import annotations

from contextlib import AbstractContextManager
from functools import lru_cache

from threadpoolctl import ThreadpoolController


def one_thread() -> AbstractContextManager[object]:
    """BLAS on one thread: the algebra is small, and threads would only wait for each other."""
    return _blas().limit(limits=1, user_api="blas")


@lru_cache(maxsize=1)
def _blas() -> ThreadpoolController:
    """Handle on the BLAS libraries; finding them takes milliseconds, so it is done once."""
    return ThreadpoolController()
