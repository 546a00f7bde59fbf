"""Functions that are added at once: those that gain most and hardly overlap."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from sparsebayes.inference.objective.scores import Scores
from sparsebayes.inference.search.climb import cosines, pick_apart
from sparsebayes.inference.solvers.solver import State


@dataclass(frozen=True)
class Batch:
    """Functions added at once: how many, with what part of the best gain, up to what cosine of any two columns.

    The precisions settle in between to a tolerance of ``roughly`` nats.
    """

    limit: int
    fair_part: float
    alike: float
    roughly: float


# On the papers' 2-D sinc larger batches end at the same evidence as smaller ones, with a third of the steps.
EXACT = Batch(32, 0.2, 0.5, 0.5)
PREDICTED = Batch(8, 0.3, 0.3, 0.1)


def companions(state: State, scores: Scores, i: int, tol: float) -> list[int]:
    """Functions to add together with i: those that gain a fair part of what it does, and hardly overlap."""
    problem = state.active.problem
    gain = np.where(scores.in_model, 0.0, scores.gain)
    gain[list(state.refused | state.stale)] = 0.0
    batch = PREDICTED if state.active.approximate else EXACT
    limit = max(batch.limit, 2 * problem.n_outputs)
    pool = np.argsort(-gain, kind="stable")[: 4 * limit]
    pool = pool[gain[pool] > max(tol, batch.fair_part * gain[i])]
    if len(pool) <= 1:
        return [i]
    columns, outputs = problem.split(pool.tolist())
    products, outputs = problem.design.among(columns), np.array(outputs)
    apart = cosines(products) < batch.alike
    return pool[pick_apart(apart | (outputs[:, None] != outputs), limit)].tolist()
