"""Classifiers with scikit-learn's interface: ``SparseBayesClassifier`` for any dictionary, ``RVC`` for kernels."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import ClassifierMixin
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, column_or_1d

from sparsebayes.basis import Basis
from sparsebayes.basis.arrays import is_elsewhere
from sparsebayes.estimators import cluster_fits
from sparsebayes.estimators.checks import (
    DASK,
    check_class_weights,
    check_classes,
    check_classifier,
    check_labels,
    check_restarts,
    check_weights,
    choose,
    classes_that_share,
    storage_of,
)
from sparsebayes.estimators.classification import (
    EVIDENCES,
    ClassificationFit,
    chosen_by,
    fit_classification,
    regressable,
)
from sparsebayes.estimators.dictionary import Dictionary
from sparsebayes.estimators.documentation import KERNEL, RESULTS, SETTINGS, document
from sparsebayes.estimators.inputs import DictionaryInputs, Inputs, KernelInputs
from sparsebayes.estimators.learning import fit_by_race
from sparsebayes.estimators.left_out import LeftOut, density_of_classes
from sparsebayes.estimators.task import FittedTo, Task
from sparsebayes.inference import Solver, Status
from sparsebayes.inference.fit.indicators import ROWS_EACH
from sparsebayes.inference.fit.interrupt import interrupts_afterwards
from sparsebayes.posterior import Term, summarise
from sparsebayes.threads import one_thread

Array = NDArray[np.float64]
Index = NDArray[np.intp]

_MULTI_CLASS = ("softmax", "ovr")


class _Classifier(ClassifierMixin, Inputs):
    """What the classifiers share; they differ in where their functions come from."""

    multi_class: str
    shared_support: bool
    evidence: str
    class_weight: dict[Any, float] | str | None

    @interrupts_afterwards
    def fit(self, X: Any, y: ArrayLike | None = None, sample_weight: ArrayLike | None = None) -> Self:
        """Learn which functions stay, and their weights.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Training inputs.
        y : array-like of shape (n_samples,)
            Labels of any one type, texts, numbers or bools; none may be missing.
        sample_weight : array-like of shape (n_samples,), optional
            A weight of k counts as k copies of the row; rows of weight zero are neither data nor centres.
        """
        self._forget()
        choose("multi_class", self.multi_class, _MULTI_CLASS)
        choose("evidence", self.evidence, EVIDENCES)
        solver, storage = self._checked_solver(), storage_of(X, y)
        check_restarts(self.n_restarts)
        check_classifier(self, solver, storage, sample_weight)
        if storage is DASK:
            return self._fit_cluster(X, y)
        X, y = self._check_training(X, y if is_elsewhere(y) else check_labels(y))
        if not is_elsewhere(X):
            check_classification_targets(y)
        y = np.asarray(column_or_1d(y, warn=True))
        weights = check_weights(sample_weight, X.shape[0])
        by_class = check_class_weights(self.class_weight, y, weights)
        self.classes_, labels = _encode(y, weights * by_class)
        check_classes(self, solver, len(self.classes_))
        if is_elsewhere(X):  # many rows: their few classes are checked in their place
            check_classification_targets(self.classes_)
        data = FittedTo.of(X, y)
        # What is put off until it is asked for reads the rows then: the model's, which nobody else writes into.
        X = X if data is None else data.X
        with one_thread(), self._watch() as progress:
            task, dictionary, labels, rows = self._prepare(X, labels, sample_weight, by_class, progress)
            if task.gamma is None:
                fit = self._fit_at(task, dictionary, labels)
            else:
                fit = self._fit_raced(task, dictionary, labels, rows)
        self._store(fit)
        self._store_relevance(fit.dictionary, fit.kept.relevance, rows)
        self._store_kernel(fit.kernel, fit.parameters, fit.gain)
        self._fitted_to = None if data is None else data.weighing(sample_weight)
        progress.conclude(self.certificate_, self.relevance_)
        return self

    def _fit_at(self, task: Task, dictionary: Dictionary, labels: Index) -> ClassificationFit:
        """Fit labels 0..K-1 on a dictionary."""
        return fit_classification(
            task,
            labels,
            len(self.classes_),
            dictionary,
            joint=self.multi_class == "softmax",
            shared=self.shared_support,
            evidence=self.evidence,
        )

    def _fit_raced(self, task: Task, dictionary: Dictionary, labels: Index, rows: Index) -> ClassificationFit:
        """Fit with the kernel under which the classes of rows left out are likeliest.

        No evidence is a judge of kernels here: where classes can be separated it rises while the log loss does too.
        """
        # Kernels under which a regression finds nothing have lost; no search takes minutes to find something there.
        evidence = "indicators" if self._joint and self.evidence == "auto" else self.evidence
        fit, raced = fit_by_race(
            task,
            dictionary,
            np.eye(len(self.classes_))[labels],
            LeftOut.by(self, task, labels, density_of_classes, class_weight=None, evidence=evidence),
            lambda plain, kernel: self._fit_at(plain, self._build(plain, kernel, rows), labels),
        )
        if raced is None:
            return replace(fit, results=[replace(result, status=Status.INTERRUPTED) for result in fit.results])
        return replace(fit, kernel=raced.kernel, parameters=raced.parameters, gain=raced.gain)

    @property
    def _joint(self) -> bool:
        """Whether more than two classes have one model."""
        return self.multi_class == "softmax" and len(self.classes_) > 2

    def _by_regression(self, task: Task) -> bool:
        if self._joint:
            return self.shared_support and regressable(task)
        return chosen_by(self.evidence, task, np.inf) == "indicators"

    def _largest_rank(self, task: Task) -> float:
        if not self._by_regression(task):
            return super()._largest_rank(task)
        # A regression makes use of a compression that spans its functions with few for so many rows.
        return 1.0 / ROWS_EACH

    def _fit_cluster(self, X: Any, y: Any) -> Self:
        """Fit data in partitions: one pass of exact sums for every Newton step."""
        with self._watch() as progress:
            cluster, task, dictionary = self._gather(X, y, progress, numeric=False)
            self.classes_ = cluster_fits.find_classes(cluster)
            joint = self.multi_class == "softmax"
            if joint and self.shared_support and len(self.classes_) > 2:
                DASK.refuse([classes_that_share(len(self.classes_))])
            fit = cluster_fits.fit_classification(cluster, task, dictionary, self.classes_, joint, self.evidence)
            fit.supports.all()  # now: its workers could not be asked while the model is on its way to them
        self._store(fit)
        self._store_relevance(dictionary, fit.kept.relevance, np.arange(cluster.n_rows))
        return self

    def _store(self, fit: ClassificationFit) -> None:
        self._store_functions(fit.kept)
        self._posteriors = fit.posteriors
        self._supports, self._rule = fit.supports, fit.rule
        self.alpha_ = fit.alpha
        self.coef_ = fit.weights[:, : len(fit.kept.relevance)]
        self.intercept_ = fit.weights[:, -1].copy() if fit.kept.with_bias else np.zeros(len(fit.weights))
        one = len(fit.results) == 1
        covariances = [posterior.covariance for posterior in fit.posteriors]
        self.sigma_ = covariances[0] if one else covariances
        self.log_marginal_likelihood_ = float(sum(r.certificate.log_evidence for r in fit.results))
        self.status_ = fit.results[0].status if one else [r.status for r in fit.results]
        self.certificate_ = fit.results[0].certificate if one else [r.certificate for r in fit.results]
        self.history_ = fit.results[0].history if one else [r.history for r in fit.results]
        self.n_iter_ = max(r.n_iter for r in fit.results)

    def _output_labels(self) -> list[list[Any]]:
        if len(self.classes_) == 2:
            return [[self.classes_[1]] * len(posterior.mean) for posterior in self._posteriors]
        if len(self._posteriors) == 1:
            return [list(self.classes_[self._posteriors[0].outputs])]
        return [[label] * len(p.mean) for label, p in zip(self.classes_, self._posteriors, strict=True)]

    def decision_function(self, X: Any) -> Array:
        """Outputs y(x), moderated by their uncertainty.

        For two classes (n_samples,), the log-odds of the second; else a column for each class, whose softmax (one
        against the rest: logistic, normalised) is ``predict_proba``.
        """
        check_is_fitted(self)
        return self._map(X, self._decide, None if len(self.classes_) == 2 else len(self.classes_))

    def _decide(self, values: Array) -> Array:
        """Outputs from the values of the kept functions."""
        y = np.hstack([posterior.decide(values, moderated=True) for posterior in self._posteriors])
        return y[:, 0] if len(self.classes_) == 2 else y

    def predict(self, X: Any) -> NDArray[Any]:
        """Most probable class."""
        check_is_fitted(self)
        return self._map(X, lambda values: self._label(self._decide(values)), dtype=self.classes_.dtype)

    def _label(self, y: Array) -> NDArray[Any]:
        return self.classes_[(y > 0).astype(int) if y.ndim == 1 else np.argmax(y, axis=1)]

    def predict_proba(self, X: Any, moderated: bool = True) -> Array:
        """Class probabilities, (n_samples, n_classes).

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            New inputs.
        moderated : bool
            Integrate over the posterior of the weights (default), or plug its mode in.
        """
        check_is_fitted(self)
        return self._map(X, lambda values: self._probabilities(values, moderated), len(self.classes_))

    def _probabilities(self, values: Array, moderated: bool) -> Array:
        """Class probabilities from the values of the kept functions."""
        p = np.hstack([posterior.probabilities(values, moderated=moderated) for posterior in self._posteriors])
        if len(self.classes_) == 2:
            return np.hstack([1.0 - p, p])
        total = p.sum(axis=1, keepdims=True)
        # One against the rest: every probability can underflow at once, which says nothing about the class.
        return np.where(total > 0.0, p / np.where(total > 0.0, total, 1.0), 1.0 / p.shape[1])

    def predict_log_proba(self, X: Any) -> Array:
        """Logarithm of the class probabilities."""

        def logarithm(values: Array) -> Array:
            with np.errstate(divide="ignore"):
                return np.log(self._probabilities(values, True))

        check_is_fitted(self)
        return self._map(X, logarithm, len(self.classes_))

    def terms(self) -> list[Term]:
        """What each kept term does for the model: one :class:`Term` each, the most important of a class first."""
        check_is_fitted(self)
        terms: list[Term] = []
        for c, (posterior, support) in enumerate(zip(self._posteriors, self._supports, strict=True)):
            for k in range(posterior.n_outputs):
                mine, row = posterior.outputs == k, c + k
                places = posterior.functions[mine]
                functions = [self.relevance_functions_[m] for m in places]
                covariance = posterior.covariance[np.ix_(mine, mine)]
                lost = support.take(np.flatnonzero(mine)).lost
                terms += summarise(row, functions, posterior.mean[mine], covariance, self.alpha_[row, places], lost)
        return terms


def _encode(y: NDArray[Any], weights: Array) -> tuple[NDArray[Any], NDArray[np.intp]]:
    """Classes and their numbers; at least two must have data."""
    classes, labels = _number(y)
    present = np.flatnonzero(np.bincount(labels[weights > 0], minlength=len(classes)))
    if len(present) < 2:
        raise ValueError(
            f"y has one class only ({classes[present].tolist()[0]!r} on the rows of positive weight): "
            "a classifier needs at least 2 classes"
        )
    renumber = np.full(len(classes), -1, dtype=np.intp)
    renumber[present] = np.arange(len(present))
    return classes[present], renumber[labels]


def _number(y: NDArray[Any]) -> tuple[NDArray[Any], NDArray[np.intp]]:
    """Distinct labels, sorted, and the number of each row's; integers of a small range are counted, not sorted."""
    low, high = (int(np.min(y)), int(np.max(y))) if y.dtype.kind == "i" else (0, len(y))
    if high - low >= len(y):
        return np.unique(y, return_inverse=True)
    place = np.subtract(y, low, dtype=np.intp)
    seen = np.bincount(place) > 0
    return (np.flatnonzero(seen) + low).astype(y.dtype), (np.cumsum(seen) - 1)[place]


