r"""Φ of low rank on a device: a smooth kernel at centres and rows that live there."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from sparsebayes.basis.arrays import ArrayFunctions, Place
from sparsebayes.basis.base import Floats, Index, positions

from .compressed import (
    CompressedDesign,
    choose_pivots,
    drawn,
    first_part,
    hopeless,
    laid_out,
    lots,
    pool_size,
    spread_out,
)
from .device import Native, joined


@dataclass(frozen=True)
class Left:
    """Coordinates of the rows, made a run of rows at a time; further columns of ones at their end.

    Attributes
    ----------
    make : callable
        ``make(part)`` gives the coordinates of a run of rows, in float64.
    n_rows, n_coordinates, n_ones : int
        How many there are.
    """

    make: Callable[[slice], Any]
    n_rows: int
    n_coordinates: int
    n_ones: int = 0

    def rows(self, place: Place, part: slice) -> Any:
        """Coordinates of a run of rows, the ones among them."""
        made = self.make(part)
        if not self.n_ones:
            return made
        ones = place.xp.ones((made.shape[0], self.n_ones), dtype=place.xp.float64, device=place.device)
        return place.xp.concat([made, ones], axis=1)


class ArrayCompressed(Native, CompressedDesign):
    """Φ = left rightᵀ of rank r, with the coordinates of the functions, and those of the rows, on a device.

    Parameters
    ----------
    place : Place
        Where they live.
    left : Left
        Coordinates of the rows.
    right : (M, r) array
        Coordinates of the functions, in float64 or float32.
    landmarks : (k,) integer array
        Functions that between them nearly span all of Φ.
    error : float
        Bound on the error of every entry.
    """

    def __init__(self, place: Place, left: Left, right: Any, landmarks: Index, error: float) -> None:
        self.place, self.rows_left, self.right, self.landmarks, self._error = place, left, right, landmarks, error

    @property
    def shape(self) -> tuple[int, int]:
        """The numbers (N, M) of rows and columns."""
        return self.rows_left.n_rows, int(self.right.shape[0])

    @property
    def error(self) -> float:
        """Bound on the error of every entry."""
        return self._error

    @property
    def rank(self) -> int:
        """Number of coordinates."""
        return int(self.right.shape[1])

    def _some(self, idx: Any) -> Any:
        place = self.place
        return place.floats(place.xp.take(self.right, place.indices(positions(idx, self.shape[1])), axis=0))

    def native(self, idx: Any) -> Any:
        """Φ[:, idx] on the device."""
        some = self._some(idx).T
        return self.place.xp.concat([left @ some for _, left in self._lefts()], axis=0)

    def matvec(self, w: ArrayLike, idx: Any) -> Floats:
        """Return Φ[:, idx] w for weights (k,) or (k, T)."""
        w = np.asarray(w, dtype=np.float64)
        inner = self._some(idx).T @ self.place.put(w.reshape(len(w), -1))
        found = self.place.xp.concat([left @ inner for _, left in self._lefts()], axis=0)
        return self.place.get(found).reshape(self.shape[0], *w.shape[1:])

    def correlate_there(self, V: Any) -> Any:
        """Φᵀ V for a matrix of the device."""
        inner = self._inner(V)
        return self._over_functions(lambda block: block @ inner)

    def sqnorms_there(self, weights: Any) -> Any:
        """The diagonal of Φᵀ diag(weights) Φ for a vector of the device."""
        gram, _ = self._products(weights, None)
        return self._over_functions(lambda block: self.place.xp.sum((block @ gram) * block, axis=1))

    def project_there(self, V: Any, P: Any) -> tuple[Any, Any]:
        """Φᵀ V and, for every function, the sum of squares of Φᵀ P, for matrices of the device."""
        xp, k = self.place.xp, V.shape[1]
        inner = self._inner(xp.concat([V, P], axis=1))

        def both(block: Any) -> Any:
            found = block @ inner
            return xp.concat([found[:, :k], xp.sum(found[:, k:] ** 2, axis=1)[:, None]], axis=1)

        result = self._over_functions(both)
        return result[:, :k], result[:, k]

    def inner_products(self, weights: Floats, V: Floats) -> tuple[Floats, Floats]:
        """Return leftᵀ diag(weights) left and leftᵀ diag(weights) V."""
        gram, projection = self._products(self.place.put(weights), self.place.put(V))
        return self.place.get(gram), self.place.get(projection)

    def with_rows(self, left: Floats) -> ArrayCompressed:
        """The same functions on a few other rows."""
        there = self.place.put(left)
        rows = Left(lambda part: there[part, :], len(left), left.shape[1])
        return ArrayCompressed(self.place, rows, self.right, self.landmarks, self.error)

    def with_ones(self) -> ArrayCompressed:
        """With the constant function at the end."""
        place, xp = self.place, self.place.xp
        m, r = self.right.shape
        wide = xp.concat([self.right, xp.zeros((m, 1), dtype=self.right.dtype, device=place.device)], axis=1)
        last = np.append(np.zeros(r), 1.0)[None, :]
        right = xp.concat([wide, place.put(last, self.right.dtype)], axis=0)
        left = Left(self.rows_left.make, self.shape[0], r, self.rows_left.n_ones + 1)
        return ArrayCompressed(place, left, right, self.landmarks, self.error)

    def _lefts(self) -> Any:
        for part in self.place.chunks(self.rows_left.n_rows, self.rank):
            yield part, self.rows_left.rows(self.place, part)

    def _inner(self, V: Any) -> Any:
        total = None
        for part, left in self._lefts():
            found = left.T @ V[part, :]
            total = found if total is None else total + found
        return total

    def _products(self, weights: Any, targets: Any | None) -> tuple[Any, Any]:
        gram, projection = None, None
        for part, left in self._lefts():
            weighted = weights[part][:, None] * left
            found = weighted.T @ left
            gram = found if gram is None else gram + found
            if targets is not None:
                found = weighted.T @ targets[part, :]
                projection = found if projection is None else projection + found
        return gram, projection

    def _over_functions(self, work: Callable[[Any], Any]) -> Any:
        place = self.place
        found = [work(place.floats(self.right[part, :])) for part in place.chunks(self.shape[1], self.rank)]
        return joined(place.xp, found)


def compress_elsewhere(
    functions: ArrayFunctions, X: Any, tolerance: float, max_rank: int, *, single: bool = False
) -> ArrayCompressed | None:
    """``compress_kernel`` for a kernel whose centres and rows are on a device.

    The large products are made there; which centres become pivots is decided on the host by the same rule.

    Parameters
    ----------
    functions : ArrayFunctions
        The kernel at its centres.
    X : (N, d) array
        Inputs of the rows.
    tolerance : float
        Bound on the remaining diagonal at the centres.
    max_rank : int
        Largest rank.
    single : bool
        Hold the coordinates in float32.
    """
    factors = _Factors(functions, tolerance, max_rank)
    if spread_out(len(functions)) and not factors.follow():
        return None
    while factors.largest > tolerance:
        if not factors.grow() or hopeless(len(factors.chosen), factors.largest, tolerance, max_rank):
            return None
    place = functions.place
    xp = place.xp
    chosen, right = factors.joined()
    corner = place.get(xp.take(right, place.indices(chosen), axis=0))
    if single:
        right = xp.astype(right, xp.float32)
    if np.array_equal(functions.rows, np.arange(X.shape[0])):
        left = Left(lambda part: place.floats(right[part, :]), X.shape[0], len(chosen))
        return ArrayCompressed(place, left, right, chosen, factors.largest)
    inverse, pivots = place.put(np.linalg.inv(np.tril(corner)).T), functions.take(chosen)
    left = Left(lambda part: functions.values(functions.scale(X[part, :]), pivots) @ inverse, X.shape[0], len(chosen))
    beyond = xp.zeros((), dtype=xp.float64, device=place.device)
    for part in place.chunks(X.shape[0], len(chosen)):
        rows = left.make(part)
        beyond = xp.maximum(beyond, xp.max(1.0 - xp.sum(rows * rows, axis=1)))
    return ArrayCompressed(place, left, right, chosen, float(np.sqrt(max(float(beyond), 0.0) * factors.largest)))


class _Factors:
    """The factorisation of a kernel at centres of a device, as far as it is; see its namesake for the host.

    Attributes
    ----------
    scaled : (m, d) array
        The centres, scaled: the M of the functions or, where these are few, the distinct ones as ``laid_out``.
    blocks : list of (m, k) arrays
        Coordinates, a block of columns for every round.
    chosen : (rank,) integer array
        The pivots, in order.
    remainder : (m,) array
        Diagonal of what is left, and ``largest`` of it.
    """

    def __init__(self, functions: ArrayFunctions, tolerance: float, max_rank: int) -> None:
        self.functions, self.tolerance, self.max_rank = functions, tolerance, max_rank
        place = functions.place
        self.scaled, self._laid_out = functions.scaled, None
        if not spread_out(len(functions)):
            self._laid_out = laid_out(place.get(functions.scaled))
            self.scaled = functions.take(self._laid_out[0])
        self.blocks: list[Any] = []
        self.chosen = np.zeros(0, dtype=np.intp)
        self.remainder = place.xp.ones(self.scaled.shape[0], dtype=place.xp.float64, device=place.device)
        self.largest = 1.0

    def grow(self) -> bool:
        """Choose a block of pivots and make their coordinates; False where there is no room."""
        functions, place = self.functions, self.functions.place
        xp, pool = place.xp, self._pool()
        near = xp.take(self.scaled, pool, axis=0)
        schur = functions.values(near, near)
        for block in self.blocks:
            done = xp.take(block, pool, axis=0)
            schur = schur - done @ done.T
        picked, triangle = choose_pivots(place.get(schur), self.largest)
        if len(picked) == 0 or len(self.chosen) + len(picked) > self.max_rank:
            return False
        self._append(
            xp.take(pool, place.indices(picked), axis=0), np.asarray(np.linalg.inv(triangle), dtype=np.float64)
        )
        return True

    def follow(self) -> bool:
        """Take pivots that the host chooses on a part of many centres, as it does for its own; False if too many."""
        functions, place, xp = self.functions, self.functions.place, self.functions.place.xp
        key = place.get(lots(xp, functions.scaled))
        part, factors = first_part(functions, key, self.tolerance, self.max_rank)
        while self.largest > self.tolerance:
            if not factors.complete():
                return False
            done = len(self.chosen)
            self._append(place.indices(part[factors.chosen[done:]]), factors.inverse[done:, done:])
            above = np.flatnonzero(place.get(self.remainder) > self.tolerance)
            part = np.concatenate([part, drawn(np, above, key)])
            factors.extend(functions.restrict(part))
        return True

    def _append(self, pivots: Any, inverse: Floats) -> None:
        """Make the coordinates of new pivots, given the inverse of their part of the factor."""
        place = self.functions.place
        self.blocks.append(self._coordinates(pivots, place.put(np.ascontiguousarray(inverse.T))))
        self.chosen = np.concatenate([self.chosen, np.asarray(place.get(pivots), dtype=np.intp)])
        self.largest = float(place.xp.max(self.remainder))

    def _pool(self) -> Any:
        """Numbers of the centres that pivots are chosen from, by the rule of the host."""
        xp, centres = self.functions.place.xp, self.scaled
        key = self.remainder if self.blocks else xp.sum((centres - xp.mean(centres, axis=0)) ** 2, axis=1)
        return xp.argsort(-key, stable=True)[: pool_size(centres.shape[0])]

    def _coordinates(self, pivots: Any, inverse: Any) -> Any:
        """Coordinates of all centres by new pivots, made a run of centres at a time; the remainder falls by them."""
        functions, place = self.functions, self.functions.place
        xp = place.xp
        at = xp.take(self.scaled, pivots, axis=0)
        done = [xp.take(block, pivots, axis=0).T for block in self.blocks]
        made, squares = [], []
        for part in place.chunks(self.scaled.shape[0], inverse.shape[0]):
            new = functions.values(self.scaled[part, :], at)
            for block, there in zip(self.blocks, done, strict=True):
                new = new - block[part, :] @ there
            new = new @ inverse
            made.append(new)
            squares.append(xp.sum(new * new, axis=1))
        self.remainder = self.remainder - joined(xp, squares)
        return joined(xp, made)

    def joined(self) -> tuple[Index, Any]:
        """The pivots among the functions, and all coordinates, (M, rank); the blocks are given up."""
        place = self.functions.place
        whole = joined(place.xp, self.blocks, 1)
        self.blocks.clear()
        if self._laid_out is None:
            return self.chosen, whole
        part, which = self._laid_out
        return part[self.chosen], place.xp.take(whole, place.indices(which), axis=0)
