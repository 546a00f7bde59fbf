"""The sequential solver on random small problems: it ascends to a proved maximum, and its numbers are right."""

import numpy as np
import pytest
from exploring import examples
from hypothesis import given
from hypothesis import strategies as st
from solver_cases import (
    Ascent,
    Audit,
    brute_evidence,
    check_certificate,
    few,
    full,
    many,
    problems,
    seeds,
    solvers,
    tolerance,
)

from sparsebayes import RVR, Sequential, SparseBayesRegressor
from sparsebayes.datasets import make_sinc2d
from sparsebayes.inference.solvers.sequential import SELECTIONS
from sparsebayes.inference.status import Status

# -- one target --------------------------------------------------------------------------------------------


@given(problem=problems(), solver=solvers, fit_intercept=st.booleans())
@many
def test_the_objective_never_falls_and_is_the_evidence(problem, solver, fit_intercept):
    X, y, noise = problem
    audit = Audit(full(X, fit_intercept))
    model = SparseBayesRegressor(
        fit_intercept=fit_intercept,
        noise_variance=noise,
        solver=Sequential(callback=audit, **solver),
        random_state=0,
    ).fit(X, y)
    assert len(model.history_) == audit.count
    assert model.status_.converged
    assert model.certificate_.converged, (model.status_, model.certificate_)
    check_certificate(model.certificate_)
    check_history(model, y)
    check_model(model, X, y, fit_intercept)


def check_history(model, y):
    """``history_`` in the user's units agrees with the certificate, and the best start won."""
    ends = {}
    for record in model.history_:
        assert record.objective >= ends.get(record.start, -np.inf) - tolerance(record.objective, len(y))
        ends[record.start] = record.objective
    if not ends:
        return
    assert model.certificate_.objective == pytest.approx(model.log_marginal_likelihood_, rel=1e-12, abs=1e-12)
    slack = 1e-6 * max(1.0, *map(abs, ends.values()))
    won = model.certificate_.start
    # The best start won, as far as they went; what comes after its last record may raise the objective by less than
    # tol, never lower it.  Where the guard holds the noise, the starts before it maximised over the noise as well.
    first = 0 if model.status_ is not Status.NOISE_HELD else won
    # A start that begins where it ends, as the guard's may, leaves no record.
    reached = [end for start, end in ends.items() if start in (first, won)]
    assert model.certificate_.objective >= max(reached, default=-np.inf) - slack
    if won in ends:
        assert -slack <= model.certificate_.objective - ends[won] <= 3 * model.tol + slack
    if len(model.alpha_):
        assert model.n_iter_ >= 1


def check_model(model, X, y, fit_intercept):
    """Every fitted attribute against dense linear algebra, in the user's units."""
    offset = y.mean() if fit_intercept else 0.0
    biased = len(model.alpha_) > len(model.relevance_)
    Phi = np.column_stack([(X - model.X_offset_)[:, model.relevance_], np.ones((len(y), int(biased)))])
    noise = model.noise_variance_
    value, error = brute_evidence(Phi, model.alpha_, noise, (y - offset)[:, None])
    assert abs(value - model.log_marginal_likelihood_) <= 1e-7 * max(1.0, abs(value), len(y)) + error
    if model.certificate_.condition_number > 1e9:
        return  # the weights themselves are not determined to more digits than these
    precision = Phi.T @ Phi / noise + np.diag(model.alpha_)
    scale = 1.0 / np.sqrt(np.diagonal(precision))
    covariance = np.linalg.inv(precision * np.outer(scale, scale)) * np.outer(scale, scale)
    np.testing.assert_allclose(
        model.sigma_ / np.outer(scale, scale), covariance / np.outer(scale, scale), rtol=1e-4, atol=1e-5
    )
    weights = covariance @ (Phi.T @ (y - offset)) / noise
    fitted, std = model.predict(X, return_std=True, uncertainty="posterior")
    sd = max(np.std(y), 1e-12)
    np.testing.assert_allclose(fitted / sd, (Phi @ weights + offset) / sd, atol=1e-5)
    spread = np.sqrt(noise + np.einsum("na,ab,nb->n", Phi, covariance, Phi))
    np.testing.assert_allclose(std / sd, spread / sd, rtol=1e-5, atol=1e-7)
    bias = weights[-1] if biased else 0.0
    level = offset + bias - weights[: len(model.relevance_)] @ model.X_offset_[model.relevance_]
    np.testing.assert_allclose((model.intercept_ - level) / sd, 0.0, atol=1e-4)


