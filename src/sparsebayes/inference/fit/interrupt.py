"""``Ctrl-C`` between two steps, never in the middle of one."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from typing import Any, ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")


@contextmanager
def asked_to_stop() -> Iterator[Callable[[], bool]]:
    """Give a function that says whether ``Ctrl-C`` was pressed; a second one interrupts at once, as always.

    A step that is cut short leaves a model that is half changed.  So the first signal is only noted, for the loop to
    end after the present step.  Signals reach the main thread alone; and where the caller has a handler of their own it
    is left in place.  One loop may run inside another: both are told.
    """
    handler, present = _Noted(), signal.getsignal(signal.SIGINT)
    main = threading.current_thread() is threading.main_thread()
    if not main or present is not signal.default_int_handler:
        yield lambda: main and isinstance(present, _Noted) and present.noted
        return
    signal.signal(signal.SIGINT, handler)
    try:
        yield lambda: handler.noted
    finally:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def interrupts_afterwards(fit: Callable[P, T]) -> Callable[P, T]:
    """Make a fit that was interrupted store what it found, and then raise ``KeyboardInterrupt``.

    Whoever fits in a loop, such as a cross-validation, is thereby stopped as well, and the estimator is usable.  Where
    one fit calls another, the outer one raises.
    """

    @wraps(fit)
    def wrapped(*args: P.args, **kwargs: P.kwargs) -> T:
        inside = isinstance(signal.getsignal(signal.SIGINT), _Noted)
        with asked_to_stop() as stop:
            result = fit(*args, **kwargs)
        if stop() and not inside:
            raise KeyboardInterrupt
        return result

    return wrapped


class _Noted:
    """A handler that only notes the first signal."""

    def __init__(self) -> None:
        self.noted = False

    def __call__(self, number: int, frame: Any) -> None:
        if self.noted:
            raise KeyboardInterrupt
        self.noted = True
