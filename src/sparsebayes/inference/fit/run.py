"""One fit from its first start to its certificate: starts, stopping, callbacks, history and status."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass, replace
from functools import partial
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
    Course,
    Plan,
    Policy,
    ascend,
    carried,
    random_model,
)
from sparsebayes.inference.search.working import Problem, empty_model, widened, working_problem
from sparsebayes.inference.solvers.solver import REFUSED, Info, Solver, State
from sparsebayes.inference.status import Certificate, Record, Status, certify, really_refused
from sparsebayes.threads import one_thread

_CERTIFICATION_ROUNDS = 3
# What another start has to bring, in nats: of maxima that are as good as each other rounding would choose.
_HARDLY = 0.1
# Shares of a search that are behind where its stages begin and end: means over 40,000 rows of protein, 50,000 of
# diamonds and 60,000 of kegg, in processor seconds, halved where both of two cores compute.  Without a pass over all
# rows, all but the certificate is the search; with one, the search has its last share, and what is left before the
# certificate is the climb among nearly dependent functions.
_STAGES = {
    "a pass over all rows": (0.07, 0.42),
    "the search on a part of the rows": (0.42, 0.54),
    "the search": (0.0, 0.89),
    "the certificate": (0.89, 1.0),
}
_AFTER_A_PART = (0.54, 0.67)
# Models of up to so many functions are searched for a second time, from nothing, where the first functions decide: by
# solvers with an objective of their own, whose first search began from what the evidence chose, and for classes and
# counts, where single additions find others than batches do (Ripley's mixture, 20 draws: .33 nats more on average).
_FEW = 25
# Where gains are only predicted, with what part of the best gain functions are added beside it, and up to which cosine
# of their columns.
_FAIR_PART, _ALIKE = 0.3, 0.3
# Number of the start whose moves are on a part of the rows: they are shown, and not kept.
SAMPLE = -1
# A start whose functions use up more than this share of the rows, and more than so many times the share of the best
# model, is believed only where rows left out agree.  (From a share of .05 on, noisy blocks err by 8 % less, 20 draws,
# but concrete by 2 % more and once 52 nats lower, and friedman2 by 1.5 % more, ten draws each.)
_UNSUSPICIOUS = 0.1
LITTLE_MORE = 1.25
# Share from which the guard asks whether the noise has collapsed; where no rows can be left out a start is believed up
# to it.
SUSPICIOUS = 0.25

# Evidence, objective, number of functions and noise variance of a record.
Figures = tuple[float, float, int, float]
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
        """This result of a search whose noise was held because it would have collapsed.

        The status of a solver that maximises something else stays where the certificate shows what single moves gain.
        """
        certified = self.status.converged and self.certificate.converged
        status = Status.NOISE_HELD if certified else self.status
        return replace(self, status=status, certificate=self.certificate.holding(self.active, hyperpriors))


@dataclass
class _Start:
    """One start: its number, its moves so far, and its model, that of the loop in batches or the state of single moves.

    ``before`` is the state of single moves before the loop went on from it; ``batch`` is what is added at once at most,
    where that is not the solver's.
    """

    solver: Solver
    number: int
    before: State
    n_iter: int = 0
    batch: int | None = None
    model: GaussianModel | Predicted | None = None

    @property
    def state(self) -> State:
        """The state from which single moves go on, made of the model of the loop where that came last."""
        model, before = self.model, self.before
        if model is not None:
            if isinstance(model, Predicted):
                active, refused = model.active, sorted(model.refused)
            else:
                active, refused = ActiveSet.from_model(model.problem, model.indices, model.alpha, model.beta), []
            self.model, self.before = None, self.solver.init(active, before.learn_noise, before.rng)
            self.before.remember(before.remembered() | {"refused": refused})
        return self.before


class Stopped(Exception):
    """A search ended before convergence."""

    def __init__(self, status: Status, start: int = 0) -> None:
        super().__init__(status.value)
        self.status = status
        self.start = start


class Journal:
    """One fit and its records: each is kept, shown to whoever asked, and ends the fit where somebody wants that."""

    def __init__(self, solver: Solver, settings: Settings, stop: Callable[[], bool]) -> None:
        self.solver = solver
        self.settings = settings
        self.stop = stop
        self.history: list[Record] = []

    def write(self, record: Record) -> None:
        """Keep a record, unless it is of a part of the rows, and tell whoever observes."""
        if record.start != SAMPLE:
            self.history.append(record)
        if self.settings.observe is not None:
            self.settings.observe(record)

    def show(self, record: Record, model: Callable[[], Any]) -> None:
        """Write a record and ask whether to go on; the model is made for a callback only."""
        self.write(record)
        callback = self.solver.callback if record.start != SAMPLE else None
        if (callback is not None and callback(record, model())) or self.stop():
            raise Stopped(Status.INTERRUPTED, record.start)


def run(problem: Problem, solver: Solver, settings: Settings, rng: np.random.Generator) -> Result:
    """Maximise the objective of a problem, keep the best start, and certify it; ``rng`` is the solver's."""
    with one_thread(), asked_to_stop() as stop:
        return _Run(solver, settings, stop).solve(problem, rng)


