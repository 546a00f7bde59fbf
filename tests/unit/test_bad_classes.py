"""Bad weights and labels: a clear error or a defined answer, and never a hang, a NaN or a bare LinAlgError."""

import numpy as np
import pandas as pd
import pytest
from bad_inputs import (
    LABELS,
    N,
    X,
    Y,
    assert_sane,
    each,
    each_classifier,
    each_regressor,
    fitted,
    fitted_or_refused,
    refused,
    targets,
)
from sklearn.base import clone, is_classifier

from sparsebayes import RVC, RVR, SparseBayesClassifier
from sparsebayes.basis import RBF

pytestmark = pytest.mark.usefixtures("no_hang")

# -- weights -----------------------------------------------------------------------------------------------


@each
def test_bad_weights(estimator):
    y = targets(estimator)
    ones = np.ones(N)
    negative, missing, infinite = ones.copy(), ones.copy(), ones.copy()
    negative[4], missing[4], infinite[4] = -1.0, np.nan, np.inf
    refused(estimator, X, y, "sample_weight has negative", negative)
    refused(estimator, X, y, "sample_weight has negative or non-finite", missing)
    refused(estimator, X, y, "sample_weight has negative or non-finite", infinite)
    refused(estimator, X, y, "sample_weight is zero on every row", np.zeros(N))
    refused(estimator, X, y, r"sample_weight has shape \(19,\): expected \(20,\)", ones[:-1])
    refused(estimator, X, y, r"sample_weight has shape \(20, 1\)", ones[:, None])


@each
@pytest.mark.parametrize("weight", ["a", ["a"] * N, np.ones(N) * 1j], ids=["string", "strings", "complex"])
def test_weights_of_another_type(estimator, weight):
    refused(estimator, X, targets(estimator), "sample_weight", weight, error=(ValueError, TypeError))


@each
@pytest.mark.parametrize("weight", [1e300, 1e150, 1e10, 1e8, 1e4, 1e-4, 1e-10, 1e-150, 1e-300])
def test_large_and_small_weights(estimator, weight):
    fitted_or_refused(estimator, X, targets(estimator), np.full(N, weight))


@each
@pytest.mark.parametrize("weight", [1e15, 1e20])
def test_weights_of_more_rows_than_can_be_told_apart(estimator, weight):
    refused(estimator, X, targets(estimator), "copies of the row.*divide sample_weight", np.full(N, weight))


@each
def test_one_weight_above_all_others(estimator):
    weight = np.ones(N)
    weight[0] = 1e12
    fitted_or_refused(estimator, X, targets(estimator), weight)


@each
def test_a_single_row_with_a_weight(estimator):
    weight = np.zeros(N)
    weight[0] = 1.0
    if is_classifier(estimator):
        refused(estimator, X, LABELS, "one class only", weight)
    else:
        fitted(estimator, X, Y, weight)


@each_classifier
@pytest.mark.parametrize("class_weight", ["nope", -1.0, {5: 1.0}, {0: "a", 1: 1.0}])
def test_class_weights_that_make_no_sense(estimator, class_weight):
    words = "class_weight|convert string to float"
    refused(clone(estimator).set_params(class_weight=class_weight), X, LABELS, words)


@each_classifier
@pytest.mark.parametrize("weight", [-1.0, np.nan, np.inf])
def test_class_weights_that_are_negative_or_not_finite(estimator, weight):
    refused(clone(estimator).set_params(class_weight={0: weight, 1: 1.0}), X, LABELS, "class_weight|weight.*finite")


@each_classifier
def test_a_class_of_weight_zero(estimator):
    """Its rows are no data, so there is one class only: as with the same sample_weight."""
    refused(estimator, X, LABELS, "one class only", (LABELS == 1).astype(float))
    refused(clone(estimator).set_params(class_weight={0: 0.0, 1: 1.0}), X, LABELS, "one class only|class_weight")


# -- classes -----------------------------------------------------------------------------------------------


