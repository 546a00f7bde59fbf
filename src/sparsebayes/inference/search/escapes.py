"""Where no single move gains by its score: moves that the scores miss.

*Functions that others hide* (``uncover``, beyond the papers): broad functions are nearly constant, and nearly the same.
Where one of them, or the intercept, has settled as a constant, no other gains alone, since it would need a large weight
of the opposite sign beside it.  So additions are looked for beside an intercept, and functions in the model, whose
precisions are next to nothing; the model stands if it is better once all have settled, often by tens of nats.

*Narrow misses* (``doubt``), where gains are only predicted: moves that the prediction rules out, tried in earnest.
They make the support a local optimum under single moves (``tests/reference/test_laplace.py``), which is worth .15 nats
on one of 42 fits of two classes by Laplace's evidence, and nothing on the others.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from sparsebayes.inference.models.evidence import Statistics, best_moves, contribution
from sparsebayes.inference.models.interface import Active
from sparsebayes.inference.models.linalg import largest

# Functions up to which a model may hide others, and additions that are tried.
_SMALL = 10
_TRIALS = 3
# What such a model has to bring, in nats: single moves of a few functions miss less than that by chance, everywhere.
_WORTHWHILE = 3.0
# Precisions next to nothing, as parts of those of the model, or of the data's of an intercept.  The broader functions
# are the larger their weights, and the second is for kernels a thousand times as wide as the data.
_NOTHING = (1e-8, 1e-14)
# Functions that are looked at for some that could stand in for an intercept.
_STEPS = 6
# A function that brings less than this many nats is worth a trial deletion.
_DOUBTFUL = 1.0
_NEAR_MISSES = 5
# Condition beyond which a model is at the mercy of rounding.  Up to there evidences and predictions of regressions have
# nine digits, against extended precision.
_SINGULAR = 1e15


def uncover(active: Active, tol: float, *, learn_noise: bool) -> tuple[int, Active] | None:
    """A function, and a much better model with it, whose precisions have settled to ``tol``; None if there is none."""
    if active.size > _SMALL:
        return None
    found = (_beside(active, part, tol, learn_noise) for part in _NOTHING)
    return next((model for model in found if model is not None), None)


def _beside(active: Active, part: float, tol: float, learn_noise: bool) -> tuple[int, Active] | None:
    """The best of the models in which a function is added beside precisions that are this part of what they were."""
    level, kept = active.objective() + _WORTHWHILE, None
    for constants in _constants(active):
        for i, trial in _grown(active, part, constants, tol, learn_noise):
            if trial.objective() > level and trial.condition_number() < _SINGULAR:
                level, kept = trial.objective(), (i, trial)
    return kept


def _grown(
    active: Active, part: float, constants: list[int], tol: float, learn_noise: bool
) -> Iterator[tuple[int, Active]]:
    """Models with one of the functions that promise most beside what was made loose, settled."""
    problem, loose = active.problem, _loosened(active, part, constants, None)
    found = loose.statistics()
    best, gain = best_moves(found.alpha, found.s, found.q2, problem.n_targets, problem.inclusion_cost)
    gain = np.where(found.movable & ~np.isfinite(found.alpha), gain, 0.0)
    for i in largest(gain, _TRIALS).tolist():
        if gain[i] <= _WORTHWHILE:
            return
        begun = _loosened(active, part, constants, i) if problem.n_outputs > 1 else loose
        grown = begun.changed(i, float(best[i]))
        if grown is not None:
            yield i, grown.settled(tol, learn_noise=learn_noise)


def _loosened(active: Active, part: float, constants: list[int], beside: int | None) -> Active:
    """The functions of all outputs and their intercepts, or only of the output of a function, made loose."""
    problem = active.problem
    indices, size = [*active.indices, *constants], problem.n_functions // problem.n_outputs
    alpha = np.concatenate([active.alpha, active.statistics().s[constants]])
    same: NDArray[np.bool_] = np.array([beside is None or i // size == beside // size for i in indices])
    stays = same | (np.arange(len(indices)) < active.size)
    kept = [i for i, stay in zip(indices, stays, strict=True) if stay]
    return active.like(problem, kept, (alpha * part**same)[stays])


def _constants(active: Active) -> list[list[int]]:
    """What to make loose beside the functions of the model, one after the other: the intercepts that it has not got.

    A dictionary without any has functions that are nearly constant, if they hide one another.
    """
    problem, found = active.problem, active.statistics()
    outside = found.movable & ~np.isfinite(found.alpha)
    if problem.bias is not None:
        out = [i for i in range(problem.bias, len(outside), len(outside) // problem.n_outputs) if outside[i]]
        return [out] if out or active.size else []
    return [[]] if active.size else [[i] for i in _common(active, found, outside & (found.s > 0.0))]


def _common(active: Active, found: Statistics, outside: NDArray[np.bool_]) -> list[int]:
    """Two functions that have much in common with all: they are nearest to each other.

    What functions that hide one another share is a constant nearly, and the nearer a function is to that, the nearer it
    is to any that is near it.  So they are found from the one that says most alone, by way of the one nearest to that.
    Angles do not depend on units, as sizes would.
    """
    if not outside.any():
        return []
    size, norms = active.problem.n_functions // active.problem.n_outputs, np.where(outside, found.s, 1.0)
    path = [int(np.argmax(np.where(outside, found.q2 / norms, -1.0)))]
    while len(path) < _STEPS and path[-1] not in path[:-1]:
        here = path[-1]
        others = outside & (np.arange(len(outside)) // size == here // size)
        others[here] = False
        if not others.any():
            break
        beside = active.like(active.problem, [here], found.s[[here]] * min(_NOTHING)).statistics()
        path.append(int(np.argmin(np.where(others, beside.s / norms, np.inf))))
    return path[-2:]


def doubt(active: Active, refused: set[int], tol: float) -> tuple[str, int, Active] | None:
    """The kind of the first such move that raises the objective, its function, and the model after it.

    Those that do not are refused from then on.  The moves are to do without each function that brings little, to give
    others the precision that their scores ask for, and to add the best of those left out with the prior variance that
    its least-squares weight suggests: where rows saturate, the evidence can rise although it falls at first, and has
    ridges on which no step brings what the slope promises.
    """
    s, q2 = active.leave_one_out()
    brings = contribution(active.alpha, s, q2) - active.problem.inclusion_cost
    for j in np.argsort(brings):
        i = active.indices[j]
        if brings[j] < _DOUBTFUL and i not in refused:
            without = active.changed(i, np.inf)
            if without is not None:
                return "delete", i, without
            refused.add(i)
    best, gain = best_moves(active.alpha, s, q2, 1, active.problem.inclusion_cost)
    for j in np.flatnonzero(np.isfinite(best) & (gain > tol)):
        i = active.indices[j]
        if i not in refused:
            moved = active.changed(i, float(best[j]))
            if moved is not None and moved.objective() > active.objective() + tol:
                return "reestimate", i, moved
            refused.add(i)
    found = active.statistics()
    near = np.where(found.movable & ~np.isfinite(found.alpha) & (found.q2 > 0.0), found.q2, 0.0)
    ratio = near / np.where(found.s > 0.0, found.s, 1.0)
    for i in largest(ratio, _NEAR_MISSES).tolist():
        if ratio[i] > 0.0 and i not in refused:
            suggested = float(found.s[i] / ratio[i])
            grown = active.changed(i, suggested, tol) or active.changed(i, 0.25 * suggested, tol)
            if grown is not None:
                return "add", i, grown
            refused.add(i)
    return None
