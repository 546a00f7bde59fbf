"""``plot_evidence``: the search, move by move."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sparsebayes.estimators.summary import listed

from .style import BLUE, GREY, RED, Display


@dataclass(repr=False)
class EvidenceDisplay(Display):
    """The objective and the number of functions after every record of the search.

    Attributes
    ----------
    objective : ndarray of shape (n_records,)
        After each record.
    n_active : ndarray of int, shape (n_records,)
        Functions in the model.
    starts : ndarray of int, shape (n_records,)
        Which start a record belongs to.
    winner : int
        Start that won.
    """

    objective: NDArray[np.float64]
    n_active: NDArray[np.intp]
    starts: NDArray[np.intp]
    winner: int

    @classmethod
    def from_estimator(cls, est: Any, *, output: int = 0) -> EvidenceDisplay:
        """Compute what :func:`plot_evidence` draws; same parameters."""
        several = isinstance(est.certificate_, list)
        history = est.history_[output] if several else est.history_
        return cls(
            np.array([record.objective for record in history]),
            np.array([record.n_active for record in history], dtype=np.intp),
            np.array([record.start for record in history], dtype=np.intp),
            listed(est.certificate_)[output].start,
        )

    def _draw(self, ax: Any) -> None:
        steps = np.arange(1, len(self.objective) + 1)
        counts = ax.twinx()
        counts.step(steps, self.n_active, where="post", color=RED, linewidth=1, alpha=0.6)
        counts.set_ylabel("functions in the model", color=RED)
        for start in dict.fromkeys(self.starts.tolist()):
            mine = self.starts == start
            won = start == self.winner
            beside = np.concatenate([[False], mine, [False]])
            alone = np.flatnonzero(mine & ~beside[:-2] & ~beside[2:])  # a line of one point is not seen
            ax.plot(
                steps,
                np.where(mine, self.objective, np.nan),  # a start that is gone on with is no line across the others
                color=BLUE if won else GREY,
                linewidth=2.0 if won else 1.2,
                marker="o" if len(alone) else None,
                markevery=alone,
                label=f"start {start}" + (", kept" if won else ""),
            )
        if len(self.objective):
            # The first moves of a start are far below the rest; what matters is near the top.
            top, typical = float(self.objective.max()), float(np.percentile(self.objective, 10))
            ax.set_ylim(typical - 0.1 * (top - typical or 1.0), top + 0.1 * (top - typical or 1.0))
            ax.legend(frameon=False, fontsize="small", loc="lower right")
        ax.set_xlabel("record of the search")
        ax.set_ylabel("objective (nats)")


def plot_evidence(est: Any, *, output: int = 0, ax: Any = None) -> EvidenceDisplay:
    """Plot the objective and the number of functions, move by move and start by start.

    Parameters
    ----------
    est : estimator
        Fitted.
    output : int
        Which of several independent models (targets, or classes one against the rest) to show.
    ax : matplotlib.axes.Axes, optional
        Where to draw; a new figure by default.

    Returns
    -------
    EvidenceDisplay
        With the axes as ``ax_`` and the figure as ``figure_``.
    """
    return EvidenceDisplay.from_estimator(est, output=output).plot(ax)
