r"""Kept functions as sums of products of functions of one input each, which is what exact attributions need.

A *term* is :math:`\prod_{i=1}^r k_i(x_{f_i})` over distinct inputs :math:`f_1,\dots,f_r`.  A Gaussian is one term with
a factor for every input; a monomial one with a factor for each of its inputs; a step one with a single factor; the
linear kernel a sum of terms with a single factor each.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from sparsebayes.basis import Functions
from sparsebayes.basis.base import Joined, Specification
from sparsebayes.typing import Array, Index


@dataclass(frozen=True)
class Terms:
    """Terms with the same number of factors.

    Attributes
    ----------
    owners : ndarray of int, shape (T,)
        The kept function that each term is a part of.
    features : ndarray of int, shape (T, r)
        The input that each factor looks at; within a term all different.
    factors : callable
        Takes the values (n, T, r) of those inputs and returns those of the factors.
    """

    owners: Index
    features: Index
    factors: Callable[[Array], Array]

    def evaluate(self, X: Array) -> Array:
        """Factors on the rows of X, (n, T, r)."""
        return self.factors(X[:, self.features])


def terms_of(functions: Functions) -> list[Terms]:
    """Terms of functions; constants have none.

    Raises
    ------
    TypeError
        Where a function is no sum of few products.
    """
    found: list[Terms] = []
    start = 0
    for part in functions.parts if isinstance(functions, Joined) else [functions]:
        owners = np.arange(start, start + len(part), dtype=np.intp)
        start += len(part)
        if len(part) == 0:
            continue
        # All functions of a part are of one kind, and all kernels of a part have the same parameters.
        first = part.restrict([0]).specifications()[0]
        kind = first["kind"]
        if kind in _KERNELS:
            found += _KERNELS[kind](np.asarray(part.centres, dtype=np.float64), owners, first)
        elif kind in _SIMPLE:
            found += _SIMPLE[kind](part.specifications(), owners)
        else:
            raise TypeError(_refusal(kind))
    return found


def _refusal(kind: str) -> str:
    return (
        f"functions of kind {kind!r} are no products of functions of one input each, so their Shapley values have no "
        f"closed form; those of the kinds {', '.join(sorted([*_KERNELS, *_SIMPLE]))} (polynomial_kernel of degree 1) "
        "have one. Estimate them by shap.KernelExplainer(model.predict, background) instead"
    )


def _centred(centres: Array, owners: Index, factors: Callable[[Array, Array], Array]) -> list[Terms]:
    """One factor for each input, of the input and of the centre's."""
    features = np.broadcast_to(np.arange(centres.shape[1], dtype=np.intp), centres.shape)
    return [Terms(owners, features, lambda x: factors(x, centres))]


def _rbf(centres: Array, owners: Index, shared: Specification) -> list[Terms]:
    width = np.asarray(shared["width"], dtype=np.float64)
    return _centred(centres, owners, lambda x, c: np.exp(-np.square((x - c) / width)))


def _laplacian(centres: Array, owners: Index, shared: Specification) -> list[Terms]:
    width = np.asarray(shared["width"], dtype=np.float64)
    return _centred(centres, owners, lambda x, c: np.exp(-np.abs(x - c) / width))


def _linear_spline(centres: Array, owners: Index, shared: Specification) -> list[Terms]:
    def factors(x: Array, c: Array) -> Array:
        low, product = np.minimum(x, c), x * c
        return 1.0 + product + low * (product + low * (low / 3.0 - (x + c) / 2.0))  # PHJ eq. 22

    return _centred(centres, owners, factors)


def _linear_kernel(centres: Array, owners: Index, shared: Specification) -> list[Terms]:
    if shared["degree"] != 1:
        raise TypeError(_refusal(f"polynomial_kernel of degree {shared['degree']}"))
    slopes = centres * np.asarray(shared["gamma"], np.float64)
    m, d = slopes.shape
    features = np.tile(np.arange(d, dtype=np.intp), m)[:, None]
    return [Terms(np.repeat(owners, d), features, lambda x: x * slopes.reshape(-1, 1))]


def _linear(specs: Sequence[Specification], owners: Index) -> list[Terms]:
    features = np.array([spec["feature"] for spec in specs], dtype=np.intp)
    return [Terms(owners, features[:, None], lambda x: x)]


def _heaviside(specs: Sequence[Specification], owners: Index) -> list[Terms]:
    features = np.array([spec["feature"] for spec in specs], dtype=np.intp)
    thresholds = np.array([spec["threshold"] for spec in specs], dtype=np.float64)
    return [Terms(owners, features[:, None], lambda x: (x >= thresholds[:, None]).astype(np.float64))]


def _monomials(specs: Sequence[Specification], owners: Index) -> list[Terms]:
    """Monomials by the number of their inputs, so that none has factors that are always one."""
    powers = np.array([spec["powers"] for spec in specs], dtype=np.intp)
    counts = np.count_nonzero(powers, axis=1)
    found = []
    for r in np.unique(counts[counts > 0]):
        mine = np.flatnonzero(counts == r)
        features = np.nonzero(powers[mine])[1].reshape(len(mine), r).astype(np.intp)
        exponents = np.take_along_axis(powers[mine], features, axis=1)
        found.append(Terms(owners[mine], features, lambda x, p=exponents: x**p))
    return found


def _bias(specs: Sequence[Specification], owners: Index) -> list[Terms]:
    return []


_KERNELS: dict[str, Callable[[Array, Index, Specification], list[Terms]]] = {
    "rbf": _rbf,
    "laplacian": _laplacian,
    "linear_spline": _linear_spline,
    "polynomial_kernel": _linear_kernel,
}
_SIMPLE: dict[str, Callable[[Sequence[Specification], Index], list[Terms]]] = {
    "bias": _bias,
    "linear": _linear,
    "heaviside": _heaviside,
    "polynomial": _monomials,
}
