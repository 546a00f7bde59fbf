"""A model whose gains are only predicted (Laplace's approximation), as the loop in batches knows it.

Where rows saturate many functions promise what they do not keep, so a batch that fails is sifted by trials of each.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np

from sparsebayes.inference.models.evidence import Array, Scores
from sparsebayes.inference.models.interface import Active
from sparsebayes.inference.models.linalg import cosines
from sparsebayes.inference.objective import score
from sparsebayes.typing import Index

# Part of what is asked for to which a model at the end of a climb is settled.
_CLOSELY = 0.01


@dataclass(frozen=True)
class Predicted:
    """The functions of a model at its mode, each move of which stands only if the true evidence rises.

    Each function that is added has to gain ``tol``, in nats; those in ``refused`` do not, although their scores say so.
    """

    active: Active
    tol: float
    refused: set[int] = field(default_factory=set)

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
        return Scores(gain, found.best)

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
        return None if grown is None else Predicted(grown.settled(tol, learn_noise=False), self.tol)

    def _with(self, fits: dict[int, float]) -> Active | None:
        """With functions of these precisions, where each gains enough on average."""
        return self.active.joined(list(fits), np.array(list(fits.values())), self.tol * len(fits)) if fits else None

    def settled(self, tol: float) -> Predicted:
        """All precisions at their joint maximum; what was tried in vain will not gain by that.

        Closer than asked: predictions then do not depend on the way (they differed by 2e-4 between rows in memory and
        the same rows in partitions).
        """
        return replace(self, active=self.active.settled(_CLOSELY * tol, learn_noise=False))
