"""Ripley's two classes from 100 examples: four vectors, far from the boundary."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from sklearn.model_selection import GridSearchCV
from sklearn.svm import SVC

from sparsebayes import RVC, datasets
from sparsebayes.report.style import BLUE, RED
from sparsebayes.studies.framework import BESIDE, LOWER, ONE_FUNCTION, TIPPING, Outcome, Row, Study, of_rate

_SEED = 0
_GAMMA = 1 / 0.5**2


def run(quick: bool) -> Outcome:
    """Means over random choices of 100 of the 250 training rows."""
    draws = 20 if quick else 100
    data = datasets.load("ripley_synth")
    X, y = data.data[data.train_idx], data.target[data.train_idx]
    X_test, y_test = data.data[data.test_idx], data.target[data.test_idx]
    found, shown = [], {}
    for k in range(draws):
        rows = np.random.default_rng(_SEED + k).choice(len(X), 100, replace=False)
        model = RVC(gamma=_GAMMA, evidence="laplace").fit(X[rows], y[rows])
        svm = GridSearchCV(SVC().set_params(gamma=_GAMMA), {"C": [0.1, 1.0, 10.0, 100.0]}).fit(X[rows], y[rows])
        error, other = (100.0 * float(np.mean(m.predict(X_test) != y_test)) for m in (model, svm))
        found.append((error, len(model.relevance_), other, len(svm.best_estimator_.support_)))
        if k == 0:
            shown = _picture(model, svm.best_estimator_, X[rows], y[rows])
    error, kept, svm_error, support = np.mean(found, axis=0)
    reduced, given = f"{draws} of 100 draws" if quick else "", "gamma=1/0.5², evidence='laplace'"
    rate = of_rate(9.3, len(y_test), errors=1.0)
    return Outcome(
        [
            Row("test error, %", 9.3, float(error), LOWER, *rate, _WHICH, reduced=reduced, settings=given),
            Row("relevance vectors", 4.0, float(kept), LOWER, *ONE_FUNCTION, _WHICH, reduced=reduced, settings=given),
            Row("test error / that of the SVM", 9.3 / 10.6, float(error / svm_error), BESIDE, reduced=reduced),
            Row("test error of the SVM, %", 10.6, float(svm_error), BESIDE, reduced=reduced),
            Row("support vectors", 38.0, float(support), BESIDE, reduced=reduced),
        ],
        shown,
    )


_WHICH = "the paper shows one choice of 100 rows and does not say which; ours is the mean over choices"


def _picture(model: RVC, svm: SVC, X: Any, y: Any) -> dict[str, Any]:
    x1, x2 = np.linspace(-1.4, 1.1, 80), np.linspace(-0.3, 1.3, 80)
    plane = np.column_stack([v.ravel() for v in np.meshgrid(x1, x2)])
    return {
        "X": X,
        "y": y,
        "x1": x1,
        "x2": x2,
        "relevance": model.predict_proba(plane)[:, 1].reshape(80, 80),
        "support": svm.decision_function(plane).reshape(80, 80),
        "kept": X[model.relevance_],
        "held": X[svm.support_],
    }


def draw(figure: Any, data: Mapping[str, Any]) -> None:
    """Boundaries of both machines, vectors circled."""
    left, right = figure.subplots(1, 2, sharey=True)
    for panel, key, vectors, title, levels in (
        (left, "support", data["held"], "SVM", [0.0]),
        (right, "relevance", data["kept"], "RVM", [0.25, 0.5, 0.75]),
    ):
        for kind, mark, colour in ((0, "x", RED), (1, ".", BLUE)):
            panel.plot(*data["X"][data["y"] == kind].T, mark, color=colour, markersize=5, label=f"class {kind + 1}")
        panel.plot(
            *vectors.T,
            "o",
            markerfacecolor="none",
            markeredgecolor="black",
            markersize=9,
            label=f"{len(vectors)} vectors",
        )
        lines = panel.contour(data["x1"], data["x2"], data[key], levels, colors="black", linestyles="--", linewidths=1)
        if key == "relevance":
            panel.clabel(lines, fontsize=7)
        panel.set_title(f"{title}, boundary dashed" + (" with probabilities" if key == "relevance" else ""), fontsize=9)
        panel.legend(fontsize=7, loc="lower left")


STUDY = Study(
    "tipping-ripley",
    TIPPING,
    "Ripley's figure",
    "Two classes from 100 examples: error and vectors, beside a support vector machine's.",
    run,
    draw,
    "80 of 100 draws",
    seed=_SEED,
)
