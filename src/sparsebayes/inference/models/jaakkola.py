r"""The bound of Jaakkola & Jordan: two classes as a Gaussian problem.

For every :math:`\xi_n`, with :math:`\lambda(\xi) = \tanh(\xi/2)/(4\xi)`,

.. math::

    \log p(t_n|y_n) \ge (t_n-\tfrac12)y_n - \lambda(\xi_n)(y_n^2-\xi_n^2) + \log\sigma(\xi_n) - \tfrac12\xi_n ,

which is quadratic in :math:`y_n`: row weights :math:`2\lambda(\xi_n)` and linear term :math:`t_n-\tfrac12`.
"""

from __future__ import annotations

import numpy as np
from scipy.special import log_expit

from sparsebayes.inference.models.evidence import Array
from sparsebayes.inference.models.laplace import LaplaceProblem
from sparsebayes.inference.models.problem import GaussianProblem
from sparsebayes.likelihood import Bernoulli

_SERIES = 1e-4


def bound_curvature(xi: Array) -> Array:
    r""":math:`2\lambda(\xi) = \tanh(\xi/2)/(2\xi)`, which is 1/4 at zero."""
    small = xi < _SERIES
    return np.where(small, 0.25 - xi**2 / 48.0, np.tanh(0.5 * xi) / (2.0 * np.where(small, 1.0, xi)))


def bound_problem(problem: LaplaceProblem, xi: Array) -> GaussianProblem:
    r"""The quadratic problem at :math:`\xi`, with unit noise: targets :math:`(t-\tfrac12)/2\lambda`."""
    likelihood, curvature = two_classes(problem), bound_curvature(xi)
    targets = (likelihood.targets - 0.5) / curvature
    return GaussianProblem(
        problem.design, targets[:, None], likelihood.weights * curvature, problem.candidates, problem.bias
    )


def bound_constant(problem: LaplaceProblem, xi: Array) -> float:
    r"""What the bound has beyond :math:`-\tfrac12\sum_n 2\lambda_n(\hat t_n-y_n)^2`."""
    likelihood, curvature = two_classes(problem), bound_curvature(xi)
    targets = (likelihood.targets - 0.5) / curvature
    rows = log_expit(xi) - 0.5 * xi + 0.5 * curvature * xi**2 + 0.5 * curvature * targets**2
    return float(likelihood.weights @ rows)


def two_classes(problem: LaplaceProblem) -> Bernoulli:
    """The likelihood, which must be the logistic."""
    if not isinstance(problem.likelihood, Bernoulli):
        raise ValueError(
            "solver='backfitting' takes two classes at a time (the bound of Jaakkola and Jordan is for the logistic): "
            "set multi_class='ovr', or use solver='sequential'"
        )
    return problem.likelihood
