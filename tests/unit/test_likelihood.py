"""Every likelihood: gradient, curvature and its change against finite differences."""

import numpy as np
import pytest

from sparsebayes.likelihood import Bernoulli, Categorical, Poisson, SquaredErrors

N = 7
RNG = np.random.default_rng(0)
WEIGHTS = RNG.uniform(0.5, 3.0, N)
LIKELIHOODS = {
    "bernoulli": Bernoulli(RNG.integers(0, 2, N).astype(float), WEIGHTS),
    "poisson": Poisson(RNG.integers(0, 9, N).astype(float), WEIGHTS, 0.7),
    "squares": SquaredErrors(RNG.standard_normal(N) ** 2, WEIGHTS, 0.3),
    "categorical": Categorical(np.eye(4)[RNG.integers(0, 4, N)], WEIGHTS),
}


def numeric(f, y, h=1e-6):
    """Central differences of a function of the outputs, one (row, output) at a time."""
    columns = []
    for index in np.ndindex(*y.shape):
        up, down = y.copy(), y.copy()
        up[index] += h
        down[index] -= h
        columns.append((f(up) - f(down)) / (2 * h))
    return np.array(columns)


@pytest.fixture(params=sorted(LIKELIHOODS))
def case(request):
    likelihood = LIKELIHOODS[request.param]
    return likelihood, np.random.default_rng(1).standard_normal(likelihood.shape)


def test_gradient(case):
    likelihood, y = case
    found = numeric(likelihood.log_likelihood, y).reshape(y.shape)
    np.testing.assert_allclose(likelihood.gradient(y), found, rtol=1e-6, atol=1e-7)


def test_curvature(case):
    likelihood, y = case
    n, k = y.shape
    hessian = -numeric(lambda v: likelihood.gradient(v).ravel(), y).reshape(n, k, n, k)
    for row in range(n):
        np.testing.assert_allclose(likelihood.curvature(y).blocks()[row], hessian[row, :, row, :], rtol=1e-6, atol=1e-7)
        hessian[row, :, row, :] = 0.0
    np.testing.assert_allclose(hessian, 0.0, atol=1e-7)


def test_curvature_change(case):
    likelihood, y = case
    n, k = y.shape
    half = np.random.default_rng(2).standard_normal((n, k, k))
    spread = half @ half.transpose(0, 2, 1)
    found = numeric(lambda v: np.einsum("nkl,nkl->", likelihood.curvature(v).blocks(), spread), y).reshape(n, k)
    shared = likelihood.curvature(y).shared
    along = None if shared is None else np.einsum("nkl,nl->nk", spread, shared)
    variance = np.einsum("nkk->nk", spread)
    np.testing.assert_allclose(likelihood.curvature_change(y, variance, along), found, rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize("name", ["bernoulli", "categorical"])
def test_saturated_rows_stay_finite(name):
    likelihood = LIKELIHOODS[name]
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
