"""What sparse Bayesian models are good for beyond regression and classification."""

from .approximation import sparsify

__all__ = ["sparsify"]
