"""The way from X to functions and back: what all estimators share, and where the functions come from."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import replace
from inspect import Signature, signature
from typing import TYPE_CHECKING, Any, ClassVar, Self, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import clone
from sklearn.utils import TransformerTags
from sklearn.utils.validation import check_array, check_consistent_length, check_is_fitted, validate_data

from sparsebayes.basis import RBF, Basis, Functions, Laplacian, Linear, PolynomialKernel, Precomputed, Sigmoid
from sparsebayes.basis import Callable as CallableKernel
from sparsebayes.basis.arrays import Place, is_elsewhere, to_host
from sparsebayes.chunks import Chunks
from sparsebayes.estimators.checkpoint import CheckpointFile, fingerprint
from sparsebayes.estimators.checks import (
    PRECISIONS,
    check_compression,
    check_magnitude,
    check_positive,
    check_restarts,
    check_weights,
    choose,
    resolve_solver,
)
from sparsebayes.estimators.cluster import (
    Cluster,
    bind_on_cluster,
    column_means,
    columns_of,
    is_dask,
    named,
    predict_blocks,
    variance_of_inputs,
)
from sparsebayes.estimators.cluster_fits import dictionary_on
from sparsebayes.estimators.devices import check_arrays, check_new_array, map_elsewhere, scale_elsewhere
from sparsebayes.estimators.dictionary import HALF_RANK, Dictionary, Kept, evaluate_kept, is_operator
from sparsebayes.estimators.explained import Explained
from sparsebayes.estimators.portable import Portable
from sparsebayes.estimators.progress import Progress, silent_where_watched
from sparsebayes.estimators.rows import distinct, map_rows, row_blocks
from sparsebayes.estimators.selecting import Selects
from sparsebayes.estimators.summary import Described, function_names
from sparsebayes.estimators.support_report import SupportReport, make_report
from sparsebayes.estimators.task import Task
from sparsebayes.inference import ParameterStatus, Solver
from sparsebayes.inference.objective import SUPPORTS, Support, SupportRule
from sparsebayes.posterior import Term
from sparsebayes.typing import Array, Index

if TYPE_CHECKING:
    from sklearn.base import BaseEstimator as Base
else:
    Base = object


_NAMED: dict[str, Callable[[float, int, float], Basis]] = {
    "rbf": lambda gamma, degree, coef0: RBF(width=1.0 / np.sqrt(gamma)),
    "linear": lambda gamma, degree, coef0: PolynomialKernel(degree=1, gamma=1.0, coef0=0.0),
    "poly": lambda gamma, degree, coef0: PolynomialKernel(degree=degree, gamma=gamma, coef0=coef0),
    "laplacian": lambda gamma, degree, coef0: Laplacian(width=1.0 / gamma),
    "sigmoid": lambda gamma, degree, coef0: Sigmoid(gamma=gamma, coef0=coef0),
    "precomputed": lambda gamma, degree, coef0: Precomputed(),
}
LEARNED = ("evidence", "ard", "multiscale")


def resolve_gamma(gamma: Any, X: Array, weights: Array) -> float:
    """``gamma`` as a number; ``"scale"`` and ``"auto"`` mean what they mean in scikit-learn.

    Where it is to be learned, this is where learning begins.
    """
    names = ("scale", "auto", *LEARNED)
    if isinstance(gamma, str):
        if choose("gamma", gamma, names, ", or a positive number") == "auto":
            return 1.0 / X.shape[1]
        if is_elsewhere(X) or isinstance(X, Cluster):
            variance = variance_of_inputs(X) if isinstance(X, Cluster) else scale_elsewhere(X, weights)
            return 1.0 / (X.shape[1] * variance) if variance > 0.0 else 1.0
        # Variance of all entries, each row as often as its weight says.
        mean = np.average(X, axis=0, weights=weights).mean()
        variance = float(np.average((X - mean) ** 2, axis=0, weights=weights).mean())
        return 1.0 / (X.shape[1] * variance) if variance > 0.0 else 1.0
    check_positive("gamma", gamma, otherwise=f", or one of {', '.join(map(repr, names))}")
    return float(gamma)


def resolve_kernel(kernel: Any, gamma: Any, degree: int, coef0: float, X: Array, weights: Array) -> Basis:
    """Basis from a name, a Basis, which is copied, or a callable ``k(X, Z)``."""
    if isinstance(kernel, Basis):
        return cast(Basis, clone(kernel))
    if callable(kernel):
        return CallableKernel(cast(Callable[[Array, Array], ArrayLike], kernel))
    name = choose("kernel", kernel, tuple(_NAMED))
    needs_gamma = name in ("rbf", "poly", "laplacian", "sigmoid")
    return _NAMED[name](resolve_gamma(gamma, X, weights) if needs_gamma else 1.0, degree, coef0)


class MayBePrecomputed(Base):
    """A precomputed kernel: the columns of X belong to the training rows, as scikit-learn's tools must know."""

    kernel: Any

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.pairwise = self._precomputed
        return tags

    @property
    def _precomputed(self) -> bool:
        return isinstance(self.kernel, Precomputed) or (isinstance(self.kernel, str) and self.kernel == "precomputed")


