"""The four test signals of Donoho & Johnstone on t = 1/n, 2/n, …, 1."""

from collections.abc import Callable

import numpy as np

from sparsebayes.datasets.sampling import (
    FloatArray,
    RandomLike,
    as_random_state,
    check_noise,
    check_sizes,
    observe,
)

_PLACES = np.array([0.10, 0.13, 0.15, 0.23, 0.25, 0.40, 0.44, 0.65, 0.76, 0.78, 0.81])
_BLOCKS_HEIGHTS = np.array([4, -5, 3, -4, 5, -4.2, 2.1, 4.3, -3.1, 2.1, -4.2])
_BUMPS_HEIGHTS = np.array([4, 5, 3, 4, 5, 4.2, 2.1, 4.3, 3.1, 5.1, 4.2])
_BUMPS_WIDTHS = np.array([0.005, 0.005, 0.006, 0.01, 0.01, 0.03, 0.01, 0.01, 0.005, 0.008, 0.005])


def blocks_jumps() -> FloatArray:
    """Return the 11 places in (0, 1) where the signal of :func:`make_blocks` jumps."""
    return _PLACES.copy()


def _blocks(t: FloatArray) -> FloatArray:
    return ((1 + np.sign(t[:, np.newaxis] - _PLACES)) / 2) @ _BLOCKS_HEIGHTS


def _bumps(t: FloatArray) -> FloatArray:
    return (1 + np.abs(t[:, np.newaxis] - _PLACES) / _BUMPS_WIDTHS) ** -4.0 @ _BUMPS_HEIGHTS


def _heavisine(t: FloatArray) -> FloatArray:
    return 4 * np.sin(4 * np.pi * t) - np.sign(t - 0.3) - np.sign(0.72 - t)


def _doppler(t: FloatArray) -> FloatArray:
    return np.sqrt(t * (1 - t)) * np.sin(2 * np.pi * 1.05 / (t + 0.05))


def _scaled(signal: FloatArray, sd: float | None) -> FloatArray:
    if sd is None:
        return signal
    if not sd > 0:
        raise ValueError(f"sd must be positive or None, got {sd!r}.")
    spread = signal.std()
    if spread == 0:
        raise ValueError(f"{len(signal)} samples of this signal are all equal and have no scale; use sd=None.")
    return signal * (sd / spread)


def _make_signal(
    signal: Callable[[FloatArray], FloatArray],
    n_samples: int,
    *,
    noise: float,
    sd: float | None,
    return_clean: bool,
    random_state: RandomLike,
) -> tuple[FloatArray, ...]:
    check_sizes(n_samples=n_samples)
    check_noise(noise)
    t = np.arange(1, n_samples + 1) / n_samples
    clean = _scaled(signal(t), sd)
    rng = as_random_state(random_state)
    return observe(t[:, np.newaxis], clean, rng, noise=noise, return_clean=return_clean)


def make_blocks(
    n_samples: int = 1024,
    *,
    noise: float = 0.0,
    sd: float | None = 7.0,
    return_clean: bool = False,
    random_state: RandomLike = None,
) -> tuple[FloatArray, ...]:
    """Draw Donoho & Johnstone's blocks signal, a step function.

    f(t) = Σⱼ hⱼ (1 + sgn(t − tⱼ))/2 over the 11 jumps tⱼ of :func:`blocks_jumps`, with heights hⱼ = 4, −5, 3,
    −4, 5, −4.2, 2.1, 4.3, −3.1, 2.1, −4.2.

    The usual noisy problem has ``sd=7`` and ``noise=1``.

    Parameters
    ----------
    n_samples : int, default=1024
        Number of points, t = i/n for i = 1, …, n.
    noise : float, default=0.0
        Standard deviation of the Gaussian noise, added after scaling.
    sd : float or None, default=7.0
        Standard deviation to which the clean signal is scaled; None leaves it as the formula has it.
    return_clean : bool, default=False
        Also return the noise-free (scaled) signal.
    random_state : int, RandomState, Generator or None, default=None
        Source of randomness.

    Returns
    -------
    X : ndarray of shape (n_samples, 1)
        The places t.
    y : ndarray of shape (n_samples,)
        The noisy signal.
    clean : ndarray of shape (n_samples,)
        The noise-free signal, only with ``return_clean=True``.

    References
    ----------
    Donoho & Johnstone 1994, "Ideal spatial adaptation by wavelet shrinkage", Biometrika 81:425-455.
    """
    return _make_signal(_blocks, n_samples, noise=noise, sd=sd, return_clean=return_clean, random_state=random_state)


