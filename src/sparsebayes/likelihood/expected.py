r"""Curvature of classes whose outputs are uncertain: its expectation, in any array library.

The curvature of the softmax couples outputs in pairs,
:math:`\mathbf B=\sum_{j<k}p_jp_k(\mathbf e_j-\mathbf e_k)(\mathbf e_j-\mathbf e_k)^\top`, and
:math:`p_jp_k=(p_j+p_k)^2\sigma'(y_j-y_k)` exactly.  Where two classes are in question their share
:math:`p_j+p_k` is one, so that it is kept as it is at the mode and the expectation is taken of the rest: exact for two
classes.  For more it is the expected curvature of :math:`-\sum_{j<k}(p_j+p_k)^2\log(1+e^{y_j-y_k})` with these shares,
which is concave as the softmax is.
"""

from __future__ import annotations

import math
from typing import Any

# Step of the trapezoidal rule, in standard deviations where these are below one, else in units of the logistic: its
# error, the tail of the integrand's Fourier transform, is 3e-9 at most.  So many steps to either side.
_STEP = 0.7
_NARROW, _WIDE = 9, 58


def expected_slope(xp: Any, mean: Any, variance: Any) -> Any:
    r""":math:`E[\sigma'(y)]` for Gaussian :math:`y`, from its means and variances."""
    deviation = xp.sqrt(variance)
    narrow = deviation <= 1.0
    if bool(xp.all(narrow)):
        return _over_gaussian(xp, mean, deviation)
    within = _over_gaussian(xp, mean, xp.where(narrow, deviation, xp.zeros_like(deviation)))
    return xp.where(narrow, within, _over_logistic(xp, mean, xp.where(narrow, xp.ones_like(deviation), deviation)))


def _over_gaussian(xp: Any, mean: Any, deviation: Any) -> Any:
    """Steps of the Gaussian's deviation about its mean."""
    total = xp.zeros_like(mean)
    for k in range(-_NARROW, _NARROW + 1):
        tail = xp.exp(-xp.abs(mean + _STEP * k * deviation))
        total = total + math.exp(-0.5 * (_STEP * k) ** 2) * tail / (1.0 + tail) ** 2
    return _STEP / math.sqrt(2.0 * math.pi) * total


def _over_logistic(xp: Any, mean: Any, deviation: Any) -> Any:
    """Steps of the logistic's own unit about zero."""
    total = xp.zeros_like(mean)
    for k in range(-_WIDE, _WIDE + 1):
        tail, z = math.exp(-abs(_STEP * k)), (_STEP * k - mean) / deviation
        total = total + tail / (1.0 + tail) ** 2 * xp.exp(-0.5 * z * z)
    return _STEP / math.sqrt(2.0 * math.pi) * total / deviation


def softmax(xp: Any, y: Any) -> Any:
    """Probabilities of classes, (N, K)."""
    p = xp.exp(y - xp.max(y, axis=1, keepdims=True))
    return p / xp.sum(p, axis=1, keepdims=True)
