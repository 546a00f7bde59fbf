"""Regressors with scikit-learn's interface: ``SparseBayesRegressor`` for any dictionary, ``RVR`` for kernels."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, MultiOutputMixin, RegressorMixin
from sklearn.utils.validation import check_consistent_length, check_is_fitted, validate_data

from sparsebayes.basis import Basis
from sparsebayes.estimators.dictionary import Dictionary, evaluate_kept, is_operator
from sparsebayes.estimators.kernels import resolve_kernel
from sparsebayes.estimators.regression import RegressionFit, Task, fit_regression
from sparsebayes.estimators.validation import (
    LIKELIHOODS,
    check_magnitude,
    check_noise,
    check_positive,
    check_weights,
    choose,
    resolve_solver,
)
from sparsebayes.inference import Sequential

Array = NDArray[np.float64]


class _Regressor(RegressorMixin, MultiOutputMixin, BaseEstimator, ABC):
    """What the regressors share; they differ in where their functions come from."""

    fit_intercept: bool
    solver: str | Sequential
    likelihood: str
    noise_variance: float | ArrayLike | None
    shared_support: bool
    tol: float
    max_iter: int
    random_state: int | np.random.RandomState | None
    verbose: int

    @abstractmethod
    def _make_basis(self, X: Any, weights: Array) -> Basis | None:
        """Basis for these training rows; None means the columns of X."""

    @abstractmethod
    def _check_inputs(self, X: Any, y: Any) -> tuple[Any, Array]:
        """Validate X and y."""

    @abstractmethod
    def _check_new(self, X: Any) -> Any:
        """Validate X of a prediction."""

    def fit(self, X: Any, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Learn which functions stay, their weights and the noise.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Training inputs.
        y : array-like of shape (n_samples,) or (n_samples, n_targets)
            Targets.
        sample_weight : array-like of shape (n_samples,), optional
            A weight of k is exactly k copies of the row; rows of weight zero are neither data nor centres.
        """
        choose("likelihood", self.likelihood, LIKELIHOODS)
        check_positive("tol", self.tol)
        check_positive("max_iter", self.max_iter, integer=True)
        solver = resolve_solver(self.solver)
        solver.check()
        X, targets = self._check_inputs(X, y)
        weights = check_weights(sample_weight, X.shape[0])
        rows = np.flatnonzero(weights > 0)
        if len(rows) < len(weights):
            X, targets, weights = self._take(X, rows), targets[rows], weights[rows]
        matrix = targets.reshape(len(targets), -1)
        check_magnitude("y", matrix)
        task = Task(
            X=X,
            y=matrix,
            weights=weights,
            noise_variance=check_noise(self.noise_variance, matrix.shape[1]),
            shared_support=self.shared_support,
            fit_intercept=self.fit_intercept,
            solver=solver,
            tol=self.tol,
            max_iter=self.max_iter,
            random_state=self.random_state,
            verbose=self.verbose,
        )
        dictionary = Dictionary.build(
            X, self._make_basis(X, weights), fit_intercept=self.fit_intercept, random_state=self.random_state
        )
        fit = fit_regression(task, dictionary)
        self._store(fit, single=targets.ndim == 1)
        self._store_relevance(fit, rows)
        return self

    def _take(self, X: Any, rows: NDArray[np.intp]) -> Any:
        """Rows of positive weight."""
        return X[rows]

    def _store(self, fit: RegressionFit, *, single: bool) -> None:
        self.relevance_functions_ = [] if fit.functions is None else fit.functions.specifications()
        self._functions = fit.functions
        self._posteriors = [target.posterior for target in fit.targets]
        self._single = single
        self.log_marginal_likelihood_ = fit.log_evidence
        noise = np.array([p.noise_variance for p in self._posteriors])
        covariances = [p.covariance for p in self._posteriors]
        self.noise_variance_ = float(noise[0]) if single else noise
        self.sigma_ = covariances[0] if single else covariances
        one = len(fit.statuses) == 1
        self.status_ = fit.statuses[0] if one else fit.statuses
        self.certificate_ = fit.certificates[0] if one else fit.certificates
        self.history_ = fit.histories[0] if one else fit.histories
        self.n_iter_ = fit.n_iter[0] if one else max(fit.n_iter)
        self._store_weights(fit, single)

    def _store_weights(self, fit: RegressionFit, single: bool) -> None:
        """``coef_``, ``intercept_`` and ``alpha_`` over the union of the targets' supports."""
        n_all = len(fit.relevance) + fit.with_bias
        weights = np.zeros((len(fit.targets), n_all))
        alpha = np.full((len(fit.targets), n_all), np.inf)
        offsets = np.array([target.posterior.offset for target in fit.targets])
        for k, target in enumerate(fit.targets):
            weights[k, target.posterior.functions] = target.posterior.mean
            alpha[k, target.posterior.functions] = target.alpha
        intercept = offsets + (weights[:, -1] if fit.with_bias else 0.0)
        coef = weights[:, : len(fit.relevance)]
        self.alpha_ = alpha[0] if single else alpha
        self.coef_ = coef[0] if single else coef
        self.intercept_ = float(intercept[0]) if single else intercept

    @abstractmethod
    def _store_relevance(self, fit: RegressionFit, rows: NDArray[np.intp]) -> None:
        """``relevance_`` and what goes with it, in terms of the rows or columns as given."""

    def _values(self, X: Any) -> Array:
        """Values of the kept functions on new rows."""
        check_is_fitted(self)
        return evaluate_kept(self._functions, self._check_new(X), None)

    def predict(self, X: Any, return_std: bool = False) -> Array | tuple[Array, Array]:
        """Predictive mean and, on request, standard deviation.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            New inputs.
        return_std : bool
            Also return the standard deviation of a new *observation*: the noise is included.

        Returns
        -------
        mean : ndarray of shape (n_samples,) or (n_samples, n_targets)
        std : ndarray of the same shape, only with ``return_std=True``
        """
        values = self._values(X)
        mean = np.column_stack([p.predict(values) for p in self._posteriors])
        if not return_std:
            return mean[:, 0] if self._single else mean
        std = np.column_stack([p.standard_deviation(values) for p in self._posteriors])
        return (mean[:, 0], std[:, 0]) if self._single else (mean, std)


