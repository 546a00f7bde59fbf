r"""How much wider than the posterior's the error bars must be, from rows that the search had not seen.

The posterior is that of the weights of the functions that were kept.  That these were chosen, among many and by the
same rows, is not in it: where many functions are kept its error bars are too short, and most where few rows are near,
for there other functions would have said something else.  With the noise variance :math:`\sigma^2` and the posterior
variance v of the output, errors e of rows that a search from nothing had left out are described by three numbers,

.. math:: e \sim s\sqrt{\sigma^2+\kappa v}\;\mathrm t_\nu ,

and a new observation is the prediction and such an error.  With Gaussian errors of the size that was claimed
:math:`s=\kappa=1`, :math:`\nu=\infty`, and nothing changes.  :math:`\kappa` is 5 to 100 on most tables: the rows of
which the posterior is least sure are missed by far more than it says, and the others by less.

All three have the greatest likelihood, with :math:`\log\kappa\sim\mathcal N(0,2^2)` beforehand, as a linear function on
many rows says nothing of :math:`\kappa`.  So that single rows cannot move them, an error beyond c times the posterior's
standard deviation, where 95 % stay below, counts as being beyond it, however far it is:

.. math:: \log L(s,\kappa,\nu) = \sum_{|e_n|\le c_n}\log\frac{p_\nu(e_n/s_n)}{s_n}
          + \sum_{|e_n|>c_n}\log P_\nu(|\mathrm t|>c_n/s_n), \qquad s_n = s\sqrt{\sigma_n^2+\kappa v_n} .

The scales are known from n rows only.  A row has the information :math:`2\nu/(\nu+3)` on :math:`\log s_n`, so that with
p numbers behind these logarithms their variance is :math:`v'=p\,(1+3/\nu)/(2n)` on average over the rows, and intervals
that take them for known hold too little: 94 % for 95 with 20 rows.  A :math:`\mathrm t_\nu` is a Gaussian whose log
precision has the variance :math:`2/\nu` (to leading order), and an uncertain scale adds :math:`4v'` to that.  The
distribution of a new error is then, with the same scale,

.. math:: \frac1{\nu'} = \frac1\nu + 2v' = \frac1\nu + \frac pn\Big(1+\frac3\nu\Big) ,

which is exact for one scale and Gaussian errors, :math:`\nu'=n`.  :math:`\kappa` counts in p as far as the rows
determine it beside its prior, as a weight does in :math:`\gamma`: :math:`p=1+J/(J+2^{-2})` with the information J that
they have on :math:`\log\kappa` beside :math:`\log s`.

A search on nine tenths of the rows makes slightly larger errors than one on all of them, and nothing is taken off for
that: how fast errors fall can be learned only from the same few quantiles, and a factor made of these
(:math:`q_{.9}^{1+\rho}/q_{.5}^{\rho}`) shortens most where :math:`q_{.9}` is short by chance.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.optimize import minimize
from scipy.special import gammaln, ndtr, stdtr
from scipy.stats import t

from sparsebayes.posterior.gaussian import GaussianPosterior
from sparsebayes.typing import Array

# Coverage at which the standard deviation is to be right, and beyond which errors only count.
_LEVEL = 0.95
# Tails 1/nu that are tried, from a Gaussian's to Cauchy's, ever closer towards the Gaussian's: one of a few numbers, so
# that rounding in the errors does not show in the bars.
_TAILS = tuple((k / 16) ** 2 for k in range(17))
# Errors closer than this (relative) are those of copies of a row, which are within the limit together.
_COPIES = 1e-6
# Standard deviation of the logarithm of the spread's factor beforehand.
_OPEN = 2.0
# How many of them it, and the logarithm of the scale, are searched within: rows that are there very often outweigh it.
_FAR = 5.0
# Newton's steps at the end, made where they are short, with second derivatives by differences of slopes.
_POLISH, _NEAR, _APART = 3, 1e-3, 1e-4 * np.eye(2)


@dataclass(frozen=True)
class Calibration:
    r"""What the errors of rows left out say of the posterior's error bars.

    Attributes
    ----------
    scale : float
        What the standard deviation of an observation is multiplied by, :math:`s`.
    degrees : float
        Degrees of freedom of Student's t that describes the errors, :math:`\nu'`; infinite for a Gaussian.
    spread : float
        What the variance of the output, without the noise, is multiplied by before, :math:`\kappa`.
    stretch : float
        What that does to standard deviations of observations: the geometric mean over the rows left out.
    leverage : float
        The posterior's variance of the output over that of the noise, on average over the rows of the fit,
        :math:`\sum_m\gamma_m/N`; zero where it is not known.
    """

    scale: float = 1.0
    degrees: float = np.inf
    spread: float = 1.0
    stretch: float = 1.0
    leverage: float = 0.0

    @classmethod
    def of(cls, errors: Array, noise: Array, spread: Array, weights: Array) -> Calibration:
        """From the errors of rows left out.

        Parameters
        ----------
        errors, noise, spread, weights : ndarray of shape (n,)
            Errors, variances of the noise and of the output that were predicted, and how many rows each stands for.
        """
        rows = _Errors.of(errors, noise, spread, weights)
        if rows.limit == 0.0:  # nearly all rows are met exactly: there is no scale
            return cls()
        found = [rows.best(heaviness) for heaviness in _TAILS]
        best = int(np.argmin([loss for _, loss in found]))
        heaviness = _TAILS[best]
        log_scale, log_factor = rows.polished(found[best][0], heaviness)
        factor = float(np.exp(log_factor))
        uncertain = rows.determined(factor, heaviness) * (1.0 + 3.0 * heaviness) / float(np.sum(weights))
        stretch = 0.5 * np.average(np.log((noise + factor * spread) / (noise + spread)), weights=weights)
        return cls(float(np.exp(log_scale)), 1.0 / (heaviness + uncertain), factor, float(np.exp(stretch)))

    @property
    def noise_scale(self) -> float:
        """What the noise's part of a standard deviation is multiplied by, so that 1.96 either side hold 95 %."""
        return self.scale * self.factor(_LEVEL) / Calibration().factor(_LEVEL)

    @property
    def spread_scale(self) -> float:
        """What the part of the model's output is multiplied by."""
        return float(np.sqrt(self.spread)) * self.noise_scale

    @property
    def functions_scale(self) -> float:
        r"""What the standard deviations of the output and of its parts are to be multiplied by.

        The noise is what it is: all that error bars lack belongs to the functions.  With :math:`\bar g` the leverage
        and a and b the two scales, the variance of a row is
        :math:`a^2\sigma^2+b^2\bar g\sigma^2=\sigma^2+f^2\bar g\sigma^2`; f is one at least.
        """
        noise = (self.noise_scale**2 - 1.0) / self.leverage if self.leverage > 0.0 else 0.0
        return float(np.sqrt(max(noise + self.spread_scale**2, 1.0)))

    @property
    def std_scale(self) -> float:
        """What that makes of the posterior's standard deviation of an observation, typically."""
        return self.stretch * self.noise_scale

    def share_held(self, errors: Array, noise: Array, spread: Array, weights: Array) -> float:
        """Share of errors within their intervals for 95 %; the parameters are those of :meth:`of`."""
        half = self.scale * self.factor(_LEVEL) * np.sqrt(noise + self.spread * spread)
        return float(np.average(np.abs(errors) <= half, weights=weights))

    def widened(self, posterior: GaussianPosterior) -> GaussianPosterior:
        """The posterior with this spread, whose standard deviations are multiplied by one factor."""
        return replace(posterior, covariance=self.spread * posterior.covariance)

    def factor(self, coverage: float) -> float:
        """Half the width of the central interval of this coverage, for a scale of one."""
        return float(t.ppf(0.5 + 0.5 * coverage, self.degrees))

    def standard_deviation(self, posterior: GaussianPosterior, values: Array) -> Array:
        """Standard deviation of new observations, 1.96 of which either side hold 95 %."""
        return self.noise_scale * self.widened(posterior).standard_deviation(values)

    def interval(self, posterior: GaussianPosterior, values: Array, coverage: float) -> tuple[Array, Array]:
        """Central interval of new observations."""
        mean, std = posterior.predict(values), self.widened(posterior).standard_deviation(values)
        half = self.scale * self.factor(coverage) * std
        return mean - half, mean + half

    def log_density(self, posterior: GaussianPosterior, values: Array, y: Array) -> Array:
        """Log density of observations."""
        scale = self.scale * self.widened(posterior).standard_deviation(values)
        return np.asarray(t.logpdf(y, self.degrees, posterior.predict(values), scale), dtype=np.float64)


@dataclass(frozen=True)
class _Errors:
    """Errors of rows left out, those beyond a limit by their number only.

    Attributes
    ----------
    squares : ndarray
        Squared errors, no larger than the square of their limit.
    noise, spread, weights : ndarray
        As in :meth:`Calibration.of`.
    within : ndarray of bool
        Which errors are within their limit.
    limit : float
        The limit of an error over the posterior's standard deviation.
    """

    squares: Array
    noise: Array
    spread: Array
    weights: Array
    within: Any
    limit: float

    @classmethod
    def of(cls, errors: Array, noise: Array, spread: Array, weights: Array) -> _Errors:
        scores = np.abs(errors) / np.sqrt(noise + spread)
        order = np.argsort(scores, kind="stable")
        upto = np.cumsum(weights[order])
        limit = float(scores[order][np.searchsorted(upto, _LEVEL * upto[-1] * (1.0 - 1e-12))])
        within = scores <= limit * (1.0 + _COPIES)
        squares = np.where(within, errors**2, limit**2 * (noise + spread))
        return cls(squares, noise, spread, weights, within, limit)

    @property
    def range(self) -> tuple[Array, Array]:
        """Limits of the logarithms of scale and factor."""
        middle = np.array([np.log(self.limit / Calibration().factor(_LEVEL)), 0.0])
        return middle - _FAR * _OPEN, middle + _FAR * _OPEN

    def best(self, heaviness: float) -> tuple[Array, float]:
        """Logarithms of scale and factor of the greatest likelihood at one heaviness of the tails, and its loss."""
        low, high = self.range
        found: Any = minimize(
            self.loss,
            0.5 * (low + high),
            (heaviness,),
            method="L-BFGS-B",
            jac=True,
            bounds=np.column_stack([low, high]),
        )
        return found.x, float(found.fun)

    def polished(self, logs: Array, heaviness: float) -> Array:
        """The same to the last digit by Newton's method: a search by heights ends within the root of rounding."""
        for _ in range(_POLISH):
            slopes = [self.loss(logs + step, heaviness)[1] for step in (*_APART, *-_APART)]
            hessian = (np.array(slopes[:2]) - np.array(slopes[2:])) / (2.0 * _APART[0, 0])
            step = np.linalg.lstsq(hessian, self.loss(logs, heaviness)[1])[0]
            if np.max(np.abs(step)) > _NEAR:
                break
            logs = np.clip(logs - step, *self.range)
        return logs

    def loss(self, logs: Array, heaviness: float) -> tuple[float, Array]:
        """Minus the log posterior of the logarithms of scale and factor, for a row, and its gradient.

        Up to a constant.
        """
        widened = np.exp(logs[1]) * self.spread
        variance = np.exp(2.0 * logs[0]) * (self.noise + widened)
        ratio = self.squares / variance
        place = -np.sqrt(ratio[~self.within])
        if heaviness == 0.0:
            each, slope = 0.5 * ratio, 0.5 * ratio
            peak, beyond = -0.5 * np.log(2.0 * np.pi), ndtr(place)
            density = np.exp(peak - 0.5 * place**2)
        else:
            nu = 1.0 / heaviness
            each, slope = 0.5 * (nu + 1.0) * np.log1p(ratio / nu), 0.5 * (nu + 1.0) * ratio / (nu + ratio)
            peak = float(gammaln(0.5 * nu + 0.5) - gammaln(0.5 * nu)) - 0.5 * np.log(np.pi * nu)
            beyond = stdtr(nu, place)
            density = np.exp(peak - 0.5 * (nu + 1.0) * np.log1p(place**2 / nu))
        beyond = np.maximum(beyond, np.finfo(float).tiny)
        each += 0.5 * np.log(variance) - peak
        each[~self.within] = -np.log(beyond)
        # By the logarithm of a row's variance.
        slope = 0.5 - slope
        slope[~self.within] = 0.5 * place * density / beyond
        n = float(np.sum(self.weights))
        weighted, strain = self.weights * slope / n, logs[1] / _OPEN**2 / n
        gradient = [2.0 * np.sum(weighted), weighted @ (widened / (self.noise + widened)) + strain]
        return float(self.weights @ each) / n + 0.5 * logs[1] * strain, np.array(gradient)

    def determined(self, factor: float, heaviness: float) -> float:
        """How many of the two logarithms the rows determine."""
        share = 0.5 * factor * self.spread / (self.noise + factor * self.spread)
        apart = self.weights @ (share - np.average(share, weights=self.weights)) ** 2
        information = 2.0 / (1.0 + 3.0 * heaviness) * float(apart)
        return 1.0 + information / (information + _OPEN**-2)
