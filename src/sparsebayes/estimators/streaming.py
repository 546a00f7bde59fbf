"""Regression on rows that come a chunk at a time: their sufficient statistics are kept, and no row."""

from __future__ import annotations

import warnings
from abc import abstractmethod
from numbers import Integral
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import validate_data

from sparsebayes.basis import Basis, Functions
from sparsebayes.basis.kernels import Kernel
from sparsebayes.callers import stack_level
from sparsebayes.chunks import Chunk, as_chunks, sample_rows, weighed_rows
from sparsebayes.design import Reduction
from sparsebayes.estimators.checks import (
    CHUNKS,
    LIKELIHOODS,
    PRECISIONS,
    asks_of_regression,
    check_compression,
    check_forgetting,
    check_magnitude,
    check_noise,
    check_positive,
    check_regressor,
    check_relative_noise,
    check_restarts,
    check_weights,
    choose,
    fixed,
    resolve_solver,
)
from sparsebayes.estimators.dictionary import Dictionary
from sparsebayes.estimators.inputs import DictionaryInputs
from sparsebayes.estimators.progress import Progress
from sparsebayes.estimators.regression import RegressionFit, Targets, fit_regression
from sparsebayes.estimators.rows import row_blocks
from sparsebayes.estimators.task import Task
from sparsebayes.inference import Solver
from sparsebayes.inference.fit.interrupt import interrupts_afterwards
from sparsebayes.inference.objective import SUPPORTS
from sparsebayes.threads import one_thread

Array = NDArray[np.float64]

# Rows among which a number of centres is chosen.
_SAMPLE = 20_000
# Inner products of more functions than this would take more memory and time than passes over the rows.
_MOST_FUNCTIONS = 4000
_NO_ROWS = "sample_weight is zero on every row so far: at least one row must have a positive weight"


