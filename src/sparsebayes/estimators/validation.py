"""Checks of what users pass; every message names the parameter, what came, and what was expected."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.class_weight import compute_sample_weight

from sparsebayes.inference import SOLVERS, Sequential, Solver
from sparsebayes.inference.search.starts import EFFORTS
from sparsebayes.likelihood import ROBUST

Array = NDArray[np.float64]

LIKELIHOODS = ("gaussian", *ROBUST, "poisson")
STORAGES = ("float64", "float32")

# S² is a fourth power of the inputs, the noise variance a square of the targets: beyond these powers of ten they
# overflow, or underflow.
_DECADES = {"X": 60, "y": 150, "sample_weight": 60}
# A weight is so many copies of a row: of this many rows double precision hardly tells one more, let alone a nat.
_MOST_ROWS = 1e15


def choose(name: str, value: Any, known: tuple[str, ...]) -> str:
    """Check that a named choice exists."""
    if not isinstance(value, str) or value not in known:
        raise ValueError(f"{name}={value!r} is not known; choose one of {', '.join(map(repr, known))}")
    return value


def resolve_solver(solver: Any, effort: Any = "default") -> Solver:
    """Solver object from a name and an effort, or from itself."""
    choose("effort", effort, EFFORTS)
    if isinstance(solver, Solver):
        return solver
    kind = SOLVERS[choose("solver", solver, tuple(SOLVERS))]
    return kind(effort=effort) if kind is Sequential else kind()


def check_positive(name: str, value: Any, *, integer: bool = False) -> None:
    """Check a positive, finite number."""
    kind = Integral if integer else Real
    if isinstance(value, bool) or not isinstance(value, kind) or not 0 < float(value) < np.inf:
        what = "positive integer" if integer else "positive, finite number"
        raise ValueError(f"{name}={value!r}: expected a {what}")


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
    weights = _as_numbers("sample_weight", sample_weight, "numbers")
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
