"""Φ as a SciPy sparse array."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse

from sparsebayes.basis.base import Floats, positions

from .protocol import Design


class SparseDesign(Design):
    """Φ held in compressed sparse columns.

    Parameters
    ----------
    Phi : SciPy sparse array or matrix, (N, M)
        Held without a copy where it is in CSC format, float64, with its entries sorted and summed.
    """

    def __init__(self, Phi: Any) -> None:
        if not sparse.issparse(Phi):
            raise TypeError(f"Phi is of type {type(Phi).__name__}; expected a SciPy sparse array")
        if Phi.ndim != 2:
            raise ValueError(f"Phi has shape {Phi.shape}; expected two dimensions (rows, columns)")
        if Phi.dtype.kind not in "fiub":
            raise TypeError(f"Phi has dtype {Phi.dtype}; expected real numbers")
        held = sparse.csc_array(Phi, dtype=np.float64)
        if not held.has_canonical_format:
            held = held.copy()  # summing duplicates in place would change the caller's array
            held.sum_duplicates()
        self._Phi = held
        self._shape = (int(Phi.shape[0]), int(Phi.shape[1]))
        self._PhiT = held.T  # CSR, sharing the data

    @property
    def shape(self) -> tuple[int, int]:
        """The numbers (N, M) of rows and columns."""
        return self._shape

    def columns(self, idx: Any) -> Floats:
        """Return Φ[:, idx], a new (N, k) array."""
        return self._Phi[:, positions(idx, self.shape[1])].toarray()

    def matvec(self, w: ArrayLike, idx: Any) -> Floats:
        """Return Φ[:, idx] w for weights (k,) or (k, T)."""
        return self._Phi[:, positions(idx, self.shape[1])] @ np.asarray(w, dtype=np.float64)

    def correlate(self, V: ArrayLike) -> Floats:
        """Return Φᵀ V: (M,) for a vector (N,), (M, T) for a matrix (N, T)."""
        return self._PhiT @ np.asarray(V, dtype=np.float64)

    def sqnorms(self, weights: ArrayLike | None = None) -> Floats:
        """Return the diagonal of Φᵀ diag(weights) Φ, (M,); the weights (N,) may have any sign."""
        rows = np.ones(self.shape[0]) if weights is None else self._row_weights(weights)
        Phi = self._Phi
        squares = sparse.csc_array((np.square(Phi.data), Phi.indices, Phi.indptr), shape=Phi.shape)
        return squares.T @ rows
