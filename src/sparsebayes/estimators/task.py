"""What every fit needs, and what is common to running one."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import issparse
from sklearn.exceptions import ConvergenceWarning

from sparsebayes.basis.base import is_elsewhere
from sparsebayes.callers import stack_level
from sparsebayes.estimators.checkpoint import CheckpointFile
from sparsebayes.estimators.dictionary import Dictionary
from sparsebayes.estimators.progress import Progress
from sparsebayes.inference import Result, Settings, Solver, Status
from sparsebayes.inference.fit.settings import Warm
from sparsebayes.inference.objective import SupportRule

Array = NDArray[np.float64]


# Bytes of X up to which a model keeps a copy of what it was fitted to.
_KEPT = 1 << 30


@dataclass(frozen=True)
class FittedTo:
    """What a model was fitted to, so that it can be asked later about what it left out."""

    X: Any
    y: NDArray[Any]
    sample_weight: Array | None = None

    @classmethod
    def of(cls, X: Any, y: Any) -> FittedTo | None:
        """A copy, since callers may write into their arrays afterwards; None where it is elsewhere, or too large."""
        if is_elsewhere(X):
            return None
        if isinstance(X, np.ndarray) or issparse(X):
            size = X.nbytes if isinstance(X, np.ndarray) else X.data.nbytes
            if isinstance(X, np.memmap) or size > _KEPT:
                return None
            # An array in its own order of memory, by which sums round.
            X = X.copy("K") if isinstance(X, np.ndarray) else X.copy()
        return cls(X, np.array(y))

    def weighing(self, sample_weight: ArrayLike | None) -> FittedTo:
        """The same with these weights, once they have been checked."""
        return self if sample_weight is None else replace(self, sample_weight=np.array(sample_weight, dtype=np.float64))


@dataclass
class Thread:
    """The models that one fit of a path leaves for the next to begin from."""

    models: list[Warm] | None = None


@dataclass(frozen=True)
class Task:
    """Training rows and settings, validated.

    ``gamma`` is ``"evidence"``, ``"ard"`` or ``"multiscale"`` where the parameters of the kernel are to be learned.
    """

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
    n_restarts: int = 0
    gamma: str | None = None
    thread: Thread | None = None

    @property
    def n_rows(self) -> float:
        """Rows, each as often as its weight says."""
        return float(np.sum(self.weights))

    @property
    def whole(self) -> bool:
        """Whether the whole dictionary is needed at every step: it changes, or models of it are given."""
        return self.gamma is not None or self.n_restarts > 0 or self.thread is not None

    def settings(self, search: int = 0, **further: Any) -> Settings:
        """Settings of the loop for one of the fit's searches; a solver's own win over the estimator's."""
        return Settings(
            tol=self.solver.tol or self.tol,
            max_iter=self.solver.max_iter or self.max_iter,
            observe=self.progress.observe,
            keeper=None if self.checkpoint is None else self.checkpoint.search(search),
            # With a kernel to learn, restarts begin at other parameters instead.
            restarts=self.n_restarts if self.gamma is None else 0,
            restart_rng=self.restarts() if self.n_restarts else None,
            whole=self.whole,
            **further,
        )

    def rule(self, eligible: NDArray[np.bool_], n_targets: int = 1) -> SupportRule:
        """What a function must show to stay."""
        return SupportRule.named(self.support, int(np.sum(eligible)), n_targets)

    def bias(self, dictionary: Dictionary) -> int | None:
        """The intercept; where the search begins with a constant function, one of the basis will do."""
        return dictionary.constant() if self.solver.initialisation == "bias" else dictionary.bias

    def close(self, statuses: list[Status]) -> None:
        """Remove the checkpoint where every search ended by itself."""
        if self.checkpoint is not None and all(status.converged for status in statuses):
            self.checkpoint.remove()

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


def warn_unconverged(statuses: list[Status], *, noise: bool = True) -> None:
    """Tell the user of every search that ended early, with the remedy; ``noise`` where the model has any."""
    for status in statuses:
        if not status.converged:
            text = status.value + (status.noise_remedy if noise else "")
            warnings.warn(text, ConvergenceWarning, stacklevel=stack_level())
