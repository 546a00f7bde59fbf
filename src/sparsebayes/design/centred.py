r"""Columns less their weighted means, in whatever storage they are.

With an intercept beside them, the columns of X and the columns less constants :math:`m_m` span the same functions.
They are not the same dictionary: a prior of its own on each weight makes :math:`w_mx_m` and :math:`w_m(x_m-m_m)`
different models, and the first knows where zero is on the scale of the inputs.  Nothing is to be learned from that
where zero is a convention (°C, K, °F, dates, altitudes), and a large offset hides everything else: with
:math:`x_m=c+u_m` and centred targets, :math:`q_m^2/s_m` falls like :math:`\|u_m\|^2/(Nc^2)`.

Any :math:`m_m` gives a valid model as long as the same one is used for predictions.  So the mean is rounded to a
:math:`2^{-40}` part of the column's spread: weights and copies, rows in another order and in another storage, whose
sums differ in the last bits, then lead to the very same columns, and taking off a large mean rounds nothing.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse
from scipy.sparse.linalg import LinearOperator

from sparsebayes.basis.arrays import Place, is_elsewhere
from sparsebayes.basis.base import Floats, positions

from .dense import DenseDesign
from .device import ArrayDesign
from .mapped import MappedDesign
from .operator import OperatorDesign
from .protocol import BLOCK_BYTES, Design
from .sparse import SparseDesign

# Bits of a column's spread to which its mean is rounded.
_BITS = 40


def centred(X: Any, weights: Floats, *, single: bool = False) -> tuple[Design, Floats]:
    """Return the design of the columns of X less their weighted means, and these means.

    Parameters
    ----------
    X : ndarray, memory-mapped array, SciPy sparse array, LinearOperator, or an array of the array API standard
        The columns, (N, M).  Sparse arrays stay sparse, files stay files.
    weights : (N,) array
        Positive weights of the rows.
    single : bool
        Hold dense columns in single precision.
    """
    if is_elsewhere(X):
        return _elsewhere(X, weights, single)
    if isinstance(X, LinearOperator):
        return _operator(X, weights)
    if sparse.issparse(X):
        design = CentredSparse(X, weights)
        return design, design.means
    means = _dense_means(X, weights)
    if isinstance(X, np.memmap):
        return MappedDesign(X, shift=means), means
    values = np.empty(X.shape, dtype=np.float32 if single else np.float64, order="C" if X.flags.c_contiguous else "F")
    for part in _row_blocks(X.shape):
        values[part] = X[part] - means
    return DenseDesign(values), means


def coarse(means: Floats, spread: Floats) -> Floats:
    """Means to a fixed part of the columns' spread; those of constant columns as they are."""
    with np.errstate(divide="ignore"):
        exponent = np.where(spread > 0.0, np.floor(np.log2(spread)), 0.0) - _BITS
    return np.where(
        spread > 0.0, np.ldexp(np.round(np.ldexp(means, -exponent.astype(int))), exponent.astype(int)), means
    )


