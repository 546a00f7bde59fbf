r"""The guard of the noise: what to do where the evidence alone would let it collapse.

The prior of :math:`\sigma^2` is Jeffreys', flat in :math:`\log\sigma^2` and cut off below ``FLOOR`` times the mean
square of the targets: it has no scale of its own and adds nothing to the objective above the cut.  That is enough where
functions are few or smooth.  With more unrelated functions than rows it is not: a third of all irrelevant functions
pass the papers' rule, every one that enters lowers :math:`\sigma^2`, and the lower noise lets in more, until the
targets are reproduced exactly.  The evidence really is higher there, so no search can help, only a judgement from
outside:

* *suspicion*: the functions use up more than a quarter of the rows, :math:`\sum_m\gamma_m > N/4`, a row and its copies
  (or a weight) counted once;
* *judgement*: the same problem is solved with the conservative rule of ``objective.py``, and rows that were left out
  (``folds.py``) say which of the two noise levels is the better one: the suspect has collapsed where its densities are
  lower and its predictions not clearly nearer.  Where there are no rows, only sums over them,
  the conservative rule's own objective says it;
* *remedy*: the noise of the conservative model is held, the support is found anew by the evidence, and the status says
  so.  The certificate names what releasing the noise would gain.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from sparsebayes.inference.fit.folds import Folds
from sparsebayes.inference.fit.run import HOPELESS, LITTLE_MORE, SUSPICIOUS, Result, run
from sparsebayes.inference.fit.settings import Settings
from sparsebayes.inference.models.gaussian import GaussianModel
from sparsebayes.inference.models.interface import Active
from sparsebayes.inference.models.problem import GaussianProblem
from sparsebayes.inference.objective import SupportRule
from sparsebayes.inference.solvers.solver import Solver
from sparsebayes.inference.status import Status


def run_guarded(problem: GaussianProblem, solver: Solver, settings: Settings, rng: np.random.Generator) -> Result:
    """Run the solver; where the noise is learned and collapses, run it again with the noise held."""
    if settings.noise_variance is not None or problem.inclusion_cost > 0.0:
        return run(problem, solver, settings, rng)
    judge = _Judge(problem, solver, settings, rng)
    growing = settings.grow is not None  # functions are still to come: judged at the end only
    doubts = None if growing else judge.noise_collapsed
    result = run(problem, solver, replace(settings, folds=judge.folds, doubts=doubts), rng)
    active = result.active
    if result.status is Status.INTERRUPTED:
        return result
    if growing:
        judge = _Judge(active.problem, solver, settings, rng)
    if judge.conservative is None and active.used > judge.acquitted:  # functions have come since it was asked
        judge.noise_collapsed(active)
    if judge.conservative is None:
        return result
    # What was kept of the first search is of another noise: to go on from it would bring that noise back.
    settings = replace(settings, grow=None, keeper=None, noise_variance=1.0 / judge.conservative.beta)
    held = run(active.problem, solver.numbered_on(result.n_starts), settings, rng)
    return held.holding_noise(solver.hyperpriors).after(result)


class _Judge:
    """Compares suspect models with the conservative one.

    Attributes
    ----------
    conservative : Active or None
        The conservative model, where a suspect has collapsed.
    acquitted : float
        Share of the rows that a model may use up without being suspect.
    """

    def __init__(self, problem: GaussianProblem, solver: Solver, settings: Settings, rng: np.random.Generator) -> None:
        self.problem, self.rng = problem, rng
        self.folds = Folds(problem) if Folds.possible(problem) else None
        # A model that is suspect is no place to begin the conservative search from.
        self.settings = replace(settings, grow=None, observe=None, reached=None, keeper=None, warm=None)
        self.solver = solver.silent()
        self.conservative: Active | None = None
        self.acquitted = SUSPICIOUS

    def noise_collapsed(self, model: Active | GaussianModel) -> bool:
        """Whether the noise of a model has collapsed."""
        used = model.used
        if used <= self.acquitted:
            return False
        # Copies of a row would let functions pass the conservative test that follow nothing but the noise of that row.
        problem = self.problem if self.folds is None else self.problem.counted_once()
        cost = SupportRule.named("conservative", int(np.sum(problem.eligible)), problem.n_targets).cost
        conservative = run(problem.priced(cost), self.solver, self.settings, self.rng).active
        if conservative.used > max(SUSPICIOUS, HOPELESS * used):
            return False
        if self.folds is None:
            collapsed = conservative.objective() > model.evidence() - cost * model.size
        else:
            collapsed = self.folds.prefer(conservative.beta, model.beta, model.size)
            if used <= HOPELESS:
                collapsed = collapsed and not self.folds.errs_less(model.beta, conservative.beta, model.size)
        if collapsed:
            self.conservative = conservative
        else:
            self.acquitted = LITTLE_MORE * used
        return collapsed
