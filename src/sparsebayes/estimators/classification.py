"""Assembly of a classification fit: likelihood, dictionary, solver, and the results by class."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial

import numpy as np
from numpy.typing import NDArray

from sparsebayes.basis import Basis
from sparsebayes.basis.arrays import HOST, Place, is_elsewhere
from sparsebayes.estimators.dictionary import Dictionary, Kept
from sparsebayes.estimators.learning import solve_laplace
from sparsebayes.estimators.regression import pose
from sparsebayes.estimators.task import Task, warn_unconverged
from sparsebayes.inference import ParameterStatus, Result, Sequential, Status
from sparsebayes.inference.fit.classes import SharedFunctions, run_classes
from sparsebayes.inference.fit.indicators import ROWS_EACH, contrasts, run_indicators
from sparsebayes.inference.fit.run import run
from sparsebayes.inference.models.classes import ClassModel
from sparsebayes.inference.models.interface import Active
from sparsebayes.inference.models.laplace import LaplaceActive
from sparsebayes.inference.models.mode import LaplaceProblem
from sparsebayes.inference.models.problem import GaussianProblem
from sparsebayes.inference.objective import Support, SupportRule, Supports
from sparsebayes.likelihood import Bernoulli, Categorical, Likelihood
from sparsebayes.posterior import ClassPosterior
from sparsebayes.posterior.classes import TEMPERS

Array = NDArray[np.float64]
Index = NDArray[np.intp]

# Rows that say which share of the covariance predicts best.
_TEMPERED_ROWS = 10_000
# What may choose the functions of a classifier (see ``chosen_by``).
EVIDENCES = ("auto", "indicators", "laplace")


@dataclass(frozen=True)
class ClassificationFit:
    """What was learned: one posterior for coupled classes, or one for each class against the rest.

    ``alpha`` has a row for each output, over the kept functions, the intercept last.
    """

    kept: Kept
    posteriors: list[ClassPosterior]
    supports: Supports
    alpha: Array
    weights: Array
    results: list[Result]
    rule: SupportRule
    dictionary: Dictionary
    kernel: Basis | None = None
    parameters: dict[str, ParameterStatus] | None = None
    gain: dict[str, float] | None = None


def regressable(task: Task) -> bool:
    """Whether these settings leave it open how functions are searched for: a regression on the classes may choose."""
    solver = task.solver
    plain = isinstance(solver, Sequential) and solver.in_batches and solver.working_sets
    return plain and task.gamma is None and task.n_restarts == 0 and task.thread is None


def chosen_by(evidence: str, task: Task, n_functions: float) -> str:
    """Whose evidence chooses the functions of two classes: ``"indicators"`` or ``"laplace"``.

    Of few functions for so many rows none of the models separates the classes by chance, and Laplace's evidence can be
    trusted with every precision.  A regression is not kept in a checkpoint.

    Parameters
    ----------
    evidence : str
        What was asked for.
    task : Task
        The rows, and what else was asked for.
    n_functions : float
        Functions of the dictionary (``Dictionary.beside_rows``).
    """
    if not regressable(task) or evidence == "laplace":
        return "laplace"
    if evidence == "indicators":
        return "indicators"
    few = n_functions <= int(task.n_rows) // ROWS_EACH
    return "laplace" if few or task.checkpoint is not None else "indicators"


def fit_classification(
    task: Task,
    labels: Index,
    n_classes: int,
    dictionary: Dictionary,
    *,
    joint: bool,
    shared: bool,
    evidence: str = "auto",
) -> ClassificationFit:
    """Fit labels 0..K-1: two classes by the logistic, more by the softmax or one against the rest.

    Under the softmax classes may share their functions (``shared``), which ``evidence`` then chooses, as it does those
    of two classes.
    """
    joint = joint and n_classes > 2
    shared = joint and shared and regressable(task)
    by = "laplace" if joint else chosen_by(evidence, task, dictionary.beside_rows)
    _check_checkpoint(task, shared, by)
    # The other solvers, and classes that share functions, compute on the host.
    there = is_elsewhere(task.X) and isinstance(task.solver, Sequential) and not shared
    likelihoods = _likelihoods(task, labels, n_classes, joint, Place.of(task.X) if there else HOST)

    def rule(eligible: NDArray[np.bool_]) -> SupportRule:
        outputs = likelihoods[0].shape[1]
        return task.rule(eligible, outputs - 1) if shared else task.rule(np.tile(eligible, outputs))

    eligible = dictionary.eligible
    bias = task.bias(dictionary)
    known = {"stand_in": dictionary.stand_in, "inclusion_cost": rule(eligible).cost, "places": dictionary.places}
    problems = [LaplaceProblem(dictionary.design, one, eligible, bias, **known) for one in likelihoods]
    classes = np.eye(n_classes)[labels]

    def regression(of: Array) -> GaussianProblem:
        return pose(task, dictionary, eligible, contrasts(of, task.weights))

    if shared:
        results = _solve_shared(task, dictionary, problems, regression(classes), evidence)
    elif by == "indicators":
        members = classes[:, 1:] if n_classes == 2 else classes
        posed = [regression(np.column_stack([1.0 - member, member])) for member in members.T]
        results = _solve_indicators(task, dictionary, problems, posed)
    else:
        results = solve_laplace(task, problems)
    return collect(task, dictionary, results, rule(eligible))


def _check_checkpoint(task: Task, shared: bool, by: str) -> None:
    """Refuse to keep what is not kept: a regression, from which every one of these searches begins."""
    if task.checkpoint is None or not (shared or by == "indicators"):
        return
    what, way = (
        ("a search for functions that several classes share", "shared_support=False")
        if shared
        else ("a regression on the indicators of the classes", "evidence='laplace'")
    )
    raise ValueError(f"checkpoint: {what} takes little time, and is not kept; use checkpoint=None, or {way}")


def _solve_shared(
    task: Task,
    dictionary: Dictionary,
    problems: list[LaplaceProblem],
    regression: GaussianProblem,
    evidence: str,
) -> list[Result]:
    """One set of functions for all classes, unless there is none and each class has functions of its own.

    Functions as wide as the data hide one another, and only the exact moves of that search tell them apart; they take
    minutes where there are many, and are not made where a regression was asked for by name.
    """
    by = "laplace" if evidence == "laplace" else "indicators"
    result = run_classes(problems[0], regression, task.solver, task.settings(), by)
    none = len(result.active.indices) <= result.active.problem.n_outputs
    if evidence != "indicators" and result.status.converged and none:
        own = solve_laplace(task, problems)
        if own[0].certificate.objective > result.certificate.objective:
            return own
    warn_unconverged([result.status], noise=False)
    return [_beside(result, dictionary)]


def _solve_indicators(
    task: Task,
    dictionary: Dictionary,
    problems: list[LaplaceProblem],
    regressions: list[GaussianProblem],
) -> list[Result]:
    """Classes against the rest, their functions chosen by regressions on who is a member of each."""
    results = [solve_member(task, *posed) for posed in zip(problems, regressions, strict=True)]
    warn_unconverged([result.status for result in results], noise=False)
    return [_beside(result, dictionary) for result in results]


def solve_member(task: Task, problem: LaplaceProblem, regression: GaussianProblem) -> Result:
    """One class against another or the rest, by regression; where that chooses nothing, by Laplace's evidence."""
    result = run_indicators(problem, regression, task.solver, task.settings())
    if result.status is Status.EMPTY:
        return run(problem, task.solver, task.settings(), task.generator())
    return result


