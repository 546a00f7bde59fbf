"""Likelihoods: log p(t|y), its gradient and its curvature; nothing here knows of designs or priors."""

from .bernoulli import Bernoulli
from .categorical import Categorical
from .expected import expected_slope, softmax
from .poisson import Poisson
from .protocol import Classes, Curvature, Likelihood
from .robust import ROBUST, OutlierMixture, RobustNoise, StudentT
from .squares import SquaredErrors

__all__ = [
    "ROBUST",
    "Bernoulli",
    "Categorical",
    "Classes",
    "Curvature",
    "Likelihood",
    "OutlierMixture",
    "Poisson",
    "RobustNoise",
    "SquaredErrors",
    "StudentT",
    "expected_slope",
    "softmax",
]
