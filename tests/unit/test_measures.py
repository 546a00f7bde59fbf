"""Figures of a test by other means: SciPy's and scikit-learn's, and drawing."""

import numpy as np
import pytest
from scipy.stats import binomtest, bootstrap, norm
from sklearn.dummy import DummyClassifier
from sklearn.metrics import r2_score

from sparsebayes import RVR, SparseBayesClassifier, SparseBayesRegressor
from sparsebayes.report.measures import classification_test, contributions, regression_test, wilson


def test_a_regression_is_tested_as_elsewhere():
    rng = np.random.default_rng(0)
    y, std = 3.0 + 2.0 * rng.normal(size=300), rng.uniform(0.2, 0.6, 300)
    mean = y + std * rng.standard_normal(300)
    found = regression_test(y, mean, std)
    assert found.r2 == pytest.approx(r2_score(y, mean), rel=1e-12)
    assert found.log_density == pytest.approx(norm(mean, std).logpdf(y).mean(), rel=1e-12)
    low, high = norm(mean, std).interval(0.95)
    assert found.coverage == np.mean((low <= y) & (y <= high))
    drawn = bootstrap(
        ((y - mean) ** 2,), lambda squares, axis: np.sqrt(np.mean(squares, axis=axis)), method="percentile", rng=rng
    ).confidence_interval
    assert (found.low, found.high) == pytest.approx((drawn.low, drawn.high), rel=0.02)


@pytest.mark.parametrize(("hits", "n"), [(0, 5), (1, 8), (17, 20), (30, 30), (480, 1000)])
def test_intervals_of_shares_are_wilsons(hits, n):
    expected = binomtest(hits, n).proportion_ci(0.95, method="wilson")
    np.testing.assert_allclose(wilson(hits, n), (expected.low, expected.high), atol=1e-12)


def test_the_baseline_of_classes_always_names_the_most_frequent():
    labels = np.array(["a"] * 3 + ["b"] * 5 + ["c"] * 2)
    p = np.random.default_rng(0).dirichlet(np.ones(3), 10)
    plain = DummyClassifier(strategy="most_frequent").fit(p, labels).score(p, labels)
    assert classification_test(labels, p, ["a", "b", "c"]).baseline == plain


@pytest.mark.parametrize("kind", ["columns", "rows", "classes"])
def test_the_size_of_a_term_is_by_how_much_predictions_vary_with_its_column(kind):
    rng = np.random.default_rng(1)
    X = rng.normal(size=(80, 3)) * [1.0, 10.0, 0.1]
    y = X @ [1.0, 0.5, -8.0] + 0.1 * rng.normal(size=80)
    if kind == "columns":
        model = SparseBayesRegressor().fit(X, y)
    elif kind == "rows":
        model = RVR(gamma=0.02).fit(X, y)
    else:
        model = SparseBayesClassifier().fit(X, y + 2.0 * rng.normal(size=80) > 0.0)
    found = contributions(model, X)
    sizes = [size for _, size in found]
    assert sizes == sorted(sizes, reverse=True)
    for weight, size in found:
        # The term by itself: what the output loses at every row where this weight is taken away.
        posterior = model._posteriors[0]
        values, mean = model._values(X), np.where(posterior.functions == weight.place, posterior.mean, 0.0)
        assert size == pytest.approx(np.std(values[:, posterior.functions] @ mean), rel=1e-9)
    if kind != "rows":
        np.testing.assert_allclose(
            sorted(sizes), sorted(np.std(X[:, model.relevance_] * model.coef_.ravel()[model.relevance_], axis=0))
        )
