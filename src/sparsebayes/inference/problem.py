r"""What a solver sees: a weighted Gaussian problem.

With row weights :math:`\mathbf B = \beta\mathbf W` every product that learning needs is one of the whitened design
:math:`\mathbf W^{1/2}\boldsymbol\Phi` with a few vectors.  A solver never learns where the design lives, which
likelihood gave the weights, or what the functions are.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from sparsebayes.design import Design
from sparsebayes.inference.evidence import Array

Index = NDArray[np.intp]


class Problem(Protocol):
    r"""A weighted Gaussian problem :math:`(\mathbf B, \mathbf h)` with :math:`\mathbf B = \beta\mathbf W`."""

    @property
    def n_functions(self) -> int:
        """Number of candidate functions M."""
        ...

    @property
    def n_targets(self) -> int:
        """Number of targets T that share one precision per function."""
        ...

    @property
    def n_effective(self) -> float:
        """Number of observations of one target, in the sense of the evidence (the sum of the weights)."""
        ...

    @property
    def eligible(self) -> NDArray[np.bool_]:
        """Functions that may enter: not zero, and not a copy of an earlier one."""
        ...

    @property
    def sqnorms(self) -> Array:
        r"""Squared norms :math:`\phi_m^\top\mathbf W\phi_m`."""
        ...

    @property
    def projection(self) -> Array:
        r""":math:`\boldsymbol\Phi^\top\mathbf h/\beta`, of shape (M, T)."""
        ...

    @property
    def bias(self) -> int | None:
        """Index of the constant function, if the dictionary has one."""
        ...

    @property
    def mean_square(self) -> float:
        """Mean square of the targets, the scale of the noise variance."""
        ...

    @property
    def target(self) -> Array:
        r"""Whitened targets :math:`\mathbf W^{1/2}\mathbf t`, of shape (rows, T)."""
        ...

    def columns(self, idx: Index) -> Array:
        r"""Whitened columns :math:`\mathbf W^{1/2}\boldsymbol\Phi_{idx}`."""
        ...

    def correlate(self, vectors: Array) -> Array:
        r""":math:`\boldsymbol\Phi^\top\mathbf W^{1/2}\mathbf V` for all M functions."""
        ...


@dataclass(frozen=True)
class GaussianProblem:
    """Gaussian targets with one noise level: :math:`\\mathbf B = \\mathbf W/\\sigma^2`.

    Parameters
    ----------
    design : Design
        The dictionary evaluated on the rows.
    targets : ndarray of shape (N, T)
        Targets, one column for each model that shares the support.
    weights : ndarray of shape (N,)
        Sample weights; an integer weight k is exactly k copies of the row.
    eligible : ndarray of bool, shape (M,)
        Functions that may enter the model.
    bias : int, optional
        Index of the constant function.
    offered : ndarray of bool, shape (M,), optional
        Functions that may enter in the place of others only (see ``moves.py``).
    """

    design: Design
    targets: Array
    weights: Array
    eligible: NDArray[np.bool_]
    bias: int | None = None
    offered: NDArray[np.bool_] | None = None
    sqnorms: Array = field(init=False, repr=False)
    projection: Array = field(init=False, repr=False)
    target: Array = field(init=False, repr=False)
    _root: Array = field(init=False, repr=False)

    def __post_init__(self) -> None:
        root = np.sqrt(self.weights)[:, None]
        sqnorms = self.design.sqnorms(self.weights)
        object.__setattr__(self, "_root", root)
        object.__setattr__(self, "target", root * self.targets)
        object.__setattr__(self, "sqnorms", sqnorms)
        object.__setattr__(self, "projection", self.design.correlate(root * self.target))
        object.__setattr__(self, "eligible", self.eligible & (sqnorms > 0.0))

    @property
    def n_functions(self) -> int:
        """Number of candidate functions M."""
        return self.design.shape[1]

    @property
    def n_targets(self) -> int:
        """Number of targets that share the support."""
        return self.targets.shape[1]

    @property
    def n_effective(self) -> float:
        """Sum of the sample weights."""
        return float(np.sum(self.weights))

    @property
    def mean_square(self) -> float:
        """Weighted mean square of the targets."""
        return float(np.sum(self.target**2)) / (self.n_effective * self.n_targets)

    def columns(self, idx: Index) -> Array:
        """Whitened columns."""
        return self._root * self.design.columns(idx)

    def correlate(self, vectors: Array) -> Array:
        """Correlations of all functions with whitened vectors."""
        return self.design.correlate(self._root * vectors)
