"""Φ whose columns are exact, and whose products with all of them at once are those of a design that stands in."""

from __future__ import annotations

from typing import Any

from numpy.typing import ArrayLike

from sparsebayes.basis.base import Floats

from .compressed import CompressedDesign
from .protocol import Design


class ScreenedDesign(Design):
    """The columns of one design, the products of another.

    Parameters
    ----------
    exact : Design
        Gives the columns.
    stand_in : CompressedDesign
        Gives the products with all columns.
    error : float
        Bound on the error of the entries that decided anything: zero where all of them were taken from ``exact``.
    """

    def __init__(self, exact: Design, stand_in: CompressedDesign, error: float = 0.0) -> None:
        self.exact = exact
        self.stand_in = stand_in
        self.error = error

    @property
    def shape(self) -> tuple[int, int]:
        """The numbers (N, M) of rows and columns."""
        return self.exact.shape

    def columns(self, idx: Any) -> Floats:
        """Return Φ[:, idx], a new (N, k) array."""
        return self.exact.columns(idx)

    def rows(self, part: slice, idx: Any = slice(None)) -> Floats:
        """Return Φ[part, idx], a new array of all or some columns on a run of rows."""
        return self.exact.rows(part, idx)

    def correlate(self, V: ArrayLike) -> Floats:
        """Return Φᵀ V: (M,) for a vector (N,), (M, T) for a matrix (N, T)."""
        return self.stand_in.correlate(V)

    def sqnorms(self, weights: ArrayLike | None = None) -> Floats:
        """Return the diagonal of Φᵀ diag(weights) Φ, (M,); the weights (N,) may have any sign."""
        return self.stand_in.sqnorms(weights)