class ChunkedRegression(DictionaryInputs):
    """What a regressor with a fixed dictionary can do without ever holding all rows."""

    likelihood: str
    noise: str
    noise_variance: float | ArrayLike | None
    shared_support: bool
    _reduction: Reduction
    _origin: Array
    _dictionary: Functions | None
    _read_with: Basis | None
    _single: bool

    @abstractmethod
    def _store(self, fit: RegressionFit, *, single: bool) -> None:
        """Keep what was learned."""

    @abstractmethod
    def _store_no_rows(self) -> None:
        """Say that no row was kept."""

    def _fit_chunks(self, X: Any, y: Any = None, sample_weight: ArrayLike | None = None) -> bool:
        """Fit where X is a source of chunks, or a memory-mapped file with far more rows than there are functions.

        Returns
        -------
        bool
            Whether it was; X is then something to be held.
        """
        chunks = as_chunks(X, y, sample_weight)
        mapped = isinstance(X, np.memmap)
        if chunks is None:
            return False
        # A file has its rows: where a setting asks for them they are taken.
        if mapped and not (CHUNKS.gives(asks_of_regression(self, resolve_solver(self.solver))) and self._pays(X.shape)):
            return False
        if not mapped:
            if sample_weight is not None:
                raise ValueError(
                    "sample_weight: rows that come in chunks bring their weights with them; give chunks "
                    "(X, y, weights), or pass all rows as one array"
                )
            _check_fixed(self.basis, chunks.again)
        self._forget()
        self._check_settings()
        with one_thread(), self._watch() as progress:
            progress.note = "reading the rows"
            sample = sample_rows(chunks, _SAMPLE) if _chooses(self.basis) else None
            for chunk in chunks:
                self._read(chunk, sample)
            if "_reduction" not in vars(self):
                raise ValueError("X gave no chunks: expected at least one row")
            self._learn(progress)
        if mapped:  # a file is an array, however it was read: partial_fit does not go on from it
            del self._reduction
        return True

    @available_if(lambda self: _available(self.basis))
    @interrupts_afterwards
    def partial_fit(
        self, X: Any, y: ArrayLike, sample_weight: ArrayLike | None = None, *, forgetting: float = 1.0
    ) -> Self:
        r"""Add rows to those of earlier calls, and fit all of them.

        Only inner products are kept, yet after any number of calls the model is that of one ``fit`` on all rows.  The
        dictionary must be fixed: columns of X, polynomials, kernels with given centres (a number of centres is chosen
        among the first rows), and ``basis`` and ``fit_intercept`` stay as they were at the first call.

        It goes on from earlier calls, and from a ``fit`` on chunks.  A ``fit`` on an array or a file keeps no inner
        products, so that there is nothing to go on from: ``partial_fit`` after it begins anew, with a warning.  For
        rows that are to count, begin with ``partial_fit(X, y)`` or ``fit([(X, y)])``.

        Where data drift, every row may make those before it count less: with ``forgetting`` :math:`\lambda` the row
        that came k rows before the last weighs :math:`\lambda^k`, however the rows are cut into calls, and the model
        is that of one ``fit`` with these weights.  All rows together then weigh at most :math:`1/(1-\lambda)`, which
        is the number of observations that the evidence sees: 0.999 remembers about the last thousand rows.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Further inputs.
        y : array-like of shape (n_samples,) or (n_samples, n_targets)
            Their targets.
        sample_weight : array-like of shape (n_samples,), optional
            Their weights.
        forgetting : float
            What every one of these rows multiplies the weights of all rows before it by, above 0 and at most 1 (which
            forgets nothing).
        """
        check_forgetting(forgetting)
        self._check_going_on()
        if "_reduction" not in vars(self):
            self._forget()
        self._check_settings()
        with one_thread(), self._watch() as progress:
            try:
                self._read(Chunk(X, y, sample_weight), None, forgetting)
            except (TypeError, ValueError):
                if "_reduction" not in vars(self):  # rows that were refused leave nothing behind, no width of X either
                    for name in ("n_features_in_", "feature_names_in_"):
                        vars(self).pop(name, None)
                raise
            self._learn(progress)
        return self

    def _check_going_on(self) -> None:
        """Say so where nothing was kept of the rows before; refuse other functions than those that were summed."""
        if "_reduction" not in vars(self):
            if "status_" in vars(self):
                warnings.warn(
                    "partial_fit begins anew: this model was fitted to an array or a file, of whose rows no inner "
                    "products were kept, so that they do not count from here on; for rows that are to count, begin "
                    "with partial_fit(X, y) or fit([(X, y)])",
                    UserWarning,
                    stacklevel=stack_level(),
                )
            return
        # Files that were written before it was kept do not say which basis it was.
        if "_read_with" in vars(self) and not _alike(self._read_with, self.basis):
            raise ValueError(
                f"basis={self.basis!r}: the rows before were summed with basis={self._read_with!r}, which cannot be "
                "changed afterwards; set it back, or begin anew with sklearn.base.clone(model)"
            )
        count = self.n_features_in_ if self._dictionary is None else len(self._dictionary)
        before = self._reduction.n_functions > count
        if before != bool(self.fit_intercept):
            raise ValueError(
                f"fit_intercept={self.fit_intercept!r}: the rows before were summed with fit_intercept={before}, which "
                "cannot be changed afterwards; set it back, or begin anew with sklearn.base.clone(model)"
            )

    def _check_settings(self) -> Solver:
        """Every setting checked before a row is read: what inner products cannot give is refused by name.

        A Gaussian problem is a function of the inner products and of the number of rows, whatever the support rule, the
        restarts and the solver.  Every other likelihood weighs each row by itself.
        """
        choose("likelihood", self.likelihood, LIKELIHOODS)
        choose("support", self.support, SUPPORTS)
        choose("storage", self.storage, PRECISIONS)
        check_compression(self.compression)
        check_restarts(self.n_restarts)
        check_positive("tol", self.tol)
        check_positive("max_iter", self.max_iter, integer=True)
        solver = resolve_solver(self.solver, self.effort)
        solver.check()
        check_regressor(self, solver, CHUNKS)
        return solver

    def _pays(self, shape: tuple[int, ...]) -> bool:
        """Whether the inner products of the functions are far fewer than their values on all rows."""
        if len(shape) != 2 or (self.basis is not None and not (fixed(self.basis) or _chooses(self.basis))):
            return False
        count = shape[1] if self.basis is None else _count(self.basis, shape[1])
        return count <= min(_MOST_FUNCTIONS, shape[0])

    def _checked(self, chunk: Chunk, first: bool) -> tuple[Any, Array]:
        """Inputs and targets of a chunk, validated; the targets as a matrix."""
        checked: Any = validate_data(
            self, chunk.X, chunk.y, reset=first, dtype=np.float64, multi_output=True, y_numeric=True
        )
        X, y = checked
        check_magnitude("X", X)
        matrix = np.asarray(y, dtype=np.float64).reshape(len(y), -1)
        check_magnitude("y", matrix)
        if first:
            self._single = np.ndim(y) == 1
        return X, matrix

    def _read(self, chunk: Chunk, sample: Any, forgetting: float = 1.0) -> None:
        """Add the rows of one chunk to the statistics; the first one also fixes the functions.

        Everything is checked before anything is changed: rows that are refused can be given again.
        """
        first = "_reduction" not in vars(self)
        X, matrix = self._checked(chunk, first)
        check_noise(self.noise_variance, matrix.shape[1])
        nothing = chunk.weight is not None and not np.any(np.asarray(chunk.weight))
        weights = np.zeros(len(X)) if nothing else check_weights(chunk.weight, len(X))
        if first:
            basis = self._make_basis(X, np.ones(len(X)))
            if sample is None:
                sample = weighed_rows(X, weights) if _chooses(self.basis) else X
            if not len(sample):
                raise ValueError(_NO_ROWS)
            self._dictionary = None if basis is None else basis.bind(sample, random_state=self._seed)
            self._read_with = basis
            self._begin(X, matrix, 0)
        if matrix.shape[1] != len(self._reduction.shift):
            raise ValueError(f"y has {matrix.shape[1]} targets; the rows before had {len(self._reduction.shift)}")
        self._reduction = self._reduction.aged(forgetting ** len(X))
        if nothing:
            return
        weights = weights * forgetting ** np.arange(len(X) - 1.0, -1.0, -1.0)
        if self._reduction.n_rows == 0:
            self._begin(X, matrix, int(np.flatnonzero(weights)[0]))
        for rows in row_blocks(len(X), self._reduction.block):
            used = weights[rows] > 0.0
            values = self._functions_on(X[rows][used])
            self._reduction = self._reduction.add(values, matrix[rows][used], weights[rows][used])

    @property
    def _centres_columns(self) -> bool:
        """Whether the functions are the columns less their means."""
        return self.fit_intercept and self._dictionary is None

    def _begin(self, X: Array, targets: Array, row: int) -> None:
        """No rows yet.  Taking off this one leaves constants exactly zero, and small spreads all their digits."""
        count = X.shape[1] if self._dictionary is None else len(self._dictionary)
        shift = targets[row] if self.fit_intercept else np.zeros(targets.shape[1])
        self._origin = X[row].copy() if self._centres_columns else np.zeros(count)
        self._reduction = Reduction.empty(count + self.fit_intercept, shift.copy())

    def _functions_on(self, X: Array) -> Array:
        values = X - self._origin if self._dictionary is None else self._dictionary.evaluate(X)
        return np.column_stack([values, np.ones(len(X))]) if self.fit_intercept else values

    def _learn(self, progress: Progress) -> None:
        """Fit what the statistics say of all rows so far."""
        solver = self._check_settings()
        rows = self._reduction
        if rows.n_rows == 0:
            raise ValueError(_NO_ROWS)
        shift = None
        if self._centres_columns:
            rows, shift = rows.centred(rows.n_functions - 1, self._origin)
        dictionary = Dictionary.of_reduction(
            rows, self._dictionary, self.basis, fit_intercept=self.fit_intercept, shift=shift
        )
        scale = np.sqrt(len(rows.factor) / rows.total)
        mean = np.zeros(len(rows.shift)) if dictionary.bias is None else rows.mean(dictionary.bias)
        centred = rows.targets if dictionary.bias is None else rows.targets - np.outer(rows.functions[:, -1], mean)
        noise = check_noise(self.noise_variance, centred.shape[1])
        if noise is not None:
            check_relative_noise(noise, np.sum(centred**2, axis=0) / rows.total)
        targets = Targets(scale * centred, noise, self.shared_support, offset=rows.shift + mean)
        task = Task(
            np.empty((0, self.n_features_in_)),
            np.full(len(rows.factor), rows.total / len(rows.factor)),
            self.fit_intercept,
            solver,
            self.tol,
            self.max_iter,
            self.random_state,
            progress,
            self._open_checkpoint(solver, rows.factor),
            self.support,
            self.n_restarts,
        )
        fit = fit_regression(task, targets, dictionary)
        self._store(fit, single=self._single)
        self._store_no_rows()
        # Rows that come in chunks have no numbers.
        n_centred = 0 if self._dictionary is None else int(np.max(self._dictionary.rows, initial=-1)) + 1
        self._store_relevance(fit.dictionary, fit.kept.relevance, np.full(n_centred, -1, dtype=np.intp))


