r"""Where searches begin, and which of their ends is kept.

The first functions decide in which maximum a search ends, and re-estimating the noise while they are few lets them
explain the rest away as noise.  So the loop is climbed from several places, each a policy of a few lines:

* ``Schedule``: the paper's; from nothing, with the noise learned from the first functions on (T&F section 4);
* ``Held``: from nothing with the noise *held* at a low level, where many functions enter; released at the end, when
  all of them have had their say and most leave again.  Kicks do the same from a better place: a fast search makes this
  start and no other, all others make kicks instead;
* ``Full``: from the whole dictionary, where that is small, brought down by the fixed point of Tipping 2001, which
  commits to nothing early;
* ``Kick``: from the best model so far with the noise held several times lower, then released.  Functions that single
  moves would never let in enter, those that they replace leave, and the next kick begins from there.  A thorough search
  is a default one that makes further kicks where it would end, of other sizes and with a higher noise: functions leave.

Where there are many rows the search that decides, from many places, is made on a part of them: what the first few
thousand say of which functions matter, and of the noise, nearly all say too.  What it found is then settled, and
climbed on from, on all rows, which are reduced in one pass to as many as there are candidates, with the same inner
products (``GaussianProblem.on_fewer_rows``): only that pass, and the certificate on the rows themselves, grow like
their number.

Which of them are made, and in which order, is a :class:`Plan`: a new policy is a class here and a word in
``Plan.named``.  Everything is decided by counts and evidences, never by clocks, so that a fit is reproducible.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from sparsebayes.inference.models.gaussian import GaussianModel, Gram
from sparsebayes.inference.models.interface import Active
from sparsebayes.inference.search.climb import BATCH, climb

# Noise variance of the first start as a fraction of the targets' mean square (T&F section 4, step 1).
FIRST_NOISE = 0.1
# Noise held where one start has to do: from .03 to .001 it ends higher than the paper's schedule on most tables.
FAST_NOISE = 0.003
# By how much kicks lower the noise, and those that a thorough search makes once these have failed: 4 nats more on
# average over 56 fits of seven of the ledger's tables, at the same error, in 1.8 times the time.  (Starts from nothing
# with the noise held at four levels as well: 1 nat more, .8 % more error, a quarter more time; the same starts before
# the kicks, 2 nats less, once 40 nats below the default search.)
KICKS = (4.0, 2.0, 16.0, 8.0)
FURTHER_KICKS = (0.25, 0.1, 32.0, 3.0, 64.0, 12.0)
# Functions up to which a search begins from all of them (its cost is cubic in them), and their first precisions as a
# fraction of those at which one function alone has the variance of the targets.
_SMALL_DICTIONARY = 300
_WIDE = 0.01
# A start with held noise may grow to this many times the best model, and in any case to so many functions: beyond, it
# costs much and gains nothing.
_GROW = 1.5
_SPARE = 50
# Functions up to which a first start with held noise grows, times the root of the number of rows.
_FIRST_SIZE = 3.0
# Functions for each row beyond which a start whose noise is learned has nothing left to learn it from.
_MOST = 0.5
# What a search settles for before its best model is polished, in nats.
COARSE = 1e-2
# Kicks on all rows, each made once.  A second one brings less than the climb among functions that inner products cannot
# tell apart, which follows in any case (50,000 diamonds: 42 nats for 8 s after 263 for 6 s; that climb, 170 for 16 s).
_KICKS = 1
# Functions for each row up to which a kick on all rows is not worth its time, since the noise is known (2,000 functions
# on ten million rows: 83 nats of 1.9 million for 75 s of the processor, after 38 s).
_LITTLE = 0.001
# How many times more functions are added at once than on few rows: models are large, and to settle one is what a step
# costs (50,000 diamonds, 700 functions, a start and two kicks on all rows: 19 s of the processor instead of 34, and 107
# nats more, partly by what the sample gave; with 8 times more 23 s, and 117 nats less than with 4).
WIDER = 4

# Rounds of kicks that only their failure ends.
_ENDLESS = 1 << 30

EFFORTS = ("fast", "default", "thorough")

Accepted = Callable[[GaussianModel, GaussianModel], None]


class Policy(ABC):
    """A place to begin from.

    One that ``chooses`` begins with functions of its own, not with those of the best model: they have a record.
    """

    chooses: ClassVar[bool] = False

    @abstractmethod
    def begin(self, data: Gram, best: GaussianModel | None) -> GaussianModel:
        """The model to climb from, given the best so far."""


@dataclass(frozen=True)
class Schedule(Policy):
    """The paper's: from nothing, the noise learned from the first functions on."""

    def begin(self, data: Gram, best: GaussianModel | None) -> GaussianModel:
        """An empty model whose noise is a tenth of the targets'."""
        return GaussianModel.empty(data, 1.0 / (FIRST_NOISE * data.mean_square), learn_noise=True)


