"""Regressors with scikit-learn's interface: ``SparseBayesRegressor`` for any dictionary, ``RVR`` for kernels."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import MultiOutputMixin, RegressorMixin
from sklearn.utils.validation import check_is_fitted

from sparsebayes.basis import Basis
from sparsebayes.basis.arrays import is_elsewhere
from sparsebayes.estimators import cluster_fits
from sparsebayes.estimators.checks import (
    DASK,
    LIKELIHOODS,
    check_magnitude,
    check_noise,
    check_regressor,
    check_relative_noise,
    check_restarts,
    check_varying,
    choose,
    storage_of,
    targets_of,
)
from sparsebayes.estimators.counts import fit_counts
from sparsebayes.estimators.dictionary import Dictionary
from sparsebayes.estimators.documentation import KERNEL, RESULTS, SETTINGS, document
from sparsebayes.estimators.inputs import KernelInputs
from sparsebayes.estimators.learning import fit_by_race
from sparsebayes.estimators.left_out import LeftOut
from sparsebayes.estimators.regression import RegressionFit, TargetFit, Targets, fit_regression, mean_square
from sparsebayes.estimators.streaming import ChunkedRegression
from sparsebayes.estimators.task import FittedTo, Task
from sparsebayes.estimators.uncertainty import ErrorBars, LeftOutRows, localised_kernel
from sparsebayes.inference import Solver, Status
from sparsebayes.inference.fit.interrupt import interrupts_afterwards
from sparsebayes.likelihood import OutlierMixture, StudentT
from sparsebayes.posterior import PoissonPosterior, Term, TrainingRows, left_out_scores, summarise
from sparsebayes.threads import one_thread

Array = NDArray[np.float64]


class _Regressor(RegressorMixin, MultiOutputMixin, ErrorBars):
    """What the regressors share; they differ in where their functions come from."""

    likelihood: str
    noise: str
    noise_variance: float | ArrayLike | None
    shared_support: bool

    @interrupts_afterwards
    def fit(self, X: Any, y: ArrayLike | None = None, sample_weight: ArrayLike | None = None) -> Self:
        """Learn which functions stay, their weights and the noise.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Training inputs.
        y : array-like of shape (n_samples,) or (n_samples, n_targets)
            Targets.
        sample_weight : array-like of shape (n_samples,), optional
            A weight of k counts as k copies of the row; rows of weight zero are neither data nor centres.
        """
        self._forget()
        choose("likelihood", self.likelihood, LIKELIHOODS)
        solver, storage = self._checked_solver(), storage_of(X, y)
        check_restarts(self.n_restarts)
        check_regressor(self, solver, storage, sample_weight, targets_of(y))
        if storage is DASK:
            return self._fit_cluster(X, y)
        X, y = self._check_training(X, y, multi_output=True, y_numeric=True)
        check_varying(self, n_targets=np.asarray(y).reshape(X.shape[0], -1).shape[1])
        with one_thread(), self._watch() as progress:
            given = np.asarray(y, np.float64)
            data = FittedTo.of(X, given)
            # What is put off until it is asked for reads the rows then: the model's, which nobody else writes into.
            X = X if data is None else data.X
            task, dictionary, y, rows = self._prepare(X, given, sample_weight, progress=progress)
            matrix = y.reshape(len(y), -1)
            check_magnitude("y", matrix)
            noise = check_noise(self.noise_variance, matrix.shape[1])
            if noise is not None:
                check_relative_noise(noise, mean_square(matrix, task.weights))
            targets = Targets(matrix, noise, self.shared_support, self.likelihood, noise=self.noise)
            if self.likelihood != "poisson":
                fit = fit_regression(task, targets, dictionary)
            elif task.gamma is None:
                fit = fit_counts(task, targets, dictionary)
            else:
                fit = self._fit_raced(task, targets, dictionary, rows)
        self._store(fit, single=y.ndim == 1)
        self._store_rows(fit, task, matrix, rows, X.shape[0])
        self._store_relevance(fit.dictionary, fit.kept.relevance, rows)
        self._store_kernel(fit.kernel, fit.parameters, fit.gain)
        self._fitted_to = None if data is None else data.weighing(sample_weight)
        progress.conclude(self.certificate_, self.relevance_)
        return self

    def _fit_raced(self, task: Task, targets: Targets, dictionary: Dictionary, rows: NDArray[np.intp]) -> RegressionFit:
        """Fit counts with the kernel under which those of rows left out are likeliest."""
        fit, raced = fit_by_race(
            task,
            dictionary,
            targets.y,
            LeftOut.by(self, task, targets.y, lambda model, X, y: model.log_density(X, y)),
            lambda plain, kernel: fit_counts(plain, targets, self._build(plain, kernel, rows)),
        )
        if raced is None:
            return replace(fit, statuses=[Status.INTERRUPTED] * len(fit.statuses))
        return replace(fit, kernel=raced.kernel, parameters=raced.parameters, gain=raced.gain)

    @property
    def _gaussian_rows(self) -> bool:
        return self.likelihood == "gaussian"

    def _fit_cluster(self, X: Any, y: Any) -> Self:
        """Fit data in partitions: a few passes of exact sums, and the search on this side."""
        with self._watch() as progress:
            cluster, task, dictionary = self._gather(X, y, progress, numeric=True)
            fit = cluster_fits.fit_regression(cluster, task, dictionary, check_noise(self.noise_variance, 1))
        self._store(fit, single=True)
        self._store_no_rows()
        self._store_relevance(fit.dictionary, fit.kept.relevance, np.arange(cluster.n_rows))
        return self

    def _store(self, fit: RegressionFit, *, single: bool) -> None:
        self._store_functions(fit.kept)
        self._posteriors = [target.posterior for target in fit.targets]
        self._single = single
        self._supports, self._rule = [target.support for target in fit.targets], fit.rule
        self._effects = [target.effects for target in fit.targets]
        self.log_marginal_likelihood_ = fit.log_evidence
        covariances = [p.covariance for p in self._posteriors]
        if self.likelihood != "poisson":
            noise = np.array([p.noise_variance for p in self._gaussian()])
            self.noise_variance_ = float(noise[0]) if single else noise
            varies = np.array([p.varying is not None for p in self._gaussian()])
            self.noise_varies_ = bool(varies[0]) if single else varies
        self.sigma_ = covariances[0] if single else covariances
        one = len(fit.statuses) == 1
        self.status_ = fit.statuses[0] if one else fit.statuses
        self.certificate_ = fit.certificates[0] if one else fit.certificates
        self.history_ = fit.histories[0] if one else fit.histories
        self.n_iter_ = fit.n_iter[0] if one else max(fit.n_iter)
        self._store_weights(fit, single)

    def _store_no_rows(self) -> None:
        self._training = self._kernel = self._scores = self._score_counts = self._calibration = None
        self._refits = self._fold = None

    def _store_rows(self, fit: RegressionFit, task: Task, y: Array, rows: NDArray[np.intp], n_rows: int) -> None:
        """What error bars and outliers need of the training rows."""
        self._store_no_rows()
        # Rows on a device stay there: conformal error bars are then learned by calibrate().
        if self.likelihood == "poisson" or is_elsewhere(task.X):
            return
        relative = [_relative_precisions(target, len(y)) for target in fit.targets]
        values = fit.dictionary.design.columns(fit.kept.columns)
        scores = [left_out_scores(p, values, t, w) for p, t, w in zip(self._gaussian(), y.T, relative, strict=True)]
        self._scores, self._score_counts = np.column_stack(scores), task.weights
        self._kernel = localised_kernel(fit.dictionary.basis)
        if self._kernel is not None:
            weights = task.weights[:, None] * np.column_stack(relative)
            # A copy: what the caller writes into X after the fit is no training row.
            self._training = TrainingRows(task.X.copy(), weights, mean_square(y, task.weights))
        if self.likelihood != "gaussian":
            self._store_outliers(fit, rows, n_rows)
            return
        self._calibration = LeftOutRows.of(
            task.X,
            fit.dictionary,
            self._gaussian(),
            [_kept(fit, target) for target in fit.targets],
            y,
            task.weights,
            fit.rule.cost,
            shared=self.shared_support,
            precisions=[target.precisions for target in fit.targets],
            tuned=fit.tuned,
        )

    def _store_outliers(self, fit: RegressionFit, rows: NDArray[np.intp], n_rows: int) -> None:
        """Per row, NaN where its weight is zero."""
        probability = np.full((n_rows, len(fit.targets)), np.nan)
        noises = [target.noise for target in fit.targets if target.noise is not None]
        probability[rows] = np.column_stack([noise.outlier_probability() for noise in noises])
        self.outlier_probability_ = probability[:, 0] if self._single else probability
        if self.likelihood == "student-t":
            degrees = np.array([noise.degrees for noise in noises if isinstance(noise, StudentT)])
            self.degrees_of_freedom_ = float(degrees[0]) if self._single else degrees
        else:
            shares = np.array([1.0 - noise.data_share for noise in noises if isinstance(noise, OutlierMixture)])
            self.outlier_share_ = float(shares[0]) if self._single else shares

    def _output_labels(self) -> list[list[int]]:
        return [[k] * len(posterior.mean) for k, posterior in enumerate(self._posteriors)]

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

    def terms(self) -> list[Term]:
        """What each kept term does for the model: one :class:`Term` each, the most important of a target first."""
        check_is_fitted(self)
        alpha, terms = np.atleast_2d(self.alpha_), []
        for k, (posterior, support) in enumerate(zip(self._posteriors, self._supports, strict=True)):
            mine, lost = posterior.functions, support.lost if isinstance(posterior, PoissonPosterior) else None
            functions = [self.relevance_functions_[m] for m in mine]
            terms += summarise(k, functions, posterior.mean, posterior.covariance, alpha[k, mine], lost)
        return terms


def _kept(fit: RegressionFit, target: TargetFit) -> tuple[NDArray[np.intp], Array]:
    """Functions of a target by their places in the dictionary, with their precisions."""
    return fit.kept.columns[target.posterior.functions], target.alpha


def _relative_precisions(target: TargetFit, n_rows: int) -> Array:
    """Precision of every row, relative to the noise variance of the posterior."""
    if target.noise is not None:
        return target.noise.weights
    return np.ones(n_rows) if target.precisions is None else target.precisions


@document(SETTINGS, RESULTS)
class SparseBayesRegressor(_Regressor, ChunkedRegression):
    """Sparse Bayesian regression with any dictionary of functions.

    Parameters
    ----------
    basis : Basis, optional
        Where the functions come from, e.g. ``Bias() + Linear() + RBF(2.5)``; None means that the columns of X are the
        functions (automatic relevance determination for linear models).  X may then also be a SciPy sparse array or a
        ``LinearOperator``.  Where the functions do not depend on all rows, X may be a memory-mapped array or a source
        of chunks (``sparsebayes.chunks``), and is never held.

    Notes
    -----
    ``relevance_`` holds columns of X for linear models, else places in the dictionary.  ``coef_`` of a linear model has
    an entry for every column of X, zero where it was left out; ``X_offset_`` is what was taken off each column, so that
    ``X @ coef_ + intercept_`` is the prediction and ``(X - X_offset_)[:, relevance_]`` are the functions of ``sigma_``.

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
        support: str = "evidence",
        likelihood: str = "gaussian",
        noise: str = "constant",
        noise_variance: float | ArrayLike | None = None,
        shared_support: bool = False,
        tol: float = 1e-3,
        max_iter: int = 10_000,
        compression: str | bool = "auto",
        storage: str = "float64",
        checkpoint: str | None = None,
        effort: str = "default",
        n_restarts: int = 0,
        random_state: int | np.random.RandomState | None = None,
        verbose: int = 0,
        device: str | None = None,
    ) -> None:
        self.basis = basis
        self.fit_intercept = fit_intercept
        self.solver = solver
        self.support = support
        self.likelihood = likelihood
        self.noise = noise
        self.noise_variance = noise_variance
        self.shared_support = shared_support
        self.tol = tol
        self.max_iter = max_iter
        self.compression = compression
        self.storage = storage
        self.checkpoint = checkpoint
        self.effort = effort
        self.n_restarts = n_restarts
        self.random_state = random_state
        self.verbose = verbose
        self.device = device

    @interrupts_afterwards
    def fit(self, X: Any, y: ArrayLike | None = None, sample_weight: ArrayLike | None = None) -> Self:
        """Learn which functions stay, their weights and the noise.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features), or chunks
            Training inputs; or a ``sparsebayes.chunks.Chunks``, an iterator or a list of tuples ``(X, y)`` or ``(X, y,
            weight)``, or a function that returns an iterator of them.  Of chunks, and of memory-mapped arrays, only
            inner products are kept.
        y : array-like of shape (n_samples,) or (n_samples, n_targets)
            Targets; None where X gives them.
        sample_weight : array-like of shape (n_samples,), optional
            A weight of k counts as k copies of the row; rows of weight zero are neither data nor centres.
        """
        if self._fit_chunks(X, y, sample_weight):
            return self
        return super().fit(X, y, sample_weight)


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
        support: str = "evidence",
        likelihood: str = "gaussian",
        noise: str = "constant",
        noise_variance: float | ArrayLike | None = None,
        shared_support: bool = False,
        tol: float = 1e-3,
        max_iter: int = 10_000,
        compression: str | bool = "auto",
        storage: str = "float64",
        checkpoint: str | None = None,
        effort: str = "default",
        n_restarts: int = 0,
        random_state: int | np.random.RandomState | None = None,
        verbose: int = 0,
        device: str | None = None,
    ) -> None:
        self.kernel = kernel
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        self.fit_intercept = fit_intercept
        self.solver = solver
        self.support = support
        self.likelihood = likelihood
        self.noise = noise
        self.noise_variance = noise_variance
        self.shared_support = shared_support
        self.tol = tol
        self.max_iter = max_iter
        self.compression = compression
        self.storage = storage
        self.checkpoint = checkpoint
        self.effort = effort
        self.n_restarts = n_restarts
        self.random_state = random_state
        self.verbose = verbose
        self.device = device
