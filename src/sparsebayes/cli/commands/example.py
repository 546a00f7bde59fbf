"""``sparsebayes example``: a table to try things with."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def command(
    table: Annotated[
        Path, typer.Argument(metavar="TABLE", help="File to write, .csv or .parquet; its name says which table.")
    ] = Path("houses.csv"),
) -> None:
    """Write a table that comes with the program: houses (a price to predict) or patients (a diagnosis).

    \b
    Examples:
      sparsebayes example houses.csv
      sparsebayes fit houses.csv --target price
      sparsebayes example patients.csv
      sparsebayes fit patients.csv --target diabetes
    """
    from sparsebayes.cli.examples import write_example

    write_example(table)