_SHARED_PARAMETERS = """fit_intercept : bool
        Centre the targets and let a constant function join the dictionary like any other.
    solver : {{"sequential"}} or a solver object
        A solver object carries its own settings, which win over the estimator's.
    likelihood : {{"gaussian"}}
        Distribution of the targets.
    noise_variance : float, optional
        A number fixes the noise variance; None learns it.
    shared_support : bool
        With several targets: one set of functions, with common precisions, for all of them (in units of each
        target's standard deviation), instead of independent models.
    tol : float
        Converged means that no single move would raise the objective by more than this, in nats.
    max_iter : int
        Largest number of moves in one start.
    random_state : int, optional
        Seed for solvers and bases that draw at random.
    verbose : int
        1 prints progress, 2 every move.

    Attributes
    ----------
    relevance_ : ndarray of int
        {relevance}
    coef_ : ndarray
        {coef}
    intercept_ : float or ndarray
        Constant term: the mean of the targets plus the weight of the constant function, if it was kept.
    alpha_, sigma_ : ndarray
        Prior precisions and posterior covariance of the kept weights, in the order of ``relevance_``, the intercept
        last where one is kept.  With several targets ``alpha_`` has a row for each (infinite where a target does
        without a function) and ``sigma_`` is a list, each entry over the functions with finite ``alpha_``.
    noise_variance_ : float or ndarray
        Noise variance.
    log_marginal_likelihood_ : float
        Log evidence, summed over the targets.
    history_ : list of Record
        One record per move; the function indices are those of the dictionary, the intercept's is its length.
    n_iter_ : int
        Moves of the winning start.
    status_ : Status
        How the search ended, in words.
    certificate_ : Certificate
        Proof of convergence, recomputed on the data.
    relevance_functions_ : list of dict
        What the kept functions are, the intercept last."""


