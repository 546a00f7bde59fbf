"""Which functions suit a table: kernels on its rows, its columns, or both together; the data decide."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone, is_classifier
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import KFold, StratifiedKFold

from sparsebayes.inference.fit.folds import VOICE
from sparsebayes.typing import Array

# Rows that are left out, in as many folds as that takes, are enough to tell the candidates apart.  They learn from four
# fifths of the rows, up to this many: what curves gain over straight lines grows with the rows (learned from 320 of
# abalone's 3,341, lines were kept, with an error of 2.42; Gaussian functions have 2.26).
_LEFT_OUT = 400
_ROWS = 3000
_FOLDS = 5
_SMALLEST = 1e-15


@dataclass(frozen=True)
class Choice:
    """What was tried, and how well each did.

    Attributes
    ----------
    kept : str
        The candidate that is kept.
    scores : dict of str to float
        Of each candidate; larger is better.
    measure : {"folds", "evidence"}
        What the scores are: mean log density of rows left out, or log evidence.
    n_folds, n_rows : int
        Number of folds, and of rows that were left out in them.
    """

    kept: str
    scores: dict[str, float]
    measure: str
    n_folds: int = 0
    n_rows: int = 0

    def in_words(self) -> str:
        """A sentence for the notes."""
        what = (
            f"mean log density of {self.n_rows} rows left out in {self.n_folds} fold{'s' * (self.n_folds > 1)}"
            if self.measure == "folds"
            else "log evidence"
        )
        others = ", ".join(f"{NAMES[name]} {score:.4g}" for name, score in self.scores.items() if name != self.kept)
        simple = self.measure == "folds" and self.scores[self.kept] < max(self.scores.values())
        why = ", the simplest within one standard error of the best" if simple else ""
        return f"{NAMES[self.kept]} kept: {what} {self.scores[self.kept]:.4g} ({others}){why}"


NAMES = {"rbf": "functions on the rows (rbf)", "columns": "the columns themselves (columns)", "both": "both together"}

SIMPLEST_FIRST = ("columns", "rbf", "both")


def by_folds(
    candidates: dict[str, Any], X: Array, y: NDArray[Any], seed: int, fit: Callable[[Any, Array, NDArray[Any]], None]
) -> Choice | None:
    """Compare candidates by the log density they give to rows that they have not seen; simpler ones win ties.

    Parameters
    ----------
    candidates : dict of str to estimator
        Unfitted, of one task.
    X, y : ndarray
        Training rows.
    seed : int
        Of the shuffle.
    fit : callable
        Fits an estimator to rows.

    Returns
    -------
    Choice or None
        None where a class has too few rows to be on both sides of a fold.
    """
    classifies = is_classifier(next(iter(candidates.values())))
    rows = np.random.default_rng(seed).permutation(len(y))[:_ROWS]
    X, y = X[rows], y[rows]
    n = min(_FOLDS, len(y), int(np.unique(y, return_counts=True)[1].min()) if classifies else len(y))
    if n < 2:
        return None
    splitter = (StratifiedKFold if classifies else KFold)(n, shuffle=True, random_state=seed)
    folds = list(splitter.split(X, y))[: int(np.ceil(_LEFT_OUT * n / len(y)))]
    found = {
        name: np.concatenate([_densities(est, X, y, *fold, fit) for fold in folds]) for name, est in candidates.items()
    }
    scores = {name: float(densities.mean()) for name, densities in found.items()}
    best = max(scores, key=lambda name: scores[name])
    # A simpler candidate that is within one standard error of the best is kept.
    kept = next(name for name in SIMPLEST_FIRST if name in found and _is_near(found[best] - found[name]))
    return Choice(kept, scores, "folds", len(folds), len(found[best]))


def _is_near(behind: Array) -> bool:
    """Whether a standard error is as much; a single row says no more than elsewhere, or a few hide what all others say.

    On laser one row in a hundred is far outside any bars: straight lines were kept, at three times the error of curves.
    """
    behind = np.clip(behind, -VOICE, VOICE)
    return float(behind.mean()) <= float(behind.std()) / np.sqrt(len(behind))


def _densities(est: Any, X: Array, y: NDArray[Any], train: Any, test: Any, fit: Callable[..., None]) -> Array:
    """Log density, or log probability, of every row of a fold."""
    model: Any = clone(est)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # the fit that is kept says how it ended
        fit(model, X[train], y[train])
    if is_classifier(model):
        p = model.predict_proba(X[test])
        return np.log(np.maximum(np.sum(np.where(y[test][:, None] == model.classes_, p, 0.0), axis=1), _SMALLEST))
    if model.likelihood != "gaussian":
        return model.log_density(X[test], y[test])
    mean, std = model.predict(X[test], return_std=True)
    return -0.5 * np.log(2.0 * np.pi * std**2) - 0.5 * ((y[test] - mean) / std) ** 2
