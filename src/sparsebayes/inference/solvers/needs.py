"""What a search asks of its likelihood and of the place where the rows are: declared by solvers, checked before a fit.

Sums over the rows, such as inner products of the functions with one another and with the targets, can be formed
anywhere, a block of rows at a time.  Everything else that a fit may want of its rows has a name here.  A solver
declares what it needs (``Solver.needs``, ``Solver.takes``), an estimator adds what its settings need, and each storage
says what it cannot give (``estimators/storages.py``).
"""

from __future__ import annotations

from enum import Enum


class Kind(Enum):
    """Kinds of likelihoods, as far as solvers tell them apart."""

    GAUSSIAN = "gaussian"
    ROBUST = "outliers, student-t"
    POISSON = "poisson"
    LOGISTIC = "two classes"
    SOFTMAX = "several classes jointly"


class Need(Enum):
    """What a fit may ask of the place where its rows are, beyond sums over them; the value says it in words."""

    PASSES = "needs sums over all rows again at every step"
    ROWS = "looks at every row by itself"
    FRESH = "makes functions on the way, which are evaluated on the rows"
    CENTRES = "puts a function on every row"
    FUNCTIONS = "computes functions of the entries of the rows"
    WIDTHS = "evaluates the kernel at many widths"
    WEIGHTS = "gives the rows weights"
    LEFT_OUT = "leaves rows out"
    TARGETS = "fits several targets"
    RESTARTS = "begins again from random models"
    CHECKPOINT = "keeps the state of the search with a fingerprint of the rows"
    DEVICE = "moves the rows to a device"


__all__ = ["Kind", "Need"]
