"""The classification table: test error and vectors on the published splits, beside a support vector machine."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from sparsebayes import datasets
from sparsebayes.datasets import DatasetNotFoundError
from sparsebayes.studies.classification_table import PAPER, fit_split, widths
from sparsebayes.studies.drawing import bars, legend_below
from sparsebayes.studies.framework import BESIDE, LOWER, TIPPING, Outcome, Row, Study, standard_error

# Error (%) and vectors of the paper's support vector machines.
SVM = {
    "pima_ripley": (20.1, 109.0),
    "banana": (10.9, 135.2),
    "breast_cancer": (26.9, 116.7),
    "titanic": (22.1, 93.7),
    "waveform": (10.3, 146.4),
    "german": (22.6, 411.2),
    "image": (3.0, 166.6),
}
_USPS = (5.1, "one fit takes minutes: python -m sparsebayes.studies.usps")
_MEANS = (1.08, 0.17)
_SPLITS = {"banana": 1, "breast_cancer": 2, "titanic": 2, "waveform": 1}
_LONG = ("german", "image")


def splits_of(name: str) -> tuple[Any, Any, list[Any], list[Any]]:
    """Inputs, classes, and the published splits."""
    data = datasets.load(name)
    train, test = (part if isinstance(part, list) else [part] for part in (data.train_idx, data.test_idx))
    return data.data, data.target, train, test


def machine(X: Any, y: Any, train: Any, test: Any) -> tuple[float, int]:
    """Error (%) and vectors of a support vector machine with C and width by cross-validation."""
    scaled = StandardScaler().fit_transform(X[train])
    grid = {"svc__C": [0.3, 3.0, 30.0], "svc__gamma": widths(np.asarray(scaled))}
    search = GridSearchCV(make_pipeline(StandardScaler(), SVC()), grid).fit(X[train], y[train])
    return 100.0 * float(np.mean(search.predict(X[test]) != y[test])), len(search.best_estimator_[-1].support_)


def one_set(name: str, quick: bool) -> tuple[list[Row], dict[str, Any]]:
    """One data set; the published splits, or the first of them."""
    X, y, train, test = splits_of(name)
    count = min(_SPLITS.get(name, 1), len(train)) if quick else len(train)
    ours = [fit_split(X, y, a, b) for a, b in zip(train[:count], test[:count], strict=True)]
    theirs = [machine(X, y, a, b) for a, b in zip(train[:count], test[:count], strict=True)]
    errors, vectors = [fit["error"] for fit in ours], [fit["vectors"] for fit in ours]
    mean = {"error": float(np.mean(errors)), "vectors": float(np.mean(vectors))}
    svm_error, svm_vectors = (float(value) for value in np.mean(theirs, axis=0))
    reduced = f"{count} of {len(train)} splits" if count < len(train) else ""
    rate = mean["error"] / 100.0
    noise = 200.0 * np.sqrt(rate * (1.0 - rate) / (len(test[0]) * count))
    rows = [
        Row(
            f"{name}: test error, %",
            PAPER[name][0],
            mean["error"],
            LOWER,
            float(noise),
            "two standard errors of the rate on the test rows",
            reduced=reduced,
        ),
        Row(
            f"{name}: vectors",
            PAPER[name][1],
            mean["vectors"],
            LOWER,
            max(1.0, 2.0 * standard_error(vectors)),
            "one vector, or two standard errors of the splits",
            reduced=reduced,
        ),
        Row(f"{name}: test error of the SVM, %", SVM[name][0], svm_error, BESIDE, reduced=reduced),
        Row(f"{name}: vectors of the SVM", SVM[name][1], svm_vectors, BESIDE, reduced=reduced),
    ]
    return rows, mean | {"svm_error": svm_error, "svm_vectors": svm_vectors, "noise": float(noise)}


def run(quick: bool) -> Outcome:
    """All sets that are at hand."""
    rows, data = [], {}
    for name in PAPER:
        if quick and name in _LONG:
            rows.append(Row(f"{name}: test error, %", PAPER[name][0], None, why="left out of a quick run: minutes"))
            continue
        try:
            more, data[name] = one_set(name, quick)
        except DatasetNotFoundError as error:
            more = [Row(f"{name}: test error, %", PAPER[name][0], None, why=str(error))]
        rows += more
    rows.append(Row("usps: test error, %", _USPS[0], None, why=_USPS[1]))
    return Outcome(_means(data, quick) + rows, data)


def _means(data: Mapping[str, Any], quick: bool) -> list[Row]:
    """Over the sets that were run, each divided by the paper's figure for its support vector machine."""
    rows, over = [], f"over {len(data)} of the paper's 9 sets" + (", fewer splits" if quick else "")
    for k, what in enumerate(("error", "vectors")):
        mean = float(np.mean([found[what] / SVM[name][k] for name, found in data.items()]))
        same = float(np.mean([PAPER[name][k] / SVM[name][k] for name in data]))
        noise = np.sqrt(np.sum([(found["noise"] / SVM[name][0]) ** 2 for name, found in data.items()])) / len(data)
        tolerance, allowed = (float(noise), "two standard errors of the rates") if k == 0 else (0.0, "")
        why = f"the paper's own mean over these sets is {same:.3g}"
        rows.append(Row(f"normalised mean {what}", _MEANS[k], mean, LOWER, tolerance, allowed, why, reduced=over))
    return rows


def draw(figure: Any, data: Mapping[str, Any]) -> None:
    """Errors and vectors of both machines, the paper's and ours."""
    names = list(data)
    left, right = figure.subplots(1, 2)
    for panel, k, what, title in ((left, 0, "error", "test error (%)"), (right, 1, "vectors", "vectors kept")):
        groups = {
            "RVM, paper": [PAPER[n][k] for n in names],
            "RVM, ours": [data[n][what] for n in names],
            "SVM, scikit-learn": [data[n][f"svm_{what}"] for n in names],
            "SVM, paper": [SVM[n][k] for n in names],
        }
        bars(panel, names, groups, title)
    right.set_xscale("log")
    legend_below(figure, left)


STUDY = Study(
    "tipping-classification",
    TIPPING,
    "classification table",
    "Benchmarks in two classes: errors near a support vector machine's with a fraction of its vectors.",
    run,
    draw,
    "German, Image and USPS, and all but the first one or two of ten splits",
    size=(10.5, 6.0),
)
