"""The Gaussian problem of a design without rows."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from sparsebayes.design import DenseDesign, MomentDesign, representatives
from sparsebayes.inference.models.problem import GaussianProblem


def moment_problem(design: MomentDesign, eligible: NDArray[np.bool_] | None = None) -> GaussianProblem:
    """Problem with exactly the moments of the design, on the few rows of their root.

    Every solver runs on it as on data: the evidence sees the design's N, since the rows carry its weight between them.

    Parameters
    ----------
    design : MomentDesign
        The moments.
    eligible : ndarray of bool, shape (M,), optional
        Functions that may enter; by default all that are not a copy of an earlier one,
        which has the same inner products with everything.
    """
    enter = representatives(DenseDesign(design.G)) == np.arange(len(design.G)) if eligible is None else eligible
    root = design.root()
    n_rows = len(root.columns)
    weight = design.N / n_rows
    scale = 1.0 / np.sqrt(weight)
    problem = GaussianProblem(DenseDesign(scale * root.columns), scale * root.targets, np.full(n_rows, weight), enter)
    problem.rowwise = False
    return problem
