"""Every number of a certificate against brute force, on models that are not at a maximum."""

import numpy as np
import pytest
from scipy.optimize import minimize_scalar

from sparsebayes import RVR, SparseBayesRegressor, datasets
from sparsebayes.design import DenseDesign
from sparsebayes.inference.models.active import ActiveSet
from sparsebayes.inference.models.laplace import LaplaceActive, LaplaceProblem
from sparsebayes.inference.models.problem import GaussianProblem
from sparsebayes.inference.objective import Hyperpriors, NoiseProfile, score
from sparsebayes.inference.status import Status, certify, really_refused
from sparsebayes.likelihood import Bernoulli

TOL, COST = 1e-3, 12.0


def evidence(Phi, t, kept, alpha, beta):
    C = np.eye(len(t)) / beta + (Phi[:, kept] / alpha) @ Phi[:, kept].T
    return -0.5 * (np.linalg.slogdet(2.0 * np.pi * C)[1] + t @ np.linalg.solve(C, t))


def best_of(function, low, high):
    """The largest value on a logarithmic scale, by a grid and a refinement."""
    grid = np.linspace(low, high, 241)
    k = int(np.argmax([function(x) for x in grid]))
    found = minimize_scalar(
        lambda x: -function(x), bounds=(grid[max(k - 1, 0)], grid[min(k + 1, 240)]), method="bounded"
    )
    return max(function(grid[k]), -found.fun)


def unsettled(seed):
    """A model with a function that should go, one that should come, precisions and a noise that are wrong."""
    rng = np.random.default_rng(seed)
    Phi = rng.standard_normal((40, 6))
    t = 2.0 * Phi[:, 0] - 1.5 * Phi[:, 1] + 0.3 * rng.standard_normal(40)
    kept, alpha, beta = [0, 2, 4], np.array([3.0, 0.5, 2.0]), 1.0
    problem = GaussianProblem(DenseDesign(Phi), t[:, None], np.ones(40), np.ones(6, dtype=bool))
    return Phi, t, kept, alpha, beta, ActiveSet.from_model(problem, kept, alpha, beta)


@pytest.mark.parametrize("seed", range(4))
def test_gains_of_additions_re_estimations_deletions_and_noise(seed):
    Phi, t, kept, alpha, beta, active = unsettled(seed)
    found = certify(active, learn_noise=True, tol=TOL, start=0)
    here = evidence(Phi, t, kept, alpha, beta)
    assert found.log_evidence == pytest.approx(here, rel=1e-10)

    def added(m, x):
        return evidence(Phi, t, [*kept, m], np.append(alpha, np.exp(x)), beta) - here

    added_most = max(best_of(lambda x, m=m: added(m, x), -12.0, 20.0) for m in (1, 3, 5))
    assert found.excluded_gain == pytest.approx(max(added_most, 0.0), rel=1e-5)
    assert found.excluded_function == 1
    # s and q of a function left out are its products with the inverse of the targets' covariance (T&F eq. 22).
    C = np.eye(40) / beta + (Phi[:, kept] / alpha) @ Phi[:, kept].T
    s = np.einsum("nm,nm->m", Phi, np.linalg.solve(C, Phi))
    q = Phi.T @ np.linalg.solve(C, t)
    assert found.excluded_theta == pytest.approx(np.max((q**2 / s - 1.0)[[1, 3, 5]]), rel=1e-9)
    inside = []
    for j in range(3):
        rest, others = [kept[i] for i in range(3) if i != j], np.delete(alpha, j)
        deleted = evidence(Phi, t, rest, others, beta) - here
        moved = best_of(
            lambda x, j=j: evidence(Phi, t, kept, np.where(np.arange(3) == j, np.exp(x), alpha), beta) - here,
            -12.0,
            20.0,
        )
        inside.append(max(deleted, moved))
    assert found.kept_gain == pytest.approx(max(inside), rel=1e-4)

    def at_noise(x):
        return evidence(Phi, t, kept, alpha, np.exp(x))

    assert found.noise_gain == pytest.approx(best_of(at_noise, -8.0, 8.0) - here, rel=1e-5)
    assert found.noise_gain > TOL
    slope = (at_noise(1e-5) - at_noise(-1e-5)) / 2e-5
    assert found.noise_gradient == pytest.approx(abs(slope), rel=1e-5)
    assert certify(active, learn_noise=False, tol=TOL, start=0).noise_gain == 0.0


