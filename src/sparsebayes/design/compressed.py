r"""Φ of low rank: a smooth kernel, by a pivoted partial Cholesky factorisation that never forms it.

For a positive definite kernel and pivots P the Nyström approximation :math:`\mathbf K(X,P)\mathbf K(P,P)^{-1}\mathbf
K(P,C)` leaves a remainder whose entries are bounded by :math:`\sqrt{d(x)\,d(c)}`, with :math:`d` the remaining
diagonal.  The pivots are chosen a block at a time, so that the work is in matrix-matrix products.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.linalg import get_lapack_funcs

from sparsebayes.basis.base import Floats, Index, positions
from sparsebayes.basis.kernels import KernelFunctions
from sparsebayes.threads import one_thread, side_by_side

from .dense import DenseDesign, projected
from .protocol import Design

_CHOLESKY, _PIVOTED_CHOLESKY, _INVERT_TRIANGLE = get_lapack_funcs(("potrf", "pstrf", "trtri"), (np.zeros(1),))
# Pivots chosen at once, from this many times as many rows with the largest remaining diagonal; a pivot whose remainder
# within the block falls below this fraction of the largest is left for later.
_BLOCK = 32
_POOL = 4
_STALE = 0.1
_ROOM = 3.0
# Of more centres than this, pivots are chosen on so many of them first, as if drawn at random but whatever the order of
# the centres: those with the largest remainders of all would be neighbours of one another.  The remainder there falls
# below this part of the tolerance, so that hardly a centre is above the tolerance elsewhere; of those that are, so many
# join the others.
_MANY = 8000
_SHARE = 0.25
_SPREAD = 512
_FREQUENCY = 12.9898
# Rows whose products are made at once, so that what is made on the way is small, and columns of a triangle.
_WEIGHTED_ROWS = 8192
_ROWS = 1024
_TILE = 128
# Coordinates that would take more than this are held in single precision.
_SINGLE_BYTES = 1 << 30
# Largest design on a few rows that is held instead of multiplied out where it is needed.
_HELD_BYTES = 1 << 26


class CompressedDesign(Design):
    """Φ = [left rightᵀ, further], of rank r + k.

    Parameters
    ----------
    left : (N, r) ndarray
        Coordinates of the rows, in double or single precision; products are made in double.
    right : (M, r) ndarray
        Coordinates of the functions, likewise.
    landmarks : (k,) integer array, optional
        Functions that between them nearly span all of Φ.
    remainders : (N,) and (M + k,) ndarrays, optional
        Such that the entry (n, m) is wrong by no more than the root of the product of the n-th of the first and the
        m-th of the second; by default the entries are exact.
    further : (N, k) ndarray, optional
        Columns behind the others, held as they are.
    """

    def __init__(
        self,
        left: Floats,
        right: Floats,
        landmarks: Index | None = None,
        remainders: tuple[Floats, Floats] | None = None,
        further: Floats | None = None,
    ) -> None:
        if left.ndim != 2 or right.ndim != 2 or left.shape[1] != right.shape[1]:
            raise ValueError(f"factors have shapes {left.shape} and {right.shape}; expected (N, r) and (M, r)")
        self.left = left
        self.right = right
        self.further = np.empty((len(left), 0)) if further is None else further
        m = len(right) + self.further.shape[1]
        self.remainders = (np.zeros(len(left)), np.zeros(m)) if remainders is None else remainders
        self.landmarks = np.zeros(0, dtype=np.intp) if landmarks is None else landmarks

    @property
    def shape(self) -> tuple[int, int]:
        """The numbers (N, M) of rows and columns."""
        return len(self.left), len(self.right) + self.further.shape[1]

    @property
    def error(self) -> float:
        """Bound on the error of every entry."""
        rows, columns = self.remainders
        return float(np.sqrt(max(0.0, np.max(rows, initial=0.0) * np.max(columns, initial=0.0))))

    @property
    def rank(self) -> int:
        """Number of coordinates."""
        return self.left.shape[1] + self.further.shape[1]

    def columns(self, idx: Any) -> Floats:
        """Return Φ[:, idx], a new (N, k) array."""
        place, m = positions(idx, self.shape[1]), len(self.right)
        behind = place >= m
        if not behind.any():
            return self._times(_doubles(self.right[place]).T)
        result = np.empty((len(self.left), len(place)))
        result[:, ~behind] = self._times(_doubles(self.right[place[~behind]]).T)
        result[:, behind] = self.further[:, place[behind] - m]
        return result

    def matvec(self, w: ArrayLike, idx: Any) -> Floats:
        """Return Φ[:, idx] w for weights (k,) or (k, T)."""
        place, m, w = positions(idx, self.shape[1]), len(self.right), np.asarray(w, dtype=np.float64)
        behind = place >= m
        result = self._times(_doubles(self.right[place[~behind]]).T @ w[~behind])
        return result + self.further[:, place[behind] - m] @ w[behind] if behind.any() else result

    def correlate(self, V: ArrayLike) -> Floats:
        """Return Φᵀ V: (M,) for a vector (N,), (M, T) for a matrix (N, T)."""
        V = np.asarray(V, dtype=np.float64)
        inner, m = self._inner(V).T, len(self.right)
        result = np.empty((*V.shape[1:], self.shape[1]))

        def fill(part: slice) -> None:
            for some in _runs(part):
                result[..., some] = inner @ _doubles(self.right[some]).T

        side_by_side(fill, m)
        result[..., m:] = V.T @ self.further
        return result.T

    def project(self, V: Floats, P: Floats) -> tuple[Floats, Floats]:
        """Return Φᵀ V and, for every function, the sum of squares of Φᵀ P; the products themselves are not kept."""
        both, k = np.hstack([V, P]), V.shape[1]
        inner, last = self._inner(both).T, both.T @ self.further
        found, squares = projected(lambda some: inner @ _doubles(self.right[some]).T, k, len(self.right))
        squares_last = np.einsum("pm,pm->m", last[k:], last[k:])
        return np.concatenate([found, last[:k].T]), np.concatenate([squares, squares_last])

    def _times(self, inner: Floats) -> Floats:
        """The coordinates of the rows times a few vectors (r,) or (r, k)."""
        result = np.empty((len(self.left), *inner.shape[1:]))

        def fill(part: slice) -> None:
            for rows in _runs(part, _WEIGHTED_ROWS):
                result[rows] = _doubles(self.left[rows]) @ inner

        side_by_side(fill, len(self.left))
        return result

    def _inner(self, V: Floats) -> Floats:
        """Products of the coordinates of the rows with vectors (N,) or (N, k), summed over the rows."""

        def products(part: slice) -> Floats:
            total = np.zeros((self.left.shape[1], *V.shape[1:]))
            for rows in _runs(part, _WEIGHTED_ROWS):
                total += _doubles(self.left[rows]).T @ V[rows]
            return total

        return np.sum(side_by_side(products, len(self.left)), axis=0)

    def sqnorms(self, weights: ArrayLike | None = None) -> Floats:
        """Return the diagonal of Φᵀ diag(weights) Φ, (M,); the weights (N,) may have any sign."""
        rows = np.ones(len(self.left)) if weights is None else self._row_weights(weights)
        r = self.left.shape[1]
        inner = self.inner_products(rows, np.zeros((len(rows), 0)))[0][:r, :r]
        factor, indefinite = _CHOLESKY(inner, lower=0, clean=1)
        result = np.empty(self.shape[1])

        def norms(part: slice) -> None:
            for some in _runs(part):
                block = _doubles(self.right[some]).T
                if indefinite:
                    result[some] = np.einsum("rm,rm->m", inner @ block, block)
                else:  # hardly more than half the work
                    half = _upper_times(factor, block)
                    result[some] = np.einsum("rm,rm->m", half, half)

        side_by_side(norms, len(self.right))
        result[len(self.right) :] = rows @ np.square(self.further)
        return result

    def inner_products(self, weights: Floats, V: Floats) -> tuple[Floats, Floats]:
        """Return Lᵀ diag(weights) L and Lᵀ diag(weights) V, L the coordinates of the rows and the further columns."""
        r, size = self.left.shape[1], self.rank
        root = np.sqrt(weights)[:, None] if np.min(weights, initial=0.0) >= 0.0 else None
        even = bool(np.all(weights == 1.0))

        def products(rows: slice) -> tuple[Floats, Floats]:
            gram, product = np.zeros((size, size)), np.zeros((size, V.shape[1]))
            for part in _runs(rows, _WEIGHTED_ROWS):
                block = np.empty((part.stop - part.start, size), order="F")
                block[:, :r], block[:, r:] = self.left[part], self.further[part]
                if root is None:
                    weighted = weights[part, None] * block
                    gram += weighted.T @ block
                    product += weighted.T @ V[part]
                else:  # a product with its own transpose costs half as much
                    if not even:
                        block *= root[part]
                    gram += block.T @ block
                    product += block.T @ (root[part] * V[part])
            return gram, product

        found = side_by_side(products, len(self.left))
        return np.sum([gram for gram, _ in found], axis=0), np.sum([product for _, product in found], axis=0)

    def with_rows(self, left: Floats) -> Design:
        """The same functions on other rows, few, with these coordinates; held as they are where there is room for that.

        Parameters
        ----------
        left : (r + k, r + k) ndarray
            Upper triangular.
        """
        m, r, k = len(self.right), self.left.shape[1], self.further.shape[1]
        if 8 * m * len(left) > _HELD_BYTES:
            return CompressedDesign(left[:, :r], self.right, further=left[:, r:])
        held = np.empty((r + k, m + k), order="F")  # a search asks for columns
        held[:, m:], held[r:] = left[:, r:], 0.0
        held[r:, m:] = left[r:, r:]

        def fill(part: slice) -> None:
            for some in _runs(part):
                held[:r, some] = _upper_times(left[:r, :r], _doubles(self.right[some]).T)

        side_by_side(fill, m)
        return DenseDesign(held)

    def with_ones(self) -> CompressedDesign:
        """With the constant function at the end: the compression spans it exactly."""
        return with_columns(self, np.ones((len(self.left), 1)))


def compress_kernel(functions: KernelFunctions, X: Floats, tolerance: float, max_rank: int) -> CompressedDesign | None:
    """Compress a positive definite kernel of unit diagonal; None where that rank does not reach the tolerance.

    Parameters
    ----------
    functions : KernelFunctions
        The kernel at its centres.
    X : (N, d) ndarray
        Inputs of the rows.
    tolerance : float
        Bound on the remaining diagonal at the centres, and so on the error of every entry between them.
    max_rank : int
        Largest rank.
    """
    with one_thread():
        found = _factored(functions, tolerance, max_rank)
        if found is None:
            return None
        chosen, right, remainder, inverse, rounded = found
        if np.array_equal(functions.rows, np.arange(len(X))):
            remainder += rounded
            return CompressedDesign(right, right, chosen, (remainder, remainder))
        # The kernel less its part at the pivots is positive definite: |entry| ≤ √(d(x) d(c)).
        left, beyond = np.empty((len(chosen), len(X)), dtype=right.dtype), np.ones(len(X))
        rounded = max(rounded, _coordinates(left, beyond, functions.restrict(chosen), X, inverse))
        beyond = np.maximum(beyond, 0.0)
    return CompressedDesign(left.T, right, chosen, (beyond + rounded, remainder + rounded))


def _factored(
    functions: KernelFunctions, tolerance: float, max_rank: int
) -> tuple[Index, Any, Floats, Floats, float] | None:
    """Pivots, coordinates (M, rank) of all centres, what remains of their diagonals, inverse factor, error of rounding.

    Of many centres a part is factored, and the others follow from its pivots in one pass, at the speed of matrix
    products; where some remain above the tolerance, these join the part, and so on.  None where it takes too many.
    """
    m = len(functions)
    if m <= _MANY:
        part, place = laid_out(functions.scaled_centres)
        factors = Factors(functions.restrict(part), tolerance, max_rank)
        if not factors.complete():
            return None
        held = factors.coordinates.T[:, place]
        return part[factors.chosen], held.T, factors.remainder[place], factors.inverse, 0.0
    key, remainder = lots(np, functions.scaled_centres), np.ones(m)
    part, factors = first_part(functions, key, tolerance, max_rank)
    held, done, rounded = np.empty((0, m)), 0, 0.0
    while factors.complete():
        chosen = part[factors.chosen]
        if len(chosen) > len(held):
            held = _longer(held, done, len(chosen))
        rounded += _coordinates(held, remainder, functions.restrict(chosen), functions.centres, factors.inverse, done)
        remainder[chosen] = 0.0
        done = len(chosen)
        above = np.flatnonzero(remainder > tolerance)
        if not len(above):
            return chosen, held[:done].T, remainder, factors.inverse, rounded
        part = np.concatenate([part, drawn(np, above, key)])
        factors.extend(functions.restrict(part))
    return None


def _longer(held: Any, done: int, rank: int) -> Any:
    """An array for so many coordinates and some more, those that are done among them."""
    m = held.shape[1]
    longer = np.empty((rank + _TILE, m), dtype=np.float32 if 8 * m * rank > _SINGLE_BYTES else np.float64)
    longer[:done] = held[:done]
    return longer


def _coordinates(
    held: Any, remainder: Floats, pivots: KernelFunctions, X: Floats, inverse: Floats, first: int = 0
) -> float:
    r"""Make the coordinates :math:`\mathbf T^{-1}\mathbf K(P, X)` of all points, from the first that is missing on.

    Return a bound on what rounding to the precision of ``held`` changes in a product of two points: with
    :math:`\|\mathbf l\|\le 1` and :math:`\|\delta\mathbf l\|\le\delta`, no more than :math:`2\delta+\delta^2`.

    Parameters
    ----------
    held : (r or more, N) ndarray
        Where they go.
    remainder : (N,) ndarray
        Falls by their squares.
    pivots : KernelFunctions
        The kernel at the r pivots.
    X : (N, d) ndarray
        The points.
    inverse : (r, r) ndarray
        Inverse of the lower Cholesky factor T of the kernel at the pivots.
    first : int
        How many are there already.
    """
    r = len(inverse)

    def project(part: slice) -> float:
        new, squares = np.empty((r - first, _ROWS)), 0.0
        for rows in _runs(part):
            values, made = pivots.evaluate(X[rows]).T, new[:, : rows.stop - rows.start]
            for start in range(first, r, _TILE):
                stop = min(start + _TILE, r)
                np.matmul(inverse[start:stop, :stop], values[:stop], out=made[start - first : stop - first])
            held[first:r, rows] = made
            remainder[rows] -= np.einsum("rm,rm->m", made, made)
            if held.dtype != np.float64:
                made -= held[first:r, rows]
                squares = max(squares, float(np.max(np.einsum("rm,rm->m", made, made))))
        return squares

    delta = float(np.sqrt(max(side_by_side(project, len(X)), default=0.0)))
    return 2.0 * delta + delta**2


def _upper_times(triangle: Floats, values: Floats) -> Floats:
    """An upper triangle times (r, k) values, a tile of its rows at a time."""
    result = np.empty(values.shape)
    for start in range(0, len(triangle), _TILE):
        result[start : start + _TILE] = triangle[start : start + _TILE, start:] @ values[start:]
    return result


def _doubles(values: Any) -> Floats:
    """Values in double precision: themselves where they are."""
    return values.astype(np.float64, copy=False)


def _runs(part: slice, length: int = _ROWS) -> Iterator[slice]:
    """A run of rows in short runs."""
    for start in range(part.start, part.stop, length):
        yield slice(start, min(start + length, part.stop))


class Factors:
    r"""The factorisation :math:`\mathbf K\approx\mathbf L\mathbf L^\top` of a kernel at its centres, as far as it is.

    Attributes
    ----------
    chosen : (rank,) integer array
        The pivots, in order.
    remainder : (M,) ndarray
        Diagonal of what is left.
    """

    def __init__(self, functions: KernelFunctions, tolerance: float, max_rank: int, least: float = 0.0) -> None:
        self.functions, self.tolerance, self.max_rank, self._least = functions, tolerance, max_rank, least
        m = len(functions)
        self._held = np.zeros((0, m))
        self.remainder = np.ones(m)
        self.chosen = np.zeros(0, dtype=np.intp)
        # While all diagonals are equal, begin with the outermost centres: a choice that no order of the rows affects.
        scaled = functions.scaled_centres
        self._outermost = np.square(scaled - scaled.mean(axis=0)).sum(axis=1)

    @property
    def coordinates(self) -> Floats:
        """L, (M, rank) with its columns one behind the other in memory."""
        return self._held.T

    @property
    def rank(self) -> int:
        """Number of pivots."""
        return len(self.chosen)

    @property
    def inverse(self) -> Floats:
        """Inverse of the lower Cholesky factor of the kernel at the pivots."""
        return _INVERT_TRIANGLE(self.coordinates[self.chosen], lower=1)[0]

    def complete(self) -> bool:
        """Choose pivots until nothing remains above the tolerance; False where that takes too many."""
        while float(np.max(self.remainder)) > self.tolerance:
            if not self._grow() or hopeless(self.rank, float(np.max(self.remainder)), self.tolerance, self.max_rank):
                return False
        return True

    def extend(self, functions: KernelFunctions) -> None:
        """Go on with further centres behind the present ones."""
        old, self.functions = len(self.remainder), functions
        further = functions.centres[old:]
        held, remainder = np.empty((self.rank, len(further))), np.ones(len(further))
        _coordinates(held, remainder, functions.restrict(self.chosen), further, self.inverse)
        self._held = np.hstack([self._held, held])
        self.remainder = np.concatenate([self.remainder, remainder])

    def _grow(self) -> bool:
        """Choose a block of pivots among the centres with large remainders; False where there is no room."""
        pool = _largest(self.remainder if self.rank else self._outermost, pool_size(len(self.remainder)))
        done, largest = self.coordinates[pool], float(np.max(self.remainder))
        schur = self.functions.evaluate(self.functions.centres[pool], pool) - done @ done.T
        picked, triangle = choose_pivots(schur, largest, self._least)
        if len(picked) == 0 or self.rank + len(picked) > self.max_rank:
            return False
        self._append(pool[picked], triangle)
        return True

    def _append(self, picked: Index, triangle: Floats) -> None:
        # Lengthened where it lies: nothing is copied, and there is never a second array of this size.
        self._held.resize((self.rank + len(picked), len(self.remainder)), refcheck=False)
        done, centres = self.coordinates[:, : self.rank], self.functions.centres
        at_pivots, inverse = done[picked].T, _INVERT_TRIANGLE(triangle, lower=1)[0].T

        def project(part: slice) -> None:
            for rows in _runs(part):
                block = self.functions.evaluate(centres[rows], picked)
                block -= done[rows] @ at_pivots
                new = block @ inverse
                self.coordinates[rows, self.rank : self.rank + len(picked)] = new
                self.remainder[rows] -= np.einsum("mr,mr->m", new, new)

        side_by_side(project, len(centres))
        self.remainder[picked] = 0.0
        self.chosen = np.concatenate([self.chosen, picked])


# The rule by which pivots are chosen, the same wherever the coordinates live.


def spread_out(functions: int) -> bool:
    """Whether pivots are chosen from centres all over the inputs, and not from those with the largest remainders."""
    return functions > _MANY


def laid_out(centres: Floats) -> tuple[Index, Index]:
    """Places of the distinct ones among centres, ordered by their lots, and which of these every centre is.

    Many remainders are equal but for rounding.  In this order neither the order of the rows nor copies of them decide
    which of those becomes a pivot.
    """
    _, first, which = np.unique(centres, axis=0, return_index=True, return_inverse=True)
    order = np.argsort(lots(np, centres[first]), kind="stable")
    return first[order], np.argsort(order)[which.reshape(-1)]


def pool_size(functions: int) -> int:
    """How many centres, those with the largest remainders, a block of pivots is chosen from."""
    return min(_POOL * _BLOCK, functions)


def lots(xp: Any, centres: Any) -> Any:
    """A number from 0 to 1 for every centre, (M,), that follows from its inputs and nothing else.

    The digits of a sine behind its fourth: entry by entry, so that no order of the centres affects them.
    """
    total = centres[:, 0] * _FREQUENCY
    for j in range(1, centres.shape[1]):
        total = total + centres[:, j] * (_FREQUENCY * (j + 1.0) ** 0.5)
    found = xp.sin(total) * 1e4
    return found - xp.floor(found)


def drawn(xp: Any, centres: Any, lots: Any, count: int | None = None) -> Any:
    """So many centres of a list, or a pool of them, those with the lowest lots."""
    order = xp.argsort(xp.take(lots, centres, axis=0), stable=True)
    return xp.take(centres, order[: min(count or _SPREAD, order.shape[0])], axis=0)


def first_part(functions: Any, lots: Floats, tolerance: float, max_rank: int) -> tuple[Index, Factors]:
    """Those of many centres on which pivots are chosen first, and the factorisation of the kernel there."""
    low = np.flatnonzero(lots <= np.partition(lots, _MANY)[_MANY])  # a million are not sorted for eight thousand
    part = low[np.argsort(lots[low], kind="stable")][:_MANY]
    return part, Factors(functions.restrict(part), _SHARE * tolerance, max_rank, least=_SHARE * tolerance)


def choose_pivots(schur: Floats, largest: float, least: float = 0.0) -> tuple[Index, Floats]:
    """Pivots among a pool, given what is left of the kernel between its members, and their Cholesky factor.

    Of many centres those that remain below ``least`` are no pivots.  Of few they are: the search begins among the
    pivots, and ends lower with fewer of them (2-D sinc, 1,000 points: 1.6 nats on eight draws).
    """
    bound, most = max(_STALE * largest, least), _BLOCK
    factor, order, found, _ = _PIVOTED_CHOLESKY(schur, tol=bound, lower=1)
    k = min(most, int(found))
    return np.asarray(order[:k], dtype=np.intp) - 1, np.tril(factor[:k, :k])


def hopeless(rank: int, largest: float, tolerance: float, max_rank: int) -> bool:
    """Whether the remainder falls far too slowly: its logarithm, carried on in a line, would pass the largest rank.

    Smooth kernels fall ever faster, so the line is given some room.
    """
    reached = np.log(max(largest, tolerance))
    return rank >= 4 * _BLOCK and rank * np.log(tolerance) < _ROOM * max_rank * reached


def _largest(key: Floats, size: int) -> Index:
    """Places of the largest entries, in falling order; ties go to the lowest."""
    cut = np.partition(key, len(key) - size)[len(key) - size]
    above = np.flatnonzero(key > cut)
    pool = np.concatenate([above, np.flatnonzero(key == cut)[: size - len(above)]])
    return pool[np.argsort(-key[pool], kind="stable")]


def with_columns(design: CompressedDesign, columns: NDArray[np.float64]) -> CompressedDesign:
    """Add whole columns to a compressed design, which shares its factors: the compression spans them exactly."""
    rows, others = design.remainders
    remainders = rows, np.concatenate([others, np.zeros(columns.shape[1])])
    further = np.hstack([design.further, columns])
    return CompressedDesign(design.left, design.right, design.landmarks, remainders, further)
