"""The regression table: width by cross-validation and by the evidence, beside a support vector machine."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from sklearn.model_selection import GridSearchCV, KFold
from sklearn.svm import SVR

from sparsebayes import RVR
from sparsebayes.studies.dictionary_learning import PAPER as SVM
from sparsebayes.studies.dictionary_learning import Split, error
from sparsebayes.studies.dictionary_learning import draw as drawn
from sparsebayes.studies.drawing import bars, legend_below
from sparsebayes.studies.framework import (
    BESIDE,
    LOWER,
    TIPPING,
    Outcome,
    Row,
    Study,
    Tolerance,
    of_mean_count,
    of_squares,
)

# Error and vectors of the paper's relevance vector machine; ``SVM`` has those of its support vector machine.
RVM = {
    "sinc": (0.0326, 6.7),
    "sinc, uniform": (0.0187, 7.0),
    "friedman2": (3505.0, 6.9),
    "friedman3": (0.0164, 11.5),
    "boston": (7.46, 39.0),
}
_MEANS = (0.865, 0.15)
_DRAWS = {"sinc": 10, "sinc, uniform": 10, "friedman2": 3, "friedman3": 3, "boston": 2}
_FULL = 100
_FOLDS = KFold(5, shuffle=True, random_state=0)
_BOSTON_TEST = 25
_MORE = "several starts end at a higher evidence, often with more functions; the paper's search has one"
_FOLDED = "the paper chose its widths by five folds, among candidates that it does not list"
_WHY = {
    "boston": "random splits of our own: the paper does not list its own",
    "friedman2": _MORE,
    "friedman3": _MORE,
    "sinc": _FOLDED,
    "sinc, uniform": _FOLDED,
}
_SETTINGS = {"cross-validation": "gamma by cross-validation on the first draw", "evidence": 'gamma="evidence"'}
Found = dict[str, dict[str, np.ndarray]]


def by_evidence(name: str) -> Callable[[Split], Any]:
    """The width of every draw by the evidence."""
    return lambda split: RVR(gamma="evidence").fit(*split[:2])


def by_validation(name: str) -> Callable[[Split], Any]:
    """The width by cross-validation on the first draw, kept for the others."""
    split = drawn(name, 0)
    widths = np.sqrt(split[0].shape[1]) * np.geomspace(0.5, 4.0, 6)
    search = GridSearchCV(
        RVR(), {"gamma": 1.0 / widths**2}, cv=_FOLDS, scoring="neg_mean_squared_error", refit=False
    ).fit(*split[:2])
    return lambda split: RVR(**search.best_params_).fit(*split[:2])


def by_machine(name: str) -> Callable[[Split], Any]:
    """A support vector machine, its three parameters by cross-validation on the first draw."""
    split = drawn(name, 0)
    spread, d = float(np.std(split[1])), split[0].shape[1]
    grid = {
        "C": [spread, 10.0 * spread],
        "epsilon": [0.05 * spread, 0.2 * spread],
        "gamma": [0.1 / d, 0.4 / d, 1.6 / d],
    }
    search = GridSearchCV(SVR(), grid, cv=_FOLDS, scoring="neg_mean_squared_error", refit=False).fit(*split[:2])
    return lambda split: SVR(**search.best_params_).fit(*split[:2])


WAYS = {"cross-validation": by_validation, "evidence": by_evidence, "SVM": by_machine}


def measure(name: str, draws: int) -> dict[str, np.ndarray]:
    """Error and vectors, draw by draw, of each way."""
    found = {}
    for way, prepare in WAYS.items():
        fit, results = prepare(name), []
        for seed in range(draws):
            split = drawn(name, seed)
            model = fit(split)
            kept = model.support_ if way == "SVM" else model.relevance_
            results.append((error(model, split, root=SVM[name][2]), float(len(kept))))
        found[way] = np.array(results)
    return found


def allowed(name: str, paper: float, draws: int, root: bool) -> Tolerance:
    """How far an error may be above the paper's by the chance of the draws: of the weights, or of the test rows."""
    degrees = _BOSTON_TEST if name == "boston" else RVM[name][1]
    return of_squares(paper, degrees, max(draws, 2), root=root)


