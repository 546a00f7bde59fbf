"""Progress of what takes more than two seconds: a line on a terminal, records of ``logging`` elsewhere."""

from __future__ import annotations

import logging
import sys
import threading
import time
from collections.abc import Callable, Sized
from contextlib import AbstractContextManager
from types import TracebackType
from typing import Any

from sparsebayes.inference import Certificate, Record

_LOG = logging.getLogger("sparsebayes")
# Seconds after which somebody may wonder, and between two looks from then on.
_PATIENCE = 2.0
_EVERY = 0.25
# Share of the search after which it is said again how much of it is behind, where that is printed.
_TENTH = 0.1
# A log is read afterwards: its records come ever more rarely.
_FIRST_LOG, _LOG_GROWTH = 2.0, 1.5


class Progress(AbstractContextManager["Progress"]):
    """Tells whoever waits where the work is.

    The work itself only leaves a note now and then; a thread shows the last one, and only where it takes long, so that
    short work shows nothing and what is computed does not depend on it.

    Parameters
    ----------
    verbose : int
        -1 nothing, 0 what takes long, 1 prints every fiftieth record, 2 each.
    """

    def __init__(self, verbose: int = 0) -> None:
        self.verbose = verbose
        self.note = "preparing the functions"
        self._count = 0
        self._stage, self._share, self._shown = "", 0.0, 0.0
        self._begun = time.monotonic()
        self._ended = threading.Event()
        self._thread: threading.Thread | None = None

    def __enter__(self) -> Progress:
        if self.verbose == 0:
            self._thread = threading.Thread(target=self._watch, daemon=True)
            self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._ended.set()
        if self._thread is not None:
            self._thread.join()

    def observe(self, record: Record) -> None:
        """Take note of a record of the search."""
        self._count += 1
        where = "a part of the rows" if record.start < 0 else f"start {record.start}"
        self.note = f"{where}, record {self._count}: {record.n_active} functions, {record.objective:.4f}"
        if self.verbose > 1 or (self.verbose == 1 and self._count % 50 == 0):
            print(
                f"start {record.start}  {record.move:<10}  functions {record.n_active:4d}  "
                f"objective {record.objective:.4f}"
            )

    def reached(self, what: str, share: float) -> None:
        """Take note of what is done next, and of about what share of the search is behind it."""
        self._stage, self._share = what, share
        if self.verbose > 0 and (share >= self._shown + _TENTH or share < self._shown):
            self._shown = share
            print(self._estimate())

    def part(self, number: int, of: int) -> Callable[[str, float], None]:
        """Takes note of the same for one of several searches that follow one another."""
        return lambda what, share: self.reached(what, (number + share) / of)

    def _estimate(self) -> str:
        """What is done, and about how much of all is behind and ahead."""
        elapsed = time.monotonic() - self._begun
        if not self._share:
            return f"{elapsed:.0f} s"
        left = elapsed * (1.0 / self._share - 1.0)
        return f"{self._stage}, about {self._share:.0%} done, {elapsed:.0f} s, about {left:.0f} s left"

    def conclude(self, certificates: Certificate | list[Certificate], kept: Sized) -> None:
        """Print which start is kept: the last record is that of the last start, which need not be the best."""
        if self.verbose < 1:
            return
        for certificate in certificates if isinstance(certificates, list) else [certificates]:
            print(f"kept: start {certificate.start}  functions {len(kept):4d}  objective {certificate.objective:.4f}")

    def _watch(self) -> None:
        if self._ended.wait(_PATIENCE):
            return
        if sys.stderr is not None and sys.stderr.isatty():
            self._on_terminal()
        else:
            self._in_log()

    def _on_terminal(self) -> None:
        from rich.console import Console

        with Console(stderr=True, highlight=False).status(self.note) as line:
            while not self._ended.wait(_EVERY):
                # Both would not fit into the usual eighty columns.
                line.update(self._estimate() if self._share else f"{self.note} ({self._estimate()})")

    def _in_log(self) -> None:
        pause = _FIRST_LOG
        while True:
            _LOG.info("%s (%s)", self.note, self._estimate())
            if self._ended.wait(pause):
                return
            pause *= _LOG_GROWTH


def silent_where_watched(verbose: int, callback: Any) -> int:
    """Level of a progress that leaves the terminal to whoever watches the search already."""
    return -1 if verbose == 0 and callback is not None else verbose
