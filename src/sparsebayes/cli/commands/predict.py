"""``sparsebayes predict``: a model and a table in, a table out."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def command(
    model: Annotated[Path, typer.Argument(metavar="MODEL", help="Model file that 'fit' wrote.")],
    data: Annotated[
        Path, typer.Argument(metavar="DATA", help="Table with the model's input columns; others are ignored.")
    ],
    out: Annotated[Path, typer.Option("--out", "-o", help="Table to write, .csv or .parquet.")],
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object instead of a sentence.")] = False,
) -> None:
    """Predict the rows of a table, in their order.

    \b
    Examples:
      sparsebayes predict houses.model new.csv --out prices.csv
      sparsebayes predict triage.model today.parquet --out today-triage.parquet

    Columns written: mean and std of a new observation; of classes, the class and the probability of each.
    """
    from sparsebayes.cli.work import predict_table

    predict_table(model, data, out=out, as_json=as_json)
