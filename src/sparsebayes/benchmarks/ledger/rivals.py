"""Other methods on the ledger's problems: another relevance vector machine, support vectors, Gaussian processes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.optimize import minimize

from sparsebayes.benchmarks.ledger.cases import Array, Case, Problem
from sparsebayes.benchmarks.ledger.measure import NOT_APPLICABLE, Row, log_loss, negative_log_density, timed

# A Gaussian process needs the cube of this many operations at every step of its search.
_GP_ROWS = 3000
# How far logarithms of precisions may move: a function at this distance is out of the model.
_FAR = 30.0
_PATIENCE = {"maxiter": 2000, "maxfun": 4000}


class NotApplicableError(Exception):
    """A rival that has no answer to this problem."""


def measure_rival(name: str, problem: Problem, seed: int) -> Row:
    """Fit a rival to one draw of a problem; a problem that is not for it gives a row that says so."""
    case = problem.draw(seed)
    try:
        figures = RIVALS[name](case)
    except NotApplicableError as error:
        return Row(problem.name, seed, name, NOT_APPLICABLE, note=str(error))
    return Row(problem.name, seed, name, **figures)


def _fastrvm(case: Case) -> dict[str, Any]:
    """At its defaults, with its own seconds and predictions; the evidence is that of its functions, settled by us."""
    if case.gamma is None:
        raise NotApplicableError("fastrvm has kernels on the rows only")
    try:
        import fastrvm  # pyright: ignore[reportMissingImports]
    except ImportError as error:
        raise NotApplicableError("the package fastrvm is not installed") from error
    model = (fastrvm.RVC if case.classes else fastrvm.RVR)(gamma=case.gamma)
    fitted, seconds = timed(lambda: model.fit(case.X, case.y))
    kept = np.ravel(fitted.relevance_).astype(np.intp)
    figures = {"kept": len(kept), "seconds": seconds, "moves": int(np.max(fitted.n_iter_))}
    if case.classes:
        loss = log_loss(fitted.predict_proba(case.X_test), fitted.classes_, case.y_test)
        return figures | {"error": case.error(fitted.predict(case.X_test)), "loss": loss}
    mean, std = fitted.predict(case.X_test, return_std=True)
    noise_variance = 1.0 / float(fitted.beta_)
    squares = np.sum((case.X[:, None] - case.X[kept]) ** 2, axis=2)
    # Its own model has no constant; with one, as ours have, its functions can only gain.
    values = np.column_stack([np.exp(-case.gamma * squares), np.ones(len(case.y))])
    alpha: Array = np.append(np.ravel(fitted.alpha_).astype(np.float64), 1.0)
    return figures | {
        "evidence": settled_evidence(values, np.asarray(case.y - np.mean(case.y), np.float64), alpha, noise_variance),
        "error": case.error(mean),
        "loss": negative_log_density(mean, std, case.y_test),
        "noise_variance": noise_variance,
    }


def settled_evidence(values: Array, t: Array, alpha: Array, noise_variance: float) -> float:
    r"""Log evidence of given functions at the precisions and the noise that maximise it, from the given ones on.

    With :math:`\mathbf C = \sigma^2\mathbf I + \boldsymbol\Phi\mathbf A^{-1}\boldsymbol\Phi^\top`, the gradient is
    :math:`\partial L/\partial\log\alpha_m = \tfrac12(\gamma_m - \alpha_m\mu_m^2)` and
    :math:`\partial L/\partial\log\sigma^2 = \tfrac12(\|\mathbf t-\boldsymbol\Phi\boldsymbol\mu\|^2/\sigma^2 - N +
    \sum\gamma_m)`. It is written apart from the library's inference on purpose: a change of that must not move the
    figures of others.
    """
    gram, products = values.T @ values, values.T @ t

    def negative(logs: Array) -> tuple[float, Array]:
        precision, variance = np.exp(logs[:-1]), float(np.exp(logs[-1]))
        factor = np.linalg.cholesky(gram / variance + np.diag(precision))
        inverse = np.linalg.inv(factor)
        covariance = inverse.T @ inverse
        mean = covariance @ products / variance
        misfit = float(np.sum((t - values @ mean) ** 2)) / variance
        logs_of_determinants = 2.0 * np.sum(np.log(np.diag(factor))) - np.sum(logs[:-1])
        twice = len(t) * np.log(2.0 * np.pi * variance) + misfit + precision @ mean**2 + logs_of_determinants
        determined = 1.0 - precision * np.diag(covariance)
        slopes = np.append(determined - precision * mean**2, misfit - len(t) + np.sum(determined))
        return 0.5 * float(twice), -0.5 * slopes

    start = np.log(np.append(alpha, noise_variance))
    bounds = np.column_stack([start - _FAR, start + _FAR])
    return -float(minimize(negative, start, jac=True, method="L-BFGS-B", bounds=bounds, options=_PATIENCE).fun)


def _support_vectors(case: Case) -> dict[str, Any]:
    """SVR(C=1, epsilon=0.1) or SVC(C=1) with the problem's kernel."""
    from sklearn.svm import SVC, SVR

    if case.basis is not None:
        raise NotApplicableError("this dictionary is no kernel of a support vector machine")
    kernel: dict[str, Any] = {"kernel": "linear"} if case.gamma is None else {"gamma": case.gamma}
    model = (SVC if case.classes else SVR)(C=1.0, **kernel)
    fitted, seconds = timed(lambda: model.fit(case.X, case.y))
    return {"error": case.error(fitted.predict(case.X_test)), "kept": len(fitted.support_), "seconds": seconds}


