"""Posterior and predictive distributions."""

from .classes import ClassPosterior
from .gaussian import GaussianPosterior
from .summary import Term, summarise

__all__ = ["ClassPosterior", "GaussianPosterior", "Term", "summarise"]
