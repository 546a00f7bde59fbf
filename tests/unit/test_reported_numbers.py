"""Numbers that fitted models report, against what they are said to be, computed another way."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import chi2

from sparsebayes import RVC, RVR, SparseBayesClassifier, datasets
from sparsebayes.basis import Bias
from sparsebayes.estimators.regression import weighted_median

X, Y = datasets.make_sinc(40, noise=0.1, random_state=0)


def three_classes(n=90):
    rng = np.random.default_rng(5)
    rows, labels = rng.normal(size=(n, 2)), rng.integers(0, 3, n)
    return rows + np.array([[0.0, 0.0], [3.0, 0.0], [0.0, 3.0]])[labels], np.array(["a", "b", "c"])[labels]


@pytest.mark.parametrize("targets", [1, 2])
def test_the_history_is_in_the_units_of_the_targets(targets):
    y = 7.0 + 300.0 * np.column_stack([Y, np.cos(X[:, 0])])[:, :targets]
    model = RVR(gamma=1 / 16, shared_support=targets > 1).fit(X, y if targets > 1 else y[:, 0])
    last = [record for record in model.history_ if record.start == model.certificate_.start][-1]
    assert last.evidence == pytest.approx(model.log_marginal_likelihood_, abs=0.1)
    assert last.objective == pytest.approx(model.certificate_.objective, abs=0.1)
    assert last.noise_variance == pytest.approx(np.atleast_1d(model.noise_variance_)[0], rel=0.02)
    assert last.n_active == len(model.alpha_.T)


@pytest.mark.parametrize("settings", [{}, {"shared_support": False}, {"multi_class": "ovr"}])
def test_every_term_is_a_weight_of_its_own_class(settings):
    rows, labels = three_classes()
    model = SparseBayesClassifier(**settings).fit(rows, labels)
    weights = np.column_stack([model.coef_[:, model.relevance_], model.intercept_ + model.coef_ @ model.X_offset_])
    found = {k: [] for k in range(3)}
    for term in model.terms():
        place = term.function["feature"] if term.function["kind"] == "linear" else -1
        column = -1 if place == -1 else model.relevance_.tolist().index(place)
        assert term.weight == pytest.approx(weights[term.output, column], rel=1e-9)
        assert term.alpha == model.alpha_[term.output, column]
        found[term.output].append(column)
    for k, kept in found.items():
        assert len(kept) == len(set(kept)) == np.count_nonzero(np.isfinite(model.alpha_[k]))


def test_the_evidence_of_one_class_against_the_rest_is_that_of_all_these_models():
    rows, labels = three_classes()
    model = RVC(gamma=0.5, multi_class="ovr").fit(rows, labels)
    alone = [RVC(gamma=0.5).fit(rows, labels == label) for label in model.classes_]
    assert model.log_marginal_likelihood_ == pytest.approx(sum(one.log_marginal_likelihood_ for one in alone), rel=1e-6)
    assert model.n_iter_ == max(one.n_iter_ for one in alone)


def test_classes_that_are_all_impossible_are_equally_likely():
    model = SparseBayesClassifier(Bias(), fit_intercept=False, multi_class="ovr").fit(*three_classes())
    model._posteriors = [replace(one, mean=np.full(1, -1e4), covariance=np.zeros((1, 1))) for one in model._posteriors]
    np.testing.assert_allclose(model.predict_proba(X[:2].repeat(2, axis=1)), 1.0 / 3.0)


@pytest.mark.parametrize(("shared", "directions", "each"), [(True, 2, 1), (False, 1, 3)])
def test_the_conservative_rule_of_classes_counts_their_weights(shared, directions, each):
    """Of functions that classes share q^2/s has two directions, of others each class has candidates of its own."""
    rng = np.random.default_rng(0)
    rows, labels = rng.normal(size=(120, 20)), rng.integers(0, 3, 120)
    rows[:, 0] += 2.0 * labels
    model = SparseBayesClassifier(fit_intercept=False, support="conservative", shared_support=shared).fit(rows, labels)
    report = model.support_report()
    assert report.threshold > 2.0
    irrelevant = 20 * each * chi2(directions).sf(directions * report.threshold)
    assert report.expected_false == pytest.approx(irrelevant, rel=1e-9)


def test_the_middle_of_weighted_rows_is_that_of_copies():
    rng = np.random.default_rng(2)
    for n in (1, 2, 3, 4, 7, 10):
        y, weights = rng.normal(size=(n, 2)), rng.integers(1, 4, n)
        expected = np.median(np.repeat(y, weights, axis=0), axis=0)
        np.testing.assert_allclose(weighted_median(y, weights.astype(float)), expected, rtol=1e-12)


def test_far_from_all_rows_augmented_bars_of_weighted_rows_are_those_of_copies():
    """There they are the variance of the targets, of rows that count more often as often as they count."""
    counts = np.where(np.abs(Y) > 0.3, 5, 1)
    rows = np.repeat(np.arange(len(X)), counts)
    weighted, copied = RVR(gamma=1 / 16).fit(X, Y, counts), RVR(gamma=1 / 16).fit(X[rows], Y[rows])
    found, expected = (m.predict([[1e3]], return_std=True, uncertainty="augmented")[1] for m in (weighted, copied))
    np.testing.assert_allclose(found, expected, rtol=1e-6)
    assert abs(np.var(Y[rows]) - np.var(Y)) > 0.1 * np.var(Y)
