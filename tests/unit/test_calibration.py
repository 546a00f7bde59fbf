"""Error bars that hold: what left-out rows say, how it travels, and where it cannot be said."""

import pickle

import numpy as np
import pytest
from scipy.optimize import brentq
from scipy.stats import t as student
from sklearn.base import clone

from sparsebayes import RVR, SparseBayesRegressor, datasets, export, load, save
from sparsebayes.basis import Heaviside
from sparsebayes.design import DenseDesign
from sparsebayes.estimators.uncertainty import LeftOutRows
from sparsebayes.inference.fit import folds
from sparsebayes.inference.fit.folds import Folds
from sparsebayes.inference.models.gaussian import GaussianModel, Gram
from sparsebayes.inference.models.problem import GaussianProblem
from sparsebayes.inference.search.climb import climb
from sparsebayes.posterior import Calibration, GaussianPosterior

X, Y = datasets.make_sinc(100, noise=0.1, random_state=0)
NEW = np.linspace(-10.0, 10.0, 7)[:, None]


@pytest.fixture(scope="module")
def model():
    return RVR(gamma=1 / 9).fit(X, Y)


def of_noise(errors, weights=None):
    """The calibration of errors for which noise of variance one is all that was predicted."""
    n = len(errors)
    return Calibration.of(errors, np.ones(n), np.zeros(n), np.ones(n) if weights is None else weights)


def standardised(found):
    """Errors of rows left out over their predicted standard deviations."""
    return found.errors / np.sqrt(found.noise + found.spread)[:, None]


# One function, whose weight has the variance 3; noise of variance one.
POSTERIOR = GaussianPosterior(np.zeros(1, dtype=int), np.ones(1), np.full((1, 1), 3.0), 1.0, 0.0)


# -- the three numbers ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("scale", [1.0, 1.7])
def test_gaussian_errors_have_their_own_scale_and_light_tails(scale):
    z = scale * np.random.default_rng(0).standard_normal(5000)
    found = of_noise(z)
    assert found.spread == 1.0  # nothing is said of it
    assert found.std_scale == pytest.approx(scale, rel=0.04)
    assert found.degrees > 15.0


def test_heavy_tails_are_seen_at_every_level():
    rng = np.random.default_rng(1)
    found = of_noise(0.6 * rng.standard_t(3.0, 5000))
    new = 0.6 * rng.standard_t(3.0, 50_000)
    for level in (0.5, 0.8, 0.95):
        assert np.mean(np.abs(new) <= found.scale * found.factor(level)) == pytest.approx(level, abs=0.02)
    # Two of them are 1.96 standard deviations of the one that is reported.
    assert np.mean(np.abs(new) <= 1.96 * found.std_scale) == pytest.approx(0.95, abs=0.01)


def test_a_few_wild_rows_do_not_widen_the_bars():
    z = np.random.default_rng(2).standard_normal(1000)
    spoilt = z.copy()
    spoilt[:5] = 1e6
    assert of_noise(spoilt).std_scale == pytest.approx(of_noise(z).std_scale, rel=0.06)


@pytest.mark.parametrize("degrees", [np.inf, 4.0])
@pytest.mark.parametrize("n", [20, 60])
def test_bars_by_few_rows_hold_what_they_say(n, degrees):
    """With the scale taken for known they hold 93 to 94 % for 95."""
    rng = np.random.default_rng(4)
    z = 3.0 * (rng.standard_normal((200, n)) if degrees == np.inf else rng.standard_t(degrees, (200, n)))
    found = [of_noise(one) for one in z]
    for level, margin in ((0.95, 0.012), (0.8, 0.02), (0.5, 0.02)):
        half = np.array([one.scale * one.factor(level) for one in found])
        assert np.mean(2.0 * student.cdf(half / 3.0, degrees) - 1.0) == pytest.approx(level, abs=margin)


