"""The noise models of the robust likelihoods: their bounds against the evidence by brute force, and their updates."""

import os

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.special import betaln, digamma
from scipy.stats import beta, gamma, norm, t
from sklearn.exceptions import ConvergenceWarning

from sparsebayes import RVR, SparseBayesRegressor, datasets
from sparsebayes.inference import Sequential, Status
from sparsebayes.inference.fit.robust import near_trimmed_fit
from sparsebayes.likelihood import OutlierMixture, StudentT
from sparsebayes.likelihood.robust import DataShare

COUNTS = np.array([1.0, 2.0, 1.0, 3.0, 1.0])
SQUARES = np.array([0.02, 0.5, 0.1, 30.0, 1.2])


# -- Student's t -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("degrees", [2.3, 7.0])
def test_the_bound_of_student_t_is_its_density_where_outputs_are_known(degrees):
    r"""With its best precisions the bound is tight: :math:`\log\mathcal N - \ell` is the log density of Student's t."""
    noise = 0.7
    model = StudentT(np.full(5, 0.5 * (degrees + 1.0)), 0.5 * (degrees + SQUARES / noise), degrees)
    gaussian = -0.5 * np.log(2.0 * np.pi * noise) - 0.5 * model.weights * SQUARES / noise
    expected = t.logpdf(np.sqrt(SQUARES / noise), degrees) - 0.5 * np.log(noise)
    assert COUNTS @ gaussian + model.bound(COUNTS) == pytest.approx(COUNTS @ expected, rel=1e-10)


def test_any_other_precisions_bound_it_from_below():
    """Also a bound where it is not tight, as the log of an expectation is above the expectation of a log."""
    degrees, noise, rng = 3.0, 0.5, np.random.default_rng(0)
    density = COUNTS @ (t.logpdf(np.sqrt(SQUARES / noise), degrees) - 0.5 * np.log(noise))
    for _ in range(20):
        model = StudentT(rng.uniform(0.5, 5.0, 5), rng.uniform(0.5, 8.0, 5), degrees)
        gaussian = -0.5 * np.log(2.0 * np.pi * noise) - 0.5 * model.weights * SQUARES / noise
        assert COUNTS @ gaussian + model.bound(COUNTS) < density


def test_precisions_are_those_of_their_posterior():
    r"""Of :math:`p(u|t)\propto p(t|u)p(u)` by quadrature."""
    noise = 0.5
    model = StudentT.begin(np.zeros(5), np.ones(5, dtype=bool)).updated(SQUARES, noise, COUNTS)
    half = 0.5 * model.degrees
    for square, weight, outlying in zip(SQUARES, model.weights, model.outlier_probability(), strict=True):

        def joint(u, square=square):
            return gamma.pdf(u, half, scale=1.0 / half) * norm.pdf(np.sqrt(square), scale=np.sqrt(noise / u))

        total = quad(joint, 0.0, 60.0, limit=400)[0]
        assert weight == pytest.approx(quad(lambda u: u * joint(u), 0.0, 60.0, limit=400)[0] / total, rel=1e-5)
        assert outlying == pytest.approx(quad(joint, 0.0, 1.0 / 9.0)[0] / total, rel=1e-5)


def test_the_degrees_of_freedom_are_the_most_likely():
    rng = np.random.default_rng(0)
    squares, counts = rng.standard_t(4.0, 4000) ** 2, rng.integers(1, 3, 4000).astype(float)
    found = StudentT.begin(np.zeros(4000), np.ones(4000, dtype=bool)).updated(squares, 1.0, counts).degrees
    trials = np.exp(np.linspace(np.log(2.0), np.log(20.0), 300))
    best = trials[np.argmax([counts @ t.logpdf(np.sqrt(squares), d) for d in trials])]
    assert found == pytest.approx(best, rel=0.02)
    assert found == pytest.approx(4.0, rel=0.2)


def test_every_row_of_student_t_is_an_observation_and_a_row_of_the_mixture_in_part():
    model = StudentT(np.full(5, 2.0), np.array([1.0, 2.0, 4.0, 80.0, 2.0]), 3.0)
    assert model.n_observations(COUNTS) == COUNTS.sum()
    r = np.array([1.0, 0.5, 0.9, 0.0, 0.2])
    assert OutlierMixture(r, -1.0).n_observations(COUNTS) == pytest.approx(COUNTS @ r)


