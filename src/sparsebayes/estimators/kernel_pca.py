"""Sparse kernel principal component analysis, a scikit-learn transformer."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.linear_model import RidgeCV
from sklearn.preprocessing import KernelCenterer
from sklearn.utils.validation import check_array, check_is_fitted, validate_data

from sparsebayes.basis import RBF, Functions
from sparsebayes.design import MomentDesign
from sparsebayes.estimators.checks import check_magnitude, check_positive, choose, resolve_solver
from sparsebayes.estimators.inputs import MayBePrecomputed, resolve_gamma, resolve_kernel
from sparsebayes.estimators.progress import Progress
from sparsebayes.estimators.task import Task, warn_unconverged
from sparsebayes.inference import Result, Sequential, Solver
from sparsebayes.inference.fit.interrupt import interrupts_afterwards
from sparsebayes.inference.fit.run import run
from sparsebayes.inference.models.problem import moment_problem
from sparsebayes.posterior.axes import AXES, FeatureAxes, Projector
from sparsebayes.typing import Array

CENTRINGS = ("auto", "sparse", "exact")
# "auto" centres with the kept rows alone while that changes the projections by less than this part of their size.
_CENTRING_ERROR = 0.05
# The noise as a part of the mean variance of the principal axes: any below one keeps a row.
_SHARE = 0.2
# Penalties that pre-images choose from, by leave-one-out error.
_PENALTIES = tuple(10.0**k for k in range(-6, 4))


class SparseKernelPCA(MayBePrecomputed, ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    r"""Kernel principal components from few training rows (Tipping 2001).

    The covariance of the feature vectors is modelled as :math:`\sigma^2\mathbf I+\sum_i w_i\phi_i\phi_i^\top` and its
    likelihood maximised over the :math:`w_i\ge0`, most of which become zero.  This is the evidence of a regression in
    which all N feature vectors are targets, and functions, with one precision :math:`\alpha_i=1/w_i` for each.

    Parameters
    ----------
    noise : "auto" or float
        :math:`\sigma^2`, the variance in every direction of feature space that is left to noise.  It cannot be learned,
        because the dimension of the feature space is not defined.  Smaller values keep more rows.  ``"auto"`` is a
        fifth of the mean variance of the principal axes, each counting by its variance: whatever the scale of the
        kernel, some row has more than that.
    n_components : int, optional
        Number of components; by default all there are: as many as rows are kept, but no more than the feature space
        has dimensions (those of X for a linear kernel).
    kernel : {"rbf", "linear", "poly", "laplacian", "sigmoid", "precomputed"}, Kernel or callable
        The kernel; its matrix on the training rows must be positive semi-definite.
    gamma : {"scale", "auto"} or float
        As in scikit-learn; ``"auto"`` is the default of ``KernelPCA``, one over the number of features.
    degree, coef0 : int, float
        Of ``"poly"`` and ``"sigmoid"``.
    axes : {"sample", "model"}
        Principal axes of the training rows within the span of the kept ones (default), or the eigenvectors of the model
        covariance.
    centring : {"auto", "sparse", "exact"}
        A new row is centred with the mean of all feature vectors.  ``"sparse"`` takes the mean's projection on the kept
        rows, so that only these are needed, ``"exact"`` all training rows, ``"auto"`` the first where
        ``centring_error_`` is then below 0.05.
    solver : {"sequential"} or a solver object
        How the likelihood is maximised.
    tol : float
        Converged means that no single move would raise the log likelihood by more than this, in nats per row.
    max_iter : int
        Largest number of moves.
    random_state : int, optional
        Seed for solvers that draw at random.
    verbose : int
        1 prints progress, 2 every move.

    Attributes
    ----------
    relevance_ : ndarray of int
        Rows kept, sorted.
    relevance_vectors_ : ndarray of shape (n_kept, n_features)
        The rows themselves (not with a precomputed kernel).
    weights_ : ndarray of shape (n_kept,)
        Their :math:`w_i`.
    explained_variance_, explained_variance_ratio_ : ndarray of shape (n_components,)
        Variance of the training rows along each component, and its part of the whole variance in feature space.
    centring_error_ : float
        Root mean square change of the training rows' projections by sparse centring, relative to their size.
    n_components_ : int
        Number of components.
    noise_ : float
        :math:`\sigma^2`.
    log_marginal_likelihood_ : float
        Log likelihood, up to the constant that an undefined dimension leaves open.
    status_, certificate_, history_, n_iter_
        How the search went, as in the regressors.

    Examples
    --------
    >>> import numpy as np
    >>> from sparsebayes import SparseKernelPCA
    >>> rng = np.random.default_rng(0)
    >>> X = np.vstack([rng.normal(c, 0.1, (30, 2)) for c in ((-0.5, -0.2), (0.0, 0.6), (0.5, 0.0))])
    >>> pca = SparseKernelPCA(noise=0.1, n_components=2, gamma=4.0).fit(X)
    >>> len(pca.relevance_) <= 9, pca.transform(X).shape
    (True, (90, 2))
    """

    def __init__(
        self,
        noise: str | float = "auto",
        n_components: int | None = None,
        *,
        kernel: Any = "rbf",
        gamma: str | float = "scale",
        degree: int = 3,
        coef0: float = 1.0,
        axes: str = "sample",
        centring: str = "auto",
        solver: str | Solver = "sequential",
        tol: float = 1e-4,
        max_iter: int = 10_000,
        random_state: int | np.random.RandomState | None = None,
        verbose: int = 0,
    ) -> None:
        self.noise = noise
        self.n_components = n_components
        self.kernel = kernel
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        self.axes = axes
        self.centring = centring
        self.solver = solver
        self.tol = tol
        self.max_iter = max_iter
        self.random_state = random_state
        self.verbose = verbose

    @interrupts_afterwards
    def fit(self, X: Any, y: Any = None) -> Self:
        """Choose the rows and the components.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Training rows, or the kernel between them.
        y : ignored
        """
        self._check_parameters()
        X = validate_data(self, X, dtype=np.float64, ensure_min_samples=2)
        check_magnitude("X", X)
        ones = np.ones(len(X))
        functions = resolve_kernel(self.kernel, self.gamma, self.degree, self.coef0, X, ones).bind(X)
        kernel = functions.evaluate(X)
        if kernel.shape != (len(X), len(X)):
            raise ValueError(f"kernel: its matrix on X has shape {kernel.shape}; expected one function for each row")
        centred = KernelCenterer().fit_transform(kernel)
        centred = 0.5 * (centred + centred.T)
        self.noise_ = self._noise_of(centred, float(np.max(np.diagonal(kernel))))
        result = self._solve(X, centred)
        order = np.argsort(result.active.indices)
        kept = np.array(result.active.indices, dtype=np.intp)[order]
        if len(kept) == 0:
            raise ValueError(
                f"noise={self.noise!r} explains all of the variance in feature space, {np.trace(centred) / len(X):.3g} "
                "in all: no component is left; choose a smaller one"
            )
        self.weights_ = 1.0 / result.active.alpha[order]
        axes = FeatureAxes.of(centred, kept, self.weights_, self.axes, self.n_components)
        self._store(X, functions, kept, axes, float(np.trace(centred)) / len(X))
        self._store_projector(self._centre(kernel, kept, axes), functions)
        self._store_search(result)
        self._fit_preimages(X, axes.projections)
        return self

    def _check_parameters(self) -> None:
        if self.noise != "auto":
            check_positive("noise", self.noise, otherwise=", or 'auto'")
        if isinstance(self.gamma, str):  # nothing is learned here
            choose("gamma", self.gamma, ("scale", "auto"), ", or a positive number")
        check_positive("tol", self.tol)
        check_positive("max_iter", self.max_iter, integer=True)
        if self.n_components is not None:
            check_positive("n_components", self.n_components, integer=True)
        choose("axes", self.axes, AXES)
        choose("centring", self.centring, CENTRINGS)

    def _noise_of(self, centred: Array, largest: float) -> float:
        r"""The noise that is given, or a part of :math:`\mathrm{tr}\mathbf S^2/\mathrm{tr}\mathbf S`.

        With :math:`\mathbf S` the covariance in feature space, that is the mean of its variance along the feature
        vectors, weighted by their squared lengths: along one of them, at least, there is as much, so that it is kept.
        """
        if self.noise != "auto":
            return float(self.noise)
        total, n = float(np.trace(centred)), len(centred)
        if total <= n * np.finfo(np.float64).eps * n * largest:
            raise ValueError("noise='auto': all rows of X are the same in feature space, which leaves no component")
        return _SHARE * float(np.sum(np.square(centred))) / (n * total)

    def _solve(self, X: Array, centred: Array) -> Result:
        """Maximise the likelihood: every feature vector is a target and a function."""
        solver = resolve_solver(self.solver)
        if isinstance(self.solver, str) and isinstance(solver, Sequential):
            solver.batch = (
                1  # components turn with every row left out: batches keep 7 rows for 12, at cosines below .99
            )
        solver.check()
        n = len(X)
        tol = self.tol * n
        task = Task(X, np.ones(n), False, solver, tol, self.max_iter, self.random_state, Progress(self.verbose))
        try:
            problem = moment_problem(MomentDesign(centred, centred, np.maximum(np.diagonal(centred), 0.0), n))
        except ValueError as error:
            raise ValueError(f"kernel={self.kernel!r} is not positive semi-definite on X: {error}") from error
        result = run(problem, solver, task.settings(noise_variance=self.noise_), task.generator())
        independent = problem.design.shape[0] - 1  # the root has a row for each direction, and one for the rest
        if result.active.size < independent:  # else the kept rows span all that there is, and no move matters
            warn_unconverged([result.status])
        return result

    def _store(self, X: Array, functions: Functions, kept: NDArray[np.intp], axes: FeatureAxes, total: float) -> None:
        self.relevance_ = kept
        vars(self).pop("relevance_vectors_", None)  # of an earlier fit
        if not self._precomputed:
            self.relevance_vectors_ = X[kept]
        self.n_components_ = len(axes.variances)
        self.explained_variance_ = axes.variances
        self.explained_variance_ratio_ = axes.variances / total

    def _centre(self, kernel: Array, kept: NDArray[np.intp], axes: FeatureAxes) -> Projector:
        sparse = Projector.sparse(kernel, kept, axes)
        if self.centring == "sparse" or (self.centring == "auto" and sparse.error <= _CENTRING_ERROR):
            return sparse
        return Projector.exact(kernel, kept, axes)

    def _store_projector(self, projector: Projector, functions: Functions) -> None:
        self._functions = functions.restrict(projector.rows)
        self._coefficients = projector.coefficients
        self._shift = projector.shift
        self.centring_error_ = projector.error

    def _store_search(self, result: Result) -> None:
        self.log_marginal_likelihood_ = result.certificate.log_evidence
        self.status_ = result.status
        self.certificate_ = result.certificate
        self.history_ = result.history
        self.n_iter_ = result.n_iter

    @property
    def _n_features_out(self) -> int:
        return self.n_components_

    def transform(self, X: Any) -> Array:
        """Coordinates of rows along the components.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows, or the kernel between them and the training rows.

        Returns
        -------
        ndarray of shape (n_samples, n_components)
        """
        check_is_fitted(self)
        X = validate_data(self, X, reset=False, dtype=np.float64)
        return self._functions.evaluate(X) @ self._coefficients - self._shift

    # -- pre-images ----------------------------------------------------------------------------------------

    def _fit_preimages(self, X: Array, projections: Array) -> None:
        """Ridge regression of the inputs on the coordinates, and on Gaussians of them at the kept rows."""
        self._preimage_functions: Functions | None = None
        if self._precomputed:
            return
        centres = projections[self.relevance_]
        width = resolve_gamma("scale", projections, np.ones(len(X))) ** -0.5
        self._preimage_functions = RBF(width=width, centres=centres).bind(centres)
        ridge = RidgeCV(alphas=_PENALTIES).fit(_preimage_inputs(projections, self._preimage_functions), X)
        self._preimage_weights = np.asarray(ridge.coef_, dtype=np.float64).reshape(X.shape[1], -1).T
        self._preimage_shift = np.asarray(ridge.intercept_, dtype=np.float64).reshape(-1)

    def inverse_transform(self, Z: ArrayLike) -> Array:
        """Approximate pre-images: inputs whose components would be about these.

        Parameters
        ----------
        Z : array-like of shape (n_samples, n_components)
            Coordinates along the components.

        Returns
        -------
        ndarray of shape (n_samples, n_features)
        """
        check_is_fitted(self)
        functions = vars(self).get("_preimage_functions")
        if functions is None:
            raise ValueError("kernel='precomputed': pre-images need the training rows, which were not given")
        Z = np.asarray(check_array(Z, dtype="float64", input_name="Z"))
        if Z.shape[1] != self.n_components_:
            raise ValueError(f"Z has {Z.shape[1]} columns; expected {self.n_components_}, one for each component")
        return _preimage_inputs(Z, functions) @ self._preimage_weights + self._preimage_shift


def _preimage_inputs(Z: Array, functions: Functions) -> Array:
    return np.hstack([Z, functions.evaluate(Z)])
