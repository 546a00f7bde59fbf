"""Predictions of a model with Gaussian or Student-t noise."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.stats import norm, t

from sparsebayes.posterior.varying import VaryingNoise

Array = NDArray[np.float64]


def draw_weights(mean: Array, covariance: Array, n_samples: int, rng: np.random.Generator) -> Array:
    """Draws of Gaussian weights, (a, n_samples); directions without variance stay where they are."""
    variances, directions = np.linalg.eigh(covariance)
    root = directions * np.sqrt(np.maximum(variances, 0.0))
    return mean[:, None] + root @ rng.standard_normal((len(mean), n_samples))


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
        Noise variance of an observation; the squared scale of Student's t; the mean of :meth:`noise` over the training
        rows where it varies.
    offset : float
        Constant that was taken off the targets before the fit.
    degrees : float
        Degrees of freedom of the noise; infinite for a Gaussian.
    varying : VaryingNoise, optional
        The noise where it depends on the inputs, and is Gaussian.
    """

    functions: NDArray[np.intp]
    mean: Array
    covariance: Array
    noise_variance: float
    offset: float
    degrees: float = np.inf
    varying: VaryingNoise | None = None

    def predict(self, values: Array) -> Array:
        """Predictive mean (Tipping 2001, eq. 15) from the values of all kept functions, (n, k)."""
        return self._mine(values) @ self.mean + self.offset

    def spread(self, values: Array) -> Array:
        """Posterior variance of the model's own output, without noise."""
        mine = self._mine(values)
        return np.maximum(np.einsum("na,na->n", mine @ self.covariance, mine), 0.0)

    def noise(self, values: Array) -> Array | float:
        """Noise variance, or the squared scale of Student's t, at these values of all kept functions."""
        return self.noise_variance if self.varying is None else self.varying.variance(values)

    def noise_square(self, values: Array) -> Array | float:
        """What the noise adds to the square of a standard deviation: its variance, if it is Gaussian.

        Student's t has no variance where its degrees of freedom are few: its noise counts with half the width of the
        interval that holds as much as one standard deviation either side of a Gaussian does.
        """
        return float(t.ppf(norm.cdf(1.0), self.degrees)) ** 2 * self.noise(values)

    def standard_deviation(self, values: Array, further: Array | float = 0.0) -> Array:
        """Standard deviation of a new observation: noise and weight uncertainty together (eq. 15)."""
        return np.sqrt(self.noise_square(values) + self.spread(values) + further)

    def interval(self, values: Array, coverage: float, further: Array | float = 0.0) -> tuple[Array, Array]:
        """Central interval of a new observation."""
        scale = np.sqrt(self.noise(values) + self.spread(values) + further)
        half = float(t.ppf(0.5 + 0.5 * coverage, self.degrees)) * scale
        mean = self.predict(values)
        return mean - half, mean + half

    def log_density(self, values: Array, y: Array) -> Array:
        """Log predictive density of observations; for Student's t that with the scales added in squares."""
        scale = np.sqrt(self.noise(values) + self.spread(values))
        return np.asarray(t.logpdf(y, self.degrees, self.predict(values), scale), dtype=np.float64)

    def sample(self, values: Array, n_samples: int, rng: np.random.Generator, *, noise: bool) -> Array:
        """Draws of the model's output, or of new observations, (n, n_samples)."""
        mine = self._mine(values)
        outputs = mine @ draw_weights(self.mean, self.covariance, n_samples, rng) + self.offset
        if not noise:
            return outputs
        scale = np.reshape(np.sqrt(self.noise(values)), (-1, 1))
        if np.isinf(self.degrees):
            return outputs + scale * rng.standard_normal(outputs.shape)
        return outputs + scale * rng.standard_t(self.degrees, outputs.shape)

    def _mine(self, values: Array) -> Array:
        """Values of this target's functions; they are in order, so all of them are all there are."""
        return values if len(self.functions) == values.shape[1] else values[:, self.functions]


def held_out_scores(posterior: GaussianPosterior, values: Array, y: Array) -> Array:
    """Scores (``conformal.py``) of rows that had no part in the fit."""
    return np.abs(y - posterior.predict(values)) / posterior.standard_deviation(values)


def left_out_scores(posterior: GaussianPosterior, values: Array, y: Array, weights: Array) -> Array:
    """Scores of the training rows, each left out; ``weights`` are those of one copy of each row."""
    spread = posterior.spread(values)
    leverage = np.minimum(weights * spread / posterior.noise_variance, 1.0 - 1e-6)
    residual = (y - posterior.predict(values)) / (1.0 - leverage)
    return np.abs(residual) / np.sqrt(posterior.noise_square(values) + spread / (1.0 - leverage))