# -- the mixture -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("data", "outliers"), [(0.0, 0.0), (100.0, 0.0), (37.5, 8.2), (20.0, 25.0), (3.0, 400.0), (1e5, 12.0)]
)
def test_the_posterior_of_the_share_of_data(data, outliers):
    a, b = 11.0 + data, 1.0 + outliers
    found = DataShare.seen(data, outliers)
    above = beta.logsf(0.5, a, b)
    assert found.log_normaliser == pytest.approx(betaln(a, b) + above, rel=1e-8, abs=1e-8)

    if above > -1e-12:  # nothing is cut off
        assert found.mean == pytest.approx(a / (a + b), rel=1e-9)
        assert found.log_odds == pytest.approx(digamma(a) - digamma(b), rel=1e-8)
        return

    def mean(f):
        centre, width = beta.mean(a, b), beta.std(a, b)
        places = [p for p in (centre - 5 * width, centre, centre + 5 * width, 0.5 + 1e-3) if 0.5 < p < 1.0]
        return quad(lambda x: f(x) * np.exp(beta.logpdf(x, a, b) - above), 0.5, 1.0, points=places, limit=500)[0]

    assert found.mean == pytest.approx(mean(lambda x: x), rel=1e-6)
    assert found.log_odds == pytest.approx(mean(lambda x: np.log(x) - np.log1p(-x)), rel=1e-5)


def mixture_evidence(residuals, noise, log_outlier):
    """Log evidence of residuals, with the share of data integrated out, by quadrature."""

    def likelihood(share):
        rows = share * norm.pdf(residuals, scale=np.sqrt(noise)) + (1.0 - share) * np.exp(log_outlier)
        return np.prod(rows) * beta.pdf(share, 11, 1) / beta.sf(0.5, 11, 1)

    return np.log(quad(likelihood, 0.5, 1.0)[0])


def settled(residuals, noise, log_outlier, counts):
    model = OutlierMixture(np.ones(len(residuals)), log_outlier)
    bounds = []
    for _ in range(300):
        model = model.updated(residuals**2, noise, counts)
        gaussian = -0.5 * np.log(2.0 * np.pi * noise) - 0.5 * residuals**2 / noise
        bounds.append(counts @ (model.weights * gaussian) + model.bound(counts))
    return model, np.array(bounds)


@pytest.mark.parametrize("seed", range(5))
def test_the_bound_of_the_mixture_is_just_below_its_evidence(seed):
    """Normalised in all variables: it is a bound, near to what it bounds, and rises with every update."""
    rng, noise, log_outlier = np.random.default_rng(seed), 0.04, -np.log(12.0)
    residuals = np.where(rng.uniform(size=25) < 0.2, rng.uniform(-6, 6, 25), 0.2 * rng.standard_normal(25))
    evidence = mixture_evidence(residuals, noise, log_outlier)
    model, bounds = settled(residuals, noise, log_outlier, np.ones(25))
    assert np.all(np.diff(bounds) >= -1e-9)
    assert bounds[-1] <= evidence
    assert bounds[-1] == pytest.approx(evidence, abs=0.5)
    assert 0.5 <= model.data_share < 1.0


def test_sure_rows_leave_the_evidence_exact():
    """Where every row is surely data or surely not, the bound is the evidence."""
    residuals = np.array([0.01, -0.02, 0.0, 0.01, 50.0, -60.0, 0.015, 0.0])
    evidence = mixture_evidence(residuals, 1e-4, -np.log(220.0))
    assert settled(residuals, 1e-4, -np.log(220.0), np.ones(8))[1][-1] == pytest.approx(evidence, abs=2e-3)


def test_a_weight_is_so_many_copies_of_a_row():
    residuals, copies = np.array([0.1, -0.3, 2.0, 0.05]), np.array([1, 3, 2, 4])
    one, bounds = settled(residuals, 0.04, -2.0, copies.astype(float))
    other, again = settled(np.repeat(residuals, copies), 0.04, -2.0, np.ones(10))
    assert bounds[-1] == pytest.approx(again[-1], rel=1e-10)
    assert one.data_share == pytest.approx(other.data_share, rel=1e-10)


