"""What the loop asks of a solver: where it begins, what one step does, and where it begins again.

And what a fit asks of the place where its rows are, beyond sums over them: a solver declares it (``Solver.needs``,
``Solver.takes``), an estimator adds what its settings need, each storage says what it cannot give
(``estimators/checks.py``), and that is checked before a fit.
"""

from __future__ import annotations

import copy
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from numbers import Integral, Real
from typing import Any, ClassVar, Generic, Self, TypeVar, cast

import numpy as np
from sklearn.base import BaseEstimator

from sparsebayes.inference.models.interface import Active
from sparsebayes.inference.objective import FLAT, Hyperpriors
from sparsebayes.inference.status import Status

REFUSED = "refused"


class Kind(Enum):
    """Kinds of likelihoods, as far as solvers tell them apart."""

    GAUSSIAN = "gaussian"
    ROBUST = "outliers, student-t"
    POISSON = "poisson"
    LOGISTIC = "two classes"
    SOFTMAX = "several classes jointly"


class Need(Enum):
    """What a fit may ask of the place where its rows are, beyond sums over them; the value says it in words."""

    PASSES = "needs sums over all rows again at every step"
    ROWS = "looks at every row by itself"
    RESIDUALS = "needs the residual of every row"
    FRESH = "makes functions on the way, which are evaluated on the rows"
    CENTRES = "puts a function on every row"
    FUNCTIONS = "computes functions of the entries of the rows"
    ALL_ROWS = "takes its functions from all rows"
    FORMS = "has no form in the array API"
    WIDTHS = "evaluates the kernel at many widths"
    WEIGHTS = "gives the rows weights"
    LEFT_OUT = "leaves rows out"
    TARGETS = "fits several targets"
    RESTARTS = "begins again from random models"
    CHECKPOINT = "keeps the state of the search with a fingerprint of the rows"
    STEPS = "keeps the state of a search whose steps go over the rows"
    DEVICE = "moves the rows to a device"


@dataclass(frozen=True)
class Info:
    """What one step did: the move, the function, and how many single moves it stands for."""

    move: str
    function: int = -1
    n_moves: int = 0


@dataclass
class State:
    """What every solver carries from step to step; a solver that carries more has a state of its own.

    ``evidence`` is what the solver takes for the log evidence of its model ``active``; moves of the functions in
    ``refused`` were tried on this very model and did not raise the objective.
    """

    # Counters and marks that a search which goes on later must know.
    marks: ClassVar[tuple[str, ...]] = ()

    active: Active
    learn_noise: bool
    evidence: float
    rng: np.random.Generator
    refused: set[int] = field(default_factory=set)

    @property
    def objective(self) -> float:
        """What the solver maximises, at this state."""
        return self.evidence + self.active.log_prior()

    @property
    def n_active(self) -> int:
        """Functions in the model."""
        return self.active.size

    @property
    def noise_variance(self) -> float:
        """Noise variance; 1 where the likelihood has none."""
        return 1.0 / self.active.beta

    def reach(self, active: Active, move: str, function: int = -1, n_moves: int = 0) -> Info:
        """Go on from another model, where everything may be tried again, and say what led there."""
        self.active, self.evidence = active, active.evidence()
        self.refused.clear()
        return Info(move, function, n_moves)

    def remembered(self) -> dict[str, Any]:
        """What a search that goes on later must know beside the model, as plain data."""
        return {name: getattr(self, name) for name in self.marks} | {"refused": sorted(map(int, self.refused))}

    def remember(self, remembered: dict[str, Any]) -> None:
        """Take up what :meth:`remembered` gave."""
        self.refused = set(remembered["refused"])
        for name in self.marks:
            setattr(self, name, remembered[name])


S = TypeVar("S", bound=State)


def is_number(value: object, kind: type = Real) -> bool:
    """Whether this is a number of the kind, and not a truth value."""
    return isinstance(value, kind) and not isinstance(value, bool | np.bool_)


def is_count(value: object) -> bool:
    """Whether this is a positive integer."""
    return is_number(value, Integral) and cast(int, value) >= 1


def is_positive(value: object) -> bool:
    """Whether this is a positive, finite number."""
    return is_number(value) and 0.0 < cast(float, value) < np.inf


@dataclass(eq=False, repr=False, kw_only=True)
class Stopping:
    """What all solvers can be told; what is given wins over the estimator's."""

    tol: float | None = None
    max_iter: int | None = None
    random_state: int | None = None
    callback: Callable[..., bool | None] | None = None


