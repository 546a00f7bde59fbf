"""Other methods on the ledger's problems: another relevance vector machine, support vectors, Gaussian processes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from sparsebayes.benchmarks.ledger.cases import Case, Problem
from sparsebayes.benchmarks.ledger.measure import NOT_APPLICABLE, Row, negative_log_density, timed

# A Gaussian process needs the cube of this many operations at every step of its search.
_GP_ROWS = 3000


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
    """Its own seconds and predictions; the evidence is that of its functions with our precisions and noise."""
    if case.gamma is None:
        raise NotApplicableError("fastrvm has kernels on the rows only")
    try:
        import fastrvm  # pyright: ignore[reportMissingImports]
    except ImportError as error:
        raise NotApplicableError("the package fastrvm is not installed") from error
    model = (fastrvm.RVC if case.classes else fastrvm.RVR)(gamma=case.gamma, fit_intercept=True)
    fitted, seconds = timed(lambda: model.fit(case.X, case.y))
    kept = np.unique(np.concatenate([np.ravel(part) for part in _parts(fitted.relevance_)]).astype(np.intp))
    return {
        "evidence": None if case.classes else _evidence_of(case, kept),
        "error": case.error(fitted.predict(case.X_test)),
        "kept": len(kept),
        "seconds": seconds,
        "moves": int(np.max(fitted.n_iter_)),
        "noise_variance": None if case.classes else 1.0 / float(fitted.beta_),
    }


def _parts(relevance: Any) -> list[Any]:
    """Indices of one model, or of one for each class."""
    return list(relevance) if isinstance(relevance, (list, tuple)) or np.ndim(relevance) > 1 else [relevance]


def _evidence_of(case: Case, kept: np.ndarray) -> float:
    """Log evidence of the kernels on these rows, once all precisions and the noise are settled."""
    from sparsebayes import SparseBayesRegressor
    from sparsebayes.basis import RBF

    width = float(1.0 / np.sqrt(case.gamma or 1.0))
    settled, _ = timed(lambda: SparseBayesRegressor(RBF(width, case.X[kept]), solver="mackay").fit(case.X, case.y))
    return float(settled.log_marginal_likelihood_)


def _support_vectors(case: Case) -> dict[str, Any]:
    """SVR(C=1, epsilon=0.1) or SVC(C=1) with the problem's kernel."""
    from sklearn.svm import SVC, SVR

    if case.basis is not None:
        raise NotApplicableError("this dictionary is no kernel of a support vector machine")
    kernel: dict[str, Any] = {"kernel": "linear"} if case.gamma is None else {"gamma": case.gamma}
    model = (SVC if case.classes else SVR)(C=1.0, **kernel)
    fitted, seconds = timed(lambda: model.fit(case.X, case.y))
    return {"error": case.error(fitted.predict(case.X_test)), "kept": len(fitted.support_), "seconds": seconds}


def _gaussian_process(case: Case) -> dict[str, Any]:
    """Exact, with all rows, a learned width for each input and a learned noise."""
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
    predicted, std = mean + scale * predicted, scale * std
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
