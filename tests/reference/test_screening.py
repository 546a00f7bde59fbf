"""A certificate that evaluates few functions says what one of all of them would."""

import numpy as np
import pytest

from sparsebayes import RVR, datasets
from sparsebayes.basis import RBF
from sparsebayes.basis.arrays import HOST
from sparsebayes.design import DenseDesign, LazyDesign, compress_kernel
from sparsebayes.inference.models import screening
from sparsebayes.inference.models.evidence import best_moves
from sparsebayes.inference.models.screening import Directions, may_gain

WIDTH = 2.5


def brute_statistics(Phi, kept, alpha, beta, t):
    """S and Q of all columns, straight from T&F eqs 24-25."""
    active = Phi[:, kept]
    sigma = np.linalg.inv(beta * active.T @ active + np.diag(alpha))
    residual = t - beta * active @ (sigma @ (active.T @ t))
    projected = beta * Phi.T @ active
    S = beta * np.einsum("nm,nm->m", Phi, Phi) - np.einsum("ma,ab,mb->m", projected, sigma, projected)
    return S, beta * Phi.T @ residual, residual


@pytest.mark.parametrize("seed", range(3))
def test_the_certificate_of_a_compressed_fit_holds_for_all_functions(seed):
    X, y = datasets.make_sinc2d(900, random_state=seed)
    model = RVR(gamma=1 / WIDTH**2, fit_intercept=False).fit(X, y)
    assert model.certificate_.compression_error == 0.0
    Phi = RBF(WIDTH).bind(X).evaluate(X)
    kept, alpha = model.relevance_, model.alpha_
    S, Q, _ = brute_statistics(Phi, kept, alpha, 1.0 / model.noise_variance_, y)
    outside = np.setdiff1d(np.arange(len(y)), kept)
    ratio = Q[outside] ** 2 / S[outside]
    assert outside[np.argmax(ratio)] == model.certificate_.excluded_function
    gain = best_moves(np.full(len(outside), np.inf), S[outside], Q[outside] ** 2, 1)[1]
    assert np.max(gain) <= model.tol
    assert np.max(gain) == pytest.approx(model.certificate_.excluded_gain, abs=1e-6)


@pytest.mark.parametrize("tolerance", [1e-2, 1e-4])
def test_what_the_bounds_rule_out_cannot_gain(tolerance):
    X, y = datasets.make_sinc2d(600, random_state=0)
    functions = RBF(WIDTH).bind(X)
    Phi = LazyDesign(functions, X).columns(slice(None))
    close = compress_kernel(functions, X, tolerance, 500)
    kept, alpha, beta = np.arange(0, 600, 20), np.full(30, 0.5), 100.0
    S, Q, residual = brute_statistics(Phi, kept, alpha, beta, y)
    rough = close.columns(slice(None))
    active = Phi[:, kept]
    sigma = np.linalg.inv(beta * active.T @ active + np.diag(alpha))
    projected = beta * rough.T @ active
    rough_S = beta * np.einsum("nm,nm->m", rough, rough) - np.einsum("ma,ab,mb->m", projected, sigma, projected)
    rough_Q = beta * rough.T @ residual
    left = may_gain(rough_S, rough_Q[:, None], beta, residual[:, None], np.ones(600), close, np.ones(600, dtype=bool))
    assert np.all(left[Q**2 > S])
    assert np.sum(left) < 600 or tolerance > 1e-3


def coarse(tolerance=0.1, n=300):
    """A dictionary, and a design of low rank in its place."""
    X, _ = datasets.make_sinc2d(n, random_state=1)
    functions = RBF(WIDTH).bind(X)
    close = compress_kernel(functions, X, tolerance, n)
    return functions.evaluate(X), close, close.columns(slice(None))


def hidden_gain(exact, rough, s, root_curvature, noise):
    """A vector g with which one function has q² = 4 s, and the stand-in says that it has less than s.

    Columns times the root of the curvature are ``exact`` and ``rough``; what is added to the noise is orthogonal to all
    of the stand-in's columns, which therefore know nothing of it.
    """
    left, values, _ = np.linalg.svd(rough)
    span = left[:, : int(np.sum(values > 1e-10 * values[0]))]
    outside = exact - span @ (span.T @ exact)
    weak = (rough.T @ noise) ** 2 < 0.5 * s
    m = int(np.argmax(np.where(weak, np.sum(outside**2, axis=0), -1.0)))
    q, unit = exact[:, m] @ noise, outside[:, m] / np.linalg.norm(outside[:, m])
    return root_curvature * (noise + unit * (2.0 * np.sqrt(s[m]) - q) / (exact[:, m] @ unit)), m


