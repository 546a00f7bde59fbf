"""Figures that regression must reach, each on the problem as published or defined in the docs."""

import fixed_point
import numpy as np
import pytest
from scipy.spatial.distance import cdist, pdist

from sparsebayes import RVR, Sequential, SparseBayesRegressor, datasets
from sparsebayes.basis import Bias, Heaviside, LinearSpline


def rms(error):
    return float(np.sqrt(np.mean(error**2)))


def test_noise_free_sinc_with_splines():
    """Tipping 2001: 9 vectors; a severely ill-conditioned dictionary."""
    X, y = datasets.make_sinc(100, noise=0.0)
    model = SparseBayesRegressor(Bias() + LinearSpline(), fit_intercept=False, noise_variance=0.01**2).fit(X, y)
    assert sum(f["kind"] != "bias" for f in model.relevance_functions_) <= 9
    assert np.max(np.abs(model.predict(X) - y)) <= 0.012
    assert model.log_marginal_likelihood_ >= 305.3
    assert model.certificate_.converged


def test_noisy_sinc():
    """Tipping 2001: RMS .0326 with 6.7 vectors."""
    errors, vectors = [], []
    for seed in range(100):
        X, y, clean = datasets.make_sinc(100, noise=0.1, random_state=seed, return_clean=True)
        model = RVR(gamma=1 / 4**2).fit(X, y)
        errors.append(rms(model.predict(X) - clean))
        vectors.append(len(model.relevance_))
    assert np.mean(errors) <= 0.030
    assert np.mean(vectors) <= 6.7


@pytest.fixture(scope="module")
def sinc_2d():
    """Error, vectors and noise of ten draws."""
    errors, vectors, sigmas = [], [], []
    for seed in range(10):
        X, y = datasets.make_sinc2d(1000, noise=0.1, random_state=seed)
        X_test, _, clean = datasets.make_sinc2d(2000, random_state=1000 + seed, return_clean=True)
        model = RVR(gamma=1 / 2.5**2).fit(X, y)
        assert model.certificate_.converged
        errors.append(rms(model.predict(X_test) - clean))
        vectors.append(len(model.relevance_))
        sigmas.append(np.sqrt(model.noise_variance_))
    return errors, vectors, sigmas


def test_two_dimensional_sinc(sinc_2d):
    errors, vectors, _ = sinc_2d
    assert np.mean(errors) <= 0.036
    assert np.mean(vectors) <= 45


@pytest.mark.xfail(strict=True, reason="3.2 % low; the noise drawn in these ten is itself 1.4 % below 0.1")
def test_noise_of_the_two_dimensional_sinc(sinc_2d):
    assert abs(np.mean(sinc_2d[2]) - 0.1) <= 0.003


def test_friedman_finds_better_optima_than_the_papers_schedule():
    gains, errors, above = [], [], 0
    for seed in range(10):
        X, y = datasets.make_friedman1(240, noise=1.0, random_state=seed)
        X_test, y_test = datasets.make_friedman1(1000, noise=0.0, random_state=100 + seed)
        centre, scale, y_centre, y_scale = X.mean(0), X.std(0), y.mean(), y.std()
        Z, t = (X - centre) / scale, (y - y_centre) / y_scale
        gamma = 0.5 / np.median(pdist(Z, "sqeuclidean"))
        schedule = RVR(gamma=gamma, solver=Sequential(batch=1)).fit(Z, t)
        model = RVR(gamma=gamma).fit(Z, t)
        Phi = np.column_stack([np.exp(-gamma * cdist(Z, Z, "sqeuclidean")), np.ones(len(t))])
        gains.append(model.log_marginal_likelihood_ - schedule.log_marginal_likelihood_)
        above += model.log_marginal_likelihood_ >= fixed_point.fit(Phi, t)
        errors.append(rms(y_scale * model.predict((X_test - centre) / scale) + y_centre - y_test))
    assert np.mean(gains) >= 30
    assert above >= 9
    assert np.mean(errors) <= 1.75


@pytest.mark.parametrize("seed", range(5))
def test_near_pure_noise_stays_small(seed):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((240, 3))
    signal = np.sin(X[:, 0]) + X[:, 1]
    y = np.sqrt(0.01) * signal / signal.std() + rng.standard_normal(240)
    assert len(RVR().fit(X, y).relevance_) <= 15


def test_blocks():
    """Lecture 4: 12 functions in 21 iterations."""
    X, y = datasets.make_blocks(1024)
    model = SparseBayesRegressor(Heaviside(), fit_intercept=False, noise_variance=0.1**2).fit(X, y)
    assert len(model.relevance_) == 12
    found = X[model.relevance_, 0]
    for jump in datasets.blocks_jumps():
        assert np.min(np.abs(found - jump)) <= 1 / 1024
    assert model.n_iter_ <= 21