@document(SETTINGS, RESULTS)
class SparseBayesClassifier(DictionaryInputs, _Classifier):
    """Sparse Bayesian classification with any dictionary of functions.

    Parameters
    ----------
    basis : Basis, optional
        Where the functions come from, e.g. ``Linear() + RBF(2.5)``; None means that the columns of X are the functions.
        X may then also be a SciPy sparse array or a ``LinearOperator``.

    Notes
    -----
    ``relevance_`` holds columns of X for linear models, else places in the dictionary.  ``coef_`` of a linear model has
    an entry for every column of X, zero where it was left out; ``X_offset_`` is what was taken off each column
    (``intercept_`` is that of the columns as given).

    Examples
    --------
    >>> from sparsebayes import SparseBayesClassifier
    >>> from sparsebayes.datasets import load
    >>> X, y = load("iris", return_X_y=True)
    >>> SparseBayesClassifier().fit(X, y).score(X, y) > 0.9
    True
    """

    def __init__(
        self,
        basis: Basis | None = None,
        *,
        fit_intercept: bool = True,
        solver: str | Solver = "sequential",
        support: str = "evidence",
        multi_class: str = "softmax",
        shared_support: bool = True,
        evidence: str = "auto",
        class_weight: dict[Any, float] | str | None = None,
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
        self.multi_class = multi_class
        self.shared_support = shared_support
        self.evidence = evidence
        self.class_weight = class_weight
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


@document(KERNEL, SETTINGS, RESULTS)
class RVC(KernelInputs, _Classifier):
    """Relevance vector classification, a drop-in for scikit-learn's ``SVC``.

    Notes
    -----
    ``relevance_`` holds the training rows whose functions were kept, ``relevance_vectors_`` the rows themselves.

    Examples
    --------
    >>> from sparsebayes import RVC
    >>> from sparsebayes.datasets import load
    >>> data = load("ripley_synth")
    >>> train, test = data.train_idx, data.test_idx
    >>> model = RVC(gamma=1 / 0.5**2).fit(data.data[train], data.target[train])
    >>> model.score(data.data[test], data.target[test]) > 0.9
    True
    >>> len(model.relevance_) < 10
    True
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
        multi_class: str = "softmax",
        shared_support: bool = True,
        evidence: str = "auto",
        class_weight: dict[Any, float] | str | None = None,
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
        self.multi_class = multi_class
        self.shared_support = shared_support
        self.evidence = evidence
        self.class_weight = class_weight
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