def test_the_three_numbers_have_the_greatest_likelihood():
    """Over a grid, by SciPy's densities; the last twentieth of the errors counts as beyond the limit."""
    rng = np.random.default_rng(3)
    noise, spread = rng.uniform(0.5, 1.5, 500), rng.exponential(0.3, 500)
    errors = 1.4 * np.sqrt(noise + 6.0 * spread) * rng.standard_t(5.0, 500)
    found = Calibration.of(errors, noise, spread, np.ones(500))
    limit = np.sort(np.abs(errors) / np.sqrt(noise + spread))[474] * np.sqrt(noise + spread)
    inside = np.abs(errors) <= limit

    def likelihood(scale, factor, heaviness):
        t = student(1.0 / heaviness, 0.0, scale * np.sqrt(noise + factor * spread))
        prior = -0.5 * (np.log(factor) / 2.0) ** 2
        return np.sum(np.where(inside, t.logpdf(errors), np.log(2.0 * t.sf(limit)))) + prior

    # A scale that is known from 500 rows, and the factor beside it as far as they determine it.
    share = 0.5 * found.spread * spread / (noise + found.spread * spread)

    def degrees(heaviness):
        known = 500 * np.var(share) * 2.0 / (1.0 + 3.0 * heaviness)
        return 1.0 / (heaviness + (1.0 + known / (known + 0.25)) * (1.0 + 3.0 * heaviness) / 500)

    heaviness = brentq(lambda h: degrees(h) - found.degrees, 1e-3, 1.0)
    best = likelihood(found.scale, found.spread, heaviness)
    grid = [
        likelihood(s, k, h)
        for s in np.linspace(1.0, 1.8, 15)
        for k in np.geomspace(1.0, 30.0, 15)
        for h in np.linspace(0.05, 0.4, 15)
    ]
    assert max(grid) - 1e-3 <= best <= max(grid) + 0.5
    assert 3.0 < found.spread < 12.0
    assert found.stretch == pytest.approx(
        np.exp(np.mean(np.log(np.sqrt((noise + found.spread * spread) / (noise + spread))))), rel=1e-12
    )


def test_of_few_rows_the_prior_of_the_spread_has_its_say():
    """At the tail that was found no other scale and no other spread has a higher posterior density."""
    rng = np.random.default_rng(8)
    noise, spread = rng.uniform(0.5, 1.5, 20), rng.exponential(0.3, 20)
    errors = np.sqrt(noise + 50.0 * spread) * rng.standard_normal(20)
    found = Calibration.of(errors, noise, spread, np.ones(20))
    limit = np.sort(np.abs(errors) / np.sqrt(noise + spread))[18] * np.sqrt(noise + spread)
    inside = np.abs(errors) <= limit

    def density(log_scale, log_factor, degrees):
        t = student(degrees, 0.0, np.exp(log_scale) * np.sqrt(noise + np.exp(log_factor) * spread))
        known = np.sum(np.where(inside, t.logpdf(errors), np.log(2.0 * t.sf(limit))))
        return known - 0.5 * (log_factor / 2.0) ** 2

    at = np.log(found.scale), np.log(found.spread)
    assert at[1] > 1.0  # else the prior would pull next to nothing

    def missed(degrees):
        steps = [(a, b) for a in (-0.02, 0.0, 0.02) for b in (-0.1, 0.0, 0.1)]
        return max(density(at[0] + a, at[1] + b, degrees) for a, b in steps) - density(*at, degrees)

    # The degrees that are reported know of few rows too, and are fewer; the tail itself is one of a few numbers.
    tails = [1e9, *(256.0 / k**2 for k in range(1, 17))]
    assert min(missed(degrees) for degrees in tails if degrees > found.degrees) < 1e-5


def test_rows_of_which_the_posterior_is_least_sure_are_held_as_often_as_others():
    """One factor for all rows holds 97 % where the output is certain, and 69 % where it is not."""
    rng = np.random.default_rng(20)
    spread = np.repeat([0.01, 0.1, 1.0], 300)
    errors = np.sqrt(1.0 + 20.0 * spread) * rng.standard_normal(900)
    found = Calibration.of(errors, np.ones(900), spread, np.ones(900))
    for value in (0.01, 0.1, 1.0):
        half = found.scale * found.factor(0.9) * np.sqrt(1.0 + found.spread * value)
        new = np.sqrt(1.0 + 20.0 * value) * rng.standard_normal(20_000)
        assert np.mean(np.abs(new) <= half) == pytest.approx(0.9, abs=0.03)


