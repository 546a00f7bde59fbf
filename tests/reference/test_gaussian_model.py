"""The model that the loop climbs on, against dense algebra that shares no code with it."""

from dataclasses import replace

import mpmath
import numpy as np
import pytest

from sparsebayes import RVR
from sparsebayes.basis import RBF
from sparsebayes.datasets import make_sinc2d
from sparsebayes.design import DenseDesign, LazyDesign, compress_kernel
from sparsebayes.inference.fit.folds import Folds
from sparsebayes.inference.models.gaussian import GaussianModel, Gram, Posterior, Products
from sparsebayes.inference.models.problem import GaussianProblem
from sparsebayes.inference.search.climb import climb


def draw(seed, n=30, m=20, targets=1, weighted=False):
    rng = np.random.default_rng(seed)
    Phi = rng.normal(size=(n, m)) * np.exp(rng.normal(size=m))
    t = Phi[:, :3] @ rng.normal(size=(3, targets)) + 0.3 * rng.normal(size=(n, targets))
    weights = rng.integers(1, 4, n).astype(float) if weighted else np.ones(n)
    return Phi, t, weights


def posed(Phi, t, weights, cost=0.0):
    eligible = np.ones(Phi.shape[1], dtype=bool)
    return GaussianProblem(DenseDesign(Phi), t, weights, eligible, inclusion_cost=cost)


def dense(Phi, t, weights, alpha, beta):
    """Log evidence, and the inverse of the covariance of the targets; weights are copies of rows."""
    rows = np.repeat(np.arange(len(t)), weights.astype(int))
    Phi, t = Phi[rows], t[rows]
    C = np.eye(len(t)) / beta + (Phi / alpha) @ Phi.T
    inverse, (_, log_det) = np.linalg.inv(C), np.linalg.slogdet(2.0 * np.pi * C)
    return -0.5 * (t.shape[1] * log_det + np.einsum("nt,nm,mt->", t, inverse, t)), inverse, rows


cases = pytest.mark.parametrize(("targets", "weighted"), [(1, False), (1, True), (3, True)])


