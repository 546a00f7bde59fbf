"""``plot_calibration``: whether error bars and probabilities are honest."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import is_classifier

from sparsebayes.estimators.uncertainty import ErrorBars
from sparsebayes.typing import Array

from .measures import coverage_curve, reliability, wilson
from .style import BLUE, GREY, Display

_LEVELS = np.linspace(0.05, 0.95, 19)


@dataclass(repr=False)
class CalibrationDisplay(Display):
    """What was stated against what happened.

    Attributes
    ----------
    stated, observed : ndarray
        Levels of intervals and the share of the rows inside (regression), or probabilities of the predicted class (of
        the second of two) and how often it came true (classification).
    low, high : ndarray
        95 % intervals of ``observed``.
    what : str
        What ``stated`` is.
    """

    stated: Array
    observed: Array
    low: Array
    high: Array
    what: str

    @classmethod
    def from_estimator(cls, est: Any, X: Any, y: ArrayLike) -> CalibrationDisplay:
        """Compute what :func:`plot_calibration` draws; same parameters."""
        if is_classifier(est):
            return cls.from_predictions(y, est.predict_proba(X), est.classes_)
        targets, n = np.asarray(y, dtype=np.float64), len(np.asarray(y))
        if isinstance(est, ErrorBars):
            # Intervals of each level: where errors have heavy tails they are no multiples of one standard deviation.
            ends = [est.predict_interval(X, float(level)) for level in _LEVELS]
            observed = np.array([float(np.mean((low <= targets) & (targets <= high))) for low, high in ends])
        else:
            mean, std = est.predict(X, return_std=True)
            observed = coverage_curve(y, mean, std, _LEVELS)
        return cls(_LEVELS, observed, *wilson(observed * n, n), "level of the error bars")

    @classmethod
    def from_predictions(cls, y: ArrayLike, probabilities: ArrayLike, classes: ArrayLike) -> CalibrationDisplay:
        """The same from class probabilities, (n, K)."""
        y, p, classes = np.asarray(y), np.asarray(probabilities, dtype=np.float64), np.asarray(classes)
        if len(classes) == 2:
            found, what = reliability(p[:, 1], y == classes[1]), f"probability of {classes[1]}"
        else:
            found = reliability(p.max(axis=1), y == classes[np.argmax(p, axis=1)])
            what = "probability of the predicted class"
        return cls(found.stated, found.observed, found.low, found.high, what)

    def _draw(self, ax: Any) -> None:
        ax.plot([0, 1], [0, 1], "--", color=GREY, linewidth=1, label="perfectly honest")
        bars = np.abs(np.vstack([self.observed - self.low, self.high - self.observed]))
        ax.errorbar(
            self.stated, self.observed, yerr=bars, fmt="o-", color=BLUE, markersize=4, linewidth=1, label="model"
        )
        ax.set_xlim(0, 1)
        ax.set_ylim(0, 1)
        ax.set_xlabel(self.what)
        ax.set_ylabel("how often it came true")
        ax.legend(frameon=False, fontsize="small", loc="upper left")


def plot_calibration(est: Any, X: Any, y: ArrayLike, *, ax: Any = None) -> CalibrationDisplay:
    """Plot how often what the model states comes true; use rows that it was not fitted to.

    Parameters
    ----------
    est : estimator
        Fitted, of one target.
    X : array-like of shape (n_samples, n_features)
        Inputs.
    y : array-like of shape (n_samples,)
        Targets or labels.
    ax : matplotlib.axes.Axes, optional
        Where to draw; a new figure by default.

    Returns
    -------
    CalibrationDisplay
        With the axes as ``ax_`` and the figure as ``figure_``.
    """
    return CalibrationDisplay.from_estimator(est, X, y).plot(ax)