def _beside(result: Result, dictionary: Dictionary) -> Result:
    """The result, with the functions that were no candidates counted in its certificate."""
    aside = result.certificate.left_aside + dictionary.left_aside
    return replace(result, certificate=replace(result.certificate, left_aside=aside))


def _likelihoods(task: Task, labels: Index, n_classes: int, joint: bool, place: Place) -> list[Likelihood]:
    one_hot, weights = place.put(np.eye(n_classes)[labels]), place.put(task.weights)
    if joint:
        return [Categorical(one_hot, weights, place)]
    members = [1] if n_classes == 2 else range(n_classes)
    return [Bernoulli(one_hot[:, k], weights, place) for k in members]


def collect(task: Task, dictionary: Dictionary, results: list[Result], rule: SupportRule) -> ClassificationFit:
    """Results of the outputs over the union of what they kept."""
    split = [result.active.problem.split(result.active.indices) for result in results]
    kept = dictionary.keep({int(c) for columns, _ in split for c in columns}, task.X.shape[1])
    posteriors, supports, alphas, weights = [], [], [], []
    for result, (columns, outputs) in zip(results, split, strict=True):
        active = result.active
        covariance = _covariance(result)
        where = np.array([kept.place[int(c)] for c in columns], dtype=np.intp)
        order = np.lexsort((where, outputs))
        n_outputs = active.problem.n_outputs
        posterior = ClassPosterior(
            where[order], outputs[order], n_outputs, active.mean[order], covariance[np.ix_(order, order)]
        )
        if isinstance(active, SharedFunctions):
            posterior = _tempered(posterior, active.model, where[: active.model.size])
        elif isinstance(active, LaplaceActive) and result.by_regression:
            posterior = replace(posterior, temper=active.best_share(TEMPERS))
        alpha = np.full((n_outputs, len(kept.place)), np.inf)
        alpha[posterior.outputs, posterior.functions] = active.alpha[order]
        weight = np.zeros((n_outputs, len(kept.place)))
        weight[posterior.outputs, posterior.functions] = posterior.mean
        posteriors.append(posterior)
        supports.append(partial(_support, active, order))
        alphas.append(alpha)
        weights.append(weight)
    return ClassificationFit(
        kept, posteriors, Supports(supports), np.vstack(alphas), np.vstack(weights), results, rule, dictionary
    )


def _covariance(result: Result) -> Array:
    """Posterior covariance of the weights: that nearest to the posterior; by regression, or of a bound, its own."""
    active = result.active
    nearest = isinstance(active, LaplaceActive) and not result.by_regression
    return active.nearest_covariance() if nearest else active.covariance


def _support(active: Active | SharedFunctions, order: Index) -> Support:
    """What is known of every weight, in this order."""
    return (active.support() if isinstance(active, SharedFunctions) else Support.of(active)).take(order)


def _tempered(posterior: ClassPosterior, model: ClassModel, where: Index) -> ClassPosterior:
    """With the share of the covariance that predicts training rows best, each left out; of many, a part of them."""
    part = model.every(max(1, len(model.outputs) // _TEMPERED_ROWS))
    values = np.zeros((len(part.outputs), int(np.max(where, initial=-1)) + 1))
    values[:, where] = part.values * model.rows.norms[model.functions]
    return posterior.tempered(values, model.left_out_outputs(part), part.rows.targets, part.rows.counts)
