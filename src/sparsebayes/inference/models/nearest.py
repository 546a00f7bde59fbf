r"""The Gaussians that are nearest to the posterior of the weights (in :math:`\mathrm{KL}(q\|p)`); beyond the papers.

Laplace's covariance follows from the curvature at the mode, which is next to nothing where classes are separable, or
all counts zero.  The nearest Gaussian of covariance S has the expected one in its place,

.. math::  \mathbf S^{-1} = \mathbf A + \boldsymbol\Phi^\top E_q[\mathbf B]\boldsymbol\Phi .

Of classes it is the nearest about the mode (docs/classification.md, section 7), of log rates the mean is free as well
(docs/trust.md).  Evidence, selection and certificate are Laplace's always.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from sparsebayes.callers import stack_level
from sparsebayes.design import DenseDesign
from sparsebayes.inference.models.evidence import Array
from sparsebayes.inference.models.linalg import cholesky, inverse_upper
from sparsebayes.inference.models.mode import LaplaceProblem, Mode, find_mode
from sparsebayes.likelihood import Poisson

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
    implies, in its own units.  A step goes a part of it, which follows from how much of the last one was left; where
    more is left than before, the longest step is halved.  Warns where it does not settle.

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


def nearest_to_rates(
    columns: Array, counts: Array, weights: Array, offset: float, alpha: Array, mode: Array
) -> tuple[Array, Array]:
    """Mean and covariance of the Gaussian nearest to the posterior of the weights of a log rate.

    Parameters
    ----------
    columns : ndarray of shape (N, a)
        Functions in the model on the rows.
    counts, weights : ndarray of shape (N,)
        Counts, and how often each row counts.
    offset : float
        Log rate at zero output.
    alpha, mode : ndarray of shape (a,)
        Prior precisions, and the mode of the posterior.
    """
    design, every = DenseDesign(columns), np.ones(len(alpha), dtype=bool)

    def best_mean(mixed: Array) -> Mode:
        """The mean for a covariance, from the rows in its units, whose squares sum to the variances of log rates."""
        raised = Poisson(counts, weights, offset + 0.5 * np.sum(mixed**2, axis=1))
        problem = LaplaceProblem(design, raised, every)
        return find_mode(problem.active(np.flatnonzero(every).tolist()).at(mode), alpha)

    def expected(root: Array) -> Array:
        mixed = columns @ root
        return (mixed.T * best_mean(mixed).point.curvature.diagonal[:, 0]) @ mixed

    # Any beginning leads to the same end.  This one is narrow, all variances of log rates below one, so that no rate is
    # out of range.
    rates = np.maximum(weights * np.exp(columns @ mode + offset), 1.0)
    root = nearest_root(expected, alpha, inverse_upper(cholesky((columns.T * rates) @ columns + np.diag(alpha))))
    return best_mean(columns @ root).mean, root @ root.T
