"""The entry: which models are understood, and the checks of what is asked."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.stats import gaussian_kde
from sklearn.base import BaseEstimator
from sklearn.exceptions import NotFittedError
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.kernel_ridge import KernelRidge
from sklearn.neighbors import KernelDensity
from sklearn.svm import SVC, SVR, NuSVC, NuSVR
from sklearn.utils.validation import check_is_fitted

from sparsebayes.applications.approximation.densities import read_gaussian_kde, read_kernel_density
from sparsebayes.applications.approximation.expansion import Source
from sparsebayes.applications.approximation.processes import read_gaussian_process
from sparsebayes.applications.approximation.solve import Request, approximate, log_frame, log_volume
from sparsebayes.applications.approximation.vectors import read_classifier, read_kernel_ridge, read_regressor
from sparsebayes.estimators.checks import check_positive
from sparsebayes.typing import Array

_READERS: dict[type, Callable[[Any], Source]] = {
    GaussianProcessRegressor: read_gaussian_process,
    SVR: read_regressor,
    NuSVR: read_regressor,
    SVC: read_classifier,
    NuSVC: read_classifier,
    KernelRidge: read_kernel_ridge,
    KernelDensity: read_kernel_density,
    gaussian_kde: read_gaussian_kde,
}
# What tells that a model has been fitted, where having been given parameters is not enough.
_LEARNED = {GaussianProcessRegressor: "X_train_"}


def sparsify(
    model: Any,
    noise: float,
    *,
    candidates: ArrayLike | None = None,
    points: ArrayLike | None = None,
    density: float | None = None,
    tol: float = 1e-3,
    max_iter: int = 10_000,
) -> Any:
    r"""Approximate a fitted kernel model by few functions of the same kernel.

    The model's function f is the target of a sparse Bayesian regression with the likelihood

    .. math:: \exp\Big\{-\frac{\rho}{2\sigma^2}\int (y(\mathbf x)-f(\mathbf x))^2\,d\mathbf x\Big\} ,

    in which :math:`\sigma` is the size of error that is accepted and :math:`\rho` the number of source points per unit
    volume.  For Gaussian kernels the integrals are analytic and no data are needed; otherwise the integral is a sum
    over ``points``.

    Parameters
    ----------
    model : estimator
        Fitted ``GaussianProcessRegressor`` (its mean), ``SVR``, ``NuSVR``, ``SVC``, ``NuSVC``, ``KernelRidge`` or
        ``KernelDensity`` of scikit-learn, or SciPy's ``gaussian_kde``.
    noise : float
        :math:`\sigma`, in units of the model's function: outputs, decision values, or densities.
    candidates : array-like of shape (m, d), optional
        Where functions may stand; by default at the model's own points.
    points : array-like of shape (p, d), optional
        Compare on these points instead of by integrals; needed for kernels that are not Gaussian.  Together they count
        as much as the source's points, however many they are.
    density : float, optional
        :math:`\rho`; by default the number of source points over the volume of the box around them.  A larger one asks
        for more functions.
    tol : float
        Converged means that no single move would raise the objective by more than this, in nats.
    max_iter : int
        Largest number of moves.

    Returns
    -------
    small : estimator
        With the interface of the source: ``SmallRegressor``, ``SmallClassifier``, a ``KernelDensity`` on few weighted
        points, or ``SmallKDE``.  Its ``approximation_`` states the size and the error (see ``Approximation``).

    Examples
    --------
    >>> from sklearn.gaussian_process import GaussianProcessRegressor
    >>> from sklearn.gaussian_process.kernels import RBF
    >>> from sparsebayes.applications import sparsify
    >>> from sparsebayes.datasets import make_sinc
    >>> X, y = make_sinc(100, noise=0.1, random_state=0)
    >>> process = GaussianProcessRegressor(RBF(2.5), alpha=0.01, optimizer=None).fit(X, y)
    >>> small = sparsify(process, noise=0.1)
    >>> small.approximation_.n_functions <= 8, small.approximation_.max_error < 0.3
    (True, True)
    """
    check_positive("noise", noise)
    check_positive("tol", tol)
    check_positive("max_iter", max_iter, integer=True)
    source = _read(model)
    if len(np.unique(source.points, axis=0)) < 2:
        raise ValueError(
            f"the {type(model).__name__} stands on {len(source.points)} distinct point(s), and a model or density of "
            "one point cannot be made smaller; expected at least two"
        )
    if points is None and not source.gaussian:
        raise ValueError(
            f"the kernel of this {type(model).__name__} is not Gaussian, so its integrals are not known; pass points=, "
            "such as the training inputs, to compare on points instead"
        )
    if density is not None:
        check_positive("density", density)
        if points is not None:
            raise ValueError("density= is of the integral, and with points= there is none; pass one of the two")
    log_density = np.log(len(source.points)) - log_volume(source)
    if density is not None:
        log_density = np.log(density) - log_frame(source)
    request = Request(
        noise=float(noise),
        places=source.points if candidates is None else _rows("candidates", candidates, source),
        points=None if points is None else _rows("points", points, source),
        log_density=float(log_density),
        tol=float(tol),
        max_iter=int(max_iter),
    )
    expansion, report = approximate(source, request)
    small = source.build(expansion)
    small.approximation_ = report
    return small


def _read(model: Any) -> Source:
    """The model as a sum of kernels."""
    for known, read in _READERS.items():
        if isinstance(model, known):
            if isinstance(model, BaseEstimator):
                try:
                    check_is_fitted(model, _LEARNED.get(known))
                except NotFittedError:
                    raise NotFittedError(
                        f"this {type(model).__name__} is not fitted: sparsify approximates what a model has learned; "
                        "call its fit first"
                    ) from None
            return read(model)
    what = model.__name__ + " itself" if isinstance(model, type) else f"type {type(model).__name__}"
    raise TypeError(
        f"model is of {what}; supported are fitted {', '.join(known.__name__ for known in _READERS)} "
        "(of a pipeline or a search, pass the fitted estimator inside)"
    )


def _rows(name: str, given: ArrayLike, source: Source) -> Array:
    """Rows in the units of the model's inputs, turned into the coordinates of its kernels."""
    d = source.points.shape[1]
    try:
        rows = np.asarray(given, dtype=np.float64)
    except (TypeError, ValueError):
        raise ValueError(f"{name} is not an array of numbers; expected shape (m, {d})") from None
    if rows.ndim != 2 or rows.shape[1] != d or len(rows) == 0:
        raise ValueError(f"{name} has shape {rows.shape}; expected (m, {d}) with m >= 1, as the model's inputs")
    if not np.isfinite(rows).all():
        raise ValueError(f"{name} contains NaN or infinity; expected finite numbers")
    return source.to_frame(rows)
