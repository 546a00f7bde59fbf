r"""Learning the dictionary: several honest starts, a climb from the best of them, and a judge who has the last word.

* *Starts.*  The widths as given; one width for all inputs (in units of their spread) by a bracketing search; the widths
  of an exact Gaussian process, whose evidence is smooth (``process.py``), halved and doubled too.
* *Climb.*  The parameters climb along the gradient of the evidence together with the precisions and the noise of the
  model found, its functions and centres held; the dictionary is rebuilt there and the search goes on; in turn.
* *Judge.*  Among all of these, rows left out decide (``judge.py``), and the evidence where they do not clearly: the
  result never predicts left-out rows worse than the widths as given, and those are left for two standard errors only.
  Where the evidence alone would have chosen otherwise, the result says so.
* *Inputs.*  Inputs are switched off one by one, the weakest first, unless rows left out clearly object; those that the
  process had switched off are tried once more.
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
from sparsebayes.kernel_learning.judge import PRICE, judge_of
from sparsebayes.kernel_learning.parameters import Limits, Mask
from sparsebayes.kernel_learning.process import Fitted, Process
from sparsebayes.kernel_learning.trials import Factors, Interrupted, Search, Trial
from sparsebayes.threads import one_thread

# Factors of the bracketing search: it goes on in steps of the first while the evidence rises, at most so often, and
# then looks half a step to both sides.
_STEP, _STEPS_OUT = 2.0, 4
# Multiples of the process's lengths that are tried.
_MULTIPLES = (1.0, 0.5, 2.0)
# Quasi-Newton steps of one climb, rounds of climb and search before and after rows left out are first asked, the gain
# in nats that is no gain, and that below which no further round is made.
STEPS = 15
ROUNDS, _FURTHER_ROUNDS = 3, 5
GAIN = 0.01
WORTHWHILE = 0.5
# Inputs whose switching off is refused in a row before no more are tried.
_REFUSALS = 2
# Standard deviations beyond which left-out rows decide alone.
_CLEAR = 2.0
# Standard deviations within which they do not tell two trials apart, and the share of another's functions with which
# one of these has clearly fewer.
_ALIKE = 1.0
# Standard deviations from which on they need not be asked twice whether to leave the widths as given, and those by
# which they have to say it then, together with the evidence: the best of ten trials that are no better is two and a
# half ahead one time in sixteen.
_BEYOND_DOUBT, _SURE = 6.0, 2.5
_FEWER = 0.75
# Multiples of the lengths that make a dictionary of several.
SEVERAL: tuple[Factors, ...] = ((1.0, 2.0, 4.0), (0.5, 1.0, 2.0))
# Evidence, in nats, by which a trial has to be above another for that one not to be looked at again: the widths as
# given are not searched in full for comparison, and an input whose switching off costs as much stays on without asking
# rows left out.  Standard deviations by which those speak for it for the other widths not to be learned without it.
_FAR_ABOVE = 50.0
# The same for each row, where that is more, below which a trial is not shown to rows left out at all.
_BEYOND_HOPE = 0.1
_HOPELESS = 4.0


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
        self._contenders: list[Trial] = []
        self._one_width: Trial | None = None
        self._judged = False
        self._single: Trial | None = None

    def learn(self, restarts: Sequence[Array] = ()) -> Learned:
        """Learn; where the user interrupts, the best until then is returned."""
        with one_thread(), asked_to_stop() as self.search.stop:
            try:
                self._learn(restarts)
                self._confirm()
                return self._conclude(self._chosen())
            except Interrupted:
                return self.stopped_at(self._latest())

    def screen(self, restarts: Sequence[Array] = ()) -> Screened:
        """Learn, and say which parameters other rows should be asked about: the best, and the best with one width."""
        with one_thread(), asked_to_stop() as self.search.stop:
            try:
                self._learn(restarts)
            except Interrupted:
                return Screened([], self._latest())
        places: dict[bytes, Array] = {}
        for trial in (self._chosen(), self._one_width or self._chosen()):
            if trial is not self.trials[0]:
                places.setdefault(trial.log_theta.tobytes(), trial.log_theta)
        return Screened(list(places.values()))

    def _latest(self) -> Trial:
        trial = self.best or self.search.unfinished
        if trial is None:
            raise KeyboardInterrupt
        return trial

    def _learn(self, restarts: Sequence[Array]) -> None:
        self.best = scale = self._try(self.given)
        self.search.patient = False
        problems = self.search.problems(self.given)
        if all(not len(model.indices) for model in scale.models) and any(
            getattr(problem, "mean_square", 1.0) == 0.0 for problem in problems
        ):
            return
        self.judge, self._judged = judge_of(self.search, self.limits, problems), True
        if self.finalists is None:
            self._explore(scale, restarts)
        else:
            for log_theta in self.finalists:
                self._prefer(self._try(log_theta))
        self._ascend_judged(self.best)
        if self.limits.per_input and self.finalists is None:
            self._switch_on()
            self._switch_off()
        self._single, self._contenders = self.best, [self.best]
        if self.several:
            for factors in SEVERAL:
                self._prefer(self._try(self.best.log_theta, factors))

    def _explore(self, scale: Trial, restarts: Sequence[Array]) -> None:
        """One width for all inputs, the widths of the process, and any others."""
        along = self._bracket(scale)
        self._prefer(max(along, key=lambda t: t.objective))
        self._one_width = self.best
        for trial in self._from_process():
            self._prefer(trial)
        self._prefer_near(along)
        if any(self.best is trial for trial in (scale, *along)) and self._process is not None:
            # With too many inputs switched off the process has led nowhere: what it had before?
            self._prefer(self._try(self._process.log_theta))
        for log_theta in restarts:
            self._prefer(self._try(log_theta))

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
        """Let a trial contend, and say whether another one is the best now."""
        if any(trial is other for other in (self.trials[0], *self._contenders)):
            return False
        if self.judge.left_out and self._fall(trial) > max(_FAR_ABOVE, _BEYOND_HOPE * self.search.n_rows):
            return False
        if trial.size and self._leaves(trial) and not self.search.crowded(trial):
            self._contenders.append(trial)
        before, self.best = self.best, self._fittest()
        return self.best is not before

    def _fall(self, trial: Trial) -> float:
        """By how much a trial is below the widths as given, in nats."""
        return self._worth(self.trials[0]) - self._worth(trial)

    def _fittest(self) -> Trial:
        """The trial that the judge prefers; of those that left-out rows do not tell from it, one with few functions.

        Among trials of about the same size, density and evidence together decide: both are log densities of the same
        rows, so that they add up.
        """
        top, *others = pool = [self.trials[0], *self._contenders]
        for trial in others:
            top = trial if self.judge.compare(trial, top).nats > GAIN else top
        if not self.judge.left_out:
            return top
        beside = [(trial, self.judge.compare(trial, top)) for trial in pool]
        few = min(trial.size for trial, by in beside if by.nats >= -_ALIKE * by.chance) / _FEWER
        open_ = [one for one in beside if one[1].nats >= -_CLEAR * one[1].chance and one[0].size <= few]
        return max(open_, key=lambda one: one[1].nats + self._worth(one[0]))[0]

    def _leaves(self, trial: Trial) -> bool:
        """Whether a trial is reason enough to leave the widths as given.

        One of several trials is better by chance now and then: evidence and left-out rows together have to speak for it
        by more than left-out rows may do by chance.
        """
        first = self.trials[0]
        advantage = self.judge.compare(trial, first)
        gain = advantage.nats + self._worth(trial) - self._worth(first)
        return gain > _CLEAR * advantage.chance and self.judge.admits(trial, first)

    def _confirm(self) -> None:
        """Go back to the widths as given where searches that take more time do not clearly speak against them.

        A trial is a quick search, which misses more at some widths than at others; the full search may make up for it.
        """
        first, best = self.trials[0], self._chosen()
        if best is first or not self.judge.left_out:
            return
        advantage = self.judge.compare(best, first)
        if advantage.nats > _BEYOND_DOUBT * advantage.chance:
            return
        thorough = self.judge.thorough()
        again = thorough.compare(best, first)
        together = again.nats + self._worth(best) - self._worth(first)
        doubted = again.nats <= _CLEAR * again.chance or together <= _SURE * again.chance
        if doubted or not thorough.admits(best, first):
            self.best = first

    def _worth(self, trial: Trial) -> float:
        """The objective less what the functions have to bring.

        It is without the prior of the parameters, which guides climbs but is no reason to leave a place.
        """
        return trial.objective - self.limits.prior.log_density(trial.log_theta) - PRICE * trial.size

    def _bracket(self, scale: Trial) -> list[Trial]:
        """Trials along one factor of all lengths: up and down while the evidence rises, then half a step either way."""
        same = np.allclose(self.first, self.given, rtol=0.0, atol=1e-9)
        tried = {0.0: scale if same else self._try(self.first)}

        def at(power: float) -> float:
            if power not in tried:
                there = self.limits.stretched(self.first, _STEP**power)
                tried[power] = self._try(there)
            return tried[power].objective

        refused: set[float] = set()
        for direction in (1.0, -1.0):
            for k in range(1, _STEPS_OUT + 1):
                here, there = direction * (k - 1), direction * k
                if direction < 0.0 and self.search.crowded(tried[here]):
                    break
                if at(there) <= at(here):
                    break
                if direction < 0.0 and self._object(tried[there], tried[here]):
                    refused.add(there)
                    break
        best = max(tried.keys() - refused, key=at)
        for near in (best + 0.5, best - 0.5):
            if near > best or not self.search.crowded(tried[best]):
                at(near)
        self._along = tried
        return list(tried.values())

    def _object(self, narrow: Trial, wide: Trial) -> bool:
        """Whether rows left out clearly speak against narrower functions: evidence may rise with them without end."""
        advantage = self.judge.compare(narrow, wide)
        return self.judge.left_out and advantage.nats < -_CLEAR * advantage.chance

    def _prefer_near(self, along: Sequence[Trial]) -> None:
        """Where one width for all is the best so far, its neighbours are judged too, as long as one is better."""
        powers = sorted(self._along)
        moved = True
        while moved and any(self.best is trial for trial in along):
            place = next(k for k, power in enumerate(powers) if self._along[power] is self.best)
            near = [self._along[powers[k]] for k in (place - 1, place + 1) if 0 <= k < len(powers)]
            moved = sum(map(self._prefer, near)) > 0

    def _from_process(self) -> list[Trial]:
        """Trials at the lengths of a Gaussian process, and at multiples of them."""
        self._process: Fitted | None = None
        if self.process is None:
            return []
        fitted = self.process.fit(self.first, self.search.stop)
        if not np.isfinite(fitted.objective):
            return []
        lean = fitted
        if self.limits.per_input:
            lean = self.process.without_weak(fitted, self.limits.off, self._price(), self.search.stop)
            self._process = fitted if lean is not fitted else None
        trials: list[Trial] = []
        for factor in _MULTIPLES:
            if factor >= 1.0 or not self.search.crowded(trials[0]):
                trials.append(self._try(self.limits.stretched(lean.log_theta, factor)))
        return trials

    def _price(self) -> float:
        """What an input has to bring, in nats: it is one of d that might have fitted the noise of N rows."""
        return float(np.log(max(2, int(np.sum(np.isfinite(self.limits.off)))) * self.search.n_rows))

    # -- climbs --------------------------------------------------------------------------------------------

    def _ascend_judged(self, trial: Trial) -> None:
        """Ascend, and go on only where rows left out do not clearly object to the first rounds."""
        near = self._ascend(trial)
        self._prefer(near)
        if near is not trial and not self._object(near, trial):
            self._prefer(self._ascend(near, _FURTHER_ROUNDS))

    def _ascend(self, trial: Trial, rounds: int = ROUNDS) -> Trial:
        """Climb and search on, in turn, until neither gains; an input that is switched off stays so."""
        for _ in range(rounds):
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

    # -- inputs --------------------------------------------------------------------------------------------

    def _switch_on(self) -> None:
        """Try the inputs that the process had switched off once more, with the lengths that it had for them."""
        best = self.best
        if best is None or self._process is None:
            return
        off = ~self.limits.live(best.log_theta)
        there = np.where(off, self._process.log_theta, best.log_theta)
        if not np.any(off & self.limits.live(there)):
            return
        trial = self._ascend(self._try(there))
        advantage = self.judge.compare(trial, best)
        # Every one of them has to pay: together they are as many chances to fit the noise.
        price = self._price() * int(np.sum(off & self.limits.live(trial.log_theta)))
        if advantage.nats > max(advantage.chance, price) and self._leaves(trial):
            self.best = trial

    def _switch_off(self) -> None:
        """Switch inputs off one by one, the weakest first, unless rows left out clearly object."""
        refused = 0
        while self.best is not None and refused < _REFUSALS:
            best = self.best
            order = self._weakest(best)
            if refused >= len(order):
                break
            there = best.log_theta.copy()
            there[order[refused]] = self.limits.off[order[refused]]
            trial = self._try(there)
            if self._worth(trial) < self._worth(best) - max(_FAR_ABOVE, self._price()):
                refused += 1
                continue
            advantage = self.judge.compare(trial, best)
            if -max(_FAR_ABOVE, _HOPELESS * advantage.chance) < advantage.nats < -advantage.chance:
                trial = self._ascend(trial)
                advantage = self.judge.compare(trial, best)
            if advantage.nats < -min(advantage.chance, self._price()):
                refused += 1
            else:
                self.best, refused = trial, 0

    def _weakest(self, trial: Trial) -> list[int]:
        """Inputs that are on, those first whose switching off costs the model least; not those it cannot do without."""
        models = self.search.held(trial)
        if not any(len(model.indices) for model in models):
            return []
        live = np.flatnonzero(self.limits.live(trial.log_theta) & np.isfinite(self.limits.off))
        if len(live) < 2:
            return []
        return sorted(live.tolist(), key=lambda p: abs(trial.log_theta[p] - self.limits.off[p]))

    # -- the end -------------------------------------------------------------------------------------------

    def _chosen(self) -> Trial:
        if self.best is None:
            raise RuntimeError("there is a trial at the parameters as given")
        return self.best

    def _conclude(self, best: Trial) -> Learned:
        """The full search at the parameters chosen; where the evidence is not above that of those given, both."""
        scale = self.trials[0]
        results = self.search.conclude_as_given(best) if best is scale else self.search.conclude(best)
        evidence, overruled = _evidence(results), False
        if best is not scale:
            rivals = max(trial.evidence for trial in self.trials)
            if scale.evidence > evidence - _FAR_ABOVE and not self._interrupted(results):
                plain = self.search.conclude_as_given(scale, silent=True)
                rivals = max(rivals, _evidence(plain))
                if not self.judge.left_out and _evidence(plain) > evidence:
                    results, best, evidence = plain, scale, _evidence(plain)
            overruled = self.judge.left_out and rivals > evidence + 1.0
        elif len(self.trials) > 1:
            overruled = self.judge.left_out and max(trial.evidence for trial in self.trials) > evidence + 1.0
        gain = self._gain(best)
        return Learned(best, results, self.search.histories, overruled, self._interrupted(results), gain)

    def _gain(self, best: Trial) -> Gain:
        first = self.trials[0]
        evidence = best.evidence - first.evidence
        if not self._judged or not self.judge.left_out:
            return Gain(evidence)
        advantage, rows = self.judge.compare(best, first), self.judge.n_rows
        return Gain(evidence, advantage.nats / rows, advantage.chance / rows)

    def stopped_at(self, best: Trial) -> Learned:
        """The model of a trial as it is, certified."""
        results = [
            replace(result, status=Status.INTERRUPTED)
            for result in self.search.conclude(best, fresh=False, silent=True)
        ]
        return Learned(best, results, self.search.histories, overruled=False, interrupted=True)

    def _interrupted(self, results: Sequence[Result]) -> bool:
        return any(result.status is Status.INTERRUPTED for result in results)

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
