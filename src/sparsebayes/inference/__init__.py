"""Inference: the evidence, the active set, the solvers and the loop that runs them."""

from .certificate import Certificate
from .run import Result, Settings
from .sequential import Sequential
from .solver import Solver
from .status import ParameterStatus, Record, Status

SOLVERS: dict[str, type[Solver]] = {"sequential": Sequential}

__all__ = [
    "SOLVERS",
    "Certificate",
    "ParameterStatus",
    "Record",
    "Result",
    "Sequential",
    "Settings",
    "Solver",
    "Status",
]
