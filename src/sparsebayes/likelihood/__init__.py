"""Likelihoods: log p(t|y), its gradient and its curvature; nothing here knows of designs or priors."""

from .bernoulli import Bernoulli
from .categorical import Categorical
from .gaussian import Gaussian
from .protocol import Likelihood

__all__ = ["Bernoulli", "Categorical", "Gaussian", "Likelihood"]
