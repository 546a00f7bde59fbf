"""The only outer loop: starts, stopping, callbacks, history, status and certificate."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from sparsebayes.inference.active import ActiveSet
from sparsebayes.inference.certificate import Certificate, certify, really_refused
from sparsebayes.inference.checkpoint import capture, revive
from sparsebayes.inference.interface import Active
from sparsebayes.inference.interrupt import asked_to_stop
from sparsebayes.inference.laplace import LaplaceActive
from sparsebayes.inference.mode import LaplaceProblem
from sparsebayes.inference.noise import noise_floor
from sparsebayes.inference.problem import Problem
from sparsebayes.inference.restarts import random_model
from sparsebayes.inference.settings import Settings
from sparsebayes.inference.solver import REFUSED, Info, Solver, State
from sparsebayes.inference.starts import FIRST_NOISE, SizeLimit, Watch, full_model, hold
from sparsebayes.inference.status import Record, Status
from sparsebayes.inference.working import holding, widen, working_problem
from sparsebayes.threads import one_thread

_CERTIFICATION_ROUNDS = 3
# Part of the largest gain outside a working set below which gains inside it wait.
_FAR_BELOW = 0.1


@dataclass(frozen=True)
class Result:
    """The winning start, its posterior recomputed on the data, and the proof of its convergence."""

    active: Active
    status: Status
    certificate: Certificate
    history: list[Record]
    n_iter: int


@dataclass
class _Start:
    """One start: its id, its state, and its moves so far."""

    number: int
    state: State
    n_iter: int = 0


class _Stopped(Exception):
    """The loop ended before convergence."""

    def __init__(self, status: Status, start: int) -> None:
        super().__init__(status.value)
        self.status = status
        self.start = start


def run(problem: Problem | LaplaceProblem, solver: Solver, settings: Settings, rng: np.random.Generator) -> Result:
    """Maximise the objective, keep the best start, and certify it.

    Parameters
    ----------
    problem : Problem or LaplaceProblem
        What to solve.
    solver : Solver
        The solver.
    settings : Settings
        When to stop.
    rng : Generator
        Randomness of the solver, if it uses any.
    """
    with one_thread(), asked_to_stop() as stop:
        return _Run(solver, settings, stop).solve(problem, rng)


class _Run:
    """One fit: its starts, its history, and the best model so far."""

    def __init__(self, solver: Solver, settings: Settings, stop: Callable[[], bool]) -> None:
        self.solver = solver
        self.settings = settings
        self.stop = stop
        self.history: list[Record] = []
        self.completed = -1
        self.searching = True

    def solve(self, problem: Problem | LaplaceProblem, rng: np.random.Generator) -> Result:
        """Run all starts and certify the best."""
        active, learn, status = self._begin(problem)
        self.best = self._first(active, learn, rng)
        if status is Status.CONVERGED:
            status = self._search()
        self.searching = False
        certificate = self._certify(status)
        state = self.best.state
        status = _judge(state, status, certificate, self.solver.ends)
        return Result(state.active, status, certificate, self.history, self.best.n_iter)

    def _begin(self, problem: Problem | LaplaceProblem) -> tuple[Active, bool, Status]:
        """The empty model, whether its noise is to be learned, and whether there is anything to do."""
        warm, fixed = self.settings.warm, self.settings.noise_variance
        partial = self.solver.working_sets and not self.settings.whole and (warm is None or warm.partial)
        small = working_problem(problem) if partial else problem
        if warm is not None and partial and not isinstance(small, LaplaceProblem):
            small, indices = holding(small, warm.indices)
            warm = replace(warm, indices=indices)
        if isinstance(small, LaplaceProblem):
            known = LaplaceActive(small) if warm is None else LaplaceActive.from_model(small, warm.indices, warm.alpha)
            return known, False, Status.CONVERGED
        scale = small.mean_square
        if scale == 0.0:
            return ActiveSet(small, 1.0 / (fixed or 1.0)), False, Status.CONSTANT
        if warm is not None:
            beta = warm.beta if fixed is None else 1.0 / fixed
            return ActiveSet.from_model(small, warm.indices, warm.alpha, beta), fixed is None, Status.CONVERGED
        return ActiveSet(small, 1.0 / (fixed or FIRST_NOISE * scale)), fixed is None, Status.CONVERGED

    def _first(self, empty: Active, learn: bool, rng: np.random.Generator) -> _Start:
        """The first start: from nothing, or from where an earlier search was."""
        saved = None if self.settings.keeper is None else self.settings.keeper.restore()
        if saved is None:
            return _Start(0, self.solver.init(empty, learn, rng))
        self.history, self.completed = saved.records, saved.completed
        return _Start(saved.start, revive(saved, self.solver, empty, rng), saved.n_iter)

    # -- starts --------------------------------------------------------------------------------------------

    def _search(self) -> Status:
        try:
            self._climb(self.best)
            self._complete(0)
            if self.best.state.learn_noise and self.settings.warm is None:
                number = self._lower_noise_starts()
                if number is not None or self.best.state.active.problem.inclusion_cost > 0.0:
                    number = number or len(self.solver.further_starts)
                    self._fresh_start(number + 1)
                    self._full_start(number + 2)
            self._restarts()
        except _Stopped as stop:
            self._keep()
            exhausted = stop.status is Status.MAX_ITER and stop.start != self.best.number
            return Status.CONVERGED if exhausted else stop.status  # a later start may run out: the best one stands
        return Status.CONVERGED

    def _lower_noise_starts(self) -> int | None:
        """Go on from the best model with the noise held lower; None if the rest turns out to be noise at once."""
        number, finished = 0, int(self.completed > 0)
        for number, fraction in enumerate(self.solver.further_starts, start=1):
            state = self.best.state
            level = fraction * state.active.problem.mean_square
            if number <= self.completed or level * state.active.beta >= 1.0:
                continue  # the noise found is already lower than this start would hold it
            watch = Watch(state.objective)
            trial = _Start(number, hold(state, level))
            self._climb(trial, watch.over)
            if watch.abandoned:
                return number if finished else None
            self._release(trial)
            finished += 1
        return number

    def _fresh_start(self, number: int) -> None:
        """Begin once more from nothing, while that costs little."""
        state, fraction = self.best.state, self.solver.fresh_start
        if fraction is None or number <= self.completed:
            return
        problem = state.active.problem
        level = fraction * problem.mean_square
        limit = SizeLimit.beside(state.gaussian, level)
        if not limit.worth_it:
            return
        empty = ActiveSet(problem, 1.0 / level)
        trial = _Start(number, self.solver.init(empty, False, state.rng))
        self._climb(trial, limit.over)
        self._release(trial)

    def _full_start(self, number: int) -> None:
        """Begin once more from the whole dictionary, where that is small."""
        state = self.best.state
        problem = state.active.problem
        model = full_model(problem) if self.solver.full_start and problem.parent is None else None
        if model is not None:
            # The functions that the fixed point left are this start's additions.
            self._release(_Start(number, self.solver.init(model, True, state.rng), n_iter=model.size))

    def _restarts(self) -> None:
        """Begin from random models; where noise is learned, at the noise of the best one."""
        if self.settings.restarts == 0 or self.settings.chance is None or self.settings.warm is not None:
            return
        first = 1 + max((record.start for record in self.history), default=0)
        for number in range(first, first + self.settings.restarts):
            state = self.best.state
            model = random_model(state.active, self.settings.chance)
            trial = _Start(number, self.solver.init(model, state.learn_noise, state.rng), n_iter=model.size)
            self._climb(trial)
            if trial.state.objective > self.best.state.objective:
                self.best = trial

    def _release(self, trial: _Start) -> None:
        """Free the noise of a held start, climb on, and keep the result if it is the best so far."""
        trial.state.learn_noise = True
        self._climb(trial)
        if trial.state.objective > self.best.state.objective:
            self.best = trial
        self._complete(trial.number)

    def _complete(self, number: int) -> None:
        """Note that a start has ended by itself."""
        self.completed = max(self.completed, number)
        self._keep()

    def _keep(self) -> None:
        """Keep the best model so far, with the records of starts that will not be made again."""
        best = self.best
        if self.settings.keeper is not None and self.searching:
            made = [r for r in self.history if r.start <= max(0, self.completed) or r.start == best.number]
            self.settings.keeper.keep(capture(best.state, best.number, best.n_iter, self.completed, made))

    def _certify(self, status: Status) -> Certificate:
        """Certify on the data; where rounding had hidden a move, make it and certify again."""
        certificate = self._recompute(searched=status is Status.CONVERGED)
        if self.solver.ends is not Status.STALLED:  # the search was for something else than the evidence
            return certificate
        for _ in range(_CERTIFICATION_ROUNDS):
            if certificate.converged or status is not Status.CONVERGED:
                break
            if not self.best.state.active.approximate:
                self.best.state.refused.clear()
            try:
                self._climb(self.best)
            except _Stopped:
                break
            certificate = self._recompute(searched=True)
        return certificate

    def _recompute(self, *, searched: bool) -> Certificate:
        """Compute the best model anew from the data, and what was refused, unless the search was broken off."""
        state = self.best.state
        refused = state.active.problem.whole(sorted(state.refused))[1] if state.active.approximate and searched else []
        state.active = self.solver.model(state)
        state.evidence = state.active.evidence()
        if state.active.approximate:
            state.refused = really_refused(state.active, refused, self.settings.tol)
        return certify(
            state.active,
            learn_noise=state.learn_noise,
            tol=self.settings.tol,
            start=self.best.number,
            refused=frozenset(state.refused if state.active.approximate else ()),
            hyperpriors=self.solver.hyperpriors,
        )

    # -- the loop ------------------------------------------------------------------------------------------

    def _climb(self, start: _Start, over: Callable[[State, int], bool] | None = None) -> None:
        """Step until no move gains ``tol``, or ``over(state, moves)`` says that it is enough."""
        state = start.state
        rounds = self.solver.rounds if self.settings.grow is not None else 0
        while True:
            if self.stop():
                raise _Stopped(Status.INTERRUPTED, start.number)
            info = self.solver.step(state, self.settings.tol)
            if info is None and over is None:
                if self._widen(state):
                    continue
                info = self.solver.escape(state, self.settings.tol) if self.settings.warm is None else None
            if info is None and rounds > 0:
                rounds -= 1
                self._grow(state)
                continue
            if info is None:
                return
            if info.move == REFUSED:
                continue
            start.n_iter += info.n_moves
            self._record(start, info)
            if over is not None and over(state, start.n_iter):
                return
            if start.n_iter >= self.settings.max_iter:
                raise _Stopped(Status.MAX_ITER, start.number)
            hopeless = self.settings.hopeless if self.searching and start.number == 0 else None
            if hopeless is not None and hopeless(state.active):  # later starts hold the noise where functions are many
                raise _Stopped(Status.NOISE_UNDETERMINED, start.number)

    def _widen(self, state: State) -> bool:
        """Take more functions into the working set, where there is one and some outside it gain.

        Where none does for the first time, and gains are only predicted, the search goes on with trials in earnest.
        Inside, gains far below those outside have waited until then.
        """
        if state.widest:
            return False
        tol, partial = self.settings.tol, state.active.problem.parent is not None
        outside = widen(state.active, tol)
        if outside > 0.0:
            state.refused.clear()
            state.stale.clear()
            state.swept = False
        state.widest = outside == 0.0 and state.active.approximate and partial
        finer = partial and not state.active.approximate and state.level > tol
        state.level = max(tol, min(state.level, _FAR_BELOW * outside)) if finer else state.level
        return outside > 0.0 or state.widest or finer

    def _grow(self, state: State) -> None:
        """Add generated functions to the dictionary."""
        if self.settings.grow is not None:
            state.gaussian.extend(self.settings.grow(state.active.indices, state.rng))

    def _record(self, start: _Start, info: Info) -> None:
        state = start.state
        record = Record(
            start=start.number,
            move=info.move,
            function=info.function,
            n_moves=info.n_moves,
            evidence=state.evidence,
            objective=state.objective + self.solver.hyperpriors.log_prior(state.active, noise=state.learn_noise),
            n_active=state.n_active,
            noise_variance=state.noise_variance,
        )
        self.history.append(record)
        if self.settings.observe is not None:
            self.settings.observe(record)
        if self.solver.callback is not None and self.solver.callback(record, self.solver.shown(state)):
            raise _Stopped(Status.INTERRUPTED, start.number)
        if self.settings.keeper is not None and self.settings.keeper.due():
            self._keep()


def _judge(state: State, status: Status, certificate: Certificate, ends: Status) -> Status:
    """Status of a search that ended by itself: convergence is claimed only where the certificate proves it."""
    if status is not Status.CONVERGED:
        return status
    if not certificate.converged:
        return ends
    if state.learn_noise and 1.0 / state.active.beta <= 1.01 * noise_floor(state.active):
        return Status.NOISE_FLOOR
    if certificate.noise_degenerate:
        return Status.NOISE_UNDETERMINED
    return status if state.active.size else Status.EMPTY
