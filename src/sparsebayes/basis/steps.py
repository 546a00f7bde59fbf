"""Steps along the inputs: the dictionary of piecewise-constant functions."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from .base import Basis, Floats, Functions, Index, Specification, check_training, positions


class StepFunctions(Functions):
    """Steps φ(x) = 1 if x_feature ≥ threshold, else 0.

    Parameters
    ----------
    features, thresholds, rows : (M,) arrays
        The input that each step looks at, where it steps, and the training row it came from (or -1).
    n_features : int
        The number of inputs.
    """

    def __init__(self, features: Index, thresholds: Floats, rows: Index, n_features: int) -> None:
        super().__init__(n_features)
        self._features = features
        self._thresholds = thresholds
        self._rows = rows

    def __len__(self) -> int:
        return self._features.size

    @property
    def rows(self) -> Index:
        """Index of the first training row at each threshold; -1 where there is none."""
        return self._rows

    @property
    def centres(self) -> Floats:
        """The thresholds as (M, d) centres, NaN at the inputs that a step does not look at."""
        centres = np.full((len(self), self.n_features), np.nan)
        centres[np.arange(len(self)), self._features] = self._thresholds
        return centres

    def _evaluate(self, X: Floats, idx: Index | slice) -> Floats:
        return (X[:, self._features[idx]] >= self._thresholds[idx]).astype(np.float64)

    def restrict(self, idx: Any) -> StepFunctions:
        """Return just the functions ``idx``, in that order."""
        idx = positions(idx, len(self))
        return StepFunctions(self._features[idx], self._thresholds[idx], self._rows[idx], self.n_features)

    def at_centres(self, like: int, centres: Floats) -> StepFunctions:
        """Return steps along the same input at new thresholds."""
        features = np.full(len(centres), self._features[like], dtype=np.intp)
        return StepFunctions(features, centres[:, features[0]], np.full(len(centres), -1, np.intp), self.n_features)

    def specifications(self) -> list[Specification]:
        """Return the identity of every function as plain, JSON-able data."""
        return [
            {"kind": Heaviside.kind, "feature": feature, "threshold": threshold}
            for feature, threshold in zip(self._features.tolist(), self._thresholds.tolist(), strict=True)
        ]


class Heaviside(Basis):
    """Steps up at every value that an input takes in training: φ(x) = 1 if x_j ≥ c, else 0.

    Functions come input by input, and within an input in the order in which the values first appear, so that
    with one input and no repeated value function m steps at training row m.
    """

    kind = "heaviside"
    identity = ("feature", "threshold")

    def bind(self, X: ArrayLike, *, random_state: Any = None) -> Functions:
        """Put a step at every distinct value of every input."""
        X = check_training(X)
        rows = [np.sort(np.unique(column, return_index=True)[1]).astype(np.intp) for column in X.T]
        features = np.repeat(np.arange(X.shape[1], dtype=np.intp), [r.size for r in rows])
        all_rows = np.concatenate(rows)
        return StepFunctions(features, X[all_rows, features], all_rows, X.shape[1])

    @classmethod
    def _rebuild(cls, parameters: Specification, members: list[Specification], n_features: int) -> Functions:
        features = np.array([member["feature"] for member in members], dtype=np.intp)
        thresholds = np.array([member["threshold"] for member in members], dtype=np.float64)
        if (features < 0).any() or (features >= n_features).any():
            raise ValueError(f"feature of a heaviside specification is outside 0..{n_features - 1}")
        return StepFunctions(features, thresholds, np.full(features.size, -1, dtype=np.intp), n_features)
