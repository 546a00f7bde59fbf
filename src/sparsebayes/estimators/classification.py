"""Assembly of a classification fit: likelihood, dictionary, solver, and the results by class."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sparsebayes.estimators.dictionary import Dictionary, Kept
from sparsebayes.estimators.task import Task, warn_unconverged
from sparsebayes.inference import Result
from sparsebayes.inference.mode import LaplaceProblem
from sparsebayes.inference.run import run
from sparsebayes.inference.support import Support, SupportRule
from sparsebayes.likelihood import Bernoulli, Categorical, Likelihood
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


def fit_classification(
    task: Task, labels: Index, n_classes: int, dictionary: Dictionary, joint: bool
) -> ClassificationFit:
    """Fit labels 0..K-1: two classes by the logistic, more by the softmax or one against the rest."""
    if task.solver.candidates is not None:
        raise ValueError("candidates: functions are generated on the way in regression only; use a basis with centres")
    eligible = dictionary.eligible
    rule = task.rule(eligible)
    bias = dictionary.constant() if task.solver.initialisation == "bias" else dictionary.bias
    results = []
    for likelihood in _likelihoods(labels, n_classes, task.weights, joint):
        rule = task.rule(np.tile(eligible, likelihood.shape[1]))
        problem = LaplaceProblem(dictionary.design, likelihood, eligible, bias, dictionary.stand_in, rule.cost)
        results.append(run(problem, task.solver, task.settings(), task.generator()))
    warn_unconverged([result.status for result in results])
    return collect(task, dictionary, results, rule)


def _likelihoods(labels: Index, n_classes: int, weights: Array, joint: bool) -> list[Likelihood]:
    if n_classes == 2:
        return [Bernoulli(labels.astype(np.float64), weights)]
    one_hot = np.eye(n_classes)[labels]
    if joint:
        return [Categorical(one_hot, weights)]
    return [Bernoulli(one_hot[:, k], weights) for k in range(n_classes)]


def collect(task: Task, dictionary: Dictionary, results: list[Result], rule: SupportRule) -> ClassificationFit:
    """Results of the outputs over the union of what they kept."""
    split = [result.active.problem.split(result.active.indices) for result in results]
    kept = dictionary.keep({int(c) for columns, _ in split for c in columns}, task.X.shape[1])
    posteriors, supports, alphas, weights = [], [], [], []
    for result, (columns, outputs) in zip(results, split, strict=True):
        active = result.active
        where = np.array([kept.place[int(c)] for c in columns], dtype=np.intp)
        order = np.lexsort((where, outputs))
        n_outputs = active.problem.n_outputs
        posterior = ClassPosterior(
            where[order], outputs[order], n_outputs, active.mean[order], active.covariance[np.ix_(order, order)]
        )
        alpha = np.full((n_outputs, len(kept.place)), np.inf)
        alpha[posterior.outputs, posterior.functions] = active.alpha[order]
        weight = np.zeros((n_outputs, len(kept.place)))
        weight[posterior.outputs, posterior.functions] = posterior.mean
        posteriors.append(posterior)
        supports.append(Support.of(active).take(order))
        alphas.append(alpha)
        weights.append(weight)
    return ClassificationFit(kept, posteriors, supports, np.vstack(alphas), np.vstack(weights), results, rule)
