r"""Which functions may be believed: the rule of entry, and what is reported of each one kept.

At the true noise, a function that has nothing to do with the targets has :math:`q_m^2/s_m \sim \chi_1^2`; this ratio is
the signal-to-noise ratio of the component (Shutin et al. 2011).  The papers' rule :math:`\theta_m > 0` asks that it
exceed 1, which a third of all irrelevant functions do.  The conservative rule asks for

.. math:: q_m^2/s_m > 2\log M ,

so that at most :math:`M\,P(\chi_1^2 > 2\log M) \le (\pi\log M)^{-1/2}` of M irrelevant functions are expected above
it, at any one model that was fixed beforehand.

As an objective: a function at its best precision brings :math:`\tfrac12(r-1-\log r)` nats with :math:`r = q^2/s`.  A
prior on the support that charges every function just that much at the threshold makes the rule a maximisation like any
other: entry, deletion, noise and certificate all judge by evidence plus log prior.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.stats import chi2

from sparsebayes.inference.evidence import Array, contribution
from sparsebayes.inference.interface import Active

SUPPORTS = ("evidence", "conservative")


@dataclass(frozen=True)
class SupportRule:
    r"""How much evidence a function must bring.

    Attributes
    ----------
    threshold : float
        Smallest :math:`q^2/s` (mean over the targets) with which a function stays.
    expected_false : float
        Expected number of irrelevant functions above the threshold, at the true noise, if all of them were irrelevant.
    cost : float
        Log prior odds against a function, in nats: what it brings at the threshold.
    """

    threshold: float
    expected_false: float
    cost: float

    @classmethod
    def named(cls, name: str, n_functions: int, n_targets: int = 1) -> SupportRule:
        r"""The rule of this name for M functions.

        With T targets that share a support, :math:`\sum_t q_t^2/s \sim \chi_T^2`, and the conservative threshold is the
        quantile with the same probability.
        """
        if name == "evidence" or n_functions < 2:
            return cls(1.0, n_functions * float(chi2.sf(n_targets, n_targets)), 0.0)
        tail = float(chi2.sf(2.0 * np.log(n_functions), 1))
        threshold = max(1.0, float(chi2.isf(tail, n_targets)) / n_targets)
        cost = 0.5 * n_targets * (threshold - 1.0 - float(np.log(threshold)))
        return cls(threshold, n_functions * tail, cost)


@dataclass(frozen=True)
class Support:
    """What can be said of each function in a model.

    Attributes
    ----------
    evidence_lost : ndarray of shape (a,)
        Fall of the log evidence if the function alone were removed (T&F eq. 18).
    signal_to_noise : ndarray of shape (a,)
        :math:`q^2/s`.
    """

    evidence_lost: Array
    signal_to_noise: Array

    @classmethod
    def of(cls, active: Active) -> Support:
        """Judge every function with itself left out."""
        s, q2 = active.leave_one_out()
        lost = active.problem.n_targets * contribution(active.alpha, s, q2)
        return cls(lost, q2 / np.where(s > 0.0, s, np.inf))

    def take(self, order: NDArray[np.intp]) -> Support:
        """The same in another order."""
        return Support(self.evidence_lost[order], self.signal_to_noise[order])
