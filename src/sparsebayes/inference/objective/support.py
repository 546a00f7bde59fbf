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

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import chi2

from sparsebayes.inference.models.evidence import Array, contribution
from sparsebayes.inference.models.interface import Active
from sparsebayes.threads import one_thread

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
    r"""What can be said of each function in a model.

    Attributes
    ----------
    evidence_lost : ndarray of shape (a,)
        Fall of the log evidence if the function alone were removed and all other precisions (and the noise, and the row
        weights of a robust likelihood) stayed as they are.  With Gaussian noise that is T&F eq. 18.  Otherwise the
        weights follow to a mode of their own, where the curvature is another, so that the model without the function is
        computed and its evidence subtracted; of a bound on the evidence, that bound at its best parameters.
    signal_to_noise : ndarray of shape (a,)
        :math:`q^2/s`, by the problem that is Gaussian at the mode.
    fit_lost : ndarray of shape (a,), optional
        The part of the evidence lost that is a fall of :math:`\log p(\mathbf t|\mathbf w) -
        \tfrac12\mathbf w^\top\mathbf A\mathbf w` at its largest, which is never negative; None in models saved
        before it was kept.
    """

    evidence_lost: Array
    signal_to_noise: Array
    fit_lost: Array | None = None

    @classmethod
    def of(cls, active: Active) -> Support:
        """Judge every function with itself left out."""
        s, q2 = active.leave_one_out()
        ratio = q2 / np.where(s > 0.0, s, np.inf)
        if not active.exact:
            lost, fit = _measured(active)
            return cls(lost, ratio, fit)
        n_targets = active.problem.n_targets
        return cls(n_targets * contribution(active.alpha, s, q2), ratio, 0.5 * n_targets * q2 / (active.alpha + s))

    @property
    def lost(self) -> tuple[Array, Array] | None:
        """Evidence and fit lost without each function; None where the latter was not kept."""
        return None if self.fit_lost is None else (self.evidence_lost, self.fit_lost)

    def take(self, order: NDArray[np.intp]) -> Support:
        """What is said of the functions, in another order."""
        fit = None if self.fit_lost is None else self.fit_lost[order]
        return Support(self.evidence_lost[order], self.signal_to_noise[order], fit)


class Supports(Sequence[Support]):
    """What can be said of the functions of some models, computed when it is first asked for.

    Where the evidence is not exact, a model without each function has to be found: as long as a fit may take.  Copies
    and files have the plain list.
    """

    def __init__(self, each: list[Callable[[], Support]]) -> None:
        self._later, self._known, self._size = each, None, len(each)

    def all(self) -> list[Support]:
        """Of every model."""
        if self._known is None:
            with one_thread():
                self._known, self._later = [compute() for compute in self._later], []
        return self._known

    def __len__(self) -> int:
        return self._size

    def __getitem__(self, k: Any) -> Any:
        return self.all()[k]

    def __reduce__(self) -> tuple[Any, ...]:
        return list, (self.all(),)


def _measured(active: Active) -> tuple[Array, Array]:
    """Evidence lost without each function, and the part of it that is fit, by computing the models without them."""
    evidence, fit = np.empty(active.size), np.empty(active.size)
    for j in range(active.size):
        without = active.without(j)
        evidence[j] = active.evidence() - without.evidence()
        fit[j] = _height(active) - _height(without)
    return evidence, np.maximum(fit, 0.0)


def _height(active: Active) -> float:
    r""":math:`\log p(\mathbf t|\mathbf w) - \tfrac12\mathbf w^\top\mathbf A\mathbf w` at the posterior's weights."""
    occam = float(np.sum(np.log(active.alpha))) + float(np.linalg.slogdet(active.covariance)[1])
    return active.evidence() - 0.5 * occam
