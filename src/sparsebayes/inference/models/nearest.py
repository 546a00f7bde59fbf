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

import warnings
from collections.abc import Callable

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from sparsebayes.callers import stack_level
from sparsebayes.inference.models.evidence import Array

# The largest change of a log variance, in any direction, that still counts; one that does not matter, and may be
# rounding where so many steps have not made it smaller; and steps at most.
_SETTLED = 1e-9
_ROUNDING, _PATIENCE = 1e-4, 10
_STEPS = 400
# Part of a first step; the smallest part; and the longest step of a log variance.
_FIRST, _LEAST, _REACH = 0.5, 0.02, 3.0
# The least part of the way that a step is taken to have gone.
_SHORTEST = 1e-3


def nearest_root(expected: Callable[[Array], Array], alpha: Array, root: Array) -> Array:
    r"""A root of :math:`\mathbf S`, by steps between precisions along their geodesics.

    What is left of the way at a covariance :math:`\mathbf C\mathbf C^\top` is the logarithm of the precision that it
    implies, in its own units.  Where rows saturate the implied precision falls steeply with the one at hand, and whole
    steps would go to and fro: a step goes a part of the way, which follows from how much of the last one was left.  In
    the units of the covariance at hand a matrix is carried along a geodesic as it is, so that what is left at two
    places can be compared; and nearly dependent functions do no harm.  Where more is left than before, a step went too
    far, and the longest one is halved.

    Warns where it does not settle, and how much of a log variance is still in doubt.

    Parameters
    ----------
    expected : callable
        Gives, for a root of the covariance of the weights, the expected Gram matrix of the active functions mixed by
        it, :math:`\mathbf C^\top\boldsymbol\Phi^\top E[\mathbf B]\boldsymbol\Phi\mathbf C`.
    alpha, root : ndarray of shape (a,), (a, a)
        Prior precisions, and any root :math:`\mathbf C` of a covariance to begin with.
    """
    if not len(alpha):
        return root
    best, closest, since, part, reach = root, np.inf, 0, _FIRST, _REACH
    before = lengths = np.zeros(0)  # what was left, and the step that was made, along the axes of the last place
    for _ in range(_STEPS):
        ratios, axes = np.linalg.eigh(expected(root) + (root.T * alpha) @ root)
        # Below this a ratio is rounding: unknown where the others are large, and surely small where they are not.
        floor = len(ratios) * np.finfo(float).eps * np.max(ratios)
        logs = np.log(np.where(ratios > floor, ratios, min(floor, 1.0)))
        left = float(np.max(np.abs(logs)))
        since += 1
        if left < closest:
            best, closest, since = root, left, 0
        if closest < _SETTLED or (closest < _ROUNDING and since > _PATIENCE):
            break
        if len(before):
            square = float(before @ before)
            made = max(float(lengths @ before) / square, _SHORTEST)
            same = np.einsum("ij,j,ij->i", axes, logs, axes)
            steep = (1.0 - float(same @ before) / square) / made  # how fast it falls; one if it is constant
            part = float(np.clip(1.0 / steep, _LEAST, 1.0)) if steep > 0.0 else 1.0
            reach *= 0.5 if left > np.max(np.abs(before)) else 1.0
        before, lengths = logs, part * logs
        lengths = lengths * min(1.0, reach / float(np.max(np.abs(lengths))))
        root = root @ (axes * np.exp(-0.5 * lengths))
    if closest >= _ROUNDING:
        warnings.warn(
            f"The covariance of the weights was not reached in {_STEPS} steps: log variances of sigma_ are known to "
            f"{closest:.2g} only, and predictions are integrated over them; rows saturate beyond rounding, or "
            "functions are nearly dependent: use fewer or narrower functions.",
            ConvergenceWarning,
            stacklevel=stack_level(),
        )
    return best
