"""Smooth regression functions: sinc in one and two dimensions, Friedman's three."""

import numpy as np

from sparsebayes.datasets.sampling import (
    FloatArray,
    RandomLike,
    as_random_state,
    check_noise,
    check_range,
    check_sizes,
    choose,
    gaussian,
    observe,
    uniform,
)

NOISE = {"gaussian": gaussian, "uniform": uniform}


def _evenly(rng: np.random.RandomState, low: float, high: float, n: int) -> FloatArray:
    return np.linspace(low, high, n)


def _randomly(rng: np.random.RandomState, low: float, high: float, n: int) -> FloatArray:
    return rng.uniform(low, high, n)


SPACING = {"even": _evenly, "random": _randomly}


def _sinc(radius: FloatArray) -> FloatArray:
    # NumPy's sinc(z) is sin(pi z)/(pi z), continued to 1 at z = 0.
    return np.sinc(radius / np.pi)


def make_sinc(
    n_samples: int = 100,
    *,
    noise: float = 0.1,
    distribution: str = "gaussian",
    spacing: str = "even",
    low: float = -10.0,
    high: float = 10.0,
    return_clean: bool = False,
    random_state: RandomLike = None,
) -> tuple[FloatArray, ...]:
    """Draw the one-dimensional sinc problem, ``y = sin|x|/|x| + noise``.

    Parameters
    ----------
    n_samples : int, default=100
        Number of points.
    noise : float, default=0.1
        Standard deviation of Gaussian noise, half-width of uniform noise.
    distribution : {"gaussian", "uniform"}, default="gaussian"
        Noise from N(0, noise²) or from U(-noise, +noise).
    spacing : {"even", "random"}, default="even"
        Inputs evenly spaced from `low` to `high`, both included, or drawn uniformly between them.
    low, high : float, default=-10, 10
        Range of the inputs.
    return_clean : bool, default=False
        Also return the noise-free target.
    random_state : int, RandomState, Generator or None, default=None
        Source of randomness.

    Returns
    -------
    X : ndarray of shape (n_samples, 1)
        Inputs.
    y : ndarray of shape (n_samples,)
        Noisy targets.
    clean : ndarray of shape (n_samples,)
        Noise-free targets, only with ``return_clean=True``.

    References
    ----------
    Tipping 2001, "Sparse Bayesian learning and the relevance vector machine", JMLR 1:211-244.
    """
    check_sizes(n_samples=n_samples)
    check_noise(noise)
    check_range(low, high)
    draw, place = choose("distribution", distribution, NOISE), choose("spacing", spacing, SPACING)
    rng = as_random_state(random_state)
    x = place(rng, low, high, n_samples)
    return observe(x[:, np.newaxis], _sinc(x), rng, noise=noise, return_clean=return_clean, draw=draw)


def make_sinc2d(
    n_samples: int = 1000,
    *,
    noise: float = 0.1,
    low: float = -10.0,
    high: float = 10.0,
    return_clean: bool = False,
    random_state: RandomLike = None,
) -> tuple[FloatArray, ...]:
    """Draw the two-dimensional sinc problem, y = sin‖x‖/‖x‖ + noise, x uniform on a square.

    Parameters
    ----------
    n_samples : int, default=1000
        Number of points.
    noise : float, default=0.1
        Standard deviation of the Gaussian noise.
    low, high : float, default=-10, 10
        The square is [low, high]².
    return_clean : bool, default=False
        Also return the noise-free target.
    random_state : int, RandomState, Generator or None, default=None
        Source of randomness.

    Returns
    -------
    X : ndarray of shape (n_samples, 2)
        Inputs.
    y : ndarray of shape (n_samples,)
        Noisy targets.
    clean : ndarray of shape (n_samples,)
        Noise-free targets, only with ``return_clean=True``.

    References
    ----------
    Tipping & Faul 2003, "Fast marginal likelihood maximisation for sparse Bayesian models", AISTATS.
    """
    check_sizes(n_samples=n_samples)
    check_noise(noise)
    check_range(low, high)
    rng = as_random_state(random_state)
    X = rng.uniform(low, high, (n_samples, 2))
    return observe(X, _sinc(np.linalg.norm(X, axis=1)), rng, noise=noise, return_clean=return_clean)


