"""Laplace's evidence against brute force: values, gradients, predicted gains, and local optimality of the support."""

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import expit

from sparsebayes import RVC, SparseBayesClassifier
from sparsebayes.design import DenseDesign
from sparsebayes.inference import Status
from sparsebayes.inference.models.laplace import LaplaceActive
from sparsebayes.inference.models.mode import ActiveColumns, LaplaceProblem, find_mode
from sparsebayes.inference.objective import SupportRule
from sparsebayes.likelihood import Bernoulli, Categorical


def brute_force(Phi, t, alpha):
    """Laplace's log evidence of two classes, from a dense Newton iteration."""
    if len(alpha) == 0:
        return -len(t) * np.log(2.0)
    sign = 2.0 * t - 1.0
    w = np.zeros(len(alpha))

    def height(v):
        return -np.sum(np.logaddexp(0.0, -sign * (Phi @ v))) - 0.5 * alpha @ v**2

    for _ in range(60):
        p = expit(Phi @ w)
        gradient = Phi.T @ (t - p) - alpha * w
        H = Phi.T @ (Phi * (p * (1 - p))[:, None]) + np.diag(alpha)
        step = np.linalg.solve(H, gradient)
        length = 1.0
        while height(w + length * step) < height(w) and length > 1e-8:
            length /= 2
        w = w + length * step
        if gradient @ step < 1e-15:
            break
    p = expit(Phi @ w)
    H = Phi.T @ (Phi * (p * (1 - p))[:, None]) + np.diag(alpha)
    return height(w) + 0.5 * np.sum(np.log(alpha)) - 0.5 * np.linalg.slogdet(H)[1]


def binary_problem(rng, n=40, m=6):
    Phi = rng.standard_normal((n, m))
    t = (rng.random(n) < expit(Phi @ (rng.standard_normal(m) * (rng.random(m) < 0.6) * 2))).astype(float)
    t[:2] = 0.0, 1.0
    return Phi, t


def laplace_problem(Phi, likelihood):
    return LaplaceProblem(DenseDesign(Phi), likelihood, np.ones(Phi.shape[1], dtype=bool))


def test_evidence_equals_brute_force():
    for seed in range(10):
        rng = np.random.default_rng(seed)
        Phi, t = binary_problem(rng)
        alpha = np.exp(rng.standard_normal(3))
        active = LaplaceActive.from_model(laplace_problem(Phi, Bernoulli(t, np.ones(len(t)))), [0, 2, 5], alpha)
        assert active.evidence() == pytest.approx(brute_force(Phi[:, [0, 2, 5]], t, alpha), abs=1e-8)


@pytest.mark.parametrize("classes", [2, 4])
def test_gradient_of_the_evidence(classes):
    rng = np.random.default_rng(3)
    Phi, t = binary_problem(rng)
    n, m = Phi.shape
    if classes == 2:
        likelihood, indices = Bernoulli(t, rng.uniform(0.5, 2, n)), [0, 2, 5]
    else:
        likelihood = Categorical(np.eye(classes)[rng.integers(0, classes, n)], rng.uniform(0.5, 2, n))
        indices = [0, m + 2, 3 * m + 1, m + 5]
    problem = laplace_problem(Phi, likelihood)
    log_alpha = rng.standard_normal(len(indices))
    found = LaplaceActive.from_model(problem, indices, np.exp(log_alpha)).gradient()
    for j in range(len(indices)):
        step = np.zeros(len(indices))
        step[j] = 1e-4
        up = LaplaceActive.from_model(problem, indices, np.exp(log_alpha + step)).evidence()
        down = LaplaceActive.from_model(problem, indices, np.exp(log_alpha - step)).evidence()
        assert found[j] == pytest.approx((up - down) / 2e-4, abs=1e-6)


