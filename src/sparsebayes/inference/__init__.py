"""Inference: the evidence, the active set, the solvers and the loop that runs them."""

from .certificate import Certificate
from .run import Result, Settings
from .sequential import Sequential
from .status import Record, Status

__all__ = ["Certificate", "Record", "Result", "Sequential", "Settings", "Status"]
