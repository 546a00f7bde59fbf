"""The Gaussian nearest to the posterior of a log rate, and counts predicted with it, against brute force."""

import warnings

import numpy as np
import pytest
from scipy.special import digamma, gammaln
from scipy.stats import nbinom, poisson
from sklearn.exceptions import ConvergenceWarning

from sparsebayes import RVR, SparseBayesRegressor
from sparsebayes.basis import Bias, Linear
from sparsebayes.inference.models import nearest
from sparsebayes.inference.models.nearest import nearest_to_rates
from sparsebayes.posterior import PoissonPosterior
from sparsebayes.posterior.counts import relative_variance
from sparsebayes.testing import check_posterior

SEEDS = range(40)


def counts_in_a_square(seed):
    """The problem on which Laplace's variances explode, and rows that were not seen."""
    rng = np.random.default_rng(seed)

    def draw(n):
        X = rng.uniform(-3, 3, (n, 2))
        return X, rng.poisson(np.exp(np.sin(X[:, 0]) + 0.5 * X[:, 1] - 1))

    return *draw(70), *draw(500)


def bound(Phi, t, c, o, alpha, m, V):
    """What the nearest Gaussian maximises, as the page writes it."""
    output, spread = Phi @ m + o, np.einsum("na,ab,nb->n", Phi, V, Phi)
    fit = c @ (t * output - np.exp(output + 0.5 * spread))
    return fit - 0.5 * alpha @ m**2 - 0.5 * alpha @ np.diagonal(V) + 0.5 * np.linalg.slogdet(V)[1]


def mode_of(Phi, t, c, o, alpha):
    """Mode of the posterior by damped Newton steps."""
    w = np.zeros(len(alpha))
    height = lambda w: c @ (t * (Phi @ w) - np.exp(np.minimum(Phi @ w + o, 300))) - 0.5 * alpha @ w**2  # noqa: E731
    for _ in range(200):
        rate = c * np.exp(Phi @ w + o)
        step = np.linalg.solve((Phi.T * rate) @ Phi + np.diag(alpha), Phi.T @ (c * t - rate) - alpha * w)
        w = w + next((p * step for p in 0.5 ** np.arange(50) if height(w + p * step) >= height(w)), 0.0 * step)
    return w


def small_problem(seed, n=7):
    """Two functions, few counts, and precisions next to nothing: where Laplace's Gaussian is at its worst."""
    rng = np.random.default_rng(seed)
    Phi, alpha = np.column_stack([np.ones(n), rng.uniform(-1, 1, n)]), 10.0 ** rng.uniform(-3.0, 0.0, 2)
    t, c = rng.poisson(np.exp(Phi @ [-0.7, 1.5])).astype(float), rng.uniform(0.5, 2.0, n)
    return Phi, t, c, 0.3, alpha


# -- the Gaussian ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(8))
def test_no_other_gaussian_is_nearer(seed):
    Phi, t, c, o, alpha = small_problem(seed)
    m, V = nearest_to_rates(Phi, t, c, o, alpha, mode_of(Phi, t, c, o, alpha))
    best, rng = bound(Phi, t, c, o, alpha, m, V), np.random.default_rng(seed)
    root = np.linalg.cholesky(V)
    for size in (1e-3, 0.02, 0.3):
        for _ in range(8):
            other = root @ (np.eye(2) + size * rng.standard_normal((2, 2)))
            mean = m + size * root @ rng.standard_normal(2)
            assert bound(Phi, t, c, o, alpha, mean, other @ other.T) < best


@pytest.mark.parametrize("seed", range(8))
def test_the_expected_rates_balance_the_counts(seed):
    Phi, t, c, o, alpha = small_problem(seed, n=20)
    m, V = nearest_to_rates(Phi, t, c, o, alpha, np.zeros(2))
    r = c * np.exp(Phi @ m + o + 0.5 * np.einsum("na,ab,nb->n", Phi, V, Phi))
    np.testing.assert_allclose(Phi.T @ (c * t - r), alpha * m, atol=1e-9)
    np.testing.assert_allclose(V @ ((Phi.T * r) @ Phi + np.diag(alpha)), np.eye(2), atol=1e-7)


