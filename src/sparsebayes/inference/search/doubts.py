"""Where gains are only predicted: moves that the prediction narrowly rules out, tried in earnest."""

from __future__ import annotations

import numpy as np

from sparsebayes.inference.models.evidence import contribution
from sparsebayes.inference.models.interface import Active

# A function that brings less than this many nats is worth a trial deletion.
_DOUBTFUL = 1.0
_NEAR_MISSES = 5


def doubt(active: Active, refused: set[int], tol: float) -> tuple[str, int] | None:
    """The first such move that raises the objective, made; those that do not are refused from then on.

    That is to do without each function that brings little, and to add the best of those left out with the prior
    variance that its least-squares weight suggests: where rows saturate, the evidence can have a maximum at a finite
    precision although it falls from infinity at first.

    Returns
    -------
    tuple of str and int, or None
        The kind of the move and its function.
    """
    s, q2 = active.leave_one_out()
    brings = contribution(active.alpha, s, q2) - active.problem.inclusion_cost
    for j in np.argsort(brings):
        i = active.indices[j]
        if brings[j] < _DOUBTFUL and i not in refused:
            if active.delete(int(j)):
                return "delete", i
            refused.add(i)
    found = active.statistics()
    near = np.where(found.movable & ~np.isfinite(found.alpha) & (found.q2 > 0.0), found.q2, 0.0)
    ratio = near / np.where(found.s > 0.0, found.s, 1.0)
    for i in np.argsort(-ratio, kind="stable")[:_NEAR_MISSES].tolist():
        if ratio[i] > 0.0 and i not in refused:
            if any(active.add(i, float(found.s[i] / ratio[i]) * shorter, tol) for shorter in (1.0, 0.25)):
                return "add", i
            refused.add(i)
    return None
