r"""Functions of which only the inner products are known.

A Gaussian problem sees its data only through :math:`\mathbf G=\boldsymbol\Phi^\top\mathbf W\boldsymbol\Phi`,
:math:`\mathbf b=\boldsymbol\Phi^\top\mathbf W\mathbf t`, :math:`\mathbf t^\top\mathbf W\mathbf t` and the number of
observations.  Where these are integrals, or kernels between points of a feature space, there are no rows at all.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NoReturn

import numpy as np
from numpy.typing import ArrayLike
from scipy.linalg import get_lapack_funcs, solve_triangular

from sparsebayes.basis.base import Floats, Index, positions

from .protocol import Design

_PIVOTED_CHOLESKY = get_lapack_funcs(("pstrf",), (np.zeros(1),))[0]

# Squared part of a unit function outside the span of the others below which it is rounding error of the moments.
_ROUNDING = 1e-13
# Moments further from those of any functions than this (relative) are wrong, not rounded.
_INCONSISTENT = 1e-6


@dataclass(frozen=True)
class Root:
    r"""Columns :math:`\mathbf Z` and targets with exactly these moments.

    :math:`\mathbf Z^\top\mathbf Z=\mathbf G` and :math:`\mathbf Z^\top\mathbf z=\mathbf b`; the last row holds what the
    targets have outside the span of the functions, which are zero there.
    """

    columns: Floats
    targets: Floats


class MomentDesign(Design):
    r"""A design without rows: its moments are all there is.

    Parameters
    ----------
    G : (M, M) array-like
        Inner products :math:`\langle\varphi_i,\varphi_j\rangle`, positive semi-definite.
    b : (M,) or (M, T) array-like
        Inner products with the targets.
    tt : float or (T,) array-like
        Squared norms of the targets.
    N : float
        Number of observations that the moments stand for.
    """

    def __init__(self, G: ArrayLike, b: ArrayLike, tt: ArrayLike, N: float) -> None:
        self.G = np.asarray(G, dtype=np.float64)
        b = np.asarray(b, dtype=np.float64)
        self.b = b[:, None] if b.ndim == 1 else b
        self.tt = np.atleast_1d(np.asarray(tt, dtype=np.float64))
        self.N = float(N)
        m = len(self.G)
        if self.G.shape != (m, m) or self.b.shape != (m, len(self.tt)):
            raise ValueError(
                f"G has shape {self.G.shape}, b {self.b.shape} and tt {self.tt.shape}; expected (M, M), (M, T), (T,)"
            )
        if not all(np.isfinite(part).all() for part in (self.G, self.b, self.tt)):
            raise ValueError("the moments contain NaN or infinity; expected finite inner products")
        if not 0.0 < self.N < np.inf:
            raise ValueError(f"N={N!r}; expected the positive number of observations that the moments stand for")

    @property
    def shape(self) -> tuple[int, int]:
        """No rows, M columns."""
        return 0, len(self.G)

    def gram(self, idx: Any, weights: ArrayLike | None = None) -> Floats:
        """Return G[:, idx]; there are no rows that weights could be given to."""
        if weights is not None:
            self._needs_rows("gram with row weights")
        return self.G[:, positions(idx, len(self.G))]

    def sqnorms(self, weights: ArrayLike | None = None) -> Floats:
        """Return the diagonal of G; there are no rows that weights could be given to."""
        if weights is not None:
            self._needs_rows("sqnorms with row weights")
        return np.diagonal(self.G).copy()

    def columns(self, idx: Any) -> Floats:
        """There are none."""
        self._needs_rows("columns")

    def matvec(self, w: ArrayLike, idx: Any) -> Floats:
        """There are no rows."""
        self._needs_rows("matvec")

    def correlate(self, V: ArrayLike) -> Floats:
        """There are no rows."""
        self._needs_rows("correlate")

    def extend(self, other: Design) -> Design:
        """Inner products of old and new functions are not known."""
        self._needs_rows("extend")

    @staticmethod
    def _needs_rows(what: str) -> NoReturn:
        raise TypeError(f"{what} needs rows, and a MomentDesign has only inner products; use a design on data for it")

    def root(self) -> Root:
        """Rows with exactly these moments, as many as the functions have independent directions, and one more."""
        norms = np.sqrt(np.maximum(np.diagonal(self.G), 0.0))
        unit = np.where(norms > 0.0, norms, 1.0)
        factor, order = _pivoted_cholesky(self.G / unit / unit[:, None])
        rank = len(factor)
        Z = np.zeros((rank + 1, len(norms)))
        Z[:rank, order] = factor * unit[order]
        projections = (self.b / unit[:, None])[order[:rank]]
        inside = np.asarray(solve_triangular(factor[:, :rank].T, projections, lower=True), dtype=np.float64)
        rest = self.tt - np.sum(inside**2, axis=0)
        if np.any(rest < -_INCONSISTENT * np.abs(self.tt)):
            raise ValueError("b and tt are the moments of no function: the targets are shorter than their projections")
        return Root(Z, np.vstack([inside, np.sqrt(np.maximum(rest, 0.0))]))


def _pivoted_cholesky(unit: Floats) -> tuple[Floats, Index]:
    """Upper factor of a positive semi-definite matrix of unit diagonal, one row per pivot, and the order of columns."""
    factor, pivots, rank, _ = _PIVOTED_CHOLESKY(unit, tol=_ROUNDING, lower=0)
    rank = int(rank)
    order = np.asarray(pivots, dtype=np.intp) - 1
    factor = np.triu(factor)[:rank]
    remainder = np.diagonal(unit)[order] - np.sum(factor**2, axis=0)
    if np.any(remainder < -_INCONSISTENT) or np.any(remainder > _INCONSISTENT):
        raise ValueError("G is not positive semi-definite; expected the inner products of functions")
    return factor, order
