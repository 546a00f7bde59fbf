"""Problems on which units, order and copies must not matter, and what is compared."""

import numpy as np
import pytest
from exploring import examples
from hypothesis import strategies as st

from sparsebayes import RVC, RVR, SparseBayesClassifier, SparseBayesRegressor
from sparsebayes.basis import RBF, Bias, Linear

few, fewer = examples(20), examples(10)
scales = st.sampled_from([1e6, 1e-6])

LINEAR = SparseBayesRegressor()
KERNEL = RVR()
SUM = SparseBayesRegressor(basis=Bias() + Linear() + RBF(1.0), fit_intercept=False)
FIXED = SparseBayesRegressor(noise_variance=0.04)
FIXED_KERNEL = RVR(noise_variance=0.04)
LINEAR_CLASSES = SparseBayesClassifier()
KERNEL_CLASSES = RVC()

regressors = pytest.mark.parametrize("estimator", [LINEAR, KERNEL, SUM], ids=str)
all_regressors = pytest.mark.parametrize("estimator", [LINEAR, KERNEL, SUM, FIXED, FIXED_KERNEL], ids=str)
classifiers = pytest.mark.parametrize("estimator", [LINEAR_CLASSES, KERNEL_CLASSES], ids=str)


def of_rows(estimator):
    """Whether ``relevance_`` names training rows, not columns."""
    return isinstance(estimator, RVR | RVC)


def regression(estimator, seed):
    """A linear problem with a few relevant columns, or a smooth function, with noise."""
    rng = np.random.default_rng(seed)
    if estimator in (LINEAR, FIXED):
        n, d = int(rng.integers(20, 41)), int(rng.integers(3, 16))
        X = rng.standard_normal((n, d)) @ (np.eye(d) + 0.3 * rng.standard_normal((d, d)))
        w = np.where(rng.random(d) < 0.4, rng.standard_normal(d), 0.0)
        return X, X @ w + 0.2 * rng.standard_normal(n) + 0.5
    n, d = int(rng.integers(20, 41)), int(rng.integers(1, 3))
    X = rng.uniform(-3.0, 3.0, (n, d))
    return X, np.sin(1.5 * X[:, 0]) + 0.4 * X[:, -1] + 0.2 * rng.standard_normal(n) + 0.5


def classification(estimator, seed, classes=2):
    """Classes that overlap."""
    rng = np.random.default_rng(seed)
    n, d = int(rng.integers(25, 41)), int(rng.integers(2, 7)) if estimator is LINEAR_CLASSES else 2
    X = rng.standard_normal((n, d))
    output = 1.5 * X[:, 0] - X[:, 1] + rng.standard_normal(n)
    y = np.searchsorted(np.quantile(output, np.arange(1, classes) / classes), output)
    return X, y


def same_predictions(model, other, X, other_X, y, *, scale=1.0, offset=0.0):
    """Equal means and error bars, up to the units, relative to the spread of the targets."""
    mean, std = model.predict(X, return_std=True)
    other_mean, other_std = other.predict(other_X, return_std=True)
    sd = np.std(y)
    np.testing.assert_allclose((other_mean - offset) / scale / sd, mean / sd, rtol=0, atol=1e-6)
    np.testing.assert_allclose(other_std / scale / sd, std / sd, rtol=0, atol=1e-6)


def same_classes(model, other, X, other_X):
    np.testing.assert_allclose(other.predict_proba(other_X), model.predict_proba(X), rtol=0, atol=1e-6)