@cases
@pytest.mark.parametrize("seed", range(3))
def test_evidence_mean_and_covariance(seed, targets, weighted):
    Phi, t, weights = draw(seed, targets=targets, weighted=weighted)
    alpha, beta, inside = np.array([0.3, 2.0, 0.05, 7.0]), 4.0, [1, 0, 7, 12]
    model = GaussianModel.weighing(Gram(posed(Phi, t, weights)), inside, alpha, beta, True)
    expected, _, rows = dense(Phi[:, inside], t, weights, alpha, beta)
    assert model.evidence() == pytest.approx(expected, rel=1e-11)
    columns = Phi[np.ix_(rows, inside)]
    covariance = np.linalg.inv(np.diag(alpha) + beta * columns.T @ columns)
    np.testing.assert_allclose(model.covariance, covariance, rtol=1e-9)
    np.testing.assert_allclose(model.mean, beta * covariance @ columns.T @ t[rows], rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(model.alpha, alpha, rtol=1e-12)
    # A row and its copies count once: copies are no further rows to learn a noise from.
    assert model.used == pytest.approx(np.sum(1.0 - alpha * np.diag(covariance)) / len(t))


@cases
@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("cost", [0.0, 1.5])
def test_scores_are_what_additions_bring(seed, targets, weighted, cost):
    Phi, t, weights = draw(seed, targets=targets, weighted=weighted)
    alpha, beta, inside = np.array([0.3, 2.0]), 4.0, [1, 5]
    model = GaussianModel.weighing(Gram(posed(Phi, t, weights, cost)), inside, alpha, beta, True)
    scores, (before, _, _) = model.scores(), dense(Phi[:, inside], t, weights, alpha, beta)
    norms = np.sqrt(weights @ Phi**2)
    assert np.all(scores.gain[inside] == 0.0)
    for m in np.flatnonzero(scores.gain > 0.0):
        best = scores.alpha[m] * norms[m] ** 2

        def gain(a, m=m):
            after = dense(Phi[:, [*inside, m]], t, weights, np.append(alpha, a), beta)[0]
            return after - before - cost

        assert gain(best) == pytest.approx(scores.gain[m], abs=1e-7)
        assert gain(best) >= max(gain(1.01 * best), gain(best / 1.01)) - 1e-10  # it is the best precision
    for m in np.setdiff1d(np.flatnonzero(scores.gain == 0.0), inside):
        assert max(dense(Phi[:, [*inside, m]], t, weights, np.append(alpha, a), beta)[0] for a in norms[m] ** 2 *
                   np.geomspace(1e-3, 1e3, 13)) - before <= cost + 1e-9  # fmt: skip


def test_functions_that_may_not_enter_gain_nothing():
    Phi, t, weights = draw(1)
    for m in range(3):  # the causes
        eligible = np.arange(Phi.shape[1]) != m
        free, bound = (
            GaussianModel.empty(Gram(GaussianProblem(DenseDesign(Phi), t, weights, may)), 1.0, True)
            for may in (np.ones_like(eligible), eligible)
        )
        assert free.scores().gain[m] > 0.0
        assert bound.scores().gain[m] == 0.0
        np.testing.assert_array_equal(bound.scores().gain[eligible], free.scores().gain[eligible])
        assert m not in climb(bound, 1e-3).indices


def test_overlaps_are_cosines_in_the_metric_of_the_scores():
    Phi, t, weights = draw(5)
    alpha, beta, inside, pool = np.array([0.3, 2.0]), 4.0, [1, 5], np.array([0, 2, 9, 11])
    model = GaussianModel.weighing(Gram(posed(Phi, t, weights)), inside, alpha, beta, True)
    _, inverse, _ = dense(Phi[:, inside], t, weights, alpha, beta)
    products = Phi[:, pool].T @ inverse @ Phi[:, pool]
    scale = np.sqrt(np.diag(products))
    np.testing.assert_allclose(model.overlaps(pool), np.abs(products) / np.outer(scale, scale), rtol=1e-9)


@cases
@pytest.mark.parametrize("learn", [True, False])
def test_settled_is_a_maximum_in_all_precisions_and_the_noise(targets, weighted, learn):
    Phi, t, weights = draw(7, targets=targets, weighted=weighted)
    begun = GaussianModel.weighing(Gram(posed(Phi, t, weights)), [0, 1, 2, 6], np.ones(4), 1.0, learn)
    model = begun.settled(1e-9)
    columns = Phi[:, model.indices]
    level = dense(columns, t, weights, model.alpha, model.beta)[0]
    assert model.evidence() == pytest.approx(level, rel=1e-10)
    for j in range(model.size):
        for factor in (0.95, 1.05):
            alpha = model.alpha.copy()
            alpha[j] *= factor
            assert dense(columns, t, weights, alpha, model.beta)[0] < level
    for factor in (0.95, 1.05):
        there = dense(columns, t, weights, model.alpha, factor * model.beta)[0]
        assert there < level if learn else model.beta == 1.0


@pytest.mark.parametrize("seed", range(3))
def test_folds_do_not_depend_on_order_and_take_weights_for_copies(seed):
    Phi, t, weights = draw(seed, 40, 15, weighted=True)
    densities = Folds(posed(Phi, t, weights))
    order = np.random.default_rng(seed).permutation(40)
    shuffled = Folds(posed(Phi[order], t[order], weights[order]))
    rows = np.repeat(np.arange(40), weights.astype(int))
    copied = Folds(posed(Phi[rows], t[rows], np.ones(len(rows))))
    for beta in (2.0, 10.0):
        mine = np.sort(densities.densities(beta, 10))
        np.testing.assert_allclose(np.sort(shuffled.densities(beta, 10)), mine, rtol=1e-8)
        np.testing.assert_allclose(np.unique(copied.densities(beta, 10).round(6)), np.unique(mine.round(6)))
    assert densities.prefer(10.0, 2.0, 10) == shuffled.prefer(10.0, 2.0, 10) == copied.prefer(10.0, 2.0, 10)


def test_folds_see_a_collapse():
    rng = np.random.default_rng(0)
    Phi = rng.normal(size=(50, 100))
    t = Phi[:, :5] @ np.full(5, 2.0) + 0.5 * rng.normal(size=50)
    judge = Folds(posed(Phi, t[:, None], np.ones(50)))
    assert judge.prefer(1.0 / 0.25, 1e8, 50)


# -- functions that inner products cannot tell apart ---------------------------------------------------------


def wide(n=40, m=14, width=9.0):
    """Wide bumps side by side, the targets a combination of them with large weights of changing sign."""
    x, centres = np.linspace(-1.0, 1.0, n)[:, None], np.linspace(-1.0, 1.0, m)
    Phi = np.exp(-(((x - centres) / width) ** 2))
    t = np.sin(3.0 * x) + 0.01 * np.random.default_rng(0).normal(size=x.shape)
    return Phi, t


def exact_evidence(Phi, t, alpha, beta):
    """Log evidence with fifty digits."""
    with mpmath.workdps(50):
        P, y = mpmath.matrix(Phi.tolist()), mpmath.matrix(t.tolist())
        C = mpmath.eye(len(Phi)) / mpmath.mpf(beta)
        for j, a in enumerate(alpha):
            C += P[:, j] * P[:, j].T / mpmath.mpf(float(a))
        quadratic = (y.T * mpmath.lu_solve(C, y))[0]
        return float(-(len(Phi) * mpmath.log(2 * mpmath.pi) + mpmath.log(mpmath.det(C)) + quadratic) / 2)


def test_nearly_dependent_functions_have_the_evidence_of_fifty_digits():
    Phi, t = wide()
    functions, alpha, beta = list(range(0, 14, 2)), np.full(7, 1e-9), 1e4
    data = Gram(posed(Phi, t, np.ones(len(t))))
    products = Products(data, np.array(functions))
    precisions = alpha / data.norms[functions] ** 2
    assert Posterior.of(products, precisions, beta) is None  # inner products do not suffice
    posterior = Posterior.of(replace(products, suffice=False), precisions, beta)
    assert posterior.log_evidence == pytest.approx(exact_evidence(Phi[:, functions], t, alpha, beta), abs=1e-4)


def test_scores_of_nearly_dependent_functions_are_what_additions_bring():
    Phi, t = wide()
    functions, alpha, beta = list(range(0, 14, 3)), np.full(5, 1e-6), 1e4
    model = GaussianModel.weighing(Gram(posed(Phi, t, np.ones(len(t)))), functions, alpha, beta, False).exactly()
    assert model.posterior.rotation is not None
    scores, before = model.scores(), exact_evidence(Phi[:, functions], t, alpha, beta)
    best = np.argsort(-scores.gain)[:3]
    assert scores.gain[best[0]] > 1.0
    for m in best:
        added = scores.alpha[m] * np.sum(Phi[:, m] ** 2)
        after = exact_evidence(Phi[:, [*functions, m]], t, [*alpha, added], beta)
        # s is a difference of numbers of the size of beta, rounded to ten eps, and the gain is in proportion to 1/s.
        left = model._outside[0][m] / beta
        assert scores.gain[m] == pytest.approx(after - before, rel=10.0 * np.finfo(float).eps / left)


def test_more_functions_than_rows_have_a_posterior_of_the_functions_themselves():
    rng = np.random.default_rng(3)
    Phi, t = rng.normal(size=(6, 9)), rng.normal(size=(6, 1))
    alpha, beta, every = np.exp(rng.normal(size=9)), 3.0, list(range(9))
    model = GaussianModel.weighing(Gram(posed(Phi, t, np.ones(6))), every, alpha, beta, False)
    products = replace(model.posterior.products, suffice=False)
    posterior = Posterior.of(products, model.posterior.alpha, beta)
    assert posterior.rotation is not None
    assert posterior.log_evidence == pytest.approx(model.evidence(), rel=1e-12)
    np.testing.assert_allclose(posterior.mean, model.posterior.mean, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(
        posterior.explained.T @ posterior.explained, model.posterior.explained.T @ model.posterior.explained, atol=1e-12
    )


class TestGivenNoise:
    """A noise far below that of the targets lets in functions that inner products cannot tell apart."""

    def test_functions_are_evaluated_once(self, monkeypatch):
        passes, correlate = [], LazyDesign.correlate

        def counted(self, V):
            passes.append(self.shape)
            return correlate(self, V)

        monkeypatch.setattr(LazyDesign, "correlate", counted)
        X, y = make_sinc2d(1000, random_state=0)
        model = RVR(gamma=0.16, noise_variance=0.01, effort="fast").fit(X, y)
        assert len(model.history_) > 10
        assert len(passes) <= 2

    def test_what_is_held_is_the_same_problem(self):
        X, y = make_sinc2d(1000, random_state=0)
        functions = RBF(2.5).bind(X)
        stand_in = compress_kernel(functions, X, 1e-5, 500)
        problem = GaussianProblem(
            LazyDesign(functions, X), y[:, None], np.ones(1000), np.ones(1000, dtype=bool), stand_in=stand_in
        )
        held = problem.held()
        assert isinstance(held.design, DenseDesign)
        np.testing.assert_allclose(held.columns(np.arange(50)), problem.columns(np.arange(50)), rtol=1e-14)
        np.testing.assert_allclose(held.projection, problem.projection, rtol=1e-10, atol=1e-10)
        plain = posed(*draw(0))
        assert plain.held() is plain

    def test_a_model_says_whether_it_hides_functions(self):
        x = np.linspace(-1.0, 1.0, 20)
        Phi = np.column_stack([x, x + 1e-7 * x**2, np.cos(x)])
        data = Gram(posed(Phi, x[:, None], np.ones(20)))
        alpha = np.array([1e-6 * np.sum(x**2)])  # 1e-6 of the function of unit norm
        hiding = GaussianModel.weighing(data, [0], alpha, 1e4, False)
        assert hiding.hides
        assert not hiding.exactly().hides
        apart = Gram(posed(Phi[:, [0, 2]], x[:, None], np.ones(20)))
        assert not GaussianModel.weighing(apart, [0], alpha, 1e4, False).hides