@each_classifier
def test_one_class_only(estimator):
    refused(estimator, X, np.zeros(N, dtype=int), r"one class only \(0[ )].*at least 2 classes")
    refused(estimator, X, ["a"] * N, "one class only.*'a'.*at least 2 classes")


@each_classifier
@pytest.mark.parametrize(
    "y",
    [[1, "a"] * 10, [None, "a"] * 10, [None, 1] * 10, [("a",), "b"] * 10],
    ids=["int and str", "None and str", "None and int", "tuple and str"],
)
def test_labels_of_mixed_type(estimator, y):
    """A list of numbers and texts was taken for texts."""
    mixed = np.empty(N, dtype=object)
    mixed[:] = y
    expected = "y has 10 missing" if None in y else "y has labels of type .*text.*: expected .* one type; convert them"
    refused(estimator, X, mixed, expected)
    if ("a",) not in y:  # of which NumPy makes no array
        refused(estimator, X, y, expected)


@each_classifier
@pytest.mark.parametrize(
    "missing",
    [None, np.nan, pd.NA, pd.NaT, float("nan")],
    ids=["None", "NaN of NumPy", "NA", "NaT", "NaN"],
)
@pytest.mark.parametrize("names", [["a", "b"], [0, 1]], ids=str)
def test_missing_labels(estimator, names, missing):
    """Some were compared with texts (a TypeError), some called continuous; NaT among dates was a class."""
    y = np.array(names, dtype=object)[LABELS]
    y[7] = missing
    for given in (y, y.tolist(), pd.Series(y)):
        refused(estimator, X, given, r"y has 1 missing label\(s\), the first of them in row 7.*leave these rows out")


@each_classifier
@pytest.mark.parametrize("kind", ["Int64", "string", "boolean", "category"])
def test_missing_labels_of_pandas(estimator, kind):
    y = pd.Series(LABELS == 1 if kind == "boolean" else LABELS.astype(str) if kind == "string" else LABELS, dtype=kind)
    fitted(estimator, X, y)
    y[3] = pd.NA
    refused(estimator, X, y, r"y has 1 missing label\(s\), the first of them in row 3")


@each_classifier
def test_missing_dates_are_no_class(estimator):
    y = np.array(["2020-01-01", "NaT"], dtype="datetime64[D]")[LABELS]
    refused(estimator, X, y, r"y has \d+ missing label\(s\)")


@each_classifier
@pytest.mark.parametrize("names", [[1, 0], [True, False], [1.0, 2]], ids=str)
def test_objects_that_are_numbers_are_numbers(estimator, names):
    y = np.array(names, dtype=object)[LABELS]
    model = fitted(estimator, X, y)
    assert model.classes_.dtype != object
    assert list(model.classes_) == sorted(names)


@each_classifier
def test_continuous_labels(estimator):
    refused(estimator, X, Y, "Unknown label type: continuous")


@each_classifier
@pytest.mark.parametrize(
    "names", [[False, True], [-1, 1], [0.0, 2.0], ["b", "a"], ["", "long name"], [2**40, -5]], ids=str
)
def test_labels_of_any_one_type(estimator, names):
    y = np.array(names)[LABELS]
    model = fitted(estimator, X, y)
    assert list(model.classes_) == sorted(names)
    assert model.predict(X).dtype == y.dtype
    assert model.score(X, y) > 0.7


@each_classifier
def test_classes_that_were_not_seen(estimator):
    """Nothing can predict a class that training lacked; scoring against it counts an error."""
    model = fitted(estimator, X, LABELS)
    unseen = LABELS.copy()
    unseen[:5] = 7
    assert 7 not in model.predict(X)
    assert model.score(X, unseen) <= 0.75
    assert model.score(X, np.full(N, 7)) == 0.0


@each_classifier
@pytest.mark.parametrize("gap", [0.0, 100.0])
@pytest.mark.parametrize("fit_intercept", [True, False])
def test_perfectly_separable(estimator, gap, fit_intercept):
    x = np.linspace(-1.0, 1.0, 40)[:, None]
    x = x + gap * np.sign(x)
    y = (x[:, 0] > 0).astype(int)
    model = fitted(clone(estimator).set_params(fit_intercept=fit_intercept), x, y)
    assert model.score(x, y) == 1.0
    assert np.all(np.abs(model.coef_) < 1e6)