def test_the_share_of_errors_that_is_told_is_that_within_the_intervals():
    rng = np.random.default_rng(22)
    values, weights = rng.standard_normal((200, 1)), rng.integers(1, 4, 200).astype(float)
    found = Calibration(1.3, 4.0, 20.0)
    low, high = found.interval(POSTERIOR, values, 0.95)
    errors = 30.0 * values[:, 0] * rng.standard_normal(200)
    inside = (errors >= low - POSTERIOR.predict(values)) & (errors <= high - POSTERIOR.predict(values))
    told = found.share_held(errors, np.ones(200), 3.0 * values[:, 0] ** 2, weights)
    assert told == pytest.approx(np.average(inside, weights=weights))
    assert 0.5 < told < 0.999


def test_a_spread_that_hardly_differs_says_nothing_of_its_factor():
    errors = 1.5 * np.random.default_rng(21).standard_normal(100)
    found = Calibration.of(errors, np.ones(100), np.full(100, 1e-3), np.ones(100))
    assert found.spread == pytest.approx(1.0, abs=0.05)
    assert found.scale == pytest.approx(of_noise(errors).scale, rel=1e-3)
    assert found.degrees == pytest.approx(of_noise(errors).degrees, rel=1e-2)


def test_errors_that_are_all_but_absent_say_nothing():
    assert of_noise(np.zeros(50)) == Calibration()


def test_a_weight_is_as_many_copies():
    rng = np.random.default_rng(5)
    z, k = rng.standard_normal(40), rng.integers(1, 5, 40)
    spread = rng.exponential(1.0, 40)
    weighted = Calibration.of(z, np.ones(40), spread, k.astype(float))
    copied = Calibration.of(*(np.repeat(each, k) for each in (z, np.ones(40), spread)), np.ones(k.sum()))
    for name in ("scale", "spread", "stretch"):
        assert getattr(weighted, name) == pytest.approx(getattr(copied, name), rel=1e-6)
    assert weighted.degrees == pytest.approx(copied.degrees, rel=1e-4)


def test_the_density_integrates_to_one_and_knows_its_intervals():
    found, values = Calibration(1.3, 4.0, 2.0), np.full((1, 1), 0.7)
    grid = np.linspace(-400.0, 400.0, 800_001)
    density = np.exp(found.log_density(POSTERIOR, values, grid))
    assert np.trapezoid(density, grid) == pytest.approx(1.0, abs=1e-6)
    assert found.standard_deviation(POSTERIOR, values)[0] == pytest.approx(
        np.hypot(found.noise_scale, found.spread_scale * 0.7 * np.sqrt(3.0)), rel=1e-12
    )
    low, high = found.interval(POSTERIOR, values, 0.8)
    inside = (grid >= low) & (grid <= high)
    assert np.trapezoid(density[inside], grid[inside]) == pytest.approx(0.8, abs=1e-3)


# -- rows left out -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("centres", [None, np.arange(8)], ids=["of no row", "of rows"])
def test_standardised_errors_are_those_of_a_search_without_the_rows(centres):
    """Nor without what these rows bring: a function that is centred on one of them would not be there."""
    rng = np.random.default_rng(6)
    values, weights = rng.standard_normal((60, 8)), rng.integers(1, 3, 60).astype(float)
    t = (values[:, :2] @ [2.0, -1.0] + 0.5 * rng.standard_normal(60))[:, None]
    problem = GaussianProblem(DenseDesign(values), t, weights, np.ones(8, dtype=bool), centres=centres)
    beta = 4.0
    given = Folds(problem, 3).left_out(beta, 8)
    fold, found, mass, leverage = np.argsort(np.argsort(t[:, 0])) % 3, [], [], []
    for k in range(3):
        kept, out = fold != k, fold == k
        there = np.ones(8, dtype=bool) if centres is None else kept[centres]
        part = GaussianProblem(DenseDesign(values[kept]), t[kept], weights[kept], there)
        searched = climb(GaussianModel.empty(Gram(part), beta, learn_noise=False), 1e-2)
        phi, alpha = values[:, searched.functions], searched.alpha
        covariance = np.linalg.inv(np.diag(alpha) + beta * phi[kept].T @ (weights[kept][:, None] * phi[kept]))
        mean = beta * covariance @ phi[kept].T @ (weights[kept] * t[kept, 0])
        variance = 1.0 / beta + np.sum((phi[out] @ covariance) * phi[out], axis=1)
        found.append((t[out, 0] - phi[out] @ mean) / np.sqrt(variance))
        mass.append(weights[out])
        own = beta * np.average(np.sum((phi[kept] @ covariance) * phi[kept], axis=1), weights=weights[kept])
        leverage.append(np.full(np.sum(out), own))
    np.testing.assert_allclose(standardised(given)[:, 0], np.concatenate(found), rtol=1e-6)
    np.testing.assert_array_equal(given.weights, np.concatenate(mass))
    np.testing.assert_allclose(given.leverage, np.concatenate(leverage), rtol=1e-6)


