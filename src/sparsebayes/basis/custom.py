"""Functions that the user brings: as code, or as a matrix already computed."""

from __future__ import annotations

from collections.abc import Callable as Function
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike

from .base import Basis, Floats, Functions, Index, Specification, as_inputs, check_training, positions
from .kernels import Centres, Kernel


class Callable(Kernel):
    """Any kernel given as code, φ_m(x) = function(x, c_m).

    Parameters
    ----------
    function : callable
        ``function(X, Z)`` takes (n, d) and (m, d) arrays and returns the (n, m) matrix of its values.
    centres : None, int or (m, d) array-like, default=None
        All training rows, that many of them, or the centres themselves.
    """

    kind = "callable"

    def __init__(self, function: Function[[Floats, Floats], ArrayLike], centres: Centres = None) -> None:
        self.function = function
        self.centres = centres

    def _parameters(self, n_features: int) -> Specification:
        name = getattr(self.function, "__qualname__", type(self.function).__qualname__)
        return {"function": name}

    def _settled(self, n_features: int) -> Self:
        if not callable(self.function):
            raise TypeError(f"function={self.function!r}; expected a callable function(X, Z)")
        return type(self)(self.function)

    def _evaluate(self, X: Floats, centres: Floats) -> Floats:
        values = as_inputs(self.function(X, centres), name="the result of function(X, Z)")
        expected = (X.shape[0], centres.shape[0])
        if values.shape != expected:
            raise ValueError(f"function(X, Z) returned shape {values.shape}; expected {expected}")
        if not np.isfinite(values).all():
            raise ValueError("function(X, Z) returned NaN or infinity; expected finite values")
        return np.array(values)  # the function may keep what it returned

    @classmethod
    def _rebuild(cls, parameters: Specification, members: list[Specification], n_features: int) -> Functions:
        raise ValueError(
            f"functions of kind 'callable' ({parameters.get('function')}) cannot be rebuilt: "
            "specifications, and so model files, carry no code. Define a subclass of "
            "sparsebayes.basis.Kernel with a kind of its own instead"
        )


class PrecomputedFunctions(Functions):
    """Columns of a matrix that the caller computes.

    Parameters
    ----------
    columns : (M,) integer array
        Which column each function is.
    n_features : int
        The number of columns of the whole matrix.
    """

    def __init__(self, columns: Index, n_features: int) -> None:
        super().__init__(n_features)
        self._columns = columns

    def __len__(self) -> int:
        return self._columns.size

    @property
    def rows(self) -> Index:
        """The column that each function is: column m of a Gram matrix belongs to training row m."""
        return self._columns

    def rows_among(self, bound: Index) -> Index:
        """The column that each function is: a Gram matrix has one for every row as given."""
        return self._columns

    def _evaluate(self, X: Floats, idx: Index | slice) -> Floats:
        return X[:, self._columns[idx]]

    def restrict(self, idx: Any) -> PrecomputedFunctions:
        """Return just the functions ``idx``, in that order."""
        return PrecomputedFunctions(self._columns[positions(idx, len(self))], self.n_features)

    def specifications(self) -> list[Specification]:
        """Return the identity of every function as plain, JSON-able data."""
        return [{"kind": Precomputed.kind, "column": column} for column in self._columns.tolist()]


class Precomputed(Basis):
    """The columns of X as they are: function m is column m.

    For a kernel, fit on the (n, n) Gram matrix of the training rows and predict with the (n_test, n) matrix
    of kernel values between test and training rows.
    """

    kind = "precomputed"
    identity = ("column",)

    def bind(self, X: ArrayLike, *, random_state: Any = None) -> Functions:
        """Return one function per column."""
        columns = check_training(X).shape[1]
        return PrecomputedFunctions(np.arange(columns, dtype=np.intp), columns)

    @classmethod
    def _rebuild(cls, parameters: Specification, members: list[Specification], n_features: int) -> Functions:
        columns = np.array([member["column"] for member in members], dtype=np.intp)
        if (columns < 0).any() or (columns >= n_features).any():
            raise ValueError(f"column of a precomputed specification is outside 0..{n_features - 1}")
        return PrecomputedFunctions(columns, n_features)
