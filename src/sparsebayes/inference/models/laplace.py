r"""A model of any likelihood by Laplace's approximation, for the one loop.

A mode is found after functions have joined and after every sweep over the precisions, never for a candidate: scores are
predictions (``laplace.py``), and functions stand if the evidence at the new mode rose.  While precisions still move the
mode need not stand still: Newton's method stops once a step promises less than :data:`ROUGH` nats.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from sparsebayes.inference.evidence import Array, best_moves
from sparsebayes.inference.laplace import LaplaceActive
from sparsebayes.inference.mode import LaplaceProblem
from sparsebayes.inference.problem import Index
from sparsebayes.inference.search.climb import Scores

# What the last Newton step of a mode may promise, in nats, before it is made in full.  With .001 the loop alone took a
# third to a half more steps on one draw of two tables (image 1,641 for 1,081, german 736 for 558).
ROUGH = 0.1
# The same of a mode that is reported.
_CLOSE = 1e-8
# Sweeps of the fixed point in one settling at most.
_SWEEPS = 10
# A trial is given up where this many times the rise of the last sweep would not be enough.
_HOPE = 5.0
# Over-relaxation: steps grow while they ascend.
_LONGER, _LONGEST, _SHORTER, _SHORTEST = 1.3, 1.9, 0.4, 0.05
# Farthest that one sweep moves a log precision.
_REACH = 5.0


@dataclass(frozen=True, eq=False)
class LaplaceModel:
    """Functions at the mode of their posterior; a :class:`~sparsebayes.inference.search.climb.Model`.

    Attributes
    ----------
    active : LaplaceActive
        The functions, their precisions, their mode and its evidence.
    """

    active: LaplaceActive

    @property
    def indices(self) -> list[int]:
        """Functions in the model."""
        return self.active.indices

    @property
    def problem(self) -> LaplaceProblem:
        """The problem that is solved."""
        return self.active.problem

    @property
    def size(self) -> int:
        """Number of functions in the model."""
        return self.active.size

    @property
    def beta(self) -> float:
        """One: there is no noise level."""
        return 1.0

    @property
    def objective(self) -> float:
        """Laplace's log evidence and the log prior of the support."""
        return self.active.objective()

    def evidence(self) -> float:
        """Laplace's log evidence."""
        return self.active.evidence()

    def scores(self) -> Scores:
        """Predicted gains of all functions outside the model."""
        found = self.active.statistics()
        outside = found.movable & ~np.isfinite(found.alpha)
        out = np.full(len(outside), np.inf)
        alpha, gain = best_moves(out, found.s, found.q2, 1, self.active.problem.inclusion_cost)
        return Scores(np.where(outside, gain, 0.0), alpha)

    def overlaps(self, functions: Index) -> Array:
        """One for functions of the same output, zero for others: a batch takes one of each.

        It needs no rows, so that the path is the same wherever these are.  Whether larger batches end higher depends on
        the table: one draw each, eight at once took image to -179.7 in 6,385 Newton steps (one: -170.1 in 1,641), and
        german to -330.7 in 1,385 (one: -339.6 in 736).
        """
        _, outputs = self.active.problem.split(functions.tolist())
        return (outputs[:, None] == outputs).astype(np.float64)

    def joined(self, functions: Index, alpha: Array, tol: float) -> LaplaceModel | None:
        """With these functions more, at the mode, roughly settled."""
        grown = self.active.joined(functions.tolist(), alpha, ROUGH)
        return None if grown is None else LaplaceModel(grown).relaxed(tol, self.objective)

    def settled(self, tol: float) -> LaplaceModel:
        """At the joint maximum of all precisions, by a quasi-Newton method on the exact gradient."""
        trial = self.active.copy()
        trial.sweep(tol)
        return LaplaceModel(trial) if trial.objective() >= self.objective else self

    def relaxed(self, tol: float, beat: float) -> LaplaceModel:
        r"""MacKay's fixed point :math:`\alpha_j=\gamma_j/m_j` with the exact slope's :math:`m_j`, only upwards.

        It ends where many times what the last sweep brought would not be enough to ``beat`` this objective; what beats
        it is then at its mode, so that it is judged, reported and scored there.
        """
        here, step = self.active, 1.0
        for _ in range(_SWEEPS):
            here = _without_idle(here)
            if not here.size:
                break
            new = _swept(here, step)
            rise = new.objective() - here.objective()
            if rise > 0.0:
                here, step = new, min(_LONGER * step, _LONGEST)
                if rise < tol or here.objective() + _HOPE * rise < beat:
                    break
            elif step < _SHORTEST:
                break
            else:
                step *= _SHORTER
        return LaplaceModel(here.roughly_at(here.alpha, _CLOSE) if here.objective() > beat else here)


def _swept(here: LaplaceActive, step: float) -> LaplaceActive:
    """Part of a sweep of the fixed point over all precisions."""
    well = np.maximum(here.well_determined, 1e-10)
    wanted = np.log(well / np.maximum(here.squared_mean(), 1e-300)) - np.log(here.alpha)
    return here.roughly_at(here.alpha * np.exp(step * np.clip(wanted, -_REACH, _REACH)), ROUGH)


def _without_idle(here: LaplaceActive) -> LaplaceActive:
    """Without the functions that no longer pay (T&F eq. 21), if the objective does not fall for it."""
    while here.size:
        s, q2 = here.leave_one_out()
        stays = q2 > s
        if stays.all():
            break
        fewer = here.restricted(stays, ROUGH)
        if fewer.objective() < here.objective():
            break
        here = fewer
    return here
