"""A fixed list of basis functions, and several lists joined to one."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse

from sparsebayes.typing import Index

from .parameters import Parameter

Floats = NDArray[np.float64]
Specification = dict[str, Any]


def positions(idx: Any, count: int) -> Index:
    """Turn any one-dimensional index (list, slice, mask, negative) into positions in ``range(count)``."""
    if not isinstance(idx, slice):
        idx = np.asarray(idx)
        if idx.size == 0 and idx.dtype != np.bool_:  # an empty list has NumPy's default dtype, float
            return np.empty(0, dtype=np.intp)
        if idx.dtype.kind == "i" and idx.ndim == 1 and idx.min() >= 0 and idx.max() < count:
            return idx.astype(np.intp, copy=False)  # the usual case, without a list of all functions
    return np.atleast_1d(np.arange(count, dtype=np.intp)[idx])


def as_inputs(X: ArrayLike, *, name: str = "X") -> Floats:
    """Return ``X`` as a two-dimensional float64 array, without a copy where it is one."""
    if sparse.issparse(X):
        raise TypeError(f"{name} is sparse; basis functions need dense inputs: pass X.toarray()")
    array = np.asarray(X)
    if np.iscomplexobj(array):
        raise TypeError(f"{name} is complex; basis functions need real inputs")
    array = array.astype(np.float64, copy=False)
    if array.ndim != 2:
        raise ValueError(
            f"{name} has shape {array.shape}; expected (samples, features): "
            "a single feature is X.reshape(-1, 1), a single sample X.reshape(1, -1)"
        )
    return array


class Functions(ABC):
    """A fixed list of M basis functions of d inputs.

    Parameters
    ----------
    n_features : int
        The number d of inputs that every function takes.
    """

    def __init__(self, n_features: int) -> None:
        self.n_features = int(n_features)

    @abstractmethod
    def __len__(self) -> int: ...

    @abstractmethod
    def _evaluate(self, X: Floats, idx: Index | slice) -> Floats:
        """Evaluate the functions ``idx`` on checked inputs, as a new (n, k) array."""

    @abstractmethod
    def restrict(self, idx: Any) -> Functions:
        """Return just the functions ``idx``, in that order."""

    @abstractmethod
    def specifications(self) -> list[Specification]:
        """Return the identity of every function as plain, JSON-able data."""

    @property
    def rows(self) -> Index:
        """Index of the training row that is each function's centre; -1 where there is none."""
        return np.full(len(self), -1, dtype=np.intp)

    @property
    def centres(self) -> Floats | None:
        """The (M, d) centres, NaN where a function has none; None if no function has one."""
        return None

    def evaluate(self, X: ArrayLike, idx: Any = None) -> Floats:
        """Evaluate φ_m(x_i).

        Parameters
        ----------
        X : (n, d) array-like
            Where to evaluate.
        idx : one-dimensional index, optional
            Which functions; all of them by default.

        Returns
        -------
        (n, k) ndarray of float64
        """
        X = as_inputs(X)
        if X.shape[1] != self.n_features:
            raise ValueError(f"X has {X.shape[1]} features; these basis functions take {self.n_features}")
        return self._evaluate(X, slice(None) if idx is None else positions(idx, len(self)))

    def join(self, other: Functions) -> Functions:
        """Return these functions followed by those of ``other``."""
        return Joined([self, other])

    # -- what can be learned about them: nothing, unless a subclass says otherwise -------------------------

    @property
    def kind(self) -> str:
        """Kind of the basis they come from, by which the term of a sum is called."""
        return ""

    @property
    def parameters(self) -> tuple[Parameter, ...]:
        """The magnitudes that they share and that can be learned."""
        return ()

    @property
    def settings(self) -> dict[str, Any]:
        """What ``set_params`` of their basis would need to be given."""
        return {}

    def with_parameters(self, values: Floats) -> Functions:
        """Return the same functions, at the same centres, with other magnitudes."""
        return self

    def per_input(self) -> Functions:
        """Return the same functions with one scale for each input."""
        return self

    def dcolumns(self, X: ArrayLike, idx: Any, parameter: int) -> Floats:
        """Return ∂φ_m(x_i)/∂log θ for the functions ``idx`` and parameter number ``parameter``, (n, k)."""
        raise IndexError(f"parameter {parameter}: these functions have {len(self.parameters)} that can be learned")

    def pullback(self, X: Floats, idx: Any, gradient: Floats) -> Floats:
        """Return Σ_im gradient_im ∂φ_m(x_i)/∂log θ_p over the functions ``idx``, for every parameter p."""
        return np.zeros(len(self.parameters))

    def at_centres(self, like: int, centres: Floats) -> Functions:
        """Return functions like number ``like`` at new centres, (k, d)."""
        raise ValueError(f"function {like} has no centre that could be moved")

    def __repr__(self) -> str:
        return f"<{type(self).__name__}: {len(self)} functions of {self.n_features} inputs>"


