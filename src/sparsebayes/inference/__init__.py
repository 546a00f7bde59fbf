"""Inference: the evidence, the active set, the solvers and the loop that runs them."""

from .fit.run import Result, Settings
from .solvers.backfitting import Backfitting
from .solvers.mackay import EM, MacKay, Variational
from .solvers.sequential import Sequential
from .solvers.single_effects import SingleEffects
from .solvers.solver import Solver
from .solvers.subset import SubsetSelection
from .status import Certificate, ParameterStatus, Record, Status

SOLVERS: dict[str, type[Solver]] = {
    "sequential": Sequential,
    "mackay": MacKay,
    "em": EM,
    "variational": Variational,
    "backfitting": Backfitting,
    "subset": SubsetSelection,
    "single-effects": SingleEffects,
}

__all__ = [
    "EM",
    "SOLVERS",
    "Backfitting",
    "Certificate",
    "MacKay",
    "ParameterStatus",
    "Record",
    "Result",
    "Sequential",
    "Settings",
    "SingleEffects",
    "Solver",
    "Status",
    "SubsetSelection",
    "Variational",
]
