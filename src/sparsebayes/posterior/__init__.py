"""Posterior and predictive distributions."""

from .gaussian import GaussianPosterior

__all__ = ["GaussianPosterior"]
