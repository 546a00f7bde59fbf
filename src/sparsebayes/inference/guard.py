r"""The guard of the noise: what to do where the evidence alone would let it collapse.

The prior of :math:`\sigma^2` is Jeffreys', flat in :math:`\log\sigma^2` and cut off below ``FLOOR`` times the mean
square of the targets: it has no scale of its own and adds nothing to the objective above the cut.  That is enough where
functions are few or smooth.  With more unrelated functions than rows it is not: a third of all irrelevant functions
pass the papers' rule, every one that enters lowers :math:`\sigma^2`, and the lower noise lets in more, until the
targets are reproduced exactly.  The evidence really is higher there, so no search can help, only a judgement from
outside:

* *suspicion*: the functions use up more than a quarter of the rows, :math:`\sum_m\gamma_m > N/4`;
* *judgement*: the same problem is solved with the conservative rule of ``support.py``.  If under that rule's objective
  its model beats the suspect one, most of the suspect's functions are not worth what they cost;
* *remedy*: the noise of the conservative model is held, the support is found anew by the evidence, and the status says
  so.
"""

from __future__ import annotations

import copy
from dataclasses import replace

import numpy as np

from sparsebayes.inference.interface import Active
from sparsebayes.inference.problem import GaussianProblem
from sparsebayes.inference.run import Result, Settings, run
from sparsebayes.inference.solver import Solver
from sparsebayes.inference.status import Status
from sparsebayes.inference.support import SupportRule

# Share of the rows that the functions may use up before the noise is looked at twice.
SUSPICIOUS = 0.25


def run_guarded(problem: GaussianProblem, solver: Solver, settings: Settings, rng: np.random.Generator) -> Result:
    """Run the solver; where the noise is learned and has collapsed, run it again with the noise held.

    Parameters
    ----------
    problem, solver, settings, rng
        As in :func:`~sparsebayes.inference.run.run`.
    """
    result = run(problem, solver, settings, rng)
    active = result.active
    if settings.noise_variance is not None or problem.inclusion_cost > 0.0 or not _suspicious(active):
        return result
    problem = active.problem  # with the functions that were generated on the way, so that no more are needed
    settings = replace(settings, grow=None, observe=None)
    silent = copy.copy(solver)
    silent.callback = None
    rule = SupportRule.named("conservative", int(np.sum(problem.eligible)), problem.n_targets)
    careful = run(problem.priced(rule.cost), silent, settings, rng).active
    if _suspicious(careful) or careful.objective() <= active.evidence() - rule.cost * active.size:
        return result
    after = 1 + max((record.start for record in result.history), default=-1)
    shown = _numbered_on(solver, after)
    held = run(problem, shown, replace(settings, noise_variance=1.0 / careful.beta), rng)
    status = Status.NOISE_HELD if held.status.converged else held.status
    return replace(
        held,
        status=status,
        certificate=replace(held.certificate, noise_degenerate=True, start=after + held.certificate.start),
        history=result.history + [replace(record, start=after + record.start) for record in held.history],
    )


def _numbered_on(solver: Solver, after: int) -> Solver:
    """The solver with a callback that sees its starts under the numbers that they have in the history."""
    twin, callback = copy.copy(solver), solver.callback
    if callback is not None:
        twin.callback = lambda record, active: callback(replace(record, start=after + record.start), active)
    return twin


def _suspicious(active: Active) -> bool:
    """Whether the functions use up a large share of the rows."""
    gamma = 1.0 - active.alpha * np.diagonal(active.covariance)
    return float(np.sum(gamma)) > SUSPICIOUS * active.problem.n_effective
