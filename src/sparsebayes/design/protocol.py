"""The protocol of a design: the handful of products with Φ in which the whole cost of learning lies."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from hashlib import blake2b
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from sparsebayes.basis.arrays import HOST, Place
from sparsebayes.basis.base import Floats, Index, positions

# Bytes of columns that a blockwise product holds at once.
BLOCK_BYTES = 1 << 26


class Design(ABC):
    """The matrix Φ of M basis functions (columns) on N data (rows), wherever it lives.

    A design must know its ``shape`` and be able to produce ``columns``; every other product has a blockwise
    default in terms of these, to be overridden where the storage allows something faster. Results are float64
    NumPy arrays that the caller may overwrite. Wherever an ``idx`` is taken it is any one-dimensional index:
    a list, an array, a slice, a mask; order and repetitions are kept.
    """

    # Where the rows live.
    place: Place = HOST

    @property
    @abstractmethod
    def shape(self) -> tuple[int, int]:
        """The numbers (N, M) of rows and columns."""

    @abstractmethod
    def columns(self, idx: Any) -> Floats:
        """Return Φ[:, idx], a new (N, k) array."""

    def rows(self, part: slice, idx: Any = slice(None)) -> Floats:
        """Return Φ[part, idx], a new array of all or some columns on a run of rows."""
        return self.columns(idx)[part]

    def matvec(self, w: ArrayLike, idx: Any) -> Floats:
        """Return Φ[:, idx] w for weights (k,) or (k, T)."""
        return self.columns(idx) @ np.asarray(w, dtype=np.float64)

    def correlate(self, V: ArrayLike) -> Floats:
        """Return Φᵀ V: (M,) for a vector (N,), (M, T) for a matrix (N, T)."""
        V = np.asarray(V, dtype=np.float64)
        result = np.empty((self.shape[1], *V.shape[1:]))
        for block in self.blocks():
            result[block] = self.columns(block).T @ V
        return result

    def gram(self, idx: Any, weights: ArrayLike | None = None) -> Floats:
        """Return Φᵀ diag(weights) Φ[:, idx], (M, k); the weights (N,) may have any sign."""
        columns = self.columns(idx)
        if weights is not None:
            columns *= self._row_weights(weights)[:, None]
        return self.correlate(columns)

    def among(self, idx: Any) -> Floats:
        """Return Φ[:, idx]ᵀ Φ[:, idx], (k, k)."""
        columns = self.columns(idx)
        return columns.T @ columns

    def sqnorms(self, weights: ArrayLike | None = None) -> Floats:
        """Return the diagonal of Φᵀ diag(weights) Φ, (M,); the weights (N,) may have any sign."""
        rows = None if weights is None else self._row_weights(weights)
        result = np.empty(self.shape[1])
        for block in self.blocks():
            result[block] = weighted_squares(self.columns(block), rows)
        return result

    def moments(self, V: ArrayLike, weights: ArrayLike | None = None) -> tuple[Floats, Floats]:
        """Return ``correlate(V)`` and ``sqnorms(weights)``, in one pass over the columns where that saves work."""
        return self.correlate(V), self.sqnorms(weights)

    def native(self, idx: Any) -> Any:
        """Return Φ[:, idx] where the rows live."""
        return self.columns(idx)

    def moments_there(self, V: Any, weights: Any) -> tuple[Any, Any]:
        """Return ``moments`` of what lives where the rows do, and leave them there."""
        return self.moments(V, weights)

    def project(self, V: Floats, P: Floats) -> tuple[Floats, Floats]:
        """Return Φᵀ V, (M, T), and for every function the sum of squares of Φᵀ P, (M,): what scoring all of them needs.

        A device returns these few numbers a function instead of all products.
        """
        found, k = self.correlate(np.hstack([V, P])), V.shape[1]
        return found[:, :k], np.einsum("mp,mp->m", found[:, k:], found[:, k:])

    def extend(self, other: Design) -> Design:
        """Return the design of these columns followed by those of ``other``."""
        return HStack([self, other])

    def blocks(self) -> Iterator[slice]:
        """Yield runs of columns, in order, each within a fixed budget of memory."""
        n, m = self.shape
        width = max(1, BLOCK_BYTES // (8 * max(n, 1)))
        for start in range(0, m, width):
            yield slice(start, min(start + width, m))

    def _row_weights(self, weights: ArrayLike) -> Floats:
        rows = np.asarray(weights, dtype=np.float64)
        if rows.shape != (self.shape[0],):
            raise ValueError(f"weights has shape {rows.shape}; expected ({self.shape[0]},), one per row")
        return rows

    def __repr__(self) -> str:
        return f"<{type(self).__name__}: {self.shape[0]} rows, {self.shape[1]} columns>"


def weighted_squares(columns: Floats, weights: Floats | None) -> Floats:
    """Return Σ_n weights_n columns_nm² for every column m."""
    if weights is None:
        return np.einsum("nm,nm->m", columns, columns)
    return weights @ np.square(columns)


class HStack(Design):
    """Several designs with the same rows, side by side.

    Parameters
    ----------
    parts : sequence of Design
        The designs from left to right; stacks among them are flattened.
    """

    def __init__(self, parts: Sequence[Design]) -> None:
        flat: list[Design] = []
        for part in parts:
            if not isinstance(part, Design):
                raise TypeError(f"a part is of type {type(part).__name__}; expected a Design (see as_design)")
            flat.extend(part.parts if isinstance(part, HStack) else [part])
        rows = {part.shape[0] for part in flat}
        if len(rows) != 1:
            raise ValueError(f"designs side by side have {sorted(rows)} rows; expected one common number")
        self.parts = flat
        self._ends = np.cumsum([part.shape[1] for part in flat])
        self._shape = (rows.pop(), int(self._ends[-1]))

    @property
    def shape(self) -> tuple[int, int]:
        """The numbers (N, M) of rows and columns."""
        return self._shape

    def _routes(self, idx: Any) -> Iterator[tuple[Design, Index, Index]]:
        """Yield each part in use, where its columns go in the result, and their indices in the part."""
        place = positions(idx, self._shape[1])
        if place.size and place.max() < self._ends[0]:  # as most indices are, the constant being last
            yield self.parts[0], np.arange(place.size), place
            return
        which = np.searchsorted(self._ends, place, side="right")
        for p in np.unique(which):
            part = self.parts[p]
            where = np.flatnonzero(which == p)
            yield part, where, place[where] - (self._ends[p] - part.shape[1])

    def columns(self, idx: Any) -> Floats:
        """Return Φ[:, idx], a new (N, k) array."""
        routes = list(self._routes(idx))
        if len(routes) == 1:
            part, _, place = routes[0]
            return part.columns(place)
        result = np.empty((self._shape[0], sum(where.size for _, where, _ in routes)))
        for part, where, place in routes:
            result[:, where] = part.columns(place)
        return result

    def rows(self, part: slice, idx: Any = slice(None)) -> Floats:
        """Return Φ[part, idx], a new array of all or some columns on a run of rows."""
        routes = list(self._routes(idx))
        result = np.empty((len(range(*part.indices(self._shape[0]))), sum(where.size for _, where, _ in routes)))
        for each, where, place in routes:
            result[:, where] = each.rows(part, place)
        return result

    def matvec(self, w: ArrayLike, idx: Any) -> Floats:
        """Return Φ[:, idx] w for weights (k,) or (k, T)."""
        w = np.asarray(w, dtype=np.float64)
        result = np.zeros((self._shape[0], *w.shape[1:]))
        for part, where, place in self._routes(idx):
            result += part.matvec(w[where], place)
        return result

    def correlate(self, V: ArrayLike) -> Floats:
        """Return Φᵀ V: (M,) for a vector (N,), (M, T) for a matrix (N, T)."""
        return np.concatenate([part.correlate(V) for part in self.parts])

    def sqnorms(self, weights: ArrayLike | None = None) -> Floats:
        """Return the diagonal of Φᵀ diag(weights) Φ, (M,); the weights (N,) may have any sign."""
        return np.concatenate([part.sqnorms(weights) for part in self.parts])

    def project(self, V: Floats, P: Floats) -> tuple[Floats, Floats]:
        """Return Φᵀ V and the sums of squares of Φᵀ P, each part in its own way."""
        found = [part.project(V, P) for part in self.parts]
        return np.concatenate([products for products, _ in found]), np.concatenate([squares for _, squares in found])

    def moments(self, V: ArrayLike, weights: ArrayLike | None = None) -> tuple[Floats, Floats]:
        """Return ``correlate(V)`` and ``sqnorms(weights)``, each part in its own way."""
        found = [part.moments(V, weights) for part in self.parts]
        return np.concatenate([products for products, _ in found]), np.concatenate([norms for _, norms in found])


def representatives(design: Design) -> Index:
    """Return, for every column, the lowest index of a column with exactly the same entries.

    Two identical columns cannot both be in the model: the evidence does not tell them apart and the posterior
    precision is singular without the prior. Candidates are found by a fingerprint (products with two fixed
    random vectors, and the norm) in O(M log M) beside the products; only candidates are produced and
    compared. Zero columns represent themselves, since they never enter a model.

    Parameters
    ----------
    design : Design
        The design.

    Returns
    -------
    (M,) integer array
    """
    n, m = design.shape
    result = np.arange(m, dtype=np.intp)
    limit = max(2, BLOCK_BYTES // (8 * max(1, n)))
    for members in _packs(_candidates(design), limit):
        first: dict[bytes, int] = {}
        for start in range(0, members.size, limit):
            chunk = members[start : start + limit]
            # Adding zero turns -0.0 into 0.0, the only entries that are equal with different bytes.
            columns = np.ascontiguousarray(design.columns(chunk).T) + 0.0
            for member, column in zip(chunk.tolist(), columns, strict=True):
                # 256 bits of a cryptographic hash stand for the column: one pass, no pairs.
                result[member] = first.setdefault(blake2b(column, digest_size=32).digest(), member)
    return result


def _candidates(design: Design) -> list[Index]:
    """Return groups of two or more columns, each in ascending order, that rounding alone could tell apart."""
    n = design.shape[0]
    norms = np.sqrt(design.sqnorms())
    probes = np.random.default_rng(20010601).standard_normal((n, 2))
    prints = np.column_stack([design.correlate(probes), norms])
    # A product may round equal columns differently in different places of Φ. The error of a sum of n terms
    # of size ‖φ‖/√n grows at most like n ε ‖φ‖ in BLAS, and in practice like its root.
    slack = 4.0 * max(n, 1) * np.finfo(np.float64).eps * norms
    live = np.flatnonzero(norms > 0.0)
    label = np.zeros(live.size, dtype=np.intp)
    order = np.arange(live.size)
    for print_ in prints[live].T:
        order = np.lexsort((print_, label))
        new = np.diff(label[order]) != 0
        new |= np.diff(print_[order]) > np.maximum(slack[live][order][1:], slack[live][order][:-1])
        label[order] = np.concatenate([[0], np.cumsum(new)])[: live.size]
    starts = np.searchsorted(label[order], np.arange(label.max(initial=-1) + 2))
    several = np.flatnonzero(np.diff(starts) > 1)  # few, where there may be thousands that are alone
    return [np.sort(live[order[starts[k] : starts[k + 1]]]) for k in several]


def _packs(groups: list[Index], limit: int) -> Iterator[Index]:
    """Yield groups together up to ``limit`` columns; one larger than that comes alone."""
    pack: list[Index] = []
    size = 0
    for group in groups:
        if pack and size + group.size > limit:
            yield np.concatenate(pack)
            pack, size = [], 0
        pack.append(group)
        size += group.size
    if pack:
        yield np.concatenate(pack)
