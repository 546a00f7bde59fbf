"""Ways to the same maximum: from the same model all solvers agree, and from their own starts each proves its end."""

import numpy as np
import pytest
from scipy import sparse
from scipy.sparse.linalg import aslinearoperator

import sparsebayes
from sparsebayes import (
    EM,
    RVC,
    RVR,
    MacKay,
    Sequential,
    SparseBayesClassifier,
    SparseBayesRegressor,
    Variational,
    datasets,
)
from sparsebayes.design import as_design
from sparsebayes.estimators import dictionary
from sparsebayes.inference.models.active import ActiveSet
from sparsebayes.inference.models.problem import GaussianProblem

JOINT = {"mackay": MacKay(), "em": EM(), "variational": Variational()}


def climb(solver, problem, alpha, beta, tol):
    """Run one solver from a given model, its noise fixed."""
    start = ActiveSet.from_model(problem, list(range(problem.n_functions)), alpha, beta)
    state = solver.init(start, False, np.random.default_rng(0))
    for _ in range(100_000):
        if solver.step(state, tol) is None:
            return dict(zip(state.active.indices, state.active.alpha, strict=True)), state.active.evidence()
    raise AssertionError("no end")


@pytest.mark.parametrize("seed", range(5))
def test_from_the_same_model_all_end_in_the_same_precisions(seed):
    """The support of a kernel fit, alone in the dictionary, so that only re-estimation is left."""
    X, y = datasets.make_sinc(100, noise=0.1, random_state=seed)
    model = RVR(gamma=1 / 4**2, noise_variance=0.01).fit(X, y)
    Phi = np.exp(-((X - X[model.relevance_].T) ** 2) / 16.0)
    problem = GaussianProblem(as_design(Phi), (y - y.mean())[:, None], np.ones(100), np.ones(Phi.shape[1], dtype=bool))
    alpha, flat = np.full(Phi.shape[1], 1.0), Variational(0.0, 0.0, 0.0, 0.0)
    ends = [climb(solver, problem, alpha, 100.0, 1e-10) for solver in (Sequential(), MacKay(), EM(), flat)]
    for found, evidence in ends[1:]:
        assert evidence == pytest.approx(ends[0][1], abs=1e-4)
        assert sorted(found) == sorted(ends[0][0])
        np.testing.assert_allclose([found[i] for i in ends[0][0]], list(ends[0][0].values()), rtol=1e-3)


def kernel_problems():
    yield *datasets.make_sinc(100, noise=0.1, random_state=0), 1 / 4**2
    yield *datasets.make_sinc2d(120, noise=0.1, random_state=2), 1 / 2.5**2


def test_from_their_own_starts_all_are_certified():
    """At fixed noise; the sequential algorithm begins in eight orders besides its own and keeps the best."""
    for X, y, gamma in kernel_problems():
        ends = {}
        for name, solver in JOINT.items():
            model = RVR(gamma=gamma, noise_variance=0.01, solver=solver).fit(X, y)
            assert model.certificate_.converged
            ends[name] = model.log_marginal_likelihood_
        orders = [Sequential(), *(Sequential(selection="random", random_state=k) for k in range(8))]
        several = [RVR(gamma=gamma, noise_variance=0.01, solver=solver).fit(X, y) for solver in orders]
        assert all(model.certificate_.converged for model in several)
        assert max(model.log_marginal_likelihood_ for model in several) >= ends["mackay"] - 0.5


@pytest.mark.parametrize("name", ["mackay", "em"])
def test_joint_solvers_classify_as_the_sequential_one(name):
    X, y = datasets.load("iris", return_X_y=True)
    one = SparseBayesClassifier(shared_support=False).fit(X, y)
    other = SparseBayesClassifier(solver=name).fit(X, y)
    assert other.certificate_.converged
    assert other.log_marginal_likelihood_ == pytest.approx(one.log_marginal_likelihood_, abs=1e-3)
    np.testing.assert_allclose(other.predict_proba(X), one.predict_proba(X), atol=1e-2)


@pytest.mark.parametrize("name", sorted(JOINT))
def test_storage_makes_no_difference(name):
    X, y, _ = datasets.make_spikes(25, 40, 3, noise=0.05, random_state=0)
    X = X * (np.abs(X) > 0.05)
    for make, target in ((SparseBayesRegressor, y), (SparseBayesClassifier, (y > np.median(y)).astype(int))):
        dense = make(solver=name).fit(X, target)
        for store in (sparse.csr_array, aslinearoperator):
            other = make(solver=name).fit(store(X), target)
            np.testing.assert_array_equal(dense.relevance_, other.relevance_)
            np.testing.assert_allclose(other.coef_, dense.coef_, atol=1e-6)


@pytest.mark.parametrize("name", sorted(JOINT))
@pytest.mark.parametrize("estimator", [RVR, RVC])
def test_lazy_columns(name, estimator, monkeypatch):
    rng = np.random.default_rng(2)
    X = rng.uniform(-3, 3, (40, 2))
    y = np.sin(X[:, 0]) + 0.2 * rng.standard_normal(40)
    y = y if estimator is RVR else (y > 0).astype(int)
    dense = estimator(gamma=0.3, solver=name).fit(X, y)
    monkeypatch.setattr(dictionary, "_DENSE_BYTES", 0)
    lazy = estimator(gamma=0.3, solver=name).fit(X, y)
    assert lazy.log_marginal_likelihood_ == pytest.approx(dense.log_marginal_likelihood_, abs=1e-2)


@pytest.mark.parametrize("name", sorted(JOINT))
def test_weights_are_repeated_rows(name):
    rng = np.random.default_rng(3)
    X = rng.standard_normal((30, 6))
    y = X[:, 0] + 0.3 * rng.standard_normal(30)
    weight = rng.integers(1, 4, 30)
    one = SparseBayesRegressor(solver=name).fit(X, y, weight)
    other = SparseBayesRegressor(solver=name).fit(np.repeat(X, weight, axis=0), np.repeat(y, weight))
    np.testing.assert_allclose(one.coef_, other.coef_, atol=1e-6)
    assert one.log_marginal_likelihood_ == pytest.approx(other.log_marginal_likelihood_, abs=1e-6)


def test_leaving_by_a_limit_ends_as_well():
    X, y = datasets.make_sinc(60, noise=0.1, random_state=0)
    limited = RVR(gamma=1 / 4**2, solver=MacKay(alpha_max=1e9)).fit(X, y)
    assert limited.certificate_.converged
    early = RVR(gamma=1 / 4**2, solver="mackay").fit(X, y)
    assert limited.log_marginal_likelihood_ == pytest.approx(early.log_marginal_likelihood_, abs=2.0)


@pytest.mark.parametrize("solver", [MacKay(alpha_max=1e6, tol=1e-3), EM(b=1e-3), Variational(c=0.1)])
def test_a_model_file_keeps_the_solver(solver, tmp_path):
    X, y = datasets.make_sinc(50, noise=0.1, random_state=0)
    model = RVR(gamma=1 / 4**2, solver=solver).fit(X, y)
    sparsebayes.save(model, tmp_path / "model.sb")
    again = sparsebayes.load(tmp_path / "model.sb")
    assert again.solver.get_params() == solver.get_params()
    assert type(again.solver) is type(solver)
    np.testing.assert_array_equal(again.predict(X), model.predict(X))
