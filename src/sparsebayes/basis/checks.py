"""Checks of basis parameters: every message names the parameter, what came and what was expected."""

from __future__ import annotations

from numbers import Integral, Real
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .base import Floats, as_inputs


def check_training(X: ArrayLike) -> Floats:
    """Return training inputs as a non-empty, finite (n, d) float64 array."""
    X = as_inputs(X)
    if 0 in X.shape:
        raise ValueError(f"X has shape {X.shape}; expected at least one sample and one feature")
    if not np.isfinite(X).all():
        raise ValueError("X contains NaN or infinity; expected finite training inputs")
    return X


def check_count(name: str, value: Any) -> int:
    """Return ``value`` as a positive int."""
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, Integral) or value < 1:
        raise ValueError(f"{name}={value!r}; expected a positive integer")
    return int(value)


def check_real(name: str, value: Any) -> float:
    """Return ``value`` as a finite float."""
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, Real) or not np.isfinite(float(value)):
        raise ValueError(f"{name}={value!r}; expected a finite number")
    return float(value)


def check_flag(name: str, value: Any) -> bool:
    """Return ``value`` as a bool."""
    if not isinstance(value, (bool, np.bool_)):
        raise ValueError(f"{name}={value!r}; expected True or False")
    return bool(value)


def check_width(value: Any, n_features: int) -> float | list[float]:
    """Return a width as one positive float, or as a list of one per input."""
    try:
        width: NDArray[np.float64] = np.asarray(value, dtype=np.float64)
    except (TypeError, ValueError):
        width = np.array(np.nan)
    if width.shape not in {(), (n_features,)} or not (np.isfinite(width) & (width > 0)).all():
        raise ValueError(
            f"width={value!r}; expected a positive number, or one positive number for each of the {n_features} inputs"
        )
    return width.tolist()


def check_slope(name: str, value: Any, n_features: int) -> float | list[float]:
    """Return a slope as one finite float, or as a list of one per input."""
    try:
        slope: NDArray[np.float64] = np.asarray(value, dtype=np.float64)
    except (TypeError, ValueError):
        slope = np.array(np.nan)
    flag = isinstance(value, (bool, np.bool_))
    if flag or slope.shape not in {(), (n_features,)} or not np.isfinite(slope).all():
        raise ValueError(
            f"{name}={value!r}; expected a finite number, or one finite number for each of the {n_features} inputs"
        )
    return slope.tolist()
