r"""Learning the dictionary: several honest starts, and a judge who has the last word.

* *Starts.*  The widths as given, and those of an exact Gaussian process, whose evidence is smooth (``process.py``),
  with idle inputs switched off; these also a little narrower and wider.
* *Judge.*  Rows left out (``judge.py``) and the evidence together say which of these is the best, and whether that is
  reason enough to leave the widths as given.  Where the evidence alone would have chosen otherwise, the result says so.
* *Climb.*  Where no process says where to look, the parameters climb from the best along the gradient of the evidence
  together with the precisions and the noise of the model found, its functions and centres held; the dictionary is
  rebuilt there and the search goes on; in turn.  Inputs that bring no more than any may by chance are switched off.
* *Several widths at once*, where they are asked for: multiples of the lengths found, together in one dictionary.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from sparsebayes.inference import Record, Result, Status
from sparsebayes.inference.fit.interrupt import asked_to_stop
from sparsebayes.inference.models.evidence import Array
from sparsebayes.kernel_learning.gradients import Held, climb
from sparsebayes.kernel_learning.judge import Judge
from sparsebayes.kernel_learning.parameters import Limits, Mask
from sparsebayes.kernel_learning.process import Process
from sparsebayes.kernel_learning.trials import Factors, Interrupted, Search, Trial
from sparsebayes.threads import one_thread

# Multiples of the process's lengths that are tried.
_MULTIPLES = (1.0, 0.5**0.5, 2.0**0.5)
# Quasi-Newton steps of one climb, rounds of climb and search, the gain in nats that is no gain, and that below which no
# further round is made.
STEPS = 15
ROUNDS = 5
GAIN = 0.01
WORTHWHILE = 2.0
# What a function has to bring when scales are compared, in nats: a precision fitted to pure noise brings 0.6 on
# average, and the best of many more.
PRICE = 2.5
# Standard deviations by which left-out rows have to speak for another trial, alone and together with the evidence.
_LIKELY, _SURE = 1.0, 2.5
# Multiples of the lengths that make a dictionary of several.
SEVERAL: tuple[Factors, ...] = ((1.0, 2.0, 4.0), (0.5, 1.0, 2.0))
# Evidence, in nats, by which a trial has to be above the widths as given for these not to be searched in full, and by
# which, or by so much for each row, one has to be below them for rows left out not to be asked.
_FAR_ABOVE, _BEYOND_HOPE = 50.0, 0.1


@dataclass(frozen=True)
class Screened:
    """Log parameters that are worth trying on all rows, found on some; the last trial where the user interrupted."""

    places: list[Array]
    stopped: Trial | None = None


@dataclass(frozen=True)
class Gain:
    """What the parameters chosen gained over those given, both searched in the same way.

    Attributes
    ----------
    evidence : float
        Nats of evidence.
    density, density_error : float or None
        Nats for each row that was left out, and its standard error; None where no rows were.
    """

    evidence: float
    density: float | None = None
    density_error: float | None = None


@dataclass(frozen=True)
class Learned:
    """The trial that was chosen, what the full search found there, and whether the evidence was overruled."""

    trial: Trial
    results: list[Result]
    histories: list[list[Record]]
    overruled: bool
    interrupted: bool
    gain: Gain | None = None


class Learner:
    """Starts, climbs and a judge.

    Parameters
    ----------
    search : Search
        Makes trials.
    limits : Limits
        Where parameters may be.
    given, first : ndarray of shape (P,)
        Log parameters as given, and those of one width in units of the inputs' spread.
    process : Process, optional
        A Gaussian process with the same kernel, where there is one.
    several : bool
        Whether several widths are to be in the dictionary together.
    finalists : sequence of ndarray, optional
        Log parameters found on some of the rows: only these are tried, beside those given.
    """

    def __init__(
        self,
        search: Search,
        limits: Limits,
        given: Array,
        first: Array,
        process: Process | None,
        several: bool = False,
        finalists: Sequence[Array] | None = None,
    ) -> None:
        self.search, self.limits = search, limits
        self.given, self.first, self.process, self.several = given, first, process, several
        self.finalists = finalists
        self.trials: list[Trial] = []
        self.best: Trial | None = None
        self.judge: Judge | None = None
        self._single: Trial | None = None

    def learn(self, restarts: Sequence[Array] = ()) -> Learned:
        """Learn; where the user interrupts, the best until then is returned."""
        with one_thread(), asked_to_stop() as self.search.stop:
            try:
                self._learn(restarts)
                return self._conclude(self._chosen())
            except Interrupted:
                return self.stopped_at(self._latest())

    def screen(self, restarts: Sequence[Array] = ()) -> Screened:
        """Learn, and say which parameters other rows should be asked about."""
        with one_thread(), asked_to_stop() as self.search.stop:
            try:
                self._learn(restarts)
            except Interrupted:
                return Screened([], self._latest())
        best = self._chosen()
        return Screened([] if best is self.trials[0] else [best.log_theta])

    def _latest(self) -> Trial:
        trial = self.best or self.search.unfinished
        if trial is None:
            raise KeyboardInterrupt
        return trial

    def _learn(self, restarts: Sequence[Array]) -> None:
        self.best = scale = self._try(self.given)
        self.search.patient = False
        problems = self.search.problems(self.given)
        if not Judge.possible(problems):
            return
        self.judge = Judge(self.search, problems)
        places = self._places(restarts) if self.finalists is None else self.finalists
        tried = [self._try(log_theta) for log_theta in places]
        likely = max(filter(self._open, tried), key=self._promise, default=scale)
        if self.process is None and self.finalists is None:
            likely = self._without_weak(self._ascend(likely))
        self._prefer(likely)
        self._single = self.best
        if self.several:
            for factors in SEVERAL:
                self._prefer(self._try(self._single.log_theta, factors))

    @property
    def single(self) -> Trial:
        """The best trial with one width for each parameter."""
        return self._single or self.trials[0]

    # -- starts --------------------------------------------------------------------------------------------

    def _try(self, log_theta: Array, factors: Factors = (1.0,)) -> Trial:
        trial = self.search.fresh(log_theta, factors)
        self.trials.append(trial)
        return trial

    def _prefer(self, trial: Trial) -> bool:
        """Take a trial where there is reason enough to leave the best so far for it, and say whether there is.

        One of several trials is better by chance now and then: left-out rows have to speak for it, and clearly so
        together with the evidence.
        """
        best, judge = self._chosen(), self.judge
        if judge is None or trial is best or not self._open(trial):
            return False
        advantage = judge.compare(trial, best)
        together = advantage.nats + self._worth(trial) - self._worth(best)
        clear = advantage.nats > _LIKELY * advantage.chance and together > _SURE * advantage.chance
        if clear and judge.admits(trial, self.trials[0]):
            self.best = trial
            return True
        return False

    def _open(self, trial: Trial) -> bool:
        """Whether rows left out are to be asked: the trial has functions, not too many, and is not far below."""
        fall = self._worth(self.trials[0]) - self._worth(trial)
        near = fall <= max(_FAR_ABOVE, _BEYOND_HOPE * self.search.n_rows)
        return trial.size > 0 and near and not self.search.crowded(trial)

    def _worth(self, trial: Trial) -> float:
        """The objective less what the functions have to bring.

        It is without the prior of the parameters, which guides climbs but is no reason to leave a place.
        """
        return trial.objective - self.limits.prior.log_density(trial.log_theta) - PRICE * trial.size

    def _places(self, restarts: Sequence[Array]) -> list[Array]:
        """Log parameters that are worth trying.

        Those of a Gaussian process, with inputs that it does not need switched off, and multiples of them; where there
        is no process, multiples of the first.
        """
        there, stop = self.first, self.search.stop
        if self.process is not None and not stop():
            there = self.process.fit(self.first, self.limits, stop)
        places = [*restarts, *(self.limits.stretched(there, factor) for factor in _MULTIPLES)]
        known = {self.given.tobytes(): self.given}
        return [known.setdefault(place.tobytes(), place) for place in places if place.tobytes() not in known]

    def _promise(self, trial: Trial) -> float:
        """What rows left out and the evidence say of a trial: those alone follow chance, this alone is too narrow."""
        asked = 0.0 if self.judge is None else self.judge.compare(trial, self.trials[0]).nats
        return asked + trial.evidence

    # -- climbs --------------------------------------------------------------------------------------------

    def _ascend(self, trial: Trial) -> Trial:
        """Climb and search on, in turn, until neither gains; an input that is switched off stays so."""
        for _ in range(ROUNDS):
            models = self.search.held(trial)
            # A trial where functions crowd is not chosen, and what comes of it has more of them.
            if self.search.exhausted(trial) or (trial is not self.trials[0] and self.search.crowded(trial)):
                break
            if not any(len(model.indices) for model in models):
                break
            free = self.matters(trial.log_theta, models) & self.limits.live(trial.log_theta)
            found = climb(self.search.family, models, self.limits.prior, trial.log_theta, STEPS, free)
            if found.objective <= trial.objective + GAIN:
                break
            new = self.search.onward(trial, found)
            if new.objective <= trial.objective:
                break
            gained, trial = new.objective - trial.objective, new
            self.trials.append(trial)
            if gained < WORTHWHILE:
                break
        return trial

    def matters(self, log_theta: Array, models: Sequence[Held]) -> Mask:
        """Parameters on which the evidence depends at all."""
        by_theta = np.zeros(len(log_theta))
        for model in models:
            found = model.evaluate(self.search.family.columns(log_theta, model.functions), model.logs)
            by_theta += np.abs(self.search.family.pullback(log_theta, model.functions, found.columns))
        return by_theta > 0.0

    def _without_weak(self, trial: Trial) -> Trial:
        """Inputs switched off, the weakest first, until one brings log Nd nats: it is one of d that fits N rows."""
        off, here = self.limits.off, trial
        live = np.flatnonzero(self.limits.live(trial.log_theta) & np.isfinite(off))
        price = float(np.log(max(2, int(np.sum(np.isfinite(off)))) * self.search.n_rows))
        for p in sorted(live.tolist(), key=lambda p: abs(trial.log_theta[p] - off[p])):
            there = here.log_theta.copy()
            there[p] = off[p]
            new = self._try(there)
            new = self._ascend(new) if self._worth(new) > self._worth(here) - _FAR_ABOVE else new
            if new.evidence < here.evidence - price:
                break
            here = new
        return here

    # -- the end -------------------------------------------------------------------------------------------

    def _chosen(self) -> Trial:
        if self.best is None:
            raise RuntimeError("there is a trial at the parameters as given")
        return self.best

    def _conclude(self, best: Trial) -> Learned:
        """The full search at the parameters chosen, and whether there were others of more evidence."""
        scale = self.trials[0]
        results = self.search.as_given(best) if best is scale else self.search.conclude(best)
        interrupted = any(result.status is Status.INTERRUPTED for result in results)
        evidence, rivals = _evidence(results), max(trial.evidence for trial in self.trials)
        given = evidence if best is scale else scale.evidence
        known = best is scale or interrupted or rivals > evidence + 1.0
        if not known and scale.evidence > evidence - _FAR_ABOVE:
            given = _evidence(self.search.as_given(scale, silent=True))
        overruled = len(self.trials) > 1 and max(rivals, given) > evidence + 1.0
        gain = self._gain(best, evidence - given)
        return Learned(best, results, self.search.histories, overruled, interrupted, gain)

    def _gain(self, best: Trial, evidence: float) -> Gain:
        if self.judge is None:
            return Gain(evidence)
        advantage, rows = self.judge.compare(best, self.trials[0]), self.judge.n_rows
        return Gain(evidence, advantage.nats / rows, advantage.chance / rows)

    def stopped_at(self, best: Trial) -> Learned:
        """The model of a trial as it is, certified."""
        results = [
            replace(result, status=Status.INTERRUPTED)
            for result in self.search.conclude(best, fresh=False, silent=True)
        ]
        return Learned(best, results, self.search.histories, overruled=False, interrupted=True)

    # -- what became of each parameter ---------------------------------------------------------------------

    def used(self, trial: Trial, parameter: int) -> bool:
        """Whether a function in the model has this parameter, even where the present value makes no difference."""
        there = trial.log_theta.copy()
        there[parameter] += _FAR
        columns = self.search.family.columns
        return any(
            not np.array_equal(columns(there, m.functions), columns(trial.log_theta, m.functions))
            for m in self.search.held(trial)
        )

    def change(self, trial: Trial, parameter: int, shift: float) -> float:
        """Change of the evidence when a parameter moves, every precision following the norm of its function."""
        there, total = trial.log_theta.copy(), 0.0
        there[parameter] += shift
        for model in self.search.held(trial):
            here = self.search.family.columns(trial.log_theta, model.functions)
            values = self.search.family.columns(there, model.functions)
            norms = np.sum(here**2, axis=0), np.sum(values**2, axis=0)
            if not np.all(norms[1] > 0.0):
                return -np.inf
            logs = model.logs.copy()
            logs[: len(model.indices)] += np.log(norms[1] / norms[0])
            total += model.evaluate(values, logs).evidence - model.evaluate(here, model.logs).evidence
        return total


# A factor at which any parameter of a function shows.
_FAR = 10.0


def _evidence(results: Sequence[Result]) -> float:
    return sum(result.certificate.log_evidence for result in results)
