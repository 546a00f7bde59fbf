"""What every fit needs, and what is common to running one."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning

from sparsebayes.inference import Record, Result, Settings, Solver, Status
from sparsebayes.inference.run import Warm
from sparsebayes.inference.support import SupportRule

Array = NDArray[np.float64]


@dataclass
class Thread:
    """The models that one fit of a path leaves for the next to begin from."""

    models: list[Warm] | None = None


@dataclass(frozen=True)
class Task:
    """Training rows and settings, validated.

    ``gamma`` is ``"evidence"`` or ``"ard"`` where the parameters of the kernel are to be learned.
    """

    X: Any
    weights: Array
    fit_intercept: bool
    solver: Solver
    tol: float
    max_iter: int
    random_state: int | np.random.RandomState | None
    verbose: int
    support: str = "evidence"
    n_restarts: int = 0
    gamma: str | None = None
    thread: Thread | None = None

    @property
    def whole(self) -> bool:
        """Whether the whole dictionary is needed at every step: it changes, or models of it are given."""
        return self.gamma is not None or self.n_restarts > 0 or self.thread is not None

    def settings(self, **further: Any) -> Settings:
        """Settings of the loop; a solver's own win over the estimator's."""
        return Settings(
            tol=self.solver.tol or self.tol,
            max_iter=self.solver.max_iter or self.max_iter,
            observe=_progress(self.verbose),
            # With a kernel to learn, restarts begin at other parameters instead.
            restarts=self.n_restarts if self.gamma is None else 0,
            chance=self.restarts() if self.n_restarts else None,
            whole=self.whole,
            **further,
        )

    def rule(self, eligible: NDArray[np.bool_], n_targets: int = 1) -> SupportRule:
        """What a function must show to stay."""
        return SupportRule.named(self.support, int(np.sum(eligible)), n_targets)

    def warm(self, k: int) -> Warm | None:
        """Where problem number k begins on a path; None at its beginning, and off any."""
        return None if self.thread is None or self.thread.models is None else self.thread.models[k]

    def leave(self, results: Sequence[Result]) -> None:
        """Leave the models for the next fit of the path."""
        if self.thread is not None:
            self.thread.models = [Warm.of(result.active) for result in results]

    def generator(self) -> np.random.Generator:
        """Randomness of the solver."""
        seed = self.random_state if self.solver.random_state is None else self.solver.random_state
        if isinstance(seed, np.random.RandomState):
            return np.random.default_rng(seed.randint(2**31))
        return np.random.default_rng(seed)

    def restarts(self) -> np.random.Generator:
        """Randomness of restarts, the same in every fit unless a seed says otherwise."""
        return np.random.default_rng(0) if self.random_state is None else self.generator()


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