def _row_blocks(shape: tuple[int, ...]) -> list[slice]:
    step = max(1, BLOCK_BYTES // (8 * max(1, shape[1])))
    return [slice(start, start + step) for start in range(0, shape[0], step)]


def _dense_means(X: Any, weights: Floats) -> Floats:
    """Weighted means about the first row: exact for constant columns, with all digits of small spreads for others."""
    first = np.asarray(X[0], dtype=np.float64)
    total = np.zeros(X.shape[1])
    for part in _row_blocks(X.shape):
        # Not a product of BLAS, which rounds equal columns differently in different places: copies must stay copies.
        block = np.asarray(X[part], dtype=np.float64) - first
        block *= weights[part, None]
        total += block.sum(axis=0)
    means = first + total / np.sum(weights)
    square = np.zeros(X.shape[1])
    for part in _row_blocks(X.shape):
        block = np.asarray(X[part], dtype=np.float64) - means
        square += (block * block * weights[part, None]).sum(axis=0)
    return coarse(means, np.sqrt(square / np.sum(weights)))


def _elsewhere(X: Any, weights: Floats, single: bool) -> tuple[Design, Floats]:
    place = Place.of(X)
    xp, first = place.xp, X[0, ...]
    share = place.put(weights / np.sum(weights))
    share = xp.astype(share, X.dtype)[:, None]
    means = first + xp.sum((X - first) * share, axis=0)
    spread = xp.sum((X - means) ** 2 * share, axis=0) ** 0.5
    means = coarse(*(np.asarray(place.get(part), np.float64) for part in (means, spread)))
    values = X - place.put(means, X.dtype)
    return ArrayDesign(xp.astype(values, xp.float32) if single else values), means


def _operator(X: LinearOperator, weights: Floats) -> tuple[Design, Floats]:
    r"""The operator :math:`\mathbf X-\mathbf 1\mathbf m^\top`, which costs no more products than X."""
    design = OperatorDesign(X)
    means = np.empty(design.shape[1])
    for block in design.blocks():
        means[block] = _dense_means(design.columns(block), weights)

    return OperatorDesign(_Shifted(X, means)), means


class _Shifted(LinearOperator):
    r"""An operator less a constant in each column."""

    def __init__(self, operator: LinearOperator, shift: Floats) -> None:
        super().__init__(np.dtype(np.float64), operator.shape)
        self._operator, self._shift = operator, shift

    def _matmat(self, X: Any) -> Any:
        return self._operator.matmat(X) - self._shift @ X

    def _rmatmat(self, X: Any) -> Any:
        return self._operator.rmatmat(X) - np.outer(self._shift, np.sum(X, axis=0))

    def _matvec(self, x: Any) -> Any:
        return self._operator.matvec(x) - self._shift @ x

    def _rmatvec(self, x: Any) -> Any:
        return self._operator.rmatvec(x) - self._shift * np.sum(x)


class CentredSparse(SparseDesign):
    r"""Sparse columns less their weighted means, without ever being dense.

    Where a column has an entry in every row the mean is taken off the entries.  Elsewhere the column is
    :math:`\phi_m-m_m\mathbf 1`, and the second part is added to every product: a rank-one correction.  Such a column
    has zeros, so that its spread is no smaller than its mean times the root of their share, and nothing cancels.

    Parameters
    ----------
    Phi : SciPy sparse array or matrix, (N, M)
        The columns.
    weights : (N,) array
        Positive weights of the rows.
    """

    def __init__(self, Phi: Any, weights: Floats) -> None:
        super().__init__(Phi)
        held, (n, m) = self._Phi, self._shape
        counts = np.diff(held.indptr)
        column = np.repeat(np.arange(m), counts)
        full = counts == n
        share = weights / np.sum(weights)
        first = np.zeros(m)
        first[full] = held.data[held.indptr[:-1][full]]
        about = np.bincount(column, share[held.indices] * (held.data - first[column]), minlength=m)
        means = first + about
        entries = np.bincount(column, share[held.indices] * np.square(held.data - means[column]), minlength=m)
        missing = np.maximum(1.0 - np.bincount(column, share[held.indices], minlength=m), 0.0) * ~full
        self.means = coarse(means, np.sqrt(entries + missing * np.square(means)))
        data = np.where(full[column], held.data - self.means[column], held.data)
        self._Phi = sparse.csc_array((data, held.indices, held.indptr), shape=held.shape)
        self._PhiT = self._Phi.T
        self._shift = np.where(full, 0.0, self.means)

    def columns(self, idx: Any) -> Floats:
        """Return Φ[:, idx], a new (N, k) array."""
        return super().columns(idx) - self._shift[positions(idx, self._shape[1])]

    def matvec(self, w: ArrayLike, idx: Any) -> Floats:
        """Return Φ[:, idx] w for weights (k,) or (k, T)."""
        return super().matvec(w, idx) - self._shift[positions(idx, self._shape[1])] @ np.asarray(w, dtype=np.float64)

    def correlate(self, V: ArrayLike) -> Floats:
        """Return Φᵀ V: (M,) for a vector (N,), (M, T) for a matrix (N, T)."""
        V = np.asarray(V, dtype=np.float64)
        return super().correlate(V) - np.multiply.outer(self._shift, V.sum(axis=0))

    def sqnorms(self, weights: ArrayLike | None = None) -> Floats:
        r"""Return the diagonal of Φᵀ diag(weights) Φ, (M,): entries about the mean, and the mean elsewhere."""
        rows = np.ones(self._shape[0]) if weights is None else self._row_weights(weights)
        Phi, m = self._Phi, self._shape[1]
        column = np.repeat(np.arange(m), np.diff(Phi.indptr))
        held = np.bincount(column, rows[Phi.indices] * np.square(Phi.data - self._shift[column]), minlength=m)
        missing = np.sum(rows) - np.bincount(column, rows[Phi.indices], minlength=m)
        return held + np.square(self._shift) * missing
