"""``sparsebayes export``: a saved model in another language."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer


class Format(StrEnum):
    """Languages that ``export`` writes."""

    onnx = "onnx"
    c = "c"
    sql = "sql"


def command(
    model: Annotated[Path, typer.Argument(metavar="MODEL", help="Model file that 'fit' or sparsebayes.save wrote.")],
    language: Annotated[Format, typer.Option("--format", help="ONNX graph, one C99 file, or an SQL query.")],
    out: Annotated[Path, typer.Option("--out", "-o", help="File to write.")],
    name: Annotated[str, typer.Option("--name", help="What the names in the C file start with.")] = "model",
    table: Annotated[str, typer.Option("--table", help="Table that the SQL query reads.")] = "data",
) -> None:
    """Write a model in another language: it takes the table as it is and predicts as 'predict' does.

    \b
    Examples:
      sparsebayes export houses.model --format c --name houses --out houses.c
      sparsebayes export houses.model --format sql --table new_houses --out houses.sql

    Gaps, categories and dates are encoded inside: the SQL query reads the table's own columns, ONNX has an input for
    each column, and C a struct with a member for each. The query runs in SQLite (3.35 or later), PostgreSQL and DuckDB.
    """
    from sparsebayes.cli.exporting import export_file

    export_file(model, language=language.value, out=out, name=name, table=table)
