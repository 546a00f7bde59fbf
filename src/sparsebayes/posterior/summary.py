"""What each kept term does for the model."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]


@dataclass(frozen=True)
class Term:
    r"""One kept function of one output.

    Attributes
    ----------
    output : int
        Target or class.
    function : dict
        What it is.
    weight, alpha : float
        Posterior mean and prior precision of its weight.
    signal_to_noise : float
        :math:`|\mu|/\sqrt{\Sigma}`: posterior mean in units of its standard deviation.
    evidence : float
        Its contribution to the log evidence, :math:`\tfrac12[\mu^2/\Sigma + \log\alpha\Sigma]`: what removing it would
        cost, in nats, the other precisions as they are (T&F eq. 18); exact in regression.
    fit : float
        The first part of it, :math:`\tfrac12\mu^2/\Sigma`: what removing it would cost in fit, the other weights
        following.  The rest, never positive, is the price of having one weight more.
    """

    output: int
    function: dict[str, Any]
    weight: float
    alpha: float
    signal_to_noise: float
    evidence: float
    fit: float


def summarise(output: int, functions: list[dict[str, Any]], mean: Array, covariance: Array, alpha: Array) -> list[Term]:
    """Terms of one output, the most important first."""
    variance = np.diagonal(covariance)
    ratio = mean**2 / variance
    with np.errstate(divide="ignore"):
        price = np.log(alpha) + np.log(variance)
    terms = [
        Term(output, function, float(w), float(a), float(np.sqrt(r)), float(0.5 * (r + p)), float(0.5 * r))
        for function, w, a, r, p in zip(functions, mean, alpha, ratio, price, strict=True)
    ]
    return sorted(terms, key=lambda term: -term.evidence)
