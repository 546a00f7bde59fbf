"""Predictive distributions against what they are by definition: dense algebra, integrals and draws."""

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.special import expit, log_expit
from scipy.stats import norm, t
from sklearn.base import clone

from sparsebayes import RVC, RVR, SparseBayesClassifier, SparseBayesRegressor, datasets
from sparsebayes.design import DenseDesign
from sparsebayes.inference.models.bound import bound_constant, bound_curvature, bound_problem
from sparsebayes.inference.models.mode import LaplaceProblem
from sparsebayes.likelihood import Bernoulli
from sparsebayes.posterior import ClassPosterior, GaussianPosterior, PoissonPosterior

X, Y = datasets.make_sinc(20, noise=0.2, random_state=0)
NEW = np.linspace(-12.0, 12.0, 25)[:, None]


@pytest.fixture(scope="module")
def model():
    return RVR(gamma=1 / 16).fit(X, Y)


def dense(model):
    """Mean and variance of a new observation by the inverse of the precision, from nothing but the data."""
    posterior = model._posteriors[0]
    train, new = (model._values(Z)[:, posterior.functions] for Z in (X, NEW))
    covariance = np.linalg.inv(train.T @ train / model.noise_variance_ + np.diag(model.alpha_))
    mean = covariance @ train.T @ (Y - posterior.offset) / model.noise_variance_
    return new @ mean + posterior.offset, model.noise_variance_ + np.einsum("na,ab,nb->n", new, covariance, new)


def test_the_interval_knows_that_weights_are_uncertain(model):
    mean, variance = dense(model)
    assert np.max(variance) > 1.2 * model.noise_variance_  # else nothing would be seen here
    for coverage in (0.5, 0.95):
        low, high = model.predict_interval(NEW, coverage, uncertainty="posterior")
        np.testing.assert_allclose(low, norm.ppf(0.5 - coverage / 2, mean, np.sqrt(variance)), rtol=1e-6, atol=1e-8)
        np.testing.assert_allclose(high, norm.ppf(0.5 + coverage / 2, mean, np.sqrt(variance)), rtol=1e-6, atol=1e-8)


def test_the_standard_deviation_and_the_log_density_know_it_too(model):
    mean, variance = dense(model)
    np.testing.assert_allclose(
        model.predict(NEW, return_std=True, uncertainty="posterior")[1], np.sqrt(variance), rtol=1e-6
    )
    for at in (-1.0, 0.3, 2.0):
        expected = norm.logpdf(at, mean, np.sqrt(variance))
        found = model.log_density(NEW, np.full(25, at), uncertainty="posterior")
        np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-6)


@pytest.fixture(scope="module")
def heavy():
    rng = np.random.default_rng(3)
    x = rng.uniform(-1, 1, (80, 1))
    return x, SparseBayesRegressor(likelihood="student-t").fit(x, 2.0 * x[:, 0] + 0.1 * rng.standard_t(2.5, 80))


def test_an_interval_of_student_t_holds_as_much_as_its_density_says(heavy):
    x, model = heavy
    assert model.degrees_of_freedom_ < 6.0
    for coverage in (0.5, 0.95, 0.99):
        low, high = (end[0] for end in model.predict_interval(x[:1], coverage))
        inside = quad(lambda y: np.exp(model.log_density(x[:1], [y])[0]), low, high, limit=200)[0]
        assert inside == pytest.approx(coverage, abs=1e-6)


def test_the_density_of_student_t_is_that_of_noise_and_weights(heavy):
    """Against the integral over the weights: scales that are added in squares are within a tenth of it."""
    x, model = heavy
    posterior = model._posteriors[0]
    for row in (x[:1], np.array([[1.5]])):
        mean, spread = model.predict(row)[0], np.sqrt(posterior.spread(model._values(row))[0])
        scale = np.sqrt(model.noise_variance_)
        for away in (0.0, 1.0, 4.0):
            y = mean + away * scale
            exact = quad(
                lambda z, y=y, mean=mean, spread=spread, scale=scale: (
                    norm.pdf(z) * t.pdf(y - mean - spread * z, model.degrees_of_freedom_, scale=scale)
                ),
                -8,
                8,
            )[0]
            assert np.exp(model.log_density(row, [y])[0]) == pytest.approx(exact, rel=0.1)


