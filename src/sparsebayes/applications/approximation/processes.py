"""Gaussian processes as sums of Gaussians."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, Product, Sum, WhiteKernel

from sparsebayes import basis
from sparsebayes.applications.approximation.expansion import Source
from sparsebayes.applications.approximation.models import SmallRegressor
from sparsebayes.applications.approximation.reading import as_points, confirm
from sparsebayes.typing import Array

# Amplitude and precisions η of one Gaussian; η = 0 is a constant.
Term = tuple[float, Array]


def gaussian_terms(kernel: Any, n_features: int) -> list[Term] | None:
    r"""A kernel as :math:`\sum_c a_c\exp(-\sum_j\eta_{cj}(x_j-x'_j)^2)`, or None where it is something else.

    White noise is zero between a new point and a training point, so it has no term.
    """
    if isinstance(kernel, WhiteKernel):
        return []
    if isinstance(kernel, ConstantKernel):
        return [(float(kernel.constant_value), np.zeros(n_features))]
    if type(kernel) is RBF:  # scikit-learn's Matern is a subclass and no Gaussian
        scale = np.asarray(kernel.length_scale, dtype=np.float64)
        return [(1.0, np.broadcast_to(0.5 * scale**-2.0, (n_features,)))]
    if not isinstance(kernel, Sum | Product):
        return None
    first, second = gaussian_terms(kernel.k1, n_features), gaussian_terms(kernel.k2, n_features)
    if first is None or second is None:
        return None
    if isinstance(kernel, Sum):
        return first + second
    return [(a * b, eta + zeta) for a, eta in first for b, zeta in second]


def read_gaussian_process(model: GaussianProcessRegressor) -> Source:
    """The mean of a Gaussian process."""
    points = as_points("X_train_", model.X_train_)
    dual = np.asarray(model.alpha_, dtype=np.float64).reshape(len(points), -1)
    terms = gaussian_terms(model.kernel_, points.shape[1])
    offset = np.zeros(dual.shape[1])
    if terms is None or not any(np.any(eta > 0.0) for _, eta in terms):
        kernel: Any = model.kernel_
        kernels: tuple[basis.Kernel, ...] = (basis.Callable(kernel),)
        weights = dual[None]
    else:
        round_terms = [(a, eta) for a, eta in terms if np.any(eta > 0.0)]
        offset = sum(a for a, eta in terms if not np.any(eta > 0.0)) * np.sum(dual, axis=0)
        kernels = tuple(basis.RBF(width=eta**-0.5) for _, eta in round_terms)
        weights = np.stack([a * dual for a, _ in round_terms])
    single = np.ndim(model.alpha_) == 1

    def build(expansion: Any) -> SmallRegressor:
        return SmallRegressor(expansion, single=single)

    source = Source(points, kernels, weights, offset, build)
    if model.normalize_y:
        source = _in_the_users_units(source, model)
    return confirm(source, model.predict)


def _in_the_users_units(source: Source, model: GaussianProcessRegressor) -> Source:
    """Undo the normalisation of the targets, as the process's own predictions say it is."""
    raw = source.expansion.evaluate(source.points)
    said = np.asarray(model.predict(source.points)).reshape(raw.shape)
    centred = raw - raw.mean(axis=0)
    spread = np.sum(centred**2, axis=0)
    scale = np.sum(centred * said, axis=0) / np.where(spread > 0.0, spread, 1.0)
    shift = said.mean(axis=0) - scale * raw.mean(axis=0)
    return Source(source.points, source.kernels, source.weights * scale, source.offset * scale + shift, source.build)
