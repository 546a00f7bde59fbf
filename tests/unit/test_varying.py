"""Noise that depends on the inputs."""

import numpy as np
import pytest
from scipy.stats import multivariate_normal, norm
from sklearn.base import clone

import sparsebayes
from sparsebayes import RVR, SparseBayesRegressor
from sparsebayes.basis import Polynomial
from sparsebayes.datasets import make_sinc
from sparsebayes.design import DenseDesign
from sparsebayes.inference import Sequential
from sparsebayes.inference.fit import folds
from sparsebayes.inference.fit.settings import Settings
from sparsebayes.inference.fit.varying import run_varying
from sparsebayes.inference.models.problem import GaussianProblem
from sparsebayes.inference.objective import SupportRule
from sparsebayes.posterior.varying import VaryingNoise
from sparsebayes.report import write_report
from sparsebayes.testing import check_posterior


def growing(n, seed):
    """A sine whose noise grows with the distance from zero."""
    rng = np.random.default_rng(seed)
    x = rng.uniform(-1.0, 1.0, (n, 1))
    sigma = 0.05 + 0.4 * x[:, 0] ** 2
    return x, np.sin(3.0 * x[:, 0]) + sigma * rng.standard_normal(n), sigma


@pytest.fixture(scope="module")
def fitted():
    x, y, sigma = growing(400, 0)
    return RVR(noise="varies").fit(x, y), x, y, sigma


def posed(x, y, weights):
    values = np.column_stack([np.exp(-3.0 * (x - x.T) ** 2), np.ones(len(x))])
    m = values.shape[1]
    return values, GaussianProblem(DenseDesign(values), y[:, None], weights, np.ones(m, dtype=bool), m - 1)


def test_the_bound_is_that_of_brute_force():
    x, y, _ = growing(120, 1)
    values, problem = posed(x, y, np.ones(len(y)))
    found = run_varying(problem, Sequential(), Settings(1e-3, 10_000), np.random.default_rng(0))
    mean, noise = found.result.active, found.noise
    assert noise is not None
    phi, psi = values[:, mean.indices], values[:, noise.active.indices]
    v = noise.active.mean
    variance = np.exp(noise.offset + psi @ v)
    np.testing.assert_allclose(variance, 1.0 / (mean.beta * noise.precisions), rtol=1e-9)
    covariance = np.linalg.inv(phi.T @ (phi / variance[:, None]) + np.diag(mean.alpha))
    np.testing.assert_allclose(mean.covariance, covariance, rtol=1e-6, atol=1e-9)
    np.testing.assert_allclose(mean.mean[:, 0], covariance @ (phi.T @ (y / variance)), rtol=1e-6)
    evidence = multivariate_normal(cov=np.diag(variance) + (phi / mean.alpha) @ phi.T).logpdf(y)
    # What the noise's own weights cost, with the curvature of the squares that they were found for.
    ratio = noise.active.problem.likelihood.squares / np.exp(noise.active.problem.likelihood.offset + psi @ v)
    precision = 0.5 * psi.T @ (ratio[:, None] * psi) + np.diag(noise.active.alpha)
    spent = -0.5 * v @ (noise.active.alpha * v) + 0.5 * np.sum(np.log(noise.active.alpha))
    spent -= 0.5 * np.linalg.slogdet(precision)[1] + noise.active.problem.inclusion_cost * len(v)
    assert found.bound == pytest.approx(evidence + spent, abs=1e-6)
    np.testing.assert_allclose(noise.active.covariance, np.linalg.inv(precision), rtol=1e-6)
    slope = 0.5 * psi.T @ (ratio - 1.0) - noise.active.alpha * v
    np.testing.assert_allclose(slope, 0.0, atol=1e-5)
    # The rounds have come to rest: the squares are those that the mean leaves.
    squares = (y - phi @ mean.mean[:, 0]) ** 2 + np.einsum("na,ab,nb->n", phi, covariance, phi)
    np.testing.assert_allclose(noise.active.problem.likelihood.squares, squares, rtol=0.1, atol=1e-3)


def test_left_out_rows_have_their_own_noise(monkeypatch):
    """Precisions are the same as rows and targets multiplied by their roots, and not copies."""
    x, y, sigma = growing(80, 2)
    counts, fold = np.where(np.arange(80) % 7, 1.0, 2.0), np.arange(80) % 5
    monkeypatch.setattr(folds, "_ranked", lambda *_: fold)
    values, problem = posed(x, y, counts)
    root = 0.2 / sigma
    scaled = GaussianProblem(
        DenseDesign(root[:, None] * values), (root * y)[:, None], counts, np.ones(81, dtype=bool), 80
    )
    found = folds.Folds(problem.precise(root**2)).left_out(25.0, 10)
    expected = folds.Folds(scaled).left_out(25.0, 10)
    scores, others = (each.errors[:, 0] / np.sqrt(each.noise + each.spread) for each in (found, expected))
    np.testing.assert_allclose(scores, others, rtol=1e-6, atol=1e-9)
    np.testing.assert_allclose(found.leverage, expected.leverage, rtol=1e-6)
    np.testing.assert_allclose(found.weights, expected.weights)