def test_folds_at_random_follow_the_rows_and_not_their_order():
    rng = np.random.default_rng(18)
    values, order = rng.standard_normal((60, 3)), rng.permutation(60)
    values[30:] = values[:30]

    def dealt(rows):
        t = rows[:, :1].copy()
        return folds.scattered(GaussianProblem(DenseDesign(rows), t, np.ones(60), np.ones(3, dtype=bool)), 5)

    fold = dealt(values)
    np.testing.assert_array_equal(fold[:30], fold[30:])  # copies stay together
    np.testing.assert_array_equal(dealt(values[order]), fold[order])
    assert np.bincount(fold).tolist() == [12] * 5
    # By turns no two neighbours in the order of the targets would be left out together.
    assert np.any(np.diff(fold[:30][np.argsort(values[:30, 0])]) == 0)


def test_rows_that_only_share_their_target_are_not_left_out_together():
    rng = np.random.default_rng(19)
    values, t = rng.standard_normal((60, 3)), np.repeat([0.0, 1.0], 30)[:, None]
    problem = GaussianProblem(DenseDesign(values), t, np.ones(60), np.ones(3, dtype=bool))
    for fold in (folds.scattered(problem, 5), Folds(problem, 5).fold):
        assert np.bincount(fold).tolist() == [12] * 5
    assert np.bincount(Folds(problem, 5).fold[:30]).tolist() == [6] * 5  # by turns, of each target as many


@pytest.mark.parametrize(
    ("says", "counts", "preferred"),
    [
        pytest.param([1.5, 1.5, -1.0, -1.0], [1, 1, 3, 3], False, id="weighted"),
        pytest.param([1.5, 1.5, -1.0, -1.0], [1, 1, 1, 1], True, id="plain"),
        pytest.param([100.0, -1.0, -1.0, -1.0, -1.0], [1] * 5, False, id="loud for"),
        pytest.param([-100.0, 1.0, 1.0, 1.0, 1.0], [1] * 5, True, id="loud against"),
    ],
)
def test_a_row_speaks_for_a_noise_as_often_as_it_counts_and_not_louder_than_others(
    says, counts, preferred, monkeypatch
):
    values = np.arange(1.0, 1.0 + len(says))[:, None]
    problem = GaussianProblem(DenseDesign(values), values, np.array(counts, dtype=float), np.ones(1, dtype=bool))
    judge = Folds(problem, parts=len(says), fold=np.arange(len(says)))
    monkeypatch.setattr(judge, "densities", lambda beta, size: np.array(says) if beta == 1.0 else np.zeros(len(says)))
    assert judge.prefer(1.0, 2.0, 1) == preferred


@pytest.mark.parametrize(
    ("ratios", "less"),
    [
        pytest.param([0.8] * 5, True, id="clearly"),
        pytest.param([1.0] * 5, False, id="alike"),
        pytest.param([0.99] * 5, False, id="hardly"),
        pytest.param([1.25] * 5, False, id="more"),
        pytest.param([1e4, 0.8, 0.8, 0.8, 0.8], True, id="one fold missed"),
        pytest.param([1e-4, 1.0, 1.0, 1.0, 1.0], False, id="one fold missed by the other"),
    ],
)
def test_errors_are_less_where_they_are_so_in_most_folds(ratios, less, monkeypatch):
    values = np.arange(1.0, 21.0)[:, None]
    judge = Folds(GaussianProblem(DenseDesign(values), values, np.ones(20), np.ones(1, dtype=bool)))
    squares = {1.0: np.repeat(ratios, 4), 2.0: np.ones(20)}
    monkeypatch.setattr(judge, "squared_errors", lambda beta, size: squares[beta])
    assert judge.errs_less(1.0, 2.0, 1) == less


def test_no_more_parts_are_searched_than_needed():
    rng = np.random.default_rng(7)
    values = rng.standard_normal((100, 3))
    problem = GaussianProblem(DenseDesign(values), values[:, :1].copy(), np.ones(100), np.ones(3, dtype=bool))
    assert len(Folds(problem, 5, enough=30.0).left_out(1.0, 3).errors) == 40


