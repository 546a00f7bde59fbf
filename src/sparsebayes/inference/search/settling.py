"""All precisions and the noise of a model moved together to their joint maximum.

Beyond the papers: a single re-estimation per move needs hundreds of moves where functions overlap; Newton's method on
the exact derivatives (``small.py``) needs a handful, and ends at the maximum itself, so that the result depends on the
data alone and not on the path.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from sparsebayes.inference.models.active import ActiveSet
from sparsebayes.inference.models.compiled import How, Library, MadeOf, Task, library
from sparsebayes.inference.models.evidence import Array, best_moves
from sparsebayes.inference.models.interface import Active
from sparsebayes.inference.models.linalg import BLOCK
from sparsebayes.inference.models.small import (
    REACH,
    SHIFTS,
    WELL_CONDITIONED,
    SmallPosterior,
    SmallProblem,
    joint_newton,
    sumsq,
)
from sparsebayes.inference.objective.noise import noise_floor

# Steps of one joint settling at most.
_STEPS = 60
# Lengths of a step that are tried one after the other.
_LENGTHS = (1.0, 0.3, 0.1, 0.01)
# The same for the compiled settling.
_RULES = Task(made_of=MadeOf.EITHER, apart=WELL_CONDITIONED, steps=_STEPS, reach=REACH, block=BLOCK)
_RULES.searching(_LENGTHS, SHIFTS)


def settle_all(active: Active, tol: float, *, learn_noise: bool) -> int:
    """Settle a model of any likelihood, its noise too where it has one that is learned; how many changes it took."""
    if not isinstance(active, ActiveSet):
        return active.sweep(tol)
    return settle(active, tol, 1.0 / noise_floor(active) if learn_noise else None)


def settle(active: ActiveSet, tol: float, beta_limit: float | None = None) -> int:
    """Move all precisions, and the noise up to a limit where one is given, to their joint maximum.

    Functions without relevance leave on the way.  Every step is kept only if the objective does not fall.

    Returns
    -------
    int
        How many precisions were changed or functions removed; none where that gained less than ``tol``.
    """
    trial = _Settling(active, beta_limit)
    before, compiled = trial.level, library()
    if compiled is None:
        trial.climb(tol)
    else:
        trial.compiled(compiled, tol)
    if trial.level <= before:
        return 0
    shift = np.abs(np.log(trial.alpha / active.alpha[trial.stays]))
    changed = int(np.sum(shift > tol)) + active.size - int(np.sum(trial.stays))
    active.restrict(trial.stays, trial.alpha, trial.beta, trial.post)
    return max(1, changed) if trial.level - before > tol else 0


class _Settling:
    """A model on trial that lives in the small space of the factors."""

    def __init__(self, active: ActiveSet, beta_limit: float | None) -> None:
        self.active = active
        self.learn = beta_limit is not None
        self.beta_limit = beta_limit or np.inf
        self.stays = np.ones(active.size, dtype=bool)
        self.small, self.post = active.small, active.posterior()
        self.alpha, self.beta, self.level = active.alpha, active.beta, active.objective()

    def _accept(self, small: SmallProblem, alpha: Array, beta: float) -> bool:
        """Move there if the objective does not fall."""
        post = SmallPosterior.of(small, alpha, beta)
        level = self.active.evidence(post, alpha, beta) - self.active.problem.inclusion_cost * len(alpha)
        if not level >= self.level:
            return False
        self.small, self.alpha, self.beta, self.post, self.level = small, alpha, beta, post, level
        return True

    def compiled(self, compiled: Library, tol: float) -> None:
        """What ``climb`` does, by the same statements in C."""
        problem, (R, z), a = self.active.problem, (self.small.R, self.small.z), len(self.alpha)
        missing = a - len(R)
        if missing:
            R, z = np.pad(R, ((0, missing), (0, 0))), np.pad(z, ((0, missing), (0, 0)))
        task = Task.from_buffer_copy(_RULES)
        task.learn_noise, task.most_certain, task.tol = self.learn, self.beta_limit, tol
        task.n, task.cost = problem.n_effective, problem.inclusion_cost
        found = compiled.settle(How.EXACTLY, task, R, z, self.alpha, self.beta, self.small.rest)
        if found is None:
            return
        self.stays[:] = False
        self.stays[found.functions] = True
        self.post = SmallPosterior(found.mean, found.inverse, 2.0 * found.log_diagonal, found.residual_sumsq)
        self.alpha, self.beta = found.alpha, found.beta
        self.level = found.log_evidence - problem.inclusion_cost * len(found.alpha)

    def climb(self, tol: float) -> None:
        """Ascend until a step promises less than ``tol``."""
        for _ in range(_STEPS):
            leaves = self._idle()
            if leaves.any():
                if not self._leave(leaves):
                    return
            elif not len(leaves) or self._newton() < tol:
                return

    def _idle(self) -> NDArray[np.bool_]:
        r"""Functions that are best left out: :math:`q^2\le s` (T&F eq. 21), or not worth what they cost."""
        variance, problem = self.post.covariance.diagonal(), self.active.problem
        gamma, mean2 = np.maximum(1.0 - self.alpha * variance, 0.0), sumsq(self.post.mean) / problem.n_targets
        if problem.inclusion_cost == 0.0:
            return mean2 <= gamma * variance
        s, q2 = gamma / variance, mean2 / variance**2
        return ~np.isfinite(best_moves(self.alpha, s, q2, problem.n_targets, problem.inclusion_cost)[0])

    def _leave(self, leaves: NDArray[np.bool_]) -> bool:
        """Let go of what has no relevance: all of it at once, or else the one that matters least."""
        if self._without(leaves):
            return True
        least = np.argmin(np.where(leaves, sumsq(self.post.mean) * self.alpha, np.inf))
        return self._without(np.arange(len(leaves)) == least)

    def _without(self, leaves: NDArray[np.bool_]) -> bool:
        if not self._accept(self.small.restrict(~leaves), self.alpha[~leaves], self.beta):
            return False
        self.stays[np.flatnonzero(self.stays)[leaves]] = False
        return True

    def _newton(self) -> float:
        """One safeguarded Newton step; what it gained, or promised where that is below rounding."""
        n = self.active.problem.n_effective
        step, promise = joint_newton(
            self.post.mean, self.post.covariance, self.post.residual_sumsq, self.alpha, self.beta, n, self.learn
        )
        before = self.level
        for length in _LENGTHS:
            alpha = self.alpha * np.exp(length * step[: len(self.alpha)])
            beta = min(self.beta * float(np.exp(length * step[-1])), self.beta_limit) if self.learn else self.beta
            if self._accept(self.small, alpha, beta):
                return max(self.level - before, promise if length == 1.0 else 0.0)
        return 0.0
