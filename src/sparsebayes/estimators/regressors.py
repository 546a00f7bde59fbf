"""Regressors with scikit-learn's interface: ``SparseBayesRegressor`` for any dictionary, ``RVR`` for kernels."""

from __future__ import annotations

from functools import partial
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import MultiOutputMixin, RegressorMixin
from sklearn.utils.validation import check_is_fitted

from sparsebayes.basis import Basis
from sparsebayes.estimators import cluster_fits
from sparsebayes.estimators.cluster import is_dask
from sparsebayes.estimators.documentation import KERNEL, RESULTS, SETTINGS, document
from sparsebayes.estimators.inputs import DictionaryInputs, Inputs, KernelInputs
from sparsebayes.estimators.regression import RegressionFit, Targets, fit_regression
from sparsebayes.estimators.targets import mean_square
from sparsebayes.estimators.validation import LIKELIHOODS, check_magnitude, check_noise, check_relative_noise, choose
from sparsebayes.inference import Solver

Array = NDArray[np.float64]


class _Regressor(RegressorMixin, MultiOutputMixin, Inputs):
    """What the regressors share; they differ in where their functions come from."""

    likelihood: str
    noise_variance: float | ArrayLike | None
    shared_support: bool

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
        self._forget()
        choose("likelihood", self.likelihood, LIKELIHOODS)
        if is_dask(X):
            return self._fit_cluster(X, y, sample_weight)
        X, y = self._check_training(X, y, multi_output=True, y_numeric=True)
        task, dictionary, y, rows = self._prepare(X, np.asarray(y, dtype=np.float64), sample_weight)
        matrix = y.reshape(len(y), -1)
        check_magnitude("y", matrix)
        noise = check_noise(self.noise_variance, matrix.shape[1])
        check_relative_noise(noise, mean_square(matrix, task.weights))
        targets = Targets(matrix, noise, self.shared_support)
        fit = fit_regression(task, targets, dictionary)
        self._store(fit, single=y.ndim == 1)
        self._store_relevance(fit.dictionary, fit.kept.relevance, rows)
        return self

    def _fit_cluster(self, X: Any, y: Any, sample_weight: Any) -> Self:
        """Fit data in partitions: a few passes of exact sums, and the search on this side."""
        cluster, task, dictionary = self._gather(X, y, sample_weight, numeric=True)
        fit = cluster_fits.fit_regression(cluster, task, dictionary, check_noise(self.noise_variance, 1))
        self._store(fit, single=True)
        self._store_relevance(fit.dictionary, fit.kept.relevance, np.arange(cluster.n_rows))
        return self

    def _store(self, fit: RegressionFit, *, single: bool) -> None:
        self._store_functions(fit.kept)
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
        n_kept, with_bias = len(fit.kept.relevance), fit.kept.with_bias
        n_all = n_kept + with_bias
        weights = np.zeros((len(fit.targets), n_all))
        alpha = np.full((len(fit.targets), n_all), np.inf)
        offsets = np.array([target.posterior.offset for target in fit.targets])
        for k, target in enumerate(fit.targets):
            weights[k, target.posterior.functions] = target.posterior.mean
            alpha[k, target.posterior.functions] = target.alpha
        intercept = offsets + (weights[:, -1] if with_bias else 0.0)
        coef = weights[:, :n_kept]
        self.alpha_ = alpha[0] if single else alpha
        self.coef_ = coef[0] if single else coef
        self.intercept_ = float(intercept[0]) if single else intercept

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
        check_is_fitted(self)
        width = None if self._single else len(self._posteriors)
        if is_dask(X) and return_std:
            mean, std = (self._map(X, partial(self._predicted, which=k), width) for k in (0, 1))
            return mean, std
        return self._map(X, lambda values: self._predict(values, return_std), width)

    def _predicted(self, values: Array, which: int) -> Array:
        return self._predict(values, True)[which]

    def _predict(self, values: Array, return_std: bool) -> Array | tuple[Array, Array]:
        """Predictions from the values of the kept functions."""
        mean = np.column_stack([p.predict(values) for p in self._posteriors])
        if not return_std:
            return mean[:, 0] if self._single else mean
        std = np.column_stack([p.standard_deviation(values) for p in self._posteriors])
        return (mean[:, 0], std[:, 0]) if self._single else (mean, std)


@document(SETTINGS, RESULTS)
class SparseBayesRegressor(DictionaryInputs, _Regressor):
    """Sparse Bayesian regression with any dictionary of functions.

    Parameters
    ----------
    basis : Basis, optional
        Where the functions come from, e.g. ``Bias() + Linear() + RBF(2.5)``; None means that the columns of X are the
        functions (automatic relevance determination for linear models).  X may then also be a SciPy sparse array or a
        ``LinearOperator``.

    Notes
    -----
    ``relevance_`` holds columns of X for linear models, else places in the dictionary.  ``coef_`` of a linear model has
    an entry for every column of X, zero where it was left out.

    Examples
    --------
    >>> from sparsebayes import SparseBayesRegressor
    >>> from sparsebayes.datasets import make_spikes
    >>> X, y, w = make_spikes(100, 50, 4, noise=0.01, random_state=0)
    >>> model = SparseBayesRegressor(fit_intercept=False).fit(X, y)
    >>> set(w.nonzero()[0]) <= set(model.relevance_)
    True
    >>> model.status_.name
    'CONVERGED'
    """

    def __init__(
        self,
        basis: Basis | None = None,
        *,
        fit_intercept: bool = True,
        solver: str | Solver = "sequential",
        likelihood: str = "gaussian",
        noise_variance: float | ArrayLike | None = None,
        shared_support: bool = False,
        tol: float = 1e-3,
        max_iter: int = 10_000,
        random_state: int | np.random.RandomState | None = None,
        verbose: int = 0,
        device: str | None = None,
        storage: str = "float64",
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
        self.device = device
        self.storage = storage


@document(KERNEL, SETTINGS, RESULTS)
class RVR(KernelInputs, _Regressor):
    """Relevance vector regression, a drop-in for scikit-learn's ``SVR``.

    Notes
    -----
    ``relevance_`` holds the training rows whose functions were kept, ``relevance_vectors_`` the rows themselves.

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
        solver: str | Solver = "sequential",
        likelihood: str = "gaussian",
        noise_variance: float | ArrayLike | None = None,
        shared_support: bool = False,
        tol: float = 1e-3,
        max_iter: int = 10_000,
        random_state: int | np.random.RandomState | None = None,
        verbose: int = 0,
        device: str | None = None,
        storage: str = "float64",
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
        self.device = device
        self.storage = storage
