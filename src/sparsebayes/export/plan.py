"""A fitted model reduced to what every language can compute: functions, weights, quadratic forms, and a head.

Each output k of any model is m_k = w_kᵀφ + c_k with the variance v_k = φᵀ S_k φ; the head turns these into means and
standard deviations, or into class probabilities.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import Enum
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import is_classifier
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import MaxAbsScaler, MinMaxScaler, StandardScaler
from sklearn.utils.validation import check_is_fitted

from sparsebayes.basis import Bias, Functions, Linear
from sparsebayes.estimators import EXPORTED, ARDRegression
from sparsebayes.estimators.uncertainty import ErrorBars
from sparsebayes.posterior import ClassPosterior, GaussianPosterior, PoissonPosterior

from .columns import Column
from .formulas import Block, blocks

Array = NDArray[np.float64]

_SCALERS = (StandardScaler, MinMaxScaler, MaxAbsScaler)


class Head(Enum):
    """What the outputs m_k and their variances v_k mean."""

    GAUSSIAN = "mean m_k and standard deviation sqrt(noise_k + v_k) of a new observation"
    LOGISTIC = "probability of the second class: the logistic of the moderated output"
    SOFTMAX = "probabilities of the classes: the softmax of the moderated outputs"
    ONE_AGAINST_REST = "probabilities of the classes: the logistics of the moderated outputs, normalised"


@dataclass(frozen=True)
class Plan:
    """All that a prediction needs.

    Attributes
    ----------
    names : list of str
        Inputs in their order.
    centre, scale : ndarray of shape (d,)
        The functions take (x - centre) / scale.
    blocks : list of Block
        Closed forms of the F kept functions.
    weights, offsets : ndarray of shape (K, F), (K,)
        Of the outputs.
    covariances : ndarray of shape (P, F, F)
        Symmetric matrices whose quadratic forms are the variances of the outputs; under a softmax, of the differences
        of every two outputs, in the order of :func:`pair_table`.  Where the noise varies, those of its logarithms
        follow.
    noise : ndarray of shape (K,)
        What the noise adds to the squares of the standard deviations; zero in classification, and where it varies.
        It is multiplied by the square of ``noise_scale_`` and the covariances by that of ``spread_scale_``, so that the
        standard deviations are those of ``predict``.
    head : Head
        What the outputs mean.
    classes : ndarray or None
        Labels.
    single : bool
        Whether the targets were one vector.
    columns : tuple of Column or None
        Columns of a table that the inputs are made from; None where the inputs are numbers as they come.
    log_noise : tuple of ndarray of shape (K, F), (K,), or None
        Where the noise varies, weights u_k and offsets o_k of its logarithm: it adds exp(u_kᵀφ + o_k + ½ v_{K+k}) to
        the square of a standard deviation, as :mod:`sparsebayes.posterior.varying` does.
    """

    names: list[str]
    centre: Array
    scale: Array
    blocks: list[Block]
    weights: Array
    offsets: Array
    covariances: Array
    noise: Array
    head: Head
    classes: NDArray[Any] | None
    single: bool
    columns: tuple[Column, ...] | None = None
    log_noise: tuple[Array, Array] | None = None

    @property
    def n_functions(self) -> int:
        """Number of kept functions, the intercept included."""
        return self.weights.shape[1]

    @property
    def n_outputs(self) -> int:
        """Number of outputs: targets, or classes (one for two)."""
        return self.weights.shape[0]

    @property
    def standardised(self) -> bool:
        """Whether the inputs are shifted or scaled at all."""
        return bool(np.any(self.centre != 0.0) or np.any(self.scale != 1.0))

    def after(self, centre: Array, scale: Array, names: list[str] | None = None) -> Plan:
        """Return the plan that first takes its inputs to (x - centre) / scale."""
        # ((x - a)/s - b)/t = (x - (a + s b))/(s t)
        plan = replace(self, centre=centre + scale * self.centre, scale=scale * self.scale)
        return plan if names is None else replace(plan, names=names)

    def of_columns(self, columns: tuple[Column, ...]) -> Plan:
        """Return the plan that makes its inputs from the columns of a table."""
        names = [feature for column in columns for feature in column.features]
        if len(names) != len(self.names):
            raise ValueError(f"the columns make {len(names)} inputs, and the model takes {len(self.names)}")
        return replace(self, names=names, columns=columns)


def pair_table(n_outputs: int) -> NDArray[np.intp]:
    """Where among ``covariances`` the variance of the difference of outputs i and j is; one past the end for i = j."""
    table = np.full((n_outputs, n_outputs), n_outputs * (n_outputs - 1) // 2, dtype=np.intp)
    first, second = np.triu_indices(n_outputs, 1)
    table[first, second] = table[second, first] = np.arange(len(first))
    return table


def make_plan(model: Any) -> Plan:
    """Reduce a fitted estimator, a pipeline of scalers that ends in one, or a model of tables.

    Parameters
    ----------
    model : estimator, Pipeline, TableModel or Plan
        One of this library's; before it a pipeline may have a StandardScaler, a MinMaxScaler or a MaxAbsScaler.  A plan
        is returned as it is.

    Raises
    ------
    TypeError
        If the model is not of this kind, or one of its functions has no closed form.
    """
    if isinstance(model, Plan):
        return model
    if hasattr(model, "to_plan"):  # a model of tables, which this layer does not know
        return model.to_plan()
    if not isinstance(model, Pipeline):
        return _plan(model)
    check_is_fitted(model)
    plan = _plan(model.steps[-1][1])
    scalers = [step for _, step in model.steps[:-1] if step is not None and step != "passthrough"]
    for scaler in reversed(scalers):
        plan = plan.after(*_affine(scaler))
    return replace(plan, names=_names(model, len(plan.names)))


def _affine(scaler: Any) -> tuple[Array, Array]:
    """Centre and scale of a scaler."""
    d = getattr(scaler, "n_features_in_", 0)
    if not isinstance(scaler, _SCALERS):
        raise TypeError(
            f"cannot export a pipeline with a step {type(scaler).__name__}: only "
            f"{', '.join(cls.__name__ for cls in _SCALERS)} may come before the model; export the model alone, "
            "and do that step where the model is used"
        )
    if isinstance(scaler, StandardScaler):
        centre = np.zeros(d) if scaler.mean_ is None or not scaler.with_mean else scaler.mean_
        return np.asarray(centre), np.ones(d) if scaler.scale_ is None else np.asarray(scaler.scale_)
    if isinstance(scaler, MaxAbsScaler):
        return np.zeros(d), np.asarray(scaler.scale_)
    if scaler.clip:
        raise TypeError("cannot export a MinMaxScaler(clip=True): clipping is no shift and scale; fit with clip=False")
    return -scaler.min_ / scaler.scale_, 1.0 / scaler.scale_


def _names(model: Any, d: int) -> list[str]:
    names = getattr(model, "feature_names_in_", None)
    return [f"x{j}" for j in range(d)] if names is None else [str(name) for name in names]


def _plan(est: Any) -> Plan:
    if not isinstance(est, EXPORTED):
        raise TypeError(
            f"cannot export an object of type {type(est).__name__}: expected a fitted "
            f"{', '.join(cls.__name__ for cls in EXPORTED)}, or a pipeline of scalers that ends in one; "
            "of a search, export best_estimator_"
        )
    check_is_fitted(est)
    d = est.n_features_in_
    functions, posteriors = _ard_parts(est) if isinstance(est, ARDRegression) else (est._functions, est._posteriors)
    # A model that kept nothing still needs a function to be written down: a constant of weight zero.
    functions = Bias().bind(np.zeros((1, d))) if functions is None else functions
    outputs = (_class_outputs if is_classifier(est) else _gaussian_outputs)(posteriors, len(functions))
    if isinstance(est, ErrorBars):
        outputs = _widened(outputs, np.atleast_1d(est.noise_scale_) ** 2, np.atleast_1d(est.spread_scale_) ** 2)
    return Plan(
        names=_names(est, d),
        centre=_centre(est),
        scale=np.ones(d),
        blocks=blocks(functions),
        classes=getattr(est, "classes_", None),
        single=getattr(est, "_single", True),
        **outputs,
    )


def _centre(est: Any) -> Array:
    """What is taken off the columns that are functions; nothing where the functions are others."""
    centre, offset = np.zeros(est.n_features_in_), vars(est).get("X_offset_")
    if offset is not None:
        centre[est.relevance_] = offset[est.relevance_]
    return centre


def _ard_parts(est: ARDRegression) -> tuple[Functions | None, list[GaussianPosterior]]:
    """Functions of the centred columns, and their posterior."""
    kept, d = est.relevance_, est.n_features_in_
    posterior = GaussianPosterior(
        functions=np.arange(len(kept)),
        mean=est.coef_[kept],
        covariance=est.sigma_[np.ix_(kept, kept)],
        noise_variance=1.0 / est.alpha_,
        offset=est.intercept_ + float(est.X_offset_ @ est.coef_),
    )
    return Linear().bind(np.zeros((1, d))).restrict(kept) if len(kept) else None, [posterior]


def _spread(matrix: Array, functions: NDArray[np.intp], n_functions: int) -> Array:
    """Sum a matrix over weights into one over functions; a function may have a weight for each of several outputs."""
    full = np.zeros((n_functions, n_functions))
    np.add.at(full, np.ix_(functions, functions), matrix)
    return full


def _gaussian_outputs(posteriors: list[Any], n_functions: int) -> dict[str, Any]:
    _check_posteriors(posteriors, GaussianPosterior)
    weights = np.zeros((len(posteriors), n_functions))
    for k, posterior in enumerate(posteriors):
        weights[k, posterior.functions] = posterior.mean
    outputs = {
        "weights": weights,
        "offsets": np.array([p.offset for p in posteriors]),
        "covariances": np.array([_spread(p.covariance, p.functions, n_functions) for p in posteriors]),
        "head": Head.GAUSSIAN,
    }
    if any(posterior.varying is not None for posterior in posteriors):
        return outputs | _varying(posteriors, outputs["covariances"])
    return outputs | {"noise": np.array([p.noise_square(np.zeros((1, n_functions))) for p in posteriors])}


def _varying(posteriors: list[GaussianPosterior], covariances: Array) -> dict[str, Any]:
    """The logarithm of the noise of every target, constant where it does not vary."""
    n_targets, n_functions = len(posteriors), covariances.shape[-1]
    weights, forms = np.zeros((n_targets, n_functions)), np.zeros_like(covariances)
    offsets = np.log([posterior.noise_variance for posterior in posteriors])
    for k, noise in enumerate(posterior.varying for posterior in posteriors):
        if noise is not None:
            weights[k, noise.functions], offsets[k] = noise.mean, noise.offset
            forms[k] = _spread(noise.covariance, noise.functions, n_functions)
    return {
        "covariances": np.concatenate([covariances, forms]),
        "noise": np.zeros(n_targets),
        "log_noise": (weights, offsets),
    }


def _widened(outputs: dict[str, Any], noise: Array, spread: Array) -> dict[str, Any]:
    """Variances of the noise and of the outputs times a factor for each target."""
    covariances = outputs["covariances"].copy()
    covariances[: len(spread)] *= spread[:, None, None]  # those of log noise, which follow, are no variances
    widened = outputs | {"covariances": covariances, "noise": noise * outputs["noise"]}
    if "log_noise" in outputs:
        weights, offsets = outputs["log_noise"]
        widened["log_noise"] = weights, offsets + np.log(noise)
    return widened


def _class_outputs(posteriors: list[Any], n_functions: int) -> dict[str, Any]:
    _check_posteriors(posteriors, ClassPosterior)
    weights, covariances = [], []
    for posterior in posteriors:
        w = np.zeros((posterior.n_outputs, n_functions))
        w[posterior.outputs, posterior.functions] = posterior.mean
        weights.append(w)
        for difference in posterior.differences:
            factor = difference[posterior.outputs]
            apart = posterior.temper * posterior.covariance * np.outer(factor, factor)
            covariances.append(_spread(apart, posterior.functions, n_functions))
    n_outputs = sum(map(len, weights))
    several = Head.SOFTMAX if len(posteriors) == 1 else Head.ONE_AGAINST_REST
    return {
        "weights": np.vstack(weights),
        "offsets": np.zeros(n_outputs),
        "covariances": np.array(covariances),
        "noise": np.zeros(n_outputs),
        "head": Head.LOGISTIC if n_outputs == 1 else several,
    }


def _check_posteriors(posteriors: list[Any], expected: type) -> None:
    for posterior in posteriors:
        if type(posterior) is not expected:
            what = "of counts (likelihood='poisson')" if isinstance(posterior, PoissonPosterior) else "of this kind"
            raise TypeError(f"a model {what} has no export; save it with sparsebayes.save, and predict with that file")