def run(quick: bool) -> Outcome:
    """All five sets; errors are divided by those of the support vector machine beside, the paper's by the paper's own.

    The paper's noise and test sets are not known well enough to compare errors themselves: the support vector machines
    differ by as much.
    """
    found = {name: measure(name, _DRAWS[name] if quick else _FULL) for name in RVM}
    rows = []
    for way, settings in _SETTINGS.items():
        rows += _means(found, way, settings, quick)
    for name in RVM:
        count = _DRAWS[name] if quick else _FULL
        reduced, root = f"{count} of {_FULL} draws" if quick else "", SVM[name][2]
        svm_error, svm_vectors = (float(value) for value in np.mean(found[name]["SVM"], axis=0))
        paper = RVM[name][0] / SVM[name][0]
        for way, settings in _SETTINGS.items():
            error_, vectors = (float(value) for value in np.mean(found[name][way], axis=0))
            rows += [
                Row(
                    f"{name}: error / that of the SVM, width by {way}",
                    paper,
                    error_ / svm_error,
                    LOWER,
                    *allowed(name, paper, count, root),
                    _WHY[name],
                    reduced=reduced,
                    settings=settings,
                ),
                Row(
                    f"{name}: vectors, width by {way}",
                    RVM[name][1],
                    vectors,
                    LOWER,
                    *of_mean_count(RVM[name][1]),
                    _WHY[name],
                    reduced=reduced,
                    settings=settings,
                ),
                Row(f"{name}: error, width by {way}", RVM[name][0], error_, BESIDE, reduced=reduced, settings=settings),
            ]
        rows += [
            Row(f"{name}: error of the SVM", SVM[name][0], svm_error, BESIDE, reduced=reduced),
            Row(f"{name}: vectors of the SVM", SVM[name][1], svm_vectors, BESIDE, reduced=reduced),
        ]
    data = {name: {way: np.mean(values, axis=0) for way, values in ways.items()} for name, ways in found.items()}
    return Outcome(rows, data)


def _means(found: Found, way: str, settings: str, quick: bool) -> list[Row]:
    """Means over the sets: ours divided by the machine beside, the paper's by the paper's own."""
    rows, reduced = [], "fewer draws" if quick else ""
    for k, what in enumerate(("error", "vectors")):
        means = {name: float(np.mean(ways[way][:, k])) for name, ways in found.items()}
        ours = float(np.mean([means[name] / np.mean(ways["SVM"][:, k]) for name, ways in found.items()]))
        paper = float(np.mean([RVM[name][k] / SVM[name][k] for name in found]))
        label = f"mean over the sets of {what} / that of the SVM, width by {way}"
        sizes = [_DRAWS[name] if quick else _FULL for name in found]
        parts = [
            allowed(name, RVM[name][0] / SVM[name][0], count, SVM[name][2])[0]
            for name, count in zip(found, sizes, strict=True)
        ]
        chance = float(np.sqrt(np.sum(np.square(parts)))) / len(parts), "those of the sets, combined"
        rows += [
            Row(
                label,
                paper,
                ours,
                LOWER,
                *(chance if k == 0 else of_mean_count(paper)),
                f"the paper prints {_MEANS[k]}",
                reduced=reduced,
                settings=settings,
            ),
            Row(
                f"{label}, ours by the paper's SVM",
                paper,
                float(np.mean([means[name] / SVM[name][k] for name in found])),
                BESIDE,
                reduced=reduced,
                settings=settings,
            ),
        ]
    return rows


def draw(figure: Any, data: Mapping[str, Any]) -> None:
    """Errors and vectors, ours divided by those of the machine beside, the paper's by the paper's own."""
    names = list(data)
    for panel, k, title in zip(figure.subplots(1, 2), (0, 1), ("error", "vectors"), strict=True):
        groups = {
            "paper, by its SVM": [RVM[n][k] / SVM[n][k] for n in names],
            "ours, cross-validation": [data[n]["cross-validation"][k] / data[n]["SVM"][k] for n in names],
            "ours, evidence": [data[n]["evidence"][k] / data[n]["SVM"][k] for n in names],
            "SVM beside, by the paper's SVM": [data[n]["SVM"][k] / SVM[n][k] for n in names],
        }
        bars(panel, names, groups, f"{title} / that of the SVM")
    legend_below(figure, figure.axes[0])


STUDY = Study(
    "tipping-regression",
    TIPPING,
    "regression table",
    "Five regression problems: error and number of vectors, beside a support vector machine's.",
    run,
    draw,
    "90 of 100 draws of sinc, 97 of Friedman's, 98 splits of Boston",
    size=(10.5, 5.0),
)