@pytest.mark.parametrize("seed", range(6))
def test_a_trimmed_fit_takes_a_weight_for_so_many_copies(seed):
    rng = np.random.default_rng(seed)
    columns = np.column_stack([rng.standard_normal((24, 2)), np.ones(24)])
    target = columns @ [1.0, -1.0, 0.5] + 0.2 * rng.standard_normal(24)
    target[:7] += rng.uniform(3.0, 9.0, 7)
    copies = rng.integers(1, 6, 24)
    rows = np.repeat(np.arange(24), copies)[rng.permutation(copies.sum())]
    near = near_trimmed_fit(columns, target, copies.astype(float))
    np.testing.assert_array_equal(near_trimmed_fit(columns[rows], target[rows], np.ones(len(rows))), near[rows])


# -- the estimators ------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def line():
    """A line, a tenth of its rows wrong."""
    rng = np.random.default_rng(0)
    x = rng.uniform(-1, 1, (60, 1))
    y = 3.0 * x[:, 0] + 0.2 * rng.standard_normal(60)
    y[:6] = rng.uniform(-8, 8, 6)
    return x, y


def integrated_evidence(x, y, alpha, density):
    """Log evidence of one weight, whose prior precision is known, and rows of any density, on a grid."""
    w = np.linspace(1.0, 5.0, 20_001)
    rows = density(y[:, None] - x * w)
    logs = np.sum(rows, axis=0) + norm.logpdf(w, scale=1.0 / np.sqrt(alpha))
    return np.log(np.trapezoid(np.exp(logs - logs.max()), w)) + logs.max()


def test_the_evidence_of_student_t_is_below_that_by_integration_and_near_to_it(line):
    x, y = line
    model = SparseBayesRegressor(likelihood="student-t", fit_intercept=False).fit(x, y)
    scale, degrees = np.sqrt(model.noise_variance_), model.degrees_of_freedom_
    exact = integrated_evidence(x, y, model.alpha_[0], lambda r: t.logpdf(r, degrees, scale=scale))
    assert exact - 1.0 < model.log_marginal_likelihood_ < exact + 1e-3


def test_the_evidence_of_outliers_is_below_that_by_integration_and_near_to_it(line):
    x, y = line
    model = SparseBayesRegressor(likelihood="outliers", fit_intercept=False).fit(x, y)
    noise, log_outlier = model.noise_variance_, -np.log(2.0 * np.ptp(y))
    share, weights = np.polynomial.legendre.leggauss(60)
    share = 0.75 + 0.25 * share
    logs = [
        integrated_evidence(
            x,
            y,
            model.alpha_[0],
            lambda r, s=s: np.logaddexp(np.log(s) + norm.logpdf(r, scale=np.sqrt(noise)), np.log1p(-s) + log_outlier),
        )
        + np.log(0.25 * w)
        + beta.logpdf(s, 11, 1)
        - beta.logsf(0.5, 11, 1)
        for s, w in zip(share, weights, strict=True)
    ]
    exact = np.logaddexp.reduce(logs)
    assert exact - 1.0 < model.log_marginal_likelihood_ < exact + 1e-3
    assert model.outlier_share_ == pytest.approx(0.1, abs=0.06)


def test_the_bound_is_what_is_reported(line):
    x, y = line
    plain = SparseBayesRegressor(fit_intercept=False).fit(x, y)
    for likelihood in ("outliers", "student-t"):
        robust = SparseBayesRegressor(likelihood=likelihood, fit_intercept=False).fit(x, y)
        assert robust.log_marginal_likelihood_ > plain.log_marginal_likelihood_ + 10.0
        assert robust.certificate_.log_evidence == pytest.approx(robust.log_marginal_likelihood_, rel=1e-9)


def spoilt_plane(seed, rows, share):
    """Few rows on a plane, some of them spoilt, with weights; and the plane, some of whose slopes are zero."""
    rng = np.random.default_rng(seed)
    n, d = int(rng.integers(18, rows)), int(rng.integers(1, 5))
    X, plane = rng.standard_normal((n, d)), rng.standard_normal(d) * (rng.random(d) < 0.7)
    y = X @ plane + 0.2 * rng.standard_normal(n)
    y[: int(share * n)] += 8.0 * rng.standard_normal(int(share * n))
    return X, y, rng.integers(0, 4, n), plane


