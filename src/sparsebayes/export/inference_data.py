"""Draws from a fitted model's posterior, as ArviZ takes them."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from importlib import import_module
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import log_expit, log_softmax
from scipy.stats import poisson, t
from sklearn.base import is_classifier
from sklearn.utils.validation import check_is_fitted

from sparsebayes.estimators import MODELS
from sparsebayes.estimators.summary import function_names
from sparsebayes.posterior import PoissonPosterior
from sparsebayes.posterior.gaussian import draw_weights

Array = NDArray[np.float64]


def to_inference_data(
    est: Any, X: Any, y: ArrayLike, *, draws: int = 1000, random_state: int | np.random.Generator | None = 0
) -> Any:
    """Posterior draws, predictions and pointwise log likelihoods for ArviZ.

    Parameters
    ----------
    est : RVR, RVC, SparseBayesRegressor or SparseBayesClassifier
        Fitted.
    X, y : array-like
        Rows with their targets: those of the fit, or others.
    draws : int, default=1000
        Independent draws of all weights from their (Gaussian) posterior, in one chain.
    random_state : int, Generator or None
        Seed.

    Returns
    -------
    arviz.InferenceData, or xarray.DataTree with ArviZ 1
        Groups ``posterior`` (``weight``, with the dimension ``function``, and ``output`` where there are several; zero
        for a function that an output does without; and the output ``f`` without noise), ``posterior_predictive`` and
        ``log_likelihood`` (``y``), ``observed_data``.  The noise and the precisions are those of the largest evidence
        and are not drawn.  Weights are drawn from the whole posterior, also of separable classes, where
        ``predict_proba`` integrates over a part of its covariance.

    Examples
    --------
    >>> import pytest; _ = pytest.importorskip("arviz_base")
    >>> from sparsebayes import RVR
    >>> from sparsebayes.datasets import make_sinc
    >>> from sparsebayes.export import to_inference_data
    >>> X, y = make_sinc(100, noise=0.1, random_state=0)
    >>> found = to_inference_data(RVR(gamma=1 / 4**2).fit(X, y), X, y, draws=200)
    >>> found.posterior_predictive["y"].shape
    (1, 200, 100)
    """
    if not isinstance(est, MODELS):
        raise TypeError(
            f"cannot draw from an object of type {type(est).__name__}: expected a fitted "
            f"{', '.join(cls.__name__ for cls in MODELS)}; of a pipeline, pass its last step and what reaches it"
        )
    check_is_fitted(est)
    if isinstance(draws, bool) or not isinstance(draws, (int, np.integer)) or draws < 1:
        raise ValueError(f"draws={draws!r}: expected a positive integer")
    make = _arviz()
    rng = np.random.default_rng(random_state)
    values = est._values(X)
    weights, offsets = _draw(est, values.shape[1], int(draws), rng)
    outputs = np.einsum("sko,nk->sno", weights, values) + offsets
    if is_classifier(est):
        observed, predicted, log_likelihood = _classes(est, outputs, y, rng)
    else:
        observed, predicted, log_likelihood = _numbers(est, values, outputs, y, rng)
    names = function_names(est)
    labels = list(map(str, vars(est)["classes_"])) if is_classifier(est) else list(range(outputs.shape[2]))
    coords: dict[str, Any] = {"function": names, "row": np.arange(len(values))}
    dims = {"weight": ["function"], "f": ["row"], "y": ["row"]}
    if outputs.shape[2] == 1:
        weights, outputs = weights[:, :, 0], outputs[:, :, 0]
    else:
        coords["output"] = labels
        dims["weight"], dims["f"] = ["function", "output"], ["row", "output"]
        if observed.ndim == 2:
            dims["y"] = ["row", "output"]
    groups = {
        "posterior": {"weight": weights[None], "f": outputs[None]},
        "posterior_predictive": {"y": predicted[None]},
        "log_likelihood": {"y": log_likelihood[None]},
        "observed_data": {"y": observed},
    }
    return make(groups, coords, dims)


def _draw(est: Any, n_functions: int, draws: int, rng: np.random.Generator) -> tuple[Array, Array]:
    """Weights (draws, functions, outputs), zero where an output does without a function, and offsets (outputs,)."""
    parts, offsets = [], []
    for posterior in est._posteriors:
        drawn = draw_weights(posterior.mean, posterior.covariance, draws, rng)
        classes = is_classifier(est)
        count = posterior.n_outputs if classes else 1
        full = np.zeros((draws, n_functions, count))
        full[:, posterior.functions, posterior.outputs if classes else 0] = drawn.T
        parts.append(full)
        offsets += [0.0] * count if classes else [posterior.offset]
    return np.concatenate(parts, axis=2), np.array(offsets)


def _numbers(
    est: Any, values: Array, outputs: Array, y: ArrayLike, rng: np.random.Generator
) -> tuple[Array, Array, Array]:
    targets = est._targets(y, outputs.shape[1])
    predicted, log_likelihood = np.empty_like(outputs), np.empty_like(outputs)
    for k, posterior in enumerate(est._posteriors):
        f, target = outputs[:, :, k], targets[:, k]
        if isinstance(posterior, PoissonPosterior):
            rates = np.exp(f)
            predicted[:, :, k] = rng.poisson(rates)
            log_likelihood[:, :, k] = poisson.logpmf(target, rates)
            continue
        scale = np.sqrt(posterior.noise(values))
        gaussian = np.isinf(posterior.degrees)
        noise = rng.standard_normal(f.shape) if gaussian else rng.standard_t(posterior.degrees, f.shape)
        predicted[:, :, k] = f + scale * noise
        # Student's t of infinite degrees of freedom is the Gaussian.
        log_likelihood[:, :, k] = t.logpdf(target, posterior.degrees, f, scale)
    if est._single:
        return targets[:, 0], predicted[:, :, 0], log_likelihood[:, :, 0]
    return targets, predicted, log_likelihood


def _classes(est: Any, outputs: Array, y: ArrayLike, rng: np.random.Generator) -> tuple[Any, Any, Array]:
    """Labels by their numbers in ``classes_``."""
    labels = np.asarray(y)
    if labels.shape != (outputs.shape[1],) or not np.isin(labels, est.classes_).all():
        raise ValueError(f"y: expected {outputs.shape[1]} labels among {est.classes_.tolist()!r}")
    numbers = np.searchsorted(est.classes_, labels)
    if outputs.shape[2] == 1:
        logs = np.stack([log_expit(-outputs[:, :, 0]), log_expit(outputs[:, :, 0])], axis=2)
    elif len(est._posteriors) == 1:
        logs = log_softmax(outputs, axis=2)
    else:  # one against the rest: logistic, normalised
        logs = log_expit(outputs)
        logs = logs - np.logaddexp.reduce(logs, axis=2, keepdims=True)
    cumulated = np.cumsum(np.exp(logs), axis=2)
    drawn = (rng.random(cumulated.shape[:2])[:, :, None] * cumulated[:, :, -1:] > cumulated).sum(axis=2)
    return numbers, drawn, np.take_along_axis(logs, numbers[None, :, None], axis=2)[:, :, 0]


def _arviz() -> Callable[[dict[str, Any], dict[str, Any], dict[str, Any]], Any]:
    """What puts groups together: ArviZ 0.x, or the base package of ArviZ 1."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # ArviZ 0.x announces its successor at import
        try:
            arviz = import_module("arviz")
        except ImportError:
            arviz = None
        if arviz is not None and int(arviz.__version__.split(".")[0]) == 0:
            return lambda groups, coords, dims: arviz.from_dict(**groups, coords=coords, dims=dims)
        try:
            base = import_module("arviz_base")
        except ImportError:
            raise ImportError("to_inference_data needs ArviZ: pip install 'sparsebayes[arviz]'") from None
    return lambda groups, coords, dims: base.from_dict(groups, coords=coords, dims=dims)
