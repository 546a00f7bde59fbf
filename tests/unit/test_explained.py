"""``inclusion_`` and ``credible_sets`` of the estimators themselves."""

import copy
import pickle

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

import sparsebayes
from sparsebayes import RVC, RVR, SparseBayesClassifier, SparseBayesRegressor
from sparsebayes.basis import RBF
from sparsebayes.explain import inclusion


def twins(seed=0, n=150):
    """Column 3 and its twin 4 carry one effect, column 0 another."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, 8))
    X[:, 4] = X[:, 3] + 0.01 * rng.standard_normal(n)
    return X, X[:, 0] - X[:, 3] + rng.standard_normal(n)


def test_they_are_those_of_the_function():
    X, y = twins()
    weights = np.random.default_rng(1).integers(0, 3, len(y)).astype(float)
    model = SparseBayesRegressor().fit(X, y, sample_weight=weights)
    there = inclusion(model, X, y, weights)
    np.testing.assert_array_equal(model.inclusion_, there.inclusion)
    assert [one.members for one in model.credible_sets(0.9)] == [one.members for one in there.credible_sets(0.9)]
    assert [sorted(one.members) for one in model.credible_sets()] == [[3, 4], [0]]


def test_what_is_written_into_the_data_afterwards_changes_nothing():
    X, y = twins()
    expected = inclusion(SparseBayesRegressor().fit(X, y), X, y).inclusion
    model = SparseBayesRegressor().fit(X, y)
    X[:], y[:] = 0.0, 0.0
    np.testing.assert_array_equal(model.inclusion_, expected)


def test_classes_frames_and_kernels():
    X, y = twins()
    frame = pd.DataFrame(X, columns=list("abcdefgh"))
    classes = SparseBayesClassifier().fit(frame, np.where(y > 0, "yes", "no"))
    assert classes.inclusion_.shape == (8,)
    assert classes.inclusion_[0] > 0.9
    assert any(set(one.names) <= {"d", "e"} for one in classes.credible_sets())
    assert RVR(gamma=0.1).fit(X, y).inclusion_.shape == (len(y),)


def test_a_new_fit_forgets():
    X, y = twins()
    model = SparseBayesRegressor().fit(X, y)
    before = model.inclusion_
    assert model.fit(X[:, :5], y).inclusion_.shape == (5,)
    assert before.shape == (8,)


def test_data_do_not_travel(tmp_path):
    X, y = twins()
    model = SparseBayesRegressor().fit(X, y)
    assert model.inclusion_.shape == (8,)
    sparsebayes.save(model, tmp_path / "a.model")
    for other in (pickle.loads(pickle.dumps(model)), copy.deepcopy(model), sparsebayes.load(tmp_path / "a.model")):
        np.testing.assert_array_equal(other.predict(X), model.predict(X))
        with pytest.raises(AttributeError, match=r"sparsebayes\.explain\.inclusion"):
            _ = other.inclusion_
    chunked = SparseBayesRegressor().fit([(X, y)])
    with pytest.raises(AttributeError, match="learned from chunks"):
        chunked.credible_sets()


def test_before_the_fit():
    with pytest.raises(NotFittedError):
        _ = SparseBayesRegressor().inclusion_


class TestSupportReport:
    def test_shows_inclusion_probabilities_where_they_are_asked_for(self):
        rng = np.random.default_rng(0)
        X = rng.standard_normal((80, 6))
        X[:, 1] = X[:, 0] + 0.05 * rng.standard_normal(80)  # twins share what one of them carries
        model = SparseBayesRegressor().fit(X, X[:, 0] - 2.0 * X[:, 3] + 5.0 + 0.3 * rng.standard_normal(80))
        assert "P(effect)" not in str(model.support_report())
        report = model.support_report(inclusion=True)
        assert "P(effect)" in str(report)
        columns = np.array(report.function) != "intercept"
        np.testing.assert_array_equal(report.inclusion[columns], model.inclusion_[model.relevance_])
        assert np.all(np.isnan(report.inclusion[np.logical_not(columns)]))
        pandas = pytest.importorskip("pandas", reason="needs the extra files")
        pandas.testing.assert_series_equal(
            report.to_frame()["inclusion"], pandas.Series(report.inclusion, name="inclusion")
        )

    def test_of_every_class(self):
        rng = np.random.default_rng(1)
        X = rng.standard_normal((120, 4))
        labels = np.array(["a", "b", "c"])[np.argmax(X[:, :3] + 0.3 * rng.standard_normal((120, 3)), axis=1)]
        model = SparseBayesClassifier().fit(X, labels)
        report = model.support_report(inclusion=True)
        assert model.inclusion_.shape == (3, 4)
        for label, name, probability in zip(report.output, report.function, report.inclusion, strict=True):
            if name != "intercept":
                assert probability == model.inclusion_["abc".index(label), int(name.removeprefix("x"))]


class TestCentresDrawnByAGenerator:
    """The generator is another after the fit: centres are those that the fit drew, and no others."""

    @pytest.mark.parametrize("make", [RVR, RVC, SparseBayesRegressor, SparseBayesClassifier])
    @pytest.mark.parametrize("settings", [{}, {"n_restarts": 1}], ids=str)
    def test_candidates_are_those_of_the_fit(self, make, settings):
        rng = np.random.default_rng(0)
        X = rng.uniform(-5.0, 5.0, (60, 1))
        y = np.sin(X[:, 0]) + 0.2 * rng.normal(size=60)
        y = y > 0.0 if make in (RVC, SparseBayesClassifier) else y
        generator = np.random.RandomState(0)
        model = make(RBF(1.0, centres=15), random_state=generator, **settings).fit(X, y)
        generator.randint(10, size=7)
        model.set_params(random_state=3)
        for other in (model, pickle.loads(pickle.dumps(model)), copy.deepcopy(model)):
            found = inclusion(other, X, y)
            assert found.inclusion.shape == (15,)
            assert len(np.concatenate(found.kept)) == len(model.relevance_) > 0
        np.testing.assert_array_equal(model.inclusion_, found.inclusion)
        if not make._by_row:
            np.testing.assert_array_equal(np.concatenate(found.kept), model.relevance_)

    def test_every_fit_draws_anew(self):
        X = np.random.default_rng(0).uniform(-5.0, 5.0, (60, 1))
        model = RVR(RBF(1.0, centres=4), random_state=np.random.RandomState(0))
        drawn = [set(model.fit(X, np.sin(X[:, 0])).relevance_.tolist()) for _ in range(8)]
        assert len(set(map(frozenset, drawn))) > 1
        again = RVR(RBF(1.0, centres=4), random_state=np.random.RandomState(0))
        assert [set(again.fit(X, np.sin(X[:, 0])).relevance_.tolist()) for _ in range(8)] == drawn


@pytest.mark.parametrize("kind", ["classes", "counts"])
def test_where_zero_is_on_the_scale_of_an_input_does_not_matter(kind):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(120, 6))
    signal = 2.0 * X[:, 1] - X[:, 4]
    if kind == "classes":
        model, y = SparseBayesClassifier(), (signal + rng.normal(size=120) > 0).astype(int)
    else:
        model, y = SparseBayesRegressor(likelihood="poisson"), rng.poisson(np.exp(0.4 * signal))
    here, there = (clone(model).fit(X + shift, y).inclusion_ for shift in (0.0, 20.0))
    np.testing.assert_allclose(there, here, atol=1e-6)