@pytest.mark.parametrize("seed", range(5))
def test_bounds_save_what_a_compression_would_rule_out(seed):
    Phi, close, rough = coarse()
    n, beta = len(Phi), 4.0
    rng = np.random.default_rng(seed)
    weights = rng.uniform(0.5, 2.0, n)
    root = np.sqrt(beta * weights)
    S, rough_S = (np.sum((root[:, None] * columns) ** 2, axis=0) for columns in (Phi, rough))
    noise = 1.5 * rng.standard_normal(n)
    gradient, m = hidden_gain(root[:, None] * Phi, root[:, None] * rough, S, root, noise)
    Q, rough_Q = Phi.T @ gradient, rough.T @ gradient
    assert Q[m] ** 2 > 3.9 * S[m]
    assert rough_Q[m] ** 2 < rough_S[m]
    whitened = (gradient / root / np.sqrt(beta))[:, None]
    everything = np.ones(n, dtype=bool)
    left = may_gain(rough_S, rough_Q[:, None], beta, whitened, weights, close, everything)
    assert np.all(left[Q**2 > S])
    assert left[np.argmax(Q**2 / S)]
    # What may not enter is never asked for.
    assert not may_gain(rough_S, rough_Q[:, None], beta, whitened, weights, close, everything & (np.arange(n) != m))[m]


@pytest.mark.parametrize("tolerance", [0.1, 1e-6])
def test_bounds_rule_functions_out_where_the_compression_is_close(tolerance):
    Phi, close, rough = coarse(tolerance)
    n = len(Phi)
    noise = np.random.default_rng(0).standard_normal((n, 1))
    S, Q = np.sum(rough**2, axis=0), rough.T @ noise
    left = may_gain(S, Q, 1.0, noise, np.ones(n), close, np.ones(n, dtype=bool))
    assert np.sum(left) >= np.sum((Phi.T @ noise)[:, 0] ** 2 > np.sum(Phi**2, axis=0))
    if tolerance < 1e-3:
        assert np.sum(left) < 1.1 * np.sum(Q[:, 0] ** 2 > S) + 2


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("outputs", [1, 2])
def test_what_decides_at_a_mode_is_exact_whatever_the_stand_in_says(seed, outputs, monkeypatch):
    monkeypatch.setattr(screening, "_MANY", 1.0)  # never all of them: what is exact was asked for by the bounds
    Phi, close, rough = coarse()
    n = len(Phi)
    rng = np.random.default_rng(10 + seed)
    curvature = rng.uniform(0.05, 0.25, (n, outputs))
    root = np.sqrt(curvature)
    span = np.linalg.qr(rng.standard_normal((n, 4)))[0]
    half = np.stack([root[:, [k]] * span for k in range(outputs)])
    along = 0.01 * root * rng.standard_normal((n, outputs))
    unlike = Directions(HOST, np.zeros((n, outputs)), along, curvature, half)
    s = unlike.measure(DenseDesign(Phi)).s.reshape(outputs, n)
    gradient, hidden = np.empty((n, outputs)), []
    for k in range(outputs):
        noise, columns = 1.5 * rng.standard_normal(n), root[:, [k]] * Phi
        gradient[:, k], m = hidden_gain(columns, root[:, [k]] * rough, s[k], root[:, k], noise)
        hidden.append(k * n + m)
    directions = Directions(HOST, gradient, along, curvature, half)
    exact, guessed = directions.measure(DenseDesign(Phi)), directions.measure(close)
    assert np.all(exact.q2[hidden] > 3.0 * exact.s[hidden])
    assert np.all(guessed.q2[hidden] < guessed.s[hidden])
    found = directions.screen(DenseDesign(Phi), close, np.ones(n * outputs, dtype=bool))
    decisive = (exact.q2 > exact.s) | (np.arange(n * outputs) == np.argmax(exact.q2 / exact.s))
    for name in ("s", "q", "D", "norm"):
        np.testing.assert_allclose(
            getattr(found, name)[decisive], getattr(exact, name)[decisive], rtol=1e-10, atol=1e-12
        )


