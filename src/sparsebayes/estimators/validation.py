"""Checks of what users pass; every message names the parameter, what came, and what was expected."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sparsebayes.inference import Sequential

Array = NDArray[np.float64]

SOLVERS = {"sequential": Sequential}
LIKELIHOODS = ("gaussian",)

# Squares of larger numbers overflow, of smaller ones underflow; noise variances are squares of targets.
_LARGEST = 1e150
_SMALLEST = 1e-150


def choose(name: str, value: Any, known: tuple[str, ...]) -> str:
    """Check that a named choice exists."""
    if not isinstance(value, str) or value not in known:
        raise ValueError(f"{name}={value!r} is not known; choose one of {', '.join(map(repr, known))}")
    return value


def resolve_solver(solver: Any) -> Sequential:
    """Solver object from a name or from itself."""
    if isinstance(solver, Sequential):
        return solver
    return SOLVERS[choose("solver", solver, tuple(SOLVERS))]()


def check_positive(name: str, value: Any, *, integer: bool = False) -> None:
    """Check a positive, finite number."""
    kind = Integral if integer else Real
    if isinstance(value, bool) or not isinstance(value, kind) or not 0 < float(value) < np.inf:
        what = "positive integer" if integer else "positive, finite number"
        raise ValueError(f"{name}={value!r}: expected a {what}")


def check_noise(noise_variance: Any, n_targets: int) -> Array | None:
    """Fixed noise variances, one per target, or None if they are to be learned."""
    if noise_variance is None:
        return None
    values = np.atleast_1d(np.asarray(noise_variance, dtype=np.float64))
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
    weights = np.asarray(sample_weight, dtype=np.float64)
    if weights.ndim == 0:
        weights = np.full(n, float(weights))
    if weights.shape != (n,):
        raise ValueError(f"sample_weight has shape {weights.shape}: expected ({n},), one weight for each row")
    if not np.all(np.isfinite(weights)) or np.any(weights < 0):
        raise ValueError("sample_weight has negative or non-finite entries: weights must be finite and at least 0")
    if not np.any(weights > 0):
        raise ValueError("sample_weight is zero on every row: at least one row must have a positive weight")
    return weights


def check_magnitude(name: str, values: Array) -> None:
    """Refuse numbers whose squares are not representable."""
    largest = float(np.max(np.abs(values), initial=0.0))
    if largest > _LARGEST or 0.0 < largest < _SMALLEST:
        raise ValueError(
            f"{name} has entries of magnitude {largest:.3g}, whose squares are not representable: rescale {name}"
        )
