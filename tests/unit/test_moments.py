"""A design without rows: its products, its root, and that solvers see the same problem as on data."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

from sparsebayes.design import DenseDesign, MomentDesign
from sparsebayes.inference import Sequential, Settings
from sparsebayes.inference.fit.run import run
from sparsebayes.inference.models.problem import GaussianProblem, moment_problem


def data(n=40, m=15, t=1, seed=0):
    rng = np.random.default_rng(seed)
    Phi = np.exp(-((rng.uniform(-3, 3, n)[:, None] - np.linspace(-3, 3, m)) ** 2))
    return Phi, Phi[:, [3, 9]] @ rng.standard_normal((2, t)) + 0.05 * rng.standard_normal((n, t))


def moments(Phi, T):
    return MomentDesign(Phi.T @ Phi, Phi.T @ T, np.sum(T**2, axis=0), len(Phi))


def test_products_that_need_no_rows():
    Phi, T = data()
    design = moments(Phi, T)
    assert design.shape == (0, 15)
    assert_allclose(design.gram([2, 5]), Phi.T @ Phi[:, [2, 5]])
    assert_allclose(design.sqnorms(), np.sum(Phi**2, axis=0))


@pytest.mark.parametrize(
    "use",
    [
        lambda d: d.columns([0]),
        lambda d: d.matvec([1.0], [0]),
        lambda d: d.correlate(np.zeros(0)),
        lambda d: d.extend(d),
        lambda d: d.gram([0], np.ones(3)),
        lambda d: d.sqnorms(np.ones(3)),
    ],
)
def test_what_needs_rows_says_so(use):
    with pytest.raises(TypeError, match="needs rows"):
        use(moments(*data()))


@pytest.mark.parametrize("t", [1, 4])
def test_the_root_has_the_moments(t):
    Phi, T = data(t=t)
    root = moments(Phi, T).root()
    assert_allclose(root.columns.T @ root.columns, Phi.T @ Phi, atol=1e-10)
    assert_allclose(root.columns.T @ root.targets, Phi.T @ T, atol=1e-10)
    assert_allclose(np.sum(root.targets**2, axis=0), np.sum(T**2, axis=0))


@pytest.mark.parametrize("t", [1, 4])
@pytest.mark.parametrize("noise", [0.01, None])
def test_solvers_find_on_moments_what_they_find_on_data(t, noise):
    Phi, T = data(t=t)
    settings = Settings(tol=1e-6, max_iter=1000, noise_variance=noise)
    everything = np.ones(Phi.shape[1], dtype=bool)
    on_data = GaussianProblem(DenseDesign(Phi), T, np.ones(len(Phi)), everything)
    results = [
        run(problem, Sequential(), settings, np.random.default_rng(0))
        for problem in (on_data, moment_problem(moments(Phi, T)))
    ]
    first, second = (result.active for result in results)
    assert sorted(first.indices) == sorted(second.indices)
    assert_allclose(second.evidence(), first.evidence(), rtol=1e-8)
    assert_allclose(second.mean[np.argsort(second.indices)], first.mean[np.argsort(first.indices)], atol=1e-5)
    assert_allclose(1.0 / second.beta, 1.0 / first.beta, rtol=1e-5)


def test_copies_dependent_functions_and_zero_functions():
    Phi, T = data()
    Phi = np.hstack([Phi, np.zeros((40, 1)), Phi[:, [0]] + 3.0 * Phi[:, [1]]])
    once = moments(Phi, T)
    twice = [*range(17), 3, 4]  # the last two are copies
    design = MomentDesign(once.G[np.ix_(twice, twice)], once.b[twice], once.tt, once.N)
    root = design.root()
    assert len(root.columns) == 16  # 15 directions and the rest
    assert_allclose(root.columns.T @ root.columns, design.G, atol=1e-9)
    assert np.flatnonzero(~moment_problem(design).eligible).tolist() == [15, 17, 18]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((np.eye(2), np.ones(3), 1.0, 5), "expected"),
        ((np.ones((2, 3)), np.ones(2), 1.0, 5), "expected"),
        ((np.array([[1.0, np.nan], [np.nan, 1.0]]), np.ones(2), 1.0, 5), "NaN"),
        ((np.eye(2), np.ones(2), 4.0, 0), "N=0"),
    ],
)
def test_bad_moments_are_refused(arguments, message):
    with pytest.raises(ValueError, match=message):
        MomentDesign(*arguments)


def test_moments_of_nothing_are_refused():
    with pytest.raises(ValueError, match="positive semi-definite"):
        MomentDesign([[1.0, 2.0], [2.0, 1.0]], [0.0, 0.0], 1.0, 5).root()
    with pytest.raises(ValueError, match="no function"):
        MomentDesign(np.eye(2), [1.0, 1.0], 1.0, 5).root()
