"""Functions φ_m(x) = K(x, c_m), one for each centre.

The equations are those of the report on Tipping (2001), PHJ below. A new kernel is a subclass of
:class:`Kernel` with a ``kind``, its parameters and ``_evaluate``.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from copy import copy
from functools import cached_property
from numbers import Integral
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.spatial.distance import cdist
from sklearn.utils import check_random_state

from .base import (
    Basis,
    Floats,
    Functions,
    Index,
    Specification,
    as_inputs,
    check_count,
    check_training,
    check_width,
    positions,
)
from .parameters import Learnable, Parameter, broadcast_scale, scale_parameters
from .places import HostPlaces, Places

# Up to here a loop over the inputs is as fast as a matrix product and exact.
DIRECT_FEATURES = 16
# A squared distance below this part of ‖x‖² + ‖c‖² has lost more than three of its sixteen digits.
_CANCELLED = 1e-3
# Differences held at once while those entries are computed again.
_PAIR_ENTRIES = 1 << 20


def squared_distances(X: Floats, centres: Floats) -> Floats:
    """Return ‖x_i − c_m‖², (n, m), exactly zero where x_i equals c_m.

    With many inputs it is ‖x‖² + ‖c‖² − 2 x·c, about the mean of the centres and clipped at zero; entries in
    which that expansion cancels are computed again from the differences.
    """
    if X.shape[1] <= DIRECT_FEATURES:
        return np.asarray(cdist(X, centres, "sqeuclidean"), dtype=np.float64)
    origin = centres.mean(axis=0)
    x, c = X - origin, centres - origin
    squares = np.einsum("id,id->i", x, x)[:, None]
    centre_squares = np.einsum("id,id->i", c, c)[None, :]
    distances = x @ c.T
    distances *= -2.0
    distances += squares
    distances += centre_squares
    np.maximum(distances, 0.0, out=distances)
    rows, columns = np.nonzero(distances < _CANCELLED * (squares + centre_squares.max()))
    step = max(1, _PAIR_ENTRIES // X.shape[1])
    for start in range(0, rows.size, step):
        i, m = rows[start : start + step], columns[start : start + step]
        difference = X[i] - centres[m]
        distances[i, m] = np.einsum("pd,pd->p", difference, difference)
    return distances


def city_block_distances(X: Floats, centres: Floats) -> Floats:
    """Return Σ_j |x_ij − c_mj|, (n, m)."""
    return np.asarray(cdist(X, centres, "cityblock"), dtype=np.float64)


def distinct_rows(X: Floats) -> NDArray[np.bool_]:
    """Which rows are no copy of an earlier one."""
    if len(np.unique(X[:, :1])) == len(X):  # one input that differs everywhere says it at once
        return np.ones(len(X), dtype=bool)
    distinct = np.zeros(len(X), dtype=bool)
    distinct[np.unique(X, axis=0, return_index=True)[1]] = True
    return distinct


def scattered_rows(X: Floats, count: int) -> Index:
    """Choose distinct rows as if at random, yet the same ones whatever the order of the rows.

    Rows are taken in the order of a hash of their entries (the finaliser of SplitMix64, column by column).

    Parameters
    ----------
    X : (n, d) ndarray
        The rows.
    count : int
        How many to choose at most; fewer come back where fewer are distinct.
    """
    mixed = np.zeros(len(X), dtype=np.uint64)
    for column in (np.asarray(X, dtype=np.float64) + 0.0).T:  # zero has two signs, and is one number
        mixed ^= np.ascontiguousarray(column).view(np.uint64)
        for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
            mixed ^= mixed >> np.uint64(shift)
            mixed *= np.uint64(factor)
        mixed ^= mixed >> np.uint64(31)
    _, first = np.unique(mixed, return_index=True)
    return np.sort(first[:count])


def farthest_rows(X: Floats, count: int, random_state: Any = None) -> Index:
    """Choose rows that cover ``X``: each the farthest from those before it.

    The cover is at most twice as wide as the best one of the same size (Gonzalez 1985). Ties go to the lowest
    index, equal rows are never chosen twice, and so fewer than ``count`` rows may come back.

    Parameters
    ----------
    X : (n, d) ndarray
        The rows, in the units in which distances matter.
    count : int
        How many to choose at most.
    random_state : int, RandomState or None
        Draws the first row; with None it is the one nearest the mean.
    """
    if random_state is None:
        first = int(np.argmin(np.square(X - X.mean(axis=0)).sum(axis=1)))
    else:
        first = int(check_random_state(random_state).randint(X.shape[0]))
    chosen = [first]
    gap = np.square(X - X[first]).sum(axis=1)
    while len(chosen) < min(count, X.shape[0]):
        farthest = int(np.argmax(gap))
        if gap[farthest] == 0.0:
            break
        chosen.append(farthest)
        np.minimum(gap, np.square(X - X[farthest]).sum(axis=1), out=gap)
    return np.sort(np.array(chosen, dtype=np.intp))


Width = float | ArrayLike
Centres = None | int | ArrayLike


class KernelFunctions(Functions):
    """One kernel at M centres.

    Parameters
    ----------
    kernel : Kernel
        The kernel, its parameters checked.
    centres : (M, d) ndarray
        The centres.
    rows : (M,) integer array
        Their indices among the training rows, or -1.
    """

    def __init__(self, kernel: Kernel, centres: Floats, rows: Index) -> None:
        super().__init__(centres.shape[1])
        self._kernel = kernel
        self._centres = centres
        self._rows = rows

    def __len__(self) -> int:
        return self._centres.shape[0]

    @property
    def scaled_centres(self) -> Floats:
        """The centres in the units in which the kernel measures distance."""
        return self._kernel.scaled(self._centres)

    @property
    def places(self) -> Places:
        """Where the functions are, in those units."""
        return HostPlaces(self.scaled_centres, self.distinct())

    @property
    def compressible(self) -> bool:
        """Whether the kernel is positive definite with unit diagonal."""
        return self._kernel.unit_diagonal

    @property
    def rows(self) -> Index:
        """Index of the training row that is each function's centre; -1 where there is none."""
        return self._rows

    @property
    def centres(self) -> Floats:
        """The (M, d) centres."""
        return self._centres

    def distinct(self) -> NDArray[np.bool_]:
        """Which functions are no copy of an earlier one: those whose centre is not."""
        return self._distinct

    @cached_property
    def _distinct(self) -> NDArray[np.bool_]:
        return distinct_rows(self._centres)

    def _evaluate(self, X: Floats, idx: Index | slice) -> Floats:
        centres = self._centres[idx]
        if centres.shape[0] == 0:
            return np.empty((X.shape[0], 0))
        if self._distinct.all() and (isinstance(idx, slice) or len(np.unique(idx)) == len(idx)):
            return self._kernel._evaluate(X, centres)
        # A matrix product may round equal columns differently; a repeated centre is evaluated once, so that
        # its columns are equal to the last bit and can be recognised as duplicates.
        distinct, which = np.unique(centres, axis=0, return_inverse=True)
        if len(distinct) < len(centres):
            return self._kernel._evaluate(X, distinct)[:, which.reshape(-1)]
        return self._kernel._evaluate(X, centres)

    def restrict(self, idx: Any) -> KernelFunctions:
        """Return just the functions ``idx``, in that order."""
        idx = positions(idx, len(self))
        return KernelFunctions(self._kernel, self._centres[idx], self._rows[idx])

    def specifications(self) -> list[Specification]:
        """Return the identity of every function as plain, JSON-able data."""
        kernel = self._kernel
        # A dict of its own for each function, so that changing one changes no other.
        return [
            {"kind": kernel.kind, **kernel._parameters(self.n_features), "centre": centre}
            for centre in self._centres.tolist()
        ]

    @property
    def kind(self) -> str:
        """Kind of the kernel."""
        return self._kernel.kind

    @property
    def parameters(self) -> tuple[Parameter, ...]:
        """The magnitudes of the kernel that can be learned."""
        return tuple(self._kernel.magnitudes(self.n_features)) if isinstance(self._kernel, Learnable) else ()

    @property
    def settings(self) -> dict[str, Any]:
        """What ``set_params`` of the kernel would need to be given."""
        return self._kernel._parameters(self.n_features) if isinstance(self._kernel, Learnable) else {}

    def with_parameters(self, values: Floats) -> KernelFunctions:
        """Return the same functions, at the same centres, with other magnitudes."""
        if not isinstance(self._kernel, Learnable):
            return self
        self.distinct()  # at the same centres, which are compared once
        other = copy(self)
        other._kernel = self._kernel.with_magnitudes(np.asarray(values, dtype=np.float64).tolist(), self.n_features)
        return other

    def per_input(self) -> KernelFunctions:
        """Return the same functions with one scale for each input."""
        if not isinstance(self._kernel, Learnable):
            return self
        return KernelFunctions(self._kernel.per_input(self.n_features), self._centres, self._rows)

    def dcolumns(self, X: ArrayLike, idx: Any, parameter: int) -> Floats:
        """Return ∂φ_m(x_i)/∂log θ for the functions ``idx`` and parameter number ``parameter``, (n, k)."""
        if not isinstance(self._kernel, Learnable):
            return super().dcolumns(X, idx, parameter)
        centres = self._centres[positions(idx, len(self))]
        return self._kernel.derivative(as_inputs(X), centres, self.parameters[parameter])

    def pullback(self, X: Floats, idx: Any, gradient: Floats) -> Floats:
        """Return Σ_im gradient_im ∂φ_m(x_i)/∂log θ_p over the functions ``idx``, for every parameter p."""
        if not isinstance(self._kernel, Learnable):
            return np.zeros(0)
        return self._kernel.pullback(X, self._centres[positions(idx, len(self))], gradient)

    def at_centres(self, like: int, centres: Floats) -> KernelFunctions:
        """Return functions of the same kernel at new centres, (k, d)."""
        return KernelFunctions(self._kernel, centres, np.full(len(centres), -1, dtype=np.intp))


