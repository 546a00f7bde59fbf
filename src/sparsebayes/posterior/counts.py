"""Predictions of counts."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln
from scipy.stats import nbinom, poisson

from sparsebayes.posterior.gaussian import draw_weights

Array = NDArray[np.float64]


@dataclass(frozen=True)
class PoissonPosterior:
    r"""Laplace posterior of the kept weights; the rate :math:`e^{y}` is then log-normal.

    Attributes
    ----------
    functions : ndarray of int
        Which of the model's kept functions carry these weights.
    mean, covariance : ndarray of shape (a,), (a, a)
        Laplace's approximation of the posterior.
    offset : float
        Log rate at zero output.
    """

    functions: NDArray[np.intp]
    mean: Array
    covariance: Array
    offset: float

    def _log_rate(self, values: Array) -> tuple[Array, Array]:
        """Mean and variance of the log rate."""
        mine = values[:, self.functions]
        variance = np.maximum(np.einsum("na,na->n", mine @ self.covariance, mine), 0.0)
        return mine @ self.mean + self.offset, variance

    def predict(self, values: Array) -> Array:
        """Expected count."""
        mean, variance = self._log_rate(values)
        return np.exp(mean + 0.5 * variance)

    def standard_deviation(self, values: Array) -> Array:
        """Standard deviation of a new count: its own variance and that of the rate."""
        expected = self.predict(values)
        return np.sqrt(expected + expected**2 * np.expm1(self._log_rate(values)[1]))

    def _distribution(self, values: Array) -> tuple[Array, Array]:
        """Size and probability of the negative binomial with the same mean and variance."""
        expected, extra = self.predict(values), np.maximum(np.expm1(self._log_rate(values)[1]), 1e-12)
        return 1.0 / extra, 1.0 / (1.0 + expected * extra)

    def interval(self, values: Array, coverage: float) -> tuple[Array, Array]:
        """Central interval of a new count."""
        size, probability = self._distribution(values)
        tail = 0.5 * (1.0 - coverage)
        return nbinom.ppf(tail, size, probability), nbinom.ppf(1.0 - tail, size, probability)

    def log_density(self, values: Array, y: Array) -> Array:
        """Log predictive probability of counts."""
        size, p = self._distribution(values)
        choose = gammaln(y + size) - gammaln(size) - gammaln(y + 1.0)
        return choose + size * np.log(p) + y * np.log1p(-p)

    def sample(self, values: Array, n_samples: int, rng: np.random.Generator, *, noise: bool) -> Array:
        """Draws of the rate, or of new counts, (n, n_samples)."""
        mine = values[:, self.functions]
        rates = np.exp(mine @ draw_weights(self.mean, self.covariance, n_samples, rng) + self.offset)
        return np.asarray(poisson.rvs(rates, random_state=rng), dtype=np.float64) if noise else rates
