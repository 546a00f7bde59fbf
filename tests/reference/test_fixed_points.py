"""The solvers of the original relevance vector machine against brute force, and the figure that Tipping printed."""

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.optimize import minimize_scalar
from scipy.special import digamma, gammaln, log_expit
from scipy.stats import multivariate_normal

from sparsebayes import EM, RVR, MacKay, SparseBayesClassifier, SparseBayesRegressor, Variational, datasets
from sparsebayes.basis import Bias, LinearSpline
from sparsebayes.design import as_design
from sparsebayes.inference import Status
from sparsebayes.inference.models.active import ActiveSet
from sparsebayes.inference.models.bound import BoundActive
from sparsebayes.inference.models.dual import DualActive, DualLaplace
from sparsebayes.inference.models.laplace import LaplaceActive, LaplaceProblem
from sparsebayes.inference.models.problem import GaussianProblem
from sparsebayes.inference.objective import Hyperpriors, NoiseProfile
from sparsebayes.likelihood import Bernoulli, Categorical


def regression(n=20, m=12, targets=1, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, m))
    Y = X[:, :2] @ rng.standard_normal((2, targets)) + 0.3 * rng.standard_normal((n, targets))
    problem = GaussianProblem(as_design(X), Y, rng.uniform(0.5, 2.0, n), np.ones(m, dtype=bool))
    return problem, rng


def test_noise_free_sinc_with_splines():
    """Tipping 2001: 9 vectors and a maximum error of .0070."""
    X, y = datasets.make_sinc(100, noise=0.0)
    basis = Bias() + LinearSpline()
    model = SparseBayesRegressor(basis, fit_intercept=False, noise_variance=0.01**2, solver="mackay").fit(X, y)
    assert sum(f["kind"] != "bias" for f in model.relevance_functions_) == 9
    assert np.max(np.abs(model.predict(X) - y)) <= 0.0087
    assert model.log_marginal_likelihood_ >= 305.5
    assert model.certificate_.converged


@pytest.mark.parametrize("solver", [MacKay(), EM(), Variational()])
@pytest.mark.parametrize("targets", [1, 3])
def test_the_noise_of_targets_that_share_a_support_moves_to_where_their_evidences_together_are_largest(solver, targets):
    """The update goes uphill on either side of the maximum, and stays at it."""
    problem, rng = regression(n=30, m=5, targets=targets)
    alpha, Phi, W = rng.uniform(0.1, 10.0, 5), problem.design.columns(slice(None)), problem.weights
    n = W.sum()

    def evidence(log_beta):
        C = np.diag(np.exp(-log_beta) / W) + (Phi / alpha) @ Phi.T
        C *= np.sqrt(np.outer(W, W))  # rows of equal noise
        t = np.sqrt(W)[:, None] * problem.targets
        # A weight stands for copies of a row, of which as many directions hold nothing but noise.
        return -0.5 * (targets * (np.linalg.slogdet(C)[1] - (n - 30) * log_beta) + np.sum(t * np.linalg.solve(C, t)))

    best = minimize_scalar(lambda x: -evidence(x), bounds=(-4.0, 8.0), method="bounded", options={"xatol": 1e-9}).x
    for away in (-1.0, 0.0, 1.0):
        active = ActiveSet.from_model(problem, list(range(5)), alpha, np.exp(best + away))
        moved = np.log(solver.noise_precision(active)) - best - away
        assert moved == pytest.approx(0.0, abs=1e-5) if away == 0.0 else moved * away < 0.0


# -- the dual form ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("targets", [1, 3])
@pytest.mark.parametrize("beta", [2.0, 1e9])  # by Cholesky, and by the square root
def test_dual_regression_is_the_primal(targets, beta):
    problem, rng = regression(targets=targets)
    alpha = rng.uniform(0.1, 10.0, 12)
    dual = DualActive(problem, list(range(12)), alpha, beta)
    primal = ActiveSet.from_model(problem, list(range(12)), alpha, beta)
    assert dual.evidence() == pytest.approx(primal.evidence(), rel=1e-9)
    np.testing.assert_allclose(dual.mean, primal.mean, atol=1e-5)
    scale = np.sqrt(np.outer(primal.variance, primal.variance))
    np.testing.assert_allclose(dual.covariance / scale, primal.covariance / scale, atol=1e-12 * beta)
    np.testing.assert_allclose(dual.well_determined, primal.well_determined, rtol=1e-9)
    assert dual.residual_sumsq == pytest.approx(primal.residual_sumsq, rel=1e-6)
    here = np.log(beta)
    assert NoiseProfile.of(dual).evidence(here) == pytest.approx(primal.evidence(), rel=1e-9)
    assert dual.condition_number() == pytest.approx(primal.condition_number(), rel=1e-6)


