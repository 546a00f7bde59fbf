r"""Φ on a device: arrays of any namespace of the array API, products there, small results on the host."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sparsebayes.basis.arrays import ArrayFunctions, Place
from sparsebayes.basis.base import Floats, Index, positions

from .protocol import Design, HStack
from .ranking import RESOLVED, Promising, Ranking


class Native(Design):
    """A design on a device: every product there, for vectors that are there, and the protocol in terms of these."""

    @abstractmethod
    def native(self, idx: Any) -> Any:
        """Φ[:, idx] on the device, in float64."""

    @abstractmethod
    def correlate_there(self, V: Any) -> Any:
        """Φᵀ V for a matrix of the device."""

    @abstractmethod
    def sqnorms_there(self, weights: Any) -> Any:
        """The diagonal of Φᵀ diag(weights) Φ for a vector of the device."""

    def moments_there(self, V: Any, weights: Any) -> tuple[Any, Any]:
        """``correlate_there(V)`` and ``sqnorms_there(weights)``."""
        return self.correlate_there(V), self.sqnorms_there(weights)

    def project_there(self, V: Any, P: Any) -> tuple[Any, Any]:
        """Φᵀ V and, for every function, the sum of squares of Φᵀ P, for matrices of the device."""
        found, k = self.correlate_there(self.place.xp.concat([V, P], axis=1)), V.shape[1]
        return found[:, :k], self.place.xp.sum(found[:, k:] ** 2, axis=1)

    def columns(self, idx: Any) -> Floats:
        """Return Φ[:, idx], a new (N, k) array of the host."""
        return self.place.get(self.native(idx))

    def correlate(self, V: ArrayLike) -> Floats:
        """Return Φᵀ V: (M,) for a vector (N,), (M, T) for a matrix (N, T)."""
        V = np.asarray(V, dtype=np.float64)
        found = self.correlate_there(self.place.put(V.reshape(len(V), -1)))
        return self.place.get(found).reshape(self.shape[1], *V.shape[1:])

    def among(self, idx: Any) -> Floats:
        """Return Φ[:, idx]ᵀ Φ[:, idx], (k, k)."""
        columns = self.native(idx)
        return self.place.get(columns.T @ columns)

    def sqnorms(self, weights: ArrayLike | None = None) -> Floats:
        """Return the diagonal of Φᵀ diag(weights) Φ, (M,); the weights (N,) may have any sign."""
        rows = np.ones(self.shape[0]) if weights is None else self._row_weights(weights)
        return self.place.get(self.sqnorms_there(self.place.put(rows)))

    def project(self, V: Floats, P: Floats) -> tuple[Floats, Floats]:
        """Return Φᵀ V and, for every function, the sum of squares of Φᵀ P."""
        found, squares = self.project_there(self.place.put(V), self.place.put(P))
        return self.place.get(found), self.place.get(squares)

    def extend(self, other: Design) -> Design:
        """Return the design of these columns followed by those of ``other``."""
        return ArrayStack([self, other]) if isinstance(other, Native) else super().extend(other)


class ArrayDesign(Native):
    """Φ held as an array on a device.

    Parameters
    ----------
    Phi : (N, M) array
        Of any namespace of the array API, in float64 or float32; products are made in float64 in either case.
    """

    def __init__(self, Phi: Any) -> None:
        if Phi.ndim != 2:
            raise ValueError(f"Phi has shape {tuple(Phi.shape)}; expected two dimensions (rows, columns)")
        self._Phi = Phi
        self.place = Place.of(Phi)

    @property
    def shape(self) -> tuple[int, int]:
        """The numbers (N, M) of rows and columns."""
        return int(self._Phi.shape[0]), int(self._Phi.shape[1])

    def native(self, idx: Any) -> Any:
        """Φ[:, idx] on the device, in float64."""
        place = self.place
        return place.floats(place.xp.take(self._Phi, place.indices(positions(idx, self.shape[1])), axis=1))

    def sqnorms_there(self, weights: Any) -> Any:
        """The diagonal of Φᵀ diag(weights) Φ for a vector of the device."""
        place, (n, m) = self.place, self.shape
        total = place.xp.zeros(m, dtype=place.xp.float64, device=place.device)
        for part in place.chunks(n, m):
            block = place.floats(self._Phi[part, :])
            total = total + place.xp.sum(weights[part][:, None] * block * block, axis=0)
        return total

    def correlate_there(self, V: Any) -> Any:
        """Φᵀ V for a matrix of the device."""
        place, (n, m) = self.place, self.shape
        if self._Phi.dtype == place.xp.float64:
            return self._Phi.T @ V
        total = place.xp.zeros((m, V.shape[1]), dtype=place.xp.float64, device=place.device)
        for part in place.chunks(n, m):
            total = total + place.floats(self._Phi[part, :]).T @ V[part, :]
        return total


class ArrayKernelDesign(Native):
    """A kernel on inputs of a device, evaluated again for every product, a block of columns at a time.

    Parameters
    ----------
    functions : ArrayFunctions
        The kernel at its centres.
    X : (N, d) array
        The inputs of the rows, in the same place.
    """

    def __init__(self, functions: ArrayFunctions, X: Any) -> None:
        self.functions, self.place = functions, functions.place
        self._X = functions.scale(X)

    @property
    def shape(self) -> tuple[int, int]:
        """The numbers (N, M) of rows and columns."""
        return int(self._X.shape[0]), len(self.functions)

    def native(self, idx: Any) -> Any:
        """Φ[:, idx] on the device."""
        return self.functions.values(self._X, self.functions.take(idx))

    def sqnorms_there(self, weights: Any) -> Any:
        """The diagonal of Φᵀ diag(weights) Φ for a vector of the device."""
        return self._by_blocks(lambda block: self.place.xp.sum(weights[:, None] * block * block, axis=0))

    def correlate_there(self, V: Any) -> Any:
        """Φᵀ V for a matrix of the device."""
        return self._by_blocks(lambda block: block.T @ V)

    def _by_blocks(self, work: Callable[[Any], Any]) -> Any:
        n, m = self.shape
        parts = self.place.chunks(m, n)
        found = [work(self.functions.values(self._X, self.functions.scaled[part, :])) for part in parts]
        return joined(self.place.xp, found)


class ArrayStack(HStack, Native):
    """Several designs of one device side by side.

    Parameters
    ----------
    parts : sequence of Native
        The designs from left to right.
    """

    def __init__(self, parts: Sequence[Native]) -> None:
        super().__init__(parts)
        self._natives = [part for part in self.parts if isinstance(part, Native)]
        self.place = self._natives[0].place

    def native(self, idx: Any) -> Any:
        """Φ[:, idx] on the device."""
        routes = list(self._routes(idx))
        if not routes:
            return self._natives[0].native(slice(0, 0))
        found = joined(self.place.xp, [part.native(at) for part, _, at in routes if isinstance(part, Native)], 1)
        order = np.argsort(np.concatenate([where for _, where, _ in routes]), kind="stable")
        return self.place.xp.take(found, self.place.indices(order), axis=1)

    def correlate_there(self, V: Any) -> Any:
        """Φᵀ V for a matrix of the device."""
        return joined(self.place.xp, [part.correlate_there(V) for part in self._natives])

    def sqnorms_there(self, weights: Any) -> Any:
        """The diagonal of Φᵀ diag(weights) Φ for a vector of the device."""
        return joined(self.place.xp, [part.sqnorms_there(weights) for part in self._natives])


class ArrayRanking(Ranking):
    """``Ranking`` on a device: what decides stays there, and a hundred functions come to the host."""

    def __init__(self, design: Native, norms: Floats, eligible: NDArray[np.bool_]) -> None:
        super().__init__(design, norms, eligible)
        self._there, place = design, design.place
        self._norms, self._eligible = place.put(norms), place.put(eligible, place.xp.bool)

    def best(self, V: Floats, P: Floats, scale: float, members: Index, count: int) -> Promising:
        """The best functions that are no members and gain at all."""
        place = self._there.place
        xp = place.xp
        q, squares = self._there.project_there(place.put(V), place.put(P))
        s, q2 = scale * self._norms - squares, xp.sum(q * q, axis=1) / q.shape[1]
        rises = self._eligible & (q2 > s) & (s > RESOLVED * scale * self._norms)
        ratio = xp.where(rises, q2 / xp.where(rises, s, xp.ones_like(s)), xp.zeros_like(s))
        # So many that the members among them may be left out.
        first = xp.argsort(-ratio, stable=True)[: count + len(members)]
        taken = [xp.take(values, first, axis=0) for values in (ratio, s, q2)]
        ratios, s, q2 = place.get(xp.stack(taken))
        numbers = np.asarray(place.get(first), dtype=np.intp)
        mine = np.flatnonzero((ratios > 0.0) & ~np.isin(numbers, members))[:count]
        return Promising(numbers[mine], s[mine], q2[mine])


def joined(xp: Any, parts: list[Any], axis: int = 0) -> Any:
    """One array of several; a single one is not copied."""
    return parts[0] if len(parts) == 1 else xp.concat(parts, axis=axis)
