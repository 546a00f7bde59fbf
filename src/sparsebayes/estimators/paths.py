"""A path over one parameter, each fit begun from the model before it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from numpy.typing import ArrayLike
from sklearn.base import clone

from sparsebayes.estimators.inputs import Inputs
from sparsebayes.estimators.task import Thread

PARAMETERS = ("noise_variance", "gamma")


def path(
    estimator: Inputs,
    X: Any,
    y: ArrayLike,
    parameter: str,
    values: Iterable[float],
    sample_weight: ArrayLike | None = None,
) -> list[Any]:
    """Fit an estimator along values of its noise variance or of gamma, warm.

    Each fit begins with the functions and precisions of the one before and makes no further starts, so that a path is
    cheap, its models change little from one value to the next, and what comes out depends on the order of the values.

    Parameters
    ----------
    estimator : estimator
        It is copied, not changed.
    X, y, sample_weight
        As in ``fit``.
    parameter : {"noise_variance", "gamma"}
        What changes along the path.
    values : iterable of float
        Its values, in the order of the fits.

    Returns
    -------
    list of fitted estimators

    Examples
    --------
    >>> from sparsebayes import RVR, path
    >>> from sparsebayes.datasets import make_sinc
    >>> X, y = make_sinc(50, random_state=0)
    >>> models = path(RVR(), X, y, "gamma", [0.02, 0.05, 0.1])
    >>> best = max(models, key=lambda model: model.log_marginal_likelihood_)
    """
    if parameter not in PARAMETERS:
        raise ValueError(f"parameter={parameter!r} is not known; choose one of {', '.join(map(repr, PARAMETERS))}")
    thread, fitted = Thread(), []
    for value in values:
        model: Any = clone(estimator)
        model.set_params(**{parameter: value})
        model._thread = thread
        try:
            model.fit(X, y, sample_weight=sample_weight)
        finally:
            del model._thread
        fitted.append(model)
    return fitted
