"""How well classes of rows that were left out are predicted: the judge where the evidence is not one."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from sparsebayes.inference.fit.folds import FOLDS

Array = NDArray[np.float64]


def left_out_density(model: Any, X: Array, labels: NDArray[np.intp], weights: Array) -> float:
    """Mean log probability of the class of a row, by fits on folds without it.

    Parameters
    ----------
    model : classifier
        What is fitted; it is left as it is.
    X, labels, weights : ndarray of shape (N, d), (N,), (N,)
        Rows that differ from each other, their classes 0..K-1, and how often each is there.  Folds are dealt by turns
        in the order of the classes and inputs, so that they do not depend on the order of the rows.
    """
    rank = np.empty(len(labels), dtype=np.intp)
    rank[np.lexsort([*X.T[::-1], labels])] = np.arange(len(labels))
    least = np.finfo(float).tiny
    p = np.full(len(labels), least)
    for fold in range(FOLDS):
        out = rank % FOLDS == fold
        present = np.unique(labels[~out])
        if len(present) < 2 or not out.any():
            continue
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            fitted: Any = clone(model)
            fitted.fit(X[~out], labels[~out], weights[~out])
        among, known = np.searchsorted(present, labels[out]), np.isin(labels[out], present)
        found = fitted.predict_proba(X[out])[np.arange(len(known)), np.minimum(among, len(present) - 1)]
        p[out] = np.where(known, np.maximum(found, least), least)
    return float(np.average(np.log(p), weights=weights))
