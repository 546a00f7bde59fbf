"""What large softmax problems are searched with, against what it stands for."""

import numpy as np
import pytest
from sklearn.datasets import make_blobs

from sparsebayes import RVC
from sparsebayes.design import DenseDesign
from sparsebayes.inference.models import mode
from sparsebayes.inference.models.laplace import LaplaceActive
from sparsebayes.inference.models.mode import LaplaceProblem
from sparsebayes.likelihood import Categorical


@pytest.fixture
def problem():
    """Three classes of 60 rows, one Gaussian function on each."""
    X, y = make_blobs(60, centers=3, cluster_std=2.5, random_state=0)
    Phi = np.exp(-np.sum((X[:, None] - X) ** 2, axis=2) / 8.0)
    return LaplaceProblem(DenseDesign(Phi), Categorical(np.eye(3)[y], np.ones(60)), np.ones(60, dtype=bool))


def test_functions_join_where_they_gain_enough_and_else_do_not(problem):
    rough, alpha = problem.roughly(), np.array([0.1, 0.2, 0.3])
    smaller, larger = (LaplaceActive.from_model(rough, [3, 70, 130][:a], alpha[:a]) for a in (2, 3))
    gain = larger.evidence() - smaller.evidence()
    joined = smaller.joined([130], alpha[2:], gain - 1e-6)
    assert joined is not None
    np.testing.assert_allclose(joined.mean, larger.mean, atol=1e-6)
    assert smaller.joined([130], alpha[2:], 1e6) is None


def test_batches_reach_a_certified_model_as_single_additions_do(monkeypatch):
    X, y = make_blobs(120, centers=4, cluster_std=3.0, random_state=1)
    single = RVC(gamma=0.05, evidence="laplace").fit(X, y)
    monkeypatch.setattr(mode, "_ROUGHLY", 1)
    batches = RVC(gamma=0.05, evidence="laplace").fit(X, y)
    assert batches.certificate_.converged
    assert max(record.n_moves for record in batches.history_ if record.move == "add") > 1
    objective = [record.objective for record in batches.history_]
    assert np.all(np.diff(objective) >= -1e-9 * np.max(np.abs(objective)))
    assert batches.log_marginal_likelihood_ > single.log_marginal_likelihood_ - 1.0
