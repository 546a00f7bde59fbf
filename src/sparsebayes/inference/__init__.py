"""Inference: the evidence, the active set, the solvers and the loop that runs them."""

from .certificate import Certificate
from .mackay import EM, MacKay
from .run import Result, Settings
from .sequential import Sequential
from .solver import Solver
from .status import Record, Status
from .variational import Variational

SOLVERS: dict[str, type[Solver]] = {
    "sequential": Sequential,
    "mackay": MacKay,
    "em": EM,
    "variational": Variational,
}

__all__ = [
    "EM",
    "SOLVERS",
    "Certificate",
    "MacKay",
    "Record",
    "Result",
    "Sequential",
    "Settings",
    "Solver",
    "Status",
    "Variational",
]
