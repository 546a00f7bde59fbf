"""Predictions of a Gaussian model."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


@dataclass(frozen=True)
class GaussianPosterior:
    """Posterior of the kept weights of one target, in the target's own units.

    Attributes
    ----------
    functions : ndarray of int
        Which of the model's kept functions carry these weights.
    mean, covariance : ndarray of shape (a,), (a, a)
        Posterior of the weights.
    noise_variance : float
        Noise variance of an observation.
    offset : float
        Constant that was taken off the targets before the fit.
    """

    functions: NDArray[np.intp]
    mean: Array
    covariance: Array
    noise_variance: float
    offset: float

    def predict(self, values: Array) -> Array:
        """Predictive mean (Tipping 2001, eq. 15) from the values of all kept functions, (n, k)."""
        return self._mine(values) @ self.mean + self.offset

    def standard_deviation(self, values: Array) -> Array:
        """Standard deviation of a new observation: noise and weight uncertainty together (eq. 15)."""
        mine = self._mine(values)
        spread = np.einsum("na,na->n", mine @ self.covariance, mine)
        return np.sqrt(self.noise_variance + np.maximum(spread, 0.0))

    def _mine(self, values: Array) -> Array:
        """Values of this target's functions; they are in order, so all of them are all there are."""
        return values if len(self.functions) == values.shape[1] else values[:, self.functions]