def make_bumps(
    n_samples: int = 1024,
    *,
    noise: float = 0.0,
    sd: float | None = 7.0,
    return_clean: bool = False,
    random_state: RandomLike = None,
) -> tuple[FloatArray, ...]:
    """Draw Donoho & Johnstone's bumps signal, eleven narrow peaks.

    f(t) = Σⱼ hⱼ (1 + abs(t − tⱼ)/wⱼ)⁻⁴ at the places tⱼ of :func:`blocks_jumps`, with heights hⱼ = 4, 5, 3, 4,
    5, 4.2, 2.1, 4.3, 3.1, 5.1, 4.2 and widths wⱼ = .005, .005, .006, .01, .01, .03, .01, .01, .005,
    .008, .005.

    The usual noisy problem has ``sd=7`` and ``noise=1``.

    Parameters
    ----------
    n_samples : int, default=1024
        Number of points, t = i/n for i = 1, …, n.
    noise : float, default=0.0
        Standard deviation of the Gaussian noise, added after scaling.
    sd : float or None, default=7.0
        Standard deviation to which the clean signal is scaled; None leaves it as the formula has it.
    return_clean : bool, default=False
        Also return the noise-free (scaled) signal.
    random_state : int, RandomState, Generator or None, default=None
        Source of randomness.

    Returns
    -------
    X : ndarray of shape (n_samples, 1)
        The places t.
    y : ndarray of shape (n_samples,)
        The noisy signal.
    clean : ndarray of shape (n_samples,)
        The noise-free signal, only with ``return_clean=True``.

    References
    ----------
    Donoho & Johnstone 1994, "Ideal spatial adaptation by wavelet shrinkage", Biometrika 81:425-455.
    """
    return _make_signal(_bumps, n_samples, noise=noise, sd=sd, return_clean=return_clean, random_state=random_state)


def make_heavisine(
    n_samples: int = 1024,
    *,
    noise: float = 0.0,
    sd: float | None = 7.0,
    return_clean: bool = False,
    random_state: RandomLike = None,
) -> tuple[FloatArray, ...]:
    """Draw Donoho & Johnstone's heavisine signal, a sine with two jumps.

    f(t) = 4 sin(4πt) − sgn(t − 0.3) − sgn(0.72 − t).

    The usual noisy problem has ``sd=7`` and ``noise=1``.

    Parameters
    ----------
    n_samples : int, default=1024
        Number of points, t = i/n for i = 1, …, n.
    noise : float, default=0.0
        Standard deviation of the Gaussian noise, added after scaling.
    sd : float or None, default=7.0
        Standard deviation to which the clean signal is scaled; None leaves it as the formula has it.
    return_clean : bool, default=False
        Also return the noise-free (scaled) signal.
    random_state : int, RandomState, Generator or None, default=None
        Source of randomness.

    Returns
    -------
    X : ndarray of shape (n_samples, 1)
        The places t.
    y : ndarray of shape (n_samples,)
        The noisy signal.
    clean : ndarray of shape (n_samples,)
        The noise-free signal, only with ``return_clean=True``.

    References
    ----------
    Donoho & Johnstone 1994, "Ideal spatial adaptation by wavelet shrinkage", Biometrika 81:425-455.
    """
    return _make_signal(_heavisine, n_samples, noise=noise, sd=sd, return_clean=return_clean, random_state=random_state)


def make_doppler(
    n_samples: int = 1024,
    *,
    noise: float = 0.0,
    sd: float | None = 7.0,
    return_clean: bool = False,
    random_state: RandomLike = None,
) -> tuple[FloatArray, ...]:
    """Draw Donoho & Johnstone's doppler signal, of ever slower oscillation.

    f(t) = √(t(1 − t)) sin(2π(1 + ε)/(t + ε)), ε = 0.05.

    The usual noisy problem has ``sd=7`` and ``noise=1``.

    Parameters
    ----------
    n_samples : int, default=1024
        Number of points, t = i/n for i = 1, …, n.
    noise : float, default=0.0
        Standard deviation of the Gaussian noise, added after scaling.
    sd : float or None, default=7.0
        Standard deviation to which the clean signal is scaled; None leaves it as the formula has it.
    return_clean : bool, default=False
        Also return the noise-free (scaled) signal.
    random_state : int, RandomState, Generator or None, default=None
        Source of randomness.

    Returns
    -------
    X : ndarray of shape (n_samples, 1)
        The places t.
    y : ndarray of shape (n_samples,)
        The noisy signal.
    clean : ndarray of shape (n_samples,)
        The noise-free signal, only with ``return_clean=True``.

    References
    ----------
    Donoho & Johnstone 1994, "Ideal spatial adaptation by wavelet shrinkage", Biometrika 81:425-455.
    """
    return _make_signal(_doppler, n_samples, noise=noise, sd=sd, return_clean=return_clean, random_state=random_state)
