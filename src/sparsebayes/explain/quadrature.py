r"""Shapley values of products, exactly and without cancellation.

For a product :math:`\prod_i k_i`, with factors :math:`a_i` at the row to be explained and :math:`b_i` at the
background, a coalition S is worth :math:`v(S)=\prod_{i\in S}a_i\prod_{i\notin S}b_i`, and

.. math::

    \phi_j = \sum_{S\not\ni j}\frac{|S|!\,(r-|S|-1)!}{r!}\,[v(S\cup j)-v(S)]
           = (a_j-b_j)\int_0^1\prod_{i\ne j}\bigl(b_i + t\,(a_i-b_i)\bigr)\,dt ,

since the weights are the integrals :math:`\int_0^1t^{|S|}(1-t)^{r-|S|-1}dt`.  The coefficients of the polynomial under
the integral are the elementary symmetric polynomials of the factors; to expand and recombine them would lose every
digit for some tens of inputs.  Its degree is r − 1, so Gauss and Legendre's rule with ⌈r/2⌉ nodes is *exact*, and where
the factors are not negative (Gaussians) every summand is positive: nothing cancels.  O(r²) operations give all values.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]

# Numbers held at once, so that a block of factors stays in the cache from one use to the next.
_BLOCK = 1 << 17


@lru_cache(maxsize=64)
def _rule(count: int) -> tuple[Array, Array]:
    """Nodes and weights of Gauss and Legendre on (0, 1)."""
    nodes, weights = np.polynomial.legendre.leggauss(count)
    return 0.5 * (nodes + 1.0), 0.5 * weights


def product_values(a: Array, b: Array) -> Array:
    """Shapley values of the factors of products.

    Parameters
    ----------
    a, b : ndarray of shape (P, r)
        Factors of P products at the row and at the background.

    Returns
    -------
    ndarray of shape (P, r)
        In every row they add up to the difference of the products.
    """
    r = a.shape[1]
    if r == 1:
        return a - b
    # Factors of at most one: partial products then only fall, and underflow means negligible.
    size = np.maximum(np.abs(a), np.abs(b))
    # A factor that is zero at both ends makes every coalition worthless; that its size is zero says so in the end.
    unit = np.where(size > 0.0, size, 1.0)
    above, below = a / unit, b / unit
    above[size == 0.0] = below[size == 0.0] = 1.0
    ends = np.stack([below.T, (above - below).T], axis=2)
    nodes, weights = _rule((r + 1) // 2)
    along = np.vstack([np.ones_like(nodes), nodes])
    positive = min(float(above.min(initial=0.0)), float(below.min(initial=0.0))) >= 0.0
    integrals = np.empty((r, len(a)))
    step = max(1, _BLOCK // (r * len(nodes)))
    room = np.empty((r * min(step, len(a)), len(nodes)))
    for start in range(0, len(a), step):
        part = slice(start, start + step)
        some = ends[:, part].reshape(-1, 2)
        # b + t (a - b) at all nodes as one product of matrices, which BLAS makes in one pass.
        path = np.matmul(some, along, out=room[: len(some)]).reshape(r, -1, len(nodes))
        integrals[:, part] = _without_each(path, weights, positive)
    return (ends[:, :, 1] * integrals).T * np.prod(size, axis=1)[:, None]


def _without_each(path: Array, weights: Array, positive: bool) -> Array:
    """Integrals of the products of all factors but one, (r, P), from the factors at the nodes, (r, P, Q)."""
    if positive:  # no factor between two ends of at least 0, one of them 1, vanishes: divide by it
        whole = np.multiply.reduce(path, axis=0)
        whole *= weights
        np.divide(whole, path, out=path)
        return path @ np.ones_like(weights)
    before = np.empty_like(path)  # products of all factors before each, then also of all after it
    before[0] = 1.0
    for j in range(1, len(path)):
        np.multiply(before[j - 1], path[j - 1], out=before[j])
    after = path[-1].copy()
    for j in range(len(path) - 2, -1, -1):
        before[j] *= after
        after *= path[j]
    return before @ weights
