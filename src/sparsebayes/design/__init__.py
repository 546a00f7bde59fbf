"""Where Φ lives: one protocol, and a file for each kind of storage."""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse
from scipy.sparse.linalg import LinearOperator

from sparsebayes.basis.arrays import is_elsewhere
from sparsebayes.basis.base import Floats

from .centred import CentredSparse, centred
from .compressed import CompressedDesign, compress_kernel, with_columns
from .dense import DenseDesign, projected
from .device import ArrayDesign, ArrayKernelDesign, ArrayRanking, ArrayStack, Native
from .device_compressed import ArrayCompressed, compress_elsewhere
from .lazy import LazyDesign
from .mapped import MappedDesign
from .moments import MomentDesign
from .operator import OperatorDesign
from .protocol import Design, HStack, representatives
from .ranking import RESOLVED, Promising, Ranking
from .reduction import Reduction
from .screened import ScreenedDesign
from .sparse import SparseDesign

__all__ = [
    "RESOLVED",
    "ArrayCompressed",
    "ArrayDesign",
    "ArrayKernelDesign",
    "ArrayStack",
    "CentredSparse",
    "CompressedDesign",
    "DenseDesign",
    "Design",
    "HStack",
    "LazyDesign",
    "MappedDesign",
    "MomentDesign",
    "Native",
    "OperatorDesign",
    "Promising",
    "Ranking",
    "Reduction",
    "ScreenedDesign",
    "SparseDesign",
    "as_design",
    "centred",
    "compress_elsewhere",
    "compress_kernel",
    "projected",
    "rank",
    "representatives",
    "with_columns",
]


def rank(design: Design, norms: Floats, eligible: NDArray[np.bool_]) -> Ranking:
    """The order of the functions of a design by what they promise, found where the design is."""
    if isinstance(design, Native):
        return ArrayRanking(design, norms, eligible)
    return Ranking(design, norms, eligible)


def as_design(X: Any) -> Design:
    """Return the design whose columns are those of ``X``.

    Parameters
    ----------
    X : Design, ndarray, SciPy sparse array, LinearOperator, or an array of the array API standard
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
    if is_elsewhere(X):
        return ArrayDesign(X)
    raise TypeError(
        f"X is of type {type(X).__name__}; expected a NumPy array, a SciPy sparse array, "
        "a SciPy LinearOperator or a Design (np.asarray(X) turns most others into an array)"
    )
