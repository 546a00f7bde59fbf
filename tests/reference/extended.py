"""Brute force in extended precision: the definitions, with nothing clever in them."""

import numpy as np

LONG = np.longdouble


def qr_solve(stacked: np.ndarray, right: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Upper factor of ``stacked`` and the reduced right-hand sides, by Householder reflections."""
    work, rhs = stacked.astype(LONG).copy(), right.astype(LONG).copy()
    columns = work.shape[1]
    for j in range(columns):
        v = work[j:, j].copy()
        v[0] += np.copysign(np.sqrt(np.sum(v**2)), v[0])
        norm = np.sum(v**2)
        if norm > 0:
            work[j:] -= np.outer(v, (2 / norm) * (v @ work[j:]))
            rhs[j:] -= np.outer(v, (2 / norm) * (v @ rhs[j:]))
    return np.triu(work[:columns]), rhs[:columns]


def inverse_upper(upper: np.ndarray) -> np.ndarray:
    n = len(upper)
    inverse = np.zeros((n, n), dtype=LONG)
    for j in range(n):
        inverse[j, j] = 1 / upper[j, j]
        for i in range(j - 1, -1, -1):
            inverse[i, j] = -(upper[i, i + 1 : j + 1] @ inverse[i + 1 : j + 1, j]) / upper[i, i]
    return inverse


def posterior(Phi: np.ndarray, t: np.ndarray, active: list[int], alpha: np.ndarray, beta: float):
    """Covariance, mean, S, Q of T&F eqs 6, 24, 25 in extended precision."""
    Phi, t, alpha, beta = Phi.astype(LONG), t.astype(LONG), alpha.astype(LONG), LONG(beta)
    stacked = np.vstack([np.sqrt(beta) * Phi[:, active], np.diag(np.sqrt(alpha))])
    right = np.concatenate([np.sqrt(beta) * t, np.zeros(len(active), dtype=LONG)])[:, None]
    upper, reduced = qr_solve(stacked, right)
    root = inverse_upper(upper)
    mean = root @ reduced[:, 0]
    half = beta * (Phi.T @ (Phi[:, active] @ root))
    S = beta * np.sum(Phi**2, axis=0) - np.sum(half**2, axis=1)
    Q = beta * (Phi.T @ (t - Phi[:, active] @ mean))
    return root @ root.T, mean, S, Q


def log_evidence(Phi: np.ndarray, t: np.ndarray, active: list[int], alpha: np.ndarray, sigma2: float) -> float:
    """T&F eq. 7 with the N×N covariance of eq. 8."""
    C = sigma2 * np.eye(len(t)) + (Phi[:, active] / alpha) @ Phi[:, active].T
    _, log_det = np.linalg.slogdet(C)
    return -0.5 * (len(t) * np.log(2 * np.pi) + log_det + t @ np.linalg.solve(C, t))
