"""Shapley values by their definition: every coalition of inputs."""

from math import factorial

import numpy as np


def enumerate_coalitions(output, x, background):
    """Shapley values at x of ``output`` (rows to numbers, or to rows of numbers), the inputs first.

    Inputs that are not known are those of each row of the background in turn.
    """
    d = len(x)
    known = (np.arange(2**d)[:, None] >> np.arange(d)) & 1 == 1
    rows = np.where(known[:, None, :], x, np.asarray(background, dtype=float)[None])
    worth = np.asarray(output(rows.reshape(-1, d)))
    worth = worth.reshape(2**d, len(background), *worth.shape[1:]).mean(axis=1)
    weights = np.array([factorial(s) * factorial(d - s - 1) / factorial(d) for s in range(d)])
    values = np.zeros((d, *worth.shape[1:]))
    for j in range(d):
        without = np.flatnonzero(~known[:, j])
        weight = weights[known[without].sum(axis=1)]
        values[j] = np.tensordot(weight, worth[without + 2**j] - worth[without], axes=1)
    return values
