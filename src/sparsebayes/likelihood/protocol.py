r"""What a likelihood offers.

At outputs :math:`\mathbf y` (N rows, K outputs) a likelihood is, to second order, a weighted Gaussian problem: a
curvature :math:`\mathbf B_n = -\nabla\nabla\log p(t_n|\mathbf y_n)`, a K×K block for each row, and a gradient.  The
derivative of :math:`\log|\boldsymbol\Sigma^{-1}|` with respect to the outputs is what Laplace's evidence needs beyond.
Every block is a diagonal less one outer product, and kept as that: products then cost as much as for one output.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any

import numpy as np

from sparsebayes.basis.arrays import HOST, Place
from sparsebayes.typing import Array


@dataclass(frozen=True)
class Curvature:
    r"""Blocks :math:`\mathbf B_n` of all rows, whose entries off the diagonal are :math:`-v_{nk}v_{nl}`.

    The diagonal is kept by itself: in saturated rows it is a small difference.

    Attributes
    ----------
    diagonal : ndarray of shape (N, K)
        Diagonals of the blocks.
    shared : ndarray of shape (N, K), optional
        :math:`v_n`; none where outputs are independent.
    """

    diagonal: Array
    shared: Array | None = None

    def blocks(self) -> Array:
        """The blocks themselves, (N, K, K)."""
        n, k = self.diagonal.shape
        blocks = np.zeros((n, k, k)) if self.shared is None else -self.shared[:, :, None] * self.shared[:, None, :]
        blocks[:, np.arange(k), np.arange(k)] = self.diagonal
        return blocks


class Likelihood(ABC):
    """A log-concave likelihood of N rows with K outputs each; the targets and sample weights are inside.

    Attributes
    ----------
    place : Place
        Where outputs, gradients and curvatures are arrays: memory, unless it says otherwise.
    """

    place: Place = HOST

    @property
    @abstractmethod
    def shape(self) -> tuple[int, int]:
        """Rows and outputs, (N, K)."""

    @abstractmethod
    def log_likelihood(self, y: Array) -> float:
        r""":math:`\log p(\mathbf t|\mathbf y)` for outputs of shape (N, K)."""

    @abstractmethod
    def gradient(self, y: Array) -> Array:
        r""":math:`\nabla_y\log p`, (N, K)."""

    @abstractmethod
    def curvature(self, y: Array) -> Curvature:
        r""":math:`\mathbf B_n`, positive semi-definite."""

    @abstractmethod
    def curvature_change(self, y: Array, variance: Array, along: Array | None = None) -> Array:
        r""":math:`\partial_{y_{nk}}\,\mathrm{tr}(\mathbf B_n\mathbf V_n)` for fixed :math:`\mathbf V_n`, (N, K).

        With the posterior covariance :math:`\mathbf V_n` of the outputs this is the derivative of
        :math:`\log|\boldsymbol\Phi^\top\mathbf B\boldsymbol\Phi+\mathbf A|` with respect to the outputs.

        Parameters
        ----------
        y : ndarray of shape (N, K)
            Outputs.
        variance : ndarray of shape (N, K)
            Diagonals of :math:`\mathbf V_n`.
        along : ndarray of shape (N, K), optional
            :math:`\mathbf V_nv_n`, where outputs share a part of the curvature.
        """


class Classes(Likelihood):
    """The logistic or the softmax, whose curvature is known where outputs are uncertain (``expected.py``).

    One output is the log-odds of the second of two classes; differences of several are log-odds of one class against
    another.
    """

    weights: Any
