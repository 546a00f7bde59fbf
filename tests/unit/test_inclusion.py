"""Inclusion probabilities and credible sets: against enumeration, traps, twins, and all likelihoods."""

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from scipy.integrate import quad
from scipy.special import expit, log_expit
from scipy.stats import multivariate_normal, norm
from sklearn.base import clone
from sklearn.decomposition import PCA
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from sparsebayes import RVC, RVR, SparseBayesClassifier, SparseBayesRegressor
from sparsebayes.basis import RBF, Heaviside, Linear, Polynomial, Precomputed
from sparsebayes.design import as_design
from sparsebayes.estimators.summary import function_names
from sparsebayes.explain import inclusion, modes, single_effects
from sparsebayes.explain.enumeration import enumerate_supports
from sparsebayes.explain.modes import Logistic
from sparsebayes.explain.problems import candidates_of, problems_of, relative_precision
from sparsebayes.inference import Sequential
from sparsebayes.inference.solvers.single_effects import Correlations, Effects, Hyperparameters, Search


def correlated(seed, n=60, m=12, rho=0.5, k=3):
    """A few effects among columns that correlate with their neighbours, standardised."""
    rng = np.random.default_rng(seed)
    C = rho ** np.abs(np.subtract.outer(np.arange(m), np.arange(m)))
    X = rng.standard_normal((n, m)) @ np.linalg.cholesky(C).T
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    w = np.zeros(m)
    w[rng.choice(m, k, replace=False)] = rng.standard_normal(k)
    y = X @ w + rng.standard_normal(n)
    return X, y - y.mean(), w


