"""How good a model is on given rows: errors with intervals, calibration, and what each input and function adds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import ndtr, ndtri
from sklearn.base import is_classifier

from sparsebayes.estimators.summary import Weight, weights
from sparsebayes.likelihood import ROBUST
from sparsebayes.typing import Array

# Half-width of a central 95 % interval of a Gaussian, in standard deviations.
TWO_SIDED_95 = float(ndtri(0.975))
_RESAMPLES = 2000
_BINS = 10
_SMALLEST = 1e-15


@dataclass(frozen=True)
class RegressionTest:
    """Errors of a regression.

    Attributes
    ----------
    n : int
        Rows.
    rmse, low, high : float
        Root of the mean square error, and its 95 % bootstrap interval.
    r2 : float
        Share of the variance explained; NaN for constant targets.
    coverage : float
        Share of the rows inside their 95 % error bars.
    log_density : float
        Mean log density of the targets.
    """

    n: int
    rmse: float
    low: float
    high: float
    r2: float
    coverage: float
    log_density: float


@dataclass(frozen=True)
class ClassificationTest:
    """Errors of a classification.

    Attributes
    ----------
    n : int
        Rows.
    accuracy, low, high : float
        Share of the rows that were right, and its 95 % interval (Wilson's).
    log_loss : float
        Mean of minus the log probability of the true class.
    baseline : float
        Accuracy of always naming the most frequent class.
    """

    n: int
    accuracy: float
    low: float
    high: float
    log_loss: float
    baseline: float


def regression_test(y: ArrayLike, mean: ArrayLike, std: ArrayLike, *, seed: int = 0) -> RegressionTest:
    """Compare predictions with observations.

    Parameters
    ----------
    y : array-like of shape (n,)
        Observations.
    mean, std : array-like of shape (n,)
        Predictions for them.
    seed : int
        Of the bootstrap.
    """
    y, mean, std = (np.asarray(a, dtype=np.float64) for a in (y, mean, std))
    squares = (y - mean) ** 2
    drawn = np.random.default_rng(seed).integers(len(y), size=(_RESAMPLES, len(y)))
    low, high = np.percentile(np.sqrt(squares[drawn].mean(axis=1)), [2.5, 97.5])
    variance = float(np.var(y))
    density = -0.5 * (np.log(2.0 * np.pi * std**2) + squares / std**2)
    return RegressionTest(
        n=len(y),
        rmse=float(np.sqrt(squares.mean())),
        low=float(low),
        high=float(high),
        r2=1.0 - float(squares.mean()) / variance if variance > 0.0 else float("nan"),
        coverage=float(np.mean(np.abs(y - mean) <= TWO_SIDED_95 * std)),
        log_density=float(density.mean()),
    )


def classification_test(y: ArrayLike, probabilities: ArrayLike, classes: ArrayLike) -> ClassificationTest:
    """Compare class probabilities, (n, K), with labels; a label that is no class counts as wrong."""
    labels, p, known = np.asarray(y), np.asarray(probabilities, dtype=np.float64), np.asarray(classes)
    of_truth = np.sum(np.where(labels[:, None] == known[None, :], p, 0.0), axis=1)
    right = known[np.argmax(p, axis=1)] == labels
    low, high = wilson(float(right.sum()), len(labels))
    return ClassificationTest(
        n=len(labels),
        accuracy=float(right.mean()),
        low=float(low),
        high=float(high),
        log_loss=float(-np.log(np.maximum(of_truth, _SMALLEST)).mean()),
        baseline=float(np.unique(labels, return_counts=True)[1].max() / len(labels)),
    )


def judge(est: Any, X: Any, y: ArrayLike) -> RegressionTest | ClassificationTest:
    """Test a fitted estimator of one target on given rows."""
    if is_classifier(est):
        return classification_test(y, est.predict_proba(X), est.classes_)
    mean, std = est.predict(X, return_std=True)
    return regression_test(y, mean, std)


def figure(value: float) -> str:
    """A number with three digits for people: 42,600 rather than 4.26e+04."""
    rounded = float(f"{value:.3g}")
    return f"{rounded:,.10g}" if 1e-3 <= abs(rounded) < 1e9 else f"{rounded:.3g}"


def wilson(hits: ArrayLike, n: ArrayLike) -> tuple[Array, Array]:
    """95 % interval of a share, by Wilson's formula."""
    hits, n = np.asarray(hits, dtype=np.float64), np.asarray(n, dtype=np.float64)
    z2 = TWO_SIDED_95**2
    centre = (hits + z2 / 2.0) / (n + z2)
    half = TWO_SIDED_95 / (n + z2) * np.sqrt(hits * (1.0 - hits / n) + z2 / 4.0)
    return np.maximum(centre - half, 0.0), np.minimum(centre + half, 1.0)


def interval(est: Any, X: Any) -> tuple[Array, Array]:
    """Ends of the central 95 % interval of every row; those of counts are none below zero."""
    if hasattr(est, "predict_interval"):
        return est.predict_interval(X)
    mean, std = est.predict(X, return_std=True)
    return mean - TWO_SIDED_95 * std, mean + TWO_SIDED_95 * std


def coverage_curve(y: ArrayLike, mean: ArrayLike, std: ArrayLike, levels: ArrayLike) -> Array:
    """Share of the observations inside their central intervals of these levels; equal to the levels if calibrated."""
    y, mean, std = (np.asarray(a, dtype=np.float64) for a in (y, mean, std))
    # An observation is inside the interval of level p when |z| <= z_p, that is, when 2 Φ(|z|) - 1 <= p.
    depth = 2.0 * ndtr(np.abs(y - mean) / std) - 1.0
    return np.mean(depth[:, None] <= np.asarray(levels)[None, :], axis=0)


@dataclass(frozen=True)
class Reliability:
    """Stated probabilities against what happened, in bins: mean probability, share of hits, its interval, rows."""

    stated: Array
    observed: Array
    low: Array
    high: Array
    n: NDArray[np.intp]


def reliability(stated: ArrayLike, happened: ArrayLike, bins: int = _BINS) -> Reliability:
    """Compare probabilities with what happened, in bins of equal width; empty bins are left out."""
    p, hit = np.asarray(stated, dtype=np.float64), np.asarray(happened, dtype=np.float64)
    place = np.minimum((p * bins).astype(np.intp), bins - 1)
    n = np.bincount(place, minlength=bins)
    used = n > 0
    hits = np.bincount(place, weights=hit, minlength=bins)[used]
    low, high = wilson(hits, n[used])
    return Reliability(
        np.bincount(place, weights=p, minlength=bins)[used] / n[used], hits / n[used], low, high, n[used]
    )


def importances(
    est: Any, X: Array, y: ArrayLike, groups: Sequence[Sequence[int]], *, repeats: int = 5, seed: int = 0
) -> Array:
    """How much worse predictions become when the inputs of a group are shuffled together among the rows.

    Parameters
    ----------
    est : estimator
        Fitted, of one target.
    X : ndarray of shape (n, d)
        Rows, best of all rows that it was not fitted to.
    y : array-like of shape (n,)
        Their targets.
    groups : sequence of sequences of int
        Columns that belong together, such as the indicators of one category.
    repeats, seed : int
        Shuffles, and their seed.

    Returns
    -------
    ndarray of shape (len(groups), repeats)
        Rise of the RMSE, of the mean absolute error where outliers are allowed for, or of the log loss.
    """
    rng = np.random.default_rng(seed)
    base = _error(est, X, y)
    rises = np.empty((len(groups), repeats))
    for k, group in enumerate(groups):
        for r in range(repeats):
            shuffled = X.copy()
            shuffled[:, list(group)] = X[rng.permutation(len(X))][:, list(group)]
            rises[k, r] = _error(est, shuffled, y) - base
    return rises


def _error(est: Any, X: Array, y: ArrayLike) -> float:
    if is_classifier(est):
        return classification_test(y, est.predict_proba(X), est.classes_).log_loss
    errors = np.asarray(y, dtype=np.float64) - est.predict(X)
    return float(np.mean(np.abs(errors)) if is_robust(est) else np.sqrt(np.mean(errors**2)))


def is_robust(est: Any) -> bool:
    """Whether a model allows for outliers: squares of errors would be those of rows that it is not to follow."""
    return getattr(est, "likelihood", None) in ROBUST


def contributions(
    est: Any, X: Any, features: list[str] | None = None, rows: Sequence[int] | None = None
) -> list[tuple[Weight, float]]:
    """Every kept weight but the intercepts, with how much its term varies over the rows; the largest first.

    The size of a term is the standard deviation of w φ(x) over the rows, in units of the target (or of the log odds).
    """
    spread = np.std(est._values(X), axis=0)
    kept = [w for w in weights(est, features, rows) if w.function != "intercept"]
    terms = [(w, float(abs(w.mean) * spread[w.place])) for w in kept]
    return sorted(terms, key=lambda term: -term[1])
