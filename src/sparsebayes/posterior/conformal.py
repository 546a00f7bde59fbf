r"""Intervals whose coverage does not rest on the model (Vovk et al. 2005; Lei et al. 2018; Barber et al. 2021).

A score :math:`|t-\bar y|/\mathrm{std}` on rows that the model has not seen is exchangeable with that of a new row, so
the interval :math:`\bar y \pm \hat q\,\mathrm{std}` with :math:`\hat q` the :math:`\lceil(n+1)c\rceil`-th smallest
score holds a new observation with probability at least c, whatever the noise is.

Scores come from a calibration set, or, without one, from the training rows each left out of the posterior: for a linear
model with given hyperparameters the residual without row n is :math:`r_n/(1-h_n)` and the variance of the output
:math:`v_n/(1-h_n)`, where :math:`h_n = \beta_n v_n` is the row's leverage.  That is the jackknife given the kept
functions; it does not know that the row had a part in choosing them, so only the calibration set carries the guarantee.
"""

from __future__ import annotations

import numpy as np

from sparsebayes.posterior.gaussian import GaussianPosterior
from sparsebayes.typing import Array


def held_out_scores(posterior: GaussianPosterior, values: Array, y: Array) -> Array:
    """Scores of rows that had no part in the fit."""
    return np.abs(y - posterior.predict(values)) / posterior.standard_deviation(values)


def left_out_scores(posterior: GaussianPosterior, values: Array, y: Array, weights: Array) -> Array:
    """Scores of the training rows, each left out; ``weights`` are those of one copy of each row."""
    spread = posterior.spread(values)
    leverage = np.minimum(weights * spread / posterior.noise_variance, 1.0 - 1e-6)
    residual = (y - posterior.predict(values)) / (1.0 - leverage)
    return np.abs(residual) / posterior.standard_deviation(values, spread * leverage / (1.0 - leverage))


def conformal_quantile(scores: Array, counts: Array, coverage: float) -> float:
    """The score that a new one stays below with at least this probability; infinite where the rows are too few."""
    order = np.argsort(scores)
    reached = np.cumsum(counts[order]) >= coverage * (float(np.sum(counts)) + 1.0) * (1.0 - 1e-12)
    return float(scores[order][np.argmax(reached)]) if np.any(reached) else np.inf