def trap(seed, n=500, m=50):
    """Two causes, and a column that correlates with both more than either does with the target."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, m))
    X[:, 2] = 0.95 * (X[:, 0] + X[:, 1]) / np.sqrt(2.0) + np.sqrt(1.0 - 0.95**2) * rng.standard_normal(n)
    return X, X[:, 0] + X[:, 1] + rng.standard_normal(n)


def search(X, y, noise=None, constant=True):
    ones = np.ones(len(y))
    problem = Correlations(as_design(X), y, ones, constant=ones if constant else None, size=len(y))
    return problem, Search(problem, noise=noise, max_effects=X.shape[1])


def members(found, **how):
    return [sorted(one.members) for one in found.credible_sets(**how)]


def test_one_effect_is_exact():
    X, y, _ = correlated(0)
    noise, prior, n = 0.8, 0.3, len(y)
    _, effects = search(X, y, noise, constant=False)
    found = effects.effect(X.T @ y, Hyperparameters(noise, prior))
    logs = np.array(
        [multivariate_normal.logpdf(y, np.zeros(n), noise * np.eye(n) + prior * np.outer(x, x)) for x in X.T]
    )
    none = multivariate_normal.logpdf(y, np.zeros(n), noise * np.eye(n))
    share = np.exp(logs - logs.max())
    np.testing.assert_allclose(found.alpha, share / share.sum(), atol=2e-7)
    factor = np.log(np.mean(np.exp(logs - none)))
    assert found.evidence == pytest.approx(factor, rel=1e-10)
    assert found.exists == pytest.approx(1.0 / (1.0 + np.exp(-factor)), rel=1e-10)
    np.testing.assert_allclose(found.mean, prior * (X.T @ y) / (prior * n + noise), rtol=1e-10)


@pytest.mark.parametrize("constant", [False, True])
def test_noise_that_was_learned_is_integrated_out(constant):
    """Against quadrature over log noise of the evidence of every candidate, and of none."""
    X, y, _ = correlated(2, n=12, m=5, k=1)
    y = y + 1.0
    problem, effects = search(X, y, constant=constant)
    hyper = Hyperparameters(0.7, 0.4)
    found = effects.effect(problem.products, hyper, problem.total)
    projection = np.eye(12) - np.full((12, 12), 1.0 / 12) if constant else np.eye(12)
    basis = np.linalg.svd(projection)[0][:, : 12 - constant]  # the rows that a constant leaves
    Z, t, n = basis.T @ X, basis.T @ y, 12 - constant
    ratio = hyper.prior / hyper.noise  # the prior variance is in units of the noise's
    covariances = [np.eye(n) + ratio * np.outer(z, z) for z in Z.T] + [np.eye(n)]
    noises = np.exp(np.linspace(-6.0, 9.0, 4001))
    logs = []
    for C in covariances:
        square, log_det = t @ np.linalg.solve(C, t), np.linalg.slogdet(C)[1]
        logs.append(np.logaddexp.reduce(-0.5 * n * np.log(noises) - 0.5 * log_det - 0.5 * square / noises))
    logs = np.array(logs)
    share = np.exp(logs[:-1] - logs[:-1].max())
    np.testing.assert_allclose(found.alpha, share / share.sum(), rtol=1e-6)
    assert found.evidence == pytest.approx(np.log(np.mean(np.exp(logs[:-1] - logs[-1]))), rel=1e-6)


@pytest.mark.parametrize("constant", [False, True])
def test_what_is_reported_of_an_effect_has_the_noise_integrated_out_beside_the_others(constant):
    X, y, _ = correlated(1)
    problem, effects = search(X, y + constant, constant=constant)
    state = max(effects.run([0], 1.0), key=effects.bound)
    assert len(state.effects) >= 2
    y, X = (y - y.mean(), X - X.mean(axis=0)) if constant else (y, X)
    X = problem.scale * X
    found = effects.finish(state).effects
    assert len(found) == len(state.effects) + 1
    for k, effect in enumerate(found):
        others = [e for j, e in enumerate(state.effects) if j != k]
        left = y - X @ sum((e.expected for e in others), np.zeros(X.shape[1]))
        error = left @ left + sum(len(y) * e.square - np.sum((X @ e.expected) ** 2) for e in others)
        expected = effects.effect(X.T @ left, state.hyper, error)
        np.testing.assert_allclose(effect.alpha, expected.alpha, rtol=1e-6)
        assert effect.evidence == pytest.approx(expected.evidence, rel=1e-6)


def test_noise_held_low_finds_what_is_hidden_by_it():
    """Where many effects lie in correlated columns, the first ones found explain the others away."""
    behind = []
    for seed in range(10):
        rng = np.random.default_rng(seed)
        X = rng.standard_normal((50, 5)) @ rng.standard_normal((5, 300)) + rng.standard_normal((50, 300))
        X = (X - X.mean(axis=0)) / X.std(axis=0)
        causes = rng.choice(300, 6, replace=False)
        y = X[:, causes] @ rng.choice([-1.0, 1.0], 6) + 0.5 * rng.standard_normal(50)
        found, truth = single_effects(X, y), single_effects(X, y, start=causes)
        behind.append(truth.log_evidence[0] - found.log_evidence[0])
    assert np.sum(np.array(behind) < 0.1) >= 9


def test_no_column_that_varies():
    rng = np.random.default_rng(0)
    found = single_effects(np.ones((30, 4)), rng.standard_normal(30))
    np.testing.assert_array_equal(found.inclusion, 0.0)
    assert len(found.credible_sets()) == 0


@pytest.mark.parametrize("rho", [0.0, 0.5, 0.7])
def test_against_enumeration(rho):
    apart = []
    for seed in range(20):
        X, y, _ = correlated(seed, rho=rho)
        found = single_effects(X, y)
        hyper, slots = found._found[0][1].hyper, len(found._found[0][1].effects)
        probability = 1.0 - (1.0 - 0.5 / X.shape[1]) ** slots
        exact = enumerate_supports(X, y, hyper.noise, hyper.prior, probability)
        apart.append(np.abs(found.inclusion - exact).mean())
    assert np.mean(apart) <= 0.05


def test_the_bound_rises_and_is_one():
    X, y, _ = correlated(3)
    noise = 1.0
    _, effects = search(X, y, noise, constant=False)
    state = effects.start([0, 5, 7], noise)
    prior = state.hyper.prior
    bounds = [effects.bound(state)]
    for _ in range(15):
        state = effects.sweep(state)
        bounds.append(effects.bound(state))
    assert min(np.diff(bounds[1:])) > -1e-9
    # The evidence itself: every effect is absent with probability one half, or at any of the candidates.
    n, m = X.shape
    count = len(state.effects)
    columns = np.column_stack([X, np.zeros(n)])
    log_prior = np.append(np.full(m, np.log(0.5 / m)), np.log(0.5))
    places = np.array(np.meshgrid(*[np.arange(m + 1)] * count)).reshape(count, -1).T
    logs = [
        multivariate_normal.logpdf(y, np.zeros(n), noise * np.eye(n) + prior * columns[:, p] @ columns[:, p].T)
        + log_prior[p].sum()
        for p in places
    ]
    evidence = np.logaddexp.reduce(logs)
    assert evidence - 2.0 < bounds[-1] + count * np.log(0.5) <= evidence


def test_the_bound_is_that_of_its_factors():
    """Summed over all places of two effects: the expected log likelihood less the divergences of both."""
    X, y, _ = correlated(3, m=5, k=2)
    noise = 0.9
    _, effects = search(X, y, noise, constant=False)
    state = effects.settle(effects.start([1, 3], noise), learn=False)
    n, prior = len(y), state.hyper.prior
    assert len(state.effects) == 2
    likelihood, divergence = 0.0, 0.0
    chances = [np.append(e.exists * e.alpha, 1.0 - e.exists) for e in state.effects]
    columns = np.column_stack([X, np.zeros(n)])
    for a, b in np.ndindex(6, 6):
        sizes = [np.append(e.mean, 0.0) for e in state.effects]
        left = y - columns[:, a] * sizes[0][a] - columns[:, b] * sizes[1][b]
        spread = sum(e.variance * np.sum(columns[:, k] ** 2) for e, k in zip(state.effects, (a, b), strict=True))
        expected = -0.5 * n * np.log(2.0 * np.pi * noise) - 0.5 * (left @ left + spread) / noise
        likelihood += chances[0][a] * chances[1][b] * expected
    for effect, chance in zip(state.effects, chances, strict=True):
        places = np.append(np.full(5, 0.5 / 5), 0.5)
        some = chance > 0.0
        divergence += chance[some] @ np.log(chance[some] / places[some])
        ratio = effect.variance / prior
        divergence += chance[:5] @ (0.5 * (ratio + effect.mean**2 / prior - 1.0 - np.log(ratio)))
    # The search leaves out what the absence of every effect costs, log 2.
    assert effects.bound(state) + 2.0 * np.log(0.5) == pytest.approx(likelihood - divergence, abs=1e-6)


def test_an_effect_of_no_size_is_not_there():
    X, y, _ = correlated(0)
    problem, effects = search(X, y, 1.0)
    none = effects.effect(problem.products, Hyperparameters(1.0, 0.0))
    assert none.evidence == pytest.approx(0.0, abs=1e-12)
    np.testing.assert_allclose(none.alpha, 1.0 / 12)
    assert not none.there
    state = Effects((none, none), problem.products, Hyperparameters(1.0, 0.0))
    assert effects.sweep(state).effects == ()


def test_residuals_are_residuals():
    X, y, _ = correlated(1)
    _, effects = search(X, y)
    state = max(effects.run([0], 1.0), key=effects.bound)
    expected = X.T @ (y - X @ state.expected)
    np.testing.assert_allclose(state.residual, expected, atol=1e-8 * np.abs(X.T @ y).max())
    error = np.sum((y - X @ state.expected) ** 2)
    spread = sum(len(y) * e.square - np.sum((X @ e.expected) ** 2) for e in state.effects)
    assert effects.expected_error(state) == pytest.approx(error + spread, rel=1e-9)


@pytest.mark.parametrize("start", [(), (2,)])
def test_the_trap_is_left(start):
    for seed in range(10):
        X, y = trap(seed)
        assert sorted(members(single_effects(X, y, start=start))) == [[0], [1]]


def test_no_start_is_better_than_the_truth():
    for seed in range(10):
        X, y = trap(seed, n=200)
        y = y + 2.0 * np.random.default_rng(seed + 100).standard_normal(len(y))  # here the evidence may prefer the one
        found, truth = single_effects(X, y), single_effects(X, y, start=[0, 1])
        assert found.log_evidence[0] >= truth.log_evidence[0] - 0.1


def test_twins_share():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((200, 8))
    X[:, 5] = X[:, 2]
    X[:, 6] = 1.0  # a constant explains nothing beside the intercept
    y = X[:, 2] + X[:, 0] + rng.standard_normal(200)
    found = single_effects(X, y)
    assert found.inclusion[2] == pytest.approx(found.inclusion[5], rel=1e-9)
    assert found.inclusion[2] == pytest.approx(0.5, abs=0.02)
    assert found.inclusion[6] == 0.0
    assert sorted(members(found)) == [[0], [2, 5]]
    assert all(one.purity > 0.999 for one in found.credible_sets())


def test_noise_has_no_sets():
    sets = 0
    for seed in range(40):
        rng = np.random.default_rng(seed)
        sets += len(single_effects(rng.standard_normal((100, 200)), rng.standard_normal(100)).credible_sets())
    assert sets <= 2


def test_units_do_not_matter():
    X, y, _ = correlated(2)
    scale = 10.0 ** np.arange(-6, 6)
    found, other = single_effects(X, y), single_effects(X * scale + 3.0 * scale, 100.0 * y + 5.0)
    np.testing.assert_allclose(other.inclusion, found.inclusion, atol=1e-6)
    np.testing.assert_allclose(other.mean * scale, 100.0 * found.mean, atol=1e-5)
    np.testing.assert_allclose(other.std * scale, 100.0 * found.std, atol=1e-5)


def test_weights_are_copies():
    X, y, _ = correlated(4)
    counts = np.random.default_rng(0).integers(0, 4, len(y))
    rows = np.repeat(np.arange(len(y)), counts)
    found, copies = single_effects(X, y, counts), single_effects(X[rows], y[rows])
    np.testing.assert_allclose(found.inclusion, copies.inclusion, atol=1e-8)
    model = SparseBayesRegressor().fit(X, y, sample_weight=counts)
    again = SparseBayesRegressor().fit(X[rows], y[rows])
    first, second = inclusion(model, X, y, sample_weight=counts), inclusion(again, X[rows], y[rows])
    np.testing.assert_allclose(first.inclusion, second.inclusion, atol=1e-6)


def test_a_constant_takes_one_row():
    """Of n rows, n - 1 contrasts are all that there is beside it."""
    rng = np.random.default_rng(8)
    X = rng.standard_normal((16, 5)) + 3.0
    y = X[:, 1] + 2.0 + rng.standard_normal(16)
    contrasts = np.linalg.qr(np.column_stack([np.ones(16), np.eye(16)[:, 1:]]))[0][:, 1:].T
    settings = {"start": ()}, {"start": (), "fit_intercept": False}
    beside, without = single_effects(X, y, **settings[0]), single_effects(contrasts @ X, contrasts @ y, **settings[1])
    for name in ("inclusion", "mean", "std", "noise_variance", "n_effects", "log_evidence"):
        np.testing.assert_allclose(getattr(beside, name), getattr(without, name), rtol=1e-3, err_msg=name)


def test_any_design_will_do():
    X, y, _ = correlated(5)
    found = single_effects(X, y).inclusion
    for other in (sparse.csc_array(X), sparse.linalg.aslinearoperator(X), as_design(X)):
        np.testing.assert_allclose(single_effects(other, y).inclusion, found, atol=1e-8)


def test_many_candidates_of_one_effect():
    """More than are kept as columns: products go by the rows, and say the same."""
    rng = np.random.default_rng(0)
    common = rng.standard_normal(100)
    X = common[:, None] + 0.01 * rng.standard_normal((100, 150))
    y = common + 0.5 * rng.standard_normal(100)
    found = single_effects(X, y)
    assert np.count_nonzero(found.inclusion > 1e-4) > 64
    problem, state = found._found[0]
    np.testing.assert_allclose(
        problem.times(state.expected), state.expected @ problem.columns(np.arange(150)), rtol=1e-8, atol=1e-8
    )
    assert found.credible_sets()[0].purity > 0.9
    assert len(members(found)[0]) > 20


@pytest.mark.parametrize("strength", [0.0, 0.5, 1.0])
def test_a_set_of_one_is_there_only_where_its_probability_reaches_the_coverage(strength):
    """Which candidate carries the effect is no question here, whether there is one is."""
    probabilities = []
    for seed in range(5):
        rng = np.random.default_rng(seed)
        X = rng.standard_normal((60, 1))
        found = single_effects(X, strength * X[:, 0] + rng.standard_normal(60))
        probabilities.append(found.inclusion[0])
        assert found.n_effects[0] == pytest.approx(found.inclusion[0])  # one candidate carries one effect at most
        for coverage in (0.2, 0.6, 0.95):
            sets = found.credible_sets(coverage)
            assert len(sets) <= (found.inclusion[0] >= coverage)
            assert len(sets) == 1 or strength < 1.0
            for one in sets:
                assert coverage <= one.probability <= found.inclusion[0] + 1e-12
                assert one.probability == pytest.approx(sum(one.probabilities))
    assert (max(probabilities) < 0.95) == (strength == 0.0)


def test_purity_is_the_smallest_correlation_of_any_two_members():
    rng = np.random.default_rng(2)
    common = rng.standard_normal(100)
    X = np.column_stack([common + size * rng.standard_normal(100) for size in (0.05, 0.2, 0.3)] + [rng.random(100)])
    one = single_effects(X, common + 2.0 * rng.standard_normal(100)).credible_sets(0.9)[0]
    assert len(one) >= 2
    cosines = np.abs(np.corrcoef(X[:, list(one.members)].T))
    assert one.purity == pytest.approx(np.min(cosines), rel=1e-9)
    assert one.purity < 0.98


def test_weight_and_spread_of_a_sure_effect_are_those_of_least_squares():
    rng = np.random.default_rng(3)
    X = 7.0 * rng.standard_normal((400, 1)) + 2.0
    y = 0.5 * X[:, 0] + rng.standard_normal(400)
    found = single_effects(X, y)
    (slope, _), covariance = np.polyfit(X[:, 0], y, 1, cov=True)
    one = found.credible_sets()[0]
    for weight, std in ((one.weight, one.std), (found.mean[0], found.std[0])):
        assert weight == pytest.approx(slope, rel=0.02)
        assert std == pytest.approx(np.sqrt(covariance[0, 0]), rel=0.05)


def test_the_spread_of_a_weight_knows_that_the_effect_may_be_elsewhere():
    """Twins: each weight is that of the effect or zero, with equal chances."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((200, 3))
    X[:, 1] = X[:, 0]
    found = single_effects(X, X[:, 0] + rng.standard_normal(200))
    whole = found.credible_sets()[0]
    np.testing.assert_allclose(found.mean[:2], 0.5 * whole.weight, rtol=0.05)
    np.testing.assert_allclose(found.std[:2], np.sqrt(0.5 * whole.std**2 + 0.25 * whole.weight**2), rtol=0.05)


