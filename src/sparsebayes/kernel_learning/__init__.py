"""Widths and scales of kernels, learned with the rest of the model and judged by rows left out."""

from .learner import Learned, Learner, Screened
from .parameters import Limits, learnable_limits
from .parts import Relearned
from .process import process_of
from .race import Race
from .statuses import statuses
from .trials import Dictionaries, Search, Trial

__all__ = [
    "Dictionaries",
    "Learned",
    "Learner",
    "Limits",
    "Race",
    "Relearned",
    "Screened",
    "Search",
    "Trial",
    "learnable_limits",
    "process_of",
    "statuses",
]
