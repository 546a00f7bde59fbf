"""The sequential algorithm of Tipping & Faul 2003, section 4, one move at a time, and what follows where it ends.

By default a search is made by the same algorithm in batches (``search/climb.py``, from the starts of
``search/starts.py``).  The moves here end it; they do all of the work with ``batch=1`` and other selections.  Beyond
the paper, and safeguarded so that the objective never falls: once no addition or deletion pays, all precisions are
settled together, and the noise is moved to the maximum of its profile (``docs/sequential.md``, section 5).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from sparsebayes.inference.models.evidence import Array
from sparsebayes.inference.models.interface import Active
from sparsebayes.inference.objective import Moves, score, with_best_noise, with_paper_noise
from sparsebayes.inference.search.climb import BATCH
from sparsebayes.inference.search.escapes import doubt, uncover
from sparsebayes.inference.search.moves import Proposals, best_exchanges, best_merges, best_splits, perform
from sparsebayes.inference.search.shifting import shift
from sparsebayes.inference.search.starts import EFFORTS
from sparsebayes.inference.solvers.solver import REFUSED, Info, Kind, Need, Solver, State, is_count

SELECTIONS = ("greedy", "ordered", "random")
INITIALISATIONS = ("projection", "bias")
EXCHANGES = ("never", "converged", "always")

# Gains closer than this (relative) are a tie, which goes to the lowest index: which of two equal functions is kept
# must not depend on rounding.
_TIE = 1e-10
# What moving all functions at once has to bring for another such move to be tried, in nats.
_WORTHWHILE = 0.3


@dataclass
class SequentialState(State):
    """Also carries what single moves have to know of the moves before."""

    marks: ClassVar[tuple[str, ...]] = ("since_noise", "position", "shifts")

    # Moves since the noise was last updated, and the function of the last move, where they are made in order.
    since_noise: int = 0
    position: int = -1
    # Whether moving all functions at once is still worth trying.
    shifts: bool = True

    def reach(self, active: Active, move: str, function: int = -1, n_moves: int = 0) -> Info:
        """Go on from another model, and say what led there."""
        self.since_noise += n_moves
        return super().reach(active, move, function, n_moves)


@dataclass(eq=False, repr=False)
class Sequential(Solver[SequentialState]):
    """Sequential evidence maximisation.

    Parameters
    ----------
    selection : {"greedy", "ordered", "random"}
        Which move to make: the one with the largest gain, the next in order that gains, or a random one that gains.
    initialisation : {"projection", "bias"}
        First function: that with the largest normalised projection of the targets, or the constant one.
    effort : {"fast", "default", "thorough"}
        How many places a regression is searched from.  "fast": one, with the noise held low and then released;
        "default": the paper's schedule, all functions where they are few, and kicks of the best model; "thorough":
        these, and further kicks where they end.
    batch : int
        Functions that are added at once at most, where moves are greedy; 1 makes the papers' single moves, of a
        regression from one place.
    noise_every : int
        Moves between two noise updates of the paper's schedule.
    exchange : {"never", "converged", "always"}
        Replace one function, or two, by another wherever that raises the evidence although no single move does: once
        no single move gains, or whenever it gains more than any of them.  All pairs are evaluated exactly.
    split_merge : bool
        Once nothing else gains, offer functions at new centres, between and around those kept, so that one function
        can become two, two one, and one can move off the data (regression, functions with centres); implies exchange.
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

    selection: str = "greedy"
    initialisation: str = "projection"
    effort: str = "default"
    batch: int = BATCH
    noise_every: int = 5
    sweeps: bool = True
    exchange: str = "never"
    split_merge: bool = False
    candidates: Callable[[Array, np.random.Generator], Array] | None = None
    rounds: int = 10

    # -- the solver contract -------------------------------------------------------------------------------

    def needs(self, kind: Kind, *, centred: bool) -> dict[Need, str]:
        """Passes over the rows at every step where targets are not Gaussian, and what its options need."""
        needs: dict[Need, str] = {}
        if self.makes_functions:
            needs[Need.FRESH] = "functions are made on the way"
        if kind is not Kind.GAUSSIAN:
            needs[Need.PASSES] = "goes over all rows at every step where targets are not Gaussian"
            if self.exchange != "never":
                needs[Need.ROWS] = "compares the columns of functions"
        return needs

    @property
    def working_sets(self) -> bool:
        """Whether the search may go on in a part of a large dictionary; an exchange needs the whole of it."""
        return self.exchange == "never" and not self.split_merge

    @property
    def in_batches(self) -> bool:
        """Whether the search begins with the loop in batches: where the best moves are made, all of them at once."""
        return self.batch > 1 and self.selection == "greedy" and self.initialisation == "projection" and self.sweeps

    def climbs(self, active: Active) -> bool:
        """Whether the loop in batches goes on from this model, and single steps only where it ends.

        It does where gains are only predicted, and in a working set, whose functions are many and alike: there most
        single moves would be re-estimations.
        """
        many = active.problem.parent is not None and self.selection == "greedy" and self.sweeps
        return many or (active.approximate and self.in_batches)

    def check(self) -> None:
        """Raise where a setting is out of range."""
        self.expect_one_of(selection=SELECTIONS, initialisation=INITIALISATIONS, effort=EFFORTS, exchange=EXCHANGES)
        self.expect("a positive integer", is_count, "batch", "noise_every", "rounds")
        super().check()

    def init(self, active: Active, learn_noise: bool, rng: np.random.Generator) -> SequentialState:
        """Begin from these functions, usually none."""
        return SequentialState(active, learn_noise, active.evidence(), rng)

    def step(self, state: SequentialState, tol: float) -> Info | None:
        """Make the best single move (T&F steps 4-9); None when no move gains more than ``tol``."""
        active = state.active
        if self.climbs(active):
            return self._escape(state, tol)
        if state.learn_noise and state.since_noise >= self.noise_every:
            state.since_noise = 0
            noisier = with_paper_noise(active)
            if noisier is not None:
                return state.reach(noisier, "noise")
        scores = score(active)
        choice = self._choose(state, scores, tol)
        if choice is None:
            return self._finish(state, scores, tol)
        if self.sweeps and not np.any(scores.structural & (scores.gain > tol)):
            settled = active.settled(tol, learn_noise=False)
            if settled is not active and not (active.exact and settled.objective() <= active.objective() + tol):
                return state.reach(settled, "sweep", n_moves=active.size)
        wanted = self.exchange == "always" and active.size > 0
        swapped = self._exchange(state, best_exchanges, float(scores.gain[choice])) if wanted else None
        return swapped or self._move(state, scores, choice, tol)

    def escape(self, state: SequentialState, tol: float) -> Info | None:
        """Add a function that the others hide, where there is one."""
        found = uncover(state.active, tol, learn_noise=state.learn_noise)
        return None if found is None else state.reach(found[1], "add", found[0], 1)

    # -- which move ----------------------------------------------------------------------------------------

    def _choose(self, state: SequentialState, scores: Moves, tol: float) -> int | None:
        """The function of the next move; None where none gains ``tol``."""
        if state.active.size == 0 and not state.refused and np.any(scores.gain > 0.0):
            return self._first(state.active.problem.bias, scores)
        gains = scores.gain > tol
        gains[list(state.refused)] = False
        gaining = np.flatnonzero(gains)
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

    def _first(self, bias: int | None, scores: Moves) -> int:
        """First function of an empty model (T&F step 2, section 4.1; its best precision is eq. 26)."""
        if self.initialisation == "bias" and bias is not None and scores.gain[bias] > 0.0:
            return bias
        return int(np.argmax(scores.gain >= np.max(scores.gain) * (1.0 - _TIE)))

    # -- making it -----------------------------------------------------------------------------------------

    def _move(self, state: SequentialState, scores: Moves, i: int, at_least: float = 0.0) -> Info:
        """One addition, deletion or re-estimation (T&F steps 6-8)."""
        active, alpha = state.active, float(scores.best[i])
        after = active.changed(i, alpha, at_least)
        rounding = after is not None and active.doubtful(np.array([i]))[0] and after.objective() <= active.objective()
        if after is None or rounding:
            state.refused.add(i)
            return Info(REFUSED, i)
        return state.reach(after, active.move_to(i, alpha), i, 1)

    def _finish(self, state: SequentialState, scores: Moves, tol: float) -> Info | None:
        """No move gains ``tol``: drop what has no relevance left, settle the noise, or declare convergence."""
        idle = scores.in_model & scores.structural & (scores.gain >= 0.0)
        idle[list(state.refused)] = False
        if np.any(idle):
            return self._move(state, scores, int(np.argmax(np.where(idle, scores.gain, -1.0))))
        if state.learn_noise:
            before, quieter = state.active.evidence(), with_best_noise(state.active)
            if quieter.evidence() > before + tol:
                return state.reach(quieter, "noise")
            if quieter.evidence() > before:
                state.active, state.evidence = quieter, quieter.evidence()
        return self._escape(state, tol)

    def _escape(self, state: SequentialState, tol: float) -> Info | None:
        """Where no single move gains by its score: all functions moved, narrow misses, several functions at once."""
        active = state.active
        if state.shifts and (active.approximate or active.problem.parent is not None):
            shifted = shift(active, _WORTHWHILE, learn_noise=state.learn_noise)
            if shifted is not None:
                return state.reach(shifted, "shift", n_moves=shifted.size)
            state.shifts = False
        made = doubt(active, state.refused, tol) if active.approximate else None
        if made is not None:
            kind, function, after = made
            return state.reach(after, kind, function, 1)
        kinds = [best_exchanges, best_merges] if self.split_merge or self.exchange != "never" else []
        kinds += [best_splits] if self.split_merge else []
        return next(filter(None, (self._exchange(state, propose, tol) for propose in kinds)), None)

    def _exchange(self, state: SequentialState, propose: Proposals, at_least: float) -> Info | None:
        """The first proposal of this kind that really raises the evidence."""
        for swap in propose(state.active, at_least):
            after = perform(state.active, swap)
            if after is not None:
                return state.reach(after, swap.kind, swap.into[0], 1)
        return None
