"""The loop, and exchange, merge and split against brute force, and what they find."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest

from sparsebayes import RVC, RVR, Sequential, SparseBayesRegressor, datasets
from sparsebayes.basis import RBF, Bias, Heaviside, LinearSpline
from sparsebayes.design import DenseDesign
from sparsebayes.inference.models.active import ActiveSet
from sparsebayes.inference.models.evidence import Scores
from sparsebayes.inference.models.laplace import LaplaceActive, LaplaceProblem
from sparsebayes.inference.models.problem import GaussianProblem
from sparsebayes.inference.search.climb import choose, climb
from sparsebayes.inference.search.moves import Linearised, best_merges, best_splits, perform
from sparsebayes.likelihood import Bernoulli


def brute_evidence(Phi, t, weights, chosen, alpha, beta):
    """Log of N(t | 0, C) for every target, by dense algebra on the rows."""
    C = np.diag(1.0 / (beta * weights)) + (Phi[:, chosen] / alpha) @ Phi[:, chosen].T
    _, log_det = np.linalg.slogdet(2 * np.pi * C)
    # A weight of k stands for k rows: the density of the mean of k equal rows lacks this factor.
    shift = 0.5 * t.shape[1] * (np.sum((weights - 1) * np.log(beta / (2 * np.pi))) - np.sum(np.log(weights)))
    return shift - 0.5 * t.shape[1] * log_det - 0.5 * np.sum(t * np.linalg.solve(C, t))


def model(targets=1, seed=0, n=40, m=25):
    rng = np.random.default_rng(seed)
    common = rng.standard_normal((n, 1))
    Phi = 2.0 * common + rng.standard_normal((n, m))  # correlations about 0.8
    t = Phi[:, :3] @ rng.standard_normal((3, targets)) + rng.standard_normal((n, targets))
    weights = rng.integers(1, 3, n).astype(float)
    problem = GaussianProblem(DenseDesign(Phi), t, weights, np.ones(m, dtype=bool))
    chosen, alpha, beta = [1, 5, 7, 20], np.array([0.5, 2.0, 1.0, 4.0]), 1.3
    active = ActiveSet.from_model(problem, chosen, alpha, beta)

    def evidence(chosen, alpha):
        return brute_evidence(Phi, t, weights, chosen, alpha, beta)

    return active, evidence


@pytest.mark.parametrize("targets", [1, 3])
def test_every_exchange_is_exact(targets):
    active, evidence = model(targets)
    here = evidence(active.indices, active.alpha)
    assert active.evidence() == pytest.approx(here, rel=1e-10)
    found = Linearised.of(active)
    for j in range(active.size):
        rest, alpha = np.delete(active.indices, j), np.delete(active.alpha, j)
        assert found.lost([j]) == pytest.approx(here - evidence(rest, alpha), rel=1e-9)
        best, added = found.additions([j])
        gains = added - found.lost([j])
        for i in range(25):
            if i in active.indices or not np.isfinite(best[i]):
                assert gains[i] == -np.inf
                continue
            there = evidence(np.append(rest, i), np.append(alpha, best[i]))
            assert gains[i] == pytest.approx(there - here, rel=1e-9, abs=1e-9)
            for factor in (0.9, 1.1):
                assert evidence(np.append(rest, i), np.append(alpha, factor * best[i])) <= there


@pytest.mark.parametrize("propose", [best_merges, best_splits])
def test_merges_and_splits_are_exact(propose):
    active, evidence = model(targets=2, seed=3)
    here = evidence(active.indices, active.alpha)
    swaps = list(propose(active, -1e9))
    if propose is best_splits:  # these have to bring more than one weight is worth
        assert all(swap.gain > 0.5 * np.log(active.problem.n_effective) for swap in swaps)
        active.alpha = active.alpha * 1.0
    for swap in swaps:
        keep = [k for k in range(active.size) if k not in swap.out]
        chosen = [*np.take(active.indices, keep), *swap.into]
        there = evidence(chosen, np.append(active.alpha[keep], swap.alpha))
        assert swap.gain == pytest.approx(there - here, rel=1e-8, abs=1e-8)
    assert swaps


def test_a_move_that_is_performed_has_the_predicted_gain():
    active, _ = model(seed=5)
    found = Linearised.of(active)
    gains = np.array([found.additions([j])[1] - found.lost([j]) for j in range(active.size)])
    j, i = np.unravel_index(int(np.argmax(gains)), gains.shape)
    best, _ = found.additions([int(j)])
    from sparsebayes.inference.search.moves import Swap

    after = perform(active, Swap("exchange", (int(j),), (int(i),), (float(best[i]),), float(gains[j, i])))
    assert after is not None
    assert after.evidence() - active.evidence() == pytest.approx(gains[j, i], rel=1e-9)


def test_statistics_without_a_function_at_a_laplace_mode():
    """Linearised at the mode, taking out and putting back the same function changes nothing."""
    rng = np.random.default_rng(2)
    Phi = rng.standard_normal((50, 12))
    y = (Phi[:, 0] + 0.5 * rng.standard_normal(50) > 0).astype(float)
    problem = LaplaceProblem(DenseDesign(Phi), Bernoulli(y, np.ones(50)), np.ones(12, dtype=bool))
    active = LaplaceActive.from_model(problem, [0, 3, 6], np.array([0.5, 2.0, 3.0]))
    s, q2 = Linearised.of(active).without([1])
    variance, mean = active.covariance[1, 1], active.mean[1]
    assert s[3] == pytest.approx(1 / variance - 2.0, rel=1e-8)
    assert q2[3] == pytest.approx((mean / variance) ** 2, rel=1e-6)


def correlated(seed, n=60, m=120, true=5):
    """Columns with pairwise correlation above 0.9."""
    rng = np.random.default_rng(seed)
    Phi = 4.0 * rng.standard_normal((n, 1)) + rng.standard_normal((n, m))
    w = np.zeros(m)
    w[rng.choice(m, true, replace=False)] = rng.choice([-1.0, 1.0], true) * rng.uniform(1, 2, true)
    return Phi, Phi @ w + 0.5 * rng.standard_normal(n)


@pytest.mark.parametrize("seed", range(8))
def test_exchange_never_ends_below_plain_greed_on_correlated_dictionaries(seed):
    Phi, y = correlated(seed)
    plain = SparseBayesRegressor(fit_intercept=False, noise_variance=0.25).fit(Phi, y)
    model = SparseBayesRegressor(fit_intercept=False, noise_variance=0.25, solver=Sequential(exchange="converged")).fit(
        Phi, y
    )
    assert model.log_marginal_likelihood_ >= plain.log_marginal_likelihood_ - 1e-6
    assert model.certificate_.converged


def test_spline_problem_with_exchange():
    """Plain greed stops at 305.39; the fixed point from the full model reaches 305.52."""
    X, y = datasets.make_sinc(100, noise=0.0)
    solver = Sequential(exchange="converged")
    model = SparseBayesRegressor(
        Bias() + LinearSpline(), fit_intercept=False, noise_variance=0.01**2, solver=solver
    ).fit(X, y)
    assert model.log_marginal_likelihood_ >= 305.5
    assert len(model.relevance_) <= 10
    assert model.certificate_.converged


def test_blocks_with_a_mixed_dictionary():
    """Lecture 4: 12 functions after 224 moves; every function kept is a step."""
    X, y = datasets.make_blocks(1024)
    basis = Heaviside() + RBF(0.01) + RBF(0.03) + RBF(0.1) + RBF(0.3)
    moves = {}
    for exchange in ("never", "always"):
        model = SparseBayesRegressor(
            basis, fit_intercept=False, noise_variance=0.1**2, solver=Sequential(exchange=exchange, batch=1)
        ).fit(X, y)
        assert {f["kind"] for f in model.relevance_functions_} == {"heaviside"}
        assert len(model.relevance_) == 12
        moves[exchange] = model.n_iter_
    assert moves["never"] <= 250
    assert moves["always"] < moves["never"]


@pytest.mark.parametrize("seed", range(4))
def test_split_and_merge_on_two_bumps_off_the_grid(seed):
    X = np.linspace(0, 10, 60)[:, None]
    rng = np.random.default_rng(seed)
    bumps = 1.5 * np.exp(-((X[:, 0] - 3.237) ** 2)) - np.exp(-((X[:, 0] - 6.711) ** 2))
    y = bumps + 0.02 * rng.standard_normal(60)
    grid = RVR(gamma=1.0).fit(X, y)
    free = RVR(gamma=1.0, solver=Sequential(split_merge=True)).fit(X, y)
    assert len(free.relevance_) < len(grid.relevance_)
    assert free.log_marginal_likelihood_ > grid.log_marginal_likelihood_
    for centre in (3.237, 6.711):
        assert np.min(np.abs(free.relevance_vectors_ - centre)) < 0.02
    for record, following in zip(free.history_, free.history_[1:], strict=False):
        assert following.start != record.start or following.objective >= record.objective - 1e-7


def test_exchange_in_classification_ends_no_lower():
    data = datasets.load("ripley_synth")
    X, y = data.data[data.train_idx], data.target[data.train_idx]
    plain = RVC(gamma=4.0).fit(X, y)
    model = RVC(gamma=4.0, solver=Sequential(exchange="converged")).fit(X, y)
    assert model.log_marginal_likelihood_ >= plain.log_marginal_likelihood_ - 1e-6


# -- the loop, on models that keep or break their promises -----------------------------------------------------------


@dataclass(frozen=True)
class Promising:
    """A model whose every function promises ten nats, and brings what is written down; some do not go together."""

    indices: list[int]
    brings: tuple[float, ...]
    clash: tuple[int, ...] = ()
    fine: bool = False

    @property
    def objective(self) -> float:
        together = sum(i in self.clash for i in self.indices) > 1
        return sum(self.brings[i] for i in self.indices) - 100.0 * together + 1e-6 * self.fine

    def scores(self) -> Scores:
        inside = np.isin(np.arange(len(self.brings)), self.indices)
        return Scores(np.where(inside, 0.0, 10.0 - np.arange(len(inside))), np.ones(len(inside)))

    def overlaps(self, functions: Any) -> Any:
        return np.eye(len(functions))

    def joined(self, functions: Any, alpha: Any, tol: float) -> Promising:
        return replace(self, indices=[*self.indices, *functions.tolist()])

    def settled(self, tol: float) -> Promising:
        return replace(self, fine=True)


@pytest.mark.parametrize(
    ("brings", "clash", "kept"),
    [
        pytest.param((3.0, 2.0, 1.0), (), [0, 1, 2], id="as promised"),
        pytest.param((3.0, -20.0, 1.0), (), [0, 2], id="one lies"),
        pytest.param((-20.0, 2.0, 1.0), (), [1, 2], id="the best lies"),
        pytest.param((3.0, 2.0, 1.0), (0, 1), [0, 2], id="two clash"),
    ],
)
def test_a_batch_stands_only_where_the_objective_rises(brings, clash, kept):
    steps = []
    found = climb(Promising([], brings, clash), 1e-3, accepted=lambda before, after: steps.append((before, after)))
    assert sorted(found.indices) == kept
    assert all(after.objective > before.objective for before, after in steps)
    assert found.fine  # where nothing gains any more, all precisions are settled closely


def test_a_tie_goes_to_the_lowest_number():
    gain = np.array([1.0, 5.0, 5.0 * (1.0 + 1e-12), 4.0])
    for width, expected in ((1, [1]), (3, [1, 2, 3])):
        assert choose(Promising([], (1.0,) * 4), gain, width, 1e-3, 0.1, 0.5).tolist() == expected
