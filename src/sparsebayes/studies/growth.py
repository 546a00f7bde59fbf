"""Old and new relevance vector machine and a support vector machine on growing data: Tipping & Faul 2003, Figs 2 to 5.

Times are of the processor, the fit alone, BLAS on one thread: on more, the old algorithm's wait for each other, which
takes more seconds than it saves and would be counted.  The support vector machine's is that of one fit, as in the
paper; its parameters come from a cross-validation of its own, whose time is told apart.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.model_selection import GridSearchCV
from sklearn.svm import SVC, SVR

from sparsebayes import RVC, RVR
from sparsebayes.report.style import BLUE, GREY, RED
from sparsebayes.studies.framework import BESIDE, COMPARABLE, HIGHER, LOWER, Row, of_mean_count
from sparsebayes.studies.old_rvm import fit_old_rvm
from sparsebayes.threads import one_thread
from sparsebayes.typing import Array

Draw = tuple[Array, NDArray[Any], Array, NDArray[Any]]

NEW, OLD, FIXED, SVM = "sequential", "old RVM", 'solver="mackay"', "SVM"
_COLOURS = {NEW: BLUE, OLD: RED, FIXED: "#e08214", SVM: GREY}
_MARKS = {NEW: "o-", OLD: "s--", FIXED: "^:", SVM: "d-."}
_C = (0.1, 1.0, 10.0)
_EPSILON = (0.05, 0.1, 0.2)


@dataclass(frozen=True)
class Growth:
    """A problem at growing sizes: how to draw it, its kernel, the paper's seconds, and what is measured."""

    make: Callable[[int, int], Draw]
    gamma: float
    classes: bool
    old_seconds: float
    new_seconds: float
    svm_seconds: float
    sizes: tuple[int, ...]
    old_limit: int
    fixed_limit: int
    draws: int
    at: int
    settings: str


@dataclass(frozen=True)
class Point:
    """One fit."""

    seconds: float
    error: float
    vectors: int
    tuning: float = 0.0


def measure(problem: Growth) -> dict[str, dict[int, list[Point]]]:
    """Every contestant at every size, draw by draw."""
    with one_thread():
        return _measure(problem)


def _measure(problem: Growth) -> dict[str, dict[int, list[Point]]]:
    _ours(problem, problem.make(60, 0), "sequential")  # what is imported on first use is no part of a fit
    found: dict[str, dict[int, list[Point]]] = {name: {} for name in (NEW, OLD, FIXED, SVM)}
    for n in problem.sizes:
        for seed in range(problem.draws):
            draw = problem.make(n, seed)
            found[NEW].setdefault(n, []).append(_ours(problem, draw, "sequential"))
            found[SVM].setdefault(n, []).append(_svm(problem, draw))
            if n <= problem.fixed_limit:
                found[FIXED].setdefault(n, []).append(_ours(problem, draw, "mackay"))
            if n <= problem.old_limit:
                found[OLD].setdefault(n, []).append(_old(problem, draw))
    return found


def _ours(problem: Growth, draw: Draw, solver: str) -> Point:
    begun = time.process_time()
    model = (RVC if problem.classes else RVR)(gamma=problem.gamma, solver=solver).fit(draw[0], draw[1])
    seconds = time.process_time() - begun
    return Point(seconds, _error(problem, model.predict(draw[2]), draw[3]), len(model.relevance_))


def _old(problem: Growth, draw: Draw) -> Point:
    begun = time.process_time()
    model = fit_old_rvm(draw[0], draw[1], problem.gamma, classes=problem.classes)
    seconds = time.process_time() - begun
    value = model.decision_function(draw[2])
    return Point(seconds, _error(problem, value > 0.0 if problem.classes else value, draw[3]), len(model.vectors))


def _svm(problem: Growth, draw: Draw) -> Point:
    grid: dict[str, tuple[float, ...]] = {"C": _C} if problem.classes else {"C": _C, "epsilon": _EPSILON}
    machine: Any = (SVC() if problem.classes else SVR()).set_params(gamma=problem.gamma)
    begun = time.process_time()
    search = GridSearchCV(machine, grid, refit=False).fit(draw[0], draw[1])
    chosen = time.process_time()
    model = machine.set_params(**search.best_params_).fit(draw[0], draw[1])
    seconds = time.process_time() - chosen
    error = _error(problem, model.predict(draw[2]), draw[3])
    return Point(seconds, error, len(model.support_), tuning=chosen - begun)


def _error(problem: Growth, predicted: Any, truth: NDArray[Any]) -> float:
    """Share of errors, or root mean square error against the function itself."""
    if problem.classes:
        return float(np.mean(predicted != truth))
    return float(np.sqrt(np.mean((np.ravel(predicted) - truth) ** 2)))


