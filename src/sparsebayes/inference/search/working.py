"""Working sets: the search in full on a part of the dictionary, until no function outside it would gain (T&F 6.2)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from sparsebayes.design import Design
from sparsebayes.inference.models.active import ActiveSet
from sparsebayes.inference.models.interface import Active
from sparsebayes.inference.models.laplace import LaplaceActive
from sparsebayes.inference.models.linalg import cosines, largest
from sparsebayes.inference.models.mode import LaplaceProblem
from sparsebayes.inference.models.problem import LARGE, GaussianProblem, Index, with_bias
from sparsebayes.inference.search.climb import pick_apart

# Functions of the first working set, where no compression has chosen them, and functions taken in at once.
_FIRST = 256
_FRESH = 100
# Where a dictionary is dense those that gain most are neighbours of one another.  So more are taken, from so many, and
# before all others those that correlate with none of the better ones more than this.  (With half as many of both the
# 2-D sinc of 8,000 to 150,000 points ends half a nat lower, the mean of 17 draws, and takes as long or longer.)
_SPREAD, _POOL = 200, 1000
_NEIGHBOURS = 0.99
# Functions whose correlation is above this are alike.  Where the best ones are, a search among them would end with many
# neighbours of the right functions before it sees those (noisy blocks: 115 functions for 12), so up to this many
# entries it goes on in the whole dictionary.
_ALIKE = 0.9
_WHOLE = 1 << 25

Problem = GaussianProblem | LaplaceProblem


def empty_model(problem: Problem, beta: float = 1.0) -> Active:
    """The model without functions, by the likelihood of the problem: the one place where that is asked."""
    return LaplaceActive.from_model(problem) if isinstance(problem, LaplaceProblem) else ActiveSet(problem, beta)


def working_problem(
    problem: Problem, *, noise_given: bool, tell: Callable[[float], None] = lambda done: None
) -> Problem:
    """The problem to search in: the given one where it is small, else a working set of it.

    ``tell`` is called with the share of the rows that a pass over them has behind it.
    """
    reduced = problem.reduced(tell, noise_given=noise_given)
    if reduced is not None:
        return reduced
    rows, functions = problem.design.shape
    if rows * functions <= LARGE or functions <= 2 * _FIRST:
        return problem
    found = empty_model(problem).statistics()
    agreement = np.where(found.movable, found.q2 / np.where(found.s > 0.0, found.s, np.inf), -1.0)
    by_column = np.max(agreement.reshape(-1, functions), axis=0)  # the best of the outputs that share it
    first = largest(by_column, _FIRST)
    if rows * functions <= _WHOLE and _alike(problem.design, first):
        return problem
    return problem.restrict(with_bias(first, problem.bias))


def embed(problem: Any, functions: list[int]) -> tuple[Any, list[int]]:
    """A working set with these functions of the whole dictionary in it, and their numbers there; of one output only."""
    if problem.members is None:
        return problem, list(functions)
    fresh = np.setdiff1d(functions, problem.members)
    problem = problem.enlarge(fresh) if len(fresh) else problem
    place = {int(member): k for k, member in enumerate(problem.members)}
    return problem, [place[i] for i in functions]


def widened(active: Active, tol: float) -> Active | None:
    """The model in a working set that has taken in the best functions outside it; None where none gains ``tol``."""
    problem = active.problem
    if problem.parent is None or problem.members is None:
        return None
    dense = not active.approximate and movable(problem)
    columns, gain = active.promising(_POOL if dense else _FRESH)
    if np.max(gain, initial=0.0) <= tol:
        return None
    # What gains hardly anything now may gain as soon as a neighbour has moved: a pass over all functions less.
    fresh = _unlike(problem.parent, columns) if dense else columns[gain > tol]
    return active.extended(problem.widened(fresh))


def movable(problem: Any) -> bool:
    """Whether it is known where functions of a working set are, so that they may give way to neighbours."""
    return problem.parent is not None and problem.parent.places is not None and problem.n_outputs == 1


def _unlike(problem: Any, functions: Index) -> Index:
    """The first of these functions, and before all others those that are no close neighbours of one before them."""
    chosen = pick_apart(cosines(problem.design.among(functions)) < _NEIGHBOURS, _SPREAD)
    others = np.setdiff1d(np.arange(len(functions)), chosen)[: _SPREAD - len(chosen)]
    return np.concatenate([functions[chosen], functions[others]])


def _alike(design: Design, members: Index) -> bool:
    """Whether the functions that agree best with the targets are many versions of a few."""
    overlap = cosines(design.among(members))
    np.fill_diagonal(overlap, 0.0)
    return bool(np.median(np.max(overlap, axis=0)) > _ALIKE)
