"""Progress of a search, on the terminal of whoever waits for it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from rich.console import Console

from sparsebayes.inference import Record


@contextmanager
def progress(*, quiet: bool) -> Iterator[Callable[..., None] | None]:
    """Give a callback that shows where the search is; nothing where nobody looks.

    Parameters
    ----------
    quiet : bool
        Show nothing.
    """
    console = Console(stderr=True, highlight=False)
    if quiet or not console.is_terminal:
        yield None
        return
    with console.status("Searching ...") as line:
        count = 0

        def observe(record: Record, active: Any) -> None:
            nonlocal count
            count += 1
            line.update(
                f"Searching: start {record.start}, record {count}, {record.n_active} functions, "
                f"objective {record.objective:.2f}"
            )

        yield observe
