"""``sparsebayes report``: a model and a table in, an HTML page out."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def command(
    model: Annotated[Path, typer.Argument(metavar="MODEL", help="Model file that 'fit' wrote.")],
    data: Annotated[
        Path, typer.Argument(metavar="DATA", help="Table with the target: that of the fit, or one with new rows.")
    ],
    out: Annotated[
        Path | None, typer.Option("--out", "-o", help="Page to write; by default the model's name with .html.")
    ] = None,
    explain: Annotated[
        bool,
        typer.Option(
            "--explain", help="Also say which columns carry effects, how sure that is, and what each does to each row."
        ),
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object instead of a table.")] = False,
) -> None:
    """Write a report on a model: one HTML file that needs no network and can be sent on.

    \b
    Examples:
      sparsebayes report houses.model houses.csv
      sparsebayes report houses.model sold-in-may.csv --out may.html

    With the table of the fit, the model is judged by the rows that were held back; with another, by all rows that it
    did not learn from.
    """
    from sparsebayes.cli.work import report_on_table

    page = model.parent / f"{model.stem}.html" if out is None else out
    report_on_table(model, data, page=page, as_json=as_json, explain=explain)