def make_friedman1(
    n_samples: int = 240,
    *,
    n_features: int = 10,
    noise: float = 1.0,
    return_clean: bool = False,
    random_state: RandomLike = None,
) -> tuple[FloatArray, ...]:
    """Draw Friedman's first problem, in which only the first five inputs matter.

    y = 10 sin(π x₁x₂) + 20 (x₃ − ½)² + 10 x₄ + 5 x₅ + noise, x uniform on the unit cube. The same seed gives
    the same draw as scikit-learn's function of the same name.

    Parameters
    ----------
    n_samples : int, default=240
        Number of points; the default is the training size of Tipping (2001).
    n_features : int, default=10
        Number of inputs, at least 5.
    noise : float, default=1.0
        Standard deviation of the Gaussian noise.
    return_clean : bool, default=False
        Also return the noise-free target.
    random_state : int, RandomState, Generator or None, default=None
        Source of randomness.

    Returns
    -------
    X : ndarray of shape (n_samples, n_features)
        Inputs.
    y : ndarray of shape (n_samples,)
        Noisy targets.
    clean : ndarray of shape (n_samples,)
        Noise-free targets, only with ``return_clean=True``.

    References
    ----------
    Friedman 1991, "Multivariate adaptive regression splines", Annals of Statistics 19:1-67.
    """
    check_sizes(n_samples=n_samples, n_features=n_features)
    check_noise(noise)
    if n_features < 5:
        raise ValueError(f"n_features must be at least 5, got {n_features}: the function uses five inputs.")
    rng = as_random_state(random_state)
    X = rng.uniform(size=(n_samples, n_features))
    x1, x2, x3, x4, x5 = X.T[:5]
    clean = 10 * np.sin(np.pi * x1 * x2) + 20 * (x3 - 0.5) ** 2 + 10 * x4 + 5 * x5
    return observe(X, clean, rng, noise=noise, return_clean=return_clean)


def _circuit(n_samples: int, rng: np.random.RandomState) -> tuple[FloatArray, FloatArray]:
    """Draw the inputs of Friedman's circuit (R, ω, L, C) and its reactance ωL − 1/(ωC)."""
    X = rng.uniform(size=(n_samples, 4))
    X[:, 0] *= 100
    X[:, 1] = 520 * np.pi * X[:, 1] + 40 * np.pi
    X[:, 3] = 10 * X[:, 3] + 1
    return X, X[:, 1] * X[:, 2] - 1 / (X[:, 1] * X[:, 3])


def make_friedman2(
    n_samples: int = 240, *, noise: float = 125.0, return_clean: bool = False, random_state: RandomLike = None
) -> tuple[FloatArray, ...]:
    """Draw Friedman's second problem, the impedance of an alternating-current circuit.

    y = √(x₁² + (x₂x₃ − 1/(x₂x₄))²) + noise, with x₁ in [0, 100], x₂ in [40π, 560π], x₃ in [0, 1] and x₄ in
    [1, 11], all uniform. The same seed gives the same draw as scikit-learn's function of the same name.

    Parameters
    ----------
    n_samples : int, default=240
        Number of points; the default is the training size of Tipping (2001).
    noise : float, default=125
        Standard deviation of the Gaussian noise; the default is Friedman's signal-to-noise ratio of 3.
    return_clean : bool, default=False
        Also return the noise-free target.
    random_state : int, RandomState, Generator or None, default=None
        Source of randomness.

    Returns
    -------
    X : ndarray of shape (n_samples, 4)
        Inputs.
    y : ndarray of shape (n_samples,)
        Noisy targets.
    clean : ndarray of shape (n_samples,)
        Noise-free targets, only with ``return_clean=True``.

    References
    ----------
    Friedman 1991, "Multivariate adaptive regression splines", Annals of Statistics 19:1-67.
    """
    check_sizes(n_samples=n_samples)
    check_noise(noise)
    rng = as_random_state(random_state)
    X, reactance = _circuit(n_samples, rng)
    clean = np.sqrt(X[:, 0] ** 2 + reactance**2)
    return observe(X, clean, rng, noise=noise, return_clean=return_clean)


def make_friedman3(
    n_samples: int = 240, *, noise: float = 0.1, return_clean: bool = False, random_state: RandomLike = None
) -> tuple[FloatArray, ...]:
    """Draw Friedman's third problem, the phase angle of an alternating-current circuit.

    y = arctan((x₂x₃ − 1/(x₂x₄))/x₁) + noise, with the inputs of :func:`make_friedman2`. The same seed gives
    the same draw as scikit-learn's function of the same name.

    Parameters
    ----------
    n_samples : int, default=240
        Number of points; the default is the training size of Tipping (2001).
    noise : float, default=0.1
        Standard deviation of the Gaussian noise; the default is Friedman's signal-to-noise ratio of 3.
    return_clean : bool, default=False
        Also return the noise-free target.
    random_state : int, RandomState, Generator or None, default=None
        Source of randomness.

    Returns
    -------
    X : ndarray of shape (n_samples, 4)
        Inputs.
    y : ndarray of shape (n_samples,)
        Noisy targets.
    clean : ndarray of shape (n_samples,)
        Noise-free targets, only with ``return_clean=True``.

    References
    ----------
    Friedman 1991, "Multivariate adaptive regression splines", Annals of Statistics 19:1-67.
    """
    check_sizes(n_samples=n_samples)
    check_noise(noise)
    rng = as_random_state(random_state)
    X, reactance = _circuit(n_samples, rng)
    clean = np.arctan(reactance / X[:, 0])
    return observe(X, clean, rng, noise=noise, return_clean=return_clean)
