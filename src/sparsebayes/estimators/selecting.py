"""Models of columns as scikit-learn's selectors: ``get_support`` and ``transform``."""

from __future__ import annotations

import importlib
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_array, check_is_fitted


def _of_columns(est: Any) -> bool:
    """Whether the columns of X are the functions; otherwise there is nothing to select among them."""
    basis = est._as_fitted.basis
    if basis is not None:
        raise AttributeError(
            f"{type(est).__name__}(basis={basis!r}) keeps functions of all columns and selects none of them; with "
            "basis=None it does"
        )
    return True


class Selects:
    """Adds scikit-learn's selection of columns, where the columns of X are the functions.

    As a step of a pipeline that is not the last, the model passes on the columns that it kept.
    """

    n_features_in_: int
    relevance_: NDArray[np.intp]
    fit: Any
    _check_new: Any

    @available_if(_of_columns)
    def get_support(self, indices: bool = False) -> NDArray[Any]:
        """Columns that were kept, for any target or class.

        Parameters
        ----------
        indices : bool, default=False
            Return their numbers instead of a mask.
        """
        check_is_fitted(self)
        mask = np.zeros(self.n_features_in_, dtype=bool)
        mask[self.relevance_] = True
        return np.flatnonzero(mask) if indices else mask

    @available_if(_of_columns)
    def transform(self, X: Any) -> Any:
        """Return the columns of X that were kept.

        Parameters
        ----------
        X : array-like or SciPy sparse array of shape (n_samples, n_features)
            Rows.
        """
        check_is_fitted(self)
        rows = self._check_new(X)
        kept = (rows.tocsc() if issparse(rows) else rows)[:, self.get_support(indices=True)]
        if vars(self).get("_output", "default") == "default":
            return kept
        pandas = importlib.import_module("pandas")
        return pandas.DataFrame(kept, columns=self.get_feature_names_out(), index=getattr(X, "index", None))

    @available_if(_of_columns)
    def set_output(self, *, transform: str | None = None) -> Self:
        """Choose what ``transform`` returns, as scikit-learn's transformers do.

        Parameters
        ----------
        transform : {"default", "pandas"}, optional
            An array, or a data frame; None leaves it as it is.
        """
        if transform not in (None, "default", "pandas"):
            raise ValueError(f"transform={transform!r}: expected 'default' or 'pandas'")
        if transform is not None:
            self._output = transform
        return self

    @available_if(_of_columns)
    def fit_transform(self, X: Any, y: Any = None, **fit_params: Any) -> Any:
        """Fit, and return the columns of X that were kept.

        Parameters
        ----------
        X, y : array-like
            Training data.
        **fit_params
            Those of ``fit``.
        """
        return self.fit(X, y, **fit_params).transform(X)

    @available_if(_of_columns)
    def inverse_transform(self, X: Any) -> NDArray[np.float64]:
        """Return values of the kept columns at their places among all; the others are zero.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_kept)
            Values of the kept columns.
        """
        kept = self.get_support(indices=True)
        values: Any = check_array(X, dtype="float64", ensure_min_features=0)
        if values.shape[1] != len(kept):
            raise ValueError(f"X has {values.shape[1]} columns; expected the {len(kept)} that were kept")
        full = np.zeros((len(values), self.n_features_in_))
        full[:, kept] = values
        return full

    @available_if(_of_columns)
    def get_feature_names_out(self, input_features: Any = None) -> NDArray[Any]:
        """Names of the kept columns.

        Parameters
        ----------
        input_features : array-like of str, optional
            Names of all columns; by default those of the fit, or x0, x1, …
        """
        check_is_fitted(self)
        known = getattr(self, "feature_names_in_", None)
        names = known if input_features is None else np.asarray(input_features, dtype=object)
        if names is None:
            names = np.array([f"x{j}" for j in range(self.n_features_in_)], dtype=object)
        if known is not None and not np.array_equal(names, known):
            raise ValueError("input_features is not equal to feature_names_in_")
        if len(names) != self.n_features_in_:
            raise ValueError(
                "input_features should have length equal to number of features "
                f"({self.n_features_in_}), got {len(names)}"
            )
        return np.asarray(names, dtype=object)[self.get_support()]
