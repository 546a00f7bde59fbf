"""The section of a report that plays the search again."""

from __future__ import annotations

import json
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from sparsebayes.estimators.summary import listed

from .case import Case
from .replay import Chapter, chapters
from .svg import Chart, number

_MOVES = {"add": "added", "delete": "deleted", "reestimate": "re-estimated"}


@dataclass(frozen=True)
class Search:
    """Charts of a search and the data with which the script moves them."""

    evidence: str
    functions: str
    data: str
    n_records: int
    which: str


def search_of(case: Case) -> Search | None:
    """Return the search of a model, of its first part where it has several; None where it made no move."""
    several = isinstance(case.est.certificate_, list)
    history = case.est.history_[0] if several else case.est.history_
    if not history:
        return None
    certificate = listed(case.est.certificate_)[0]
    story = chapters(history)
    objective = np.array([record.objective for record in history])
    steps = np.arange(1, len(history) + 1)
    chart = _evidence_chart(steps, objective, story, len(history))
    names, functions = _functions_chart(
        case, sorted({f for record in history for f in (*record.added, *record.removed)})
    )
    data = {
        "x": np.round(chart.px(steps), 1).tolist(),
        "y": np.round(chart.py(objective), 1).tolist(),
        "span": chart.span,
        "chapters": [{"first": chapter.first, "begin": chapter.begin} for chapter in story],
        "winner": certificate.start,
        "names": names,
        "records": [
            [
                r.start,
                r.move,
                r.function,
                number(r.objective, 6),
                r.n_active,
                number(float(np.sqrt(r.noise_variance)), 4),
                r.added,
                r.removed,
            ]
            for r in history
        ],
        "noise": not case.classifies,
        "words": _MOVES,
    }
    which = f"Shown is the search for the first of {len(case.est.certificate_)} models." if several else ""
    # "</" would end the script element that holds the data.
    return Search(chart.render(), functions, json.dumps(data).replace("<", "\\u003c"), len(history), which)


def _evidence_chart(steps: Any, objective: Any, story: list[Chapter], n: int) -> Chart:
    top, typical = float(objective.max()), float(np.percentile(objective, 10))
    # The first moves of a start are far below the rest; what matters is near the top.
    shown = np.maximum(objective, typical - 0.1 * (top - typical))
    chart = Chart(steps, shown, ("record of the search", "objective (nats)"), "the objective, record by record")
    edges = [chapter.first for chapter in story] + [n]
    for first, last in pairwise(edges):
        chart.line(steps[first:last], objective[first:last], "fit thin")
    return chart.extra('<path id="now" class="now" d=""/><circle id="here" class="here" r="5" cx="-9" cy="-9"/>')


def _functions_chart(case: Case, ever: list[int]) -> tuple[dict[int, str], str]:
    """Every function that was ever in the model: on the inputs where these can be drawn, else in a row."""
    names = {f: _name(case, f) for f in ever}
    plain = len(case.inputs) <= 2 and not any(item.levels for item in case.inputs)
    rows = [f for f in ever if f < len(case.X)]
    if _on_rows(case) and plain and rows:
        X = case.X
        a, b = case.inputs[0], case.inputs[-1]
        one = len(case.inputs) == 1
        up = np.asarray(case.y, dtype=np.float64) if one else b.values(X)
        chart = Chart(a.values(X), up, (a.name, case.target if one else b.name), "functions by their place")
        chart.dots(a.values(X), up, "data").dots(a.values(X[rows]), up[rows], "function", radius=6, keys=rows)
        return names, chart.render()
    places = np.arange(len(ever)) + 1.0
    chart = Chart(
        [0.5, len(ever) + 0.5],
        [0.0, 1.0],
        ("functions that were ever in the model", ""),
        "functions",
        height=150,
        scale=False,
    )
    width = max(1.0, 0.7 * float(chart.px(2.0) - chart.px(1.0)))
    top, floor = float(chart.py(0.95)), float(chart.py(0.05))
    marks = "".join(
        f'<rect data-f="{f}" x="{x - width / 2:.1f}" y="{top:.1f}" width="{width:.1f}" height="{floor - top:.1f}">'
        f"<title>{names[f].replace('&', '&amp;').replace('<', '&lt;')}</title></rect>"
        for f, x in zip(ever, chart.px(places), strict=True)
    )
    return names, chart.extra(f'<g class="function">{marks}</g>').render()


def _on_rows(case: Case) -> bool:
    """Whether functions are numbered as the training rows are."""
    return len(case.X) > 0 and "kernel" in case.est.get_params(deep=False) and not _coupled(case)


def _coupled(case: Case) -> bool:
    return case.classifies and len(case.est.classes_) > 2 and not isinstance(case.est.certificate_, list)


def _name(case: Case, function: int) -> str:
    """Name of a function by its number in the dictionary (the numbers of coupled classes follow one another)."""
    parameters = case.est.get_params(deep=False)
    kernel, linear = "kernel" in parameters, parameters.get("basis", 0) is None
    rows = case.function_rows
    if not kernel and not linear and rows is not None and len(rows) > len(case.X) > 0:
        before = len(rows) - len(case.X)
        if function < len(rows):
            return case.names[function] if function < before else f"the function of row {rows[function]}"
        return "the intercept" if function == len(rows) else f"function {function}"
    size = len(case.X) if kernel else len(case.names) if linear else 0
    if size == 0:
        return f"function {function}"
    prefix = ""
    if _coupled(case):
        k, function = divmod(function, size + bool(parameters["fit_intercept"]))
        prefix = f"{case.est.classes_[k]}: "
    if function >= size:
        return f"{prefix}the intercept" if function == size else f"{prefix}function {function}"
    row = function if case.row_numbers is None or linear else case.row_numbers[function]
    return prefix + (case.names[function] if linear else f"the function of row {row}")
