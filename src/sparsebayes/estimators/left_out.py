"""How well rows that were left out are predicted: the judge of kernels where the evidence is not one."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from sparsebayes.basis import Basis
from sparsebayes.estimators.task import Task
from sparsebayes.inference.fit.folds import FOLDS

Array = NDArray[np.float64]
# Log densities of targets, given inputs, under a model.
Density = Callable[[Any, Array, NDArray[Any]], Array]

# Log probability of a class that the rows of a fit did not have.
_NEVER = float(np.log(np.finfo(float).tiny))


@dataclass(frozen=True)
class LeftOut:
    """Log densities of the targets of rows, by fits on folds without them.

    Attributes
    ----------
    model : estimator
        What is fitted; it is left as it is.
    X, y, weights : ndarray of shape (N, d), (N,), (N,)
        Rows that differ from each other, their targets, and how often each is there.
    density : callable
        Log densities of targets, given a fitted model and inputs.
    """

    model: Any
    X: Array
    y: NDArray[Any]
    weights: Array
    density: Density

    @classmethod
    def by(cls, model: Any, task: Task, y: NDArray[Any], density: Density, **settings: Any) -> LeftOut:
        """By fits like that of a task, of which nobody is told."""
        alike: Any = clone(model)
        alike.set_params(gamma="scale", solver=task.solver.silent(), n_restarts=0, verbose=0, **settings)
        return cls(alike, task.X, y, task.weights, density)

    @cached_property
    def fold(self) -> NDArray[np.intp]:
        """Fold of every row: by turns in the order of the targets and inputs, whatever the order of the rows.

        Rows with the same inputs are left out together: where only those of one class were, the others would teach that
        there is no such class there.
        """
        rank = np.empty(len(self.y), dtype=np.intp)
        rank[np.lexsort([*self.X.T[::-1], *self.y.reshape(len(self.y), -1).T[::-1]])] = np.arange(len(self.y))
        same = np.unique(self.X, axis=0, return_inverse=True)[1].reshape(-1)
        first = np.full(len(self.y), len(self.y), dtype=np.intp)
        np.minimum.at(first, same, rank)
        return np.unique(first[same], return_inverse=True)[1] % FOLDS

    def of_fold(self, kernel: Basis, fold: int) -> Array:
        """Log densities of the rows of one fold, by a fit with this kernel on the others."""
        out = self.fold == fold
        if len(np.unique(self.y[~out], axis=0)) < 2:  # rows of one class teach nothing
            return np.full(int(np.sum(out)), _NEVER)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            fitted: Any = clone(self.model)
            fitted.set_params(kernel=kernel).fit(self.X[~out], self.y[~out], self.weights[~out])
        return self.density(fitted, self.X[out], self.y[out])

    def weights_of(self, fold: int) -> Array:
        """How often each row of a fold is there."""
        return self.weights[self.fold == fold]


def density_of_classes(model: Any, X: Array, labels: NDArray[Any]) -> Array:
    """Log probabilities of classes 0..K-1 of rows, where those that the model has not seen have next to none."""
    known = np.isin(labels, model.classes_)
    place = np.minimum(np.searchsorted(model.classes_, labels), len(model.classes_) - 1)
    p = model.predict_proba(X)[np.arange(len(X)), place]
    return np.where(known, np.log(np.maximum(p, np.finfo(float).tiny)), _NEVER)
