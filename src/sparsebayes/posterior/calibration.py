r"""How much wider than the posterior's the error bars must be, from rows that the search had not seen.

The posterior is that of the weights of the functions that were kept.  That these were chosen, among many and by the
same rows, is not in it: where many functions are kept its error bars are too short.  What they lack shows in the
errors :math:`z = (t-\bar y)/\mathrm{std}` of rows that a search from nothing had left out.  They are described by two
numbers, a scale and degrees of freedom,

.. math:: z \sim s\,\mathrm t_\nu ,

so that a new observation is :math:`\bar y + s\,\mathrm{std}\;\mathrm t_\nu`: with Gaussian errors of the size that was
claimed :math:`s=1`, :math:`\nu=\infty`, and nothing changes.

Both have the greatest likelihood.  So that single rows cannot move them, an error beyond :math:`c`, the magnitude that
95 % stay below, counts as being beyond it, however far it is:

.. math:: \log L(s,\nu) = \sum_{|z|\le c}\log\frac{p_\nu(z/s)}{s} + \sum_{|z|>c}\log P_\nu(|z/s|>c/s) .

The scale is known from :math:`n` rows only.  Their information on :math:`\log s` is :math:`2n\nu/(\nu+3)`, so that its
variance is :math:`v=(1+3/\nu)/(2n)`, and intervals that take :math:`s` for known hold too little: 94 % for 95 with 20
rows.  A :math:`\mathrm t_\nu` is a Gaussian whose log precision has the variance :math:`2/\nu` (to leading order), and
an uncertain scale adds :math:`4v` to that.  The distribution of a new error is then, with the same scale,

.. math:: \frac1{\nu'} = \frac1\nu + 2v = \frac1\nu + \frac1n\Big(1+\frac3\nu\Big) ,

which is exact for Gaussian errors, :math:`\nu'=n`.

A search on nine tenths of the rows makes slightly larger errors than one on all of them, and nothing is taken off for
that: how fast errors fall can be learned only from the same few quantiles, and a factor made of these
(:math:`q_{.9}^{1+\kappa}/q_{.5}^{\kappa}`) shortens most where :math:`q_{.9}` is short by chance.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.optimize import minimize_scalar
from scipy.special import gammaln, ndtr, stdtr
from scipy.stats import t

from sparsebayes.typing import Array

# Coverage at which the standard deviation is to be right, and beyond which errors only count.
_LEVEL = 0.95
# Heaviest tails, as one over the degrees of freedom: Cauchy's; and those that are taken for a Gaussian's.
_HEAVIEST, _LIGHTEST = 1.0, 1e-4
# Errors closer than this (relative) are those of copies of a row, which are within the limit together.
_COPIES = 1e-6
# Range of the logarithm of the scale over the magnitude that 95 % of errors stay below: -.67 for a Gaussian, -2.5 for
# Cauchy's distribution.
_RANGE = (-6.0, 1.0)


@dataclass(frozen=True)
class Calibration:
    r"""What the errors of rows left out say of the posterior's error bars.

    Attributes
    ----------
    scale : float
        What the posterior's standard deviation is multiplied by, :math:`s`.
    degrees : float
        Degrees of freedom of Student's t that describes the errors, :math:`\nu'`; infinite for a Gaussian.
    """

    scale: float = 1.0
    degrees: float = np.inf

    @classmethod
    def of(cls, scores: Array, weights: Array) -> Calibration:
        """From standardised errors of rows left out.

        Parameters
        ----------
        scores, weights : ndarray of shape (n,)
            Errors over predicted standard deviations, and how many rows each stands for.
        """
        n = float(np.sum(weights))
        errors = _Errors.of(scores, weights)
        if errors.limit == 0.0:  # nearly all rows are met exactly: there is no scale
            return cls()
        search: Any = minimize_scalar(lambda h: errors.best(h)[1], bounds=(0.0, _HEAVIEST), method="bounded")
        heaviness = min(0.0, float(search.x), key=lambda h: errors.best(h)[1])
        return cls(errors.best(heaviness)[0], 1.0 / (heaviness + (1.0 + 3.0 * heaviness) / n))

    @property
    def std_scale(self) -> float:
        """Factor of the standard deviation such that 1.96 of them either side hold 95 % of new observations."""
        return self.scale * self.factor(_LEVEL) / Calibration().factor(_LEVEL)

    def factor(self, coverage: float) -> float:
        """Half the width of the central interval of this coverage, for a scale of one."""
        return float(t.ppf(0.5 + 0.5 * coverage, self.degrees))

    def interval(self, mean: Array, std: Array, coverage: float) -> tuple[Array, Array]:
        """Central interval of new observations whose mean and standard deviation the posterior gives."""
        half = self.scale * self.factor(coverage) * std
        return mean - half, mean + half

    def log_density(self, mean: Array, std: Array, y: Array) -> Array:
        """Log density of observations whose mean and standard deviation the posterior gives."""
        return np.asarray(t.logpdf(y, self.degrees, mean, self.scale * std), dtype=np.float64)


@dataclass(frozen=True)
class _Errors:
    """Errors of rows left out, those beyond a limit by their number only.

    Attributes
    ----------
    squares, weights : ndarray
        Squared errors within the limit, and how many rows each stands for.
    limit, beyond : float
        The limit, and how many rows are beyond it.
    """

    squares: Array
    weights: Array
    limit: float
    beyond: float

    @classmethod
    def of(cls, scores: Array, weights: Array) -> _Errors:
        order = np.argsort(np.abs(scores), kind="stable")
        magnitude, upto = np.abs(scores)[order], np.cumsum(weights[order])
        limit = float(magnitude[np.searchsorted(upto, _LEVEL * upto[-1] * (1.0 - 1e-12))])
        within = np.abs(scores) <= limit * (1.0 + _COPIES)
        return cls(scores[within] ** 2, weights[within], limit, float(np.sum(weights[~within])))

    def best(self, heaviness: float) -> tuple[float, float]:
        """The scale of the greatest likelihood at one heaviness of the tails, and minus its logarithm."""
        low, high = np.log(self.limit) + np.array(_RANGE)
        search: Any = minimize_scalar(lambda log_scale: self.loss(log_scale, heaviness), bounds=(low, high))
        return float(np.exp(search.x)), float(search.fun)

    def loss(self, log_scale: float, heaviness: float) -> float:
        """Minus the log likelihood, up to a constant."""
        ratio, place = self.squares * np.exp(-2.0 * log_scale), -self.limit * np.exp(-log_scale)
        if heaviness < _LIGHTEST:
            each, peak, beyond = 0.5 * ratio, -0.5 * np.log(2.0 * np.pi), ndtr(place)
        else:
            nu = 1.0 / heaviness
            each = 0.5 * (nu + 1.0) * np.log1p(heaviness * ratio)
            peak = gammaln(0.5 * nu + 0.5) - gammaln(0.5 * nu) - 0.5 * np.log(np.pi * nu)
            beyond = stdtr(nu, place)
        counted = self.beyond * np.log(max(beyond, np.finfo(float).tiny)) if self.beyond else 0.0
        return float(self.weights @ (each + log_scale - peak) - counted)
