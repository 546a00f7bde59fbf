"""What every start of a search must do, as a suite of tests that a policy inherits.

>>> class TestMine(PolicyConformance):
...     def make(self):
...         return MyPolicy()
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator

import numpy as np
from numpy.testing import assert_allclose, assert_array_equal

from sparsebayes.design import DenseDesign
from sparsebayes.inference.models.gaussian import GaussianModel, Gram
from sparsebayes.inference.models.problem import GaussianProblem
from sparsebayes.inference.search.climb import climb
from sparsebayes.inference.search.starts import Policy, Schedule, ascend
from sparsebayes.typing import Array


class PolicyConformance(ABC):
    """The conformance suite; pytest collects it through subclasses whose name starts with ``Test``."""

    @abstractmethod
    def make(self) -> Policy:
        """Return the policy under test."""

    def _problems(self) -> Iterator[tuple[Array, Array, Gram, GaussianModel]]:
        """Functions, targets, their inner products, and the best model so far: few functions, many, and alike ones."""
        for seed, (n, m, alike) in enumerate([(40, 20, 0.0), (40, 60, 0.0), (30, 25, 0.9)]):
            rng = np.random.default_rng(seed)
            Phi = rng.standard_normal((n, m)) + 3.0 * alike * rng.standard_normal((n, 1))
            t = Phi[:, :3] @ rng.standard_normal((3, 1)) + 0.3 * rng.standard_normal((n, 1))
            eligible = np.arange(m) != m - 1
            data = Gram(GaussianProblem(DenseDesign(Phi), t, np.ones(n), eligible))
            yield Phi, t, data, climb(Schedule().begin(data, None), 1e-2)

    def test_it_begins_with_a_model_of_the_problem(self) -> None:
        """Functions that may enter, finite precisions, the evidence of dense algebra; the best model stays as it is."""
        for Phi, t, data, best in self._problems():
            before = best.indices, best.alpha.copy(), best.beta
            model = self.make().begin(data, best)
            assert model.data is data
            assert np.all(data.eligible[model.indices])
            assert np.all((model.alpha > 0.0) & np.isfinite(model.alpha))
            assert_allclose(model.evidence(), _dense(Phi[:, model.indices], t, model.alpha, model.beta), rtol=1e-8)
            assert best.indices == before[0]
            assert best.beta == before[2]
            assert_array_equal(best.alpha, before[1])

    def test_what_is_told_never_falls(self) -> None:
        """Every move that is told raises the objective, and the noise is learned in the end."""
        for _, _, data, best in self._problems():
            told: list[tuple[GaussianModel, GaussianModel]] = []
            model = ascend(self.make(), data, best, accepted=lambda before, after: told.append((before, after)))  # noqa: B023
            assert all(after.objective >= before.objective for before, after in told)
            assert model.learn_noise

    def test_moves_that_are_told_follow_one_another(self) -> None:
        """From nothing, where the policy chooses functions, else from the model that it begins with."""
        policy = self.make()
        for _, _, data, best in self._problems():
            told: list[tuple[GaussianModel, GaussianModel]] = []
            ascend(policy, data, best, accepted=lambda before, after: told.append((before, after)))  # noqa: B023
            reached = set() if policy.chooses else set(policy.begin(data, best).indices)
            for before, after in told:
                assert set(before.indices) == reached
                reached = set(after.indices)

    def test_a_noise_that_is_given_is_kept(self) -> None:
        """The search ends at that noise, and does not learn another."""
        for _, _, data, best in self._problems():
            model = ascend(self.make(), data, best.at_noise(4.0, learn_noise=False), fixed=4.0)
            assert model.beta == 4.0
            assert not model.learn_noise

    def test_it_ends_where_nothing_can_be_added(self) -> None:
        """No function left out would gain, whatever its precision, by dense algebra."""
        for Phi, t, data, best in self._problems():
            final = climb(ascend(self.make(), data, best), 1e-3)
            level = _dense(Phi[:, final.indices], t, final.alpha, final.beta)
            for m in np.setdiff1d(np.flatnonzero(data.eligible), final.indices):
                scale = float(Phi[:, m] @ Phi[:, m]) * final.beta
                columns = Phi[:, [*final.indices, m]]
                tried = (np.append(final.alpha, scale * part) for part in np.geomspace(1e-4, 1e2, 25))
                assert max(_dense(columns, t, alpha, final.beta) for alpha in tried) < level + 1e-2

    def test_it_is_reproducible(self) -> None:
        """The same problem, the same model."""
        for (_, _, data, best), (_, _, again, same) in zip(self._problems(), self._problems(), strict=True):
            first, second = ascend(self.make(), data, best), ascend(self.make(), again, same)
            assert first.indices == second.indices
            assert_array_equal(first.alpha, second.alpha)


def _dense(Phi: Array, t: Array, alpha: Array, beta: float) -> float:
    """Log evidence by the covariance of the targets (T&F eq. 7)."""
    C = np.eye(len(t)) / beta + (Phi / alpha) @ Phi.T
    return -0.5 * float(np.linalg.slogdet(2.0 * np.pi * C)[1] + np.sum(t * np.linalg.solve(C, t)))
