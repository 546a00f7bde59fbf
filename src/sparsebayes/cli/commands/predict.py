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
    out: Annotated[
        Path | None,
        typer.Option("--out", "-o", help="Table to write, .csv or .parquet; CSV on standard output by default."),
    ] = None,
    keep: Annotated[
        list[str] | None,
        typer.Option(
            "--keep", help="Column of DATA to pass on, such as an id; may be given again.", show_default=False
        ),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object instead of a sentence.")] = False,
) -> None:
    """Predict the rows of a table, in their order.

    \b
    Examples:
      sparsebayes predict houses.model new.csv --out prices.csv
      sparsebayes predict triage.model today.parquet --out today-triage.parquet
      sparsebayes predict houses.model new.csv --keep id | head

    Columns written: mean and std of a new observation, and lower and upper, between which 95 % should fall; of classes,
    the class and the probability of each.
    """
    from sparsebayes.cli.work import predict_table

    predict_table(model, data, out=out, keep=keep or [], as_json=as_json)
