"""A model whose gains are only predicted (Laplace's approximation), as the loop in batches knows it.

Where rows saturate many functions promise what they do not keep, and each trial costs a mode.  So a batch that fails is
sifted by trials, and what a model refused comes last in those that follow.  Without either, a fit of 250 digits whose
ten classes have functions of their own takes about twice the processor time.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np

from sparsebayes.inference.models.evidence import Array, Scores, best_moves
from sparsebayes.inference.models.interface import Active
from sparsebayes.inference.models.linalg import cosines
from sparsebayes.inference.objective import score
from sparsebayes.typing import Index

# Part of what is asked for to which a model at the end of a climb is settled.
_CLOSELY = 0.01


@dataclass(frozen=True)
class Predicted:
    """The functions of a model at its mode, each move of which stands only if the true evidence rises.

    Attributes
    ----------
    active : Active
        The model.
    tol : float
        What every function that is added has to gain, in nats.
    refused : set of int
        Functions that do not, although their scores say so.
    stale : frozenset of int
        Functions that an earlier model refused: they are tried again where nothing else gains.
    """

    active: Active
    tol: float
    refused: set[int] = field(default_factory=set)
    stale: frozenset[int] = frozenset()

    @property
    def indices(self) -> list[int]:
        """Functions in the model."""
        return self.active.indices

    @property
    def objective(self) -> float:
        """Log evidence and log prior of the support."""
        return self.active.objective()

    def scores(self) -> Scores:
        """Of all functions; those in the model, and those that were tried on it in vain, gain nothing."""
        found = score(self.active)
        gain = np.where(found.in_model, 0.0, found.gain)
        gain[list(self.refused)] = 0.0
        fresh = gain.copy()
        fresh[list(self.stale)] = 0.0
        return Scores(fresh if np.any(fresh > self.tol) else gain, found.best)

    def overlaps(self, functions: Index) -> Array:
        """Cosines of functions of the same output, in the curvature of the rows where all outputs are zero."""
        problem = self.active.problem
        _, outputs = problem.split(functions.tolist())
        gram = problem.active(functions.tolist()).at(np.zeros(len(functions))).gram
        return np.where(np.equal.outer(outputs, outputs), cosines(gram), 0.0)

    def joined(self, functions: Index, alpha: Array, tol: float) -> Predicted | None:
        """With these functions more, or with those that gain when each is tried alone; None where none does."""
        fits = {int(i): float(a) for i, a in zip(functions, alpha, strict=True) if int(i) not in self.refused}
        grown = self._with(fits)
        if grown is None:
            alone = {i: self._with({i: a}) if len(fits) > 1 else None for i, a in fits.items()}
            self.refused.update(i for i, model in alone.items() if model is None)
            fits = {i: float(model.alpha[-1]) for i, model in alone.items() if model is not None}
        while grown is None and fits:  # each of them gains; together they may not
            grown, fits = self._with(fits), dict(list(fits.items())[: len(fits) // 2])
        return None if grown is None else Predicted(_settled(grown, tol), self.tol, stale=self.stale | self.refused)

    def _with(self, fits: dict[int, float]) -> Active | None:
        """With functions of these precisions, where each gains enough on average."""
        return self.active.joined(list(fits), np.array(list(fits.values())), self.tol * len(fits)) if fits else None

    def settled(self, tol: float) -> Predicted:
        """All precisions at their joint maximum; what was tried in vain will not gain by that.

        Closer than asked: the last steps cost little, and predictions then do not depend on the way (they differed by
        2e-4 between rows in memory and the same rows in partitions).
        """
        return replace(self, active=_settled(self.active, _CLOSELY * tol))


def _settled(active: Active, tol: float) -> Active:
    """All precisions at their joint maximum, without functions that have no relevance there or cost more than it."""
    active = active.settled(tol, learn_noise=False)
    s, q2 = active.leave_one_out()
    best, gain = best_moves(active.alpha, s, q2, 1, active.problem.inclusion_cost)
    for j in np.flatnonzero((q2 > s) & ~np.isfinite(best) & (gain > tol)):
        smaller = active.changed(active.indices[j], np.inf)
        if smaller is not None:
            return _settled(smaller, tol)
    return active
