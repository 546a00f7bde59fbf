"""Widths learned again on parts of the rows: what rows left out have had a say in must not be told of them.

The widths of a fit have seen every row, and a search on a part of the rows with these widths predicts the others too
well.  They climb on each part from where all rows have taken them, along the gradient of the part's own evidence, with
the noise held and the search going on in between.  Which inputs are switched off stays.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sparsebayes.basis import Functions
from sparsebayes.design import DenseDesign
from sparsebayes.inference.models.evidence import Array
from sparsebayes.inference.models.gaussian import GaussianModel, Gram
from sparsebayes.inference.models.problem import GaussianProblem
from sparsebayes.inference.search.climb import climb as search
from sparsebayes.kernel_learning.gradients import Held, OnRows, climb
from sparsebayes.kernel_learning.learner import GAIN, ROUNDS, STEPS, WORTHWHILE
from sparsebayes.kernel_learning.parameters import learnable_limits

# What a search settles for, in nats, and how much larger a model may become.
_COARSE, _LARGER = 1e-2, 2


@dataclass(frozen=True)
class Relearned:
    """Climbs of widths on parts of the rows.

    Attributes
    ----------
    X : ndarray of shape (N, d)
        All rows.
    functions : Functions
        The dictionary without the intercept, at the widths of the fit.
    bias : int or None
        Place of the intercept.
    """

    X: Array
    functions: Functions
    bias: int | None

    def __call__(
        self, model: GaussianModel, kept: NDArray[np.bool_], out: NDArray[np.bool_]
    ) -> tuple[GaussianModel, Array]:
        """The model of a part of the rows at widths of its own, and its functions' values on the rows left out."""
        parameters = self.functions.parameters
        log_theta = np.log([p.value for p in parameters])
        limits = learnable_limits(parameters, np.ptp(self.X, axis=0), log_theta)
        free = limits.live(log_theta)
        here, most = OnRows(self.X[kept], self.functions, self.bias), max(_LARGER * model.size, 1)
        height = model.objective + limits.prior.log_density(log_theta)
        for _ in range(ROUNDS):
            problem = model.data.problem
            held = Held(problem, list(model.indices), model.alpha, model.beta, learn_noise=False)
            found = climb(here, [held], limits.prior, log_theta, STEPS, free)
            if found.objective <= height + GAIN:
                break
            values = here.values(found.log_theta)
            data = Gram(_with_values(problem, values))
            other = GaussianModel.weighing(data, list(model.indices), np.exp(found.logs[0]), model.beta, False)
            other = search(other, _COARSE, limit=most)
            gain = other.objective + limits.prior.log_density(found.log_theta) - height
            if gain <= 0.0:  # inner products have lost what the climb has won
                break
            model, log_theta, height = other, found.log_theta, height + gain
            if gain < WORTHWHILE:
                break
        return model, OnRows(self.X[out], self.functions, self.bias).columns(log_theta, model.functions)


def _with_values(problem: GaussianProblem, values: Array) -> GaussianProblem:
    """The problem of other functions on the same rows."""
    return GaussianProblem(
        DenseDesign(values),
        problem.targets,
        problem.weights,
        problem.eligible,
        inclusion_cost=problem.inclusion_cost,
        n_observations=problem.n_effective,
    )
