r"""The Gaussian that is nearest to the posterior of the weights of a log rate.

Beyond the papers.  Laplace's Gaussian has the curvature at the mode, which is the rate there.  Where counts are zero
the mode takes the log rate far down, the curvature vanishes, and the variance :math:`v` of the log rate is next to the
prior's: rates :math:`e^y` integrated over it, :math:`e^{m+v/2}`, are beyond all counts, although a log rate one or two
standard deviations up would long have been seen.  Here mean and covariance are both free.  Of all Gaussians
:math:`q=N(\mathbf m,\mathbf V)` the nearest (in :math:`\mathrm{KL}(q\|p)`) maximises

.. math::

    \mathcal F(\mathbf m,\mathbf V) = \sum_n c_n[t_n(m_n+o) - r_n] - \tfrac12\mathbf m^\top\mathbf A\mathbf m
      - \tfrac12\mathrm{tr}(\mathbf A\mathbf V) + \tfrac12\log|\mathbf V| ,\qquad r_n = e^{m_n+o+v_n/2} ,

where :math:`m_n=\varphi_n^\top\mathbf m`, :math:`v_n=\varphi_n^\top\mathbf V\varphi_n`, and row n counts :math:`c_n`
times.  The expected rates are inside the objective, so that they cannot run away: at its maximum

.. math::

    \boldsymbol\Phi^\top\mathbf C(\mathbf t-\mathbf r) = \mathbf A\mathbf m ,\qquad
    \mathbf V^{-1} = \mathbf A + \boldsymbol\Phi^\top\mathbf C\,\mathrm{diag}(\mathbf r)\boldsymbol\Phi ,

the equations of the mode with the expected rate in the place of the rate at the mode.  A step goes to
:math:`\mathbf m+\mathbf R\boldsymbol\delta` and the root :math:`\mathbf R(\mathbf I+\mathbf E)` with symmetric
:math:`\mathbf E`, where :math:`\mathbf V=\mathbf R\mathbf R^\top`.  Weights are linear in
:math:`(\boldsymbol\delta,\mathbf E)`, the likelihood is log-concave in them, and :math:`\log|\mathbf I+\mathbf E|` is
concave, so that :math:`\mathcal F` is concave along every step and has one maximum.  With
:math:`\psi_n=\mathbf R^\top\varphi_n` and :math:`\mathbf P=\mathbf R^\top\mathbf V_*^{-1}\mathbf R`, the precision that
the rates at hand imply in units of the covariance at hand, its second order is

.. math::

    \boldsymbol\delta^\top\mathbf g + \mathrm{tr}[\mathbf E(\mathbf I-\mathbf P)] - \tfrac12\Big[\sum_n
    c_nr_n(\psi_n^\top\boldsymbol\delta + \psi_n^\top\mathbf E\psi_n)^2 +
    \boldsymbol\delta^\top\mathbf R^\top\mathbf A\mathbf R\boldsymbol\delta + \mathrm{tr}\,\mathbf E\mathbf P\mathbf E +
    \mathrm{tr}\,\mathbf E^2\Big] .

Conjugate gradients maximise it without forming the matrix, at the cost of two Gram matrices each, and the largest of
1, ½, ¼, … of the step that ascends enough is made.  A step is kept as the matrix
:math:`[\boldsymbol\delta\;\mathbf E]`.
"""

from __future__ import annotations

from functools import partial
from typing import NamedTuple

import numpy as np

from sparsebayes.inference.models.evidence import Array
from sparsebayes.inference.models.linalg import cholesky, inverse_upper
from sparsebayes.inference.models.newton import conjugate_gradients, line_search

_STEPS = 200
# A step that promises less than this (nats, relative to what is maximised) is below what that resolves: it is made in
# full, and after two of them, convergence being quadratic, nothing is left.  One that is seen to lead down is none of
# Newton's but rounding, where functions are nearly dependent: it is not made.
_CLOSE = 1e-10
_LAST = 2
# What part of the squared residual conjugate gradients leave on the way and at the end, and directions at most.
_ROUGH, _FINE = 1e-3, 1e-12
_DIRECTIONS = 100
# Log of an expected rate beyond which a step is too long.
_LARGEST = 600.0


class Nearest(NamedTuple):
    """Mean and covariance of the nearest Gaussian, and whether it was reached."""

    mean: Array
    covariance: Array
    converged: bool