def gaussian_process(case: Case) -> tuple[Array, Array, Any, float]:
    """Exact, with all rows, a learned width for each input and a learned noise.

    Returns
    -------
    mean, std : ndarray
        Of the test rows.
    process : GaussianProcessRegressor
        Fitted to targets of unit variance.
    seconds : float
        Processor time of the fit.
    """
    from sklearn.gaussian_process import GaussianProcessRegressor
    from sklearn.gaussian_process.kernels import RBF, ConstantKernel, WhiteKernel

    if case.classes or case.gamma is None:
        raise NotApplicableError("the Gaussian process is for regression with Gaussian kernels")
    if len(case.y) > _GP_ROWS:
        raise NotApplicableError(f"the Gaussian process is for at most {_GP_ROWS} rows, these are {len(case.y)}")
    # exp(-gamma d^2) is this kernel with the length 1 / sqrt(2 gamma).
    start: Any = np.full(case.X.shape[1], np.sqrt(0.5 / case.gamma))
    kernel = ConstantKernel() * RBF(start, (1e-2, 1e4)) + WhiteKernel(0.1, (1e-6, 1e2))
    mean, scale = float(np.mean(case.y)), float(np.std(case.y))
    model = GaussianProcessRegressor(kernel)
    fitted, seconds = timed(lambda: model.fit(case.X, (case.y - mean) / scale))
    predicted, std = fitted.predict(case.X_test, return_std=True)
    return mean + scale * predicted, scale * std, fitted, seconds


def _gaussian_process(case: Case) -> dict[str, Any]:
    predicted, std, fitted, seconds = gaussian_process(case)
    scale = float(np.std(case.y))
    return {
        "evidence": float(fitted.log_marginal_likelihood_value_) - len(case.y) * float(np.log(scale)),
        "error": case.error(predicted),
        "loss": negative_log_density(predicted, std, case.y_test),
        "kept": len(case.y),
        "seconds": seconds,
        "noise_variance": float(fitted.kernel_.k2.noise_level) * scale**2,
    }


RIVALS: dict[str, Callable[[Case], dict[str, Any]]] = {
    "fastrvm": _fastrvm,
    "svr": _support_vectors,
    "gp": _gaussian_process,
}
