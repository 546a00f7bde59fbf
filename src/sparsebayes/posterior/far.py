"""Inputs so far out that squares of their values are no numbers."""

from __future__ import annotations

import numpy as np

from sparsebayes.typing import Array

# Values up to this have products with each other and with weights that are numbers.
NEAR = 1e100
# What is taken of a row farther out, where a part of it is, at least: its square is a number.
LEAST_PART = 1e-150
# Magnitude beyond which no number is returned.
_LARGEST = 1e300


def reduced(values: Array) -> tuple[Array, Array]:
    """Rows divided by a number each, so that their squares are numbers, and these numbers: one where nothing is needed.

    Parameters
    ----------
    values : ndarray of shape (n, k)
        Values of functions.

    Returns
    -------
    values : ndarray of shape (n, k)
    units : ndarray of shape (n,)
    """
    largest = np.max(np.abs(values), axis=1, initial=0.0)
    if not np.any(largest > NEAR):
        return values, np.ones(len(values))
    units = np.maximum(largest / NEAR, 1.0)
    return values / units[:, None], units


def restored(numbers: Array, units: Array) -> Array:
    """Numbers times their units, cut off where that would be no number."""
    return np.clip(numbers, -_LARGEST / units, _LARGEST / units) * units


def within(numbers: Array) -> Array:
    """Numbers cut off where sums of a few of them would be none."""
    return np.clip(numbers, -_LARGEST, _LARGEST)
