"""Fits on partitioned rows: exact sums from the workers, the search on this side."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.multiclass import check_classification_targets

from sparsebayes.basis import Functions, Linear
from sparsebayes.basis.kernels import KernelFunctions, distinct_rows
from sparsebayes.design import Reduction
from sparsebayes.estimators import classification, regression
from sparsebayes.estimators.checkpoint import KeptSums
from sparsebayes.estimators.checks import check_largest, check_relative_noise
from sparsebayes.estimators.cluster import (
    Cluster,
    all_classes,
    classes_of,
    largest,
    magnitudes,
    target_spread,
    target_sums,
)
from sparsebayes.estimators.dictionary import Dictionary
from sparsebayes.estimators.regression import Targets, TargetScale, rounding_level
from sparsebayes.estimators.task import Task, warn_unconverged
from sparsebayes.inference.fit.run import run
from sparsebayes.inference.models.problem import GaussianProblem
from sparsebayes.inference.rows.partitions import (
    Count,
    Counted,
    PartitionedProblem,
    Remainders,
    add_up,
    fingerprints,
    independent,
    join_fingerprints,
    join_triangles,
    products,
    thinned,
    triangle,
)
from sparsebayes.likelihood import Bernoulli, Categorical, Likelihood

Array = NDArray[np.float64]

# Rows of the sample by way of which the triangle of all rows is found, for each function.
_SAMPLE = 4
# Stages in which rows are summed where what is behind is kept: the numbers that come here grow with them.
_STAGES = 10


def dictionary_on(
    cluster: Cluster, functions: Functions, basis: Any, fit_intercept: bool, by_row: bool, shift: Array | None = None
) -> Dictionary:
    """The dictionary of functions on rows that are elsewhere."""
    m = len(functions)
    bias = m if fit_intercept else None
    return Dictionary(Counted(cluster.n_rows, m + fit_intercept), functions, basis, m, bias, by_row=by_row, shift=shift)


class CentredColumns(Functions):
    """Columns of X less their means, as workers evaluate them."""

    def __init__(self, means: Array) -> None:
        super().__init__(len(means))
        self._means = means

    def __len__(self) -> int:
        return len(self._means)

    def _evaluate(self, X: Array, idx: Any) -> Array:
        return X[:, idx] - self._means[idx]

    def restrict(self, idx: Any) -> Functions:
        """They are evaluated, and never kept: the estimator keeps the columns and their offsets."""
        raise TypeError("centred columns on a cluster are evaluated, never kept")

    def specifications(self) -> list[Any]:
        """The columns."""
        return [{"kind": Linear.kind, "feature": j} for j in range(len(self))]


def _on_rows(dictionary: Dictionary) -> Functions:
    """The functions as they are on the rows."""
    if dictionary.functions is None:
        raise TypeError("a fit on a cluster needs functions")
    return dictionary.functions if dictionary.shift is None else CentredColumns(dictionary.shift)


def _distinct(cluster: Cluster, functions: Functions, fit_intercept: bool) -> NDArray[np.bool_]:
    """Functions that are no copy of an earlier one: by their centres, or by their values in one pass over the rows."""
    if isinstance(functions, KernelFunctions):
        return np.append(distinct_rows(functions.centres), np.ones(int(fit_intercept), dtype=bool))
    prints = cluster.merge(fingerprints, join_fingerprints, functions, fit_intercept)
    first: dict[bytes, int] = {}
    # Zero is no copy of zero: such functions never enter a model.
    return np.array([zero or first.setdefault(one, k) == k for k, (one, zero) in enumerate(prints)])


def fit_regression(
    cluster: Cluster, task: Task, dictionary: Dictionary, noise: Array | None
) -> regression.RegressionFit:
    """Three passes over the rows for all that a Gaussian problem needs of them; the rest happens here.

    The triangle of all rows stands for them as it does for rows in chunks, for every solver: its rows share the weight
    of all evenly, and the last of them holds what no function explains.
    """
    scale, square = _target_scale(cluster, task.fit_intercept)
    if noise is not None:
        check_relative_noise(noise, np.array([square]))
    even, few, t = _on_few_rows(cluster, task, dictionary, float(scale.offset[0]), float(scale.scale[0]))
    # Powers of two: nothing is rounded on the way.
    t = scale.scale * t if square > 0.0 else np.zeros_like(t)
    targets = Targets(t, noise, shared_support=False, offset=scale.offset)
    return regression.fit_regression(even, targets, few)


def _on_few_rows(
    cluster: Cluster, task: Task, dictionary: Dictionary, offset: float, scale: float
) -> tuple[Task, Dictionary, Array]:
    """The task, the dictionary and the targets, less ``offset`` and divided by ``scale``, on rows that stand for all.

    They have the same inner products.
    """
    functions, n = _on_rows(dictionary), cluster.n_rows
    kept = None if task.checkpoint is None else task.checkpoint.sums
    held = _triangle(cluster, kept, functions, task.fit_intercept, offset, scale)
    rows = Reduction(held, held.shape[1] - 1, np.zeros(1), float(n), n)
    few = Dictionary.of_reduction(
        rows, dictionary.functions, dictionary.basis, fit_intercept=task.fit_intercept, shift=dictionary.shift
    )
    if isinstance(functions, KernelFunctions):  # centres say it exactly
        few = replace(few, distinct=_distinct(cluster, functions, task.fit_intercept))
    even = replace(task, weights=np.full(len(held), n / len(held)))
    return even, replace(few, by_row=dictionary.by_row), np.sqrt(len(held) / n) * rows.targets


def _triangle(cluster: Cluster, kept: KeptSums | None, functions: Functions, *settings: Any) -> Array:
    """The triangle of the functions and the targets on all rows: by way of a sample where there are many."""
    summed = partial(_summed, cluster, kept)
    step = cluster.n_rows // (_SAMPLE * len(functions))
    if step > 1:
        first = summed(thinned, join_triangles, step, functions, *settings)
        if independent(first):
            remainders = Remainders.of(first)
            held = remainders.triangle_of(summed(products, add_up, remainders, functions, *settings))
            if held is not None:
                return held
    return summed(triangle, join_triangles, functions, *settings)


def _summed(
    cluster: Cluster,
    kept: KeptSums | None,
    work: Callable[..., Array],
    join: Callable[[list[Array]], Array],
    *arguments: Any,
) -> Array:
    """What ``work`` returns for every partition, joined; in stages, and each of them kept, where there is a file."""
    if kept is None:
        return cluster.merge(work, join, *arguments)
    total, behind = kept.restore(work.__name__)
    for number, stage in enumerate(cluster.stages(_STAGES)[behind:], behind + 1):
        part = stage.merge(work, join, *arguments)
        total = part if total is None else join([total, part])
        kept.keep(work.__name__, total, number)
    return total


def _target_scale(cluster: Cluster, centre: bool) -> tuple[TargetScale, float]:
    """Offset and scale of the targets by the rule of ``TargetScale.of``, from sums, and their mean square."""
    n = cluster.n_rows
    offset = float(cluster.sum(target_sums)[0]) / n if centre else 0.0
    of_inputs, of_targets, about, high, minus_low = cluster.merge(magnitudes, largest, offset)
    check_largest("X", of_inputs)
    check_largest("y", of_targets)
    if centre and high + minus_low <= rounding_level(np.array([[of_targets]]))[0]:
        # A sum of many equal numbers is rounded more than they are.
        offset, about = -minus_low, 0.0
    square = float(cluster.sum(target_spread, offset)[0]) / n
    scale = TargetScale.from_measures(
        np.array([offset]), np.array([of_targets]), np.array([about]), np.array([np.sqrt(square)])
    )
    return scale, square if about > float(scale.rounding[0]) else 0.0


@dataclass(frozen=True)
class Labels:
    """The likelihood of a partition's labels; a plain object, so that it travels."""

    classes: NDArray[Any]
    against: int | None = None

    def __call__(self, y: NDArray[Any]) -> Likelihood:
        """Two classes by the logistic, one against the rest likewise, more by the softmax."""
        labels, ones = np.searchsorted(self.classes, y), np.ones(len(y))
        if self.against is not None:
            return Bernoulli((labels == self.against).astype(np.float64), ones)
        return Categorical(np.eye(len(self.classes))[labels], ones)


