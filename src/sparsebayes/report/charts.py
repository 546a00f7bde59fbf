"""The charts of a report, each from a case."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from sparsebayes.estimators.uncertainty import ErrorBars

from .calibration import CalibrationDisplay
from .case import Case, Input
from .decision import DecisionDisplay
from .fit import FitDisplay
from .measures import TWO_SIDED_95, interval, is_robust, wilson
from .svg import Chart, bar_list, number, ranges, shares

Array = NDArray[np.float64]

_POINTS = 600
_MAP = 36
_CURVE = 60
_EFFECTS = 6
_LEVELS_SHOWN = 12
_BARS = 12
_COLOURS = 6
# Parts of the rows by the length of their error bars, the fewest rows in one, and the share that should be inside.
_TENTHS, _FEWEST_IN_ONE, _LEVEL = 10, 10, 0.95


def fit_charts(case: Case) -> list[tuple[str, str]]:
    """The fit with its error bars: caption and SVG of each chart."""
    if case.classifies:
        charts = [_map(case)] if _two_numbers(case.inputs) and len(case.est.classes_) == 2 else []
        return [*charts, _certainty(case)]
    noise = [_noise(case)] if np.any(vars(case.est).get("noise_varies_", False)) else []
    if _one_number(case) and len(case.y):
        return [_curve(case), *noise]
    return [_predicted(case), *noise]


def _curve(case: Case) -> tuple[str, str]:
    item = case.inputs[0]
    shown = FitDisplay.from_estimator(case.est, case.X, case.y, n_grid=4 * _CURVE)
    own = [item.restore(a) for a in (shown.grid, shown.x, shown.vectors[:, 0])]
    half = TWO_SIDED_95 * shown.std
    edges = np.concatenate([shown.y, shown.mean - half, shown.mean + half])
    chart = Chart(own[0], edges, (item.name, case.target), f"{case.target} against {item.name}, with the fit")
    chart.band(own[0], shown.mean - half, shown.mean + half).dots(own[1], shown.y, "data")
    chart.line(own[0], shown.mean, "fit").dots(own[2], shown.vectors[:, 1], "vector", radius=6)
    return (
        "Line: the prediction. Band: where 95 % of new observations should fall. Dots: the rows learned from; circled "
        "are those whose functions were kept.",
        chart.render(),
    )


def _predicted(case: Case) -> tuple[str, str]:
    X, y = case.sample(_POINTS)
    mean, (low, high) = case.est.predict(X), interval(case.est, X)
    chart = Chart(y, np.concatenate([low, high, y]), (f"observed {case.target}", "predicted"), "predicted, observed")
    chart.bars(y, low, high, "bar faint").line(chart.xlim, chart.xlim, "ideal").dots(y, mean, "data strong")
    return f"Predicted against observed on {len(y)} {case.rows_name}, with 95 % error bars; on the line is right.", (
        chart.render()
    )


def _noise(case: Case) -> tuple[str, str]:
    """The noise where it varies: along the one input, or against the prediction."""
    X, _ = case.sample(_POINTS)
    noise = case.est.predict_noise(X)
    if _one_number(case):
        item = case.inputs[0]
        grid = np.linspace(X[:, 0].min(), X[:, 0].max(), 4 * _CURVE)
        along, name = case.est.predict_noise(grid[:, None]), item.name
        x, where = item.axis(item.restore(grid)), f"along {name}"
        chart = Chart(x, [0.0, *along], (name, f"noise of {case.target}"), "noise", height=220).line(x, along, "fit")
    else:
        x, where = np.asarray(case.est.predict(X)), f"of {len(X)} {case.rows_name}, against their predictions"
        labels = (f"predicted {case.target}", f"noise of {case.target}")
        chart = Chart(x, [0.0, *noise], labels, "noise", height=220).dots(x, noise, "data strong")
    return (
        "The noise varies: how far observations scatter, as a standard deviation, about a prediction that were exact, "
        f"{where}. It goes from {number(float(noise.min()))} to {number(float(noise.max()))}.",
        chart.render(),
    )


def _one_number(case: Case) -> bool:
    return len(case.inputs) == 1 and len(case.inputs[0].columns) == 1 and not case.inputs[0].levels


def _map(case: Case) -> tuple[str, str]:
    a, b = case.inputs
    X, y = (case.X, case.y) if len(case.y) else case.judged
    shown = DecisionDisplay.from_estimator(case.est, X, y, n_grid=_MAP)
    across, up = a.restore(shown.across), b.restore(shown.up)
    chart = Chart(across, up, (a.name, b.name), f"probability of {shown.classes[1]}")
    p = shown.probabilities[:, :, 1]
    chart.cells(across, up, np.maximum(2 * p - 1, 0), "cell one").cells(
        across, up, np.maximum(1 - 2 * p, 0), "cell nil"
    )
    for k, css in enumerate(("nil", "one")):
        mine = X[y == shown.classes[k]]
        chart.dots(a.values(mine), b.values(mine), f"data {css}")
    chart.dots(a.values(shown.vectors), b.values(shown.vectors), "vector", radius=6)
    return (
        f"Shade: how sure the model is of {shown.classes[0]} (blue) or {shown.classes[1]} (red). Circled: the rows "
        "whose functions were kept.",
        chart.render(),
    )


def _certainty(case: Case) -> tuple[str, str]:
    """How sure the model was of the true class."""
    X, y = case.judged
    p = case.est.predict_proba(X)
    truth = np.sum(np.where(np.asarray(y)[:, None] == case.est.classes_[None, :], p, 0.0), axis=1)
    edges = np.linspace(0.0, 1.0, 11)
    counts = np.histogram(truth, bins=edges)[0]
    labels = ("probability given to the true class", "rows")
    chart = Chart([0.0, 1.0], [0, counts.max()], labels, "certainty", whole=True)
    left, width = chart.px(edges[:-1]), float(chart.px(0.1) - chart.px(0.0))
    floor = float(chart.py(0.0))
    for x, top in zip(left, chart.py(counts), strict=True):
        chart.extra(
            f'<rect class="size" x="{x + 1:.1f}" y="{top:.1f}" width="{width - 2:.1f}" height="{floor - top:.1f}"/>'
        )
    return f"The further right, the surer the model was of what turned out true; {len(y)} {case.rows_name}.", (
        chart.render()
    )


def residual_chart(case: Case) -> tuple[str, str]:
    """Residuals in units of the error bars, against the prediction."""
    X, y = case.sample(_POINTS)
    mean, std = case.est.predict(X, return_std=True)
    z = (y - mean) / std
    chart = Chart(mean, [*z, -3.0, 3.0], (f"predicted {case.target}", "residual / std"), "residuals")
    band = np.full(2, TWO_SIDED_95)
    chart.band(chart.xlim, -band, band).line(chart.xlim, [0.0, 0.0], "ideal").dots(mean, z, "data strong")
    return (
        "Residuals in units of the predicted standard deviation: 95 % should lie in the band, without a pattern.",
        chart.render(),
    )


def calibration_chart(case: Case) -> tuple[str, str]:
    """Whether error bars or probabilities come true."""
    shown = CalibrationDisplay.from_estimator(case.est, *case.judged)
    chart = Chart([0.0, 1.0], [0.0, 1.0], (shown.what, "how often it came true"), "calibration")
    chart.line([0, 1], [0, 1], "ideal").bars(shown.stated, shown.low, shown.high)
    chart.line(shown.stated, shown.observed, "fit thin").dots(shown.stated, shown.observed, "data strong", radius=3)
    two = case.classifies and len(case.est.classes_) == 2  # the probability of one class may be too low or too high
    apart = "it happens more often, below it less often than stated" if two else "it too modest, below it too sure"
    return (
        f"Stated against observed: on the line the model is honest, above {apart}. Bars: what "
        f"{case.result.n} {case.rows_name} can tell (95 %).",
        chart.render(),
    )


def width_charts(case: Case) -> list[tuple[str, str]]:
    """Whether error bars hold where they are short and where they are long; none where the rows cannot tell."""
    X, y = case.judged
    low, high = interval(case.est, X)
    if len(y) < _TENTHS * _FEWEST_IN_ONE or np.ptp(high - low) <= 1e-9 * np.max(high - low):
        return []
    inside = (low <= y) & (y <= high)
    parts = np.array_split(inside[np.argsort(high - low, kind="stable")], _TENTHS)
    hits, size = np.array([np.sum(part) for part in parts]), np.array([len(part) for part in parts])
    least, most = wilson(hits, size)
    chart = Chart(
        [0.5, _TENTHS + 0.5],
        [0.0, 1.0],
        ("tenth of the rows, shortest error bars first", "share inside"),
        "error bars by their length",
        height=220,
    )
    x = np.arange(1, _TENTHS + 1)
    chart.line(chart.xlim, [_LEVEL, _LEVEL], "ideal").bars(x, least, most).dots(x, hits / size, "data strong", radius=3)
    agree = int(np.sum((least <= _LEVEL) & (most >= _LEVEL)))
    return [
        (
            f"Can short error bars be trusted as much as long ones? Of each tenth of the {case.rows_name}, sorted by "
            f"the length of their bars, 95 of 100 should lie inside. {agree} of the {_TENTHS} tenths agree as far as "
            "their rows can tell (bars).",
            chart.render(),
        )
    ]


def importance_chart(case: Case, found: Sequence[tuple[Input, float, float]]) -> str:
    """Which inputs matter."""
    shown = found[:_BARS]
    what = "log loss" if case.classifies else "mean absolute error" if is_robust(case.est) else "RMSE"
    return bar_list(
        [item.name for item, _, _ in shown],
        [rise for _, rise, _ in shown],
        [spread for _, _, spread in shown],
        f"rise of the {what} when the input is shuffled",
        "importance of the inputs",
    )


def term_chart(case: Case) -> str:
    """Which functions matter."""
    terms = case.terms[:_BARS]
    names = [f"{w.output}: {w.function}" if w.output else w.function for w, _ in terms]
    spread = [size * w.std / abs(w.mean) for w, size in terms]
    unit = "log odds" if case.classifies else case.target
    return bar_list(names, [size for _, size in terms], spread, f"size of the term, in {unit}", "kept functions")


def several_classes(case: Case) -> bool:
    """Whether more than two classes are predicted."""
    return case.classifies and len(case.est.classes_) > 2


def _shown_classes(case: Case) -> list[int]:
    """Places of the classes that have a colour: all, or the most frequent where there are many."""
    y = case.y if len(case.y) else case.y_test
    frequent = np.argsort([-int(np.sum(y == label)) for label in case.est.classes_], kind="stable")
    return sorted(frequent[:_COLOURS].tolist())


def class_key(case: Case) -> list[str]:
    """Names of the classes in the order of their colours."""
    return [str(case.est.classes_[k]) for k in _shown_classes(case)]


def effect_charts(case: Case, ranked: Sequence[Input]) -> list[tuple[str, str]]:
    """What the prediction does as one input changes and the others stay at their medians."""
    if len(case.inputs) < 2:
        return []
    X = case.X if len(case.X) else case.X_test
    return [
        (item.name, _effect_of_levels(case, item, X) if item.levels else _effect(case, item, X))
        for item in ranked[:_EFFECTS]
    ]


def _effect(case: Case, item: Input, X: Array) -> str:
    column = item.columns[0]
    rows = np.tile(np.median(X, axis=0), (_CURVE, 1))
    low, high = np.percentile(X[:, column], [1, 99])
    values = item.restore(np.linspace(low, high, _CURVE))
    rows[:, list(item.columns)] = item.encode(values)
    x = item.axis(values)
    name = f"{item.name} (year)" if item.dated else item.name
    if several_classes(case):
        chart = Chart(x, [0.0, 1.0], (name, "probability of each class"), item.name, height=220)
        probabilities = case.est.predict_proba(rows)
        for k, place in enumerate(_shown_classes(case)):
            chart.line(x, probabilities[:, place], f"curve c{k}")
        return _with_rows(chart, x, item, X).render()
    if case.classifies:
        p = case.est.predict_proba(rows)[:, 1]
        chart = Chart(x, [0.0, 1.0], (name, f"probability of {case.est.classes_[1]}"), item.name, height=220)
        return _with_rows(chart, x, item, X).line(x, p, "fit").render()
    mean, (low, high) = case.est.predict(rows), interval(case.est, rows)
    chart = Chart(x, np.concatenate([low, high]), (name, f"predicted {case.target}"), item.name, height=220)
    chart.band(x, low, high)
    if mean_is_banded(case):
        half = TWO_SIDED_95 * _std_of_mean(case, rows)
        chart.band(x, mean - half, mean + half)
    return _with_rows(chart, x, item, X).line(x, mean, "fit").render()


def _with_rows(chart: Chart, x: Array, item: Input, X: Array) -> Chart:
    """A tick at the foot of a chart of effect for every row: where there are none, the line is a guess."""
    across = item.axis(item.values(X))
    ticks = np.unique(np.round(chart.px(across[(across >= x[0]) & (across <= x[-1])]), 1))
    floor = float(max(chart.span))
    return chart.extra(f'<path class="bar faint" d="{"".join(f"M{a:.1f} {floor:.1f}v-6" for a in ticks)}"/>')


def mean_is_banded(case: Case) -> bool:
    """Whether it can be said how sure the mean itself is, without the noise."""
    return isinstance(case.est, ErrorBars) and case.est.likelihood == "gaussian"


def _std_of_mean(case: Case, rows: Array) -> Array:
    """Standard deviation of the mean: of the posterior without the noise, widened as in all error bars."""
    _, std = case.est.predict(rows, return_std=True, uncertainty="posterior")
    noise = case.est.predict_noise(rows)
    return case.est.spread_scale_ * np.sqrt(np.maximum(std**2 - noise**2, 0.0))


def _effect_of_levels(case: Case, item: Input, X: Array) -> str:
    """The prediction for each category, with all else at its median; of many, the most frequent."""
    indicators = list(item.columns)
    first = len(item.levels) - len(indicators)  # where the first level has no indicator, it is that of zeros
    names, rows, frequent = [], [], []
    for k, level in enumerate(item.levels):
        row = np.median(X, axis=0)
        row[indicators] = 0.0
        if k >= first:
            row[indicators[k - first]] = 1.0
        names.append(level or "(missing)")
        rows.append(row)
        frequent.append(float(np.sum(np.all(X[:, indicators] == row[indicators], axis=1))))
    shown = np.sort(np.argsort(-np.array(frequent), kind="stable")[:_LEVELS_SHOWN])
    chosen = np.array(rows)[shown]
    labels = [names[k] for k in shown]
    if several_classes(case):
        return shares(labels, case.est.predict_proba(chosen)[:, _shown_classes(case)], item.name)
    if case.classifies:
        p = case.est.predict_proba(chosen)[:, 1]
        return ranges(labels, p, p, p, f"probability of {case.est.classes_[1]}", item.name)
    mean, (low, high) = case.est.predict(chosen), interval(case.est, chosen)
    return ranges(labels, mean, low, high, f"predicted {case.target}", item.name)


def _two_numbers(inputs: Sequence[Input]) -> bool:
    return len(inputs) == 2 and not any(item.levels for item in inputs)
