"""``sparsebayes export``: a saved model in another language."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from sparsebayes.atomic import check_target, write_atomically
from sparsebayes.cli.summary import tell
from sparsebayes.export import to_c, to_onnx, to_sql
from sparsebayes.tables import load


def export_file(model: Path, *, language: str, out: Path, name: str, table: str) -> None:
    """Write a saved model as ONNX, C or SQL.

    Parameters
    ----------
    model : Path
        Model file; what ``fit`` wrote takes the columns of the table as they are.
    language : {"onnx", "c", "sql"}
        What to write.
    out : Path
        File to write; it is complete or not there.
    name : str
        What the names in C start with.
    table : str
        Table that the SQL reads.
    """
    check_target(out)
    if out.exists() and model.exists() and os.path.samefile(out, model):
        raise ValueError(f"{out} is the file that is read; name another with --out")
    opened = load(model)
    content = _write(opened, language, name, table)
    write_atomically(out, content)
    tell(f"{len(content)} bytes of {language} written to {out}")


def _write(model: Any, language: str, name: str, table: str) -> bytes:
    if language == "onnx":
        return to_onnx(model).SerializeToString()
    text = to_c(model, name=name) if language == "c" else to_sql(model, table) + ";\n"
    return text.encode("utf-8")