def test_impure_sets_are_left_out():
    rng = np.random.default_rng(1)
    X = rng.standard_normal((60, 2))
    X = np.column_stack([X[:, 0] + X[:, 1], X[:, 0] - X[:, 1]])
    y = X[:, 0] + X[:, 1] + 0.01 * rng.standard_normal(60)
    found = single_effects(X[:, :2], y)
    for one in found.credible_sets(min_abs_corr=0.5):
        assert one.purity >= 0.5
    strict = found.credible_sets(coverage=0.999)
    assert all(one.probability >= 0.999 for one in strict)


def test_a_fixed_noise_stays():
    X, y, _ = correlated(6)
    model = SparseBayesRegressor(noise_variance=2.0).fit(X, y)
    assert inclusion(model, X, y).noise_variance[0] == 2.0
    learned = inclusion(SparseBayesRegressor().fit(X, y), X, y).noise_variance[0]
    assert 0.5 < learned < 2.0


def causes(n=400, m=12, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, m))
    X[:, 4] = X[:, 3] + 0.05 * rng.standard_normal(n)
    return X, 1.5 * X[:, 0] - 1.5 * X[:, 3], rng


@pytest.mark.parametrize("likelihood", ["gaussian", "outliers", "student-t", "poisson"])
def test_all_likelihoods_of_numbers(likelihood):
    X, signal, rng = causes()
    y = rng.poisson(np.exp(0.5 * signal)) if likelihood == "poisson" else signal + rng.standard_t(4, len(signal))
    found = inclusion(SparseBayesRegressor(likelihood=likelihood).fit(X, y), X, y)
    assert sorted(members(found)) in ([[0], [3]], [[0], [3, 4]])
    assert np.delete(found.inclusion, [0, 3, 4]).max() < 0.2