@pytest.mark.parametrize("classes", [2, 3])
def test_slope_of_adding_a_function_is_exact(classes):
    """q² − s of a function outside the model is twice the derivative of the evidence in 1/α at zero."""
    rng = np.random.default_rng(4)
    Phi, t = binary_problem(rng)
    n = len(Phi)
    labels = rng.integers(0, classes, n)
    likelihood = Bernoulli(t, np.ones(n)) if classes == 2 else Categorical(np.eye(classes)[labels], np.ones(n))
    problem = laplace_problem(Phi, likelihood)
    indices, alpha = [1, problem.n_functions - 1], np.array([0.7, 2.0])
    active = LaplaceActive.from_model(problem, indices, alpha)
    found = active.statistics()
    for i in range(problem.n_functions):
        if i in indices:
            continue
        epsilon = 1e-6
        bigger = LaplaceActive.from_model(problem, [*indices, i], np.append(alpha, 1 / epsilon))
        slope = (bigger.evidence() - active.evidence()) / epsilon
        assert 0.5 * (found.q2[i] - found.s[i]) == pytest.approx(slope, rel=1e-3, abs=1e-3)


@pytest.mark.parametrize("seed", range(4))
def test_gains_of_rows_left_out_are_those_of_modes_without_each(seed):
    """To first order, of rows with a large say; shares of the covariance are compared by them."""
    rng = np.random.default_rng(seed)
    Phi, t = binary_problem(rng, n=16, m=5)

    def mode(counts):
        return LaplaceActive.from_model(laplace_problem(Phi, Bernoulli(t, counts)), list(range(5)), np.full(5, 0.3))

    active, shares = mode(np.ones(16)), (1.0, 0.3, 0.01)
    found, squares = active._columns.left_out_gains(active.mean, active.covariance, shares)
    without = np.array([Phi[n] @ mode(np.where(np.arange(16) == n, 0.0, 1.0)).mean for n in range(16)])
    variance = np.einsum("na,ab,nb->n", Phi, active.covariance, Phi)
    y = (2.0 * t - 1.0) * without
    logs = [-np.logaddexp(0.0, -y / np.sqrt(1.0 + np.pi * share * variance / 8.0)) for share in shares]
    np.testing.assert_allclose(found, [np.sum(log - logs[0]) for log in logs], atol=0.2)
    np.testing.assert_allclose(squares, [np.sum((log - logs[0]) ** 2) for log in logs], rtol=0.5)


def test_newton_converges_from_far_away():
    rng = np.random.default_rng(5)
    Phi, _ = binary_problem(rng, n=60)
    t = (Phi[:, 0] > 0).astype(float)  # separable: only the prior holds the weights
    active = ActiveColumns(laplace_problem(Phi, Bernoulli(t, np.ones(60))), [0, 1])
    alpha = np.array([1e-6, 1e-6])
    near, far = (find_mode(active.at(np.array(start)), alpha) for start in ([0.0, 0.0], [300.0, -200.0]))
    np.testing.assert_allclose(near.mean, far.mean, rtol=1e-6)
    target = minimize(
        lambda w: np.sum(np.logaddexp(0, -(2 * t - 1) * (Phi[:, :2] @ w))) + 0.5 * alpha @ w**2, near.mean, tol=1e-12
    )
    np.testing.assert_allclose(near.mean, target.x, rtol=1e-3)


def test_support_is_a_local_optimum_under_single_moves():
    """200 problems of at most six functions: no change of one precision, to any value, raises the true evidence."""
    grid = np.exp(np.linspace(-6, 9, 16))
    for seed in range(200):
        rng = np.random.default_rng(seed)
        n, m = int(rng.integers(15, 60)), int(rng.integers(2, 7))
        X = rng.standard_normal((n, m))
        if seed % 3 == 0:
            X[:, -1] = X[:, 0] + 0.3 * rng.standard_normal(n)
        w = rng.standard_normal(m) * (rng.random(m) < 0.6) * rng.choice([0.5, 1.5, 4.0])
        t = (rng.random(n) < expit(X @ w)).astype(int)
        t[:2] = 0, 1
        model = SparseBayesClassifier(fit_intercept=False, evidence="laplace").fit(X, t)
        alpha = np.full(m, np.inf)
        alpha[model.relevance_] = model.alpha_[0]

        def evidence(a, X=X, t=t):
            kept = np.isfinite(a)
            return brute_force(X[:, kept], t, a[kept])

        here = evidence(alpha)
        assert here == pytest.approx(model.log_marginal_likelihood_, abs=1e-6)
        for j in range(m):
            for value in (np.inf, *grid):
                trial = alpha.copy()
                trial[j] = value
                assert evidence(trial) <= here + 2 * model.tol, (seed, j, value)


