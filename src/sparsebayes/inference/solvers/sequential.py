"""The sequential algorithm of Tipping & Faul 2003, section 4.

One move at a time: add a function, re-estimate its precision, or delete it, each with the exact change of the
evidence known beforehand.  Beyond the paper, and safeguarded so that the objective never falls: once no addition or
deletion pays, all precisions are re-estimated together (a *sweep*), and the noise, where it is learned, is moved to the
maximum of its one-dimensional profile before convergence is declared.  Where gains are only predicted (Laplace), the
precisions in the model are settled before the dictionary is scored, and narrow misses are tried in earnest.  The starts
are in ``starts.py``.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from numbers import Integral
from typing import Any, ClassVar

import numpy as np

from sparsebayes.inference.models.evidence import Array
from sparsebayes.inference.models.interface import Active
from sparsebayes.inference.models.linalg import cosines
from sparsebayes.inference.objective import Moves, score, with_best_noise, with_paper_noise
from sparsebayes.inference.search.climb import BATCH, pick_apart
from sparsebayes.inference.search.escapes import doubt, uncover
from sparsebayes.inference.search.moves import Proposals, best_exchanges, best_merges, best_splits, perform
from sparsebayes.inference.search.shifting import shift
from sparsebayes.inference.search.starts import EFFORTS
from sparsebayes.inference.solvers.solver import REFUSED, Info, Kind, Need, Solver, State, is_number

SELECTIONS = ("greedy", "ordered", "random")
INITIALISATIONS = ("projection", "bias")
EXCHANGES = ("never", "converged", "always")

# Gains closer than this (relative) are a tie, which goes to the lowest index: which of two equal functions is kept
# must not depend on rounding.
_TIE = 1e-10
# Where gains are only predicted: functions that are tried one after the other before those that gain are added, and
# what a prediction may be wrong by, so that re-estimation goes on until this fraction of the tolerance.
_TRIALS = 64
_CAUTION = 0.1
# What moving all functions at once has to bring for another such move to be tried, in nats.
_WORTHWHILE = 0.3


# Where gains are only predicted, functions that are added at once: how many, with what part of the best gain, up to
# what cosine of any two columns; and how closely precisions settle in between, in nats.
_TOGETHER = 8
_FAIR_PART = 0.3
_ALIKE = 0.3
_ROUGHLY = 0.1


@dataclass
class SequentialState(State):
    """Also carries what single moves have to know of the moves before.

    Attributes
    ----------
    since_noise : int
        Moves since the noise was last updated.
    position : int
        Function of the last move, where moves are made in the order of the functions.
    stale : set of int
        Functions that were refused by an earlier model.
    settled, swept : bool
        Whether all precisions were re-estimated together since the last single move, roughly and closely.
    shifts : bool
        Whether moving all functions at once is still worth trying.
    """

    marks: ClassVar[tuple[str, ...]] = ("since_noise", "position", "settled", "swept", "shifts")

    since_noise: int = 0
    position: int = -1
    stale: set[int] = field(default_factory=set)
    settled: bool = False
    swept: bool = False
    shifts: bool = True

    def widen(self, active: Active) -> None:
        """Go on in a larger working set."""
        super().widen(active)
        self.stale.clear()
        self.swept = False

    def remembered(self) -> dict[str, Any]:
        """Everything but the model."""
        return super().remembered() | {"stale": sorted(map(int, self.stale))}

    def remember(self, remembered: dict[str, Any]) -> None:
        """Take all of it up again."""
        super().remember(remembered)
        self.stale = set(remembered["stale"])


class Sequential(Solver[SequentialState]):
    """Sequential evidence maximisation.

    Parameters
    ----------
    selection : {"greedy", "ordered", "random"}
        Which move to make: the one with the largest gain, the next in order that gains, or a random one that gains.
    initialisation : {"projection", "bias"}
        First function: that with the largest normalised projection of the targets, or the constant one.
    effort : {"fast", "default", "thorough"}
        How many places a regression is searched from: one, with the noise held low and then released; the paper's
        schedule, all functions where they are few, and kicks of the best model; or more noise levels and kicks.
    batch : int
        Functions that are added to a regression at once at most, where moves are greedy; 1 makes the papers' single
        moves, from one place.
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

    def __init__(
        self,
        selection: str = "greedy",
        initialisation: str = "projection",
        effort: str = "default",
        batch: int = BATCH,
        noise_every: int = 5,
        sweeps: bool = True,
        exchange: str = "never",
        split_merge: bool = False,
        candidates: Callable[[Array, np.random.Generator], Array] | None = None,
        rounds: int = 10,
        tol: float | None = None,
        max_iter: int | None = None,
        random_state: int | None = None,
        callback: Callable[..., bool | None] | None = None,
    ) -> None:
        self.selection = selection
        self.initialisation = initialisation
        self.effort = effort
        self.batch = batch
        self.noise_every = noise_every
        self.sweeps = sweeps
        self.exchange = exchange
        self.split_merge = split_merge
        self.candidates = candidates
        self.rounds = rounds
        self.tol = tol
        self.max_iter = max_iter
        self.random_state = random_state
        self.callback = callback

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
        """Whether a regression is begun by the loop in batches: where the best moves are made, all of them at once."""
        return self.batch > 1 and self.selection == "greedy" and self.initialisation == "projection" and self.sweeps

    def climbs(self, active: Active) -> bool:
        """In a working set functions are many and alike: single re-estimations would be most of the moves."""
        return self.selection == "greedy" and self.sweeps and active.exact and active.problem.parent is not None

    def check(self) -> None:
        """Raise where a setting is out of range."""
        for name, value, known in (
            ("selection", self.selection, SELECTIONS),
            ("initialisation", self.initialisation, INITIALISATIONS),
            ("effort", self.effort, EFFORTS),
            ("exchange", self.exchange, EXCHANGES),
        ):
            if value not in known:
                raise ValueError(f"{name}={value!r} is not known; choose one of {', '.join(map(repr, known))}")
        for name in ("batch", "noise_every", "rounds"):
            value = getattr(self, name)
            if not (is_number(value, Integral) and value >= 1):
                raise ValueError(f"{name}={value!r}: expected a positive integer")
        if self.candidates is not None and not callable(self.candidates):
            raise ValueError(f"candidates={self.candidates!r}: expected a callable or None")
        self.check_stopping()

    def init(self, active: Active, learn_noise: bool, rng: np.random.Generator) -> SequentialState:
        """Begin from these functions, usually none."""
        return SequentialState(active, learn_noise, active.evidence(), rng)

    def step(self, state: SequentialState, tol: float) -> Info | None:
        """Make one move; None when no move gains more than ``tol``."""
        if self.climbs(state.active):
            return self._shift(state)
        return self._predicted_step(state, tol) if state.active.approximate else self._exact_step(state, tol)

    def _exact_step(self, state: SequentialState, tol: float) -> Info | None:
        """The best single move (T&F steps 4-9), whose gain is known beforehand."""
        active = state.active
        if state.learn_noise and state.since_noise >= self.noise_every:
            state.since_noise = 0
            noisier = with_paper_noise(active)
            if noisier is not None:
                state.active = noisier
                return self._done(state, "noise")
        scores = score(active)
        choice = self._choice(state, scores, tol)
        if choice is None:
            return self._finish(state, scores, tol)
        swept = self._sweep_alone(state, scores, tol)
        if swept is not None:
            return swept
        if self.exchange == "always" and active.size:
            swapped = self._exchange(state, best_exchanges, float(scores.gain[choice]))
            if swapped is not None:
                return swapped
        return self._move(state, scores, choice, tol)

    def _predicted_step(self, state: SequentialState, tol: float) -> Info | None:
        """A move where gains are only predicted, and scoring the dictionary costs more than settling the model."""
        partial, swept = state.active.problem.parent is not None, None
        if not state.settled:
            state.settled, state.swept = True, not partial
            swept = self._sweep(state, _ROUGHLY if partial else _CAUTION * tol, settled=True)
        if swept is not None:
            return swept
        scores = score(state.active)
        if partial and not state.swept:  # a sweep will do what single re-estimations would
            scores = replace(scores, gain=np.where(scores.structural, scores.gain, 0.0))
        choice = self._choice(state, scores, tol)
        if choice is None:
            return self._predicted_end(state, scores, tol)
        if partial and not scores.in_model[choice] and self.selection == "greedy":
            return self._several(state, scores, choice, tol)
        return self._sweep_alone(state, scores, tol) or self._move(state, scores, choice, tol)

    def _predicted_end(self, state: SequentialState, scores: Moves, tol: float) -> Info | None:
        """Where no single move is predicted to gain: all precisions together, once, and then the end."""
        swept = None
        if not state.swept:
            state.swept = True
            whole = state.widest or state.active.problem.parent is None
            swept = self._sweep(state, _CAUTION * tol if whole else tol, settled=True)
        return self._finish(state, scores, tol) if swept is None else swept

    def _choice(self, state: SequentialState, scores: Moves, tol: float) -> int | None:
        """The function of the next move; None where none gains ``tol``."""
        first = None if state.refused else self._first(state, scores)
        return self._select(state, scores, tol) if first is None else first

    def _sweep_alone(self, state: SequentialState, scores: Moves, tol: float) -> Info | None:
        """All precisions together, where no addition or deletion pays and that changes anything."""
        if not self.sweeps or np.any(scores.structural & (scores.gain > tol)):
            return None
        return self._sweep(state, tol)

    def _sweep(self, state: SequentialState, tol: float, *, settled: bool = False) -> Info | None:
        """All precisions together; None where that changes nothing."""
        before, after = state.active, state.active.settled(tol, learn_noise=False)
        if after is before or (before.exact and after.objective() <= before.objective() + tol):
            return None
        state.active = after
        return self._done(state, "sweep", n_moves=before.size, settled=settled)

    def escape(self, state: SequentialState, tol: float) -> Info | None:
        """Add a function that the others hide, where there is one."""
        found = uncover(state.active, tol, learn_noise=state.learn_noise)
        if found is None:
            return None
        function, state.active = found
        return self._done(state, "add", function, 1)

    # -- several additions at once -------------------------------------------------------------------------

    def _several(self, state: SequentialState, scores: Moves, choice: int, tol: float) -> Info:
        """Add functions that are predicted to gain; where they do not, functions that gain in a trial."""
        together = [] if state.refused else companions(state, scores, choice, tol)
        grown = _joined(state.active, together, scores.best[together], tol)
        if grown is None:
            if not state.swept:  # trials are dear: let them be of a model that has settled
                state.swept = True
                swept = self._sweep(state, tol, settled=True)
                if swept is not None:
                    return swept
            together, alpha = self._tried(state, scores, tol)
            # Each of them gains; together they may not.
            while together and (grown := _joined(state.active, together, alpha, tol)) is None:
                together, alpha = together[: len(together) // 2], alpha[: len(together) // 2]
        if grown is None:
            return Info(REFUSED, choice)
        state.active = grown
        return self._done(state, "add", choice, len(together))

    def _tried(self, state: SequentialState, scores: Moves, tol: float) -> tuple[list[int], Array]:
        """Functions each of which really gains, and the precisions with which; those that do not are refused."""
        gain = np.where(scores.in_model, 0.0, scores.gain)
        gain[list(state.refused)] = 0.0
        order = [i for i in np.argsort(-gain, kind="stable")[:_TRIALS].tolist() if gain[i] > tol]
        fresh = [i for i in order if i not in state.stale]
        together, alpha = [], []
        for i in fresh or order:
            found = state.active.trial(i, float(scores.best[i]), tol)
            if found is None:
                state.refused.add(i)
                continue
            together.append(i)
            alpha.append(found)
            if len(together) == _TOGETHER:
                break
        return together, np.array(alpha)

    def _shift(self, state: SequentialState) -> Info | None:
        """Move all functions at once, as long as that is worth its while; None where it is not."""
        moved = shift(state.active, _WORTHWHILE, learn_noise=state.learn_noise) if state.shifts else None
        if moved is None:
            state.shifts, state.evidence = False, state.active.evidence()
            return None
        state.active = moved
        return self._done(state, "shift", n_moves=moved.size)

    # -- which move ----------------------------------------------------------------------------------------

    def _first(self, state: SequentialState, scores: Moves) -> int | None:
        """First function of an empty model (T&F step 2, section 4.1; its best precision is eq. 26); None afterwards."""
        if state.active.size or not np.any(scores.gain > 0.0):
            return None
        bias = state.active.problem.bias
        if self.initialisation == "bias" and bias is not None and scores.gain[bias] > 0.0:
            return bias
        return int(np.argmax(scores.gain >= np.max(scores.gain) * (1.0 - _TIE)))

    def _select(self, state: SequentialState, scores: Moves, tol: float) -> int | None:
        gains = scores.gain > tol
        gains[list(state.refused)] = False
        fresh = gains.copy()
        fresh[list(state.stale)] = False
        if not np.any(fresh):  # nothing else is left: what was refused by an earlier model gets another chance
            state.stale.clear()
            fresh = gains
        gaining = np.flatnonzero(fresh)
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

    def _move(self, state: SequentialState, scores: Moves, i: int, at_least: float = 0.0) -> Info:
        """One addition, deletion or re-estimation (T&F steps 6-8)."""
        active, alpha = state.active, float(scores.best[i])
        after = active.changed(i, alpha, at_least)
        rounding = after is not None and active.doubtful(np.array([i]))[0] and after.objective() <= active.objective()
        if after is None or rounding:
            state.refused.add(i)
            return Info(REFUSED, i)
        state.active = after
        return self._done(state, active.move_to(i, alpha), i, 1)

    def _finish(self, state: SequentialState, scores: Moves, tol: float) -> Info | None:
        """No move gains ``tol``: drop what has no relevance left, settle the noise, or declare convergence."""
        idle = scores.in_model & scores.structural & (scores.gain >= 0.0)
        idle[list(state.refused)] = False
        if np.any(idle):
            return self._move(state, scores, int(np.argmax(np.where(idle, scores.gain, -1.0))))
        if state.learn_noise:
            before, quieter = state.active.evidence(), with_best_noise(state.active)
            state.active = quieter if quieter.evidence() > before else state.active
            if quieter.evidence() > before + tol:
                return self._done(state, "noise")
        shifted = self._shift(state) if state.active.approximate else None
        if shifted is not None:
            return shifted
        whole = state.widest or state.active.problem.parent is None
        made = doubt(state.active, state.refused, tol) if whole and state.active.approximate else None
        if made is None:
            return self._swap(state, tol)
        kind, function, state.active = made
        return self._done(state, kind, function, 1)

    def _swap(self, state: SequentialState, tol: float) -> Info | None:
        """Where no single move gains: several functions at once (see ``moves.py``)."""
        kinds = [best_exchanges, best_merges] if self.split_merge or self.exchange != "never" else []
        kinds += [best_splits] if self.split_merge else []
        for propose in kinds:
            swapped = self._exchange(state, propose, tol)
            if swapped is not None:
                return swapped
        return None

    def _exchange(self, state: SequentialState, propose: Proposals, at_least: float) -> Info | None:
        """The first proposal of this kind that really raises the evidence."""
        for swap in propose(state.active, at_least):
            after = perform(state.active, swap)
            if after is not None:
                state.active = after
                return self._done(state, swap.kind, swap.into[0], 1)
        return None

    def _done(
        self, state: SequentialState, kind: str, function: int = -1, n_moves: int = 0, *, settled: bool = False
    ) -> Info:
        state.evidence = state.active.evidence()
        state.since_noise += n_moves
        state.stale |= state.refused
        state.refused.clear()
        state.settled = settled
        state.swept &= settled
        state.widest = False
        return Info(kind, function, n_moves)


def _joined(active: Active, functions: list[int], alpha: Array, tol: float) -> Active | None:
    """With functions more, if there are any and each of them gains ``tol`` on average."""
    return active.joined(functions, alpha, tol * len(functions)) if functions else None


def companions(state: SequentialState, scores: Moves, i: int, tol: float) -> list[int]:
    """Functions to add together with i: those that gain a fair part of what it does, and hardly overlap."""
    problem = state.active.problem
    gain = np.where(scores.in_model, 0.0, scores.gain)
    gain[list(state.refused | state.stale)] = 0.0
    limit = max(_TOGETHER, 2 * problem.n_outputs)
    pool = np.argsort(-gain, kind="stable")[: 4 * limit]
    pool = pool[gain[pool] > max(tol, _FAIR_PART * gain[i])]
    if len(pool) <= 1:
        return [i]
    columns, outputs = problem.split(pool.tolist())
    products, outputs = problem.design.among(columns), np.array(outputs)
    apart = cosines(products) < _ALIKE
    return pool[pick_apart(apart | (outputs[:, None] != outputs), limit)].tolist()
