r"""Φ of low rank: a smooth kernel, by a pivoted partial Cholesky factorisation that never forms it.

For a positive definite kernel and pivots P the Nyström approximation :math:`\mathbf K(X,P)\mathbf K(P,P)^{-1}\mathbf
K(P,C)` leaves a remainder whose entries are bounded by :math:`\sqrt{d(x)\,d(c)}`, with :math:`d` the remaining
diagonal.  The pivots are chosen a block at a time, so that the work is in matrix-matrix products.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.linalg import get_blas_funcs, get_lapack_funcs, solve_triangular

from sparsebayes.basis.base import Floats, Index, positions
from sparsebayes.basis.kernels import KernelFunctions
from sparsebayes.threads import side_by_side

from .dense import DenseDesign, projected
from .protocol import Design

_CHOLESKY, _PIVOTED_CHOLESKY, _INVERT_TRIANGLE = get_lapack_funcs(("potrf", "pstrf", "trtri"), (np.zeros(1),))
(_TRIANGULAR_PRODUCT,) = get_blas_funcs(("trmm",), (np.zeros(1),))
# Pivots chosen at once, from this many times as many rows with the largest remaining diagonal; a pivot whose remainder
# within the block falls below this fraction of the largest is left for later.
_BLOCK = 32
_POOL = 4
_STALE = 0.1
_ROOM = 3.0
# Beyond this many centres those with the largest remainders are neighbours of one another, of which few can be pivots.
# They are taken from so many of all centres whose remainder is above the tolerance instead, as if drawn at random but
# whatever the order of the centres: three rounds in the place of a hundred, for a rank that is a tenth larger.
_MANY = 8000
_SPREAD = 512
_FREQUENCY = 12.9898
# Rows whose products are made at once, so that what is made on the way is small.
_WEIGHTED_ROWS = 8192
_TRIANGLE_ROWS = 1024
_PROJECTED_ROWS = 1024
# Largest design on a few rows that is held instead of multiplied out where it is needed.
_HELD_BYTES = 1 << 30


class CompressedDesign(Design):
    """Φ = [left rightᵀ, further], of rank r + k.

    Parameters
    ----------
    left : (N, r) ndarray
        Coordinates of the rows.
    right : (M, r) ndarray
        Coordinates of the functions.
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
            return self.left @ self.right[place].T
        result = np.empty((len(self.left), len(place)))
        result[:, ~behind] = self.left @ self.right[place[~behind]].T
        result[:, behind] = self.further[:, place[behind] - m]
        return result

    def matvec(self, w: ArrayLike, idx: Any) -> Floats:
        """Return Φ[:, idx] w for weights (k,) or (k, T)."""
        place, m, w = positions(idx, self.shape[1]), len(self.right), np.asarray(w, dtype=np.float64)
        behind = place >= m
        result = self.left @ (self.right[place[~behind]].T @ w[~behind])
        return result + self.further[:, place[behind] - m] @ w[behind] if behind.any() else result

    def correlate(self, V: ArrayLike) -> Floats:
        """Return Φᵀ V: (M,) for a vector (N,), (M, T) for a matrix (N, T)."""
        rows = np.asarray(V, dtype=np.float64).T  # on the left, so that BLAS reads the factors as they lie
        inner, m = rows @ self.left, len(self.right)
        result = np.empty((*rows.shape[:-1], self.shape[1]))

        def fill(part: slice) -> None:
            result[..., part] = inner @ self.right[part].T

        side_by_side(fill, m)
        result[..., m:] = rows @ self.further
        return result.T

    def project(self, V: Floats, P: Floats) -> tuple[Floats, Floats]:
        """Return Φᵀ V and, for every function, the sum of squares of Φᵀ P; the products themselves are not kept."""
        rows, k = np.hstack([V, P]).T, V.shape[1]
        inner, last = rows @ self.left, rows @ self.further
        found, squares = projected(lambda some: inner @ self.right[some].T, k, len(self.right))
        squares_last = np.einsum("pm,pm->m", last[k:], last[k:])
        return np.concatenate([found, last[:k].T]), np.concatenate([squares, squares_last])

    def sqnorms(self, weights: ArrayLike | None = None) -> Floats:
        """Return the diagonal of Φᵀ diag(weights) Φ, (M,); the weights (N,) may have any sign."""
        rows = np.ones(len(self.left)) if weights is None else self._row_weights(weights)
        r = self.left.shape[1]
        inner = self.inner_products(rows, np.zeros((len(rows), 0)))[0][:r, :r]
        factor, indefinite = _CHOLESKY(inner, lower=0, clean=1)
        result = np.empty(self.shape[1])

        def norms(part: slice) -> None:
            for start in range(part.start, part.stop, _TRIANGLE_ROWS):
                some = slice(start, min(start + _TRIANGLE_ROWS, part.stop))
                block = self.right[some]
                if indefinite:
                    result[some] = np.einsum("mr,mr->m", block @ inner, block)
                else:  # half the work
                    half = _TRIANGULAR_PRODUCT(1.0, factor, block, side=1, trans_a=1)
                    result[some] = np.einsum("mr,mr->m", half, half)

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
            for start in range(rows.start, rows.stop, _WEIGHTED_ROWS):
                part = slice(start, min(start + _WEIGHTED_ROWS, rows.stop))
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
        held = np.zeros((m + k, r + k), order="F")
        held[m:] = left[:, r:].T
        triangle = np.asfortranarray(left[:r, :r])

        def fill(part: slice) -> None:
            for start in range(part.start, part.stop, _TRIANGLE_ROWS):
                rows = slice(start, min(start + _TRIANGLE_ROWS, part.stop))
                held[rows, :r] = _TRIANGULAR_PRODUCT(1.0, triangle, self.right[rows], side=1, trans_a=1)

        side_by_side(fill, m)
        return DenseDesign(held.T)

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
    factors = _Factors(functions, tolerance, max_rank)
    while float(np.max(factors.remainder)) > tolerance:
        if not factors.grow() or factors.hopeless():
            return None
    right = factors.coordinates
    if np.array_equal(functions.rows, np.arange(len(X))):
        return CompressedDesign(right, right, factors.chosen, (factors.remainder, factors.remainder))
    values = functions.evaluate(X, factors.chosen)
    left = solve_triangular(right[factors.chosen], values.T, lower=True, check_finite=False, overwrite_b=True).T
    # The kernel less its part at the pivots is positive definite: |entry| ≤ √(d(x) d(c)).
    beyond = np.maximum(1.0 - np.einsum("nr,nr->n", left, left), 0.0)
    return CompressedDesign(left, right, factors.chosen, (beyond, factors.remainder))