def test_begun_elsewhere_it_ends_in_the_same_place():
    Phi, t, c, o, alpha = small_problem(1)
    one = nearest_to_rates(Phi, t, c, o, alpha, mode_of(Phi, t, c, o, alpha))
    for start in ([0.0, 0.0], [-30.0, 20.0], [5.0, 5.0]):
        other = nearest_to_rates(Phi, t, c, o, alpha, np.array(start))
        np.testing.assert_allclose(other[0], one[0], atol=1e-8)
        np.testing.assert_allclose(other[1], one[1], atol=1e-8)


def test_it_says_where_it_was_not_reached(monkeypatch):
    monkeypatch.setattr(nearest, "_STEPS", 1)
    Phi, t, c, o, alpha = small_problem(1)
    with pytest.warns(ConvergenceWarning, match="was not reached"):
        nearest_to_rates(Phi, t, c, o, alpha, np.zeros(2))
    X, y, *_ = counts_in_a_square(0)
    with pytest.warns(ConvergenceWarning, match="was not reached"):
        RVR(gamma=0.5, likelihood="poisson").fit(X, y)


@pytest.mark.parametrize("scale", [1e-6, 1e6])
def test_units_of_the_functions_are_nothing(scale):
    Phi, t, c, o, alpha = small_problem(2)
    unit = np.array([1.0, scale])
    m, V = nearest_to_rates(Phi, t, c, o, alpha, np.zeros(2))
    mean, covariance = nearest_to_rates(Phi * unit, t, c, o, alpha * unit**2, np.zeros(2))
    np.testing.assert_allclose(mean * unit, m, rtol=1e-7)
    np.testing.assert_allclose(covariance * np.outer(unit, unit), V, rtol=1e-7)


def test_a_weight_is_so_many_copies():
    Phi, t, _, o, alpha = small_problem(3)
    copies = np.arange(1, 8)
    one = nearest_to_rates(Phi, t, copies.astype(float), o, alpha, np.zeros(2))
    many = np.repeat(np.arange(7), copies)
    other = nearest_to_rates(Phi[many], t[many], np.ones(len(many)), o, alpha, np.zeros(2))
    np.testing.assert_allclose(other[0], one[0], atol=1e-9)
    np.testing.assert_allclose(other[1], one[1], atol=1e-9)


def test_where_the_data_say_much_it_is_that_of_laplace():
    Phi, t, c, o, alpha = small_problem(0, n=20_000)
    (m, V), mode = nearest_to_rates(Phi, t, c, o, alpha, np.zeros(2)), mode_of(Phi, t, c, o, alpha)
    laplace = np.linalg.inv((Phi.T * (c * np.exp(Phi @ mode + o))) @ Phi + np.diag(alpha))
    np.testing.assert_allclose(m, mode, atol=0.05 * np.sqrt(laplace[0, 0]))
    np.testing.assert_allclose(V, laplace, rtol=5e-3)


@pytest.mark.parametrize("weight", [1e-4, 1e4])
def test_hardly_any_and_very_many_counts(weight):
    Phi, t, c, o, alpha = small_problem(4)
    for counts in (np.zeros_like(t), t, 1e6 * t):
        m, V = nearest_to_rates(Phi, counts, weight * c, o, alpha, np.zeros(2))  # without a warning
        r = weight * c * np.exp(Phi @ m + o + 0.5 * np.einsum("na,ab,nb->n", Phi, V, Phi))
        np.testing.assert_allclose(V @ ((Phi.T * r) @ Phi + np.diag(alpha)), np.eye(2), atol=1e-6)


# -- against the whole posterior -------------------------------------------------------------------------------


