"""What a basis function is, before any data and after: ``Basis`` and ``Functions``.

A model is a sum y(x) = Σ_m w_m φ_m(x) (Tipping & Faul eq. 1). A :class:`Basis` says of which family the φ_m
are; binding it to training inputs gives :class:`Functions`, a fixed list of φ_m that can be evaluated
anywhere, restricted to those that the evidence kept, and written down as plain specifications.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, ClassVar, cast

from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, clone

from .functions import Floats, Functions, Index, Joined, Specification, as_inputs, positions

__all__ = [
    "Basis",
    "Floats",
    "Functions",
    "Index",
    "Joined",
    "Specification",
    "Sum",
    "as_inputs",
    "from_specifications",
    "positions",
]

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