@pytest.mark.parametrize("likelihood", ["outliers", "student-t"])
def test_a_weight_is_so_many_copies_where_rows_are_few(likelihood):
    """A trimmed fit that did not count weights found other data, and evidence up to 50 nats apart."""
    for seed in range(8):
        X, y, weight, _ = spoilt_plane(seed, 45, 0.1)
        rows = np.repeat(np.arange(len(y)), weight)
        one = SparseBayesRegressor(likelihood=likelihood).fit(X, y, weight)
        other = SparseBayesRegressor(likelihood=likelihood).fit(X[rows], y[rows])
        assert other.log_marginal_likelihood_ == pytest.approx(one.log_marginal_likelihood_, abs=1e-2), seed
        np.testing.assert_allclose(other.coef_, one.coef_, atol=1e-2)


@pytest.mark.parametrize("seed", [21, 27, 37, 49])
def test_neither_all_rows_nor_the_better_half_decide_alone(seed):
    """From one of them alone one plane in thirty is another one, and 5 to 30 nats less likely: on two seeds each."""
    X, y, _, plane = spoilt_plane(seed, 60, 0.25)
    model = SparseBayesRegressor(likelihood="outliers").fit(X, y)
    assert np.linalg.norm(model.coef_ - plane) < 0.15


@pytest.mark.parametrize(("n", "d", "seed"), [(16, 2, 20), (16, 2, 38), (16, 3, 38), (24, 4, 8)])
def test_outliers_that_hide_one_another_are_found(n, d, seed):
    """From all rows the bound is higher by a fraction of a nat to two, without a single outlier among the quarter."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    y = X.sum(axis=1) + 0.3 * rng.normal(size=n)
    y[: n // 4] += rng.choice([-1, 1], n // 4) * rng.uniform(2, 6, n // 4)
    model = SparseBayesRegressor(likelihood="outliers").fit(X, y)
    np.testing.assert_array_equal(model.outlier_probability_[: n // 4] > 0.5, True)


@pytest.mark.skipif("SPARSEBAYES_DATA" not in os.environ, reason="SPARSEBAYES_DATA is not set")
@pytest.mark.parametrize(
    ("name", "outliers", "doubtful"),
    [("starsCYG", {11, 20, 30, 34}, {7, 9, 14}), ("stackloss", {1, 3, 4, 21}, {2})],
)
def test_the_classics(name, outliers, doubtful):
    data = datasets.load(name)
    model = SparseBayesRegressor(likelihood="outliers").fit(data.data, data.target)
    found = set((1 + np.flatnonzero(model.outlier_probability_ > 0.5)).tolist())
    assert outliers <= found <= outliers | doubtful


@pytest.mark.parametrize(("data", "outliers"), [(0.0, 1e6), (0.0, 1e15), (1e3, 1e9), (0.0, 1e20)])
def test_the_share_of_data_where_next_to_all_rows_are_outliers(data, outliers):
    r"""Cut off at one half, the density of the log odds falls as :math:`e^{-(b-a)x/2}` from there."""
    found = DataShare.seen(data, outliers)
    steepness = 0.5 * (outliers - data - 10.0)
    assert found.log_odds == pytest.approx(1.0 / steepness, rel=1e-3)
    height = -(12.0 + data + outliers) * np.log(2.0)
    assert found.log_normaliser == pytest.approx(height - np.log(steepness), rel=1e-15, abs=1e-3)


@pytest.mark.parametrize("rows", [1e6, 1e15, 1e20])
def test_the_share_of_data_where_half_of_very_many_rows_are(rows):
    """The upper half of a Gaussian of precision ab/(a + b)."""
    found = DataShare.seen(rows, rows + 10.0)
    assert found.log_odds == pytest.approx(np.sqrt(2.0 / np.pi) / np.sqrt(0.5 * rows), rel=1e-3)


@pytest.mark.parametrize("likelihood", ["outliers", "student-t"])
def test_rows_of_very_different_weights(likelihood):
    rng = np.random.default_rng(0)
    X, weights = rng.normal(size=(20, 2)), 10.0 ** rng.uniform(-6.0, 6.0, 20)
    y = np.sin(X[:, 0]) + 0.1 * rng.normal(size=20)
    model = SparseBayesRegressor(likelihood=likelihood).fit(X, y, sample_weight=weights)
    assert np.all(np.abs(model.predict(X)) < 10.0)


@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("far", [1e4, 1e5])
def test_an_outlier_of_student_t_costs_a_logarithm_however_far_it_is(far, fit_intercept):
    r"""Begun at one small precision, such rows were all of the sum of squares: an empty model, a hundred nats low.

    The log density of a far row falls by :math:`(\nu+1)` times the logarithm of its distance, here with :math:`\nu=2`;
    what the intercept's prior adds is little.
    """
    rng = np.random.default_rng(1)
    X = rng.normal(size=(25, 2))
    y = 2.0 * X[:, 0] + 0.3 * rng.normal(size=25)
    y[:3] = 100.0
    near = SparseBayesRegressor(likelihood="student-t", fit_intercept=fit_intercept).fit(X, y)
    y[:3] = far
    model = SparseBayesRegressor(likelihood="student-t", fit_intercept=fit_intercept).fit(X, y)
    np.testing.assert_allclose(model.coef_, near.coef_, atol=0.01)
    assert model.noise_variance_ == pytest.approx(near.noise_variance_, rel=0.02)
    lost = 3 * 3 * np.log(far / 100.0)
    assert near.log_marginal_likelihood_ - model.log_marginal_likelihood_ == pytest.approx(lost, rel=0.13)


@pytest.mark.parametrize("likelihood", ["outliers", "student-t"])
@pytest.mark.parametrize("far", [1e10, -1e30])
def test_a_row_that_is_beyond_all_bounds_takes_no_digits_from_others(likelihood, far):
    """Centred by their mean, all other targets would be one number and the rounding of it."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 3))
    truth = X[:, 0] - 2.0 * X[:, 1] + 5.0
    y = truth + 0.1 * rng.normal(size=60)
    y[3] = far
    model = SparseBayesRegressor(likelihood=likelihood).fit(X, y)
    assert np.sqrt(np.mean((model.predict(X) - truth) ** 2)) < 0.1
    assert model.outlier_probability_[3] > 0.99
    # The middle is that of the copies that weights stand for, and of negated targets too.
    weights = rng.integers(0, 4, 60)
    rows = np.repeat(np.arange(60), weights)
    weighted = SparseBayesRegressor(likelihood=likelihood).fit(X, y, weights).predict(X)
    copied = SparseBayesRegressor(likelihood=likelihood).fit(X[rows], y[rows]).predict(X)
    np.testing.assert_allclose(weighted, copied, rtol=1e-9)
    np.testing.assert_allclose(
        SparseBayesRegressor(likelihood=likelihood).fit(X, -y).predict(X), np.negative(model.predict(X))
    )


