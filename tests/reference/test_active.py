"""The exact posterior after many moves against extended precision, and its algebra against the definitions."""

from dataclasses import replace

import numpy as np
import pytest
from extended import log_evidence, posterior

from sparsebayes.basis import RBF, Bias, LinearSpline
from sparsebayes.design import DenseDesign
from sparsebayes.inference.models.active import ActiveSet
from sparsebayes.inference.models.problem import GaussianProblem
from sparsebayes.inference.objective import NoiseProfile, score

MOVES = 30


def problem_of(Phi, t, weights=None):
    weights = np.ones(len(t)) if weights is None else weights
    return GaussianProblem(DenseDesign(Phi), t.reshape(len(t), -1), weights, np.ones(Phi.shape[1], dtype=bool))


def gaussian_dictionary(rng):
    Phi = rng.standard_normal((40, 60))
    t = Phi[:, rng.choice(60, 5, replace=False)] @ rng.standard_normal(5) + 0.3 * rng.standard_normal(40)
    return Phi, t, 1 / 0.3**2


def kernel_dictionary(basis, noise):
    def make(rng):
        x = np.linspace(-10, 10, 100)[:, None]
        t = np.sinc(x[:, 0] / np.pi) + noise * rng.standard_normal(100)
        return basis.bind(x).evaluate(x), t, 1 / noise**2

    return make


def random_move(active, rng):
    scores = score(active)
    gaining = np.flatnonzero(scores.gain > 1e-6)
    if len(gaining) == 0:
        return None
    i = int(rng.choice(gaining))
    return active.changed(i, float(scores.best[i]))


def errors(active, Phi, t):
    covariance, mean, S, Q = posterior(Phi, t, active.indices, active.alpha, active.beta)
    norms = active.beta * np.sum(Phi**2, axis=0)
    return {
        "covariance": np.max(np.abs(active.covariance - covariance)) / np.max(np.abs(covariance)),
        "mean": np.max(np.abs(active.mean[:, 0] - mean)) / np.max(np.abs(mean)),
        "Q": np.max(np.abs(active.Q[:, 0] - Q)) / np.max(np.abs(Q)),
        "S": np.max(np.abs(active.S - S) / norms),
    }


@pytest.mark.parametrize(
    ("make", "bound"),
    [
        (gaussian_dictionary, 1e-8),
        (kernel_dictionary(RBF(4.0), 0.1), 1e-6),
        (kernel_dictionary(Bias() + LinearSpline(), 0.01), 1e-6),
    ],
    ids=["gaussian", "rbf", "spline"],
)
def test_many_moves_equal_extended_precision(make, bound):
    worst = {}
    for sequence in range(200):
        rng = np.random.default_rng(sequence)
        Phi, t, beta = make(rng)
        active = ActiveSet(problem_of(Phi, t), beta)
        for _ in range(MOVES):
            moved = random_move(active, rng)
            if moved is None:
                break
            active = moved
        if active.size:
            for name, error in errors(active, Phi, t).items():
                worst[name] = max(worst.get(name, 0.0), float(error))
    assert max(worst.values()) <= bound, worst


def test_every_move_gains_what_was_predicted():
    rng = np.random.default_rng(0)
    Phi, t, beta = gaussian_dictionary(rng)
    active = ActiveSet(problem_of(Phi, t), beta)
    for _ in range(60):
        scores = score(active)
        gaining = np.flatnonzero(scores.gain > 1e-9)
        if len(gaining) == 0:
            break
        before = log_evidence(Phi, t, active.indices, active.alpha, 1 / active.beta)
        i = int(rng.choice(gaining))
        active = active.changed(i, scores.best[i])
        after = log_evidence(Phi, t, active.indices, active.alpha, 1 / active.beta)
        assert after - before == pytest.approx(scores.gain[i], abs=1e-8)
        assert active.evidence() == pytest.approx(after, abs=1e-8)


