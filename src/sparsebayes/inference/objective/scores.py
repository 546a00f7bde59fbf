r"""What every function of a dictionary would gain by its best move, and the hyperpriors that may have a say in it.

The original relevance vector machine gives every :math:`\alpha_m` a Gamma(a, b) prior and :math:`\beta=\sigma^{-2}` a
Gamma(c, d) prior, both over the logarithm (report on Tipping 2001, section II).  A rate has the unit of what it
divides, so the user's :math:`b` and :math:`d` are pure numbers: the rates used are

.. math::  b_m = b\,\overline{t^2}/\overline{\phi_m^2}, \qquad d' = d\,\overline{t^2},

and no answer depends on the units of targets or functions.  The objective is the evidence plus

.. math::  \sum_{m\ \mathrm{in\ the\ model}} \pi(\alpha_m; a, b_m) + \pi(\beta; c, d'),\qquad
           \pi(x; a, b) = a\log\frac{bx}{a} + a - bx \le 0 ,

the log densities relative to their largest values: zero for flat priors, and zero for a function that is left out.
"""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Real

import numpy as np
from numpy.typing import NDArray

from sparsebayes.inference.models.evidence import Array, Statistics, best_alpha, best_moves, contribution
from sparsebayes.inference.models.interface import Active

# Newton's method for the best precision of one function under its prior.
_NEWTON_STEPS = 30
_LONGEST = 1.0
_EXACT = 1e-12


@dataclass(frozen=True)
class Hyperpriors:
    """Gamma(a, b) on every precision, Gamma(c, d) on the inverse noise variance; rates relative to the data.

    Attributes
    ----------
    a, b : float
        Shape and relative rate of the precisions.
    c, d : float
        Shape and relative rate of the inverse noise variance.
    """

    a: float = 0.0
    b: float = 0.0
    c: float = 0.0
    d: float = 0.0

    @property
    def flat(self) -> bool:
        """Whether nothing is preferred."""
        return self.a == self.b == self.c == self.d == 0.0

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
        total = float(np.sum(_relative(active.alpha, self.a, self.rates(active)[active.indices])))
        if noise:
            total += float(_relative(np.asarray(active.beta), self.c, np.asarray(self.noise_rate(active))))
        return total

    def best_moves(self, active: Active, alpha: Array, s: Array, q2: Array) -> tuple[Array, Array]:
        """Best precisions under the prior (infinite: leave), and what each alone would gain."""
        targets, rate = active.problem.n_targets, self.rates(active)
        best = best_alpha(s, q2)
        relevant = np.isfinite(best) & (best > 0.0)
        best[relevant] = self._stationary(best[relevant], s[relevant], q2[relevant], rate[relevant], targets)

        def value(x: Array) -> Array:
            inside = np.isfinite(x)
            prior = _relative(np.where(inside, x, 1.0), self.a, np.where(inside, rate, 1.0))
            return targets * contribution(x, s, q2) + np.where(inside, prior, 0.0)

        best = np.where(relevant & (value(best) > 0.0), best, np.inf)
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


def _relative(x: Array, shape: float, rate: Array) -> Array:
    r""":math:`\pi(x) = a\log(bx/a)+a-bx`; where a = 0, :math:`-bx`."""
    return (shape * np.log(rate * x / shape) + shape if shape > 0.0 else 0.0) - rate * x


FLAT = Hyperpriors()


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
    """Replace the gains that may be rounding, where they are above ``tol``, by what the moves really gain."""
    for i in np.flatnonzero(scores.gain > tol).tolist():
        if active.doubtful(i):
            scores.gain[i] = max(0.0, active.measured_gain(i, float(scores.best[i])))
