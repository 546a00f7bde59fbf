"""Other places to begin from: random models of the size of the best one."""

from __future__ import annotations

import numpy as np

from sparsebayes.inference.active import ActiveSet
from sparsebayes.inference.interface import Active
from sparsebayes.inference.laplace import LaplaceActive
from sparsebayes.inference.mode import LaplaceProblem


def random_model(best: Active, rng: np.random.Generator) -> Active:
    """As many functions as the best model has, drawn at random, each with its share of the targets' variance."""
    problem = best.problem
    candidates = np.flatnonzero(problem.eligible)
    size = min(max(best.size, 1), len(candidates))
    chosen = np.sort(rng.choice(candidates, size, replace=False)).tolist()
    if isinstance(problem, LaplaceProblem):
        norms = problem.design.sqnorms()[problem.split(chosen)[0]]
        return LaplaceActive.from_model(problem, chosen, size * np.maximum(norms, 1e-300) / problem.design.shape[0])
    prior = size * problem.sqnorms[chosen] / (problem.n_effective * problem.mean_square)
    return ActiveSet.from_model(problem, chosen, prior, best.beta)