def test_best_alpha_is_the_maximum_of_the_evidence():
    rng = np.random.default_rng(1)
    Phi, t, beta = gaussian_dictionary(rng)
    active = ActiveSet(problem_of(Phi, t), beta)
    for i in (3, 17, 40):
        active = active.changed(i, 1.0)
    scores = score(active)
    for i in range(Phi.shape[1]):
        held = [k for k in active.indices if k != i]
        alpha_held = np.array([a for k, a in zip(active.indices, active.alpha, strict=True) if k != i])
        without = log_evidence(Phi, t, held, alpha_held, 1 / beta)
        grid = [
            log_evidence(Phi, t, [*held, i], np.append(alpha_held, a), 1 / beta) for a in np.geomspace(1e-3, 1e5, 60)
        ]
        if np.isfinite(scores.best[i]):
            best = log_evidence(Phi, t, [*held, i], np.append(alpha_held, scores.best[i]), 1 / beta)
            assert best >= max(*grid, without) - 1e-9
        else:
            assert without >= max(grid) - 1e-6


def test_weights_are_repetitions():
    rng = np.random.default_rng(2)
    Phi, t, beta = gaussian_dictionary(rng)
    counts = rng.integers(1, 4, len(t))
    weighted = ActiveSet(problem_of(Phi, t, counts.astype(float)), beta)
    repeated = ActiveSet(problem_of(np.repeat(Phi, counts, axis=0), np.repeat(t, counts)), beta)
    for i in (0, 5, 9):
        weighted, repeated = weighted.changed(i, 2.0), repeated.changed(i, 2.0)
    np.testing.assert_allclose(weighted.S, repeated.S, rtol=1e-10)
    np.testing.assert_allclose(weighted.Q, repeated.Q, rtol=1e-9, atol=1e-9)
    assert weighted.evidence() == pytest.approx(repeated.evidence(), abs=1e-9)


def test_shared_targets_are_independent_models_with_common_precisions():
    rng = np.random.default_rng(3)
    Phi, t, beta = gaussian_dictionary(rng)
    T = np.column_stack([t, rng.standard_normal(len(t)), Phi[:, 3]])
    together = ActiveSet(problem_of(Phi, T), beta)
    for i in (3, 8):
        together = together.changed(i, 1.5)
    single = [ActiveSet.from_model(problem_of(Phi, T[:, k]), [3, 8], np.array([1.5, 1.5]), beta) for k in range(3)]
    assert together.evidence() == pytest.approx(sum(s.evidence() for s in single), abs=1e-9)
    scores = score(together)
    i = int(np.argmax(np.where(scores.in_model, 0, scores.gain)))
    assert together.changed(i, scores.best[i]).evidence() - together.evidence() == pytest.approx(
        scores.gain[i], abs=1e-8
    )


def test_noise_profile_is_the_evidence():
    rng = np.random.default_rng(4)
    Phi, t, beta = gaussian_dictionary(rng)
    active = ActiveSet.from_model(problem_of(Phi, t), [1, 2, 30], np.array([0.5, 3.0, 10.0]), beta)
    profile = NoiseProfile.of(active)
    for log_beta in (-2.0, 0.0, 2.4):
        brute = log_evidence(Phi, t, active.indices, active.alpha, np.exp(-log_beta))
        assert profile.evidence(log_beta) == pytest.approx(brute, abs=1e-9)
        slope = (profile.evidence(log_beta + 1e-5) - profile.evidence(log_beta - 1e-5)) / 2e-5
        assert profile.slope(log_beta) == pytest.approx(slope, abs=1e-4)
    best, gain = replace(profile, here=0.0, highest=50.0).maximum()
    assert profile.evidence(0.0) + gain >= max(profile.evidence(v) for v in np.linspace(-6, 6, 200)) - 1e-9
    assert abs(profile.slope(best)) < 1e-6


