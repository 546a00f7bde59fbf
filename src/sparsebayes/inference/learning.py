r"""Learning the dictionary: kernel parameters by evidence, interleaved with the search for functions.

The evidence has several maxima in the scale of the functions.  So the search is first made along a coarse path of
scales, each from an empty model, and goes on from the best two.  Then, in turn, the parameters climb along the
gradient of the objective together with the precisions and the noise of the model found (its functions and centres
stay), the dictionary is rebuilt at the new parameters, and the search goes on from that model; the objective, evidence
plus log prior, never falls.  Within one dictionary the evidence alone chooses functions.

Scales are compared by their *score*, in which functions and inputs have a price.  Where each input has a scale, the
models found go on with that price in the search itself: functions that are not worth it leave, which lets the lengths
of the others grow, which makes more of them superfluous.  Then inputs are switched off one by one.  The score has many
maxima, and the first one found is rarely the best: an input has to be needed beside a model searched from nothing
without it, not only by the one that grew with it, and all lengths are tried longer, from nothing, with the inputs that
are left.

Last, at the parameters found, the evidence alone has its say again, once more from nothing and with all the starts of
the solver; if that is better, the climb goes on from there.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from sparsebayes.inference.active import ActiveSet
from sparsebayes.inference.chains import PRICE, Chain, at_price, rows_of
from sparsebayes.inference.evidence import Array
from sparsebayes.inference.interrupt import asked_to_stop
from sparsebayes.inference.kernel_parameters import (
    Climbed,
    Family,
    Held,
    HeldGaussian,
    HeldLaplace,
    LogNormal,
    climb,
)
from sparsebayes.inference.mode import LaplaceProblem
from sparsebayes.inference.problem import GaussianProblem
from sparsebayes.inference.run import Result, run
from sparsebayes.inference.search.starts import FIRST_NOISE
from sparsebayes.inference.settings import Settings, Warm
from sparsebayes.inference.solver import Solver
from sparsebayes.inference.status import Record, Status
from sparsebayes.threads import one_thread

# Quasi-Newton steps of one climb, rounds of climb and search, and the gain in nats below which they end.
_STEPS = 25
_ROUNDS = 25
_GAIN = 0.01
# Rounds without a better score after which a start ends.
_PATIENCE = 3
# Inputs whose switching off is refused in a row before no more are tried, and how near a log length is to being off.
_REFUSALS = 2
_NEARLY_OFF = 1.2
# A factor at which any parameter of a function shows.
_FAR = 10.0
# From how many places of the path to climb.
_PLACES = 2
# Factors by which all lengths are stretched before the search is begun again from nothing, and how often.
_STRETCHES = (1.0, 2.0, 4.0)
_RENEWALS = 2

Mask = NDArray[np.bool_]
Problems = Sequence[GaussianProblem | LaplaceProblem]


class Dictionaries(Family, Protocol):
    """A family of dictionaries with the problems that share it."""

    def problems(self, log_theta: Array) -> Problems:
        """The problems on the dictionary rebuilt at these parameters."""
        ...


class Learner:
    """Climb and search in turn.

    Parameters
    ----------
    family : Dictionaries
        The dictionary as a function of its parameters.
    solver : Solver
        Searches for functions.
    settings : sequence of Settings
        One for each problem.
    prior : LogNormal
        Prior of the log parameters.
    rng : Generator
        Randomness of the solver.
    off : ndarray of shape (P,)
        Log parameters at which an input is switched off; NaN where a parameter belongs to no single input.
    longer : ndarray of shape (P,)
        Change of the log parameters when all lengths grow by a factor of e.
    """

    def __init__(
        self,
        family: Dictionaries,
        solver: Solver,
        settings: Sequence[Settings],
        prior: LogNormal,
        rng: np.random.Generator,
        off: Array,
        longer: Array,
    ) -> None:
        self.family = family
        self.solver = solver
        self.settings = settings
        self.prior = prior
        self.rng = rng
        self.off = off
        self.longer = longer
        self.interrupted = False
        self._stop: Callable[[], bool] = lambda: False
        self._next = 0

    def learn(self, path: Sequence[Array], restarts: Sequence[Array] = ()) -> Chain:
        """Search along a path of parameters, climb from its best places and from every restart, and keep the best.

        Where the user interrupts, the best until then is returned, and ``interrupted`` is set.
        """
        with one_thread(), asked_to_stop() as self._stop:
            return self._learn(path, restarts)

    def _learn(self, path: Sequence[Array], restarts: Sequence[Array]) -> Chain:
        along = [self._search(path[0], quick=True), *self._searches(path[1:])]
        begun = [*sorted(along, key=lambda c: -c.score)[:_PLACES], *self._searches(restarts)]
        ascended = [self._ascend(chain) for chain in begun]
        if not np.any(np.isfinite(self.off)):
            return self._confirmed(max(ascended, key=lambda c: c.score))
        best = self._switch_off(max((self._priced(chain) for chain in ascended), key=lambda c: c.score))
        for _ in range(_RENEWALS):
            if self._over():
                break
            again = self._switch_off(self._renewed(best.log_theta, _STRETCHES))
            if again.score <= best.score + _GAIN:
                break
            best = again
        return self._confirmed(self._freed(best))

    def _confirmed(self, best: Chain) -> Chain:
        """Search once more from nothing, with all the starts of the solver, and climb on if that is better."""
        if self._over():
            return best
        again = self._search(best.log_theta, quick=False)
        # the same dictionary: nothing to pay for
        return self._ascend(again) if again.objective > best.objective + _GAIN else best

    def _renewed(self, log_theta: Array, stretches: Sequence[float]) -> Chain:
        """Begin again from nothing, at the best of these multiples of all lengths that are not switched off."""
        begun = (self._search(self._stretched(log_theta, factor), quick=True) for factor in stretches)
        return self._priced(self._ascend(max(begun, key=lambda c: c.score)))

    def _stretched(self, log_theta: Array, factor: float) -> Array:
        """All lengths longer by a factor, except those of inputs switched off; no input is thereby switched off."""
        there = np.clip(log_theta + np.log(factor) * self.longer, self.prior.lower, self.prior.upper)
        stays = np.isfinite(self.off) & ~self.live(there)
        return np.where(stays, log_theta, there)

    def _switch_off(self, best: Chain) -> Chain:
        """Switch inputs off one by one, the weakest first, as long as the score says so."""
        refused = 0
        for p in np.argsort(np.abs(best.log_theta - self.off)):
            models = self.models(best)
            if self._over() or refused == _REFUSALS:
                break
            if not self.live(best.log_theta)[p] or not any(len(m.indices) for m in models):
                continue
            there, free = best.log_theta.copy(), self.moving(best, models)
            there[p], free[p] = self.off[p], False
            found = climb(self.family, models, self.prior, there, _STEPS, free)
            begun = replace(best, number=self._next)  # the objective may fall: another start
            self._next += 1
            trial = self._ascend(self._go_on(begun, models, found))
            if (
                trial.score <= best.score and not self._over()
            ):  # the functions were chosen with this input: without it, others may do
                trial = max(trial, self._renewed(trial.log_theta, (1.0,)), key=lambda c: c.score)
            refused = 0 if trial.score > best.score else refused + 1
            best = trial if trial.score > best.score else best
        return best

    def live(self, log_theta: Array) -> Mask:
        """Inputs that are not switched off, by parameter."""
        return np.abs(log_theta - self.off) > _NEARLY_OFF

    def _over(self) -> bool:
        """Whether the user has had enough: the signal came, or a callback said so within a search."""
        self.interrupted = self.interrupted or self._stop()
        return self.interrupted

    # -- searching -----------------------------------------------------------------------------------------

    def _searches(self, places: Sequence[Array]) -> Iterator[Chain]:
        for log_theta in places:
            if not self._over():
                yield self._search(log_theta, quick=True)

    def _search(self, log_theta: Array, *, quick: bool) -> Chain:
        """Search from nothing: by the first of the solver's starts alone, or by all of them."""
        problems = self.family.problems(log_theta)
        settings = [
            replace(own, warm=Warm([], np.zeros(0), _first_beta(problem, own)) if quick else None)
            for problem, own in zip(problems, self.settings, strict=True)
        ]
        results = self._run(problems, settings)
        chain = Chain(log_theta, results, self._objective(log_theta, results), [], self._next)
        chain.inputs_price = self._inputs_price(log_theta, results)
        chain.histories = [self._records(r, chain) for r in results]
        chain.number += max(r.certificate.start for r in results)
        chain.n_iter = [r.n_iter for r in results]
        self._next = 1 + max((record.start for history in chain.histories for record in history), default=chain.number)
        return chain

    def _ascend(self, chain: Chain) -> Chain:
        """Climb and search on, in turn, until neither gains; an input that is switched off stays so."""
        best, waited = chain, 0
        for _ in range(_ROUNDS):
            models = self.models(chain)
            if self._over() or waited == _PATIENCE or not any(len(model.indices) for model in models):
                break
            moving = self.moving(chain, models)
            found = climb(self.family, models, self.prior, chain.log_theta, _STEPS, moving)
            if found.objective <= chain.objective:
                break
            gained = found.objective - chain.objective
            chain = self._go_on(chain, models, found)
            waited = 0 if chain.score > best.score + _GAIN else waited + 1
            best = chain if chain.score > best.score else best
            if gained < _GAIN and waited:
                break
        return best

    def _priced(self, chain: Chain) -> Chain:
        """Go on with the price of functions in the search."""
        return chain if self._over() else self._ascend(self._again(chain, PRICE))

    def _freed(self, chain: Chain) -> Chain:
        """Search on by evidence alone, at the parameters found."""
        return chain if self._over() else self._again(chain, 0.0)

    def _again(self, chain: Chain, price: float) -> Chain:
        """The model as another start, with functions at this price; the parameters stay."""
        models = self.models(chain)
        begun = replace(chain, number=self._next, price=price)
        self._next += 1
        return self._go_on(begun, models, Climbed(chain.log_theta, [model.logs for model in models], chain.objective))

    def _go_on(self, chain: Chain, models: Sequence[Held], found: Climbed) -> Chain:
        """Rebuild the dictionary at the parameters found, and search on from the model."""
        problems = [at_price(problem, chain.price) for problem in self.family.problems(found.log_theta)]
        warm = [_warm(model, logs) for model, logs in zip(models, found.logs, strict=True)]
        settings = [replace(own, warm=begin) for own, begin in zip(self.settings, warm, strict=True)]
        results = self._run(problems, settings)
        total = self._objective(found.log_theta, results)
        # With several independent models the climb raises their sum, not each: what follows is another start of each.
        number = chain.number if len(results) == 1 else self._next
        self._next += number == self._next
        grown = Chain(found.log_theta, results, total, [], number, price=chain.price)
        grown.inputs_price = self._inputs_price(found.log_theta, results)
        log_prior = self.prior.log_density(found.log_theta)
        for k, (model, begin) in enumerate(zip(models, warm, strict=True)):
            there = model.evaluate(self.family.columns(found.log_theta, model.functions), found.logs[k]).evidence
            height = there - problems[k].inclusion_cost * len(begin.indices) + log_prior
            moved = Record(number, "kernel", -1, 0, there, height, len(begin.indices), 1.0 / begin.beta)
            grown.histories.append([*chain.histories[k], moved, *self._records(results[k], grown)])
            grown.n_iter.append(chain.n_iter[k] + results[k].n_iter)
        return grown

    def _run(self, problems: Problems, settings: Sequence[Settings]) -> list[Result]:
        results = [run(p, self.solver, own, self.rng) for p, own in zip(problems, settings, strict=True)]
        self.interrupted = self.interrupted or any(r.status is Status.INTERRUPTED for r in results)
        return results

    def _inputs_price(self, log_theta: Array, results: Sequence[Result]) -> float:
        n_inputs = max(1, int(np.sum(np.isfinite(self.off))))
        return int(np.sum(self.live(log_theta))) * float(np.log(n_inputs * max(rows_of(r) for r in results)))

    def _objective(self, log_theta: Array, results: Sequence[Result]) -> float:
        return self.prior.log_density(log_theta) + sum(
            r.certificate.log_evidence + r.active.log_prior() for r in results
        )

    def _records(self, result: Result, chain: Chain) -> list[Record]:
        """The history of one run, with the prior in its objective and its starts numbered on."""
        log_prior = self.prior.log_density(chain.log_theta)
        return [
            replace(record, start=chain.number + record.start, objective=record.objective + log_prior)
            for record in result.history
        ]

    # -- the models that were found ------------------------------------------------------------------------

    def models(self, chain: Chain) -> list[Held]:
        """The models of a chain, their functions held."""
        found: list[Held] = []
        for result, own in zip(chain.results, self.settings, strict=True):
            active = result.active
            if isinstance(active, ActiveSet):
                learn_noise = own.noise_variance is None and result.status is not Status.CONSTANT
                found.append(HeldGaussian(active.problem, active.indices, active.alpha, active.beta, learn_noise))
            else:
                found.append(HeldLaplace(active.problem, active.indices, active.alpha, active.mean))
        return found

    def moving(self, chain: Chain, models: Sequence[Held]) -> Mask:
        """Parameters that may move: those on which the evidence depends at all, and that are not switched off."""
        return self.matters(chain, models) & (np.isnan(self.off) | self.live(chain.log_theta))

    def matters(self, chain: Chain, models: Sequence[Held]) -> Mask:
        """Parameters on which the evidence depends at all."""
        by_theta = np.zeros(len(chain.log_theta))
        for model in models:
            found = model.evaluate(self.family.columns(chain.log_theta, model.functions), model.logs)
            by_theta += np.abs(self.family.pullback(chain.log_theta, model.functions, found.columns))
        return by_theta > 0.0

    def used(self, chain: Chain, parameter: int) -> bool:
        """Whether a function in the model has this parameter, even where the present value makes no difference."""
        there = chain.log_theta.copy()
        there[parameter] += _FAR
        return any(
            not np.array_equal(
                self.family.columns(there, m.functions), self.family.columns(chain.log_theta, m.functions)
            )
            for m in self.models(chain)
        )

    def change(self, chain: Chain, parameter: int, shift: float) -> float:
        """Change of the evidence when a parameter moves, every precision following the norm of its function."""
        models, there = self.models(chain), chain.log_theta.copy()
        there[parameter] += shift
        total = 0.0
        for model, result in zip(models, chain.results, strict=True):
            here = self.family.columns(chain.log_theta, model.functions)
            values = self.family.columns(there, model.functions)
            norms = np.sum(here**2, axis=0), np.sum(values**2, axis=0)
            if not np.all(norms[1] > 0.0):
                return -np.inf
            logs = model.logs.copy()
            logs[: len(model.indices)] += np.log(norms[1] / norms[0])
            total += model.evaluate(values, logs).evidence - result.certificate.log_evidence
        return total


def _first_beta(problem: GaussianProblem | LaplaceProblem, settings: Settings) -> float:
    if isinstance(problem, LaplaceProblem):
        return 1.0
    return 1.0 / (settings.noise_variance or FIRST_NOISE * problem.mean_square or 1.0)


def _warm(model: Held, logs: Array) -> Warm:
    a = len(model.indices)
    beta = model.beta if isinstance(model, HeldGaussian) else 1.0
    return Warm(model.indices, np.exp(logs[:a]), float(np.exp(logs[a])) if len(logs) > a else beta)
