"""``sparsebayes export``: a saved model in another language."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from sparsebayes.cli.fitting import Inputs, check_paths
from sparsebayes.cli.summary import plain_console
from sparsebayes.export import load, make_plan, to_c, to_onnx, to_sql
from sparsebayes.export.atomic import write_atomically
from sparsebayes.export.plan import Plan


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
    check_paths(model, out)
    est, metadata = load(model, with_metadata=True)
    plan = make_plan(est)
    if metadata is not None:
        inputs = Inputs.from_metadata(model, metadata, est.n_features_in_)
        plan = plan.after(np.array(inputs.centre), np.array(inputs.scale), inputs.columns)
    content = _write(plan, language, name, table)
    write_atomically(out, content)
    plain_console().print(f"{len(content)} bytes of {language} written to {out}", soft_wrap=True)


def _write(plan: Plan, language: str, name: str, table: str) -> bytes:
    if language == "onnx":
        return to_onnx(plan).SerializeToString()
    text = to_c(plan, name=name) if language == "c" else to_sql(plan, table) + ";\n"
    return text.encode("utf-8")
