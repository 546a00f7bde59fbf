"""Noise whose variance depends on the inputs."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

# Logarithms of what double precision can hold; far outside the data, columns of X may lead anywhere.
LARGEST_LOG = 600.0


@dataclass(frozen=True)
class VaryingNoise:
    r"""Posterior of the log variance :math:`\log\sigma^2(x) = o + \phi(x)^\top\mathbf v` of one target.

    Attributes
    ----------
    functions : ndarray of int
        Which of the model's kept functions carry these weights.
    mean, covariance : ndarray of shape (a,), (a, a)
        Posterior of the weights.
    offset : float
        Log variance where all of these functions are zero, :math:`o`.
    """

    functions: NDArray[np.intp]
    mean: Array
    covariance: Array
    offset: float

    def variance(self, values: Array) -> Array:
        r"""Expected variance :math:`e^{o+\phi^\top\mathbf m+\frac12\phi^\top\mathbf V\phi}` of the noise.

        Parameters
        ----------
        values : ndarray of shape (n, k)
            Values of all kept functions.
        """
        mine = values[:, self.functions]
        log = self.offset + mine @ self.mean + 0.5 * np.einsum("na,na->n", mine @ self.covariance, mine)
        return np.exp(np.clip(log, -LARGEST_LOG, LARGEST_LOG))
