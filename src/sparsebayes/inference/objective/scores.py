"""What every function of a dictionary would gain by its best move."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sparsebayes.inference.models.evidence import Array, Statistics, best_moves
from sparsebayes.inference.models.interface import Active
from sparsebayes.inference.objective.hyperpriors import FLAT, Hyperpriors


@dataclass(frozen=True)
class Scores:
    """For every function: its precision, the best one, and what moving there would gain."""

    alpha: Array
    best: Array
    gain: Array

    @property
    def in_model(self) -> NDArray[np.bool_]:
        """Functions with a finite precision."""
        return np.isfinite(self.alpha)

    @property
    def structural(self) -> NDArray[np.bool_]:
        """Functions whose move is an addition or a deletion."""
        return self.in_model != np.isfinite(self.best)


def score(active: Active, found: Statistics | None = None, hyperpriors: Hyperpriors = FLAT) -> Scores:
    """Gain of the best move of every function (T&F eqs 18, 20, 21); candidates that may not enter gain nothing."""
    found = active.statistics() if found is None else found
    if hyperpriors.flat:
        best, gain = best_moves(found.alpha, found.s, found.q2, active.problem.n_targets, active.problem.inclusion_cost)
    else:
        best, gain = hyperpriors.best_moves(active, found.alpha, found.s, found.q2)
    return Scores(found.alpha, best, np.where(found.movable, gain, 0.0))


def verify(active: Active, scores: Scores, tol: float) -> None:
    """Replace the gains that may be rounding, where they are above ``tol``, by what the moves really gain."""
    for i in np.flatnonzero(scores.gain > tol).tolist():
        if active.doubtful(i):
            scores.gain[i] = max(0.0, active.measured_gain(i, float(scores.best[i])))
