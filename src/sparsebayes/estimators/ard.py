"""Automatic relevance determination under the names of scikit-learn's ``ARDRegression``."""

from __future__ import annotations

from numbers import Real
from typing import Any, Self

import numpy as np
from sklearn.base import RegressorMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from sparsebayes.estimators.portable import Portable
from sparsebayes.estimators.regressors import SparseBayesRegressor
from sparsebayes.inference import Solver
from sparsebayes.inference.fit.interrupt import interrupts_afterwards
from sparsebayes.typing import Array

# scikit-learn's defaults, meant to say nothing; here the precisions have no prior at all.
_VAGUE = 1e-6


class ARDRegression(RegressorMixin, Portable):
    """Sparse linear regression with scikit-learn's names: a drop-in for ``sklearn.linear_model.ARDRegression``.

    The model is the same, but the evidence is maximised by this library's solvers, which decide by the evidence whether
    a column stays, watch for a collapse of the noise, and end with a certificate.  For all that the library offers
    (other functions, several targets, weights, sparse arrays), use :class:`SparseBayesRegressor`.

    Parameters
    ----------
    max_iter : int, default=10_000
        Largest number of moves in one start; a move changes one precision, an iteration of scikit-learn's all.
    tol : float, default=1e-3
        Converged means that no single move would raise the objective by more than this, in nats.
    alpha_1, alpha_2, lambda_1, lambda_2 : float, default=1e-6
        Parameters of scikit-learn's Gamma priors on the precisions, from 0 to 1e-6: without influence, as these are
        meant to be.  Larger ones are refused.
    compute_score : bool, default=False
        Whether to fill ``scores_``.
    threshold_lambda : float, default=1e4
        Accepted for the sake of code that sets it and without effect: the evidence itself decides which columns stay.
    fit_intercept : bool, default=True
        Whether to centre the columns and the targets.
    copy_X : bool, default=True
        Without effect: X is never overwritten.
    verbose : bool, default=False
        Whether to print progress.
    solver : {"sequential"} or a solver object, default="sequential"
        As in :class:`SparseBayesRegressor`.

    Attributes
    ----------
    coef_ : ndarray of shape (n_features,)
        Posterior mean of the weights, zero for the columns left out.
    sigma_ : ndarray of shape (n_features, n_features)
        Posterior covariance of all weights, zero for the columns left out.
    alpha_ : float
        Precision of the *noise*, 1/σ².
    lambda_ : ndarray of shape (n_features,)
        Precisions of the *weights* (``alpha_`` elsewhere in this library), infinite for the columns left out.
    scores_ : ndarray
        Objective after every move of the winning start and at its end, if ``compute_score``, else empty.
    intercept_ : float
        Constant term.
    X_offset_, X_scale_ : ndarray of shape (n_features,)
        Means of the columns (zero without an intercept), and ones.
    n_iter_ : int
        Moves of the winning start.
    relevance_ : ndarray of int
        The columns kept, sorted.
    log_marginal_likelihood_, history_, status_, certificate_
        As in :class:`SparseBayesRegressor`.

    Notes
    -----
    The standard deviation of a prediction is that of a new observation at centred columns,
    σ² + (x − x̄)ᵀ Σ (x − x̄), since the model is one of centred columns; scikit-learn's leaves the centring out.

    Examples
    --------
    >>> from sparsebayes import ARDRegression
    >>> model = ARDRegression().fit([[0, 1], [1, 0], [2, 1], [3, 0]], [0.0, 1.1, 1.9, 3.0])
    >>> model.lambda_.shape, model.sigma_.shape
    ((2,), (2, 2))
    """

    n_features_in_: int

    def __init__(
        self,
        *,
        max_iter: int = 10_000,
        tol: float = 1e-3,
        alpha_1: float = 1e-6,
        alpha_2: float = 1e-6,
        lambda_1: float = 1e-6,
        lambda_2: float = 1e-6,
        compute_score: bool = False,
        threshold_lambda: float = 1e4,
        fit_intercept: bool = True,
        copy_X: bool = True,
        verbose: bool | int = False,
        solver: str | Solver = "sequential",
    ) -> None:
        self.max_iter = max_iter
        self.tol = tol
        self.alpha_1 = alpha_1
        self.alpha_2 = alpha_2
        self.lambda_1 = lambda_1
        self.lambda_2 = lambda_2
        self.compute_score = compute_score
        self.threshold_lambda = threshold_lambda
        self.fit_intercept = fit_intercept
        self.copy_X = copy_X
        self.verbose = verbose
        self.solver = solver

    @interrupts_afterwards
    def fit(self, X: Any, y: Any) -> Self:
        """Learn which columns stay, their weights and the noise.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Training inputs.
        y : array-like of shape (n_samples,)
            Targets.
        """
        self._check_priors()
        X, y = validate_data(self, X, y, dtype=np.float64, y_numeric=True, ensure_min_samples=2)
        d = X.shape[1]
        self.X_offset_ = X.mean(axis=0) if self.fit_intercept else np.zeros(d)
        self.X_scale_ = np.ones(d)
        y_offset = float(np.mean(y)) if self.fit_intercept else 0.0
        model = SparseBayesRegressor(
            fit_intercept=False, solver=self.solver, tol=self.tol, max_iter=self.max_iter, verbose=int(self.verbose)
        ).fit(X - self.X_offset_, np.asarray(y, dtype=np.float64) - y_offset)
        self._store(model, d)
        self.intercept_ = y_offset - float(self.X_offset_ @ self.coef_)
        return self

    def _check_priors(self) -> None:
        for name in ("alpha_1", "alpha_2", "lambda_1", "lambda_2"):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, Real) or not 0.0 <= float(value) <= _VAGUE:
                raise ValueError(
                    f"{name}={value!r}: expected a number from 0 to {_VAGUE}; the evidence is maximised without priors "
                    "on the precisions, so a Gamma prior that matters needs sklearn.linear_model.ARDRegression"
                )

    def _store(self, model: Any, d: int) -> None:
        kept = model.relevance_
        self.coef_ = model.coef_
        self.sigma_ = np.zeros((d, d))
        self.sigma_[np.ix_(kept, kept)] = model.sigma_
        self.lambda_ = np.full(d, np.inf)
        self.lambda_[kept] = model.alpha_
        self.alpha_ = 1.0 / float(model.noise_variance_)
        self.relevance_ = kept
        winner = model.certificate_.start
        scores = [record.objective for record in model.history_ if record.start == winner]
        # A start that begins where the one before it ended may win without a move of its own.
        self.scores_ = np.array([*scores, model.certificate_.objective] if self.compute_score else [])
        self.n_iter_ = model.n_iter_
        self.log_marginal_likelihood_ = model.log_marginal_likelihood_
        self.history_, self.status_, self.certificate_ = model.history_, model.status_, model.certificate_

    def predict(self, X: Any, return_std: bool = False) -> Array | tuple[Array, Array]:
        """Predictive mean and, on request, standard deviation of a new observation.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            New inputs.
        return_std : bool
            Also return the standard deviation of a new *observation*: the noise is included.
        """
        check_is_fitted(self)
        X = validate_data(self, X, reset=False, dtype=np.float64)
        mean = X @ self.coef_ + self.intercept_
        if not return_std:
            return mean
        centred = (X - self.X_offset_)[:, self.relevance_]
        covariance = self.sigma_[np.ix_(self.relevance_, self.relevance_)]
        spread = np.einsum("na,na->n", centred @ covariance, centred)
        return mean, np.sqrt(1.0 / self.alpha_ + np.maximum(spread, 0.0))
