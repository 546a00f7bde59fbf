r"""What a likelihood offers.

At outputs :math:`\mathbf y` (N rows, K outputs) a likelihood is, to second order, a weighted Gaussian problem: a
curvature :math:`\mathbf B_n = -\nabla\nabla\log p(t_n|\mathbf y_n)`, a K×K block for each row, and a gradient.  The
derivative of :math:`\log|\boldsymbol\Sigma^{-1}|` with respect to the outputs is what Laplace's evidence needs beyond.
"""

from __future__ import annotations

from abc import ABC, abstractmethod

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


class Likelihood(ABC):
    """A log-concave likelihood of N rows with K outputs each; the targets and sample weights are inside."""

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
    def curvature(self, y: Array) -> Array:
        r""":math:`\mathbf B_n`, (N, K, K), positive semi-definite."""

    @abstractmethod
    def curvature_change(self, y: Array, spread: Array) -> Array:
        r""":math:`\partial_{y_{nk}}\,\mathrm{tr}(\mathbf B_n\mathbf V_n)` for fixed :math:`\mathbf V_n`, (N, K).

        With the posterior covariance of the outputs as ``spread``, (N, K, K), this is the derivative of
        :math:`\log|\boldsymbol\Phi^\top\mathbf B\boldsymbol\Phi+\mathbf A|` with respect to the outputs.
        """