@pytest.fixture(scope="module", params=range(6))
def integrated(request):
    """A problem of two weights, its posterior on a fine grid, and the estimator's own posterior of it."""
    Phi, t, c, o, alpha = small_problem(request.param, n=12)
    first, second = np.meshgrid(np.linspace(-150, 12, 1800), np.linspace(-150, 150, 1800), indexing="ij")
    w = np.column_stack([first.ravel(), second.ravel()])
    near = np.all(np.abs(w) < 6.0 / np.sqrt(alpha), axis=1)
    w = w[near]
    output = w @ Phi.T + o
    height = (output * (c * t) - c * np.exp(np.minimum(output, 300))).sum(axis=1) - 0.5 * w**2 @ alpha
    keep = height > height.max() - 40.0
    p = np.exp(height[keep] - height.max())
    m, V = nearest_to_rates(Phi, t, c, o, alpha, mode_of(Phi, t, c, o, alpha))
    return Phi, w[keep], p / p.sum(), PoissonPosterior(np.arange(2), m, V, o)


def test_mean_and_spread_of_the_rates_are_those_of_the_posterior(integrated):
    Phi, w, p, posterior = integrated
    for row in Phi:
        rate = np.exp(w @ row + posterior.offset)
        mean = p @ rate
        std = np.sqrt(mean + p @ rate**2 - mean**2)
        assert posterior.predict(row[None])[0] == pytest.approx(mean, rel=0.06)
        assert posterior.standard_deviation(row[None])[0] == pytest.approx(std, rel=0.15)


def test_probabilities_of_counts_are_those_of_the_posterior(integrated):
    Phi, w, p, posterior = integrated
    counts = np.arange(6.0)
    for row in Phi:
        rate = np.exp(w @ row + posterior.offset)
        exact = np.array([p @ poisson.pmf(k, rate) for k in counts])
        found = np.exp(posterior.log_density(np.tile(row, (6, 1)), counts))
        np.testing.assert_allclose(found, exact, atol=0.03)


def test_weights_are_centred_and_spread_as_the_posterior(integrated):
    _, w, p, posterior = integrated
    mean = p @ w
    std = np.sqrt(p @ (w - mean) ** 2)
    assert np.all(np.abs(posterior.mean - mean) < 0.35 * std)
    ratio = np.sqrt(np.diagonal(posterior.covariance)) / std
    assert np.all((ratio > 0.6) & (ratio < 1.1))


# -- predictive distribution -----------------------------------------------------------------------------------


def test_the_gamma_distribution_has_the_mean_and_the_mean_logarithm():
    variance = 10.0 ** np.linspace(-4, 5, 40)
    k = 1.0 / relative_variance(variance)
    np.testing.assert_allclose(np.log(k) - digamma(k), 0.5 * variance, rtol=1e-8)
    tiny = np.array([0.0, 1e-14, 1e-6])
    np.testing.assert_allclose(relative_variance(tiny), tiny, rtol=1e-6)


@pytest.mark.parametrize("variance", [0.0, 1e-6, 0.3, 4.0, 60.0])
def test_mean_std_interval_density_and_draws_are_of_one_distribution(variance):
    posterior = PoissonPosterior(np.array([0]), np.array([0.9 - variance / 2]), np.array([[variance]]), 0.2)
    one, counts = np.ones((1, 1)), np.arange(5000.0)
    log_p = posterior.log_density(np.ones((5000, 1)), counts)
    p = np.exp(log_p)
    assert p.sum() == pytest.approx(1.0, abs=1e-8)
    mean = p @ counts
    assert mean == pytest.approx(np.exp(1.1), rel=1e-7)
    assert posterior.predict(one)[0] == pytest.approx(mean, rel=1e-7)
    std = np.sqrt(p @ counts**2 - mean**2)
    assert posterior.standard_deviation(one)[0] == pytest.approx(std, rel=1e-7)
    for coverage in (0.5, 0.95):
        low, high = posterior.interval(one, coverage)
        expected = np.searchsorted(np.cumsum(p), [0.5 * (1 - coverage), 0.5 * (1 + coverage)])
        assert (low[0], high[0]) == tuple(expected)
    draws = posterior.sample(one, 40_000, np.random.default_rng(0), noise=True)
    assert draws.mean() == pytest.approx(mean, abs=5 * std / 200)
    assert np.mean(draws == 0) == pytest.approx(p[0], abs=0.01)
    rates = posterior.sample(one, 40_000, np.random.default_rng(0), noise=False)
    assert rates.mean() == pytest.approx(mean, abs=5 * std / 200)
    assert np.mean(np.exp(-rates)) == pytest.approx(p[0], abs=0.01)


