r"""The original relevance vector machine: all precisions re-estimated together, from the whole dictionary.

Report on Tipping 2001, eqs 9-13 (regression) and 17-20 (classification), with its Gamma hyperpriors; and the factorial
posterior of Bishop & Tipping 2000.  ``docs/solvers.md`` derives all of it.

A sweep proposes new precisions and, where it is learned, a new noise level, all together, by the rule of the solver:

===============  ==========================================================
``mackay``       :math:`\alpha=(T\gamma+2a)/(Tm+2b)`
``em``, and its
``variational``  :math:`\alpha=(T+2a)/(T(m+\Sigma)+2b)`
===============  ==========================================================

(:math:`m`: ``Active.squared_mean``.)  The proposed change of every logarithm has the sign of the objective's
derivative, so the step is halved until it ascends, and lengthened as long as it does where the rule is slow.  Then
functions leave that the evidence can do without.  When sweeps bring no more, the model is finished by single exact
moves, additions included, so that the certificate is that of every other solver.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln

from sparsebayes.inference.models.bound import BoundActive
from sparsebayes.inference.models.dual import DualActive, DualLaplace
from sparsebayes.inference.models.evidence import Array
from sparsebayes.inference.models.interface import Active
from sparsebayes.inference.objective import Hyperpriors, score, with_best_noise
from sparsebayes.inference.search.escapes import uncover
from sparsebayes.inference.solvers.sequential import Sequential, SequentialState
from sparsebayes.inference.solvers.solver import REFUSED, Info, Kind, Solver, is_positive

# Sweeps go on while they gain this fraction of the tolerance: their steps are many and small.
_PATIENCE = 0.1
# Longest change of a log precision in one sweep, and how often it is halved.
_REACH = 8.0
_HALVINGS = 12
# A slow rule's steps grow by this factor from sweep to sweep while the objective rises.
_LONGER = 1.5
# A function leaves MacKay's sweeps when it is not relevant and this weakly determined: by then its precision has grown
# so far that several may leave at once.
_WEAK = 0.02
_EPS = float(np.finfo(float).eps)
_VANISHING = 1e-200


@dataclass
class SweepState(SequentialState):
    """Also carries whether the sweeps go on, by how much they are lengthened, and whether their end was settled."""

    marks: ClassVar[tuple[str, ...]] = (*SequentialState.marks, "sweeping", "stride", "finished")

    sweeping: bool = True
    stride: float = 1.0
    finished: bool = False


@dataclass(eq=False, repr=False)
class FixedPoint(Solver[SweepState]):
    """A solver that re-estimates all hyperparameters together, beginning with the whole dictionary."""

    over_relaxed: ClassVar[bool] = False

    a: float = 0.0
    b: float = 0.0
    c: float = 0.0
    d: float = 0.0

    @property
    def hyperpriors(self) -> Hyperpriors:
        """Gamma priors on the precisions and on the inverse noise variance."""
        return Hyperpriors(self.a, self.b, self.c, self.d)

    def check(self) -> None:
        """Raise where a setting is out of range."""
        self.hyperpriors.check()
        super().check()

    @abstractmethod
    def precisions(self, active: Active) -> Array:
        """New precisions of the functions in the model."""

    @abstractmethod
    def noise_precision(self, active: Active) -> float:
        """New inverse noise variance."""

    def _ratio(self, active: Active, numbers: Array, squares: Array) -> Array:
        """Numbers of weights over their sums of squares, for all targets, with the Gamma prior."""
        targets, rate = active.problem.n_targets, self.hyperpriors.rates(active)[active.indices]
        return (targets * numbers + 2.0 * self.a) / np.maximum(targets * squares + 2.0 * rate, _VANISHING)

    def _noise_ratio(self, active: Active, rows: float, spread: float) -> float:
        """A number of rows over the sum of their squared errors, for all targets, with the Gamma prior."""
        squares = active.residual_sumsq + spread + 2.0 * self.hyperpriors.noise_rate(active)
        return (active.problem.n_targets * rows + 2.0 * self.c) / max(squares, _VANISHING)

    def leaving(self, active: Active, theta: Array) -> NDArray[np.bool_]:
        r"""Mask of the functions that are to leave: without one of :math:`\theta_m\le0` the evidence is larger."""
        return theta <= 0.0

    # -- the solver contract -------------------------------------------------------------------------------

    def init(self, active: Active, learn_noise: bool, rng: np.random.Generator) -> SweepState:
        """Begin from these functions; where there are none, from the whole dictionary."""
        if active.size == 0 and active.problem.mean_square > 0.0:
            active = self.whole(active)
        return SweepState(active, learn_noise, active.evidence(), rng)

    def whole(self, active: Active) -> Active:
        """All functions, with precisions at which they have the variance of the targets together."""
        problem = active.problem
        every = np.flatnonzero(problem.eligible & (problem.sqnorms > 0.0))
        unit = problem.n_effective * problem.mean_square
        alpha = len(every) * problem.sqnorms[every] / unit
        if not active.exact:
            return DualLaplace(problem, every.tolist(), alpha).narrowed()
        return DualActive(problem, every.tolist(), alpha, active.beta).narrowed()

    def step(self, state: SweepState, tol: float) -> Info | None:
        """One sweep, or one single move once sweeps bring no more; None when no move gains more than ``tol``."""
        if state.sweeping:
            info = self._sweep(state, tol)
            if info is not None:
                return info
        return self._finish(state, tol)

    def escape(self, state: SweepState, tol: float) -> Info | None:
        """Add a function that others hide, where sweeps have emptied the model: one that needs a large weight, say."""
        empty = state.active
        found = uncover(empty, tol, learn_noise=state.learn_noise) if empty.exact and not empty.size else None
        if found is None or self._gain(state, found[1]) <= tol:
            return None
        return state.reach(found[1], "add", found[0], 1)

    # -- sweeps --------------------------------------------------------------------------------------------

    def objective(self, active: Active, learn_noise: bool) -> float:
        """Evidence plus log priors, that of the support among them."""
        return active.objective() + self.hyperpriors.log_prior(active, noise=learn_noise)

    def _sweep(self, state: SweepState, tol: float) -> Info | None:
        size, before = state.active.size, self.objective(state.active, state.learn_noise)
        climbed = self._as_far_as_it_ascends(state, before) if size else None
        if climbed is None:
            state.sweeping = False
            return None
        pruned, after = self._prune(*climbed, state.learn_noise)
        state.active = pruned.narrowed()
        state.evidence = state.active.evidence()
        state.sweeping = after - before > _PATIENCE * tol or state.active.size < size
        return Info("sweep", n_moves=1)

    def _as_far_as_it_ascends(self, state: SweepState, before: float) -> tuple[Active, float] | None:
        """The proposal, or as much of it as ascends, with its objective; None where none does."""
        active = state.active
        step, noise_step, highest = np.log(self.precisions(active) / active.alpha), 0.0, active.beta
        if state.learn_noise:
            noise_step, highest = np.log(self.noise_precision(active) / active.beta), 1.0 / active.problem.noise_floor
        for length in (state.stride, *(0.5**halving for halving in range(state.stride == 1.0, _HALVINGS))):
            alpha = active.alpha * np.exp(np.clip(length * step, -_REACH, _REACH))
            beta = active.beta * float(np.exp(np.clip(length * noise_step, -_REACH, _REACH)))
            trial = active.moved(alpha, min(beta, highest))
            value = self.objective(trial, state.learn_noise)
            if value > before:
                state.stride = length * _LONGER if self.over_relaxed and length >= 1.0 else 1.0
                return trial, value
        return None

    def _prune(self, active: Active, here: float, learn_noise: bool) -> tuple[Active, float]:
        """Let functions leave; together where that ascends, else the least determined half of them, and so on."""
        s, q2 = active.leave_one_out()
        leaving = np.flatnonzero(self.leaving(active, q2 - s))
        leaving = leaving[np.argsort(active.well_determined[leaving], kind="stable")]
        while len(leaving):
            stays = np.ones(active.size, dtype=bool)
            stays[leaving] = False
            trial = active.restricted(stays)
            value = self.objective(trial, learn_noise)
            if value >= here:
                return trial, value
            leaving = leaving[: len(leaving) // 2]
        return active, here

    # -- single moves --------------------------------------------------------------------------------------

    def _finish(self, state: SweepState, tol: float) -> Info | None:
        """One single move; None when none gains more than ``tol``."""
        ready = state.active.for_single_moves()
        if ready is not state.active:
            state.active, state.evidence = ready, ready.evidence()
        if not self.hyperpriors.flat:
            return self._move(state, tol)
        return Sequential(batch=1).step(state, tol) or self._settle(state, tol)

    def _settle(self, state: SweepState, tol: float) -> Info | None:
        """The joint maximum that sweeps and moves have come near to, once: it depends on the data, not on the way."""
        if state.finished or not state.active.exact:
            return None
        state.finished = True
        free = state.learn_noise and 1.0 / state.active.beta > 1.01 * state.active.problem.noise_floor
        settled = state.active.settled(_PATIENCE * tol, learn_noise=free)
        return state.reach(settled, "sweep", n_moves=1) if self._gain(state, settled) > 0.0 else None

    def _move(self, state: SweepState, tol: float) -> Info | None:
        """The move with the largest gain of the objective, or else of the noise, if it does gain."""
        active = state.active
        scores = score(active, hyperpriors=self.hyperpriors)
        scores.gain[list(state.refused)] = -np.inf
        best = int(np.argmax(scores.gain)) if len(scores.gain) else -1
        idle = scores.in_model & scores.structural & (scores.gain >= 0.0)
        if best < 0 or (scores.gain[best] <= tol and not np.any(idle)):
            if not state.learn_noise:
                return None
            trial = with_best_noise(active, self.hyperpriors)
            return state.reach(trial, "noise") if self._gain(state, trial) > tol else None
        chosen = best if scores.gain[best] > tol else int(np.argmax(idle))
        alpha = float(scores.best[chosen])
        trial = active.changed(chosen, alpha)
        if trial is None or self._gain(state, trial) < 0.0:
            state.refused.add(chosen)
            return Info(REFUSED, chosen)
        return state.reach(trial, active.move_to(chosen, alpha), chosen, 1)

    def _gain(self, state: SweepState, trial: Active) -> float:
        """What a model has more than the present one."""
        return self.objective(trial, state.learn_noise) - self.objective(state.active, state.learn_noise)


@dataclass(eq=False, repr=False)
class MacKay(FixedPoint):
    r"""The fixed point of Tipping 2001 (eqs 12-13 of the report), after MacKay.

    Parameters
    ----------
    a, b : float
        Gamma prior of the precisions; ``b`` is relative to the units of the data.
    c, d : float
        Gamma prior of the inverse noise variance, ``d`` relative likewise.
    alpha_max : float, optional
        Let functions leave the sweeps only when their precision exceeds this, relative to the units of the data, as
        the original implementations did; None lets them leave by :math:`\theta\le0` once they are weakly determined,
        many sweeps earlier.
    tol, max_iter, random_state, callback : optional
        As in ``Sequential``; a sweep counts as one move.
    """

    alpha_max: float | None = None

    def check(self) -> None:
        """Raise where a setting is out of range."""
        super().check()
        self.expect(
            "None, or a finite number above 1", lambda x: x is None or (is_positive(x) and x > 1.0), "alpha_max"
        )

    def precisions(self, active: Active) -> Array:
        r""":math:`\gamma_m/\mu_m^2`, with the prior (eq. 12)."""
        gamma = np.maximum(active.well_determined, _EPS)
        return self._ratio(active, gamma, active.squared_mean())

    def noise_precision(self, active: Active) -> float:
        r""":math:`(N-\sum_m\gamma_m)/\|\mathbf t-\mathbf y\|^2`, with the prior (eq. 13)."""
        n = active.problem.n_effective
        return self._noise_ratio(active, max(n - float(np.sum(active.well_determined)), _EPS * n), 0.0)

    def leaving(self, active: Active, theta: Array) -> NDArray[np.bool_]:
        r""":math:`\theta_m\le0` and hardly determined, or a precision beyond the limit."""
        if self.alpha_max is None:
            return (theta <= 0.0) & (active.well_determined <= _WEAK)
        problem = active.problem
        unit = problem.sqnorms[active.indices] / (problem.n_effective * problem.mean_square)
        return active.alpha > self.alpha_max * unit


@dataclass(eq=False, repr=False)
class EM(FixedPoint):
    r"""Expectation-maximisation over the weights (Tipping 2001, appendix): slower, and it ascends by theory.

    An irrelevant precision grows only linearly, so a function leaves as soon as :math:`\theta_m\le0`.

    Parameters
    ----------
    a, b, c, d, tol, max_iter, random_state, callback : optional
        As in ``MacKay``.
    """

    over_relaxed = True

    def precisions(self, active: Active) -> Array:
        r""":math:`1/\langle w_m^2\rangle`, with the prior."""
        return self._ratio(active, np.ones(active.size), active.squared_mean() + active.variance)

    def noise_precision(self, active: Active) -> float:
        r""":math:`N/\langle\|\mathbf t-\boldsymbol\Phi\mathbf w\|^2\rangle`, with the prior."""
        problem = active.problem
        spread = problem.n_targets * float(np.sum(active.well_determined)) / active.beta  # tr(ΦΣΦᵀ) = Σγ/β
        return self._noise_ratio(active, problem.n_effective, spread)


@dataclass(eq=False, repr=False)
class Variational(EM):
    r"""The factorial posterior q(w) q(α) q(β) of Bishop & Tipping 2000, with its lower bound.

    The means of :math:`q(\alpha_m)` and :math:`q(\beta)`, shape over rate, are the updates of ``EM``.  Two classes are
    bounded as in ``models/bound.py``.

    Parameters
    ----------
    a, b, c, d, tol, max_iter, random_state, callback : optional
        As in ``MacKay``.
    """

    takes = frozenset({Kind.GAUSSIAN, Kind.ROBUST, Kind.LOGISTIC})
    takes_why = "it bounds the logistic of two classes, and has no bound for others"

    a: float = 1e-6
    b: float = 1e-6
    c: float = 1e-6
    d: float = 1e-6

    def whole(self, active: Active) -> Active:
        """All functions; two classes by their bound, which begins where all outputs are zero."""
        start = super().whole(active)
        problem = start.problem
        if start.exact:
            return start
        return BoundActive(problem, start.indices, start.alpha, np.zeros(problem.likelihood.shape[0]))

    def lower_bound(self, active: Active, *, learn_noise: bool) -> float:
        r"""The bound :math:`\mathcal F` of a model, as a callback receives it, with all constants.

        The objective leaves out :math:`\kappa(a,\tfrac T2)+a\log a-a` for every function, so that models of any size
        can be compared by it, and the like for :math:`q(\beta)`, which is there where the noise is learned.
        """
        if min(self.a, self.b, self.c, self.d) <= 0.0:
            raise ValueError(
                f"a={self.a!r}, b={self.b!r}, c={self.c!r}, d={self.d!r}: an improper hyperprior has no finite bound; "
                "give all four positive numbers"
            )
        targets, problem = active.problem.n_targets, active.problem
        bound = active.evidence() + self.hyperpriors.log_prior(active, noise=learn_noise)
        bound += active.size * _constant(self.a, 0.5 * targets)
        return bound + (_constant(self.c, 0.5 * targets * problem.n_effective) if learn_noise else 0.0)


def _constant(shape: float, half: float) -> float:
    r""":math:`\kappa(a,h) + a\log a - a`: what the bound has beyond the log prior relative to its largest value."""
    full = shape + half
    kappa = gammaln(full) - gammaln(shape) - full * np.log(full) + full
    return float(kappa + shape * np.log(shape) - shape)