# -- what is reported of the fit ---------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def contaminated():
    X, y = datasets.make_friedman1(120, random_state=0)
    y[np.random.default_rng(0).choice(120, 12, replace=False)] += 20.0
    return X, y


@pytest.mark.parametrize("likelihood", ["outliers", "student-t"])
@pytest.mark.parametrize("moves", [1, 3, 10])
def test_a_search_that_runs_out_of_moves_is_not_called_converged(contaminated, likelihood, moves):
    with pytest.warns(ConvergenceWarning, match="max_iter"):
        model = RVR(gamma=0.03, likelihood=likelihood, max_iter=moves).fit(*contaminated)
    assert model.status_ is Status.MAX_ITER


@pytest.mark.parametrize("likelihood", ["outliers", "student-t"])
def test_the_history_has_the_moves_of_all_weighted_problems(contaminated, likelihood):
    shown = []
    solver = Sequential(callback=lambda record, active: shown.append(record.start))
    model = RVR(gamma=0.03, likelihood=likelihood, solver=solver).fit(*contaminated)
    starts = np.array([record.start for record in model.history_])
    assert model.certificate_.start in starts
    assert {*starts} <= {*shown}
    assert 0 < model.n_iter_ <= sum(record.n_moves for record in model.history_)
    for start in np.unique(starts):
        objective = np.array([record.objective for record in model.history_ if record.start == start])
        assert np.all(np.diff(objective) >= -1e-9 * np.maximum(1.0, np.abs(objective[1:])))


@pytest.mark.parametrize("likelihood", ["outliers", "student-t"])
@pytest.mark.parametrize("move", [1, 5, 20])
def test_a_callback_that_stops_a_fit_is_not_called_again(contaminated, likelihood, move):
    shown = []
    solver = Sequential(callback=lambda record, active: shown.append(record) or len(shown) == move)
    with pytest.warns(ConvergenceWarning, match="Interrupted"):
        model = RVR(gamma=0.03, likelihood=likelihood, solver=solver).fit(*contaminated)
    assert len(shown) == move
    assert model.status_ is Status.INTERRUPTED
    assert np.all(np.isfinite(model.predict(contaminated[0])))
