"""The dictionary of an estimator: basis functions on the training rows, and the intercept beside them."""

from __future__ import annotations

import copy
from dataclasses import dataclass, replace
from functools import cached_property, reduce
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse.linalg import LinearOperator

from sparsebayes.basis import Basis, Bias, Functions, Linear
from sparsebayes.basis.arrays import Place, evaluate_elsewhere, is_elsewhere
from sparsebayes.basis.kernels import Kernel, KernelFunctions, scattered_rows
from sparsebayes.basis.places import Places
from sparsebayes.design import (
    ArrayDesign,
    CompressedDesign,
    DenseDesign,
    Design,
    LazyDesign,
    Reduction,
    as_design,
    centred,
    compress_kernel,
    representatives,
)
from sparsebayes.design.protocol import BLOCK_BYTES
from sparsebayes.estimators.devices import bind_and_compress
from sparsebayes.estimators.refinement import refined
from sparsebayes.threads import on_all_cores

Array = NDArray[np.float64]
Index = NDArray[np.intp]

# A dictionary larger than this is never held at once: its columns are made in blocks when they are needed.
_DENSE_BYTES = 2**31
# Largest squared norm of a function whose own square, and that of its reciprocal, can be computed with.
_RANGE = 1e130
# Entries of a kernel matrix from which on compressing it is tried, and the error that it may have in the search.
_WORTH_IT = 500_000
# The largest rank at which it pays, as a part of the functions.
HALF_RANK = 0.5
_REMAINDER = 1e-5
# The bounds by which the certificate rules functions out grow with the number of rows: for more rows than this, a
# closer compression leaves it fewer to evaluate.
_MANY_ROWS = 100_000
_CLOSE_REMAINDER = 1e-6
# Functions beyond which all of them are moved at once.  Among fewer, single moves get there sooner (2-D sinc and
# Ripley's mixture, N = 4,000: in two thirds of the time).
_DENSE = 12_000


# A kernel that does not compress has so many candidates at most, fewer where their values would not be held at once,
# and not fewer than this.
_CANDIDATES = 3000
_FEWEST_CANDIDATES = 1000
# Of rows of which only sums are known no part can be searched first.  Where candidates are many, the sums count for so
# many observations a candidate at first: functions enter that so many rows would show, hundreds fewer than all show.
_FEWER_OBSERVATIONS = 4.0
# Rank on so many rows from which on a kernel is said not to compress; on all rows it may be twice that.
_HIGH_RANK = 750


@dataclass(frozen=True)
class Kept:
    """The functions that stay, the intercept last.

    Attributes
    ----------
    relevance : ndarray of int
        Numbers of the functions without the intercept, sorted, or in the order of the training rows.
    with_bias : bool
        Whether the intercept stays.
    functions : Functions or None
        All of them, for prediction; None if nothing stays.
    place : dict
        Place among them of each column of the dictionary.
    """

    relevance: Index
    with_bias: bool
    functions: Functions | None
    place: dict[int, int]

    @property
    def columns(self) -> Index:
        """Columns of the dictionary, in the order of the kept functions."""
        return np.array(sorted(self.place, key=self.place.__getitem__), dtype=np.intp)

    def order(self, indices: list[int]) -> tuple[Index, Index]:
        """Places of some columns among the kept functions, sorted, and the order that sorts the columns so."""
        where = np.array([self.place[i] for i in indices], dtype=np.intp)
        order = np.argsort(where)
        return where[order], order


@dataclass(frozen=True)
class Sample:
    """A part of the rows, and the dictionary on them; each counts for so large a share of what it does among all."""

    rows: Index
    design: Design
    share: float = 1.0


