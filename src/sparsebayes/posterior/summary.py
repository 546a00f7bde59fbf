"""What each kept term does for the model."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from sparsebayes.typing import Array


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
        What removing it would cost of the log evidence, in nats, the other precisions as they are: with Gaussian noise
        :math:`\tfrac12[\mu^2/\Sigma + \log\alpha\Sigma]` (T&F eq. 18), of each of several targets its own part; for
        classes and counts by computing the model without it, at its own mode.
    fit : float
        What removing it would cost in fit, the other weights following: with Gaussian noise the first part,
        :math:`\tfrac12\mu^2/\Sigma`, else the fall of the log posterior density of the weights at the mode.  The rest
        is the price of having one weight more, with Gaussian noise never positive.
    """

    output: int
    function: dict[str, Any]
    weight: float
    alpha: float
    signal_to_noise: float
    evidence: float
    fit: float


def summarise(
    output: int,
    functions: list[dict[str, Any]],
    mean: Array,
    covariance: Array,
    alpha: Array,
    lost: tuple[Array, Array] | None = None,
) -> list[Term]:
    """Terms of one output, the most important first.

    Parameters
    ----------
    output : int
        Target or class.
    functions : list of dict
        What they are.
    mean, covariance, alpha : ndarray of shape (a,), (a, a), (a,)
        Posterior of their weights, and prior precisions.
    lost : tuple of two ndarray of shape (a,), optional
        Evidence, and fit, that is lost without each; by default as with Gaussian noise.
    """
    variance = np.diagonal(covariance)
    ratio = mean**2 / variance
    if lost is None:
        with np.errstate(divide="ignore"):
            lost = 0.5 * (ratio + np.log(alpha) + np.log(variance)), 0.5 * ratio
    terms = [
        Term(output, function, float(w), float(a), float(np.sqrt(r)), float(e), float(f))
        for function, w, a, r, e, f in zip(functions, mean, alpha, ratio, *lost, strict=True)
    ]
    return sorted(terms, key=lambda term: -term.evidence)
