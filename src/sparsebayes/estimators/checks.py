"""Checks before a fit: of what users pass, and of what their settings ask of the place where the rows are.

Every message names the parameter, what came, and what was expected.  Solvers declare which likelihoods they take and
what they need of the rows (``inference/solvers/solver.py``); the settings of an estimator add to that; a storage says
what it lacks, and why.  A fit that asks for it is refused with the parameter that asks, the reason, and two ways out:
another setting, or another storage.  The table in the documentation is made from the same declarations.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from numbers import Integral, Real
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import issparse
from scipy.sparse.linalg import LinearOperator
from sklearn.utils.class_weight import compute_sample_weight

from sparsebayes.basis import Basis, Bias, Kernel, Linear, Polynomial, Precomputed
from sparsebayes.basis.arrays import FORMS, has_form, is_elsewhere, to_host
from sparsebayes.chunks import as_chunks
from sparsebayes.estimators.cluster import is_dask
from sparsebayes.inference import SOLVERS, Sequential, Solver
from sparsebayes.inference.search.starts import EFFORTS
from sparsebayes.inference.solvers.solver import Kind, Need
from sparsebayes.likelihood import ROBUST
from sparsebayes.typing import Array

CONSTANT, VARIES = NOISES = ("constant", "varies")
LIKELIHOODS = ("gaussian", *ROBUST, "poisson")
PRECISIONS = ("float64", "float32")

# S² is a fourth power of the inputs, the noise variance a square of the targets: beyond these powers of ten they
# overflow, or underflow.
_DECADES = {"X": 60, "y": 150, "sample_weight": 60}
# A weight is so many copies of a row: of this many rows double precision hardly tells one more, let alone a nat.
_MOST_ROWS = 1e15


def choose(name: str, value: Any, known: tuple[str, ...], otherwise: str = "") -> str:
    """Check that a named choice exists; ``otherwise`` says what else may be given."""
    if not isinstance(value, str) or value not in known:
        raise ValueError(f"{name}={value!r} is not known; choose one of {', '.join(map(repr, known))}{otherwise}")
    return value


def resolve_solver(solver: Any, effort: Any = "default") -> Solver:
    """Solver object from a name and an effort, or from itself."""
    choose("effort", effort, EFFORTS)
    if isinstance(solver, Solver):
        return solver
    kind = SOLVERS[choose("solver", solver, tuple(SOLVERS), ", or an object such as Sequential()")]
    return kind(effort=effort) if kind is Sequential else kind()


def check_positive(name: str, value: Any, *, integer: bool = False, otherwise: str = "") -> None:
    """Check a positive, finite number; ``otherwise`` says what else may be given."""
    kind = Integral if integer else Real
    if isinstance(value, bool) or not isinstance(value, kind) or not 0 < float(value) < np.inf:
        what = "positive integer" if integer else "positive, finite number"
        raise ValueError(f"{name}={value!r}: expected a {what}{otherwise}")


def check_forgetting(value: Any) -> None:
    """Check a factor by which rows make earlier ones count less."""
    if isinstance(value, bool) or not isinstance(value, Real) or not 0.0 < float(value) <= 1.0:
        raise ValueError(f"forgetting={value!r}: expected a number above 0 and at most 1 (which forgets nothing)")


def check_compression(value: Any) -> bool:
    """Whether the dictionary may be compressed."""
    if value is False or (isinstance(value, str) and value == "auto"):
        return value == "auto"
    raise ValueError(f"compression={value!r}: expected 'auto' (where it pays), or False (never)")


def check_restarts(value: Any) -> None:
    """Check a number of restarts."""
    if isinstance(value, bool) or not isinstance(value, Integral) or value < 0:
        raise ValueError(f"n_restarts={value!r}: expected an integer of at least 0")


def check_noise(noise_variance: Any, n_targets: int) -> Array | None:
    """Fixed noise variances, one per target, or None if they are to be learned."""
    if noise_variance is None:
        return None
    values = np.atleast_1d(_as_numbers("noise_variance", noise_variance, "None or a positive, finite number"))
    if values.size not in (1, n_targets) or not np.all((values > 0) & np.isfinite(values)):
        raise ValueError(
            f"noise_variance={noise_variance!r}: expected None (learn it), or a positive, finite number "
            "(or one for each target)"
        )
    return np.broadcast_to(values.ravel(), (n_targets,)).copy()


def check_weights(sample_weight: ArrayLike | None, n: int) -> Array:
    """Sample weights as a float array, all ones by default."""
    if sample_weight is None:
        return np.ones(n)
    weights = _as_numbers("sample_weight", to_host(sample_weight), "numbers")
    if weights.ndim == 0:
        weights = np.full(n, float(weights))
    if weights.shape != (n,):
        raise ValueError(f"sample_weight has shape {weights.shape}: expected ({n},), one weight for each row")
    if not np.all(np.isfinite(weights)) or np.any(weights < 0):
        raise ValueError("sample_weight has negative or non-finite entries: weights must be finite and at least 0")
    if not np.any(weights > 0):
        raise ValueError("sample_weight is zero on every row: at least one row must have a positive weight")
    check_magnitude("sample_weight", weights)
    if np.sum(weights) > _MOST_ROWS:
        raise ValueError(
            f"sample_weight adds up to {np.sum(weights):.3g}: a weight of k counts as k copies of the row, and of more "
            f"than {_MOST_ROWS:.0e} rows double precision cannot tell one more; divide sample_weight by its mean"
        )
    return weights


def check_labels(y: Any) -> Any:
    """Labels as they came, or an array of the numbers that objects hold; missing and mixed ones are refused.

    What is not a vector of labels is left for others to refuse.
    """
    given = np.asarray(y)
    if isinstance(y, list | tuple) and given.dtype.kind in "US":  # NumPy makes texts of numbers among texts
        given = np.asarray(y, dtype=object)
    if given.ndim not in (1, 2) or given.dtype.kind not in "fmMO":
        return y
    labels = given.ravel()
    missing = np.flatnonzero([*map(_is_missing, labels)] if given.dtype.kind == "O" else labels != labels)
    if len(missing):
        raise ValueError(
            f"y has {len(missing)} missing label(s), the first of them in row {missing[0]} ({labels[missing[0]]}), and "
            "None, NaN, NaT and NA are none: expected a class for every row; leave these rows out, or give them a "
            "class of their own"
        )
    if given.dtype.kind != "O":
        return y
    kinds = {_kind_of_label(label) for label in labels}
    if kinds == {"text"}:
        return y
    if len(kinds) > 1 or not kinds <= {"bool", "number"}:
        raise ValueError(
            f"y has labels of type {', '.join(sorted(kinds))}: expected texts, numbers or bools, and all of one type; "
            "convert them, as by [str(label) for label in y]"
        )
    return np.array(labels.tolist()).reshape(given.shape)


def _is_missing(label: Any) -> bool:
    """Whether a label is none: None, NaN, NaT, or pandas' NA, which is not even equal or unequal to itself."""
    try:
        return label is None or bool(label != label)
    except (TypeError, ValueError):
        return True


