"""Make any model small: a fitted model approximated by a few of its own functions."""

from .expansion import Approximation, Expansion
from .models import SmallClassifier, SmallKDE, SmallRegressor
from .sparsify import sparsify

__all__ = ["Approximation", "Expansion", "SmallClassifier", "SmallKDE", "SmallRegressor", "sparsify"]
