"""What ``fit``, ``predict`` and ``report`` do, once their options are read."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import typer

from sparsebayes.atomic import check_target, write_atomically
from sparsebayes.cli.exits import INTERRUPTED, NOT_CONVERGED
from sparsebayes.cli.summary import describe, print_json, quality, show, show_verdict, std_scale, tell
from sparsebayes.estimators.summary import converged
from sparsebayes.export.columns import CYCLES, Category, Date
from sparsebayes.report import Case, Input, render_report
from sparsebayes.report.explanation import explain_case
from sparsebayes.report.measures import classification_test, figure, regression_test
from sparsebayes.report.verdict import FURTHER, Level, judge_case
from sparsebayes.tables import Options, Study, TableModel, learn, read_table, reopen, write_table
from sparsebayes.tables.files import check_output, csv_text
from sparsebayes.tables.learning import Interrupted
from sparsebayes.tables.table import Table, did_you_mean, list_names
from sparsebayes.tables.validation import cross_validate


def fit_table(
    data: Path,
    target: str | None,
    options: Options,
    *,
    model: Path,
    page: Path | None,
    as_json: bool,
    baseline: bool = False,
    cv: int = 0,
    explain: bool = False,
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
    baseline : bool
        Compare with a random forest and with support vectors as well.
    cv : int
        Also test on all rows, in so many folds; 0 for none.
    explain : bool
        Also say which columns carry effects, and what each input does to the predictions.
    """
    options.check()
    _check_outputs([data], [model, *([] if page is None else [page])])
    table = read_table(data)
    interrupted = False
    try:
        study = learn(table, target, options)
    except Interrupted as stopped:
        study, interrupted = stopped.study, True
    case = make_case(study, model, baseline=baseline)
    if cv and not interrupted:
        case.facts.update(_in_folds(study, options, cv))
    if explain and not interrupted:
        case = _explained(case)
    facts = case.facts
    written: dict[str, Any] = {"model": str(model)}
    content = None if page is None else render_report(case).encode("utf-8")
    study.model.save(model)
    if page is not None and content is not None:
        write_atomically(page, content)
        written["report"] = str(page)
    _print(case, study, facts, written, as_json)
    if interrupted:
        raise typer.Exit(INTERRUPTED)
    if not converged(study.model.estimator) or case.verdict.level is Level.FAILURE:
        raise typer.Exit(NOT_CONVERGED)


def predict_table(model: Path, data: Path, *, out: Path | None, keep: list[str], as_json: bool) -> None:
    """Predict the rows of a table with a saved model.

    Parameters
    ----------
    model, data : Path
        Model file, and table that has its input columns.
    out : Path or None
        CSV or Parquet file for the predictions; None is standard output.
    keep : list of str
        Columns of the table to pass on.
    as_json : bool
        Print for machines.
    """
    if out is not None:
        check_output(out)
        _check_outputs([model, data], [out])
    elif as_json:
        raise ValueError("--json says what was written where; name a file with --out")
    opened = TableModel.load(model)
    table = read_table(data)
    encoded = opened.encoder.encode(table)
    columns = _kept(table, keep) | opened.predict_encoded(encoded.X, coverage=0.95)
    if out is None:
        typer.echo(csv_text(columns), nl=False)
    else:
        write_table(out, columns)
    n = len(encoded.X)
    if as_json:
        print_json(
            {
                "target": opened.target,
                "rows": n,
                "columns": list(columns),
                "filled_in": encoded.filled,
                "unknown_categories": encoded.unknown,
                "predictions": str(out),
            }
        )
        return
    if out is not None:
        tell(f"{n} predictions of {opened.target!r} written to {out}")
    if encoded.filled:
        tell(f"{encoded.filled} missing numbers were filled in with the medians of the training rows", err=out is None)
    if encoded.unknown:
        what = f"{encoded.unknown} cells hold categories that the training rows did not have; they count as none"
        tell(what, err=out is None)


def _kept(table: Table, names: list[str]) -> dict[str, Any]:
    """Columns to pass on, as they stand in the table."""
    absent = [name for name in names if name not in table.names]
    if absent:
        raise ValueError(
            f"--keep {list_names(absent)}: {table.path} has the columns {list_names(table.names)}"
            f"{did_you_mean(absent, table.names)}"
        )
    return {name: _as_it_stands(table, name) for name in names}


def _as_it_stands(table: Table, name: str) -> Any:
    cells = table.columns[name]
    if isinstance(cells, list):
        return np.array(cells, dtype=object)
    whole = np.all(np.isfinite(cells)) and np.all(cells == np.round(cells)) and np.all(np.abs(cells) < 2**53)
    return cells.astype(np.int64) if whole else cells


