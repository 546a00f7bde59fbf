"""Posterior and predictive distributions."""

from .classes import ClassPosterior
from .gaussian import GaussianPosterior

__all__ = ["ClassPosterior", "GaussianPosterior"]
