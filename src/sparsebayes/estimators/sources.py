"""Where functions come from: a dictionary or the columns of X, or a kernel on the training rows."""

from __future__ import annotations

from inspect import Signature, signature
from typing import Any, Self

import numpy as np
from sklearn.utils import TransformerTags
from sklearn.utils.validation import check_array, check_consistent_length, validate_data

from sparsebayes.basis import Basis
from sparsebayes.basis.arrays import is_elsewhere
from sparsebayes.estimators.devices import check_new_array
from sparsebayes.estimators.dictionary import Dictionary, is_operator
from sparsebayes.estimators.inputs import Array, Index, Inputs
from sparsebayes.estimators.kernels import LEARNED, MayBePrecomputed, resolve_kernel
from sparsebayes.estimators.rows import row_blocks
from sparsebayes.estimators.selecting import Selects
from sparsebayes.estimators.validation import check_magnitude


class DictionaryInputs(Selects, Inputs):
    """Functions from a basis, or the columns of X."""

    basis: Basis | None

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = self.basis is None
        tags.transformer_tags = TransformerTags() if self.basis is None else None
        return tags

    @property
    def _accept_sparse(self) -> tuple[str, ...] | bool:
        return ("csc", "csr") if self.basis is None else False

    def _make_basis(self, X: Any, weights: Array) -> Basis | None:
        if self.basis is not None and not isinstance(self.basis, Basis):
            raise TypeError(f"basis={self.basis!r}: expected a Basis such as RBF(2.5), or None for the columns of X")
        return self.basis

    def _check_training(self, X: Any, y: Any, **targets: Any) -> tuple[Any, Any]:
        if is_elsewhere(X) or self.device is not None:
            return self._arrive(X, y, **targets)
        if self.basis is None and is_operator(X):
            if 0 in X.shape:
                raise ValueError(f"X has shape {X.shape}: expected at least one sample and one feature")
            if targets.get("y_numeric"):
                y = check_array(y, ensure_2d=False, dtype="float64", allow_nd=True, input_name="y")
            y = np.asarray(y)
            if y.ndim > (2 if targets.get("multi_output") else 1):
                raise ValueError(f"y has shape {y.shape}: expected a vector, or a matrix of several targets")
            check_consistent_length(np.empty(X.shape[0]), y)
            self.n_features_in_ = X.shape[1]
            return X, y
        if self.basis is None and isinstance(X, np.memmap):
            return self._check_mapped(X, y, **targets)
        # Columns that are to be held in single precision need not be doubles for a moment.
        dtype = (np.float64, np.float32) if self.basis is None and self.storage == "float32" else np.float64
        X, y = validate_data(self, X, y, dtype=dtype, accept_sparse=self._accept_sparse, **targets)
        check_magnitude("X", X if isinstance(X, np.ndarray) else X.data)
        return X, y

    def _check_mapped(self, X: Any, y: Any, **targets: Any) -> tuple[Any, Any]:
        """Validate a memory-mapped X in blocks, and leave it where it is."""
        if X.ndim != 2 or 0 in X.shape:
            raise ValueError(f"X has shape {X.shape}: expected two dimensions, and at least one sample and one feature")
        head: Any = np.asarray(X[:1])
        start: Any = np.asarray(y)[:1]
        validate_data(self, head, start, dtype=np.float64, **targets)
        for rows in row_blocks(X.shape[0]):
            block: Any = check_array(np.asarray(X[rows]), dtype="float64", input_name="X")
            check_magnitude("X", block)
        kind: Any = "float64" if targets.get("y_numeric") else None
        y = check_array(y, ensure_2d=False, dtype=kind, input_name="y")
        check_consistent_length(np.empty(X.shape[0]), y)
        return X, y

    def _check_new(self, X: Any) -> Any:
        if is_elsewhere(X):
            return check_new_array(X, self.n_features_in_)
        if self.basis is None and is_operator(X):
            if X.shape[1] != self.n_features_in_:
                raise ValueError(f"X has {X.shape[1]} columns; the model was fitted on {self.n_features_in_}")
            return X
        return validate_data(self, X, reset=False, dtype=np.float64, accept_sparse=self._accept_sparse)

    def _take(self, X: Any, rows: Index) -> Any:
        if is_operator(X):
            raise ValueError("a sample_weight of zero needs the rows of X, which a LinearOperator does not give")
        return super()._take(X, rows)

    def _linear(self) -> Index | None:
        return self.relevance_ if self.basis is None else None

    def _store_relevance(self, dictionary: Dictionary, relevance: Index, rows: Index) -> None:
        self.relevance_ = relevance
        if self.basis is None:
            kept = self.coef_
            self.coef_ = np.zeros((*kept.shape[:-1], self.n_features_in_))
            self.coef_[..., relevance] = kept
            self.X_offset_ = np.zeros(self.n_features_in_) if dictionary.shift is None else dictionary.shift
            # Of the kept columns only: a product with all of them could round what others contribute, which is nothing.
            intercept = self.intercept_ - kept @ self.X_offset_[relevance]
            self.intercept_ = float(intercept) if kept.ndim == 1 else intercept
        else:
            self.relevance_vectors_ = self._centres(len(relevance))


