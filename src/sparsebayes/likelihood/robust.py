r"""Targets with outliers: noise models whose rows a variational loop weighs, so that every step is a Gaussian problem.

Each row has a hidden variable, whose distribution :math:`q` is found from the expected squared residual
:math:`e_n = (t_n-y_n)^2 + \mathrm{var}[y_n]`:

* the mixture of the lecture, :math:`\theta\,\mathcal N(t|y,\sigma^2) + (1-\theta)\,p_{\text{outlier}}(t)` with a
  uniform :math:`p_{\text{outlier}}` over twice the range of the targets: the responsibility :math:`r_n` of the data
  for the row;
* Student's t, :math:`\mathcal N(t|y,\sigma^2/u)` with :math:`u\sim\Gamma(\nu/2,\nu/2)`: the row's precision
  :math:`u_n`.

Given :math:`q`, the weights have the posterior of a Gaussian problem with row weights :math:`r_n` or :math:`E[u_n]`,
and :math:`\log p(\mathbf t) \ge \mathcal L_q + \sum_n \ell_n`, where :math:`\mathcal L_q` is the evidence of that
problem and :math:`\ell_n` what the hidden variable adds.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from typing import Self

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize_scalar
from scipy.special import digamma, entr, expit, gammainc, gammaln

from sparsebayes.typing import Array

Rows = NDArray[np.bool_]

# The prior of θ is Beta(1 + this, 1), that of so many rows seen before, all of them data: outliers are rare until they
# are seen.  It is cut off below one half: beyond that, what is data and what is not would be a matter of names.
_PRIOR_ROWS = 10.0
# Before any row was weighed: log odds of a row to be data.
_FIRST_ODDS = float(np.log(9.0))
# Nodes of a quadrature, on [-1, 1], and how many of its widths a density reaches to either side: by then it has fallen
# by as many nats.
_NODES, _NODE_WEIGHTS = np.polynomial.legendre.leggauss(400)
_WIDTHS = 40.0
# An outlier may lie anywhere in an interval so many times as wide as the range of the targets.
_OUTLIER_RANGE = 2.0
# Range of the degrees of freedom: below, the noise has no variance, and rows near the fit gain too much weight; above,
# it is Gaussian.
_DEGREES = (2.0, 1000.0)
# A row whose standard deviation is larger than this many times the scale is called an outlier of Student's t.
_OUTLYING = 3.0


class RobustNoise(ABC):
    """Distribution of the residuals, with one hidden variable per row."""

    @property
    @abstractmethod
    def weights(self) -> Array:
        """Row weights of the Gaussian problem."""

    @abstractmethod
    def n_observations(self, counts: Array) -> float:
        r"""How many factors :math:`\sqrt\beta` the Gaussian problem has, for rows that count this often."""

    @abstractmethod
    def bound(self, counts: Array) -> float:
        r""":math:`\sum_n\ell_n`: what the hidden variables add to the evidence."""

    @abstractmethod
    def updated(self, squares: Array, noise_variance: float, counts: Array) -> Self:
        """Best hidden variables, and parameters, for these expected squared residuals."""

    @abstractmethod
    def outlier_probability(self) -> Array:
        """Probability of each row to be an outlier."""


@dataclass(frozen=True)
class DataShare:
    r"""Posterior of θ, the probability of a row to be data: a Beta distribution, cut off below one half.

    Attributes
    ----------
    log_normaliser : float
        :math:`\log\int_{1/2}^1\theta^{a-1}(1-\theta)^{b-1}\,d\theta`.
    mean, log_odds : float
        :math:`E[\theta]` and :math:`E[\log\theta-\log(1-\theta)]`.
    """

    log_normaliser: float
    mean: float
    log_odds: float

    @classmethod
    def seen(cls, data: float, outliers: float) -> DataShare:
        r"""After so many rows of either kind: :math:`a=1+10+` data, :math:`b=1+` outliers.

        By quadrature over the log odds, in which the density :math:`\theta^a(1-\theta)^b` is log-concave.
        """
        a, b = 1.0 + _PRIOR_ROWS + data, 1.0 + outliers
        top = max(0.0, float(np.log(a / b)))
        height = -a * np.logaddexp(0.0, -top) - b * np.logaddexp(0.0, top)

        # Where the density is cut off on its way down, it falls faster than its curvature says.
        reach = _WIDTHS / max(np.sqrt(a * b / (a + b)), 0.5 * (b - a))
        low, high = max(0.0, top - reach), top + reach
        x = 0.5 * (low + high) + 0.5 * (high - low) * _NODES
        # The log density less its largest value, which may be a difference in the last digits of either.
        below = -a * np.log1p(expit(-top) * np.expm1(top - x)) - b * np.log1p(expit(top) * np.expm1(x - top))
        mass = 0.5 * (high - low) * _NODE_WEIGHTS * np.exp(below)
        total = float(np.sum(mass))
        return cls(float(height + np.log(total)), float(mass @ expit(x)) / total, float(mass @ x) / total)


_BEFORE = DataShare.seen(0.0, 0.0)


@dataclass(frozen=True)
class OutlierMixture(RobustNoise):
    """Gaussian noise, and outliers anywhere within twice the range of the targets.

    Attributes
    ----------
    responsibility : ndarray of shape (N,)
        Probability of each row to be data.
    log_outlier : float
        Log density of an outlier.
    data_share : float
        Expected probability θ of a row to be data; learned, and at least one half.
    log_odds : float
        Expected log odds of a row to be data.
    """

    responsibility: Array
    log_outlier: float
    data_share: float = 0.9
    log_odds: float = _FIRST_ODDS

    @classmethod
    def begin(cls, targets: Array, inliers: Rows) -> OutlierMixture:
        """Begin from rows taken for data."""
        spread = _OUTLIER_RANGE * float(np.ptp(targets))
        return cls(inliers.astype(np.float64), -float(np.log(spread)) if spread > 0.0 else 0.0)

    @property
    def weights(self) -> Array:
        """Responsibilities."""
        return self.responsibility

    def n_observations(self, counts: Array) -> float:
        """Rows that are data."""
        return float(counts @ self.responsibility)

    def bound(self, counts: Array) -> float:
        r"""Outliers, entropy of the responsibilities, and how likely these are with θ integrated out.

        With :math:`R` rows of data and :math:`O` outliers expected, :math:`E_q[\log p(\text{rows}|\theta)] -
        \mathrm{KL}(q(\theta)\|p(\theta))` is the logarithm of :math:`\int\theta^R(1-\theta)^Op(\theta)\,d\theta`, where
        :math:`q(\theta)` is the best for these responsibilities.
        """
        r = self.responsibility
        hidden = float(counts @ ((1.0 - r) * self.log_outlier + entr(r) + entr(1.0 - r)))
        return hidden + self._share(counts).log_normaliser - _BEFORE.log_normaliser

    def updated(self, squares: Array, noise_variance: float, counts: Array) -> OutlierMixture:
        """Responsibilities, then the posterior of θ."""
        log_data = -0.5 * (np.log(2.0 * np.pi * noise_variance) + squares / noise_variance)
        found = replace(self, responsibility=expit(self.log_odds + log_data - self.log_outlier))
        share = found._share(counts)
        return replace(found, data_share=share.mean, log_odds=share.log_odds)

    def _share(self, counts: Array) -> DataShare:
        return DataShare.seen(float(counts @ self.responsibility), float(counts @ (1.0 - self.responsibility)))

    def outlier_probability(self) -> Array:
        """One minus the responsibility of the data."""
        return 1.0 - self.responsibility


@dataclass(frozen=True)
class StudentT(RobustNoise):
    """Student's t, as Gaussian noise whose precision differs from row to row.

    Attributes
    ----------
    shape, rate : ndarray of shape (N,)
        Gamma posterior of the relative precision of each row.
    degrees : float
        Degrees of freedom ν; learned.
    """

    shape: Array
    rate: Array
    degrees: float = 4.0

    @classmethod
    def begin(cls, scaled: Array, inliers: Rows) -> StudentT:
        """Begin from rows taken for data; the others begin with precisions that are very small.

        ``scaled`` are the expected squared residuals over the noise variance: under one small precision for all of them
        the farthest outliers would still be most of the sum of squares.
        """
        rate = np.where(inliers, 2.5, np.maximum(250.0, 0.5 * (cls.degrees + scaled)))
        return cls(np.full(len(scaled), 2.5), rate)

    @property
    def weights(self) -> Array:
        """Expected precisions."""
        return self.shape / self.rate

    def n_observations(self, counts: Array) -> float:
        """All rows: one with a small precision is still an observation."""
        return float(np.sum(counts))

    def bound(self, counts: Array) -> float:
        """Expected log precision, minus the divergence of its posterior from its prior."""
        a, b, half = self.shape, self.rate, 0.5 * self.degrees
        mean_log = digamma(a) - np.log(b)
        divergence = (
            (a - half) * digamma(a)
            - gammaln(a)
            + gammaln(half)
            + half * (np.log(b) - np.log(half))
            + a * (half - b) / b
        )
        return float(counts @ (0.5 * mean_log - divergence))

    def updated(self, squares: Array, noise_variance: float, counts: Array) -> StudentT:
        """Degrees of freedom by the likelihood with the precisions integrated out, then the precisions."""
        scaled = squares / noise_variance

        def negative(log_degrees: float) -> float:
            degrees = np.exp(log_degrees)
            constant = gammaln(0.5 * (degrees + 1.0)) - gammaln(0.5 * degrees) - 0.5 * np.log(degrees)
            return -float(counts @ (constant - 0.5 * (degrees + 1.0) * np.log1p(scaled / degrees)))

        found = minimize_scalar(negative, bounds=tuple(np.log(_DEGREES)), method="bounded", options={"xatol": 1e-4})
        degrees = float(np.exp(found.x))
        return StudentT(np.full(len(squares), 0.5 * (degrees + 1.0)), 0.5 * (degrees + scaled), degrees)

    def outlier_probability(self) -> Array:
        """Probability that the row's own standard deviation is more than three times the scale."""
        return np.asarray(gammainc(self.shape, self.rate / _OUTLYING**2), dtype=np.float64)


ROBUST: dict[str, type[OutlierMixture] | type[StudentT]] = {"outliers": OutlierMixture, "student-t": StudentT}
