"""The sequential algorithm of Tipping & Faul 2003, section 4.

One move at a time: add a function, re-estimate its precision, or delete it, each with the exact change of the
evidence known beforehand.  Two departures, both safeguarded so that the objective never falls: once no addition or
deletion pays, all precisions are re-estimated together (a *sweep*), and the noise, where it is learned, is moved to
the maximum of its one-dimensional profile before convergence is declared.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator

from sparsebayes.inference.active import ActiveSet
from sparsebayes.inference.evidence import Array, best_alpha, contribution
from sparsebayes.inference.noise import maximise_noise, reestimate_noise
from sparsebayes.inference.problem import Problem

SELECTIONS = ("greedy", "ordered", "random")
INITIALISATIONS = ("projection", "bias")
NOISES = ("starts", "schedule")

# Gains closer than this (relative) are a tie, which goes to the lowest index: which of two equal functions is kept
# must not depend on rounding.
_TIE = 1e-10
# A candidate whose s is below this fraction of β‖φ‖² lies in the span of the model up to rounding: s, and with it
# the gain, has no correct digit.
_RESOLVED = 1e-14
# Exact refresh after this many rank-one updates, or as soon as the drift check says so.
_REFRESH_EVERY = 50
_DRIFT = 1e-9


@dataclass(frozen=True)
class Info:
    """What one step did: the move, the function, how many single moves it stands for, the change of the objective."""

    move: str
    function: int = -1
    n_moves: int = 0
    gain: float = 0.0


@dataclass
class State:
    """What is carried from step to step."""

    active: ActiveSet
    learn_noise: bool
    evidence: float
    rng: np.random.Generator
    since_noise: int = 0
    position: int = 0
    in_span: set[int] = field(default_factory=set)

    def copy(self) -> State:
        """Independent copy on the same problem."""
        return replace(self, active=self.active.copy(), in_span=set(self.in_span))


@dataclass(frozen=True)
class Scores:
    """For every function: its best precision, and what moving there would gain."""

    alpha: Array
    best: Array
    gain: Array

    @property
    def in_model(self) -> NDArray[np.bool_]:
        """Functions with a finite precision."""
        return np.isfinite(self.alpha)

    @property
    def structural(self) -> NDArray[np.bool_]:
        """Functions whose move is an addition or a deletion."""
        return self.in_model != np.isfinite(self.best)


def score(active: ActiveSet) -> Scores:
    """Gain of the best move of every function (T&F eqs 18, 20, 21); candidates that may not enter gain nothing."""
    alpha, s, q2 = active.statistics()
    best = best_alpha(s, q2)
    gain = active.problem.n_targets * (contribution(best, s, q2) - contribution(alpha, s, q2))
    resolved = s > _RESOLVED * active.beta * active.problem.sqnorms
    may_move = (active.problem.eligible & resolved) | np.isfinite(alpha)
    return Scores(alpha, best, np.where(may_move, gain, 0.0))


class Sequential(BaseEstimator):
    """Sequential evidence maximisation.

    Parameters
    ----------
    selection : {"greedy", "ordered", "random"}
        Which move to make: the one with the largest gain, the next in order that gains, or a random one that gains.
    initialisation : {"projection", "bias"}
        First function: that with the largest normalised projection of the targets, or the constant one.
    noise : {"starts", "schedule"}
        Where the noise is learned: several starts (default; the paper's schedule first, then low noise levels held
        until convergence and released, best objective kept), or the paper's schedule alone.
    noise_every : int
        Moves between two noise updates of the paper's schedule.
    noise_fractions : tuple of float
        Noise levels of the further starts, as fractions of the targets' variance.
    sweeps : bool
        Re-estimate all precisions together once no addition or deletion pays.
    candidates : callable, optional
        ``candidates(centres, rng) -> array of new centres``: functions generated on the way (section 4.2).  It is
        called at each convergence with the centres of the kept functions.
    rounds : int
        How often candidates are generated.
    tol, max_iter, random_state : optional
        As in the estimators; where given here, they win over the estimator's.
    callback : callable, optional
        ``callback(record, active)`` after every move; returning True stops the fit.
    """

    def __init__(
        self,
        selection: str = "greedy",
        initialisation: str = "projection",
        noise: str = "starts",
        noise_every: int = 5,
        noise_fractions: tuple[float, ...] = (0.1, 0.05, 0.03),
        sweeps: bool = True,
        candidates: Callable[[Array, np.random.Generator], Array] | None = None,
        rounds: int = 10,
        tol: float | None = None,
        max_iter: int | None = None,
        random_state: int | None = None,
        callback: Callable[..., bool | None] | None = None,
    ) -> None:
        self.selection = selection
        self.initialisation = initialisation
        self.noise = noise
        self.noise_every = noise_every
        self.noise_fractions = noise_fractions
        self.sweeps = sweeps
        self.candidates = candidates
        self.rounds = rounds
        self.tol = tol
        self.max_iter = max_iter
        self.random_state = random_state
        self.callback = callback

    # -- the solver contract -------------------------------------------------------------------------------

    @property
    def further_starts(self) -> tuple[float, ...]:
        """Noise levels, as fractions of the targets' variance, from which the search is begun again."""
        return tuple(self.noise_fractions) if self.noise == "starts" else ()

    def check(self) -> None:
        """Raise where a setting is out of range."""
        for name, value, known in (
            ("selection", self.selection, SELECTIONS),
            ("initialisation", self.initialisation, INITIALISATIONS),
            ("noise", self.noise, NOISES),
        ):
            if value not in known:
                raise ValueError(f"{name}={value!r} is not known; choose one of {', '.join(map(repr, known))}")
        fractions = tuple(self.noise_fractions)
        if not all(0.0 < f < 1.0 for f in fractions):
            raise ValueError(f"noise_fractions={fractions!r}: expected numbers between 0 and 1")
        for name in ("noise_every", "rounds"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name}={getattr(self, name)!r}: expected a positive integer")

    def init(self, problem: Problem, noise_variance: float, learn_noise: bool, rng: np.random.Generator) -> State:
        """Empty model at the given noise variance."""
        active = ActiveSet(problem, 1.0 / noise_variance)
        return State(active, learn_noise, active.evidence(), rng)

    def step(self, state: State, tol: float) -> Info | None:
        """Make one move; None when no move gains more than ``tol``."""
        active = state.active
        if active.updates >= _REFRESH_EVERY or active.drift() > _DRIFT:
            active.refresh()
        if state.learn_noise and state.since_noise >= self.noise_every:
            state.since_noise = 0
            gain = reestimate_noise(active)
            if gain > 0.0:
                return self._done(state, Info("noise", gain=gain))
        scores = score(active)
        if state.in_span:
            scores.gain[list(state.in_span)] = 0.0
        first = self._first(state, scores)
        choice = self._select(state, scores, tol) if first is None else first
        if choice is not None:
            settled = not np.any(scores.structural & (scores.gain > tol))
            if self.sweeps and settled and active.size > 1:
                return self._sweep(state, scores, choice, tol)
            return self._move(state, scores, choice)
        return self._finish(state, scores, tol)

    # -- which move ----------------------------------------------------------------------------------------

    def _first(self, state: State, scores: Scores) -> int | None:
        bias = state.active.problem.bias
        if self.initialisation == "bias" and state.active.size == 0 and bias is not None and scores.gain[bias] > 0.0:
            return bias
        return None

    def _select(self, state: State, scores: Scores, tol: float) -> int | None:
        gaining = np.flatnonzero(scores.gain > tol)
        if len(gaining) == 0:
            return None
        if self.selection == "random":
            return int(state.rng.choice(gaining))
        if self.selection == "ordered":
            later = gaining[gaining > state.position]
            state.position = int(later[0] if len(later) else gaining[0])
            return state.position
        tied = gaining[scores.gain[gaining] >= np.max(scores.gain[gaining]) * (1.0 - _TIE)]
        inside = tied[scores.in_model[tied]]  # a copy of a function in the model gains what re-estimation would
        return int(inside[0] if len(inside) else tied[0])

    # -- making it -----------------------------------------------------------------------------------------

    def _move(self, state: State, scores: Scores, i: int) -> Info:
        """One addition, deletion or re-estimation (T&F steps 6-8)."""
        active, gain = state.active, float(scores.gain[i])
        if not scores.in_model[i]:
            if not active.add(i, float(scores.best[i])):
                state.in_span.add(i)
                return Info("refused", i)
            kind = "add"
        elif np.isfinite(scores.best[i]):
            active.reestimate(active.indices.index(i), float(scores.best[i]))
            kind = "reestimate"
        else:
            active.delete(active.indices.index(i))
            state.in_span.clear()
            kind = "delete"
        return self._done(state, Info(kind, i, 1, gain))

    def _sweep(self, state: State, scores: Scores, i: int, tol: float) -> Info:
        """Re-estimate every precision that gains, together; fall back to the single move if that ascends less."""
        active = state.active
        here = np.array(active.indices)
        changed = (scores.gain[here] > tol) & np.isfinite(scores.best[here])
        alpha = np.where(changed, scores.best[here], active.alpha)
        post = active.posterior(alpha)
        gain = active.evidence(post, alpha) - active.evidence()
        if np.sum(changed) < 2 or gain < scores.gain[i]:
            return self._move(state, scores, i)
        active.set_hyperparameters(alpha, active.beta, post)
        return self._done(state, Info("sweep", n_moves=int(np.sum(changed)), gain=gain))

    def _finish(self, state: State, scores: Scores, tol: float) -> Info | None:
        """No move gains ``tol``: drop what has no relevance left, settle the noise, or declare convergence."""
        active = state.active
        idle = np.flatnonzero(scores.in_model & scores.structural & (scores.gain >= 0.0))
        if len(idle):
            return self._move(state, scores, int(idle[np.argmax(scores.gain[idle])]))
        if state.learn_noise:
            gain = maximise_noise(active)
            if gain > tol:
                return self._done(state, Info("noise", gain=gain))
        return None

    def _done(self, state: State, info: Info) -> Info:
        state.since_noise += info.n_moves
        state.evidence = state.active.evidence()
        return info