def judge(problem: Growth, found: dict[str, dict[int, list[Point]]], full: tuple[int, int]) -> list[Row]:
    """Rows at one size; ``full`` is the size and the number of draws that the paper has."""
    at, draws = problem.at, problem.draws
    reduced = "" if (at, draws) == full else f"{draws} of {full[1]} draws"
    new, old, svm = (found[name][at] for name in (NEW, OLD, SVM))
    error, vectors = _ratios(new, old, "error"), _ratios(new, old, "vectors")
    times = {name: _mean(points[at], "seconds") for name, points in found.items() if at in points}
    kind = "test error" if problem.classes else "RMS error"
    starts = "" if problem.classes else ", with its several starts"  # classes are searched from one place
    fixed = []
    if FIXED in times:
        why = "the same fixed point, but functions leave by the evidence, and stopping is by what a sweep gains"
        ratio = times[FIXED] / times[NEW]
        fixed = [Row(f'time, solver="mackay" / ours, N = {at}', None, ratio, BESIDE, why=why, reduced=reduced)]
    return [
        Row(
            f"time, old RVM / ours, N = {at}",
            problem.old_seconds / problem.new_seconds,
            times[OLD] / times[NEW],
            HIGHER,
            why=f"ours is the default{starts}; the old RVM is the fixed point as published",
            reduced=reduced,
            settings=problem.settings,
        ),
        Row(
            f"{kind}, ours / old RVM, N = {at}",
            1.0,
            float(np.mean(error)),
            LOWER,
            *COMPARABLE,
            "the paper calls them comparable; both are local maxima of one evidence",
            reduced=reduced,
            settings=problem.settings,
        ),
        Row(
            f"vectors, ours / old RVM, N = {at}",
            1.0,
            float(np.mean(vectors)),
            LOWER,
            *of_mean_count(1.0),
            "the paper calls the new algorithm slightly sparser; the old one drops no function before α = 1e12",
            reduced=reduced,
            settings=problem.settings,
        ),
        Row(
            f"time, ours / one SVM fit, N = {at}",
            problem.new_seconds / problem.svm_seconds,
            times[NEW] / times[SVM],
            BESIDE,
            why="paper: SVMlight; here scikit-learn's LIBSVM, with the parameters already known",
            reduced=reduced,
        ),
        Row(
            f"time, ours / SVM with its cross-validation, N = {at}",
            None,
            times[NEW] / (times[SVM] + _mean(svm, "tuning")),
            BESIDE,
            reduced=reduced,
        ),
        *fixed,
        *(
            Row(f"{what}, {name}, N = {at}", None, _mean(points, key), BESIDE, reduced=reduced)
            for what, key in ((kind, "error"), ("vectors", "vectors"))
            for name, points in (("ours", new), (OLD, old), ("SVM", svm))
        ),
    ]


def _ratios(ours: list[Point], theirs: list[Point], key: str) -> Array:
    """Draw by draw, so that what both have in common cancels; relative to the mean of theirs."""
    mean = _mean(theirs, key)
    return np.array(
        [1.0 + (getattr(a, key) - getattr(b, key)) / mean for a, b in zip(ours, theirs, strict=True)], dtype=np.float64
    )


def _mean(points: list[Point], key: str) -> float:
    return float(np.mean([getattr(point, key) for point in points]))


def curves(problem: Growth, found: dict[str, dict[int, list[Point]]]) -> dict[str, Any]:
    """What the picture shows: means over the draws."""
    kept = {
        name: {"N": list(sizes)}
        | {key: [_mean(p, key) for p in sizes.values()] for key in ("seconds", "error", "vectors")}
        for name, sizes in found.items()
    }
    return {"curves": kept, "error": "test error" if problem.classes else "RMS error", "draws": problem.draws}


def draw_growth(figure: Any, data: Mapping[str, Any]) -> None:
    """Time, error and number of vectors against N."""
    panels = figure.subplots(1, 3)
    labels = ("run time (s of processor)", data["error"], "vectors kept")
    for panel, key, label in zip(panels, ("seconds", "error", "vectors"), labels, strict=True):
        for name, curve in data["curves"].items():
            panel.plot(curve["N"], curve[key], _MARKS[name], color=_COLOURS[name], markersize=4, label=name)
        panel.set_xscale("log")
        panel.set_xlabel("N")
        panel.set_title(label, fontsize=9)
        panel.grid(alpha=0.3)
        if key != "error":
            panel.set_yscale("log")
    figure.legend(*panels[0].get_legend_handles_labels(), loc="outside lower center", ncols=4, fontsize=8)