_OF_SUPPORT_VECTORS = {
    "C": "the evidence decides how strongly each weight is held back, so there is no penalty to choose; leave it out",
    "epsilon": "the noise is learned instead of a tube (noise_variance= fixes it; likelihood='student-t' for outliers)",
    "nu": "the evidence decides how many vectors are kept; leave it out",
    "probability": "probabilities are always there, by predict_proba; leave it out",
    "shrinking": "it belongs to another algorithm; leave it out",
    "cache_size": "it belongs to another algorithm; leave it out",
    "decision_function_shape": "multi_class='softmax' or 'ovr' says how several classes are taken",
    "break_ties": "ties go to the first class; leave it out",
}


class KernelInputs(MayBePrecomputed, Inputs):
    """Kernel functions centred on the training rows."""

    kernel: Any
    gamma: str | float
    degree: int
    coef0: float
    _by_row = True

    def __init_subclass__(cls, **kwargs: Any) -> None:
        """Show the parameters of the constructor to those who ask, and not those of ``__new__``."""
        super().__init_subclass__(**kwargs)
        parameters = list(signature(cls.__init__).parameters.values())[1:]
        cls.__signature__ = Signature(parameters)  # pyright: ignore[reportAttributeAccessIssue]

    def __new__(cls, *args: Any, **kwargs: Any) -> Self:
        """Refuse the parameters of support vector machines with what stands in their place."""
        for name in kwargs:
            if name in _OF_SUPPORT_VECTORS:
                raise TypeError(f"{cls.__name__} has no parameter {name!r}: {_OF_SUPPORT_VECTORS[name]}")
        return super().__new__(cls)

    @property
    def support_vectors_(self) -> Any:
        """The relevance vectors, under the name that scikit-learn's ``SVR`` and ``SVC`` have for theirs."""
        if "relevance_vectors_" not in vars(self):
            raise AttributeError(f"{type(self).__name__} has no support_vectors_ before fit")
        return self.relevance_vectors_

    @property
    def _learned_gamma(self) -> str | None:
        return self.gamma if isinstance(self.gamma, str) and self.gamma in LEARNED else None

    def _make_basis(self, X: Any, weights: Array) -> Basis:
        return resolve_kernel(self.kernel, self.gamma, self.degree, self.coef0, X, weights)

    def _check_training(self, X: Any, y: Any, **targets: Any) -> tuple[Any, Any]:
        if is_elsewhere(X) or self.device is not None:
            return self._arrive(X, y, **targets)
        X, y = validate_data(self, X, y, dtype=np.float64, **targets)
        check_magnitude("X", X)
        if self._precomputed and X.shape[0] != X.shape[1]:
            raise ValueError(f"a precomputed kernel must be square for fitting; X has shape {X.shape}")
        return X, y

    def _check_new(self, X: Any) -> Any:
        if is_elsewhere(X):
            return check_new_array(X, self.n_features_in_)
        return validate_data(self, X, reset=False, dtype=np.float64)

    def _candidates(self, rows: Index) -> Index | None:
        # Column m of a Gram matrix is the function of row m: without the row there is no function.
        return rows if self._precomputed else None

    def _store_relevance(self, dictionary: Dictionary, relevance: Index, rows: Index) -> None:
        functions = dictionary.functions
        centre = relevance if functions is None else functions.rows[relevance]
        self.relevance_ = centre if self._precomputed else np.where(centre >= 0, rows[centre], -1)
        self.relevance_vectors_ = self._centres(len(relevance))
