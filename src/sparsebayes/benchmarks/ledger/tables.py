"""Real tables: shuffled by the seed, cut into training and test rows, inputs standardised, gamma = 1 / inputs."""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sparsebayes.benchmarks.ledger.cases import Array, Case, NotAtHandError, Problem, standardised

# File and number of training rows.
_REGRESSION = {
    "energy": ("uci20/energy.csv", 600),
    "yacht": ("uci20/yacht.csv", 250),
    "laser": ("regression/laser.csv", 700),
    "airfoil": ("regression/airfoil.csv", 1200),
    "concrete": ("uci20/concrete.csv", 900),
    "wine_red": ("uci20/wine_red.csv", 1300),
    "abalone": ("regression/abalone.csv", 3000),
    "california": ("regression/california_housing.csv.gz", 3000),
    "cpu_small": ("regression/cpu_small.csv.gz", 3000),
    "protein": ("uci20/protein.csv.gz", 3000),
}
_TWO_CLASSES = {"spambase": ("classification/spambase.csv.gz", 1500)}
_SEVERAL_CLASSES = {
    "digits": ("classification/digits.csv.gz", 1078),
    "segment": ("classification/segment.csv.gz", 800),
    "satimage": ("classification/satimage.csv.gz", 800),
    "letter": ("classification/letter.csv.gz", 2000),
}
RAETSCH = ("banana", "breast_cancer", "german", "image", "titanic", "waveform")
# Targets that are not the last column.
_TARGETS = ("median_house_value",)
_LABELS = ("Class", "class", "classes", "lettr", "spam", "target")
_TEST_ROWS = 2000


def data_folder() -> Path:
    """Where the tables are: the folder that the environment names, else the one beside the project."""
    return Path(os.environ.get("SPARSEBAYES_DATA") or Path("..", "shared", "data")).expanduser()


# Ways to take several classes, by what is added to the name of a table: jointly with one set of functions that a
# regression chooses, which is the default, or Laplace's evidence; jointly with functions of each class's own; and one
# against the rest.
_WAYS: dict[str, dict[str, Any]] = {
    "": {},
    "_laplace": {"evidence": "laplace"},
    "_joint": {"shared_support": False},
    "_ovr": {"multi_class": "ovr"},
}
OTHER_WAYS = tuple(ending for ending in _WAYS if ending)


def table_problems() -> list[Problem]:
    """All problems of real tables; several classes jointly, and one against the rest."""
    found = [_problem(name, "regression", partial(_regression, *where)) for name, where in _REGRESSION.items()]
    found += [Problem(name, ("classification", "papers"), partial(_published, name)) for name in RAETSCH]
    found += [_problem(name, "classification", partial(_classes, *where, {})) for name, where in _TWO_CLASSES.items()]
    for name, where in _SEVERAL_CLASSES.items():
        for ending, options in _WAYS.items():
            found.append(_problem(name + ending, "classification", partial(_classes, *where, options)))
    return found


def _problem(name: str, kind: str, draw: Callable[[int], Case]) -> Problem:
    return Problem(name, (kind,), draw)


def _file(name: str) -> Path:
    path = data_folder() / name
    if not path.is_file():
        raise NotAtHandError(f"{name} is not in the folder that SPARSEBAYES_DATA names")
    return path


def _frame(name: str) -> Any:
    path = _file(name)
    try:
        import pandas as pd
    except ImportError as error:
        raise NotAtHandError(f"{name} needs pandas, the extra 'files'") from error
    return pd.read_csv(path)


def _shuffled(n_rows: int, n_train: int, seed: int) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    order = np.random.default_rng(seed).permutation(n_rows)
    return order[:n_train], order[n_train : n_train + _TEST_ROWS]


def _regression(file: str, n_train: int, seed: int) -> Case:
    """Numeric columns without gaps; the target standardised over the whole table."""
    frame = _frame(file).select_dtypes("number").dropna()
    name = next((name for name in _TARGETS if name in frame), frame.columns[-1])
    y: Array = frame.pop(name).to_numpy(np.float64)
    X: Array = frame.to_numpy(np.float64)
    train, test = _shuffled(len(y), n_train, seed)
    y = (y - y.mean()) / y.std()
    return _kernel_case(X, y, train, test)


def _classes(file: str, n_train: int, settings: dict[str, Any], seed: int) -> Case:
    frame = _frame(file)
    name = next((name for name in _LABELS if name in frame), frame.columns[-1])
    y = frame.pop(name).astype(str).to_numpy(str)
    X: Array = frame.select_dtypes("number").to_numpy(np.float64)
    train, test = _shuffled(len(y), n_train, seed)
    return _kernel_case(X, y, train, test, classes=True, settings=settings)


def _published(name: str, seed: int) -> Case:
    """One of the splits that were published with Raetsch's sets; the seed is its number."""
    with np.load(_file(f"ratsch/{name}.npz")) as content:
        splits = len(content["train_idx"])
        if seed >= splits:
            raise NotAtHandError(f"{name} has {splits} published splits, and seed {seed} asks for another")
        train, test = content["train_idx"][seed], content["test_idx"][seed]
        return _kernel_case(content["X"].astype(np.float64), content["y"], train, test, classes=True)


def _kernel_case(X: Array, y: NDArray[Any], train: NDArray[np.intp], test: NDArray[np.intp], **rest: Any) -> Case:
    learned, judged = standardised(X[train], X[test])
    return Case(learned, y[train], judged, y[test], gamma=1.0 / X.shape[1], **rest)