def _kind_of_label(label: Any) -> str:
    if isinstance(label, bool | np.bool_):
        return "bool"
    return "text" if isinstance(label, str) else "number" if isinstance(label, Real) else type(label).__name__


def check_class_weights(class_weight: Any, y: NDArray[Any], weights: Array) -> Array:
    r"""What the weight of every row is multiplied by for the sake of its class.

    Balanced, all classes count the same: :math:`\sum_nw_n/(K\sum_{n\in k}w_n)` for a row of class k, so that a sample
    weight :math:`w_n` is as many copies of the row here too, and a class without rows is none.
    """
    if class_weight is None:
        return np.ones(len(y))
    if isinstance(class_weight, str) and class_weight == "balanced":
        _, labels = np.unique(y, return_inverse=True)
        totals = np.bincount(labels, weights)
        shares = np.count_nonzero(totals) * totals / np.sum(totals)
        return (1.0 / np.where(shares > 0.0, shares, 1.0))[labels]
    by_class = np.asarray(compute_sample_weight(class_weight, y), dtype=np.float64)
    if not np.all(np.isfinite(by_class) & (by_class >= 0.0)):
        raise ValueError(f"class_weight={class_weight!r}: expected finite weights of at least 0")
    return by_class


def _as_numbers(name: str, value: Any, expected: str) -> Array:
    """Real numbers as an array; anything else is refused by name."""
    try:
        given = np.asarray(value)
        if given.dtype.kind == "c":
            raise TypeError("complex")
        return given.astype(np.float64)
    except (TypeError, ValueError):
        raise ValueError(f"{name}={value!r}: expected {expected}") from None


