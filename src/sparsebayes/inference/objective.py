r"""What is maximised beside the evidence of one model: gains of moves, and the priors of precisions, noise and support.

* **The noise** at fixed precisions: docs/sequential.md, section 6.
* **Hyperpriors**: Gamma densities over :math:`\log\alpha_m` and :math:`\log\beta`, relative to their largest values, so
  that flat priors and functions that are left out add nothing: docs/solvers.md.
* **Support**: the papers keep what has :math:`q_m^2/s_m>1`; the conservative rule asks for
  :math:`q_m^2/s_m>2\log M`, by a log prior that charges every function what it brings there: docs/trust.md.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from numbers import Real
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq
from scipy.stats import chi2

from sparsebayes.inference.models.evidence import Array, Statistics, best_alpha, best_moves, contribution
from sparsebayes.inference.models.interface import Active
from sparsebayes.threads import one_thread

SUPPORTS = ("evidence", "conservative")
# Newton's method for the best precision of one function under its prior.
_NEWTON_STEPS = 30
_LONGEST = 1.0
_EXACT = 1e-12


# -- the priors of precisions and noise ----------------------------------------------------------------


@dataclass(frozen=True)
class Hyperpriors:
    """Gamma(a, b) on every precision, Gamma(c, d) on the inverse noise variance; rates b and d relative to the data."""

    a: float = 0.0
    b: float = 0.0
    c: float = 0.0
    d: float = 0.0

    @property
    def flat(self) -> bool:
        """Whether nothing is preferred."""
        return self == FLAT

    def check(self) -> None:
        """Raise where a hyperprior is out of range."""
        for name in "abcd":
            value = getattr(self, name)
            number = isinstance(value, Real) and not isinstance(value, bool | np.bool_)
            if not number or not 0.0 <= float(value) < np.inf:
                raise ValueError(f"{name}={value!r}: expected a finite number, at least 0")
        for shape, rate in (("a", "b"), ("c", "d")):
            if getattr(self, shape) > 0.0 and getattr(self, rate) == 0.0:
                raise ValueError(
                    f"{shape}={getattr(self, shape)!r} with {rate}=0: expected a positive {rate}, without which the "
                    f"prior grows without bound; or set {shape}=0"
                )

    def rates(self, active: Active) -> Array:
        r""":math:`b_m` of all functions of the dictionary, infinite for functions that are zero."""
        problem = active.problem
        with np.errstate(divide="ignore", invalid="ignore"):
            rate = self.b * problem.mean_square * problem.n_effective / problem.sqnorms
        return np.where(problem.sqnorms > 0.0, rate, np.inf)

    def noise_rate(self, active: Active) -> float:
        """Rate of the inverse noise variance."""
        return self.d * active.problem.mean_square

    def log_prior(self, active: Active, *, noise: bool) -> float:
        """What the priors add to the evidence of this model; ``noise`` says whether its level is learned."""
        if self.flat:
            return 0.0
        total = float(np.sum(log_gamma_prior(active.alpha, self.a, self.rates(active)[active.indices])))
        if noise:
            total += float(log_gamma_prior(np.asarray(active.beta), self.c, np.asarray(self.noise_rate(active))))
        return total

    def best_moves(self, active: Active, alpha: Array, s: Array, q2: Array) -> tuple[Array, Array]:
        """Best precisions under the prior (infinite: leave), and what each alone would gain."""
        problem, rate = active.problem, self.rates(active)
        targets, cost = problem.n_targets, problem.inclusion_cost
        best = best_alpha(s, q2)
        relevant = np.isfinite(best) & (best > 0.0)
        best[~relevant] = np.inf
        best[relevant] = self._stationary(best[relevant], s[relevant], q2[relevant], rate[relevant], targets)

        def value(x: Array) -> Array:
            inside = np.isfinite(x)
            prior = log_gamma_prior(np.where(inside, x, 1.0), self.a, np.where(inside, rate, 1.0))
            return targets * contribution(x, s, q2) + np.where(inside, prior - cost, 0.0)

        best = np.where(value(best) > 0.0, best, np.inf)
        return best, value(best) - value(alpha)

    def _stationary(self, alpha: Array, s: Array, q2: Array, rate: Array, targets: int) -> Array:
        r"""Stationary point of :math:`T\ell(\alpha)+\pi(\alpha)` in :math:`x=\log\alpha`, from the flat one.

        The slope is :math:`\tfrac T2[s/(\alpha+s) - \alpha q^2/(\alpha+s)^2] + a - b\alpha`.
        """
        x = np.log(alpha)
        for _ in range(_NEWTON_STEPS):
            alpha = np.exp(x)
            part = 1.0 / (alpha + s)
            slope = 0.5 * targets * (s * part - alpha * q2 * part**2) + self.a - rate * alpha
            bend = 0.5 * targets * alpha * (-s * part**2 - q2 * part**2 + 2 * alpha * q2 * part**3) - rate * alpha
            # Where the objective is convex Newton would descend: there the slope alone says where to go.
            step = np.where(bend < 0.0, slope / np.where(bend < 0.0, -bend, 1.0), np.sign(slope))
            x = x + np.clip(step, -_LONGEST, _LONGEST)
            if np.all(np.abs(step) < _EXACT):
                break
        return np.exp(x)


def log_gamma_prior(x: Array, shape: float, rate: Array) -> Array:
    r""":math:`\pi(x) = a\log(bx/a)+a-bx`; where a = 0, :math:`-bx`."""
    return (shape * np.log(rate * x / shape) + shape if shape > 0.0 else 0.0) - rate * x


FLAT = Hyperpriors()


# -- the noise ------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class NoiseProfile:
    r"""Evidence as a function of :math:`\log\beta` alone, all precisions held, from ``here`` up to ``highest``."""

    n: float
    n_targets: int
    d2: Array
    z2: Array
    rest: float
    here: float
    highest: float

    @classmethod
    def of(cls, active: Active, hyperpriors: Hyperpriors = FLAT) -> NoiseProfile:
        r"""Spectrum of the present model.

        A Gamma(c, d') prior on :math:`\beta` is 2c/T more observations with 2d' more squared error.
        """
        scaled, problem = active.R / np.sqrt(active.alpha), active.problem
        left, d, _ = np.linalg.svd(scaled)
        d = np.append(d, np.zeros(len(left) - len(d)))  # directions of the basis that no function has
        return cls(
            n=problem.n_effective + 2.0 * hyperpriors.c / problem.n_targets,
            n_targets=problem.n_targets,
            d2=d**2,
            z2=np.sum((left.T @ active.z) ** 2, axis=1),
            rest=active.rest + 2.0 * hyperpriors.noise_rate(active),
            here=float(np.log(active.beta)),
            highest=-float(np.log(problem.noise_floor)),
        )

    def evidence(self, log_beta: float) -> float:
        """Log evidence at this noise."""
        beta = np.exp(log_beta)
        shrink = 1.0 + beta * self.d2
        fit = self.n_targets * (self.n * (log_beta - np.log(2 * np.pi)) - float(np.sum(np.log(shrink))))
        return 0.5 * fit - 0.5 * beta * (self.rest + float(np.sum(self.z2 / shrink)))

    def slope(self, log_beta: float) -> float:
        r"""Derivative of the evidence with respect to :math:`\log\beta`."""
        beta = np.exp(log_beta)
        shrink = 1.0 + beta * self.d2
        gamma = float(np.sum(beta * self.d2 / shrink))
        residual = self.rest + float(np.sum(self.z2 / shrink**2))
        return 0.5 * (self.n_targets * (self.n - gamma) - beta * residual)

    def maximum(self) -> tuple[float, float]:
        """Best noise near the present one, and what it gains: ``(log beta, nats)``, never less than none."""
        low, high = self.here - 6.0, min(self.here + 6.0, self.highest)
        if self.slope(high) >= 0.0:
            best = high
        elif self.slope(low) <= 0.0:
            best = low
        else:
            best = cast(float, brentq(self.slope, low, high, xtol=1e-10))
        gain = float(self.evidence(best) - self.evidence(self.here))
        return (best, gain) if gain >= 0.0 else (self.here, 0.0)


def with_paper_noise(active: Active) -> Active | None:
    r"""With :math:`\sigma^2=\|\mathbf t-\mathbf y\|^2/(N-\sum_m\gamma_m)` (T&F step 9), for T targets together.

    The step is shortened until the evidence rises; None where it never does.
    """
    problem = active.problem
    free = problem.n_effective - float(np.sum(active.well_determined))
    free = max(free, np.finfo(float).eps * problem.n_effective)
    old, new = 1.0 / active.beta, max(active.residual_sumsq / (problem.n_targets * free), problem.noise_floor)
    for _ in range(30):
        trial = active.moved(active.alpha, 1.0 / new)
        if trial.evidence() > active.evidence():
            return trial
        new = float(np.sqrt(new * old))
    return None


def with_best_noise(active: Active, hyperpriors: Hyperpriors = FLAT) -> Active:
    """With the noise variance that is best for the present precisions."""
    return active.moved(active.alpha, float(np.exp(NoiseProfile.of(active, hyperpriors).maximum()[0])))


# -- moves ----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Moves:
    """For every function: its precision, the best one, and what moving there would gain."""

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


def score(active: Active, found: Statistics | None = None, hyperpriors: Hyperpriors = FLAT) -> Moves:
    """Gain of the best move of every function (T&F eqs 18, 20, 21); candidates that may not enter gain nothing."""
    found = active.statistics() if found is None else found
    if hyperpriors.flat:
        best, gain = best_moves(found.alpha, found.s, found.q2, active.problem.n_targets, active.problem.inclusion_cost)
    else:
        best, gain = hyperpriors.best_moves(active, found.alpha, found.s, found.q2)
    return Moves(found.alpha, best, np.where(found.movable, gain, 0.0))


def verify(active: Active, scores: Moves, tol: float) -> None:
    """Replace the gains that may be rounding, where they are above ``tol``, by those of models made from the data."""
    gaining = np.flatnonzero(scores.gain > tol)
    for i in gaining[active.doubtful(gaining)].tolist():
        moved = active.like(active.problem, *active.with_precision(i, float(scores.best[i])))
        scores.gain[i] = max(0.0, moved.objective() - active.objective())


# -- the support ----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class SupportRule:
    r"""How much evidence a function must bring (docs/trust.md).

    Attributes
    ----------
    threshold : float
        Smallest :math:`q^2/s` (mean over the targets) with which a function stays.
    expected_false : float
        Expected number of irrelevant functions above the threshold, at the true noise, if all of them were irrelevant.
    cost : float
        Log prior odds against a function, in nats: what it brings at the threshold.
    """

    threshold: float
    expected_false: float
    cost: float

    @classmethod
    def named(cls, name: str, n_functions: int, n_targets: int = 1) -> SupportRule:
        r"""The rule of this name for M functions.

        With T targets that share a support, :math:`\sum_t q_t^2/s \sim \chi_T^2`, and the conservative threshold is the
        quantile with the same probability.
        """
        if name == "evidence" or n_functions < 2:
            return cls(1.0, n_functions * float(chi2.sf(n_targets, n_targets)), 0.0)
        tail = float(chi2.sf(2.0 * np.log(n_functions), 1))
        threshold = max(1.0, float(chi2.isf(tail, n_targets)) / n_targets)
        cost = 0.5 * n_targets * (threshold - 1.0 - float(np.log(threshold)))
        return cls(threshold, n_functions * tail, cost)


@dataclass(frozen=True)
class Support:
    r"""What can be said of each function in a model.

    Attributes
    ----------
    evidence_lost : ndarray of shape (a,)
        Fall of the log evidence if the function alone were removed and all other precisions (and the noise, and the row
        weights of a robust likelihood) stayed as they are.  With Gaussian noise that is T&F eq. 18; otherwise the model
        without the function is computed, at its own mode.
    signal_to_noise : ndarray of shape (a,)
        :math:`q^2/s`, by the problem that is Gaussian at the mode.
    fit_lost : ndarray of shape (a,), optional
        The part of the evidence lost that is a fall of :math:`\log p(\mathbf t|\mathbf w) -
        \tfrac12\mathbf w^\top\mathbf A\mathbf w` at its largest, which is never negative; None in models saved
        before it was kept.
    """

    evidence_lost: Array
    signal_to_noise: Array
    fit_lost: Array | None = None

    @classmethod
    def of(cls, active: Active) -> Support:
        """Judge every function with itself left out."""
        s, q2 = active.leave_one_out()
        ratio = q2 / np.where(s > 0.0, s, np.inf)
        if not active.exact:
            without = [active.without(j) for j in range(active.size)]
            lost = np.array([active.evidence() - other.evidence() for other in without])
            fit = np.array([_height(active) - _height(other) for other in without])
            return cls(lost, ratio, np.maximum(fit, 0.0))
        n_targets = active.problem.n_targets
        return cls(n_targets * contribution(active.alpha, s, q2), ratio, 0.5 * n_targets * q2 / (active.alpha + s))

    @property
    def lost(self) -> tuple[Array, Array] | None:
        """Evidence and fit lost without each function; None where the latter was not kept."""
        return None if self.fit_lost is None else (self.evidence_lost, self.fit_lost)

    def take(self, order: NDArray[np.intp]) -> Support:
        """What is said of the functions, in another order."""
        fit = None if self.fit_lost is None else self.fit_lost[order]
        return Support(self.evidence_lost[order], self.signal_to_noise[order], fit)


class Supports(Sequence[Support]):
    """What can be said of the functions of some models, computed when it is first asked for.

    Where the evidence is not exact, a model without each function has to be found: as long as a fit may take.  Copies
    and files have the plain list.
    """

    def __init__(self, each: list[Callable[[], Support]]) -> None:
        self._later, self._known, self._size = each, None, len(each)

    def all(self) -> list[Support]:
        """Of every model."""
        if self._known is None:
            with one_thread():
                self._known, self._later = [compute() for compute in self._later], []
        return self._known

    def __len__(self) -> int:
        return self._size

    def __getitem__(self, k: Any) -> Any:
        return self.all()[k]

    def __reduce__(self) -> tuple[Any, ...]:
        return list, (self.all(),)


def _height(active: Active) -> float:
    r""":math:`\log p(\mathbf t|\mathbf w) - \tfrac12\mathbf w^\top\mathbf A\mathbf w` at the posterior's weights."""
    occam = float(np.sum(np.log(active.alpha))) + float(np.linalg.slogdet(active.covariance)[1])
    return active.evidence() - 0.5 * occam
