"""The precisions of a Laplace posterior to the last digits.

A sweep stops anywhere on a flat ridge within its tolerance, so that rounding would decide where.  Newton's method on
the gradient of the evidence in the log precisions, with its Jacobian by differences, makes the result depend on the
data alone.
"""

from __future__ import annotations

from typing import Protocol, TypeVar

import numpy as np

from sparsebayes.inference.models.evidence import Array

# Models up to this size are polished, until the gradient is this small; a step may lower the evidence by rounding.
LARGEST = 40
_STEPS = 20
_STATIONARY = 1e-10
_ROUNDING = 1e-12
_DIFFERENCE = 1e-5
# Parts of a step that are tried.
_PARTS = (1.0, 0.3, 0.1, 0.03)
# A Jacobian serves as long as every step with it makes the gradient this many times smaller.
_CONTRACTION = 10.0


class Model(Protocol):
    """What is polished."""

    alpha: Array

    def evidence(self) -> float:
        """Log evidence."""
        ...

    def gradient(self) -> Array:
        """Its derivative by the log precisions."""
        ...

    def moved(self: M, alpha: Array, beta: float) -> M:
        """A copy at other precisions."""
        ...

    def nudged(self: M, j: int, difference: float) -> M:
        """A copy with the j-th log precision a little larger."""
        ...


M = TypeVar("M", bound=Model)


def polish(model: M) -> M:
    """The model at the stationary point of its evidence that is nearest, or as near to it as there is a way up.

    Parameters
    ----------
    model : LaplaceActive
        The model, its precisions settled by sweeps.
    """
    jacobian, last = None, np.inf
    for _ in range(_STEPS if 0 < len(model.alpha) <= LARGEST else 0):
        gradient = model.gradient()
        steepest = float(np.max(np.abs(gradient)))
        if steepest < _STATIONARY:
            break
        if jacobian is None or steepest > last / _CONTRACTION:
            beside = (model.nudged(j, _DIFFERENCE) for j in range(len(gradient)))
            jacobian = np.array([other.gradient() - gradient for other in beside]) / _DIFFERENCE
        newton = np.asarray(np.linalg.lstsq(jacobian.T, -gradient, rcond=_ROUNDING)[0], dtype=np.float64)
        trial = _no_lower(model, newton) or _no_lower(model, _uphill(jacobian, gradient))
        if trial is None:
            break
        last, model = steepest, trial
    return model


def _no_lower(model: M, step: Array) -> M | None:
    """The model after the largest of some parts of a step that does not lower the evidence."""
    step = step / max(1.0, float(np.max(np.abs(step))))
    lowest = model.evidence() - _ROUNDING * max(1.0, abs(model.evidence()))
    trials = (model.moved(np.exp(np.log(model.alpha) + part * step), 1.0) for part in _PARTS)
    return next((trial for trial in trials if trial.evidence() >= lowest), None)


def _uphill(jacobian: Array, gradient: Array) -> Array:
    """A step that ascends wherever the curvature is not that of a maximum."""
    values, vectors = np.linalg.eigh(0.5 * (jacobian + jacobian.T))
    size = np.maximum(np.abs(values), _ROUNDING * max(1.0, float(np.max(np.abs(values)))))
    return vectors @ ((vectors.T @ gradient) / size)
