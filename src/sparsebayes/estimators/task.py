"""What every fit needs, and what is common to running one."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning

from sparsebayes.estimators.checkpoint import CheckpointFile
from sparsebayes.estimators.progress import Progress
from sparsebayes.inference import Settings, Solver, Status
from sparsebayes.inference.support import SupportRule

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Task:
    """Training rows and settings, validated."""

    X: Any
    weights: Array
    fit_intercept: bool
    solver: Solver
    tol: float
    max_iter: int
    random_state: int | np.random.RandomState | None
    progress: Progress = field(default_factory=Progress)
    checkpoint: CheckpointFile | None = None
    support: str = "evidence"

    def settings(self, search: int = 0, **further: Any) -> Settings:
        """Settings of the loop for one of the fit's searches; a solver's own win over the estimator's."""
        return Settings(
            tol=self.solver.tol or self.tol,
            max_iter=self.solver.max_iter or self.max_iter,
            observe=self.progress.observe,
            keeper=None if self.checkpoint is None else self.checkpoint.search(search),
            **further,
        )

    def rule(self, eligible: NDArray[np.bool_], n_targets: int = 1) -> SupportRule:
        """What a function must show to stay."""
        return SupportRule.named(self.support, int(np.sum(eligible)), n_targets)

    def close(self, statuses: list[Status]) -> None:
        """Remove the checkpoint where every search ended by itself."""
        if self.checkpoint is not None and all(status.converged for status in statuses):
            self.checkpoint.remove()

    def generator(self) -> np.random.Generator:
        """Randomness of the solver."""
        seed = self.random_state if self.solver.random_state is None else self.solver.random_state
        if isinstance(seed, np.random.RandomState):
            return np.random.default_rng(seed.randint(2**31))
        return np.random.default_rng(seed)


def warn_unconverged(statuses: list[Status]) -> None:
    """Tell the user of every search that ended early, with the remedy."""
    for status in statuses:
        if not status.converged:
            warnings.warn(status.value, ConvergenceWarning, stacklevel=4)
