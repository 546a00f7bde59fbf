"""What ``fit``, ``predict`` and ``report`` do, once their options are read."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np
import typer

from sparsebayes.atomic import check_target, write_atomically
from sparsebayes.cli.exits import NOT_CONVERGED
from sparsebayes.cli.progress import progress
from sparsebayes.cli.summary import describe, print_json, show, std_scale, tell
from sparsebayes.estimators.summary import converged
from sparsebayes.report import Case, Input, render_report
from sparsebayes.tables import Options, Study, TableModel, learn, read_table, reopen, write_table
from sparsebayes.tables.encoder import Category, Numeric
from sparsebayes.tables.table import check_output


def fit_table(
    data: Path, target: str | None, options: Options, *, model: Path, page: Path | None, as_json: bool
) -> None:
    """Learn from a table, and write a model and a report; nothing is written before all is done.

    Parameters
    ----------
    data : Path
        CSV or Parquet file.
    target : str or None
        Column to predict.
    options : Options
        What else is asked for.
    model, page : Path
        Files to write; ``page=None`` for no report.
    as_json : bool
        Print for machines.
    """
    options.check()
    _check_outputs([data], [model, *([] if page is None else [page])])
    table = read_table(data)
    with progress(quiet=as_json) as observe:
        study = learn(table, target, options, observe)
    case = make_case(study, model)
    facts = describe(case, study)
    written: dict[str, Any] = {"model": str(model)}
    content = None if page is None else render_report(case).encode("utf-8")
    study.model.save(model)
    if page is not None and content is not None:
        write_atomically(page, content)
        written["report"] = str(page)
    _print(case, study, facts, written, as_json)
    if not converged(study.model.estimator):
        raise typer.Exit(NOT_CONVERGED)


def predict_table(model: Path, data: Path, *, out: Path, as_json: bool) -> None:
    """Predict the rows of a table with a saved model.

    Parameters
    ----------
    model, data : Path
        Model file, and CSV or Parquet file that has its input columns.
    out : Path
        CSV or Parquet file for the predictions.
    as_json : bool
        Print for machines.
    """
    check_output(out)
    _check_outputs([model, data], [out])
    opened = TableModel.load(model)
    encoded = opened.encoder.encode(read_table(data))
    predictions = opened.predict_encoded(encoded.X)
    write_table(out, predictions)
    n = len(encoded.X)
    if as_json:
        print_json(
            {
                "target": opened.target,
                "rows": n,
                "columns": list(predictions),
                "filled_in": encoded.filled,
                "unknown_categories": encoded.unknown,
                "predictions": str(out),
            }
        )
        return
    tell(f"{n} predictions of {opened.target!r} written to {out}")
    if encoded.filled:
        tell(f"{encoded.filled} missing numbers were filled in with the medians of the training rows")
    if encoded.unknown:
        tell(f"{encoded.unknown} cells hold categories that the training rows did not have; they count as none")


def report_on_table(model: Path, data: Path, *, page: Path, as_json: bool) -> None:
    """Write a report on a saved model.

    Parameters
    ----------
    model, data : Path
        Model file, and CSV or Parquet file that has its input columns and its target.
    page : Path
        HTML file to write.
    as_json : bool
        Print for machines.
    """
    _check_outputs([model, data], [page])
    study = reopen(TableModel.load(model), read_table(data))
    case = make_case(study, model)
    facts = describe(case, study)
    write_atomically(page, render_report(case).encode("utf-8"))
    _print(case, study, facts, {"model": str(model), "report": str(page)}, as_json)


def make_case(study: Study, model: Path) -> Case:
    """What a report says of a study."""
    estimator, target = study.model.estimator, study.target
    numbers = target.rows[study.train] + 1
    case = Case(
        est=estimator,
        X=study.X[study.train],
        y=target.values[study.train],
        X_test=study.X[study.test],
        y_test=target.values[study.test],
        inputs=_inputs(study),
        target=target.name,
        title=f"{target.name} from {study.table.path.name}",
        notes=list(study.notes),
        model_file=str(model),
        row_numbers=numbers.tolist() if len(numbers) else None,
    )
    case.facts.update(describe(case, study))
    return case


def _inputs(study: Study) -> list[Input]:
    found, first = [], 0
    for column in study.model.encoder.columns:
        columns = tuple(range(first, first + len(column.features)))
        first += len(columns)
        if isinstance(column, Numeric):
            found.append(Input(column.name, columns, column.centre, column.scale))
        elif isinstance(column, Category):
            found.append(Input(column.name, columns, levels=column.levels))
    return found


def _print(case: Case, study: Study, facts: dict[str, str], written: dict[str, Any], as_json: bool) -> None:
    if not as_json:
        rows = {**facts, **({"notes": "; ".join(study.notes)} if study.notes else {})}
        show(case.title, {"": rows | {f"{kind} file": name for kind, name in written.items()}})
        return
    estimator, result = study.model.estimator, case.result
    count, what = study.candidates
    print_json(
        {
            "data": str(study.table.path),
            "rows": {"train": len(study.train), "test": len(study.test)},
            "inputs": study.model.encoder.names,
            "target": study.target.name,
            "task": study.target.task,
            "reason": study.target.reason,
            "notes": study.notes,
            "kept": len(estimator.relevance_),
            "candidates": {"n": count, "what": what},
            case.rows_name.replace(" ", "_"): vars(result),
            "noise_std": None if case.classifies else float(np.sqrt(estimator.noise_variance_)),
            "std_scale": std_scale(estimator),
            "log_evidence": estimator.log_marginal_likelihood_,
            "converged": converged(estimator),
            "status": facts["status"],
            "certificate": facts["certificate"],
            "seconds": None if np.isnan(study.seconds) else study.seconds,
            **written,
        }
    )


def _check_outputs(read: list[Path], write: list[Path]) -> None:
    """Raise before any work where a result could not be written, or would overwrite what it is made from."""
    for path in write:
        check_target(path)
        if any(other.exists() and path.exists() and os.path.samefile(other, path) for other in read):
            raise ValueError(f"{path} is a file that is read; name another with --out")
    if len({os.path.realpath(path) for path in write}) < len(write):
        raise ValueError(f"{write[0]} would be written twice; name another with --report")