class _Factors:
    r"""The factorisation :math:`\mathbf K\approx\mathbf L\mathbf L^\top` of a kernel at its centres, as far as it is.

    Attributes
    ----------
    chosen : (rank,) integer array
        The pivots, in order.
    remainder : (M,) ndarray
        Diagonal of what is left.
    """

    def __init__(self, functions: KernelFunctions, tolerance: float, max_rank: int) -> None:
        self.functions, self.tolerance, self.max_rank = functions, tolerance, max_rank
        m = len(functions)
        self._held = np.zeros((0, m))
        self.remainder = np.ones(m)
        self.chosen = np.zeros(0, dtype=np.intp)
        # While all diagonals are equal, begin with the outermost centres: a choice that no order of the rows affects.
        scaled = functions.scaled_centres
        self._outermost = np.square(scaled - scaled.mean(axis=0)).sum(axis=1)
        self._lots = lots(np, scaled) if spread_out(m) else self._outermost

    @property
    def coordinates(self) -> Floats:
        """L, (M, rank) with its columns one behind the other in memory."""
        return self._held.T

    @property
    def rank(self) -> int:
        """Number of pivots."""
        return len(self.chosen)

    def grow(self) -> bool:
        """Choose a block of pivots among the centres with large remainders; False where there is no room."""
        m = len(self.remainder)
        if spread_out(m):
            pool = drawn(np, np.flatnonzero(self.remainder > self.tolerance), self._lots)
        else:
            pool = _largest(self.remainder if self.rank else self._outermost, pool_size(m))
        done = self.coordinates[pool]
        schur = self.functions.evaluate(self.functions.centres[pool], pool) - done @ done.T
        picked, triangle = choose_pivots(schur, m, float(np.max(self.remainder)), self.tolerance)
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
            for start in range(part.start, part.stop, _PROJECTED_ROWS):
                rows = slice(start, min(start + _PROJECTED_ROWS, part.stop))
                block = self.functions.evaluate(centres[rows], picked)
                block -= done[rows] @ at_pivots
                new = block @ inverse
                self.coordinates[rows, self.rank : self.rank + len(picked)] = new
                self.remainder[rows] -= np.einsum("mr,mr->m", new, new)

        side_by_side(project, len(centres))
        self.remainder[picked] = 0.0
        self.chosen = np.concatenate([self.chosen, picked])

    def hopeless(self) -> bool:
        """Whether the remainder falls far too slowly."""
        return hopeless(self.rank, float(np.max(self.remainder)), self.tolerance, self.max_rank)


# The rule by which pivots are chosen, the same wherever the coordinates live.


def spread_out(functions: int) -> bool:
    """Whether pivots are chosen from centres all over the inputs, and not from those with the largest remainders."""
    return functions > _MANY


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


def drawn(xp: Any, centres: Any, lots: Any) -> Any:
    """Centres of a list, those with the lowest lots, from which a block of pivots is chosen."""
    order = xp.argsort(xp.take(lots, centres, axis=0), stable=True)
    return xp.take(centres, order[: min(_SPREAD, order.shape[0])], axis=0)


def choose_pivots(schur: Floats, functions: int, largest: float, tolerance: float) -> tuple[Index, Floats]:
    """Pivots among a pool, given what is left of the kernel between its members, and their Cholesky factor."""
    bound, most = (tolerance, len(schur)) if spread_out(functions) else (_STALE * largest, _BLOCK)
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
