"""Φ as a pair of products: a SciPy ``LinearOperator``."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.sparse.linalg import LinearOperator

from sparsebayes.basis.base import Floats, positions

from .protocol import BLOCK_BYTES, Design


class OperatorDesign(Design):
    """Φ known only through its products Φx and Φᵀv.

    ``sqnorms`` has to produce every column once, a block at a time.

    Parameters
    ----------
    operator : LinearOperator, (N, M)
        Must be real and define ``rmatvec`` (or ``rmatmat``) beside ``matvec``.
    """

    def __init__(self, operator: LinearOperator) -> None:
        if not isinstance(operator, LinearOperator):
            raise TypeError(f"operator is of type {type(operator).__name__}; expected a LinearOperator")
        if operator.dtype is not None and np.dtype(operator.dtype).kind not in "fiub":
            raise TypeError(f"operator has dtype {operator.dtype}; expected real numbers")
        try:  # found here, a missing product names itself; found later it would surface inside a solver
            operator.rmatvec(np.zeros(operator.shape[0]))
        except (NotImplementedError, TypeError) as error:
            raise TypeError("operator lacks rmatvec, the product Φᵀv; pass rmatvec= to it") from error
        self._operator = operator

    @property
    def shape(self) -> tuple[int, int]:
        """The numbers (N, M) of rows and columns."""
        n, m = self._operator.shape
        return int(n), int(m)

    def columns(self, idx: Any) -> Floats:
        """Return Φ[:, idx], a new (N, k) array."""
        idx = positions(idx, self.shape[1])
        if idx.size == 0:
            return np.empty((self.shape[0], 0))
        units = np.zeros((self.shape[1], idx.size))
        units[idx, np.arange(idx.size)] = 1.0
        return np.array(self._operator.matmat(units), dtype=np.float64)

    def matvec(self, w: ArrayLike, idx: Any) -> Floats:
        """Return Φ[:, idx] w for weights (k,) or (k, T)."""
        w = np.asarray(w, dtype=np.float64)
        idx = positions(idx, self.shape[1])
        full = np.zeros((self.shape[1], *w.shape[1:]))
        np.add.at(full, idx, w)  # an index may be repeated
        return np.array(self._operator @ full, dtype=np.float64)

    def correlate(self, V: ArrayLike) -> Floats:
        """Return Φᵀ V: (M,) for a vector (N,), (M, T) for a matrix (N, T)."""
        V = np.asarray(V, dtype=np.float64)
        if V.ndim == 1:
            return np.array(self._operator.rmatvec(V), dtype=np.float64)
        if V.shape[1] == 0:
            return np.empty((self.shape[1], 0))
        return np.array(self._operator.rmatmat(V), dtype=np.float64)

    def blocks(self) -> Iterator[slice]:
        """Yield runs of columns, in order, within the budget with the unit vectors they are made from."""
        n, m = self.shape
        width = max(1, BLOCK_BYTES // (8 * max(n + m, 1)))
        for start in range(0, m, width):
            yield slice(start, min(start + width, m))
