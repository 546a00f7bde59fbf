"""Every likelihood passes the conformance suite; rows that saturate stay finite."""

import numpy as np
import pytest

from sparsebayes.likelihood import Bernoulli, Categorical, Poisson, SquaredErrors
from sparsebayes.testing.likelihood import LikelihoodConformance

N = 7
RNG = np.random.default_rng(0)
WEIGHTS = RNG.uniform(0.5, 3.0, N)


class TestBernoulli(LikelihoodConformance):
    def make(self, weights):
        return Bernoulli(np.random.default_rng(0).integers(0, 2, len(weights)).astype(float), weights)


class TestPoisson(LikelihoodConformance):
    def make(self, weights):
        return Poisson(np.random.default_rng(0).integers(0, 9, len(weights)).astype(float), weights, 0.7)


class TestSquaredErrors(LikelihoodConformance):
    def make(self, weights):
        return SquaredErrors(np.random.default_rng(0).standard_normal(len(weights)) ** 2, weights, 0.3)


class TestCategorical(LikelihoodConformance):
    def make(self, weights):
        return Categorical(np.eye(4)[np.random.default_rng(0).integers(0, 4, len(weights))], weights)


@pytest.mark.parametrize("suite", [TestBernoulli, TestCategorical])
def test_saturated_rows_stay_finite(suite):
    likelihood = suite().make(WEIGHTS)
    y = 800.0 * np.where(np.arange(N) % 2, 1.0, -1.0)[:, None] * np.ones(likelihood.shape)
    y[:, 0] *= -1.0
    assert np.isfinite(likelihood.log_likelihood(y))
    for value in (likelihood.gradient(y), likelihood.curvature(y).blocks()):
        assert np.all(np.isfinite(value))


def test_two_classes_are_the_softmax_of_the_difference():
    t = RNG.integers(0, 2, N)
    y = RNG.standard_normal((N, 2))
    two = Categorical(np.eye(2)[t], WEIGHTS).log_likelihood(y)
    one = Bernoulli(t.astype(float), WEIGHTS).log_likelihood(y[:, 1:] - y[:, :1])
    assert two == pytest.approx(one, abs=1e-10)