class Kernel(Basis):
    """A basis of one function K(x, c) per centre c.

    Parameters
    ----------
    centres : None, int or (m, d) array-like, default=None
        None puts a function at every training row; a number chooses that many distinct rows that cover the
        training inputs (each the farthest from those before it, in units of the kernel's width); an array
        gives the centres themselves.
    """

    identity = ("centre",)
    # Whether a function is 1 at its centre and vanishes far from it.
    localised: ClassVar[bool] = False
    # Whether K is positive definite with K(x, x) = 1, so that a partial Cholesky factorisation compresses it.
    unit_diagonal = False

    def __init__(self, *, centres: Centres = None) -> None:
        self.centres = centres

    @abstractmethod
    def _evaluate(self, X: Floats, centres: Floats) -> Floats:
        """Return K(x_i, c_m) as a new (n, m) array; all parameters have been checked."""

    def _parameters(self, n_features: int) -> Specification:
        """Check the parameters, all but ``centres``, and return them as plain data."""
        return {}

    def scaled(self, X: Floats) -> Floats:
        """Return ``X`` in the units in which the kernel measures distance."""
        return X

    def _settled(self, n_features: int) -> Self:
        """Return a copy with checked parameters that no later ``set_params`` can change."""
        return type(self)(**self._parameters(n_features))

    def at(self, centres: ArrayLike) -> KernelFunctions:
        """Put the kernel at these centres instead of its own."""
        places = as_inputs(centres, name="centres")
        return KernelFunctions(self._settled(places.shape[1]), places, np.full(len(places), -1, dtype=np.intp))

    def bind(self, X: ArrayLike, *, random_state: Any = None) -> Functions:
        """Put the kernel at its centres."""
        X = check_training(X)
        n, d = X.shape
        kernel = self._settled(d)
        if self.centres is None:
            return KernelFunctions(kernel, X, np.arange(n, dtype=np.intp))
        if isinstance(self.centres, Integral):
            rows = farthest_rows(kernel.scaled(X), check_count("centres", self.centres), random_state)
            return KernelFunctions(kernel, X[rows], rows)
        centres = _given_centres(self.centres, d)
        return KernelFunctions(kernel, centres, np.full(len(centres), -1, dtype=np.intp))

    @classmethod
    def _rebuild(cls, parameters: Specification, members: list[Specification], n_features: int) -> Functions:
        try:
            kernel = cls(**parameters)
        except TypeError as error:
            raise ValueError(f"specification of kind {cls.kind!r} with {sorted(parameters)}: {error}") from error
        missing = set(kernel.get_params(deep=False)) - {"centres"} - set(parameters)
        if missing:
            raise ValueError(f"specification of kind {cls.kind!r} lacks {sorted(missing)}")
        centres = _given_centres([member["centre"] for member in members], n_features)
        return KernelFunctions(kernel._settled(n_features), centres, np.full(len(centres), -1, dtype=np.intp))


