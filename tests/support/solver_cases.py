"""Random problems for the solvers, and what their records and certificates are held against."""

import numpy as np
import pytest
from exploring import examples, seeds
from hypothesis import strategies as st

from sparsebayes.inference.solvers.sequential import INITIALISATIONS, SELECTIONS

many, few = examples(120), examples(20)
Long = np.longdouble


# -- brute force -------------------------------------------------------------------------------------------


def cholesky(matrix):
    """Lower factor in extended precision, which LAPACK has not got."""
    lower = np.array(matrix, dtype=Long)
    for j in range(len(lower)):
        lower[j, j] = np.sqrt(lower[j, j])
        lower[j + 1 :, j] /= lower[j, j]
        lower[j + 1 :, j + 1 :] -= np.outer(lower[j + 1 :, j], lower[j + 1 :, j])
    return np.tril(lower)


def brute_evidence(Phi, alpha, noise, t):
    """Log of the Gaussian density of the columns of t under C = σ²I + ΦA⁻¹Φᵀ (T&F eq. 7), and its rounding error."""
    Phi, t = np.asarray(Phi, dtype=Long), np.asarray(t, dtype=Long)
    C = Long(noise) * np.eye(len(t), dtype=Long) + (Phi / np.asarray(alpha, dtype=Long)) @ Phi.T
    lower = cholesky(C)
    white = t.copy()
    for j in range(len(t)):
        white[j] /= lower[j, j]
        white[j + 1 :] -= lower[j + 1 :, j, None] * white[j]
    log_det = 2 * np.sum(np.log(np.diagonal(lower)))
    n, targets = t.shape
    value = -0.5 * (targets * (n * np.log(2 * Long(np.pi)) + log_det) + np.sum(white**2))
    error = np.finfo(Long).eps * n * float(np.trace(C)) / noise * float(np.sum(white**2))
    return float(value), error


def tolerance(value, n):
    return 1e-9 * max(1.0, abs(value), n)


class Audit:
    """A callback that recomputes the evidence of every model it is shown."""

    def __init__(self, Phi, every=7):
        self.Phi, self.every = Phi, every
        self.last = {}
        self.count = 0

    def __call__(self, record, active):
        n = len(self.Phi)
        assert record.n_active == len(active.indices) == len(set(active.indices))
        assert np.all(active.alpha > 0)
        assert np.all(np.isfinite(active.alpha))
        np.testing.assert_allclose(record.noise_variance, 1.0 / active.beta, rtol=1e-12)
        assert record.evidence == record.objective == pytest.approx(active.evidence(), rel=1e-12, abs=1e-12)
        before = self.last.get(record.start, -np.inf)
        assert record.objective >= before - tolerance(record.objective, n), (record, before)
        self.last[record.start] = record.objective
        self.count += 1
        if self.count <= 30 or self.count % self.every == 0:
            t = active.problem.targets
            value, error = brute_evidence(self.Phi[:, active.indices], active.alpha, 1.0 / active.beta, t)
            assert abs(value - record.evidence) <= 1e-8 * max(1.0, abs(value), n) + error, (record, value)


# -- problems ----------------------------------------------------------------------------------------------


def dictionary(rng, n, m, kind):
    X = rng.standard_normal((n, m))
    if kind == "correlated":
        X = X + 3.0 * rng.standard_normal((n, 1))
    elif kind == "copies":
        X = X[:, rng.integers(0, max(1, m // 2), m)]
    elif kind == "near copies":
        X = X[:, rng.integers(0, max(1, m // 2), m)] + 10.0 ** rng.integers(-12, -2) * rng.standard_normal((n, m))
    elif kind == "smooth":
        at = np.sort(rng.uniform(0.0, 1.0, n))[:, None]
        X = np.exp(-(((at - np.linspace(0.0, 1.0, m)) / 0.3) ** 2))
    elif kind == "scales":
        X = X * 10.0 ** rng.integers(-5, 6, m)
    return X


KINDS = ("independent", "correlated", "copies", "near copies", "smooth", "scales")


@st.composite
def problems(draw):
    """A dictionary, targets, and how to solve it."""
    rng = np.random.default_rng(draw(seeds))
    n, m = draw(st.integers(5, 40)), draw(st.integers(1, 60))
    X = dictionary(rng, n, m, draw(st.sampled_from(KINDS)))
    w = np.where(rng.random(m) < 0.2, rng.standard_normal(m), 0.0) / np.maximum(np.abs(X).max(axis=0), 1e-300)
    y = X @ w + draw(st.sampled_from([0.01, 0.3, 1.0])) * rng.standard_normal(n)
    noise = draw(st.sampled_from([None, None, 0.1, 0.01]))
    return X, y, noise


solvers = st.builds(
    dict,
    selection=st.sampled_from(SELECTIONS),
    initialisation=st.sampled_from(INITIALISATIONS),
    sweeps=st.booleans(),
    effort=st.sampled_from(["default", "fast"]),
)


def several(seed, n=30, m=12, targets=3):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, m))
    W = np.where(rng.random((m, targets)) < 0.3, rng.standard_normal((m, targets)), 0.0)
    return X, X @ W * [1.0, 100.0, 0.01][:targets] + rng.standard_normal((n, targets)) * [0.1, 30.0, 0.01][:targets]


def full(X, fit_intercept):
    """The dictionary: with the intercept beside them, the columns are less their means."""
    return np.column_stack([X - X.mean(axis=0), np.ones(len(X))]) if fit_intercept else X


# -- what every fit is held against ----------------------------------------------------------------------


def check_certificate(certificate):
    """Numbers, and numbers that agree with each other."""
    gains = [certificate.excluded_gain, certificate.kept_gain, certificate.noise_gain]
    assert np.all(np.isfinite(gains)), certificate
    assert min(gains) >= -1e-9, certificate
    asked = gains[:2] if certificate.noise_held else gains
    assert certificate.converged == (max(asked) <= certificate.tol)
    assert not np.isnan(certificate.kept_log_alpha)
    assert np.all(np.isfinite([certificate.objective, certificate.noise_gradient, certificate.excluded_theta]))
    # What belongs in the model gains by being added.
    assert certificate.excluded_gain > 0 or certificate.excluded_theta <= 1e-9, certificate


class Ascent:
    """A callback that watches the objective alone."""

    def __init__(self, n):
        self.n, self.last = n, {}

    def __call__(self, record, active):
        before = self.last.get(record.start, -np.inf)
        assert record.objective >= before - tolerance(record.objective, self.n), (record, before)
        self.last[record.start] = record.objective
