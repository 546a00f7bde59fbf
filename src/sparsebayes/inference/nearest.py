r"""The Gaussian about the mode that is nearest to the posterior of a classifier's weights.

Beyond the papers.  Laplace's covariance follows from the curvature *at* the mode.  Where classes are separable that is
next to nothing at every row, and the covariance next to the prior's, although a little way from the mode the
likelihood falls steeply: probabilities that are integrated over it are far too timid.  Of all Gaussians
:math:`q=N(\boldsymbol\mu,\mathbf S)` about the mode the nearest (in :math:`\mathrm{KL}(q\|p)`) maximises

.. math::  E_q[\log p(\mathbf t|\mathbf w)] - \tfrac12\mathrm{tr}(\mathbf A\mathbf S) + \tfrac12\log|\mathbf S| ,

which is concave in the Cholesky factor of :math:`\mathbf S` where the likelihood is log-concave, so that there is one
maximum.  Its derivative is zero where the curvature is replaced by its expectation:

.. math::  \mathbf S^{-1} = \mathbf A + \boldsymbol\Phi^\top E_q[\mathbf B]\boldsymbol\Phi .

Where the data determine the weights well, it is Laplace's.  Evidence, selection and certificate are Laplace's always.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sparsebayes.inference.evidence import Array
from sparsebayes.likelihood import expected_slope, shares

# The largest change of a log variance, in any direction, that still counts; and steps at most.
_SETTLED = 1e-8
_STEPS = 60
# Part of a first step; the smallest part; and the longest step of a log variance.
_FIRST, _LEAST, _REACH = 0.5, 0.02, 3.0
# Share of two classes in a row below which it tells nothing of one against the other.
_NEITHER = 1e-6


@dataclass(frozen=True)
class Library:
    """Where rows live: the array library, and ways there and back."""

    xp: Any
    put: Callable[[Array], Any]
    get: Callable[[Any], Array]


HOST = Library(np, np.asarray, np.asarray)


def nearest_covariance(expected: Callable[[Array], Array], alpha: Array, root: Array) -> Array:
    r"""Solve for :math:`\mathbf S` by steps between precisions along their geodesic.

    A step leads from the precision at hand to that which it implies, or a part of the way: where rows saturate the
    latter falls steeply with the former, and whole steps would go to and fro.  The part follows from how much of the
    last distance is left.

    Parameters
    ----------
    expected : callable
        Expected Gram matrix of the active functions under a covariance of their weights.
    alpha : ndarray of shape (a,)
        Prior precisions.
    root : ndarray of shape (a, a)
        Any root of the covariance to begin with.
    """
    last, part = None, _FIRST
    for _ in range(_STEPS):
        implied = expected(root @ root.T)
        implied[np.diag_indices_from(implied)] += alpha
        ratios, axes = np.linalg.eigh(root.T @ implied @ root)
        logs = np.log(np.maximum(ratios, np.finfo(float).tiny))
        if np.max(np.abs(logs), initial=0.0) < _SETTLED:
            break
        left = (axes * logs) @ axes.T
        if last is not None:
            steep = (1.0 - np.vdot(left, last) / np.vdot(last, last)) / part  # how fast it falls; one if it is constant
            part = float(np.clip(1.0 / steep, _LEAST, 1.0)) if steep > 0.0 else part
        last = left
        root = root @ ((axes * np.exp(-0.5 * np.clip(part * logs, -_REACH, _REACH))) @ axes.T)
    return root @ root.T


def expected_gram(
    library: Library, weights: Any, y: Any, blocks: list[Any], groups: list[NDArray[np.intp]], covariance: Array
) -> Array:
    r""":math:`\boldsymbol\Phi_a^\top E[\mathbf B]\boldsymbol\Phi_a` for outputs about ``y``.

    Parameters
    ----------
    library : Library
        Where the rows live.
    weights, y : arrays of shape (N,), (N, K)
        Sample weights, and outputs at the mode.
    blocks, groups : list of (N, a_k) arrays, list of ndarray of int
        Active columns of every output, and which of the active functions they are.
    covariance : ndarray of shape (a, a)
        Of the weights of the active functions.
    """
    xp, found = library.xp, np.zeros_like(covariance)

    def variance(left: Any, j: int, right: Any, k: int) -> Any:
        inner = library.put(covariance[np.ix_(groups[j], groups[k])])
        return xp.sum((left @ inner) * right, axis=1)

    def add(left: Any, j: int, right: Any, k: int, rows: Any) -> None:
        found[np.ix_(groups[j], groups[k])] += library.get(left.T @ (rows[:, None] * right))

    own = [variance(block, k, block, k) for k, block in enumerate(blocks)]
    if len(blocks) == 1:
        add(blocks[0], 0, blocks[0], 0, weights * expected_slope(xp, y[:, 0], own[0]))
        return found
    p = shares(xp, y)
    for j, k in combinations(range(len(blocks)), 2):
        share = p[:, j] + p[:, k]
        rows = xp.nonzero(share > _NEITHER)[0]
        left, right = xp.take(blocks[j], rows, axis=0), xp.take(blocks[k], rows, axis=0)
        apart = xp.take(own[j] + own[k], rows) - 2.0 * variance(left, j, right, k)
        slope = expected_slope(xp, xp.take(y[:, j] - y[:, k], rows), xp.clip(apart, 0.0, None))
        coupling = xp.take(weights * share**2, rows) * slope
        add(left, j, left, j, coupling)
        add(right, k, right, k, coupling)
        add(left, j, right, k, -coupling)
        add(right, k, left, j, -coupling)
    return found
