"""The section of a report that plays the search again."""

from __future__ import annotations

import json
from dataclasses import dataclass
from html import escape
from itertools import pairwise
from typing import Any

import numpy as np

from sparsebayes.estimators.names import name_functions
from sparsebayes.estimators.summary import function_names, listed

from .case import Case
from .replay import Chapter, chapters
from .svg import Chart, number

_MOVES = {"add": "added", "delete": "deleted", "reestimate": "re-estimated"}


@dataclass(frozen=True)
class Search:
    """Charts of a search and the data with which the script moves them; ``kept`` is where the model was reached."""

    evidence: str
    functions: str
    data: str
    n_records: int
    kept: int
    label: str


def searches_of(case: Case) -> list[Search]:
    """Return the searches of a model: one for each class where each has a model of its own; none without moves."""
    certificates = listed(case.est.certificate_)
    several = isinstance(case.est.certificate_, list)
    histories = case.est.history_ if several else [case.est.history_]
    labels = [str(label) for label in case.est.classes_] if several else [""]
    each = zip(histories, certificates, labels, strict=True)
    return [_search(case, history, certificate, label) for history, certificate, label in each if history]


def _search(case: Case, history: list[Any], certificate: Any, label: str) -> Search:
    objective = np.array([record.objective for record in history])
    reached = _reached(history, certificate)
    story = chapters(history, reached, _model(case, history[reached]))
    steps = np.arange(1, len(history) + 1)
    chart = _evidence_chart(steps, objective, story, len(history), label)
    moved = {f for record in history for f in (*record.added, *record.removed)}
    names, functions = _functions_chart(case, sorted(moved.union(*(chapter.begin or () for chapter in story))), label)
    data = {
        "x": np.round(chart.px(steps), 1).tolist(),
        "y": np.round(chart.py(objective), 1).tolist(),
        "span": chart.span,
        "chapters": [{"first": chapter.first, "begin": chapter.begin} for chapter in story],
        "winner": _run_around(story, reached, len(history)),
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
    # "</" would end the script element that holds the data.
    text = json.dumps(data).replace("<", "\\u003c")
    return Search(chart.render(), functions, text, len(history), reached + 1, label)


def _model(case: Case, record: Any) -> list[int]:
    """Functions of the model by their numbers in the dictionary; none where classes have models of their own."""
    if _coupled(case) or isinstance(case.est.certificate_, list):
        return []
    kept = np.asarray(vars(case.est).get("_numbers", case.est.relevance_)).tolist()
    return [*kept, _functions(case)] if len(kept) + 1 == record.n_active else kept


def _reached(history: list[Any], certificate: Any) -> int:
    """The record at which the model that was kept was reached: of its start, and at its objective.

    Where widths are learned, a start is gone on with at other widths, and may have ended elsewhere.
    """
    own = [k for k, record in enumerate(history) if record.start == certificate.start] or [len(history) - 1]
    return min(own, key=lambda k: (abs(history[k].objective - certificate.objective), -k))


def _run_around(story: list[Chapter], record: int, n: int) -> tuple[int, int]:
    """First and last record of the chapter that holds a record."""
    edges = [*(chapter.first for chapter in story), n]
    return next((first, last - 1) for first, last in pairwise(edges) if first <= record < last)


def _titled(title: str, label: str) -> str:
    return f"{title}: {label}" if label else title


def _evidence_chart(steps: Any, objective: Any, story: list[Chapter], n: int, label: str) -> Chart:
    top, typical = float(objective.max()), float(np.percentile(objective, 30))
    # The first moves of a start are far below the rest; what matters is near the top.
    shown = np.maximum(objective, typical - 0.1 * (top - typical))
    title = _titled("the objective, record by record", label)
    chart = Chart(steps, shown, ("record of the search", "objective (nats)"), title)
    edges = [chapter.first for chapter in story] + [n]
    for first, last in pairwise(edges):
        chart.line(steps[first:last], objective[first:last], "fit thin")
    return chart.extra('<path class="now" d=""/><circle class="here" r="5" cx="-9" cy="-9"/>')


def _functions_chart(case: Case, ever: list[int], label: str) -> tuple[dict[int, str], str]:
    """Every function that was ever in the model: on the inputs where these can be drawn, else side by side."""
    names = _names(case, ever)
    plain = len(case.inputs) <= 2 and not any(item.levels for item in case.inputs)
    rows = [f for f in ever if f < len(case.X)]
    if _on_rows(case) and plain and rows:
        X = case.X
        a, b = case.inputs[0], case.inputs[-1]
        one = len(case.inputs) == 1
        up = _heights(case) if one else b.values(X)
        title, upwards = _titled("functions by their place", label), case.target if one else b.name
        chart = Chart(a.values(X), up, (a.name, upwards), title, scale=not (one and case.classifies))
        if one and case.classifies:
            for k, name in enumerate(case.est.classes_):
                chart.beside(float(k), str(name))
        chart.dots(a.values(X), up, "data").dots(a.values(X[rows]), up[rows], "function", radius=6, keys=rows)
        return names, chart.render()
    return names, _lanes(case, ever, names, label)


def _heights(case: Case) -> Any:
    """Targets on a vertical axis: numbers as they are, classes by their order."""
    if not case.classifies:
        return np.asarray(case.y, dtype=np.float64)
    return np.searchsorted(case.est.classes_, case.y).astype(np.float64)


def _lanes(case: Case, ever: list[int], names: dict[int, str], label: str) -> str:
    """The functions side by side; those of coupled classes below each other, a lane for each class."""
    classes = [str(one) for one in case.est.classes_] if _coupled(case) and _size(case) else [""]
    lane = [f // _size(case) if len(classes) > 1 else 0 for f in ever]
    widest = max([lane.count(k) for k in range(len(classes))], default=1) or 1
    chart = Chart(
        [0.5, widest + 0.5],
        [0.0, float(len(classes))],
        ("functions that were ever in the model", ""),
        _titled("functions", label),
        height=105.0 + 45.0 * len(classes),
        scale=False,
    )
    width = max(1.0, 0.7 * float(chart.px(2.0) - chart.px(1.0)))
    marks, seen = [], [0] * len(classes)
    for f, k in zip(ever, lane, strict=True):
        seen[k] += 1
        x, floor = float(chart.px(seen[k])), len(classes) - 1.0 - k
        top, bottom = float(chart.py(floor + 0.92)), float(chart.py(floor + 0.08))
        marks.append(
            f'<rect data-f="{f}" x="{x - width / 2:.1f}" y="{top:.1f}" width="{width:.1f}" '
            f'height="{bottom - top:.1f}"><title>{escape(names[f])}</title></rect>'
        )
    chart.extra(f'<g class="function">{"".join(marks)}</g>')
    for k, name in enumerate(classes):
        if name:
            chart.beside(len(classes) - 0.5 - k, name)
    return chart.render()


def _on_rows(case: Case) -> bool:
    """Whether functions are numbered as the training rows are."""
    known = case.functions
    return known is not None and np.array_equal(known.rows, np.arange(len(case.X))) and not _coupled(case)


def _coupled(case: Case) -> bool:
    return case.classifies and len(case.est.classes_) > 2 and not isinstance(case.est.certificate_, list)


def _functions(case: Case) -> int:
    """Functions of the dictionary, the intercept not counted; zero where that is not known."""
    return vars(case.est).get("_n_candidates", 0)


def _size(case: Case) -> int:
    """Functions of one class, the intercept included; zero where that is not known."""
    known = _functions(case)
    return known + bool(case.est.get_params(deep=False)["fit_intercept"]) if known else 0


def _names(case: Case, ever: list[int]) -> dict[int, str]:
    """Names of functions by their numbers in the history (the numbers of coupled classes follow one another)."""
    size = _size(case) if _coupled(case) else 0
    places = {f: divmod(f, size) if size else (0, f) for f in ever}
    before = [f"{label}: " for label in case.est.classes_] if size else [""]
    known, n = case.functions, _functions(case)
    if known is None:
        numbers = vars(case.est).get("_numbers", ())
        named = dict(zip(map(int, numbers), function_names(case.est, case.names, case.row_numbers), strict=False))
    else:
        mine = sorted({m for _, m in places.values() if m < n})
        part = known.restrict(mine)
        names = name_functions(part.specifications(), part.rows.tolist(), case.names, case.row_numbers)
        named = dict(zip(mine, names, strict=True))
    if n:
        named[n] = "intercept"
    return {f: before[k] + named.get(m, f"function {m}") for f, (k, m) in places.items()}
