"""Predictions of counts."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import betaln, digamma, gammainccinv, gammaincinv, ndtr, polygamma, xlogy
from scipy.stats import nbinom, poisson

from sparsebayes.posterior.far import reduced, restored
from sparsebayes.posterior.gaussian import draw_weights
from sparsebayes.typing import Array

# Variances of a log rate below which a series is exact to more digits than the function, and below which the rate is
# as good as known.
_NARROW = 1e-3
_KNOWN = 1e-10
_NEWTON_STEPS = 8
# Largest logarithm of an expected count, and variance of a log rate: so far outside the data neither is known.
_LARGEST_LOG, _LARGEST_VARIANCE = 600.0, 1e12
# Mean and standard deviation of a log rate, cut off where the square of the latter is still the larger of the two.
_FARTHEST, _WIDEST = 1e290, 1e150
# Expected counts beyond which quantiles are those of a Gamma distribution, which is then within one of them, and rates
# beyond which a draw is as good as the rate.
_MANY, _MOST = 1e9, 1e15


def relative_variance(variance: Array) -> Array:
    r"""Relative variance :math:`1/k` of the Gamma distribution that is nearest to a log-normal.

    Nearest in :math:`\mathrm{KL}(\text{log-normal}\|\Gamma)`: the mean and the mean of the logarithm are the same,
    which with a variance :math:`v` of the logarithm is :math:`\log k-\psi(k)=v/2`.  So :math:`1/k` is :math:`v` where
    that is small, and :math:`v/2` where it is large.
    """
    half = 0.5 * np.maximum(variance, _NARROW)
    log_k = np.log((3.0 - half + np.sqrt((half - 3.0) ** 2 + 24.0 * half)) / (12.0 * half))
    for _ in range(_NEWTON_STEPS):
        k = np.exp(log_k)
        log_k -= (log_k - digamma(k) - half) / (1.0 - k * polygamma(1, k))
    # With u = 1/k: u/2 + u²/12 - u⁴/120 + … = v/2.
    series = variance - variance**2 / 6.0 + variance**3 / 18.0
    return np.where(variance < _NARROW, series, np.exp(-log_k))


@dataclass(frozen=True)
class PoissonPosterior:
    r"""The Gaussian nearest to the posterior of the kept weights, and counts whose log rate has it.

    The log rate at an input is Gaussian with mean :math:`m` and variance :math:`v`, and the expected rate
    :math:`e^{m+v/2}`, which is what the fit itself matches with the counts.  The higher moments of a log-normal rate
    are all tail, and where few counts were seen a tail that the data have cut: the posterior of a rate falls as
    :math:`e^{-cr}`, and with few counts is all but a Gamma distribution.  So the rate is given the Gamma distribution
    that is nearest to the log-normal, of the same mean and the same mean logarithm (:func:`relative_variance`); a new
    count then is negative binomial.

    Attributes
    ----------
    functions : ndarray of int
        Which of the model's kept functions carry these weights.
    mean, covariance : ndarray of shape (a,), (a, a)
        The Gaussian (``inference/models/nearest.py``).
    offset : float
        Log rate at zero output.
    """

    functions: NDArray[np.intp]
    mean: Array
    covariance: Array
    offset: float

    def _log_rate(self, values: Array) -> tuple[Array, Array]:
        """Mean and variance of the log rate, finite however far out the inputs are."""
        mine, units = reduced(values[:, self.functions])
        variance, mean = self._variance(mine), restored(mine @ self.mean, units)
        if np.any(units > 1.0):  # the square of a unit may be no number
            variance = np.minimum(restored(np.sqrt(variance), units), _WIDEST) ** 2
        return np.clip(mean, -_FARTHEST, _FARTHEST) + self.offset, variance

    def _variance(self, mine: Array) -> Array:
        return np.maximum(np.einsum("na,na->n", mine @ self.covariance, mine), 0.0)

    def predict(self, values: Array) -> Array:
        """Expected count."""
        return self._distribution(values)[0]

    def standard_deviation(self, values: Array) -> Array:
        """Standard deviation of a new count: its own variance and that of the rate."""
        expected, relative = self._distribution(values)
        return np.sqrt(expected) * np.sqrt(1.0 + expected * relative)

    def _distribution(self, values: Array) -> tuple[Array, Array]:
        """Mean and relative variance of the Gamma distribution of the rate."""
        mean, variance = self._log_rate(values)
        relative = relative_variance(np.minimum(variance, _LARGEST_VARIANCE))
        return np.exp(np.minimum(mean + 0.5 * variance, _LARGEST_LOG)), relative

    def interval(self, values: Array, coverage: float) -> tuple[Array, Array]:
        """Central interval of a new count."""
        expected, relative = self._distribution(values)
        known, tail = relative < _KNOWN, 0.5 * (1.0 - coverage)
        size = 1.0 / np.where(known, 1.0, relative)
        few = np.minimum(expected, _MANY)
        # Variances of the rate and of the count about it, relative to the mean.
        together = relative + 1.0 / np.maximum(expected, 1.0)
        low, high = (
            np.where(
                expected > _MANY,
                np.floor(gammaincinv(1.0 / together, end) * (expected * together)),
                np.where(known, poisson.ppf(end, few), nbinom.ppf(end, size, size / (size + few))),
            )
            for end in (tail, 1.0 - tail)
        )
        return low, high

    def log_density(self, values: Array, y: Array) -> Array:
        """Log predictive probability of counts."""
        expected, relative = self._distribution(values)
        size = 1.0 / np.maximum(relative, _KNOWN)
        # Γ(y+k)/Γ(k)y! = 1/[(y+k)B(y+1, k)], which keeps its digits where k is large.
        choose = -np.log(y + size) - betaln(y + 1.0, size)
        return choose - size * np.log1p(expected / size) + xlogy(y, expected / (expected + size))

    def sample(self, values: Array, n_samples: int, rng: np.random.Generator, *, noise: bool) -> Array:
        """Draws of the rate, or of new counts, (n, n_samples).

        Weights are drawn together, and every rate is the quantile of its Gamma distribution at which its log rate is of
        its Gaussian: draws are whole functions, and each rate is distributed as predicted.
        """
        mine, units = reduced(values[:, self.functions])
        weights, spread = draw_weights(self.mean, self.covariance, n_samples, rng), np.sqrt(self._variance(mine))
        expected, relative = self._distribution(values)
        narrow = spread <= np.sqrt(_NARROW) / units
        log_rates = np.where(narrow[:, None], restored(mine @ weights, units[:, None]), 0.0) + self.offset
        rates = np.exp(np.minimum(log_rates, _LARGEST_LOG))
        for n in np.flatnonzero(~narrow):
            z, size = mine[n] @ (weights - self.mean[:, None]) / spread[n], 1.0 / relative[n]
            upper, lower = gammainccinv(size, ndtr(-np.maximum(z, 0.0))), gammaincinv(size, ndtr(np.minimum(z, 0.0)))
            rates[n] = np.where(z > 0.0, upper, lower) * (expected[n] * relative[n])
        if not noise:
            return rates
        counts = np.asarray(poisson.rvs(np.minimum(rates, _MOST), random_state=rng), dtype=np.float64)
        return np.where(rates > _MOST, np.floor(rates), counts)
