"""SBLA against direct solves; order-recursive matching pursuit against trying everything."""

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from sparsebayes import RVC, RVR, SparseBayesRegressor, datasets
from sparsebayes.basis import Bias, Linear
from sparsebayes.design import DenseDesign
from sparsebayes.inference import Status, SubsetSelection
from sparsebayes.inference.models.problem import GaussianProblem
from sparsebayes.inference.solvers.subset import Subset
from sparsebayes.studies.ormp import ormp


def kernel_problem(seed, n=80, targets=2):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-3.0, 3.0, (n, 2))
    K = np.exp(-0.3 * ((X[:, None] - X) ** 2).sum(axis=2))
    T = np.sin(X[:, :1]) + 0.1 * rng.standard_normal((n, targets))
    return K, T, GaussianProblem(DenseDesign(K), T, np.ones(n), np.ones(n, dtype=bool), None, np.arange(n))


def test_rank_one_updates_agree_with_a_direct_solve():
    K, T, problem = kernel_problem(0)
    ridge = 1e-3
    subset, rng = Subset(problem, ridge), np.random.default_rng(1)
    for _ in range(120):
        if subset.size > 25 or (subset.size > 3 and rng.random() < 0.4):
            k = int(rng.integers(subset.size))
            before, loss = subset.misfit, subset.losses()[k]
            subset.remove(k)
            assert subset.misfit - before == pytest.approx(loss, rel=1e-5, abs=1e-8)  # eq. 16
        else:
            free = np.setdiff1d(np.arange(80), subset.indices)
            assert subset.add(int(rng.choice(free)))
        P = K[:, subset.indices]
        H = P.T @ P + ridge * np.eye(subset.size)
        direct = np.linalg.inv(H)
        scale = np.max(np.abs(direct))
        np.testing.assert_allclose(subset.inverse / scale, direct / scale, atol=1e-8)
        w = np.linalg.solve(H, P.T @ T)
        np.testing.assert_allclose(subset.weights, w, atol=1e-8 * np.max(np.abs(w)))
        assert subset.log_det == pytest.approx(np.linalg.slogdet(H)[1], abs=1e-6)


def direct_search(K, t, ridge, threshold, limit):
    """The algorithm as printed, with nothing updated: every step solves anew."""
    P, removed, out = [], 0, None
    epsilon = t @ t / len(t) / threshold
    while removed <= limit:
        w = np.linalg.solve(K[:, P].T @ K[:, P] + ridge * np.eye(len(P)), K[:, P].T @ t)
        score = np.abs(K[:, P] @ w - t)
        score[[*P, *([] if out is None else [out])]] = -1.0
        P, out = [*P, int(np.argmax(score))], None
        R = np.linalg.inv(K[:, P].T @ K[:, P] + ridge * np.eye(len(P)))
        loss = (R @ K[:, P].T @ t) ** 2 / np.diag(R)
        if loss.min() <= epsilon:
            out = P.pop(int(np.argmin(loss)))
            removed += 1
    return P


def test_the_whole_search_agrees_with_direct_solves():
    X, y = datasets.make_sinc(100, noise=0.1, random_state=1)
    K = np.exp(-((X - X.T) ** 2) / 16.0)
    t = y - y.mean()
    model = RVR(gamma=1 / 16, fit_intercept=False, solver="subset").fit(X, t)
    P = direct_search(K, t, 1e-3, 1e4, 10)
    np.testing.assert_array_equal(model.relevance_, np.sort(P))
    assert model.status_ is Status.SUBSET
    ratio = model.alpha_ * model.noise_variance_
    np.testing.assert_allclose(ratio, 1e-3, rtol=1e-9)
    assert model.history_[-1].evidence == pytest.approx(model.log_marginal_likelihood_, abs=1e-5)
    # σ² maximises the evidence along α = λ/σ²
    C = np.eye(100) + K[:, model.relevance_] @ K[:, model.relevance_].T / 1e-3
    assert model.noise_variance_ == pytest.approx(t @ np.linalg.solve(C, t) / 100, rel=1e-6)


