"""scikit-learn's tools around the estimators."""

import numpy as np
import pandas as pd
import pytest
from shared import classification, data_for, each_regressor, one_of_each, outputs, regression
from sklearn import config_context
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.inspection import permutation_importance
from sklearn.model_selection import cross_val_predict, cross_val_score
from sklearn.multioutput import MultiOutputRegressor
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import StandardScaler

from sparsebayes import RVC, SparseBayesClassifier

# -- scikit-learn's tools ----------------------------------------------------------------------------------


@one_of_each
def test_pipeline_with_a_scaler(estimator):
    X, y = data_for(estimator)
    X = X * [1e3, 1e-3, 1.0][: X.shape[1]]
    model = make_pipeline(StandardScaler(), clone(estimator)).fit(X, y)
    direct = clone(estimator).fit(StandardScaler().fit_transform(X), y)
    np.testing.assert_array_equal(model.predict(X), direct.predict(StandardScaler().fit_transform(X)))
    assert model.score(X, y) > 0.8


@one_of_each
def test_cross_val_score(estimator):
    X, y = data_for(estimator)
    scores = cross_val_score(estimator, X, y, cv=3)
    assert np.all(scores > 0.6)


@pytest.mark.parametrize("estimator", [RVC(), RVC(multi_class="ovr"), SparseBayesClassifier()], ids=str)
def test_cross_val_predict_of_probabilities(estimator):
    X, y = classification(30, k=3)
    proba = cross_val_predict(estimator, X, y, cv=3, method="predict_proba")
    assert proba.shape == (30, 3)
    np.testing.assert_allclose(proba.sum(axis=1), 1.0, rtol=1e-12)
    assert np.mean(np.unique(y)[np.argmax(proba, axis=1)] == y) > 0.8


def test_cross_val_predict_of_decisions_for_two_classes():
    X, y = classification(40)
    decision = cross_val_predict(RVC(), X, y, cv=3, method="decision_function")
    assert decision.shape == (40,)
    assert np.mean((decision > 0) == (y == "bee")) > 0.8


def test_calibrated_classifier():
    X, y = classification(30)
    for method in ("sigmoid", "isotonic"):
        model = CalibratedClassifierCV(RVC(), method=method, cv=3).fit(X, y)
        np.testing.assert_allclose(model.predict_proba(X).sum(axis=1), 1.0, rtol=1e-12)
        assert model.score(X, y) > 0.8


@one_of_each
def test_permutation_importance(estimator):
    X, y = data_for(estimator)
    X = np.column_stack([X[:, :2], np.random.default_rng(1).uniform(-1, 1, len(X))])
    model = clone(estimator).fit(X, y)
    importance = permutation_importance(model, X, y, n_repeats=3, random_state=0).importances_mean
    assert importance[0] > importance[2]


@each_regressor
def test_one_model_for_each_target(estimator):
    X, y = regression(d=3)
    Y = np.column_stack([y, X[:, 2] + 0.1 * y])
    wrapped = MultiOutputRegressor(clone(estimator)).fit(X, Y)
    np.testing.assert_allclose(clone(estimator).fit(X, Y).predict(X), wrapped.predict(X), atol=1e-10)


@one_of_each
def test_set_output_is_of_no_concern(estimator):
    """A predictor has no transform: the setting neither fails in a pipeline nor changes what predict returns."""
    X, y = data_for(estimator)
    frame = pd.DataFrame(X, columns=[f"x{j}" for j in range(X.shape[1])])
    model = make_pipeline(StandardScaler(), clone(estimator)).set_output(transform="pandas").fit(frame, y)
    plain = make_pipeline(StandardScaler(), clone(estimator)).fit(frame, y)
    assert isinstance(model.predict(frame), np.ndarray)
    np.testing.assert_array_equal(model.predict(frame), plain.predict(frame))
    assert list(model[-1].feature_names_in_) == list(frame.columns)
    with config_context(transform_output="pandas"):
        assert isinstance(clone(estimator).fit(frame, y).predict(frame), np.ndarray)


@one_of_each
def test_sample_weight_is_routed(estimator):
    X, y = data_for(estimator)
    weight = np.where(np.arange(len(X)) % 2 == 0, 3.0, 1.0)
    scaled = StandardScaler().fit(X).transform(X)
    expected = outputs(clone(estimator).fit(scaled, y, sample_weight=weight), scaled)
    with config_context(enable_metadata_routing=True):
        model = clone(estimator).set_fit_request(sample_weight=True)
        chain = Pipeline([("scale", StandardScaler().set_fit_request(sample_weight=False)), ("model", model)])
        chain.fit(X, y, sample_weight=weight)
        np.testing.assert_array_equal(outputs(chain[-1], scaled), expected)
        scores = cross_val_score(
            clone(estimator).set_fit_request(sample_weight=True).set_score_request(sample_weight=True),
            X,
            y,
            cv=3,
            params={"sample_weight": weight},
        )
        assert np.all(np.isfinite(scores))
    assert np.any(outputs(clone(estimator).fit(scaled, y), scaled) != expected)


@one_of_each
def test_sample_weight_reaches_the_model_by_name_without_routing(estimator):
    X, y = data_for(estimator)
    weight = np.linspace(1.0, 3.0, len(X))
    chain = Pipeline([("scale", StandardScaler()), ("model", clone(estimator))]).fit(X, y, model__sample_weight=weight)
    scaled = chain[0].transform(X)
    expected = outputs(clone(estimator).fit(scaled, y, weight), scaled)
    np.testing.assert_array_equal(outputs(chain[-1], scaled), expected)
