r"""Noise that depends on the inputs: its logarithm is itself a sparse Bayesian model on the same dictionary.

.. math:: t_n \sim \mathcal N(\phi_n^\top\mathbf w,\ \sigma_n^2), \qquad
          \log\sigma_n^2 = o + \phi_n^\top\mathbf v, \qquad v_m \sim \mathcal N(0, \alpha_m'^{-1}) .

With a Gaussian :math:`q(\mathbf w)` beside the weights :math:`\mathbf v` at their mode, the bound on the evidence is

.. math:: \mathcal F = E_q\left[\log p(\mathbf t|\mathbf w,\mathbf v)\right]
          - \mathrm{KL}\left(q(\mathbf w)\|p(\mathbf w)\right)
          - \tfrac12\mathbf v^\top\mathbf A'\mathbf v + \tfrac12\log|\mathbf A'| + \tfrac12\log|\boldsymbol\Sigma'| .

*Given* :math:`\mathbf v` it is the evidence of a Gaussian problem with row precisions
:math:`\rho_n\propto e^{-\phi_n^\top\mathbf v}` of geometric mean one, whose :math:`\sigma^2` sets :math:`o`; *given* q
it is Laplace's evidence of squared errors that are Gamma distributed.  A function of the noise has to bring what one of
the conservative rule does (``docs/trust.md``).
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from sparsebayes.inference.fit.guard import run_guarded
from sparsebayes.inference.fit.robust import expected_squares
from sparsebayes.inference.fit.run import Result, run
from sparsebayes.inference.fit.settings import Settings, Warm
from sparsebayes.inference.models.evidence import Array
from sparsebayes.inference.models.interface import Active
from sparsebayes.inference.models.mode import LaplaceProblem
from sparsebayes.inference.models.problem import GaussianProblem
from sparsebayes.inference.objective import SupportRule
from sparsebayes.inference.solvers.solver import Solver
from sparsebayes.inference.status import Status
from sparsebayes.likelihood import SquaredErrors

# Noise of the means whose residuals the searches begin with, in that of constant noise: where a part of the rows has
# little noise, constant noise may have explained away there what only a lower one resolves.
_STARTS = (1.0, 0.1)
# Moves of the search at low noise, in functions at constant noise and besides, and what it settles for in nats: it
# would take in functions until nearly all rows are used up.
_MORE, _SPARE, _ROUGHLY = 2, 20, 0.1
# Rounds in which both halves are searched from nothing, and all rounds; each of the others begins from the last.
_SEARCHES = 2
_ROUNDS = 20
# How often the offset follows the functions before the mean does.
_LEVELS = 5
# Rounds end when the bound rises by less, in nats.
_SETTLED = 1e-2


@dataclass(frozen=True)
class LogVariance:
    r"""The log variance of the noise, :math:`o+\phi^\top\mathbf v`, its functions in the order of ``active``.

    The ``offset`` is :math:`o`; ``precisions`` are :math:`\rho_n`, and ``counts`` say how often each row is there.
    """

    active: Active
    offset: float
    precisions: Array
    counts: Array


@dataclass(frozen=True)
class VaryingResult:
    """The mean's result, the bound with the log prior of both supports, and the noise; None where it is constant."""

    result: Result
    bound: float
    noise: LogVariance | None = None

    @property
    def log_prior(self) -> float:
        """The part of the bound that is the log prior of the noise's support, and no evidence."""
        return 0.0 if self.noise is None else self.noise.active.log_prior()


def run_varying(
    problem: GaussianProblem, solver: Solver, settings: Settings, rng: np.random.Generator
) -> VaryingResult:
    """Maximise the bound over the mean and the noise, and keep constant noise where its evidence is as high.

    The problem has one target, and its weights say how often each row counts.
    """
    constant = run_guarded(problem, solver, settings, rng)
    best = VaryingResult(constant, constant.active.objective())
    if not _trusted(constant):
        return best
    # The residuals of a row and of its copies are one residual: as often as its weight says, a function of the noise
    # that follows nothing but the residual of that row would pay.
    once = problem.counted_once()
    if once is problem:
        return _Loop(problem, solver, settings, rng).found(best)
    aside = _Loop(once, solver.silent(), settings.aside(), rng)
    plain = run_guarded(once, aside.solver, aside.settings, rng)
    found = aside.found(VaryingResult(plain, plain.active.objective()))
    if found.noise is None:
        return best
    whole = _Loop(problem, solver, settings, rng).mean(found.noise, None)
    return whole if _trusted(whole.result) and whole.bound > best.bound else best


def _trusted(mean: Result) -> bool:
    """Whether residuals are those of a finished search with noise that the data determine."""
    return mean.status in (Status.CONVERGED, Status.EMPTY, Status.STALLED)


