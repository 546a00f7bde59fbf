"""Inclusion probabilities by enumeration of all supports."""

import numpy as np
from scipy.special import logsumexp


def enumerate_supports(X, y, noise, prior, probability):
    """Exact inclusion probabilities of w_m ~ probability N(0, prior) + (1 - probability) δ, noise variance known."""
    M = X.shape[1]
    G, b = X.T @ X / noise, X.T @ y / noise
    supports = (np.arange(2**M)[:, None] >> np.arange(M)) & 1 == 1
    size = supports.sum(axis=1)
    log = size * np.log(probability) + (M - size) * np.log1p(-probability)
    for k in range(1, M + 1):
        rows = np.flatnonzero(size == k)
        places = np.array([np.flatnonzero(supports[row]) for row in rows])
        A = G[places[:, :, None], places[:, None, :]] + np.eye(k) / prior
        mine = b[places]
        fitted = np.einsum("rk,rk->r", mine, np.linalg.solve(A, mine[:, :, None])[:, :, 0])
        log[rows] += 0.5 * fitted - 0.5 * np.linalg.slogdet(A)[1] - 0.5 * k * np.log(prior)
    return np.exp(log - logsumexp(log)) @ supports