def test_what_was_refused_on_the_way_is_no_gain_only_where_it_gains_nothing_on_the_final_model():
    Phi, t, kept, alpha, beta, active = unsettled(0)
    found = certify(active, learn_noise=False, tol=TOL, start=0)
    assert found.excluded_function == 1
    # It would gain whatever was found on the way; function 3 would not, so that nothing is to be said of it.
    assert really_refused(active, [1, 3], TOL) == {3}
    without = certify(active, learn_noise=False, tol=TOL, start=0, refused=frozenset({1}))
    here = evidence(Phi, t, kept, alpha, beta)
    others = max(
        best_of(lambda x, m=m: evidence(Phi, t, [*kept, m], np.append(alpha, np.exp(x)), beta) - here, -12.0, 20.0)
        for m in (3, 5)
    )
    assert without.excluded_gain == pytest.approx(max(others, 0.0), rel=1e-5, abs=1e-12)
    assert without.excluded_gain < found.excluded_gain


def test_a_function_whose_score_promises_more_than_its_evidence_brings_stays_refused():
    """Where rows saturate, the score at the present mode can promise too much: the model with the function says it."""
    said, tried = [], []
    for seed in range(20, 30):
        rng = np.random.default_rng(seed)
        Phi = rng.standard_normal((8, 6))
        y = (Phi[:, 0] + 0.3 * rng.standard_normal(8) > 0.0).astype(float)
        problem = LaplaceProblem(DenseDesign(Phi), Bernoulli(y, np.ones(8)), np.ones(6, dtype=bool))
        active = LaplaceActive.from_model(problem, [0], np.array([0.01]))
        found = score(active)
        for m in np.flatnonzero((found.gain > TOL) & ~found.in_model):
            grown = LaplaceActive.from_model(problem, [0, int(m)], np.array([0.01, found.best[m]]))
            tried.append(grown.objective() > active.objective() + TOL)
            said.append(int(m) not in really_refused(active, [int(m)], TOL))
    assert said == tried
    assert {True, False} <= set(tried)


def test_a_function_that_should_go_is_seen():
    rng = np.random.default_rng(3)
    Phi = rng.standard_normal((60, 2))
    t = 2.0 * Phi[:, 0] + 0.3 * rng.standard_normal(60)
    # What is left of the targets is made orthogonal to the second function: nothing is to be learned from it.
    residual = t - 2.0 * Phi[:, 0]
    t = t - Phi[:, 1] * (Phi[:, 1] @ residual) / (Phi[:, 1] @ Phi[:, 1])
    problem = GaussianProblem(DenseDesign(Phi), t[:, None], np.ones(60), np.ones(2, dtype=bool))
    active = ActiveSet.from_model(problem, [0, 1], np.array([0.25, 1.0]), 1.0 / 0.09)
    found = certify(active, learn_noise=False, tol=TOL, start=0)
    gain = evidence(Phi, t, [0], np.array([0.25]), 1.0 / 0.09) - evidence(Phi, t, [0, 1], active.alpha, 1.0 / 0.09)
    assert gain > 1.0
    assert found.kept_gain == pytest.approx(gain, rel=1e-8)
    assert found.kept_function == 1
    assert found.kept_log_alpha == np.inf
    assert not found.converged