def test_a_removed_function_that_never_returns_leaves_more():
    X, y = datasets.make_sinc(100, noise=0.1, random_state=2)
    sizes = {
        how: len(RVR(gamma=1 / 16, solver=SubsetSelection(returning=how)).fit(X, y).relevance_)
        for how in ("later", "at once", "never")
    }
    assert sizes["at once"] <= sizes["later"] < sizes["never"]


def test_functions_without_a_row_take_part():
    rng = np.random.default_rng(3)
    X = rng.uniform(-1.0, 1.0, (60, 2))
    y = 3.0 + 2.0 * X[:, 0] + 0.01 * rng.standard_normal(60)
    model = SparseBayesRegressor(Bias() + Linear(), solver="subset", fit_intercept=False).fit(X, y)
    kinds = [spec["kind"] for spec in model.relevance_functions_]
    assert "bias" in kinds
    assert "linear" in kinds
    assert np.mean((model.predict(X) - y) ** 2) < 1e-3


def test_integer_weights_are_copies():
    X, y = datasets.make_sinc(50, noise=0.1, random_state=4)
    weights = np.random.default_rng(5).integers(1, 4, 50)
    weighted = RVR(gamma=0.1, solver="subset").fit(X, y, sample_weight=weights)
    copied = RVR(gamma=0.1, solver="subset").fit(np.repeat(X, weights, axis=0), np.repeat(y, weights))
    np.testing.assert_allclose(weighted.predict(X), copied.predict(X), rtol=1e-6, atol=1e-8)


def test_classification_is_refused_and_max_iter_is_said():
    X, y = datasets.make_sinc(60, noise=0.1, random_state=6)
    with pytest.raises(ValueError, match="not for two classes"):
        RVC(solver="subset").fit(X, y > 0)
    with pytest.warns(ConvergenceWarning, match="raise max_iter"):
        RVR(gamma=0.1, solver="subset", max_iter=3).fit(X, y)


@pytest.mark.parametrize(
    ("name", "value"), [("ridge", 0.0), ("threshold", np.inf), ("removals", -1), ("returning", True)]
)
def test_settings_out_of_range(name, value):
    X, y = datasets.make_sinc(30, random_state=0)
    with pytest.raises(ValueError, match=f"{name}="):
        RVR(solver=SubsetSelection(**{name: value})).fit(X, y)


def test_order_recursive_matching_pursuit_takes_the_best_at_every_step():
    rng = np.random.default_rng(7)
    Phi = rng.standard_normal((25, 12))
    Phi[:, 11] = Phi[:, 3] + 1e-3 * rng.standard_normal(25)
    t = Phi[:, [1, 4, 7]] @ [3.0, -2.0, 1.0] + 0.1 * rng.standard_normal(25)
    found = ormp(Phi, t, n_functions=5)
    chosen = []
    for step in range(5):

        def rest(i, chosen=tuple(chosen)):
            P = Phi[:, [*chosen, i]]
            return np.sum((t - P @ np.linalg.lstsq(P, t, rcond=None)[0]) ** 2)

        chosen.append(min((i for i in range(12) if i not in chosen), key=rest))
        assert found.indices[step] == chosen[step]
        assert found.errors[step + 1] == pytest.approx(rest(chosen[step], tuple(chosen[:-1])) / 25)
    assert set(found.indices[:3]) == {1, 4, 7}


def test_matching_pursuit_finds_the_jumps_of_clean_blocks():
    t = datasets.make_blocks(256, noise=0.0, random_state=0)[1]
    steps = np.tri(256)
    found = ormp(steps, t, error=1e-12)
    assert len(found.indices) == 12
    np.testing.assert_allclose(steps[:, found.indices] @ found.weights, t, atol=1e-6)
