"""Inference: the evidence, the active set, the solvers and the loop that runs them."""

from .backfitting import Backfitting
from .certificate import Certificate
from .run import Result, Settings
from .sequential import Sequential
from .solver import Solver
from .status import Record, Status
from .subset import SubsetSelection

SOLVERS: dict[str, type[Solver]] = {
    "sequential": Sequential,
    "backfitting": Backfitting,
    "subset": SubsetSelection,
}

__all__ = [
    "SOLVERS",
    "Backfitting",
    "Certificate",
    "Record",
    "Result",
    "Sequential",
    "Settings",
    "Solver",
    "Status",
    "SubsetSelection",
]
