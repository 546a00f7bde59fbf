r"""Non-Gaussian problems whose rows live on a device: Newton's steps there, matrices of the active set here."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np

from sparsebayes.basis.arrays import Place
from sparsebayes.design import ArrayDesign, Design, Native
from sparsebayes.inference.evidence import Array
from sparsebayes.inference.mode import ActiveColumns, LaplaceProblem, Linearised, Scored, Slopes
from sparsebayes.inference.problem import Index
from sparsebayes.likelihood import ArrayLikelihood


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
        return place.get(likelihood.curvature(outputs)[:, 0, 0])

    def restrict(self, members: Index) -> LaplaceProblem:
        """The problem of a part of the columns, held on the device."""
        return self._part(members, _native(self.design).native(members))

    def enlarge(self, fresh: Index) -> LaplaceProblem:
        """A part of a problem with further columns of it at the end."""
        if self.parent is None or self.members is None:
            raise TypeError("only a part of a problem can be enlarged")
        held = _native(self.design).native(slice(None))
        values = self.place.xp.concat([held, _native(self.parent.design).native(fresh)], axis=1)
        return self.parent._part(np.concatenate([self.members, fresh]), values)

    def _held(self, values: Any) -> Design:
        return ArrayDesign(values)

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
        super().__init__(problem, indices, values)
        place = problem.place
        self._place = place
        whole = [values] if problem.n_outputs == 1 else None
        self._parts = whole or [place.xp.take(values, place.indices(group), axis=1) for group in self.groups]

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

    def log_likelihood(self, weights: Array) -> float:
        """Log likelihood of the outputs that these weights make."""
        return float(self._likelihood.log_likelihood(self.predict(weights)))

    def linearise(self, weights: Array) -> Linearised:
        """The likelihood to second order at these weights; its sums come to the host together."""
        xp, a, outputs = self._place.xp, len(self.indices), self.predict(weights)
        height = self._likelihood.log_likelihood(outputs)
        sums = [xp.reshape(height, (1,)), *self._correlated(self._likelihood.gradient(outputs))]
        pairs = [(k, m) for k in range(len(self.groups)) for m in range(k + 1)]
        curvature = self._likelihood.curvature(outputs)
        for k, m in pairs:
            block = self._parts[k].T @ (curvature[:, k, m][:, None] * self._parts[m])
            sums.append(xp.reshape(block, (-1,)))
        found = self._place.get(xp.concat(sums))
        gradient, gram, at = self._ungrouped(found[1 : a + 1]), np.empty((a, a)), a + 1
        for k, m in pairs:
            left, right = self.groups[k], self.groups[m]
            block = found[at : at + len(left) * len(right)].reshape(len(left), len(right))
            gram[np.ix_(left, right)], gram[np.ix_(right, left)] = block, block.T
            at += block.size
        return Linearised(outputs, float(found[0]), gradient, gram)

    def bend(self, outputs: Any, covariance: Array) -> tuple[Any, Array]:
        r"""Derivatives of :math:`\log|\boldsymbol\Sigma^{-1}|`, by the outputs and by the active weights."""
        change = self._likelihood.curvature_change(outputs, self.spread(covariance))
        found = self._place.get(self._place.xp.concat(self._correlated(change)))
        return change, self._ungrouped(found)

    def score(
        self, problem: LaplaceProblem, design: Design, outputs: Any, change: Any, root: Array, bend: Array
    ) -> Scored:
        """T&F eqs 24-25 at these outputs, for the functions of ``design``: four numbers of each come to the host."""
        xp, likelihood = self._place.xp, self._likelihood
        curvature, gradient = likelihood.curvature(outputs), likelihood.gradient(outputs)
        half, along = self.weigh(curvature, root), self._place.put(root.T @ bend)
        found = []
        for k in range(problem.n_outputs):
            rows = xp.concat([gradient[:, k : k + 1], change[:, k : k + 1], half[k, :, :]], axis=1)
            products = _native(design).correlate_there(rows)
            inner = products[:, 2:]
            norms = _native(design).sqnorms_there(curvature[:, k, k])
            drift = products[:, 1] - inner @ along
            found.append(xp.stack([norms, products[:, 0], xp.sum(inner * inner, axis=1), drift]))
        return Scored(*self._place.get(xp.concat(found, axis=1)))

    def slopes(self, weights: Array) -> Slopes:
        """Norms of all functions in the curvature, and their products with the gradient and the active columns."""
        place, outputs, design = self._place, self.predict(weights), _native(self.problem.design)
        curvature, gradient = self._likelihood.curvature(outputs), self._likelihood.gradient(outputs)
        weighed, outer = self.weigh(curvature, np.eye(len(self.indices))), range(self.problem.n_outputs)
        norms = [place.get(design.sqnorms_there(curvature[:, k, k])) for k in outer]
        inner = [place.get(design.correlate_there(weighed[k, :, :])) for k in outer]
        quality = place.get(design.correlate_there(gradient)).T.ravel()
        return Slopes(np.concatenate(norms), quality, np.concatenate(inner))

    def predict(self, weights: Array) -> Any:
        """Outputs, (N, K)."""
        there = [part @ self._place.put(weights[g]) for part, g in zip(self._parts, self.groups, strict=True)]
        return self._place.xp.stack(there, axis=1)

    def spread(self, covariance: Array) -> Any:
        """Posterior covariance of the outputs of every row, (N, K, K)."""
        xp = self._place.xp
        rows = []
        for left, here in zip(self._parts, self.groups, strict=True):
            blocks = [self._place.put(covariance[np.ix_(here, there)]) for there in self.groups]
            entries = [xp.sum((left @ block) * right, axis=1) for block, right in zip(blocks, self._parts, strict=True)]
            rows.append(xp.stack(entries, axis=1))
        return xp.stack(rows, axis=1)

    def weigh(self, blocks: Any, mixing: Array) -> Any:
        r""":math:`\mathbf B_n\boldsymbol\Phi_n` times ``mixing`` for row blocks, (K, N, columns)."""
        xp, outer = self._place.xp, range(len(self.groups))
        mixed = [part @ self._place.put(mixing[g]) for part, g in zip(self._parts, self.groups, strict=True)]
        return xp.stack([sum(blocks[:, k, m][:, None] * mixed[m] for m in outer) for k in outer])

    def _correlated(self, rows: Any) -> list[Any]:
        """Inner products of the functions of every output with its column of ``rows``."""
        return [part.T @ rows[:, k] for k, part in enumerate(self._parts)]

    def _ungrouped(self, values: Array) -> Array:
        """Numbers in the order of the outputs, in that of the functions."""
        result = np.empty(len(values))
        result[np.concatenate(self.groups)] = values
        return result
