"""What a search is told: when to stop, what to do meanwhile, and where to begin or to go on from."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from sparsebayes.inference.models.interface import Active
from sparsebayes.inference.models.problem import GaussianProblem
from sparsebayes.inference.search.starts import Course
from sparsebayes.inference.solvers.solver import Solver, State
from sparsebayes.inference.status import Record
from sparsebayes.typing import Array

if TYPE_CHECKING:
    from sparsebayes.inference.fit.guard import Judge


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
    observe, reached : callable, optional
        Called with every record; and with what is done next, and about what share of the search is behind it.
    keeper : Keeper, optional
        Where the state is kept now and then, and where the search goes on from.
    warm : Warm, optional
        Begin from this model of a nearby problem with the same functions, and make no further starts.
    restarts, restart_rng : int, Generator
        Starts from random models, after all others, and their randomness.
    judge : Judge, optional
        Asked of starts whose functions use up many rows, which are not trusted without it.
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
    judge: Judge | None = None
    whole: bool = False

    def aside(self, **others: Any) -> Settings:
        """Those of a search on the side, of which nothing is shown and nothing kept."""
        return replace(self, observe=None, reached=None, keeper=None, **others)


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


class Keeper(Protocol):
    """Where checkpoints are kept."""

    def restore(self) -> Checkpoint | None:
        """The last one; None if there is none."""
        ...

    def due(self) -> bool:
        """Whether it is time for another."""
        ...

    def keep(self, checkpoint: Checkpoint) -> None:
        """Keep this one in the place of the last."""
        ...


@dataclass(frozen=True)
class Checkpoint:
    """The best complete model of a search, and how far the search has come, as plain data; all else follows from them.

    Also ``mean``: in a working set, whose functions are ``members``, a mode is found only as closely as decisions need.
    """

    completed: int
    start: int
    n_iter: int
    indices: list[int]
    alpha: list[float]
    beta: float
    mean: list[Any]
    learn_noise: bool
    members: list[int] | None
    remembered: dict[str, Any]
    rng: dict[str, Any]
    history: list[dict[str, Any]]
    leader: int = 0

    @classmethod
    def of(cls, state: State, start: int, n_iter: int, course: Course, history: list[Record]) -> Checkpoint:
        """Describe a complete state of a start."""
        active = state.active
        members = active.problem.members
        return cls(
            completed=course.completed,
            start=start,
            n_iter=n_iter,
            indices=[int(i) for i in active.indices],
            alpha=active.alpha.tolist(),
            beta=float(active.beta),
            mean=active.mean.tolist(),
            learn_noise=bool(state.learn_noise),
            members=None if members is None else members.tolist(),
            remembered=state.remembered(),
            rng=dict(state.rng.bit_generator.state),
            history=[asdict(record) for record in history],
            leader=course.leader,
        )

    @property
    def records(self) -> list[Record]:
        """Records so far."""
        return [Record(**{**r, "added": tuple(r["added"]), "removed": tuple(r["removed"])}) for r in self.history]

    def revive(self, solver: Solver, empty: Active, rng: np.random.Generator) -> State:
        """The state that was described, computed anew from the data, in the problem of an empty model."""
        problem = empty.problem
        if self.members is not None and problem.members is not None:
            # The first working set follows from the data; what was taken in later stands behind it.
            fresh = np.array(self.members[len(problem.members) :], dtype=np.intp)
            problem = problem.enlarge(fresh) if len(fresh) else problem
        rng.bit_generator.state = self.rng
        active = empty.like(problem, self.indices, np.array(self.alpha), beta=self.beta, mean=np.array(self.mean))
        state = solver.init(active, self.learn_noise, rng)
        state.remember(self.remembered)
        return state
