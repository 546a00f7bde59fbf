"""Posterior and predictive distributions."""

from .augmented import TrainingRows, added_variance
from .classes import ClassPosterior
from .conformal import conformal_quantile, held_out_scores, left_out_scores
from .counts import PoissonPosterior
from .gaussian import GaussianPosterior

__all__ = [
    "ClassPosterior",
    "GaussianPosterior",
    "PoissonPosterior",
    "TrainingRows",
    "added_variance",
    "conformal_quantile",
    "held_out_scores",
    "left_out_scores",
]
