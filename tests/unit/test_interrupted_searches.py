"""What is broken off goes on, or ends, where it was."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from sparsebayes import EM, RVR, Variational
from sparsebayes.inference import Sequential
from sparsebayes.inference.fit.indicators import best_scale


@pytest.mark.parametrize("make", [EM, Variational])
@pytest.mark.parametrize("after", [1, 8])
def test_sweeps_that_were_broken_off_go_on_as_they_would_have(make: Any, after: int, tmp_path: Any) -> None:
    """How long their steps are, and whether they go on, is a part of where they were."""
    rng = np.random.default_rng(1)
    X = rng.uniform(-3, 3, (80, 2))
    y = np.sinc(X[:, 0]) + 0.3 * X[:, 1] + (0.05 + 0.15 * (X[:, 0] > 0)) * rng.standard_normal(80)
    seen: list[Any] = []

    def enough(record: Any, active: Any) -> bool:
        seen.append(record)
        return len(seen) >= after

    whole = RVR(gamma=1.0, solver=make()).fit(X, y)
    with pytest.warns(ConvergenceWarning):
        RVR(gamma=1.0, solver=make(callback=enough), checkpoint=tmp_path / "kept").fit(X, y)
    resumed = RVR(gamma=1.0, solver=make(), checkpoint=tmp_path / "kept").fit(X, y)

    assert resumed.n_iter_ == whole.n_iter_
    np.testing.assert_allclose(resumed.predict(X), whole.predict(X), atol=1e-9)


def test_a_scale_whose_search_is_broken_off_on_its_way_up_is_the_highest_so_far() -> None:
    """There is no vertex of heights that only rise, the faster the farther."""
    assert best_scale(1.0, lambda place, factor: place * factor, lambda place: place**1.5, lambda: True) == 4.0


class EndsTooSoon(Sequential):
    """Sees no move at first, so that moves are left for when the certificate finds them."""

    def step(self, state: Any, tol: float) -> Any:
        if not hasattr(self, "seen_"):
            self.seen_ = True
            return None
        return super().step(state, tol)

    def escape(self, state: Any, tol: float) -> Any:
        return None


def test_a_stop_while_moves_are_made_for_the_certificate_is_said_and_certified() -> None:
    rng = np.random.default_rng(0)
    X = rng.uniform(-3.0, 3.0, (60, 1))
    y = np.sinc(X[:, 0]) + 0.05 * rng.standard_normal(60)
    solver = EndsTooSoon(batch=1, callback=lambda record, active: record.n_active >= 3)
    with pytest.warns(ConvergenceWarning, match="Interrupted"):
        model = RVR(gamma=1.0, solver=solver, fit_intercept=False, noise_variance=0.01).fit(X, y)
    assert len(model.relevance_) == 3
    assert model.certificate_.objective == pytest.approx(model.history_[-1].objective, abs=1e-8)
    assert not model.certificate_.converged


@pytest.mark.parametrize("broken_off", [{"max_iter": 10}, {"after": 3}], ids=["max_iter", "callback"])
def test_a_noise_that_is_held_is_released_where_a_search_is_broken_off(broken_off: dict[str, int]) -> None:
    """It was kept: a fiftieth of the true one, with 3,500 nats to gain from another."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(150, 3))
    y = np.sin(2.0 * X[:, 0]) + 0.3 * X[:, 1] ** 2 + 0.3 * rng.standard_normal(150)
    seen: list[Any] = []

    def enough(record: Any, active: Any) -> bool:
        seen.append(record)
        return len(seen) == broken_off.get("after")

    settings = {"max_iter": broken_off["max_iter"]} if "max_iter" in broken_off else {}
    with pytest.warns(ConvergenceWarning):
        model = RVR(solver=Sequential(effort="fast", callback=enough), **settings).fit(X, y)
    assert not model.status_.converged
    assert model.certificate_.noise_gain < 0.1
    assert 0.05 < model.noise_variance_ < 0.5
    last = model.history_[-1]
    assert last.move == "noise"
    assert last.objective == pytest.approx(model.certificate_.objective, abs=1e-6)
    assert [record.objective for record in model.history_] == sorted(record.objective for record in model.history_)


def test_a_noise_that_is_given_is_not_released() -> None:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(100, 3))
    y = np.sin(2.0 * X[:, 0]) + 0.3 * rng.standard_normal(100)
    with pytest.warns(ConvergenceWarning):
        model = RVR(effort="fast", noise_variance=0.01, max_iter=5).fit(X, y)
    assert model.noise_variance_ == 0.01
