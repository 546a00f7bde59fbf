"""The log likelihood of Gaussian targets."""

from __future__ import annotations

import numpy as np


def gaussian_log_likelihood(residual_sumsq: float, beta: float, n: float) -> float:
    r""":math:`\log \mathcal N(\mathbf t \mid \mathbf y, \beta^{-1}\mathbf I)` from the residual sum of squares."""
    return 0.5 * n * float(np.log(beta) - np.log(2.0 * np.pi)) - 0.5 * beta * residual_sumsq