class _Gaussian(NamedTuple):
    """A Gaussian on the way.

    Attributes
    ----------
    mean, root : ndarray of shape (a,), (a, a)
        Mean, and a root of the covariance.
    mixed : ndarray of shape (N, a)
        Rows in units of the covariance, whose squares sum to the variances of the log rates.
    rates : ndarray of shape (N,)
        Expected rates, as often as the rows count.
    height : float
        What is maximised, up to a constant; minus infinity where a rate is out of range, or the root is none.
    """

    mean: Array
    root: Array
    mixed: Array
    rates: Array
    height: float


class _Posterior(NamedTuple):
    """Active columns, counts, how often each row counts, log rate at zero output, and prior precisions."""

    columns: Array
    counts: Array
    weights: Array
    offset: float
    alpha: Array

    def at(self, mean: Array, root: Array, change: Array | None = None) -> _Gaussian:
        """Everything there, the root to be multiplied by a symmetric ``change``."""
        if change is not None:
            definite, root = bool(np.linalg.eigvalsh(change)[0] > 0.0), root @ change
            if not definite:
                return _Gaussian(mean, root, root, root, -np.inf)
        mixed, log_rate = self.columns @ root, self.columns @ mean + self.offset
        expected = log_rate + 0.5 * np.einsum("na,na->n", mixed, mixed)
        if np.max(expected, initial=0.0) > _LARGEST:
            return _Gaussian(mean, root, mixed, expected, -np.inf)
        rates = self.weights * np.exp(expected)
        fit = float((self.weights * self.counts) @ log_rate) - float(np.sum(rates))
        prior = float(self.alpha @ (mean**2 + np.einsum("ab,ab->a", root, root)))
        return _Gaussian(mean, root, mixed, rates, fit - 0.5 * prior + float(np.linalg.slogdet(root)[1]))

    def moved(self, here: _Gaussian, step: Array, length: float) -> _Gaussian:
        """The Gaussian a part of a step away."""
        change = np.eye(len(step)) + length * step[:, 1:]
        return self.at(here.mean + length * (here.root @ step[:, 0]), here.root, change)

    def newton(self, here: _Gaussian, left: float) -> tuple[_Gaussian, Array, float]:
        """This Gaussian with its root along the axes of the implied precision, Newton's step, and what it promises."""
        prior, rates = (here.root.T * self.alpha) @ here.root, here.rates
        ratios, axes = np.linalg.eigh((here.mixed.T * rates) @ here.mixed + prior)
        ratios = np.maximum(ratios, len(ratios) * np.finfo(float).eps * ratios[-1])  # below, they are rounding
        here = here._replace(root=here.root @ axes, mixed=here.mixed @ axes)
        mixed, prior = here.mixed, axes.T @ prior @ axes
        residual = self.columns.T @ (self.weights * self.counts - rates) - self.alpha * here.mean
        uphill = np.column_stack([here.root.T @ residual, np.diag(1.0 - ratios)])
        # What the curvature has beside the coupling of mean and root by the rows is diagonal in these axes.
        own = np.column_stack([ratios, 1.0 + 0.5 * (ratios[:, None] + ratios)])

        def curve(step: Array) -> Array:
            mean, root = step[:, 0], step[:, 1:]
            weighted = rates * (mixed @ mean + np.einsum("na,na->n", mixed @ root, mixed))
            return np.column_stack(
                [mixed.T @ weighted + prior @ mean, (mixed.T * weighted) @ mixed + own[:, 1:] * root]
            )

        step, _ = conjugate_gradients(curve, uphill, lambda rest: rest / own, left, _DIRECTIONS)
        return here, step, float(np.vdot(uphill, step))


def nearest_to_rates(
    columns: Array, counts: Array, weights: Array, offset: float, alpha: Array, mode: Array
) -> Nearest:
    """The Gaussian nearest to the posterior of the weights of a log rate.

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
    if not len(alpha):
        return Nearest(np.zeros(0), np.zeros((0, 0)), True)
    # Any beginning leads to the same end.  This one is narrow, all variances of log rates below one, so that no rate is
    # out of range.
    rates = np.maximum(weights * np.exp(columns @ mode + offset), 1.0)
    root = inverse_upper(cholesky((columns.T * rates) @ columns + np.diag(alpha)))
    posterior, last = _Posterior(columns, counts, weights, offset, alpha), 0
    here = posterior.at(mode, root)
    for _ in range(_STEPS):
        here, step, promise = posterior.newton(here, _FINE if last else _ROUGH)
        resolved = _CLOSE * max(1.0, abs(here.height))
        last += promise <= resolved
        move = partial(posterior.moved, here, step)
        there = move(1.0) if last else line_search(move, here.height, promise)
        if there is None or there.height < here.height - resolved:
            last = 0
            break
        here = there
        if last == _LAST:
            break
    return Nearest(here.mean, here.root @ here.root.T, last == _LAST)