def test_a_function_that_costs_more_than_it_brings_is_seen():
    rng = np.random.default_rng(3)
    Phi = rng.standard_normal((60, 3))
    t = 2.0 * Phi[:, 0] + 0.12 * Phi[:, 1] + 0.3 * rng.standard_normal(60)
    problem = GaussianProblem(DenseDesign(Phi), t[:, None], np.ones(60), np.ones(3, dtype=bool), inclusion_cost=COST)
    active = ActiveSet.from_model(problem, [0, 1], np.array([0.25, 50.0]), 1.0 / 0.09)
    found = certify(active, learn_noise=False, tol=TOL, start=0)
    whole, without = (evidence(Phi, t, kept, active.alpha[kept], 1.0 / 0.09) for kept in ([0, 1], [0]))
    assert 0.5 < whole - without < COST - 0.5
    assert found.kept_gain == pytest.approx(COST - (whole - without), rel=1e-8)
    assert found.objective == pytest.approx(whole - 2.0 * COST, rel=1e-10)
    # Nor is one missing that brings something, but less than it costs.
    alone = ActiveSet.from_model(problem, [0], np.array([0.25]), 1.0 / 0.09)
    assert certify(alone, learn_noise=False, tol=TOL, start=0).excluded_gain == 0.0


def test_a_function_that_is_missing_is_seen():
    rng = np.random.default_rng(5)
    Phi = rng.standard_normal((60, 2))
    t = 2.0 * Phi[:, 0] + 0.5 * Phi[:, 1] + 0.3 * rng.standard_normal(60)
    problem = GaussianProblem(DenseDesign(Phi), t[:, None], np.ones(60), np.ones(2, dtype=bool))
    found = certify(
        ActiveSet.from_model(problem, [0], np.array([0.25]), 1.0 / 0.09), learn_noise=False, tol=1.0, start=0
    )
    assert found.kept_gain < 1.0 < found.excluded_gain
    assert found.excluded_function == 1
    assert not found.converged


def test_a_noise_that_is_wrong_is_seen():
    rng = np.random.default_rng(4)
    Phi = rng.standard_normal((60, 1))
    t = 2.0 * Phi[:, 0] + 0.3 * rng.standard_normal(60)
    problem = GaussianProblem(DenseDesign(Phi), t[:, None], np.ones(60), np.ones(1, dtype=bool))
    for beta, well in ((1.0 / 0.09, True), (1.0, False), (100.0, False)):
        active = ActiveSet.from_model(problem, [0], np.array([0.25]), beta)
        found = certify(active, learn_noise=True, tol=1.0, start=0)
        assert found.kept_gain < 1.0
        assert found.converged == well


@pytest.mark.parametrize("copies", [1.0, 3.0])
def test_a_noise_is_degenerate_at_its_floor_and_where_hardly_a_row_is_left_to_learn_it_from(copies):
    """Of 40 rows 39 functions leave one, however often each row counts."""
    rng = np.random.default_rng(6)
    Phi, t = rng.standard_normal((40, 39)), rng.standard_normal((40, 1))
    problem = GaussianProblem(DenseDesign(Phi), t, np.full(40, copies), np.ones(39, dtype=bool))
    for size, beta, degenerate in ((39, 1.0, True), (30, 1.0, False), (3, 1.0 / problem.noise_floor, True)):
        active = ActiveSet.from_model(problem, list(range(size)), np.full(size, 1e-6), beta)
        assert certify(active, learn_noise=True, tol=TOL, start=0).noise_degenerate == degenerate
        assert not certify(active, learn_noise=False, tol=TOL, start=0).noise_degenerate


def test_targets_that_are_met_exactly_end_at_the_floor_of_the_noise():
    X = np.random.default_rng(0).standard_normal((40, 5))
    model = SparseBayesRegressor().fit(X, X @ [1.0, -2.0, 0.0, 0.0, 3.0])
    assert model.status_ is Status.NOISE_FLOOR
    assert model.certificate_.noise_degenerate


