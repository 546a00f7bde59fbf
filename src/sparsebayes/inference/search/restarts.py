"""Other places to begin from: random models of the size of the best one."""

from __future__ import annotations

import numpy as np

from sparsebayes.inference.models.interface import Active


def random_model(best: Active, rng: np.random.Generator) -> Active:
    """As many functions as the best model has, drawn at random, each with its share of the targets' variance."""
    problem = best.problem
    candidates = np.flatnonzero(problem.eligible)
    size = min(max(best.size, 1), len(candidates))
    chosen = np.sort(rng.choice(candidates, size, replace=False)).tolist()
    prior = size * np.maximum(problem.sqnorms[chosen], 1e-300) / (problem.n_effective * problem.mean_square)
    return best.like(problem, chosen, prior)
