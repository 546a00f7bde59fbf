r"""The only outer loop: starts, stopping, callbacks, history and status.

**Starts.** Re-estimating the noise while the model is still small lets the first few functions explain the rest
away as noise, and the search does not recover.  So after the paper's schedule has converged, the search is continued
from that model with the noise *held* at a lower level until convergence, and only then released; the best objective
is kept.  A held start is watched through the noise profile :math:`\max_\beta\mathcal L(\boldsymbol\alpha,\beta)`, the
evidence that the present precisions would have if the noise were free: on data whose rest really is noise it falls
from the first additions on, and the start, with all lower ones, is abandoned; where it stands still for long the
start is released as it is.  Everything is decided by counts and evidences, never by clocks, so that a fit is
reproducible.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from functools import lru_cache

import numpy as np
from threadpoolctl import ThreadpoolController

from sparsebayes.inference.active import ActiveSet
from sparsebayes.inference.certificate import Certificate, certify
from sparsebayes.inference.noise import NoiseProfile, noise_floor
from sparsebayes.inference.problem import Problem
from sparsebayes.inference.sequential import Info, Sequential, State
from sparsebayes.inference.status import Record, Status

# Noise variance of the first start as a fraction of the targets' variance (T&F section 4, step 1).
FIRST_NOISE = 0.1
# Watching a held start: how often, the fall of the profile that ends it, and how long it may stand still.
_WATCH_EVERY = 5
_WATCH_FALL = 2.0
_WATCH_RISE = 1.0
_WATCH_PATIENCE = 40
_CERTIFICATION_ROUNDS = 3


@dataclass(frozen=True)
class Settings:
    """When to stop, and what to do meanwhile."""

    tol: float
    max_iter: int
    noise_variance: float | None = None
    grow: Callable[[list[int], np.random.Generator], Problem] | None = None
    observe: Callable[[Record], None] | None = None


@dataclass(frozen=True)
class Result:
    """The winning start, its posterior recomputed on the data, and the proof of its convergence."""

    active: ActiveSet
    status: Status
    certificate: Certificate
    history: list[Record]
    n_iter: int


@dataclass
class _Climb:
    """One start: its id, its moves so far, and what it has recorded."""

    start: int
    history: list[Record]
    n_iter: int = 0


@dataclass
class _Watch:
    """Judge of a held start, by the noise profile."""

    to_beat: float
    reference: float = field(init=False)
    next_look: int = _WATCH_EVERY
    last_rise: int = 0
    abandoned: bool = False

    def __post_init__(self) -> None:
        self.reference = self.to_beat

    def over(self, state: State, n_iter: int) -> bool:
        """Whether to end the held phase now."""
        if n_iter < self.next_look:
            return False
        self.next_look = n_iter + _WATCH_EVERY
        active = state.active
        limit = -np.log(noise_floor(active))
        _, profile = NoiseProfile.of(active).maximum(np.log(active.beta), limit)
        if profile > self.reference + _WATCH_RISE:
            self.reference, self.last_rise = profile, n_iter
        self.abandoned = profile < self.to_beat - _WATCH_FALL
        return self.abandoned or n_iter - self.last_rise >= _WATCH_PATIENCE


class _Stopped(Exception):
    """The loop ended before convergence."""

    def __init__(self, status: Status) -> None:
        super().__init__(status.value)
        self.status = status


def run(problem: Problem, solver: Sequential, settings: Settings, rng: np.random.Generator) -> Result:
    """Maximise the objective, keep the best start, and certify it.

    Parameters
    ----------
    problem : Problem
        The weighted Gaussian problem.
    solver : Sequential
        The solver.
    settings : Settings
        Tolerance (nats), move limit, fixed noise variance or None.
    rng : Generator
        Randomness of the solver, if it uses any.
    """
    with _blas().limit(limits=1, user_api="blas"):  # the algebra is small: threads would only wait for each other
        return _run(problem, solver, settings, rng)


def _run(problem: Problem, solver: Sequential, settings: Settings, rng: np.random.Generator) -> Result:
    learn = settings.noise_variance is None
    constant = problem.mean_square == 0.0
    first_noise = 1.0 if constant else FIRST_NOISE * problem.mean_square
    state = solver.init(problem, settings.noise_variance or first_noise, learn and not constant, rng)
    history: list[Record] = []
    winner, status = _Climb(0, history), Status.CONSTANT
    if not constant:
        state, winner, status = _search(solver, state, settings, winner)
    certificate, active = _certify(solver, state, settings, winner, status)
    return Result(active, _judge(active, status, state.learn_noise), certificate, history, winner.n_iter)


def _search(
    solver: Sequential, state: State, settings: Settings, climb: _Climb
) -> tuple[State, _Climb, Status]:
    """The first start, then those with the noise held; the best of them."""
    best, winner = state, climb
    fractions = solver.further_starts if state.learn_noise else ()
    try:
        _climb(solver, state, settings, climb)
        for start, fraction in enumerate(fractions, start=1):
            held = fraction * state.active.problem.mean_square
            if held * best.active.beta >= 1.0:
                continue  # the noise found is already lower than this start would hold it
            trial, climb = best.copy(), _Climb(start, winner.history)
            watch = _Watch(best.evidence)
            _hold(trial, held)
            _climb(solver, trial, settings, climb, watch)
            if watch.abandoned:
                break
            trial.learn_noise = True
            _climb(solver, trial, settings, climb)
            if trial.evidence > best.evidence:
                best, winner = trial, climb
    except _Stopped as stop:
        return best, winner, stop.status
    return best, winner, Status.CONVERGED


def _certify(
    solver: Sequential, state: State, settings: Settings, climb: _Climb, status: Status
) -> tuple[Certificate, ActiveSet]:
    """Certify on the data; where rounding had hidden a move, make it and certify again."""
    for _ in range(_CERTIFICATION_ROUNDS):
        certificate, state.active = certify(
            state.active, learn_noise=state.learn_noise, tol=settings.tol, start=climb.start
        )
        if certificate.converged or status is not Status.CONVERGED:
            break
        state.evidence = certificate.log_evidence
        try:
            _climb(solver, state, settings, climb)
        except _Stopped:
            break
    return certificate, state.active


def _hold(state: State, noise_variance: float) -> None:
    """Fix the noise of a start at this level."""
    state.learn_noise = False
    state.active.set_hyperparameters(state.active.alpha, 1.0 / noise_variance)
    state.evidence = state.active.evidence()


def _climb(
    solver: Sequential, state: State, settings: Settings, climb: _Climb, watch: _Watch | None = None
) -> None:
    """Step until no move gains ``tol``, or the watch ends the start."""
    rounds = solver.rounds if settings.grow is not None else 0
    while True:
        info = _guarded_step(solver, state, settings)
        if info is None and rounds > 0 and settings.grow is not None:
            rounds -= 1
            state.active.extend(settings.grow(state.active.indices, state.rng))
            continue
        if info is None:
            return
        if info.move == "refused":
            continue
        climb.n_iter += info.n_moves
        _record(solver, state, settings, climb, info)
        if watch is not None and watch.over(state, climb.n_iter):
            return
        if climb.n_iter >= settings.max_iter:
            raise _Stopped(Status.MAX_ITER)


def _guarded_step(solver: Sequential, state: State, settings: Settings) -> Info | None:
    try:
        return solver.step(state, settings.tol)
    except KeyboardInterrupt as interrupt:
        state.active.rebuild()  # the move may have been cut in half
        raise _Stopped(Status.INTERRUPTED) from interrupt


def _record(solver: Sequential, state: State, settings: Settings, climb: _Climb, info: Info) -> None:
    active = state.active
    record = Record(
        start=climb.start,
        move=info.move,
        function=info.function,
        n_moves=info.n_moves,
        evidence=state.evidence,
        objective=state.evidence,
        n_active=active.size,
        noise_variance=1.0 / active.beta,
    )
    climb.history.append(record)
    if settings.observe is not None:
        settings.observe(record)
    if solver.callback is not None and solver.callback(record, active):
        raise _Stopped(Status.INTERRUPTED)


def _judge(active: ActiveSet, status: Status, learn_noise: bool) -> Status:
    """Status of a search that ended by itself."""
    if status is not Status.CONVERGED:
        return status
    if learn_noise and 1.0 / active.beta <= 1.01 * noise_floor(active):
        return Status.NOISE_FLOOR
    return status if active.size else Status.EMPTY


@lru_cache(maxsize=1)
def _blas() -> ThreadpoolController:
    """Handle on the BLAS libraries; finding them takes milliseconds, so it is done once."""
    return ThreadpoolController()
