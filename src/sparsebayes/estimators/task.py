"""What every fit needs, and what is common to running one."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning

from sparsebayes.inference import Record, Settings, Solver, Status
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
    verbose: int
    support: str = "evidence"

    def settings(self, **further: Any) -> Settings:
        """Settings of the loop; a solver's own win over the estimator's."""
        return Settings(
            tol=self.solver.tol or self.tol,
            max_iter=self.solver.max_iter or self.max_iter,
            observe=_progress(self.verbose),
            **further,
        )

    def rule(self, eligible: NDArray[np.bool_], n_targets: int = 1) -> SupportRule:
        """What a function must show to stay."""
        return SupportRule.named(self.support, int(np.sum(eligible)), n_targets)

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


def _progress(verbose: int) -> Callable[[Record], None] | None:
    if not verbose:
        return None
    count = 0

    def report(record: Record) -> None:
        nonlocal count
        count += 1
        if verbose > 1 or count % 50 == 0:
            print(
                f"start {record.start}  {record.move:<10}  functions {record.n_active:4d}  "
                f"objective {record.objective:.4f}"
            )

    return report
