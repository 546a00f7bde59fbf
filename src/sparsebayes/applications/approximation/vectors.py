"""Support vector machines and kernel ridge regression as sums of kernels."""

from __future__ import annotations

from functools import partial
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.kernel_ridge import KernelRidge
from sklearn.metrics.pairwise import pairwise_kernels

from sparsebayes.applications.approximation.expansion import Source
from sparsebayes.applications.approximation.models import SmallClassifier, SmallRegressor
from sparsebayes.applications.approximation.reading import as_dense, as_points, confirm
from sparsebayes.basis import Callable, Kernel
from sparsebayes.estimators.inputs import resolve_kernel
from sparsebayes.typing import Array

_NAMES = {"rbf": "rbf", "linear": "linear", "poly": "poly", "polynomial": "poly", "sigmoid": "sigmoid"}


def read_regressor(model: Any) -> Source:
    """Support vector regression."""
    points = _support_vectors(model)
    source = Source(
        points,
        (_machine_kernel(model, points),),
        as_dense(model.dual_coef_).T[None],
        np.atleast_1d(np.asarray(model.intercept_, dtype=np.float64)),
        partial(SmallRegressor, single=True),
    )
    return confirm(source, model.predict)


def read_classifier(model: Any) -> Source:
    """Decision functions of a support vector classifier, one for each pair of classes."""
    points = _support_vectors(model)
    dual = as_dense(model.dual_coef_)
    pairs = dual.T if len(model.classes_) == 2 else pairwise_weights(dual, np.asarray(model.n_support_))
    build = partial(
        SmallClassifier,
        classes=model.classes_,
        shape=model.decision_function_shape,
        break_ties=model.break_ties,
    )
    intercept = np.asarray(model.intercept_, dtype=np.float64)
    source = Source(points, (_machine_kernel(model, points),), pairs[None], intercept, build)
    return confirm(source, model.decision_function, build(source.expansion).decision_function)


def pairwise_weights(dual: Array, n_support: NDArray[np.intp]) -> Array:
    """Weights of all vectors in each pair's decision function, (n, K(K-1)/2).

    A vector of class i has one coefficient for each other class, in ascending order of that class: row j-1 for a later
    class j, row j for an earlier one.
    """
    ends = np.cumsum(n_support)
    members = [slice(end - count, end) for count, end in zip(n_support, ends, strict=True)]
    pairs = list(combinations(range(len(n_support)), 2))
    weights = np.zeros((dual.shape[1], len(pairs)))
    for column, (i, j) in enumerate(pairs):
        weights[members[i], column] = dual[j - 1, members[i]]
        weights[members[j], column] = dual[i, members[j]]
    return weights


def read_kernel_ridge(model: KernelRidge) -> Source:
    """Kernel ridge regression."""
    if model.kernel == "precomputed":
        raise ValueError(_NO_VECTORS.format("KernelRidge", model.kernel))
    points = as_points("X_fit_", model.X_fit_)
    dual = np.asarray(model.dual_coef_, dtype=np.float64).reshape(len(points), -1)
    single = np.ndim(model.dual_coef_) == 1
    source = Source(
        points,
        (_ridge_kernel(model, points),),
        dual[None],
        np.zeros(dual.shape[1]),
        partial(SmallRegressor, single=single),
    )
    return confirm(source, model.predict)


_NO_VECTORS = (
    "{} with kernel={!r} does not keep its vectors, only their numbers; supported are the named kernels, such as 'rbf'"
)


def _support_vectors(model: Any) -> Array:
    if model.kernel == "precomputed" or callable(model.kernel):
        raise ValueError(_NO_VECTORS.format(type(model).__name__, model.kernel))
    return as_points("support_vectors_", model.support_vectors_)


def _machine_kernel(model: Any, points: Array) -> Kernel:
    # The number that "scale" and "auto" became is kept under a private name only; a number given is public.
    gamma = model.gamma if not isinstance(model.gamma, str) else getattr(model, "_gamma", None)
    if gamma is None:
        raise ValueError(
            f"gamma={model.gamma!r} of this model is not known as a number; fit it with a number for gamma"
        )
    gamma = float(gamma) if model.kernel != "linear" else 1.0
    return _named(model.kernel, gamma, model.degree, model.coef0, points)


def _ridge_kernel(model: KernelRidge, points: Array) -> Kernel:
    gamma = 1.0 / points.shape[1] if model.gamma is None else model.gamma
    if isinstance(model.kernel, str) and model.kernel in (*_NAMES, "laplacian"):
        return _named(model.kernel, gamma, model.degree, model.coef0, points)
    named = {"gamma": model.gamma, "degree": model.degree, "coef0": model.coef0}
    parameters = (model.kernel_params or {}) if callable(model.kernel) else named
    return Callable(partial(pairwise_kernels, metric=model.kernel, filter_params=True, **parameters))


def _named(name: str, gamma: float, degree: float, coef0: float, points: Array) -> Kernel:
    kernel = resolve_kernel(_NAMES.get(name, name), gamma, int(degree), float(coef0), points, np.ones(len(points)))
    if not isinstance(kernel, Kernel):
        raise ValueError(f"kernel={name!r} has no centres; supported are kernels of the inputs, such as 'rbf'")
    return kernel
