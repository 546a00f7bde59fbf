"""What a problem of the ledger is: a name, and a draw of rows for every seed."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sparsebayes.basis import Basis
from sparsebayes.typing import Array


class NotAtHandError(Exception):
    """The data of a problem are not on this machine."""


@dataclass(frozen=True)
class Case:
    """One draw of a problem.

    Attributes
    ----------
    X, y : ndarray
        Rows to learn from.
    X_test, y_test : ndarray
        Rows to be judged by.
    gamma : float or None
        Width of Gaussian kernels on the rows; None where the dictionary is ``basis``.
    basis : Basis or None
        Another dictionary; None with ``gamma=None`` means that the columns of X are the functions.
    clean : ndarray or None
        Test targets without their noise, for the error; the density is that of ``y_test`` always.
    settings : mapping
        What the estimator is given besides.
    classes : bool
        Whether ``y`` holds classes.
    """

    X: Array
    y: NDArray[Any]
    X_test: Array
    y_test: NDArray[Any]
    gamma: float | None = None
    basis: Basis | None = None
    clean: Array | None = None
    settings: Mapping[str, Any] = field(default_factory=dict)
    classes: bool = False

    def error(self, predicted: NDArray[Any]) -> float:
        """Rate of errors, or root mean square error against the targets without noise where they are known."""
        if self.classes:
            return float(np.mean(predicted != self.y_test))
        truth = self.y_test if self.clean is None else self.clean
        return float(np.sqrt(np.mean((np.ravel(predicted) - truth) ** 2)))


@dataclass(frozen=True)
class Problem:
    """A problem of the ledger.

    Attributes
    ----------
    name : str
        By which records know it.
    kinds : tuple of str
        Parts of the ledger that it belongs to.
    draw : callable
        ``draw(seed)`` gives a :class:`Case`; it raises :class:`NotAtHandError` where the data are absent.
    """

    name: str
    kinds: tuple[str, ...]
    draw: Callable[[int], Case]


def standardised(X: Array, X_test: Array) -> tuple[Array, Array]:
    """Both with the means and standard deviations of the first; constant columns are only centred."""
    mean, std = X.mean(axis=0), X.std(axis=0)
    std = np.where(std == 0.0, 1.0, std)
    return (X - mean) / std, (X_test - mean) / std