def test_a_search_that_misses_what_its_rows_speak_for_goes_on_from_it(monkeypatch):
    """The loop is made to find nothing; functions that explain the part's rows are taken, others are not."""
    rng = np.random.default_rng(15)
    values = rng.standard_normal((60, 8))
    t = (values[:, :2] @ [2.0, -1.0] + 0.1 * rng.standard_normal(60))[:, None]
    problem = GaussianProblem(DenseDesign(values), t, np.ones(60), np.ones(8, dtype=bool))
    found = standardised(Folds(problem, 3).left_out(100.0, 2))
    monkeypatch.setattr(folds, "_climbed", lambda data, beta, *_: GaussianModel.empty(data, beta, False))
    missed = standardised(Folds(problem, 3).left_out(100.0, 2))
    assert np.median(np.abs(missed)) > 5.0
    right, idle = (np.array([0, 1]), np.ones(2)), (np.array([5]), np.full(1, 1e12))
    # Both searches end within a hundredth of a nat of the optimum, which is a tenth of a standard deviation.
    again, none = (standardised(Folds(problem, 3, whole=whole).left_out(100.0, 2)) for whole in (right, idle))
    np.testing.assert_allclose(again, found, rtol=0.0, atol=0.1)
    np.testing.assert_array_equal(none, missed)


# -- estimators ----------------------------------------------------------------------------------------------


def draw(n, seed, inputs=4):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1.0, 1.0, (n, inputs))
    clean = np.sin(3.0 * X[:, 0]) * X[:, 1] + np.exp(X[:, 2]) + np.abs(X[:, 3]) * X[:, 0]
    return X, clean + 0.02 * rng.standard_normal(n)


def test_many_functions_do_not_make_bars_too_short():
    """A third of the rows are kept as centres: what the posterior calls 95 % holds three quarters of new rows."""
    (X, y), (new, observed) = draw(150, 0), draw(2000, 1)
    model = RVR(gamma=0.5).fit(X, y)

    def held(kind):
        low, high = model.predict_interval(new, 0.95, kind)
        return np.mean((low <= observed) & (observed <= high))

    assert held("posterior") < 0.8
    assert 0.92 <= held("calibrated") <= 0.98
    assert np.mean(model.log_density(new, observed)) > np.mean(model.log_density(new, observed, "posterior")) + 0.5


@pytest.mark.parametrize(
    "seeds",
    [
        pytest.param(
            (0, 3),
            marks=pytest.mark.xfail(strict=True, reason="these two are too long, .994; draws hold from .86 to .99"),
        ),
        range(6),
    ],
    ids=["two draws", "six draws"],
)
def test_widths_that_know_the_rows_left_out_do_not_make_bars_short(seeds):
    """Six widths of sixty rows: bars that know nothing of the widths' choice hold 86 %."""
    held = []
    for seed in seeds:
        (X, y), (new, observed) = draw(60, seed, inputs=6), draw(2000, 100 + seed, inputs=6)
        low, high = RVR(gamma="ard").fit(X, y).predict_interval(new)
        held.append(np.mean((low <= observed) & (observed <= high)))
    assert 0.92 <= np.mean(held) <= 0.98


@pytest.mark.parametrize("positive", [0.3, 0.1])
def test_targets_that_are_mostly_zero_do_not_make_bars_vanish(positive):
    """Empty models of parts met next to all rows exactly: bars of a ten-thousandth, which held no row at all."""
    for seed in range(6):
        rng = np.random.default_rng(seed)
        inputs = rng.normal(size=(120, 2))
        targets = np.where(rng.random(120) < positive, np.exp(inputs[:, 0] + rng.normal(size=120)), 0.0)
        model = SparseBayesRegressor(fit_intercept=False).fit(inputs[:60], targets[:60])
        low, high = model.predict_interval(inputs[60:])
        assert np.mean((low <= targets[60:]) & (targets[60:] <= high)) > 0.8, seed


