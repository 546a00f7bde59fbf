r"""The noise variance: its profile and its re-estimation.

With :math:`\mathbf R\mathbf A^{-1/2} = \mathbf X\,\mathrm{diag}(d)\,\mathbf Y^\top` and
:math:`\tilde z = \mathbf X^\top z`, the evidence of T targets at fixed :math:`\boldsymbol\alpha` is a function of
:math:`\beta = \sigma^{-2}` alone,

.. math::

    \mathcal L(\beta) = \tfrac{TN}2\log\tfrac\beta{2\pi} - \tfrac T2\sum_i\log(1+\beta d_i^2)
                        - \tfrac\beta2\Big[\rho + \sum_i \frac{\tilde z_i^2}{1+\beta d_i^2}\Big] ,

which costs nothing to evaluate, to maximise or to differentiate.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import cast

import numpy as np
from scipy.optimize import brentq

from sparsebayes.inference.models.evidence import Array
from sparsebayes.inference.models.interface import Noisy


@dataclass(frozen=True)
class NoiseProfile:
    """Evidence as a function of the noise alone, all precisions held."""

    n: float
    n_targets: int
    d2: Array
    z2: Array
    rest: float

    @classmethod
    def of(cls, active: Noisy, shape: float = 0.0, rate: float = 0.0) -> NoiseProfile:
        r"""Spectrum of the present model.

        A Gamma(shape, rate) prior on :math:`\beta` is so many more observations with so much more squared error.
        """
        scaled = active.R / np.sqrt(active.alpha)
        left, d, _ = np.linalg.svd(scaled)
        d = np.append(d, np.zeros(len(left) - len(d)))  # directions of the basis that no function has
        z2 = np.sum((left.T @ active.z) ** 2, axis=1)
        problem = active.problem
        n = problem.n_effective + 2.0 * shape / problem.n_targets
        return cls(n, problem.n_targets, d**2, z2, active.rest + 2.0 * rate)

    def evidence(self, log_beta: float) -> float:
        """Log evidence at this noise."""
        beta = np.exp(log_beta)
        shrink = 1.0 + beta * self.d2
        fit = self.n_targets * (self.n * (log_beta - np.log(2 * np.pi)) - float(np.sum(np.log(shrink))))
        return 0.5 * fit - 0.5 * beta * (self.rest + float(np.sum(self.z2 / shrink)))

    def slope(self, log_beta: float) -> float:
        r"""Derivative of the evidence with respect to :math:`\log\beta`."""
        beta = np.exp(log_beta)
        shrink = 1.0 + beta * self.d2
        gamma = float(np.sum(beta * self.d2 / shrink))
        residual = self.rest + float(np.sum(self.z2 / shrink**2))
        return 0.5 * (self.n_targets * (self.n - gamma) - beta * residual)

    def maximum(self, log_beta: float, log_beta_limit: float) -> tuple[float, float]:
        """Best noise near the given one: ``(log beta, evidence)``, never worse than where it began."""
        low, high = log_beta - 6.0, min(log_beta + 6.0, log_beta_limit)
        if self.slope(high) >= 0.0:
            best = high
        elif self.slope(low) <= 0.0:
            best = low
        else:
            best = cast(float, brentq(self.slope, low, high, xtol=1e-10))
        value, here = self.evidence(best), self.evidence(log_beta)
        return (best, value) if value >= here else (log_beta, here)


def paper_update(active: Noisy) -> float:
    r""":math:`\|\mathbf t-\mathbf y\|^2/(N-\sum_m\gamma_m)` (T&F step 9), for T targets together."""
    problem = active.problem
    free = problem.n_effective - float(np.sum(active.well_determined))
    free = max(free, np.finfo(float).eps * problem.n_effective)
    return active.residual_sumsq / (problem.n_targets * free)


def with_paper_noise(active: Noisy) -> Noisy | None:
    """With the noise variance of the paper's update, shortened until the evidence rises; None where it never does."""
    old, new = 1.0 / active.beta, max(paper_update(active), active.problem.noise_floor)
    for _ in range(30):
        trial = active.moved(active.alpha, 1.0 / new)
        if trial.evidence() > active.evidence():
            return trial
        new = float(np.sqrt(new * old))
    return None


def with_best_noise(active: Noisy, shape: float = 0.0, rate: float = 0.0) -> Noisy:
    """With the noise variance that is best for the present precisions, under a Gamma prior (``NoiseProfile.of``)."""
    profile = NoiseProfile.of(active, shape, rate)
    log_beta, _ = profile.maximum(float(np.log(active.beta)), -float(np.log(active.problem.noise_floor)))
    return active.moved(active.alpha, float(np.exp(log_beta)))
