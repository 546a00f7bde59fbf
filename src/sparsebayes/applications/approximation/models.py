"""Small models with the interfaces of their sources."""

from __future__ import annotations

from itertools import combinations
from typing import Any, NoReturn

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import ndtr
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_array

from sparsebayes.applications.approximation.expansion import Approximation, Expansion
from sparsebayes.typing import Array


class _Small(BaseEstimator):
    """A fixed sum of few kernels."""

    expansion: Expansion
    approximation_: Approximation

    def __sklearn_is_fitted__(self) -> bool:
        return True

    def fit(self, X: Any, y: Any = None) -> NoReturn:
        """A small model is made, not fitted."""
        raise TypeError(
            f"a {type(self).__name__} is an approximation of a fitted model: fit that model and call sparsify on it "
            "(sklearn.frozen.FrozenEstimator keeps this one as it is in a pipeline or search)"
        )

    @property
    def n_features_in_(self) -> int:
        """Number of inputs."""
        if self.expansion.functions is None:
            raise AttributeError("a constant takes any number of inputs")
        return self.expansion.functions.n_features

    @property
    def relevance_vectors_(self) -> Array:
        """Centres of the functions, of shape (M, d)."""
        return self.expansion.centres

    @property
    def coef_(self) -> Array:
        """Weights of the functions, of shape (T, M)."""
        return self.expansion.weights.T

    def _outputs(self, X: ArrayLike) -> Array:
        return self.expansion.evaluate(np.asarray(check_array(X, dtype="float64")))


class SmallRegressor(RegressorMixin, _Small):
    """Regression by a few kernels, made by ``sparsify``.

    Parameters
    ----------
    expansion : Expansion
        The functions and their weights.
    single : bool
        Whether predictions are a vector.

    Attributes
    ----------
    approximation_ : Approximation
        Size and error.
    """

    def __init__(self, expansion: Expansion, single: bool = True) -> None:
        self.expansion = expansion
        self.single = single

    def predict(self, X: ArrayLike, return_std: bool = False, return_cov: bool = False) -> Array:
        """Approximate predictions of the source; of a Gaussian process, its mean."""
        if return_std or return_cov:
            raise ValueError(
                "return_std and return_cov: only the mean of the Gaussian process was made small; ask the process"
            )
        outputs = self._outputs(X)
        return outputs[:, 0] if self.single else outputs


class SmallClassifier(ClassifierMixin, _Small):
    """Classification by a few kernels, made by ``sparsify``.

    Parameters
    ----------
    expansion : Expansion
        Decision functions, one for each pair of classes.
    classes : ndarray
        Labels.
    shape : {"ovr", "ovo"}
        What ``decision_function`` returns with more than two classes, as in ``SVC``.
    break_ties : bool
        Whether decision values break ties of votes, as in ``SVC``.

    Attributes
    ----------
    approximation_ : Approximation
        Size and error.
    """

    def __init__(
        self, expansion: Expansion, classes: NDArray[Any], shape: str = "ovr", break_ties: bool = False
    ) -> None:
        self.expansion = expansion
        self.classes = classes
        self.shape = shape
        self.break_ties = break_ties

    @property
    def classes_(self) -> NDArray[Any]:
        """Labels."""
        return self.classes

    def decision_function(self, X: ArrayLike) -> Array:
        """Approximate decision values, in the shape of the source's."""
        outputs = self._outputs(X)
        if len(self.classes) == 2:
            return outputs[:, 0]
        return outputs if self.shape == "ovo" else self._scores(outputs)

    def predict(self, X: ArrayLike) -> NDArray[Any]:
        """Labels: by sign, or by the votes of all pairs."""
        outputs = self._outputs(X)
        if len(self.classes) == 2:
            return self.classes[(outputs[:, 0] > 0.0).astype(np.intp)]
        ranked = self._scores(outputs) if self.break_ties and self.shape == "ovr" else self._votes(outputs)
        return self.classes[np.argmax(ranked, axis=1)]

    def _votes(self, outputs: Array) -> Array:
        votes = np.zeros((len(outputs), len(self.classes)))
        for column, (i, j) in enumerate(combinations(range(len(self.classes)), 2)):
            votes[:, i] += outputs[:, column] > 0.0
            votes[:, j] += outputs[:, column] <= 0.0
        return votes

    def _scores(self, outputs: Array) -> Array:
        """Votes, with the sum of decision values, squeezed into less than half a vote, to break ties."""
        support = np.zeros((len(outputs), len(self.classes)))
        for column, (i, j) in enumerate(combinations(range(len(self.classes)), 2)):
            support[:, i] += outputs[:, column]
            support[:, j] -= outputs[:, column]
        return self._votes(outputs) + support / (3.0 * (np.abs(support) + 1.0))


class SmallKDE:
    """Density as a few Gaussians of one covariance, with the interface of SciPy's ``gaussian_kde``.

    Parameters
    ----------
    expansion : Expansion
        The functions, in coordinates in which they are round.
    covariance : ndarray of shape (d, d)
        Their covariance.

    Attributes
    ----------
    dataset : ndarray of shape (d, n)
        Centres.
    weights : ndarray of shape (n,)
        Non-negative, with sum one.
    d, n : int
        Dimension, and number of Gaussians.
    approximation_ : Approximation
        Size and error.
    """

    approximation_: Approximation

    def __init__(self, expansion: Expansion, covariance: Array) -> None:
        self.covariance = covariance
        self.inv_cov = np.linalg.inv(covariance)
        self._factor = np.linalg.cholesky(covariance)
        self._expansion = expansion
        self.dataset = self._factor @ expansion.centres.T
        self.d, self.n = self.dataset.shape
        self.weights = expansion.weights[:, 0] / np.sum(expansion.weights)
        self.neff = 1.0 / float(np.sum(self.weights**2))

    def evaluate(self, points: ArrayLike) -> Array:
        """Density at points given as columns, (d, m), or at one point (d,)."""
        columns = np.atleast_2d(np.asarray(points, dtype=np.float64))
        if columns.shape[0] != self.d and columns.shape == (1, self.d):
            columns = columns.T
        if columns.shape[0] != self.d:
            raise ValueError(f"points have shape {columns.shape}; expected ({self.d}, m), one point per column")
        round_columns = np.asarray(np.linalg.solve(self._factor, columns), dtype=np.float64)
        return self._expansion.evaluate(round_columns.T)[:, 0]

    __call__ = evaluate

    def pdf(self, x: ArrayLike) -> Array:
        """Density, as ``evaluate``."""
        return self.evaluate(x)

    def logpdf(self, x: ArrayLike) -> Array:
        """Log density; minus infinity where it underflows."""
        with np.errstate(divide="ignore"):
            return np.log(self.evaluate(x))

    def integrate_box_1d(self, low: float, high: float) -> float:
        """Probability of an interval, in one dimension."""
        if self.d != 1:
            raise ValueError(f"integrate_box_1d is for one dimension; this density has {self.d}")
        z = (np.array([[low], [high]]) - self.dataset) / self._factor[0, 0]
        return float((ndtr(z[1]) - ndtr(z[0])) @ self.weights)

    def resample(self, size: int | None = None, seed: Any = None) -> Array:
        """Draw points, as columns (d, size); by default as many as there are Gaussians."""
        random = seed if isinstance(seed, np.random.Generator) else check_random_state(seed)
        count = self.n if size is None else int(size)
        which = random.choice(self.n, size=count, p=self.weights)
        return self.dataset[:, which] + self._factor @ random.standard_normal(size=(self.d, count))