def test_bars_are_not_those_of_models_without_the_outliers():
    """A model drawn to three of 25 rows is wrong by 6,000; by searches that were not its bars were 200."""
    rng = np.random.default_rng(1)
    inputs = rng.normal(size=(25, 2))
    targets = 2.0 * inputs[:, 0] + 0.3 * rng.normal(size=25)
    targets[:3] = 1e6
    model = SparseBayesRegressor(fit_intercept=False).fit(inputs, targets)
    mean, std = model.predict(inputs, return_std=True)
    assert np.mean(np.abs(mean - targets)[3:] <= 1.96 * std[3:]) > 0.9


def test_searches_that_lose_their_way_do_not_make_bars_long():
    """40 spikes in 256 rows: of ten searches on nine tenths of them four end in a tangle of 180 wrong functions."""
    A, b, w = datasets.make_spikes(256, 1024, 40, noise=0.005, random_state=1)
    new = np.std(A) * np.random.default_rng(16).standard_normal((1000, 1024))
    observed = new @ w + 0.005 * np.random.default_rng(17).standard_normal(1000)
    model = SparseBayesRegressor(fit_intercept=False).fit(A, b)
    low, high = model.predict_interval(new)
    assert 0.92 <= np.mean((low <= observed) & (observed <= high)) <= 0.985
    assert np.mean(model.log_density(new, observed)) > np.mean(model.log_density(new, observed, "posterior")) - 0.05


def test_the_default_is_the_posterior_with_a_factor_for_each_part(model):
    mean, std = model.predict(NEW, return_std=True)
    plain_mean, plain = model.predict(NEW, return_std=True, uncertainty="posterior")
    np.testing.assert_array_equal(mean, plain_mean)
    spread = model._posteriors[0].spread(model._values(NEW))
    np.testing.assert_allclose(plain, np.sqrt(model.noise_variance_ + spread), rtol=1e-12)
    parts = model.noise_scale_ * np.sqrt(model.noise_variance_), model.spread_scale_ * np.sqrt(spread)
    np.testing.assert_allclose(std, np.hypot(*parts), rtol=1e-12)
    # Typically: the rows that were left out are the training rows here, and no others.
    ratios = model.predict(X, return_std=True)[1] / model.predict(X, return_std=True, uncertainty="posterior")[1]
    assert model.std_scale_ == pytest.approx(np.exp(np.mean(np.log(ratios))), rel=0.02)
    low, high = model.predict_interval(NEW)
    np.testing.assert_allclose(high - low, 2 * 1.959964 * std, rtol=1e-6)


def test_nothing_is_computed_before_it_is_asked_for():
    model = RVR(gamma=1 / 9).fit(X, Y)
    model.predict(NEW)
    assert isinstance(model._calibration, LeftOutRows)
    assert model._calibration.found is None
    before = dict(vars(model))
    model.predict(NEW, return_std=True)
    assert vars(model) == before
    assert model._calibration.found is not None
    assert model._calibration.rows is None  # the rows are not held any longer


@pytest.mark.parametrize("asked_before", [False, True])
def test_the_factor_travels(tmp_path, asked_before):
    rng = np.random.default_rng(8)
    noisy = Y + 0.1 * rng.standard_t(2.5, len(Y))
    model = RVR(gamma=1 / 9).fit(X, noisy)
    if asked_before:
        model.predict(NEW, return_std=True)
    again = pickle.loads(pickle.dumps(model))
    save(model, tmp_path / "model.json")
    expected = model.predict(NEW, return_std=True)[1]
    assert model.std_scale_ != 1.0
    for other in (again, load(tmp_path / "model.json")):
        assert other.std_scale_ == model.std_scale_
        np.testing.assert_array_equal(other.predict(NEW, return_std=True)[1], expected)
        np.testing.assert_array_equal(other.predict_interval(NEW, 0.5), model.predict_interval(NEW, 0.5))


def test_exports_carry_the_factors(model):
    assert model.noise_scale_ != 1.0 != model.spread_scale_
    plan = export.plan.make_plan(model)
    np.testing.assert_allclose(plan.noise, model.noise_scale_**2 * model.noise_variance_, rtol=1e-12)
    np.testing.assert_allclose(plan.covariances[0], model.spread_scale_**2 * model.sigma_, rtol=1e-12)


def test_the_factor_does_not_depend_on_units_or_row_order(model):
    order = np.random.default_rng(9).permutation(len(Y))
    for inputs, targets in ((X, 1000.0 * Y - 7.0), (X[order], Y[order])):
        assert RVR(gamma=1 / 9).fit(inputs, targets).std_scale_ == pytest.approx(model.std_scale_, rel=1e-6)