def check_relative_noise(noise_variance: Array, mean_square: Array) -> None:
    """Refuse a fixed noise so far from the targets' variance that double precision cannot hold both."""
    ratio = noise_variance / np.where(mean_square > 0.0, mean_square, noise_variance)
    if np.any((ratio < 1e-20) | (ratio > 1e20)):
        raise ValueError(
            f"noise_variance={noise_variance.tolist()} is of another magnitude than the targets' mean square "
            f"{mean_square.tolist()}: beyond 20 decades double precision cannot hold both; rescale or choose another"
        )


def check_magnitude(name: str, values: Array) -> None:
    """Refuse numbers whose powers are not representable."""
    # Without an array of absolute values, which would be a copy of the whole.
    check_largest(name, max(float(np.max(values, initial=0.0)), -float(np.min(values, initial=0.0))))


def check_largest(name: str, largest: float) -> None:
    """Refuse a largest magnitude whose powers are not representable."""
    limit = 10.0 ** _DECADES[name]
    if largest > limit or 0.0 < largest < 1.0 / limit:
        raise ValueError(
            f"{name} has entries of magnitude {largest:.3g}, whose powers are not representable: rescale {name}"
        )


@dataclass(frozen=True)
class Storage:
    """A place where rows may be.

    Attributes
    ----------
    name : str
        In the table.
    lacks : mapping
        Why it cannot give what it cannot give.
    instead : str
        The storage that can.
    """

    name: str
    lacks: Mapping[Need, str] = field(default_factory=dict)
    instead: str = "pass NumPy arrays"

    def refuse(self, asks: Iterable[Ask]) -> None:
        """Raise where something is asked that this storage cannot give; X is of the wrong type where functions are."""
        for ask in asks:
            if ask.need in self.lacks:
                kind = TypeError if ask.need in (Need.CENTRES, Need.FUNCTIONS, Need.FORMS) else ValueError
                raise kind(
                    f"{ask.said} {ask.why or ask.need.value}, and {self.lacks[ask.need]}; "
                    f"{ask.otherwise}, or {self.instead}"
                )

    def gives(self, asks: Iterable[Ask]) -> bool:
        """Whether it can give all that is asked."""
        return not any(ask.need in self.lacks for ask in asks)


@dataclass(frozen=True)
class Ask:
    """What one setting asks: the setting as it was given, what for, and another setting that does not."""

    said: str
    need: Need
    otherwise: str
    why: str = ""


_SUMS_ONLY = "of rows that come in chunks only inner products are kept"
_TRAVEL = "rows of Dask collections do not travel"

