r"""What a non-Gaussian posterior needs to know of the rows at given weights, wherever the rows are."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol

from sparsebayes.inference.models.evidence import Array
from sparsebayes.likelihood import Curvature, Likelihood


@dataclass(frozen=True)
class SummedPoint:
    r"""The likelihood to second order in the active weights, from one pass over rows that are elsewhere.

    Attributes
    ----------
    columns : ActiveColumns
        The active columns whose point this is.
    outputs : object
        Whatever these columns need to find the rows again.
    fit : float
        Log likelihood.
    slope : ndarray of shape (a,)
        Its gradient by the active weights.
    gram : ndarray of shape (a, a)
        :math:`\boldsymbol\Phi_a^\top\mathbf B\boldsymbol\Phi_a`.
    """

    columns: Any
    outputs: Any
    fit: float
    slope: Array
    gram: Array


class Rows:
    """Outputs, and what the likelihood says there, each computed when it is first asked for."""

    def __init__(self, likelihood: Likelihood, outputs: Array) -> None:
        self._likelihood = likelihood
        self.outputs = outputs

    @cached_property
    def fit(self) -> float:
        """Log likelihood."""
        return self._likelihood.log_likelihood(self.outputs)

    @cached_property
    def gradient(self) -> Array:
        """Its gradient, (N, K)."""
        return self._likelihood.gradient(self.outputs)

    @cached_property
    def curvature(self) -> Curvature:
        """Its curvature."""
        return self._likelihood.curvature(self.outputs)


class Columns(Protocol):
    """Sums over rows in memory."""

    def correlate(self, rows: Array) -> Array:
        """Inner products with (N, K) numbers of the rows."""
        ...

    def gram(self, curvature: Curvature) -> Array:
        """Inner products with one another, in a curvature."""
        ...


class RowsPoint:
    """The same on rows in memory, each sum computed when it is first asked for: a line search needs the fit alone."""

    def __init__(self, columns: Columns, rows: Rows) -> None:
        self.columns = columns
        self.rows = rows

    @property
    def outputs(self) -> Array:
        """Outputs of all rows, (N, K)."""
        return self.rows.outputs

    @property
    def fit(self) -> float:
        """Log likelihood."""
        return self.rows.fit

    @cached_property
    def slope(self) -> Array:
        """Its gradient by the active weights."""
        return self.columns.correlate(self.rows.gradient)

    @cached_property
    def gram(self) -> Array:
        """Inner products of the active columns in the curvature."""
        return self.columns.gram(self.rows.curvature)


Point = RowsPoint | SummedPoint


@dataclass(frozen=True)
class Slopes:
    r"""Of all functions: squared norms in the curvature, Q, and :math:`\boldsymbol\Phi^\top\mathbf
    B\boldsymbol\Phi_a`.
    """

    norms: Array
    quality: Array
    inner: Array