@pytest.mark.parametrize("classes", [2, 3])
def test_dual_classification_is_the_primal(classes):
    rng = np.random.default_rng(1)
    n, m = 15, 25
    labels = rng.integers(0, classes, n)
    weights = rng.uniform(0.5, 2.0, n)
    likelihood = (
        Bernoulli(labels.astype(float), weights) if classes == 2 else Categorical(np.eye(classes)[labels], weights)
    )
    problem = LaplaceProblem(as_design(rng.standard_normal((n, m))), likelihood, np.ones(m, dtype=bool))
    indices = list(range(problem.n_functions))
    alpha = rng.uniform(0.5, 50.0, len(indices))
    dual, primal = DualLaplace(problem, indices, alpha), LaplaceActive.from_model(problem, indices, alpha)
    assert dual.evidence() == pytest.approx(primal.evidence(), rel=1e-10)
    np.testing.assert_allclose(dual.mean, primal.mean, atol=1e-10)
    np.testing.assert_allclose(dual.covariance, primal.covariance, atol=1e-10)
    np.testing.assert_allclose(dual.squared_mean(), primal.squared_mean(), atol=1e-10)
    np.testing.assert_allclose(dual.leave_one_out(), primal.leave_one_out(), rtol=1e-7, atol=1e-10)


