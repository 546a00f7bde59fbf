"""An optimizer for PySINDy: the evidence decides which terms of the library a differential equation has.

The module needs the package ``pysindy`` and is therefore not imported with the rest.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from sparsebayes.estimators.regressors import SparseBayesRegressor
from sparsebayes.inference import Solver
from sparsebayes.typing import Array

try:
    from pysindy.optimizers import BaseOptimizer
except ImportError as error:
    raise ImportError(
        "sparsebayes.estimators.sindy needs the package pysindy: pip install 'sparsebayes[sindy]'"
    ) from error


class SparseBayesOptimizer(BaseOptimizer):
    """Sparse Bayesian regression as a PySINDy optimizer: no threshold to choose.

    Parameters
    ----------
    noise_variance : float, optional
        Variance of the noise of the derivatives; learned for each equation by default.
    solver : {"sequential"} or a solver object, default="sequential"
        As in :class:`sparsebayes.SparseBayesRegressor`.
    tol : float, default=1e-3
        Converged means that no single move would raise the objective by more than this, in nats.
    max_iter : int, default=10_000
        Largest number of moves in one start.
    normalize_columns, copy_X, unbias : bool
        As in every PySINDy optimizer; ``unbias`` refits the kept terms by least squares and is off by default, since
        the posterior mean of what the evidence keeps is hardly shrunk.

    Attributes
    ----------
    coef_ : ndarray of shape (n_targets, n_features)
        Weights of the terms, zero for those left out.
    model_ : SparseBayesRegressor
        The fit, one target per equation: evidence, noise, certificate.
    coef_std_ : ndarray of shape (n_targets, n_features)
        Posterior standard deviations of the weights, zero for those left out, in the units of ``coef_`` before
        ``unbias``.

    Examples
    --------
    >>> import pytest; ps = pytest.importorskip("pysindy")
    >>> import numpy as np
    >>> from sparsebayes.estimators.sindy import SparseBayesOptimizer
    >>> t = np.arange(0.0, 10.0, 0.01)
    >>> x = np.column_stack([np.cos(t), -np.sin(t)])  # x' = y, y' = -x
    >>> model = ps.SINDy(optimizer=SparseBayesOptimizer()).fit(x, t=0.01)
    >>> np.round(model.coefficients(), 2)[:, 1:3].tolist()
    [[0.0, 1.0], [-1.0, 0.0]]
    """

    def __init__(
        self,
        noise_variance: float | None = None,
        solver: str | Solver = "sequential",
        tol: float = 1e-3,
        max_iter: int = 10_000,
        normalize_columns: bool = False,
        copy_X: bool = True,
        unbias: bool = False,
    ) -> None:
        super().__init__(max_iter=max_iter, normalize_columns=normalize_columns, copy_X=copy_X, unbias=unbias)
        self.noise_variance = noise_variance
        self.solver = solver
        self.tol = tol

    def fit(self, x_: Any, y: Any, sample_weight: Any = None, **reduce_kws: Any) -> SparseBayesOptimizer:
        """Fit all equations; see PySINDy."""
        super().fit(x_, y, sample_weight=sample_weight, **reduce_kws)
        if self.normalize_columns:
            self.coef_std_ = self.coef_std_ / np.linalg.norm(self.Theta_, axis=0)
        return self

    def _reduce(self, x: Array, y: Array) -> None:  # pyright: ignore[reportIncompatibleMethodOverride]
        """Choose the terms of every equation; PySINDy's hook, with the library's values and the derivatives."""
        self.model_: Any = SparseBayesRegressor(
            fit_intercept=False,
            solver=self.solver,
            noise_variance=self.noise_variance,
            tol=self.tol,
            max_iter=self.max_iter,
        ).fit(np.asarray(x), np.asarray(y))
        self.coef_ = self.model_.coef_
        self.coef_std_ = np.zeros_like(self.coef_)
        for k, covariance in enumerate(self.model_.sigma_):
            terms = self.model_.relevance_[np.isfinite(self.model_.alpha_[k])]
            self.coef_std_[k, terms] = np.sqrt(np.diag(covariance))
        self.history_.append(self.coef_)