@dataclass(frozen=True)
class Dictionary:
    """Candidate functions and their values on the training rows.

    Attributes
    ----------
    design : Design
        Values on the training rows; the intercept's column, if any, is ``bias``.
    functions : Functions or None
        The functions without the intercept; None where the columns of X are the functions.
    basis : Basis or None
        Where the functions came from.
    n_candidates : int
        Number of functions without the intercept.
    bias : int or None
        Column of the intercept.
    stand_in : CompressedDesign or None
        A design of low rank that may stand in for ``design`` while the search goes on.
    by_row : bool
        Whether kept functions are put in the order of the training rows that they are centred on.
    distinct : ndarray of bool, optional
        Functions that are no copy of an earlier one, where that is known already.
    landmarks : ndarray of int, optional
        Functions that between them nearly span all others, with or without a design that stands in.
    shift : ndarray of shape (n_candidates,), optional
        What is taken off the columns of X, where these are the functions and an intercept stands beside them.
    rowwise : bool
        Whether the rows of the design are observations, and not what sums over observations were factored into.
    sample : Sample, optional
        The functions on a part of the rows, on which the search begins where there are many.
    left_aside : int
        Functions of the basis that are no candidates.
    """

    design: Design
    functions: Functions | None
    basis: Basis | None
    n_candidates: int
    bias: int | None
    stand_in: CompressedDesign | None = None
    by_row: bool = False
    distinct: NDArray[np.bool_] | None = None
    landmarks: Index | None = None
    shift: Array | None = None
    rowwise: bool = True
    sample: Sample | None = None
    left_aside: int = 0

    @property
    def n_functions(self) -> int:
        """Functions that are no copies of others, those that are no candidates among them."""
        return int(np.sum(self.eligible)) + self.left_aside

    @property
    def beside_rows(self) -> float:
        """Functions, to compare with the number of rows: no rows are many for functions that some of them have.

        A row and all its copies have one, however large its weight.
        """
        on_rows = self.functions is not None and bool(np.any(self.functions.rows >= 0))
        return np.inf if on_rows else self.n_functions

    @classmethod
    def of_reduction(
        cls,
        rows: Reduction,
        functions: Functions | None,
        basis: Basis | None,
        *,
        fit_intercept: bool,
        shift: Array | None = None,
    ) -> Dictionary:
        """The dictionary on the few rows that stand for all; they share the weight of all evenly.

        ``shift`` was taken off the columns already.
        """
        scale = np.sqrt(len(rows.factor) / rows.total)
        m = rows.n_functions - fit_intercept
        bias = m if fit_intercept else None
        design = DenseDesign(scale * rows.functions)
        _check_range(design)
        landmarks = landmarks_of(functions, rows.n_rows)
        share = _FEWER_OBSERVATIONS * m / rows.total
        many = landmarks is None and m >= _FEWEST_CANDIDATES and share <= 0.5
        return cls(
            design,
            functions,
            basis,
            m,
            bias,
            distinct=rows.distinct(bias),
            landmarks=landmarks,
            shift=shift,
            rowwise=False,
            sample=Sample(np.arange(len(rows.factor)), design, share) if many else None,
        )

    @classmethod
    def build(
        cls,
        X: Any,
        basis: Basis | None,
        *,
        fit_intercept: bool,
        random_state: Any = None,
        candidates: Index | None = None,
        by_row: bool = False,
        compress: bool = True,
        rank: float = HALF_RANK,
        single: bool = False,
        weights: Array | None = None,
        thin: bool = False,
    ) -> Dictionary:
        """Bind the basis to the training rows, take some of its functions or all, and add the intercept.

        Where the columns of X are the functions and the intercept stands beside them, they are less their means
        (``design/centred.py``): the model does not know where zero is on the scale of an input.

        Parameters
        ----------
        X : array-like
            Training rows, on the host or on a device.
        basis : Basis or None
            None means the columns of X.
        fit_intercept : bool
            Whether a constant function joins.
        random_state : int, RandomState or None
            For bases that choose at random.
        candidates : ndarray of int, optional
            Functions of the basis that may be chosen.
        by_row : bool
            Whether kept functions are put in the order of the training rows.
        compress : bool
            Whether a design of low rank may stand in where that pays.
        rank : float
            Largest rank of a compression, as a part of the functions; zero where the search makes no use of one.
        single : bool
            Hold the values of the functions in single precision.
        weights : ndarray of shape (n_samples,), optional
            Of the rows, in the means of the columns; all one by default.
        thin : bool
            Whether a part of the functions may be all the candidates, where there are many that do not compress.
        """
        if basis is None and fit_intercept:
            return cls._of_columns(X, np.ones(X.shape[0]) if weights is None else weights, single)
        if is_elsewhere(X):
            return cls._build_elsewhere(X, basis, fit_intercept, by_row=by_row, compress=compress, single=single)
        functions = None if basis is None else basis.bind(X, random_state=random_state)
        if functions is not None and candidates is not None:
            functions = functions.restrict(candidates)
        closest = None
        if thin and compress and not single and functions is not None:
            few, closest = _few(functions, X, rank > 0.0)
            if few is not None:
                return cls._thinned(X, few, len(functions) - len(few), basis, fit_intercept, by_row)
        return cls._of(X, functions, basis, fit_intercept, by_row, compress, rank, single, closest)

    @classmethod
    def _thinned(
        cls, X: Array, chosen: Functions, left_aside: int, basis: Basis | None, fit_intercept: bool, by_row: bool
    ) -> Dictionary:
        """Some of the functions on all rows, and on the rows on which they are centred."""
        values = _beside_ones(chosen, X, fit_intercept)
        m, rows = len(chosen), chosen.rows
        design = DenseDesign(values)
        _check_range(design)
        return cls(
            design,
            chosen,
            basis,
            m,
            m if fit_intercept else None,
            by_row=by_row,
            distinct=np.ones(m + fit_intercept, dtype=bool),
            sample=Sample(rows, DenseDesign(values[rows])),
            left_aside=left_aside,
        )

    @classmethod
    def _of_columns(cls, X: Any, weights: Array, single: bool) -> Dictionary:
        """The columns of X less their weighted means, and the intercept."""
        with np.errstate(over="ignore", invalid="ignore"):  # said in words by _check_range
            design, means = centred(X, weights, single=single)
            _check_range(design)
        n, m = design.shape
        ones = np.ones((n, 1))
        one = ArrayDesign(Place.of(X).put(ones)) if is_elsewhere(X) else DenseDesign(ones)
        return cls(design.extend(one), None, None, m, m, shift=means)

    @classmethod
    def _of(
        cls,
        X: Any,
        functions: Functions | None,
        basis: Basis | None,
        fit_intercept: bool,
        by_row: bool,
        compress: bool,
        rank: float,
        single: bool = False,
        closest: CompressedDesign | None = None,
    ) -> Dictionary:
        # Without compression the search goes the same way, on all rows: it begins among the same functions.
        if closest is None and functions is not None and rank > 0.0:
            closest = _compress(functions, X, compress, rank)
        landmarks, stand_in = None if closest is None else closest.landmarks, closest if compress else None
        if functions is not None and stand_in is not None:
            design = LazyDesign(functions, X)
        else:
            with np.errstate(over="ignore", invalid="ignore"):  # said in words by _check_range
                design = _hold(X, single) if functions is None else _evaluate(functions, X, single)
                _check_range(design)
        n, m = design.shape
        if not fit_intercept:
            return cls(design, functions, basis, m, None, stand_in, by_row, landmarks=landmarks)
        with_bias = None if stand_in is None else stand_in.with_ones()
        whole = (
            with_bias if with_bias is not None and design is stand_in else design.extend(DenseDesign(np.ones((n, 1))))
        )
        return cls(whole, functions, basis, m, m, with_bias, by_row, landmarks=landmarks)

    def with_functions(self, X: Any, functions: Functions) -> Dictionary:
        """The dictionary with each function replaced by another of the same place."""
        other = self._of(X, functions, self.basis, self.bias is not None, self.by_row, compress=False, rank=0.0)
        return replace(other, left_aside=self.left_aside)

    def searched_in_parts(self, X: Any) -> Dictionary | None:
        """The same with what a search in parts of it begins from; None where it is too small for one."""
        if self.functions is None or X.shape[0] * len(self.functions) < _WORTH_IT:
            return None
        intercept = self.bias is not None
        other = self._of(X, self.functions, self.basis, intercept, self.by_row, compress=False, rank=HALF_RANK)
        return replace(other, left_aside=self.left_aside)

    @classmethod
    def _build_elsewhere(
        cls, X: Any, basis: Basis | None, fit_intercept: bool, *, by_row: bool, compress: bool, single: bool
    ) -> Dictionary:
        """The same on a device."""
        functions, stand_in = None, None
        if basis is None:
            xp = Place.of(X).xp
            design = as_design(xp.astype(X, xp.float32) if single else X)
        else:
            functions, design, stand_in = bind_and_compress(X, basis, compress=compress, single=single)
        n, m = design.shape
        if stand_in is None:
            _check_range(design)
        if not fit_intercept:
            return cls(design, functions, basis, m, None, stand_in, by_row)
        with_bias = None if stand_in is None else stand_in.with_ones()
        place = Place.of(X)
        ones = ArrayDesign(place.put(np.ones((n, 1))))
        return cls(
            with_bias if with_bias is not None and design is stand_in else design.extend(ones),
            functions,
            basis,
            m,
            m,
            with_bias,
            by_row,
        )

    @cached_property
    def eligible(self) -> NDArray[np.bool_]:
        """Functions that are no exact copy of an earlier one, nor of the intercept, the same everywhere."""
        if self.distinct is not None:
            return self.distinct
        if self.stand_in is not None and isinstance(self.functions, KernelFunctions):
            return self._distinct_centres(self.functions)
        first = representatives(self.design)
        if self.bias is not None:
            first[first == first[self.bias]] = self.bias
        return first == np.arange(self.design.shape[1])

    def _distinct_centres(self, functions: KernelFunctions) -> NDArray[np.bool_]:
        """Functions of one kernel are copies where their centres are."""
        eligible = np.zeros(self.design.shape[1], dtype=bool)
        eligible[: len(functions)] = functions.distinct()
        eligible[len(functions) :] = True
        return eligible

    def constant(self) -> int | None:
        """Column of a constant function: the intercept, or a Bias in the basis."""
        if self.bias is not None or self.functions is None:
            return self.bias
        kinds = [spec["kind"] for spec in self.functions.specifications()]
        return kinds.index(Bias.kind) if Bias.kind in kinds else None

    @cached_property
    def places(self) -> Places | None:
        """Where the functions are, if the dictionary is one of a smooth kernel and dense."""
        smooth = self.landmarks is not None or self.stand_in is not None
        dense = smooth and self.n_candidates > _DENSE
        return self.functions.places if dense and isinstance(self.functions, KernelFunctions) else None

    def centre_rows(self) -> Index | None:
        """Training row on which each function is centred (-1: none); None where the functions are no such kernels."""
        if self.functions is None:
            return None
        rows, n = self.functions.rows, self.design.shape[0]
        if np.max(rows, initial=-1) < n:
            return rows
        # Columns of a given kernel matrix have the numbers of all its rows, those of weight zero included.
        return np.searchsorted(np.sort(rows), rows) if len(np.unique(rows)) == len(rows) == n else None

    def keep(self, columns: set[int], n_features: int) -> Kept:
        """What is left of the dictionary when only these columns stay."""
        candidates = np.array(sorted(columns - {self.bias}), dtype=np.intp)
        with_bias = self.bias is not None and self.bias in columns
        relevance = candidates if self.bias is None else candidates - (candidates > self.bias)
        if self.by_row and self.functions is not None:
            by_row = np.argsort(self.functions.rows[relevance], kind="stable")
            candidates, relevance = candidates[by_row], relevance[by_row]
        order = [*candidates.tolist(), *([self.bias] if with_bias else [])]
        parts: list[Functions] = []
        if len(relevance):
            functions = self.functions or Linear().bind(np.zeros((1, n_features)))
            parts.append(functions.restrict(relevance))
        if with_bias:
            parts.append(Bias().bind(np.zeros((1, n_features))))
        functions = reduce(lambda left, right: left.join(right), parts) if parts else None
        return Kept(relevance, with_bias, functions, {column: place for place, column in enumerate(order)})

    def generate(self, X: Any, kept: list[int], candidates: Any, rng: np.random.Generator) -> Dictionary:
        """Add functions of the same kernel at centres that ``candidates(centres of the kept functions, rng)`` makes."""
        if not isinstance(self.basis, Kernel) or self.functions is None:
            raise ValueError(
                f"generated candidates need a basis with centres, such as RBF(2.5); got basis={self.basis!r}"
            )
        if is_elsewhere(X):
            raise ValueError("candidates: functions are generated on the host only; pass X as a NumPy array")
        places = self.keep(set(kept), X.shape[1]).relevance
        centres = np.asarray(candidates(self.functions.restrict(places).centres, rng), dtype=np.float64)
        if centres.size == 0:
            return self
        kernel = copy.copy(self.basis)
        kernel.centres = centres
        return self._grown(X, self.functions, kernel.bind(X))

    def refine(self, X: Any, kept: list[int]) -> Dictionary:
        """Add functions like the kept ones at new centres, between and around theirs."""
        if is_elsewhere(X):
            raise ValueError("split_merge: functions are generated on the host only; pass X as a NumPy array")
        if self.functions is None:
            return self
        places = self.keep(set(kept), X.shape[1]).relevance
        fresh = refined(self.functions, places.tolist(), np.ptp(X, axis=0))
        return self if fresh is None else self._grown(X, self.functions, fresh)

    def _grown(self, X: Any, functions: Functions, fresh: Functions) -> Dictionary:
        design, count = self.design.extend(_evaluate(fresh, X)), self.n_candidates + len(fresh)
        return Dictionary(design, functions.join(fresh), self.basis, count, self.bias, by_row=self.by_row)


