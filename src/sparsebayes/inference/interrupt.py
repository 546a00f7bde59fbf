"""``Ctrl-C`` between two steps, never in the middle of one."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any


@contextmanager
def asked_to_stop() -> Iterator[Callable[[], bool]]:
    """Give a function that says whether ``Ctrl-C`` was pressed; a second one interrupts at once, as always.

    A step that is cut short leaves a model that is half changed.  So the first signal is only noted, for the loop to
    end after the present step.  Signals reach the main thread alone; and where the caller has a handler of their own it
    is left in place.
    """
    noted = False
    if threading.current_thread() is not threading.main_thread() or (
        signal.getsignal(signal.SIGINT) is not signal.default_int_handler
    ):
        yield lambda: False
        return

    def note(number: int, frame: Any) -> None:
        nonlocal noted
        noted = True
        signal.signal(signal.SIGINT, signal.default_int_handler)

    signal.signal(signal.SIGINT, note)
    try:
        yield lambda: noted
    finally:
        signal.signal(signal.SIGINT, signal.default_int_handler)
