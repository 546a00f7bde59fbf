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
* *remedy*: the noise of the conservative model is held, the support is found anew by the evidence, beginning with the
  functions of that model, and the status says so.

A search that collapses takes longest after it has become suspect, since functions are many then.  So the judgement is
made on the way, and the search is ended where two looks agree: the conservative model is better at both, and by that
measure the suspect one has become worse from the first to the second, so that it moves away from what could acquit it.
"""

from __future__ import annotations

import copy
from dataclasses import replace

import numpy as np

from sparsebayes.inference.interface import Active
from sparsebayes.inference.problem import GaussianProblem
from sparsebayes.inference.run import Result, run
from sparsebayes.inference.settings import Settings, Warm
from sparsebayes.inference.solver import Solver
from sparsebayes.inference.status import Status
from sparsebayes.inference.support import SupportRule

# Share of the rows that the functions may use up before the noise is looked at twice.
SUSPICIOUS = 0.25
# Further share that they use up between two looks.
_LOOK = 0.05


def run_guarded(problem: GaussianProblem, solver: Solver, settings: Settings, rng: np.random.Generator) -> Result:
    """Run the solver; where the noise is learned and collapses, run it again with the noise held.

    Parameters
    ----------
    problem, solver, settings, rng
        As in :func:`~sparsebayes.inference.run.run`.
    """
    if settings.noise_variance is not None or problem.inclusion_cost > 0.0:
        return run(problem, solver, settings, rng)
    judge = _Judge(problem, solver, settings, rng)
    growing = settings.grow is not None  # functions are still to come: judged at the end only
    result = run(problem, solver, settings if growing else replace(settings, hopeless=judge.condemns), rng)
    active = result.active
    if not judge.condemned and not _suspicious(active):
        return result
    problem = active.problem  # with the functions that were generated on the way, so that no more are needed
    settings = replace(settings, grow=None, observe=None)
    careful = judge.careful(problem)
    if not judge.condemned and not judge.beats(active):
        return result
    after = 1 + max((record.start for record in result.history), default=-1)
    warm = None if settings.restarts else replace(Warm.of(careful), partial=True)
    held = run(
        problem, _numbered_on(solver, after), replace(settings, noise_variance=1.0 / careful.beta, warm=warm), rng
    )
    status = Status.NOISE_HELD if held.status.converged else held.status
    return replace(
        held,
        status=status,
        certificate=replace(held.certificate, noise_degenerate=True, start=after + held.certificate.start),
        history=result.history + [replace(record, start=after + record.start) for record in held.history],
    )


class _Judge:
    """Compares a suspect model with the conservative one, which is searched for when it is first needed."""

    def __init__(self, problem: GaussianProblem, solver: Solver, settings: Settings, rng: np.random.Generator) -> None:
        self.problem, self.rng = problem, rng
        self.solver = copy.copy(solver)
        self.solver.callback = None
        self.settings = replace(settings, grow=None, observe=None, keeper=None)
        self.condemned = False
        self._careful: Active | None = None
        self._next_look, self._level = SUSPICIOUS, -np.inf

    def condemns(self, active: Active) -> bool:
        """Whether a search need not go on from this model."""
        used = _used(active)
        if used <= self._next_look:
            return False
        self._next_look, before, self._level = used + _LOOK, self._level, self._worth(active)
        self.condemned = self.beats(active) and self._level < before
        return self.condemned

    def beats(self, active: Active) -> bool:
        """Whether the conservative model is better, and not suspect itself."""
        careful = self.careful(self.problem)
        return not _suspicious(careful) and careful.objective() > self._worth(active)

    def careful(self, problem: GaussianProblem) -> Active:
        """The conservative model."""
        if self._careful is None:
            self.problem = problem
            self._careful = run(problem.priced(self._cost), self.solver, self.settings, self.rng).active
        return self._careful

    @property
    def _cost(self) -> float:
        return SupportRule.named("conservative", int(np.sum(self.problem.eligible)), self.problem.n_targets).cost

    def _worth(self, active: Active) -> float:
        """Objective of a model by the conservative rule."""
        return active.evidence() - self._cost * active.size


def _numbered_on(solver: Solver, after: int) -> Solver:
    """The solver with a callback that sees its starts under the numbers that they have in the history."""
    twin, callback = copy.copy(solver), solver.callback
    if callback is not None:
        twin.callback = lambda record, active: callback(replace(record, start=after + record.start), active)
    return twin


def _suspicious(active: Active) -> bool:
    """Whether the functions use up a large share of the rows."""
    return _used(active) > SUSPICIOUS


def _used(active: Active) -> float:
    """Share of the rows that the functions use up."""
    return float(np.sum(active.well_determined)) / active.problem.n_effective