# -- hyperpriors --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("solver", ["mackay", "em"])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_classes_of_which_nothing_can_be_learned_leave_an_empty_model(solver, n_classes):
    """All functions go in one sweep, while the form for many functions is still in use."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((12, 40))
    y, weights = np.arange(12) % n_classes, np.full(12, 1e-3)
    model = SparseBayesClassifier(solver=solver).fit(X, y, sample_weight=weights)
    assert model.status_ is Status.EMPTY
    np.testing.assert_allclose(model.predict_proba(X), 1.0 / n_classes)
    counts = SparseBayesRegressor(solver=solver, likelihood="poisson").fit(X, y, sample_weight=weights)
    assert counts.status_ is Status.EMPTY
    np.testing.assert_allclose(counts.predict(X), y.mean(), rtol=1e-3)


@pytest.mark.parametrize("make", [MacKay, EM, Variational])
def test_with_hyperpriors_the_objective_is_stationary(make):
    problem, _ = regression(n=60, m=6)
    priors = Hyperpriors(0.5, 0.2, 2.0, 0.1)
    y, X, w = problem.targets[:, 0], problem.design.columns(np.arange(6)), problem.weights
    solver = make(priors.a, priors.b, priors.c, priors.d)
    model = SparseBayesRegressor(fit_intercept=False, solver=solver, tol=1e-9).fit(X, y, w)
    assert model.certificate_.converged

    def objective(log_alpha, log_beta):
        active = ActiveSet.from_model(problem, model.relevance_.tolist(), np.exp(log_alpha), np.exp(log_beta))
        alpha, rate = active.alpha, priors.b * problem.mean_square * w.sum() / problem.sqnorms[model.relevance_]
        beta, noise_rate = active.beta, priors.d * problem.mean_square
        gammas = np.sum(priors.a * np.log(rate * alpha / priors.a) + priors.a - rate * alpha)
        gammas += priors.c * np.log(noise_rate * beta / priors.c) + priors.c - noise_rate * beta
        return active.evidence() + gammas

    at = np.log(model.alpha_), -np.log(model.noise_variance_)
    assert objective(*at) == pytest.approx(model.certificate_.objective, rel=1e-8)
    for j in range(len(model.alpha_) + 1):
        step = 1e-3 * np.eye(len(model.alpha_) + 1)[j]
        up = objective(at[0] + step[:-1], at[1] + step[-1])
        down = objective(at[0] - step[:-1], at[1] - step[-1])
        assert abs(up - down) / 2e-3 < 1e-3, j


@pytest.mark.parametrize("make", [MacKay, EM, Variational])
def test_hyperpriors_do_not_depend_on_units(make):
    X, y = datasets.make_sinc(60, noise=0.1, random_state=1)
    solver = make(0.1, 0.1, 0.1, 0.1)
    one = RVR(gamma=0.1, solver=solver).fit(X, y)
    other = RVR(gamma=0.1, solver=solver).fit(X, 1000.0 * y)
    np.testing.assert_array_equal(one.relevance_, other.relevance_)
    np.testing.assert_allclose(1000.0 * one.predict(X), other.predict(X), rtol=1e-6, atol=1e-3)


def test_the_best_precision_under_a_prior_is_the_best():
    problem, _ = regression(n=40, m=8)
    active = ActiveSet.from_model(problem, [0, 1], np.array([1.0, 2.0]), 4.0)
    priors, found = Hyperpriors(0.3, 0.1), active.statistics()
    best, gain = priors.best_moves(active, found.alpha, found.s, found.q2)
    rate = priors.rates(active)
    grid = np.exp(np.linspace(-12.0, 12.0, 20001))
    for m in range(8):
        value = 0.5 * (found.q2[m] / (grid + found.s[m]) - np.log1p(found.s[m] / grid))
        value += priors.a * np.log(rate[m] * grid / priors.a) + priors.a - rate[m] * grid
        present = 0.0 if m > 1 else np.interp(np.log(active.alpha[m]), np.log(grid), value)
        assert gain[m] == pytest.approx(max(np.max(value), 0.0) - present, abs=1e-5)
        assert np.isfinite(best[m]) == (np.max(value) > 0.0)


def test_a_function_that_a_prior_outweighs_stays_out():
    problem, _ = regression(n=40, m=8)
    active = ActiveSet.from_model(problem, [0], np.array([1.0]), 4.0)
    priors, found = Hyperpriors(30.0, 1e25), active.statistics()
    assert found.q2[1] > found.s[1]  # the evidence alone would have it
    rate, grid = priors.rates(active)[1], np.exp(np.linspace(-70.0, 12.0, 20001))
    value = 0.5 * (found.q2[1] / (grid + found.s[1]) - np.log1p(found.s[1] / grid))
    value += priors.a * np.log(rate * grid / priors.a) + priors.a - rate * grid
    assert np.max(value) < -1.0
    best, gain = priors.best_moves(active, found.alpha, found.s, found.q2)
    assert np.isinf(best[1])
    assert gain[1] == 0.0


def test_a_function_of_which_nothing_is_left_beside_others_stays_out():
    problem, _ = regression(n=40, m=8)
    active = ActiveSet.from_model(problem, [0], np.array([1.0]), 4.0)
    found = active.statistics()
    s = np.where(np.arange(8) == 1, 0.0, found.s)  # what rounding leaves of a copy
    best, gain = Hyperpriors(1e-6, 1e-6).best_moves(active, found.alpha, s, found.q2)
    assert np.isinf(best[1])
    assert gain[1] == 0.0


# -- the variational bounds -----------------------------------------------------------------------------------


def explicit_bound(active, a, b, c, d, learn_noise):
    """Every expectation of Bishop & Tipping's bound by itself, for one target."""
    problem, mean, covariance = active.problem, active.mean[:, 0], active.covariance
    n, size = problem.n_effective, active.size
    shape, rate = a + 0.5, (a + 0.5) / active.alpha
    prior = b * problem.mean_square * n / problem.sqnorms[active.indices]
    log_alpha, second = digamma(shape) - np.log(rate), mean**2 + np.diagonal(covariance)
    columns = problem.columns(np.array(active.indices))
    error = np.sum((problem.target[:, 0] - columns @ mean) ** 2) + np.trace(columns.T @ columns @ covariance)
    bound = np.sum(-0.5 * np.log(2 * np.pi) + 0.5 * log_alpha - 0.5 * active.alpha * second)
    bound += 0.5 * (size * (1.0 + np.log(2 * np.pi)) + np.linalg.slogdet(covariance)[1])
    bound += np.sum(a * np.log(prior) - gammaln(a) + (a - 1.0) * log_alpha - prior * active.alpha)
    bound += np.sum(shape - np.log(rate) + gammaln(shape) + (1.0 - shape) * digamma(shape))
    if not learn_noise:
        return bound + 0.5 * n * np.log(active.beta / (2 * np.pi)) - 0.5 * active.beta * error
    shape, prior = c + 0.5 * n, d * problem.mean_square
    rate = shape / active.beta
    log_beta = digamma(shape) - np.log(rate)
    bound += 0.5 * n * (log_beta - np.log(2 * np.pi)) - 0.5 * active.beta * error
    bound += c * np.log(prior) - gammaln(c) + (c - 1.0) * log_beta - prior * active.beta
    return bound + shape - np.log(rate) + gammaln(shape) + (1.0 - shape) * digamma(shape)