@dataclass(frozen=True)
class _Loop:
    """The two halves in turn."""

    problem: GaussianProblem
    solver: Solver
    settings: Settings
    rng: np.random.Generator

    def found(self, constant: VaryingResult) -> VaryingResult:
        """The better of constant noise and of what residuals show, those of its mean and of one at lower noise."""
        best, mean = constant, constant.result
        for fraction in _STARTS if _trusted(mean) else ():
            found = self.settle(mean if fraction == 1.0 else self.held(mean, fraction))
            best = found if found is not None and found.bound > best.bound else best
        return best

    def held(self, constant: Result, fraction: float) -> Result:
        """The mean for a part of the constant noise, roughly: it only has to show where the noise is low."""
        solver, limit = self.solver.silent(), _MORE * constant.active.size + _SPARE
        solver.effort = "fast"
        settings = self.settings.aside(
            tol=max(self.settings.tol, _ROUGHLY),
            max_iter=min(self.settings.max_iter, limit),
            noise_variance=fraction / constant.active.beta,
        )
        return run(self.problem, solver, settings, self.rng)

    def settle(self, mean: Result) -> VaryingResult | None:
        """Go from a mean to the noise and back until the bound stands still; None where the noise is constant."""
        best, noise = None, None
        for number in range(_ROUNDS):
            fresh = number < _SEARCHES
            noise = self.noise(mean, noise, fresh=fresh)
            if not noise.active.size:
                break
            found = self.mean(noise, None if fresh else mean)
            if not _trusted(found.result):
                break
            gain = np.inf if best is None else found.bound - best.bound
            mean, noise, best = found.result, found.noise, found if gain > 0.0 else best
            if gain < _SETTLED and not fresh:
                break
        return best

    def noise(self, mean: Result, near: LogVariance | None, *, fresh: bool) -> LogVariance:
        """The log variance for the residuals of a mean: the best from nothing, where it is fresh, and from another one.

        Where a function takes away from the noise in one place the offset has to rise, and then others may pay.
        """
        squares, counts = expected_squares(self.problem, mean), self.problem.weights
        level = float(np.log(np.average(squares, weights=counts)))
        found = [] if near is None else [self._searched(squares, near.offset, near.active)]
        found += [self._searched(squares, level, None)] if fresh or near is None else []
        best = max(found, key=lambda noise: noise.active.objective())
        for _ in range(_LEVELS if best.active.size else 0):
            likelihood = best.active.problem.likelihood
            off = np.average(likelihood.ratio(_outputs(best.active)[:, None]), weights=counts)
            other = self._searched(squares, best.offset + float(np.log(off)), best.active)
            gain = other.active.objective() - best.active.objective()
            best = other if gain > 0.0 else best
            if gain < _SETTLED:
                break
        return best

    def _searched(self, squares: Array, offset: float, near: Active | None) -> LogVariance:
        """The log variance with this offset, searched from nothing or from another one."""
        problem, counts = self.problem, self.problem.weights
        candidates = problem.eligible.copy()
        if problem.bias is not None:
            candidates[problem.bias] = False  # the offset is as free as a constant noise is
        posed = LaplaceProblem(
            problem.design,
            SquaredErrors(squares, counts, offset),
            candidates,
            None,
            problem.stand_in,
            SupportRule.named("conservative", int(np.sum(candidates))).cost,
            places=problem.places,
        )
        warm = None if near is None else Warm.of(near)
        settings = self.settings.aside(noise_variance=None, warm=warm)
        active = run(posed, self.solver.silent(), settings, self.rng).active
        outputs = _outputs(active)
        return LogVariance(active, offset, np.exp(np.average(outputs, weights=counts) - outputs), counts)

    def mean(self, noise: LogVariance, near: Result | None) -> VaryingResult:
        """The mean for a noise, searched from nothing or from another one."""
        counts = self.problem.weights
        posed = self.problem.precise(noise.precisions)
        if near is None:
            result = run_guarded(posed, self.solver, replace(self.settings, keeper=None), self.rng)
        else:
            settings = replace(self.settings, keeper=None, warm=Warm.of(near.active))
            result = run(posed, self.solver, settings, self.rng).after(near)
            result = replace(result, n_iter=near.n_iter + result.n_iter)
        outputs = _outputs(noise.active)
        offset = -float(np.log(result.active.beta)) - float(np.average(outputs, weights=counts))
        likelihood = noise.active.problem.likelihood
        paid = noise.active.objective() - likelihood.log_likelihood(outputs[:, None])
        return VaryingResult(result, result.active.objective() + paid, replace(noise, offset=offset))


def _outputs(active: Active) -> Array:
    """The functions' part of the log variance on the training rows."""
    return active.problem.design.columns(np.array(active.indices, dtype=np.intp)) @ active.mean
