r"""All functions of the model moved at once to places where they fit better (docs/sequential.md, "Shifts").

With functions at places :math:`c_j`, and neighbours of each at :math:`c_j+h_{je}` in d directions, the displacements
:math:`\sum_e\xi_{je}h_{je}` that are best to first order, all weights following, solve

.. math::

    \big[(\boldsymbol\mu\boldsymbol\mu^\top)\circ\mathbf G^\top(\mathbf B-\mathbf B\boldsymbol\Phi\boldsymbol\Sigma
    \boldsymbol\Phi^\top\mathbf B)\mathbf G+\lambda\mathbf I\big]\,\xi = \boldsymbol\mu\circ\mathbf G^\top\mathbf g,
    \qquad g_{je}=\phi(c_j+h_{je})-\phi(c_j) ,

with :math:`\mathbf B` the curvature of the rows and :math:`\mathbf g` the gradient of the log likelihood.  On the 2-D
sinc of 13,000 and 20,000 rows that brings 2 nats on average, and outputs 2 % nearer to the truth, in .85 of the time;
two classes by Laplace's evidence gain 3 nats.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from sparsebayes.basis.places import Places
from sparsebayes.inference.models.evidence import Array
from sparsebayes.inference.models.interface import Active
from sparsebayes.inference.search.working import embed, movable
from sparsebayes.typing import Index

# Distances at which neighbours are looked for, and the farthest that a function moves at once.
_DISTANCES = (0.05, 0.1, 0.2)
_REACH = 0.35
# Standard deviation of a displacement beforehand, and moves in a row.
_PRIOR = 0.2
_MOVES = 20
# A dictionary is dense where neighbours are found this close to where they were looked for, as a part of the distance.
_DENSE = 0.35
# Parts of the displacements that are tried, and how closely precisions settle in between, in nats.
_LENGTHS = (1.0, 0.5, 0.25)
_ROUGHLY = 0.1


@dataclass(frozen=True)
class Secants:
    """Functions that can move (k places in the model), where they are, and d neighbours of each at a distance.

    ``neighbours`` (k, d) are numbers in the whole dictionary; ``towards`` (k, d, d) says how far each is, and in which
    direction (last axis).
    """

    movable: Index
    at: Array
    distance: float
    neighbours: Index
    towards: Array


def shift(active: Active, worthwhile: float, *, learn_noise: bool) -> Active | None:
    """The model with its functions moved as long as each time gains more than ``worthwhile``; None where none does."""
    moved = active
    for _ in range(_MOVES):
        further = _shift_once(moved, worthwhile, learn_noise=learn_noise)
        if further is None:
            break
        moved = further
    if moved is active:
        return None
    problem, indices = embed(active.problem, moved.problem.lift(moved.indices))
    return moved.like(problem, indices, moved.alpha, mean=moved.mean)


def _shift_once(active: Active, worthwhile: float, *, learn_noise: bool) -> Active | None:
    problem, whole = active.problem, active.problem.parent
    if whole is None or not movable(problem) or not active.size:
        return None
    places: Places = whole.places
    numbers = np.array(problem.lift(active.indices), dtype=np.intp)
    secants = next((found for distance in _DISTANCES if (found := _secants(places, numbers, distance))), None)
    if secants is None:
        return None
    displacements = _displacements(active, numbers, secants)
    level = active.objective() + worthwhile
    for length in _LENGTHS:
        into = numbers.copy()
        into[secants.movable] = places.nearest(secants.at + length * displacements)
        into = np.where(whole.eligible[into], into, numbers)
        kept, first = np.unique(into, return_index=True)
        if np.array_equal(kept, np.sort(numbers)):
            return None
        moved = active.like(whole.restrict(kept), list(range(len(kept))), active.alpha[first])
        moved = moved.settled(_ROUGHLY, learn_noise=learn_noise)
        if moved.objective() > level:
            return moved
    return None


def _secants(places: Places, numbers: Index, distance: float) -> Secants | None:
    """Neighbours of the functions at a distance in all directions; None where there are too few."""
    movable = np.flatnonzero(numbers < len(places))
    if not len(movable):
        return None
    at = places.at(numbers[movable])
    k, d = at.shape
    own, steps = np.repeat(at, d, axis=0), np.tile(distance * np.eye(d), (k, 1))
    neighbours, off = _look(places, own + steps)
    bare = off > _DENSE * distance  # nothing there: on the other side of the function, perhaps
    if np.any(bare):
        others, off_there = _look(places, own[bare] - steps[bare])
        neighbours[bare] = np.where(off_there < off[bare], others, neighbours[bare])
        off[bare] = np.minimum(off_there, off[bare])
    if np.median(off) > _DENSE * distance:
        return None
    towards = (places.at(neighbours) - own).reshape(k, d, d)
    return Secants(movable, at, distance, neighbours.reshape(k, d), towards)


def _look(places: Places, points: Array) -> tuple[Index, Array]:
    """Functions next to some points, and how far they are from them."""
    found = places.nearest(points)
    return found, np.linalg.norm(places.at(found) - points, axis=1)


def _displacements(active: Active, numbers: Index, secants: Secants) -> Array:
    """Where the functions should move to, from where they are, (k, d)."""
    k, d, _ = secants.towards.shape
    a, own = active.size, np.repeat(secants.movable, d)  # the function that each neighbour belongs to
    gram, gradient = active.beside(numbers, secants.neighbours.ravel())
    differences = np.zeros((a + k * d, k * d))
    differences[np.arange(a, a + k * d), np.arange(k * d)] = 1.0
    differences[own, np.arange(k * d)] -= 1.0
    half = differences.T @ gram
    cross = half[:, :a]
    free = half @ differences - cross @ active.covariance @ cross.T
    weights = active.means[own]
    pull = np.sum(weights * (differences.T @ gradient), axis=1)
    prior = (secants.distance / _PRIOR) ** 2
    xi = np.linalg.solve((weights @ weights.T) * free + prior * np.eye(k * d), pull)
    moved = np.einsum("ke,ked->kd", xi.reshape(k, d), secants.towards)
    length = np.linalg.norm(moved, axis=1, keepdims=True)
    return moved * (_REACH / np.maximum(length, _REACH))
