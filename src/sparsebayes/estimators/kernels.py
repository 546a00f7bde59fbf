"""Kernels by the names that scikit-learn's support vector machines use."""

from __future__ import annotations

from collections.abc import Callable as Function
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sparsebayes.basis import RBF, Basis, Callable, Laplacian, PolynomialKernel, Precomputed, Sigmoid
from sparsebayes.basis.arrays import is_elsewhere
from sparsebayes.estimators.cluster import Cluster, variance_of_inputs
from sparsebayes.estimators.devices import scale_elsewhere
from sparsebayes.estimators.validation import check_positive, choose

if TYPE_CHECKING:
    from sklearn.base import BaseEstimator as Base
else:
    Base = object

Array = NDArray[np.float64]

_NAMED: dict[str, Function[[float, int, float], Basis]] = {
    "rbf": lambda gamma, degree, coef0: RBF(width=1.0 / np.sqrt(gamma)),
    "linear": lambda gamma, degree, coef0: PolynomialKernel(degree=1, gamma=1.0, coef0=0.0),
    "poly": lambda gamma, degree, coef0: PolynomialKernel(degree=degree, gamma=gamma, coef0=coef0),
    "laplacian": lambda gamma, degree, coef0: Laplacian(width=1.0 / gamma),
    "sigmoid": lambda gamma, degree, coef0: Sigmoid(gamma=gamma, coef0=coef0),
    "precomputed": lambda gamma, degree, coef0: Precomputed(),
}


LEARNED = ("evidence", "ard", "multiscale")


def resolve_gamma(gamma: Any, X: Array, weights: Array) -> float:
    """``gamma`` as a number; ``"scale"`` and ``"auto"`` mean what they mean in scikit-learn.

    Where it is to be learned, this is where learning begins.
    """
    if isinstance(gamma, str):
        if choose("gamma", gamma, ("scale", "auto", *LEARNED)) == "auto":
            return 1.0 / X.shape[1]
        if is_elsewhere(X) or isinstance(X, Cluster):
            variance = variance_of_inputs(X) if isinstance(X, Cluster) else scale_elsewhere(X, weights)
            return 1.0 / (X.shape[1] * variance) if variance > 0.0 else 1.0
        # Variance of all entries, each row as often as its weight says.
        mean = np.average(X, axis=0, weights=weights).mean()
        variance = float(np.average((X - mean) ** 2, axis=0, weights=weights).mean())
        return 1.0 / (X.shape[1] * variance) if variance > 0.0 else 1.0
    check_positive("gamma", gamma)
    return float(gamma)


def resolve_kernel(kernel: Any, gamma: Any, degree: int, coef0: float, X: Array, weights: Array) -> Basis:
    """Basis from a name, a Basis, or a callable ``k(X, Z)``."""
    if isinstance(kernel, Basis):
        return kernel
    if callable(kernel):
        return Callable(cast(Function[[Array, Array], ArrayLike], kernel))
    name = choose("kernel", kernel, tuple(_NAMED))
    needs_gamma = name in ("rbf", "poly", "laplacian", "sigmoid")
    return _NAMED[name](resolve_gamma(gamma, X, weights) if needs_gamma else 1.0, degree, coef0)


class MayBePrecomputed(Base):
    """``kernel="precomputed"``: the columns of X belong to the training rows, as scikit-learn's tools must know."""

    kernel: Any

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.pairwise = self._precomputed
        return tags

    @property
    def _precomputed(self) -> bool:
        return isinstance(self.kernel, str) and self.kernel == "precomputed"
