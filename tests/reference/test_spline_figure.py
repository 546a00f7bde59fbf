"""The right panel of Tipping 2001's sinc figures: linear splines, uniform noise, the noise learned.

All solvers climb one objective, so that none may end far below another.  The paper's figure is one draw of such data.
"""

import pytest

from sparsebayes import SparseBayesRegressor, datasets
from sparsebayes.basis import Bias, LinearSpline

SOLVERS = ("sequential", "mackay", "em", "variational")
NATS = 3.0


def evidences(seed):
    X, y = datasets.make_sinc(100, noise=0.2, distribution="uniform", random_state=seed)
    return {
        solver: SparseBayesRegressor(Bias() + LinearSpline(), solver=solver).fit(X, y).log_marginal_likelihood_
        for solver in SOLVERS
    }


@pytest.mark.parametrize("seed", range(30))
def test_no_other_solver_ends_higher(seed):
    found = evidences(seed)
    assert found["sequential"] >= max(found.values()) - NATS, found