@each_classifier
def test_three_separable_classes(estimator):
    x = np.concatenate([np.linspace(-1, 1, 8) + centre for centre in (-10.0, 0.0, 10.0)])
    points = np.column_stack([x, np.abs(x)])
    y = np.repeat([0, 1, 2], 8)
    assert fitted(estimator, points, y).score(points, y) == 1.0


@pytest.mark.parametrize("multi_class", ["softmax", "ovr"])
@pytest.mark.parametrize("gamma", [1e-12, 1e-3, 1e3, 1e12, 1e300])
@pytest.mark.parametrize("classes", [2, 3])
def test_tiny_and_huge_widths(multi_class, gamma, classes):
    y = np.digitize(Y, [0.0] if classes == 2 else [-1.0, 1.0])
    model = fitted(RVC(gamma=gamma, multi_class=multi_class), X, y)
    assert_sane(model, 100.0 * X)


@each_regressor
def test_tiny_widths_in_regression(estimator):
    if isinstance(estimator, RVR):
        for gamma in (1e-300, 1e-12, 1e12, 1e300):
            fitted(RVR(gamma=gamma), X, Y)
            fitted(RVR(gamma=gamma, noise_variance=0.1), X, Y)


@each_classifier
@pytest.mark.parametrize("n", [3, 6])
def test_every_point_its_own_class(estimator, n):
    model = fitted(estimator, X[:n], np.arange(n))
    assert list(model.classes_) == list(range(n))
    assert model.predict_proba(X).shape == (N, n)


@each_classifier
def test_many_classes_of_one_point(estimator):
    fitted(estimator, X[:12], np.arange(12))


def imbalanced(where, n=10_001):
    """One point of the second class among n."""
    rng = np.random.default_rng(2)
    points = rng.standard_normal((n, 2))
    y = np.zeros(n, dtype=int)
    points[77], y[77] = where, 1
    return points, y


each_place = pytest.mark.parametrize("where", [(0.0, 0.0), (1.0, -1.0), (6.0, 6.0)], ids=["inside", "aside", "far"])
each_basis = pytest.mark.parametrize("basis", [None, RBF(1.0, centres=50)], ids=["columns", "kernel"])


@each_place
@each_basis
def test_extreme_imbalance(where, basis):
    points, y = imbalanced(where)
    model = SparseBayesClassifier(basis=basis).fit(points, y)
    assert_sane(model, points[::10])
    assert model.predict_proba(points, moderated=False)[:, 1].mean() < 1e-3


@each_place
@each_basis
def test_extreme_imbalance_is_seen_in_the_probabilities(where, basis):
    """A class of one in 10,000 is not expected in one row of ten."""
    points, y = imbalanced(where)
    model = SparseBayesClassifier(basis=basis).fit(points, y)
    assert model.predict_proba(points)[:, 1].mean() < 1e-2


@each_place
@each_basis
def test_extreme_imbalance_that_is_balanced_by_weights(where, basis):
    points, y = imbalanced(where, 3001)
    model = SparseBayesClassifier(basis=basis, class_weight="balanced").fit(points, y)
    assert_sane(model, points[::10])


@pytest.mark.parametrize("seed", range(6))
def test_a_heavy_point_among_many(seed):
    """Nearly separable data with weights far apart: the mode is hard to find, and must be found all the same."""
    rng = np.random.default_rng(seed)
    points = rng.standard_normal((1001, 2))
    y = np.zeros(1001, dtype=int)
    points[7], y[7] = (1.0, -1.0), 1
    model = SparseBayesClassifier(RBF(1.0, centres=20), class_weight="balanced").fit(points, y)
    assert_sane(model, points)


def test_extreme_imbalance_of_three_classes():
    points, y = imbalanced((6.0, 6.0))
    y[78] = 2
    model = SparseBayesClassifier(basis=RBF(1.0, centres=20)).fit(points[:3001], y[:3001])
    assert_sane(model, points[::10])
