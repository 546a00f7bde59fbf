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

from sparsebayes.typing import Array

# Numbers held at once, so that a block of factors stays in the cache from one use to the next.
_BLOCK = 1 << 16
# Error of an integral, of a product of factors of at most one, that is rounding; ellipses that bounds are tried on.
_ROUNDING = 1e-17
# Nodes up to which all are taken: bounds would cost more than they save.
_FEW = 20
_ELLIPSES = (2.0, 4.0, 8.0, 16.0, 32.0, 64.0)


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
    whole = np.prod(size, axis=1)
    above, below = a, b
    if np.any(whole == 0.0):
        # A factor that is zero at both ends makes every coalition worthless; that its size is zero says so in the end.
        nothing = size == 0.0
        above, below, size = (np.where(nothing, 1.0, part) for part in (a, b, size))
    above, below = above / size, below / size
    positive = min(float(above.min(initial=0.0)), float(below.min(initial=0.0))) >= 0.0
    change = above - below
    needed = nodes_needed(0.5 * (above + below), change)
    order = np.argsort(needed, kind="stable")
    ends = np.stack([below[order].T, change[order].T], axis=2)
    integrals = np.empty((r, len(a)))
    room = np.empty(max(_BLOCK, r * ((r + 1) // 2)))
    start = 0
    while start < len(a):
        # As many products as fit, with the nodes that the last of them needs.
        stop = start + max(1, _BLOCK // (r * int(needed[order[start]])))
        stop = min(stop, len(a), start + max(1, _BLOCK // (r * int(needed[order[min(stop, len(a)) - 1]]))))
        nodes, weights = _rule(int(needed[order[stop - 1]]))
        some = ends[:, start:stop].reshape(-1, 2)
        # b + t (a - b) at all nodes as one product of matrices, which BLAS makes in one pass.
        path = room[: len(some) * len(nodes)].reshape(len(some), len(nodes))
        np.matmul(some, np.vstack([np.ones_like(nodes), nodes]), out=path)
        integrals[:, order[start:stop]] = _without_each(path.reshape(r, -1, len(nodes)), weights, positive)
        start = stop
    return change * integrals.T * whole[:, None]


def nodes_needed(middle: Array, change: Array) -> NDArray[np.intp]:
    r"""Nodes from which on the rule is exact to rounding, for each product.

    ⌈r/2⌉ are always enough.  Where the factors change little along the way, fewer are: with
    :math:`M_\rho=\prod_i(|b_i+\delta_i/2|+|\delta_i|(\rho+\rho^{-1})/4)`, which bounds the polynomial on Bernstein's
    ellipse of parameter ρ about (0, 1), the error of n nodes is at most
    :math:`\frac{32}{15}M_\rho\rho^{-2(n-1)}/(1-\rho^{-2})` (Trefethen 2008).  A product without one factor is at most
    twice that with it, since the larger end of a factor is one.

    Parameters
    ----------
    middle, change : ndarray of shape (P, r)
        Of the factors, whose larger end is one.
    """
    r = middle.shape[1]
    needed = np.full(len(middle), float((r + 1) // 2))
    if (r + 1) // 2 <= _FEW:
        return needed.astype(np.intp)
    middle, change = np.abs(middle), np.abs(change)
    for rho in _ELLIPSES:
        with np.errstate(over="ignore"):
            bound = np.prod(middle + change * (0.25 * (rho + 1.0 / rho)), axis=1)
        bound *= 2.0 * 32.0 / 15.0 / (1.0 - rho**-2)
        enough = 1.0 + np.ceil(np.log(bound / _ROUNDING) / (2.0 * np.log(rho)))
        np.minimum(needed, np.maximum(enough, 1.0), out=needed)
    return needed.astype(np.intp)


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
