"""The rows of one run, for a terminal."""

from __future__ import annotations

from collections.abc import Iterable

from rich.table import Table

from sparsebayes.benchmarks.ledger.compare import number
from sparsebayes.benchmarks.ledger.measure import Row

_HEADINGS = (
    "problem",
    "seed",
    "method",
    "evidence",
    "error",
    "log loss",
    "kept",
    "status",
    "gain left",
    "seconds",
    "moves",
    "noise variance",
)
_TEXTS = ("problem", "method", "status")


def row_table(rows: Iterable[Row], title: str) -> Table:
    """One line for each row; where there are no figures, why."""
    table = Table(title=title)
    for heading in _HEADINGS:
        table.add_column(heading, justify="left" if heading in _TEXTS else "right", overflow="fold")
    for row in rows:
        status = row.status if row.measured else f"{row.state}: {row.note}" if row.note else row.state
        table.add_row(
            row.problem,
            str(row.seed),
            row.method,
            number(row.evidence, ".2f"),
            number(row.error, ".4g"),
            number(row.loss, ".4g"),
            number(row.kept, "d"),
            status,
            number(row.gain, ".2g"),
            number(row.seconds, ".3g"),
            number(row.moves, "d"),
            number(row.noise_variance, ".4g"),
        )
    return table
