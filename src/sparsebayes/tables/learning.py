"""From a table to a tested model: what is predicted, what it is predicted from, a test part, and the fit."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import train_test_split

from sparsebayes.basis import RBF, Linear
from sparsebayes.estimators import RVC, RVR, SparseBayesClassifier, SparseBayesRegressor
from sparsebayes.estimators.checks import CONSTANT, NOISES
from sparsebayes.inference import SOLVERS, Sequential, Solver
from sparsebayes.inference.search.starts import EFFORTS
from sparsebayes.likelihood import ROBUST

from .choice import Choice, by_folds
from .encoder import learn_encoder
from .model import Split, TableModel, row_checksums
from .table import Table, as_table, did_you_mean, list_names
from .target import CLASSIFICATION, REGRESSION, TASKS, Target, check_counts, check_target, read_target

Array = NDArray[np.float64]
Index = NDArray[np.intp]

# The width of kernel functions is learned by evidence where the user does not choose, from up to so many rows: it takes
# dozens of searches, and hardly changes with more.
_ROWS_FOR_WIDTH = 500
AUTO, ROWS, COLUMNS, BOTH = "auto", "rbf", "columns", "both"
KERNELS = (AUTO, ROWS, "linear", "poly", "laplacian", COLUMNS, BOTH)
LIKELIHOODS = ("gaussian", "outliers", "student-t", "poisson")
_WITHOUT_GAMMA = ("linear", COLUMNS, BOTH)
# Widths that are tried, as multiples of the usual one: where they are not learned, and beside the columns.
_WIDTHS = (0.25, 0.5, 1.0, 2.0, 4.0)
_WIDTHS_BESIDE_COLUMNS = (1.0, 0.5, 0.25)
# The solver that widths are learned with.
_OF_WIDTH = "sequential"
_LEARNED = ("evidence", "ard", "multiscale")
_GAMMAS = ("scale", "auto", *_LEARNED)
# Where more of the training rows than this have a twin among them, a row that equals one need not be one.
_ALIKE = 0.2
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
        A kernel by name, ``"columns"`` for a sparse linear model of the columns, ``"both"`` for the columns and
        Gaussian functions on the rows together, or ``"auto"``: what suits the rows best of these.
    likelihood : {"gaussian", "outliers", "student-t", "poisson"}
        Of the noise (regression).
    gamma : str or float, optional
        Kernel parameter, or how it is learned: ``"evidence"`` (one width), ``"ard"`` (one for each input) or
        ``"multiscale"`` (several together); by default one is learned by evidence.
    noise_variance : float, optional
        Fixes the noise (regression).
    noise : {"constant", "varies"}
        Whether the noise is the same everywhere, or is learned as a function of the inputs (regression).  Functions and
        their width are chosen with the noise constant.
    solver : str
        A solver by name.
    effort : {"fast", "default", "thorough"}
        How many places the search begins from (the sequential solver).
    test : float
        Part of the rows to hold back.
    seed : int
        Of the shuffle that chooses them.
    drop, categorical, use : tuple of str
        Columns to leave out, columns of numbers that are names of categories, and columns to take although they look
        like names of the rows.
    """

    task: str | None = None
    kernel: str = AUTO
    likelihood: str = "gaussian"
    gamma: str | float | None = None
    noise_variance: float | None = None
    noise: str = CONSTANT
    solver: str = "sequential"
    effort: str = "default"
    test: float = 0.2
    seed: int = 0
    drop: tuple[str, ...] = ()
    categorical: tuple[str, ...] = ()
    use: tuple[str, ...] = ()

    def check(self) -> None:
        """Raise where an option makes no sense, before anything is read."""
        _choose("--kernel", self.kernel, KERNELS)
        _choose("--solver", self.solver, tuple(SOLVERS))
        _choose("--effort", self.effort, EFFORTS)
        if self.effort != "default" and SOLVERS[self.solver] is not Sequential:
            raise ValueError(f"--effort {self.effort} has no meaning with --solver {self.solver}; leave it out")
        _choose("--likelihood", self.likelihood, LIKELIHOODS)
        _choose("--noise", self.noise, NOISES)
        self._check_noise()
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

    def _check_noise(self) -> None:
        if self.noise == CONSTANT:
            return
        for option, value, usual in (
            ("--likelihood", self.likelihood, "gaussian"),
            ("--noise-variance", self.noise_variance, None),
            ("--solver", self.solver, _OF_WIDTH),
        ):
            if value != usual:
                raise ValueError(f"--noise {self.noise} has no meaning with {option} {value}; leave one of them out")


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
    choice : Choice or None
        What else was tried.
    same : bool
        Whether the table is that of the training, so that ``train`` are all its training rows.
    """

    model: TableModel
    table: Table
    target: Target
    X: Array
    train: Index
    test: Index
    notes: list[str]
    seconds: float
    choice: Choice | None = None
    same: bool = True

    @property
    def linear(self) -> bool:
        """Whether the functions are columns, and nothing else."""
        return self.model.functions == COLUMNS

    @property
    def candidates(self) -> tuple[int, str]:
        """How many functions there were to choose from, and what they are."""
        if self.model.functions == BOTH:
            return self.X.shape[1] + len(self.train), "inputs and training rows"
        return (self.X.shape[1], "inputs") if self.linear else (len(self.train), "training rows")


class Interrupted(KeyboardInterrupt):
    """``Ctrl-C`` during :func:`learn`: what was found until then is its ``study``."""

    def __init__(self, study: Study) -> None:
        super().__init__("interrupted; the study so far is in the attribute study")
        self.study = study


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
    check_target(table, whole)
    if options.likelihood == "poisson" and whole.task == REGRESSION:
        check_counts(table, whole)
        whole = replace(whole, reason="its values are counts (--likelihood poisson)")
    _check_names(table, options, whole.name)
    train, test = _split(whole, options)
    encoder, notes = learn_encoder(
        table,
        whole.rows[train],
        leave_out={whole.name, *options.drop},
        categorical=options.categorical,
        use=(*options.use, *options.categorical),
    )
    notes = [*table.notes, *notes]
    if table.meaning(whole.name).removed:
        notes.append(f"{whole.name!r}: read as numbers, without {list_names(list(table.meaning(whole.name).removed))}")
    if len(whole.rows) < table.n_rows:
        notes.insert(0, f"{table.n_rows - len(whole.rows)} rows left out: they have no {whole.name!r}")
    rows = table.take(whole.rows)
    X = encoder.encode(rows).X
    began = time.perf_counter()
    fitted = _Fits(whole.task, options, X[train], whole.values[train], observe).fit()
    seconds = time.perf_counter() - began
    fraction, train = options.test if len(test) else 0.0, train[fitted.rows]
    seen = np.sort(row_checksums(X[train], whole.values[train]))
    split = Split(fraction, options.seed, table.fingerprint, seen)
    model = TableModel(fitted.estimator, encoder, whole.name, split)
    study = Study(model, rows, whole, X, train, test, notes + fitted.notes, seconds, fitted.choice)
    if fitted.interrupted:
        raise Interrupted(study)
    return study


def reopen(model: TableModel, data: Any) -> Study:
    """Put a model and a table together again; of another table, the rows that it did not learn from are test rows."""
    table = as_table(data)
    task = CLASSIFICATION if model.classifies else REGRESSION
    if model.target not in table.names:
        raise ValueError(
            f"the target {model.target!r} is not a column of {table.path}, whose columns are {list_names(table.names)}"
            f"{did_you_mean([model.target], table.names)}"
        )
    target = replace(read_target(table, model.target, task), reason="as in the fit")
    rows = table.take(target.rows)
    X = model.encoder.encode(rows).X
    same = table.fingerprint == model.split.fingerprint
    options = Options(test=model.split.fraction, seed=model.split.seed)
    if same:
        train, test = _split(target, options)
        sums, seen = row_checksums(X[train], target.values[train]), model.split.rows
        if len(seen) and np.all(np.isin(seen, sums)):
            train = train[np.isin(sums, seen)]  # fewer than all where an interrupt left a model of some of them
        else:  # test rows of models from before were drawn whatever their targets are
            train, test = _split(target, options, spread=False)
        notes = []
    else:
        train, test, notes = _seen_before(model, X, target)
    return Study(model, rows, target, X, train, test, notes, float("nan"), same=same)


def _seen_before(model: TableModel, X: Array, target: Target) -> tuple[Index, Index, list[str]]:
    """Rows of another table: those that the model learned from are no test of it."""
    everything, nothing = np.arange(len(target.rows)), np.empty(0, dtype=np.intp)
    known = np.isin(row_checksums(X, target.values), model.split.rows)
    first = "the table is not the one that the model was learned from"
    if not np.any(known):
        return nothing, everything, [f"{first}: all its rows are test rows"]
    counts = np.unique(model.split.rows, return_counts=True)[1]
    if float(np.sum(counts[counts > 1])) > _ALIKE * len(model.split.rows):
        note = f"{int(known.sum())} rows equal rows that it learned from, as many of those equal one another: they stay"
        return nothing, everything, [f"{first}: all its rows are test rows", note]
    note = f"{int(known.sum())} of its {len(known)} rows are rows that the model learned from, and no test of it"
    return np.flatnonzero(known), np.flatnonzero(~known), [f"{first}, but {note}"]


def _split(target: Target, options: Options, *, spread: bool = True) -> tuple[Index, Index]:
    """Rows to learn from and rows to test on; numbers that are predicted are spread alike over both."""
    n = len(target.values)
    if options.test == 0.0 or n < _FEWEST_TO_SPLIT:
        return np.arange(n), np.empty(0, dtype=np.intp)
    n_test, classifies = int(np.ceil(options.test * n)), target.task == CLASSIFICATION
    if spread and not classifies:
        return _spread(target.values, n_test, options.seed)
    return _shuffled(target.values, n_test, options.seed, classifies)


def _spread(y: NDArray[Any], n_second: int, seed: int) -> tuple[Index, Index]:
    """Two parts of the rows: of every so many in the order of their targets, one at random is in the second.

    Where a few rows are far from all others, what a test says depends on how many of them happen to be in it: over ten
    seeds the error on Boston's houses varies by a fifth less than with rows at random, and so does the share of rows in
    their error bars.
    """
    rng = np.random.default_rng(seed)
    order = np.lexsort((rng.random(len(y)), y))
    ends = np.linspace(0, len(y), n_second + 1).astype(np.intp)
    second = order[rng.integers(ends[:-1], ends[1:])]
    return np.setdiff1d(order, second), np.sort(second)


def _shuffled(y: NDArray[Any], n_second: int, seed: int, classifies: bool) -> tuple[Index, Index]:
    """Two parts of the rows, at random; classes in proportion, where every class can have a row on both sides."""
    fits = classifies and min(n_second, len(y) - n_second) >= len(np.unique(y))
    first, second = train_test_split(
        np.arange(len(y)), test_size=n_second, random_state=seed, stratify=y if fits else None
    )
    return np.sort(first), np.sort(second)


def _check_names(table: Table, options: Options, target: str) -> None:
    for option, names in (("--drop", options.drop), ("--categorical", options.categorical), ("--use", options.use)):
        absent = [name for name in names if name not in table.names]
        if absent:
            raise ValueError(
                f"{option} {list_names(absent)}: {table.path} has the columns {list_names(table.names)}"
                f"{did_you_mean(absent, table.names)}"
            )
        if target in names:
            raise ValueError(f"{option} {target!r} is the target")


@dataclass
class _Fits:
    """The fits of one study: the width of the functions, what suits the rows, and the model that is kept."""

    task: str
    options: Options
    X: Array
    y: NDArray[Any]
    observe: Callable[..., bool | None] | None

    def __post_init__(self) -> None:
        self.notes: list[str] = []
        self.choice: Choice | None = None
        self.interrupted = False
        self.estimator: Any = None
        self.rows: Index = np.arange(len(self.y))  # those that the estimator was fitted to

    def fit(self) -> _Fits:
        """Fit what the options ask for; an interrupt leaves the best so far."""
        options, kernel = self.options, self.options.kernel
        if kernel == AUTO and options.gamma is not None:
            kernel = ROWS
        try:
            if kernel == AUTO:
                self._choose_and_fit()
            elif kernel == BOTH:
                self._fit(self._make(BOTH, self._width_beside_columns(self._width())))
            elif kernel not in _WITHOUT_GAMMA and options.gamma is None:
                self._fit_with_width(kernel)
            elif options.gamma in _LEARNED and self._robust:
                self._fit(self._make(kernel, self._width(kernel)))
            else:
                self._fit(self._make(kernel))
            if options.noise != CONSTANT:
                self._vary()
        except KeyboardInterrupt:
            if self.estimator is None:
                raise
            self.interrupted = True
            self.notes.append("interrupted: the model is the best so far, and what was still to be tried was not")
        return self

    def _vary(self) -> None:
        """The model that was kept once more, with its width as it was found and the noise as a function."""
        again: Any = clone(self.estimator)
        again.set_params(noise=self.options.noise)
        if "kernel_" in vars(self.estimator):
            again.set_params(kernel=self.estimator.kernel_, gamma="scale")
        self._fit(again)
        if not self.estimator.noise_varies_:
            self.notes.append("the noise is constant: that it varies with the inputs is not clear enough")

    def _choose_and_fit(self) -> None:
        """Functions on the rows, the columns, or both together."""
        self._fit_with_width(ROWS)
        rows = self.estimator
        made = {ROWS: rows if isinstance(rows.kernel, RBF) else self._make(ROWS, rows.kernel_)}
        made[COLUMNS] = self._make(COLUMNS)
        # Outliers among rows left out are beyond the bars of the mixture.
        if self.options.likelihood != "outliers":
            made[BOTH] = self._make(BOTH, self._width_beside_columns(made[ROWS].kernel))
            search = partial(_search, solver=self.options.solver, observe=self.observe)
            self.choice = by_folds(made, self.X, self.y, self.options.seed, search)
        if self.choice is None:
            columns = self._fit(self._make(COLUMNS), keep=False)
            scores = {ROWS: rows.log_marginal_likelihood_, COLUMNS: columns.log_marginal_likelihood_}
            self.choice = Choice(max(scores, key=lambda name: scores[name]), scores, "evidence")
        if self.choice.kept != ROWS:
            self._fit(made[self.choice.kept])
        self.notes.append(self.choice.in_words())

    def _fit_with_width(self, kernel: str) -> None:
        """Functions on the rows, their width by evidence."""
        if kernel == ROWS and (self._several() or self._robust):
            best = self._best_width(kernel, self._usual_widths(_WIDTHS))
            self.notes.append(f"of {len(_WIDTHS)} widths, {best.width:.3g} has the most evidence")
            self._fit(self._make(kernel, best))
        elif len(self.y) <= _ROWS_FOR_WIDTH and self.options.solver == _OF_WIDTH and not self._robust:
            self._fit(self._make(kernel).set_params(gamma="evidence"))
        else:
            self._fit(self._make(kernel, self._width(kernel)))

    def _width(self, kernel: str = ROWS) -> Any:
        """The kernel with its width by evidence, from not too many rows; with Gaussian noise where it is robust."""
        if len(self.y) > _ROWS_FOR_WIDTH:
            self.notes.append(f"the width was learned from {_ROWS_FOR_WIDTH} of the {len(self.y)} training rows")
        first = self._make(kernel)
        first.set_params(gamma=self.options.gamma if self.options.gamma in _LEARNED else "evidence")
        if self._robust:
            first.set_params(likelihood="gaussian")
            self.notes.append(f"the width was learned with Gaussian noise, the model with {self.options.likelihood}")
        self._on_some_rows(first, _OF_WIDTH)
        return first.kernel_

    def _width_beside_columns(self, alone: Any) -> Any:
        """The kernel whose width has the most evidence beside the columns, which take over what is straight.

        In classification it is the width that was learned without them: Laplace's evidence grows as widths shrink, and
        rows left out do not agree (Pima: the log loss is .50 at the usual width, .76 at half of it, with 33 nats more).
        """
        if self.task == CLASSIFICATION:
            return alone
        return self._best_width(BOTH, [alone, *self._usual_widths(_WIDTHS_BESIDE_COLUMNS)])

    def _usual_widths(self, factors: Iterable[float]) -> list[Any]:
        """Kernels of multiples of the width that gamma="scale" has with standardised inputs."""
        usual = float(np.sqrt(self.X.shape[1]))
        return [RBF(factor * usual) for factor in factors]

    def _best_width(self, way: str, tried: list[Any]) -> Any:
        """The kernel with the most evidence on not too many rows."""
        found = []
        for kernel in tried:
            model = self._make(way, kernel)
            self._on_some_rows(model, self.options.solver)
            found.append(model.log_marginal_likelihood_)
        return tried[int(np.argmax(found))]

    def _on_some_rows(self, estimator: Any, solver: str) -> None:
        """Fit to not too many rows; of what an interrupt leaves, kept only where there is nothing else."""
        some = np.arange(len(self.y))
        if len(self.y) > _ROWS_FOR_WIDTH:
            _, some = _shuffled(self.y, _ROWS_FOR_WIDTH, self.options.seed, self.task == CLASSIFICATION)
        try:
            _search(estimator, self.X[some], self.y[some], solver, self.observe)
        except KeyboardInterrupt:
            if self.estimator is None and "relevance_" in vars(estimator):
                self.estimator, self.rows = estimator, some
                if len(some) < len(self.y):
                    self.notes.append(f"the model is of {len(some)} of the {len(self.y)} training rows")
            raise

    @property
    def _robust(self) -> bool:
        """Whether outliers are allowed for; the estimators do not learn widths then."""
        return self.options.likelihood in ROBUST

    def _several(self) -> bool:
        """Whether there are more than two classes."""
        return self.task == CLASSIFICATION and len(np.unique(self.y)) > 2

    def _make(self, kernel: str, width: Any = None) -> Any:
        """An unfitted estimator; ``width`` is a kernel whose width is known."""
        options = self.options
        gamma = "scale" if options.gamma is None else options.gamma
        if self.task == CLASSIFICATION:
            if options.noise_variance is not None:
                raise ValueError("--noise-variance has no meaning in classification; leave it out")
            if options.likelihood != "gaussian":
                raise ValueError(f"--likelihood {options.likelihood} has no meaning in classification; leave it out")
            if options.noise != CONSTANT:
                raise ValueError(f"--noise {options.noise} has no meaning in classification; leave it out")
            if kernel in (COLUMNS, BOTH):
                return SparseBayesClassifier(Linear() + width if kernel == BOTH else None, effort=options.effort)
            made = RVC(kernel, gamma=gamma) if width is None else RVC(width)
            return made.set_params(effort=options.effort)
        further: dict[str, Any] = {
            "noise_variance": options.noise_variance,
            "likelihood": options.likelihood,
            "effort": options.effort,
        }
        if kernel in (COLUMNS, BOTH):
            return SparseBayesRegressor(Linear() + width if kernel == BOTH else None, **further)
        return RVR(kernel, gamma=gamma, **further) if width is None else RVR(width, **further)

    def _fit(self, estimator: Any, *, keep: bool = True) -> Any:
        """Fit an estimator and keep it, also where it was interrupted."""
        try:
            _search(estimator, self.X, self.y, self.options.solver, self.observe)
        finally:
            if keep and "relevance_" in vars(estimator):
                self.estimator = estimator
        return estimator


def _search(estimator: Any, X: Array, y: NDArray[Any], solver: str, observe: Callable[..., bool | None] | None) -> None:
    kind = SOLVERS[solver]
    chosen: Solver = Sequential(effort=estimator.effort) if kind is Sequential else kind()
    chosen.callback = observe
    estimator.set_params(solver=chosen)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)  # the summary says how the search ended
            estimator.fit(X, y)
    finally:
        estimator.set_params(solver=solver)  # a callback is not data and cannot be saved


def _choose(option: str, value: str, known: tuple[str, ...]) -> None:
    if value not in known:
        raise ValueError(f"{option} {value!r}: expected one of {list_names(list(known))}")
