"""Several targets, and functions made on the way."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from solver_cases import Audit, brute_evidence, few, seeds, several

from sparsebayes import RVR, Sequential, SparseBayesRegressor
from sparsebayes.basis import RBF
from sparsebayes.inference.solvers.sequential import SELECTIONS

# -- several targets ---------------------------------------------------------------------------------------


@given(seed=seeds, fixed=st.booleans(), selection=st.sampled_from(SELECTIONS))
@few
def test_independent_targets_are_separate_fits(seed, fixed, selection):
    X, Y = several(seed)
    noise = [0.01, 900.0, 1e-4] if fixed else [None] * 3
    solver = Sequential(selection=selection)
    together = SparseBayesRegressor(noise_variance=noise if fixed else None, solver=solver, random_state=1).fit(X, Y)
    mean, std = together.predict(X, return_std=True)
    evidence = 0.0
    union = set()
    for k in range(3):
        alone = SparseBayesRegressor(noise_variance=noise[k], solver=solver, random_state=1).fit(X, Y[:, k])
        np.testing.assert_allclose(together.coef_[k], alone.coef_, rtol=1e-10, atol=1e-12)
        np.testing.assert_allclose(together.intercept_[k], alone.intercept_, rtol=1e-10)
        np.testing.assert_allclose(together.noise_variance_[k], alone.noise_variance_, rtol=1e-10)
        own = alone.predict(X, return_std=True)
        np.testing.assert_allclose(mean[:, k], own[0], rtol=1e-9, atol=1e-9)
        np.testing.assert_allclose(std[:, k], own[1], rtol=1e-9)
        assert together.status_[k] is alone.status_
        moves = [[(r.start, r.move, r.function) for r in model] for model in (together.history_[k], alone.history_)]
        assert moves[0] == moves[1]
        finite = np.isfinite(together.alpha_[k][: len(together.relevance_)])
        np.testing.assert_array_equal(together.relevance_[finite], alone.relevance_)
        evidence += alone.log_marginal_likelihood_
        union |= set(alone.relevance_)
    assert list(together.relevance_) == sorted(union)
    np.testing.assert_allclose(together.log_marginal_likelihood_, evidence, rtol=1e-10)


@given(seed=seeds, fixed=st.booleans())
@few
def test_shared_support_is_one_support(seed, fixed):
    X, Y = several(seed)
    noise = [0.01, 900.0, 1e-4] if fixed else None
    model = SparseBayesRegressor(shared_support=True, noise_variance=noise).fit(X, Y)
    assert model.status_.converged
    assert model.certificate_.converged
    assert np.all(np.isfinite(model.alpha_))
    assert model.alpha_.shape[0] == 3
    assert np.all(model.coef_[:, model.relevance_] != 0.0)
    assert np.all(np.delete(model.coef_, model.relevance_, axis=1) == 0.0)
    # In units of each target's standard deviation, or of its noise, there is one precision for all.
    unit = np.sqrt(model.noise_variance_)
    relative = model.alpha_ * unit[:, None] ** 2
    np.testing.assert_allclose(relative, np.broadcast_to(relative[0], relative.shape), rtol=1e-9)
    biased = model.alpha_.shape[1] > len(model.relevance_)
    Phi = np.column_stack([(X - model.X_offset_)[:, model.relevance_], np.ones((len(X), int(biased)))])
    values = [
        brute_evidence(Phi, model.alpha_[k], model.noise_variance_[k], (Y - Y.mean(axis=0))[:, [k]])[0]
        for k in range(3)
    ]
    np.testing.assert_allclose(model.log_marginal_likelihood_, sum(values), rtol=1e-8)


@given(seed=seeds)
@few
def test_shared_support_ascends(seed):
    X, Y = several(seed)
    audit = Audit(X)
    solver = Sequential(callback=audit)
    SparseBayesRegressor(shared_support=True, fit_intercept=False, solver=solver).fit(X, Y)
    assert audit.count > 0


def test_one_column_of_targets_is_one_target():
    X, Y = several(0)
    column, vector = SparseBayesRegressor().fit(X, Y[:, :1]), SparseBayesRegressor().fit(X, Y[:, 0])
    assert column.predict(X).shape == (30, 1)
    np.testing.assert_array_equal(column.predict(X)[:, 0], vector.predict(X))
    shared = SparseBayesRegressor(shared_support=True).fit(X, Y[:, :1])
    np.testing.assert_allclose(shared.predict(X), column.predict(X), rtol=1e-9)


def test_a_constant_target_among_others():
    X, Y = several(1)
    Y[:, 1] = 4.0
    for shared in (False, True):
        model = SparseBayesRegressor(shared_support=shared).fit(X, Y)
        mean, std = model.predict(X, return_std=True)
        assert np.all(np.isfinite(mean))
        assert np.all(np.isfinite(std) & (std > 0))
        np.testing.assert_allclose(mean[:, 1], 4.0)
        assert np.all(np.isfinite(model.noise_variance_))


@pytest.mark.parametrize("place", [0, 1, 2])
@pytest.mark.parametrize("intercept", [True, False])
@pytest.mark.parametrize("chunks", [False, True])
def test_a_constant_target_is_no_data_for_a_noise_that_others_share(place, intercept, chunks):
    X, Y = several(1)
    others = np.delete(np.arange(3), place)
    Y[:, place] = 4.0 if intercept else 0.0

    def fit(targets):
        model = SparseBayesRegressor(shared_support=True, fit_intercept=intercept)
        return model.fit([(X, targets)]) if chunks else model.fit(X, targets)

    model, without = fit(Y), fit(Y[:, others])
    np.testing.assert_allclose(model.noise_variance_[others], without.noise_variance_, rtol=1e-9)
    np.testing.assert_allclose(model.alpha_[others], without.alpha_, rtol=1e-6)
    np.testing.assert_allclose(model.coef_[others], without.coef_, rtol=1e-6, atol=1e-9)
    for mine, theirs in zip(model.predict(X, return_std=True), without.predict(X, return_std=True), strict=True):
        np.testing.assert_allclose(mine[:, others], theirs, rtol=1e-6, atol=1e-9)
    np.testing.assert_allclose(model.predict(X)[:, place], Y[:, place])
    assert np.all(model.coef_[place] == 0.0)
    assert model.status_ is without.status_
    assert model.certificate_.excluded_gain == pytest.approx(without.certificate_.excluded_gain, abs=1e-9)


@pytest.mark.parametrize("gamma", [0.5, "evidence"])
def test_of_two_targets_the_one_that_varies_is_fitted_as_if_alone(gamma):
    X, Y = several(1)
    alone = RVR(gamma=gamma).fit(X, Y[:, 0])
    both = RVR(gamma=gamma, shared_support=True).fit(X, np.column_stack([np.full(len(X), 7.0), Y[:, 0]]))
    np.testing.assert_allclose(both.predict(X)[:, 1], alone.predict(X), rtol=1e-5)
    np.testing.assert_array_equal(both.predict(X)[:, 0], 7.0)
    assert both.noise_variance_[1] == pytest.approx(alone.noise_variance_, rel=1e-5)
    assert both.status_ is alone.status_


def test_widths_are_learned_from_the_targets_that_vary():
    X, Y = several(1)
    alone = RVR(gamma="evidence").fit(X, Y[:, 0])
    both = RVR(gamma="evidence").fit(X, np.column_stack([np.full(len(X), 7.0), Y[:, 0]]))
    assert both.kernel_.width == pytest.approx(alone.kernel_.width, rel=1e-6)
    assert [status.name for status in both.status_] == ["CONSTANT", alone.status_.name]
    np.testing.assert_allclose(both.predict(X)[:, 1], alone.predict(X), rtol=1e-5)
    assert RVR(gamma="evidence").fit(X, np.full(len(X), 7.0)).predict(X[:1]) == 7.0


def test_only_constant_targets_share_nothing():
    X, Y = several(1)
    model = SparseBayesRegressor(shared_support=True).fit(X, np.full_like(Y, 2.5))
    assert model.status_.name == "CONSTANT"
    np.testing.assert_array_equal(model.predict(X), 2.5)


def test_a_constant_target_whose_noise_is_given_is_data():
    X, Y = several(1)
    noise = [0.01, 900.0, 1e-4]
    varying = SparseBayesRegressor(shared_support=True, noise_variance=noise).fit(X, Y)
    Y[:, 1] = 4.0
    model = SparseBayesRegressor(shared_support=True, noise_variance=noise).fit(X, Y)
    np.testing.assert_allclose(model.noise_variance_, noise)
    assert np.all(np.isfinite(model.alpha_))
    assert model.status_ is varying.status_


# -- candidates made on the way ----------------------------------------------------------------------------


def nearby(centres, rng):
    """New centres near those kept."""
    return np.vstack([centres + 0.3 * rng.standard_normal(centres.shape), rng.uniform(-3.0, 3.0, (3, 1))])


def waves(seed, n=30):
    rng = np.random.default_rng(seed)
    X = np.sort(rng.uniform(-3.0, 3.0, (n, 1)), axis=0)
    return X, np.sin(2.0 * X[:, 0]) + 0.1 * rng.standard_normal(n)


@given(
    seed=seeds,
    noise_variance=st.sampled_from([None, 0.01]),
    effort=st.sampled_from(["fast", "default"]),
    fit_intercept=st.booleans(),
)
@few
def test_generated_candidates_keep_or_raise_the_evidence(seed, noise_variance, effort, fit_intercept):
    X, y = waves(seed)
    calls = []

    def generate(centres, rng):
        calls.append(centres.copy())
        return nearby(centres, rng)

    def fit(candidates):
        solver = Sequential(candidates=candidates, effort=effort, rounds=3)
        basis = RBF(1.0, centres=6)
        return SparseBayesRegressor(
            basis, fit_intercept=fit_intercept, noise_variance=noise_variance, solver=solver, random_state=0
        ).fit(X, y)

    plain, grown = fit(None), fit(generate)
    assert calls
    assert all(centres.shape[1] == 1 for centres in calls)
    assert grown.log_marginal_likelihood_ >= plain.log_marginal_likelihood_ - 1e-6
    assert grown.status_.converged
    assert grown.certificate_.converged
    # The kept functions are what predicts.
    kernel = np.exp(-((X - grown.relevance_vectors_.T) ** 2))
    np.testing.assert_allclose(grown.predict(X), kernel @ grown.coef_ + grown.intercept_, atol=1e-8)
    biased = len(grown.alpha_) > len(grown.relevance_)
    Phi = np.column_stack([kernel, np.ones((len(y), int(biased)))])
    offset = y.mean() if fit_intercept else 0.0
    value, error = brute_evidence(Phi, grown.alpha_, grown.noise_variance_, (y - offset)[:, None])
    assert abs(value - grown.log_marginal_likelihood_) <= 1e-7 * max(1.0, abs(value)) + error


def test_generated_candidates_are_used():
    """From one centre that explains little, the candidates find the rest."""
    X, y = waves(0, n=60)
    solver = Sequential(candidates=nearby, rounds=20)
    poor = SparseBayesRegressor(RBF(0.7, centres=[[2.9]])).fit(X, y)
    rich = SparseBayesRegressor(RBF(0.7, centres=[[2.9]]), solver=solver, random_state=0).fit(X, y)
    assert rich.log_marginal_likelihood_ > poor.log_marginal_likelihood_ + 10.0
    assert rich.score(X, y) > 0.9
    assert len(rich.relevance_vectors_) == len(rich.coef_) == len(rich.relevance_)


def test_generated_candidates_of_several_targets_need_one_support():
    rng = np.random.default_rng(0)
    x = np.linspace(-1.0, 1.0, 30)[:, None]
    Y = np.column_stack([np.sin(3.0 * x[:, 0]), x[:, 0] ** 2]) + 0.05 * rng.standard_normal((30, 2))
    solver = Sequential(candidates=lambda centres, rng: rng.uniform(-1.0, 1.0, (5, 1)))
    with pytest.raises(ValueError, match="shared_support=True"):
        RVR(gamma=4.0, solver=solver).fit(x, Y)
    assert RVR(gamma=4.0, solver=solver, shared_support=True, random_state=0).fit(x, Y).status_.converged


def test_no_candidates_are_no_failure():
    """A generator that has nothing to offer is done, not wrong."""
    X, y = waves(1)
    solver = Sequential(candidates=lambda centres, rng: np.empty((0, 1)))
    model = SparseBayesRegressor(RBF(1.0, centres=6), solver=solver).fit(X, y)
    plain = SparseBayesRegressor(RBF(1.0, centres=6)).fit(X, y)
    np.testing.assert_allclose(model.predict(X), plain.predict(X), atol=1e-9)


def test_candidates_that_are_there_already_change_nothing():
    X, y = waves(2)
    solver = Sequential(candidates=lambda centres, rng: centres)
    model = SparseBayesRegressor(RBF(1.0, centres=6), solver=solver, fit_intercept=False).fit(X, y)
    plain = SparseBayesRegressor(RBF(1.0, centres=6), fit_intercept=False).fit(X, y)
    np.testing.assert_allclose(model.predict(X), plain.predict(X), atol=1e-6)
    assert len(np.unique(model.relevance_vectors_)) == len(model.relevance_vectors_)