def shorter(seed, weights):
    """Gradient on the pivots' rows, where the stand-in is exact, and a function with S < q² < its rough S."""
    Phi, close, rough = coarse()
    S, rough_S = (weights @ columns**2 for columns in (Phi, rough))
    gradient = np.zeros(len(Phi))
    gradient[close.landmarks] = np.random.default_rng(seed).standard_normal(len(close.landmarks))
    q = Phi.T @ gradient
    np.testing.assert_allclose(rough.T @ gradient, q, rtol=0, atol=1e-6 * np.max(np.abs(q)))
    longer = rough_S > (1.0 + 1e-4) * S
    m = int(np.argmin(np.where(longer, q**2 / S, np.inf)))  # others then gain, which sets what is to be exceeded
    gradient *= (S[m] * rough_S[m]) ** 0.25 / abs(q[m])
    assert S[m] < (Phi[:, m] @ gradient) ** 2 < rough_S[m]
    return Phi, close, rough, gradient, m


@pytest.mark.parametrize("seed", range(4))
def test_a_norm_that_the_stand_in_overestimates_rules_nothing_out(seed):
    weights = np.random.default_rng(seed).uniform(0.5, 2.0, 300)
    Phi, close, rough, gradient, m = shorter(seed, weights)
    whitened = (gradient / np.sqrt(weights))[:, None]
    left = may_gain(
        weights @ rough**2, (rough.T @ gradient)[:, None], 1.0, whitened, weights, close, np.ones(300, dtype=bool)
    )
    assert left[m]
    directions = Directions(HOST, gradient[:, None], np.zeros((300, 1)), weights[:, None], np.zeros((1, 300, 1)))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(screening, "_MANY", 1.0)
        found = directions.screen(DenseDesign(Phi), close, np.ones(300, dtype=bool))
    assert found.s[m] == pytest.approx(directions.measure(DenseDesign(Phi)).s[m], rel=1e-10)


@pytest.mark.parametrize("seed", range(3))
def test_a_change_of_curvature_that_the_stand_in_does_not_see_is_bounded(seed, monkeypatch):
    """Quality and norm rest on the pivots' rows, where the stand-in is exact: D decides, and is hidden from it."""
    monkeypatch.setattr(screening, "_MANY", 1.0)
    Phi, close, rough = coarse()
    n = len(Phi)
    pivots = np.isin(np.arange(n), close.landmarks)
    curvature = np.where(pivots, 1.0, 1e-12)
    gradient = np.where(pivots, np.random.default_rng(seed).standard_normal(n), 0.0)
    s = curvature @ Phi**2
    gradient *= np.sqrt(2.0 / np.max((Phi.T @ gradient) ** 2 / s))  # the best of the others gains by its quality
    q = Phi.T @ gradient
    left, values, _ = np.linalg.svd(rough)
    span = left[:, : int(np.sum(values > 1e-10 * values[0]))]
    outside = Phi - span @ (span.T @ Phi)
    weak = (q**2 < 0.5 * s) & (q**2 > 0.01 * s)
    m = int(np.argmax(np.where(weak, np.sum(outside**2, axis=0), -1.0)))
    unit = outside[:, m] / np.linalg.norm(outside[:, m])
    along = unit * (q[m] - 2.0 * s[m] / q[m]) / (Phi[:, m] @ unit)
    directions = Directions(HOST, gradient[:, None], along[:, None], curvature[:, None], np.zeros((1, n, 1)))
    exact, guessed = directions.measure(DenseDesign(Phi)), directions.measure(close)
    assert exact.q2[m] > 1.9 * exact.s[m]
    assert guessed.q2[m] < 0.6 * guessed.s[m]
    found = directions.screen(DenseDesign(Phi), close, np.ones(n, dtype=bool))
    assert found.D[m] == pytest.approx(exact.D[m], rel=1e-10)
    gains = exact.q2 > exact.s
    np.testing.assert_allclose(found.q2[gains], exact.q2[gains], rtol=1e-9)
