r"""Probabilistic backfitting (D'Souza et al. 2004, section 2): additive models of trainable components.

.. math::  t_i = \sum_m z_{im} + \varepsilon_i, \qquad z_{im} = g_m(x_i;\theta_m) + \eta_{im} ,

with hidden outputs :math:`z`.  The E-step gives every component its output so far and a share of what is left,

.. math::  \langle z_m\rangle = g_m + \omega_m\Big(\mathbf t-\sum_k g_k\Big), \qquad \omega_m = \psi_m/s,\quad
           \sum_m\omega_m \le 1 ,

and the M-step trains each on that fake target by whatever means it has.  Where every component's training is a least
squares fit, the squared error never rises; for functions linear in their parameters it converges to least squares.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.optimize import least_squares

from sparsebayes.inference.evidence import Array


class Component(ABC):
    """One term of an additive model; it knows its own inputs."""

    @abstractmethod
    def train(self, target: Array) -> Array:
        """Fit the (fake) target, (N,); return the fitted values."""


class LinearComponent(Component):
    r"""Columns with weights of their own: :math:`g = \mathbf F\mathbf b`, trained by least squares.

    With one column this is eq. 5.
    """

    def __init__(self, columns: Array) -> None:
        self.columns = columns.reshape(len(columns), -1)
        self.weights = np.zeros(self.columns.shape[1])

    def train(self, target: Array) -> Array:
        """Least squares."""
        self.weights = np.linalg.lstsq(self.columns, target, rcond=None)[0]
        return self.columns @ self.weights


class ParametricComponent(Component):
    r"""A function of parameters :math:`\theta`, trained to :math:`\sum_i(z_i-g_i)\,\partial g_i/\partial\theta = 0`.

    Parameters
    ----------
    function : callable
        ``function(theta) -> values`` on the training rows.
    theta : ndarray
        Where to begin; each training begins where the last one ended.
    """

    def __init__(self, function: Callable[[Array], Array], theta: Array) -> None:
        self.function = function
        self.theta = np.asarray(theta, dtype=np.float64)

    def train(self, target: Array) -> Array:
        """Nonlinear least squares (Levenberg-Marquardt)."""
        found = least_squares(lambda theta: self.function(theta) - target, self.theta)
        before = float(np.sum((self.function(self.theta) - target) ** 2))
        if 2.0 * found.cost <= before:
            self.theta = found.x
        return self.function(self.theta)


class RegressorComponent(Component):
    """Any regressor with scikit-learn's interface on inputs of its own (a smoother, a tree, …)."""

    def __init__(self, regressor: Any, X: Array) -> None:
        self.regressor, self.X = regressor, X

    def train(self, target: Array) -> Array:
        """Fit and predict."""
        return np.asarray(self.regressor.fit(self.X, target).predict(self.X), dtype=np.float64)


@dataclass(frozen=True)
class AdditiveFit:
    """Outputs of the components (N, m), the mean squared error after every cycle, and whether it has settled."""

    outputs: Array
    errors: list[float]
    converged: bool


def probabilistic_backfitting(
    components: Sequence[Component],
    target: Array,
    *,
    share: float | None = None,
    tol: float = 1e-10,
    max_iter: int = 10_000,
) -> AdditiveFit:
    r"""Train the components of an additive model together.

    Parameters
    ----------
    components : sequence of Component
        The terms; they are trained in place.
    target : ndarray of shape (N,)
        Targets.
    share : float, optional
        :math:`\omega` of every component; None means one over their number.  At most that keeps EM's guarantee.
    tol : float
        Ends when a cycle lowers the error by less than this fraction of the targets' variance.
    max_iter : int
        Largest number of cycles.
    """
    if not components:
        raise ValueError("components is empty: expected at least one Component")
    share = 1.0 / len(components) if share is None else share
    if not 0.0 < share <= 1.0:
        raise ValueError(f"share={share!r}: expected a number above 0 and at most 1")
    outputs = np.zeros((len(target), len(components)))
    scale, errors = float(np.mean(target**2)), [float(np.mean(target**2))]
    for _ in range(max_iter):
        rest = target - outputs.sum(axis=1)
        outputs = np.column_stack(
            [component.train(outputs[:, m] + share * rest) for m, component in enumerate(components)]
        )
        errors.append(float(np.mean((target - outputs.sum(axis=1)) ** 2)))
        if abs(errors[-2] - errors[-1]) <= tol * scale:
            return AdditiveFit(outputs, errors, True)
    return AdditiveFit(outputs, errors, False)
