"""From a table to a tested model: what is predicted, what it is predicted from, a test part, and the fit."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone, is_classifier
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import train_test_split

from sparsebayes.estimators import RVC, RVR, SparseBayesClassifier, SparseBayesRegressor
from sparsebayes.inference import SOLVERS, Solver

from .encoder import learn_encoder
from .model import Split, TableModel
from .table import Table, as_table, list_names
from .target import CLASSIFICATION, TASKS, Target, read_target

Array = NDArray[np.float64]
Index = NDArray[np.intp]

# The width of kernel functions is learned by evidence where the user does not choose, from up to so many rows: it takes
# dozens of searches, and hardly changes with more.
_ROWS_FOR_WIDTH = 500
COLUMNS = "columns"
KERNELS = ("rbf", "linear", "poly", "laplacian", COLUMNS)
_WITHOUT_GAMMA = ("linear", COLUMNS)
# The solver that widths are learned with.
_OF_WIDTH = "sequential"
_GAMMAS = ("scale", "auto", "evidence", "ard", "multiscale")
# With fewer rows than this, all are needed to learn from.
_FEWEST_TO_SPLIT = 20


@dataclass(frozen=True)
class Options:
    """What a user may ask of :func:`learn`.

    Attributes
    ----------
    task : {"regression", "classification"}, optional
        By default, what the target suggests.
    kernel : str
        A kernel by name, or ``"columns"`` for a sparse linear model of the columns.
    gamma : str or float, optional
        Kernel parameter; by default it is learned by evidence.
    noise_variance : float, optional
        Fixes the noise (regression).
    solver : str
        A solver by name.
    test : float
        Part of the rows to hold back.
    seed : int
        Of the shuffle that chooses them.
    drop, categorical : tuple of str
        Columns to leave out, and columns of numbers that are names of categories.
    """

    task: str | None = None
    kernel: str = "rbf"
    gamma: str | float | None = None
    noise_variance: float | None = None
    solver: str = "sequential"
    test: float = 0.2
    seed: int = 0
    drop: tuple[str, ...] = ()
    categorical: tuple[str, ...] = ()

    def check(self) -> None:
        """Raise where an option makes no sense, before anything is read."""
        _choose("--kernel", self.kernel, KERNELS)
        _choose("--solver", self.solver, tuple(SOLVERS))
        if self.task is not None:
            _choose("--task", self.task, TASKS)
        if not 0.0 <= self.test <= 0.9:
            raise ValueError(f"--test {self.test}: expected a fraction of the rows, 0 to 0.9")
        if self.seed < 0:
            raise ValueError(f"--seed {self.seed}: expected a whole number of at least 0")
        if self.gamma is not None and self.kernel in _WITHOUT_GAMMA:
            raise ValueError(f"--gamma {self.gamma} has no meaning with --kernel {self.kernel}; leave it out")
        if isinstance(self.gamma, str) and self.gamma not in _GAMMAS:
            raise ValueError(f"--gamma {self.gamma!r}: expected a positive number, {list_names(list(_GAMMAS))}")


@dataclass(frozen=True)
class Study:
    """A model with the rows it was learned from and tested on.

    Attributes
    ----------
    model : TableModel
        The model.
    table : Table
        The rows that have a target.
    target : Target
        Their targets.
    X : ndarray
        Their inputs, encoded.
    train, test : ndarray of int
        Which of them were learned from, and which were held back.
    notes : list of str
        What was left out or made up.
    seconds : float
        How long the fit took.
    """

    model: TableModel
    table: Table
    target: Target
    X: Array
    train: Index
    test: Index
    notes: list[str]
    seconds: float

    @property
    def linear(self) -> bool:
        """Whether the functions are columns."""
        return isinstance(self.model.estimator, SparseBayesRegressor | SparseBayesClassifier)

    @property
    def candidates(self) -> tuple[int, str]:
        """How many functions there were to choose from, and what they are."""
        return (self.X.shape[1], "inputs") if self.linear else (len(self.train), "training rows")


def learn(
    data: Any, target: str | None, options: Options | None = None, observe: Callable[..., bool | None] | None = None
) -> Study:
    """Learn a model from a table and hold a test part back.

    Parameters
    ----------
    data : Table, mapping of columns, or data frame
        The table.
    target : str
        Column to predict.
    options : Options, optional
        What else the user asks for.
    observe : callable, optional
        Called with every record of the search and its state.
    """
    options = options or Options()
    options.check()
    table = as_table(data)
    whole = read_target(table, target, options.task)
    _check_names(table, options, whole.name)
    train, test = _split(whole, options)
    encoder, notes = learn_encoder(
        table, whole.rows[train], leave_out={whole.name, *options.drop}, categorical=options.categorical
    )
    if len(whole.rows) < table.n_rows:
        notes.insert(0, f"{table.n_rows - len(whole.rows)} rows left out: they have no {whole.name!r}")
    rows = table.take(whole.rows)
    X = encoder.encode(rows).X
    estimator = _estimator(whole.task, options)
    began = time.perf_counter()
    notes += _fit(estimator, X[train], whole.values[train], options, observe)
    seconds = time.perf_counter() - began
    fraction = options.test if len(test) else 0.0
    model = TableModel(estimator, encoder, whole.name, Split(fraction, options.seed, table.fingerprint))
    return Study(model, rows, whole, X, train, test, notes, seconds)


def reopen(model: TableModel, data: Any) -> Study:
    """Put a model and a table together again; rows of another table than that of the training are all test rows."""
    table = as_table(data)
    task = CLASSIFICATION if model.classifies else "regression"
    target = read_target(table, model.target, task)
    rows = table.take(target.rows)
    X = model.encoder.encode(rows).X
    same = table.fingerprint == model.split.fingerprint
    options = Options(test=model.split.fraction, seed=model.split.seed)
    train, test = _split(target, options) if same else (np.empty(0, dtype=np.intp), np.arange(len(target.rows)))
    notes = [] if same else ["the table is not the one that the model was learned from: all its rows are test rows"]
    return Study(model, rows, target, X, train, test, notes, float("nan"))


def _split(target: Target, options: Options) -> tuple[Index, Index]:
    n = len(target.values)
    if options.test == 0.0 or n < _FEWEST_TO_SPLIT:
        return np.arange(n), np.empty(0, dtype=np.intp)
    return _shuffled(target.values, int(np.ceil(options.test * n)), options.seed, target.task == CLASSIFICATION)


def _shuffled(y: NDArray[Any], n_second: int, seed: int, classifies: bool) -> tuple[Index, Index]:
    """Two parts of the rows, at random; classes in proportion, where every class can have a row on both sides."""
    fits = classifies and min(n_second, len(y) - n_second) >= len(np.unique(y))
    first, second = train_test_split(
        np.arange(len(y)), test_size=n_second, random_state=seed, stratify=y if fits else None
    )
    return np.sort(first), np.sort(second)


def _check_names(table: Table, options: Options, target: str) -> None:
    for option, names in (("--drop", options.drop), ("--categorical", options.categorical)):
        absent = [name for name in names if name not in table.names]
        if absent:
            raise ValueError(f"{option} {list_names(absent)}: {table.path} has the columns {list_names(table.names)}")
        if target in names:
            raise ValueError(f"{option} {target!r} is the target")


def _estimator(task: str, options: Options) -> Any:
    gamma = "scale" if options.gamma is None else options.gamma
    if task == CLASSIFICATION:
        if options.noise_variance is not None:
            raise ValueError("--noise-variance has no meaning in classification; leave it out")
        return SparseBayesClassifier() if options.kernel == COLUMNS else RVC(options.kernel, gamma=gamma)
    noise = options.noise_variance
    if options.kernel == COLUMNS:
        return SparseBayesRegressor(noise_variance=noise)
    return RVR(options.kernel, gamma=gamma, noise_variance=noise)


def _fit(
    estimator: Any, X: Array, y: NDArray[Any], options: Options, observe: Callable[..., bool | None] | None
) -> list[str]:
    """Fit the estimator, its width by evidence where the user does not choose; what there is to say about that."""
    notes: list[str] = []
    if options.gamma is None and options.kernel not in _WITHOUT_GAMMA:
        if len(y) <= _ROWS_FOR_WIDTH and options.solver == _OF_WIDTH:
            estimator.set_params(gamma="evidence")
        else:
            some = np.arange(len(y))
            if len(y) > _ROWS_FOR_WIDTH:
                _, some = _shuffled(y, _ROWS_FOR_WIDTH, options.seed, is_classifier(estimator))
                notes.append(f"the width was learned from {_ROWS_FOR_WIDTH} of the {len(y)} training rows")
            first: Any = clone(estimator)
            first.set_params(gamma="evidence")
            _search(first, X[some], y[some], _OF_WIDTH, observe)
            estimator.set_params(kernel=first.kernel_)
    _search(estimator, X, y, options.solver, observe)
    return notes


def _search(estimator: Any, X: Array, y: NDArray[Any], solver: str, observe: Callable[..., bool | None] | None) -> None:
    chosen: Solver = SOLVERS[solver]()
    chosen.callback = observe
    estimator.set_params(solver=chosen)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # the summary says how the search ended
        estimator.fit(X, y)
    estimator.set_params(solver=solver)  # a callback is not data and cannot be saved


def _choose(option: str, value: str, known: tuple[str, ...]) -> None:
    if value not in known:
        raise ValueError(f"{option} {value!r}: expected one of {list_names(list(known))}")
