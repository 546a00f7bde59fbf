"""Where Φ lives: one protocol, and a file for each kind of storage."""

from typing import Any

import numpy as np
from scipy.sparse import issparse
from scipy.sparse.linalg import LinearOperator

from .compressed import CompressedDesign, compress_kernel, with_columns
from .dense import DenseDesign
from .duplicates import representatives
from .lazy import LazyDesign
from .mapped import MappedDesign
from .moments import MomentDesign
from .operator import OperatorDesign
from .protocol import Design, HStack
from .reduction import Reduction
from .screened import ScreenedDesign
from .sparse import SparseDesign

__all__ = [
    "CompressedDesign",
    "DenseDesign",
    "Design",
    "HStack",
    "LazyDesign",
    "MappedDesign",
    "MomentDesign",
    "OperatorDesign",
    "Reduction",
    "ScreenedDesign",
    "SparseDesign",
    "as_design",
    "compress_kernel",
    "representatives",
    "with_columns",
]


def as_design(X: Any) -> Design:
    """Return the design whose columns are those of ``X``.

    Parameters
    ----------
    X : Design, ndarray, SciPy sparse array or LinearOperator
        A design comes back as it is; nothing is copied where the storage allows it, and a memory-mapped array is read
        in blocks of rows.
    """
    if isinstance(X, Design):
        return X
    if isinstance(X, np.memmap):
        return MappedDesign(X)
    if isinstance(X, np.ndarray):
        return DenseDesign(X)
    if issparse(X):
        return SparseDesign(X)
    if isinstance(X, LinearOperator):
        return OperatorDesign(X)
    raise TypeError(
        f"X is of type {type(X).__name__}; expected a NumPy array, a SciPy sparse array, "
        "a SciPy LinearOperator or a Design (np.asarray(X) turns most others into an array)"
    )
