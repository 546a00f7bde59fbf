"""A function as a sum of kernels, before it is made small (``Source``) and after (``Expansion``)."""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import dataclass
from functools import reduce
from typing import Any

import numpy as np

from sparsebayes.basis import RBF, Functions, Kernel
from sparsebayes.inference import Certificate, Status
from sparsebayes.typing import Array


@dataclass(frozen=True)
class Approximation:
    r"""How good an approximation is, and how it was found.

    Attributes
    ----------
    n_functions, n_source : int
        Functions kept, and functions of the source.
    noise : float
        :math:`\sigma` of the likelihood, the size of error that was asked for.
    density : float or None
        :math:`\rho`, source points per unit volume; None where the error was summed over given points.
    integrated_squared_error : float or None
        :math:`\int (y-f)^2`, summed over the outputs; None on given points.
    mean_squared_error : float
        :math:`\rho\int (y-f)^2/n` for a source of n points, or the mean over the given points; its root compares with
        ``noise``.
    relative_error : float
        :math:`\int(y-f)^2 / \int f^2`, the constant term of the source left out.
    max_error : float
        Largest :math:`|y-f|` at the source's points, the candidate places and the given points.
    unconstrained_error : float or None
        Of a density: ``relative_error`` that the weights had before they were made non-negative with sum one.
    status : Status
        How the search ended, in words.
    certificate : Certificate
        Proof of convergence.
    """

    n_functions: int
    n_source: int
    noise: float
    density: float | None
    integrated_squared_error: float | None
    mean_squared_error: float
    relative_error: float
    max_error: float
    unconstrained_error: float | None
    status: Status
    certificate: Certificate


@dataclass(frozen=True)
class Expansion:
    r""":math:`y(\mathbf x) = \mathrm{offset} + \sum_m w_m\varphi_m(\mathbf x)`, one column of weights per output."""

    functions: Functions | None
    weights: Array
    offset: Array

    def evaluate(self, X: Array) -> Array:
        """Outputs on rows of X, of shape (n, T)."""
        if self.functions is None:
            return np.tile(self.offset, (len(X), 1))
        return self.offset + self.functions.evaluate(X) @ self.weights

    @property
    def centres(self) -> Array:
        """Centres of the functions, of shape (M, d)."""
        centres = None if self.functions is None else self.functions.centres
        return np.zeros((0, 0)) if centres is None else centres


@dataclass(frozen=True)
class Source:
    r"""A fitted model as a sum of kernels at its points.

    .. math:: f(\mathbf x) = \mathrm{offset} + \sum_c \sum_j w_{cj}\,k_c(\mathbf x, \mathbf x_j)

    Attributes
    ----------
    points : ndarray of shape (n, d)
        Centres.
    kernels : tuple of Kernel
        The kernels, Gaussian or not.
    weights : ndarray of shape (C, n, T)
        Weights of each kernel at each point, for each output.
    offset : ndarray of shape (T,)
        Constant term, which is kept as it is.
    build : callable
        ``build(expansion)`` makes a model of the source's interface.
    mass : float or None
        Of a density: the integral of one function.
    frame : ndarray of shape (d, d), optional
        Coordinates in which the kernels are round: points are ``x @ frame.T``.
    """

    points: Array
    kernels: tuple[Kernel, ...]
    weights: Array
    offset: Array
    build: Callable[[Expansion], Any]
    mass: float | None = None
    frame: Array | None = None

    @property
    def gaussian(self) -> bool:
        """Whether all inner products are analytic."""
        return all(isinstance(kernel, RBF) for kernel in self.kernels)

    @property
    def expansion(self) -> Expansion:
        """The source itself, all functions kept."""
        return Expansion(self.functions_at(self.points), np.vstack(list(self.weights)), self.offset)

    def functions_at(self, places: Array) -> Functions:
        """Every kernel at every one of these places."""
        return reduce(lambda left, right: left.join(right), [_put(kernel, places) for kernel in self.kernels])

    def to_frame(self, X: Array) -> Array:
        """Rows of X in the coordinates of the kernels."""
        return X if self.frame is None else X @ self.frame.T


def _put(kernel: Kernel, places: Array) -> Functions:
    placed = copy.copy(kernel)
    placed.centres = places
    return placed.bind(places)
