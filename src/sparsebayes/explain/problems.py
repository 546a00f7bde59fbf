"""Fitted estimators as weighted Gaussian problems on all candidates of their dictionary."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import log_expit, logsumexp
from sklearn.base import is_classifier
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_array, check_is_fitted

from sparsebayes.basis import Functions
from sparsebayes.basis.arrays import is_elsewhere
from sparsebayes.basis.identity import same_functions
from sparsebayes.design import DenseDesign, Design, LazyDesign, as_design
from sparsebayes.estimators import MODELS
from sparsebayes.estimators.checks import check_class_weights, check_weights
from sparsebayes.estimators.cluster import is_dask
from sparsebayes.estimators.counts import check_counts
from sparsebayes.estimators.dictionary import evaluate_kept
from sparsebayes.estimators.names import name_functions
from sparsebayes.inference.models.bound import bound_curvature
from sparsebayes.inference.solvers.single_effects import Found
from sparsebayes.typing import Array, Index

# Numbers of a dictionary up to which it is held.
_HELD = 1 << 27
# Smallest curvature of a row: one that is saturated says next to nothing, and is not divided by less.
_FLAT = 1e-8


@dataclass(frozen=True)
class TwoClasses:
    """Labels of two classes, 1 and -1, the sample weights, and the outputs of the model (the log-odds of 1)."""

    signs: Array
    weights: Array
    outputs: Array

    def bounded(self, mean: Array, variance: Array | float = 0.0) -> tuple[Array, Array, float]:
        r"""Targets, row weights and constant of Jaakkola and Jordan's bound about outputs of this mean and variance.

        :math:`\log\sigma(\pm\eta)\ge\log\sigma(\xi)-\xi/2+(t-\frac12)\eta-\lambda(\eta^2-\xi^2)` with
        :math:`\lambda=\tanh(\xi/2)/4\xi`, best at :math:`\xi^2=E[\eta^2]`: row weights :math:`2\lambda` and targets
        :math:`(t-\frac12)/2\lambda`.  Where the classes separate, Laplace's curvature :math:`p(1-p)` vanishes and the
        data would say nothing; the bound's falls only as :math:`1/\xi`.
        """
        xi, halves = np.sqrt(np.square(mean) + variance), 0.5 * self.signs
        curvature = bound_curvature(xi)
        constant = log_expit(xi) - 0.5 * xi + 0.5 * curvature * np.square(xi) + 0.5 * np.square(halves) / curvature
        return halves / curvature, self.weights * curvature, float(self.weights @ constant)


@dataclass(frozen=True)
class Posed:
    """The weighted Gaussian problem of one output.

    Attributes
    ----------
    target, weights : ndarray of shape (N,)
        What is explained, and how much each row counts.
    size : float
        Number of observations.
    noise : float or None
        Noise variance where it is known; None where it is to be learned.
    start : float or None
        Noise variance to begin with; None where nothing is known of it.
    places : list of int
        Candidates to begin from.
    effects : Found, optional
        Single effects that were found before.
    classes : TwoClasses, optional
        What is to be bounded by a problem of other targets and weights.
    """

    target: Array
    weights: Array
    size: float
    noise: float | None
    start: float | None
    places: list[int]
    effects: Found | None = None
    classes: TwoClasses | None = None


@dataclass(frozen=True)
class Candidates:
    """All functions that a model could have kept, on its training rows of positive weight.

    Attributes
    ----------
    design : Design
        Their values.
    names : tuple of str
        What they are called.
    kept : tuple of ndarray of int
        Those that each function that it kept is, in the order of ``relevance_``: several where rows are copies.
    values : ndarray
        Those of the kept functions, with the intercept's.
    targets, weights, rows : ndarray
        Of these rows, and which of all they are.
    constant : bool
        Whether a constant is fitted beside them.
    """

    design: Design
    names: tuple[str, ...]
    kept: tuple[Index, ...]
    values: Array
    targets: NDArray[Any]
    weights: Array
    rows: Index
    constant: bool


def opened(model: Any) -> tuple[Any, Callable[[Any], Any], list[str]]:
    """The estimator at the end of a pipeline, what the steps before it do to rows, and the names of its inputs."""
    est = model.steps[-1][1] if isinstance(model, Pipeline) else model
    if not isinstance(est, MODELS):
        raise TypeError(
            f"cannot explain an object of type {type(est).__name__}: expected a fitted "
            f"{', '.join(cls.__name__ for cls in MODELS)}, or a pipeline that ends in one; of a search, pass "
            "best_estimator_; for a matrix and a vector without a model there is single_effects(X, y)"
        )
    check_is_fitted(est)
    before = model[:-1] if isinstance(model, Pipeline) and len(model.steps) > 1 else None
    names = getattr(est, "feature_names_in_", None)
    if before is not None:
        try:
            names = before.get_feature_names_out()
        except (AttributeError, ValueError):
            names = None
    if names is None or len(names) != est.n_features_in_:
        names = [f"x{j}" for j in range(est.n_features_in_)]
    # What a model says of itself does not follow parameters that were set after its fit.
    return est._as_fitted, (lambda X: X) if before is None else before.transform, [str(name) for name in names]


def candidates_of(est: Any, X: Any, y: ArrayLike, sample_weight: ArrayLike | None, inputs: list[str]) -> Candidates:
    """The dictionary of a fitted estimator, bound to its training rows again.

    Functions that the basis does not put on these rows, as a search may have made them, stand after those that it does.
    """
    if is_elsewhere(X) or is_dask(X):
        raise TypeError(
            f"X is of type {type(X).__name__}: inclusion probabilities are computed on the host; pass NumPy"
        )
    X = est._check_new(X)
    given = check_weights(sample_weight, X.shape[0])
    targets = np.asarray(y)
    if targets.ndim == 0 or len(targets) != len(given):
        raise ValueError(
            f"y has {targets.size if targets.ndim == 0 else len(targets)} rows, and X {len(given)}: pass the data that "
            "the model was fitted on"
        )
    weights = given * check_class_weights(est.class_weight, targets, given) if is_classifier(est) else given
    rows = np.flatnonzero(weights > 0.0)
    if len(rows) < len(given):
        X, targets, given, weights = X[rows], targets[rows], given[rows], weights[rows]
    functions = est._bind(X, given, rows)
    if functions is None:
        names, design, kept = inputs, as_design(X), [np.array([m], dtype=np.intp) for m in est.relevance_]
    else:
        functions, numbers, kept = _with_kept(est, functions, functions.rows_among(rows))
        large = X.shape[0] * len(functions) > _HELD
        design = LazyDesign(functions, X) if large else DenseDesign(functions.evaluate(X))
        names = name_functions(functions.specifications(), numbers.tolist(), inputs)
    values = evaluate_kept(est._functions, X, est._linear(), vars(est).get("X_offset_"))
    return Candidates(design, tuple(names), tuple(kept), values, targets, weights, rows, bool(est.fit_intercept))


def _with_kept(est: Any, functions: Functions, rows: Index) -> tuple[Functions, Index, list[Index]]:
    """All candidates with their training rows, those that the model kept among them, and which these are."""
    count = len(est.relevance_)
    if count == 0:
        return functions, rows, []
    own = est._functions.restrict(np.arange(count))
    kept = same_functions(own, functions)
    others = [k for k, found in enumerate(kept) if len(found) == 0]
    for place, k in enumerate(others, start=len(functions)):
        kept[k] = np.array([place], dtype=np.intp)
    if others:
        functions, rows = functions.join(own.restrict(others)), np.append(rows, est._centred_on[others])
    return functions, rows, kept


def problems_of(est: Any, candidates: Candidates) -> list[Posed]:
    """One problem for each target or class."""
    given = candidates.targets
    if is_classifier(est):
        return _classes(est, candidates, given)
    targets = check_array(given, ensure_2d=False, dtype="float64", input_name="y").reshape(len(given), -1)
    if targets.shape[1] != len(est._posteriors):
        raise ValueError(f"y has {targets.shape[1]} target(s); the model was fitted on {len(est._posteriors)}")
    if est.likelihood == "poisson":
        check_counts(targets)
        return _counts(est, candidates, targets)
    noises = np.atleast_1d(est.noise_variance_)
    fixed = est.noise_variance is not None
    # Effects of the fit are on the candidates of the fit: rows that it took for copies are candidates here.
    found = est._effects if candidates.design.shape[1] == vars(est).get("_n_candidates") else None
    effects = found or [None] * len(est._posteriors)
    posed = []
    for k, posterior in enumerate(est._posteriors):
        weights, target = candidates.weights, targets[:, k]
        varies = est.likelihood == "gaussian" and posterior.varying is not None
        known = fixed or varies
        if varies:
            weights = weights * posterior.noise_variance / posterior.noise(candidates.values)
        if est.likelihood != "gaussian":
            weights = weights * relative_precision(est, k, candidates.values, target, candidates.rows)
        noise, places = float(max(noises[k], np.finfo(float).tiny)), _places(candidates, posterior.functions)
        posed.append(
            Posed(target, weights, float(weights.sum()), noise if known else None, noise, places, effects=effects[k])
        )
    return posed


def _places(candidates: Candidates, functions: Index) -> list[int]:
    """Candidates that an output kept, without the intercept."""
    return [int(candidates.kept[k][0]) for k in functions if k < len(candidates.kept)]


def relative_precision(est: Any, k: int, values: Array, target: Array, rows: Index) -> Array:
    """How much each row counts for target k under a robust likelihood, at the model.

    Parameters
    ----------
    est : estimator
        The fitted regressor.
    k : int
        Which target.
    values, target : ndarray of shape (n, functions), (n,)
        The kept functions, and the target, on some of the training rows.
    rows : ndarray of int, shape (n,)
        Which of them, all of positive weight.
    """
    posterior = est._posteriors[k]
    if est.likelihood == "outliers":
        probability = np.asarray(est.outlier_probability_).reshape(-1, len(est._posteriors))
        if len(probability) <= rows.max():
            raise ValueError("y: a robust model knows its outliers by their rows; pass the data that it was fitted on")
        return 1.0 - probability[rows, k]
    squares = np.square(target - posterior.predict(values)) + posterior.spread(values)
    degrees = posterior.degrees
    return (degrees + 1.0) / (degrees + squares / posterior.noise_variance)


def _counts(est: Any, candidates: Candidates, targets: Array) -> list[Posed]:
    r"""Their likelihood to second order about the model's outputs: targets :math:`y+B^{-1}\nabla\log p`, noise one."""
    posed = []
    for t, posterior in zip(targets.T, est._posteriors, strict=True):
        outputs, _ = posterior._log_rate(candidates.values)
        rate, weights, places = np.exp(outputs), candidates.weights, _places(candidates, posterior.functions)
        curvature = np.maximum(rate, _FLAT)
        target = outputs + (t - rate) / curvature
        posed.append(Posed(target, weights * curvature, float(weights.sum()), 1.0, 1.0, places))
    return posed