@pytest.mark.parametrize(
    "settings", [{"likelihood": "student-t"}, {"likelihood": "outliers"}, {"noise": "varies"}], ids=str
)
def test_units_of_targets_do_not_matter_whatever_the_noise(settings):
    rng = np.random.default_rng(6)
    X = rng.standard_normal((120, 4))
    y = 0.5 * X[:, 0] + np.exp(1.5 * X[:, 2]) * rng.standard_normal(120)
    one, other = (inclusion(SparseBayesRegressor(**settings).fit(X, unit * y), X, unit * y) for unit in (1.0, 1024.0))
    np.testing.assert_allclose(other.inclusion, one.inclusion, atol=1e-6)
    np.testing.assert_allclose(other.mean, 1024.0 * one.mean, atol=1e-6)
    assert one.inclusion[1] < 0.9


def test_noise_that_varies_is_that_of_each_row():
    """Rows in units of their own noise have a noise of one."""
    rng = np.random.default_rng(6)
    X = rng.standard_normal((120, 4))
    y = 0.2 * X[:, 0] + np.exp(1.5 * X[:, 2]) * rng.standard_normal(120)
    model = SparseBayesRegressor(noise="varies", fit_intercept=False).fit(X, y)
    noise = model.predict_noise(X)
    assert np.max(noise) > 10.0 * np.min(noise)
    units = X / noise[:, None], y / noise
    known = {"fit_intercept": False, "noise_variance": 1.0, "start": np.flatnonzero(model.coef_)}
    found, expected = inclusion(model, X, y), single_effects(*units, **known)
    np.testing.assert_allclose(found.inclusion, expected.inclusion, rtol=1e-3)
    np.testing.assert_allclose(found.mean, expected.mean, rtol=1e-3, atol=1e-6)


@pytest.mark.parametrize("classes", [2, 3])
def test_weights_of_classes_are_weights_of_rows(classes):
    rng = np.random.default_rng(7)
    X = rng.standard_normal((90, 4))
    y = np.digitize(X[:, 0] + 0.5 * X[:, 1] + rng.logistic(size=90), [0.0, 2.0][: classes - 1])
    by_class = {0: 4.0, 1: 1.0, 2: 2.0}
    weights = np.array([by_class[k] for k in y])
    balanced = SparseBayesClassifier(class_weight={k: by_class[k] for k in range(classes)}).fit(X, y)
    weighted = SparseBayesClassifier().fit(X, y, weights)
    found, expected = inclusion(balanced, X, y), inclusion(weighted, X, y, weights)
    np.testing.assert_allclose(found.inclusion, expected.inclusion, atol=1e-6)
    np.testing.assert_allclose(found.mean, expected.mean, atol=1e-6)
    assert not np.allclose(inclusion(weighted, X, y).mean, expected.mean, atol=0.05)


@pytest.mark.parametrize("seed", range(3))
def test_the_evidence_of_one_effect_on_two_classes_is_bounded_closely(seed):
    """By integration over the weight, beside that of no effect."""
    rng = np.random.default_rng(seed)
    x = rng.standard_normal(40)
    y = (x + rng.logistic(size=40) > 0.0).astype(int)
    found = inclusion(SparseBayesClassifier(fit_intercept=False).fit(x[:, None], y), x[:, None], y)
    (problem, state), signs = found._found[0], 2.0 * y - 1.0
    deviation = np.sqrt(state.hyper.prior) * problem.scale[0]

    def density(w):
        return np.exp(np.sum(log_expit(signs * w * x)) + norm.logpdf(w, scale=deviation))

    exact = np.log(np.exp(40 * np.log(0.5)) + quad(density, -30.0, 30.0, points=[0.0, 1.0])[0])
    assert exact - 0.3 < found.log_evidence[0] <= exact + 1e-6


def test_classes():
    X, signal, rng = causes()
    labels = np.where(signal + rng.logistic(size=len(signal)) > 0.0, "yes", "no")
    found = inclusion(SparseBayesClassifier().fit(X, labels), X, labels)
    assert sorted(members(found)) == [[0], [3, 4]] or sorted(members(found)) == [[0], [3]]
    assert 1.0 < found.mean[0] < 2.2
    several = np.digitize(signal, [-1.0, 1.0])
    found = inclusion(SparseBayesClassifier().fit(X, several), X, several)
    assert found.inclusion.shape == (3, 12)
    assert {one.output for one in found.credible_sets()} >= {0, 2}
    weighted = SparseBayesClassifier(class_weight="balanced").fit(X, labels)
    assert inclusion(weighted, X, labels).inclusion[0] > 0.99