class _Run(Journal):
    """One fit: its starts, its history, and the best model so far."""

    def solve(self, problem: Problem, rng: np.random.Generator) -> Result:
        """Run all starts and certify the best."""
        self.course, self.searching = Course(), True
        status = self._begin(problem, rng)
        if status is Status.CONVERGED:
            status = self._search()
        self.searching = False
        self._telling("the certificate")(0.0)
        certificate, status = self._certify(status)
        state = self.best.state
        status = self._judged(status, certificate)
        effects = self.solver.effects(state)
        return Result(state.active, status, certificate, self.history, self.best.n_iter, effects=effects)

    def _begin(self, problem: Problem, rng: np.random.Generator) -> Status:
        """The first start, from nothing or from where an earlier search was; CONSTANT where there is nothing to do."""
        warm, fixed, keeper = self.settings.warm, self.settings.noise_variance, self.settings.keeper
        if self.solver.working_sets and not self.settings.whole and warm is None:
            tell = self._telling("a pass over all rows")
            problem = working_problem(problem, noise_given=fixed is not None, tell=tell)
        scale = problem.mean_square
        active = empty_model(problem, 1.0 / (fixed or FIRST_NOISE * scale or 1.0))
        learn = active.exact and fixed is None and scale > 0.0
        if warm is not None and scale > 0.0:
            beta = warm.beta if fixed is None else active.beta
            active = active.like(problem, warm.indices, warm.alpha, beta=beta)
        saved = None if keeper is None else keeper.restore()
        if saved is None:
            self.best = _Start(self.solver, 0, self.solver.init(active, learn, rng))
        else:
            self.history, self.course = saved.records, Course(saved.completed, saved.leader)
            self.best = _Start(self.solver, saved.start, saved.revive(self.solver, active, rng), saved.n_iter)
        return Status.CONVERGED if scale > 0.0 else Status.CONSTANT

    # -- starts --------------------------------------------------------------------------------------------

    def _search(self) -> Status:
        try:
            in_batches = self.settings.warm is None and self.solver.in_batches and self.best.state.active.exact
            if in_batches:
                self._follow()
                if self.solver.own_objective:  # which may be less than the evidence that the batches reached
                    self.best.number = self._next_number()
            self._make_moves(self.best)
            if self._wants_another():
                self._begin_again(empty_model(self.best.state.active.problem, self.best.state.active.beta), batch=1)
            self._keep()
            rng = self.settings.restart_rng if self.settings.warm is None else None
            if rng is not None:  # from random models; where noise is learned, at the noise of the best one
                for _ in range(self.settings.restarts):
                    self._begin_again(random_model(self.best.state.active, rng))
        except Stopped as stop:
            self._keep()
            self._release(self.best)
            exhausted = stop.status is Status.MAX_ITER and stop.start != self.best.number
            return Status.CONVERGED if exhausted else stop.status  # one that ran out below the best changes nothing
        return Status.CONVERGED

    def _release(self, start: _Start) -> None:
        """Learn the noise of a start that was broken off while it was held for the search's sake only."""
        held = start.model
        if isinstance(held, GaussianModel) and start.before.learn_noise and not held.learn_noise:
            released = held.at_noise(held.beta, learn_noise=True).settled(self.settings.tol)
            start.model = released
            added, removed, figures = _change(held, released)
            self.write(Record(start.number, "noise", -1, 0, *figures, added, removed))

    def _telling(self, what: str, share: tuple[float, float] | None = None) -> Callable[[float], None]:
        """Tells whoever waits which share of a stage is behind, as a share of the whole search."""
        reached, (begin, end) = self.settings.reached, share or _STAGES[what]
        return lambda done: None if reached is None else reached(what, begin + (end - begin) * done)

    def _follow(self) -> None:
        """Climb from every place of the plan, and go on from the best.

        Where rows are many, all places are visited on a part of them, and what is found there is carried over.
        """
        begun = _in_batches(self.best.state)
        plan = Plan.named(self.solver.effort, int(begun.data.eligible.sum()), learn_noise=begun.learn_noise)
        sample, tell = begun.problem.sample, self._telling("the search")
        if sample is not None:
            begun = begun if begun.size else self._from_sample(begun, Gram(sample), replace(plan, rounds=1))
            crowding = begun.problem.n_functions / begun.problem.n_effective
            plan, tell = plan.continued(crowding), self._telling("the search", _AFTER_A_PART)
        best = self._visited(plan, begun, self.course, tell)
        if best is not begun:
            self.best.model = self._climbed(best, self.best)

    def _visited(
        self,
        plan: Plan,
        begun: GaussianModel,
        course: Course,
        tell: Callable[[float], None],
        part: _Start | None = None,
    ) -> GaussianModel:
        """The best model that the places of a plan lead to.

        Each is a start with a number and may be the best one; on a ``part`` of the rows all of them are one start.
        """
        best, before = begun, self.best.before
        while (policy := plan.policy(course)) is not None:
            number, first = course.completed + 1, course.completed < 0
            trial = part or (self.best if first else _Start(self.solver, number, before))
            policy = Begun(begun) if first and begun.size else policy
            model = self._ascended(policy, begun, None if first else best, trial)
            if first or self._leads(model, best, on_all_rows=part is None):
                best, course.leader, trial.model = model, number, model
                self.best = trial if part is None else self.best
            if first and part is None:
                self._doubt(model, trial)
            course.completed = number
            if part is None:
                self._keep()
            if begun.problem.members is None:  # else more functions come, and nobody knows how many
                tell(plan.share(course))
        return best

    def _ascended(
        self, policy: Policy, begun: GaussianModel, best: GaussianModel | None, trial: _Start
    ) -> GaussianModel:
        """Where a policy leads, given the best model so far; one that is stopped above that is the best on all rows."""
        fixed, tol = None if begun.learn_noise else begun.beta, max(COARSE, self.settings.tol)
        batch, noted = self._batch(begun.data), self._noting(trial)
        try:
            return ascend(policy, begun.data, best, tol, fixed=fixed, batch=batch, accepted=noted)
        except Stopped:
            reached = trial.model
            if best is not None and trial.number != SAMPLE and isinstance(reached, GaussianModel):
                self.best = trial if self._leads(reached, best, on_all_rows=True) else self.best
            raise

    def _doubt(self, model: Active | GaussianModel, start: _Start) -> None:
        """End the search where the noise of a model has collapsed."""
        judge = self.settings.judge
        if start.before.learn_noise and judge is not None and judge.collapsed(model):
            raise Stopped(Status.NOISE_UNDETERMINED, start.number)

    def _from_sample(self, empty: GaussianModel, part: Gram, plan: Plan) -> GaussianModel:
        """What a search on a part of the rows finds, settled on all of them."""
        start, tol = _Start(self.solver, SAMPLE, self.best.before), max(COARSE, self.settings.tol)
        tell = self._telling("the search on a part of the rows")
        tell(0.0)
        try:
            begun = GaussianModel.empty(part, empty.beta, empty.learn_noise)
            found = carried(self._visited(plan, begun, Course(), tell, start), empty.data, tol)
        except Stopped:
            if isinstance(start.model, GaussianModel):
                self.best.model = carried(start.model, empty.data, tol)
            raise
        if found.size:
            self._noting(self.best)(empty, found)
        return found

    def _wants_another(self) -> bool:
        """Whether to search from nothing as well, where that is cheap and the first search may have missed the best."""
        solver, active = self.solver, self.best.state.active
        searched = self.settings.warm is None and solver.in_batches and solver.effort != "fast"
        return searched and (solver.own_objective or active.approximate) and active.size <= _FEW

    def _begin_again(self, model: Active, batch: int | None = None) -> None:
        """Search from a model, in batches of this size; where that ends higher, it is the best."""
        state = self.best.state
        begun = self.solver.init(model, state.learn_noise, state.rng)
        # The functions that it begins with are counted as moves.
        trial = _Start(self.solver, self._next_number(), begun, n_iter=model.size, batch=batch)
        try:
            self._make_moves(trial)
        except Stopped:  # it may have come farther than others have ended
            if trial.state.objective > state.objective + self.settings.tol:
                self.best = trial
            raise
        if trial.state.objective > state.objective:
            self.best = trial

    def _next_number(self) -> int:
        """The number of a start after all that have left a record."""
        return 1 + max((record.start for record in self.history), default=0)

    def _leads(self, model: GaussianModel, best: GaussianModel, *, on_all_rows: bool) -> bool:
        """Whether a start ended higher, and did so for a good reason: few functions, or left-out rows agree.

        A search on a part of the rows is to find few functions, and no rows are left out of that part.
        """
        if model.objective <= best.objective + max(_HARDLY, self.settings.tol):
            return False
        costly = model.problem.inclusion_cost > 0.0  # functions that pay for their entry cannot lower the noise at will
        if costly or not model.learn_noise or model.used <= max(_UNSUSPICIOUS, LITTLE_MORE * best.used):
            return True
        if not on_all_rows:
            return False
        judge = self.settings.judge
        return model.used <= SUSPICIOUS if judge is None else judge.believes(model, best)

    def _noting(self, start: _Start) -> Callable[[C, C], None]:
        """What is done after every move of a start in batches."""

        def note(before: C, after: C) -> None:
            start.model = after
            shown = after.active if isinstance(after, Predicted) else after
            added, removed, figures = _change(before, after)
            n_changed = len(added) + len(removed)
            info = Info("add" if added else "sweep", added[0] if len(added) == 1 else -1, n_changed or shown.size)
            self._record(start, info, added, removed, figures, lambda: shown)

        return note

    def _keep(self) -> None:
        """Keep the best model so far, with the records of starts that will not be made again."""
        if self.settings.keeper is not None and self.searching:
            best, course = self.best, self.course
            made = [r for r in self.history if r.start <= max(0, course.completed) or r.start == best.number]
            self.settings.keeper.keep(Checkpoint.of(best.state, best.number, best.n_iter, course, made))

    def _certify(self, status: Status) -> tuple[Certificate, Status]:
        """Certify on the data; where rounding had hidden a move, make it and certify again, unless that is stopped."""
        certificate = self._recompute(searched=status is Status.CONVERGED)
        if self.solver.own_objective:
            return certificate, status
        for _ in range(_CERTIFICATION_ROUNDS):
            if certificate.converged or status is not Status.CONVERGED:
                break
            if not self.best.state.active.approximate:
                self.best.state.refused.clear()
            try:
                self._make_moves(self.best)
            except Stopped as stop:
                status = stop.status
            certificate = self._recompute(searched=status is Status.CONVERGED)
        return certificate, status

    def _judged(self, status: Status, certificate: Certificate) -> Status:
        """Status of a search that ended by itself: convergence is claimed only where the certificate proves it."""
        state = self.best.state
        if status is not Status.CONVERGED:
            return status
        if not certificate.converged and not self.solver.own_objective:
            return self.solver.status_if_uncertified
        if state.learn_noise and 1.0 / state.active.beta <= 1.01 * state.active.problem.noise_floor:
            return Status.NOISE_FLOOR
        if certificate.noise_degenerate:
            return Status.NOISE_UNDETERMINED
        if not certificate.converged:
            return self.solver.status_if_uncertified
        return status if state.active.size else Status.EMPTY

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
                raise Stopped(Status.INTERRUPTED, start.number)
            if self.solver.climbs(start.state.active):
                self._climb(start)
            state = start.state
            before = set(_lifted(state.active.problem, state.active.indices))
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
            active, function = state.active, info.function
            lifted = replace(info, function=_lifted(active.problem, [function])[0] if function >= 0 else -1)
            objective = state.objective + self.solver.hyperpriors.log_prior(active, noise=state.learn_noise)
            figures = state.evidence, objective, state.n_active, state.noise_variance
            after = set(_lifted(active.problem, active.indices))
            added, removed = tuple(sorted(after - before)), tuple(sorted(before - after))
            self._record(start, lifted, added, removed, figures, partial(self.solver.shown, state))

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
            start.model = self._climbed(_in_batches(start.state), start)

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
        state = start.state
        wider_set = widened(state.active, self.settings.tol)
        if wider_set is None:
            return False
        state.reach(wider_set, "widen")
        self._doubt(state.active, start)
        return True

    def _record(
        self,
        start: _Start,
        info: Info,
        added: tuple[int, ...],
        removed: tuple[int, ...],
        figures: Figures,
        model: Callable[[], Active | GaussianModel],
    ) -> None:
        """Record a move, keep a checkpoint where one is due, and stop where moves have run out."""
        record = Record(start.number, info.move, info.function, info.n_moves, *figures, added, removed)
        start.n_iter += record.n_moves
        self.show(record, model)
        if record.start == SAMPLE:
            return
        if self.settings.keeper is not None and self.settings.keeper.due():
            self._keep()
        if start.n_iter >= self.settings.max_iter:
            raise Stopped(Status.MAX_ITER, record.start)


def _in_batches(state: State) -> GaussianModel:
    """The model of a regression in the form in which the loop in batches goes on from it."""
    active = state.active
    return GaussianModel.weighing(Gram(active.problem), active.indices, active.alpha, active.beta, state.learn_noise)


def _change(before: C, after: C) -> tuple[tuple[int, ...], tuple[int, ...], Figures]:
    """Functions that came and that left, and the figures of the record."""
    shown = after.active if isinstance(after, Predicted) else after
    old, new = set(before.indices), set(after.indices)
    figures = shown.evidence(), after.objective, shown.size, 1.0 / shown.beta
    return _lifted(shown.problem, new - old), _lifted(shown.problem, old - new), figures


def _lifted(problem: Problem, functions: Collection[int]) -> tuple[int, ...]:
    """Numbers of functions in the whole dictionary, sorted."""
    return tuple(sorted(problem.whole(sorted(functions))[1])) if functions else ()