def test_the_condition_number_is_that_of_the_precision_at_unit_diagonal():
    Phi, _, kept, alpha, beta, active = unsettled(0)
    Phi[:, 4] += 30.0 * Phi[:, 0]
    problem = GaussianProblem(DenseDesign(Phi), active.problem.targets, np.ones(40), np.ones(6, dtype=bool))
    precision = beta * Phi[:, kept].T @ Phi[:, kept] + np.diag(alpha)
    scale = np.sqrt(np.diag(precision))
    expected = np.linalg.cond(precision / np.outer(scale, scale))
    assert expected > 50.0
    active = ActiveSet.from_model(problem, kept, alpha, beta)
    found = certify(active, learn_noise=True, tol=TOL, start=0).condition_number
    assert found == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize("seed", range(3))
def test_no_single_move_of_a_finished_fit_gains(seed):
    X, y = datasets.make_sinc(60, noise=0.1, random_state=seed)
    model = RVR(gamma=1 / 9, fit_intercept=False).fit(X, y)
    assert model.certificate_.converged
    Phi = np.exp(-((X - X.T) ** 2) / 9)
    kept, alpha, beta = list(model.relevance_), model.alpha_, 1.0 / model.noise_variance_
    here = evidence(Phi, y, kept, alpha, beta)
    assert model.log_marginal_likelihood_ == pytest.approx(here, rel=1e-8)
    for j in range(len(kept)):
        rest = [kept[i] for i in range(len(kept)) if i != j]
        assert evidence(Phi, y, rest, np.delete(alpha, j), beta) < here + model.tol
    for factor in (0.5, 0.9, 1.1, 2.0):
        assert evidence(Phi, y, kept, alpha, factor * beta) < here + model.tol


def test_a_prior_on_the_noise_is_part_of_its_profile():
    Phi, t, kept, alpha, _, active = unsettled(0)
    profile = NoiseProfile.of(active, Hyperpriors(c=1.7, d=0.6 / active.problem.mean_square))

    def objective(x):
        """Evidence and log Gamma(shape, rate) of the inverse noise variance as a scale, up to a constant."""
        return evidence(Phi, t, kept, alpha, np.exp(x)) + 1.7 * x - 0.6 * np.exp(x)

    for x in (-2.0, 0.5, 3.0):
        assert profile.evidence(x) - profile.evidence(0.0) == pytest.approx(objective(x) - objective(0.0), rel=1e-9)
        slope = (objective(x + 1e-5) - objective(x - 1e-5)) / 2e-5
        assert profile.slope(x) == pytest.approx(slope, rel=1e-5)


def test_the_objective_holds_the_log_priors_of_precisions_and_noise():
    Phi, t, kept, alpha, beta, active = unsettled(0)
    priors = Hyperpriors(a=0.4, b=0.02, c=0.3, d=0.05)

    def log_gamma(x, shape, rate):
        """Log density of log x, relative to its largest value."""
        return shape * np.log(x) - rate * x - shape * (np.log(shape / rate) - 1.0)

    expected = evidence(Phi, t, kept, alpha, beta)
    rates = priors.b * np.sum(t**2) / np.sum(Phi[:, kept] ** 2, axis=0)
    expected += np.sum(log_gamma(alpha, priors.a, rates))
    fixed = certify(active, learn_noise=False, tol=TOL, start=0, hyperpriors=priors)
    assert fixed.objective == pytest.approx(expected, rel=1e-10)
    expected += log_gamma(beta, priors.c, priors.d * np.mean(t**2))
    learned = certify(active, learn_noise=True, tol=TOL, start=0, hyperpriors=priors)
    assert learned.objective == pytest.approx(expected, rel=1e-10)


def test_a_gain_that_is_rounding_is_none():
    """Of broad functions at little noise a score can promise any number (here 3e14 nats) and bring none."""
    rng = np.random.default_rng(11)
    X = np.sort(rng.uniform(-3.0, 3.0, (20, 1)), axis=0)
    model = RVR(gamma=0.01, noise_variance=1e-6).fit(X, np.sin(X[:, 0]) + 0.01 * rng.normal(size=20))
    assert model.status_ is Status.CONVERGED
    assert model.certificate_.excluded_gain <= model.tol