def test_classes_that_separate():
    """What functions of the other classes explain is no reason to find nothing: outputs of a softmax share the work."""
    rng = np.random.default_rng(0)
    labels = np.repeat([0, 1, 2], 40)
    X = rng.standard_normal((120, 8))
    X[:, 2] += 6.0 * (labels == 1)
    X[:, 5] += 6.0 * (labels == 2)
    found = inclusion(SparseBayesClassifier().fit(X, labels), X, labels)
    assert found.inclusion[1, 2] > 0.95
    assert found.inclusion[2, 5] > 0.95
    assert np.delete(found.inclusion, [2, 5], axis=1).max() < 0.2


def test_several_targets():
    X, signal, rng = causes()
    Y = np.column_stack([signal, X[:, 7]]) + rng.standard_normal((len(X), 2))
    found = inclusion(SparseBayesRegressor().fit(X, Y), X, Y)
    assert found.inclusion.shape == (2, 12)
    assert found.inclusion[1, 7] > 0.99
    assert found.inclusion[0, 7] < 0.2


@pytest.mark.parametrize(
    "model",
    [
        RVR(gamma=0.1),
        RVR(gamma="evidence"),
        RVR(kernel="precomputed"),
        RVC(gamma=0.1),
        SparseBayesRegressor(RBF(3.0, centres=10)),
        SparseBayesRegressor(Heaviside()),
        SparseBayesRegressor(Polynomial(3)),
    ],
    ids=str,
)
def test_dictionaries(model):
    rng = np.random.default_rng(0)
    X = rng.uniform(-3.0, 3.0, (60, 1))
    y = np.sin(2.0 * X[:, 0]) + 0.1 * rng.standard_normal(60)
    if isinstance(model, RVC):
        y = (y > 0.0).astype(int)
    if getattr(model, "kernel", None) == "precomputed":
        X = np.exp(-0.5 * (X - X.T) ** 2)
    found = inclusion(model.fit(X, y), X, y)
    assert found.inclusion.shape == (len(found.names),)
    assert found.n_effects[0] > 0.9
    assert np.all((found.inclusion >= 0.0) & (found.inclusion <= 1.0))


def test_counts_are_posed_with_the_slope_and_the_curvature_of_their_likelihood():
    X, signal, rng = causes(n=80)
    y, weights = rng.poisson(np.exp(0.5 * signal)), rng.integers(1, 4, 80).astype(float)
    model = SparseBayesRegressor(likelihood="poisson").fit(X, y, weights)
    (posed,) = problems_of(model, candidates_of(model, X, y, weights, [f"x{j}" for j in range(12)]))
    posterior = model._posteriors[0]
    outputs = model._values(X)[:, posterior.functions] @ posterior.mean + posterior.offset
    np.testing.assert_allclose(posed.weights, weights * np.exp(outputs), rtol=1e-9)
    slope = weights * (y - np.exp(outputs))
    np.testing.assert_allclose(posed.weights * (posed.target - outputs), slope, rtol=1e-7, atol=1e-9)
    assert (posed.noise, posed.size) == (1.0, weights.sum())


@pytest.mark.parametrize("likelihood", ["outliers", "student-t"])
def test_rows_count_as_much_as_in_the_fit_of_a_robust_model(likelihood):
    rng = np.random.default_rng(5)
    X = np.sort(rng.uniform(-10.0, 10.0, (30, 1)), axis=0)
    y = np.sinc(X[:, 0] / np.pi) + 0.1 * rng.standard_t(1.5, 30)
    model = RVR(gamma=0.25, likelihood=likelihood).fit(X, y)
    found = relative_precision(model, 0, model._values(X), y, np.arange(30))
    assert np.ptp(found) > 0.5
    np.testing.assert_allclose(found, model._training.weights[:, 0], rtol=0.02)


def test_a_pipeline_and_frames():
    pandas = pytest.importorskip("pandas")
    X, signal, rng = causes()
    y = signal + rng.standard_normal(len(signal))
    frame = pandas.DataFrame(X, columns=[f"c{j}" for j in range(12)])
    found = inclusion(SparseBayesRegressor().fit(frame, y), frame, y)
    table = found.to_frame()
    assert list(table.columns) == ["output", "candidate", "name", "inclusion", "mean", "std"]
    assert table.loc[table["inclusion"].idxmax(), "name"] in ("c0", "c3")
    sets = found.credible_sets()
    assert len(sets.to_frame()) == sum(len(one) for one in sets)
    assert "one of c" in str(sets)
    assert "expected number of effects" in str(found)
    pipeline = make_pipeline(StandardScaler(), SparseBayesRegressor()).fit(X, y)
    np.testing.assert_allclose(inclusion(pipeline, X, y).inclusion, found.inclusion, atol=1e-6)


def test_the_status_says_where_effects_are_a_poorer_description():
    rng = np.random.default_rng(0)
    X = rng.uniform(-3.0, 3.0, (60, 1))
    y = np.sin(2.0 * X[:, 0]) + 0.1 * rng.standard_normal(60)
    found = inclusion(RVR(gamma=0.1).fit(X, y), X, y)
    assert "times the noise variance" in found.status
    assert found.status in str(found)
    X, signal, rng = causes()
    y = signal + rng.standard_normal(len(signal))
    found = inclusion(SparseBayesRegressor().fit(X, y), X, y)
    assert found.status == "The effects explain what the model explains."


def test_zero_weights_and_kernels():
    rng = np.random.default_rng(0)
    X = np.sort(rng.uniform(-3.0, 3.0, (60, 1)), axis=0)
    y = np.sin(2.0 * X[:, 0]) + 0.1 * rng.standard_normal(60)
    weights = np.ones(60)
    weights[::3] = 0.0
    some = weights > 0.0
    model, less = RVR(gamma=1.0).fit(X, y, weights), RVR(gamma=1.0).fit(X[some], y[some])
    found, other = inclusion(model, X, y, weights), inclusion(less, X[some], y[some])
    np.testing.assert_allclose(found.inclusion, other.inclusion, atol=1e-6)
    assert found.names[0] == "rbf of row 1"