def test_draws_of_student_t_have_its_tails(heavy):
    x, model = heavy
    draws = model.sample_y(x[:1], 40_000, random_state=0)[0]
    for coverage in (0.5, 0.9, 0.99):
        low, high = (end[0] for end in model.predict_interval(x[:1], coverage))
        assert np.mean((draws >= low) & (draws <= high)) == pytest.approx(coverage, abs=0.01)
    # Two thirds lie within one standard deviation, as of a Gaussian.
    mean, std = model.predict(x[:1], return_std=True)
    assert np.mean(np.abs(draws - mean) <= std) == pytest.approx(norm.cdf(1.0) - norm.cdf(-1.0), abs=0.02)
    quiet = model.sample_y(x[:1], 4000, random_state=0, noise=False)[0]
    assert np.std(quiet) == pytest.approx(np.sqrt(model._posteriors[0].spread(model._values(x[:1]))[0]), rel=0.05)


@pytest.mark.parametrize("degrees", [np.inf, 2.5])
def test_one_standard_deviation_of_a_posterior_without_spread(degrees):
    posterior = GaussianPosterior(np.arange(1), np.zeros(1), np.zeros((1, 1)), 0.25, 0.0, degrees)
    one = np.ones((1, 1))
    within = t.cdf(posterior.standard_deviation(one)[0] / 0.5, degrees)
    assert within == pytest.approx(norm.cdf(1.0), abs=1e-9)
    low, high = posterior.interval(one, 0.95)
    assert t.cdf(high[0] / 0.5, degrees) - t.cdf(low[0] / 0.5, degrees) == pytest.approx(0.95, abs=1e-9)


def test_the_probability_of_a_sign_is_the_share_of_draws_with_it(model):
    report, rng = model.support_report(), np.random.default_rng(0)
    weights = rng.multivariate_normal(report.weight, model.sigma_, 200_000)
    share = np.mean(np.sign(weights) == np.sign(report.weight), axis=0)
    np.testing.assert_allclose(report.sign_probability, share, atol=5e-3)
    assert np.min(share) < 0.999  # some sign is in doubt, so that this can fail


# -- the bound of Jaakkola and Jordan --------------------------------------------------------------------------------


def quadratic(problem, xi, y):
    """The bound on the log likelihood at outputs y, as the Gaussian problem and its constant have it."""
    gaussian = bound_problem(problem, xi)
    squares = gaussian.weights @ (gaussian.targets[:, 0] - y) ** 2
    return -0.5 * squares + bound_constant(problem, xi)


@pytest.fixture
def logistic():
    rng = np.random.default_rng(0)
    labels, weights = rng.integers(0, 2, 12).astype(float), rng.uniform(0.5, 2.0, 12)
    problem = LaplaceProblem(DenseDesign(np.eye(12)), Bernoulli(labels, weights), np.ones(12, dtype=bool))
    return problem, lambda y: weights @ log_expit(np.where(labels > 0.5, y, -y))


def test_the_bound_touches_the_likelihood_at_its_parameters(logistic):
    problem, exact = logistic
    xi = np.abs(np.random.default_rng(1).normal(scale=3.0, size=12))
    xi[0] = 0.0
    for signs in (np.ones(12), -np.ones(12), np.where(np.arange(12) % 2, 1.0, -1.0)):
        assert quadratic(problem, xi, signs * xi) == pytest.approx(exact(signs * xi), rel=1e-9)


def test_the_bound_is_below_the_likelihood_everywhere_else(logistic):
    problem, exact = logistic
    rng = np.random.default_rng(2)
    for _ in range(50):
        xi, y = np.abs(rng.normal(scale=3.0, size=12)), rng.normal(scale=4.0, size=12)
        assert quadratic(problem, xi, y) < exact(y)


def test_the_curvature_of_the_bound():
    xi = np.array([0.0, 1e-6, 1e-3, 1.0, 30.0])
    expected = [0.25, 0.25, 0.25, (expit(1.0) - 0.5) / 1.0, (expit(30.0) - 0.5) / 30.0]
    np.testing.assert_allclose(bound_curvature(xi), expected, rtol=1e-6)


