"""Assembly of a classification fit: likelihood, dictionary, solver, and the results by class."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from sparsebayes.basis import Basis
from sparsebayes.basis.arrays import Place, is_elsewhere
from sparsebayes.estimators.dictionary import Dictionary, Kept
from sparsebayes.estimators.learning import solve_laplace
from sparsebayes.estimators.task import Task
from sparsebayes.inference import ParameterStatus, Result, Sequential
from sparsebayes.inference.models.interface import Active
from sparsebayes.inference.models.laplace import LaplaceActive
from sparsebayes.inference.models.mode import LaplaceProblem
from sparsebayes.inference.objective.support import Support, SupportRule
from sparsebayes.inference.rows.device import ArrayProblem
from sparsebayes.likelihood import ArrayBernoulli, ArrayCategorical, Bernoulli, Categorical, Likelihood
from sparsebayes.posterior import ClassPosterior

Array = NDArray[np.float64]
Index = NDArray[np.intp]


@dataclass(frozen=True)
class ClassificationFit:
    """What was learned: one posterior for coupled classes, or one for each class against the rest.

    ``alpha`` has a row for each output, over the kept functions, the intercept last.
    """

    kept: Kept
    posteriors: list[ClassPosterior]
    supports: list[Support]
    alpha: Array
    weights: Array
    results: list[Result]
    rule: SupportRule
    dictionary: Dictionary
    kernel: Basis | None = None
    parameters: dict[str, ParameterStatus] | None = None
    gain: dict[str, float] | None = None


def fit_classification(
    task: Task, labels: Index, n_classes: int, dictionary: Dictionary, joint: bool
) -> ClassificationFit:
    """Fit labels 0..K-1: two classes by the logistic, more by the softmax or one against the rest."""
    # The other solvers compute with all functions at once, or with bounds, and do so on the host.
    there = is_elsewhere(task.X) and isinstance(task.solver, Sequential)
    kind = ArrayProblem if there else LaplaceProblem
    likelihoods = (_likelihoods_there if there else _likelihoods)(task, labels, n_classes, joint)

    def rule(eligible: NDArray[np.bool_]) -> SupportRule:
        return task.rule(np.tile(eligible, likelihoods[0].shape[1]))

    def make(current: Dictionary) -> list[LaplaceProblem]:
        bias = current.constant() if task.solver.initialisation == "bias" else current.bias
        eligible = current.eligible
        cost = rule(eligible).cost
        known = {"stand_in": current.stand_in, "inclusion_cost": cost, "places": current.places}
        return [kind(current.design, one, eligible, bias, **known) for one in likelihoods]

    learned = solve_laplace(task, dictionary, make)
    found = learned.dictionary
    fit = collect(task, found, learned.results, rule(found.eligible))
    return replace(fit, kernel=learned.kernel, parameters=learned.parameters, gain=learned.gain)


def _likelihoods(task: Task, labels: Index, n_classes: int, joint: bool) -> list[Likelihood]:
    if n_classes == 2:
        return [Bernoulli(labels.astype(np.float64), task.weights)]
    one_hot = np.eye(n_classes)[labels]
    if joint:
        return [Categorical(one_hot, task.weights)]
    return [Bernoulli(one_hot[:, k], task.weights) for k in range(n_classes)]


def _likelihoods_there(task: Task, labels: Index, n_classes: int, joint: bool) -> list[Likelihood]:
    """The same for rows on a device."""
    place = Place.of(task.X)
    weights, numbers = place.put(task.weights), place.indices(labels)
    members = [place.floats(numbers == k) for k in ([1] if n_classes == 2 else range(n_classes))]
    if joint and n_classes > 2:
        return [ArrayCategorical(place, place.xp.stack(members, axis=1), weights)]
    return [ArrayBernoulli(place, 2.0 * member - 1.0, weights) for member in members]


def collect(task: Task, dictionary: Dictionary, results: list[Result], rule: SupportRule) -> ClassificationFit:
    """Results of the outputs over the union of what they kept."""
    split = [result.active.problem.split(result.active.indices) for result in results]
    kept = dictionary.keep({int(c) for columns, _ in split for c in columns}, task.X.shape[1])
    posteriors, supports, alphas, weights = [], [], [], []
    for result, (columns, outputs) in zip(results, split, strict=True):
        active, covariance = result.active, _covariance(result.active)
        where = np.array([kept.place[int(c)] for c in columns], dtype=np.intp)
        order = np.lexsort((where, outputs))
        n_outputs = active.problem.n_outputs
        posterior = ClassPosterior(
            where[order], outputs[order], n_outputs, active.mean[order], covariance[np.ix_(order, order)]
        )
        alpha = np.full((n_outputs, len(kept.place)), np.inf)
        alpha[posterior.outputs, posterior.functions] = active.alpha[order]
        weight = np.zeros((n_outputs, len(kept.place)))
        weight[posterior.outputs, posterior.functions] = posterior.mean
        posteriors.append(posterior)
        supports.append(Support.of(active).take(order))
        alphas.append(alpha)
        weights.append(weight)
    return ClassificationFit(
        kept, posteriors, supports, np.vstack(alphas), np.vstack(weights), results, rule, dictionary
    )


def _covariance(active: Active) -> Array:
    """Posterior covariance of the weights in the model: of a bound its own, else that nearest to the posterior."""
    return active.nearest_covariance() if isinstance(active, LaplaceActive) else active.covariance
