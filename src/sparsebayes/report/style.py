"""What the plots share: colours, and where to draw."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from sparsebayes.typing import Array

BLUE, RED, GREY = "#2166ac", "#b2182b", "#555555"
CLASS_COLOURS = ("#2166ac", "#b2182b", "#1b7837", "#e08214", "#762a83", "#666666")


def axes_or_new(ax: Any, figsize: tuple[float, float] = (7.0, 4.0)) -> Any:
    """Return the axes given, or those of a new figure."""
    if ax is not None:
        return ax
    try:
        from matplotlib import pyplot
    except ImportError as error:
        raise ImportError('plots need Matplotlib: pip install "sparsebayes[plot]"') from error
    return pyplot.subplots(figsize=figsize, layout="constrained")[1]


class Display(ABC):
    """A plot that has its numbers: ``plot(ax)`` draws them, and sets ``ax_`` and ``figure_``."""

    ax_: Any
    figure_: Any

    def __repr__(self) -> str:
        """Its name: a notebook shows this below the plot, and the numbers would fill pages."""
        return f"<{type(self).__name__}>"

    def plot(self, ax: Any = None) -> Any:
        """Draw.

        Parameters
        ----------
        ax : matplotlib.axes.Axes, optional
            Where to draw; a new figure by default.
        """
        self.ax_ = axes_or_new(ax)
        self.figure_ = self.ax_.figure
        self._draw(self.ax_)
        return self

    @abstractmethod
    def _draw(self, ax: Any) -> None:
        """Draw the numbers on these axes."""


def check_rows(X: ArrayLike, y: ArrayLike, n_inputs: int, name: str) -> tuple[Array, NDArray[Any]]:
    """Inputs of the number of columns that a plot can show, and as many targets."""
    inputs, targets = np.asarray(X, dtype=np.float64), np.asarray(y)
    if inputs.ndim != 2 or inputs.shape[1] != n_inputs or inputs.shape[0] == 0:
        what = "one input" if n_inputs == 1 else f"{n_inputs} inputs"
        raise ValueError(f"X has shape {inputs.shape}; expected (n_samples, {n_inputs}): {name} shows models of {what}")
    if targets.shape != inputs.shape[:1]:
        raise ValueError(f"y has shape {targets.shape}; expected ({inputs.shape[0]},), one target for each row of X")
    return inputs, targets
