"""What a basis function is, before any data and after: ``Basis`` and ``Functions``.

A model is a sum y(x) = Σ_m w_m φ_m(x) (Tipping & Faul eq. 1). A :class:`Basis` says of which family the φ_m
are; binding it to training inputs gives :class:`Functions`, a fixed list of φ_m that can be evaluated
anywhere, restricted to those that the evidence kept, and written down as plain specifications.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from itertools import pairwise
from numbers import Integral, Real
from typing import Any, ClassVar, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse
from sklearn.base import BaseEstimator, clone

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


def is_elsewhere(X: Any) -> bool:
    """Whether X is an array of another library: one that follows the array API standard and is not NumPy's."""
    if isinstance(X, np.ndarray | list | tuple):
        return False
    library = type(X).__module__.partition(".")[0]
    return library in ("torch", "cupy", "jax", "jaxlib", "array_api_strict") or hasattr(X, "__array_namespace__")


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

    def rows_among(self, bound: Index) -> Index:
        """The same among all rows as given, where the functions were bound to these of them."""
        found = self.rows.copy()
        found[found >= 0] = bound[found[found >= 0]]
        return found

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

    def rows_among(self, bound: Index) -> Index:
        """The same among all rows as given, where the functions were bound to these of them."""
        return np.concatenate([part.rows_among(bound) for part in self.parts])

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


_KINDS: dict[str, type[Basis]] = {}


class Basis(BaseEstimator, ABC):
    """A family of basis functions: parameters only, no data.

    A subclass with a ``kind`` of its own is known to :func:`from_specifications` from its definition on.
    Parameters are stored as given and checked by :meth:`bind`, so that scikit-learn's ``clone``,
    ``get_params`` and ``set_params`` work as on any estimator.
    """

    kind: ClassVar[str]
    # The entries of a specification that tell one function of the family from the next.
    identity: ClassVar[tuple[str, ...]] = ()

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        kind = cls.__dict__.get("kind")
        if kind is None:
            return
        known = _KINDS.get(kind)
        # The same name again is a notebook cell run twice; another name would make model files ambiguous.
        if known is not None and (known.__module__, known.__qualname__) != (cls.__module__, cls.__qualname__):
            raise TypeError(f"kind {kind!r} of {cls.__qualname__} is taken by {known.__qualname__}")
        _KINDS[kind] = cls

    @abstractmethod
    def bind(self, X: ArrayLike, *, random_state: Any = None) -> Functions:
        """Check the parameters and fix the functions on training inputs.

        Parameters
        ----------
        X : (n, d) array-like
            Training inputs; kept without a copy where it already is a float64 array.
        random_state : int, RandomState or None
            Used only where the choice of the functions involves chance.
        """

    @classmethod
    def _rebuild(cls, parameters: Specification, members: list[Specification], n_features: int) -> Functions:
        """Rebuild functions that share ``parameters`` from the entries named in ``identity``."""
        raise ValueError(f"functions of kind {cls.kind!r} cannot be rebuilt from specifications")

    def _terms(self) -> tuple[Basis, ...]:
        return (self,)

    def __add__(self, other: Basis) -> Sum:
        if not isinstance(other, Basis):
            return NotImplemented
        return Sum(*self._terms(), *other._terms())


