"""Random points and random matrices: Ripley's two classes, sparse spikes."""

import numpy as np
from numpy.typing import NDArray

from sparsebayes.datasets.sampling import (
    FloatArray,
    RandomLike,
    as_random_state,
    check_noise,
    check_sizes,
    observe,
)

# Indexed by class, then by component of the class's mixture.
_RIPLEY_CENTRES = np.array([[[-0.7, 0.3], [0.3, 0.3]], [[-0.3, 0.7], [0.4, 0.7]]])
_RIPLEY_VARIANCE = 0.03


def make_ripley(n_samples: int = 250, *, random_state: RandomLike = None) -> tuple[FloatArray, NDArray[np.int64]]:
    """Draw Ripley's synthetic two-class problem.

    The classes are equally probable. Each is an equal mixture of two Gaussians of covariance 0.03 I: class 0
    about (−0.7, 0.3) and (0.3, 0.3), class 1 about (−0.3, 0.7) and (0.4, 0.7). The Bayes error is about 8 %.
    Ripley's own draw of 250 and 1000 points is ``load("ripley_synth")``.

    Parameters
    ----------
    n_samples : int, default=250
        Number of points.
    random_state : int, RandomState, Generator or None, default=None
        Source of randomness.

    Returns
    -------
    X : ndarray of shape (n_samples, 2)
        Inputs.
    y : ndarray of shape (n_samples,)
        Classes, 0 or 1.

    References
    ----------
    Ripley 1996, "Pattern Recognition and Neural Networks"; used in Tipping 2001, JMLR 1:211-244.
    """
    check_sizes(n_samples=n_samples)
    rng = as_random_state(random_state)
    y = rng.randint(2, size=n_samples, dtype=np.int64)
    component = rng.randint(2, size=n_samples)
    X = _RIPLEY_CENTRES[y, component] + np.sqrt(_RIPLEY_VARIANCE) * rng.standard_normal((n_samples, 2))
    return X, y


def make_spikes(
    n_samples: int = 256,
    n_features: int = 1024,
    n_spikes: int = 40,
    *,
    noise: float = 0.005,
    return_clean: bool = False,
    random_state: RandomLike = None,
) -> tuple[FloatArray, ...]:
    """Draw a sparse signal seen through a random matrix, y = Xw + noise.

    The entries of X are N(0, 1/n_samples), so that its columns have length about 1; w is ±1 at `n_spikes`
    random places and 0 elsewhere.

    Parameters
    ----------
    n_samples : int, default=256
        Number of observations.
    n_features : int, default=1024
        Number of columns of X.
    n_spikes : int, default=40
        Number of non-zero weights.
    noise : float, default=0.005
        Standard deviation of the Gaussian noise.
    return_clean : bool, default=False
        Also return the noise-free target Xw.
    random_state : int, RandomState, Generator or None, default=None
        Source of randomness.

    Returns
    -------
    X : ndarray of shape (n_samples, n_features)
        The random matrix.
    y : ndarray of shape (n_samples,)
        Noisy observations.
    w : ndarray of shape (n_features,)
        True weights.
    clean : ndarray of shape (n_samples,)
        Noise-free observations, only with ``return_clean=True``.

    References
    ----------
    Ji, Xue & Carin 2008, "Bayesian compressive sensing", IEEE Trans. Signal Processing 56:2346-2356.
    """
    check_sizes(n_samples=n_samples, n_features=n_features, n_spikes=n_spikes)
    check_noise(noise)
    if n_spikes > n_features:
        raise ValueError(f"n_spikes must be at most n_features={n_features}, got {n_spikes}.")
    rng = as_random_state(random_state)
    X = rng.standard_normal((n_samples, n_features)) / np.sqrt(n_samples)
    w = np.zeros(n_features)
    w[rng.choice(n_features, n_spikes, replace=False)] = rng.choice([-1.0, 1.0], n_spikes)
    X, y, *clean = observe(X, X @ w, rng, noise=noise, return_clean=return_clean)
    return X, y, w, *clean
