"""The one loop: score all functions, add a few that hardly overlap, settle them together, keep it if it paid.

This is the sequential algorithm of Tipping & Faul 2003, section 4, in batches.  Every pass scores all functions that
are left out (steps 4-5: ``model.scores``, eqs 18-25), adds the best of them (step 7), and re-estimates all precisions
and the noise together, so that functions without relevance leave on the way (steps 6, 8 and 9: ``model.joined``).  The
new model stands if the objective rose; else the batch is halved, and a single function that does not pay is refused
until the model has changed.  It ends where no addition gains ``tol`` (step 11).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol, Self, TypeVar

import numpy as np
from numpy.typing import NDArray

from sparsebayes.inference.models.evidence import Scores
from sparsebayes.inference.models.linalg import largest
from sparsebayes.typing import Array, Index

# Functions that are added at once at most, of how many times as many, with what part of the best gain, and up to which
# overlap (the cosine of two functions once the model has explained what it can of both): see docs/ablation.md.
BATCH = 8
_POOL = 4
_FAIR_PART = 0.1
_OVERLAP = 0.5
# Single functions that are refused in a row before the climb ends: what their scores promise is rounding then.
_PATIENCE = 50
# Gains closer than this (relative) are a tie, which goes to the lowest index.
_TIE = 1e-10
# Part of what a batch promises to which its precisions settle: closer costs more and ends nowhere else.
_ROUGHLY = 0.1


class Model(Protocol):
    """A set of functions with precisions under a likelihood; it never changes, but gives rise to others."""

    @property
    def indices(self) -> list[int]:
        """Functions in the model."""
        ...

    @property
    def objective(self) -> float:
        """Log evidence and log priors."""
        ...

    def scores(self) -> Scores:
        """What adding each function of the dictionary would gain; those in the model gain zero (T&F eqs 18-25)."""
        ...

    def overlaps(self, functions: Index) -> Array:
        """Cosines of functions outside the model in the metric of the scores, (k, k)."""
        ...

    def joined(self, functions: Index, alpha: Array, tol: float) -> Self | None:
        """With these functions more, settled to ``tol``; None where that cannot be computed."""
        ...

    def settled(self, tol: float) -> Self:
        """All precisions, and the noise where it is learned, at their joint maximum; what no longer pays is out."""
        ...


M = TypeVar("M", bound=Model)


def climb(
    model: M,
    tol: float,
    *,
    batch: int = BATCH,
    part: float = _FAIR_PART,
    overlap: float = _OVERLAP,
    patience: float = _PATIENCE,
    limit: float = np.inf,
    most: float = np.inf,
    accepted: Callable[[M, M], None] | None = None,
) -> M:
    """Move until no addition gains ``tol`` and the model has settled to a tenth of that; the objective never falls.

    Parameters
    ----------
    model : Model
        Where to begin.
    tol : float
        What a move has to promise, in nats; half of it has to come.
    batch : int
        Functions that are added at once at most.
    part, overlap : float
        With what part of the best gain, and up to which overlap.
    patience : float
        Single functions that may be refused in a row.
    limit, most : float
        Sizes at which the climb ends; the last batch may pass ``limit``.
    accepted : callable, optional
        Called with the model before and after every move.
    """
    accepted = accepted or (lambda before, after: None)
    refused, width = set[int](), batch
    while len(model.indices) < min(limit, most) and len(refused) < patience:
        scores = model.scores()
        scores.gain[list(refused)] = 0.0
        chosen = choose(model, scores.gain, int(min(width, most - len(model.indices))), tol, part, overlap)
        if not len(chosen):
            settled = model.settled(0.1 * tol)
            if settled.objective <= model.objective + tol:
                return settled
            accepted(model, settled)
            model = settled
            refused.clear()
        while len(chosen):
            roughly = max(0.1 * tol, _ROUGHLY * float(scores.gain[chosen].sum()))
            new = model.joined(chosen, scores.alpha[chosen], roughly)
            if new is not None and new.objective > model.objective + 0.5 * tol:
                accepted(model, new)
                model, width = new, min(batch, width + 1)
                refused.clear()
                break
            if len(chosen) == 1:
                refused.add(int(chosen[0]))
            chosen, width = chosen[: len(chosen) // 2], max(1, width // 2)
    return model


def choose(model: Model, gain: Array, width: int, tol: float, part: float, overlap: float) -> Index:
    """The functions with the largest gains that hardly overlap, best first; none where none gains ``tol``."""
    best = float(gain.max(initial=0.0))
    if not best > tol:
        return np.empty(0, dtype=np.intp)
    first = int((gain >= best * (1.0 - _TIE)).argmax())
    pool = np.flatnonzero(gain >= max(part * best, 0.5 * tol))
    pool = pool[largest(gain[pool], _POOL * width)]
    pool = np.concatenate([[first], pool[pool != first]])
    if width == 1 or len(pool) == 1:
        return pool[:1]
    return pool[pick_apart(model.overlaps(pool) < overlap, width)]


def pick_apart(apart: NDArray[np.bool_], limit: int) -> list[int]:
    """The first of some things, each apart from all that are picked before it."""
    chosen: list[int] = []
    open_ = np.ones(len(apart), dtype=bool)
    while len(chosen) < limit and open_[first := int(open_.argmax())]:
        chosen.append(first)
        open_ &= apart[first]
        open_[first] = False
    return chosen