@dataclass(frozen=True)
class Held(Policy):
    """From nothing, with the noise held at a fraction of the targets' mean square."""

    fraction: float

    def begin(self, data: Gram, best: GaussianModel | None) -> GaussianModel:
        """An empty model at that noise."""
        return GaussianModel.empty(data, 1.0 / (self.fraction * data.mean_square), learn_noise=False)


@dataclass(frozen=True)
class Full(Policy):
    """From all functions at once, where they are few and not nearly dependent; else from nothing."""

    chooses = True

    def begin(self, data: Gram, best: GaussianModel | None) -> GaussianModel:
        """What is left of the whole dictionary once its precisions have settled roughly."""
        empty, functions = Schedule().begin(data, best), np.flatnonzero(data.eligible)
        if len(functions) > _SMALL_DICTIONARY:
            return empty
        # Wide enough not to decide anything, narrow enough for the first noise estimate to be sane.
        alpha = np.full(len(functions), _WIDE / (data.n * data.mean_square))
        return empty.joined(functions, alpha, COARSE) or empty


@dataclass(frozen=True)
class Kick(Policy):
    """From the best model, with the noise held a factor lower, or higher where the factor is below one."""

    factor: float

    def begin(self, data: Gram, best: GaussianModel | None) -> GaussianModel:
        """The best model at that noise."""
        if best is None:
            raise ValueError("a kick begins from a model")
        return best.at_noise(best.beta * self.factor, learn_noise=False)


@dataclass(frozen=True)
class Begun(Policy):
    """From a model that an earlier search ended with, or was broken off at."""

    model: GaussianModel

    def begin(self, data: Gram, best: GaussianModel | None) -> GaussianModel:
        """That model."""
        return self.model


@dataclass
class Course:
    """How far a search has come: the last start that ended (-1: none), and the last that led to a better model."""

    completed: int = -1
    leader: int = 0


