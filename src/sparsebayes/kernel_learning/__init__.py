"""Widths and scales of kernels, learned with the rest of the model and judged by rows left out."""

from .learner import Learned, Learner, Screened
from .parameters import Limits, learnable_limits
from .parts import Relearned
from .process import process_of
from .statuses import statuses
from .trials import Dictionaries, GaussianSearch, LaplaceSearch, Trial, search_for

__all__ = [
    "Dictionaries",
    "GaussianSearch",
    "LaplaceSearch",
    "Learned",
    "Learner",
    "Limits",
    "Relearned",
    "Screened",
    "Trial",
    "learnable_limits",
    "process_of",
    "search_for",
    "statuses",
]