@given(problem=problems(), seed=seeds)
@few
def test_the_objective_with_weights_is_that_of_repeated_rows(problem, seed):
    X, y, noise = problem
    weight = np.random.default_rng(seed).integers(1, 4, len(y))
    model = SparseBayesRegressor(fit_intercept=False, noise_variance=noise).fit(X, y, weight)
    rows = np.repeat(np.arange(len(y)), weight)
    Phi = X[np.ix_(rows, model.relevance_)]
    value, error = brute_evidence(Phi, model.alpha_, model.noise_variance_, y[rows, None])
    assert abs(value - model.log_marginal_likelihood_) <= 1e-7 * max(1.0, abs(value), len(rows)) + error


@given(problem=problems())
@few
def test_copies_are_never_both_in_the_model(problem):
    X, y, noise = problem
    double = np.column_stack([X, X])

    def look(record, active):
        kept = [i % X.shape[1] for i in active.indices]
        assert len(set(kept)) == len(kept)

    solver = Sequential(callback=look)
    SparseBayesRegressor(fit_intercept=False, noise_variance=noise, solver=solver).fit(double, y)


@given(problem=problems(), solver=solvers)
@examples(100)
def test_no_single_move_gains_more_than_tol(problem, solver):
    """The certificate, by brute force: delete, add or change any one function of the final model."""
    X, y, noise = problem
    noise = noise or 0.1
    model = SparseBayesRegressor(
        fit_intercept=False, noise_variance=noise, solver=Sequential(**solver), random_state=0
    ).fit(X, y)
    kept, alpha, t = model.relevance_, model.alpha_, y[:, None]
    here, error = brute_evidence(X[:, kept], alpha, noise, t)
    allowed = model.tol + 2 * error + 1e-7 * max(1.0, abs(here))
    for j in range(len(kept)):
        left = np.delete(np.arange(len(kept)), j)
        assert brute_evidence(X[:, kept[left]], alpha[left], noise, t)[0] <= here + allowed
        for factor in (0.5, 0.9, 1.1, 2.0):
            changed = np.where(np.arange(len(kept)) == j, factor * alpha, alpha)
            assert brute_evidence(X[:, kept], changed, noise, t)[0] <= here + allowed
    for m in np.setdiff1d(np.arange(X.shape[1]), kept):
        for factor in (1e-2, 1.0, 1e2):
            grown = np.append(alpha, factor * np.sum(X[:, m] ** 2) / noise / len(y))
            assert brute_evidence(X[:, [*kept, m]], grown, noise, t)[0] <= here + allowed


FUNCTIONS = {"sine": lambda x: np.sin(6 * x), "exponential": np.exp, "cubic": lambda x: x**3 - x}


@pytest.mark.parametrize("width", [0.1, 0.3, 1.0])
@pytest.mark.parametrize("n", [20, 50, 100])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_smooth_functions_without_noise(name, n, width):
    """The noise runs to its floor and the functions become collinear, on the tamest of data."""
    x = np.linspace(0.0, 1.0, n)[:, None]
    y = FUNCTIONS[name](x[:, 0])
    model = RVR(gamma=width**-2, max_iter=2000, solver=Sequential(callback=Ascent(n))).fit(x, y)
    assert model.status_.converged
    check_certificate(model.certificate_)
    assert model.certificate_.converged
    if n == 100 and width < 1.0:
        assert np.max(np.abs(model.predict(x) - y)) < 0.1 * np.std(y)


