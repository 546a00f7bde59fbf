"""Posterior and predictive distributions."""

from .augmented import TrainingRows, added_variance
from .calibration import Calibration
from .classes import ClassPosterior
from .conformal import conformal_quantile, cross_interval
from .counts import PoissonPosterior
from .gaussian import GaussianPosterior, held_out_scores, left_out_scores
from .summary import Term, summarise
from .varying import VaryingNoise

__all__ = [
    "Calibration",
    "ClassPosterior",
    "GaussianPosterior",
    "PoissonPosterior",
    "Term",
    "TrainingRows",
    "VaryingNoise",
    "added_variance",
    "conformal_quantile",
    "cross_interval",
    "held_out_scores",
    "left_out_scores",
    "summarise",
]
