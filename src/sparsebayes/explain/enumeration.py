"""Inclusion probabilities by enumeration of all supports: exact, and only for few candidates."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp

Array = NDArray[np.float64]

# Candidates up to which all supports are gone through: a million of them.
_MOST = 20


def enumerate_supports(X: Array, y: Array, noise: float, prior: float, probability: float) -> Array:
    r"""Exact inclusion probabilities of a linear model of few columns.

    Weights are :math:`w_m\sim\pi N(0,V)+(1-\pi)\delta_0`, the noise variance is known, and the evidence of every one of
    the :math:`2^M` supports is computed: what :func:`sparsebayes.explain.single_effects` is measured against.

    Parameters
    ----------
    X : ndarray of shape (N, M)
        Candidates in columns, at most twenty.
    y : ndarray of shape (N,)
        Targets.
    noise, prior : float
        Variance of the noise, and V.
    probability : float
        Prior probability of every candidate.

    Returns
    -------
    ndarray of shape (M,)
    """
    m = X.shape[1]
    if m > _MOST:
        raise ValueError(f"X has {m} columns: expected at most {_MOST}, since all supports are gone through")
    G, b = X.T @ X / noise, X.T @ y / noise
    supports = (np.arange(2**m)[:, None] >> np.arange(m)) & 1 == 1
    size = supports.sum(axis=1)
    log = size * np.log(probability) + (m - size) * np.log1p(-probability)
    for k in range(1, m + 1):
        rows = np.flatnonzero(size == k)
        places = np.array([np.flatnonzero(supports[row]) for row in rows])
        A = G[places[:, :, None], places[:, None, :]] + np.eye(k) / prior
        mine = b[places]
        fitted = np.einsum("rk,rk->r", mine, np.linalg.solve(A, mine[:, :, None])[:, :, 0])
        log[rows] += 0.5 * fitted - 0.5 * np.linalg.slogdet(A)[1] - 0.5 * k * np.log(prior)
    return np.exp(log - logsumexp(log)) @ supports
