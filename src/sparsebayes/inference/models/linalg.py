"""Dense factorisations: small ones by LAPACK directly, since the usual checks cost more than the work; tall ones."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import get_lapack_funcs

from sparsebayes.threads import on_all_cores
from sparsebayes.typing import Array

_INVERT_TRIANGLE, _CHOLESKY, _PIVOTED_CHOLESKY, _SOLVE, _REFLECT, _ROTATE = get_lapack_funcs(
    ("trtri", "potrf", "pstrf", "potrs", "tpqrt", "tpmqrt"), (np.zeros(1),)
)
# Columns that LAPACK reflects at once.
BLOCK = 32

_INDEFINITE = "the posterior precision is not positive definite"
# Rows of a block of a tall matrix, which then fits in the cache.
_BLOCK_ROWS = 8192


def tall_qr(matrix: Array) -> tuple[Array, Array]:
    """Orthonormal basis of the columns and their coordinates in it.

    Blocks of many rows are factored side by side, and the basis then takes the place of the matrix.
    """
    n, a = matrix.shape
    blocks = n // _BLOCK_ROWS
    if blocks < 2 or not 0 < a <= _BLOCK_ROWS:
        return np.linalg.qr(matrix)
    parts = [slice(n * k // blocks, n * (k + 1) // blocks) for k in range(blocks)]

    def factor(part: slice) -> Array:
        matrix[part], triangle = np.linalg.qr(matrix[part])
        return triangle

    mixing, triangle = np.linalg.qr(np.vstack(on_all_cores(factor, parts)))

    def mix(k: int) -> None:
        matrix[parts[k]] = matrix[parts[k]] @ mixing[k * a : (k + 1) * a]

    on_all_cores(mix, range(blocks))
    return matrix, triangle


def inverse_upper(triangle: Array) -> Array:
    """Inverse of an upper triangular matrix."""
    return _INVERT_TRIANGLE(triangle)[0] if len(triangle) else np.zeros((0, 0))


def reflected(triangle: Array, diagonal: Array) -> tuple[Array, Sequence[Array]]:
    """Upper triangle of a triangle above a diagonal matrix, and the reflections that make it."""
    a = len(diagonal)
    made, *reflections, _ = _REFLECT(a, min(a, BLOCK), triangle, np.diag(diagonal))
    return made, reflections


def rotated(reflections: Sequence[Array], values: Array) -> Array:
    """The upper half of the reflections' product with values above zeros."""
    values = np.asfortranarray(values)
    return _ROTATE(len(values), *reflections, values, np.zeros_like(values, order="F"), trans="T")[0]


def padded(values: Array, rows: int) -> Array:
    """Values above as many rows of zeros as make so many rows."""
    return values if len(values) == rows else np.pad(values, ((0, rows - len(values)), (0, 0)))


def try_cholesky(matrix: Array) -> Array | None:
    """Upper Cholesky factor, or None where the matrix is not positive definite."""
    factor, failed = _CHOLESKY(matrix, lower=0, clean=1)
    return None if failed else factor


def cholesky(matrix: Array) -> Array:
    """Upper Cholesky factor of a positive definite matrix.

    Where rounding has made it indefinite, the least jitter that helps is added, relative to its diagonal.
    """
    if len(matrix) == 0:
        return np.zeros((0, 0))
    factor = try_cholesky(matrix)
    if factor is not None:
        return factor
    squares = np.diagonal(matrix)
    if not np.all(squares > 0.0):
        raise np.linalg.LinAlgError(_INDEFINITE)
    scale = np.sqrt(squares)
    unit = matrix / scale / scale[:, None]
    for jitter in (1e-14, 1e-12, 1e-10, 1e-8):
        factor = try_cholesky(unit + jitter * np.eye(len(unit)))
        if factor is not None:
            return factor * scale
    raise np.linalg.LinAlgError(_INDEFINITE)


def semidefinite_root(matrix: Array) -> tuple[Array, NDArray[np.intp]]:
    """Upper Cholesky factor (rank, n) of a positive semi-definite matrix in the order of its pivots, and that order."""
    factor, pivots, rank, _ = _PIVOTED_CHOLESKY(matrix)
    return np.triu(factor)[:rank], np.asarray(pivots - 1, dtype=np.intp)


def solve_cholesky(factor: Array, right: Array) -> Array:
    """Solve with a matrix that is given by its upper Cholesky factor."""
    return _SOLVE(factor, right, lower=0)[0] if len(factor) else np.zeros_like(right)


def log_det(factor: Array) -> float:
    """Log determinant of a matrix from its triangular factor."""
    return 2.0 * float(np.log(np.abs(factor.diagonal())).sum())


def condition(factor: Array) -> float:
    """Condition number of a matrix scaled to unit diagonal, from any factor."""
    return float(np.linalg.cond(factor / np.linalg.norm(factor, axis=0))) ** 2 if len(factor) else 1.0


def largest(values: Array, count: int) -> NDArray[np.intp]:
    """Places of the largest values, the largest first, and the lowest of equal ones; all of many are not sorted."""
    count = min(count, len(values))
    if not count:
        return np.empty(0, dtype=np.intp)
    places = np.flatnonzero(values >= np.partition(values, -count)[-count])
    return places[np.argsort(-values[places], kind="stable")][:count]


def cosines(products: Array) -> Array:
    """Absolute cosines of the angles between columns, from their inner products."""
    norms = np.sqrt(np.diagonal(products))
    return np.abs(products) / np.outer(norms, norms)
