r"""The guard of the noise: what to do where the evidence alone would let it collapse (``docs/trust.md``).

With more unrelated functions than rows every function that enters lowers :math:`\sigma^2`, and the lower noise lets in
more, until the targets are reproduced exactly.  A model is *suspect* whose functions use up more than a quarter of the
rows.  The same problem is then solved with the conservative rule, and rows that were left out (``folds.py``) say which
of the two noise levels is better; where there are only sums over rows, the conservative rule's objective does.  If the
suspect has collapsed, the conservative noise is *held*, and the support is found anew by the evidence.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from sparsebayes.inference.fit.folds import Folds
from sparsebayes.inference.fit.run import LITTLE_MORE, SUSPICIOUS, Result, run
from sparsebayes.inference.fit.settings import Settings
from sparsebayes.inference.models.gaussian import GaussianModel
from sparsebayes.inference.models.interface import Active
from sparsebayes.inference.models.problem import GaussianProblem
from sparsebayes.inference.objective import SupportRule
from sparsebayes.inference.solvers.solver import Solver
from sparsebayes.inference.status import Status

# Share of the rows from which on too little is left to learn the noise from, however small the errors are.
HOPELESS = 0.5


def run_guarded(problem: GaussianProblem, solver: Solver, settings: Settings, rng: np.random.Generator) -> Result:
    """Run the solver; where the noise is learned and collapses, run it again with the noise held."""
    if settings.noise_variance is not None or (problem.inclusion_cost > 0.0 and not _has_copies(problem)):
        return run(problem, solver, settings, rng)
    growing = settings.grow is not None  # functions are still to come: judged at the end only
    judge = Judge(problem, solver, settings, rng, np.inf if growing else SUSPICIOUS)
    result = run(problem, solver, replace(settings, judge=judge), rng)
    active = result.active
    if result.status is Status.INTERRUPTED:
        return result
    if growing:
        judge = Judge(active.problem, solver, settings, rng, SUSPICIOUS)
    if judge.conservative is None and active.used > judge.acquitted:  # functions have come since it was asked
        judge.collapsed(active)
    if judge.conservative is None:
        return result
    # What was kept of the first search is of another noise: to go on from it would bring that noise back.
    settings = replace(settings, grow=None, keeper=None, noise_variance=1.0 / judge.conservative.beta)
    held = run(active.problem, solver.numbered_on(result.n_starts), settings, rng)
    return held.holding_noise(solver.hyperpriors).after(result)


def _has_copies(problem: GaussianProblem) -> bool:
    """Whether rows count more than once, so that functions of their noise alone pass the conservative test."""
    return Folds.possible(problem) and problem.counted_once() is not problem


@dataclass
class Judge:
    """Says which models of a search are believed that use up many rows.

    ``conservative`` is the model of the conservative rule, where a suspect has collapsed beside it; ``acquitted`` the
    share of the rows that a model may use up without being suspect.
    """

    problem: GaussianProblem
    solver: Solver
    settings: Settings
    rng: np.random.Generator
    acquitted: float
    conservative: Active | None = None

    @cached_property
    def folds(self) -> Folds | None:
        """Rows left out, where there are any."""
        return Folds(self.problem) if Folds.possible(self.problem) else None

    def believes(self, model: Active | GaussianModel, other: Active | GaussianModel) -> bool:
        """Whether rows left out speak for a model that uses up more of the rows than another.

        Many functions make a search on few rows too sure of itself, and their densities are lower although they err
        less; what is used of them is calibrated.
        """
        if self.folds is None:
            return model.used <= SUSPICIOUS
        asked = model.beta, other.beta, model.size
        return self.folds.prefer(*asked) or (model.used <= HOPELESS and self.folds.errs_less(*asked))

    def collapsed(self, model: Active | GaussianModel) -> bool:
        """Whether the noise of a model has collapsed."""
        used = model.used
        if used <= self.acquitted:
            return False
        # Copies of a row would let functions pass the conservative test that follow nothing but the noise of that row.
        problem = self.problem if self.folds is None else self.problem.counted_once()
        cost = SupportRule.named("conservative", int(np.sum(problem.eligible)), problem.n_targets).cost
        # A model that is suspect is no place to begin the conservative search from.
        settings = self.settings.aside(grow=None, warm=None)
        conservative = run(problem.priced(cost), self.solver.silent(), settings, self.rng).active
        if conservative.used > max(SUSPICIOUS, HOPELESS * used):
            return False
        if self.folds is None:
            collapsed = conservative.objective() > model.evidence() - cost * model.size
        else:
            collapsed = not self.believes(model, conservative)
        if collapsed:
            self.conservative = conservative
        else:
            self.acquitted = LITTLE_MORE * used
        return collapsed
