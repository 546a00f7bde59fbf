r"""Error bars that grow away from the data (Rasmussen & Quiñonero-Candela 2005).

A sparse model of localised functions is certain where it knows least: far from all centres every function vanishes, and
with them the uncertainty.  The remedy is to give the model, for each test point, one more function centred right there,
with prior variance :math:`1/\alpha_*`.  Its posterior is that of an addition (T&F A.2): with

.. math::

    s_* = \phi_*^\top\mathbf B\phi_* - \phi_*^\top\mathbf B\boldsymbol\Phi\boldsymbol\Sigma
          \boldsymbol\Phi^\top\mathbf B\phi_* ,
    \qquad e_* = \phi_*(x_*) - \phi(x_*)^\top\boldsymbol\Sigma\boldsymbol\Phi^\top\mathbf B\phi_* ,

the variance grows by :math:`e_*^2/(\alpha_* + s_*)`: by :math:`1/\alpha_*` far from the data, by little among them.

The prior variance is that of the targets, :math:`1/\alpha_* = \max(\mathrm{var}\,t, \sigma^2)`: where nothing is known,
a new observation varies as the observations do.  At a training row the augmented variance is below
:math:`\sigma^2 + \sigma^2` (one observation at the point itself knows it to :math:`\sigma^2`), so the bars far away are
never the shorter ones.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from sparsebayes.posterior.gaussian import GaussianPosterior
from sparsebayes.typing import Array


@dataclass(frozen=True)
class TrainingRows:
    """What augmentation needs of the training data.

    Attributes
    ----------
    X : ndarray of shape (N, d)
        Inputs.
    weights : ndarray of shape (N, T)
        Row weights of each target's Gaussian problem, relative to its noise.
    variance : ndarray of shape (T,)
        Variance of each target.
    """

    X: Array
    weights: Array
    variance: Array


def added_variance(
    posterior: GaussianPosterior, values: Array, training: Array, added: Array, weights: Array, prior_variance: float
) -> Array:
    """Variance that a function at each test point adds.

    Parameters
    ----------
    posterior : GaussianPosterior
        The model.
    values, training : ndarray of shape (n, k), (N, k)
        Kept functions on the test and on the training rows.
    added : ndarray of shape (N, n)
        The function centred on each test point, on the training rows; its value at its own centre is 1.
    weights : ndarray of shape (N,)
        Row weights, relative to the noise.
    prior_variance : float
        Prior variance of its weight.
    """
    beta = weights / posterior.noise_variance
    cross = training[:, posterior.functions].T @ (beta[:, None] * added)
    explained = posterior.covariance @ cross
    s = np.maximum(beta @ added**2 - np.einsum("an,an->n", cross, explained), 0.0)
    e = 1.0 - np.einsum("na,an->n", values[:, posterior.functions], explained)
    return e**2 / (1.0 / prior_variance + s)