def test_a_conservative_support_is_a_local_optimum_with_what_functions_cost():
    """No change of one precision, and no function more or less, raises the evidence less what the functions cost."""
    kept = 0
    for seed in range(22):
        rng = np.random.default_rng(seed)
        X = rng.standard_normal((60, 4)) @ rng.standard_normal((4, 12)) + 0.7 * rng.standard_normal((60, 12))
        X /= X.std(axis=0)
        w = 2.0 * rng.standard_normal(12) * (rng.random(12) < 0.5)
        t = (rng.random(60) < expit(X @ w)).astype(float)
        model = SparseBayesClassifier(fit_intercept=False, evidence="laplace", support="conservative").fit(X, t)
        alpha = np.full(12, np.inf)
        alpha[model.relevance_] = model.alpha_[0]

        def worth(a, X=X, t=t):
            inside = np.isfinite(a)
            return brute_force(X[:, inside], t, a[inside]) - SupportRule.named("conservative", 12).cost * inside.sum()

        here = worth(alpha)
        kept += len(model.relevance_)
        assert here == pytest.approx(model.certificate_.objective, abs=1e-6)
        for j in range(12):
            for value in (np.inf, *np.exp(np.linspace(-4, 4, 5))):
                assert worth(np.where(np.arange(12) == j, value, alpha)) <= here + 2 * model.tol, (seed, j, value)
    assert kept > 22


@pytest.mark.parametrize("classes", [2, 3])
def test_the_condition_number_is_that_of_the_precision_at_unit_diagonal(classes):
    rng = np.random.default_rng(8)
    Phi = rng.standard_normal((40, 4))
    Phi[:, 3] += 10.0 * Phi[:, 0]
    t = rng.integers(0, classes, 40)
    likelihood = (
        Bernoulli(t.astype(float), np.ones(40)) if classes == 2 else Categorical(np.eye(classes)[t], np.ones(40))
    )
    active = LaplaceActive.from_model(laplace_problem(Phi, likelihood), [0, 2, 3], np.full(3, 0.1))
    precision = np.linalg.inv(active.covariance)
    scale = np.sqrt(np.diag(precision))
    expected = np.linalg.cond(precision / np.outer(scale, scale))
    assert expected > 10.0
    assert active.condition_number() == pytest.approx(expected, rel=1e-6)


def test_a_slope_that_no_step_follows_is_no_failure():
    """Classes that two lines separate: along one log precision the evidence falls on both sides of a ridge."""
    X = np.random.default_rng(0).normal(size=(90, 2))
    t = ((X[:, 0] <= 0.5) & (X[:, 1] > 0.0)).astype(float)
    model = RVC(gamma=1.0, evidence="laplace", fit_intercept=False).fit(X, t)
    assert model.status_ is Status.CONVERGED
    alpha, Phi = model.alpha_[0], np.exp(-np.sum((X[:, None] - X[model.relevance_]) ** 2, axis=2))
    here = brute_force(Phi, t, alpha)
    assert here == pytest.approx(model.log_marginal_likelihood_, abs=1e-6)
    for j in range(len(alpha)):
        for change in (1e-4, 0.3, 2.0):
            for sign in (-1.0, 1.0):
                moved = np.where(np.arange(len(alpha)) == j, alpha * np.exp(sign * change), alpha)
                assert brute_force(Phi, t, moved) <= here + 2 * model.tol


def test_sample_weight_is_repetition():
    rng = np.random.default_rng(6)
    X = rng.standard_normal((40, 2))
    y = (X[:, 0] + 0.5 * rng.standard_normal(40) > 0).astype(int)
    counts = rng.integers(0, 4, 40)
    weighted = RVC(gamma=0.5).fit(X, y, sample_weight=counts)
    repeated = RVC(gamma=0.5).fit(np.repeat(X, counts, axis=0), np.repeat(y, counts))
    assert weighted.log_marginal_likelihood_ == pytest.approx(repeated.log_marginal_likelihood_, abs=1e-6)
    np.testing.assert_allclose(weighted.predict_proba(X), repeated.predict_proba(X), atol=1e-6)
