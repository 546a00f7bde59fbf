"""The ledger: what a search is worth, read off the same problems before and after a change.

A search in sparse Bayesian models depends on its path: a change that leaves every test green can end in a worse
maximum, and a certificate of convergence does not show it. So every change of the search is judged by its rows here:
evidence, error and density on test rows, size, certificate, seconds and moves.

>>> from sparsebayes.benchmarks.ledger import measure
>>> row = measure("sinc", 0)
>>> row.status, row.kept < 12
('CONVERGED', True)
"""

from sparsebayes.benchmarks.ledger.cases import Case, NotAtHandError, Problem
from sparsebayes.benchmarks.ledger.measure import Row, measure
from sparsebayes.benchmarks.ledger.problems import KINDS, PROBLEMS, choose_problems
from sparsebayes.benchmarks.ledger.record import Record

__all__ = [
    "KINDS",
    "PROBLEMS",
    "Case",
    "NotAtHandError",
    "Problem",
    "Record",
    "Row",
    "choose_problems",
    "measure",
]