@pytest.mark.parametrize("learn_noise", [True, False])
def test_the_lower_bound_is_its_expectations(learn_noise):
    problem, rng = regression(n=30, m=5)
    active = ActiveSet.from_model(problem, [0, 2, 3], rng.uniform(0.5, 3.0, 3), 4.0)
    solver = Variational(0.3, 0.2, 0.4, 0.1)
    expected = explicit_bound(active, 0.3, 0.2, 0.4, 0.1, learn_noise)
    assert solver.lower_bound(active, learn_noise=learn_noise) == pytest.approx(expected, rel=1e-9)


def test_an_improper_prior_has_no_bound():
    problem, _ = regression()
    with pytest.raises(ValueError, match="improper"):
        Variational(a=0.0).lower_bound(ActiveSet(problem, 1.0), learn_noise=True)


def test_the_logistic_bound_is_below_the_evidence():
    """One function, so that the evidence is an integral over one weight."""
    rng = np.random.default_rng(3)
    x = rng.standard_normal(12)
    t = (x + rng.standard_normal(12) > 0).astype(float)
    problem = LaplaceProblem(as_design(x[:, None]), Bernoulli(t, np.ones(12)), np.ones(1, dtype=bool))

    def joint(w):
        return np.exp(np.sum(log_expit(np.where(t > 0, 1.0, -1.0) * x * w)) - 0.5 * w**2) / np.sqrt(2 * np.pi)

    exact = np.log(quad(joint, -20.0, 20.0)[0])
    loose = BoundActive(problem, [0], np.ones(1), np.full(12, 3.0))
    tight = loose.recompute()
    assert loose.evidence() < tight.evidence() < exact
    assert tight.evidence() == pytest.approx(exact, abs=0.5)
    # At the best parameters every change of them lowers the bound.
    for n in range(12):
        other = tight.xi.copy()
        other[n] *= 1.1
        assert BoundActive(problem, [0], np.ones(1), other).evidence() < tight.evidence()


def test_the_evidence_at_fixed_xi_is_a_gaussian_integral():
    rng = np.random.default_rng(4)
    X, t = rng.standard_normal((6, 2)), np.array([0.0, 1, 1, 0, 1, 0])
    problem = LaplaceProblem(as_design(X), Bernoulli(t, np.ones(6)), np.ones(2, dtype=bool))
    xi, alpha = rng.uniform(0.5, 2.0, 6), np.array([0.7, 2.0])
    active = BoundActive(problem, [0, 1], alpha, xi)
    curvature = np.tanh(xi / 2) / (4 * xi)
    w = multivariate_normal(active.mean, active.covariance).rvs(5, random_state=0)
    y = w @ X.T
    rows = (t - 0.5) * y - curvature * (y**2 - xi**2) + log_expit(xi) - 0.5 * xi
    prior = 0.5 * np.sum(np.log(alpha / (2 * np.pi))) - 0.5 * w**2 @ alpha
    posterior = multivariate_normal(active.mean, active.covariance).logpdf(w)
    np.testing.assert_allclose(rows.sum(axis=1) + prior - posterior, active.evidence(), rtol=1e-10)


@pytest.mark.parametrize("alpha", [1e-4, 1e-10])
def test_variances_under_the_bound_are_positive_where_functions_outnumber_rows(alpha):
    """As differences of their covariance, of functions large and small, they are rounding."""
    rng = np.random.default_rng(0)
    base = rng.standard_normal((20, 15))
    Phi = np.hstack([1e6 * base, 1e-3 * base, 1e-3 * base, 1e-3 * base])
    problem = LaplaceProblem(as_design(Phi), Bernoulli((rng.random(20) > 0.5) * 1.0, np.ones(20)), np.ones(60, bool))
    active = BoundActive(problem, list(range(60)), np.full(60, alpha), np.ones(20))
    assert np.all(active.variance > 0.0)
    assert np.all(active.well_determined > 0.0)


def test_softmax_has_no_variational_bound():
    X, y = datasets.load("iris", return_X_y=True)
    with pytest.raises(ValueError, match=r"two classes.*multi_class='ovr'"):
        SparseBayesClassifier(solver="variational").fit(X, y)
    assert SparseBayesClassifier(solver="variational", multi_class="ovr").fit(X, y).score(X, y) > 0.9


@pytest.mark.parametrize(("shape", "rate"), [("a", "b"), ("c", "d")])
@pytest.mark.parametrize("value", [1e-6, 0.5, 3.0])
def test_a_prior_that_grows_without_bound_is_refused(shape, rate, value):
    with pytest.raises(ValueError, match=f"{shape}={value}.* with {rate}=0"):
        Hyperpriors(**{shape: value}).check()
    Hyperpriors(**{shape: value, rate: 1.0}).check()
