r"""Trials: what the search for functions finds at given parameters of the kernel.

A trial of a regression is made on inner products alone (``inference/models/gaussian.py``), from the first two of the
places that any fit begins from: nothing, with the noise learned from the first function on, and what was found so, with
the noise held four times lower first.  With the noise only free, few functions explain structure away as noise, and
wide kernels win for the wrong reason; the other kicks are made at the parameters that are chosen.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np

from sparsebayes.inference import Record, Result, Sequential, Settings, Solver, Status
from sparsebayes.inference.fit.folds import Folds, Found
from sparsebayes.inference.fit.guard import run_guarded
from sparsebayes.inference.fit.run import run
from sparsebayes.inference.fit.settings import Warm
from sparsebayes.inference.models.evidence import Array
from sparsebayes.inference.models.gaussian import GaussianModel, Gram
from sparsebayes.inference.models.problem import GaussianProblem, Index
from sparsebayes.inference.search.starts import KICKS, Begun, Kick, Policy, Schedule, ascend
from sparsebayes.kernel_learning.gradients import Climbed, Family, Held, LogNormal

Problems = Sequence[GaussianProblem]
Factors = tuple[float, ...]

# Functions for each row, and at least, at which a trial ends, and nothing narrower is tried: it costs most and predicts
# worse.
_CROWD, _FEW = 0.15, 60
# What single moves in place of the loop settle for, in nats, and how many are made at most.
_COARSE, _MOVES = 1e-2, 500


class Dictionaries(Family, Protocol):
    """A family of dictionaries with the problems that share it."""

    def problems(self, log_theta: Array, factors: Factors = (1.0,)) -> Problems:
        """The problems on the dictionary at these parameters, its lengths times each of the factors."""
        ...

    def as_built(self) -> Problems | None:
        """The problems at the parameters given as a fit that learns none poses them; None where there is no other."""
        ...


class Interrupted(Exception):
    """The user has had enough."""


class _EnoughError(Exception):
    """A trial holds more functions than are worth waiting for, or has made as many moves as it may."""

    def __init__(self, model: GaussianModel) -> None:
        super().__init__(f"{model.size} functions")
        self.model = model


@dataclass(frozen=True)
class Trial:
    """What was found at some parameters.

    Attributes
    ----------
    log_theta : ndarray
        Log parameters.
    models : tuple of Warm
        The model of each problem.
    means : tuple of ndarray
        Their weights.
    evidence, objective : float
        Sum of the evidences, and the same with the log priors.
    number : int
        Of the start.
    n_iter : tuple of int
        Moves on each problem.
    factors : tuple of float
        Multiples of the lengths that are in the dictionary together.
    exact : bool
        Whether inner products cannot tell its functions apart, so that it was searched by single moves.
    """

    log_theta: Array
    models: tuple[Warm, ...]
    means: tuple[Array, ...]
    evidence: float
    objective: float
    number: int
    n_iter: tuple[int, ...]
    factors: Factors = (1.0,)
    exact: bool = False

    @property
    def size(self) -> int:
        """Functions in all models."""
        return sum(len(model.indices) for model in self.models)


class Search:
    """Makes trials, remembers their records, and stops when asked to.

    Parameters
    ----------
    family : Dictionaries
        The dictionary as a function of its parameters.
    solver : Solver
        Of the last search.
    settings : sequence of Settings
        One for each problem.
    prior : LogNormal
        Prior of the log parameters.
    rng : Generator
        Randomness of the solver.

    Attributes
    ----------
    patient : bool
        Whether trials go on where functions crowd.
    """

    def __init__(
        self,
        family: Dictionaries,
        solver: Solver,
        settings: Sequence[Settings],
        prior: LogNormal,
        rng: np.random.Generator,
    ) -> None:
        self.family, self.solver, self.settings, self.prior, self.rng = family, solver, settings, prior, rng
        self.histories: list[list[Record]] = [[] for _ in settings]
        self.stop: Callable[[], bool] = lambda: False
        self.unfinished: Trial | None = None
        self.patient = True
        self._next = 0
        self._last: tuple[bytes, Problems] | None = None

    @property
    def n_rows(self) -> float:
        """Rows that are learned from, as often as they count."""
        return self._known()[0].n_effective

    def crowded(self, trial: Trial) -> bool:
        """Whether a model has so many functions that narrower ones would only be more."""
        return any(self._crowded(len(model.indices), self.n_rows) for model in trial.models)

    def exhausted(self, trial: Trial) -> bool:
        """Whether its start has made as many moves as it may."""
        return any(made >= own.max_iter for made, own in zip(trial.n_iter, self.settings, strict=True))

    def _crowded(self, size: int, n_rows: float) -> bool:
        return size > max(_FEW, _CROWD * n_rows)

    def problems(self, log_theta: Array, factors: Factors = (1.0,)) -> Problems:
        """The problems at some parameters; the last ones are kept."""
        key = log_theta.tobytes() + np.array(factors).tobytes()
        if self._last is None or self._last[0] != key:
            self._last = None  # two dictionaries need not be held at once
            self._last = key, self.family.problems(log_theta, factors)
        return self._last[1]

    def conclude(self, trial: Trial, *, fresh: bool = True, silent: bool = False) -> list[Result]:
        """What comes of a trial, certified: by kicks of its model, or else from nothing too, the better of both.

        Parameters
        ----------
        trial : Trial
            Where, and one of the models.
        fresh : bool
            Whether to search any further.
        silent : bool
            Whether to leave no records, and ask no callback.
        """
        kicked = self._kicked(trial) if fresh else None
        trial, from_nothing = kicked or trial, fresh and kicked is None
        results = []
        problems = self.problems(trial.log_theta, trial.factors)
        for k, (problem, own, warm) in enumerate(zip(problems, self.settings, trial.models, strict=True)):
            quiet = silent or self.stop()
            anew = self._whole(problem, self._numbered(k, quiet), self._own(own, quiet)) if from_nothing else None
            if anew is not None and not quiet:
                anew = self._remember(k, anew, trial.log_theta)
            if anew is not None and anew.status in (Status.CONSTANT, Status.MAX_ITER):
                results.append(anew)
                continue
            solver = self._numbered(k, quiet)
            if not fresh:
                solver.callback = lambda record, active: True  # as it is
            onward = replace(self._own(own, quiet), keeper=None, warm=warm)
            again = self._whole(problem, solver, onward) if fresh else run(problem, solver, onward, self.rng)
            better = anew is None or again.certificate.log_evidence > anew.certificate.log_evidence + own.tol
            if anew is not None and anew.status is Status.INTERRUPTED:
                again = replace(again, status=Status.INTERRUPTED)
            if better and not quiet:
                again = self._remember(k, again, trial.log_theta)
            if not again.history:  # nothing was left to do
                again = replace(again, certificate=replace(again.certificate, start=trial.number))
            results.append(again if better or anew is None else anew)
        return results

    def as_given(self, trial: Trial, *, silent: bool = False) -> list[Result]:
        """What a fit finds that learns no parameters, at those given."""
        posed, quiet = self.family.as_built() if self.solver.working_sets else None, silent or self.stop()
        problems, results = posed or self.problems(trial.log_theta, trial.factors), []
        for k, (problem, own) in enumerate(zip(problems, self.settings, strict=True)):
            settings = (
                self._own(own, quiet) if posed is None else replace(self._own(own, quiet), keeper=None, whole=False)
            )
            result = self._whole(problem, self._numbered(k, quiet), settings)
            results.append(result if quiet else self._remember(k, result, trial.log_theta))
        return results

    def _own(self, settings: Settings, quiet: bool) -> Settings:
        return replace(settings, observe=None, keeper=None) if quiet else settings

    def _numbered(self, k: int, quiet: bool) -> Solver:
        """The solver with a callback that sees starts under the numbers that they have in the history."""
        return self.solver.silent() if quiet else self.solver.numbered_on(self._next)

    def _remember(self, k: int, result: Result, log_theta: Array) -> Result:
        """Keep the records of a search, with the prior in their objective and its starts numbered on."""
        log_prior, after = self.prior.log_density(log_theta), self._next
        records = [
            replace(record, start=after + record.start, objective=record.objective + log_prior)
            for record in result.history
        ]
        self.histories[k] += records
        self._next = 1 + max((record.start for record in records), default=after)
        return replace(result, certificate=replace(result.certificate, start=after + result.certificate.start))

    def _told(self, nothing: Trial, results: Sequence[Result]) -> Trial:
        """The trial of what single moves have found where the loop had found nothing; their records are kept."""
        number = self._next
        for k, result in enumerate(results):
            self._next = number
            self._remember(k, result, nothing.log_theta)
        models = tuple(Warm.of(result.active) for result in results)
        evidence = sum(result.certificate.log_evidence for result in results)
        return replace(
            nothing,
            models=models,
            means=tuple(result.active.mean for result in results),
            evidence=evidence,
            objective=self._objective(nothing.log_theta, evidence, models),
            number=number,
            n_iter=tuple(result.n_iter for result in results),
            exact=True,
        )

    def _objective(self, log_theta: Array, evidence: float, models: Sequence[Warm]) -> float:
        cost = sum(p.inclusion_cost * len(m.indices) for p, m in zip(self._known(), models, strict=True))
        return evidence - cost + self.prior.log_density(log_theta)

    def _known(self) -> Problems:
        if self._last is None:
            raise RuntimeError("a trial has its problems")
        return self._last[1]

    def fresh(self, log_theta: Array, factors: Factors = (1.0,)) -> Trial:
        """From nothing with the noise learned, and from what that found with the noise held lower first."""
        found: list[GaussianModel] = []
        counts: list[int] = []
        number, problems = self._next, self.problems(log_theta, factors)
        for k, problem in enumerate(problems):
            data, best, moves = Gram(problem), None, 0
            for policy in self._policies(k, data):
                start = self._next
                model, made = self._ascended(k, policy, data, best, log_theta, found, factors)
                if best is None or model.objective > best.objective:
                    best, moves, number = model, made, start
                if self._crowded(best.size, data.n) and not self.patient:
                    break
            found.append(best or _nothing(data, self.settings[k]))
            counts.append(moves)
        trial = self._trial(log_theta, found, counts, number, factors)
        return trial if trial.size else self._singly(trial)

    def _singly(self, nothing: Trial) -> Trial:
        """By the paper's single moves, where the loop has found nothing.

        Functions that hardly vary over the data are alike to inner products, and not to the exact active set.
        """
        problems = self.problems(nothing.log_theta, nothing.factors)
        if any(problem.mean_square == 0.0 for problem in problems):
            return nothing
        results = [
            run(problem, Sequential(batch=1), _singly(own.noise_variance, own.max_iter), self.rng)
            for problem, own in zip(problems, self.settings, strict=True)
        ]
        if any(result.status is Status.INTERRUPTED for result in results):
            self.unfinished = nothing
            raise Interrupted
        if sum(result.certificate.log_evidence for result in results) <= nothing.evidence + _COARSE:
            return nothing
        return self._told(nothing, results)

    def onward(self, trial: Trial, found: Climbed) -> Trial:
        """From the functions of a trial at other parameters."""
        models, counts = [], []
        alone = len(trial.models) == 1  # the climb raises the sum of several, not each
        log_prior = self.prior.log_density(found.log_theta)
        for k, (problem, warm, logs) in enumerate(
            zip(self.problems(found.log_theta), trial.models, found.logs, strict=True)
        ):
            data, own = Gram(problem), self.settings[k]
            beta = float(np.exp(logs[-1])) if len(logs) > len(warm.indices) else warm.beta
            alpha = np.exp(logs[: len(warm.indices)])
            model = GaussianModel.weighing(data, warm.indices, alpha, beta, own.noise_variance is None)
            number = trial.number if alone else self._number()
            if alone and model.objective + log_prior < trial.objective:
                return trial  # inner products have lost what the climb has won
            self._note(
                k,
                Record(number, "kernel", -1, 0, model.evidence(), model.objective + log_prior, model.size, 1 / beta),
                model,
            )
            policy, before = Begun(model), trial.n_iter[k]
            model, made = self._ascended(k, policy, data, None, found.log_theta, models, (1.0,), number, before)
            models.append(model)
            counts.append(made)
        return self._trial(found.log_theta, models, counts, trial.number if alone else self._next - 1, (1.0,))

    def left_out(
        self, trial: Trial, problem: GaussianProblem, fold: Index, enough: float, kick: float | None = None
    ) -> Folds:
        """Searches on parts of the rows, made in the way in which the trial was, until so many have been left out."""
        return Folds(problem, fold=fold, enough=enough, kick=kick, search=self._search_singly if trial.exact else None)

    def _search_singly(self, problem: GaussianProblem, beta: float) -> Found:
        active = run(problem, Sequential(batch=1), _singly(1.0 / beta), self.rng).active
        return np.array(active.indices, dtype=np.intp), active.mean, active.covariance

    def _kicked(self, trial: Trial) -> Trial | None:
        """Once from the model of a trial with the noise lowered by every factor that a fit lowers it by.

        Where the solver itself searches in batches, on inner products that tell the functions apart.
        """
        if trial.exact or not self.solver.in_batches:
            return None
        found, counts = [], []
        self.patient = True  # a search that is broken off leaves much to be settled by single moves
        for k, (problem, warm) in enumerate(
            zip(self.problems(trial.log_theta, trial.factors), trial.models, strict=True)
        ):
            data, made = Gram(problem), trial.n_iter[k]
            learned = self.settings[k].noise_variance is None
            best = GaussianModel.weighing(data, warm.indices, warm.alpha, warm.beta, learned)
            for factor in KICKS if best.size else ():
                model, moves = self._ascended(k, Kick(factor), data, best, trial.log_theta, found, trial.factors)
                if model.objective > best.objective and not self._crowded(model.size, data.n):
                    best, made = model, moves
            found.append(best)
            counts.append(made)
        return self._trial(trial.log_theta, found, counts, self._next - 1, trial.factors)

    def held(self, trial: Trial) -> Sequence[Held]:
        """The models, their functions held."""
        return [
            Held(problem, model.indices, model.alpha, model.beta, own.noise_variance is None)
            for problem, model, own in zip(self.problems(trial.log_theta), trial.models, self.settings, strict=True)
        ]

    def _whole(self, problem: Any, solver: Solver, settings: Settings) -> Result:
        return run_guarded(problem, solver, settings, self.rng)

    def _policies(self, k: int, data: Gram) -> list[Policy]:
        if data.mean_square == 0.0:
            return []
        learned = self.settings[k].noise_variance is None
        return [Schedule(), Kick(KICKS[0])] if learned else [Schedule()]

    def _ascended(
        self,
        k: int,
        policy: Policy,
        data: Gram,
        best: GaussianModel | None,
        log_theta: Array,
        done: list[GaussianModel],
        factors: Factors,
        number: int | None = None,
        made: int = 0,
    ) -> tuple[GaussianModel, int]:
        number = self._number() if number is None else number
        fixed = self.settings[k].noise_variance
        log_prior = self.prior.log_density(log_theta)

        def accepted(before: GaussianModel, after: GaussianModel) -> None:
            nonlocal made
            moves = len(set(before.indices) ^ set(after.indices)) or after.size
            made += moves
            grown = set(after.indices) - set(before.indices)
            evidence, height = after.evidence(), after.objective + log_prior
            move, function = ("add" if grown else "sweep"), (min(grown) if len(grown) == 1 else -1)
            record = Record(number, move, function, moves, evidence, height, after.size, 1.0 / after.beta)
            try:
                self._note(k, record, after)
            except Interrupted:
                rest = zip(self._known()[k + 1 :], self.settings[k + 1 :], strict=True)
                models = [*done, after, *(_nothing(Gram(problem), own) for problem, own in rest)]
                self.unfinished = self._trial(log_theta, models, [made] * len(models), number, factors)
                raise
            crowded = after.learn_noise and self._crowded(after.size, data.n) and not self.patient
            if crowded or made >= self.settings[k].max_iter:
                raise _EnoughError(after)

        try:
            return ascend(policy, data, best, fixed=None if fixed is None else 1.0 / fixed, accepted=accepted), made
        except _EnoughError as enough:
            return enough.model, made

    def _number(self) -> int:
        self._next += 1
        return self._next - 1

    def _note(self, k: int, record: Record, model: GaussianModel) -> None:
        """Keep a record, show it to whoever asked, and stop where it is time."""
        self.histories[k].append(record)
        observe, callback = self.settings[k].observe, self.solver.callback
        if observe is not None:
            observe(record)
        if self.stop() or (callback is not None and callback(record, model)):
            raise Interrupted

    def _trial(
        self, log_theta: Array, found: Sequence[GaussianModel], counts: Sequence[int], number: int, factors: Factors
    ) -> Trial:
        models = tuple(Warm(model.indices, model.alpha, model.beta) for model in found)
        evidence = sum(model.evidence() for model in found)
        height = self._objective(log_theta, evidence, models)
        means = tuple(model.mean for model in found)
        return Trial(log_theta, models, means, evidence, height, number, tuple(counts), factors)


def _singly(noise_variance: float | None, max_iter: int = _MOVES) -> Settings:
    """Settings of a search by single moves."""
    return Settings(_COARSE, min(_MOVES, max_iter), noise_variance, whole=True)


def _nothing(data: Gram, settings: Settings) -> GaussianModel:
    """The model without functions, of targets that are all noise."""
    beta = 1.0 / (settings.noise_variance or data.mean_square or 1.0)
    return GaussianModel.empty(data, beta, learn_noise=False)
