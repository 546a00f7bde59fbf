"""Arrays of other libraries, on other devices: where an array lives, and the kernels there.

What is large is computed in the namespace and on the device of the inputs, by the functions of the array API standard
alone; what is small comes to the host as NumPy arrays.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from numbers import Integral
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .base import Basis, Floats, Functions, Index, Joined, Sum, check_count, is_elsewhere, positions
from .kernels import (
    DIRECT_FEATURES,
    RBF,
    Cauchy,
    Kernel,
    KernelFunctions,
    Laplacian,
)
from .places import Places
from .products import PolynomialKernel, Sigmoid
from .simple import Bias, Linear
from .splines import LinearSpline, ThinPlateSpline

# Bytes of values that are made at once: large enough to fill a device, small beside its memory.
CHUNK_BYTES = 1 << 28


def _compat() -> Any:
    try:
        import array_api_compat
    except ImportError:
        raise ImportError(
            "arrays of other libraries than NumPy need the package array-api-compat: "
            "pip install 'sparsebayes[device]', or pass np.asarray(X)"
        ) from None
    return array_api_compat


@dataclass(frozen=True)
class Place:
    """Where arrays live: a namespace of the array API and a device of it."""

    xp: Any
    device: Any

    @classmethod
    def of(cls, array: Any) -> Place:
        """Where this array lives."""
        compat = _compat()
        return cls(compat.array_namespace(array), compat.device(array))

    @classmethod
    def named(cls, device: str) -> Place:
        """A device by its name, through PyTorch."""
        compat = _compat()
        try:
            import torch  # pyright: ignore[reportMissingImports]
        except ImportError:
            raise ImportError(
                f"device={device!r}: NumPy arrays reach a device through PyTorch, which is not installed; "
                "install it, or pass arrays that are already there"
            ) from None
        try:
            there = torch.zeros(1, device=device)
        except (RuntimeError, AssertionError) as error:
            raise ValueError(
                f"device={device!r} is not there ({str(error).splitlines()[0]}); device=None is the CPU"
            ) from None
        return cls(compat.array_namespace(there), there.device)

    def __str__(self) -> str:
        return f"{self.xp.__name__.rpartition('.')[2]} on {self.device}"

    def put(self, values: Any, dtype: Any = None) -> Any:
        """A host array, moved here."""
        # A copy of what cannot be written to, such as a file: other libraries have no arrays of that kind.
        values = np.require(values, requirements=("C", "W"))
        array = self.xp.asarray(values, dtype=dtype or self.xp.float64, device=self.device)
        if dtype is None and array.dtype != self.xp.float64:
            raise ValueError(
                f"{self}: float64 is not available there; in JAX call jax.config.update('jax_enable_x64', True) first"
            )
        return array

    def indices(self, idx: Index) -> Any:
        """Host indices, moved here."""
        return self.put(np.asarray(idx, dtype=np.int64), self.xp.int64)

    def get(self, array: Any) -> NDArray[Any]:
        """An array from here, as a NumPy array of the host that the caller may overwrite."""
        compat = _compat()
        if compat.is_torch_array(array):
            moved = array.detach().cpu()
            if array.device.type != "cpu":
                return moved.numpy()  # a copy already
            host = moved.numpy()
        else:
            host = array.get() if compat.is_cupy_array(array) else np.asarray(array)
        return host if host.flags.writeable and host.flags.owndata else host.copy()

    def fetch(self, arrays: list[Any]) -> list[NDArray[Any]]:
        """Arrays from here on the host, in one transfer."""
        flat = self.get(self.xp.concat([self.xp.reshape(array, (-1,)) for array in arrays]))
        ends = np.cumsum([int(np.prod(array.shape)) for array in arrays])[:-1]
        return [part.reshape(array.shape) for part, array in zip(np.split(flat, ends), arrays, strict=True)]

    def join(self, parts: list[Any], axis: int) -> Any:
        """One array of several; a single one is not copied."""
        return parts[0] if len(parts) == 1 else self.xp.concat(parts, axis=axis)

    def along(self, left: Any, right: Any) -> Any:
        """Inner products of the rows of two matrices."""
        return self.xp.sum(left * right, axis=1)

    def floats(self, array: Any) -> Any:
        """The same numbers in float64."""
        return array if array.dtype == self.xp.float64 else self.xp.astype(array, self.xp.float64)

    def chunks(self, rows: int, width: int) -> Iterator[slice]:
        """Runs of rows that hold ``CHUNK_BYTES`` between them."""
        step = max(1, CHUNK_BYTES // (8 * max(1, width)))
        for start in range(0, rows, step):
            yield slice(start, min(start + step, rows))


class _Host(Place):
    """Memory, by NumPy: nothing has to move."""

    def put(self, values: Any, dtype: Any = None) -> Any:
        """What is here already."""
        return values

    def get(self, array: Any) -> NDArray[Any]:
        """What is here already."""
        return array

    def indices(self, idx: Index) -> Any:
        """What is here already."""
        return idx

    def fetch(self, arrays: list[Any]) -> list[NDArray[Any]]:
        """What is here already."""
        return arrays

    def join(self, parts: list[Any], axis: int) -> Any:
        """One array of several; a single one is not copied."""
        return parts[0] if len(parts) == 1 else np.concatenate(parts, axis=axis)

    def along(self, left: Any, right: Any) -> Any:
        """Inner products of the rows of two matrices."""
        return np.einsum("na,na->n", left, right)


HOST = _Host(np, None)


def to_host(values: Any) -> Any:
    """An array of a device as a NumPy array; anything else as it is."""
    return Place.of(values).get(values) if is_elsewhere(values) else values


def _squared(xp: Any, X: Any, centres: Any) -> Any:
    if X.shape[1] > DIRECT_FEATURES:
        origin = xp.mean(centres, axis=0)
        x, c = X - origin, centres - origin
        both = xp.sum(x * x, axis=1)[:, None] + xp.sum(c * c, axis=1)[None, :] - 2.0 * (x @ c.T)
        return xp.clip(both, 0.0, None)
    total = (X[:, 0][:, None] - centres[:, 0][None, :]) ** 2
    for j in range(1, X.shape[1]):
        total += (X[:, j][:, None] - centres[:, j][None, :]) ** 2
    return total


def _city_block(xp: Any, X: Any, centres: Any) -> Any:
    total = xp.abs(X[:, 0][:, None] - centres[:, 0][None, :])
    for j in range(1, X.shape[1]):
        total += xp.abs(X[:, j][:, None] - centres[:, j][None, :])
    return total


def _thin_plate(xp: Any, squares: Any) -> Any:
    positive = squares > 0.0
    return 0.5 * squares * xp.log(xp.where(positive, squares, xp.ones_like(squares)))


def _linear_spline(xp: Any, X: Any, centres: Any) -> Any:
    values = None
    for j in range(X.shape[1]):
        x, c = X[:, j][:, None], centres[:, j][None, :]
        product = x * c
        low = xp.minimum(x + 0.0 * c, c + 0.0 * x)
        factor = 1.0 + product + low * (product + low * (low / 3.0 - (x + c) / 2.0))  # PHJ eq. 22
        values = factor if values is None else values * factor
    return values


def _product(gamma: Any, X: Any, centres: Any) -> Any:
    """Inner products with one slope for all inputs, or with one for each."""
    slope = np.asarray(gamma, dtype=np.float64)
    return float(slope) * (X @ centres.T) if slope.ndim == 0 else (X * Place.of(X).put(slope)) @ centres.T


# The kernels of kernels.py and products.py in the array API, of inputs that are already scaled.
_FORMULAE: dict[type[Kernel], Callable[[Any, Any, Any, Any], Any]] = {
    RBF: lambda xp, k, X, C: xp.exp(-_squared(xp, X, C)),
    Laplacian: lambda xp, k, X, C: xp.exp(-_city_block(xp, X, C)),
    Cauchy: lambda xp, k, X, C: 1.0 / (1.0 + _squared(xp, X, C)),
    ThinPlateSpline: lambda xp, k, X, C: _thin_plate(xp, _squared(xp, X, C)),
    LinearSpline: lambda xp, k, X, C: _linear_spline(xp, X, C),
    PolynomialKernel: lambda xp, k, X, C: (_product(k.gamma, X, C) + float(k.coef0)) ** int(k.degree),
    Sigmoid: lambda xp, k, X, C: xp.tanh(_product(k.gamma, X, C) + float(k.coef0)),
}


FORMS = (*(kernel.__name__ for kernel in _FORMULAE), Bias.__name__, Linear.__name__)


def has_form(basis: Basis) -> bool:
    """Whether functions of this kind can be computed on a device."""
    return isinstance(basis, Bias | Linear) or type(basis) in _FORMULAE


class ArrayFunctions(KernelFunctions):
    """One kernel at M centres that live on a device.

    Parameters
    ----------
    kernel : Kernel
        The kernel, its parameters checked.
    centres : (M, d) array of the place
        The centres.
    rows : (M,) integer array
        Their indices among the training rows, or -1.
    """

    def __init__(self, kernel: Kernel, centres: Any, rows: Index) -> None:
        super().__init__(kernel, centres, rows)
        self.place = Place.of(centres)
        self._scale = self.place.put(1.0 / kernel.scaled(np.ones((1, centres.shape[1]))))
        self.scaled = self.scale(centres)

    def scale(self, X: Any) -> Any:
        """Inputs of the place in the units in which the kernel measures distance."""
        return X / self._scale

    def values(self, scaled: Any, centres: Any) -> Any:
        """Kernel between inputs and centres of the place, both scaled."""
        return _FORMULAE[type(self._kernel)](self.place.xp, self._kernel, scaled, centres)

    @property
    def places(self) -> Places:
        """Where the functions are, in those units."""
        return ArrayPlaces(self)

    def take(self, idx: Any) -> Any:
        """Scaled centres of some functions."""
        return self.place.xp.take(self.scaled, self.place.indices(positions(idx, len(self))), axis=0)

    def restrict(self, idx: Any) -> KernelFunctions:
        """Return just the functions ``idx``, on the host."""
        idx = positions(idx, len(self))
        mine = self.place.xp.take(self._centres, self.place.indices(idx), axis=0)
        return KernelFunctions(self._kernel, self.place.get(mine), self._rows[idx])

    def distinct(self) -> NDArray[np.bool_]:
        """Functions whose centre is not that of an earlier one."""
        xp, centres = self.place.xp, self._centres
        order = xp.arange(len(self), device=self.place.device)
        for j in range(centres.shape[1]):
            # Sorts that keep the order of equals leave equal centres side by side, the earliest first.
            order = xp.take(order, xp.argsort(xp.take(centres[:, j], order, axis=0), stable=True), axis=0)
        ranked = xp.take(centres, order, axis=0)
        new = self.place.get(xp.any(ranked[1:, :] != ranked[:-1, :], axis=1))
        result = np.ones(len(self), dtype=bool)
        result[self.place.get(order)[1:][~new]] = False
        return result


class ArrayPlaces(Places):
    """Points of a device."""

    def __init__(self, functions: ArrayFunctions) -> None:
        self._functions = functions

    def __len__(self) -> int:
        return len(self._functions)

    def at(self, numbers: Any) -> Floats:
        """Points of some functions, on the host."""
        return self._functions.place.get(self._functions.take(numbers))

    def nearest(self, points: Floats) -> Index:
        """The function next to every point; the distances to all of them are made there."""
        place, scaled = self._functions.place, self._functions.scaled
        there = place.put(points)
        found = [
            place.xp.argmin(_squared(place.xp, there[part, :], scaled), axis=1)
            for part in place.chunks(len(points), len(self))
        ]
        return np.asarray(place.get(place.xp.concat(found)), dtype=np.intp)


def bind_elsewhere(basis: Basis, X: Any) -> Functions:
    """Bind a basis to training inputs that live on a device."""
    if isinstance(basis, Sum):
        return Joined([bind_elsewhere(term, X) for term in basis.bases])
    if isinstance(basis, Bias | Linear):
        return basis.bind(np.zeros((1, X.shape[1])))
    if not isinstance(basis, Kernel):
        raise TypeError(f"{type(basis).__name__} has no form in the array API; pass np.asarray(X)")
    place, (n, d) = Place.of(X), X.shape
    kernel = basis._settled(d)
    if basis.centres is None:
        return ArrayFunctions(kernel, X, np.arange(n, dtype=np.intp))
    if isinstance(basis.centres, Integral):
        rows = _farthest_rows(place, X, kernel, check_count("centres", basis.centres))
        return ArrayFunctions(kernel, place.xp.take(X, place.indices(rows), axis=0), rows)
    given = basis.centres
    if is_elsewhere(given) and Place.of(given) != place:
        raise ValueError(f"centres are {Place.of(given)} and X is {place}; expected both in one place")
    centres = place.floats(given) if is_elsewhere(given) else place.put(np.asarray(given, dtype=np.float64))
    if centres.ndim != 2 or centres.shape[1] != d or not bool(place.xp.all(place.xp.isfinite(centres))):
        raise ValueError(f"centres has shape {tuple(centres.shape)}; expected finite numbers of shape (m, {d})")
    return ArrayFunctions(kernel, centres, np.full(centres.shape[0], -1, dtype=np.intp))


def _farthest_rows(place: Place, X: Any, kernel: Kernel, count: int) -> Index:
    """The rule of ``farthest_rows``, from the row nearest the mean, on the device."""
    xp = place.xp
    scaled = X / place.put(1.0 / kernel.scaled(np.ones((1, X.shape[1]))))
    chosen = [int(xp.argmin(xp.sum((scaled - xp.mean(scaled, axis=0)) ** 2, axis=1)))]
    gap = xp.sum((scaled - scaled[chosen[0], :]) ** 2, axis=1)
    while len(chosen) < min(count, X.shape[0]):
        farthest = int(xp.argmax(gap))
        if float(gap[farthest]) == 0.0:
            break
        chosen.append(farthest)
        gap = xp.minimum(gap, xp.sum((scaled - scaled[farthest, :]) ** 2, axis=1))
    return np.sort(np.array(chosen, dtype=np.intp))


def evaluate_elsewhere(functions: Functions, X: Any) -> Any:
    """Values of a few functions of the host on inputs of a device, there."""
    place = Place.of(X)
    parts = functions.parts if isinstance(functions, Joined) else [functions]
    return place.xp.concat([_values(place, part, X) for part in parts], axis=1)


def _values(place: Place, part: Functions, X: Any) -> Any:
    if isinstance(part, ArrayFunctions):
        return part.values(part.scale(X), part.scaled)
    if isinstance(part, KernelFunctions):
        if type(part._kernel) not in _FORMULAE:
            raise TypeError(f"{type(part._kernel).__name__} has no form in the array API; pass np.asarray(X)")
        there = ArrayFunctions(part._kernel, place.put(part.centres), part.rows)
        return there.values(there.scale(X), there.scaled)
    kinds = {spec["kind"] for spec in part.specifications()}
    if kinds == {Bias.kind}:
        return place.xp.ones((X.shape[0], len(part)), dtype=place.xp.float64, device=place.device)
    if kinds == {Linear.kind}:
        wanted = [spec["feature"] for spec in part.specifications()]
        return place.xp.take(X, place.indices(np.array(wanted)), axis=1)
    raise TypeError(f"functions of kind {sorted(kinds)} have no form in the array API; pass np.asarray(X)")


def to_floats(array: Any, name: str) -> Any:
    """A two-dimensional or one-dimensional array of a device as float64, finite."""
    place = Place.of(array)
    if not place.xp.isdtype(array.dtype, ("real floating", "integral", "bool")):
        raise TypeError(f"{name} has dtype {array.dtype} ({place}); expected real numbers")
    values = place.floats(array)
    if not bool(place.xp.all(place.xp.isfinite(values))):
        raise ValueError(f"{name} contains NaN or infinity ({place})")
    return values


__all__ = [
    "FORMS",
    "HOST",
    "ArrayFunctions",
    "Floats",
    "Place",
    "bind_elsewhere",
    "evaluate_elsewhere",
    "has_form",
    "is_elsewhere",
    "to_floats",
]
