"""Models found along the parameters of the kernels, and what decides between them."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from sparsebayes.inference.evidence import Array
from sparsebayes.inference.mode import LaplaceProblem
from sparsebayes.inference.problem import GaussianProblem
from sparsebayes.inference.run import Result
from sparsebayes.inference.status import Record

# What a function has to bring when scales are compared, in nats: a precision fitted to pure noise brings 0.6 on
# average, and the best of many more.
PRICE = 2.5


@dataclass
class Chain:
    """One start: the parameters, what was found there, and how it got there.

    Attributes
    ----------
    log_theta : ndarray
        Log parameters.
    results : list of Result
        One for each problem, all at these parameters.
    objective : float
        Sum of the evidences, plus the log prior.
    histories : list of list of Record
        All records of each problem.
    number : int
        Of the start.
    inputs_price : float
        What the inputs that are switched on have to bring, in nats.
    price : float
        What a function had to bring in the search, in nats.
    """

    log_theta: Array
    results: list[Result]
    objective: float
    histories: list[list[Record]]
    number: int
    inputs_price: float = 0.0
    price: float = 0.0
    n_iter: list[int] = field(default_factory=list)

    @property
    def score(self) -> float:
        r"""The objective, less 2.5 nats for every function kept and :math:`\log Nd` for each of d inputs switched on.

        Maximising over a precision of its own lets each function gain evidence from noise, so that along the scale of
        the functions the evidence alone can rise until every row has a narrow function to itself.  Within one
        dictionary that is a matter of the search; from one scale to the next each function has to pay for its freedom.
        An input pays for a scale that was fitted together with the functions that see it, and for having been one of d
        that might have fitted the noise.
        """
        return self.objective - sum(_price(r) * r.active.size for r in self.results) - self.inputs_price


def at_price(problem: GaussianProblem | LaplaceProblem, price: float) -> GaussianProblem | LaplaceProblem:
    """The problem with functions that have to bring at least so much."""
    if price <= problem.inclusion_cost:
        return problem
    return replace(problem, inclusion_cost=price) if isinstance(problem, LaplaceProblem) else problem.priced(price)


def rows_of(result: Result) -> float:
    """How many rows the model was found on."""
    problem = result.active.problem
    return float(problem.likelihood.shape[0] if isinstance(problem, LaplaceProblem) else problem.n_effective)


def _price(result: Result) -> float:
    """What a function has to bring beyond what the objective already charges for it."""
    return max(0.0, PRICE - result.active.problem.inclusion_cost)
