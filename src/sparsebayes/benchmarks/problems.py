"""The problems that contestants are compared on: the papers', at any size."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sparsebayes import datasets
from sparsebayes.typing import Array


@dataclass(frozen=True)
class Problem:
    """Rows to learn from, rows to test on, and the kernel that all contestants use.

    ``gamma`` is None where the columns of X are the functions.
    """

    name: str
    X: Array
    y: NDArray
    X_test: Array
    y_test: NDArray
    gamma: float | None
    classes: bool = False

    def error(self, predicted: NDArray) -> float:
        """Rate of errors, or root mean square error against the function itself."""
        if self.classes:
            return float(np.mean(predicted != self.y_test))
        return float(np.sqrt(np.mean((np.ravel(predicted) - self.y_test) ** 2)))


def sinc2d(n: int) -> Problem:
    """The 2-D sinc with kernels of width 2.5 (Tipping & Faul 2003)."""
    X, y = datasets.make_sinc2d(n, noise=0.1, random_state=0)
    X_test, _, clean = datasets.make_sinc2d(5000, noise=0.1, return_clean=True, random_state=1)
    return Problem(f"2-D sinc, N = {n}", X, y, X_test, clean, 1 / 2.5**2)


def ripley(n: int) -> Problem:
    """Ripley's mixture with kernels of width 1."""
    X, y = datasets.make_ripley(n, random_state=0)
    X_test, y_test = datasets.make_ripley(20_000, random_state=1)
    return Problem(f"Ripley's mixture, N = {n}", X, y, X_test, y_test, 1.0, classes=True)


def spikes(n: int, m: int, k: int) -> Problem:
    """Spikes of ±1 seen through a random matrix, with noise 0.005."""
    # The generator's clean target is Xw for the rows learned from; the test rows see the same w.
    X, y, w = datasets.make_spikes(n, m, k, noise=0.005, random_state=0)
    X_test = np.random.default_rng(1).standard_normal((2000, m)) / np.sqrt(n)
    return Problem(f"{k} spikes, N = {n}, M = {m}", X, y, X_test, X_test @ w, None)