def bars(estimator, inputs, targets, weights=None):
    fitted = clone(estimator).fit(inputs, targets, weights)
    return [fitted.noise_scale_, fitted.spread_scale_]


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("estimator", [RVR(), SparseBayesRegressor(), SparseBayesRegressor(Heaviside())], ids=str)
def test_bars_are_the_same_for_targets_of_the_other_sign_and_columns_in_another_order(estimator, seed):
    """Folds were dealt in the order of the targets: bars changed by up to a third, those of steps with the columns."""
    rng = np.random.default_rng(seed)
    A = rng.standard_normal((60, 3))
    b, order = np.sin(2.0 * A[:, 0]) + 0.3 * rng.standard_normal(60), rng.permutation(60)
    plain = pytest.approx(bars(estimator, A, b), rel=1e-6)
    assert bars(estimator, A, -b) == plain
    assert bars(estimator, A, 5.0 - 3.0 * b) == plain
    assert bars(estimator, A[:, ::-1], b) == plain
    assert bars(estimator, A[order], b[order]) == plain
    rated = np.round(2.0 * b)
    assert bars(estimator, A, -rated) == pytest.approx(bars(estimator, A, rated), rel=1e-6)


def test_a_function_is_there_while_any_row_that_it_is_centred_on_is():
    """Of centres that rows share the first row decided, and with it the order of the rows."""
    rng = np.random.default_rng(3)
    A = np.repeat(rng.uniform(-3.0, 3.0, (20, 1)), 3, axis=0)
    b, order = np.sin(2.0 * A[:, 0]) + 0.2 * rng.standard_normal(60), rng.permutation(60)
    assert bars(RVR(), A[order], b[order]) == pytest.approx(bars(RVR(), A, b), rel=1e-6)


def test_folds_of_targets_with_both_tails_alike_have_no_sign():
    rng = np.random.default_rng(20)
    values = rng.standard_normal((60, 3))
    even = np.repeat([-1.0, 1.0], 30)

    def dealt(t):
        problem = GaussianProblem(DenseDesign(values), t[:, None], np.ones(60), np.ones(3, dtype=bool))
        return folds.scattered(problem, 5)

    np.testing.assert_array_equal(dealt(even), dealt(-even))
    # Where functions say nothing of the sign either, rows as far from the middle are left out together.
    values = np.tile(values[:30], (2, 1))
    spread = np.concatenate([values[:30, 0], -values[:30, 0]])
    np.testing.assert_array_equal(dealt(spread), dealt(-spread))
    np.testing.assert_array_equal(dealt(spread)[:30], dealt(spread)[30:])


def test_neither_do_rows_of_which_many_have_the_same_target():
    rng = np.random.default_rng(0)
    A = rng.standard_normal((80, 5))
    b = (A[:, 0] + 0.5 * A[:, 1] + 0.3 * rng.standard_normal(80) > 0.0).astype(float)
    plain = SparseBayesRegressor().fit(A, b).std_scale_
    # 2.7 times that, where rows were told apart by the first columns to nine decimals
    assert SparseBayesRegressor().fit(1e-12 * A, b).std_scale_ == pytest.approx(plain, rel=1e-6)
    assert SparseBayesRegressor().fit(np.insert(A, 0, np.ones((3, 1)), axis=1), b).std_scale_ == plain
    order, k = rng.permutation(80), rng.integers(1, 4, 80)
    of_rows = RVR().fit(A, b).std_scale_
    assert RVR().fit(A[order], b[order]).std_scale_ == pytest.approx(of_rows, rel=1e-6)
    copied = RVR().fit(np.repeat(A, k, axis=0), np.repeat(b, k))
    assert RVR().fit(A, b, k).std_scale_ == pytest.approx(copied.std_scale_, rel=1e-6)


@pytest.mark.parametrize("model", [RVR(fit_intercept=False), SparseBayesRegressor(fit_intercept=False)])
@pytest.mark.parametrize("different", [1, 2, 3])
def test_copies_of_very_few_rows_are_none_to_leave_out(model, different):
    few, targets = np.arange(1.0, 1.0 + different)[:, None], np.array([3.0, 1.0, 2.0])[:different]
    for rows, weights in (
        (np.arange(different), np.full(different, 40.0)),
        (np.arange(40 * different) % different, None),
    ):
        model.fit(few[rows], targets[rows], weights)
        assert model.std_scale_ == 1.0
        assert np.all(np.isfinite(model.predict(few, return_std=True)))


