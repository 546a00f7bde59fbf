r"""Φ on a device: arrays of any namespace of the array API, products there, small results on the host."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from sparsebayes.basis.arrays import ArrayFunctions, Place
from sparsebayes.basis.base import Floats, Index, positions

from .compressed import CompressedDesign, choose_pivots, hopeless, pool_size
from .protocol import Design


class ArrayDesign(Design):
    """Φ held as an array on a device.

    Parameters
    ----------
    Phi : (N, M) array
        Of any namespace of the array API, in float64 or float32; products are made in float64 in either case.
    """

    def __init__(self, Phi: Any) -> None:
        if Phi.ndim != 2:
            raise ValueError(f"Phi has shape {tuple(Phi.shape)}; expected two dimensions (rows, columns)")
        self._Phi = Phi
        self.place = Place.of(Phi)

    @property
    def shape(self) -> tuple[int, int]:
        """The numbers (N, M) of rows and columns."""
        return int(self._Phi.shape[0]), int(self._Phi.shape[1])

    def native(self, idx: Any) -> Any:
        """Φ[:, idx] on the device, in float64."""
        place = self.place
        return place.floats(place.xp.take(self._Phi, place.indices(positions(idx, self.shape[1])), axis=1))

    def columns(self, idx: Any) -> Floats:
        """Return Φ[:, idx], a new (N, k) array of the host."""
        return self.place.get(self.native(idx))

    def correlate(self, V: ArrayLike) -> Floats:
        """Return Φᵀ V: (M,) for a vector (N,), (M, T) for a matrix (N, T)."""
        V = np.asarray(V, dtype=np.float64)
        return self.place.get(self._correlate(self.place.put(V.reshape(len(V), -1)))).reshape(
            self.shape[1], *V.shape[1:]
        )

    def sqnorms(self, weights: ArrayLike | None = None) -> Floats:
        """Return the diagonal of Φᵀ diag(weights) Φ, (M,); the weights (N,) may have any sign."""
        place, (n, m) = self.place, self.shape
        rows = place.put(np.ones(n) if weights is None else self._row_weights(weights))
        total = place.xp.zeros(m, dtype=place.xp.float64, device=place.device)
        for part in place.chunks(n, m):
            block = place.floats(self._Phi[part, :])
            total = total + place.xp.sum(rows[part][:, None] * block * block, axis=0)
        return place.get(total)

    def project(self, V: Floats, P: Floats) -> tuple[Floats, Floats]:
        """Return Φᵀ V and, for every function, the sum of squares of Φᵀ P."""
        place = self.place
        found = self._correlate(place.put(np.hstack([V, P])))
        k = V.shape[1]
        return place.get(found[:, :k]), place.get(place.xp.sum(found[:, k:] ** 2, axis=1))

    def _correlate(self, V: Any) -> Any:
        place, (n, m) = self.place, self.shape
        if self._Phi.dtype == place.xp.float64:
            return self._Phi.T @ V
        total = place.xp.zeros((m, V.shape[1]), dtype=place.xp.float64, device=place.device)
        for part in place.chunks(n, m):
            total = total + place.floats(self._Phi[part, :]).T @ V[part, :]
        return total


class ArrayKernelDesign(ArrayDesign):
    """A kernel on inputs of a device, evaluated again for every product, a block of columns at a time.

    Parameters
    ----------
    functions : ArrayFunctions
        The kernel at its centres.
    X : (N, d) array
        The inputs of the rows, in the same place.
    """

    def __init__(self, functions: ArrayFunctions, X: Any) -> None:
        self.functions, self.place = functions, functions.place
        self._X = functions.scale(X)

    @property
    def shape(self) -> tuple[int, int]:
        """The numbers (N, M) of rows and columns."""
        return int(self._X.shape[0]), len(self.functions)

    def native(self, idx: Any) -> Any:
        """Φ[:, idx] on the device."""
        return self.functions.values(self._X, self.functions.take(idx))

    def sqnorms(self, weights: ArrayLike | None = None) -> Floats:
        """Return the diagonal of Φᵀ diag(weights) Φ, (M,); the weights (N,) may have any sign."""
        rows = self.place.put(np.ones(self.shape[0]) if weights is None else self._row_weights(weights))
        return self.place.get(self._by_blocks(lambda block: self.place.xp.sum(rows[:, None] * block * block, axis=0)))

    def _correlate(self, V: Any) -> Any:
        return self._by_blocks(lambda block: block.T @ V)

    def _by_blocks(self, work: Callable[[Any], Any]) -> Any:
        n, m = self.shape
        found = [
            work(self.functions.values(self._X, self.functions.scaled[part, :])) for part in self.place.chunks(m, n)
        ]
        return self.place.xp.concat(found, axis=0)


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


class ArrayCompressed(CompressedDesign):
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
        self.place, self.rows_left, self.right, self.landmarks, self.error = place, left, right, landmarks, error

    @property
    def shape(self) -> tuple[int, int]:
        """The numbers (N, M) of rows and columns."""
        return self.rows_left.n_rows, int(self.right.shape[0])

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

    def columns(self, idx: Any) -> Floats:
        """Return Φ[:, idx], a new (N, k) array of the host."""
        return self.place.get(self.native(idx))

    def matvec(self, w: ArrayLike, idx: Any) -> Floats:
        """Return Φ[:, idx] w for weights (k,) or (k, T)."""
        w = np.asarray(w, dtype=np.float64)
        inner = self._some(idx).T @ self.place.put(w.reshape(len(w), -1))
        found = self.place.xp.concat([left @ inner for _, left in self._lefts()], axis=0)
        return self.place.get(found).reshape(self.shape[0], *w.shape[1:])

    def correlate(self, V: ArrayLike) -> Floats:
        """Return Φᵀ V: (M,) for a vector (N,), (M, T) for a matrix (N, T)."""
        V = np.asarray(V, dtype=np.float64)
        inner = self._inner(self.place.put(V.reshape(len(V), -1)))
        return self.place.get(self._over_functions(lambda block: block @ inner)).reshape(-1, *V.shape[1:])

    def sqnorms(self, weights: ArrayLike | None = None) -> Floats:
        """Return the diagonal of Φᵀ diag(weights) Φ, (M,); the weights (N,) may have any sign."""
        rows = np.ones(self.shape[0]) if weights is None else self._row_weights(weights)
        gram, _ = self._normal(self.place.put(rows), None)
        return self.place.get(self._over_functions(lambda block: self.place.xp.sum((block @ gram) * block, axis=1)))

    def project(self, V: Floats, P: Floats) -> tuple[Floats, Floats]:
        """Return Φᵀ V and, for every function, the sum of squares of Φᵀ P."""
        found, squares = self.score(self.place.put(V), self.place.put(P))
        return self.place.get(found), self.place.get(squares)

    def score(self, V: Any, P: Any) -> tuple[Any, Any]:
        """``project`` for arrays of the place."""
        xp, k = self.place.xp, V.shape[1]
        inner = self._inner(xp.concat([V, P], axis=1))

        def both(block: Any) -> Any:
            found = block @ inner
            return xp.concat([found[:, :k], xp.sum(found[:, k:] ** 2, axis=1)[:, None]], axis=1)

        result = self._over_functions(both)
        return result[:, :k], result[:, k]

    def normal(self, weights: Floats, targets: Floats) -> tuple[Floats, Floats]:
        """Return leftᵀ W left and leftᵀ W targets."""
        gram, projection = self._normal(self.place.put(weights), self.place.put(targets))
        return self.place.get(gram), self.place.get(projection)

    def on_rows(self, left: Floats) -> ArrayCompressed:
        """The same functions on a few rows with these coordinates."""
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

    def _normal(self, weights: Any, targets: Any | None) -> tuple[Any, Any]:
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
        return found[0] if len(found) == 1 else place.xp.concat(found, axis=0)


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
    found = _pivots(functions, tolerance, max_rank)
    if found is None:
        return None
    blocks, chosen, remainder = found
    place = functions.place
    xp = place.xp
    right = xp.concat(blocks, axis=1)
    blocks.clear()
    corner = place.get(xp.take(right, place.indices(chosen), axis=0))
    if single:
        right = xp.astype(right, xp.float32)
    if np.array_equal(functions.rows, np.arange(X.shape[0])):
        left = Left(lambda part: place.floats(right[part, :]), X.shape[0], len(chosen))
        return ArrayCompressed(place, left, right, chosen, remainder)
    inverse, pivots = place.put(np.linalg.inv(np.tril(corner)).T), functions.take(chosen)
    left = Left(lambda part: functions.values(functions.scale(X[part, :]), pivots) @ inverse, X.shape[0], len(chosen))
    beyond = 0.0
    for part in place.chunks(X.shape[0], len(chosen)):
        rows = left.make(part)
        beyond = max(beyond, float(xp.max(1.0 - xp.sum(rows * rows, axis=1))))
    return ArrayCompressed(place, left, right, chosen, float(np.sqrt(max(beyond, 0.0) * remainder)))


def _pivots(functions: ArrayFunctions, tolerance: float, max_rank: int) -> tuple[list[Any], Index, float] | None:
    """Blocks of coordinates, pivots and the remaining diagonal; None where the rank does not reach the tolerance."""
    place, xp, centres = functions.place, functions.place.xp, functions.scaled
    m = len(functions)
    remainder = xp.ones(m, dtype=xp.float64, device=place.device)
    key = xp.sum((centres - xp.mean(centres, axis=0)) ** 2, axis=1)
    blocks: list[Any] = []
    chosen = np.zeros(0, dtype=np.intp)
    largest = 1.0
    while largest > tolerance:
        pool = place.get(xp.argsort(-key, stable=True)[: pool_size(m)])
        there = place.indices(pool)
        near = xp.take(centres, there, axis=0)
        schur = functions.values(near, near)
        for block in blocks:
            done = xp.take(block, there, axis=0)
            schur = schur - done @ done.T
        picked, triangle = choose_pivots(place.get(schur), largest)
        if len(picked) == 0 or len(chosen) + len(picked) > max_rank:
            return None
        there = place.indices(pool[picked])
        new = functions.values(centres, xp.take(centres, there, axis=0))
        for block in blocks:
            new = new - block @ xp.take(block, there, axis=0).T
        new = new @ place.put(np.linalg.inv(triangle).T)
        blocks.append(new)
        remainder = remainder - xp.sum(new * new, axis=1)
        key, largest = remainder, float(xp.max(remainder))
        chosen = np.concatenate([chosen, pool[picked]])
        if hopeless(len(chosen), largest, tolerance, max_rank):
            return None
    return blocks, chosen, largest