ARRAY = Storage("NumPy array, any dtype")
MAPPED = Storage("memory-mapped array")
SPARSE = Storage(
    "SciPy sparse array",
    {
        Need.FUNCTIONS: "rows of a sparse array are not made dense",
        Need.CENTRES: "rows of a sparse array are not made dense",
        Need.DEVICE: "a sparse array stays where it is",
    },
    "pass X.toarray()",
)
OPERATOR = Storage(
    "SciPy LinearOperator",
    {
        Need.FUNCTIONS: "a LinearOperator has products only",
        Need.CENTRES: "a LinearOperator has products only",
        Need.LEFT_OUT: "a LinearOperator has all of them or none",
        Need.DEVICE: "a LinearOperator stays where it is",
    },
    "pass the matrix, such as X @ numpy.eye(X.shape[1])",
)
ELSEWHERE = Storage(
    "array of another library (PyTorch, CuPy, JAX, …)",
    {
        Need.RESIDUALS: "noise that varies is learned on the host only",
        Need.FRESH: "functions are made on the host only",
        Need.WIDTHS: "kernels are learned on the host only",
        Need.FORMS: "functions are computed where the rows are",
    },
)
CHUNKS = Storage(
    "chunks, Parquet files, partial_fit",
    {
        Need.PASSES: _SUMS_ONLY,
        Need.ROWS: _SUMS_ONLY,
        Need.RESIDUALS: _SUMS_ONLY,
        Need.FRESH: _SUMS_ONLY,
        Need.CENTRES: _SUMS_ONLY,
        Need.ALL_ROWS: _SUMS_ONLY,
        Need.WIDTHS: _SUMS_ONLY,
        Need.DEVICE: "rows that come in chunks are reduced on the host",
    },
    "pass all rows as one array or file",
)
DASK = Storage(
    "Dask array, Dask DataFrame, folder of Parquet files",
    {
        Need.ROWS: _TRAVEL,
        Need.RESIDUALS: _TRAVEL,
        Need.FRESH: _TRAVEL,
        Need.ALL_ROWS: _TRAVEL,
        Need.WIDTHS: _TRAVEL,
        Need.LEFT_OUT: _TRAVEL,
        Need.WEIGHTS: "rows of Dask collections have none",
        Need.TARGETS: "rows of Dask collections have one each",
        Need.RESTARTS: "a search on Dask collections begins once",
        Need.STEPS: "of rows of Dask collections only sums that are made once are kept",
        Need.DEVICE: _TRAVEL,
    },
)
STORAGES = (ARRAY, MAPPED, SPARSE, OPERATOR, ELSEWHERE, CHUNKS, DASK)


def storage_of(X: Any, y: Any = None) -> Storage:
    """Where these training rows are; only their type is looked at."""
    if isinstance(X, np.ndarray):
        return MAPPED if isinstance(X, np.memmap) else ARRAY
    if is_dask(X):
        return DASK
    if isinstance(X, LinearOperator):
        return OPERATOR
    if issparse(X):
        return SPARSE
    if is_elsewhere(X):
        return ELSEWHERE
    return ARRAY if as_chunks(X, y) is None else CHUNKS


# -- the check ----------------------------------------------------------------------------------------------------


def check_regressor(
    estimator: Any, solver: Solver, storage: Storage, sample_weight: Any = None, n_targets: int = 1
) -> None:
    """Refuse what this regressor's settings ask and its solver or the storage cannot give.

    Parameters
    ----------
    estimator : regressor
        With valid settings.
    solver : Solver
        Its solver.
    storage : Storage
        Where the rows are.
    sample_weight : array-like, optional
        As given.
    n_targets : int
        Number of targets.
    """
    kind = kind_of(estimator.likelihood)
    check_kind(solver, kind)
    if estimator.support != "evidence" and not solver.takes_support:
        raise ValueError(
            f"support={estimator.support!r} asks the evidence which functions are worth their place, and "
            f"solver={name_of(solver)!r} ({solver.takes_why}) does not; use support='evidence', or solver='sequential'"
        )
    _check_generated(estimator, solver, kind)
    if estimator._learned_gamma is not None and kind is Kind.ROBUST:
        raise ValueError(
            f"gamma={estimator._learned_gamma!r}: the kernel is learned with likelihood='gaussian' or 'poisson' only; "
            f"fit again with likelihood={estimator.likelihood!r} and the kernel_ that was learned"
        )
    _check_targets(estimator, solver, n_targets)
    several = [Ask(f"y with {n_targets} targets", Need.TARGETS, "fit one at a time")] if n_targets > 1 else []
    _where(estimator, storage).refuse(several + asks_of_regression(estimator, solver, sample_weight))


