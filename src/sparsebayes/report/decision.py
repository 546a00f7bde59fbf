"""``plot_decision``: a classification on two inputs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import is_classifier

from sparsebayes.typing import Array

from .style import CLASS_COLOURS, Display, check_rows

_GRID = 120
_MARGIN = 0.05


@dataclass(repr=False)
class DecisionDisplay(Display):
    """Class probabilities over two inputs, data, and relevance vectors.

    Attributes
    ----------
    X, y : ndarray of shape (n_samples, 2), (n_samples,)
        Data.
    across, up : ndarray of shape (n_grid,)
        Grid along the two inputs.
    probabilities : ndarray of shape (n_grid, n_grid, n_classes)
        On the grid, the second input first.
    classes : ndarray
        Labels.
    vectors : ndarray of shape (n_kept, 2)
        Relevance vectors; empty for models without centres.
    """

    X: Array
    y: NDArray[Any]
    across: Array
    up: Array
    probabilities: Array
    classes: NDArray[Any]
    vectors: Array

    @classmethod
    def from_estimator(cls, est: Any, X: ArrayLike, y: ArrayLike, *, n_grid: int = _GRID) -> DecisionDisplay:
        """Compute what :func:`plot_decision` draws; same parameters."""
        X, y = check_rows(X, y, 2, "plot_decision")
        if not is_classifier(est):
            raise TypeError(
                f"plot_decision shows classifiers, and {type(est).__name__} is none; plot_fit shows regressions"
            )
        low, high = X.min(axis=0), X.max(axis=0)
        room = np.where(high > low, _MARGIN * (high - low), 1.0)
        across, up = (np.linspace(low[k] - room[k], high[k] + room[k], n_grid) for k in range(2))
        grid = np.stack(np.meshgrid(across, up), axis=-1).reshape(-1, 2)
        probabilities = est.predict_proba(grid).reshape(n_grid, n_grid, -1)
        centres = np.asarray(getattr(est, "relevance_vectors_", np.empty((0, 2))), dtype=np.float64)
        return cls(X, y, across, up, probabilities, est.classes_, centres[np.isfinite(centres).all(axis=1)])

    def _draw(self, ax: Any) -> None:
        from matplotlib.colors import to_rgb

        colours = [CLASS_COLOURS[k % len(CLASS_COLOURS)] for k in range(len(self.classes))]
        shades = self.probabilities @ np.array([to_rgb(colour) for colour in colours])
        extent = (self.across[0], self.across[-1], self.up[0], self.up[-1])
        ax.imshow(0.65 + 0.35 * shades, extent=extent, origin="lower", aspect="auto", interpolation="bilinear")
        if len(self.classes) == 2:
            # Where the two classes are equally likely, and where one is three times as likely.
            ax.contour(
                self.across,
                self.up,
                self.probabilities[:, :, 1],
                levels=[0.25, 0.5, 0.75],
                colors="black",
                linewidths=[0.7, 1.5, 0.7],
                linestyles=["dotted", "solid", "dotted"],
            )
        for k, label in enumerate(self.classes):
            mine = self.X[self.y == label]
            ax.plot(mine[:, 0], mine[:, 1], ".", color=colours[k], markersize=4, label=str(label))
        if len(self.vectors):
            ax.plot(
                *self.vectors.T,
                "o",
                markerfacecolor="none",
                markeredgecolor="black",
                markeredgewidth=1.5,
                markersize=10,
                label=f"relevance vectors ({len(self.vectors)})",
            )
        ax.set_xlabel("$x_1$")
        ax.set_ylabel("$x_2$")
        ax.legend(frameon=True, fontsize="small")


def plot_decision(est: Any, X: ArrayLike, y: ArrayLike, *, ax: Any = None) -> DecisionDisplay:
    """Plot a classification on two inputs: probabilities, the boundary, data, and relevance vectors.

    Parameters
    ----------
    est : estimator
        A fitted classifier of two inputs.
    X : array-like of shape (n_samples, 2)
        Inputs, usually those of the training.
    y : array-like of shape (n_samples,)
        Labels.
    ax : matplotlib.axes.Axes, optional
        Where to draw; a new figure by default.

    Returns
    -------
    DecisionDisplay
        With the axes as ``ax_`` and the figure as ``figure_``.
    """
    return DecisionDisplay.from_estimator(est, X, y).plot(ax)
