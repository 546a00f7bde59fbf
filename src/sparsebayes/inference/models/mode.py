"""A design with a likelihood that is not Gaussian, the active columns on its rows, and the mode of their weights."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from itertools import combinations
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from sparsebayes.basis.arrays import HOST
from sparsebayes.basis.places import Places
from sparsebayes.design import ArrayDesign, CompressedDesign, DenseDesign, Design
from sparsebayes.inference.models.evidence import Array, log_evidence
from sparsebayes.inference.models.linalg import cholesky, log_det, solve_cholesky
from sparsebayes.inference.models.problem import Index, PartOfProblem, with_bias
from sparsebayes.inference.models.screening import Directions, Measured
from sparsebayes.likelihood import Classes, Curvature, Likelihood, expected_slope, softmax
from sparsebayes.threads import side_by_side

T = TypeVar("T")

# Entries of a dictionary times the number of classes, from which on functions of several classes are added in batches
# in the whole of it; and entries beyond which to score it costs more than to search in a part.
_ROUGHLY, _WHOLE = 1 << 18, 1 << 23
# Functions up to which all of them are scored at every step.
_SCORED = 1 << 16
# The least part of a row's own say that is left when it is left out.
_LEFT_OVER = 0.05
# Share of two classes in a row below which it tells nothing of one against the other.
_NEITHER = 1e-9
# Products of a number with a number from which on threads are worth starting (0.2 ms for two).
_MANY_PRODUCTS = 1 << 24
_NEWTON_STEPS = 200
# Newton stops when a full step would raise the log posterior by less than this (nats, relative to its size).
_NEWTON_DECREMENT = 1e-10
_ROUGH_DECREMENT = 1e-7
# Where next to nothing holds weights of classes that can be separated, steps do no more than halve what is left: as
# many of them at most are made below what the height resolves, until less than this is left to gain.
_SLOW_STEPS, _SETTLED = 12, 1e-14
# The shortest part of a step, and the part of what it promises that it must bring.
_SHORTEST, _ENOUGH = 1e-12, 1e-4


@dataclass(frozen=True)
class LaplaceProblem(PartOfProblem):
    """A design and a likelihood, which has the targets and weights; all else is as in ``GaussianProblem``.

    Candidates, bias and members are columns of the design, of which every output has functions of its own.
    """

    design: Design
    likelihood: Likelihood
    candidates: NDArray[np.bool_]
    bias: int | None = None
    stand_in: CompressedDesign | None = None
    inclusion_cost: float = 0.0
    parent: LaplaceProblem | None = None
    members: Index | None = None
    places: Places | None = None

    @property
    def n_outputs(self) -> int:
        """Outputs K of the likelihood."""
        return self.likelihood.shape[1]

    @property
    def n_targets(self) -> int:
        """One: the outputs are coupled by the likelihood, not by shared precisions."""
        return 1

    @property
    def eligible(self) -> NDArray[np.bool_]:
        """Functions that may enter the model."""
        return np.tile(self.candidates, self.n_outputs)

    @property
    def mean_square(self) -> float:
        """One: outputs are log-odds, which have a scale of their own."""
        return 1.0

    @property
    def n_effective(self) -> float:
        """Total curvature of one output where all outputs are zero: what ``sqnorms`` are to be divided by."""
        return float(np.sum(self._flat_curvature))

    @cached_property
    def sqnorms(self) -> Array:
        """Squared norms of the functions, weighted by the curvature where all outputs are zero."""
        return np.tile(self.design.sqnorms(self._flat_curvature), self.n_outputs)

    @cached_property
    def _flat_curvature(self) -> Array:
        place = self.likelihood.place
        curvature = self.likelihood.curvature(place.put(np.zeros(self.likelihood.shape)))
        return place.get(curvature.diagonal[:, 0]).copy()

    def reduced(self, tell: Callable[[float], None], *, noise_given: bool) -> LaplaceProblem | None:
        """What to search in where that is known without any scores; None where it is not."""
        if self.stand_in is not None:
            return self.restrict(with_bias(self.stand_in.landmarks, self.bias))
        rows, columns = self.design.shape
        many = self.n_outputs > 1 and rows * self.n_functions > _ROUGHLY and rows * columns <= _WHOLE
        return self.roughly() if many else None

    def widened(self, fresh: Index) -> LaplaceProblem:
        """What the search goes on in where these columns outside the working set gain.

        With a stand-in the whole dictionary is scored at the cost of a few hundred functions, unless it is very large.
        """
        whole = self.parent
        if whole is not None and whole.stand_in is not None and whole.design.shape[1] <= _SCORED:
            return whole.roughly()
        return self.enlarge(fresh)

    def roughly(self) -> LaplaceProblem:
        """The whole problem, its modes found roughly, and its functions scored by a stand-in alone where it has one."""
        return replace(self, parent=self)

    def _part(self, members: Index, *values: Any) -> LaplaceProblem:
        bias = np.flatnonzero(members == self.bias)
        return replace(
            self,
            design=self._held(values),
            candidates=self.candidates[members],
            bias=int(bias[0]) if len(bias) else None,
            stand_in=None,
            parent=self,
            members=members,
        )

    def fetch(self, columns: Index | slice) -> Any:
        """Values of some columns, where the likelihood is: rows on a device whose likelihood is not are fetched."""
        design = self.design
        return design.columns(columns) if self.likelihood.place is HOST else design.native(columns)

    def _held(self, values: tuple[Any, ...]) -> Design:
        """The design of columns that were fetched."""
        place = self.likelihood.place
        return (DenseDesign if place is HOST else ArrayDesign)(place.join(list(values), 1))

    def active(self, indices: list[int]) -> ActiveColumns:
        """Columns of these functions, wherever the rows are."""
        return ActiveColumns(self, indices)


class Point:
    """The likelihood at some weights of active columns, to second order; each sum is made when it is asked for."""

    def __init__(self, columns: ActiveColumns, weights: Array) -> None:
        self.columns, self.weights, self._likelihood = columns, weights, columns.problem.likelihood

    @cached_property
    def outputs(self) -> Any:
        """Outputs of all rows, (N, K)."""
        return self.columns.predict(self.weights)

    @cached_property
    def fit(self) -> float:
        """Log likelihood."""
        return float(self._likelihood.log_likelihood(self.outputs))

    @cached_property
    def gradient(self) -> Any:
        """Its gradient by the outputs, (N, K)."""
        return self._likelihood.gradient(self.outputs)

    @cached_property
    def curvature(self) -> Curvature:
        """Its curvature by the outputs."""
        return self._likelihood.curvature(self.outputs)

    @cached_property
    def slope(self) -> Array:
        """Its gradient by the active weights."""
        return self.columns.correlate(self.gradient)

    @cached_property
    def gram(self) -> Array:
        r""":math:`\boldsymbol\Phi_a^\top\mathbf B\boldsymbol\Phi_a`."""
        return self.columns.gram(self.curvature)


class ActiveColumns:
    """The active columns where the rows live, and sums over the rows, which come to the host."""

    def __init__(self, problem: LaplaceProblem, indices: list[int], values: Any = None) -> None:
        self.problem, self.indices, self.place = problem, list(indices), problem.likelihood.place
        columns, self.outputs = problem.split(indices)
        self.values = problem.fetch(columns) if values is None else values
        self.groups = [np.flatnonzero(self.outputs == k) for k in range(problem.n_outputs)]
        self._blocks = [self.values]
        if problem.n_outputs > 1:
            self._blocks = [self.place.xp.take(self.values, self.place.indices(g), axis=1) for g in self.groups]

    def at(self, weights: Array) -> Point:
        """The likelihood at these weights."""
        return Point(self, weights)

    def bend(self, point: Point, covariance: Array) -> tuple[Any, Array]:
        r"""Derivatives of :math:`\log|\boldsymbol\Sigma^{-1}|`, by the outputs and by the active weights."""
        spread = self.spread(covariance, point.curvature)
        change = self.problem.likelihood.curvature_change(point.outputs, *spread)
        return change, self.correlate(change)

    def directions(self, point: Point, change: Any, root: Array, bend: Array) -> Directions:
        """What functions are multiplied with, for T&F eqs 24-25."""
        half = self.weigh(point.curvature, root)
        along = change - (half @ self.place.put(root.T @ bend)).T
        return Directions(self.place, point.gradient, along, point.curvature.diagonal, half)

    def measure(
        self, problem: LaplaceProblem, design: Design, point: Point, change: Any, root: Array, bend: Array
    ) -> Measured:
        """Statistics of all functions of ``design``, by which those of ``problem`` are known: one pass over it."""
        return self.directions(point, change, root, bend).measure(design)

    def screen(self, point: Point, change: Any, root: Array, bend: Array, candidates: NDArray[np.bool_]) -> Measured:
        """Statistics of all functions of the problem, exact for all candidates that may matter."""
        design, stand_in = self.problem.design, self.problem.stand_in
        directions = self.directions(point, change, root, bend)
        if stand_in is not None and self.problem.parent is not None:
            return directions.measure(stand_in)
        if stand_in is None or design is stand_in or self.place is not HOST:
            return directions.measure(design)
        return directions.screen(design, stand_in, candidates)

    def predict(self, weights: Array) -> Any:
        """Outputs, (N, K)."""
        mixed = (block @ self.place.put(weights[g]) for block, g in zip(self._blocks, self.groups, strict=True))
        return self.place.xp.stack(list(mixed), axis=1)

    def correlate(self, rows: Any) -> Array:
        """Inner product of every active function with its output's column of ``rows``, (N, K) -> (a,)."""
        result = np.empty(len(self.indices))
        found = self.place.fetch([rows[:, k] @ block for k, block in enumerate(self._blocks)])
        for group, values in zip(self.groups, found, strict=True):
            result[group] = values
        return result

    def gram(self, curvature: Curvature) -> Array:
        r""":math:`\boldsymbol\Phi_a^\top\mathbf B\boldsymbol\Phi_a`."""

        def work(rows: slice) -> list[Any]:
            """Inner products of the columns of every output, and of all in what the outputs share."""
            blocks = [block[rows, :] for block in self._blocks]
            found = [block.T @ (curvature.diagonal[rows, k][:, None] * block) for k, block in enumerate(blocks)]
            if curvature.shared is not None:
                shared = self._shared(curvature.shared, rows)
                found.append(shared.T @ shared)
            return found

        sums = self.place.fetch([sum(parts[1:], parts[0]) for parts in zip(*self._by_rows(work), strict=True)])
        result = np.zeros((len(self.indices),) * 2) if curvature.shared is None else -sums[-1]
        for group, block in zip(self.groups, sums, strict=False):
            result[np.ix_(group, group)] = block
        return result

    def expected_gram(self, weights: Array, root: Array) -> Array:
        r""":math:`\boldsymbol\Phi_a^\top E[\mathbf B]\boldsymbol\Phi_a` of classes, mixed by a root of a covariance.

        Squares of a row's mixed functions sum to the variance of its output, or of a difference of two outputs.
        """
        place, xp, counts = self.place, self.place.xp, self._classes().weights
        y, mixing = self.predict(weights), [place.put(root[group]) for group in self.groups]

        def gram(mixed: Any, mean: Any, counts: Any) -> Any:
            slope = expected_slope(xp, mean, place.along(mixed, mixed))
            return mixed.T @ ((counts * slope)[:, None] * mixed)

        def work(rows: slice) -> Array:
            blocks, mean, often = [block[rows, :] for block in self._blocks], y[rows, :], counts[rows]
            if len(blocks) == 1:
                return place.get(gram(blocks[0] @ mixing[0], mean[:, 0], often))
            p, total = softmax(xp, mean), place.put(np.zeros_like(root))
            for j, k in combinations(range(len(blocks)), 2):
                share = p[:, j] + p[:, k]
                some = xp.nonzero(share > _NEITHER)[0]
                first, second = (xp.take(blocks[i], some, axis=0) @ mixing[i] for i in (j, k))
                apart, often_so = mean[:, j] - mean[:, k], often * share**2
                total = total + gram(first - second, xp.take(apart, some), xp.take(often_so, some))
            return place.get(total)

        first, *others = self._by_rows(work)
        return sum(others, first)

    def left_out_gains(self, weights: Array, covariance: Array, shares: Sequence[float]) -> Array:
        """What rows of two classes, each predicted without itself, gain in log likelihood by shares of a covariance.

        The output of a row without itself is :math:`y_n-v_ng_n/(1-b_nv_n)` to first order, with its slope, curvature
        and variance.  Of what each share gains over the first come sums over the rows, and of squares, (2, shares).
        """
        xp, likelihood, y = self.place.xp, self._classes(), self.predict(weights)
        curvature, counts = likelihood.curvature(y), likelihood.weights[:, None]
        variance = self.spread(covariance, curvature)[0]
        own = 1.0 - curvature.diagonal / counts * variance
        own = xp.where(own > _LEFT_OVER, own, _LEFT_OVER + xp.zeros_like(own))
        left_out = y - variance / own * likelihood.gradient(y) / counts
        away = -xp.sign(likelihood.gradient(y)) * left_out  # how far each row is on the wrong side
        shrunk = (away / xp.sqrt(1.0 + (np.pi * share / 8.0) * variance) for share in shares)
        first, *others = (-xp.logaddexp(xp.zeros_like(one), one) for one in shrunk)
        gains = [first - first, *(one - first for one in others)]
        return np.array([[float(xp.sum(counts * gain**power)) for gain in gains] for power in (1, 2)])

    def _classes(self) -> Classes:
        likelihood = self.problem.likelihood
        if not isinstance(likelihood, Classes):
            raise TypeError(f"an expected curvature is of classes, not of a {type(likelihood).__name__}")
        return likelihood

    def _by_rows(self, work: Callable[[slice], T]) -> list[T]:
        """Call ``work``, which costs as much as a Gram matrix, on runs of rows: side by side where they are large."""
        rows, a = self.values.shape
        many = self.place is HOST and rows * a * a > _MANY_PRODUCTS
        return side_by_side(work, rows) if many else [work(slice(0, rows))]

    def _shared(self, shared: Any, rows: slice) -> Any:
        """Every active column times its output's column of ``shared``, on some rows, (n, a)."""
        return self.values[rows, :] * self.place.xp.take(shared[rows, :], self.place.indices(self.outputs), axis=1)

    def spread(self, covariance: Array, curvature: Curvature) -> tuple[Any, Any]:
        r"""Variances of the outputs of every row, and :math:`\mathbf V_nv_n` with their covariance, both (N, K)."""
        place, xp = self.place, self.place.xp
        own = [place.put(covariance[np.ix_(group, group)]) for group in self.groups]
        towards = [place.put(covariance[:, group]) for group in self.groups]

        def work(rows: slice) -> tuple[Any, Any]:
            blocks = [block[rows, :] for block in self._blocks]
            found = [place.along(block @ mixing, block) for block, mixing in zip(blocks, own, strict=True)]
            if curvature.shared is None:
                return xp.stack(found, axis=1), None
            shared = self._shared(curvature.shared, rows)
            along = [place.along(shared @ mixing, block) for block, mixing in zip(blocks, towards, strict=True)]
            return xp.stack(found, axis=1), xp.stack(along, axis=1)

        variance, along = zip(*self._by_rows(work), strict=True)
        return place.join(list(variance), 0), None if curvature.shared is None else place.join(list(along), 0)

    def weigh(self, curvature: Curvature, mixing: Array) -> Any:
        r""":math:`\mathbf B_n\boldsymbol\Phi_n` times ``mixing``, (K, N, columns)."""
        place, xp = self.place, self.place.xp
        whole, each = place.put(mixing), [place.put(mixing[group]) for group in self.groups]

        def work(rows: slice) -> Any:
            diagonal = curvature.diagonal[rows, :]
            mixed = [block[rows, :] @ part for block, part in zip(self._blocks, each, strict=True)]
            if curvature.shared is None:
                return xp.stack([diagonal[:, k][:, None] * part for k, part in enumerate(mixed)])
            v, pulled = curvature.shared[rows, :], self._shared(curvature.shared, rows) @ whole
            diagonal = diagonal + v * v
            return xp.stack(
                [diagonal[:, k][:, None] * part - v[:, k][:, None] * pulled for k, part in enumerate(mixed)]
            )

        return place.join(self._by_rows(work), 1)