class Sum(Basis):
    """The functions of several bases, in order: what ``+`` makes.

    The parameters of a term are reached by its kind, as in ``set_params(rbf__width=2.0)``; a second term of
    the same kind is ``rbf_2``, and so on.

    Parameters
    ----------
    *bases : Basis
        The terms; sums among them are flattened.
    """

    def __init__(self, *bases: Basis) -> None:
        for basis in bases:
            if not isinstance(basis, Basis):
                raise TypeError(f"Sum got {basis!r} of type {type(basis).__name__}; expected Basis objects")
        self.bases = tuple(term for basis in bases for term in basis._terms())
        if not self.bases:
            raise ValueError("Sum got no bases; expected at least one")

    def _terms(self) -> tuple[Basis, ...]:
        return self.bases

    def bind(self, X: ArrayLike, *, random_state: Any = None) -> Functions:
        """Bind every term to the same training inputs and join their functions."""
        return Joined([basis.bind(X, random_state=random_state) for basis in self.bases])

    def _named(self) -> dict[str, Basis]:
        named: dict[str, Basis] = {}
        count: dict[str, int] = {}
        for basis in self.bases:
            count[basis.kind] = count.get(basis.kind, 0) + 1
            named[basis.kind if count[basis.kind] == 1 else f"{basis.kind}_{count[basis.kind]}"] = basis
        return named

    # scikit-learn reads parameters off the constructor's signature, which cannot name a variable number of
    # them: these three replace that reading.
    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the terms by name and, if ``deep``, their parameters."""
        named = self._named()
        params: dict[str, Any] = dict(named)
        if deep:
            for name, basis in named.items():
                params.update({f"{name}__{key}": value for key, value in basis.get_params().items()})
        return params

    def set_params(self, **params: Any) -> Sum:
        """Replace terms (``rbf=RBF(2.0)``) or their parameters (``rbf__width=2.0``)."""
        named = self._named()
        nested: dict[str, dict[str, Any]] = {}
        for key, value in params.items():
            name, _, rest = key.partition("__")
            if name not in named:
                raise ValueError(f"Sum has no term {name!r}; its terms are {list(named)}")
            if rest:
                nested.setdefault(name, {})[rest] = value
            elif isinstance(value, Basis):
                named[name] = value
            else:
                raise TypeError(f"{name}={value!r} of type {type(value).__name__}; expected a Basis")
        for name, values in nested.items():
            named[name].set_params(**values)
        self.bases = tuple(term for basis in named.values() for term in basis._terms())
        return self

    def __sklearn_clone__(self) -> Sum:
        return Sum(*(cast(Basis, clone(basis)) for basis in self.bases))

    def __repr__(self, N_CHAR_MAX: int = 700) -> str:
        return " + ".join(repr(basis) for basis in self.bases)


def from_specifications(specs: Sequence[Specification], n_features: int) -> Functions:
    """Rebuild functions from what :meth:`Functions.specifications` returned.

    Runs of the same kind and parameters become one list, so that evaluation stays vectorised.
    Parameters and centres are the same to the last bit; the training rows they came from are not part of a
    function's identity, so ``rows`` is -1.

    Parameters
    ----------
    specs : sequence of dict
        One per function.
    n_features : int
        The number of inputs.
    """
    if len(specs) == 0:
        raise ValueError("specs is empty; expected at least one specification")
    runs: list[tuple[type[Basis], Specification, list[Specification]]] = []
    for spec in specs:
        kind = spec.get("kind")
        cls = _KINDS.get(kind) if isinstance(kind, str) else None
        if cls is None:
            raise ValueError(
                f"specification of kind {kind!r} is unknown; known kinds are {sorted(_KINDS)} "
                "(a kind defined elsewhere is known once its module is imported)"
            )
        missing = [key for key in cls.identity if key not in spec]
        if missing:
            raise ValueError(f"specification {spec} lacks {missing}, which kind {kind!r} needs")
        own = {key: spec[key] for key in cls.identity}
        shared = {key: value for key, value in spec.items() if key != "kind" and key not in own}
        if runs and runs[-1][0] is cls and runs[-1][1] == shared:
            runs[-1][2].append(own)
        else:
            runs.append((cls, shared, [own]))
    parts = [cls._rebuild(shared, members, n_features) for cls, shared, members in runs]
    return parts[0] if len(parts) == 1 else Joined(parts)


def check_training(X: ArrayLike) -> Floats:
    """Return training inputs as a non-empty, finite (n, d) float64 array."""
    X = as_inputs(X)
    if 0 in X.shape:
        raise ValueError(f"X has shape {X.shape}; expected at least one sample and one feature")
    if not np.isfinite(X).all():
        raise ValueError("X contains NaN or infinity; expected finite training inputs")
    return X


def check_count(name: str, value: Any) -> int:
    """Return ``value`` as a positive int."""
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, Integral) or value < 1:
        raise ValueError(f"{name}={value!r}; expected a positive integer")
    return int(value)


def check_real(name: str, value: Any) -> float:
    """Return ``value`` as a finite float."""
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, Real) or not np.isfinite(float(value)):
        raise ValueError(f"{name}={value!r}; expected a finite number")
    return float(value)


def check_flag(name: str, value: Any) -> bool:
    """Return ``value`` as a bool."""
    if not isinstance(value, (bool, np.bool_)):
        raise ValueError(f"{name}={value!r}; expected True or False")
    return bool(value)


def check_width(value: Any, n_features: int) -> float | list[float]:
    """Return a width as one positive float, or as a list of one per input."""
    try:
        width: NDArray[np.float64] = np.asarray(value, dtype=np.float64)
    except (TypeError, ValueError):
        width = np.array(np.nan)
    if width.shape not in {(), (n_features,)} or not (np.isfinite(width) & (width > 0)).all():
        raise ValueError(
            f"width={value!r}; expected a positive number, or one positive number for each of the {n_features} inputs"
        )
    return width.tolist()


def check_slope(name: str, value: Any, n_features: int) -> float | list[float]:
    """Return a slope as one finite float, or as a list of one per input."""
    try:
        slope: NDArray[np.float64] = np.asarray(value, dtype=np.float64)
    except (TypeError, ValueError):
        slope = np.array(np.nan)
    flag = isinstance(value, (bool, np.bool_))
    if flag or slope.shape not in {(), (n_features,)} or not np.isfinite(slope).all():
        raise ValueError(
            f"{name}={value!r}; expected a finite number, or one finite number for each of the {n_features} inputs"
        )
    return slope.tolist()
