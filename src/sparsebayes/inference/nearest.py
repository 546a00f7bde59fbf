r"""The Gaussian about the mode that is nearest to the posterior of a classifier's weights.

Beyond the papers.  Laplace's covariance follows from the curvature *at* the mode.  Where classes are separable that is
next to nothing at every row, and the covariance next to the prior's, although a little way from the mode the
likelihood falls steeply: probabilities that are integrated over it are far too timid.  Of all Gaussians
:math:`q=N(\boldsymbol\mu,\mathbf S)` about the mode the nearest (in :math:`\mathrm{KL}(q\|p)`) maximises

.. math::  E_q[\log p(\mathbf t|\mathbf w)] - \tfrac12\mathrm{tr}(\mathbf A\mathbf S) + \tfrac12\log|\mathbf S| ,

which is concave in the Cholesky factor of :math:`\mathbf S` where the likelihood is log-concave, so that there is one
maximum.  Its derivative is zero where the curvature is replaced by its expectation:

.. math::  \mathbf S^{-1} = \mathbf A + \boldsymbol\Phi^\top E_q[\mathbf B]\boldsymbol\Phi .

With three classes or more a likelihood of nearly the same curvature stands in for theirs (``likelihood/expected.py``).
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
from sparsebayes.likelihood import expected_slope, softmax

# The largest change of a log variance, in any direction, that still counts; and steps at most.
_SETTLED = 1e-7
_STEPS = 200
# Part of a first step; the smallest part; and the longest step of a log variance.
_FIRST, _LEAST, _REACH = 0.5, 0.02, 3.0
# Share of two classes in a row below which it tells nothing of one against the other.
_NEITHER = 1e-9


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
    last distance is left.  All is computed in units of the covariance at hand, in which nearly dependent functions do
    no harm.

    Parameters
    ----------
    expected : callable
        Gives, for a root of the covariance of the weights, the expected Gram matrix of the active functions mixed by
        it, :math:`\mathbf C^\top\boldsymbol\Phi^\top E[\mathbf B]\boldsymbol\Phi\mathbf C`.
    alpha : ndarray of shape (a,)
        Prior precisions.
    root : ndarray of shape (a, a)
        Any root :math:`\mathbf C` of the covariance to begin with.
    """
    last, part = None, _FIRST
    for _ in range(_STEPS):
        ratios, axes = np.linalg.eigh(expected(root) + (root.T * alpha) @ root)
        known = ratios > len(ratios) * np.finfo(float).eps * np.max(ratios, initial=0.0)  # the others are rounding
        logs = np.log(np.where(known, ratios, 1.0))
        if np.max(np.abs(logs), initial=0.0) < _SETTLED:
            break
        left = (axes * logs) @ axes.T
        if last is not None:
            steep = (1.0 - np.vdot(left, last) / np.vdot(last, last)) / part  # how fast it falls; one if it is constant
            part = float(np.clip(1.0 / steep, _LEAST, 1.0)) if steep > 0.0 else 1.0
        part, last = min(part, _REACH / float(np.max(np.abs(logs)))), left
        root = root @ ((axes * np.exp(-0.5 * part * logs)) @ axes.T)
    return root @ root.T


def expected_gram(
    library: Library, weights: Any, y: Any, blocks: list[Any], groups: list[NDArray[np.intp]], root: Array
) -> Array:
    r"""Expected Gram matrix of the active functions, mixed by a root of the covariance of their weights.

    Parameters
    ----------
    library : Library
        Where the rows live.
    weights, y : arrays of shape (N,), (N, K)
        Sample weights, and outputs at the mode.
    blocks, groups : list of (N, a_k) arrays, list of ndarray of int
        Active columns of every output, and which of the active functions they are.
    root : ndarray of shape (a, a)
        Root of the covariance: squares of a row's mixed functions sum to the variance of its output.
    """
    xp, mixing = library.xp, [library.put(root[group]) for group in groups]

    def gram(mixed: Any, mean: Any, counts: Any) -> Any:
        slope = expected_slope(xp, mean, xp.sum(mixed * mixed, axis=1))
        return mixed.T @ ((counts * slope)[:, None] * mixed)

    if len(blocks) == 1:
        return library.get(gram(blocks[0] @ mixing[0], y[:, 0], weights))
    p, total = softmax(xp, y), library.put(np.zeros_like(root))
    for j, k in combinations(range(len(blocks)), 2):
        share = p[:, j] + p[:, k]
        rows = xp.nonzero(share > _NEITHER)[0]
        first, second = (xp.take(blocks[i], rows, axis=0) @ mixing[i] for i in (j, k))
        counts = xp.take(weights * share**2, rows)
        total = total + gram(first - second, xp.take(y[:, j] - y[:, k], rows), counts)
    return library.get(total)
