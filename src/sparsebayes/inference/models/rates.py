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
1, ½, ¼, … of the step that ascends enough is made.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from sparsebayes.inference.models.evidence import Array
from sparsebayes.inference.models.linalg import cholesky, inverse_upper

_STEPS = 200
# A step that promises less than this (nats, relative to what is maximised) is below what that resolves: it is made in
# full, and after two of them, convergence being quadratic, nothing is left.  One that is seen to lead down is none of
# Newton's but rounding, where functions are nearly dependent: it is not made.
_CLOSE = 1e-10
_LAST = 2
# How far conjugate gradients reduce the residual on the way and at the end, and directions at most.
_ROUGH, _FINE = 0.03, 1e-6
_DIRECTIONS = 100
# Log of an expected rate beyond which a step is too long; the shortest part of a step; and the part of what it promises
# that it must bring.
_LARGEST = 600.0
_SHORTEST = 1e-10
_ENOUGH = 1e-4


class Nearest(NamedTuple):
    """Mean and covariance of the nearest Gaussian, and whether it was reached."""

    mean: Array
    covariance: Array
    converged: bool


class _Step(NamedTuple):
    """A change of the mean and of the root, in units of the covariance at hand."""

    mean: Array
    root: Array

    def along(self, other: _Step) -> float:
        return float(self.mean @ other.mean + np.vdot(self.root, other.root))

    def plus(self, other: _Step, length: float) -> _Step:
        return _Step(self.mean + length * other.mean, self.root + length * other.root)


@dataclass(frozen=True)
class _Rows:
    """Active columns, counts, how often each row counts, log rate at zero output, and prior precisions."""

    columns: Array
    counts: Array
    weights: Array
    offset: float
    alpha: Array


@dataclass(frozen=True)
class _Gaussian:
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
        What is maximised, up to a constant; minus infinity where a rate is out of range.
    """

    rows: _Rows
    mean: Array
    root: Array
    mixed: Array
    rates: Array
    height: float

    @classmethod
    def at(cls, rows: _Rows, mean: Array, root: Array) -> _Gaussian:
        """Everything there."""
        mixed, log_rate = rows.columns @ root, rows.columns @ mean + rows.offset
        expected = log_rate + 0.5 * np.einsum("na,na->n", mixed, mixed)
        if np.max(expected, initial=0.0) > _LARGEST:
            return cls(rows, mean, root, mixed, rows.weights, -np.inf)
        rates = rows.weights * np.exp(expected)
        fit = float((rows.weights * rows.counts) @ log_rate) - float(np.sum(rates))
        prior = float(rows.alpha @ (mean**2 + np.einsum("ab,ab->a", root, root)))
        return cls(rows, mean, root, mixed, rates, fit - 0.5 * prior + float(np.linalg.slogdet(root)[1]))

    def step(self, step: _Step, length: float) -> _Gaussian | None:
        """The Gaussian a part of a step away; None where its root would be none."""
        change = np.eye(len(self.mean)) + length * step.root
        if np.linalg.eigvalsh(change)[0] <= 0.0:
            return None
        return _Gaussian.at(self.rows, self.mean + length * (self.root @ step.mean), self.root @ change)

    def newton(self, reduced: float) -> tuple[_Gaussian, _Step, float]:
        """This Gaussian with its root along the axes of the implied precision, Newton's step, and what it promises."""
        prior = (self.root.T * self.rows.alpha) @ self.root
        ratios, axes = np.linalg.eigh((self.mixed.T * self.rates) @ self.mixed + prior)
        ratios = np.maximum(ratios, len(ratios) * np.finfo(float).eps * ratios[-1])  # below, they are rounding
        here = _Gaussian(self.rows, self.mean, self.root @ axes, self.mixed @ axes, self.rates, self.height)
        mixed, rates, prior = here.mixed, self.rates, axes.T @ prior @ axes
        residual = self.rows.columns.T @ (self.rows.weights * self.rows.counts - rates) - self.rows.alpha * self.mean
        uphill = _Step(here.root.T @ residual, np.diag(1.0 - ratios))
        # What the curvature has beside the coupling of mean and root by the rows is diagonal in these axes.
        own = _Step(ratios, 1.0 + 0.5 * (ratios[:, None] + ratios))

        def curve(step: _Step) -> _Step:
            weighted = rates * (mixed @ step.mean + np.einsum("na,na->n", mixed @ step.root, mixed))
            return _Step(mixed.T @ weighted + prior @ step.mean, (mixed.T * weighted) @ mixed + (own.root * step.root))

        step = _solve(curve, uphill, own, reduced)
        return here, step, uphill.along(step)


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
    here, last = _Gaussian.at(_Rows(columns, counts, weights, offset, alpha), mode, root), 0
    for _ in range(_STEPS):
        here, step, promise = here.newton(_FINE if last else _ROUGH)
        resolved = _CLOSE * max(1.0, abs(here.height))
        last += promise <= resolved
        there = here.step(step, 1.0) if last else _line_search(here, step, promise)
        if there is None or there.height < here.height - resolved:
            last = 0
            break
        here = there
        if last == _LAST:
            break
    return Nearest(here.mean, here.root @ here.root.T, last == _LAST)


def _line_search(here: _Gaussian, step: _Step, promise: float) -> _Gaussian | None:
    """Where the largest of 1, ½, ¼, … of a step that ascends enough (Armijo) leads; None if none does."""
    length = 1.0
    while length > _SHORTEST:
        there = here.step(step, length)
        if there is not None and there.height >= here.height + _ENOUGH * length * promise:
            return there
        length *= 0.5
    return None


def _solve(curve: Callable[[_Step], _Step], uphill: _Step, own: _Step, reduced: float) -> _Step:
    """Solve ``curve(step) = uphill`` by conjugate gradients, ``own`` being the diagonal to precondition with."""

    def scaled(left: _Step) -> _Step:
        return _Step(left.mean / own.mean, left.root / own.root)

    found, left = _Step(np.zeros_like(uphill.mean), np.zeros_like(uphill.root)), uphill
    direction = scaled(left)
    size = first = left.along(direction)
    for _ in range(_DIRECTIONS):
        if size <= reduced**2 * first or size == 0.0:
            break
        bent = curve(direction)
        length = size / direction.along(bent)
        found, left = found.plus(direction, length), left.plus(bent, -length)
        better = scaled(left)
        before, size = size, left.along(better)
        direction = better.plus(direction, size / before)
    return found
