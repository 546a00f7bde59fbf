"""Functions of the inputs themselves: the constant, the columns, their monomials."""

from __future__ import annotations

from itertools import combinations, combinations_with_replacement
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from .base import Basis, Floats, Functions, Index, Specification, check_count, check_flag, check_training, positions


class MonomialFunctions(Functions):
    """Products Π_j x_{f_j} of at most a few inputs each.

    Parameters
    ----------
    factors : (M, degree) integer array
        The inputs multiplied in each function; ``n_features`` stands for the factor one. This is far
        smaller than the (M, d) table of powers when there are many inputs.
    kind : str
        ``"bias"``, ``"linear"`` or ``"polynomial"``: how a function is written down.
    n_features : int
        The number of inputs.
    """

    def __init__(self, factors: Index, kind: str, n_features: int) -> None:
        super().__init__(n_features)
        self._factors = factors
        self._kind = kind

    def __len__(self) -> int:
        return self._factors.shape[0]

    def _evaluate(self, X: Floats, idx: Index | slice) -> Floats:
        factors = self._factors[idx]
        values = np.ones((X.shape[0], factors.shape[0]))
        for slot in factors.T:
            used = np.flatnonzero(slot < self.n_features)
            if used.size == slot.size:
                values *= X[:, slot]
            else:
                values[:, used] *= X[:, slot[used]]
        return values

    def restrict(self, idx: Any) -> MonomialFunctions:
        """Return just the functions ``idx``, in that order."""
        return MonomialFunctions(self._factors[positions(idx, len(self))], self._kind, self.n_features)

    def specifications(self) -> list[Specification]:
        """Return the identity of every function as plain, JSON-able data."""
        if self._kind == "bias":
            return [{"kind": "bias"} for _ in range(len(self))]
        if self._kind == "linear":
            return [{"kind": "linear", "feature": feature} for feature in self._factors[:, 0].tolist()]
        return [
            {"kind": "polynomial", "powers": np.bincount(f, minlength=self.n_features + 1)[:-1].tolist()}
            for f in self._factors
        ]


class Bias(Basis):
    """The constant function φ(x) = 1."""

    kind = "bias"

    def bind(self, X: ArrayLike, *, random_state: Any = None) -> Functions:
        """Return the one constant function."""
        return self._rebuild({}, [{}], check_training(X).shape[1])

    @classmethod
    def _rebuild(cls, parameters: Specification, members: list[Specification], n_features: int) -> Functions:
        return MonomialFunctions(np.empty((len(members), 0), dtype=np.intp), cls.kind, n_features)


class Linear(Basis):
    """The inputs themselves, φ_m(x) = x_m: sparse linear models (automatic relevance determination)."""

    kind = "linear"
    identity = ("feature",)

    def bind(self, X: ArrayLike, *, random_state: Any = None) -> Functions:
        """Return one function per input."""
        d = check_training(X).shape[1]
        return MonomialFunctions(np.arange(d, dtype=np.intp)[:, None], self.kind, d)

    @classmethod
    def _rebuild(cls, parameters: Specification, members: list[Specification], n_features: int) -> Functions:
        features = np.array([member["feature"] for member in members], dtype=np.intp)
        if (features < 0).any() or (features >= n_features).any():
            raise ValueError(f"feature of a linear specification is outside 0..{n_features - 1}")
        return MonomialFunctions(features[:, None], cls.kind, n_features)


class Polynomial(Basis):
    """Monomials Π_j x_j^{p_j} of total degree 1 to ``degree``, without the constant.

    Parameters
    ----------
    degree : int, default=2
        The largest total degree Σ_j p_j.
    interaction_only : bool, default=False
        Whether to leave out monomials in which an input appears more than once.
    include_linear : bool, default=True
        Whether to keep the monomials of degree one, the inputs themselves.
    """

    kind = "polynomial"
    identity = ("powers",)

    def __init__(self, degree: int = 2, *, interaction_only: bool = False, include_linear: bool = True) -> None:
        self.degree = degree
        self.interaction_only = interaction_only
        self.include_linear = include_linear

    def bind(self, X: ArrayLike, *, random_state: Any = None) -> Functions:
        """Return the monomials in order of degree, then of their inputs."""
        d = check_training(X).shape[1]
        degree = check_count("degree", self.degree)
        choose = (
            combinations if check_flag("interaction_only", self.interaction_only) else combinations_with_replacement
        )
        lowest = 1 if check_flag("include_linear", self.include_linear) else 2
        tables = [
            np.pad(
                np.array(list(choose(range(d), p)), dtype=np.intp).reshape(-1, p),
                ((0, 0), (0, degree - p)),
                constant_values=d,
            )
            for p in range(lowest, degree + 1)
        ]
        if sum(len(table) for table in tables) == 0:
            raise ValueError(
                f"Polynomial(degree={degree}, interaction_only={self.interaction_only}, "
                f"include_linear={self.include_linear}) has no function of {d} inputs; "
                "raise degree or allow more kinds of monomials"
            )
        return MonomialFunctions(np.vstack(tables), self.kind, d)

    @classmethod
    def _rebuild(cls, parameters: Specification, members: list[Specification], n_features: int) -> Functions:
        powers = np.array([member["powers"] for member in members], dtype=np.intp)
        if powers.ndim != 2 or powers.shape[1] != n_features or (powers < 0).any():
            raise ValueError(f"powers of a polynomial specification: expected {n_features} integers >= 0")
        degrees = powers.sum(axis=1)
        factors = np.full((len(powers), int(degrees.max())), n_features, dtype=np.intp)
        for row, power, degree in zip(factors, powers, degrees, strict=True):
            row[:degree] = np.repeat(np.arange(n_features), power)
        return MonomialFunctions(factors, cls.kind, n_features)
