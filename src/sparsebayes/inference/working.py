"""Working sets: the search in full on a part of the dictionary, until no function outside it would gain (T&F 6.2).

A pass over the whole dictionary costs far more than a move among a few hundred functions.  So the search goes on in a
working set, which then takes in the best of the functions left out, until there are none.
"""

from __future__ import annotations

import numpy as np

from sparsebayes.inference.active import ActiveSet
from sparsebayes.inference.evidence import Array
from sparsebayes.inference.interface import Active
from sparsebayes.inference.laplace import LaplaceActive
from sparsebayes.inference.mode import LaplaceProblem
from sparsebayes.inference.problem import GaussianProblem, Index, Problem
from sparsebayes.inference.sequential import score

# Entries of a dictionary from which on the search goes on in a working set.
_LARGE = 1 << 21
# Functions of the first working set, where no compression has chosen them, and functions taken in at once.
_FIRST = 256
_FRESH = 100


def working_problem(problem: Problem | LaplaceProblem) -> Problem | LaplaceProblem:
    """The problem to search in: the given one where it is small, else a working set of it."""
    if not isinstance(problem, GaussianProblem | LaplaceProblem):
        return problem
    if problem.stand_in is not None:
        small = problem.compressed() if isinstance(problem, GaussianProblem) else problem
        return small.restrict(_with_bias(problem.stand_in.landmarks, small.bias))
    rows, functions = problem.design.shape
    if rows * functions <= _LARGE or functions <= 2 * _FIRST:
        return problem
    empty = ActiveSet(problem, 1.0) if isinstance(problem, GaussianProblem) else LaplaceActive(problem)
    found = empty.statistics()
    alike = _by_column(np.where(found.movable, found.q2 / np.where(found.s > 0.0, found.s, np.inf), -1.0), functions)
    return problem.restrict(_with_bias(np.argsort(-alike, kind="stable")[:_FIRST], problem.bias))


def widen(active: Active, tol: float) -> bool:
    """Take the best functions outside the working set into it; False where none gains more than ``tol``."""
    problem = active.problem
    if problem.parent is None or problem.members is None:
        return False
    scores = score(active, active.statistics_outside())
    gain = _by_column(scores.gain, problem.parent.design.shape[1])
    gain[problem.members] = 0.0
    gains = np.flatnonzero(gain > tol)
    fresh = gains[np.argsort(-gain[gains], kind="stable")][:_FRESH]
    if not len(fresh):
        return False
    active.extend(problem.enlarge(fresh))
    return True


def _with_bias(members: Index, bias: int | None) -> Index:
    return np.sort(members) if bias is None else np.union1d(members, np.array([bias], dtype=np.intp))


def _by_column(values: Array, columns: int) -> Array:
    """The best of the outputs that share a column."""
    return np.max(values.reshape(-1, columns), axis=0)