class Joined(Functions):
    """Several lists of functions, end to end."""

    def __init__(self, parts: Sequence[Functions]) -> None:
        flat: list[Functions] = []
        for part in parts:
            flat.extend(part.parts if isinstance(part, Joined) else [part])
        widths = {part.n_features for part in flat}
        if len(widths) != 1:
            raise ValueError(f"functions to join take {sorted(widths)} inputs; expected one common number")
        super().__init__(widths.pop())
        self.parts = flat
        self._ends = np.cumsum([len(part) for part in flat])

    def __len__(self) -> int:
        return int(self._ends[-1])

    def _route(self, idx: Index | slice) -> tuple[Index, Index]:
        """Return, for each function, which part it is in and its place there."""
        place = positions(idx, len(self))
        which = np.searchsorted(self._ends, place, side="right")
        starts = np.concatenate([[0], self._ends[:-1]])
        return which, place - starts[which]

    def _evaluate(self, X: Floats, idx: Index | slice) -> Floats:
        which, place = self._route(idx)
        values = np.empty((X.shape[0], place.size))
        for p in np.unique(which):
            mine = which == p
            values[:, mine] = self.parts[p]._evaluate(X, place[mine])
        return values

    def restrict(self, idx: Any) -> Functions:
        """Return just the functions ``idx``, in that order, one part per run of neighbours."""
        which, place = self._route(positions(idx, len(self)))
        if place.size == 0:
            return self.parts[0].restrict(place)
        cuts = np.flatnonzero(np.diff(which)) + 1
        pieces = [
            self.parts[w[0]].restrict(p) for w, p in zip(np.split(which, cuts), np.split(place, cuts), strict=True)
        ]
        return pieces[0] if len(pieces) == 1 else Joined(pieces)

    @property
    def rows(self) -> Index:
        """Index of the training row that is each function's centre; -1 where there is none."""
        return np.concatenate([part.rows for part in self.parts])

    @property
    def centres(self) -> Floats | None:
        """The (M, d) centres, NaN where a function has none; None if no function has one."""
        known = [part.centres for part in self.parts]
        if all(c is None for c in known):
            return None
        return np.vstack(
            [
                np.full((len(part), self.n_features), np.nan) if c is None else c
                for part, c in zip(self.parts, known, strict=True)
            ]
        )

    def specifications(self) -> list[Specification]:
        """Return the identity of every function as plain, JSON-able data."""
        return [spec for part in self.parts for spec in part.specifications()]

    @property
    def parameters(self) -> tuple[Parameter, ...]:
        """The parameters of all parts, called as the terms of a :class:`Sum` are."""
        return tuple(p.prefixed(term) for term, part in self._named() for p in part.parameters)

    @property
    def settings(self) -> dict[str, Any]:
        """What ``set_params`` of their basis would need to be given."""
        return {f"{term}__{name}": value for term, part in self._named() for name, value in part.settings.items()}

    def _named(self) -> Iterator[tuple[str, Functions]]:
        count: dict[str, int] = {}
        for part in self.parts:
            count[part.kind] = count.get(part.kind, 0) + 1
            yield part.kind if count[part.kind] == 1 else f"{part.kind}_{count[part.kind]}", part

    def _shares(self) -> list[slice]:
        """Where the parameters of each part are."""
        ends = np.cumsum([0, *(len(part.parameters) for part in self.parts)]).tolist()
        return [slice(start, end) for start, end in pairwise(ends)]

    def with_parameters(self, values: Floats) -> Functions:
        """Return the same functions, at the same centres, with other magnitudes."""
        return Joined([p.with_parameters(values[mine]) for p, mine in zip(self.parts, self._shares(), strict=True)])

    def per_input(self) -> Functions:
        """Return the same functions with one scale for each input."""
        return Joined([part.per_input() for part in self.parts])

    def dcolumns(self, X: ArrayLike, idx: Any, parameter: int) -> Floats:
        """Return ∂φ_m(x_i)/∂log θ, zero for the functions of other parts."""
        which, place = self._route(positions(idx, len(self)))
        values = np.zeros((as_inputs(X).shape[0], place.size))
        for p, mine in enumerate(self._shares()):
            if mine.start <= parameter < mine.stop and np.any(which == p):
                values[:, which == p] = self.parts[p].dcolumns(X, place[which == p], parameter - mine.start)
        return values

    def pullback(self, X: Floats, idx: Any, gradient: Floats) -> Floats:
        """Return Σ_im gradient_im ∂φ_m(x_i)/∂log θ_p over the functions ``idx``, for every parameter p."""
        which, place = self._route(positions(idx, len(self)))
        total = np.zeros(len(self.parameters))
        for p, mine in enumerate(self._shares()):
            if mine.stop > mine.start and np.any(which == p):
                total[mine] = self.parts[p].pullback(X, place[which == p], gradient[:, which == p])
        return total

    def at_centres(self, like: int, centres: Floats) -> Functions:
        """Return functions like number ``like`` at new centres, (k, d)."""
        which, place = self._route(positions([like], len(self)))
        return self.parts[which[0]].at_centres(int(place[0]), centres)