def _given_centres(centres: Any, n_features: int) -> Floats:
    array = np.array(as_inputs(centres, name="centres"))  # a copy: the caller may change theirs
    if array.shape[0] == 0 or array.shape[1] != n_features or not np.isfinite(array).all():
        raise ValueError(
            f"centres has shape {array.shape}; expected finite numbers of shape (m, {n_features}) with "
            "m >= 1, None for all training rows, or the number of rows to choose"
        )
    return array


class WidthKernel(Kernel):
    """A kernel of the scaled difference (x − c)/width.

    Parameters
    ----------
    width : float or (d,) array-like, default=1.0
        Positive; one for all inputs, or one for each.
    centres : None, int or (m, d) array-like, default=None
        All training rows, that many of them, or the centres themselves.
    """

    def __init__(self, width: Width = 1.0, centres: Centres = None) -> None:
        self.width = width
        self.centres = centres

    def _parameters(self, n_features: int) -> Specification:
        return {"width": check_width(self.width, n_features)}

    def scaled(self, X: Floats) -> Floats:
        """Return ``X`` in units of the width."""
        return X / np.asarray(self.width, dtype=np.float64)


class SmoothWidthKernel(Learnable, WidthKernel):
    r"""A width kernel with derivatives: :math:`\partial K/\partial\log w_j = K'\,(x_j-c_j)^2/w_j^2`.

    Parameters
    ----------
    width : float or (d,) array-like, default=1.0
        Positive; one for all inputs, or one for each.
    centres : None, int or (m, d) array-like, default=None
        All training rows, that many of them, or the centres themselves.
    """

    def magnitudes(self, n_features: int) -> list[Parameter]:
        """The width, or the widths."""
        return scale_parameters("width", self.width, 1)

    def with_magnitudes(self, values: Sequence[float], n_features: int) -> Self:
        """The kernel with another width, or with other widths."""
        return type(self)(values[0] if np.ndim(np.asarray(self.width)) == 0 else list(values))

    def per_input(self, n_features: int) -> Self:
        """The kernel with one width for each input."""
        return type(self)(broadcast_scale(self.width, n_features))

    def _partial(self, X: Floats, centres: Floats, parameter: Parameter) -> Floats:
        j = parameter.feature
        if j is None:
            return squared_distances(self.scaled(X), self.scaled(centres))
        difference = (X[:, j, None] - centres[:, j]) / parameter.value
        return np.square(difference, out=difference)


