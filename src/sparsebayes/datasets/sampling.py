"""What the generators share: random states, argument checks, and the noise."""

from collections.abc import Callable
from numbers import Integral
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]
RandomLike = int | np.random.RandomState | np.random.Generator | None
T = TypeVar("T")


def as_random_state(random_state: RandomLike) -> np.random.RandomState:
    """Return the ``RandomState`` meant by a seed, a ``RandomState``, a ``Generator`` or None."""
    if isinstance(random_state, np.random.Generator):
        # scikit-learn's check knows no Generator; its bit generator, wrapped, goes on with the same stream.
        return np.random.RandomState(random_state.bit_generator)
    from sklearn.utils import check_random_state  # here, to keep the import of the package light

    return check_random_state(random_state)


def check_sizes(**sizes: int) -> None:
    """Raise unless every named size is an integer of at least 1."""
    for name, size in sizes.items():
        if not isinstance(size, Integral) or size < 1:
            raise ValueError(f"{name} must be an integer of at least 1, got {size!r}.")


def check_noise(noise: float) -> None:
    """Raise unless `noise` is a non-negative number."""
    if not noise >= 0:
        raise ValueError(f"noise must be a number of at least 0, got {noise!r}.")


def check_range(low: float, high: float) -> None:
    """Raise unless ``low < high``."""
    if not low < high:
        raise ValueError(f"low must be smaller than high, got low={low!r} and high={high!r}.")


def choose(name: str, value: str, options: dict[str, T]) -> T:
    """Look `value` up among the options of the parameter `name`."""
    if value not in options:
        raise ValueError(f"{name} must be one of {sorted(options)}, got {value!r}.")
    return options[value]


def gaussian(rng: np.random.RandomState, noise: float, n: int) -> FloatArray:
    """Draw noise of standard deviation `noise`."""
    return noise * rng.standard_normal(n)


def uniform(rng: np.random.RandomState, noise: float, n: int) -> FloatArray:
    """Draw noise from U(-noise, +noise)."""
    return rng.uniform(-noise, noise, n)


def observe(
    X: FloatArray,
    clean: FloatArray,
    rng: np.random.RandomState,
    *,
    noise: float,
    return_clean: bool,
    draw: Callable[[np.random.RandomState, float, int], FloatArray] = gaussian,
) -> tuple[FloatArray, ...]:
    """Add noise to the clean target and return ``X, y`` or ``X, y, clean``."""
    y = clean + draw(rng, noise, len(clean))
    return (X, y, clean) if return_clean else (X, y)
