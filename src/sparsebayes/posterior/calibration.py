r"""How much wider than the posterior's the error bars must be, from rows that the search had not seen.

The posterior is that of the weights of the functions that were kept.  That these were chosen, among many and by the
same rows, is not in it: where many functions are kept its error bars are too short.  What they lack shows in the
errors :math:`z = (t-\bar y)/\mathrm{std}` of rows that a search from nothing had left out.  They are described by two
numbers, a scale and degrees of freedom,

.. math:: z \sim s\,\mathrm t_\nu ,

so that a new observation is :math:`\bar y + s\,\mathrm{std}\;\mathrm t_\nu`: with Gaussian errors of the size that was
claimed :math:`s=1`, :math:`\nu=\infty`, and nothing changes.  Both follow from the quantiles of :math:`|z|` at 50, 80
and 95 %, which single rows cannot move.

A search on :math:`n` of :math:`N` rows makes larger errors than one on all of them.  Quantiles at two sizes,
:math:`n_1<n_2`, say by how much they fall, :math:`q\propto n^{-\rho}`, and :math:`(n_2/N)^{\rho}` takes those of the
larger part to all rows.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.optimize import minimize_scalar
from scipy.stats import t

from sparsebayes.typing import Array

# Shares of the errors at which they are compared with what was claimed, and what each counts: the last is the one that
# the standard deviation is to be right at.
_LEVELS = np.array([0.5, 0.8, 0.95])
_COUNTS = np.array([0.2, 0.2, 0.6])
# Heaviest tails, as one over the degrees of freedom, and what is expected of them before any row is seen: quantiles of
# few rows scatter enough to look like any tails.
_HEAVIEST = 0.5
_EXPECTED = 0.2
# Standard error of the logarithm of the largest of these quantiles, for a single row (Gaussian errors).
_ERROR = 0.95
# Standard errors by which error bars must be too long before they are made shorter.
_CLEARLY = 2.0
# Errors fall with the number of rows at most as fast as this power of it.
_FASTEST = 1.5


@dataclass(frozen=True)
class Calibration:
    r"""What the errors of rows left out say of the posterior's error bars.

    Attributes
    ----------
    scale : float
        What the posterior's standard deviation is multiplied by, :math:`s`.
    degrees : float
        Degrees of freedom of Student's t that describes the errors, :math:`\nu`; infinite for a Gaussian.
    """

    scale: float = 1.0
    degrees: float = np.inf

    @classmethod
    def of(cls, scores: Array, weights: Array, shrinkage: float = 1.0) -> Calibration:
        """From standardised errors of rows left out.

        Parameters
        ----------
        scores, weights : ndarray of shape (n,)
            Errors over predicted standard deviations, and how many rows each stands for.
        shrinkage : float
            What the errors are multiplied by for the rows that the searches lacked.
        """
        n = float(np.sum(weights))
        found = np.log(np.maximum(shrinkage * quantiles(scores, weights), np.finfo(float).tiny))

        def gaps(heaviness: float) -> Array:
            return found - np.log(_quantile(_LEVELS, heaviness))

        def misfit(heaviness: float) -> float:
            gap = gaps(heaviness)
            return 0.5 * n / _ERROR**2 * float(_COUNTS @ (gap - _COUNTS @ gap) ** 2) + heaviness / _EXPECTED

        search: Any = minimize_scalar(misfit, bounds=(0.0, _HEAVIEST), method="bounded")
        best = float(search.x)
        heaviness = best if misfit(best) < misfit(0.0) else 0.0
        calibration = cls(float(np.exp(_COUNTS @ gaps(heaviness))), _degrees(heaviness))
        log_std = float(np.log(calibration.std_scale))
        if -_CLEARLY * _ERROR / np.sqrt(n) < log_std < 0.0:
            return cls(calibration.scale / calibration.std_scale, calibration.degrees)
        return calibration

    @property
    def std_scale(self) -> float:
        """Factor of the standard deviation such that 1.96 of them either side hold 95 % of new observations."""
        return self.scale * self.factor(_LEVELS[-1]) / Calibration().factor(_LEVELS[-1])

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


def quantiles(scores: Array, weights: Array) -> Array:
    """Magnitudes that half, four fifths and 95 % of the scores stay below; a weight of k is k copies."""
    order = np.argsort(np.abs(scores), kind="stable")
    values = np.abs(scores)[order]
    upto = np.cumsum(weights[order])
    # Copies of a row share one value, so that the curve is flat between the first and the last of them.
    places = np.column_stack([upto - weights[order], upto]).ravel() / upto[-1]
    return np.interp(_LEVELS, places, np.repeat(values, 2))


def shrinkage(small: Array, large: Array, share_small: float, share_large: float) -> float:
    """What errors are multiplied by for the rows that searches on a part of them lacked.

    Parameters
    ----------
    small, large : ndarray
        Quantiles of errors by searches on a smaller and on a larger part of the rows.
    share_small, share_large : float
        These parts.
    """
    if not (np.all(small > 0.0) and np.all(large > 0.0)):
        return 1.0
    power = float(np.mean(np.log(small / large))) / np.log(share_large / share_small)
    return float(share_large ** min(max(power, 0.0), _FASTEST))


def _degrees(heaviness: float) -> float:
    return 1.0 / heaviness if heaviness > 1e-4 else np.inf


def _quantile(levels: Array, heaviness: float) -> Array:
    return np.asarray(t.ppf(0.5 + 0.5 * levels, _degrees(heaviness)), dtype=np.float64)
