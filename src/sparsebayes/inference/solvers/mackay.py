r"""The original relevance vector machine: all precisions re-estimated together, from the whole dictionary.

Report on Tipping 2001, eqs 9-13 (regression) and 17-20 (classification), with its Gamma hyperpriors.  The two rules for
the precisions have the same fixed points, and differ in how they get there:

=========  =============================================================  ==========================================
solver     precision                                                      an irrelevant function's precision grows
=========  =============================================================  ==========================================
``mackay`` :math:`\alpha=(T\gamma+2a)/(Tm+2b)`                            geometrically
``em``     :math:`\alpha=(T+2a)/(T(m+\Sigma)+2b)`                         linearly
=========  =============================================================  ==========================================

Here :math:`m=\mu^2`, the mean over T targets; where the posterior is Laplace's, :math:`m` carries the term by which the
mode moves with the precision, so that the fixed point is that of the evidence and not of its linearisation.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from sparsebayes.inference.models.evidence import Array
from sparsebayes.inference.models.interface import Active
from sparsebayes.inference.solvers.fixed_point import FixedPoint
from sparsebayes.inference.solvers.solver import is_number

# A function leaves MacKay's sweeps when it is not relevant and this weakly determined: by then its precision has grown
# so far that several may leave at once.
WEAK = 0.02
_EPS = float(np.finfo(float).eps)
_VANISHING = 1e-200


class MacKay(FixedPoint):
    r"""The fixed point of Tipping 2001, eqs 12-13, after MacKay.

    Parameters
    ----------
    a, b : float
        Gamma prior of the precisions; ``b`` is relative to the units of the data.
    c, d : float
        Gamma prior of the inverse noise variance, ``d`` relative likewise.
    alpha_max : float, optional
        Let functions leave the sweeps only when their precision exceeds this, relative to the units of the data, as
        the original implementations did; None lets them leave by :math:`\theta\le0` once they are weakly determined,
        many sweeps earlier.
    tol, max_iter, random_state : optional
        As in the estimators; where given here, they win over the estimator's.  A sweep counts as one move.
    callback : callable, optional
        ``callback(record, active)`` after every sweep or move; returning True stops the fit.
    """

    def __init__(
        self,
        a: float = 0.0,
        b: float = 0.0,
        c: float = 0.0,
        d: float = 0.0,
        alpha_max: float | None = None,
        tol: float | None = None,
        max_iter: int | None = None,
        random_state: int | None = None,
        callback: Callable[..., bool | None] | None = None,
    ) -> None:
        super().__init__(a, b, c, d, tol, max_iter, random_state, callback)
        self.alpha_max = alpha_max

    def check(self) -> None:
        """Raise where a setting is out of range."""
        super().check()
        if self.alpha_max is not None and not (is_number(self.alpha_max) and 1.0 < self.alpha_max < np.inf):
            raise ValueError(f"alpha_max={self.alpha_max!r}: expected None, or a finite number above 1")

    def precisions(self, active: Active) -> Array:
        r""":math:`\gamma_m/\mu_m^2`, with the prior (eq. 12)."""
        targets, rate = active.problem.n_targets, self.hyperpriors.rates(active)[active.indices]
        gamma = np.maximum(active.well_determined, _EPS)
        return (targets * gamma + 2.0 * self.a) / np.maximum(targets * active.squared_mean() + 2.0 * rate, _VANISHING)

    def noise_precision(self, active: Active) -> float:
        r""":math:`(N-\sum_m\gamma_m)/\|\mathbf t-\mathbf y\|^2`, with the prior (eq. 13)."""
        problem = active.problem
        free = max(problem.n_effective - float(np.sum(active.well_determined)), _EPS * problem.n_effective)
        wanted = problem.n_targets * free + 2.0 * self.c
        return wanted / max(active.residual_sumsq + 2.0 * self.hyperpriors.noise_rate(active), _VANISHING)

    def leaving(self, active: Active, theta: Array) -> NDArray[np.bool_]:
        r""":math:`\theta_m\le0` and hardly determined, or a precision beyond the limit."""
        if self.alpha_max is None:
            return (theta <= 0.0) & (active.well_determined <= WEAK)
        problem = active.problem
        unit = problem.sqnorms[active.indices] / (problem.n_effective * problem.mean_square)
        return active.alpha > self.alpha_max * unit


class EM(FixedPoint):
    r"""Expectation-maximisation over the weights (Tipping 2001, appendix): slower, and it ascends by theory.

    An irrelevant precision grows only linearly, so a function leaves as soon as :math:`\theta_m\le0`: the evidence
    without it is then larger at every precision.

    Parameters
    ----------
    a, b : float
        Gamma prior of the precisions; ``b`` is relative to the units of the data.
    c, d : float
        Gamma prior of the inverse noise variance, ``d`` relative likewise.
    tol, max_iter, random_state : optional
        As in the estimators; where given here, they win over the estimator's.  A sweep counts as one move.
    callback : callable, optional
        ``callback(record, active)`` after every sweep or move; returning True stops the fit.
    """

    over_relaxed = True

    def precisions(self, active: Active) -> Array:
        r""":math:`1/\langle w_m^2\rangle`, with the prior."""
        targets, rate = active.problem.n_targets, self.hyperpriors.rates(active)[active.indices]
        second = active.squared_mean() + active.variance
        return (targets + 2.0 * self.a) / np.maximum(targets * second + 2.0 * rate, _VANISHING)

    def noise_precision(self, active: Active) -> float:
        r""":math:`N/\langle\|\mathbf t-\boldsymbol\Phi\mathbf w\|^2\rangle`, with the prior."""
        problem = active.problem
        spread = problem.n_targets * float(np.sum(active.well_determined)) / active.beta  # tr(ΦΣΦᵀ) = Σγ/β
        expected = active.residual_sumsq + spread + 2.0 * self.hyperpriors.noise_rate(active)
        return (problem.n_targets * problem.n_effective + 2.0 * self.c) / max(expected, _VANISHING)
