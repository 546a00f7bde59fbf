"""The joint solvers as scikit-learn sees them."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV
from sklearn.utils.estimator_checks import parametrize_with_checks

from sparsebayes import EM, MacKay, SparseBayesClassifier, SparseBayesRegressor, Variational


@parametrize_with_checks(
    [
        SparseBayesRegressor(solver="mackay"),
        SparseBayesClassifier(solver=EM()),
        SparseBayesClassifier(solver="variational", multi_class="ovr"),
    ]
)
def test_scikit_learn_checks(estimator, check):
    check(estimator)


@pytest.mark.parametrize("make", [MacKay, EM, Variational])
def test_settings_can_be_searched(make):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((40, 4))
    y = X[:, 0] + 0.1 * rng.standard_normal(40)
    search = GridSearchCV(SparseBayesRegressor(solver=make()), {"solver__b": [1e-6, 1e-2]}, cv=2).fit(X, y)
    assert search.best_score_ > 0.9
    assert clone(search.best_estimator_).solver.b == search.best_params_["solver__b"]
