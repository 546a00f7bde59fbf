"""Training and test sets as the papers on backfitting and subset selection draw them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from sparsebayes import datasets
from sparsebayes.typing import Array


@dataclass(frozen=True)
class Split:
    """One training and one test set; ``variance`` of the targets is what normalised errors are divided by."""

    X_train: Array
    y_train: Array
    X_test: Array
    y_test: Array
    variance: float


def sinc_splits(count: int) -> Iterator[Split]:
    """100 evenly spaced points with noise 0.1, and 1000 noise-free ones to be judged by."""
    X_test, y_test = datasets.make_sinc(1000, noise=0.0, random_state=0)[:2]
    for seed in range(count):
        X, y = datasets.make_sinc(100, noise=0.1, random_state=seed)[:2]
        yield Split(X, y, X_test, y_test, float(np.var(y_test)))


def random_splits(X: Array, y: Array, train: int, count: int) -> Iterator[Split]:
    """Random splits into so many training rows and the rest."""
    for seed in range(count):
        order = np.random.default_rng(seed).permutation(len(y))
        a, b = order[:train], order[train:]
        yield Split(X[a], y[a], X[b], y[b], float(np.var(y)))


def scale_to_unit(split: Split) -> Split:
    """Inputs scaled to [-1, 1] on the training rows."""
    low, high = split.X_train.min(axis=0), split.X_train.max(axis=0)
    span = np.where(high > low, high - low, 1.0)

    def scale(X: Array) -> Array:
        return 2.0 * (X - low) / span - 1.0

    return replace(split, X_train=scale(split.X_train), X_test=scale(split.X_test))


def standardise(split: Split) -> Split:
    """Inputs brought to zero mean and unit variance on the training rows."""
    centre, spread = split.X_train.mean(axis=0), split.X_train.std(axis=0)
    spread = np.where(spread > 0.0, spread, 1.0)
    return replace(split, X_train=(split.X_train - centre) / spread, X_test=(split.X_test - centre) / spread)
