"""Class probabilities of a Laplace posterior."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, softmax

Array = NDArray[np.float64]


def moderation(variance: Array) -> Array:
    r""":math:`\kappa(v) = (1+\pi v/8)^{-1/2}`: :math:`E[\sigma(y)] \approx \sigma(\kappa(v)\bar y)` (MacKay 1992)."""
    return 1.0 / np.sqrt(1.0 + np.pi * variance / 8.0)


@dataclass(frozen=True)
class ClassPosterior:
    """Posterior of the kept weights of one or several coupled outputs.

    Attributes
    ----------
    functions : ndarray of int, shape (a,)
        Which of the model's kept functions each weight belongs to.
    outputs : ndarray of int, shape (a,)
        Which output it feeds.
    n_outputs : int
        Number of outputs: 1 for two classes (logistic), else one for each class (softmax).
    mean, covariance : ndarray of shape (a,), (a, a)
        Laplace's approximation of the posterior.
    """

    functions: NDArray[np.intp]
    outputs: NDArray[np.intp]
    n_outputs: int
    mean: Array
    covariance: Array

    def predict(self, values: Array) -> Array:
        """Outputs at the mode, (n, K), from the values of all kept functions."""
        y = np.zeros((len(values), self.n_outputs))
        for k in range(self.n_outputs):
            mine = self.outputs == k
            y[:, k] = values[:, self.functions[mine]] @ self.mean[mine]
        return y

    def decide(self, values: Array, *, moderated: bool) -> Array:
        """Outputs whose logistic or softmax is the class probability, (n, K).

        Moderated outputs integrate over the posterior of the weights.  With several classes the output of each, taken
        against the mean of the others, is moderated by its own variance, which for two classes is exactly the logistic
        rule.
        """
        y = self.predict(values)
        if not moderated:
            return y
        kappa = moderation(self._variance(values, self.contrasts))
        return kappa * (y if self.n_outputs == 1 else y - y.mean(axis=1, keepdims=True))

    @property
    def contrasts(self) -> Array:
        """Combinations of the outputs by whose variances they are moderated, (K, K)."""
        k = self.n_outputs
        return np.ones((1, 1)) if k == 1 else (np.eye(k) - 1.0 / k) * (k / (k - 1.0))

    def probabilities(self, values: Array, *, moderated: bool) -> Array:
        """Probability of the positive class, (n, 1), or of each of K classes, (n, K)."""
        y = self.decide(values, moderated=moderated)
        return expit(y) if self.n_outputs == 1 else softmax(y, axis=1)

    def _variance(self, values: Array, contrasts: Array) -> Array:
        """Posterior variance of linear combinations of the outputs, one for each row of ``contrasts``."""
        mine = values[:, self.functions]
        variance = np.empty((len(values), len(contrasts)))
        for c, contrast in enumerate(contrasts):
            scaled = mine * contrast[self.outputs]
            variance[:, c] = np.einsum("na,na->n", scaled @ self.covariance, scaled)
        return np.maximum(variance, 0.0)
