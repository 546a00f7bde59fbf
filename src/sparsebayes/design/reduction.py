r"""Any number of rows as a few with exactly the same inner products.

A Gaussian problem sees :math:`\boldsymbol\Phi` and :math:`\mathbf t` only through their weighted inner products.  They
are kept as the triangular factor of :math:`\mathbf W^{1/2}[\boldsymbol\Phi\;\mathbf t]`, which a further block of rows
changes by one more factorisation.  Sums of products would say the same, with the condition number squared.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from sparsebayes.basis.base import Floats

from .centred import coarse
from .protocol import BLOCK_BYTES

# Columns are copies where they differ by no more than this part of their length: less than repeated factorisation
# rounds.  Only pairs with cosines this near to one are looked at.
_COPY = 1e-11
_PARALLEL = 1e-13


@dataclass(frozen=True)
class Reduction:
    r"""All rows seen so far.

    Attributes
    ----------
    factor : (k, M + T) ndarray
        Upper triangular, with :math:`\mathbf R^\top\mathbf R` the inner products of the M functions and T targets.
    n_functions : int
        M.
    shift : (T,) ndarray
        What is taken off the targets of every row.
    total : float
        Sum of the weights.
    n_rows : int
        Rows of positive weight.
    """

    factor: Floats
    n_functions: int
    shift: Floats
    total: float = 0.0
    n_rows: int = 0

    @classmethod
    def empty(cls, n_functions: int, shift: Floats) -> Reduction:
        """Begin with no rows."""
        return cls(np.zeros((0, n_functions + len(shift))), n_functions, shift)

    @property
    def block(self) -> int:
        """Rows to add at once: enough for the factorisation to run at full speed, few enough to hold."""
        width = self.factor.shape[1]
        return max(2 * width, BLOCK_BYTES // (8 * width))

    def add(self, Phi: Floats, targets: Floats, weights: Floats) -> Reduction:
        """With these rows more: values (n, M), targets (n, T), weights (n,)."""
        rows = np.hstack([Phi, targets - self.shift])
        rows *= np.sqrt(weights)[:, None]
        factor = np.linalg.qr(np.vstack([self.factor, rows]), mode="r")
        return replace(
            self, factor=factor, total=self.total + float(np.sum(weights)), n_rows=self.n_rows + len(weights)
        )

    def aged(self, factor: float) -> Reduction:
        """With the weights of all rows so far multiplied by a factor."""
        if factor == 1.0:
            return self
        return replace(self, factor=np.sqrt(factor) * self.factor, total=factor * self.total)

    @property
    def functions(self) -> Floats:
        """The few rows of the functions, (k, M)."""
        return self.factor[:, : self.n_functions]

    @property
    def targets(self) -> Floats:
        """The few rows of the targets, (k, T)."""
        return self.factor[:, self.n_functions :]

    def mean(self, constant: int) -> Floats:
        """Weighted mean of the shifted targets, by their inner products with the constant function."""
        one = self.functions[:, constant]
        return one @ self.targets / (one @ one)

    def centred(self, constant: int, origin: Floats) -> tuple[Reduction, Floats]:
        r"""The rows with the means of all functions but the constant one taken off, and these means.

        The functions had an ``origin`` taken off before, (M - 1,); the means are about zero.

        With :math:`\mathbf r_1` the column of the constant function, the inner products of
        :math:`\mathbf r_m-m_m\mathbf r_1` are those of :math:`\phi_m-m_m`, exactly.
        """
        one, others = self.functions[:, constant], np.arange(self.n_functions) != constant
        columns = self.functions[:, others]
        means = one @ columns / (one @ one)
        spread = np.linalg.norm(columns - np.outer(one, means), axis=0) / np.sqrt(self.total)
        # A column that does not vary has no mean about its origin but rounding.
        spread = np.where(np.any(columns != 0.0, axis=0), spread, 0.0)
        shift = coarse(origin + means, spread)
        factor = self.factor.copy()
        factor[:, np.flatnonzero(others)] -= np.outer(one, shift - origin)
        return replace(self, factor=factor), shift

    def distinct(self, constant: int | None) -> NDArray[np.bool_]:
        """Functions that are no copy of an earlier one, nor of the constant one."""
        columns = self.functions
        norms = np.linalg.norm(columns, axis=0)
        unit = columns / np.where(norms > 0.0, norms, 1.0)
        distinct = np.ones(len(norms), dtype=bool)
        for earlier, later in zip(*np.nonzero(np.triu(unit.T @ unit > 1.0 - _PARALLEL, 1)), strict=True):
            apart = np.linalg.norm(columns[:, earlier] - columns[:, later])
            if distinct[earlier] and apart <= _COPY * norms[later]:
                distinct[earlier if later == constant else later] = False
        return distinct