def check_classifier(estimator: Any, solver: Solver, storage: Storage, sample_weight: Any = None) -> None:
    """Refuse what this classifier's settings ask and its solver or the storage cannot give; see ``check_regressor``."""
    if Kind.LOGISTIC not in solver.takes:
        check_kind(solver, Kind.LOGISTIC)
    _check_generated(estimator, solver, Kind.LOGISTIC)
    _where(estimator, storage).refuse(asks_of_classification(estimator, solver, sample_weight))


def check_classes(estimator: Any, solver: Solver, n_classes: int) -> None:
    """Refuse several classes jointly where the solver takes two at a time."""
    check_kind(solver, Kind.SOFTMAX if n_classes > 2 and estimator.multi_class == "softmax" else Kind.LOGISTIC)


def targets_of(y: Any) -> int:
    """Number of targets, by the shape alone."""
    try:
        shape = np.shape(y) if isinstance(y, list | tuple) else getattr(y, "shape", ())
    except ValueError:  # rows of several lengths: what is wrong with them is said elsewhere
        return 1
    return int(shape[1]) if len(shape) == 2 else 1


def _check_targets(estimator: Any, solver: Solver, n_targets: int) -> None:
    """Refuse what several targets cannot share."""
    if n_targets < 2:
        return
    if solver.makes_functions and not estimator.shared_support:
        raise ValueError(
            "candidates, split_merge: each target would generate its own functions; use shared_support=True, or one "
            "target"
        )
    if estimator.shared_support and not solver.takes_shared:
        others = " or ".join(repr(name) for name, other in SOLVERS.items() if other.takes_shared)
        raise ValueError(
            f"solver={name_of(solver)!r} takes targets one by one: shared_support=True needs one set of functions for "
            f"all; use shared_support=False, or solver={others}"
        )
    if estimator.shared_support and estimator.likelihood != "gaussian":
        raise ValueError(
            f"shared_support=True is for likelihood='gaussian': likelihood={estimator.likelihood!r} weighs the rows of "
            "each target by itself; use shared_support=False"
        )


def _where(estimator: Any, storage: Storage) -> Storage:
    """Where the rows will be."""
    return ELSEWHERE if storage in (ARRAY, MAPPED) and estimator.device is not None else storage


def _check_generated(estimator: Any, solver: Solver, kind: Kind) -> None:
    if not solver.makes_functions:
        return
    if kind is not Kind.GAUSSIAN:
        raise ValueError(
            "candidates, split_merge: functions are generated on the way in regression with likelihood='gaussian' "
            "only; use a basis with centres"
        )
    if solver.candidates is not None and not hasattr(estimator, "kernel") and not isinstance(estimator.basis, Kernel):
        raise ValueError(
            f"candidates: generated functions need a basis with centres, and basis={estimator.basis!r} has none; use "
            "one such as RBF(2.5)"
        )
    if estimator._learned_gamma is not None:
        raise ValueError(
            f"candidates, split_merge: functions cannot be generated while gamma={estimator._learned_gamma!r} changes "
            "them; fit again with the kernel_ that was learned"
        )


# -- what settings ask --------------------------------------------------------------------------------------------


def kind_of(likelihood: str) -> Kind:
    """Kind of a likelihood of regression."""
    return Kind.ROBUST if likelihood in ROBUST else Kind(likelihood)


def name_of(solver: Solver) -> str:
    """Name by which a solver can be chosen, or that of its class."""
    return next((name for name, kind in SOLVERS.items() if type(solver) is kind), type(solver).__name__)


def check_kind(solver: Solver, kind: Kind) -> None:
    """Refuse a solver that does not take this kind of likelihood."""
    if kind in solver.takes:
        return
    two = ", or multi_class='ovr'" if kind is Kind.SOFTMAX and Kind.LOGISTIC in solver.takes else ""
    others = [name for name, other in SOLVERS.items() if kind in other.takes]
    raise ValueError(
        f"solver={name_of(solver)!r} is not for {kind.value} ({solver.takes_why}); "
        f"use solver={' or '.join(map(repr, others))}{two}"
    )


