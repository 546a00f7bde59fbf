r"""A model of any likelihood by Laplace's approximation, for the one loop.

A mode is found after a batch has joined and after every sweep over the precisions, never for a candidate: scores are
predictions (``laplace.py``), and a batch stands if the evidence at the new mode rose.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from sparsebayes.inference.evidence import Array, best_moves
from sparsebayes.inference.laplace import LaplaceActive
from sparsebayes.inference.problem import Index
from sparsebayes.inference.search.climb import Scores

# Sweeps of the fixed point in one settling at most.
_SWEEPS = 30
# Over-relaxation: steps grow while they ascend.
_LONGER, _LONGEST, _SHORTER, _SHORTEST = 1.3, 1.9, 0.4, 0.05
# Farthest that one sweep moves a log precision, and the largest precision, of a function of unit norm.
_REACH = 5.0
_RANGE = (1e-10, 1e10)


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
        """Cosines of functions; those of different outputs do not overlap."""
        problem = self.active.problem
        columns, outputs = problem.split(functions.tolist())
        products = problem.design.among(columns)
        norms = np.sqrt(np.diagonal(products))
        return np.where(outputs[:, None] == outputs, np.abs(products) / np.outer(norms, norms), 0.0)

    def joined(self, functions: Index, alpha: Array, tol: float) -> LaplaceModel | None:
        """With these functions more, at the mode, roughly settled."""
        trial = self.active.copy()
        if not trial.add_anyway(functions.tolist(), alpha):
            return None
        return LaplaceModel(trial)._relaxed(tol)

    def settled(self, tol: float) -> LaplaceModel:
        """At the joint maximum of all precisions, by a quasi-Newton method on the exact gradient."""
        trial = self.active.copy()
        trial.sweep(tol)
        return LaplaceModel(trial) if trial.objective() >= self.objective else self

    def _relaxed(self, tol: float) -> LaplaceModel:
        r"""MacKay's fixed point :math:`\alpha_j=\gamma_j/m_j` with the exact slope's :math:`m_j`, only upwards."""
        here, step = self.active, 1.0
        for _ in range(_SWEEPS):
            here = _without_idle(here)
            if not here.size:
                break
            new = _swept(here, step)
            rise = new.objective() - here.objective()
            if rise > 0.0:
                here, step = new, min(_LONGER * step, _LONGEST)
                if rise < tol:
                    break
            elif step < _SHORTEST:
                break
            else:
                step *= _SHORTER
        return LaplaceModel(here)


def _swept(here: LaplaceActive, step: float) -> LaplaceActive:
    """Part of a sweep of the fixed point over all precisions."""
    well = np.maximum(here.well_determined, 1e-10)
    wanted = np.log(well / np.maximum(here.squared_mean(), 1e-300)) - np.log(here.alpha)
    log_alpha = np.log(here.alpha) + step * np.clip(wanted, -_REACH, _REACH)
    norms = np.maximum(here.problem.sqnorms[here.indices] / here.problem.n_effective, 1e-300)
    low, high = np.log(_RANGE[0] * norms), np.log(_RANGE[1] * norms)
    return here.moved(np.exp(np.clip(log_alpha, np.minimum(low, np.log(here.alpha)), high)), 1.0)


def _without_idle(here: LaplaceActive) -> LaplaceActive:
    """Without the functions that no longer pay (T&F eq. 21), if the objective does not fall for it."""
    while here.size:
        s, q2 = here.leave_one_out()
        stays = q2 > s
        if stays.all():
            break
        fewer = here.restricted(stays)
        if fewer.objective() < here.objective():
            break
        here = fewer
    return here
