"""What the command line says of a model: a table for people, JSON for machines."""

from __future__ import annotations

import json
import math
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table as RichTable

from sparsebayes.basis import Sum
from sparsebayes.estimators.summary import listed, verdict
from sparsebayes.estimators.uncertainty import ErrorBars
from sparsebayes.inference import ParameterStatus
from sparsebayes.report import Case
from sparsebayes.report.measures import ClassificationTest, RegressionTest, figure
from sparsebayes.report.verdict import Level, Verdict
from sparsebayes.tables import Study
from sparsebayes.tables.table import list_names

Rows = dict[str, str]


def _console() -> Console:
    """Return a console that prints names of files and columns as they are, whatever brackets they have."""
    return Console(markup=False, emoji=False, highlight=False)


def tell(text: str, *, err: bool = False) -> None:
    """Print a sentence; with ``err`` beside what is piped on."""
    Console(markup=False, emoji=False, highlight=False, stderr=err).print(text, soft_wrap=True)


def describe(case: Case, study: Study) -> Rows:
    """What was learned from a table and how good it is, line by line."""
    count, what = study.candidates
    split = f"{len(study.train)} to learn from, {len(study.test)} to test" if len(study.test) else "no test part"
    rows = {
        "data": f"{study.table.path}: {len(study.target.rows)} rows ({split})",
        "inputs": list_names(study.model.encoder.names),
        "task": f"{study.target.task} of {study.target.name!r}: {study.target.reason}",
        "kept": f"{len(case.est.relevance_)} of {count} {what}"
        if (study.same and len(study.train)) or study.linear
        else f"{len(case.est.relevance_)} functions",
        **quality(case.result, case.rows_name),
        **widths(study),
        **learned(case.est),
    }
    return rows if math.isnan(study.seconds) else rows | {"time": f"{study.seconds:.2f} s"}


def widths(study: Study) -> Rows:
    """Widths that were learned, in units of the encoded inputs: the narrowest, which matter most, first."""
    est = study.model.estimator
    kernel, states = getattr(est, "kernel_", None), getattr(est, "kernel_status_", None)
    terms: list[Any] = list(kernel.bases) if isinstance(kernel, Sum) else [kernel]
    if states is None or not all(hasattr(term, "width") for term in terms):
        return {}
    found = terms[0].width
    ratios = [np.ravel(term.width)[0] / np.ravel(found)[0] for term in terms[1:]]
    several = f"; the same x {' and x '.join(f'{ratio:.3g}' for ratio in ratios)} beside them" if ratios else ""
    if np.ndim(found) == 0:
        return {"width": f"{figure(float(found))}{several}"}
    names = [name for column in study.model.encoder.columns for name in column.features]
    off = [status is ParameterStatus.OFF for status in list(states.values())[: len(names)]]
    order = [k for k in np.argsort(found, kind="stable") if not off[k]]
    told = "; ".join(f"{names[k]} {figure(float(found[k]))}" for k in order)
    without = list_names([name for name, is_off in zip(names, off, strict=True) if is_off])
    return {"widths by input": f"{told or 'none'}{several}", **({"inputs without effect": without} if any(off) else {})}


def quality(result: RegressionTest | ClassificationTest, rows_name: str) -> Rows:
    """Errors, line by line."""
    where = f"on {result.n} {rows_name}"
    if isinstance(result, ClassificationTest):
        return {
            "accuracy": f"{result.accuracy:.1%} {where}, 95 % interval {result.low:.1%} to {result.high:.1%} "
            f"(most frequent class: {result.baseline:.1%})",
            "log loss": f"{result.log_loss:.3g}",
        }
    return {
        "error (RMSE)": f"{figure(result.rmse)} {where}, 95 % interval {figure(result.low)} to {figure(result.high)}",
        **({} if math.isnan(result.r2) else {"explained": f"{result.r2:.1%} of the variance"}),
        "in 95 % error bars": f"{result.coverage:.1%} of them",
    }


def std_scale(est: object) -> float | None:
    """What the posterior's error bars were multiplied by; None for models without any."""
    return float(est.std_scale_) if isinstance(est, ErrorBars) else None


def learned(est: Any) -> Rows:
    """What the search found and how it ended, line by line."""
    noise = {"noise (std)": figure(float(np.sqrt(est.noise_variance_)))} if "noise_variance_" in vars(est) else {}
    if vars(est).get("noise_varies_", False):
        noise["noise (std)"] += " (root mean square), different from place to place"
    factor = std_scale(est)
    bars = {} if factor is None else {"error bars": f"{factor:.3g} x the posterior's"}
    return {
        **noise,
        **bars,
        "log evidence": f"{est.log_marginal_likelihood_:.2f}",
        "status": " ".join(dict.fromkeys(status.value for status in listed(est.status_))),
        "certificate": verdict(listed(est.certificate_)),
    }


_STYLES = {Level.GOOD: "bold green", Level.WARNING: "bold yellow", Level.FAILURE: "bold red"}
_MARKS = {Level.GOOD: "✓", Level.WARNING: "!", Level.FAILURE: "✗"}


def show_verdict(verdict: Verdict) -> None:
    """Print the verdict, amber for a warning and red for a failure where the terminal has colours."""
    console = _console()
    console.print(verdict.headline, style=_STYLES[verdict.level], soft_wrap=True)
    for finding in verdict.findings:
        console.print(
            f"  {_MARKS[finding.level]} {finding.text}", style=_STYLES[finding.level].split()[1], soft_wrap=True
        )


def show(title: str, models: dict[str, Rows]) -> None:
    """Print models side by side, one line for each thing that is said of them.

    Parameters
    ----------
    title : str
        Title of the table.
    models : dict of str to dict
        The lines of each model by its name.
    """
    table = RichTable(title=title, title_justify="left", show_header=len(models) > 1)
    table.add_column("")
    for name in models:
        table.add_column(name, overflow="fold")
    for label in dict.fromkeys(label for rows in models.values() for label in rows):
        table.add_row(label, *(rows.get(label, "-") for rows in models.values()))
    _console().print(table)


def print_json(content: dict[str, Any]) -> None:
    """Print one JSON object; what is not a number is null."""
    print(json.dumps(_finite(content), indent=2, ensure_ascii=False))


def _finite(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _finite(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_finite(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
