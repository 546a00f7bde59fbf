"""Table 1: subset selection on sinc, Boston housing and Abalone, beside a support vector machine."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from sklearn.model_selection import GridSearchCV, KFold
from sklearn.svm import SVR

from sparsebayes.datasets import DatasetNotFoundError
from sparsebayes.studies.drawing import bars, legend_below
from sparsebayes.studies.framework import BESIDE, BO, LOWER, Outcome, Row, Study
from sparsebayes.studies.subset_table import OPEN, PAPER, splits_of, study

# Mean squared error and vectors of the paper's support vector machines.
_SVM = {"sinc": (1.24e-3, 35.03), "boston": (10.54, 162.40), "abalone": (4.48, 1188.0)}
_SPLITS = {"sinc": 40, "boston": 10, "abalone": 1}
# Rows of sinc come in order of x, so folds must be shuffled.
_FOLDS = KFold(5, shuffle=True, random_state=0)


def support_vectors(name: str) -> tuple[float, float]:
    """Mean squared error and vectors of one split, parameters by cross-validation."""
    split = next(splits_of(name, 1))
    rows, gamma = slice(0, 800), 0.5 / PAPER[name].sigma ** 2
    spread = float(np.std(split.y_train))
    grid = {"C": [spread, 4.0 * spread, 16.0 * spread], "epsilon": [0.1 * spread, 0.3 * spread]}
    search = GridSearchCV(SVR().set_params(gamma=gamma), grid, refit=False, cv=_FOLDS).fit(
        split.X_train[rows], split.y_train[rows]
    )
    machine = SVR().set_params(gamma=gamma, **search.best_params_).fit(split.X_train, split.y_train)
    return float(np.mean((machine.predict(split.X_test) - split.y_test) ** 2)), len(machine.support_)


def one_set(name: str, quick: bool) -> tuple[list[Row], dict[str, float]]:
    """Both readings of the algorithm, of which the first is the solver's default, and the machine beside."""
    count = _SPLITS[name] if quick else PAPER[name].splits
    found, other = study(name, count), study(name, count, returning="at once")
    reduced = f"{count} of {PAPER[name].splits} splits" if quick else ""
    # A single split has no standard error of its own; the paper prints the spread of its splits.
    spread = {"sinc": 0.41e-3, "boston": 6.91, "abalone": 0.25}[name] / np.sqrt(count)
    svm_error, svm_vectors = support_vectors(name)
    given = f'solver="subset", fit_intercept=False, gamma={0.5 / PAPER[name].sigma ** 2:g}'
    rows = [
        Row(
            f"{name}: mean squared error",
            found.paper_error,
            found.error,
            LOWER,
            2.0 * float(spread),
            "two standard errors by the paper's own spread",
            OPEN,
            reduced=reduced,
            settings=given,
        ),
        Row(
            f"{name}: vectors",
            found.paper_vectors,
            found.vectors,
            LOWER,
            why=OPEN,
            reduced=reduced,
            settings=given,
        ),
        Row(f"{name}: mean squared error, candidate at once", found.paper_error, other.error, BESIDE, reduced=reduced),
        Row(f"{name}: vectors, candidate at once", found.paper_vectors, other.vectors, BESIDE, reduced=reduced),
        Row(f"{name}: mean squared error of the SVM", _SVM[name][0], svm_error, BESIDE, reduced="one split"),
        Row(f"{name}: vectors of the SVM", _SVM[name][1], svm_vectors, BESIDE, reduced="one split"),
    ]
    return rows, {"error": found.error, "vectors": found.vectors, "svm_error": svm_error, "svm_vectors": svm_vectors}


def run(quick: bool) -> Outcome:
    """All sets that are at hand."""
    rows, data = [], {}
    for name in PAPER:
        try:
            more, data[name] = one_set(name, quick)
        except DatasetNotFoundError as error:
            more = [Row(f"{name}: mean squared error and vectors", PAPER[name].error, None, why=str(error))]
        rows += more
    return Outcome(rows, data)


def draw(figure: Any, data: Mapping[str, Any]) -> None:
    """Errors relative to the paper's, and vectors."""
    left, right = figure.subplots(1, 2)
    names = list(data)
    errors = {
        "paper": [1.0] * len(names),
        "ours": [data[n]["error"] / PAPER[n].error for n in names],
        "SVM, paper": [_SVM[n][0] / PAPER[n].error for n in names],
        "SVM, scikit-learn": [data[n]["svm_error"] / PAPER[n].error for n in names],
    }
    vectors = {
        "paper": [PAPER[n].vectors for n in names],
        "ours": [data[n]["vectors"] for n in names],
        "SVM, paper": [_SVM[n][1] for n in names],
        "SVM, scikit-learn": [data[n]["svm_vectors"] for n in names],
    }
    bars(left, names, errors, "mean squared error / that of the paper's SBLA")
    bars(right, names, vectors, "vectors kept")
    right.set_xscale("log")
    legend_below(figure, left)


STUDY = Study(
    "bo-table1",
    BO,
    "Table 1",
    "Subset selection: error and number of vectors, beside a support vector machine's.",
    run,
    draw,
    "60 of 100 splits of sinc, 90 of 100 of Boston, 9 of 10 of Abalone",
    size=(10.0, 4.0),
)
