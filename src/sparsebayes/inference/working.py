"""Working sets: the search in full on a part of the dictionary, until no function outside it would gain (T&F 6.2).

A pass over the whole dictionary costs far more than a move among a few hundred functions.  So the search goes on in a
working set, which then takes in the best of the functions left out, until there are none.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from sparsebayes.inference.active import ActiveSet
from sparsebayes.inference.problem import GaussianProblem, Index

# Entries of a dictionary from which on the search goes on in a working set.
_LARGE = 1 << 21
# Functions of the first working set, where no compression has chosen them, and functions taken in at once.
_FIRST = 256
_FRESH = 100


def working_problem(problem: GaussianProblem) -> GaussianProblem:
    """The problem to search in: the given one where it is small, else a working set of it."""
    if problem.stand_in is not None:
        small = problem.compressed()
        return small.restrict(_with_bias(problem.stand_in.landmarks, small.bias))
    rows, functions = problem.design.shape
    if rows * functions <= _LARGE or functions <= 2 * _FIRST:
        return problem
    alike = np.sum(problem.projection**2, axis=1) / np.where(problem.sqnorms > 0.0, problem.sqnorms, np.inf)
    first = np.argsort(-np.where(problem.eligible, alike, -1.0), kind="stable")[:_FIRST]
    return problem.restrict(_with_bias(first, problem.bias))


def _with_bias(members: Index, bias: int | None) -> Index:
    return np.sort(members) if bias is None else np.union1d(members, np.array([bias], dtype=np.intp))


def widen(active: ActiveSet, gains: Callable[[ActiveSet], np.ndarray], tol: float) -> bool:
    """Take the best functions outside the working set into it; False where none gains more than ``tol``.

    ``gains(active)`` is what each function of the dictionary would gain.
    """
    problem = active.problem
    if not isinstance(problem, GaussianProblem) or problem.parent is None or problem.members is None:
        return False
    whole = ActiveSet.from_model(problem.parent, problem.lift(active.indices), active.alpha, active.beta)
    gain = gains(whole)
    gain[problem.members] = 0.0
    best = np.argsort(-gain, kind="stable")[:_FRESH]
    fresh = best[gain[best] > tol]
    if not len(fresh):
        return False
    active.extend(problem.enlarge(fresh))
    return True
