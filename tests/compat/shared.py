"""Estimators and data that the tests of compatibility share."""

import numpy as np
import pytest
from sklearn.base import is_classifier

from sparsebayes import RVC, RVR, SparseBayesClassifier, SparseBayesRegressor
from sparsebayes.basis import RBF, Bias, Linear

REGRESSORS = [RVR(), SparseBayesRegressor(), SparseBayesRegressor(basis=Bias() + RBF(1.0), fit_intercept=False)]
CLASSIFIERS = [RVC(), SparseBayesClassifier(), SparseBayesClassifier(basis=Linear() + RBF(1.0), fit_intercept=False)]
ESTIMATORS = REGRESSORS + CLASSIFIERS


def regression(n=30, d=3, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-1.0, 1.0, (n, d))
    return X, 2.0 * X[:, 0] - X[:, 1] + 0.1 * rng.standard_normal(n)


def classification(n=30, k=2, seed=0):
    rng = np.random.default_rng(seed)
    angle = 2.0 * np.pi * np.arange(k) / k
    labels = np.arange(n) % k
    X = 1.5 * np.column_stack([np.cos(angle), np.sin(angle)])[labels] + 0.6 * rng.standard_normal((n, 2))
    return X, np.array(["ant", "bee", "cow", "dog"])[labels]


def data_for(estimator):
    """Two classes, because many take longer and most tools do not care."""
    return classification() if is_classifier(estimator) else regression()


def outputs(model, X):
    """Everything that a model says about X, as one array."""
    if is_classifier(model):
        return np.hstack([model.predict_proba(X), np.atleast_2d(model.decision_function(X).T).T])
    return np.column_stack(model.predict(X, return_std=True))


def ids(values):
    return [str(value).replace("\n", "") for value in values]


each = pytest.mark.parametrize("estimator", ESTIMATORS, ids=ids(ESTIMATORS))
each_regressor = pytest.mark.parametrize("estimator", REGRESSORS, ids=ids(REGRESSORS))
# One of each kind, where the others would say the same.
one_of_each = pytest.mark.parametrize(
    "estimator", [RVR(), SparseBayesRegressor(), RVC(), SparseBayesClassifier()], ids=lambda e: type(e).__name__
)
