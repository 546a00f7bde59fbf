"""``sparsebayes export``: a saved model in another language."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np

from sparsebayes.atomic import check_target, write_atomically
from sparsebayes.cli.summary import tell
from sparsebayes.export import load, make_plan, to_c, to_onnx, to_sql
from sparsebayes.export.plan import Plan
from sparsebayes.tables import TableModel
from sparsebayes.tables.encoder import Numeric


def export_file(model: Path, *, language: str, out: Path, name: str, table: str) -> None:
    """Write a saved model as ONNX, C or SQL.

    Parameters
    ----------
    model : Path
        Model file; where ``fit`` stored how it standardises columns, the export takes the columns as they are.
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
    est, metadata = load(model, with_metadata=True)
    plan = make_plan(est)
    if metadata is not None:
        plan = _in_table_units(plan, TableModel.load(model))
    content = _write(plan, language, name, table)
    write_atomically(out, content)
    tell(f"{len(content)} bytes of {language} written to {out}")


def _in_table_units(plan: Plan, model: TableModel) -> Plan:
    """The plan whose inputs are numbers as they stand in the table, and an indicator for every category."""
    centre, scale = [], []
    for column in model.encoder.columns:
        number = isinstance(column, Numeric)
        centre += [column.centre if number else 0.0] * len(column.features)
        scale += [column.scale if number else 1.0] * len(column.features)
    return plan.after(np.array(centre), np.array(scale), model.encoder.features)


def _write(plan: Plan, language: str, name: str, table: str) -> bytes:
    if language == "onnx":
        return to_onnx(plan).SerializeToString()
    text = to_c(plan, name=name) if language == "c" else to_sql(plan, table) + ";\n"
    return text.encode("utf-8")
