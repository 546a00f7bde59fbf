r"""Problems whose rows are in partitions that other processes hold: only sums over the rows travel.

What a partition contributes is computed by the same code as on one machine, and joined in a fixed order.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from hashlib import blake2b
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import qr, solve_triangular
from scipy.linalg.blas import dgemm, dsyrk  # pyright: ignore[reportAttributeAccessIssue]

from sparsebayes.basis import Functions
from sparsebayes.basis.arrays import HOST
from sparsebayes.design import DenseDesign, Design, HStack, LazyDesign
from sparsebayes.inference.models.evidence import Array
from sparsebayes.inference.models.linalg import try_cholesky
from sparsebayes.inference.models.mode import ActiveColumns, LaplaceProblem, Point
from sparsebayes.inference.models.problem import Index
from sparsebayes.inference.models.screening import Measured
from sparsebayes.likelihood import Likelihood

# What each function must have of its own beside those before it, as a part of its squared norm: in a sample of the
# rows, above rounding; in products, so much that half of the digits of their Cholesky factor are right.
_RESOLVED = 1e-24
_CONDITIONED = 1e-8
# A sample may promise so many times as much.
_SLACK = 0.1
# Rows whose functions are evaluated at once on a worker: for a triangle, many more than there are functions; for
# products, as many as stay in the cache.
_ROWS = 1 << 14
_CACHED_ROWS = 1 << 9


@dataclass(frozen=True)
class Partition:
    """Rows of one partition: inputs, targets, and the number of the first of them among all."""

    X: Array
    y: NDArray[Any]
    first: int = 0


@dataclass(frozen=True)
class Count(Likelihood):
    """A likelihood known by its shape alone: its targets are with the rows."""

    n_rows: int
    n_outputs: int

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and outputs."""
        return self.n_rows, self.n_outputs

    def log_likelihood(self, y: Array) -> float:
        """Computed with the rows."""
        raise TypeError("the targets are in partitions elsewhere; only sums over them travel")

    gradient = curvature = curvature_change = log_likelihood  # pyright: ignore[reportAssignmentType]


@dataclass(frozen=True)
class PartitionedProblem(LaplaceProblem):
    """A non-Gaussian problem on partitioned rows.

    ``passes.sum(work, *arguments)`` adds up, entry by entry, what ``work(partition, *arguments)`` returns;
    ``functions`` are the whole dictionary, without the intercept; ``make(targets)`` gives the likelihood of the rows of
    one partition; ``numbers`` are those of this problem's functions in the whole dictionary, the intercept after all.
    """

    passes: Any = None
    functions: Any = None
    make: Any = None
    numbers: Any = None

    def _part(self, members: Index, *values: Any) -> LaplaceProblem:
        return replace(super()._part(members, *values), numbers=self.numbers[members])  # pyright: ignore[reportCallIssue]

    def fetch(self, columns: Index | slice) -> Counted:
        """No more than how many there are: the rows stay where they are."""
        rows, functions = self.design.shape
        return Counted(rows, len(np.arange(functions)[columns]))

    def _held(self, values: tuple[Any, ...]) -> Design:
        return Counted(self.design.shape[0], sum(part.shape[1] for part in values))

    def active(self, indices: list[int]) -> PartitionedColumns:
        """Columns of these functions, with the rows."""
        return PartitionedColumns(self, indices)


class Counted(Design):
    """The shape of a dictionary on rows that are elsewhere; what needs the rows says so."""

    def __init__(self, rows: int, functions: int) -> None:
        self._shape = rows, functions

    @property
    def shape(self) -> tuple[int, int]:
        """Rows in all partitions, and functions."""
        return self._shape

    def columns(self, idx: Any) -> Array:
        """They do not travel."""
        raise TypeError("the rows are in partitions elsewhere and do not travel; only sums over them do")


class SummedPoint(Point):
    """The likelihood at some weights, from one pass over rows that are elsewhere."""

    def __init__(self, columns: ActiveColumns, weights: Array, fit: float, slope: Array, gram: Array) -> None:
        super().__init__(columns, weights)
        self.fit, self.slope, self.gram = float(fit), slope, gram


