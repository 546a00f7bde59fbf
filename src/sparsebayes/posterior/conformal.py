r"""Intervals whose coverage does not rest on the model (Vovk et al. 2005; Lei et al. 2018; Barber et al. 2021).

A score :math:`|t-\bar y|/\mathrm{std}` on rows that the model has not seen is exchangeable with that of a new row, so
the interval :math:`\bar y \pm \hat q\,\mathrm{std}` with :math:`\hat q` the :math:`\lceil(n+1)c\rceil`-th smallest
score holds a new observation with probability at least c, whatever the noise is.

Scores come from a calibration set, or, without one, from the training rows each left out of the posterior: for a linear
model with given hyperparameters the residual without row n is :math:`r_n/(1-h_n)` and the variance of the output
:math:`v_n/(1-h_n)`, where :math:`h_n = \beta_n v_n` is the row's leverage.  That is the jackknife given the kept
functions; it does not know that the row had a part in choosing them, and carries no guarantee.

CV+ (Barber, Candès, Ramdas & Tibshirani 2021, section 3) does without a calibration set and has one.  With the model
fitted again without each of K folds, :math:`\bar y_{-k}` and :math:`\mathrm{std}_{-k}`, and
:math:`R_i = |t_i-\bar y_{-k(i)}(x_i)|/\mathrm{std}_{-k(i)}(x_i)` the score of row i by the model that lacks its fold,

.. math::

    \big[\,\hat q^-\{\bar y_{-k(i)}(x)-R_i\,\mathrm{std}_{-k(i)}(x)\},\;
    \hat q^+\{\bar y_{-k(i)}(x)+R_i\,\mathrm{std}_{-k(i)}(x)\}\big] ,

:math:`\hat q^+` the :math:`\lceil(n+1)c\rceil`-th smallest over the rows and :math:`\hat q^-` the same from the other
side.  Their theorem 4 compares every pair of rows by models that have seen neither, and of the scores it needs no more
than that they can be compared: it holds for these as for plain residuals.  A new observation is inside with
probability at least :math:`2c-1-\min\{2(1-1/K)/(n/K+1),\,(1-K/n)/(K+1)\}`, whatever the noise and however bad the
model, and with about c where the models of the folds are much the same.
"""

from __future__ import annotations

import numpy as np

from sparsebayes.typing import Array, Index


def conformal_quantile(scores: Array, counts: Array, coverage: float) -> float:
    """The score that a new one stays below with at least this probability; infinite where the rows are too few."""
    return float(_quantiles(scores[:, None], counts, coverage)[0])


def cross_interval(
    means: Array, stds: Array, scores: Array, counts: Array, fold: Index, coverage: float
) -> tuple[Array, Array]:
    """Intervals by models that were fitted without one fold each (CV+).

    Parameters
    ----------
    means, stds : ndarray of shape (K, m)
        Predictions of m new observations without each fold, and their standard deviations.
    scores, counts, fold : ndarray of shape (n,)
        Score of every row by the model without its fold, how many rows it stands for, and its fold.
    coverage : float
        Probability that an observation lies inside, where the models of the folds are much the same.

    Returns
    -------
    low, high : ndarray of shape (m,)
        Infinite where the rows are too few.
    """
    centre, half = means[fold], scores[:, None] * stds[fold]
    return -_quantiles(half - centre, counts, coverage), _quantiles(half + centre, counts, coverage)


def _quantiles(values: Array, counts: Array, coverage: float) -> Array:
    """Of every column."""
    order = np.argsort(values, axis=0)
    reached = np.cumsum(counts[order], axis=0) >= coverage * (float(np.sum(counts)) + 1.0) * (1.0 - 1e-12)
    place = np.take_along_axis(order, np.argmax(reached, axis=0)[None], axis=0)
    return np.where(reached[-1], np.take_along_axis(values, place, axis=0)[0], np.inf)
