"""The way from X to functions and back, the same for every estimator."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import check_is_fitted, validate_data

from sparsebayes.basis import Basis, Functions, Linear
from sparsebayes.basis.arrays import Place, is_elsewhere
from sparsebayes.estimators.checkpoint import CheckpointFile, fingerprint
from sparsebayes.estimators.cluster import (
    Cluster,
    bind_on_cluster,
    column_means,
    columns_of,
    is_dask,
    named,
    predict_blocks,
)
from sparsebayes.estimators.cluster_fits import dictionary_on
from sparsebayes.estimators.devices import check_arrays, map_elsewhere, to_host
from sparsebayes.estimators.dictionary import HALF_RANK, Dictionary, Kept, evaluate_kept
from sparsebayes.estimators.explained import Explained
from sparsebayes.estimators.portable import Portable
from sparsebayes.estimators.progress import Progress, silent_where_watched
from sparsebayes.estimators.rows import distinct, map_rows
from sparsebayes.estimators.summary import Described
from sparsebayes.estimators.support_report import SupportReport, make_report, name_functions
from sparsebayes.estimators.task import Task
from sparsebayes.estimators.validation import (
    STORAGES,
    check_compression,
    check_positive,
    check_restarts,
    check_weights,
    choose,
    resolve_solver,
)
from sparsebayes.inference import ParameterStatus, Solver
from sparsebayes.inference.objective.support import SUPPORTS, Support, SupportRule
from sparsebayes.posterior import Term

Array = NDArray[np.float64]
Index = NDArray[np.intp]


# What a fit leaves beside its public results.
_LEARNED = (
    "_reduction",
    "_origin",
    "_dictionary",
    "_read_with",
    "_functions",
    "_posteriors",
    "_supports",
    "_rule",
    "_training",
    "_kernel",
    "_scores",
    "_score_counts",
    "_refits",
    "_fold",
    "_calibration",
    "_fitted_to",
    "_effects",
    "_inclusion",
)


class Inputs(Described, Explained, Portable, ABC):
    """Validation of X, and the way from X to functions and back."""

    fit_intercept: bool
    solver: str | Solver
    support: str
    tol: float
    max_iter: int
    compression: str | bool
    storage: str
    checkpoint: str | None
    effort: str
    n_restarts: int
    random_state: int | np.random.RandomState | None
    verbose: int
    device: str | None
    coef_: Array
    intercept_: Any
    relevance_: Index
    n_features_in_: int
    _functions: Functions | None
    # Whether ``relevance_`` counts training rows, and kept functions are in their order.
    _by_row: ClassVar[bool] = False
    _posteriors: Any
    _supports: Sequence[Support]
    _rule: SupportRule

    @abstractmethod
    def _make_basis(self, X: Any, weights: Array) -> Basis | None:
        """Basis for these training rows; None means the columns of X."""

    @abstractmethod
    def _check_training(self, X: Any, y: Any, **targets: Any) -> tuple[Any, Any]:
        """Validate X and y of a fit; ``targets`` says what y may be."""

    @abstractmethod
    def _check_new(self, X: Any) -> Any:
        """Validate X of a prediction."""

    @abstractmethod
    def _store_relevance(self, dictionary: Dictionary, relevance: Index, rows: Index) -> None:
        """``relevance_`` and what goes with it, in terms of the rows or columns as given."""

    def _prepare(
        self,
        X: Any,
        y: NDArray[Any],
        sample_weight: ArrayLike | None,
        row_weight: Array | None = None,
        progress: Progress | None = None,
    ) -> tuple[Task, Dictionary, NDArray[Any], Index]:
        """Settings checked, rows of weight zero dropped, dictionary built: task, dictionary, targets, rows kept."""
        check_positive("tol", self.tol)
        check_positive("max_iter", self.max_iter, integer=True)
        choose("support", self.support, SUPPORTS)
        check_restarts(self.n_restarts)
        solver = self._checked_solver()
        given = check_weights(to_host(sample_weight), X.shape[0])
        weights = given if row_weight is None else given * row_weight
        rows = np.flatnonzero(weights > 0)
        if len(rows) < len(weights):
            X, y, weights, given = self._take(X, rows), y[rows], weights[rows], given[rows]
        if self._learned_gamma is not None:
            # Where parameters are learned rows are drawn, left out and counted: copies are one row that weighs as much.
            first, place = distinct(X, y)
            X, y, rows = X[first], y[first], rows[first]
            weights, given = (np.bincount(place, weights=each).astype(np.float64) for each in (weights, given))
        task = Task(
            X,
            weights,
            self.fit_intercept,
            solver,
            self.tol,
            self.max_iter,
            self.random_state,
            progress or Progress(-1),
            self._open_checkpoint(solver, X, y, weights),
            self.support,
            self.n_restarts,
            self._learned_gamma,
            vars(self).get("_thread"),
        )
        return task, self._build(task, self._make_basis(X, given), rows), y, rows

    def _build(self, task: Task, basis: Basis | None, rows: Index) -> Dictionary:
        """The dictionary of a basis on the rows of a task, given their numbers among all rows."""
        return Dictionary.build(
            task.X,
            basis,
            fit_intercept=self.fit_intercept,
            random_state=self.random_state,
            candidates=self._candidates(rows),
            by_row=self._by_row,
            compress=check_compression(self.compression),
            rank=self._largest_rank(task),
            single=choose("storage", self.storage, STORAGES) == "float32",
            weights=task.weights,
            thin=self._by_regression(task),
        )

    def _checked_solver(self) -> Solver:
        """The solver, its settings checked."""
        solver = resolve_solver(self.solver, self.effort)
        solver.check()
        return solver

    def _watch(self) -> Progress:
        """Progress of a fit."""
        return Progress(silent_where_watched(self.verbose, getattr(self.solver, "callback", None)))

    def _open_checkpoint(self, solver: Solver, *data: Any) -> CheckpointFile | None:
        if self.checkpoint is None:
            return None
        if solver.candidates is not None:
            raise ValueError("checkpoint: functions that candidates generates are not kept; use one or the other")
        return CheckpointFile.open(self.checkpoint, fingerprint(self, *map(to_host, data)))

    def _largest_rank(self, task: Task) -> float:
        """Largest rank, as a part of the functions, at which a compression is of use; zero where none is."""
        return HALF_RANK if task.solver.working_sets and not task.whole else 0.0

    def _by_regression(self, task: Task) -> bool:
        """Whether a search in batches on Gaussian rows chooses the functions."""
        solver = task.solver
        return self._gaussian_rows and solver.in_batches and solver.working_sets and not task.whole

    @property
    def _gaussian_rows(self) -> bool:
        """Whether all rows have the same Gaussian noise."""
        return False

    @property
    def _learned_gamma(self) -> str | None:
        """How the parameters of the kernel are to be learned; None where they are given."""
        return None

    def _store_kernel(
        self, kernel: Basis | None, parameters: dict[str, ParameterStatus] | None, gain: dict[str, float] | None
    ) -> None:
        """``kernel_``, ``kernel_status_`` and ``kernel_gain_``, where parameters were learned."""
        if parameters is not None:
            self.kernel_ = kernel
            self.kernel_status_ = parameters
        if gain is not None:
            self.kernel_gain_ = gain

    @abstractmethod
    def terms(self) -> list[Term]:
        """What each kept term does for the model: one :class:`Term` each, the most important of an output first."""

    def __sklearn_is_fitted__(self) -> bool:
        return "relevance_" in vars(self)

    def _forget(self) -> None:
        """Drop what an earlier fit left, so that a failed fit leaves nothing that could predict."""
        learned = [name for name in vars(self) if name.endswith("_") and not name.startswith("_")]
        for name in (*learned, *_LEARNED):
            if name in vars(self):
                delattr(self, name)

    def _store_functions(self, kept: Kept) -> None:
        self._functions = kept.functions
        self.relevance_functions_ = [] if kept.functions is None else kept.functions.specifications()

    def _take(self, X: Any, rows: Index) -> Any:
        """Rows of positive weight."""
        if is_elsewhere(X):
            place = Place.of(X)
            return place.xp.take(X, place.indices(rows), axis=0)
        return X[rows]

    def _arrive(self, X: Any, y: Any, **targets: Any) -> tuple[Any, Any]:
        """Validate training data that are on a device, or are to go there."""
        if self.device is not None and not is_elsewhere(X):
            place = Place.named(self.device)
            X, y = validate_data(self, X, y, dtype=np.float64, **targets)
            X = place.put(X)
        X, y = check_arrays(X, y, multi_output=bool(targets.get("multi_output")))
        self.n_features_in_ = int(X.shape[1])
        return X, y

    def _gather(self, X: Any, y: Any, progress: Progress, *, numeric: bool) -> tuple[Cluster, Task, Dictionary]:
        """The same as ``_prepare`` for data in partitions."""
        check_positive("tol", self.tol)
        check_positive("max_iter", self.max_iter, integer=True)
        solver = self._checked_solver()
        choose("support", self.support, SUPPORTS)
        choose("storage", self.storage, STORAGES)
        check_compression(self.compression)
        cluster = Cluster.gather(X, y, numeric)
        self.n_features_in_ = cluster.n_features
        columns = columns_of(X, without=y)
        if columns is not None:
            validate_data(self, columns, skip_check_array=True)
        basis = self._make_basis(cluster, np.ones(1))
        functions = bind_on_cluster(basis or Linear(), cluster, self.random_state)
        shift = column_means(cluster) if basis is None and self.fit_intercept else None
        dictionary = dictionary_on(cluster, functions, basis or Linear(), self.fit_intercept, shift)
        weights = np.array([float(cluster.n_rows)])
        task = Task(
            cluster,
            weights,
            self.fit_intercept,
            solver,
            self.tol,
            self.max_iter,
            self.random_state,
            progress,
            support=self.support,
        )
        return cluster, task, dictionary

    def _candidates(self, rows: Index) -> Index | None:
        """Functions of the basis that may be chosen, given the rows of positive weight; None is all."""
        return None

    def _map(self, X: Any, work: Callable[[Array], Any], width: int | None = None, dtype: Any = np.float64) -> Any:
        """Apply ``work`` to the values of the kept functions on new rows, a block of rows at a time.

        What it finds for inputs of a device goes back there; for a Dask collection that is a Dask array of ``width``
        columns (None: a vector) of this ``dtype``.
        """
        check_is_fitted(self)
        if is_dask(X):
            columns, names = columns_of(X), vars(self).get("feature_names_in_")
            if columns is not None:  # names are compared, or missed, once; partitions then go by them
                validate_data(self, columns, reset=False, skip_check_array=True)
            return predict_blocks(X, lambda block: self._map(named(block, names), work), width, dtype)
        linear = self._linear()
        if is_elsewhere(X):
            size = self.n_features_in_ + (0 if self._functions is None else len(self._functions))
            return map_elsewhere(X, size, lambda part: work(self._values(part)))
        return map_rows(lambda rows: work(self._evaluate(rows, linear)), self._check_new(X))

    def _values(self, X: Any) -> Array:
        """Values of the kept functions on new rows, on the host."""
        if is_dask(X):
            raise ValueError("X is a Dask collection: this needs its rows here; use X.compute(), or predict(X)")
        if is_elsewhere(X):
            check_is_fitted(self)
            return self._evaluate(self._check_new(X), self._linear())
        return self._map(X, lambda values: values)

    def _evaluate(self, X: Any, linear: Index | None) -> Array:
        """Values of the kept functions on validated rows; models saved before columns were centred have no offset."""
        return evaluate_kept(self._functions, X, linear, vars(self).get("X_offset_"))

    def _linear(self) -> Index | None:
        """Columns of X that are the kept functions; None where these are others."""
        return None

    @abstractmethod
    def _output_labels(self) -> list[list[Any]]:
        """Target or class of every weight of every posterior."""

    def support_report(self, inclusion: bool = False) -> SupportReport:
        """What can be said of each kept function: evidence lost without it, signal-to-noise ratio, sign probability.

        Parameters
        ----------
        inclusion : bool, default=False
            Also the probability that it carries an effect (``inclusion_``), which takes about as long as the fit where
            it is asked for the first time, and needs the data of the fit.

        Returns
        -------
        SupportReport
            A table: printable, and a pandas DataFrame by ``to_frame()``.
        """
        check_is_fitted(self)
        names = name_functions(self.relevance_, self.relevance_functions_)
        report = make_report(self._output_labels(), self._posteriors, self._supports, names, self._rule)
        return replace(report, inclusion=self._inclusion_of_kept(report.output)) if inclusion else report

    def _inclusion_of_kept(self, labels: tuple[Any, ...]) -> Array:
        """Inclusion probability of every kept function of every output; NaN for intercepts, which are no candidates."""
        known = np.atleast_2d(self.inclusion_)
        of_output = list(getattr(self, "classes_", range(len(known)))) if len(known) > 1 else []
        places = np.concatenate([posterior.functions for posterior in self._posteriors])
        found = np.full(len(places), np.nan)
        for row, (place, label) in enumerate(zip(places, labels, strict=True)):
            if place < len(self.relevance_):
                found[row] = known[of_output.index(label) if of_output else 0, self.relevance_[place]]
        return found

    def _centres(self, n_kept: int) -> Array:
        """Centres of the kept functions without the intercept, NaN for a function that has none."""
        if self._functions is None or self._functions.centres is None:
            return np.full((n_kept, self.n_features_in_), np.nan)
        return self._functions.centres[:n_kept]