def bumps(n=60, d=1):
    """A narrow bump and a line."""
    rng = np.random.default_rng(0)
    X = rng.uniform(-5.0, 5.0, (n, d))
    return X, 2.0 * np.exp(-4.0 * np.square(X - X[4]).sum(axis=1)) + 0.5 * X[:, 0] + 0.1 * rng.normal(size=n)


KERNELS = [
    RBF(0.5),
    Linear() + RBF(0.5),
    RBF(2.0) + RBF(0.5),
    RBF(2.0) + RBF(0.5) + RBF(0.25),
    RBF(0.5) + Linear() + Heaviside(),
    RBF(0.5, centres=30),
]


class TestKeptFunctions:
    """The candidates that kept functions are, by what they are: their values are the same."""

    @pytest.mark.parametrize("kernel", KERNELS, ids=repr)
    @pytest.mark.parametrize(("make", "dropped"), [(RVR, 0), (RVR, 25), (RVC, 25), (SparseBayesRegressor, 25)])
    def test_they_have_their_own_probabilities(self, make, kernel, dropped):
        X, y = bumps(50)
        y = y > 0.5 if make is RVC else y
        weights = (np.arange(len(X)) >= dropped).astype(float)
        model = make(kernel, support="conservative").fit(X, y, sample_weight=weights)
        found = inclusion(model, X, y, weights)
        candidates = candidates_of(model, X, y, weights, ["x0"])
        assert len(found.kept) == len(model.relevance_) > 0
        for k, (same,) in enumerate(found.kept):
            np.testing.assert_array_equal(candidates.design.columns([same])[:, 0], candidates.values[:, k])
        report = model.support_report(inclusion=True)
        ours = {name: p for name, p in zip(report.function, report.inclusion, strict=True) if name != "intercept"}
        named = dict(zip(function_names(model), np.concatenate(found.kept), strict=False))
        assert ours == {name: pytest.approx(found.inclusion[m]) for name, m in named.items()}

    def test_a_bump_is_there_whatever_rows_have_no_weight(self):
        """Places among the rows of positive weight were taken for numbers of rows: .001, .002 and NaN."""
        rng = np.random.default_rng(0)
        X = np.sort(rng.uniform(-5.0, 5.0, 60))[:, None]
        y = 2.0 * np.exp(-(((X[:, 0] - 1.0) / 0.5) ** 2)) + 0.1 * rng.normal(size=60)
        model = RVR(gamma=4.0, support="conservative").fit(X, y, sample_weight=(np.arange(60) >= 25).astype(float))
        np.testing.assert_allclose(model.support_report(inclusion=True).inclusion, [1.0, 0.001, np.nan], atol=5e-4)
        late = RVR(gamma=4.0, support="conservative").fit(X, y, sample_weight=(np.arange(60) >= 30).astype(float))
        assert late.support_report(inclusion=True).inclusion[0] > 0.99

    @pytest.mark.parametrize("settings", [{"gamma": 4.0}, {"gamma": "evidence"}, {"solver": "single-effects"}], ids=str)
    def test_a_function_of_rows_with_copies_is_one(self, settings):
        """It was a quarter there where four rows have the same inputs, or ended in an error."""
        rng = np.random.default_rng(1)
        X = np.repeat(rng.uniform(-3.0, 3.0, (15, 1)), 4, axis=0)
        y = 2.0 * np.exp(-4.0 * np.square(X[:, 0] - X[9, 0])) + 0.1 * rng.normal(size=60)
        X, y = np.vstack([X, X[:1]]), np.append(y, y[0])
        model = RVR(support="conservative", **settings).fit(X, y)
        assert np.nanmax(model.support_report(inclusion=True).inclusion) > 0.99
        assert {len(same) for same in inclusion(model, X, y).kept} <= {4, 5}

    @pytest.mark.parametrize("make", [RVR, RVC])
    @pytest.mark.parametrize("kernel", ["precomputed", Precomputed()], ids=str)
    def test_a_precomputed_kernel_whose_first_rows_have_no_weight(self, make, kernel):
        X, y = bumps()
        y = y > 0.5 if make is RVC else y
        weights = (np.arange(60) >= 20).astype(float)
        matrix, named = make(kernel, support="conservative"), make(RBF(0.5), support="conservative")
        K = RBF(0.5).bind(X).evaluate(X)
        found = inclusion(matrix.fit(K, y, weights), K, y, weights)
        other = inclusion(named.fit(X, y, weights), X, y, weights)
        np.testing.assert_array_equal(matrix.relevance_, named.relevance_)
        np.testing.assert_allclose(found.inclusion, other.inclusion, atol=1e-6)
        assert (found.names[0], other.names[0]) == ("precomputed 20", "rbf of row 20")
        np.testing.assert_array_equal(np.concatenate(found.kept), matrix.relevance_ - 20)

    @pytest.mark.parametrize("made", [RVC(RBF(4.0)), SparseBayesClassifier()], ids=["rows", "columns"])
    def test_a_class_of_no_weight_has_neither_rows_nor_functions(self, made):
        X, _ = bumps(60, 2)
        y = np.digitize(X[:, 0] + 2.0 * np.random.default_rng(1).normal(size=60), [-1.5, 2.5])
        some = y != 2
        less, model = clone(made).fit(X[some], y[some]), clone(made).set_params(class_weight={2: 0.0}).fit(X, y)
        assert model.classes_.tolist() == [0, 1]
        found = inclusion(model, X, y)
        np.testing.assert_allclose(found.inclusion, inclusion(less, X[some], y[some]).inclusion, atol=1e-6)
        np.testing.assert_array_equal(model.inclusion_, found.inclusion)
        assert found.names[1] in ("x1", f"rbf of row {np.flatnonzero(some)[1]}")

    def test_rows_in_another_order(self):
        X, y = bumps()
        model = RVR(Linear() + RBF(0.5), support="conservative").fit(X, y)
        order = np.random.default_rng(1).permutation(len(X))
        here, there = inclusion(model, X, y), inclusion(model, X[order], y[order])
        np.testing.assert_allclose(there.inclusion_of_kept, here.inclusion_of_kept, atol=1e-6)

    def test_inputs_that_a_pipeline_rounds_differently_the_second_time(self):
        X, y = bumps(d=3)
        model = make_pipeline(PCA(svd_solver="full"), RVR(gamma=0.1)).fit(X, y)
        assert not np.array_equal(model[-1].relevance_vectors_, model[:-1].transform(X)[model[-1].relevance_])
        found = inclusion(model, X, y)
        assert found.inclusion.shape == (60,)
        assert np.concatenate(found.kept).tolist() == model[-1].relevance_.tolist()

    @pytest.mark.parametrize("make", [RVR, SparseBayesRegressor])
    def test_functions_that_a_search_made_are_candidates(self, make):
        X, y = bumps()
        model = make(RBF(1.0), solver=Sequential(split_merge=True)).fit(X, y)
        made = [k for k, name in enumerate(function_names(model)) if " at " in name]
        assert made
        found = inclusion(model, X, y)
        assert found.inclusion.shape == (60 + len(made),)
        assert [found.kept[k].tolist() for k in made] == [[60 + k] for k in range(len(made))]
        assert [found.names[60 + k] for k in range(len(made))] == [function_names(model)[k] for k in made]

    def test_centres_that_were_chosen_among_chunks(self):
        X, y = bumps()
        model = SparseBayesRegressor(RBF(0.5, centres=20)).fit([(X[:30], y[:30]), (X[30:], y[30:])])
        candidates = candidates_of(model, X, y, None, ["x0"])
        for k, (same,) in enumerate(candidates.kept):
            np.testing.assert_array_equal(candidates.design.columns([same])[:, 0], candidates.values[:, k])

    def test_of_no_model_there_are_none(self):
        X, y, _ = correlated(0)
        assert single_effects(X, y).kept == ()
        empty = inclusion(SparseBayesRegressor(RBF(1.0)).fit(X, np.ones(60)), X, np.ones(60))
        assert empty.kept == ()
        assert empty.inclusion_of_kept.shape == (1, 0)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda X, y, m: inclusion(m, X, y).credible_sets(coverage=1.0), "coverage=1.0"),
        (lambda X, y, m: inclusion(m, X, y).credible_sets(min_abs_corr=-0.1), "min_abs_corr=-0.1"),
        (lambda X, y, m: inclusion(m, X, y).credible_sets(coverage="high"), "coverage='high'"),
        (lambda X, y, m: inclusion(m, X, y).credible_sets(min_abs_corr=None), "min_abs_corr=None"),
        (lambda X, y, m: inclusion(m, X, y[:-1]), "y has 59 rows"),
        (lambda X, y, m: inclusion(m, X, np.append(y, y)), "y has 120 rows, and X 60"),
        (lambda X, y, m: inclusion(m, X, np.append(y, 0.0), np.append(np.ones(59), 0.0)), "y has 61 rows, and X 60"),
        (lambda X, y, m: inclusion(m, X, np.column_stack([y, y])), r"y has 2 target\(s\)"),
        (lambda X, y, m: inclusion(m, X, np.where(y > 1.0, np.nan, y)), "y contains NaN"),
        (lambda X, y, m: inclusion(m, X, y, max_effects=0), "max_effects=0"),
        (lambda X, y, m: single_effects(X, y[:-1]), r"y has shape \(59,\)"),
        (lambda X, y, m: single_effects(X, y, -np.ones(60)), "sample_weight"),
        (lambda X, y, m: single_effects(X, y, start=[12]), r"start=\[12\]"),
        (lambda X, y, m: single_effects(X, y, start=["x0"]), r"start=\['x0'\]"),
        (lambda X, y, m: single_effects(X, y, noise_variance=-1.0), "noise_variance=-1.0"),
        (lambda X, y, m: single_effects(np.where(X > 2.0, np.nan, X), y), "X contains NaN"),
        (lambda X, y, m: single_effects(X, np.where(y > 1.0, np.inf, y)), "y contains inf"),
    ],
)
def test_what_is_wrong_is_said(call, message):
    X, y, _ = correlated(0)
    with pytest.raises(ValueError, match=message):
        call(X, y, SparseBayesRegressor().fit(X, y))


