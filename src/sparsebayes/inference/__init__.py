"""Inference: the evidence, the active set, the solvers and the loop that runs them."""

from .backfitting import Backfitting
from .certificate import Certificate
from .mackay import EM, MacKay
from .run import Result, Settings
from .sequential import Sequential
from .solver import Solver
from .status import Record, Status
from .subset import SubsetSelection
from .variational import Variational

SOLVERS: dict[str, type[Solver]] = {
    "sequential": Sequential,
    "mackay": MacKay,
    "em": EM,
    "variational": Variational,
    "backfitting": Backfitting,
    "subset": SubsetSelection,
}

__all__ = [
    "EM",
    "SOLVERS",
    "Backfitting",
    "Certificate",
    "MacKay",
    "Record",
    "Result",
    "Sequential",
    "Settings",
    "Solver",
    "Status",
    "SubsetSelection",
    "Variational",
]
