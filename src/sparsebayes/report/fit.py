"""``plot_fit``: a regression on one input."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import is_classifier

from sparsebayes.typing import Array

from .measures import TWO_SIDED_95
from .style import BLUE, GREY, RED, Display, check_rows

_GRID = 500
_MARGIN = 0.02


@dataclass(repr=False)
class FitDisplay(Display):
    """Data, predictive mean with a 95 % band of new observations, and relevance vectors.

    Attributes
    ----------
    x, y : ndarray of shape (n_samples,)
        Data.
    grid, mean, std : ndarray of shape (n_grid,)
        Predictions along the input.
    vectors : ndarray of shape (n_kept, 2)
        Where the relevance vectors are marked.
    truth : ndarray of shape (n_grid,), optional
        The true function.
    """

    x: Array
    y: Array
    grid: Array
    mean: Array
    std: Array
    vectors: Array
    truth: Array | None = None

    @classmethod
    def from_estimator(
        cls,
        est: Any,
        X: ArrayLike,
        y: ArrayLike,
        *,
        truth: Callable[[Array], ArrayLike] | None = None,
        n_grid: int = _GRID,
    ) -> FitDisplay:
        """Compute what :func:`plot_fit` draws; same parameters."""
        X, y = check_rows(X, y, 1, "plot_fit")
        if is_classifier(est):
            raise TypeError(
                f"plot_fit shows regressions, and {type(est).__name__} is none; plot_decision shows classifiers"
            )
        x, y = X[:, 0], np.asarray(y, dtype=np.float64)
        low, high = float(x.min()), float(x.max())
        room = _MARGIN * (high - low) or 1.0
        grid = np.linspace(low - room, high + room, n_grid)
        mean, std = est.predict(grid[:, None], return_std=True)
        true = None if truth is None else np.asarray(truth(grid[:, None]), dtype=np.float64).reshape(-1)
        return cls(x, y, grid, mean, std, _vectors(est, x, y), true)

    def _draw(self, ax: Any) -> None:
        half = TWO_SIDED_95 * self.std
        ax.fill_between(
            self.grid,
            self.mean - half,
            self.mean + half,
            color=BLUE,
            alpha=0.15,
            linewidth=0,
            label="95 % of new observations",
        )
        ax.plot(self.x, self.y, ".", color=GREY, markersize=4, label="data")
        if self.truth is not None:
            ax.plot(self.grid, self.truth, "--", color="black", linewidth=1, label="true function")
        ax.plot(self.grid, self.mean, color=BLUE, linewidth=1.8, label="predictive mean")
        if len(self.vectors):
            ax.plot(
                self.vectors[:, 0],
                self.vectors[:, 1],
                "o",
                markerfacecolor="none",
                markeredgecolor=RED,
                markeredgewidth=1.5,
                markersize=10,
                label=f"relevance vectors ({len(self.vectors)})",
            )
        ax.set_xlim(self.grid[0], self.grid[-1])
        ax.set_xlabel("x")
        ax.set_ylabel("y")
        ax.legend(frameon=False, fontsize="small")


def plot_fit(
    est: Any,
    X: ArrayLike,
    y: ArrayLike,
    *,
    ax: Any = None,
    truth: Callable[[Array], ArrayLike] | None = None,
) -> FitDisplay:
    """Plot a regression on one input: data, mean, 95 % band of new observations, and relevance vectors.

    Parameters
    ----------
    est : estimator
        A fitted regressor of one input and one target.
    X : array-like of shape (n_samples, 1)
        Inputs, usually those of the training.
    y : array-like of shape (n_samples,)
        Targets.
    ax : matplotlib.axes.Axes, optional
        Where to draw; a new figure by default.
    truth : callable, optional
        The true function, if it is known; called with an (n, 1) array of inputs.

    Returns
    -------
    FitDisplay
        With the axes as ``ax_`` and the figure as ``figure_``.
    """
    return FitDisplay.from_estimator(est, X, y, truth=truth).plot(ax)


def _vectors(est: Any, x: Array, y: Array) -> Array:
    """Where to mark the relevance vectors: on their data points, or on the mean where a centre is no data point."""
    centres = np.asarray(getattr(est, "relevance_vectors_", np.empty((0, 1))), dtype=np.float64).reshape(-1)
    centres = centres[np.isfinite(centres)]
    if len(centres) == 0:
        return np.empty((0, 2))
    order = np.argsort(x, kind="stable")
    first = order[np.minimum(np.searchsorted(x, centres, sorter=order), len(x) - 1)]
    heights = np.where(x[first] == centres, y[first], est.predict(centres[:, None]))
    return np.column_stack([centres, heights])