@pytest.mark.parametrize("value", [0.0, 0.1, 3.0, 1e8 / 3.0])
def test_rounding_of_a_constant_target_is_no_effect(value):
    X, _, _ = correlated(0)
    none = single_effects(X, np.zeros(60)).inclusion
    np.testing.assert_allclose(single_effects(X, np.full(60, value)).inclusion, none, atol=1e-12)
    np.testing.assert_allclose(SparseBayesRegressor().fit(X, np.full(60, value)).inclusion_, none, atol=1e-12)


def test_columns_of_a_frame_keep_their_names():
    X, y, _ = correlated(0)
    found = single_effects(pd.DataFrame(X, columns=[f"a column, {j}" for j in range(12)]), y)
    assert found.names[3] == "a column, 3"
    np.testing.assert_allclose(found.inclusion, single_effects(X, y).inclusion)


def test_other_objects_are_refused():
    X, y, _ = correlated(0)
    with pytest.raises(TypeError, match="single_effects"):
        inclusion(StandardScaler().fit(X), X, y)
    model = SparseBayesClassifier().fit(X, y > 0.0)
    with pytest.raises(ValueError, match="labels"):
        inclusion(model, X, np.where(y > 0.0, 2, 3))


def laplace(Phi, signs, precisions, offset=0.0):
    """Laplace's log evidence of a logistic regression, and its posterior; a precision of zero is a flat prior."""
    w = np.zeros(Phi.shape[1])

    def height(w):
        return log_expit(signs * (offset + Phi @ w)).sum() - 0.5 * w @ (precisions * w)

    def hessian(w):
        y = offset + Phi @ w
        return (Phi.T * (expit(y) * expit(-y))) @ Phi + np.diag(precisions)

    for _ in range(100):
        gradient = Phi.T @ (signs * expit(-signs * (offset + Phi @ w))) - precisions * w
        step, length = np.linalg.solve(hessian(w), gradient), 1.0
        while height(w + length * step) < height(w) - 1e-12:
            length *= 0.5
        w = w + length * step
        if abs(gradient @ step) < 1e-12:
            break
    covariance = np.linalg.inv(hessian(w))
    evidence = height(w) + 0.5 * np.log(precisions[precisions > 0]).sum() + 0.5 * np.linalg.slogdet(covariance)[1]
    return evidence, w, covariance


def two_classes(seed, strength, n=60, m=8, rho=0.5):
    X, *_ = correlated(seed, n, m, rho)
    rng = np.random.default_rng(seed)
    causes = rng.choice(m, 2, replace=False)
    signal = strength * X[:, causes] @ rng.choice([-1.0, 1.0], 2)
    return X, np.where(signal + rng.logistic(size=n) > 0.0, 1.0, -1.0), causes


