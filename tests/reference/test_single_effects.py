"""The solver of single effects: its model, its bound, and the effects that ``inclusion_`` reports."""

from itertools import pairwise

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV

import sparsebayes
from sparsebayes import RVC, RVR, SingleEffects, SparseBayesClassifier, SparseBayesRegressor
from sparsebayes.explain import inclusion
from sparsebayes.inference import Status
from sparsebayes.inference.solvers.single_effects import Search


def twins(seed=0, n=150):
    """Columns 3 and 4 are twins and carry one effect, column 0 carries another."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, 8))
    X[:, 4] = X[:, 3] + 0.01 * rng.standard_normal(n)
    return X, X[:, 0] - X[:, 3] + rng.standard_normal(n)


def trap(seed):
    """Two causes, and a column that correlates with both more than either does with the target."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((300, 20))
    X[:, 2] = 0.95 * (X[:, 0] + X[:, 1]) / np.sqrt(2.0) + np.sqrt(1.0 - 0.95**2) * rng.standard_normal(300)
    return X, X[:, 0] + X[:, 1] + rng.standard_normal(300)


def wave(n=80):
    X = np.linspace(-4.0, 4.0, n)[:, None]
    return X, np.sin(2.0 * X[:, 0]) + 0.1 * np.random.default_rng(0).standard_normal(n)


def fit(X, y, **settings):
    return SparseBayesRegressor(solver=SingleEffects(**settings)).fit(X, y)


def test_the_model_has_one_function_for_every_effect():
    X, y = twins()
    model = fit(X, y)
    assert [sorted(one.members) for one in model.credible_sets()] == [[3, 4], [0]]
    assert sorted(one.members[0] for one in model.credible_sets()) == model.relevance_.tolist()
    assert model.status_ in (Status.CONVERGED, Status.SINGLE_EFFECTS)


def test_precisions_and_noise_are_at_the_maximum_of_their_evidence():
    X, y = twins(1)
    model = fit(X, y)
    columns = model.relevance_.tolist()
    other = SparseBayesRegressor().fit(X[:, columns], y)
    np.testing.assert_allclose(model.predict(X), other.predict(X[:, columns]), atol=1e-3)
    assert model.log_marginal_likelihood_ == pytest.approx(other.log_marginal_likelihood_, abs=1e-3)
    assert model.certificate_.noise_gradient == pytest.approx(0.0, abs=0.05)


@pytest.mark.parametrize("seed", range(5))
def test_it_leaves_the_trap(seed):
    assert fit(*trap(seed)).relevance_.tolist() == [0, 1]


@pytest.mark.parametrize("make", [SparseBayesRegressor, lambda **settings: RVR(gamma=1.0, **settings)])
def test_inclusion_is_that_of_the_effects_without_a_second_search(make, monkeypatch):
    X, y = twins() if make is SparseBayesRegressor else wave()
    expected = inclusion(make().fit(X, y), X, y)
    model = make(solver="single-effects").fit(X, y)

    def search(self, places, noise):
        raise AssertionError("a second search")

    monkeypatch.setattr(Search, "run", search)
    np.testing.assert_allclose(model.inclusion_, expected.inclusion, atol=2e-3)
    there = inclusion(model, X, y)
    assert there.log_evidence[0] == pytest.approx(expected.log_evidence[0], abs=0.01)
    assert there.noise_variance[0] == pytest.approx(expected.noise_variance[0], rel=1e-3)


def test_it_reports_the_effects_in_the_units_of_the_targets():
    X, y = twins()
    one, other = fit(X, y), fit(X, 1000.0 * y + 7.0)
    np.testing.assert_allclose(other.inclusion_, one.inclusion_, atol=1e-4)
    assert other.credible_sets()[0].weight == pytest.approx(1000.0 * one.credible_sets()[0].weight, rel=1e-3)
    assert other.relevance_.tolist() == one.relevance_.tolist()


def test_copies_of_a_column_share_an_effect_though_the_model_has_one_of_them():
    X, y = twins()
    model = fit(np.column_stack([X, X[:, 0]]), y)
    assert model.inclusion_[[0, 8]] == pytest.approx([0.5, 0.5], abs=0.02)
    assert model.relevance_.tolist() == fit(X, y).relevance_.tolist()


@pytest.mark.parametrize("likelihood", ["gaussian", "outliers", "student-t"])
def test_weights_are_copies(likelihood):
    X, y = twins()
    weights = np.random.default_rng(1).integers(0, 4, len(y))
    settings = {"solver": "single-effects", "likelihood": likelihood}
    weighted = SparseBayesRegressor(**settings).fit(X, y, weights)
    copied = SparseBayesRegressor(**settings).fit(np.repeat(X, weights, axis=0), np.repeat(y, weights))
    assert weighted.relevance_.tolist() == copied.relevance_.tolist()
    np.testing.assert_allclose(weighted.coef_, copied.coef_, atol=1e-6)
    np.testing.assert_allclose(weighted.inclusion_, copied.inclusion_, atol=1e-6)