# Parameters that say how a model is looked for, and not what it is a model of.
_OF_THE_SEARCH = (
    "solver",
    "tol",
    "max_iter",
    "compression",
    "storage",
    "checkpoint",
    "effort",
    "n_restarts",
    "verbose",
    "device",
)

# What a fit leaves beside its public results.
_LEARNED = (
    "_fitted_with",
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
    "_rows_of_kept",
    "_numbers",
    "_n_candidates",
    "_drawn",
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
    _numbers: Index
    _n_candidates: int
    # Parameters of the fit, all but those of the search.
    _fitted_with: dict[str, Any] | None = None
    # Whether ``relevance_`` counts training rows, and kept functions are in their order.
    _by_row: ClassVar[bool] = False
    _posteriors: Any
    _supports: Sequence[Support]
    _rule: SupportRule

    @property
    def _as_fitted(self) -> Self:
        """The fitted estimator with the parameters of its fit, to be asked what these are: they may be others by now.

        It is the estimator itself before a fit, and where a file from before they were kept does not have them.
        """
        if self._fitted_with is None:
            return self
        as_fitted = object.__new__(type(self))
        vars(as_fitted).update(vars(self) | self._fitted_with)
        return as_fitted

    @abstractmethod
    def _make_basis(self, X: Any, weights: Array) -> Basis | None:
        """Basis for these training rows, no object of the caller's; None means the columns of X."""

    @abstractmethod
    def _check_training(self, X: Any, y: Any, **targets: Any) -> tuple[Any, Any]:
        """Validate X and y of a fit; ``targets`` says what y may be."""

    @abstractmethod
    def _check_new(self, X: Any) -> Any:
        """Validate X of a prediction."""

    @abstractmethod
    def _store_relevance(self, dictionary: Dictionary, relevance: Index, rows: Index) -> None:
        """``relevance_`` and what goes with it, in terms of the rows or columns as given."""
        # By these numbers the history speaks of functions.
        self._numbers, self._n_candidates = relevance, dictionary.n_candidates

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
        given = check_weights(sample_weight, X.shape[0])
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
            self._seed,
            progress or Progress(-1),
            self._open_checkpoint(solver, X, y, weights),
            self.support,
            self.n_restarts,
            self._learned_gamma,
            vars(self).get("_thread"),
        )
        return task, self._build(task, self._make_basis(X, given), rows), y, rows

    def _bind(self, X: Any, weights: Array, rows: Index) -> Functions | None:
        """All functions of the dictionary on rows, given their numbers among all; None where they are columns of X."""
        kernel = vars(self).get("kernel_")
        basis = self._make_basis(X, weights) if kernel is None else kernel
        if basis is None:
            return None
        functions, chosen = basis.bind(X, random_state=self._seed), self._candidates(rows)
        return functions if chosen is None else functions.restrict(chosen)

    def _build(self, task: Task, basis: Basis | None, rows: Index) -> Dictionary:
        """The dictionary of a basis on the rows of a task, given their numbers among all rows."""
        return Dictionary.build(
            task.X,
            basis,
            fit_intercept=self.fit_intercept,
            random_state=self._seed,
            candidates=self._candidates(rows),
            by_row=self._by_row,
            compress=check_compression(self.compression),
            rank=self._largest_rank(task),
            single=choose("storage", self.storage, PRECISIONS) == "float32",
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

    @property
    def _seed(self) -> int | None:
        """What a fit draws by; of a generator, which is another after every draw, the one number that the fit took.

        The basis is bound again by it when candidates are asked about.
        """
        if "_drawn" not in vars(self):
            given = self.random_state
            self._drawn = int(given.randint(2**31)) if isinstance(given, np.random.RandomState) else given
        return self._drawn

    @property
    def _centred_on(self) -> Index:
        """Training row as given that each kept function is centred on, -1 where that is none or is not known."""
        if self._by_row:
            return self.relevance_
        # A file from before they were kept does not have them.
        return vars(self).get("_rows_of_kept", np.full(len(self.relevance_), -1, dtype=np.intp))

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
        # Copies: parameters of parameters may be set as well.  A live random state has moved on and repeats nothing.
        self._fitted_with = {
            name: value if callable(value) else clone(value, safe=False)
            for name, value in self.get_params(deep=False).items()
            if name not in _OF_THE_SEARCH and not isinstance(value, np.random.RandomState)
        }

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
        choose("storage", self.storage, PRECISIONS)
        check_compression(self.compression)
        cluster = Cluster.gather(X, y, numeric)
        self.n_features_in_ = cluster.n_features
        columns = columns_of(X, without=y)
        if columns is not None:
            validate_data(self, columns, skip_check_array=True)
        basis = self._make_basis(cluster, np.ones(1))
        functions = bind_on_cluster(basis or Linear(), cluster, self._seed)
        shift = column_means(cluster) if basis is None and self.fit_intercept else None
        dictionary = dictionary_on(cluster, functions, basis or Linear(), self.fit_intercept, self._by_row, shift)
        weights = np.array([float(cluster.n_rows)])
        task = Task(
            cluster,
            weights,
            self.fit_intercept,
            solver,
            self.tol,
            self.max_iter,
            self._seed,
            progress,
            None if self.checkpoint is None else self._open_checkpoint(solver, cluster.digest()),
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
        if isinstance(X, Chunks):
            raise TypeError("X is a source of chunks: predict its rows a chunk at a time, predict(chunk.X)")
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
        names = function_names(self)
        report = make_report(self._output_labels(), self._posteriors, self._supports, names, self._rule)
        return replace(report, inclusion=self._inclusion_of_kept(report.output)) if inclusion else report

    def _inclusion_of_kept(self, labels: tuple[Any, ...]) -> Array:
        """Inclusion probability of every kept function of every output; NaN for intercepts, which are no candidates."""
        known = self._explain().inclusion_of_kept
        of_output = list(getattr(self, "classes_", range(len(known)))) if len(known) > 1 else []
        places = np.concatenate([posterior.functions for posterior in self._posteriors])
        found = np.full(len(places), np.nan)
        for row, (place, label) in enumerate(zip(places, labels, strict=True)):
            if place < len(self.relevance_):
                found[row] = known[of_output.index(label) if of_output else 0, place]
        return found

    def _centres(self, n_kept: int) -> Array:
        """Centres of the kept functions without the intercept, NaN for a function that has none."""
        if self._functions is None or self._functions.centres is None:
            return np.full((n_kept, self.n_features_in_), np.nan)
        return self._functions.centres[:n_kept]


class DictionaryInputs(Selects, Inputs):
    """Functions from a basis, or the columns of X."""

    basis: Basis | None

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = self.basis is None
        tags.transformer_tags = TransformerTags() if self.basis is None else None
        return tags

    @property
    def _accept_sparse(self) -> tuple[str, ...] | bool:
        return ("csc", "csr") if self.basis is None else False

    def _make_basis(self, X: Any, weights: Array) -> Basis | None:
        if self.basis is not None and not isinstance(self.basis, Basis):
            raise TypeError(f"basis={self.basis!r}: expected a Basis such as RBF(2.5), or None for the columns of X")
        return None if self.basis is None else cast(Basis, clone(self.basis))

    def _check_training(self, X: Any, y: Any, **targets: Any) -> tuple[Any, Any]:
        if is_elsewhere(X) or self.device is not None:
            return self._arrive(X, y, **targets)
        if self.basis is None and is_operator(X):
            if 0 in X.shape:
                raise ValueError(f"X has shape {X.shape}: expected at least one sample and one feature")
            if targets.get("y_numeric"):
                y = check_array(y, ensure_2d=False, dtype="float64", allow_nd=True, input_name="y")
            y = np.asarray(y)
            if y.ndim > (2 if targets.get("multi_output") else 1):
                raise ValueError(f"y has shape {y.shape}: expected a vector, or a matrix of several targets")
            check_consistent_length(np.empty(X.shape[0]), y)
            self.n_features_in_ = X.shape[1]
            return X, y
        if self.basis is None and isinstance(X, np.memmap):
            return self._check_mapped(X, y, **targets)
        # Columns that are to be held in single precision need not be doubles for a moment.
        dtype = (np.float64, np.float32) if self.basis is None and self.storage == "float32" else np.float64
        X, y = validate_data(self, X, y, dtype=dtype, accept_sparse=self._accept_sparse, **targets)
        check_magnitude("X", X if isinstance(X, np.ndarray) else X.data)
        return X, y

    def _check_mapped(self, X: Any, y: Any, **targets: Any) -> tuple[Any, Any]:
        """Validate a memory-mapped X in blocks, and leave it where it is."""
        if X.ndim != 2 or 0 in X.shape:
            raise ValueError(f"X has shape {X.shape}: expected two dimensions, and at least one sample and one feature")
        head: Any = np.asarray(X[:1])
        start: Any = np.asarray(y)[:1]
        validate_data(self, head, start, dtype=np.float64, **targets)
        for rows in row_blocks(X.shape[0]):
            block: Any = check_array(np.asarray(X[rows]), dtype="float64", input_name="X")
            check_magnitude("X", block)
        kind: Any = "float64" if targets.get("y_numeric") else None
        y = check_array(y, ensure_2d=False, dtype=kind, input_name="y")
        check_consistent_length(np.empty(X.shape[0]), y)
        return X, y

    def _check_new(self, X: Any) -> Any:
        if is_elsewhere(X):
            return check_new_array(X, self.n_features_in_)
        fitted = self._as_fitted
        if fitted.basis is None and is_operator(X):
            if X.shape[1] != self.n_features_in_:
                raise ValueError(f"X has {X.shape[1]} columns; the model was fitted on {self.n_features_in_}")
            return X
        return validate_data(self, X, reset=False, dtype=np.float64, accept_sparse=fitted._accept_sparse)

    def _take(self, X: Any, rows: Index) -> Any:
        if is_operator(X):
            raise ValueError("a sample_weight of zero needs the rows of X, which a LinearOperator does not give")
        return super()._take(X, rows)

    def _linear(self) -> Index | None:
        return self.relevance_ if self._as_fitted.basis is None else None

    def _store_relevance(self, dictionary: Dictionary, relevance: Index, rows: Index) -> None:
        super()._store_relevance(dictionary, relevance, rows)
        self.relevance_ = relevance
        functions = dictionary.functions
        if self.basis is None or functions is None:
            kept = self.coef_
            self.coef_ = np.zeros((*kept.shape[:-1], self.n_features_in_))
            self.coef_[..., relevance] = kept
            self.X_offset_ = np.zeros(self.n_features_in_) if dictionary.shift is None else dictionary.shift
            # Of the kept columns only: a product with all of them could round what others contribute, which is nothing.
            intercept = self.intercept_ - kept @ self.X_offset_[relevance]
            self.intercept_ = float(intercept) if kept.ndim == 1 else intercept
        else:
            self._rows_of_kept = functions.rows_among(rows)[relevance]
            self.relevance_vectors_ = self._centres(len(relevance))


_OF_SUPPORT_VECTORS = {
    "C": "the evidence decides how strongly each weight is held back, so there is no penalty to choose; leave it out",
    "epsilon": "the noise is learned instead of a tube (noise_variance= fixes it; likelihood='student-t' for outliers)",
    "nu": "the evidence decides how many vectors are kept; leave it out",
    "probability": "probabilities are always there, by predict_proba; leave it out",
    "shrinking": "it belongs to another algorithm; leave it out",
    "cache_size": "it belongs to another algorithm; leave it out",
    "decision_function_shape": "multi_class='softmax' or 'ovr' says how several classes are taken",
    "break_ties": "ties go to the first class; leave it out",
}


class KernelInputs(MayBePrecomputed, Inputs):
    """Kernel functions centred on the training rows."""

    kernel: Any
    gamma: str | float
    degree: int
    coef0: float
    _by_row = True

    def __init_subclass__(cls, **kwargs: Any) -> None:
        """Show the parameters of the constructor to those who ask, and not those of ``__new__``."""
        super().__init_subclass__(**kwargs)
        parameters = list(signature(cls.__init__).parameters.values())[1:]
        cls.__signature__ = Signature(parameters)  # pyright: ignore[reportAttributeAccessIssue]

    def __new__(cls, *args: Any, **kwargs: Any) -> Self:
        """Refuse the parameters of support vector machines with what stands in their place."""
        for name in kwargs:
            if name in _OF_SUPPORT_VECTORS:
                raise TypeError(f"{cls.__name__} has no parameter {name!r}: {_OF_SUPPORT_VECTORS[name]}")
        return super().__new__(cls)

    @property
    def support_vectors_(self) -> Any:
        """The relevance vectors, under the name that scikit-learn's ``SVR`` and ``SVC`` have for theirs."""
        if "relevance_vectors_" not in vars(self):
            raise AttributeError(f"{type(self).__name__} has no support_vectors_ before fit")
        return self.relevance_vectors_

    @property
    def _learned_gamma(self) -> str | None:
        return self.gamma if isinstance(self.gamma, str) and self.gamma in LEARNED else None

    def _make_basis(self, X: Any, weights: Array) -> Basis:
        return resolve_kernel(self.kernel, self.gamma, self.degree, self.coef0, X, weights)

    def _check_training(self, X: Any, y: Any, **targets: Any) -> tuple[Any, Any]:
        if is_elsewhere(X) or self.device is not None:
            return self._arrive(X, y, **targets)
        X, y = validate_data(self, X, y, dtype=np.float64, **targets)
        check_magnitude("X", X)
        if self._precomputed and X.shape[0] != X.shape[1]:
            raise ValueError(f"a precomputed kernel must be square for fitting; X has shape {X.shape}")
        return X, y

    def _check_new(self, X: Any) -> Any:
        if is_elsewhere(X):
            return check_new_array(X, self.n_features_in_)
        return validate_data(self, X, reset=False, dtype=np.float64)

    def _candidates(self, rows: Index) -> Index | None:
        # Column m of a Gram matrix is the function of row m: without the row there is no function.
        return rows if self._precomputed else None

    def _store_relevance(self, dictionary: Dictionary, relevance: Index, rows: Index) -> None:
        super()._store_relevance(dictionary, relevance, rows)
        functions = dictionary.functions
        self.relevance_ = relevance if functions is None else functions.rows_among(rows)[relevance]
        self.relevance_vectors_ = self._centres(len(relevance))