class PartitionedColumns(ActiveColumns):
    """The active columns of a partitioned problem: every question is one pass over the rows."""

    problem: PartitionedProblem

    def __init__(self, problem: Any, indices: list[int]) -> None:
        self.problem, self.indices = problem, list(indices)
        columns, outputs = problem.split(indices)
        self._model = Model(problem.functions, problem.make, problem.numbers[columns], outputs, problem.n_outputs)

    def _sum(self, work: Callable[..., tuple[Any, ...]], *arguments: Any) -> tuple[Any, ...]:
        return self.problem.passes.sum(work, self._model, *arguments)

    def at(self, weights: Array) -> Point:
        """The likelihood at these weights: a Newton step's worth of sums."""
        return SummedPoint(self, weights, *self._sum(_point, weights))

    def bend(self, point: Point, covariance: Array) -> tuple[Any, Array]:
        """The covariance, from which workers find the change of their rows, and the bend."""
        return covariance, self._sum(_bend, point.weights, covariance)[0]

    def expected_gram(self, weights: Array, root: Array) -> Array:
        """Expected Gram matrix of classes."""
        return self._sum(_asked, "expected_gram", weights, root)[0]

    def left_out_gains(self, weights: Array, covariance: Array, shares: Sequence[float]) -> Array:
        """Log likelihoods of rows that are left out."""
        return self._sum(_asked, "left_out_gains", weights, covariance, shares)[0]

    def measure(
        self, problem: LaplaceProblem, design: Design, point: Point, change: Any, root: Array, bend: Array
    ) -> Measured:
        """Statistics of all functions of ``problem``."""
        numbers = problem.numbers  # pyright: ignore[reportAttributeAccessIssue]
        found = self._sum(_moments, numbers, point.weights, change, root, bend)
        return Measured.of(HOST, zip(*found, strict=True))

    def screen(self, point: Point, change: Any, root: Array, bend: Array, candidates: NDArray[np.bool_]) -> Measured:
        """Statistics of all functions of the problem."""
        return self.measure(self.problem, self.problem.design, point, change, root, bend)


@dataclass(frozen=True)
class Model:
    """What a worker needs to know of the active functions."""

    functions: Functions
    make: Callable[[Any], Likelihood]
    columns: Index
    outputs: Index
    n_outputs: int

    def on(self, partition: Partition) -> ActiveColumns:
        """The active columns on the rows of a partition."""
        design = HStack([LazyDesign(self.functions, partition.X), DenseDesign(np.ones((len(partition.X), 1)))])
        problem = LaplaceProblem(design, self.make(partition.y), np.ones(design.shape[1], dtype=bool))
        return ActiveColumns(problem, (self.outputs * problem.design.shape[1] + self.columns).tolist())


def _point(partition: Partition, model: Model, weights: Array) -> tuple[Any, ...]:
    found = model.on(partition).at(weights)
    return found.fit, found.slope, found.gram


def _bend(partition: Partition, model: Model, weights: Array, covariance: Array) -> tuple[Any, ...]:
    active = model.on(partition)
    return (active.bend(active.at(weights), covariance)[1],)


def _asked(partition: Partition, model: Model, question: str, *arguments: Any) -> tuple[Any, ...]:
    return (getattr(model.on(partition), question)(*arguments),)


def _moments(
    partition: Partition, model: Model, numbers: Index, weights: Array, covariance: Array, root: Array, bend: Array
) -> tuple[Any, ...]:
    """Products of all functions with the directions in which they are measured, and their norms, by output."""
    active = model.on(partition)
    point = active.at(weights)
    along = active.directions(point, active.bend(point, covariance)[0], root, bend)
    found = along.moments(DenseDesign(active.problem.design.columns(numbers)))
    return tuple(np.stack(parts) for parts in zip(*found, strict=True))


def _blocks(
    partition: Partition, step: int, functions: Functions, with_bias: bool, offset: float, scale: float
) -> Iterator[Array]:
    r""":math:`[\boldsymbol\Phi\;t]` on runs of rows of one partition."""
    m = len(functions)
    for start in range(0, len(partition.X), step):
        part = slice(start, start + step)
        values = np.empty((len(partition.X[part]), m + with_bias + 1))
        values[:, :m], values[:, m:-1] = functions.evaluate(partition.X[part]), 1.0
        values[:, -1] = (partition.y[part].astype(np.float64) - offset) / scale
        yield values


def triangle(partition: Partition, functions: Functions, *settings: Any) -> Array:
    r"""The triangle R of :math:`[\boldsymbol\Phi\;t]=\mathbf Q\mathbf R` on the rows of one partition.

    It holds the sums of ``gram`` without having squared their condition number, in no more numbers.
    """
    held = np.zeros((0, 0))
    for block in _blocks(partition, _ROWS, functions, *settings):
        held = join_triangles([held, block] if len(held) else [block])
    return held


def thinned(partition: Partition, step: int, functions: Functions, *settings: Any) -> Array:
    """The triangle of some rows, evenly spaced."""
    return triangle(replace(partition, X=partition.X[::step], y=partition.y[::step]), functions, *settings)


def independent(first: Array) -> bool:
    """Whether the triangle of a sample determines every function apart from the others."""
    rows, columns = first.shape
    return rows == columns and bool(np.all(np.diagonal(first) ** 2 > _RESOLVED * np.einsum("nm,nm->m", first, first)))