def test_the_noise_is_found(fitted):
    model, x, y, sigma = fitted
    assert model.noise_varies_ is True
    assert np.median(np.abs(model.predict_noise(x) / sigma - 1.0)) < 0.15
    assert model.log_marginal_likelihood_ > RVR().fit(x, y).log_marginal_likelihood_ + 20.0
    mean, std = model.predict(x, return_std=True, uncertainty="posterior")
    assert mean.shape == std.shape
    assert np.all(std > model.predict_noise(x))
    assert model.noise_variance_ == pytest.approx(np.mean(sigma**2), rel=0.25)


def test_intervals_hold_where_the_noise_is_small_and_where_it_is_large(fitted):
    model = fitted[0]
    x, y, sigma = growing(3000, 7)
    for uncertainty in ("calibrated", "posterior", "conformal", "augmented"):
        low, high = model.predict_interval(x, 0.9, uncertainty)
        inside = (low <= y) & (y <= high)
        for part in (sigma < 0.1, sigma > 0.25):
            assert 0.84 < np.mean(inside[part]) < 0.96, uncertainty
    draws = model.sample_y(x[:200], 500)
    np.testing.assert_allclose(
        draws.std(axis=1), model.predict(x[:200], return_std=True, uncertainty="posterior")[1], rtol=0.2
    )
    constant = RVR().fit(fitted[1], fitted[2])
    assert np.mean(model.log_density(x, y)) > np.mean(constant.log_density(x, y)) + 0.1