def test_weights_are_copies():
    k = np.random.default_rng(10).integers(1, 4, len(Y))
    weighted = RVR(gamma=1 / 9).fit(X, Y, k)
    copied = RVR(gamma=1 / 9).fit(np.repeat(X, k, axis=0), np.repeat(Y, k))
    assert weighted.std_scale_ == pytest.approx(copied.std_scale_, rel=1e-6)


def test_several_targets_have_a_factor_each(model):
    wild = Y + 0.3 * np.random.default_rng(11).standard_t(2.0, len(Y))
    both = RVR(gamma=1 / 9).fit(X, np.column_stack([Y, wild]))
    alone = RVR(gamma=1 / 9).fit(X, wild)
    np.testing.assert_allclose(both.std_scale_, [model.std_scale_, alone.std_scale_], rtol=1e-9)
    shared = RVR(gamma=1 / 9, shared_support=True).fit(X, np.column_stack([Y, wild]))
    assert shared.std_scale_.shape == (2,)
    std = shared.predict(NEW, return_std=True)[1]
    plain = shared.predict(NEW, return_std=True, uncertainty="posterior")[1]
    noise, spread = shared.noise_scale_**2 * shared.noise_variance_, plain**2 - shared.noise_variance_
    np.testing.assert_allclose(std, np.sqrt(noise + shared.spread_scale_**2 * spread), rtol=1e-9)
    # A constant target is fitted apart, and has its own place all the same.
    three = RVR(gamma=1 / 9, shared_support=True).fit(X, np.column_stack([np.ones(len(Y)), Y, wild]))
    np.testing.assert_allclose(three.std_scale_, [1.0, *shared.std_scale_], rtol=1e-9)


def test_columns_of_x_are_calibrated_too():
    rng = np.random.default_rng(12)
    A = rng.standard_normal((300, 20))
    b = A[:, 0] + 0.3 * rng.standard_t(2.5, 300)
    model = SparseBayesRegressor().fit(A, b)
    low, high = model.predict_interval(rng.standard_normal((5, 20)), 0.5)
    assert model.std_scale_ > 0.0
    # Heavy tails: half of the errors are far inside what a Gaussian of this noise would have.
    assert np.mean((high - low) / 2.0) < 0.6 * 0.6745 * np.sqrt(model.noise_variance_) * 1.5


@pytest.mark.parametrize(
    "settings", [{"likelihood": "outliers"}, {"likelihood": "student-t"}, {"likelihood": "poisson"}]
)
def test_other_likelihoods_keep_the_posterior(settings):
    targets = np.random.default_rng(13).poisson(3.0, len(Y)) if "poisson" in settings.values() else Y
    model = RVR(gamma=1 / 9, **settings).fit(X, targets)
    assert model.std_scale_ == 1.0
    np.testing.assert_array_equal(
        model.predict(NEW, return_std=True), model.predict(NEW, return_std=True, uncertainty="posterior")
    )
    np.testing.assert_array_equal(model.log_density(X, targets), model.log_density(X, targets, "posterior"))


def test_rows_that_are_not_kept_cannot_calibrate():
    rng = np.random.default_rng(14)
    A = rng.standard_normal((200, 3))
    model = SparseBayesRegressor().fit([(A[:100], A[:100, 0]), (A[100:], A[100:, 0] + 0.1)])
    assert model.std_scale_ == 1.0
    assert SparseBayesRegressor().fit(A, A[:, 0] + rng.standard_normal(200))._calibration is not None
    assert SparseBayesRegressor().fit(A[:10], rng.standard_normal(10))._calibration is None  # too few


def test_a_constant_target_has_bars():
    assert RVR(gamma=1 / 9).fit(X, np.ones(len(Y))).std_scale_ > 0.0


def test_error_bars_do_not_change_when_the_caller_writes_into_the_inputs():
    X, y = datasets.make_sinc(60, noise=0.1, random_state=0)
    untouched, written = RVR(gamma=1 / 9).fit(X, y), X.copy()
    model = RVR(gamma=1 / 9).fit(written, y)
    written[:] = 0.0
    assert model.std_scale_ == untouched.std_scale_