def _classes(est: Any, candidates: Candidates, labels: NDArray[Any]) -> list[Posed]:
    """One problem for each class against all others.

    Of a softmax, an output may do the work of another's: given the outputs of the other classes, no candidate need be
    there for this one.  So what is explained is the class against the rest, from the model's log-odds of that on.
    """
    unknown = set(np.unique(labels).tolist()) - set(est.classes_.tolist())
    if unknown:
        raise ValueError(
            f"y has labels {sorted(unknown)!r} that the model was not fitted on: {est.classes_.tolist()!r}"
        )
    numbers = np.searchsorted(est.classes_, labels)
    weights = candidates.weights
    outputs = np.hstack([posterior.predict(candidates.values) for posterior in est._posteriors])
    joint = est._posteriors[0].n_outputs > 1
    posed = []
    for k, y in enumerate(outputs.T):
        odds = y - np.asarray(logsumexp(np.delete(outputs, k, axis=1), axis=1)) if joint else y
        signs = np.where(numbers == (1 if outputs.shape[1] == 1 else k), 1.0, -1.0)
        # Functions of one class also tell the others apart.
        places = _places(candidates, np.unique(est._posteriors[0 if joint else k].functions))
        classes = TwoClasses(signs, weights, odds)
        posed.append(Posed(signs, weights, float(weights.sum()), 1.0, 1.0, places, classes=classes))
    return posed
