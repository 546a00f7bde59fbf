"""Pictures of fitted models."""

from .plots import plot_fit

__all__ = ["plot_fit"]
