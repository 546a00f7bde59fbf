r"""What a solver sees: a weighted Gaussian problem.

With row weights :math:`\mathbf B = \beta\mathbf W` every product that learning needs is one of the whitened design
:math:`\mathbf W^{1/2}\boldsymbol\Phi` with a few vectors.  A solver never learns where the design lives, which
likelihood gave the weights, or what the functions are.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import solve_triangular

from sparsebayes.basis.places import Places
from sparsebayes.design import CompressedDesign, DenseDesign, Design, Native, Ranking, ScreenedDesign, rank
from sparsebayes.design.protocol import BLOCK_BYTES
from sparsebayes.inference.models.evidence import Array
from sparsebayes.inference.models.linalg import cholesky, inverse_upper, semidefinite_root
from sparsebayes.threads import on_all_cores

Index = NDArray[np.intp]

# Weights, as a share of the rows, up to which it makes no difference how many rows are copies.
_FEW = 1e-3
# What the inner products of a part of the rows are regularised by, as a part of each function's own, so that functions
# which this part cannot tell apart are not blown up on the others; how many functions and rows are multiplied at once,
# and how many sums over rows are made side by side: not one for each core, or the result would depend on their number.
_REGULARISED = 1e-6
_TILE, _TILE_ROWS, _SUMS = 512, 4096, 4
# Entries of a dictionary up to which copies of a row are looked for, and decimals to which copies agree.
_ENTRIES, _DECIMALS = 1 << 25, 9


class GaussianProblem:
    """Gaussian targets with one noise level: :math:`\\mathbf B = \\mathbf W/\\sigma^2`.

    Parameters
    ----------
    design : Design
        The dictionary evaluated on the rows.
    targets : ndarray of shape (N, T)
        Targets, one column for each model that shares the support.
    weights : ndarray of shape (N,)
        Sample weights; an integer weight k is exactly k copies of the row.
    eligible : ndarray of bool, shape (M,)
        Functions that may enter the model.
    bias : int, optional
        Index of the constant function.
    stand_in : CompressedDesign, optional
        A design of low rank that may stand in for ``design`` while the search goes on.
    centres : ndarray of int, optional
        Row on which each of the first functions is centred, -1 where there is none.
    inclusion_cost : float
        Log prior odds against a function, in nats.
    n_observations : float, optional
        Number of observations in the sense of the evidence, where it is not the sum of the weights: a row whose noise
        is known to be larger weighs less and is still one observation.
    offered : ndarray of bool, shape (M,), optional
        Functions that may enter in the place of others only (see ``moves.py``).
    landmarks : ndarray of int, optional
        Functions that between them nearly span all others, among which the search may begin.
    places : Places, optional
        Where the first functions are, so that one may give way to a neighbour.

    Attributes
    ----------
    rowwise : bool
        Whether its rows are observations, and not what sums over observations were factored into.
    sample : GaussianProblem or None
        The problem of the same functions on a part of the rows, where there are many: the search begins there.
    precisions : ndarray of shape (N,) or None
        The part of the weights that says how small the noise of a row is, and not how often the row is there; None
        where that is one for all rows.
    """

    def __init__(
        self,
        design: Design,
        targets: Array,
        weights: Array,
        eligible: NDArray[np.bool_],
        bias: int | None = None,
        stand_in: CompressedDesign | None = None,
        centres: Index | None = None,
        inclusion_cost: float = 0.0,
        n_observations: float | None = None,
        offered: NDArray[np.bool_] | None = None,
        landmarks: Index | None = None,
        places: Places | None = None,
    ) -> None:
        self.design = design
        self.targets = targets
        self.weights = weights
        self.bias = bias
        self.stand_in = stand_in
        self.centres = centres
        self.inclusion_cost = inclusion_cost
        self.offered = offered
        self.landmarks = landmarks
        self.places = places
        self.parent: GaussianProblem | None = None
        self.members: Index | None = None
        self.unexplained = 0.0
        self.rowwise = True
        self.sample: GaussianProblem | None = None
        self._triangle: tuple[Array, Array] | None = None
        self.precisions: Array | None = None
        self.n_effective = float(np.sum(weights)) if n_observations is None else n_observations
        self._candidates = eligible
        self._root = np.sqrt(weights)[:, None]
        self._even = bool(np.all(weights == 1.0))
        self.target = self._root * targets
        self._sqnorms: Array | None = None
        self._projection: Array | None = None
        self._eligible: NDArray[np.bool_] | None = None
        self._ranking: Ranking | None = None
        self._different: int | None = None

    @property
    def n_functions(self) -> int:
        """Number of candidate functions M."""
        return self.design.shape[1]

    @property
    def n_targets(self) -> int:
        """Number of targets that share the support."""
        return self.targets.shape[1]

    @property
    def n_outputs(self) -> int:
        """Outputs that have functions of their own: all targets share one support."""
        return 1

    def split(self, functions: list[int]) -> tuple[list[int], list[int]]:
        """Column and output of each function."""
        return functions, [0] * len(functions)

    @property
    def mean_square(self) -> float:
        """Weighted mean square of the targets."""
        return (float(np.sum(self.target**2)) + self.unexplained) / (self.n_effective * self.n_targets)

    @property
    def sqnorms(self) -> Array:
        """Weighted squared norms of the functions."""
        self._learn_moments()
        return self._sqnorms  # pyright: ignore[reportReturnType]

    @property
    def projection(self) -> Array:
        """Weighted inner products of the functions with the targets."""
        self._learn_moments()
        return self._projection  # pyright: ignore[reportReturnType]

    @property
    def eligible(self) -> NDArray[np.bool_]:
        """Functions that may enter: not zero, and not a copy of an earlier one."""
        if self._eligible is None:
            self._eligible = self._candidates & (self.sqnorms > 0.0)
        return self._eligible

    @property
    def ranking(self) -> Ranking:
        """The order of the functions by what they promise."""
        if self._ranking is None:
            self._ranking = rank(self.design, self.sqnorms, self.eligible)
        return self._ranking

    @property
    def rows(self) -> Index:
        """Row on which each function is centred, -1 where there is none."""
        rows = np.full(self.n_functions, -1, dtype=np.intp)
        if self.centres is not None:
            rows[: len(self.centres)] = self.centres
        return rows

    @property
    def row_scale(self) -> Array:
        """Square roots of the sample weights."""
        return self._root[:, 0]

    def columns(self, idx: Index) -> Array:
        """Whitened columns."""
        values = self.design.columns(idx)
        if not self._even:
            values *= self._root
        return values

    def correlate(self, vectors: Array) -> Array:
        """Correlations of all functions with whitened vectors; the first pass also finds norms and projections."""
        if self._sqnorms is not None:
            return self.design.correlate(self._whiten(vectors))
        k = self.n_targets
        found, norms = self.design.moments(self._root * np.hstack([self.target, vectors]), self.weights)
        self._sqnorms, self._projection = norms, found[:, :k]
        return found[:, k:]

    def project(self, vectors: Array, basis: Array) -> tuple[Array, Array]:
        """Correlations of all functions with some vectors, and sums of squares of those with others."""
        if self._sqnorms is not None:
            return self.design.project(self._whiten(vectors), self._whiten(basis))
        found, k = self.correlate(np.hstack([vectors, basis])), vectors.shape[1]
        return found[:, :k], np.einsum("mp,mp->m", found[:, k:], found[:, k:])

    def _whiten(self, vectors: Array) -> Array:
        """Vectors times the roots of the weights; themselves, which may be large, where these are one."""
        return vectors if self._even else self._root * vectors

    def _learn_moments(self) -> None:
        if self._sqnorms is None:
            self.correlate(np.zeros((len(self._root), 0)))

    def priced(self, inclusion_cost: float) -> GaussianProblem:
        """The same problem with another cost of a function."""
        variant = self._variant(self.weights, inclusion_cost, self.n_effective)
        variant.sample = None if self.sample is None else self.sample.priced(inclusion_cost)
        variant._triangle = self._triangle
        return variant

    def weighted(self, weights: Array, n_observations: float) -> GaussianProblem:
        """The same problem with other row weights, which stand for this many observations."""
        return self._variant(weights, self.inclusion_cost, n_observations)

    def precise(self, precisions: Array) -> GaussianProblem:
        r"""The same problem with the noise :math:`\sigma^2/\rho_n` in row n.

        The evidence is complete where :math:`\prod_n\rho_n=1`, each factor as often as its row is there.
        """
        variant = self._variant(self.weights * precisions, self.inclusion_cost, self.n_effective)
        variant.precisions = precisions if self.precisions is None else self.precisions * precisions
        return variant

    @property
    def counts(self) -> Array:
        """How often each row is there."""
        return self.weights if self.precisions is None else self.weights / self.precisions

    def share(self, used: float) -> float:
        """Share of the rows that so many well-determined weights use up; a row and its copies are one row here.

        However often a row is there, one function reproduces it and all its copies: a weight of k, like k copies, makes
        it no harder for functions to use up all that the data say.
        """
        problem = self
        while problem.parent is not None:
            problem = problem.parent
        if not problem.rowwise or used <= _FEW * len(problem.weights):
            return used / self.n_effective
        return used / min(self.n_effective, problem._count())

    def counted_once(self) -> GaussianProblem:
        """The same problem with weights that add up to the number of different rows, where they add up to more."""
        share = self._count() / self.n_effective
        return self if share >= 1.0 else self._variant(share * self.weights, self.inclusion_cost, float(self._count()))

    def _count(self) -> int:
        """Number of rows that differ from each other; those with any weight, where there is too much to compare."""
        if self._different is None:
            there = self.weights > 0.0
            self._different = int(np.sum(there))
            if self.design.shape[0] * self.n_functions <= _ENTRIES:
                # Rows that differ anywhere have different sums of their entries by almost any factors.
                root = np.sqrt(np.where(self.sqnorms > 0.0, self.sqnorms, np.inf))
                factors = np.random.default_rng(0).standard_normal(self.n_functions) / root
                sums = self.design.matvec(factors, np.arange(self.n_functions))[there]
                told_by = np.column_stack([self.targets[there], sums])
                largest = np.max(np.abs(told_by), axis=0, initial=0.0)
                told_by /= np.where(largest > 0.0, largest, 1.0)
                self._different = len(np.unique(np.round(told_by, _DECIMALS), axis=0))
        return self._different

    @property
    def relative_noise(self) -> Array:
        r"""Noise variance of each row as a multiple of :math:`\sigma^2`."""
        return np.ones(len(self.weights)) if self.precisions is None else 1.0 / self.precisions

    def _variant(self, weights: Array, cost: float, n: float) -> GaussianProblem:
        variant = GaussianProblem(
            self.design,
            self.targets,
            weights,
            self._candidates,
            self.bias,
            self.stand_in,
            self.centres,
            cost,
            n,
            self.offered,
            self.landmarks,
            self.places,
        )
        variant.unexplained, variant.rowwise, variant.precisions = self.unexplained, self.rowwise, self.precisions
        return variant

    # -- smaller problems with the same answer -------------------------------------------------------------

    def screened(self, below: GaussianProblem | None) -> GaussianProblem:
        """The same problem with the stand-in's products; ``below`` is the problem compressed by it, where known."""
        if self.stand_in is None or self.design is self.stand_in or isinstance(self.stand_in, Native):
            return self
        exact = self.design.exact if isinstance(self.design, ScreenedDesign) else self.design
        variant = self.weighted(self.weights, self.n_effective)
        variant.design = ScreenedDesign(exact, self.stand_in, self.stand_in.error)
        if below is not None:
            variant._sqnorms, variant._projection = below.sqnorms.copy(), below.projection.copy()
        return variant

    def held(self) -> GaussianProblem:
        """The same problem with its functions in memory, where they would be evaluated at every pass."""
        if self.stand_in is None or self.design is self.stand_in or isinstance(self.stand_in, Native):
            return self
        variant = self.weighted(self.weights, self.n_effective)
        variant.design = DenseDesign(self.design.columns(slice(None)))
        return variant

    def exact_moments(self, idx: Index, vectors: Array) -> Array:
        """Correlations of some functions with whitened vectors, exactly; their norms and projections become exact."""
        step = max(1, BLOCK_BYTES // (8 * len(self._root)))
        blocks = [idx[start : start + step] for start in range(0, len(idx), step)]

        def measure(block: Index) -> tuple[Array, Array, Array]:
            values = self.columns(block)
            return values.T @ vectors, values.T @ self.target, np.einsum("nm,nm->m", values, values)

        found = on_all_cores(measure, blocks)
        self.sqnorms[idx] = np.concatenate([norms for _, _, norms in found])
        self.projection[idx] = np.concatenate([projection for _, projection, _ in found])
        return np.concatenate([products for products, _, _ in found])

    def restrict(self, members: Index) -> GaussianProblem:
        """The problem of a part of the dictionary, held in memory."""
        return self._part(members, self.design.columns(members))

    def enlarge(self, fresh: Index) -> GaussianProblem:
        """A part of a problem with further functions of it at the end."""
        if self.parent is None or self.members is None:
            raise TypeError("only a part of a problem can be enlarged")
        held = self.design.columns(slice(None))
        values = np.hstack([held, self.parent.design.columns(fresh)])
        return self.parent._part(np.concatenate([self.members, fresh]), values)

    def _part(self, members: Index, values: Array) -> GaussianProblem:
        bias = np.flatnonzero(members == self.bias)
        place = int(bias[0]) if len(bias) else None
        part = GaussianProblem(DenseDesign(values), self.targets, self.weights, self.eligible[members], place)
        part.parent, part.members, part.inclusion_cost = self, members, self.inclusion_cost
        part.offered = None if self.offered is None else self.offered[members]
        part.unexplained, part.n_effective, part.rowwise = self.unexplained, self.n_effective, self.rowwise
        part._sqnorms, part._projection = self.sqnorms[members], self.projection[members]
        return part

    def compressed(self) -> GaussianProblem:
        r"""The problem of r rows that is exactly this one with the stand-in for its design.

        With :math:`\boldsymbol\Phi=\mathbf L\mathbf M^\top` and :math:`\mathbf L^\top\mathbf W\mathbf L=\mathbf
        T^\top\mathbf T`, the columns of :math:`\mathbf L\mathbf T^{-1}` are orthonormal in the weights' inner product:
        nothing that matters is lost in :math:`(\mathbf T\mathbf M^\top, \mathbf T^{-\top}\mathbf L^\top\mathbf W\mathbf
        t)` but the sum of squares of the targets outside their span.
        """
        if self.stand_in is None:
            raise ValueError("the problem has no design to stand in")
        gram, projected = self.stand_in.inner_products(self.weights, self.targets)
        factor = cholesky(gram)
        targets = solve_triangular(factor, projected, trans=1, check_finite=False)
        small = GaussianProblem(
            self.stand_in.with_rows(factor), targets, np.ones(len(factor)), self._candidates, self.bias
        )
        # Where the design is the compression itself nothing was lost, and there is nothing to go back to.
        small.parent = None if self.design is self.stand_in else self
        small.n_effective, small.inclusion_cost, small.places = self.n_effective, self.inclusion_cost, self.places
        small.rowwise = False
        small.unexplained = max(0.0, float(np.sum(self.target**2) - np.sum(targets**2)))
        return small

    def reduced(self, tell: Callable[[float], None] | None = None) -> GaussianProblem:
        """The problem with as many rows as it has functions, and the same inner products, by way of its sample.

        That takes a pass over all rows, on which ``tell`` is called with the share of them that is done.
        """
        if self._triangle is None:
            self._triangle = self._reduce(tell or (lambda done: None))
        rows, targets = self._triangle
        small = GaussianProblem(DenseDesign(rows), targets, np.ones(len(rows)), self._candidates, self.bias)
        small.parent, small.sample, small.offered, small.rowwise = self, self.sample, self.offered, False
        small.n_effective, small.inclusion_cost = self.n_effective, self.inclusion_cost
        small.unexplained = max(0.0, float(np.sum(self.target**2) - np.sum(targets**2)))
        return small

    def _reduce(self, tell: Callable[[float], None]) -> tuple[Array, Array]:
        r"""Rows of the functions and of the targets whose inner products are those of all rows.

        With :math:`\mathbf R_1^\top\mathbf R_1` the inner products on the sample, slightly regularised, the columns of
        :math:`\mathbf P=\mathbf W^{1/2}\boldsymbol\Phi\mathbf R_1^{-1}` are not nearly dependent, so that nothing that
        matters is lost in :math:`\mathbf P^\top\mathbf P=\mathbf T^\top\mathbf T`, and :math:`(\mathbf T\mathbf R_1,
        \mathbf T^{-\top}\mathbf P^\top\mathbf W^{1/2}\mathbf t)` stand for all rows.  That takes one pass, half of it
        products with a triangle and half sums of squares, at the speed of the processor and not of the memory.
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
            products, projected = np.zeros((m, m)), np.zeros((m, self.n_targets))
            stop = n * (run + 1) // _SUMS
            for start in range(n * run // _SUMS, stop, _TILE_ROWS):
                rows = slice(start, min(start + _TILE_ROWS, stop))
                values = self.design.rows(rows)
                if not self._even:
                    values *= self._root[rows]
                made = np.empty_like(values)
                for tile in tiles:
                    made[:, tile] = values[:, : tile.stop] @ inverse[: tile.stop, tile]
                products += made.T @ made
                projected += made.T @ self.target[rows]
                done[run] += rows.stop - rows.start
                tell(float(done.sum()) / n)
            return products, projected

        found = on_all_cores(add_up, range(_SUMS))
        factor, order = semidefinite_root(np.sum([products for products, _ in found], axis=0))
        projected = np.sum([projected for _, projected in found], axis=0)[order]
        targets = solve_triangular(factor[:, : len(factor)], projected[: len(factor)], trans=1, check_finite=False)
        return factor @ first[order], targets

    def lift(self, indices: list[int]) -> list[int]:
        """Numbers of functions in the parent problem."""
        return list(indices) if self.members is None else self.members[indices].tolist()