@pytest.mark.parametrize("noise", [0.09, 1e-2, 1e-3, 1e-4])
@pytest.mark.parametrize("n", [20, 40])
@pytest.mark.parametrize("seed", range(4))
def test_noise_that_is_fixed_too_low(noise, n, seed):
    """Targets with a noise of 0.3, and the model told that it is less."""
    rng = np.random.default_rng(seed)
    x = np.sort(rng.uniform(0.0, 1.0, n))[:, None]
    y = np.sin(6.0 * x[:, 0]) + 0.3 * rng.standard_normal(n)
    solver = Sequential(callback=Ascent(n))
    model = RVR(gamma=0.3**-2, noise_variance=noise, max_iter=2000, solver=solver).fit(x, y)
    assert model.status_.converged
    check_certificate(model.certificate_)
    assert model.certificate_.converged


@pytest.mark.parametrize("seed", [541, 639])
def test_convergence_is_not_claimed_in_vain(seed):
    """Where the noise moves last, what it makes relevant is still to be added."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((7, 49))
    y = X @ np.where(rng.random(49) < 0.2, rng.standard_normal(49), 0) / 2 + 0.01 * rng.standard_normal(7)
    solver = Sequential(selection="ordered", sweeps=False)
    model = SparseBayesRegressor(fit_intercept=False, solver=solver).fit(X, y)
    assert model.certificate_.converged or not model.status_.converged


@pytest.mark.parametrize("selection", SELECTIONS)
@pytest.mark.parametrize("seed", [8, 29, 36, 59])
@pytest.mark.parametrize(("n", "m"), [(6, 29), (9, 30)])
def test_functions_in_the_span_of_the_model(selection, seed, n, m):
    """With as many functions as rows every other lies in their span, and may be relevant all the same."""
    rng = np.random.default_rng(seed)
    X, y = rng.standard_normal((n, m)), rng.standard_normal(n)
    solver = Sequential(selection=selection)
    model = SparseBayesRegressor(fit_intercept=False, noise_variance=0.01, solver=solver, random_state=0).fit(X, y)
    check_certificate(model.certificate_)
    kept, t = model.relevance_, y[:, None]
    here, _ = brute_evidence(X[:, kept], model.alpha_, 0.01, t)
    for i in np.setdiff1d(np.arange(m), kept):
        for alpha in 10.0 ** np.arange(-3, 4):
            grown, _ = brute_evidence(X[:, [*kept, i]], np.append(model.alpha_, alpha), 0.01, t)
            assert grown <= here + model.tol + 1e-6


@given(problem=problems(), solver=solvers)
@few
def test_a_seed_fixes_the_fit(problem, solver):
    X, y, noise = problem
    models = [
        SparseBayesRegressor(noise_variance=noise, solver=Sequential(**solver), random_state=5).fit(X, y)
        for _ in range(2)
    ]
    assert models[0].history_ == models[1].history_
    np.testing.assert_array_equal(models[0].coef_, models[1].coef_)


def test_the_seed_of_the_solver_wins():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((30, 40))
    y = X[:, :5].sum(axis=1) + rng.standard_normal(30)

    def moves(outer, inner):
        solver = Sequential(selection="random", random_state=inner)
        return SparseBayesRegressor(solver=solver, random_state=outer).fit(X, y).history_

    assert moves(1, 7) == moves(2, 7) != moves(1, 8)
    assert moves(3, None) == moves(3, None) != moves(4, None)


def test_single_additions_are_single_in_a_working_set():
    X, y = make_sinc2d(1500, random_state=0)
    model = RVR(gamma=0.16, solver=Sequential(batch=1)).fit(X, y)
    assert model.certificate_.converged
    assert max(len(record.added) for record in model.history_) == 1
