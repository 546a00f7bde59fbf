r"""Non-Gaussian problems whose rows live on a device: Newton's steps there, matrices of the active set here."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sparsebayes.basis.arrays import Place
from sparsebayes.design import ArrayDesign, Design, Native
from sparsebayes.inference.models.evidence import Array
from sparsebayes.inference.models.mode import ActiveColumns, LaplaceProblem, Point, Slopes, SummedPoint
from sparsebayes.inference.models.nearest import Library, expected_gram
from sparsebayes.inference.models.problem import Index
from sparsebayes.inference.models.screening import Measured
from sparsebayes.likelihood import ArrayLikelihood, Curvature


class ArrayProblem(LaplaceProblem):
    """A non-Gaussian problem with a ``Native`` design and an ``ArrayLikelihood``."""

    @property
    def place(self) -> Place:
        """Where the rows live."""
        return _native(self.design).place

    @cached_property
    def _flat_curvature(self) -> Array:
        place, likelihood = self.place, self.likelihood
        outputs = place.xp.zeros(likelihood.shape, dtype=place.xp.float64, device=place.device)
        return place.get(likelihood.curvature(outputs).diagonal[:, 0])

    @staticmethod
    def _fetch(problem: LaplaceProblem, columns: Index | slice) -> Any:
        return _native(problem.design).native(columns)

    def _held(self, values: tuple[Any, ...]) -> Design:
        return ArrayDesign(values[0] if len(values) == 1 else self.place.xp.concat(list(values), axis=1))

    def active(self, indices: list[int]) -> ArrayColumns:
        """Columns of these functions, on the device."""
        columns, _ = self.split(indices)
        return ArrayColumns(self, indices, _native(self.design).native(columns))


def _native(design: Design) -> Native:
    if not isinstance(design, Native):
        raise TypeError(f"the rows are on a device and the design is a {type(design).__name__}")
    return design


class ArrayColumns(ActiveColumns):
    """The active columns on a device: one transfer of small matrices for every question."""

    problem: ArrayProblem

    def __init__(self, problem: ArrayProblem, indices: list[int], values: Any) -> None:
        self.problem, self.indices, self.values = problem, list(indices), values
        self._place = place = problem.place
        _, self.outputs = problem.split(indices)
        self.groups = [np.flatnonzero(self.outputs == k) for k in range(problem.n_outputs)]
        whole = [values] if problem.n_outputs == 1 else None
        self._parts = whole or [place.xp.take(values, place.indices(group), axis=1) for group in self.groups]

    @property
    def _xp(self) -> Any:
        return self._place.xp

    @property
    def _likelihood(self) -> ArrayLikelihood:
        likelihood = self.problem.likelihood
        if not isinstance(likelihood, ArrayLikelihood):
            raise TypeError(f"the rows are on a device and the likelihood is a {type(likelihood).__name__}")
        return likelihood

    def add(self, functions: list[int]) -> ArrayColumns:
        """With these functions more."""
        columns, _ = self.problem.split(functions)
        values = self._place.xp.concat([self.values, _native(self.problem.design).native(columns)], axis=1)
        return ArrayColumns(self.problem, [*self.indices, *functions], values)

    def on(self, problem: Any, indices: list[int]) -> ArrayColumns:
        """The same functions under their numbers in a larger problem."""
        return ArrayColumns(problem, indices, self.values)

    def keep(self, positions: list[int]) -> ArrayColumns:
        """With some of the functions only."""
        values = self._place.xp.take(self.values, self._place.indices(np.array(positions, dtype=np.intp)), axis=1)
        return ArrayColumns(self.problem, [self.indices[k] for k in positions], values)

    def at(self, weights: Array, known: Point | None = None) -> Point:
        """The likelihood at these weights; its sums come to the host together."""
        if known is not None and known.columns is self:
            return known
        xp, a, outputs = self._place.xp, len(self.indices), self.predict(weights)
        fit, curvature = self._likelihood.log_likelihood(outputs), self._likelihood.curvature(outputs)
        sums = [xp.reshape(fit, (1,)), *self._correlated(self._likelihood.gradient(outputs))]
        sums += [xp.reshape(block, (-1,)) for block in self._products(curvature)]
        found = self._place.get(xp.concat(sums))
        return SummedPoint(
            self, outputs, float(found[0]), self._ungrouped(found[1 : a + 1]), self._gram(found[a + 1 :])
        )

    def _products(self, curvature: Curvature) -> list[Any]:
        """Inner products of the columns of every output, and of all in what the outputs share."""
        blocks = [part.T @ (curvature.diagonal[:, k][:, None] * part) for k, part in enumerate(self._parts)]
        if curvature.shared is not None:
            shared = self._share(curvature.shared)
            blocks.append(shared.T @ shared)
        return blocks

    def _gram(self, found: Array) -> Array:
        """Inner products of all active columns, a matrix of the host, from the blocks of ``_products``."""
        a, at = len(self.indices), sum(len(group) ** 2 for group in self.groups)
        gram = -found[at:].reshape(a, a) if len(found) > at else np.zeros((a, a))
        at = 0
        for group in self.groups:
            gram[np.ix_(group, group)] = found[at : at + len(group) ** 2].reshape(len(group), len(group))
            at += len(group) ** 2
        return gram

    def expected_gram(self, weights: Array, root: Array) -> Array:
        r""":math:`\boldsymbol\Phi_a^\top E[\mathbf B]\boldsymbol\Phi_a` of classes, mixed by a root of a covariance."""
        library = Library(self._place.xp, self._place.put, self._place.get)
        counts, y = self._classes().weights, self.predict(weights)
        return expected_gram(library, counts, y, self._parts, self.groups, root)

    def bend(self, point: Point, covariance: Array) -> tuple[Any, Array]:
        r"""Derivatives of :math:`\log|\boldsymbol\Sigma^{-1}|`, by the outputs and by the active weights."""
        outputs, likelihood = point.outputs, self._likelihood
        change = likelihood.curvature_change(outputs, *self.spread(covariance, likelihood.curvature(outputs)))
        found = self._place.get(self._place.xp.concat(self._correlated(change)))
        return change, self._ungrouped(found)

    def measure(
        self, problem: LaplaceProblem, design: Design, point: Point, change: Any, root: Array, bend: Array
    ) -> Measured:
        """T&F eqs 24-25 for the functions of ``design``: four numbers of each come to the host."""
        xp, likelihood = self._place.xp, self._likelihood
        curvature, gradient = likelihood.curvature(point.outputs), likelihood.gradient(point.outputs)
        half, pull = self.weigh(curvature, root), self._place.put(root.T @ bend)
        found = []
        for k in range(problem.n_outputs):
            rows = xp.concat([gradient[:, k : k + 1], change[:, k : k + 1], half[k, :, :]], axis=1)
            products, norms = (
                _native(design).correlate_there(rows),
                _native(design).sqnorms_there(curvature.diagonal[:, k]),
            )
            inner = products[:, 2:]
            s = norms - xp.sum(inner * inner, axis=1)
            found.append(xp.stack([norms, s, products[:, 0], products[:, 1] - inner @ pull]))
        norm, s, q, D = self._place.get(xp.concat(found, axis=1))
        return Measured(norm, np.maximum(s, 0.0), q, D)

    def screen(self, point: Point, change: Any, root: Array, bend: Array, candidates: NDArray[np.bool_]) -> Measured:
        """Statistics of all functions of the problem; where it is a part of another, those of its stand-in."""
        problem = self.problem
        design = problem.design if problem.parent is None or problem.stand_in is None else problem.stand_in
        return self.measure(problem, design, point, change, root, bend)

    def slopes(self, weights: Array) -> Slopes:
        """Norms of all functions in the curvature, and their products with the gradient and the active columns."""
        place, outputs, design = self._place, self.predict(weights), _native(self.problem.design)
        curvature, gradient = self._likelihood.curvature(outputs), self._likelihood.gradient(outputs)
        weighed, outer = self.weigh(curvature, np.eye(len(self.indices))), range(self.problem.n_outputs)
        norms = [place.get(design.sqnorms_there(curvature.diagonal[:, k])) for k in outer]
        inner = [place.get(design.correlate_there(weighed[k, :, :])) for k in outer]
        quality = place.get(design.correlate_there(gradient)).T.ravel()
        return Slopes(np.concatenate(norms), quality, np.concatenate(inner))

    def predict(self, weights: Array) -> Any:
        """Outputs, (N, K)."""
        there = [part @ self._place.put(weights[g]) for part, g in zip(self._parts, self.groups, strict=True)]
        return self._place.xp.stack(there, axis=1)

    def _share(self, shared: Any) -> Any:
        """Every active column times its output's column of ``shared``, (N, a)."""
        return self.values * self._place.xp.take(shared, self._place.indices(self.outputs), axis=1)

    def spread(self, covariance: Array, curvature: Curvature) -> tuple[Any, Any]:
        r"""Variances of the outputs of every row, and :math:`\mathbf V_nv_n` with their covariance, both (N, K)."""
        place = self._place
        mixed = [p @ place.put(covariance[np.ix_(g, g)]) for p, g in zip(self._parts, self.groups, strict=True)]
        variance = self._along(mixed)
        if curvature.shared is None:
            return variance, None
        shared = self._share(curvature.shared)
        return variance, self._along([shared @ place.put(covariance[:, group]) for group in self.groups])

    def _along(self, mixed: list[Any]) -> Any:
        """Inner products of the columns of every output with others, row by row, (N, K)."""
        xp = self._place.xp
        return xp.stack([xp.sum(left * right, axis=1) for left, right in zip(mixed, self._parts, strict=True)], axis=1)

    def weigh(self, curvature: Curvature, mixing: Array) -> Any:
        r""":math:`\mathbf B_n\boldsymbol\Phi_n` times ``mixing``, (K, N, columns)."""
        xp, diagonal, v = self._place.xp, curvature.diagonal, curvature.shared
        mixed = [part @ self._place.put(mixing[g]) for part, g in zip(self._parts, self.groups, strict=True)]
        if v is None:
            return xp.stack([diagonal[:, k][:, None] * part for k, part in enumerate(mixed)])
        shared = self._share(v) @ self._place.put(mixing)
        whole = diagonal + v * v
        return xp.stack([whole[:, k][:, None] * part - v[:, k][:, None] * shared for k, part in enumerate(mixed)])

    def _correlated(self, rows: Any) -> list[Any]:
        """Inner products of the functions of every output with its column of ``rows``."""
        return [part.T @ rows[:, k] for k, part in enumerate(self._parts)]

    def _ungrouped(self, values: Array) -> Array:
        """Numbers in the order of the outputs, in that of the functions."""
        result = np.empty(len(values))
        result[np.concatenate(self.groups)] = values
        return result