def report_on_table(model: Path, data: Path, *, page: Path, as_json: bool, explain: bool = False) -> None:
    """Write a report on a saved model.

    Parameters
    ----------
    model, data : Path
        Model file, and CSV or Parquet file that has its input columns and its target.
    page : Path
        HTML file to write.
    as_json : bool
        Print for machines.
    explain : bool
        Also say which columns carry effects, and what each input does to the predictions.
    """
    _check_outputs([model, data], [page])
    study = reopen(TableModel.load(model), read_table(data))
    case = make_case(study, model)
    if explain:
        case = _explained(case)
    facts = case.facts
    write_atomically(page, render_report(case).encode("utf-8"))
    _print(case, study, facts, {"model": str(model), "report": str(page)}, as_json)


def _explained(case: Case) -> Case:
    """The case with what is known beyond the model, and a line of it among the facts."""
    found = explain_case(case)
    if found.in_words():
        case.facts["effects (95 % sure)"] = found.in_words()
    return replace(case, explanation=found)


def _in_folds(study: Study, options: Options, n_folds: int) -> dict[str, str]:
    """How well the same way from a table to a model does on every row, each left out once."""
    found, y = cross_validate(study, options, n_folds), study.target.values
    where = f"rows, each left out once in {n_folds} folds"
    if "mean" in found:
        result: Any = regression_test(y, found["mean"], found["std"])
    else:
        classes = [name[2:-1] for name in found if name.startswith("p(")]
        result = classification_test(y, np.column_stack([found[f"p({c})"] for c in classes]), classes)
    return {f"{label} in folds": text for label, text in quality(result, where).items()}


def make_case(study: Study, model: Path, *, baseline: bool = False) -> Case:
    """What a report says of a study."""
    estimator, target = study.model.estimator, study.target
    # Of another table, the rows that the model learned from are not all there, nor in their order.
    train = study.train if study.same else study.train[:0]
    test = study.test if study.same or len(study.test) else study.train
    numbers = target.rows[train] + study.table.first_row
    case = Case(
        est=estimator._as_fitted,
        X=study.X[train],
        y=target.values[train],
        X_test=study.X[test],
        y_test=target.values[test],
        unseen=study.same or len(study.test) > 0,
        inputs=_inputs(study),
        target=target.name,
        title=f"{target.name} from {study.table.path.name}",
        notes=list(study.notes),
        model_file=str(model),
        row_numbers=numbers.tolist() if len(numbers) else None,
        test_numbers=(target.rows[test] + study.table.first_row).tolist(),
    )
    case.facts.update(describe(case, study))
    verdict = judge_case(case, FURTHER if baseline else ())
    if verdict.baselines:
        unit = "share wrong" if case.classifies else "RMSE"
        plain = "; ".join(
            f"{name} {value:.1%}" if case.classifies else f"{name} {figure(value)}"
            for name, value in verdict.baselines.items()
        )
        case.facts[f"baselines, {unit}"] = plain
    return replace(case, verdict=verdict)


def _inputs(study: Study) -> list[Input]:
    found, first = [], 0
    for column in study.model.encoder.columns:
        columns = tuple(range(first, first + len(column.features)))
        first += len(columns)
        if isinstance(column, Category):
            found.append(Input(column.name, columns, levels=column.levels))
            continue
        dated = isinstance(column, Date)
        periods = tuple(CYCLES[cycle] for cycle in column.cycles) if isinstance(column, Date) else ()
        found.append(Input(column.name, columns, column.centre, column.scale, periods=periods, dated=dated))
    return found


def _print(case: Case, study: Study, facts: dict[str, str], written: dict[str, Any], as_json: bool) -> None:
    if not as_json:
        rows = {**facts, **({"notes": "; ".join(study.notes)} if study.notes else {})}
        show_verdict(case.verdict)
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
            "verdict": case.verdict.as_data(),
            "kernel": study.model.functions,
            "tried": None if study.choice is None else study.choice.scores,
            "kept": len(estimator.relevance_),
            "candidates": {"n": count, "what": what},
            case.rows_name.replace(" ", "_"): vars(result),
            "facts": facts,
            **({} if case.explanation is None else {"explanation": case.explanation.as_data()}),
            "noise_std": float(np.sqrt(estimator.noise_variance_)) if "noise_variance_" in vars(estimator) else None,
            "noise_varies": bool(vars(estimator).get("noise_varies_", False)),
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