@pytest.mark.parametrize("seed", range(3))
def test_the_evidence_of_the_variational_classifier_is_a_bound(seed):
    """One function: the log evidence by quadrature is above it, and not far."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(30, 1))
    y = (x[:, 0] + rng.normal(size=30) > 0).astype(int)
    model = SparseBayesClassifier(fit_intercept=False, solver="variational").fit(x, y)
    assert model.coef_.shape == (1, 1)
    phi, alpha, signs = model._values(x)[:, 0], model.alpha_[0, 0], 2.0 * y - 1.0
    mean, std = model.coef_[0, 0], np.sqrt(model._posteriors[0].covariance[0, 0])
    w = np.linspace(mean - 12 * std, mean + 12 * std, 20_001)
    logs = np.sum(log_expit(signs[:, None] * phi[:, None] * w), axis=0) + norm.logpdf(w, scale=alpha**-0.5)
    exact = np.log(np.trapezoid(np.exp(logs - logs.max()), w)) + logs.max()
    assert exact - 0.5 < model.log_marginal_likelihood_ < exact


# -- far out -------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def plane():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 3))
    return X, X[:, 0] - 2.0 * X[:, 1] + 0.5 * rng.normal(size=200), rng.poisson(np.exp(0.5 * X[:, 0]))


FAR = 10.0 ** np.array([20, 99, 101, 153, 154, 155, 200, 300])


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("direction", [(1.0, 0.0, 0.0), (-1.0, 0.0, 0.0), (0.3, -1.0, 0.2), (0.0, 1.0, -1.0)])
def test_classes_far_out_are_those_of_the_direction(plane, classes, direction):
    X, y, _ = plane
    model = SparseBayesClassifier().fit(X, np.digitize(y, [0.0] if classes == 2 else [-1.0, 1.0]))
    limit = model.predict_proba(1e12 * np.array([direction]))
    new = FAR[:, None] * np.array(direction)
    # Outputs and their standard deviations grow alike: what they are moderated to does not change any more.
    np.testing.assert_allclose(model.predict_proba(new), np.broadcast_to(limit, (len(FAR), classes)), rtol=1e-6)
    np.testing.assert_array_equal(model.predict(new), np.argmax(limit))
    decided = model.decision_function(new)
    assert np.all(np.isfinite(decided))
    near = model.decision_function(1e12 * np.array([direction]))
    np.testing.assert_allclose(decided, np.broadcast_to(near, decided.shape), rtol=1e-6)


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_outputs_whose_variance_is_nothing_are_finite_far_out(sign):
    certain = ClassPosterior(np.array([0]), np.array([0]), 1, np.array([1e12]), np.zeros((1, 1)))
    values = sign * FAR[:, None]
    for moderated in (False, True):
        decided = certain.decide(values, moderated=moderated)
        assert np.all(np.isfinite(decided))
        assert np.all(np.sign(decided) == sign)
        np.testing.assert_array_equal(certain.probabilities(values, moderated=moderated)[:, 0], 0.5 + 0.5 * sign)


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_counts_far_out_have_defined_answers(plane, sign):
    X, _, counts = plane
    model = SparseBayesRegressor(likelihood="poisson").fit(X, counts)
    new = np.column_stack([sign * np.concatenate([[10.0, 30.0, 1e2, 1e3, 1e5], FAR]), np.zeros((len(FAR) + 5, 2))])
    mean, std = model.predict(new, return_std=True)
    low, high = model.predict_interval(new)
    draws = model.sample_y(new, 5)
    for found in (mean, std, low, high, draws, model.sample_y(new, 5, noise=False), model.log_density(new, mean * 0)):
        assert np.all(np.isfinite(found))
    assert np.all((low <= high) & (low >= 0.0) & (std >= 0.0))
    assert np.all(draws >= 0.0)
    assert np.all(model.log_density(new, np.zeros(len(new))) <= 0.0)
    assert np.all(draws == np.floor(draws))
    widest = model.predict_interval(new, 0.99999)
    assert np.all((draws >= widest[0][:, None]) & (draws <= widest[1][:, None]))
    assert np.log(np.max(mean)) == pytest.approx(600.0)


def test_intervals_of_very_many_counts_are_those_of_fewer():
    """About the number of counts beyond which they are taken for real numbers, on either side."""
    for variance in (0.0, 1e-8, 1e-4, 0.3, 4.0):
        ends = []
        for log_rate in np.log([0.999e9, 1.001e9]):
            posterior = PoissonPosterior(np.array([0]), np.array([log_rate]), np.array([[variance]]), -0.5 * variance)
            low, high = posterior.interval(np.ones((1, 1)), 0.9)
            ends.append(np.array([low[0], high[0]]) / posterior.predict(np.ones((1, 1))))
        # Within two of a thousand million counts.
        np.testing.assert_allclose(ends[0], ends[1], rtol=1e-7, atol=2e-9)


# -- several targets, weights, one class against the rest ------------------------------------------------------


@pytest.mark.parametrize("uncertainty", ["posterior", "calibrated"])
def test_the_density_of_several_targets_is_the_product_of_theirs(uncertainty):
    rng = np.random.default_rng(3)
    other = np.cos(X[:, 0]) + 0.3 * rng.standard_normal(len(X))
    both = RVR(gamma=1 / 16).fit(X, np.column_stack([Y, other]))
    one, two = RVR(gamma=1 / 16).fit(X, Y), RVR(gamma=1 / 16).fit(X, other)
    at = rng.standard_normal((25, 2))
    expected = one.log_density(NEW, at[:, 0], uncertainty) + two.log_density(NEW, at[:, 1], uncertainty)
    np.testing.assert_allclose(both.log_density(NEW, at, uncertainty), expected, rtol=1e-6)


@pytest.mark.parametrize("likelihood", ["gaussian", "student-t"])
def test_the_bars_of_each_of_several_targets_are_its_own(likelihood):
    """Of every kind, with targets so different that one in the place of the other would be seen."""
    rng = np.random.default_rng(3)
    other = 7.0 + 40.0 * np.cos(X[:, 0]) + 10.0 * rng.standard_t(2.5, len(X))
    est = RVR(gamma=1 / 16, likelihood=likelihood)
    both = clone(est).fit(X, np.column_stack([Y, other]))
    draws = both.sample_y(NEW, 4000)
    for k, y in enumerate((Y, other)):
        alone = clone(est).fit(X, y)
        for kind in ("calibrated", "posterior", "augmented", "conformal"):
            expected = alone.predict(NEW, return_std=True, uncertainty=kind)
            for found, one in zip(both.predict(NEW, return_std=True, uncertainty=kind), expected, strict=True):
                np.testing.assert_allclose(found[:, k], one, rtol=1e-6)
            ends = zip(both.predict_interval(NEW, 0.8, kind), alone.predict_interval(NEW, 0.8, kind), strict=True)
            for found, one in ends:
                np.testing.assert_allclose(found[:, k], one, rtol=1e-6)
        np.testing.assert_allclose(both.predict_noise(NEW)[:, k], alone.predict_noise(NEW), rtol=1e-6)
        low, high = alone.predict_interval(NEW, 0.5, "posterior")
        within = (draws[:, k] >= low[:, None]) & (draws[:, k] <= high[:, None])
        np.testing.assert_allclose(within.mean(axis=1), 0.5, atol=0.05)


@pytest.mark.parametrize("kind", ["posterior", "augmented", "conformal"])
def test_bars_of_weighted_rows_are_those_of_copies(kind):
    counts = np.random.default_rng(6).integers(0, 5, len(X))
    rows = np.repeat(np.arange(len(X)), counts)
    weighted, copied = RVR(gamma=1 / 16).fit(X, Y, counts), RVR(gamma=1 / 16).fit(X[rows], Y[rows])
    found, expected = (one.predict(NEW, return_std=True, uncertainty=kind)[1] for one in (weighted, copied))
    np.testing.assert_allclose(found, expected, rtol=1e-5)


def test_weights_of_the_rows_that_calibrate_are_copies(model):
    rng = np.random.default_rng(4)
    inputs, counts = rng.uniform(-10.0, 10.0, (40, 1)), rng.integers(0, 5, 40)
    observed = np.sinc(inputs[:, 0] / np.pi) + 0.5 * rng.standard_normal(40)
    ends = []
    for rows, weights in ((np.arange(40), counts), (np.repeat(np.arange(40), counts), None), (np.arange(40), None)):
        calibrated = RVR(gamma=1 / 16).fit(X, Y).calibrate(inputs[rows], observed[rows], weights)
        ends.append(np.array(calibrated.predict_interval(NEW, 0.7, "conformal")))
    np.testing.assert_allclose(ends[0], ends[1], rtol=1e-12)
    assert not np.allclose(ends[0], ends[2])


def test_one_class_against_the_rest_has_probabilities_that_add_up_to_one():
    rng = np.random.default_rng(5)
    rows, labels = rng.normal(size=(90, 2)), rng.integers(0, 3, 90)
    rows += np.array([[0.0, 0.0], [2.0, 0.0], [0.0, 2.0]])[labels]
    model = RVC(gamma=0.5, multi_class="ovr").fit(rows, labels)
    found = model.predict_proba(rows)
    np.testing.assert_allclose(found.sum(axis=1), 1.0, rtol=1e-12)
    alone = np.column_stack([RVC(gamma=0.5).fit(rows, labels == k).predict_proba(rows)[:, 1] for k in range(3)])
    np.testing.assert_allclose(found, alone / alone.sum(axis=1, keepdims=True), rtol=1e-6, atol=1e-9)
