"""Working sets: the search in full on a part of the dictionary, until no function outside it would gain (T&F 6.2).

A pass over the whole dictionary costs far more than a move among a few hundred functions.  So the search goes on in a
working set, which then takes in the best of the functions left out, until there are none.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from sparsebayes.design import Design
from sparsebayes.inference.models.active import ActiveSet
from sparsebayes.inference.models.evidence import Array
from sparsebayes.inference.models.interface import Active
from sparsebayes.inference.models.laplace import LaplaceActive
from sparsebayes.inference.models.mode import LaplaceProblem
from sparsebayes.inference.models.problem import GaussianProblem, Index
from sparsebayes.inference.search.climb import cosines, pick_apart

# Entries of a dictionary from which on the search goes on in a working set.
_LARGE = 1 << 21
# The same times the number of classes, from which on functions of several classes are added in batches.
_ROUGHLY = 1 << 18
# Functions of the first working set, where no compression has chosen them, and functions taken in at once.
_FIRST = 256
_FRESH = 100
# Where a dictionary is dense those that gain most are neighbours of one another.  So they are taken from so many, and
# before all others those that correlate with none of the better ones more than this.
_POOL = 500
_NEIGHBOURS = 0.99
# Functions whose correlation is above this are alike.  Where the best ones are, a search among them would end with many
# neighbours of the right functions before it sees those (noisy blocks: 115 functions for 12), so up to this many
# entries it goes on in the whole dictionary.
_ALIKE = 0.9
_WHOLE = 1 << 25
# Functions up to which a classifier scores all of them at every step.
_SCORED = 1 << 16


def working_problem(
    problem: GaussianProblem | LaplaceProblem, *, noise_given: bool, tell: Callable[[float], None] | None = None
) -> GaussianProblem | LaplaceProblem:
    """The problem to search in: the given one where it is small, else a working set of it.

    A compression is exact enough for a noise that is learned through it, not for any that is given.  ``tell`` is called
    on the way through all rows, with the share of them that is done.
    """
    if not isinstance(problem, GaussianProblem | LaplaceProblem):
        return problem
    if isinstance(problem, GaussianProblem) and problem.sample is not None:  # its candidates were chosen already
        return problem.reduced(tell)
    if noise_given and problem.design.shape[0] * problem.design.shape[1] <= _LARGE:
        return problem.held() if isinstance(problem, GaussianProblem) else problem
    if problem.stand_in is not None:
        small = problem.compressed() if isinstance(problem, GaussianProblem) else problem
        return small.restrict(_with_bias(problem.stand_in.landmarks, small.bias))
    if isinstance(problem, GaussianProblem) and problem.landmarks is not None:
        return problem.restrict(_with_bias(problem.landmarks, problem.bias))
    rows, functions = problem.design.shape
    if isinstance(problem, LaplaceProblem) and problem.n_outputs > 1 and rows * problem.n_functions > _ROUGHLY:
        # Functions are added in batches, modes found roughly, and most functions scored at a glance on the way.
        return problem.roughly()
    if rows * functions <= _LARGE or functions <= 2 * _FIRST:
        return problem
    empty = ActiveSet(problem, 1.0) if isinstance(problem, GaussianProblem) else LaplaceActive(problem)
    found = empty.statistics()
    agreement = _by_column(
        np.where(found.movable, found.q2 / np.where(found.s > 0.0, found.s, np.inf), -1.0), functions
    )
    first = np.argsort(-agreement, kind="stable")[:_FIRST]
    if rows * functions <= _WHOLE and _alike(problem.design, first):
        return problem
    return problem.restrict(_with_bias(first, problem.bias))


def holding(problem: Any, functions: list[int]) -> tuple[Any, list[int]]:
    """A working set with these functions of the whole dictionary in it, and their numbers there; of one output only."""
    if not isinstance(problem, GaussianProblem | LaplaceProblem) or problem.members is None:
        return problem, list(functions)
    fresh = np.setdiff1d(functions, problem.members)
    members = np.concatenate([problem.members, fresh])
    problem = problem.enlarge(fresh) if len(fresh) else problem
    place = {int(member): k for k, member in enumerate(members)}
    return problem, [place[i] for i in functions]


def widen(active: Active, tol: float) -> float:
    """Take the best functions outside the working set into it; what the best of them gains, 0 where none ``tol``."""
    problem = active.problem
    at_a_glance = isinstance(problem, LaplaceProblem) and problem.watched is not None
    if problem.parent is None or (problem.members is None and not at_a_glance):
        return 0.0
    dense = not active.approximate and movable(problem)
    columns, gain = active.promising(_POOL if dense else _FRESH)
    best = float(np.max(gain, initial=0.0))
    if best <= tol:
        return 0.0
    # What gains hardly anything now may gain as soon as a neighbour has moved: a pass over all functions less.
    fresh = _unlike(problem.parent, columns) if dense else columns[gain > tol]
    if at_a_glance:
        active.extend(problem.watch(fresh))
        return best
    # With a stand-in the whole dictionary is scored at the cost of a few hundred of its functions, unless it is so
    # large that going through its scores is the cost.
    whole = (
        isinstance(problem, LaplaceProblem)
        and problem.parent.stand_in is not None
        and problem.parent.design.shape[1] <= _SCORED
    )
    active.extend(problem.parent.roughly() if whole else problem.enlarge(fresh))
    return best


def movable(problem: Any) -> bool:
    """Whether it is known where functions of a working set are, so that they may give way to neighbours."""
    return problem.parent is not None and problem.parent.places is not None and problem.n_outputs == 1


def _unlike(problem: Any, functions: Index) -> Index:
    """The first of these functions, and before all others those that are no close neighbours of one before them."""
    chosen = pick_apart(cosines(problem.design.among(functions)) < _NEIGHBOURS, _FRESH)
    others = np.setdiff1d(np.arange(len(functions)), chosen)[: _FRESH - len(chosen)]
    return np.concatenate([functions[chosen], functions[others]])


def _alike(design: Design, members: Index) -> bool:
    """Whether the functions that agree best with the targets are many versions of a few."""
    overlap = cosines(design.among(members))
    np.fill_diagonal(overlap, 0.0)
    return bool(np.median(np.max(overlap, axis=0)) > _ALIKE)


def _with_bias(members: Index, bias: int | None) -> Index:
    return np.sort(members) if bias is None else np.union1d(members, np.array([bias], dtype=np.intp))


def _by_column(values: Array, columns: int) -> Array:
    """The best of the outputs that share a column."""
    return np.max(values.reshape(-1, columns), axis=0)