@dataclass(frozen=True)
class Member:
    """Whether a row is of one class, as a number; a plain object, so that it travels."""

    classes: NDArray[Any]
    which: int

    def __call__(self, y: NDArray[Any]) -> Array:
        """One for the members, zero for the others."""
        return (np.searchsorted(self.classes, y) == self.which).astype(np.float64)


def _regression_on(members: Cluster, task: Task, dictionary: Dictionary) -> GaussianProblem:
    """The regression on targets that say who is a member of a class."""
    share = float(members.sum(target_sums)[0]) / members.n_rows
    even, few, t = _on_few_rows(members, task, dictionary, share, 1.0)
    return regression.pose(even, few, few.eligible, t)


def find_classes(cluster: Cluster) -> NDArray[Any]:
    """The classes, at least two."""
    classes = cluster.merge(classes_of, all_classes)
    if len(classes) < 2:
        raise ValueError(f"y has one class only ({classes.tolist()[0]!r}): a classifier needs at least 2 classes")
    check_classification_targets(classes)
    return classes


def fit_classification(
    cluster: Cluster, task: Task, dictionary: Dictionary, classes: NDArray[Any], joint: bool, evidence: str
) -> classification.ClassificationFit:
    """The search of one machine, with one pass over the rows for every Newton step."""
    functions, n = _on_rows(dictionary), cluster.n_rows
    m = dictionary.design.shape[1]
    against: list[int | None] = [1] if len(classes) == 2 else [None] if joint else list(range(len(classes)))
    distinct = _distinct(cluster, functions, task.fit_intercept)
    dictionary = replace(dictionary, distinct=distinct)
    n_outputs = len(classes) if joint and len(classes) > 2 else 1
    rule = task.rule(np.tile(distinct, n_outputs))

    by = classification.chosen_by(evidence, task, dictionary.beside_rows)
    results = []
    for which in against:
        problem = PartitionedProblem(
            Counted(n, m),
            Count(n, n_outputs),
            distinct,
            task.bias(dictionary),
            inclusion_cost=rule.cost,
            passes=cluster,
            functions=functions,
            make=Labels(classes, which),
            numbers=np.arange(m, dtype=np.intp),
        )
        if by == "indicators" and which is not None:
            member = _regression_on(cluster.relabelled(Member(classes, which)), task, dictionary)
            results.append(classification.solve_member(task, problem, member))
        else:
            results.append(run(problem, task.solver, task.settings(), task.generator()))
    warn_unconverged([result.status for result in results], noise=False)
    return classification.collect(task, dictionary, results, rule)


__all__ = ["dictionary_on", "find_classes", "fit_classification", "fit_regression"]
