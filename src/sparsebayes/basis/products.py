"""Kernels of the inner product of an input with a centre."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from typing import Self

import numpy as np
from numpy.typing import ArrayLike

from .base import Floats, Specification, check_count, check_real, check_slope
from .kernels import Centres, Kernel
from .parameters import Learnable, Parameter, broadcast_scale, scale_parameters


class ProductKernel(Learnable, Kernel):
    r"""A kernel :math:`f(u)` of :math:`u = \sum_j\gamma_j x_j c_j + \mathrm{coef0}`.

    Parameters
    ----------
    gamma : float or (d,) array-like, default=1.0
        Slope; one for all inputs, or one for each.
    coef0 : float, default=0.0
        Offset; where it is zero, it is not learned.
    centres : None, int or (m, d) array-like, default=None
        All training rows, that many of them, or the centres themselves.
    """

    gamma: float | ArrayLike
    coef0: float

    @abstractmethod
    def _outer(self, u: Floats) -> Floats:
        """f, which may overwrite its argument."""

    @abstractmethod
    def _outer_slope(self, u: Floats) -> Floats:
        """f'."""

    def _argument(self, X: Floats, centres: Floats) -> Floats:
        slope = np.asarray(self.gamma, dtype=np.float64)
        if slope.ndim:
            return (X * slope) @ centres.T + self.coef0
        values = X @ centres.T
        values *= slope
        values += self.coef0
        return values

    def _evaluate(self, X: Floats, centres: Floats) -> Floats:
        return self._outer(self._argument(X, centres))

    def _slope(self, X: Floats, centres: Floats) -> Floats:
        return self._outer_slope(self._argument(X, centres))

    def magnitudes(self, n_features: int) -> list[Parameter]:
        """The slopes that are not zero, and the offset if it is not."""
        found = [p for p in scale_parameters("gamma", self.gamma, -2) if p.value > 0.0]
        return found + ([Parameter("coef0", abs(float(self.coef0)), None, 0)] if self.coef0 else [])

    def with_magnitudes(self, values: Sequence[float], n_features: int) -> Self:
        """The kernel with other magnitudes; signs and zeros stay."""
        slope = np.array(self.gamma, dtype=np.float64)
        moving = slope != 0.0
        slope[moving] = np.sign(slope[moving]) * np.asarray(values[: int(np.sum(moving))])
        coef0 = float(np.sign(self.coef0)) * values[-1] if self.coef0 else self.coef0
        return type(self)(**{**self._parameters(n_features), "gamma": slope.tolist(), "coef0": coef0})

    def per_input(self, n_features: int) -> Self:
        """The kernel with one slope for each input."""
        gamma = broadcast_scale(self.gamma, n_features)
        return type(self)(**{**self._parameters(n_features), "gamma": gamma})

    def _partial(self, X: Floats, centres: Floats, parameter: Parameter) -> Floats:
        if parameter.length == 0:
            return np.full((X.shape[0], centres.shape[0]), float(self.coef0))
        j, slope = parameter.feature, np.asarray(self.gamma, dtype=np.float64)
        if j is None:
            return slope * (X @ centres.T)
        return slope[j] * (X[:, j, None] * centres[:, j])


class PolynomialKernel(ProductKernel):
    """The polynomial kernel K(x, c) = (gamma x·c + coef0)^degree.

    Parameters
    ----------
    degree : int, default=3
        Positive.
    gamma : float or (d,) array-like, default=1.0
        Slope; one for all inputs, or one for each.
    coef0 : float, default=0.0
        Offset.
    centres : None, int or (m, d) array-like, default=None
        All training rows, that many of them, or the centres themselves.
    """

    kind = "polynomial_kernel"

    def __init__(
        self, degree: int = 3, gamma: float | ArrayLike = 1.0, coef0: float = 0.0, centres: Centres = None
    ) -> None:
        self.degree = degree
        self.gamma = gamma
        self.coef0 = coef0
        self.centres = centres

    def _parameters(self, n_features: int) -> Specification:
        return {
            "degree": check_count("degree", self.degree),
            "gamma": check_slope("gamma", self.gamma, n_features),
            "coef0": check_real("coef0", self.coef0),
        }

    def _outer(self, u: Floats) -> Floats:
        return np.power(u, self.degree, out=u)

    def _outer_slope(self, u: Floats) -> Floats:
        return self.degree * u ** (self.degree - 1)


class Sigmoid(ProductKernel):
    """The sigmoid kernel K(x, c) = tanh(gamma x·c + coef0): a hidden unit per centre.

    Parameters
    ----------
    gamma : float or (d,) array-like, default=1.0
        Slope; one for all inputs, or one for each.
    coef0 : float, default=0.0
        Offset.
    centres : None, int or (m, d) array-like, default=None
        All training rows, that many of them, or the centres themselves.
    """

    kind = "sigmoid"

    def __init__(self, gamma: float | ArrayLike = 1.0, coef0: float = 0.0, centres: Centres = None) -> None:
        self.gamma = gamma
        self.coef0 = coef0
        self.centres = centres

    def _parameters(self, n_features: int) -> Specification:
        return {
            "gamma": check_slope("gamma", self.gamma, n_features),
            "coef0": check_real("coef0", self.coef0),
        }

    def _outer(self, u: Floats) -> Floats:
        return np.tanh(u, out=u)

    def _outer_slope(self, u: Floats) -> Floats:
        return 1.0 - np.tanh(u) ** 2
