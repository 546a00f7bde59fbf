r"""The kernel's distance metric under a prior (D'Souza et al. 2004, section 4).

For :math:`k(x,c)=\exp(-\sum_d\lambda_d(x_d-c_d)^2)` the bound of ``backfitting.py`` depends on the metric through the
residuals and through the norms of the functions:

.. math::

    \frac{\partial\mathcal F}{\partial\log\lambda_d} = -\lambda_d\sum_{ij}(x_{id}-c_{jd})^2k_{ij}
        \Big[\frac{r_ib_j}{s} - \frac{k_{ij}}{\|k_j\|^2+\psi\alpha_j}\Big] - \frac{\log\lambda_d-m}{\tau^2} .

The first term is the paper's gradient with :math:`\langle z_{ij}\rangle-b_jk_{ij}=\psi_jr_i/s` put in (as printed it
lacks the minus sign of :math:`\partial k/\partial\lambda`); the second comes from the variance of the weights; the last
is the log-normal prior, without which the metric overfits.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.optimize import minimize

from sparsebayes.inference.evidence import Array
from sparsebayes.inference.noise import FLOOR


@dataclass(frozen=True)
class MetricProblem:
    r"""Functions of a fitted model whose metric is to be moved.

    Attributes
    ----------
    X, centres : ndarray of shape (N, d), (a, d)
        Inputs, and centres of the functions.
    target : ndarray of shape (N,)
        Centred targets.
    alpha : ndarray of shape (a,)
        Precisions.
    noise : float
        Noise variance.
    prior_mean, prior_std : float
        Of :math:`\log\lambda_d`.
    """

    X: Array
    centres: Array
    target: Array
    alpha: Array
    noise: float
    prior_mean: float
    prior_std: float

    def kernel(self, log_metric: Array) -> Array:
        """Values of the functions, (N, a)."""
        scale = np.exp(0.5 * log_metric)
        A, B = self.X * scale, self.centres * scale
        square = np.sum(A**2, axis=1)[:, None] + np.sum(B**2, axis=1) - 2.0 * A @ B.T
        return np.exp(-np.maximum(square, 0.0))

    def value_and_gradient(self, log_metric: Array, weights: Array) -> tuple[float, Array, Array]:
        """Bound plus log prior, and its gradients in the log metric and in the weights."""
        K = self.kernel(log_metric)
        residual = self.target - K @ weights
        psi = FLOOR * float(np.mean(self.target**2))
        norms = np.sum(K**2, axis=0)
        shift = (log_metric - self.prior_mean) / self.prior_std
        value = -0.5 * float(residual @ residual) / self.noise - 0.5 * float(self.alpha @ weights**2)
        value -= 0.5 * float(np.sum(np.log1p(norms / (psi * self.alpha)))) + 0.5 * float(shift @ shift)
        pull = K * (np.outer(residual, weights) / self.noise - K / (norms + psi * self.alpha))
        rows, columns = pull.sum(axis=1), pull.sum(axis=0)
        # Σ_ij pull_ij (x_id − c_jd)², expanded so that no (N, a, d) array is made
        squares = (
            rows @ self.X**2 + columns @ self.centres**2 - 2.0 * np.einsum("id,id->d", self.X, pull @ self.centres)
        )
        gradient = -np.exp(log_metric) * squares - shift / self.prior_std
        return value, gradient, K.T @ residual / self.noise - self.alpha * weights

    def climb(self, log_metric: Array, weights: Array, steps: int) -> tuple[Array, Array]:
        """Move metric and weights together uphill; returns the log metric and the weights."""
        d = len(log_metric)

        def descend(packed: Array) -> tuple[float, Array]:
            value, metric, other = self.value_and_gradient(packed[:d], packed[d:])
            return -value, -np.concatenate([metric, other])

        start = np.concatenate([log_metric, weights])
        found = minimize(descend, start, jac=True, method="L-BFGS-B", options={"maxiter": steps})
        return np.array(found.x[:d]), np.array(found.x[d:])