class SparseBayesRegressor(_Regressor):
    __doc__ = f"""Sparse Bayesian regression with any dictionary of functions.

    Parameters
    ----------
    basis : Basis, optional
        Where the functions come from, e.g. ``Bias() + Linear() + RBF(2.5)``; None means that the columns of X are
        the functions (automatic relevance determination for linear models).  X may then also be a SciPy sparse
        array or a ``LinearOperator``.
    {_SHARED_PARAMETERS.format(
        relevance="Indices of the kept functions: columns of X for linear models, else places in the dictionary.",
        coef="Posterior mean weights: of all columns of X for linear models (zero where left out), else of the kept "
        "functions.",
    )}

    Examples
    --------
    >>> from sparsebayes import SparseBayesRegressor
    >>> from sparsebayes.datasets import make_spikes
    >>> X, y, w = make_spikes(60, 100, 4, noise=0.01, random_state=0)
    >>> model = SparseBayesRegressor(fit_intercept=False).fit(X, y)
    >>> set(w.nonzero()[0]) <= set(model.relevance_)
    True
    """

    def __init__(
        self,
        basis: Basis | None = None,
        *,
        fit_intercept: bool = True,
        solver: str | Sequential = "sequential",
        likelihood: str = "gaussian",
        noise_variance: float | ArrayLike | None = None,
        shared_support: bool = False,
        tol: float = 1e-3,
        max_iter: int = 10_000,
        random_state: int | np.random.RandomState | None = None,
        verbose: int = 0,
    ) -> None:
        self.basis = basis
        self.fit_intercept = fit_intercept
        self.solver = solver
        self.likelihood = likelihood
        self.noise_variance = noise_variance
        self.shared_support = shared_support
        self.tol = tol
        self.max_iter = max_iter
        self.random_state = random_state
        self.verbose = verbose

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = self.basis is None
        return tags

    def _make_basis(self, X: Any, weights: Array) -> Basis | None:
        if self.basis is not None and not isinstance(self.basis, Basis):
            raise TypeError(f"basis={self.basis!r}: expected a Basis such as RBF(2.5), or None for the columns of X")
        return self.basis

    def _check_inputs(self, X: Any, y: Any) -> tuple[Any, Array]:
        if self.basis is None and is_operator(X):
            y = np.asarray(y, dtype=np.float64)
            check_consistent_length(np.empty(X.shape[0]), y)
            if not np.all(np.isfinite(y)):
                raise ValueError("y contains NaN or infinity")
            self.n_features_in_ = X.shape[1]
            return X, y
        X, y = validate_data(
            self, X, y, accept_sparse=("csc", "csr") if self.basis is None else False,
            dtype=np.float64, multi_output=True, y_numeric=True,
        )
        check_magnitude("X", X.data if hasattr(X, "indptr") else X)
        return X, np.asarray(y, dtype=np.float64)

    def _check_new(self, X: Any) -> Any:
        if self.basis is None and is_operator(X):
            if X.shape[1] != self.n_features_in_:
                raise ValueError(f"X has {X.shape[1]} columns; the model was fitted on {self.n_features_in_}")
            return X
        return validate_data(
            self, X, reset=False, dtype=np.float64, accept_sparse=("csc", "csr") if self.basis is None else False
        )

    def _take(self, X: Any, rows: NDArray[np.intp]) -> Any:
        if is_operator(X):
            raise ValueError("sample_weight of zero needs the rows of X, which a LinearOperator does not give")
        return super()._take(X, rows)

    def _values(self, X: Any) -> Array:
        check_is_fitted(self)
        linear = self.relevance_ if self.basis is None else None
        return evaluate_kept(self._functions, self._check_new(X), linear)

    def _store_relevance(self, fit: RegressionFit, rows: NDArray[np.intp]) -> None:
        self.relevance_ = fit.relevance
        if self.basis is None:
            kept = self.coef_
            self.coef_ = np.zeros((*kept.shape[:-1], self.n_features_in_))
            self.coef_[..., fit.relevance] = kept
        else:
            self.relevance_vectors_ = _centres(fit)


