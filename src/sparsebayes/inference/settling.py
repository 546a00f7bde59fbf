"""All precisions and the noise of a model moved together to their joint maximum.

Beyond the papers: a single re-estimation per move needs hundreds of moves where functions overlap; Newton's method on
the exact derivatives (``small.py``) needs a handful, and ends at the maximum itself, so that the result depends on the
data alone and not on the path.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from sparsebayes.inference.active import ActiveSet
from sparsebayes.inference.evidence import Array, best_moves
from sparsebayes.inference.small import SmallPosterior, joint_newton

# Steps of one joint settling at most.
_STEPS = 60


def settle(active: ActiveSet, tol: float, beta_limit: float | None = None) -> int:
    """Move all precisions, and the noise up to a limit where one is given, to their joint maximum.

    Functions without relevance leave on the way.  Every step is kept only if the objective does not fall.

    Returns
    -------
    int
        How many precisions were changed or functions removed; none where that gained less than ``tol``.
    """
    trial = _Settling(active, beta_limit)
    before = trial.level
    trial.climb(tol)
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
        self._set(self.stays, active.alpha, active.beta)

    def _set(self, stays: NDArray[np.bool_], alpha: Array, beta: float) -> None:
        self.stays, self.alpha, self.beta = stays, alpha, beta
        self.post, self.level = self._at(stays, alpha, beta)

    def _at(self, stays: NDArray[np.bool_], alpha: Array, beta: float) -> tuple[SmallPosterior, float]:
        active = self.active
        post = SmallPosterior.solve(active.R[:, stays], active.z, active.rest, alpha, beta)
        return post, active.evidence(post, alpha, beta) - active.problem.inclusion_cost * len(alpha)

    def _accept(self, stays: NDArray[np.bool_], alpha: Array, beta: float) -> bool:
        post, level = self._at(stays, alpha, beta)
        if not level >= self.level:
            return False
        self.stays, self.alpha, self.beta, self.post, self.level = stays, alpha, beta, post, level
        return True

    def climb(self, tol: float) -> None:
        """Ascend until a step promises less than ``tol``."""
        for _ in range(_STEPS):
            best = self._best()
            if not np.all(np.isfinite(best)):
                if not self._leave(best):
                    return
            elif not len(best) or self._newton() < tol:
                return

    def _best(self) -> Array:
        variance = np.diagonal(self.post.covariance)
        s = np.maximum(1.0 - self.alpha * variance, 0.0) / variance
        q2 = np.mean((self.post.mean / variance[:, None]) ** 2, axis=1)
        problem = self.active.problem
        return best_moves(self.alpha, s, q2, problem.n_targets, problem.inclusion_cost)[0]

    def _leave(self, best: Array) -> bool:
        """Let go of what has no relevance: all of it at once, or else the one that matters least."""
        leaves = ~np.isfinite(best)
        if self._without(leaves):
            return True
        least = np.argmin(np.where(leaves, np.sum(self.post.mean**2, axis=1) * self.alpha, np.inf))
        return self._without(np.arange(len(best)) == least)

    def _without(self, leaves: NDArray[np.bool_]) -> bool:
        stays = self.stays.copy()
        stays[np.flatnonzero(self.stays)[leaves]] = False
        return self._accept(stays, self.alpha[~leaves], self.beta)

    def _newton(self) -> float:
        """One safeguarded Newton step; what it gained, or promised where that is below rounding."""
        n = self.active.problem.n_effective
        step, promise = joint_newton(self.post, self.alpha, self.beta, n, self.learn)
        before = self.level
        for length in (1.0, 0.3, 0.1, 0.01):
            alpha = self.alpha * np.exp(length * step[: len(self.alpha)])
            beta = min(self.beta * float(np.exp(length * step[-1])), self.beta_limit) if self.learn else self.beta
            if self._accept(self.stays, alpha, beta):
                return max(self.level - before, promise if length == 1.0 else 0.0)
        return 0.0