def test_the_bound_never_falls_within_a_start():
    X, y = wave()
    records = RVR(gamma=1.0, solver="single-effects").fit(X, y).history_
    for one, other in pairwise(records):
        assert other.start != one.start or other.objective >= one.objective - 1e-9 * len(y)
    assert len({record.start for record in records}) > 1


def test_functions_that_overlap_stay_in_the_model():
    """They explain the target together: precisions settle from those of the effects, not from any."""
    X, y = wave()
    model = RVR(gamma=0.3, solver="single-effects").fit(X, y)
    assert len(model.relevance_) >= 4
    assert model.score(X, y) > 0.9


def test_noise_that_is_given_stays():
    X, y = twins()
    model = SparseBayesRegressor(solver="single-effects", noise_variance=1.5).fit(X, y)
    assert model.noise_variance_ == 1.5
    assert inclusion(model, X, y).noise_variance[0] == 1.5


def test_targets_have_effects_of_their_own():
    X, y = twins()
    model = SparseBayesRegressor(solver="single-effects").fit(X, np.column_stack([y, X[:, 6] + 0.1 * y]))
    assert [[one.output, sorted(one.members)] for one in model.credible_sets()][:1] == [[0, [3, 4]]]
    assert model.inclusion_[0, 6] < 0.1
    assert model.inclusion_[1, 6] > 0.99


@pytest.mark.parametrize("y", [np.zeros(50), np.full(50, 0.1), np.random.default_rng(5).standard_normal(50)])
def test_nothing_is_found_where_nothing_is(y):
    model = fit(np.random.default_rng(4).standard_normal((50, 6)), y)
    assert model.relevance_.size == 0
    assert np.max(model.inclusion_) < 0.2
    assert len(model.credible_sets()) == 0


@pytest.mark.parametrize("likelihood", ["gaussian", "student-t", "outliers"])
def test_columns_that_say_nothing_have_no_effect(likelihood):
    y = np.array([0.0, 0.0, 1.0, 0.0, 0.0])
    model = SparseBayesRegressor(solver="single-effects", likelihood=likelihood).fit(np.ones((5, 2)), y)
    assert model.relevance_.size == 0


def test_the_number_of_effects_can_be_limited():
    X, y = twins()
    model = fit(X, y, max_effects=1)
    assert model.relevance_.tolist() in ([0], [3], [4])
    assert len(inclusion(model, X, y, max_effects=1).credible_sets()) == 1
    assert len(inclusion(SparseBayesRegressor().fit(X, y), X, y, max_effects=1).credible_sets()) == 1


def test_parameters_travel(tmp_path):
    X, y = twins()
    model = clone(SparseBayesRegressor(solver=SingleEffects(max_effects=3, tol=1e-4))).fit(X, y)
    sparsebayes.save(model, tmp_path / "model.json")
    loaded = sparsebayes.load(tmp_path / "model.json")
    assert loaded.solver.get_params() == model.solver.get_params()
    assert loaded.status_ is model.status_
    np.testing.assert_array_equal(loaded.predict(X), model.predict(X))
    np.testing.assert_allclose(inclusion(loaded, X, y).inclusion, model.inclusion_, atol=1e-3)
    search = GridSearchCV(SparseBayesRegressor(solver=SingleEffects()), {"solver__max_effects": [1, 2]})
    assert search.fit(X, y).best_params_ == {"solver__max_effects": 2}


def test_a_search_that_was_stopped_has_a_model_and_can_go_on(tmp_path):
    X, y = wave()
    seen = []

    def stop(record, active):
        seen.append(active.size)
        return len(seen) == 12

    settings = {"gamma": 1.0, "checkpoint": str(tmp_path / "search.json")}
    with pytest.warns(match="Interrupted"):
        stopped = RVR(solver=SingleEffects(callback=stop), **settings).fit(X, y)
    assert len(stopped.relevance_)
    again, whole = RVR(solver=SingleEffects(), **settings).fit(X, y), RVR(gamma=1.0, solver="single-effects").fit(X, y)
    assert again.relevance_.tolist() == whole.relevance_.tolist()
    with pytest.warns(match="max_iter"):
        RVR(gamma=1.0, solver="single-effects", max_iter=2).fit(X, y)


@pytest.mark.parametrize(
    ("model", "y", "message"),
    [
        (RVC(solver="single-effects"), "two", "not for two classes"),
        (SparseBayesClassifier(solver="single-effects"), "three", "not for"),
        (SparseBayesRegressor(solver="single-effects", likelihood="poisson"), "two", "not for poisson.*credible_sets"),
        (SparseBayesRegressor(solver="single-effects", shared_support=True), "targets", "takes targets one by one"),
        (SparseBayesRegressor(solver="single-effects", noise="varies"), "one", "noise='varies'"),
        (SparseBayesRegressor(solver=SingleEffects(max_effects=0)), "one", "max_effects=0"),
        (SparseBayesRegressor(solver=SingleEffects(max_effects=2.5)), "one", "max_effects=2.5"),
    ],
)
def test_what_it_does_not_do_is_refused(model, y, message):
    X, one = twins()
    targets = {"one": one, "two": (one > 0).astype(int), "three": np.digitize(one, [-1, 1]), "targets": X[:, :2]}[y]
    with pytest.raises(ValueError, match=message):
        model.fit(X, targets)
