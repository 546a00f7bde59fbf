"""What all readers of models share."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.sparse import issparse

from sparsebayes.applications.approximation.expansion import Source
from sparsebayes.typing import Array

# The model's own predictions are compared on this many points, to this accuracy relative to the largest: enough to
# find what was misread, loose enough for tree algorithms that stop early.
_CONFIRMED_ON = 100
_CONFIRMED_TO = 1e-3


def as_points(name: str, values: Any) -> Array:
    """Centres of a model as a dense array."""
    dense = values.toarray() if issparse(values) else values
    points = np.asarray(dense)
    if points.ndim != 2 or points.dtype.kind not in "fiub":
        raise ValueError(f"the model's {name} are no vectors of numbers; sparsify needs numeric inputs of shape (n, d)")
    return points.astype(np.float64)


def as_dense(values: Any) -> Array:
    """Coefficients of a model as a dense array."""
    return np.asarray(values.toarray() if issparse(values) else values, dtype=np.float64)


def confirm(source: Source, predict: Callable[[Array], Any], ours: Callable[[Array], Array] | None = None) -> Source:
    """Check that the source was read as the model predicts; ``ours`` is what to compare, by default its outputs."""
    some = source.points[:: max(1, len(source.points) // _CONFIRMED_ON)]
    read = source.expansion.evaluate(some) if ours is None else ours(some)
    said = np.asarray(predict(some), dtype=np.float64).reshape(read.shape)
    largest = max(float(np.max(np.abs(said))), np.finfo(float).tiny)
    # Weights that cancel leave their rounding in both.
    rounding = len(source.points) * np.finfo(float).eps * float(np.max(np.sum(np.abs(source.weights), axis=(0, 1))))
    if not np.max(np.abs(read - said)) <= _CONFIRMED_TO * largest + rounding:
        raise ValueError(
            "the model's predictions are not those of its fitted coefficients: it was changed after it was fitted, or "
            "its class predicts in a way of its own; fit it again, or pass a plain scikit-learn estimator"
        )
    return source