def test_the_density_and_the_bar_of_a_row_have_its_own_noise(fitted):
    model, x, y, _ = fitted
    posterior, values = model._posteriors[0], model._values(x)[:, model._posteriors[0].functions]
    std = np.sqrt(model.predict_noise(x) ** 2 + np.einsum("na,ab,nb->n", values, posterior.covariance, values))
    mean, bars = model.predict(x, return_std=True, uncertainty="posterior")
    np.testing.assert_allclose(bars, std, rtol=1e-9)
    np.testing.assert_allclose(model.log_density(x, y, "posterior"), norm.logpdf(y, mean, std), rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("seed", range(3))
def test_constant_noise_stays_constant(seed):
    X, y = make_sinc(100, noise=0.1, random_state=seed)
    model, constant = RVR(gamma=1 / 9, noise="varies").fit(X, y), RVR(gamma=1 / 9).fit(X, y)
    assert model.noise_varies_ is False
    assert model.log_marginal_likelihood_ == pytest.approx(constant.log_marginal_likelihood_)
    np.testing.assert_array_equal(model.predict(X), constant.predict(X))
    np.testing.assert_allclose(model.predict_noise(X), np.sqrt(model.noise_variance_))


def test_a_lower_noise_shows_what_constant_noise_hides():
    """Functions so wide that only low noise resolves the quiet part: residuals of constant noise show nothing."""
    rng = np.random.default_rng(3)
    x = np.sort(rng.uniform(-1.7, 1.7, 100))
    quiet = x < -0.8
    mean = np.where(quiet, 0.0, np.exp(-(((x - 0.7) / 0.4) ** 2)) - 2.5 * np.exp(-(((x + 0.2) / 0.35) ** 2)))
    y = mean + np.where(quiet, 0.02, 0.4) * rng.standard_normal(100)
    model = RVR(gamma=1.0, noise="varies").fit(x[:, None], y)
    assert model.noise_varies_
    near, far = model.predict_noise([[-1.5], [0.5]])
    assert near < 0.05
    assert 0.3 < far < 0.6


def test_weights_are_copies():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((150, 3))
    y = X[:, 0] + 0.3 * np.exp(0.7 * X[:, 1]) * rng.standard_normal(150)
    counts = rng.integers(0, 3, 150)
    weighted = SparseBayesRegressor(noise="varies").fit(X, y, sample_weight=counts)
    copied = SparseBayesRegressor(noise="varies").fit(np.repeat(X, counts, axis=0), np.repeat(y, counts))
    assert weighted.noise_varies_
    np.testing.assert_allclose(weighted.predict_noise(X), copied.predict_noise(X), rtol=1e-6)
    assert weighted.log_marginal_likelihood_ == pytest.approx(copied.log_marginal_likelihood_, abs=1e-6)
    assert weighted.std_scale_ == pytest.approx(copied.std_scale_, rel=1e-6)


@pytest.mark.parametrize(
    ("seed", "inputs", "support"), [(0, 40, "evidence"), (0, 60, "conservative"), (5, 60, "conservative")]
)
def test_residuals_of_rows_that_weigh_more_are_no_more_residuals(seed, inputs, support):
    """Constant noise: with rows counted as often as they weigh it went from 0 to 1e6, and 45 % of rows lay inside."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(80, inputs))
    y = X[:, 0] + X[:, 1] + rng.normal(size=80)
    new = rng.normal(size=(1000, inputs))
    observed = new[:, 0] + new[:, 1] + rng.normal(size=1000)
    weights = rng.integers(1, 5, 80)
    model = SparseBayesRegressor(support=support, noise="varies").fit(X, y, sample_weight=weights)
    sigma = model.predict_noise(new)
    assert np.min(sigma) > 0.1
    assert np.max(sigma) < 3.0
    low, high = model.predict_interval(new)
    assert np.mean((low <= observed) & (observed <= high)) > 0.85


def test_the_noise_variance_is_the_mean_of_what_is_predicted():
    x, y, _ = growing(60, 3)
    even = np.cos(2.0 * x[:, 0]) + 0.1 * np.random.default_rng(5).standard_normal(60)
    weights = np.random.default_rng(4).integers(0, 4, 60).astype(float)
    for model in (RVR(noise="varies"), SparseBayesRegressor(Polynomial(3), noise="varies", fit_intercept=False)):
        model.fit(x, np.column_stack([10.0 * y, even]), sample_weight=weights)
        assert np.any(model.noise_varies_)
        squares = model.predict_noise(x) ** 2
        np.testing.assert_allclose(model.noise_variance_, np.average(squares, axis=0, weights=weights), rtol=1e-9)
        # What rows count in the posterior is that of the variances that the model was fitted with.
        assert model._calibration is not None
        for k in np.flatnonzero(model.noise_varies_):
            posterior, rows = model._posteriors[k], model._calibration
            noise = posterior.varying
            values = model._values(x[weights > 0.0])[:, noise.functions]
            plugged_in = np.exp(noise.offset + values @ noise.mean)
            np.testing.assert_allclose(posterior.noise_variance / rows.precisions[k], plugged_in, rtol=1e-6)


def test_units_of_the_targets_do_not_matter(fitted):
    model, x, y, _ = fitted
    other = RVR(noise="varies").fit(x, 1e6 * y + 3.0)
    np.testing.assert_allclose(other.predict_noise(x), 1e6 * model.predict_noise(x), rtol=1e-5)


def test_each_target_has_its_own_noise():
    x, y, _ = growing(200, 3)
    even = np.cos(2.0 * x[:, 0]) + 0.1 * np.random.default_rng(5).standard_normal(200)
    both, first = RVR(noise="varies").fit(x, np.column_stack([y, even])), RVR(noise="varies").fit(x, y)
    np.testing.assert_array_equal(both.noise_varies_, [True, False])
    np.testing.assert_allclose(both.predict_noise(x)[:, 0], first.predict_noise(x), rtol=1e-6)
    assert np.ptp(both.predict_noise(x)[:, 1]) == 0.0
    assert both.log_density(x, np.column_stack([y, even])).shape == (200,)


def test_functions_of_the_noise_alone_have_no_weight(fitted):
    model = fitted[0]
    finite = np.isfinite(model.alpha_)
    assert model.sigma_.shape == (np.sum(finite), np.sum(finite))
    np.testing.assert_array_equal(model.coef_[~finite[: len(model.coef_)]], 0.0)
    assert len(model.terms()) == np.sum(finite)
    assert len(model.relevance_vectors_) == len(model.relevance_)


def test_it_travels(fitted, tmp_path):
    model, x, *_ = fitted
    sparsebayes.save(model, tmp_path / "varying.model")
    loaded = sparsebayes.load(tmp_path / "varying.model")
    np.testing.assert_array_equal(loaded.predict_interval(x), model.predict_interval(x))
    np.testing.assert_array_equal(loaded.predict_noise(x), model.predict_noise(x))
    assert clone(model).get_params() == model.get_params()
    with pytest.raises(ValueError, match="noise varies"):
        check_posterior(model, x, fitted[2])


def test_moves_and_costs_are_counted(fitted):
    model = fitted[0]
    assert model.n_iter_ >= len(model.coef_[model.coef_ != 0.0])
    noise = model._posteriors[0].varying
    cost = model.certificate_.log_evidence - model.certificate_.objective
    assert cost == pytest.approx(
        len(noise.functions) * SupportRule.named("conservative", len(fitted[1])).cost, rel=1e-9
    )
    assert sum(record.n_moves for record in model.history_) >= model.n_iter_


def test_the_report_shows_the_noise(fitted, tmp_path):
    model, x, y, _ = fitted
    write_report(tmp_path / "one.html", model, x, y)
    assert "The noise varies" in (tmp_path / "one.html").read_text(encoding="utf-8")
    rng = np.random.default_rng(0)
    X = rng.standard_normal((150, 2))
    t = X[:, 0] + 0.3 * np.exp(X[:, 1]) * rng.standard_normal(150)
    write_report(tmp_path / "two.html", SparseBayesRegressor(noise="varies").fit(X, t), X, t)
    assert "against their predictions" in (tmp_path / "two.html").read_text(encoding="utf-8")
    write_report(tmp_path / "constant.html", RVR().fit(x, y), x, y)
    assert "The noise varies" not in (tmp_path / "constant.html").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"likelihood": "student-t"}, "noise='varies' is for likelihood='gaussian'; got likelihood='student-t'"),
        ({"likelihood": "outliers"}, "got likelihood='outliers'"),
        ({"likelihood": "poisson"}, "the variance of a count is its rate"),
        ({"noise_variance": 0.1}, "noise_variance=0.1 fixes the noise"),
        ({"solver": "mackay"}, "solver='mackay': noise='varies' is learned by the sequential solver"),
        ({"solver": Sequential(split_merge=True)}, "candidates, split_merge"),
        ({"gamma": "evidence"}, "gamma='evidence': the kernel is learned with noise='constant' only"),
        ({"gamma": "multiscale"}, "gamma='multiscale': the kernel is learned with noise='constant' only"),
        ({"noise": "varying"}, "noise='varying' is not known; choose one of 'constant', 'varies'"),
        ({"shared_support": True}, "use shared_support=False"),
        ({"checkpoint": "search.json"}, "checkpoint='search.json': searches with noise='varies' are not kept"),
        ({"device": "cpu"}, "on the host only"),
    ],
)
def test_what_cannot_be_is_refused_first(settings, message):
    x, y = np.zeros((4, 1)), np.ones((4, 2))
    with pytest.raises(ValueError, match=message):
        RVR(**{"noise": "varies", **settings}).fit(x, y)


def test_chunks_are_refused():
    rows = [(np.ones((3, 2)), np.ones(3))]
    with pytest.raises(ValueError, match="noise='varies' needs the residual of every row"):
        SparseBayesRegressor(noise="varies").fit(rows)
    with pytest.raises(ValueError, match="noise='varies' needs the residual of every row"):
        SparseBayesRegressor(noise="varies").partial_fit(*rows[0])


@pytest.mark.parametrize("seed", [None, 0])
def test_targets_without_noise_have_none_that_varies(seed):
    x = np.linspace(-10.0, 10.0, 40)[:, None]
    y = np.ones(40) if seed is None else np.exp(-0.1 * (x[:, 0] - x[7, 0]) ** 2)
    model = RVR(gamma=0.1, noise="varies").fit(x, y)
    assert not model.noise_varies_
    np.testing.assert_allclose(model.predict(x), y, atol=1e-3)


def test_a_mean_without_functions_may_have_noise_that_varies():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((300, 2))
    model = SparseBayesRegressor(noise="varies").fit(X, np.exp(X[:, 1]) * rng.standard_normal(300))
    assert model.noise_varies_
    assert model.predict_noise([[0.0, 1.0]])[0] / model.predict_noise([[0.0, 0.0]])[0] == pytest.approx(np.e, rel=0.25)


def test_counts_have_no_noise():
    x = np.linspace(0.0, 1.0, 30)[:, None]
    with pytest.raises(ValueError, match="predict_noise: counts"):
        RVR(likelihood="poisson").fit(x, np.arange(30) % 4).predict_noise(x)


def test_an_uncertain_log_variance_has_the_mean_of_its_exponentials():
    rng = np.random.default_rng(5)
    mean, root = np.array([0.4, -0.3]), np.array([[0.6, 0.0], [0.2, 0.5]])
    noise = VaryingNoise(np.array([0, 2]), mean, root @ root.T, -1.0)
    values = np.array([[1.0, 9.0, 0.5], [-0.4, 9.0, 1.5]])
    weights = mean[:, None] + root @ rng.standard_normal((2, 400_000))
    expected = np.mean(np.exp(-1.0 + values[:, [0, 2]] @ weights), axis=1)
    np.testing.assert_allclose(noise.variance(values), expected, rtol=0.01)
