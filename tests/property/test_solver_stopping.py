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


def test_a_later_start_that_runs_out_above_the_others_is_the_result_and_says_so():
    """It was dropped, and the fit said to have converged."""
    rng = np.random.default_rng(3)
    X = rng.normal(size=(80, 2))
    y = (np.sin(2.0 * X[:, 0]) + X[:, 1] + 0.5 * rng.normal(size=80) > 0.0).astype(int)
    whole = RVC(evidence="laplace").fit(X, y)
    moves = {k: sum(record.n_moves for record in whole.history_ if record.start == k) for k in (0, 1)}
    assert whole.certificate_.start == 1
    assert moves[0] < moves[1]
    with pytest.warns(ConvergenceWarning, match="raise max_iter"):
        cut = RVC(evidence="laplace", max_iter=moves[1] - 3).fit(X, y)
    assert cut.status_ is Status.MAX_ITER
    assert cut.certificate_.start == 1
    first = [record.objective for record in whole.history_ if record.start == 0][-1]
    assert first + 0.01 < cut.certificate_.objective < whole.certificate_.objective
    # One that runs out below the best changes nothing.
    below = RVC(evidence="laplace", max_iter=moves[0] + 1).fit(X, y)
    assert below.status_ is Status.CONVERGED
    assert below.certificate_.start == 0


@pytest.mark.parametrize("max_iter", [20, 28])
def test_a_kick_that_runs_out_above_the_others_is_the_result_and_says_so(max_iter):
    """Fifty nats below, the first start was the result and said to have converged."""
    rng = np.random.default_rng(0)
    X = rng.uniform(-3.0, 3.0, (100, 2))
    y = np.sin(2.0 * X[:, 0]) * X[:, 1] + 0.2 * rng.standard_normal(100)
    with pytest.warns(ConvergenceWarning, match="raise max_iter"):
        model = RVR(max_iter=max_iter).fit(X, y)
    first = [record.objective for record in model.history_ if record.start == 0][-1]
    assert model.status_ is Status.MAX_ITER
    assert model.certificate_.start == 1
    assert model.certificate_.objective > first + 5.0
    assert model.certificate_.noise_gain < 0.1


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
