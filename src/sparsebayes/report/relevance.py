"""``plot_relevance``: which functions matter, and by how much."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .measures import contributions
from .style import BLUE, Display

_SHOWN = 15


@dataclass(repr=False)
class RelevanceDisplay(Display):
    """The largest terms of a model.

    Attributes
    ----------
    names : list of str
        Functions, the largest term first.
    sizes : ndarray
        Standard deviation of each term w φ(x) over the rows.
    uncertainties : ndarray
        The same for one posterior standard deviation of the weight.
    """

    names: list[str]
    sizes: NDArray[np.float64]
    uncertainties: NDArray[np.float64]

    @classmethod
    def from_estimator(
        cls, est: Any, X: Any, *, feature_names: list[str] | None = None, n_shown: int = _SHOWN
    ) -> RelevanceDisplay:
        """Compute what :func:`plot_relevance` draws; same parameters."""
        terms = contributions(est, X, feature_names)[:n_shown]
        names = [f"{w.output}: {w.function}" if w.output else w.function for w, _ in terms]
        sizes = np.array([size for _, size in terms])
        relative = np.array([w.std / abs(w.mean) for w, _ in terms])
        return cls(names, sizes, sizes * relative)

    def _draw(self, ax: Any) -> None:
        places = np.arange(len(self.names))
        ax.barh(places, self.sizes, xerr=self.uncertainties, color=BLUE, alpha=0.7, error_kw={"linewidth": 1})
        ax.set_yticks(places, self.names)
        ax.invert_yaxis()
        ax.set_xlabel("size of the term over the rows (± one standard deviation of its weight)")


def plot_relevance(
    est: Any, X: Any, *, feature_names: list[str] | None = None, n_shown: int = _SHOWN, ax: Any = None
) -> RelevanceDisplay:
    """Plot how much each kept function moves the predictions.

    Parameters
    ----------
    est : estimator
        Fitted.
    X : array-like of shape (n_samples, n_features)
        Rows over which terms vary, usually those of the training.
    feature_names : list of str, optional
        Names of the columns of X.
    n_shown : int
        How many functions to show.
    ax : matplotlib.axes.Axes, optional
        Where to draw; a new figure by default.

    Returns
    -------
    RelevanceDisplay
        With the axes as ``ax_`` and the figure as ``figure_``.
    """
    return RelevanceDisplay.from_estimator(est, X, feature_names=feature_names, n_shown=n_shown).plot(ax)
