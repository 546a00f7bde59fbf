"""A fit of several classes that share functions: a regression on their indicators, the softmax, and the certificate.

The regression (``indicators.py``) keeps many functions where classes do not overlap.  ``evidence="indicators"``
learns one scale of its precisions under the softmax; ``"laplace"`` begins there, settles every precision under the
softmax, and the loop adds what is missing (``docs/classification.md``, sections 9 and 10).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from scipy.linalg import block_diag

from sparsebayes.inference.fit.indicators import FEW_FUNCTIONS, LARGER, MOST, Notes, best_scale, regress
from sparsebayes.inference.fit.interrupt import asked_to_stop
from sparsebayes.inference.fit.run import Result, Stopped
from sparsebayes.inference.fit.settings import Settings
from sparsebayes.inference.models.classes import ClassModel, ClassRows
from sparsebayes.inference.models.linalg import largest
from sparsebayes.inference.models.mode import LaplaceProblem
from sparsebayes.inference.models.problem import GaussianProblem
from sparsebayes.inference.objective import Support
from sparsebayes.inference.search.climb import climb
from sparsebayes.inference.solvers.solver import Solver
from sparsebayes.inference.status import Certificate, Status, certificate_of
from sparsebayes.threads import one_thread

# Weights that a model may hold: every step costs the square of the functions for every class, and the covariance of the
# weights is a matrix.
_MOST_WEIGHTS = 4000
# The largest first precision of a function of unit mean square, where all of them are settled: log-odds of three
# standard deviations.
_FIRST = 0.1
# What the first settling is content with, in nats.
_ROUGHLY = 0.1
# The least tolerance, in nats: Laplace's evidence of several classes is wrong by far more, and a finer search of ten
# classes of digits takes five times as long for a log loss that is no lower.
_LEAST_TOL = 0.1
# How closely the mode of what is reported is found, in nats, and modes without one of its functions.
_CLOSELY, _NEARLY = 1e-15, 1e-6
# Rows that say about where the best scale is.
_ENOUGH_ROWS = 2000
# Functions that are looked at closely before the certificate is given; where a regression chose, so many, and so many
# of their values; additions that are tried in earnest, and from which part of the tolerance on: predictions are of
# second order, and may be wrong to either side.
_LOOKED_AT, _GLANCED_AT, _ENTRIES, _TRIED = 2000, 500, 1 << 24, 200
_DOUBT = 0.3


class SharedFunctions:
    """The model that was found, as weights of (function, class) pairs numbered as those of a joint softmax.

    ``indices`` are the pairs, class by class, with their precisions ``alpha`` (KP,), the mode of their weights
    ``mean``, and Laplace's ``covariance`` about it, without that of weights of different classes; ``beta`` is one.
    """

    def __init__(self, model: ClassModel) -> None:
        rows, norms = model.rows, model.rows.norms[model.functions]
        self.model, self.problem, self.beta = model, rows.problem, 1.0
        self.indices = rows.pairs(model.indices)
        self.alpha = np.tile(model.alpha * norms**2, rows.n_classes)
        self.mean = (model.weights / norms[:, None]).T.ravel()
        self.covariance = block_diag(*(block / np.outer(norms, norms) for block in model.covariances()))

    def support(self) -> Support:
        """What each function brings to all classes, by pairs: the model without it is found and compared."""
        model, everyone, K = self.model, np.arange(self.model.size), self.model.rows.n_classes
        smaller = [model.only(everyone != j, _NEARLY) for j in everyone]
        lost = np.array([model.evidence - other.evidence for other in smaller])
        fit = np.array([model.height - other.height for other in smaller])
        found = model.inside()
        ratio = found.q2.sum(axis=1) / np.maximum(model.share * found.s.sum(axis=1), np.finfo(float).tiny)
        return Support(np.tile(lost, K), np.tile(ratio, K), np.tile(np.maximum(fit, 0.0), K))


def run_classes(
    problem: LaplaceProblem,
    regression: GaussianProblem,
    solver: Solver,
    settings: Settings,
    evidence: str = "indicators",
) -> Result:
    """Search for the functions that several classes share, and certify them.

    ``problem`` has a softmax over the classes, ``regression`` contrasts of them on the same dictionary; of the solver
    there are its callback and how many functions it adds at once; ``evidence`` is ``"indicators"`` or ``"laplace"``.
    """
    with one_thread(), asked_to_stop() as stop:
        return _Search(solver, settings, stop).solve(ClassRows(problem), regression, evidence)


class _Search(Notes):
    """One fit: its model so far."""

    def solve(self, rows: ClassRows, regression: GaussianProblem, evidence: str) -> Result:
        """Regress, then scale or search, and certify."""
        self.tol = max(self.settings.tol, _LEAST_TOL)
        self.model = ClassModel.of(rows, np.zeros(0, dtype=np.intp), np.zeros(0))
        status, refused = Status.CONVERGED, []
        try:
            functions, alpha = regress(regression, self, _largest(rows))
            alpha = alpha / rows.norms[functions] ** 2  # at unit mean square
            if evidence == "indicators":
                status = Status.INDICATORS
                if len(functions):
                    self._scale(ClassModel.flat(rows, functions, alpha / LARGER))
            else:
                self._take(ClassModel.of(rows, functions, np.minimum(_FIRST, alpha / LARGER)).settled(_ROUGHLY))
                refused = self._climb()
        except Stopped as stopped:
            status = stopped.status
        self.model = self.model.at(self.model.alpha, _CLOSELY)  # of a last settling
        # A regression's functions are not certified to be the best of this evidence: its most promising ones will do.
        among = FEW_FUNCTIONS if evidence == "laplace" else min(_GLANCED_AT, _ENTRIES // len(rows.counts))
        certificate = certify_classes(self.model, self.tol, refused, among)
        if status is Status.CONVERGED and not certificate.converged:
            status = Status.STALLED
        if status.converged and not self.model.size:
            status = Status.EMPTY
        return Result(SharedFunctions(self.model), status, certificate, self.history, self.n_iter)

    def _scale(self, begun: ClassModel) -> None:
        """Take the model whose precisions are multiplied by the number with which they have the most evidence.

        Of many rows a part says about where that is, and with which weights.
        """

        def at(model: ClassModel, factor: float) -> ClassModel:
            return model.at(factor * model.alpha)

        def best(begun: ClassModel) -> ClassModel:
            return best_scale(at(begun, 1.0), at, lambda model: model.objective, self.stop)

        step = len(begun.outputs) // _ENOUGH_ROWS
        if step > 1:
            few = best(begun.every(step))
            begun = replace(begun, alpha=few.alpha, weights=few.weights, outputs=begun.values @ few.weights)
        self._take(best(begun), last=True)

    def _climb(self) -> list[int]:
        """Add what is missing; functions that promise to gain and do not."""
        refused, limit = None, _largest(self.model.rows)
        while refused is None:
            self.model = climb(self.model, self.tol, batch=self.solver.batch, limit=limit, accepted=self._note)
            refused = self._refused()
        return refused

    def _take(self, model: ClassModel, *, last: bool = False) -> None:
        """Take another model where it is better."""
        if model.objective > self.model.objective:
            self._note(self.model, model, last=last)

    def _refused(self) -> list[int] | None:
        """Functions that promise to gain and do not, each tried on the model as it is; None where one does, and is in.

        What the problem that is Gaussian at the mode promises the objective need not keep.
        """
        model, scores, kept = self.model, self.model.scores(_LOOKED_AT), self.model.reestimates()
        refused: list[int] = []
        for j in np.flatnonzero(kept.gain > self.tol).tolist():
            moved = np.where(np.arange(model.size) == j, kept.alpha, model.alpha)
            changed = model.at(moved) if np.isfinite(moved[j]) else model.only(np.isfinite(moved))
            if changed.objective > model.objective + self.tol:
                self._note(model, changed)
                return None
            refused.append(model.indices[j])
        gaining: list[int] = []
        best = model
        for i in largest(scores.gain, _TRIED).tolist():
            if scores.gain[i] <= _DOUBT * self.tol or len(gaining) == self.solver.batch:
                break
            grown = model.with_functions(np.array([i]), scores.alpha[[i]])
            (gaining if grown.objective > model.objective + self.tol else refused).append(i)
            best = max(best, grown, key=lambda one: one.objective)
        if not gaining:
            return refused
        together = model.joined(np.array(gaining), scores.alpha[gaining], self.tol)
        self._note(model, best if together is None or together.objective < best.objective else together)
        return None

    def _note(self, before: ClassModel, after: ClassModel, *, last: bool = False) -> None:
        """Take a move, at its very mode."""
        self.model = after = after.at(after.alpha, _CLOSELY)
        pairs = after.rows.pairs
        self.note(before.indices, after.indices, after.evidence, after.objective, after, pairs, last=last)


def _largest(rows: ClassRows) -> int:
    """Functions that a model may hold."""
    return min(MOST, _MOST_WEIGHTS // rows.n_classes)


def certify_classes(
    model: ClassModel, tol: float, refused: Sequence[int] = (), among: int = FEW_FUNCTIONS
) -> Certificate:
    """What single moves would gain, by the problem that is Gaussian at the mode; additions of so many at most."""
    everyone, stand_in = np.setdiff1d(np.flatnonzero(model.rows.eligible), model.functions), model.rows.problem.stand_in
    out = everyone if len(everyone) <= among else np.sort(model.promising(among))
    found = model.outside(out)
    gain, kept = model.scores_of(out, found).gain, model.reestimates()
    gain[list(refused)] = 0.0
    kept.gain[np.isin(model.functions, list(refused))] = 0.0
    return certificate_of(
        (out, found.relevance(model.share) / (model.share * found.s.sum(axis=1)), gain),
        (model.functions, np.abs(np.log(kept.alpha / model.alpha)), kept.gain),
        log_evidence=model.evidence,
        objective=model.objective,
        condition_number=model.condition_number(),
        start=0,
        tol=tol,
        left_aside=len(everyone) - len(out),
        compression_error=0.0 if stand_in is None else float(stand_in.error),
    )