@dataclass(frozen=True)
class Mode:
    """Weights on the way to the mode of their posterior, or there: the likelihood, and Laplace's evidence."""

    point: Point
    alpha: Array

    def moved(self, step: Array, length: float) -> Mode:
        """A part of a step away."""
        return Mode(self.point.columns.at(self.mean + length * step), self.alpha)

    @property
    def mean(self) -> Array:
        """The weights, (a,)."""
        return self.point.weights

    @property
    def height(self) -> float:
        """The log posterior up to a constant (T&F eq. 10)."""
        return self.point.fit - 0.5 * float(self.alpha @ self.mean**2)

    @cached_property
    def factor(self) -> Array:
        """Upper Cholesky factor of the precision of the posterior, by Laplace (T&F eq. 11)."""
        precision = self.point.gram.copy()
        precision.flat[:: len(precision) + 1] += self.alpha
        return cholesky(precision)

    @cached_property
    def evidence(self) -> float:
        """Laplace's evidence, where this is the mode."""
        return log_evidence(self.point.fit, self.mean, self.alpha, log_det(self.factor))


def find_mode(start: Point, alpha: Array) -> Mode:
    """Damped Newton to the mode of the posterior (T&F eq. 10), which is strictly concave, from a warm start."""
    # In a working set the mode is found only as closely as decisions need; what is reported is computed again.
    exact = start.columns.problem.parent is None
    enough, last = (_NEWTON_DECREMENT, 2) if exact else (_ROUGH_DECREMENT, 1)
    here, final = Mode(start, alpha), 0
    for _ in range(_NEWTON_STEPS if len(alpha) else 0):
        gradient = here.point.slope - alpha * here.mean
        step = solve_cholesky(here.factor, gradient)
        decrement = float(gradient @ step)
        # Convergence is quadratic: two full steps, below what the height can resolve, settle log|Σ| to the last digits.
        resolved = enough * max(1.0, abs(here.height))
        final += decrement <= resolved
        move = partial(here.moved, step)
        there = move(1.0) if final else line_search(move, here.height, decrement)
        # Where functions are nearly dependent a full step may be rounding, and lead anywhere.
        if there is None or not there.height >= here.height - resolved:
            break
        here = there
        if final >= last and (decrement <= _SETTLED or not exact or final == _SLOW_STEPS):
            break
    return here


def line_search(at: Callable[[float], Any], height: float, promise: float) -> Any:
    """Where the largest of 1, ½, ¼, … of a step that ascends enough (Armijo) leads; None if none does.

    ``at`` says where a part of the step leads, which has a ``height``; ``promise`` is the product of all of it with the
    gradient.
    """
    length = 1.0
    while length > _SHORTEST:
        there = at(length)
        if there.height >= height + _ENOUGH * length * promise:
            return there
        length *= 0.5
    return None
