"""The 'blocks' table: steps alone, and steps hidden among Gaussians, beside order-recursive matching pursuit."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, cast

import numpy as np

from sparsebayes import Sequential, SparseBayesRegressor, datasets
from sparsebayes.basis import RBF, Heaviside
from sparsebayes.inference.status import Record
from sparsebayes.report.style import BLUE, RED
from sparsebayes.studies.drawing import fit_panel
from sparsebayes.studies.framework import BESIDE, LECTURE, LOWER, Outcome, Row, Study
from sparsebayes.studies.ormp import ormp
from sparsebayes.typing import Array

_N, _NOISE = 1024, 0.1
_WIDTHS = (0.01, 0.02, 0.05, 0.1)
# Mean squared error at which the pursuit stops: far below the noise, as the Bayesian fits end.
_ERROR = 1e-4


@dataclass(frozen=True)
class Printed:
    """A column of the lecture's table: functions kept, moves of each kind, and the pursuit's functions and moves."""

    kept: int
    iterations: int
    additions: int
    deletions: int
    reestimates: int
    pursuit: int
    pursuit_iterations: int


PAPER = {"Heaviside": Printed(12, 21, 11, 0, 10, 12, 11), "Heaviside + Gauss": Printed(12, 224, 107, 96, 21, 82, 82)}


def dictionary(name: str) -> Any:
    """1024 steps, or these and 4 x 1024 Gaussians of four widths."""
    basis: Any = Heaviside()
    if name == "Heaviside":
        return basis
    for width in _WIDTHS:
        basis = basis + RBF(width)
    return basis


def values(name: str, X: Array) -> Array:
    """The same functions as a matrix, for the pursuit."""
    steps = (X >= X.T).astype(np.float64)
    if name == "Heaviside":
        return steps
    return np.column_stack([steps, *(np.exp(-(((X - X.T) / width) ** 2)) for width in _WIDTHS)])


def compare(name: str, X: Array, y: Array) -> tuple[list[Row], dict[str, Any]]:
    """Both algorithms on one dictionary."""
    printed = PAPER[name]
    begun = time.process_time()
    model = SparseBayesRegressor(dictionary(name), fit_intercept=False, noise_variance=_NOISE**2).fit(X, y)
    seconds = time.process_time() - begun
    history = cast(list[Record], model.history_)
    # Moves are counted where they are the lecture's: one at a time, in one search.  A batch adds several functions, and
    # drops others while it settles.
    single = SparseBayesRegressor(
        dictionary(name), fit_intercept=False, noise_variance=_NOISE**2, solver=Sequential(batch=1)
    )
    moves = Counter[str]()
    for entry in cast(list[Record], single.fit(X, y).history_):
        moves[entry.move] += entry.n_moves
    begun = time.process_time()
    found = ormp(values(name, X), y, error=_ERROR, n_functions=200)
    pursuit_seconds = time.process_time() - begun
    kept = len(model.relevance_functions_)
    reestimates = moves["reestimate"] + moves["sweep"]
    settings = "fit_intercept=False, noise_variance=0.1²"
    singly = f"solver=Sequential(batch=1), {settings}"
    joint = "all precisions are re-estimated together where that gains, which saves single moves"
    rows = [
        Row(f"{name}: functions kept", printed.kept, kept, LOWER, settings=settings),
        Row(f"{name}: iterations", printed.iterations, moves.total(), LOWER, why=joint, settings=singly),
        Row(
            f"{name}: additions",
            printed.additions,
            moves["add"],
            BESIDE,
            why="the first function counts here",
            settings=singly,
        ),
        Row(f"{name}: deletions", printed.deletions, moves["delete"], BESIDE, settings=singly),
        Row(f"{name}: re-estimations", printed.reestimates, reestimates, BESIDE, settings=singly),
        Row(f"{name}: seconds / seconds of ORMP", _TIMES[name], seconds / pursuit_seconds, LOWER, settings=settings),
        Row(
            f"{name}: functions of ORMP",
            printed.pursuit,
            len(found.indices),
            BESIDE,
            why="" if name == "Heaviside" else "the lecture does not give the widths of its Gaussians",
        ),
    ]
    data = {"mean": model.predict(X), "at": np.unique(model.relevance_ % _N), "errors": found.errors, "kept": kept}
    return rows, data | {"objective": [entry.n_active for entry in history]}


# Seconds of the Bayesian algorithm over those of the pursuit.
_TIMES = {"Heaviside": 1.34 / 1.19, "Heaviside + Gauss": 43.3 / 24.6}


def run(quick: bool) -> Outcome:
    """Both dictionaries."""
    X, y = datasets.make_blocks(_N)
    rows: list[Row] = []
    data: dict[str, Any] = {"x": X[:, 0], "y": y}
    for name in PAPER:
        more, found = compare(name, X, y)
        rows += more
        data[name] = found
    return Outcome(rows, data)


def draw(figure: Any, data: Mapping[str, Any]) -> None:
    """The signal and the steps kept among all functions, and how many functions both searches held on the way."""
    left, right = figure.subplots(1, 2)
    found = data["Heaviside + Gauss"]
    shown = {"x": data["x"], "y": data["y"], "grid": data["x"], "mean": found["mean"], "at": found["at"]}
    fit_panel(left, shown, "blocks, 5120 functions to choose from", "functions kept")
    for name, mark in (("Heaviside", "o"), ("Heaviside + Gauss", "")):
        active, count = data[name]["objective"], len(data[name]["errors"])
        both = "" if mark else f", {name}: ends at "
        right.plot(
            range(count), range(count), color=RED, linewidth=4, alpha=0.3, label=both and f"ORMP{both}{count - 1}"
        )
        right.plot(range(1, len(active) + 1), active, color=BLUE, label=both and f"sparse Bayes{both}{active[-1]}")
        if mark:
            right.plot(len(active), active[-1], mark, color=BLUE, label=f"both, {name}: end at {active[-1]}")
    right.set_xlabel("step")
    right.set_ylabel("functions in the model")
    right.legend(fontsize=7)


STUDY = Study(
    "lecture4-blocks",
    LECTURE,
    "'blocks' table",
    "A signal of steps, from steps alone and from steps among four times as many Gaussians: functions and moves.",
    run,
    draw,
    size=(10.0, 4.0),
)
