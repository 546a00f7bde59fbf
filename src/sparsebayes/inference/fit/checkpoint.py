"""What a search must remember to go on later from where it was."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Protocol

import numpy as np

from sparsebayes.inference.models.interface import Active
from sparsebayes.inference.solvers.solver import Solver, State
from sparsebayes.inference.status import Record


@dataclass(frozen=True)
class Checkpoint:
    """The best complete model of a search, and how far the search has come; plain data.

    The posterior and all statistics follow from the model and the data, so that they need not be kept.

    Attributes
    ----------
    completed : int
        Last start that ended by itself; -1 in the first.
    start, n_iter : int
        Start that the model belongs to, and its moves so far.
    indices, alpha, beta, mean, learn_noise
        The model; its mode is kept because in a working set it is found only as closely as decisions need.
    members : list of int or None
        Working set, where there is one.
    remembered, rng
        What else the solver carries from step to step.
    history : list of dict
        Records so far.
    leader : int
        Last start that gained enough for all kicks to be tried again.
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

    @property
    def records(self) -> list[Record]:
        """Records so far."""
        return [
            Record(**{**record, "added": tuple(record["added"]), "removed": tuple(record["removed"])})
            for record in self.history
        ]


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


def capture(state: State, start: int, n_iter: int, completed: int, history: list[Record], leader: int) -> Checkpoint:
    """Describe a complete state as plain data."""
    active = state.active
    members = active.problem.members
    return Checkpoint(
        completed=completed,
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
        leader=leader,
    )


def revive(saved: Checkpoint, solver: Solver, empty: Active, rng: np.random.Generator) -> State:
    """The state that was captured, computed anew from the data, in the problem of an empty model."""
    problem = empty.problem
    if saved.members is not None and problem.members is not None:
        # The first working set follows from the data; what was taken in later stands behind it.
        fresh = np.array(saved.members[len(problem.members) :], dtype=np.intp)
        problem = problem.enlarge(fresh) if len(fresh) else problem
    rng.bit_generator.state = saved.rng
    alpha = np.array(saved.alpha)
    active = empty.like(problem, saved.indices, alpha, beta=saved.beta, mean=np.array(saved.mean))
    state = solver.init(active, saved.learn_noise, rng)
    state.remember(saved.remembered)
    return state
