"""Functions that gain nothing one at a time, since those in the model hide them.

Beyond the papers.  Broad functions are nearly constant, and nearly the same: only their differences, of large weights,
say anything.  Where one of them, or the intercept, has settled as a constant, or where the targets need none, no other
gains: it would need a large weight of the opposite sign beside it, which that one's precision, or its absence,
forbids, and a lower precision alone only loses.  Single moves then end with an empty model, or with a constant, tens
of nats below what two functions reach.  So additions are looked for beside an intercept, and functions in the model,
whose precisions are next to nothing; after one is made all of them settle, and the model stands if it is better.
"""

from __future__ import annotations

import numpy as np

from sparsebayes.inference.active import ActiveSet
from sparsebayes.inference.evidence import Statistics, best_moves
from sparsebayes.inference.interface import Active
from sparsebayes.inference.laplace import LaplaceActive
from sparsebayes.inference.settling import settle_all

# Functions of an output up to which a model may hide others, and additions that are tried.
_SMALL = 10
_TRIALS = 3
# What such a model has to bring, in nats: single moves of a few functions miss less than that by chance, everywhere.
_WORTHWHILE = 3.0
# Precisions next to nothing: those of the model, or the data's of an intercept, times this.
_NOTHING = 1e-8


def uncover(active: Active, tol: float, *, learn_noise: bool) -> tuple[int, Active] | None:
    """A much better model with one function more, and other precisions, which settle to ``tol``.

    Returns
    -------
    tuple of int and Active, or None
        The function and the model; None where none is found.
    """
    problem = active.problem
    if active.size > _SMALL * problem.n_outputs:
        return None
    loose = _loosened(active)
    if loose is None:
        return None
    found, level = loose.statistics(), active.objective() + _WORTHWHILE
    best, gain = best_moves(found.alpha, found.s, found.q2, problem.n_targets, problem.inclusion_cost)
    gain = np.where(found.movable & ~np.isfinite(found.alpha), gain, 0.0)
    for i in np.argsort(-gain, kind="stable")[:_TRIALS].tolist():
        trial = loose.copy()
        if gain[i] > _WORTHWHILE and trial.add(i, float(best[i])):
            settle_all(trial, tol, learn_noise=learn_noise)
            if trial.objective() > level:
                return i, trial
    return None


def _loosened(active: Active) -> Active | None:
    """The same functions and the intercept with precisions next to nothing; None where there are none."""
    found = active.statistics()
    fresh = _constants(active, found)
    indices = [*active.indices, *fresh]
    alpha = _NOTHING * np.concatenate([active.alpha, found.s[fresh]])
    if not indices:
        return None
    if isinstance(active, ActiveSet):
        return ActiveSet.from_model(active.problem, indices, alpha, active.beta)
    return LaplaceActive.from_model(active.problem, indices, alpha)


def _constants(active: Active, found: Statistics) -> list[int]:
    """Intercepts that are not in the model; of a dictionary without one, the function that is largest on the rows."""
    problem, outside = active.problem, found.movable & ~np.isfinite(found.alpha)
    if problem.bias is not None:
        size = len(outside) // problem.n_outputs
        return [i for i in range(problem.bias, len(outside), size) if outside[i]]
    return [] if active.size or not outside.any() else [int(np.argmax(np.where(outside, found.s, 0.0)))]
