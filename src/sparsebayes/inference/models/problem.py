"""What a solver sees: a weighted Gaussian problem, or another one (``mode.py``), of which the search may see a part.

A solver never learns where the design lives, which likelihood gave the weights, or what the functions are.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import solve_triangular
from scipy.linalg.blas import dsyrk  # pyright: ignore[reportAttributeAccessIssue]

from sparsebayes.basis.arrays import HOST
from sparsebayes.basis.places import Places
from sparsebayes.design import (
    CompressedDesign,
    DenseDesign,
    Design,
    MomentDesign,
    Native,
    Ranking,
    ScreenedDesign,
    rank,
    representatives,
)
from sparsebayes.inference.models.linalg import cholesky, inverse_upper, semidefinite_root
from sparsebayes.threads import on_all_cores, side_by_side
from sparsebayes.typing import Array, Index

# Below this fraction of the targets' mean square the noise is not distinguishable from rounding error in the
# residuals, so neither is its estimate.
FLOOR = 1e-10
# Entries of a dictionary from which on the search goes on in a working set.
LARGE = 1 << 21
# Weights, as a share of the rows, up to which it makes no difference how many rows are copies.
_FEW = 1e-3
# What the inner products of a part of the rows are regularised by, as a part of each function's own, so that functions
# which this part cannot tell apart are not blown up on the others; how many functions and rows are multiplied at once,
# and how many sums over rows are made side by side: not one for each core, or the result would depend on their number.
_REGULARISED = 1e-6
_TILE, _TILE_ROWS, _SUMS = 512, 1024, 4
# Entries of a dictionary up to which copies of a row are looked for, and decimals to which copies agree.
_ENTRIES, _DECIMALS = 1 << 25, 9


class PartOfProblem(ABC):
    """What problems of every likelihood have in common: a dictionary, of which the search may see a part."""

    design: Design
    bias: int | None
    parent: Any
    members: Index | None

    @property
    @abstractmethod
    def n_outputs(self) -> int:
        """Outputs that have functions of their own."""

    @property
    def n_functions(self) -> int:
        """Number of candidate functions M: one for each column and output."""
        return self.design.shape[1] * self.n_outputs

    def split(self, indices: Sequence[int]) -> tuple[Index, Index]:
        """Columns and outputs of functions."""
        outputs, columns = np.divmod(np.array(indices, dtype=np.intp), self.design.shape[1])
        return columns, outputs

    def lift(self, indices: Sequence[int]) -> list[int]:
        """Numbers of functions in the parent problem."""
        if self.parent is None or self.members is None:
            return list(indices)
        columns, outputs = self.split(indices)
        return (outputs * self.parent.design.shape[1] + self.members[columns]).tolist()

    def whole(self, indices: Sequence[int]) -> tuple[Self, list[int]]:
        """The problem of which this is a part, of a part, and the numbers of functions there."""
        return (self, list(indices)) if self.parent is None else self.parent.whole(self.lift(indices))

    def fetch(self, columns: Index | slice) -> Any:
        """Values of some columns, where the search needs them."""
        return self.design.columns(columns)

    @abstractmethod
    def _part(self, members: Index, *values: Any) -> Self:
        """The problem of these columns, whose values come one after the other."""

    def restrict(self, members: Index) -> Self:
        """The problem of a part of the columns, held where the rows are."""
        return self._part(members, self.fetch(members))

    def enlarge(self, fresh: Index) -> Self:
        """A part of a problem with further columns of it at the end."""
        if self.parent is None or self.members is None:
            raise TypeError("only a part of a problem can be enlarged")
        values = self.fetch(slice(None)), self.parent.fetch(fresh)
        return self.parent._part(np.concatenate([self.members, fresh]), *values)

    def widened(self, fresh: Index) -> Self:
        """What the search goes on in where these columns outside the working set gain."""
        return self.enlarge(fresh)


@dataclass(eq=False)
class GaussianProblem(PartOfProblem):
    r"""Gaussian targets with one noise level: :math:`\mathbf B = \mathbf W/\sigma^2`.

    Parameters
    ----------
    design : Design
        The dictionary evaluated on the rows.
    targets : ndarray of shape (N, T)
        Targets, one column for each model that shares the support.
    weights : ndarray of shape (N,)
        Sample weights; an integer weight k is exactly k copies of the row.
    candidates : ndarray of bool, shape (M,)
        Functions that may enter the model, unless they are zero on all rows.
    bias : int, optional
        Index of the constant function.
    stand_in : CompressedDesign, optional
        A design of low rank that may stand in for ``design`` while the search goes on.
    centres : ndarray of int, optional
        Row on which each of the first functions is centred, -1 where there is none.
    inclusion_cost : float
        Log prior odds against a function, in nats.
    n_observations : float, optional
        Number of observations in the sense of the evidence, where it is not the sum of the weights.
    offered : ndarray of bool, shape (M,), optional
        Functions that may enter in the place of others only (see ``moves.py``).
    landmarks : ndarray of int, optional
        Functions that between them nearly span all others, among which the search may begin.
    places : Places, optional
        Where the first functions are, so that one may give way to a neighbour.
    rowwise : bool
        Whether its rows are observations, and not what sums over observations were factored into.
    sample : GaussianProblem, optional
        The problem of the same functions on a part of the rows, where there are many: the search begins there.
    precisions : ndarray of shape (N,), optional
        The part of the weights that says how small the noise of a row is, and not how often the row is there.
    parent, members : GaussianProblem, ndarray of int, optional
        The problem of which this is a part, and its functions there.
    unexplained : float
        Sum of squares of the targets outside the span of the rows.
    """

    design: Design
    targets: Array
    weights: Array
    candidates: NDArray[np.bool_]
    bias: int | None = None
    stand_in: CompressedDesign | None = None
    centres: Index | None = None
    inclusion_cost: float = 0.0
    n_observations: float | None = None
    offered: NDArray[np.bool_] | None = None
    landmarks: Index | None = None
    places: Places | None = None
    rowwise: bool = True
    sample: GaussianProblem | None = None
    precisions: Array | None = None
    parent: GaussianProblem | None = None
    members: Index | None = None
    unexplained: float = 0.0
    _triangle: tuple[Array, Array] | None = field(default=None, init=False, repr=False)

    @cached_property
    def n_effective(self) -> float:
        """Number of observations in the sense of the evidence."""
        return float(np.sum(self.weights)) if self.n_observations is None else self.n_observations

    @cached_property
    def row_scale(self) -> Array:
        """Square roots of the sample weights."""
        return np.sqrt(self.weights)

    @cached_property
    def _even(self) -> bool:
        return bool(np.all(self.weights == 1.0))

    @cached_property
    def target(self) -> Array:
        """Targets times the roots of the weights."""
        return self._whiten(self.targets)

    @property
    def n_targets(self) -> int:
        """Number of targets that share the support."""
        return self.targets.shape[1]

    @property
    def n_outputs(self) -> int:
        """Outputs that have functions of their own: all targets share one support."""
        return 1

    @cached_property
    def mean_square(self) -> float:
        """Weighted mean square of the targets."""
        return (float(np.sum(self.target**2)) + self.unexplained) / (self.n_effective * self.n_targets)

    @property
    def noise_floor(self) -> float:
        """Smallest noise variance that the targets can support numerically."""
        return FLOOR * self.mean_square

    @cached_property
    def _moments(self) -> tuple[Array, Array]:
        projection, sqnorms = self.design.moments(self._whiten(self.target), self.weights)
        return sqnorms, projection

    @property
    def sqnorms(self) -> Array:
        """Weighted squared norms of the functions."""
        return self._moments[0]

    @property
    def projection(self) -> Array:
        """Weighted inner products of the functions with the targets."""
        return self._moments[1]

    @cached_property
    def eligible(self) -> NDArray[np.bool_]:
        """Candidates that are not zero on all rows; who makes the problem leaves copies of functions out of these."""
        return self.candidates & (self.sqnorms > 0.0)

    @cached_property
    def ranking(self) -> Ranking:
        """The order of the functions by what they promise."""
        return rank(self.design, self.sqnorms, self.eligible)

    @property
    def rows(self) -> Index:
        """Row on which each function is centred, -1 where there is none."""
        rows = np.full(self.n_functions, -1, dtype=np.intp)
        if self.centres is not None:
            rows[: len(self.centres)] = self.centres
        return rows

    def columns(self, idx: Index) -> Array:
        """Whitened columns."""
        return self._whiten(self.design.columns(idx))

    def correlate(self, vectors: Array) -> Array:
        """Correlations of all functions with whitened vectors."""
        return self.design.correlate(self._whiten(vectors))

    def project(self, vectors: Array, basis: Array) -> tuple[Array, Array]:
        """Correlations of all functions with some vectors, and sums of squares of those with others."""
        return self.design.project(self._whiten(vectors), self._whiten(basis))

    def _whiten(self, values: Array, rows: slice = slice(None)) -> Array:
        """Values on some rows times the roots of the weights; themselves, which may be large, where these are one."""
        return values if self._even else self.row_scale[rows, None] * values

    def priced(self, inclusion_cost: float) -> GaussianProblem:
        """The same problem with another cost of a function."""
        sample = None if self.sample is None else self.sample.priced(inclusion_cost)
        variant = self._variant(inclusion_cost=inclusion_cost, sample=sample)
        variant._triangle = self._triangle
        return variant

    def weighted(self, weights: Array, n_observations: float) -> GaussianProblem:
        """The same problem with other row weights, which stand for this many observations."""
        return self._variant(weights=weights, n_observations=n_observations)

    def precise(self, precisions: Array) -> GaussianProblem:
        r"""The same problem with the noise :math:`\sigma^2/\rho_n` in row n, where :math:`\prod_n\rho_n=1`."""
        all_of_them = precisions if self.precisions is None else self.precisions * precisions
        return self._variant(weights=self.weights * precisions, precisions=all_of_them)

    @property
    def counts(self) -> Array:
        """How often each row is there."""
        return self.weights if self.precisions is None else self.weights / self.precisions

    def share(self, used: float) -> float:
        """Share of the rows that so many well-determined weights use up; a row and its copies are one row here."""
        problem, _ = self.whole([])
        if not problem.rowwise or used <= _FEW * len(problem.weights):
            return used / self.n_effective
        return used / min(self.n_effective, problem.different)

    def counted_once(self) -> GaussianProblem:
        """The same problem with weights that add up to the number of different rows, where they add up to more."""
        share = self.different / self.n_effective
        return self if share >= 1.0 else self.weighted(share * self.weights, float(self.different))

    @cached_property
    def different(self) -> int:
        """Number of rows that differ from each other; those with any weight, where there is too much to compare."""
        there = self.weights > 0.0
        if self.design.shape[0] * self.n_functions > _ENTRIES:
            return int(np.sum(there))
        # Copies are copies in what stands in for the functions, too, which costs far less to ask.
        return len(np.unique(self.told_by(self.design if self.stand_in is None else self.stand_in)[there], axis=0))

    def told_by(self, design: Design) -> Array:
        """What is the same in two rows only where these are copies: their targets, and sums of their functions.

        The design is that of the functions, or what stands in for them.
        """
        if len(np.unique(self.targets, axis=0)) == len(self.targets):
            return self.targets  # rows with different targets are different
        return np.column_stack([self.targets, self.sums(design)])

    def sums(self, design: Design) -> Array:
        """Two sums of the functions of every row, (N, 2), by which rows with the same targets are told apart.

        In the first a function counts by what it explains alone, so that functions that explain the same count the
        same, and no order of theirs matters; rows that it does not tell apart have different second sums by almost any
        factors.  These go to the functions in the order of what each explains, so that it hardly matters in which order
        functions came, nor in which order and how often rows did.  All is relative to norms: units do not matter.
        """
        functions = np.flatnonzero(self.eligible)
        root = np.sqrt(self.sqnorms[functions])
        explained = np.sum((self.projection[functions] / root[:, None]) ** 2, axis=1)
        order = np.argsort(-explained, kind="stable")
        random = np.random.default_rng(0).standard_normal(len(functions))
        both = (explained / max(np.max(explained, initial=0.0), np.finfo(float).tiny))[order], random
        sums = np.column_stack([design.matvec(factors / root[order], functions[order]) for factors in both])
        unit = np.max(np.abs(sums), axis=0, initial=0.0)
        return np.round(sums / np.where(unit > 0.0, unit, 1.0), _DECIMALS)

    @property
    def relative_noise(self) -> Array:
        r"""Noise variance of each row as a multiple of :math:`\sigma^2`."""
        return np.ones(len(self.weights)) if self.precisions is None else 1.0 / self.precisions

    def _variant(self, **changes: Any) -> GaussianProblem:
        """This problem with some things changed; it stands for as many observations, and is no part of another."""
        whole: dict[str, Any] = {"sample": None, "parent": None, "members": None, "n_observations": self.n_effective}
        return replace(self, **whole | changes)

    # -- smaller problems with the same answer -------------------------------------------------------------

    def screened(self, below: GaussianProblem | None) -> GaussianProblem:
        """The same problem with the stand-in's products; ``below`` is the problem compressed by it, where known."""
        if self.stand_in is None or self.design is self.stand_in or isinstance(self.stand_in, Native):
            return self
        exact = self.design.exact if isinstance(self.design, ScreenedDesign) else self.design
        variant = self._variant(design=ScreenedDesign(exact, self.stand_in, self.stand_in.error))
        if below is not None:
            variant._moments = below.sqnorms.copy(), below.projection.copy()
        return variant

    def held(self) -> GaussianProblem:
        """The same problem with its functions in memory, if they would otherwise be evaluated anew at every pass."""
        if self.stand_in is None or self.design is self.stand_in or isinstance(self.stand_in, Native):
            return self
        return self._variant(design=DenseDesign(self.design.columns(slice(None))))

    def exact_moments(self, idx: Index, vectors: Array) -> Array:
        """Correlations of some functions with whitened vectors, exactly; their norms and projections become exact."""
        k, targets = vectors.shape[1], self.target

        def measure(part: slice) -> tuple[Array, Array]:
            products, norms = np.zeros((len(idx), k + self.n_targets)), np.zeros(len(idx))
            for start in range(part.start, part.stop, _TILE_ROWS):
                rows = slice(start, min(start + _TILE_ROWS, part.stop))
                values = self._whiten(self.design.rows(rows, idx), rows)
                products[:, :k] += values.T @ vectors[rows]
                products[:, k:] += values.T @ targets[rows]
                norms += np.einsum("nm,nm->m", values, values)
            return products, norms

        found = side_by_side(measure, len(targets))
        products = np.sum([products for products, _ in found], axis=0)
        self.sqnorms[idx] = np.sum([norms for _, norms in found], axis=0)
        self.projection[idx] = products[:, k:]
        return products[:, :k]

    def reduced(self, tell: Callable[[float], None], *, noise_given: bool) -> GaussianProblem | None:
        """What to search in instead, where that is known before any function is scored; None where it is not.

        A compression is exact enough for a noise that is learned through it, not for any that is given.  ``tell`` is
        called with the share of the rows that a pass over them has behind it.
        """
        if self.sample is not None:  # its candidates were chosen already
            return self.on_fewer_rows(tell)
        if noise_given and self.design.shape[0] * self.n_functions <= LARGE:
            return self.held()
        small = self if self.stand_in is None else self.compressed()
        landmarks = self.landmarks if self.stand_in is None else self.stand_in.landmarks
        return None if landmarks is None else small.restrict(with_bias(landmarks, small.bias))

    def _part(self, members: Index, *values: Any) -> GaussianProblem:
        bias = np.flatnonzero(members == self.bias)
        part = self._made(
            DenseDesign(HOST.join(list(values), 1)),
            candidates=self.eligible[members],
            bias=int(bias[0]) if len(bias) else None,
            offered=None if self.offered is None else self.offered[members],
            members=members,
        )
        part._moments = self.sqnorms[members], self.projection[members]
        return part

    def _made(self, design: Design, **changes: Any) -> GaussianProblem:
        """A problem of other columns or rows that is made of this one."""
        lost = ("offered", "members", "stand_in", "centres", "landmarks", "places", "sample", "precisions")
        kept = {"n_observations": self.n_effective, "parent": self}
        return replace(self, design=design, **dict.fromkeys(lost) | kept | changes)

    def _on_rows(self, design: Design, targets: Array, **changes: Any) -> GaussianProblem:
        """The problem of a few rows that have the inner products of all, but for targets outside their span."""
        unexplained = max(0.0, float(np.sum(self.target**2) - np.sum(targets**2)))
        weights = np.ones(len(targets))
        return self._made(design, targets=targets, weights=weights, rowwise=False, unexplained=unexplained, **changes)

    def compressed(self) -> GaussianProblem:
        r"""The problem of r rows that is exactly this one with the stand-in for its design.

        With :math:`\boldsymbol\Phi=\mathbf L\mathbf M^\top` and :math:`\mathbf L^\top\mathbf W\mathbf L=\mathbf
        T^\top\mathbf T` it has the rows :math:`\mathbf T\mathbf M^\top` and targets :math:`\mathbf T^{-\top}\mathbf
        L^\top\mathbf W\mathbf t` in the orthonormal basis :math:`\mathbf L\mathbf T^{-1}`.
        """
        if self.stand_in is None:
            raise ValueError("the problem has no design to stand in")
        gram, projected = self.stand_in.inner_products(self.weights, self.targets)
        factor = cholesky(gram)
        targets = solve_triangular(factor, projected, trans=1, check_finite=False)
        # Where the design is the compression itself nothing was lost, and there is nothing to go back to.
        parent = None if self.design is self.stand_in else self
        return self._on_rows(self.stand_in.with_rows(factor), targets, places=self.places, parent=parent)

    def on_fewer_rows(self, tell: Callable[[float], None] = lambda done: None) -> GaussianProblem:
        """The problem on as many rows as functions, with the same inner products, by a pass over all."""
        if self._triangle is None:
            self._triangle = self._reduce(tell)
        rows, targets = self._triangle
        return self._on_rows(DenseDesign(rows), targets, offered=self.offered, sample=self.sample)

    def _reduce(self, tell: Callable[[float], None]) -> tuple[Array, Array]:
        r"""Rows of the functions and of the targets whose inner products are those of all rows.

        With :math:`\mathbf R_1^\top\mathbf R_1` the inner products on the sample, slightly regularised, the columns of
        :math:`\mathbf P=\mathbf W^{1/2}\boldsymbol\Phi\mathbf R_1^{-1}` are not nearly dependent, so that nothing that
        matters is lost in :math:`\mathbf P^\top\mathbf P=\mathbf T^\top\mathbf T`, and :math:`(\mathbf T\mathbf R_1,
        \mathbf T^{-\top}\mathbf P^\top\mathbf W^{1/2}\mathbf t)` stand for all rows.
        """
        if self.sample is None:
            raise ValueError("the problem has no part of its rows")
        part = self.sample.columns(np.arange(self.n_functions))
        gram = (self.n_effective / self.sample.n_effective) * (part.T @ part)
        gram.flat[:: len(gram) + 1] *= 1.0 + _REGULARISED
        first = cholesky(gram)
        inverse, (n, m) = inverse_upper(first), self.design.shape
        done = np.zeros(_SUMS)
        tiles = [slice(start, min(start + _TILE, m)) for start in range(0, m, _TILE)]

        def add_up(run: int) -> tuple[Array, Array]:
            products, projected = np.zeros((m, m), order="F"), np.zeros((m, self.n_targets))
            stop = n * (run + 1) // _SUMS
            for start in range(n * run // _SUMS, stop, _TILE_ROWS):
                rows = slice(start, min(start + _TILE_ROWS, stop))
                values = self._whiten(self.design.rows(rows), rows)
                made = np.empty_like(values)
                for tile in tiles:
                    made[:, tile] = values[:, : tile.stop] @ inverse[: tile.stop, tile]
                products = dsyrk(1.0, made.T, beta=1.0, c=products, overwrite_c=True)  # above the diagonal
                projected += made.T @ self.target[rows]
                done[run] += rows.stop - rows.start
                tell(float(done.sum()) / n)
            return products, projected

        found = on_all_cores(add_up, range(_SUMS))
        factor, order = semidefinite_root(np.sum([products for products, _ in found], axis=0))
        projected = np.sum([projected for _, projected in found], axis=0)[order]
        targets = solve_triangular(factor[:, : len(factor)], projected[: len(factor)], trans=1, check_finite=False)
        return factor @ first[order], targets


def with_bias(members: Index, bias: int | None) -> Index:
    """Functions in their order, the constant one among them."""
    return np.sort(members) if bias is None else np.union1d(members, np.array([bias], dtype=np.intp))


def moment_problem(design: MomentDesign, eligible: NDArray[np.bool_] | None = None) -> GaussianProblem:
    """Problem with exactly the moments of the design, on the few rows of their root, which stand for its N.

    By default all functions may enter but copies of an earlier one, which has the same inner products with everything.
    """
    enter = representatives(DenseDesign(design.G)) == np.arange(len(design.G)) if eligible is None else eligible
    root = design.root()
    columns, one = DenseDesign(root.columns), np.ones(len(root.columns))
    return GaussianProblem(columns, root.targets, one, enter, n_observations=design.N, rowwise=False)