def test_a_known_rate_is_poisson():
    posterior = PoissonPosterior(np.zeros(0, dtype=int), np.zeros(0), np.zeros((0, 0)), np.log(3.0))
    counts = np.arange(12.0)
    found = posterior.log_density(np.zeros((12, 0)), counts)
    np.testing.assert_allclose(found, counts * np.log(3.0) - 3.0 - gammaln(counts + 1.0), atol=1e-7)


def test_draws_of_the_rate_are_whole_functions():
    V = np.array([[2.0, 1.9], [1.9, 2.0]])
    posterior = PoissonPosterior(np.arange(2), np.zeros(2), V, 0.0)
    rates = posterior.sample(np.eye(2), 5000, np.random.default_rng(0), noise=False)
    assert np.corrcoef(np.argsort(np.argsort(rates, axis=1), axis=1))[0, 1] > 0.9


# -- fits --------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def fits():
    found = []
    for seed in SEEDS:
        X, y, new, fresh = counts_in_a_square(seed)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            found.append((RVR(gamma=0.5, likelihood="poisson").fit(X, y), X, y, new, fresh))
    return found


def test_no_expected_count_explodes(fits):
    for model, X, y, new, _ in fits:
        mean, std = model.predict(X, return_std=True)
        assert np.max(mean) <= 3.0 * np.max(y)
        assert np.all(std >= np.sqrt(mean))
        # Nor does a bar: a new count varies no more than tenfold a Poisson count of its rate here.
        assert np.all(std <= 10.0 * np.sqrt(mean))
        elsewhere, bars = model.predict(new, return_std=True)
        assert np.max(elsewhere) <= 3.0 * np.max(y)
        assert np.all(bars <= 10.0 * np.sqrt(elsewhere))


def test_density_of_new_counts_is_no_less_than_with_the_rate_at_the_mode(fits):
    gains = []
    for model, X, y, new, fresh in fits:
        posterior = model._posteriors[0]
        mode = mode_of(model._values(X), y, np.ones(len(y)), posterior.offset, model.alpha_)
        plug_in = poisson.logpmf(fresh, np.exp(model._values(new) @ mode + posterior.offset))
        gains.append(np.mean(model.log_density(new, fresh)) - np.mean(plug_in))
    assert np.mean(gains) > 0.03
    assert np.min(gains) > -0.005
    assert np.mean(np.array(gains) > 0.0) >= 0.9


def test_intervals_hold_new_counts(fits):
    inside = []
    for model, _, _, new, fresh in fits:
        low, high = model.predict_interval(new, 0.9)
        inside.append(np.mean((fresh >= low) & (fresh <= high)))
    assert 0.9 <= np.mean(inside) <= 0.98


def test_the_audit_agrees(fits):
    for model, X, y, _, _ in fits[:10]:
        check_posterior(model, X, y)


def test_the_expected_counts_sum_to_those_seen(fits):
    """Where the intercept is in the model: the prior alone holds it back."""
    for model, X, y, _, _ in fits:
        if model.relevance_functions_[-1]["kind"] == "bias":
            slack = abs(model.alpha_[-1] * model._posteriors[0].mean[-1])
            assert abs(np.sum(model.predict(X)) - np.sum(y)) <= slack + 1e-6


def test_coef_and_sigma_are_of_one_gaussian(fits):
    model, X, *_ = fits[7]
    values = model._values(X)
    v = np.einsum("na,ab,nb->n", values, model.sigma_, values)
    expected = np.exp(values[:, : len(model.coef_)] @ model.coef_ + model.intercept_ + 0.5 * v)
    np.testing.assert_allclose(model.predict(X), expected, rtol=1e-10)


