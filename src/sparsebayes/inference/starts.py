r"""Where the search begins again, and when such a start is given up.

Re-estimating the noise while the model is still small lets the first few functions explain the rest away as noise, and
the search does not recover.  So after the paper's schedule has converged, the search goes on from that model with the
noise *held* at a lower level until convergence, and only then released; the best objective is kept.

A held start is watched through the noise profile :math:`\max_\beta\mathcal L(\boldsymbol\alpha,\beta)`, the evidence
that the present precisions would have if the noise were free.  On data whose rest really is noise the profile falls
from the first additions on: the start, and with it all lower ones, is abandoned.  Where it stands still for long, the
start is released as it is.

The first functions decide in which maximum the search ends.  So unless the very first held start was abandoned, two
more follow where they cost little: one from nothing at very low noise while the model is small, and one from the whole
dictionary where that is small, brought down by the fixed point of Tipping 2001, which commits to nothing early.
Everything is decided by counts and evidences, never by clocks, so that a fit is reproducible.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from sparsebayes.inference.active import ActiveSet
from sparsebayes.inference.linalg import independent_columns
from sparsebayes.inference.noise import NoiseProfile, noise_floor, paper_update
from sparsebayes.inference.problem import Problem
from sparsebayes.inference.solver import State

# Noise variance of the first start as a fraction of the targets' variance (T&F section 4, step 1).
FIRST_NOISE = 0.1
# The profile is looked at every few moves; a fall of so many nats ends the start, and so do so many moves without a
# rise of one nat.
_EVERY = 5
_FALL = 2.0
_RISE = 1.0
_PATIENCE = 40
# A small model costs little to find again: the start from nothing is made up to this size of the best model, and ends
# when it holds this many functions more than twice as many.
_SMALL_MODEL = 20
_SPARE = 10
# The start from the whole dictionary is made up to this many functions (its cost is cubic in them); functions enter it
# as far as they are linearly independent, leave when not relevant and this weakly determined, and it ends when no log
# precision changes by more.
_SMALL_DICTIONARY = 300
# A column is a multiple of another where one minus their correlation is rounding.
_PARALLEL = 1e-11
# Its first precisions, as a fraction of those at which one function alone has the variance of the targets: wide enough
# not to decide anything, narrow enough for the first noise estimate to be sane.
_WIDE = 0.01
_INDEPENDENT = 1e-5
_WEAK = 0.02
_VANISHING = 1e-200
_RELAXED = 0.05
_RELAXATIONS = 100


@dataclass
class Watch:
    """Judge of a held start, by the noise profile."""

    to_beat: float
    reference: float = field(init=False)
    next_look: int = _EVERY
    last_rise: int = 0
    abandoned: bool = False

    def __post_init__(self) -> None:
        self.reference = self.to_beat

    def over(self, state: State, n_iter: int) -> bool:
        """Whether to end the held phase now."""
        if n_iter < self.next_look:
            return False
        self.next_look = n_iter + _EVERY
        active = state.gaussian
        _, profile = NoiseProfile.of(active).maximum(np.log(active.beta), -np.log(noise_floor(active)))
        profile += active.log_prior()
        if profile > self.reference + _RISE:
            self.reference, self.last_rise = profile, n_iter
        self.abandoned = profile < self.to_beat - _FALL
        return self.abandoned or n_iter - self.last_rise >= _PATIENCE


@dataclass(frozen=True)
class SizeLimit:
    """Judge of the start from nothing: made where it is worth it, it ends when it has grown past ``largest``."""

    worth_it: bool
    largest: float

    @classmethod
    def beside(cls, best: ActiveSet, noise_variance: float) -> SizeLimit:
        """For a start at this noise beside the best model.

        Where functions have to pay for their entry, the model falls short by being too small, and grows through places
        where every single function is worth less than its cost: such a start is made wherever the noise found is
        higher than it would be held, and may hold N/(2 log M) functions more, about as many as greedy selection can
        tell from noise.
        """
        allowed, problem = 2 * best.size + _SPARE, best.problem
        if problem.inclusion_cost > 0.0:
            found = problem.n_effective / (2.0 * float(np.log(problem.n_functions)))
            return cls(noise_variance * best.beta < 1.0, allowed + found)
        return cls(best.size <= _SMALL_MODEL, allowed)

    def over(self, state: State, n_iter: int) -> bool:
        """Whether to end the held phase now."""
        return state.active.size > self.largest


def hold(state: State, noise_variance: float) -> State:
    """A copy of the state with the noise held at this level."""
    held = state.copy()
    held.learn_noise = False
    held.gaussian.set_hyperparameters(held.active.alpha, 1.0 / noise_variance)
    held.evidence = held.active.evidence()
    return held


def full_model(problem: Problem) -> ActiveSet | None:
    r"""What the fixed point of Tipping 2001 (eqs 12-13) makes of the whole dictionary; None where that is large.

    All precisions and the noise are updated together, :math:`\alpha_j = \gamma_j/\mu_j^2`, and functions leave when
    they are no longer relevant.  This need not ascend: it only finds a place to start from.
    """
    candidates = np.flatnonzero(problem.eligible)
    if len(candidates) > _SMALL_DICTIONARY:
        return None
    columns = problem.columns(candidates)
    columns /= np.linalg.norm(columns, axis=0)
    multiples = np.any(np.triu(np.abs(columns.T @ columns), 1) > 1.0 - _PARALLEL, axis=0)
    candidates, columns = candidates[~multiples], columns[:, ~multiples]
    # The pivoted order begins with the functions most like the targets: equal norms would leave it to rounding.
    alike = np.linalg.norm(columns.T @ problem.target, axis=1) / np.linalg.norm(problem.target)
    chosen = np.sort(candidates[independent_columns(columns * (1.0 + alike), _INDEPENDENT)])
    if len(chosen) < len(candidates) - 1:
        return None  # nearly dependent: the fixed point would amplify rounding, and depend on the order of the rows
    prior = _WIDE * problem.sqnorms[chosen] / (problem.n_effective * problem.mean_square)
    active = ActiveSet.from_model(problem, chosen.tolist(), prior, 1.0 / (FIRST_NOISE * problem.mean_square))
    for _ in range(_RELAXATIONS):
        gamma = np.maximum(active.well_determined, np.finfo(float).eps)
        alpha = gamma / np.maximum(np.mean(active.mean**2, axis=1), _VANISHING)
        noise = max(paper_update(active), noise_floor(active))
        s, q2 = active.leave_one_out()
        stays = (q2 > s) | (gamma > _WEAK)
        change = np.max(np.abs(np.log(alpha / active.alpha))[stays], initial=0.0)
        active.restrict(stays, alpha[stays], 1.0 / noise)
        if np.all(stays) and change < _RELAXED:
            break
    return active