def test_a_function_in_the_span_may_enter_and_leave():
    rng = np.random.default_rng(5)
    Phi = rng.standard_normal((30, 4))
    Phi = np.column_stack([Phi, Phi[:, 0] - 2 * Phi[:, 1]])
    active = ActiveSet(problem_of(Phi, Phi[:, 0] + rng.standard_normal(30)), 1.0)
    for i in (0, 1, 4):
        active = active.changed(i, 1.0)
    for idx in ([0, 1, 4], [1, 4]):
        dense = np.linalg.inv(np.eye(len(idx)) + Phi[:, idx].T @ Phi[:, idx])
        np.testing.assert_allclose(active.covariance, dense, atol=1e-12)
        fresh = ActiveSet.from_model(active.problem, idx, np.ones(len(idx)), 1.0)
        np.testing.assert_allclose(active.S, fresh.S, atol=1e-9)
        np.testing.assert_allclose(active.Q, fresh.Q, atol=1e-9)
        np.testing.assert_allclose(active.evidence(), fresh.evidence(), atol=1e-9)
        if len(idx) == 3:
            active = active.changed(0, np.inf)


def test_extended_dictionary_keeps_the_model():
    rng = np.random.default_rng(6)
    Phi, t, beta = gaussian_dictionary(rng)
    active = ActiveSet(problem_of(Phi[:, :20], t), beta)
    active = active.changed(4, 1.0).changed(11, 2.0).extended(problem_of(Phi, t))
    fresh = ActiveSet.from_model(problem_of(Phi, t), [4, 11], np.array([1.0, 2.0]), beta)
    np.testing.assert_allclose(active.S, fresh.S, rtol=1e-10)
    np.testing.assert_allclose(active.Q, fresh.Q, atol=1e-8)


def test_moves_are_those_of_the_papers_formulae():
    # T&F eqs 28-31 (addition), 33-36 (re-estimation) and 38-41 (deletion).
    rng = np.random.default_rng(7)
    Phi, t, beta = gaussian_dictionary(rng)
    before = ActiveSet.from_model(problem_of(Phi, t), [4, 11, 30], np.array([1.0, 2.0, 0.5]), beta)
    Sigma, mu, S, Q = before.covariance, before.mean[:, 0], before.S, before.Q[:, 0]
    Phi_a = Phi[:, before.indices]

    after, i, alpha = before.changed(7, 3.0), 7, 3.0
    spread = beta * (Sigma @ Phi_a.T @ Phi[:, i])
    sigma = 1.0 / (alpha + S[i])
    correlation = beta * (Phi.T @ (Phi[:, i] - Phi_a @ spread))
    np.testing.assert_allclose(after.covariance[:3, :3], Sigma + sigma * np.outer(spread, spread), rtol=1e-9)  # 28
    np.testing.assert_allclose(after.covariance[3], np.append(-sigma * spread, sigma), rtol=1e-9)
    np.testing.assert_allclose(after.mean[:, 0], np.append(mu - sigma * Q[i] * spread, sigma * Q[i]), rtol=1e-9)  # 29
    np.testing.assert_allclose(after.S, S - sigma * correlation**2, rtol=1e-9, atol=1e-9)  # 30
    np.testing.assert_allclose(after.Q[:, 0], Q - sigma * Q[i] * correlation, rtol=1e-9, atol=1e-9)  # 31

    for alpha in (9.0, np.inf):
        after, column = before.changed(11, alpha), Sigma[:, 1]
        kappa = 1.0 / (Sigma[1, 1] + 1.0 / (alpha - 2.0))
        stays = np.ones(3, dtype=bool) if np.isfinite(alpha) else np.arange(3) != 1
        correlation = beta * (Phi.T @ (Phi_a @ column))
        changed = Sigma - kappa * np.outer(column, column)
        np.testing.assert_allclose(after.covariance, changed[np.ix_(stays, stays)], rtol=1e-9)  # 33, 38
        np.testing.assert_allclose(after.mean[:, 0], (mu - kappa * mu[1] * column)[stays], rtol=1e-9)  # 34, 39
        np.testing.assert_allclose(after.S, S + kappa * correlation**2, rtol=1e-9, atol=1e-9)  # 35, 40
        np.testing.assert_allclose(after.Q[:, 0], Q + kappa * mu[1] * correlation, rtol=1e-9, atol=1e-9)  # 36, 41
