r"""Audit of a fitted posterior: mean, covariance, evidence and gradients recomputed by brute force.

Nothing of the solver is used, only the values of the kept functions, the precisions, and dense algebra in the plainest
form: an inverse, and the log density of the targets under their own covariance matrix.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.linalg import block_diag
from scipy.special import expit, gammaln, logsumexp
from scipy.special import softmax as _softmax
from scipy.stats import norm
from scipy.stats.qmc import Sobol

from sparsebayes.posterior import GaussianPosterior, PoissonPosterior

Array = NDArray[np.float64]

_STEP = 1e-4
_NEWTON_STEPS = 100
# Outputs beyond which the logistic is flat, and points of a grid.
_FAR, _GRID = 45.0, 4001
# Points of the coarser grid of differences, binary logarithm of those of the other outputs, and a variance of nothing.
_COARSE, _POINTS, _TINY = 301, 6, 1e-30


def check_posterior(
    est: Any,
    X: Any,
    y: ArrayLike,
    sample_weight: ArrayLike | None = None,
    *,
    rtol: float = 1e-6,
    slope: float = 0.1,
    softmax: float = 0.1,
) -> dict[str, float]:
    """Recompute the posterior of a fitted estimator on its training data, and compare.

    Parameters
    ----------
    est : estimator
        A fitted regressor (one target, Gaussian or Poisson likelihood) or classifier (two classes, or softmax).
    X, y, sample_weight
        What it was fitted on.
    rtol : float
        Largest relative deviation of mean, covariance (in units of the standard deviations) and evidence.
    slope : float
        Largest derivative of the evidence with respect to a log precision or, where it is learned, the log noise
        variance: at a maximum there is none, and near one the tolerance of the fit leaves little.
    softmax : float
        Largest deviation of a log standard deviation, with three classes or more, from that by the softmax itself,
        whose expected curvature is integrated here over all outputs; the fit takes it pair by pair, in shares that stay
        what they are at the mode.  Not of classes that share functions, whose covariance is Laplace's, class by class.

    Returns
    -------
    dict
        The deviations found.

    Raises
    ------
    AssertionError
        With the numbers, where something differs.
    """
    weights = np.ones(len(np.asarray(y))) if sample_weight is None else np.asarray(sample_weight, dtype=np.float64)
    used = weights > 0.0
    est = est._as_fitted
    values = est._values(X)[used]
    target, weights = np.asarray(y)[used], weights[used]
    posteriors = est._posteriors
    if len(posteriors) != 1:
        raise ValueError(f"check_posterior takes one model; this estimator holds {len(posteriors)}")
    if isinstance(posteriors[0], GaussianPosterior):
        if est.likelihood != "gaussian":
            raise ValueError(f"check_posterior cannot audit likelihood={est.likelihood!r}: its rows have weights")
        if posteriors[0].varying is not None:
            raise ValueError("check_posterior cannot audit a model whose noise varies: its rows have weights")
        found = _gaussian(est, posteriors[0], values, target, weights)
    elif isinstance(posteriors[0], PoissonPosterior):
        found = _rates(est, posteriors[0], values, target, weights)
    else:
        found = _laplace(est, posteriors[0], values, target, weights)
    limits = {"slope": slope, "softmax": softmax}
    wrong = [
        f"{name}: off by {value:.3g}"
        for name, value in found.items()
        if not value <= limits.get(name.partition(" ")[0], rtol)
    ]
    assert not wrong, "the posterior does not agree with brute force: " + "; ".join(wrong)
    return found


def _relative(est: Any, posterior: Any, mean: Array, covariance: Array, evidence: float) -> dict[str, float]:
    std = np.sqrt(np.diagonal(covariance))
    reported = est.log_marginal_likelihood_
    return {
        "mean": float(np.max(np.abs(posterior.mean - mean) / std, initial=0.0)),
        "covariance": float(np.max(np.abs(posterior.covariance - covariance) / np.outer(std, std), initial=0.0)),
        "evidence": abs(reported - evidence) / max(1.0, abs(evidence)),
    }


def _slopes(evidence: Callable[[Array], float], parameters: Array) -> Array:
    """Central differences of the evidence in log parameters."""
    steps = _STEP * np.eye(len(parameters))
    return np.array([evidence(parameters + s) - evidence(parameters - s) for s in steps]) / (2.0 * _STEP)


def _gaussian(est: Any, posterior: GaussianPosterior, values: Array, y: Array, weights: Array) -> dict[str, float]:
    Phi, t = values[:, posterior.functions], y.astype(np.float64) - posterior.offset
    alpha = np.atleast_2d(est.alpha_)[0]
    alpha, noise = alpha[np.isfinite(alpha)], posterior.noise_variance
    B = weights / noise
    covariance: Array = np.linalg.inv(Phi.T @ (B[:, None] * Phi) + np.diag(alpha)).astype(np.float64)
    mean = covariance @ (Phi.T @ (B * t))

    def evidence(log_parameters: Array) -> float:
        return _gaussian_evidence(Phi, t, weights, np.exp(log_parameters[:-1]), float(np.exp(log_parameters[-1])))

    here = np.log(np.append(alpha, noise))
    found = _relative(est, posterior, mean, covariance, evidence(here))
    slopes = np.abs(_slopes(evidence, here))
    found["slope in log alpha"] = float(np.max(slopes[:-1], initial=0.0))
    if est.noise_variance is None and est.status_.name == "CONVERGED":
        found["slope in log noise"] = float(slopes[-1])
    return found


def _gaussian_evidence(Phi: Array, t: Array, weights: Array, alpha: Array, noise: float) -> float:
    """Log density of the targets under their covariance; a row of weight k is k rows."""
    C = np.diag(noise / weights) + (Phi / alpha) @ Phi.T
    _, log_det = np.linalg.slogdet(C)
    # A row seen k times says k - 1 times more about the noise than its mean does.
    repeated = 0.5 * float(np.sum((weights - 1.0) * np.log(2.0 * np.pi * noise) + np.log(weights)))
    return -0.5 * (len(t) * np.log(2.0 * np.pi) + float(log_det) + float(t @ np.linalg.solve(C, t))) - repeated


def _rates(est: Any, posterior: PoissonPosterior, values: Array, y: Array, weights: Array) -> dict[str, float]:
    """Counts: mean and covariance by the equations that the expected rates must fulfil, evidence at the mode."""
    Phi, t = values[:, posterior.functions], y.astype(np.float64)
    alpha = np.atleast_2d(est.alpha_)[0]
    alpha = alpha[np.isfinite(alpha)]
    spread = np.einsum("na,ab,nb->n", Phi, posterior.covariance, Phi)
    rates = weights * np.exp(Phi @ posterior.mean + posterior.offset + 0.5 * spread)
    covariance = _inverse(Phi.T @ (rates[:, None] * Phi) + np.diag(alpha))
    mean = posterior.mean + covariance @ (Phi.T @ (weights * t - rates) - alpha * posterior.mean)

    def height(w: Array) -> float:
        log_rate = Phi @ w + posterior.offset
        return float(weights @ (t * log_rate - np.exp(log_rate) - gammaln(t + 1.0))) - 0.5 * float(alpha @ w**2)

    def precision(w: Array) -> Array:
        return Phi.T @ ((weights * np.exp(Phi @ w + posterior.offset))[:, None] * Phi) + np.diag(alpha)

    # Newton's method, halved until it climbs, from the mean and far longer than it takes.
    mode = posterior.mean
    for _ in range(_NEWTON_STEPS):
        uphill = Phi.T @ (weights * (t - np.exp(Phi @ mode + posterior.offset))) - alpha * mode
        step = _inverse(precision(mode)) @ uphill
        length = next((part for part in 0.5 ** np.arange(40) if height(mode + part * step) >= height(mode)), 0.0)
        mode = mode + length * step
    log_det = float(np.linalg.slogdet(precision(mode))[1])
    evidence = height(mode) + 0.5 * float(np.sum(np.log(alpha))) - 0.5 * log_det
    return _relative(est, posterior, mean, covariance, evidence)


def _laplace(est: Any, posterior: Any, values: Array, y: NDArray[Any], weights: Array) -> dict[str, float]:
    n_outputs = getattr(posterior, "n_outputs", 1)
    outputs = getattr(posterior, "outputs", np.zeros(len(posterior.mean), dtype=np.intp))
    columns = np.zeros((len(values), n_outputs, len(posterior.mean)))
    for k in range(n_outputs):
        columns[:, k, outputs == k] = values[:, posterior.functions[outputs == k]]
    log_p, gradient, curvature = _likelihood(est, posterior, columns, y, weights)
    if n_outputs > 1 and est.shared_support and np.all(est.alpha_ == est.alpha_[0]):
        p = _softmax(columns @ posterior.mean, axis=1)
        return _shared(est, posterior, values[:, posterior.functions[outputs == 0]], p, log_p, gradient, weights)
    alpha = est.alpha_[np.isfinite(est.alpha_)]
    flat = columns.reshape(-1, len(alpha))
    precision = flat.T @ np.einsum("nkl,nla->nka", curvature, columns).reshape(-1, len(alpha)) + np.diag(alpha)
    covariance: Array = np.linalg.inv(precision).astype(np.float64)
    uphill = flat.T @ gradient.ravel() - alpha * posterior.mean
    mean = posterior.mean + covariance @ uphill  # one Newton step: none is left at the mode
    _, log_det = np.linalg.slogdet(precision)
    prior = 0.5 * float(np.sum(np.log(alpha))) - 0.5 * float(alpha @ posterior.mean**2)
    if est.status_.name == "INDICATORS":  # a regression chose the functions: the covariance is Laplace's
        return _relative(est, posterior, mean, _inverse(precision), log_p + prior - 0.5 * float(log_det))
    expected = _expected(columns @ posterior.mean, columns, posterior.covariance, weights)
    covariance = _inverse(np.einsum("nka,nkb->ab", columns, expected @ columns) + np.diag(alpha))
    found = _relative(est, posterior, mean, covariance, log_p + prior - 0.5 * float(log_det))
    if n_outputs > 1:
        whole = weights[:, None, None] * _softmax_curvature(columns @ posterior.mean, columns, posterior.covariance)
        precise = _inverse(np.einsum("nka,nkb->ab", columns, whole @ columns) + np.diag(alpha))
        ratio = np.diagonal(posterior.covariance) / np.diagonal(precise)
        found["softmax covariance"] = float(np.max(np.abs(0.5 * np.log(ratio)), initial=0.0))
    return found


def _shared(
    est: Any, posterior: Any, Phi: Array, p: Array, log_p: float, gradient: Array, weights: Array
) -> dict[str, float]:
    """Classes that share functions: the mode by its slope, evidence and covariances by one matrix for each class."""
    K, alpha = p.shape[1], est.alpha_[0][np.isfinite(est.alpha_[0])]
    mean = posterior.mean.reshape(K, -1)
    curved = weights[:, None] * p * (1.0 - p) * K / (K - 1)
    precisions = [Phi.T @ (curved[:, k, None] * Phi) + np.diag(alpha) for k in range(K)]
    uphill = (Phi.T @ gradient.reshape(len(Phi), K)).T - alpha * mean
    moved = mean + np.array([np.linalg.solve(one, up) for one, up in zip(precisions, uphill, strict=True)])
    occam = float(np.sum(np.log(alpha))) - sum(float(np.linalg.slogdet(one)[1]) for one in precisions) / K
    evidence = log_p - 0.5 * float(np.sum(alpha * mean**2)) + 0.5 * (K - 1) * occam
    covariance = np.asarray(block_diag(*[_inverse(one) for one in precisions]), dtype=np.float64)
    return _relative(est, posterior, moved.ravel(), covariance, evidence)


def _inverse(precision: Array) -> Array:
    """Inverse of a matrix whose rows may be of very different size."""
    scale = np.sqrt(np.outer(np.diagonal(precision), np.diagonal(precision)))
    return np.linalg.inv(precision / scale) / scale


def _expected(out: Array, columns: Array, covariance: Array, weights: Array) -> Array:
    """Expected curvature of classes, every pair of outputs in the share that it has at the mode."""
    if out.shape[1] == 1:  # two classes: against an output that is always zero
        both = np.concatenate([np.zeros_like(columns), columns], axis=1)
        return _expected(np.hstack([np.zeros_like(out), out]), both, covariance, weights)[:, 1:, 1:]
    p, blocks = _softmax(out, axis=1), np.zeros((len(out), out.shape[1], out.shape[1]))
    for j, k in combinations(range(out.shape[1]), 2):
        apart = columns[:, j] - columns[:, k]
        deviation = np.sqrt(np.einsum("na,ab,nb->n", apart, covariance, apart))
        slope = [_expected_slope(*row) for row in zip(out[:, j] - out[:, k], deviation, strict=True)]
        side = np.eye(out.shape[1])[j] - np.eye(out.shape[1])[k]
        blocks += (weights * (p[:, j] + p[:, k]) ** 2 * slope)[:, None, None] * np.outer(side, side)
    return blocks


def _softmax_curvature(out: Array, columns: Array, covariance: Array) -> Array:
    r"""Expectation of :math:`\mathrm{diag}(p)-pp^\top` for every row, over all outputs.

    Its entries off the diagonal are :math:`-E[p_jp_k]`, and rows sum to nothing.  The product is that of the logistic's
    derivative at :math:`y_j-y_k`, over which a fine grid goes, since outputs may vary so much that the two hardly ever
    meet, and of the squared share of the two classes, which is between nothing and one, so that a few hundred points of
    the other outputs, given the difference, do.
    """
    n_rows, n_outputs = out.shape
    normal = norm.ppf(Sobol(n_outputs - 2, scramble=False).random_base2(_POINTS) + 0.5 ** (_POINTS + 1))
    normal, blocks = np.vstack([normal, -normal]), np.zeros((n_rows, n_outputs, n_outputs))
    for j, k in combinations(range(n_outputs), 2):
        others = [i for i in range(n_outputs) if i not in (j, k)]
        apart = np.eye(n_outputs)[[j, *others]] - np.eye(n_outputs)[[k, *(j for _ in others)]]
        side = np.outer(apart[0], apart[0])
        for n in range(n_rows):
            mixed = apart @ columns[n]
            mean, spread = apart @ out[n], mixed @ covariance @ mixed.T
            deviation = np.sqrt(max(spread[0, 0], _TINY))
            low, high = max(-_FAR, mean[0] - 12.0 * deviation), min(_FAR, mean[0] + 12.0 * deviation)
            if low >= high:
                continue
            grid = np.linspace(low, high, _COARSE)
            density = np.exp(-0.5 * ((grid - mean[0]) / deviation) ** 2) / (deviation * np.sqrt(2.0 * np.pi))
            gain = spread[1:, 0] / deviation**2
            variances, axes = np.linalg.eigh(spread[1:, 1:] - np.outer(gain, spread[0, 1:]))
            rest = normal @ (axes * np.sqrt(np.maximum(variances, 0.0))).T
            beyond = (mean[1:] + gain * (grid - mean[0])[:, None])[:, None, :] + rest
            share = expit(np.log1p(np.exp(-grid))[:, None] - logsumexp(beyond, axis=2))
            slope = expit(grid) * expit(-grid) * density * np.mean(share**2, axis=1)
            blocks[n] += float(np.trapezoid(slope, grid)) * side
    return blocks


def _expected_slope(mean: float, deviation: float) -> float:
    """Expectation of the logistic's derivative, on a fine grid over where neither factor is nothing."""
    low, high = max(-_FAR, mean - 12.0 * deviation), min(_FAR, mean + 12.0 * deviation)
    if low >= high:
        return float(expit(mean) * expit(-mean))
    grid = np.linspace(low, high, _GRID)
    density = np.exp(-0.5 * ((grid - mean) / deviation) ** 2) / (deviation * np.sqrt(2.0 * np.pi))
    return float(np.trapezoid(expit(grid) * expit(-grid) * density, grid))


def _likelihood(est: Any, posterior: Any, columns: Array, y: Any, weights: Array) -> tuple[float, Array, Array]:
    """Log likelihood, gradient and curvature at the mode."""
    out = columns @ posterior.mean
    if len(est.classes_) == 2:
        t, p = (y == est.classes_[1]).astype(np.float64), expit(out[:, 0])
        log_p = -float(weights @ np.logaddexp(0.0, np.where(t > 0.5, -out[:, 0], out[:, 0])))
        return log_p, (weights * (t - p))[:, None], (weights * p * (1.0 - p))[:, None, None]
    t, p = (y[:, None] == est.classes_).astype(np.float64), _softmax(out, axis=1)
    log_p = float(weights @ (np.sum(t * out, axis=1) - logsumexp(out, axis=1)))
    blocks = np.einsum("nk,kl->nkl", p, np.eye(p.shape[1])) - p[:, :, None] * p[:, None, :]
    return log_p, weights[:, None] * (t - p), weights[:, None, None] * blocks
