"""Classification beside a support vector machine and logistic regression, on the ledger's tables."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from typing import Any

import numpy as np
from rich.table import Table

from sparsebayes.benchmarks.ledger.cases import Case, Problem
from sparsebayes.benchmarks.ledger.measure import OURS, Row, log_loss, measure, timed
from sparsebayes.benchmarks.ledger.problems import drawn
from sparsebayes.benchmarks.ledger.tables import OTHER_WAYS, table_problems
from sparsebayes.benchmarks.small import small_problems

SVC_NAME, LOGISTIC = "svc", "logistic"
# Of Platt's method, as many as scikit-learn's default.
_FOLDS = 5
# Small enough for a minute.
_QUICK = ("banana", "breast_cancer", "waveform")
_HEADINGS = ("problem", "draws", "method", "evidence", "error", "log loss", "kept", "seconds", "x svc", "status")
_FIGURES = ("evidence", "error", "loss", "kept", "seconds")


def class_problems(only: Iterable[str] = (), *, quick: bool = False) -> list[Problem]:
    """The classifications of the ledger at the classifier's defaults, small and odd tables, or those that are named."""
    known = [problem for problem in table_problems() if "classification" in problem.kinds] + small_problems()
    names = [problem.name for problem in known]
    plain = [name for name in names if not name.endswith(OTHER_WAYS)]
    wanted = list(only) or (list(_QUICK) if quick else plain)
    unknown = [name for name in wanted if name not in names]
    if unknown:
        raise ValueError(f"no problem is called {', '.join(map(repr, unknown))}; choose among {', '.join(names)}")
    return [problem for problem in known if problem.name in wanted]


def support_vectors(problem: str, seed: int, case: Case) -> Row:
    """SVC(C=1) with the problem's kernel; its seconds are of the plain fit, its log loss is by Platt's method.

    That takes five folds, each with all classes: there is no log loss where a class has fewer rows.
    """
    from sklearn.calibration import CalibratedClassifierCV
    from sklearn.svm import SVC

    width: Any = case.gamma or "scale"  # scikit-learn's own types know the names only
    whole: Any = False
    model = SVC(gamma=width)
    fitted, seconds = timed(lambda: model.fit(case.X, case.y))
    loss = None
    if np.min(np.unique(case.y, return_counts=True)[1]) >= _FOLDS:
        platt, _ = timed(lambda: CalibratedClassifierCV(model, ensemble=whole, cv=_FOLDS).fit(case.X, case.y))
        loss = log_loss(platt.predict_proba(case.X_test), platt.classes_, case.y_test)
    error = case.error(fitted.predict(case.X_test))
    return Row(problem, seed, SVC_NAME, error=error, loss=loss, kept=len(fitted.support_), seconds=seconds)


def logistic_regression(problem: str, seed: int, case: Case) -> Row:
    """Logistic regression on the inputs at its defaults."""
    from sklearn.linear_model import LogisticRegression

    fitted, seconds = timed(lambda: LogisticRegression(max_iter=1000).fit(case.X, case.y))
    loss = log_loss(fitted.predict_proba(case.X_test), fitted.classes_, case.y_test)
    error = case.error(fitted.predict(case.X_test))
    return Row(problem, seed, LOGISTIC, error=error, loss=loss, kept=case.X.shape[1], seconds=seconds)


def run(problems: list[Problem], seeds: list[int], tell: Callable[[str], None], **options: Any) -> Iterator[Row]:
    """Rows as they come; what cannot be measured is told and left out.

    Parameters
    ----------
    problems : list of Problem
        What to measure.
    seeds : list of int
        Draws of each.
    tell : callable
        Called with a line before every draw.
    **options
        Parameters of ``RVC``, over those of the problem.
    """
    for problem, seed, case in drawn(problems, seeds, tell):
        yield measure(problem, seed, **options)
        yield support_vectors(problem.name, seed, case)
        yield logistic_regression(problem.name, seed, case)


def summary(rows: list[Row]) -> list[Row]:
    """Means over the draws of every problem and method; the seed is their number."""
    pairs = list(dict.fromkeys((row.problem, row.method) for row in rows))
    return [_mean([row for row in rows if (row.problem, row.method) == pair]) for pair in pairs]


def _mean(rows: list[Row]) -> Row:
    found = {name: [value for row in rows if (value := getattr(row, name)) is not None] for name in _FIGURES}
    means = {name: float(np.mean(values)) if values else None for name, values in found.items()}
    status = ", ".join(dict.fromkeys(row.status for row in rows if row.status))
    return replace(rows[0], seed=len(rows), status=status, **means)


def table(rows: list[Row]) -> Table:
    """The means, for a terminal; seconds of processor time, and how many times a support vector machine's that is."""
    found = Table(title="classes: error, log loss, functions and seconds beside a support vector machine")
    for heading in _HEADINGS:
        found.add_column(heading, justify="left" if heading in ("problem", "method", "status") else "right")
    means = summary(rows)
    seconds = {row.problem: row.seconds for row in means if row.method == SVC_NAME}
    for row in means:
        beside = seconds.get(row.problem)
        ratio = "" if not beside or row.seconds is None or row.method == SVC_NAME else f"{row.seconds / beside:.1f}"
        evidence = f"{row.evidence:.1f}" if row.evidence is not None and row.method == OURS else ""
        loss = "" if row.loss is None else f"{row.loss:.4f}"
        figures = [evidence, f"{row.error:.4f}", loss, f"{row.kept:.0f}", f"{row.seconds:.3f}"]
        found.add_row(row.problem, str(row.seed), row.method, *figures, ratio, row.status)
    return found


def as_json(rows: list[Row]) -> str:
    """All rows and their means, for machines."""
    return json.dumps(
        {"rows": [row.as_dict() for row in rows], "means": [row.as_dict() for row in summary(rows)]}, indent=1
    )
