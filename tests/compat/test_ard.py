"""ARDRegression under scikit-learn's names: the same model, the same meanings."""

import numpy as np
import pytest
from sklearn import linear_model
from sklearn.base import clone
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

import sparsebayes
from sparsebayes import ARDRegression, SparseBayesRegressor


def problem(n=120, d=8, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d)) + 3.0
    return X, 4.0 + 2.0 * X[:, 1] - 1.5 * X[:, 4] + 0.3 * rng.standard_normal(n)


@parametrize_with_checks([ARDRegression()])
def test_scikit_learn_checks(estimator, check):
    check(estimator)


def test_agrees_with_scikit_learn_where_the_answer_is_plain():
    X, y = problem()
    ours, theirs = ARDRegression().fit(X, y), linear_model.ARDRegression(tol=1e-8, max_iter=3000).fit(X, y)
    kept = [1, 4]
    assert set(kept) <= set(ours.relevance_)
    np.testing.assert_allclose(ours.coef_[kept], theirs.coef_[kept], rtol=0.02)
    assert ours.alpha_ == pytest.approx(theirs.alpha_, rel=0.05)
    np.testing.assert_allclose(ours.lambda_[kept], theirs.lambda_[kept], rtol=0.05)
    assert ours.intercept_ == pytest.approx(theirs.intercept_, abs=0.2)
    np.testing.assert_allclose(ours.predict(X), theirs.predict(X), atol=0.1)


def test_attributes_mean_what_they_mean_there():
    X, y = problem()
    model = ARDRegression(compute_score=True).fit(X, y)
    out = np.setdiff1d(np.arange(8), model.relevance_)
    assert model.sigma_.shape == (8, 8)
    assert len(out) > 0
    assert np.all(model.sigma_[out] == 0.0)
    assert np.all(model.sigma_[:, out] == 0.0)
    assert np.all(np.isinf(model.lambda_[out]))
    assert np.all(model.coef_[out] == 0.0)
    kept = model.relevance_
    # The posterior of the kept weights from its definition: Σ = (Λ + α XᵀX)⁻¹, w = α Σ Xᵀy, on centred data.
    centred = (X - X.mean(axis=0))[:, kept]
    sigma = np.linalg.inv(np.diag(model.lambda_[kept]) + model.alpha_ * centred.T @ centred)
    np.testing.assert_allclose(model.sigma_[np.ix_(kept, kept)], sigma, rtol=1e-6, atol=1e-12)
    np.testing.assert_allclose(model.coef_[kept], model.alpha_ * sigma @ centred.T @ (y - y.mean()), rtol=1e-6)
    np.testing.assert_allclose(model.X_offset_, X.mean(axis=0))
    mean, std = model.predict(X, return_std=True)
    np.testing.assert_allclose(mean, X @ model.coef_ + model.intercept_)
    spread = np.einsum("ni,ij,nj->n", X - model.X_offset_, model.sigma_, X - model.X_offset_)
    np.testing.assert_allclose(std, np.sqrt(1.0 / model.alpha_ + spread))


def test_scores_rise_to_the_evidence():
    X, y = problem()
    model = ARDRegression(compute_score=True).fit(X, y)
    assert np.all(np.diff(model.scores_) >= -1e-9 * max(1.0, abs(model.scores_[-1])))
    assert model.scores_[-1] == pytest.approx(model.certificate_.objective, abs=1e-6)
    assert ARDRegression().fit(X, y).scores_.size == 0


def test_is_the_regressor_of_centred_data():
    X, y = problem()
    model = ARDRegression().fit(X, y)
    same = SparseBayesRegressor(fit_intercept=False).fit(X - X.mean(axis=0), y - y.mean())
    np.testing.assert_allclose(model.coef_, same.coef_)
    assert model.log_marginal_likelihood_ == pytest.approx(same.log_marginal_likelihood_)


def test_without_an_intercept():
    X, y = problem()
    model = ARDRegression(fit_intercept=False).fit(X, y - 4.0)
    assert model.intercept_ == 0.0
    assert not model.X_offset_.any()
    np.testing.assert_allclose(model.predict(X), X @ model.coef_)


@pytest.mark.parametrize("name", ["alpha_1", "alpha_2", "lambda_1", "lambda_2"])
@pytest.mark.parametrize("value", [1.0, -1.0, "a", None, np.nan])
def test_a_prior_that_matters_is_refused(name, value):
    with pytest.raises(ValueError, match=f"{name}=.*from 0 to 1e-06"):
        ARDRegression(**{name: value}).fit(*problem())


def test_code_for_scikit_learn_runs_unchanged():
    X, y = problem()
    settings = linear_model.ARDRegression(compute_score=True, threshold_lambda=1e5, copy_X=False).get_params()
    model = make_pipeline(StandardScaler(), ARDRegression(**settings)).fit(X, y)
    assert model.score(X, y) > 0.9
    assert clone(model[-1]).get_params()["threshold_lambda"] == 1e5


def test_a_model_file(tmp_path):
    X, y = problem()
    model = ARDRegression(compute_score=True).fit(X, y)
    sparsebayes.save(model, tmp_path / "ard.model")
    again = sparsebayes.load(tmp_path / "ard.model")
    for one, other in zip(again.predict(X, return_std=True), model.predict(X, return_std=True), strict=True):
        np.testing.assert_array_equal(one, other)
    np.testing.assert_array_equal(again.scores_, model.scores_)