class SquaredWidthKernel(SmoothWidthKernel):
    """A kernel of the squared scaled distance: its derivatives are sums that a few matrix products make.

    Parameters
    ----------
    width : float or (d,) array-like, default=1.0
        Positive; one for all inputs, or one for each.
    centres : None, int or (m, d) array-like, default=None
        All training rows, that many of them, or the centres themselves.
    """

    def pullback(self, X: Floats, centres: Floats, gradient: Floats) -> Floats:
        r"""With :math:`H=G\circ K'`, :math:`\sum_{im}H_{im}(x_i-c_m)^2=\sum_i h_{i\cdot}x_i^2+\sum_m h_{\cdot m}c_m^2
        -2\,x^\top Hc`, for each input, about the middle of the centres."""
        weighted = gradient * self._slope(X, centres)
        middle = np.mean(centres, axis=0) if len(centres) else 0.0
        x, c = self.scaled(X - middle), self.scaled(centres - middle)
        each = weighted.sum(axis=1) @ x**2 + weighted.sum(axis=0) @ c**2 - 2.0 * np.einsum("id,id->d", x, weighted @ c)
        return each if np.ndim(self.width) else np.array([float(np.sum(each))])


class RBF(SquaredWidthKernel):
    """The Gaussian, K(x, c) = exp(−‖(x − c)/width‖²).

    A paper's width r is ``width=r``; scikit-learn's ``gamma`` is 1/width². One width per input gives the
    kernel with an η_j = 1/width_j² for every input.

    Parameters
    ----------
    width : float or (d,) array-like, default=1.0
        Positive; one for all inputs, or one for each.
    centres : None, int or (m, d) array-like, default=None
        All training rows, that many of them, or the centres themselves.
    """

    kind = "rbf"
    localised = True
    unit_diagonal = True

    def _evaluate(self, X: Floats, centres: Floats) -> Floats:
        values = squared_distances(self.scaled(X), self.scaled(centres))
        np.negative(values, out=values)
        return np.exp(values, out=values)  # PHJ eqs 23 and 24

    def _slope(self, X: Floats, centres: Floats) -> Floats:
        return 2.0 * self._evaluate(X, centres)


