"""Searches that are stopped: the last complete state is usable and says so."""

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning
from solver_cases import several

from sparsebayes import RVC, RVR, Sequential, SparseBayesClassifier, SparseBayesRegressor
from sparsebayes.inference.status import Status

# -- stopping ----------------------------------------------------------------------------------------------


def stop_after(moves):
    """A callback that stops the fit after so many records."""
    seen = []

    def callback(record, active):
        seen.append(record)
        return len(seen) >= moves

    return callback


@pytest.mark.parametrize("stop", [1, 2, 5, 20, 60])
@pytest.mark.parametrize("make", [RVR, SparseBayesRegressor, RVC, SparseBayesClassifier])
def test_a_callback_stops_the_fit(make, stop):
    X, Y = several(3, n=40)
    y = Y[:, 0] if make in (RVR, SparseBayesRegressor) else (Y[:, 0] > 0).astype(int)
    model = make(solver=Sequential(callback=stop_after(stop)))
    total = len(make().fit(X, y).history_)
    if total < stop:
        pytest.skip(f"the fit takes {total} moves")
    with pytest.warns(ConvergenceWarning, match="Interrupted"):
        model.fit(X, y)
    assert model.status_ is Status.INTERRUPTED
    assert len(model.history_) == stop
    usable(model, X)


def usable(model, X):
    assert np.all(np.isfinite(model.coef_))
    assert np.isfinite(model.log_marginal_likelihood_)
    assert np.isfinite(model.certificate_.objective)
    if hasattr(model, "classes_"):
        assert np.all(np.isfinite(model.predict_proba(X)))
    else:
        mean, std = model.predict(X, return_std=True)
        assert np.all(np.isfinite(mean))
        assert np.all(std > 0)


def test_a_callback_that_says_nothing_changes_nothing():
    X, Y = several(4)
    plain = SparseBayesRegressor().fit(X, Y[:, 0])
    for answer in (None, False):
        solver = Sequential(callback=lambda record, active, answer=answer: answer)
        np.testing.assert_array_equal(SparseBayesRegressor(solver=solver).fit(X, Y[:, 0]).coef_, plain.coef_)


@pytest.mark.parametrize("max_iter", [1, 2, 3, 5, 8])
@pytest.mark.parametrize("make", [RVR, SparseBayesRegressor, RVC, SparseBayesClassifier])
def test_max_iter_warns(make, max_iter):
    X, Y = several(5, n=40)
    y = Y[:, 0] if make in (RVR, SparseBayesRegressor) else (Y[:, 0] > 0).astype(int)
    # Moves are counted in each start, and one that runs out of them after another has ended is none: there is one here.
    classes = {"evidence": "laplace", "solver": Sequential(effort="fast")}
    options = classes if make in (RVC, SparseBayesClassifier) else {"solver": Sequential(batch=1)}
    needed = make(**options).fit(X, y).n_iter_
    if needed <= max_iter:
        pytest.skip(f"the fit takes {needed} moves")
    model = make(max_iter=max_iter, **options)
    with pytest.warns(ConvergenceWarning, match="raise max_iter"):
        model.fit(X, y)
    assert model.status_ is Status.MAX_ITER
    assert model.n_iter_ >= max_iter
    usable(model, X)


def test_max_iter_of_the_solver_wins():
    X, Y = several(5)
    with pytest.warns(ConvergenceWarning, match="raise max_iter"):
        SparseBayesRegressor(max_iter=1000, solver=Sequential(max_iter=2)).fit(X, Y[:, 0])
    assert SparseBayesRegressor(max_iter=2, solver=Sequential(max_iter=1000)).fit(X, Y[:, 0]).status_.converged


def test_the_more_moves_the_higher():
    """Cut short at every length, the evidence is that of the history."""
    X, Y = several(6)
    y = Y[:, 0]
    solver = Sequential(batch=1)
    whole = SparseBayesRegressor(solver=solver).fit(X, y)
    for k, record in enumerate(whole.history_[:-1], start=1):
        cut = Sequential(batch=1, callback=stop_after(k))
        with pytest.warns(ConvergenceWarning):
            model = SparseBayesRegressor(solver=cut).fit(X, y)
        np.testing.assert_allclose(model.log_marginal_likelihood_, record.evidence, rtol=1e-9, atol=1e-9)