def asks_of_solver(solver: Solver, kind: Kind, *, centred: bool) -> list[Ask]:
    """What a solver asks of the rows; ``centred`` where functions sit on rows."""
    needs = solver.needs(kind, centred=centred)
    said, otherwise = f"solver={name_of(solver)!r}", "use solver='sequential'"
    asks = [Ask(said, need, otherwise, needs[need]) for need in needs]
    if isinstance(solver, Sequential):
        where = {Need.FRESH: "candidates, split_merge:", Need.ROWS: f"exchange={solver.exchange!r}"}
        better = {Need.FRESH: "use a basis with centres", Need.ROWS: "use Sequential(exchange='never')"}
        asks = [Ask(where.get(a.need, said), a.need, better.get(a.need, otherwise), a.why) for a in asks]
    return asks


def asks_of_regression(estimator: Any, solver: Solver, sample_weight: Any = None) -> list[Ask]:
    """What a regressor asks of the place where its rows are."""
    asks = _asks(estimator, sample_weight) + likelihood_asks(kind_of(estimator.likelihood), estimator.likelihood)
    if estimator.noise != CONSTANT:
        asks.append(Ask(f"noise={estimator.noise!r}", Need.RESIDUALS, f"use noise={CONSTANT!r}"))
    return asks + asks_of_solver(solver, kind_of(estimator.likelihood), centred=_centred(estimator))


def likelihood_asks(kind: Kind, name: str = "") -> list[Ask]:
    """What a likelihood asks of the rows."""
    if kind in (Kind.ROBUST, Kind.POISSON):
        return [Ask(f"likelihood={name!r}", Need.ROWS, "use likelihood='gaussian'", "weighs every row by itself")]
    return []


def asks_of_classification(estimator: Any, solver: Solver, sample_weight: Any = None) -> list[Ask]:
    """What a classifier asks of the place where its rows are."""
    asks = _asks(estimator, sample_weight)
    if estimator.checkpoint is not None:
        asks.append(Ask(f"checkpoint={estimator.checkpoint!r}", Need.STEPS, "use checkpoint=None"))
    if estimator.class_weight is not None:
        asks.append(Ask(f"class_weight={estimator.class_weight!r}", Need.WEIGHTS, "use class_weight=None"))
    asks.append(Ask(type(estimator).__name__, Need.PASSES, "use a regressor"))
    return asks + asks_of_solver(solver, Kind.LOGISTIC, centred=_centred(estimator))


def classes_that_share(n_classes: int) -> Ask:
    """What several classes with one set of functions ask; only the rows say how many classes there are."""
    why = "goes over all rows for every function"
    return Ask(
        f"shared_support=True with {n_classes} classes", Need.ROWS, "use shared_support=False or multi_class='ovr'", why
    )


def _asks(estimator: Any, sample_weight: Any) -> list[Ask]:
    """What settings ask that all estimators have."""
    asks = list(_functions(estimator))
    if estimator._learned_gamma is not None:
        asks.append(Ask(f"gamma={estimator._learned_gamma!r}", Need.WIDTHS, "give gamma a number"))
    if sample_weight is not None:
        asks.append(Ask("sample_weight", Need.WEIGHTS, "repeat rows"))
        if _some_zero(sample_weight):
            asks.append(Ask("a sample_weight of zero", Need.LEFT_OUT, "leave these rows out of X and y"))
    if estimator.n_restarts:
        asks.append(Ask(f"n_restarts={estimator.n_restarts!r}", Need.RESTARTS, "use n_restarts=0"))
    if estimator.checkpoint is not None:
        asks.append(Ask(f"checkpoint={estimator.checkpoint!r}", Need.CHECKPOINT, "use checkpoint=None"))
    if estimator.device is not None:
        asks.append(Ask(f"device={estimator.device!r}", Need.DEVICE, "use device=None"))
    return asks