class Laplacian(SmoothWidthKernel):
    """The Laplacian kernel ``K(x, c) = exp(−Σ_j |x_j − c_j|/width_j)``.

    scikit-learn's ``gamma`` is 1/width.

    Parameters
    ----------
    width : float or (d,) array-like, default=1.0
        Positive; one for all inputs, or one for each.
    centres : None, int or (m, d) array-like, default=None
        All training rows, that many of them, or the centres themselves.
    """

    kind = "laplacian"
    localised = True
    unit_diagonal = True

    def _evaluate(self, X: Floats, centres: Floats) -> Floats:
        values = city_block_distances(self.scaled(X), self.scaled(centres))
        np.negative(values, out=values)
        return np.exp(values, out=values)

    def _slope(self, X: Floats, centres: Floats) -> Floats:
        return self._evaluate(X, centres)

    def _partial(self, X: Floats, centres: Floats, parameter: Parameter) -> Floats:
        j = parameter.feature
        if j is None:
            return city_block_distances(self.scaled(X), self.scaled(centres))
        return np.abs(X[:, j, None] - centres[:, j]) / parameter.value


class Cauchy(SquaredWidthKernel):
    """The Cauchy kernel K(x, c) = 1/(1 + ‖(x − c)/width‖²), with heavier tails than the Gaussian.

    Parameters
    ----------
    width : float or (d,) array-like, default=1.0
        Positive; one for all inputs, or one for each.
    centres : None, int or (m, d) array-like, default=None
        All training rows, that many of them, or the centres themselves.
    """

    kind = "cauchy"
    localised = True
    unit_diagonal = True

    def _evaluate(self, X: Floats, centres: Floats) -> Floats:
        values = squared_distances(self.scaled(X), self.scaled(centres))
        values += 1.0
        return np.reciprocal(values, out=values)

    def _slope(self, X: Floats, centres: Floats) -> Floats:
        return 2.0 * self._evaluate(X, centres) ** 2
