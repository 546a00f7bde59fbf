"""Classifications that are not the ledger's: small tables that come with the library or scikit-learn, and odd ones."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sparsebayes import datasets
from sparsebayes.benchmarks.ledger.cases import Array, Case, Problem, standardised

# Name, and the share of the rows that is learned from; of Pima as many as in Ripley's split.
_SMALL = {"iris": 0.6, "wine": 0.6, "wdbc": 0.6, "pima_ripley": 200 / 532}
# Rows of each class: one among a thousand, one that is alone in its class, and very many classes.
_ODD = {"rare": [2000, 2], "alone": [100, 100, 1], "hundred": [10] * 100}
# Rows of which every one is there twice, once in either class.
_TWICE = 100
_INPUTS = 5
# How far apart the centres of classes are, in standard deviations of a class.
_APART = 2.0


def small_problems() -> list[Problem]:
    """Shuffled by the seed and standardised, with gamma = 1 / inputs."""
    found = [Problem(name, ("small",), partial(_small, name, share)) for name, share in _SMALL.items()]
    found += [Problem(name, ("odd",), partial(_clouds, counts)) for name, counts in _ODD.items()]
    return [*found, Problem("contradictory", ("odd",), _contradictory)]


def _small(name: str, share: float, seed: int) -> Case:
    X, y = datasets.load(name, return_X_y=True)
    order = np.random.default_rng(seed).permutation(len(y))
    learned, judged = np.split(order, [round(share * len(y))])
    return _case(X[learned], y[learned], X[judged], y[judged])


def _clouds(counts: list[int], seed: int) -> Case:
    """Normal clouds, one for each class, and as many rows of each to be judged by."""
    rng, labels = np.random.default_rng(seed), np.repeat(np.arange(len(counts)), counts)
    centres = _APART * rng.standard_normal((len(counts), _INPUTS))
    learned, judged = (centres[labels] + rng.standard_normal((len(labels), _INPUTS)) for _ in range(2))
    return _case(learned, labels, judged, labels)


def _contradictory(seed: int) -> Case:
    X = np.tile(np.random.default_rng(seed).standard_normal((_TWICE, _INPUTS)), (2, 1))
    y = np.repeat([0, 1], _TWICE)
    return _case(X, y, X, y)


def _case(X: Array, y: NDArray[Any], X_test: Array, y_test: NDArray[Any]) -> Case:
    learned, judged = standardised(X, X_test)
    return Case(learned, y, judged, y_test, gamma=1.0 / X.shape[1], classes=True)