@pytest.mark.parametrize("kind", ["dense", "sparse", "operator", "float32", "several"])
def test_every_way_to_hold_the_data(kind):
    from scipy.sparse import csr_array
    from scipy.sparse.linalg import aslinearoperator

    rng = np.random.default_rng(0)
    X = np.where(rng.uniform(size=(60, 4)) < 0.5, 0.0, rng.uniform(-2, 2, (60, 4)))
    y = rng.poisson(np.exp(2.5 * X[:, 0] - 2.0))
    one = SparseBayesRegressor(likelihood="poisson").fit(X, y)
    held = {"sparse": csr_array(X), "operator": aslinearoperator(X), "float32": X.astype(np.float32)}.get(kind, X)
    other = SparseBayesRegressor(likelihood="poisson").fit(held, np.column_stack([y, y]) if kind == "several" else y)
    mean, std = other.predict(X, return_std=True)
    if kind == "several":
        mean, std = mean[:, 1], std[:, 1]
    tolerance = 1e-4 if kind == "float32" else 1e-7
    np.testing.assert_allclose(mean, one.predict(X), rtol=tolerance)
    np.testing.assert_allclose(std, one.predict(X, return_std=True)[1], rtol=tolerance)
    assert np.max(mean) <= 3.0 * np.max(y)


def test_no_counts_at_all():
    X = np.linspace(-1, 1, 30)[:, None]
    model = SparseBayesRegressor(Bias() + Linear(), likelihood="poisson").fit(X, np.zeros(30))
    mean, std = model.predict(X, return_std=True)
    assert np.all(mean < 0.2)
    assert np.all(np.isfinite(std))


@pytest.mark.parametrize("scale", [1.0, 1e-2, 1e-6])
def test_weights_that_add_up_to_less_than_a_row_do_not_raise_the_mean_count(scale):
    rng = np.random.default_rng(0)
    y = (rng.random(40) < 0.1).astype(float)
    model = RVR(likelihood="poisson").fit(rng.normal(size=(40, 2)), y, sample_weight=np.full(40, scale / 40))
    assert np.mean(model.predict(rng.normal(size=(40, 2)))) == pytest.approx(np.mean(y), rel=0.05)


def test_no_counts_in_less_than_a_row_is_half_a_count_at_most():
    X = np.random.default_rng(0).normal(size=(40, 2))
    model = RVR(likelihood="poisson").fit(X, np.zeros(40), sample_weight=np.full(40, 1e-6))
    assert np.all(model.predict(X) <= 0.5)


@pytest.mark.parametrize("seed", [2, 4, 5])
def test_rows_that_weigh_very_much_keep_their_counts(seed):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(20, 2))
    y = rng.poisson(np.exp(np.sin(X[:, 0])))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # functions are nearly dependent
        model = RVR(likelihood="poisson").fit(X, y, sample_weight=np.full(20, 1e8))
    np.testing.assert_allclose(model.predict(X), y, atol=1e-3)


def test_the_interval_is_that_of_the_negative_binomial(fits):
    model, X, *_ = fits[2]
    mean, std = model.predict(X, return_std=True)
    size = mean**2 / (std**2 - mean)
    low, high = model.predict_interval(X, 0.8)
    np.testing.assert_array_equal(low, nbinom.ppf(0.1, size, size / (size + mean)))
    np.testing.assert_array_equal(high, nbinom.ppf(0.9, size, size / (size + mean)))


def test_a_summary_of_counts_has_no_noise(fits):
    text = str(fits[0][0].summary())
    assert "noise" not in text
    assert "log evidence" in text


def test_far_out_nothing_is_known_better_than_nearer():
    posterior = PoissonPosterior(np.array([0]), np.array([0.0]), np.eye(1), 0.5)
    near, far = (posterior.standard_deviation(np.array([[x]])) for x in (1e90, 1e120))
    assert far >= near > 1e3
