"""What must not matter does not matter in classification: units, order, copies."""

import numpy as np
import pytest
from exploring import seeds
from hypothesis import given
from invariance_cases import LINEAR_CLASSES, classification, classifiers, few, fewer, of_rows, same_classes
from sklearn.base import clone

from sparsebayes import SparseBayesClassifier

# -- classification ----------------------------------------------------------------------------------------


def same_support(estimator, model, other, rows=None, columns=None):
    """Equal ``relevance_`` when those of ``other`` are counted as in ``model``."""
    found = other.relevance_
    mapping = rows if of_rows(estimator) else columns
    np.testing.assert_array_equal(np.sort(found if mapping is None else mapping[found]), model.relevance_)


@classifiers
@pytest.mark.parametrize("classes", [2, 3])
@given(seed=seeds)
@fewer
def test_order_of_the_rows_in_classification(estimator, classes, seed):
    X, y = classification(estimator, seed, classes)
    order = np.random.default_rng(seed + 1).permutation(len(y))
    model, other = clone(estimator).fit(X, y), clone(estimator).fit(X[order], y[order])
    same_support(estimator, model, other, rows=order)
    same_classes(model, other, X, X)


@classifiers
@given(seed=seeds)
@few
def test_order_of_the_columns_in_classification(estimator, seed):
    X, y = classification(estimator, seed)
    order = np.random.default_rng(seed + 1).permutation(X.shape[1])
    model, other = clone(estimator).fit(X, y), clone(estimator).fit(X[:, order], y)
    same_support(estimator, model, other, columns=order)
    same_classes(model, other, X, X[:, order])


@given(seed=seeds)
@few
def test_units_of_the_columns_in_classification(seed):
    X, y = classification(LINEAR_CLASSES, seed)
    units = np.random.default_rng(seed + 1).choice([1e-6, 1.0, 1e6], X.shape[1])
    model, other = SparseBayesClassifier().fit(X, y), SparseBayesClassifier().fit(X * units, y)
    np.testing.assert_array_equal(other.relevance_, model.relevance_)
    same_classes(model, other, X, X * units)


@classifiers
@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("balance", [None, "balanced"])
@given(seed=seeds)
@fewer
def test_an_integer_weight_is_so_many_rows_in_classification(estimator, classes, balance, seed):
    estimator = clone(estimator).set_params(class_weight=balance)
    X, y = classification(estimator, seed, classes)
    weight = np.random.default_rng(seed + 1).integers(0, 4, len(y))
    rows = np.repeat(np.arange(len(y)), weight)
    model, other = clone(estimator).fit(X, y, weight), clone(estimator).fit(X[rows], y[rows])
    same_support(estimator, model, other, rows=rows)
    same_classes(model, other, X, X)


@classifiers
@given(seed=seeds)
@few
def test_a_weight_of_zero_is_no_row_in_classification(estimator, seed):
    X, y = classification(estimator, seed)
    rng = np.random.default_rng(seed + 1)
    weight = np.where(rng.random(len(y)) < 0.3, 0.0, rng.uniform(0.5, 2.0, len(y)))
    kept = np.flatnonzero(weight)
    X_odd, y_odd = X.copy(), y.copy()
    X_odd[weight == 0], y_odd[weight == 0] = 1e3, 7  # not even their class exists
    model = clone(estimator).fit(X_odd, y_odd, weight)
    other = clone(estimator).fit(X[kept], y[kept], weight[kept])
    np.testing.assert_array_equal(model.classes_, [0, 1])
    same_support(estimator, model, other, rows=kept)
    same_classes(model, other, X, X)


@classifiers
@given(seed=seeds)
@fewer
def test_class_weight_is_sample_weight(estimator, seed):
    X, y = classification(estimator, seed)
    if of_rows(estimator):
        # "scale" measures the inputs as often as sample_weight says; a class_weight says nothing about the inputs.
        estimator = clone(estimator).set_params(gamma=0.4)
    model = clone(estimator).set_params(class_weight={0: 2.0, 1: 1.0}).fit(X, y)
    other = clone(estimator).fit(X, y, np.where(y == 0, 2.0, 1.0))
    same_support(estimator, model, other)
    same_classes(model, other, X, X)


@given(seed=seeds)
@few
def test_balanced_classes_have_the_same_weight_however_often_their_rows_count(seed):
    """A weight of k is k copies, and one of zero no row, where classes are balanced too."""
    X, y = classification(LINEAR_CLASSES, seed, classes=3)
    weight = np.random.default_rng(seed + 1).integers(0, 4, len(y)) * np.where(y == 0, 3, 1)
    rows = np.repeat(np.arange(len(y)), weight)
    odd = np.where(weight > 0, y, 7)  # not even their class exists
    model = SparseBayesClassifier(class_weight="balanced").fit(X, odd, weight)
    other = SparseBayesClassifier(class_weight="balanced").fit(X[rows], y[rows])
    same_support(LINEAR_CLASSES, model, other)
    same_classes(model, other, X, X)
    share = np.array([np.sum(weight * (y == k)) for k in range(3)])
    by_hand = SparseBayesClassifier().fit(X, y, weight * (np.sum(weight) / (3.0 * share))[y])
    same_classes(model, by_hand, X, X)


@given(seed=seeds)
@few
def test_copies_of_columns_change_nothing_in_classification(seed):
    X, y = classification(LINEAR_CLASSES, seed)
    double = np.column_stack([X, X, X[:, :1]])
    model, other = SparseBayesClassifier().fit(X, y), SparseBayesClassifier().fit(double, y)
    np.testing.assert_array_equal(other.relevance_, model.relevance_)
    same_classes(model, other, X, double)


@classifiers
@given(seed=seeds)
@few
def test_two_classes_swapped(estimator, seed):
    """Which of two classes is called the second turns every sign and nothing else."""
    X, y = classification(estimator, seed)
    model, other = clone(estimator).fit(X, y), clone(estimator).fit(X, 1 - y)
    np.testing.assert_array_equal(other.relevance_, model.relevance_)
    np.testing.assert_allclose(other.predict_proba(X)[:, ::-1], model.predict_proba(X), rtol=0, atol=1e-6)
    np.testing.assert_allclose(other.log_marginal_likelihood_, model.log_marginal_likelihood_, atol=1e-6)


@pytest.mark.parametrize("multi_class", ["softmax", "ovr"])
@given(seed=seeds)
@fewer
def test_names_of_three_classes(multi_class, seed):
    X, y = classification(LINEAR_CLASSES, seed, classes=3)
    names = np.array(["cow", "ant", "bee"])
    model = SparseBayesClassifier(multi_class=multi_class).fit(X, y)
    other = SparseBayesClassifier(multi_class=multi_class).fit(X, names[y])
    np.testing.assert_array_equal(other.relevance_, model.relevance_)
    place = np.searchsorted(other.classes_, names)
    np.testing.assert_allclose(other.predict_proba(X)[:, place], model.predict_proba(X), rtol=0, atol=1e-6)
