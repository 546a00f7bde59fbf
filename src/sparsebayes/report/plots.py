"""Plots of fitted models, with Matplotlib and an axes argument everywhere."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

Array = NDArray[np.float64]

_GRID = 500
_MARGIN = 0.02
# Half-width of a central 95 % interval of a Gaussian, in standard deviations.
_TWO_SIDED_95 = 1.959963984540054

_BLUE, _RED, _GREY = "#2166ac", "#b2182b", "#555555"


def plot_fit(
    est: Any,
    X: ArrayLike,
    y: ArrayLike,
    *,
    ax: Any = None,
    truth: Callable[[Array], ArrayLike] | None = None,
) -> Any:
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
    ax : matplotlib.axes.Axes
    """
    inputs, targets = _check(X, y)
    ax = _new_axes() if ax is None else ax
    low, high = float(inputs.min()), float(inputs.max())
    room = _MARGIN * (high - low) or 1.0
    grid = np.linspace(low - room, high + room, _GRID)
    mean, std = est.predict(grid[:, None], return_std=True)
    ax.fill_between(
        grid,
        mean - _TWO_SIDED_95 * std,
        mean + _TWO_SIDED_95 * std,
        color=_BLUE,
        alpha=0.15,
        linewidth=0,
        label="95 % of new observations",
    )
    ax.plot(inputs, targets, ".", color=_GREY, markersize=4, label="data")
    if truth is not None:
        values = np.asarray(truth(grid[:, None]), dtype=np.float64).reshape(-1)
        ax.plot(grid, values, "--", color="black", linewidth=1, label="true function")
    ax.plot(grid, mean, color=_BLUE, linewidth=1.8, label="predictive mean")
    places = _relevance(est, inputs, targets)
    if len(places):
        ax.plot(
            places[:, 0],
            places[:, 1],
            "o",
            markerfacecolor="none",
            markeredgecolor=_RED,
            markeredgewidth=1.5,
            markersize=10,
            label=f"relevance vectors ({len(places)})",
        )
    ax.set_xlim(grid[0], grid[-1])
    ax.set_xlabel("x")
    ax.set_ylabel("y")
    ax.legend(frameon=False, fontsize="small")
    return ax


def _check(X: ArrayLike, y: ArrayLike) -> tuple[Array, Array]:
    inputs, targets = np.asarray(X, dtype=np.float64), np.asarray(y, dtype=np.float64)
    if inputs.ndim != 2 or inputs.shape[1] != 1 or inputs.shape[0] == 0:
        raise ValueError(f"X has shape {inputs.shape}; expected (n_samples, 1): plot_fit shows models of one input")
    if targets.shape != inputs.shape[:1]:
        raise ValueError(f"y has shape {targets.shape}; expected ({inputs.shape[0]},), one target for each row of X")
    return inputs[:, 0], targets


def _new_axes() -> Any:
    try:
        from matplotlib import pyplot
    except ImportError as error:
        raise ImportError('plots need Matplotlib: pip install "sparsebayes[plot]"') from error
    return pyplot.subplots(figsize=(7, 4), layout="constrained")[1]


def _relevance(est: Any, inputs: Array, targets: Array) -> Array:
    """Where to mark the relevance vectors: on their data points, or on the mean where a centre is no data point."""
    centres = np.asarray(getattr(est, "relevance_vectors_", np.empty((0, 1))), dtype=np.float64).reshape(-1)
    centres = centres[np.isfinite(centres)]
    if len(centres) == 0:
        return np.empty((0, 2))
    order = np.argsort(inputs, kind="stable")
    first = order[np.minimum(np.searchsorted(inputs, centres, sorter=order), len(inputs) - 1)]
    heights = np.where(inputs[first] == centres, targets[first], est.predict(centres[:, None]))
    return np.column_stack([centres, heights])