class RVR(_Regressor):
    __doc__ = f"""Relevance vector regression, a drop-in for scikit-learn's ``SVR``.

    Parameters
    ----------
    kernel : {{"rbf", "linear", "poly", "laplacian", "sigmoid", "precomputed"}}, Basis or callable
        Functions centred on the training rows.  A callable is ``k(X, Z)`` and returns the matrix of values.
    gamma : {{"scale", "auto"}} or float
        As in scikit-learn: ``exp(-gamma * ||x - x'||²)``; a paper's width r is ``gamma = 1 / r**2``.
    degree, coef0 : int, float
        Of ``"poly"`` and ``"sigmoid"``, as in scikit-learn.
    {_SHARED_PARAMETERS.format(
        relevance="Training rows whose functions were kept.",
        coef="Posterior mean weights of the kept functions.",
    )}
    relevance_vectors_ : ndarray of shape (n_kept, n_features)
        The kept rows themselves.

    Examples
    --------
    >>> from sparsebayes import RVR
    >>> from sparsebayes.datasets import make_sinc
    >>> X, y = make_sinc(100, noise=0.1, random_state=0)
    >>> model = RVR(gamma=1 / 4**2).fit(X, y)
    >>> len(model.relevance_) < 10
    True
    >>> mean, std = model.predict(X, return_std=True)
    """

    def __init__(
        self,
        kernel: Any = "rbf",
        *,
        gamma: str | float = "scale",
        degree: int = 3,
        coef0: float = 0.0,
        fit_intercept: bool = True,
        solver: str | Sequential = "sequential",
        likelihood: str = "gaussian",
        noise_variance: float | ArrayLike | None = None,
        shared_support: bool = False,
        tol: float = 1e-3,
        max_iter: int = 10_000,
        random_state: int | np.random.RandomState | None = None,
        verbose: int = 0,
    ) -> None:
        self.kernel = kernel
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        self.fit_intercept = fit_intercept
        self.solver = solver
        self.likelihood = likelihood
        self.noise_variance = noise_variance
        self.shared_support = shared_support
        self.tol = tol
        self.max_iter = max_iter
        self.random_state = random_state
        self.verbose = verbose

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.pairwise = self.kernel == "precomputed"
        return tags

    def _make_basis(self, X: Any, weights: Array) -> Basis:
        return resolve_kernel(self.kernel, self.gamma, self.degree, self.coef0, X, weights)

    def _check_inputs(self, X: Any, y: Any) -> tuple[Any, Array]:
        X, y = validate_data(self, X, y, dtype=np.float64, multi_output=True, y_numeric=True)
        check_magnitude("X", X)
        if self.kernel == "precomputed" and X.shape[0] != X.shape[1]:
            raise ValueError(f"a precomputed kernel must be square for fitting; X has shape {X.shape}")
        return X, np.asarray(y, dtype=np.float64)

    def _check_new(self, X: Any) -> Any:
        return validate_data(self, X, reset=False, dtype=np.float64)

    def _store_relevance(self, fit: RegressionFit, rows: NDArray[np.intp]) -> None:
        functions = fit.dictionary.functions
        centre_rows = functions.rows[fit.relevance] if functions is not None else fit.relevance
        precomputed = self.kernel == "precomputed"
        self.relevance_ = centre_rows if precomputed else np.where(centre_rows >= 0, rows[centre_rows], -1)
        self.relevance_vectors_ = _centres(fit)


def _centres(fit: RegressionFit) -> Array:
    """Centres of the kept functions without the intercept, NaN for a function that has none."""
    n_features = 0 if fit.functions is None else fit.functions.n_features
    if fit.functions is None or fit.functions.centres is None:
        return np.full((len(fit.relevance), n_features), np.nan)
    return fit.functions.centres[: len(fit.relevance)]