def evaluate_kept(functions: Functions | None, X: Any, linear: Index | None, shift: Array | None = None) -> Array:
    """Values of the kept functions on new rows.

    ``linear`` names the kept columns of X where these are the functions, so that sparse arrays and linear operators
    need not be made dense; ``shift`` is what is taken off the columns.
    """
    if functions is None:
        return np.zeros((X.shape[0], 0))
    if is_elsewhere(X):
        values = Place.of(X).get(evaluate_elsewhere(functions, X))
        if linear is not None and shift is not None:
            values[:, : len(linear)] -= shift[linear]
        return values
    if linear is None:
        return functions.evaluate(X)
    with np.errstate(invalid="ignore"):
        values = as_design(X).columns(linear)
    if not np.all(np.isfinite(values)):
        raise ValueError("X contains NaN or infinity")
    if shift is not None:
        values -= shift[linear]
    missing = len(functions) - len(linear)
    return np.hstack([values, np.ones((X.shape[0], missing))])


def is_operator(X: Any) -> bool:
    """Whether X is a SciPy linear operator, which has no entries to validate."""
    return isinstance(X, LinearOperator)


def _hold(X: Any, single: bool) -> Design:
    """The columns of X; a dense array of doubles is halved on request."""
    return as_design(X.astype(np.float32, copy=False) if single and type(X) is np.ndarray else X)


