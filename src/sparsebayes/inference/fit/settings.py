"""What a search is told: when to stop, what to do meanwhile, and where to begin."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from sparsebayes.inference.fit.checkpoint import Keeper
from sparsebayes.inference.fit.folds import Folds
from sparsebayes.inference.models.evidence import Array
from sparsebayes.inference.models.gaussian import GaussianModel
from sparsebayes.inference.models.interface import Active
from sparsebayes.inference.models.problem import GaussianProblem
from sparsebayes.inference.status import Record


@dataclass(frozen=True)
class Settings:
    """When to stop, and what to do meanwhile.

    Attributes
    ----------
    tol : float
        No single move may gain more at convergence, in nats.
    max_iter : int
        Largest number of moves of one start.
    noise_variance : float, optional
        Fixed noise variance; None learns it.
    grow : callable, optional
        ``grow(kept, rng)`` gives the problem with generated functions added to its dictionary.
    observe : callable, optional
        Called with every record.
    reached : callable, optional
        Called with what is done next, and with about what share of the search is behind it.
    keeper : Keeper, optional
        Where the state is kept now and then, and where the search goes on from.
    warm : Warm, optional
        Begin from this model of a nearby problem with the same functions, and make no further starts.
    restarts : int
        Starts from random models, after all others.
    restart_rng : Generator, optional
        Their randomness.
    folds : Folds, optional
        Judge of starts whose functions use up many rows; without it they are not trusted.
    doubts : callable, optional
        Called with the model of the first start, and as a working set takes in more functions; the search ends where it
        says so.
    whole : bool
        Search in the whole dictionary, never in a part of it.
    """

    tol: float
    max_iter: int
    noise_variance: float | None = None
    grow: Callable[[list[int], np.random.Generator], GaussianProblem] | None = None
    observe: Callable[[Record], None] | None = None
    reached: Callable[[str, float], None] | None = None
    keeper: Keeper | None = None
    warm: Warm | None = None
    restarts: int = 0
    restart_rng: np.random.Generator | None = None
    folds: Folds | None = None
    doubts: Callable[[Active | GaussianModel], bool] | None = None
    whole: bool = False


@dataclass(frozen=True)
class Warm:
    """A model to begin from: functions, precisions and inverse noise variance; without functions, an empty one."""

    indices: list[int]
    alpha: Array
    beta: float

    @classmethod
    def of(cls, active: Active) -> Warm:
        """The model that was found."""
        return cls(list(active.indices), active.alpha, active.beta)