class Solver(Stopping, BaseEstimator, ABC, Generic[S]):
    """One way to maximise the objective, with states of its own type S; its parameters are as in scikit-learn."""

    # Kinds of likelihoods that it takes, and why no others.
    takes: ClassVar[frozenset[Kind]] = frozenset(Kind)
    takes_why: ClassVar[str] = ""
    # Whether it takes several targets with one set of functions.
    takes_shared: ClassVar[bool] = True
    # Whether the rule of the support decides what it keeps.
    takes_support: ClassVar[bool] = True
    # What it means that the search ended by itself where single moves would still raise the evidence.
    status_if_uncertified: ClassVar[Status] = Status.STALLED

    candidates: Callable[..., Any] | None = None
    rounds: int = 0
    split_merge: bool = False
    initialisation: str = "projection"
    effort: str = "default"
    batch: int = 1

    def needs(self, kind: Kind, *, centred: bool) -> dict[Need, str]:
        """What it asks of the rows, where functions may be ``centred`` on them, and why, in words after its name."""
        why = "needs all rows at every step where targets are not Gaussian"
        return {} if kind is Kind.GAUSSIAN else {Need.ROWS: why}

    def silent(self) -> Self:
        """The same without its callback."""
        twin = copy.copy(self)
        twin.callback = None
        return twin

    def numbered_on(self, after: int) -> Self:
        """The same, its callback shown starts under the numbers that they have in the history of ``after`` others."""
        twin, callback = copy.copy(self), self.callback
        if callback is not None:
            twin.callback = lambda record, active: callback(replace(record, start=after + record.start), active)
        return twin

    @property
    def makes_functions(self) -> bool:
        """Whether functions that are not in the dictionary are made on the way."""
        return self.candidates is not None or self.split_merge

    @property
    def working_sets(self) -> bool:
        """Whether the search may go on in a part of a large dictionary, widened until nothing outside it gains."""
        return False

    @property
    def in_batches(self) -> bool:
        """Whether the search begins with the loop in batches, of a regression from the places of an effort."""
        return False

    def climbs(self, active: Active) -> bool:
        """Whether the loop in batches goes on from this model, and single steps only where it ends."""
        return False

    @property
    def hyperpriors(self) -> Hyperpriors:
        """Priors on the precisions and the noise; the objective is the evidence plus their logarithm."""
        return FLAT

    @property
    def own_objective(self) -> bool:
        """Whether the search is for something else than the evidence."""
        return self.status_if_uncertified is not Status.STALLED

    def check(self) -> None:
        """Raise where a setting is out of range."""
        self.expect("a positive integer", lambda value: value is None or is_count(value), "max_iter")
        self.expect("a positive, finite number", lambda value: value is None or is_positive(value), "tol")
        self.expect("a callable or None", lambda value: value is None or callable(value), "callback", "candidates")

    def expect(self, what: str, fits: Callable[[Any], bool], *names: str) -> None:
        """Raise where one of these settings does not fit."""
        for name in names:
            if not fits(getattr(self, name)):
                raise ValueError(f"{name}={getattr(self, name)!r}: expected {what}")

    def expect_one_of(self, **known: Sequence[str]) -> None:
        """Raise where a setting is none of those that are known."""
        for name, choices in known.items():
            if getattr(self, name) not in choices:
                value, names = getattr(self, name), ", ".join(map(repr, choices))
                raise ValueError(f"{name}={value!r} is not known; choose one of {names}")

    @abstractmethod
    def init(self, active: Active, learn_noise: bool, rng: np.random.Generator) -> S:
        """Begin from this model, usually an empty one."""

    def shown(self, state: S) -> Active:
        """The model that a callback is shown: where the search is for something else, one made for it."""
        return self.model(state) if self.own_objective else state.active

    def model(self, state: S) -> Active:
        """The model that the search has reached, computed from nothing but the data."""
        return state.active.recompute()

    def effects(self, state: S) -> Any:
        """What is known of functions that could stand in for those of the model; None where that is nothing."""
        return None

    @abstractmethod
    def step(self, state: S, tol: float) -> Info | None:
        """Make one move; None when no move gains more than ``tol``."""

    def escape(self, state: S, tol: float) -> Info | None:
        """Make a move of another kind where no single one gains; None where there is none."""
        return None