@pytest.mark.parametrize("constant", [False, True])
@pytest.mark.parametrize("strength", [1.0, 20.0])
def test_an_effect_on_classes_has_the_evidence_of_every_candidate(constant, strength):
    X, signs, _ = two_classes(0, strength)
    offset, prior, ones = 0.5 * X[:, 5] + 0.3, 3.0, np.ones(60)
    problem = Correlations(as_design(X), signs, ones, constant=ones if constant else None, size=60.0)
    found = Logistic(problem, signs, prior).effect(offset)
    beside = np.ones((60, int(constant)))
    none = laplace(beside, signs, np.zeros(int(constant)), offset)[0]
    each = [
        laplace(np.column_stack([x, beside]), signs, np.array([1.0 / prior] + [0.0] * constant), offset) for x in X.T
    ]
    logs, weights, covariances = (np.array(part, dtype=object) for part in zip(*each, strict=True))
    logs = logs.astype(float)
    np.testing.assert_allclose(found.alpha, np.exp(logs) / np.exp(logs).sum(), rtol=1e-3, atol=2e-7)
    assert found.evidence == pytest.approx(np.log(np.mean(np.exp(logs - none))), abs=1e-3)
    np.testing.assert_allclose(found.mean, [w[0] for w in weights], rtol=0.01, atol=1e-3)
    np.testing.assert_allclose(found.variance, [C[0, 0] for C in covariances], rtol=0.01)


@pytest.mark.parametrize("strength", [2.0, 5.0])
def test_classes_against_all_supports(strength):
    apart = []
    for seed in range(8):
        X, signs, _ = two_classes(seed, strength)
        found = inclusion(SparseBayesClassifier().fit(X, signs), X, signs)
        (_, state), m = found._found[0], X.shape[1]
        probability = 1.0 - (1.0 - 0.5 / m) ** len(state.effects)
        supports = (np.arange(2**m)[:, None] >> np.arange(m)) & 1 == 1
        logs = [
            laplace(
                np.column_stack([np.ones(len(X)), X[:, support]]),
                signs,
                np.append(0.0, np.full(support.sum(), 1.0 / state.hyper.prior)),
            )[0]
            + support.sum() * np.log(probability)
            + (~support).sum() * np.log1p(-probability)
            for support in supports
        ]
        share = np.exp(np.array(logs) - max(logs))
        apart.append(np.abs(found.inclusion - share @ supports / share.sum()).mean())
    assert np.mean(apart) <= 0.05


def test_sets_of_classes_hold_the_causes():
    """The bound that the search climbs is tight for the candidate in the lead, and would give it a set of its own."""
    held = []
    for seed in range(10):
        rng = np.random.default_rng(seed)
        common = np.repeat(rng.standard_normal((60, 20)), 10, axis=1)
        X = np.sqrt(0.95) * common + np.sqrt(0.05) * rng.standard_normal((60, 200))
        causes = 10 * rng.choice(20, 2, replace=False) + rng.integers(0, 10, 2)
        y = 5.0 * X[:, causes] @ [1.0, -1.0] + rng.logistic(size=60) > 0.0
        sets = members(inclusion(SparseBayesClassifier().fit(X, y), X, y))
        held += [bool(set(one) & set(causes.tolist())) for one in sets]
    assert len(held) >= 18
    assert np.mean(held) >= 0.9


def test_of_many_candidates_those_of_the_highest_scores_are_tried(monkeypatch):
    X, y, _ = correlated(1, n=120, m=40)
    model = SparseBayesClassifier().fit(X, y > 0.0)
    found = inclusion(model, X, y > 0.0)
    monkeypatch.setattr(modes, "_NUMBERS", 120 * 15)
    some = inclusion(model, X, y > 0.0)
    np.testing.assert_allclose(some.inclusion, found.inclusion, atol=0.01)
    assert np.count_nonzero(some.inclusion == 0.0) > np.count_nonzero(found.inclusion == 0.0)


def test_the_noise_of_a_robust_model_is_learned_anew():
    """That of the model is what its own, more numerous functions leave; taken for known it made three sets of noise."""
    rng = np.random.default_rng(7)
    common = np.repeat(rng.standard_normal((60, 12)), 10, axis=1)
    X = np.sqrt(0.95) * common + np.sqrt(0.05) * rng.standard_normal((60, 120))
    y = 0.8 * X[:, 10 * rng.choice(12, 1, replace=False) + rng.integers(0, 10, 1)] @ rng.choice([-1.0, 1.0], 1)
    y = y + rng.standard_t(3, 60)
    model = SparseBayesRegressor(likelihood="student-t").fit(X, y)
    found = inclusion(model, X, y)
    assert found.noise_variance[0] > 1.5 * model.noise_variance_
    assert [{m // 10 for m in one} for one in members(found)] == [{8}]


def test_counts_are_counts():
    X, signal, rng = causes(n=60)
    y = rng.poisson(np.exp(0.5 * signal))
    with pytest.raises(ValueError, match="no counts"):
        inclusion(SparseBayesRegressor(likelihood="poisson").fit(X, y), X, -1.0 - y)


def test_no_column_that_varies_between_classes():
    found = inclusion(SparseBayesClassifier().fit(np.ones((10, 3)), [0, 1] * 5), np.ones((10, 3)), [0, 1] * 5)
    np.testing.assert_array_equal(found.inclusion, 0.0)
    assert len(found.credible_sets()) == 0


@pytest.mark.parametrize(
    ("basis", "expected"),
    [(None, "a"), (Linear(), "a"), (Polynomial(2), "a b"), (Heaviside(), "a >= ")],
    ids=["columns", "linear", "polynomial", "heaviside"],
)
def test_functions_are_called_by_the_names_of_their_inputs(basis, expected):
    frame = pd.DataFrame(np.random.default_rng(0).standard_normal((20, 2)), columns=["a", "b"])
    y = frame["a"] * frame["b"]
    model, pipeline = SparseBayesRegressor(basis), make_pipeline(StandardScaler(), SparseBayesRegressor(basis))
    for fitted in (model.fit(frame, y), pipeline.fit(frame, y)):
        assert any(name.startswith(expected) for name in inclusion(fitted, frame, y).names)
