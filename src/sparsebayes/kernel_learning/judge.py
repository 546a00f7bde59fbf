"""Which of two trials is the better one: rows that were left out say it.

Every function has a precision of its own, and maximising over it lets a function gain evidence from noise, so that
along the scale of the functions the evidence can rise until every row has a narrow function to itself.  Searches on
four fifths of the rows see that (``inference/fit/folds.py``): the density of rows left out decides, among trials that
predict them no worse than the widths as given, by density and by squared error.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from sparsebayes.inference.fit.folds import VOICE, Folds
from sparsebayes.inference.models.evidence import Array
from sparsebayes.inference.models.problem import Index
from sparsebayes.kernel_learning.trials import Problems, Search, Trial

# Rows that are left out at least, where there are more: parts of the rows beyond these are not searched.
_ENOUGH = 600.0
# By how much the noise is lowered for a second search on each part.  A single search misses more at some widths than at
# others; one kick takes most of the way to what all starts of a fit would find, for half of the time more.
_KICK = 4.0


@dataclass(frozen=True)
class Advantage:
    """By how many nats one trial is better than another, and what of that may be chance."""

    nats: float
    chance: float

    @classmethod
    def of(cls, says: Array, weights: Array) -> Advantage:
        """The sum over rows of what each says, as often as it counts, and its standard deviation."""
        mean = float(np.average(says, weights=weights))
        return cls(mean * float(np.sum(weights)), float(np.sqrt(np.sum(weights * (says - mean) ** 2))))


class Judge:
    """By the density of rows left out, all trials on the same folds, each at its own noise and with calibrated bars."""

    def __init__(self, search: Search, problems: Problems) -> None:
        self.search = search
        first = [Folds(problem, enough=_ENOUGH) for problem in problems]
        self.fold: list[Index] = [one.fold for one in first]
        self.weights: Array = np.concatenate([one.weights for one in first])
        self.n_rows = float(np.sum(self.weights))
        self._known: dict[bytes, tuple[Array, Array]] = {}

    @staticmethod
    def possible(problems: Problems) -> bool:
        """Whether there are targets to predict, and rows enough to leave some out."""
        return all(Folds.possible(problem) and problem.mean_square > 0.0 for problem in problems)

    def compare(self, trial: Trial, other: Trial) -> Advantage:
        """The sum over rows of what each says, and its standard deviation."""
        says = np.clip(self.densities(trial) - self.densities(other), -VOICE, VOICE)
        return Advantage.of(says, self.weights)

    def admits(self, trial: Trial, first: Trial) -> bool:
        """Whether rows left out are no less likely, and their squared error is no larger."""
        if self.compare(trial, first).nats < 0.0:
            return False
        errors = (self._searched(one)[1] for one in (trial, first))
        mine, other = (float(np.average(values, weights=self.weights)) for values in errors)
        return mine <= other

    def densities(self, trial: Trial) -> Array:
        """Log density of every row under searches without it."""
        return self._searched(trial)[0]

    def _searched(self, trial: Trial) -> tuple[Array, Array]:
        """Log densities and squared errors."""
        key = trial.log_theta.tobytes() + np.array([*trial.factors, *(m.beta for m in trial.models)]).tobytes()
        if key not in self._known:
            densities, errors = [], []
            problems = self.search.problems(trial.log_theta, trial.factors)
            for problem, model, fold in zip(problems, trial.models, self.fold, strict=True):
                folds = self.search.left_out(trial, problem, fold, _ENOUGH, _KICK)
                size = max(1, len(model.indices))
                densities.append(folds.calibrated_densities(model.beta, size))
                errors.append(folds.squared_errors(model.beta, size))
            self._known[key] = np.concatenate(densities), np.concatenate(errors)
        return self._known[key]
