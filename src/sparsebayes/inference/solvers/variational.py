r"""The factorial posterior q(w) q(α) q(β) of Bishop & Tipping 2000, with its lower bound.

Each factor is the exact conditional given the moments of the others,

.. math::

    q(\mathbf w) = \mathcal N(\boldsymbol\mu, \boldsymbol\Sigma),\qquad
    q(\alpha_m) = \mathrm{Gamma}\big(a+\tfrac T2,\ b_m+\tfrac12\textstyle\sum_t\langle w_{mt}^2\rangle\big),\qquad
    q(\beta) = \mathrm{Gamma}\big(c+\tfrac{TN}2,\ d'+\tfrac12\langle\|\mathbf t-\mathbf y\|^2\rangle\big),

and :math:`\boldsymbol\mu, \boldsymbol\Sigma` are those of the other solvers at :math:`\langle\alpha\rangle` and
:math:`\langle\beta\rangle`.  With the shapes at these values the bound is a function of the two means alone, and equals

.. math::

    \mathcal F = \mathcal L(\langle\alpha\rangle,\langle\beta\rangle)
       + \sum_m\big[a\log\langle\alpha_m\rangle-b_m\langle\alpha_m\rangle + a\log b_m + \kappa(a,\tfrac T2)\big]
       + c\log\langle\beta\rangle-d'\langle\beta\rangle + c\log d' + \kappa(c,\tfrac{TN}2),

with :math:`\kappa(a,h)=\log\Gamma(\tilde a)-\log\Gamma(a)-\tilde a\log\tilde a+\tilde a`, :math:`\tilde a=a+h`: the
evidence plus the log hyperpriors, but for a constant for every function (``docs/solvers.md`` derives it).  So the
bound never falls at equal M, and what the solver's records and certificate call the objective is the bound without
these constants, which can be compared where functions come and go.  In two-class problems :math:`\mathcal L` is the
bound of Jaakkola & Jordan (``bound.py``).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import gammaln

from sparsebayes.inference.models.bound import BoundActive
from sparsebayes.inference.models.interface import Active
from sparsebayes.inference.solvers.mackay import EM
from sparsebayes.inference.solvers.solver import Kind


@dataclass(eq=False, repr=False)
class Variational(EM):
    r"""Variational relevance vector machine.

    The means of :math:`q(\alpha_m)` and :math:`q(\beta)`, shape over rate, are the updates of ``EM``.  A function
    leaves as soon as :math:`\theta_m\le0`: iterating :math:`q(w_m)` and :math:`q(\alpha_m)` alone would then send
    :math:`\langle\alpha_m\rangle` to where only the hyperprior holds it.

    Parameters
    ----------
    a, b : float
        Gamma prior of the precisions; ``b`` is relative to the units of the data.
    c, d : float
        Gamma prior of the inverse noise variance, ``d`` relative likewise.
    tol, max_iter, random_state, callback : optional
        As in ``Sequential``; a sweep counts as one move.
    """

    takes = frozenset({Kind.GAUSSIAN, Kind.ROBUST, Kind.LOGISTIC})
    takes_why = "it bounds the logistic of two classes, and has no bound for others"

    a: float = 1e-6
    b: float = 1e-6
    c: float = 1e-6
    d: float = 1e-6

    def whole(self, active: Active) -> Active:
        """All functions; two classes by their bound, which begins where all outputs are zero."""
        start = super().whole(active)
        problem = start.problem
        if start.exact:
            return start
        return BoundActive(problem, start.indices, start.alpha, np.zeros(problem.likelihood.shape[0]))

    def lower_bound(self, active: Active, *, learn_noise: bool) -> float:
        r""":math:`\mathcal F` of a model, with all constants: for models of equal size.

        Parameters
        ----------
        active : Active
            The model, as a callback receives it.
        learn_noise : bool
            Whether the noise is learned, and so has a factor :math:`q(\beta)`.
        """
        if min(self.a, self.b, self.c, self.d) <= 0.0:
            raise ValueError(
                f"a={self.a!r}, b={self.b!r}, c={self.c!r}, d={self.d!r}: an improper hyperprior has no finite bound; "
                "give all four positive numbers"
            )
        targets, problem = active.problem.n_targets, active.problem
        bound = active.evidence() + self.hyperpriors.log_prior(active, noise=learn_noise)
        bound += active.size * _constant(self.a, 0.5 * targets)
        return bound + (_constant(self.c, 0.5 * targets * problem.n_effective) if learn_noise else 0.0)


def _constant(shape: float, half: float) -> float:
    r""":math:`\kappa(a,h) + a\log a - a`: what the bound has beyond the log prior relative to its largest value."""
    full = shape + half
    kappa = gammaln(full) - gammaln(shape) - full * np.log(full) + full
    return float(kappa + shape * np.log(shape) - shape)
