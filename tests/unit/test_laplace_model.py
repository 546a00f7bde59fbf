"""The loop on Laplace models: rough modes on the way, true ones in what stands, and an end to promises in vain."""

import numpy as np
import pytest

from sparsebayes.design import DenseDesign
from sparsebayes.inference.laplace import LaplaceActive
from sparsebayes.inference.mode import LaplaceProblem
from sparsebayes.inference.models.laplace import LaplaceModel
from sparsebayes.inference.search.climb import climb
from sparsebayes.likelihood import Bernoulli, Poisson


def _problem(kind: str, seed: int = 0) -> LaplaceProblem:
    rng = np.random.default_rng(seed)
    X = rng.uniform(-3.0, 3.0, (120, 2))
    Phi = np.exp(-0.5 * np.sum((X[:, None] - X) ** 2, axis=2))
    output = 2.0 * np.sin(X[:, 0]) - X[:, 1]
    if kind == "poisson":
        likelihood = Poisson(rng.poisson(np.exp(0.5 * output)).astype(float), np.ones(120))
    else:  # without noise the classes are separable, and rows saturate
        noise = 0.0 if kind == "separable" else 1.0
        likelihood = Bernoulli((output + noise * rng.logistic(size=120) > 0.0).astype(float), np.ones(120))
    return LaplaceProblem(DenseDesign(Phi), likelihood, np.ones(120, dtype=bool))


@pytest.mark.parametrize("kind", ["noisy", "separable", "poisson"])
def test_what_stands_has_the_evidence_of_its_true_mode(kind):
    problem = _problem(kind)
    seen = []
    final = climb(
        LaplaceModel(LaplaceActive(problem)), 0.01, patience=8, accepted=lambda before, after: seen.append(after)
    )
    assert len(seen) > 2
    for before, after in zip([*seen[:-1], seen[-1]], [*seen[1:], final], strict=True):
        assert after.objective >= before.objective
        again = LaplaceActive.from_model(problem, after.indices, after.active.alpha)
        assert after.evidence() == pytest.approx(again.evidence(), abs=1e-6)


def test_promises_in_vain_end_the_climb(monkeypatch):
    model, tried = LaplaceModel(LaplaceActive(_problem("noisy"))), []

    def refuse(self, functions, alpha, tol):
        tried.append(functions.tolist())

    monkeypatch.setattr(LaplaceModel, "joined", refuse)
    assert climb(model, 0.01, batch=1, patience=5).indices == []
    assert len(tried) == 5