def _evaluate(functions: Functions, X: Array, single: bool = False) -> Design:
    n, m = X.shape[0], len(functions)
    if (4 if single else 8) * n * m > _DENSE_BYTES:
        return LazyDesign(functions, X)
    values = np.empty((n, m), dtype=np.float32 if single else np.float64, order="F")  # a search asks for columns
    step = max(1, BLOCK_BYTES // (8 * max(m, 1)))
    for start in range(0, n, step):
        values[start : start + step] = functions.evaluate(X[start : start + step])
    return DenseDesign(values)


def _few(functions: Functions, X: Array, low_rank: bool) -> tuple[Functions | None, CompressedDesign | None]:
    """Candidates where a kernel has a function on each of many rows and does not compress, or else its compression."""
    n, m = len(X), len(functions)
    if not isinstance(functions, KernelFunctions) or m <= _CANDIDATES or np.any(functions.rows < 0):
        return None, None
    few = functions.restrict(
        scattered_rows(functions.centres, max(_FEWEST_CANDIDATES, min(_CANDIDATES, _DENSE_BYTES // (8 * n))))
    )
    if low_rank and functions.compressible and compress_kernel(few, few.centres, _tolerance(n), _HIGH_RANK) is not None:
        closest = compress_kernel(functions, X, _tolerance(n), 2 * _HIGH_RANK)
        if closest is not None:
            return None, closest
    return few, None


def _beside_ones(functions: Functions, X: Array, ones: bool) -> Array:
    """Values of the functions, made a block of rows at a time, and a column of ones beside them where wanted."""
    n, m = len(X), len(functions)
    values = np.ones((n, m + ones))
    step = max(1, BLOCK_BYTES // (8 * m))
    blocks = [slice(start, start + step) for start in range(0, n, step)]

    def fill(rows: slice) -> None:
        values[rows, :m] = functions.evaluate(X[rows])

    on_all_cores(fill, blocks)
    return values


def _compress(functions: Functions, X: Array, compress: bool, rank: float) -> CompressedDesign | None:
    """A design of low rank where the kernel is smooth enough for that to pay; for its landmarks only, a small one."""
    n = X.shape[0]
    if not isinstance(functions, KernelFunctions) or not functions.compressible or n * len(functions) < _WORTH_IT:
        return None
    if not compress and 8 * n * len(functions) > _DENSE_BYTES:
        return None
    return compress_kernel(functions, X, _tolerance(n), int(rank * min(n, len(functions))))


def _tolerance(n: int) -> float:
    return _REMAINDER if n <= _MANY_ROWS else _CLOSE_REMAINDER


def landmarks_of(functions: Functions | None, n: int) -> Index | None:
    """Functions that nearly span all others on n rows that are elsewhere: those that the rows in memory would have."""
    if not isinstance(functions, KernelFunctions) or not functions.compressible or n * len(functions) < _WORTH_IT:
        return None
    spanning = compress_kernel(functions, functions.centres, _tolerance(n), int(HALF_RANK * min(n, len(functions))))
    return None if spanning is None else spanning.landmarks


def _check_range(design: Design) -> None:
    """Refuse functions whose squares are not representable, which no evidence could compare."""
    norms = design.sqnorms()
    if not np.all(np.isfinite(norms)):
        raise ValueError("the functions on X contain NaN or infinity, or their squares overflow: rescale X")
    largest = float(np.max(norms, initial=0.0))
    if largest > _RANGE or 0.0 < largest < 1.0 / _RANGE:
        raise ValueError(f"the functions on X have squared norms of magnitude {largest:.3g}: rescale X")