@dataclass(frozen=True)
class Plan:
    """The policies of an effort: starts that are made once, and kicks that go round as long as one of them gains.

    They go round no more than ``rounds`` times.  Then ``further`` ones are tried in turn; where one of them gains, and
    rounds are left, the kicks go round again.
    """

    starts: tuple[Policy, ...]
    kicks: tuple[Kick, ...] = ()
    further: tuple[Kick, ...] = ()
    rounds: int = _ENDLESS

    @classmethod
    def named(cls, effort: str, n_functions: int, *, learn_noise: bool = True) -> Plan:
        """The plan of this name for so many different functions; where the noise is given, only kicks hold another."""
        if effort == "fast":
            return cls((Held(FAST_NOISE),) if learn_noise else (Schedule(),))
        full = (Full(),) if n_functions <= _SMALL_DICTIONARY else ()
        further = FURTHER_KICKS if effort == "thorough" else ()
        return cls((Schedule(), *full), tuple(map(Kick, KICKS)), tuple(map(Kick, further)))

    def policy(self, course: Course) -> Policy | None:
        """The policy of the next start; None where that was all.

        Kicks go round by turns until each of them has failed since the last that led to a better model.
        """
        number = course.completed + 1
        if number < len(self.starts):
            return self.starts[number]
        kick = number - len(self.starts)
        failed = min(course.completed - course.leader, kick)
        beyond = max(failed - len(self.kicks), kick - self.rounds * len(self.kicks))
        if beyond < 0:
            return self.kicks[kick % len(self.kicks)]
        return self.further[beyond] if beyond < len(self.further) else None

    def share(self, course: Course) -> float:
        """About what share of the places is behind: a kick that leads to a better model adds to them."""
        number = course.completed + 1
        kicks = len(self.kicks) + len(self.further)
        to_come = kicks - min(course.completed - course.leader, kicks) if self.rounds == _ENDLESS else 0
        return number / max(len(self.starts) + kicks, number + to_come, 1)

    def continued(self, crowding: float) -> Plan:
        """What is left of the plan for all rows once it was followed on a part of them: one start, and one kick.

        Of so many functions for each row that all of them could not take much of the noise, they are not even kicked.
        """
        return Plan(self.starts[:1], self.kicks[:_KICKS] if crowding > _LITTLE else (), rounds=1)


def ascend(
    policy: Policy,
    data: Gram,
    best: GaussianModel | None,
    tol: float = COARSE,
    *,
    fixed: float | None = None,
    batch: int = BATCH,
    accepted: Accepted | None = None,
) -> GaussianModel:
    """Climb from where a policy begins, given the best model so far; where it holds the noise, release it and climb on.

    ``fixed`` is an inverse noise variance that is given and not learned; ``tol``, ``batch`` and ``accepted`` are as in
    :func:`~sparsebayes.inference.search.climb.climb`.
    """
    model = policy.begin(data, best)
    told = accepted if policy.chooses and model.size else None
    if told is not None and fixed is None:
        told(Schedule().begin(data, None), model)
    if not model.learn_noise:
        # Objectives at another noise than a given one say nothing to whoever is told.
        model = climb(model, tol, batch=batch, limit=_largest(data, best), accepted=None if fixed else accepted)
        model = model.at_noise(model.beta, learn_noise=True)
    if fixed is not None:
        model = model.at_noise(fixed, learn_noise=False)
        if told is not None:
            told(Schedule().begin(data, None), model)
    limit = np.inf if fixed is not None else _MOST * data.n
    return climb(model, tol, batch=batch, limit=limit, accepted=accepted)


def _largest(data: Gram, best: GaussianModel | None) -> float:
    """Size at which a start with held noise ends, half as many functions again as the best model has.

    Where functions have to pay for their entry, the model falls short by being too small, and grows through places
    where every single function is worth less than its cost: N/(2 log M) functions more are about as many as greedy
    selection can tell from noise.
    """
    if best is None:
        return max(_SPARE, _FIRST_SIZE * np.sqrt(data.n))
    found = data.n / (2.0 * np.log(len(data.norms))) if data.problem.inclusion_cost > 0.0 else 0.0
    return max(_GROW * best.size, _SPARE) + found


def random_model(best: Active, rng: np.random.Generator) -> Active:
    """As many functions as the best model has, drawn at random, each with its share of the targets' variance."""
    problem = best.problem
    candidates = np.flatnonzero(problem.eligible)
    size = min(max(best.size, 1), len(candidates))
    chosen = np.sort(rng.choice(candidates, size, replace=False)).tolist()
    prior = size * np.maximum(problem.sqnorms[chosen], 1e-300) / (problem.n_effective * problem.mean_square)
    return best.like(problem, chosen, prior)


def carried(model: GaussianModel, data: Gram, tol: float) -> GaussianModel:
    """The functions and precisions of a model of some rows in a problem with more rows, settled there."""
    alpha = np.maximum(model.alpha, np.finfo(float).tiny)
    return GaussianModel.weighing(data, model.indices, alpha, model.beta, model.learn_noise).settled(tol)