def _alike(one: Any, other: Any) -> bool:
    """Whether two bases, or parameters of bases, are the same."""
    if isinstance(one, Basis) and isinstance(other, Basis):
        mine, theirs = one._terms(), other._terms()
        if len(mine) == len(theirs) == 1:
            here, there = mine[0].get_params(deep=False), theirs[0].get_params(deep=False)
            same = type(mine[0]) is type(theirs[0]) and here.keys() == there.keys()
            return same and all(_alike(here[name], there[name]) for name in here)
        return len(mine) == len(theirs) and all(map(_alike, mine, theirs))
    if isinstance(one, Basis) or isinstance(other, Basis) or one is None or other is None:
        return one is other
    return one is other or bool(np.array_equal(one, other))


def _terms(basis: Basis | None) -> tuple[Basis, ...]:
    return () if basis is None else basis._terms()


def _chooses(basis: Basis | None) -> bool:
    """Whether a number of centres is to be chosen among the rows, and nothing else depends on them."""
    chosen = [isinstance(term, Kernel) and isinstance(term.centres, Integral) for term in _terms(basis)]
    others = [term for term, is_chosen in zip(_terms(basis), chosen, strict=True) if not is_chosen]
    return any(chosen) and all(fixed(term) for term in others)


def _count(basis: Basis, n_features: int) -> int:
    """Number of functions, without binding those whose centres are yet to be chosen."""
    count = 0
    for term in _terms(basis):
        if isinstance(term, Kernel) and isinstance(term.centres, Integral):
            count += int(term.centres)
        else:
            count += len(term.bind(np.zeros((1, n_features))))
    return count


def _need_fixed(basis: Basis | None) -> str | None:
    """What is wrong with functions that depend on all rows; None where they do not."""
    if fixed(basis) or _chooses(basis):
        return None
    return (
        f"basis={basis!r}: rows that are read in chunks need functions that do not depend on all of them; give "
        "kernels their centres, as an array or as a number, or use basis=None for the columns of X"
    )


def _available(basis: Basis | None) -> bool:
    """Whether there is a ``partial_fit``; scikit-learn's tools ask for it by ``hasattr``."""
    wrong = _need_fixed(basis)
    if wrong is not None:
        raise AttributeError(wrong)
    return True


def _check_fixed(basis: Basis | None, again: bool) -> None:
    wrong = _need_fixed(basis)
    if wrong is not None:
        raise ValueError(wrong)
    if _chooses(basis) and not again:
        raise ValueError(
            "X can be read only once, and centres are to be chosen among its rows first: pass a list of chunks, a "
            "function that returns a generator, or the centres as an array"
        )