def _centred(estimator: Any) -> bool:
    """Whether functions sit on training rows."""
    return hasattr(estimator, "kernel") or (isinstance(estimator.basis, Basis) and not fixed(estimator.basis))


def fixed(basis: Basis | None) -> bool:
    """Whether the functions depend on no row."""
    return all(
        isinstance(term, Bias | Linear | Polynomial | Precomputed)
        or (isinstance(term, Kernel) and term.centres is not None and not isinstance(term.centres, Integral))
        for term in (() if basis is None else basis._terms())
    )


def _some_zero(sample_weight: Any) -> bool:
    """Whether some weights are zero; what is wrong with weights is said elsewhere."""
    try:
        return bool(np.any(np.asarray(to_host(sample_weight)) == 0))
    except (TypeError, ValueError):
        return False


def _functions(estimator: Any) -> Iterable[Ask]:
    """What the functions of an estimator ask."""
    by_rows = hasattr(estimator, "kernel")
    basis = estimator.kernel if by_rows else estimator.basis
    terms = basis._terms() if isinstance(basis, Basis) else ()
    said = f"{'kernel' if by_rows else 'basis'}={basis!r}"
    if by_rows:
        other = type(estimator).__name__.replace("RVR", "SparseBayesRegressor").replace("RVC", "SparseBayesClassifier")
        yield Ask(type(estimator).__name__, Need.CENTRES, f"use {other} with the columns of X or with given centres")
    elif terms:
        yield Ask(said, Need.FUNCTIONS, "use basis=None for the columns of X")
    if any(isinstance(term, Kernel) and term.centres is None for term in terms):
        yield Ask(said, Need.CENTRES, "give kernels their centres, as an array or as a number")
    if not all(isinstance(term, Kernel) or fixed(term) for term in terms):
        yield Ask(said, Need.ALL_ROWS, "use kernels with centres")
    if callable(basis) or not all(has_form(term) for term in terms):
        yield Ask(said, Need.FORMS, f"use {', '.join(FORMS[:-1])} or {FORMS[-1]}")


def check_varying(est: Any, n_targets: int) -> None:
    """Refuse settings that noise that varies cannot be learned with, before anything is computed.

    Parameters
    ----------
    est : estimator
        Its parameters.
    n_targets : int
        Number of targets.
    """
    if choose("noise", est.noise, NOISES) == CONSTANT:
        return
    if est.likelihood != "gaussian":
        counts = est.likelihood == "poisson"
        why = "the variance of a count is its rate" if counts else "it gives every row a weight of its own"
        raise ValueError(
            f"noise='varies' is for likelihood='gaussian'; got likelihood={est.likelihood!r}: {why}; use "
            "noise='constant', or likelihood='gaussian'"
        )
    if est.noise_variance is not None:
        raise ValueError(
            f"noise_variance={est.noise_variance!r} fixes the noise, and noise='varies' learns it; use "
            "noise_variance=None, or noise='constant'"
        )
    if est.checkpoint is not None:
        raise ValueError(
            f"checkpoint={est.checkpoint!r}: searches with noise='varies' are not kept; use checkpoint=None, or "
            "noise='constant'"
        )
    if est.shared_support and n_targets > 1:
        raise ValueError(
            "noise='varies' weighs the rows of each target by itself: use shared_support=False, or noise='constant'"
        )
    if est._learned_gamma is not None:
        raise ValueError(
            f"gamma={est._learned_gamma!r}: the kernel is learned with noise='constant' only; fit again with "
            "noise='varies' and the kernel_ that was learned"
        )
    solver = resolve_solver(est.solver, est.effort)
    if not isinstance(solver, Sequential) or solver.candidates is not None or solver.split_merge:
        raise ValueError(
            f"solver={est.solver!r}: noise='varies' is learned by the sequential solver, without candidates and "
            "split_merge; use solver='sequential', or noise='constant'"
        )
