"""A certificate that evaluates few functions says what one of all of them would."""

import numpy as np
import pytest

from sparsebayes import RVR, datasets
from sparsebayes.basis import RBF
from sparsebayes.design import LazyDesign, compress_kernel
from sparsebayes.inference.evidence import best_moves
from sparsebayes.inference.screening import may_gain

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
