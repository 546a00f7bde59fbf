r"""Functions of a classifier by a regression on the indicators of its classes, and one scale by Laplace's evidence.

Where classes can be separated Laplace's evidence rises while the error does, given a number for every function.  The
exact evidence of a regression on K - 1 contrasts of the indicators chooses the functions and their precisions
:math:`\alpha_m` relative to one another; of *one* number c for all, in :math:`\alpha_m/c`, Laplace's is a good judge
(``docs/classification.md``, section 9).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, TypeVar

import numpy as np
from scipy.linalg import helmert

from sparsebayes.inference.fit.interrupt import asked_to_stop
from sparsebayes.inference.fit.run import Journal, Result, Stopped
from sparsebayes.inference.fit.settings import Settings
from sparsebayes.inference.models.evidence import Array
from sparsebayes.inference.models.gaussian import GaussianModel, Gram
from sparsebayes.inference.models.laplace import LaplaceActive
from sparsebayes.inference.models.mode import LaplaceProblem
from sparsebayes.inference.models.problem import GaussianProblem, Index
from sparsebayes.inference.search.climb import climb
from sparsebayes.inference.search.starts import FAST_NOISE, Held, Schedule
from sparsebayes.inference.solvers.solver import Solver
from sparsebayes.inference.status import Record, Status, certify
from sparsebayes.threads import one_thread

# Functions that the regression chooses at most, one for so many rows, and in any case; it may always choose a few.  One
# contrast alone is followed by chance more easily than several that share their functions.
ROWS_EACH, _ROWS_EACH_ALONE = 8, 16
MOST = 300
_FEWEST = 10
# Functions up to which all of them are scored at every step: of more, those that nearly span the others.
FEW_FUNCTIONS = 3001
# By how much precisions of the regression are divided at first: log-odds are five or six times as large as indicators.
# And the factor between those that are tried, whose heights are close to a parabola of its logarithm.
LARGER = 30.0
_STEP = 4.0
# What the regression is content with, in nats, and how closely its maximum is found.
_ROUGHLY, _CLOSELY = 0.03, 1e-15
# Noise variance of the regression, as a part of its targets' mean square, below which it has collapsed and is held: it
# is about a tenth and more on the ledger's tables, and next to nothing where functions can reproduce a few rows.
_LEAST_NOISE = 0.01

M = TypeVar("M")


class Notes(Journal):
    """One fit that counts all its moves as those of one start."""

    n_iter = 0
    limited = False  # whether moves ran out within the regression

    def note(
        self,
        old: Sequence[int],
        new: Sequence[int],
        evidence: float,
        objective: float,
        model: Any,
        numbered: Callable[[Sequence[int]], list[int]] = list,
        *,
        last: bool = False,
    ) -> None:
        """A move from one set of functions to another, and the model that it led to; records number weights.

        With the last one a search is complete, however many moves it took, unless they ran out within the regression.
        """
        added, removed = sorted(set(new) - set(old)), sorted(set(old) - set(new))
        record = Record(
            start=0,
            move="add" if added else "sweep",
            function=added[0] if len(added) == 1 else -1,
            n_moves=len(added) + len(removed) or len(new),
            evidence=evidence,
            objective=objective,
            n_active=len(numbered(new)),
            noise_variance=1.0,
            added=tuple(numbered(added)),
            removed=tuple(numbered(removed)),
        )
        self.n_iter += record.n_moves
        self.show(record, lambda: model)
        if self.n_iter >= self.settings.max_iter and (self.limited or not last):
            raise Stopped(Status.MAX_ITER)

    def interrupted(self, before: GaussianModel, after: GaussianModel) -> None:
        """Stop a climb where somebody has asked to."""
        if self.stop():
            raise Stopped(Status.INTERRUPTED)


def contrasts(classes: Array, counts: Array) -> Array:
    """Centred indicators of K classes, (N, K), in K - 1 orthonormal contrasts of them; of two, that of the second."""
    centred = classes - np.average(classes, axis=0, weights=counts)
    K = classes.shape[1]
    return centred[:, 1:] if K == 2 else centred @ helmert(K).T  # class k against those before it


def regress(problem: GaussianProblem, notes: Notes, limit: int = MOST) -> tuple[Index, Array]:
    """Functions of a regression on contrasts of the classes, so many at most, and precisions in their units.

    Where the paper's schedule finds none, since no function gains alone, the noise is held low, which lets many in, and
    then released.
    """
    if problem.n_functions > FEW_FUNCTIONS:
        small = problem.reduced(lambda done: None, noise_given=False) or problem
    else:
        small = problem if problem.stand_in is None else problem.compressed()
    data = Gram(small)
    each, moves = _ROWS_EACH_ALONE if data.n_targets == 1 else ROWS_EACH, notes.settings.max_iter
    most = min(limit, max(_FEWEST, int(data.n) // each))

    def ascend(begun: GaussianModel) -> GaussianModel:
        return climb(begun, _ROUGHLY, most=min(most, moves), accepted=notes.interrupted)

    found = nothing = ascend(Schedule().begin(data, None))
    if not found.size:
        many = ascend(Held(FAST_NOISE).begin(data, None))
        released = ascend(many.at_noise(many.beta, learn_noise=True))
        found = released if released.objective > nothing.objective else nothing
    if found.beta * _LEAST_NOISE * data.mean_square > 1.0:
        found = ascend(found.at_noise(1.0 / (_LEAST_NOISE * data.mean_square), learn_noise=False))
    notes.limited = found.size >= moves < most
    found = found.settled(_CLOSELY)  # at its maximum, which the way to it does not change
    functions, alpha = np.array(small.whole(found.indices)[1], dtype=np.intp), found.alpha
    bias = problem.bias
    if bias is None or not found.size or bias in functions or not problem.candidates[bias]:
        return functions, alpha
    # Centred indicators need no constant; outputs of a classifier do, for the class between two others and for rare
    # ones.  It is held back no more than the function that is held back least.
    least = np.min(alpha * data.n / data.norms[found.functions] ** 2)
    return np.append(functions, bias), np.append(alpha, least)


def best_scale(begun: M, at: Callable[[M, float], M], height: Callable[[M], float], stop: Callable[[], bool]) -> M:
    """The model whose precisions are multiplied by the number with which they have the most evidence.

    Steps of a factor lead uphill until one leads down; the vertex of the parabola through the last three is the end.
    ``at`` gives a model with its precisions multiplied by a number, and ``stop`` says to end with the best so far.
    """
    lower = at(begun, 1.0 / _STEP)
    behind, best, step = (begun, lower, 1.0 / _STEP) if height(lower) > height(begun) else (lower, begun, _STEP)
    ahead = at(best, step)
    while height(ahead) > height(best) and not stop():
        behind, best, ahead = best, ahead, at(ahead, step)
    if height(ahead) > height(best):  # stopped on the way up: no vertex is known
        return ahead
    left, right = height(best) - height(behind), height(best) - height(ahead)
    vertex = 0.5 * (left - right) / max(left + right, np.finfo(float).tiny)
    return max(best, at(best, step**vertex), key=height)


def run_indicators(problem: LaplaceProblem, regression: GaussianProblem, solver: Solver, settings: Settings) -> Result:
    """Two classes, wherever the rows are: functions and relative precisions by a regression, one scale by the evidence.

    ``problem`` has the logistic likelihood of the classes, ``regression`` the indicator of the second, less its mean,
    on the same dictionary; of the solver there is its callback.
    """
    with one_thread(), asked_to_stop() as stop:
        notes, status, active = Notes(solver, settings, stop), Status.INDICATORS, LaplaceActive.from_model(problem)
        try:
            functions, alpha = regress(regression, notes)
            if len(functions):
                active = LaplaceActive.from_model(problem, functions.tolist(), alpha / LARGER)
                active = best_scale(active, lambda one, c: one.moved(c * one.alpha, 1.0), LaplaceActive.objective, stop)
                notes.note((), active.indices, active.evidence(), active.objective(), active, last=True)
        except Stopped as stopped:
            status = stopped.status
        # Of a compressed dictionary by its compression, whose error the certificate names.  Many functions gain, since
        # the search was for something else, so that bounds rule out none, and to score all would cost more than it.
        rough, error = active, 0.0
        if problem.stand_in is not None:
            rough = LaplaceActive.from_model(problem.roughly(), active.indices, active.alpha, active.mean)
            error = float(problem.stand_in.error)
        certificate = certify(rough, learn_noise=False, tol=settings.tol, start=0)
        certificate = replace(certificate, compression_error=max(error, certificate.compression_error))
        if status.converged and not active.size:
            status = Status.EMPTY
        return Result(active, status, certificate, notes.history, notes.n_iter, by_regression=active.size > 0)
