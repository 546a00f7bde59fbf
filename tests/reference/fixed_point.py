"""The original relevance vector machine, dense and from the full model (report on Tipping 2001, eqs 9, 12, 13)."""

import numpy as np
from extended import log_evidence


def fit(Phi: np.ndarray, t: np.ndarray, iterations: int = 1000, prune: float = 1e9) -> float:
    """Log evidence where the fixed point ends."""
    active, alpha, sigma2 = np.arange(Phi.shape[1]), np.full(Phi.shape[1], 1.0 / len(t)), 0.1 * np.var(t)
    for _ in range(iterations):
        P = Phi[:, active]
        Sigma = np.linalg.inv(P.T @ P / sigma2 + np.diag(alpha))
        mu = Sigma @ P.T @ t / sigma2
        gamma = 1.0 - alpha * np.diag(Sigma)
        new = np.maximum(gamma, 1e-12) / np.maximum(mu**2, 1e-12 / prune)
        sigma2 = np.sum((t - P @ mu) ** 2) / (len(t) - np.sum(gamma))
        keep = new < prune
        change = np.max(np.abs(np.log(new[keep] / alpha[keep])), initial=0.0)
        active, alpha = active[keep], new[keep]
        if change < 1e-3 and np.all(keep):
            break
    return log_evidence(Phi, t, list(active), alpha, sigma2)