@dataclass(frozen=True)
class Remainders:
    r"""What a few functions leave of all others, so that products of the rest lose nothing that matters.

    In the order of their pivots (``order``, the targets last) the triangle of a sample is :math:`\mathbf R_1=
    [\mathbf R_{11}\;\mathbf R_{12};\mathbf 0\;\mathbf R_{22}]`. The rows are held as :math:`\mathbf P=
    [\boldsymbol\Phi\;t]\mathbf F^{-1}` with :math:`\mathbf F=[\mathbf R_{11}\;\mathbf R_{12};\mathbf 0\;\mathbf I]`,
    whose first rows are ``above``, for the fewest pivots with which the columns of P are far from dependent.
    """

    order: Index
    above: Array

    @classmethod
    def of(cls, first: Array) -> Remainders:
        """With the fewest pivots that will do on the sample."""
        norms = np.linalg.norm(first, axis=0)
        pivots = np.asarray(qr(first[:, :-1] / norms[:-1], mode="r", pivoting=True, check_finite=False)[-1])
        order = np.append(pivots, len(pivots))
        R = join_triangles([(first / norms)[:, order]])
        # Squares of what k pivots leave of every function, and of what all functions before it leave.
        left, own = np.cumsum(R[::-1] ** 2, axis=0)[::-1], np.diagonal(R) ** 2
        shares = [np.min(own[k:] / left[k, k:]) for k in range(len(R))]
        k = int(np.argmax(np.array(shares) > _CONDITIONED))
        return cls(order, R[:k] * norms[order])

    def triangle_of(self, sums: Array) -> Array | None:
        """The triangle of all rows from their products, or None where the sample did not stand for them."""
        both = np.triu(sums) + np.triu(sums, 1).T
        norms = np.sqrt(np.diagonal(both))[self.order]
        factor = try_cholesky(both[np.ix_(self.order, self.order)] / np.outer(norms, norms))
        if factor is None or np.min(np.diagonal(factor)) ** 2 < _SLACK * _CONDITIONED:
            return None
        factor *= norms
        k = len(self.above)
        triangle = np.empty_like(factor)
        triangle[:, self.order] = factor[:, :k] @ self.above
        triangle[:, self.order[k:]] += factor[:, k:]
        return join_triangles([triangle])


def products(partition: Partition, remainders: Remainders, functions: Functions, *settings: Any) -> Array:
    r"""The sums :math:`\mathbf P^\top\mathbf P` over the rows of one partition; the part above the diagonal."""
    order, above = remainders.order, remainders.above
    k, size = above.shape
    pivots, rest = order[:k], np.zeros((size, k), order="F")
    rest[order[k:]] = above[:, k:].T
    total = np.zeros((size, size), order="F")
    for block in _blocks(partition, _CACHED_ROWS, functions, *settings):
        lead = solve_triangular(above[:, :k], block[:, pivots].T, trans=1, check_finite=False)
        block = dgemm(-1.0, rest, lead, beta=1.0, c=block.T, overwrite_c=True).T
        block[:, pivots] = lead.T
        total = dsyrk(1.0, block.T, beta=1.0, c=total, overwrite_c=True)
    return total


def add_up(parts: list[Array]) -> Array:
    """The sum of what several partitions have, in their order."""
    return np.asarray(sum(parts[1:], start=parts[0]))


def fingerprints(partition: Partition, functions: Functions, with_bias: bool) -> list[tuple[bytes, bool]]:
    """What tells the functions apart by their values on the rows of one partition, and which of them are zero."""
    held = [blake2b(digest_size=32) for _ in range(len(functions) + with_bias)]
    zero = np.ones(len(held), dtype=bool)
    for start in range(0, len(partition.X), _ROWS):
        values = functions.evaluate(partition.X[start : start + _ROWS])
        block = np.hstack([values, np.ones((len(values), 1))])[:, : len(held)]
        zero &= ~np.any(block, axis=0)
        for one, values in zip(held, np.ascontiguousarray(block.T) + 0.0, strict=True):  # -0.0 is 0.0
            one.update(values)
    return [(one.digest(), bool(nothing)) for one, nothing in zip(held, zero, strict=True)]


def join_fingerprints(parts: list[list[tuple[bytes, bool]]]) -> list[tuple[bytes, bool]]:
    """The same on the rows of several partitions."""
    each = zip(*parts, strict=True)
    return [(blake2b(b"".join(one for one, _ in some)).digest(), all(zero for _, zero in some)) for some in each]


def join_triangles(parts: list[Array]) -> Array:
    """The triangle of all rows from those of some."""
    return np.asarray(np.linalg.qr(np.vstack(parts), mode="r"), dtype=np.float64)
