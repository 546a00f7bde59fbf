"""What every likelihood must do, as a suite of tests that an implementation inherits.

>>> class TestMine(LikelihoodConformance):
...     def make(self, weights):
...         return MyLikelihood(my_targets(len(weights)), weights)

Derivatives are compared with finite differences, and the evidence that a search ends with with dense algebra.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.testing import assert_allclose

from sparsebayes.design import DenseDesign
from sparsebayes.inference import Sequential, Settings
from sparsebayes.inference.fit.run import run
from sparsebayes.inference.models.mode import LaplaceProblem
from sparsebayes.likelihood import Likelihood
from sparsebayes.typing import Array


class LikelihoodConformance(ABC):
    """The conformance suite; pytest collects it through subclasses whose name starts with ``Test``."""

    @abstractmethod
    def make(self, weights: Array) -> Likelihood:
        """Return the likelihood of as many rows as there are weights, with the same targets at every call."""

    def _case(self) -> tuple[Likelihood, Array]:
        rng = np.random.default_rng(1)
        likelihood = self.make(rng.uniform(0.5, 3.0, 7))
        return likelihood, rng.standard_normal(likelihood.shape)

    def test_shape(self) -> None:
        """Rows and outputs."""
        assert self._case()[0].shape[0] == 7

    def test_gradient(self) -> None:
        """The gradient is that of the log likelihood."""
        likelihood, y = self._case()
        found = _numeric(likelihood.log_likelihood, y).reshape(y.shape)
        assert_allclose(likelihood.gradient(y), found, rtol=1e-6, atol=1e-7)

    def test_curvature(self) -> None:
        """The curvature is that of the log likelihood, row by row."""
        likelihood, y = self._case()
        n, k = y.shape
        hessian = -_numeric(lambda v: likelihood.gradient(v).ravel(), y).reshape(n, k, n, k)
        blocks = likelihood.curvature(y).blocks()
        for row in range(n):
            assert_allclose(blocks[row], hessian[row, :, row, :], rtol=1e-6, atol=1e-7)
            hessian[row, :, row, :] = 0.0
        assert_allclose(hessian, 0.0, atol=1e-7)

    def test_log_concave(self) -> None:
        """The curvature is positive semi-definite at every output, far ones too: a search goes through them."""
        likelihood, y = self._case()
        for scale in (1.0, -1.0, 3.0, -3.0, 10.0, -10.0):
            blocks = likelihood.curvature(scale * y).blocks()
            least = np.linalg.eigvalsh(blocks)[:, 0]
            rounding = 1e-12 * np.maximum(1.0, np.abs(blocks).max(axis=(1, 2)))
            row = int(np.argmin(least + rounding))
            assert least[row] >= -rounding[row], f"B is negative at y = {scale * y[row]}: not log-concave"

    def test_curvature_change(self) -> None:
        """The derivative of tr(BV) at fixed V, by which the evidence knows that its mode moves."""
        likelihood, y = self._case()
        n, k = y.shape
        half = np.random.default_rng(2).standard_normal((n, k, k))
        spread = half @ half.transpose(0, 2, 1)
        found = _numeric(lambda v: np.einsum("nkl,nkl->", likelihood.curvature(v).blocks(), spread), y).reshape(n, k)
        shared = likelihood.curvature(y).shared
        along = None if shared is None else np.einsum("nkl,nl->nk", spread, shared)
        variance = np.einsum("nkk->nk", spread)
        assert_allclose(likelihood.curvature_change(y, variance, along), found, rtol=1e-6, atol=1e-7)

    def test_a_weight_counts_rows(self) -> None:
        """A weight of two is the row twice."""
        _, y = self._case()
        once, twice = self.make(np.ones(7)), self.make(np.full(7, 2.0))
        assert_allclose(twice.log_likelihood(y), 2.0 * once.log_likelihood(y), rtol=1e-12)
        assert_allclose(twice.gradient(y), 2.0 * once.gradient(y), rtol=1e-12)
        assert_allclose(twice.curvature(y).blocks(), 2.0 * once.curvature(y).blocks(), rtol=1e-12)

    def test_a_search_ends_with_a_proof(self) -> None:
        """No single move gains, the weights are at the mode, and the evidence is Laplace's by dense algebra."""
        n, m = 40, 6
        likelihood = self.make(np.ones(n))
        k, Phi = likelihood.shape[1], np.random.default_rng(3).standard_normal((n, m))
        Phi[:, 0] += 2.0 * likelihood.gradient(np.zeros((n, k)))[:, 0]  # one that the targets ask for
        problem = LaplaceProblem(DenseDesign(Phi), likelihood, np.ones(m, dtype=bool))
        result = run(problem, Sequential(), Settings(tol=1e-3, max_iter=1000), np.random.default_rng(0))
        active = result.active
        assert result.certificate.converged
        assert active.size
        output, column = np.divmod(np.array(active.indices), m)
        outputs = np.zeros((n, k))
        for j in range(active.size):
            outputs[:, output[j]] += Phi[:, column[j]] * active.mean[j]
        slope = np.einsum("na,na->a", Phi[:, column], likelihood.gradient(outputs)[:, output])
        assert_allclose(slope, active.alpha * active.mean, rtol=1e-5, atol=1e-6)
        blocks = likelihood.curvature(outputs).blocks()[:, output][:, :, output]
        precision = np.einsum("na,nab,nb->ab", Phi[:, column], blocks, Phi[:, column]) + np.diag(active.alpha)
        occam = np.sum(np.log(active.alpha)) - np.linalg.slogdet(precision)[1]
        expected = likelihood.log_likelihood(outputs) - 0.5 * active.alpha @ active.mean**2 + 0.5 * occam
        assert_allclose(active.evidence(), expected, rtol=1e-8)


def _numeric(f: Callable[[Array], Any], y: Array, h: float = 1e-6) -> Array:
    """Central differences of a function of the outputs, one (row, output) at a time."""
    columns: list[Any] = []
    for index in np.ndindex(*y.shape):
        up, down = y.copy(), y.copy()
        up[index] += h
        down[index] -= h
        columns.append((f(up) - f(down)) / (2 * h))
    return np.array(columns)
