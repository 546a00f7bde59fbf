"""Distances between inputs and centres, and the choice of centres by them."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.spatial.distance import cdist
from sklearn.utils import check_random_state

from .base import Floats, Index

# Up to here a loop over the inputs is as fast as a matrix product and exact.
DIRECT_FEATURES = 16
# A squared distance below this part of ‖x‖² + ‖c‖² has lost more than three of its sixteen digits.
_CANCELLED = 1e-3
# Differences held at once while those entries are computed again.
_PAIR_ENTRIES = 1 << 20


def squared_distances(X: Floats, centres: Floats) -> Floats:
    """Return ‖x_i − c_m‖², (n, m), exactly zero where x_i equals c_m.

    With many inputs it is ‖x‖² + ‖c‖² − 2 x·c, about the mean of the centres and clipped at zero; entries in
    which that expansion cancels are computed again from the differences.
    """
    if X.shape[1] <= DIRECT_FEATURES:
        return np.asarray(cdist(X, centres, "sqeuclidean"), dtype=np.float64)
    origin = centres.mean(axis=0)
    x, c = X - origin, centres - origin
    squares = np.einsum("id,id->i", x, x)[:, None]
    centre_squares = np.einsum("id,id->i", c, c)[None, :]
    distances = x @ c.T
    distances *= -2.0
    distances += squares
    distances += centre_squares
    np.maximum(distances, 0.0, out=distances)
    rows, columns = np.nonzero(distances < _CANCELLED * (squares + centre_squares.max()))
    step = max(1, _PAIR_ENTRIES // X.shape[1])
    for start in range(0, rows.size, step):
        i, m = rows[start : start + step], columns[start : start + step]
        difference = X[i] - centres[m]
        distances[i, m] = np.einsum("pd,pd->p", difference, difference)
    return distances


def city_block_distances(X: Floats, centres: Floats) -> Floats:
    """Return Σ_j |x_ij − c_mj|, (n, m)."""
    return np.asarray(cdist(X, centres, "cityblock"), dtype=np.float64)


def distinct_rows(X: Floats) -> NDArray[np.bool_]:
    """Which rows are no copy of an earlier one."""
    if len(np.unique(X[:, :1])) == len(X):  # one input that differs everywhere says it at once
        return np.ones(len(X), dtype=bool)
    distinct = np.zeros(len(X), dtype=bool)
    distinct[np.unique(X, axis=0, return_index=True)[1]] = True
    return distinct


def scattered_rows(X: Floats, count: int) -> Index:
    """Choose distinct rows as if at random, yet the same ones whatever the order of the rows.

    Rows are taken in the order of a hash of their entries (the finaliser of SplitMix64, column by column).

    Parameters
    ----------
    X : (n, d) ndarray
        The rows.
    count : int
        How many to choose at most; fewer come back where fewer are distinct.
    """
    mixed = np.zeros(len(X), dtype=np.uint64)
    for column in (np.asarray(X, dtype=np.float64) + 0.0).T:  # zero has two signs, and is one number
        mixed ^= np.ascontiguousarray(column).view(np.uint64)
        for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
            mixed ^= mixed >> np.uint64(shift)
            mixed *= np.uint64(factor)
        mixed ^= mixed >> np.uint64(31)
    _, first = np.unique(mixed, return_index=True)
    return np.sort(first[:count])


def farthest_rows(X: Floats, count: int, random_state: Any = None) -> Index:
    """Choose rows that cover ``X``: each the farthest from those before it.

    The cover is at most twice as wide as the best one of the same size (Gonzalez 1985). Ties go to the lowest
    index, equal rows are never chosen twice, and so fewer than ``count`` rows may come back.

    Parameters
    ----------
    X : (n, d) ndarray
        The rows, in the units in which distances matter.
    count : int
        How many to choose at most.
    random_state : int, RandomState or None
        Draws the first row; with None it is the one nearest the mean.
    """
    if random_state is None:
        first = int(np.argmin(np.square(X - X.mean(axis=0)).sum(axis=1)))
    else:
        first = int(check_random_state(random_state).randint(X.shape[0]))
    chosen = [first]
    gap = np.square(X - X[first]).sum(axis=1)
    while len(chosen) < min(count, X.shape[0]):
        farthest = int(np.argmax(gap))
        if gap[farthest] == 0.0:
            break
        chosen.append(farthest)
        np.minimum(gap, np.square(X - X[farthest]).sum(axis=1), out=gap)
    return np.sort(np.array(chosen, dtype=np.intp))
