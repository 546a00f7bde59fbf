"""One fit from its first start to its certificate: starts, stopping, callbacks, history and status."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

import numpy as np

from sparsebayes.inference.fit.interrupt import asked_to_stop
from sparsebayes.inference.fit.settings import Checkpoint, Settings
from sparsebayes.inference.models.active import ActiveSet
from sparsebayes.inference.models.gaussian import GaussianModel, Gram
from sparsebayes.inference.models.interface import Active
from sparsebayes.inference.objective import Hyperpriors
from sparsebayes.inference.search.climb import climb
from sparsebayes.inference.search.predicted import Predicted
from sparsebayes.inference.search.starts import (
    COARSE,
    FIRST_NOISE,
    WIDER,
    Begun,
    Plan,
    ascend,
    carried,
    continued,
    random_model,
    search_sample,
)
from sparsebayes.inference.search.working import Problem, empty_model, widened, working_problem
from sparsebayes.inference.solvers.solver import REFUSED, Info, Solver, State
from sparsebayes.inference.status import Certificate, Record, Status, certify, really_refused
from sparsebayes.threads import one_thread

_CERTIFICATION_ROUNDS = 3
# What another start has to bring, in nats: of maxima that are as good as each other rounding would choose.
_HARDLY = 0.1
# What a kick has to bring for all of them to be tried again, in nats.
_WORTHWHILE = 1.0
# Shares of a search that are behind when the pass over all rows, the search on a part of them, the places on all rows,
# the climb among nearly dependent functions and the certificate begin: means over 40,000 rows of protein, 50,000 of
# diamonds and 60,000 of kegg, in processor seconds, halved where both of two cores compute.  Where there is no such
# pass, all but the certificate is places.
_STAGES = (0.07, 0.42, 0.54, 0.67, 0.89)
# Functions up to which a search begins from nothing as well: one with an objective of its own, which was begun from the
# functions that the evidence chooses, and one of classes or counts, where the first functions are all and single ones
# find others than batches (twenty draws of Ripley's mixture: .33 nats on average, at worst none; 2.3 on two of them).
_FEW = 25
# Where gains are only predicted, with what part of the best gain functions are added beside it, and up to which cosine
# of their columns.
_FAIR_PART, _ALIKE = 0.3, 0.3
# Number of the start whose moves are on a part of the rows.
_SAMPLE = -1
# Share of the rows that functions may use up before a lower noise is looked at twice, and how much more of it than a
# model that was looked at.
_UNSUSPICIOUS = 0.1
LITTLE_MORE = 1.25
# Share of the rows that functions may use up before the guard of the noise is asked, and where rows cannot be left out
# before a start is believed; and the share beyond which too little is left to learn the noise from, however near the
# predictions are.
SUSPICIOUS, HOPELESS = 0.25, 0.5

# A model that the loop in batches climbs with.
C = TypeVar("C", GaussianModel, Predicted)


@dataclass(frozen=True)
class Result:
    """The winning start, its posterior recomputed on the data, and the proof of its convergence.

    ``active`` is an ``Active``, or the ``SharedFunctions`` of several classes.  ``by_regression`` says whether a
    regression on the indicators of two classes chose its functions; ``effects`` are those of single effects.
    """

    active: Any
    status: Status
    certificate: Certificate
    history: list[Record]
    n_iter: int
    by_regression: bool = False
    effects: Any = None

    def after(self, before: Result) -> Result:
        """This result as one more start of a fit that has made others already: their records come first."""
        further = before.n_starts
        return replace(
            self,
            certificate=replace(self.certificate, start=further + self.certificate.start),
            history=before.history + [replace(record, start=further + record.start) for record in self.history],
        )

    @property
    def n_starts(self) -> int:
        """Starts that have left a record, or came before one that has."""
        return 1 + max((record.start for record in self.history), default=-1)

    def holding_noise(self, hyperpriors: Hyperpriors) -> Result:
        """This result of a search whose noise was held because it would have collapsed."""
        status = Status.NOISE_HELD if self.status.converged else self.status
        return replace(self, status=status, certificate=self.certificate.holding(self.active, hyperpriors))


@dataclass
class _Start:
    """One start: its id, state, moves so far and functions; its model, where the state is still to be made of it.

    ``batch`` is what it adds at once at most, where that is not the solver's.
    """

    number: int
    state: State
    n_iter: int = 0
    model: GaussianModel | Predicted | None = None
    batch: int | None = None
    members: tuple[int, ...] = field(init=False)

    def __post_init__(self) -> None:
        self.members = _lifted(self.state.active.problem, self.state.active.indices)

    def exact(self, solver: Solver) -> _Start:
        """This start, its state made of the model of the loop where there is one, so that single moves can go on."""
        if self.model is not None:
            old, self.model, model = self.state, None, self.model
            refused = sorted(model.refused) if isinstance(model, Predicted) else []
            self.state = solver.init(_for_single_moves(model), old.learn_noise, old.rng)
            self.state.remember(old.remembered() | {"refused": refused})
            self.members = _lifted(self.state.active.problem, self.state.active.indices)
        return self


class _Stopped(Exception):
    """The loop ended before convergence."""

    def __init__(self, status: Status, start: int) -> None:
        super().__init__(status.value)
        self.status = status
        self.start = start


def run(problem: Problem, solver: Solver, settings: Settings, rng: np.random.Generator) -> Result:
    """Maximise the objective, keep the best start, and certify it.

    Parameters
    ----------
    problem : GaussianProblem or LaplaceProblem
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
        self.completed, self.leader = -1, 0
        self.searching = True

    def solve(self, problem: Problem, rng: np.random.Generator) -> Result:
        """Run all starts and certify the best."""
        status = self._begin(problem, rng)
        if status is Status.CONVERGED:
            status = self._search()
        self.searching = False
        self._telling("the certificate", _STAGES[-1], 1.0)(0.0)
        certificate = self._certify(status)
        state = self.best.state
        status = _judge(state, status, certificate, self.solver.status_if_uncertified)
        effects = self.solver.effects(state)
        return Result(state.active, status, certificate, self.history, self.best.n_iter, effects=effects)

    def _begin(self, problem: Problem, rng: np.random.Generator) -> Status:
        """The first start, from nothing or from where an earlier search was; CONSTANT where there is nothing to do."""
        warm, fixed, keeper = self.settings.warm, self.settings.noise_variance, self.settings.keeper
        if self.solver.working_sets and not self.settings.whole and warm is None:
            tell = self._telling("a pass over all rows", *_STAGES[:2])
            problem = working_problem(problem, noise_given=fixed is not None, tell=tell)
        scale = problem.mean_square
        active = empty_model(problem, 1.0 / (fixed or FIRST_NOISE * scale or 1.0))
        learn = active.exact and fixed is None and scale > 0.0
        if warm is not None and scale > 0.0:
            beta = warm.beta if fixed is None else active.beta
            active = active.like(problem, warm.indices, warm.alpha, beta=beta)
        saved = None if keeper is None else keeper.restore()
        if saved is None:
            self.best = _Start(0, self.solver.init(active, learn, rng))
        else:
            self.history, self.completed, self.leader = saved.records, saved.completed, saved.leader
            self.best = _Start(saved.start, saved.revive(self.solver, active, rng), saved.n_iter)
        return Status.CONVERGED if scale > 0.0 else Status.CONSTANT

    # -- starts --------------------------------------------------------------------------------------------

    def _search(self) -> Status:
        try:
            in_batches = self.settings.warm is None and self.solver.in_batches and self.best.state.active.exact
            if in_batches:
                self._follow()
                if self.solver.own_objective:  # which may be less than the evidence that the batches reached
                    self.best = replace(self.best, number=self._next_number())
            self._make_moves(self.best)
            if self._wants_another():
                self._begin_again(empty_model(self.best.state.active.problem, self.best.state.active.beta), batch=1)
            self._keep()
            self._restarts()
        except _Stopped as stop:
            self._keep()
            exhausted = stop.status is Status.MAX_ITER and stop.start != self.best.number
            return Status.CONVERGED if exhausted else stop.status  # a later start may run out: the best one stands
        return Status.CONVERGED

    def _telling(self, what: str, begin: float, end: float) -> Callable[[float], None]:
        """Tells whoever waits which share of a stage, from one share of the whole search to another, is behind."""
        reached = self.settings.reached
        return lambda done: None if reached is None else reached(what, begin + (end - begin) * done)

    def _follow(self) -> None:
        """Climb from every place of the plan, and go on from the best.

        Starts are numbered in the order in which they are made; ``completed`` is the last of them, and ``leader`` the
        last that gained so much that all kicks are tried again.  ``acquitted`` is the share of the rows that a model
        may use up without being asked whether rows left out bear it out (``guard.py`` says why).
        """
        state = self.best.state
        active, learn = state.active, state.learn_noise
        plan = Plan.named(self.solver.effort, active.problem.n_functions, learn_noise=learn)
        data, fixed, tol = Gram(active.problem), None if learn else active.beta, max(COARSE, self.settings.tol)
        batch, sample = self._batch(data), data.problem.sample
        begun = GaussianModel.weighing(data, active.indices, active.alpha, active.beta, learn)
        if sample is not None:
            begun = begun if begun.size else self._from_sample(Gram(sample), data, plan, tol, fixed, batch)
            plan = continued(plan)
        tell = self._telling("the search", *(_STAGES[2:4] if sample is not None else (0.0, _STAGES[-1])))
        best, acquitted = begun, begun.used
        while (policy := plan.policy(number := self.completed + 1, self.leader)) is not None:
            first = number == 0
            trial = self.best if first else _Start(number, state)
            policy = Begun(begun) if first and begun.size else policy
            known, noted = None if first else best, self._noting(trial)
            model = ascend(policy, data, known, tol, fixed=fixed, batch=batch, accepted=noted)
            gain = np.inf if first else model.objective - best.objective
            if first or self._leads(model, best, acquitted):
                best, self.best = model, replace(trial, model=model)
                acquitted = self._acquit(model) if first else max(acquitted, model.used)
                self.leader = number if gain > _WORTHWHILE else self.leader
            self.completed = number
            self._keep()
            if active.problem.members is None:  # else more functions come, and nobody knows how many
                tell(plan.share(number + 1, self.leader))
        if best is not begun:
            self.best = replace(self.best, model=self._climbed(best, self.best)).exact(self.solver)

    def _from_sample(
        self, part: Gram, data: Gram, plan: Plan, tol: float, fixed: float | None, batch: int
    ) -> GaussianModel:
        """What a search on a part of the rows finds, settled on all of them; its moves are shown, and not kept."""
        start = _Start(_SAMPLE, self.best.state)
        tell = self._telling("the search on a part of the rows", *_STAGES[1:3])
        tell(0.0)
        try:
            found = search_sample(part, plan, tol, fixed=fixed, batch=batch, accepted=self._noting(start), tell=tell)
            found = carried(found, data, tol)
        except _Stopped:
            if isinstance(start.model, GaussianModel):
                self.best = replace(self.best, model=carried(start.model, data, tol)).exact(self.solver)
            raise
        if found.size:
            self._noting(self.best)(GaussianModel.empty(data, found.beta, found.learn_noise), found)
        return found

    def _restarts(self) -> None:
        """Begin from random models; where noise is learned, at the noise of the best one."""
        rng = self.settings.restart_rng
        if rng is None or self.settings.warm is not None:
            return
        for _ in range(self.settings.restarts):
            self._begin_again(random_model(self.best.state.active, rng))

    def _wants_another(self) -> bool:
        """Whether to search from nothing as well, where that is cheap and the first search may have missed the best."""
        solver, active = self.solver, self.best.state.active
        searched = self.settings.warm is None and solver.in_batches and solver.effort != "fast"
        return searched and (solver.own_objective or active.approximate) and active.size <= _FEW

    def _begin_again(self, model: Active, batch: int | None = None) -> None:
        """Search from a model, in batches of this size; where that ends higher, it is the best."""
        state = self.best.state
        begun = self.solver.init(model, state.learn_noise, state.rng)
        trial = _Start(self._next_number(), begun, model.size, batch=batch)
        self._make_moves(trial)
        if trial.state.objective > state.objective:
            self.best = trial

    def _next_number(self) -> int:
        """The number of a start after all that have left a record."""
        return 1 + max((record.start for record in self.history), default=0)

    def _acquit(self, model: GaussianModel) -> float:
        """Share of the rows that the first start uses up; the search ends there where that is in doubt."""
        if model.learn_noise and self.settings.doubts is not None and self.settings.doubts(model):
            self.best = self.best.exact(self.solver)
            raise _Stopped(Status.NOISE_UNDETERMINED, self.best.number)
        return model.used

    def _leads(self, model: GaussianModel, best: GaussianModel, acquitted: float) -> bool:
        """Whether a start ended higher, and did so for a good reason: few functions, or left-out rows agree."""
        if model.objective <= best.objective + max(_HARDLY, self.settings.tol):
            return False
        paid = model.data.problem.inclusion_cost > 0.0
        if paid or not model.learn_noise or model.used <= max(_UNSUSPICIOUS, LITTLE_MORE * acquitted):
            return True
        folds, asked = self.settings.folds, (model.beta, best.beta, model.size)
        # Many functions make a search on few rows too sure of itself, and their densities are lower although they err
        # less; what is used of them is calibrated.
        if folds is None:
            return model.used <= SUSPICIOUS
        return folds.prefer(*asked) or (model.used <= HOPELESS and folds.errs_less(*asked))

    def _noting(self, start: _Start) -> Callable[[C, C], None]:
        """What is done after every move of a start in batches."""

        def note(before: C, after: C) -> None:
            shown = after.active if isinstance(after, Predicted) else after
            problem, old, new = shown.problem, set(before.indices), set(after.indices)
            added, removed = _lifted(problem, new - old), _lifted(problem, old - new)
            record = Record(
                start=start.number,
                move="add" if added else "sweep",
                function=added[0] if len(added) == 1 else -1,
                n_moves=len(added) + len(removed) or shown.size,
                evidence=shown.evidence(),
                objective=after.objective,
                n_active=shown.size,
                noise_variance=1.0 / shown.beta,
                added=added,
                removed=removed,
            )
            start.model = after
            try:
                self._note(start, record, lambda: shown)
            except _Stopped:
                self.best = (start if start.number == self.best.number else self.best).exact(self.solver)
                raise

        return note

    def _keep(self) -> None:
        """Keep the best model so far, with the records of starts that will not be made again."""
        if self.settings.keeper is not None and self.searching:
            best = self.best = self.best.exact(self.solver)
            made = [r for r in self.history if r.start <= max(0, self.completed) or r.start == best.number]
            kept = Checkpoint.of(best.state, best.number, best.n_iter, self.completed, made, self.leader)
            self.settings.keeper.keep(kept)

    def _certify(self, status: Status) -> Certificate:
        """Certify on the data; where rounding had hidden a move, make it and certify again."""
        certificate = self._recompute(searched=status is Status.CONVERGED)
        if self.solver.own_objective:
            return certificate
        for _ in range(_CERTIFICATION_ROUNDS):
            if certificate.converged or status is not Status.CONVERGED:
                break
            if not self.best.state.active.approximate:
                self.best.state.refused.clear()
            try:
                self._make_moves(self.best)
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

    def _make_moves(self, start: _Start) -> None:
        """Step until no move gains ``tol``, which is the stopping rule (T&F step 11)."""
        grow, rounds = self.settings.grow, self.solver.rounds
        while True:
            if self.stop():
                raise _Stopped(Status.INTERRUPTED, start.number)
            if self.solver.climbs(start.state.active):
                self._climb(start)
            state = start.state
            info = self.solver.step(state, self.settings.tol)
            if info is None:
                if self._widen(start):
                    continue
                info = self.solver.escape(state, self.settings.tol) if self.settings.warm is None else None
            if info is None and grow is not None and rounds > 0:
                rounds -= 1
                state.active = state.active.extended(grow(state.active.indices, state.rng))
                continue
            if info is None:
                return
            if info.move == REFUSED:
                continue
            self._record(start, info)

    def _climb(self, start: _Start) -> None:
        """Go on from a model for single moves by the loop in batches, until no addition gains ``tol``."""
        active = start.state.active
        if active.approximate:
            start.model = climb(
                Predicted(active, self.settings.tol),
                self.settings.tol,
                batch=start.batch or self.solver.batch,
                part=_FAIR_PART,
                overlap=_ALIKE,
                patience=np.inf,
                accepted=self._noting(start),
            )
        else:
            data, learn = Gram(active.problem), start.state.learn_noise
            begun = GaussianModel.weighing(data, active.indices, active.alpha, active.beta, learn)
            start.model = self._climbed(begun, start)
        start.exact(self.solver)

    def _climbed(self, model: GaussianModel, start: _Start) -> GaussianModel:
        """Where no addition gains ``tol``: by inner products, then among functions that these cannot tell apart."""
        batch, noted = self._batch(model.data), self._noting(start)
        reached = climb(model, self.settings.tol, batch=batch, accepted=noted)
        return climb(reached.exactly(), self.settings.tol, batch=batch, accepted=noted) if reached.hides else reached

    def _batch(self, data: Gram) -> int:
        """Functions that are added at once at most."""
        return self.solver.batch if data.problem.sample is None else WIDER * self.solver.batch

    def _widen(self, start: _Start) -> bool:
        """Take more functions into the working set, where there is one and some outside it gain.

        With every function that comes the noise may collapse, and the search ends as soon as it is seen to.
        """
        state, doubts = start.state, self.settings.doubts
        wider_set = widened(state.active, self.settings.tol)
        if wider_set is None:
            return False
        state.reach(wider_set, "widen")
        if state.learn_noise and doubts is not None and doubts(state.active):
            raise _Stopped(Status.NOISE_UNDETERMINED, start.number)
        return True

    def _record(self, start: _Start, info: Info) -> None:
        state = start.state
        members = _lifted(state.active.problem, state.active.indices)
        record = Record(
            start=start.number,
            move=info.move,
            function=_lifted(state.active.problem, [info.function])[0] if info.function >= 0 else -1,
            n_moves=info.n_moves,
            evidence=state.evidence,
            objective=state.objective + self.solver.hyperpriors.log_prior(state.active, noise=state.learn_noise),
            n_active=state.n_active,
            noise_variance=state.noise_variance,
            added=tuple(i for i in members if i not in start.members),
            removed=tuple(i for i in start.members if i not in members),
        )
        start.members = members
        self._note(start, record, lambda: self.solver.shown(state))

    def _note(self, start: _Start, record: Record, model: Callable[[], Active | GaussianModel]) -> None:
        """Keep a record, show it to whoever asked, and stop where it is time; the model is made for a callback only."""
        start.n_iter += record.n_moves
        kept, keeper, callback = record.start != _SAMPLE, self.settings.keeper, self.solver.callback
        if kept:
            self.history.append(record)
        if self.settings.observe is not None:
            self.settings.observe(record)
        if self.stop() or (kept and callback is not None and callback(record, model())):
            raise _Stopped(Status.INTERRUPTED, record.start)
        if kept and keeper is not None and keeper.due():
            self._keep()
        if kept and start.n_iter >= self.settings.max_iter:
            raise _Stopped(Status.MAX_ITER, record.start)


def _for_single_moves(model: GaussianModel | Predicted) -> Active:
    """A model of the loop in the form in which single moves are made."""
    if isinstance(model, Predicted):
        return model.active
    return ActiveSet.from_model(model.problem, model.indices, model.alpha, model.beta)


def _lifted(problem: Problem, functions: Iterable[int]) -> tuple[int, ...]:
    """Numbers of functions in the whole dictionary, sorted."""
    return tuple(sorted(problem.whole(sorted(functions))[1]))


def _judge(state: State, status: Status, certificate: Certificate, ends: Status) -> Status:
    """Status of a search that ended by itself: convergence is claimed only where the certificate proves it."""
    if status is not Status.CONVERGED:
        return status
    if not certificate.converged:
        return ends
    if state.learn_noise and 1.0 / state.active.beta <= 1.01 * state.active.problem.noise_floor:
        return Status.NOISE_FLOOR
    if certificate.noise_degenerate:
        return Status.NOISE_UNDETERMINED
    return status if state.active.size else Status.EMPTY
