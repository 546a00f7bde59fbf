"""The mode of a non-Gaussian posterior, by damped Newton steps on the active columns."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import cho_solve

from sparsebayes.design import CompressedDesign, DenseDesign, Design
from sparsebayes.inference.evidence import Array, log_evidence
from sparsebayes.inference.linalg import cholesky, log_det
from sparsebayes.inference.problem import Index
from sparsebayes.likelihood import Likelihood

_NEWTON_STEPS = 200
# Newton stops when a full step would raise the log posterior by less than this (nats, relative to its size).
_NEWTON_DECREMENT = 1e-10
_ROUGH_DECREMENT = 1e-7


@dataclass(frozen=True)
class LaplaceProblem:
    """A design and a likelihood.

    Parameters
    ----------
    design : Design
        The dictionary on the rows.
    likelihood : Likelihood
        With its targets and weights.
    candidates : ndarray of bool, shape (M,)
        Columns that may enter the model.
    bias : int, optional
        Column of the constant function.
    stand_in : CompressedDesign, optional
        A design of low rank that may stand in for ``design`` while the search goes on.
    inclusion_cost : float
        Log prior odds against a function, in nats.
    parent, members : LaplaceProblem, ndarray of int, optional
        The problem of which this is a part, and its columns there.
    """

    design: Design
    likelihood: Likelihood
    candidates: NDArray[np.bool_]
    bias: int | None = None
    stand_in: CompressedDesign | None = None
    inclusion_cost: float = 0.0
    parent: LaplaceProblem | None = None
    members: Index | None = None

    @property
    def n_outputs(self) -> int:
        """Outputs K of the likelihood."""
        return self.likelihood.shape[1]

    @property
    def n_functions(self) -> int:
        """Number of (column, output) pairs."""
        return self.design.shape[1] * self.n_outputs

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
        return self.likelihood.curvature(np.zeros(self.likelihood.shape))[:, 0, 0].copy()

    def restrict(self, members: Index) -> LaplaceProblem:
        """The problem of a part of the columns, held in memory."""
        return self._part(members, self.design.columns(members))

    def enlarge(self, fresh: Index) -> LaplaceProblem:
        """A part of a problem with further columns of it at the end."""
        if self.parent is None or self.members is None:
            raise TypeError("only a part of a problem can be enlarged")
        values = np.hstack([self.design.columns(slice(None)), self.parent.design.columns(fresh)])
        return self.parent._part(np.concatenate([self.members, fresh]), values)

    def _part(self, members: Index, values: Any) -> LaplaceProblem:
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

    def _held(self, values: Any) -> Design:
        """The design of columns that were made."""
        return DenseDesign(values)

    def active(self, indices: list[int]) -> ActiveColumns:
        """Columns of these functions, wherever the rows are."""
        return ActiveColumns(self, indices)

    def lift(self, indices: list[int]) -> list[int]:
        """Numbers of functions in the parent problem."""
        if self.parent is None or self.members is None:
            return list(indices)
        columns, outputs = self.split(indices)
        return (outputs * self.parent.design.shape[1] + self.members[columns]).tolist()

    def split(self, indices: list[int]) -> tuple[Index, Index]:
        """Columns and outputs of functions."""
        outputs, columns = np.divmod(np.array(indices, dtype=np.intp), self.design.shape[1])
        return columns, outputs


@dataclass(frozen=True)
class Linearised:
    r"""The likelihood to second order in the active weights: its height, gradient and :math:`\boldsymbol\Phi_a^\top
    \mathbf B\boldsymbol\Phi_a`; ``outputs`` is whatever the columns need to find the point again.
    """

    outputs: Any
    log_likelihood: float
    gradient: Array
    gram: Array


@dataclass(frozen=True)
class Scored:
    """Of all functions: squared norms in the curvature, Q, the part of the norm that is explained, and D."""

    norm: Array
    quality: Array
    explained: Array
    drift: Array


@dataclass(frozen=True)
class Slopes:
    r"""Of all functions: squared norms in the curvature, Q, and :math:`\boldsymbol\Phi^\top\mathbf
    B\boldsymbol\Phi_a`.
    """

    norms: Array
    quality: Array
    inner: Array


@dataclass(frozen=True)
class Mode:
    """Mode of the posterior of the active weights, and the evidence there."""

    mean: Array
    outputs: Any
    precision: Array
    evidence: float


class ActiveColumns:
    """The active columns and how their weights make the outputs."""

    def __init__(self, problem: LaplaceProblem, indices: list[int], values: Array | None = None) -> None:
        self.problem = problem
        self.indices = list(indices)
        columns, self.outputs = problem.split(indices)
        self.values = problem.design.columns(columns) if values is None else values
        self.groups = [np.flatnonzero(self.outputs == k) for k in range(problem.n_outputs)]

    def add(self, functions: list[int]) -> ActiveColumns:
        """With these functions more."""
        columns, _ = self.problem.split(functions)
        values = np.hstack([self.values, self.problem.design.columns(columns)])
        return ActiveColumns(self.problem, [*self.indices, *functions], values)

    def on(self, problem: LaplaceProblem, indices: list[int]) -> ActiveColumns:
        """The same functions under their numbers in a larger problem."""
        return ActiveColumns(problem, indices, self.values)

    def keep(self, positions: list[int]) -> ActiveColumns:
        """With some of the functions only."""
        return ActiveColumns(self.problem, [self.indices[k] for k in positions], self.values[:, positions])

    def drop(self, j: int) -> ActiveColumns:
        """With the j-th function left out."""
        return self.keep([k for k in range(len(self.indices)) if k != j])

    def log_likelihood(self, weights: Array) -> float:
        """Log likelihood of the outputs that these weights make."""
        return self.problem.likelihood.log_likelihood(self.predict(weights))

    def linearise(self, weights: Array) -> Linearised:
        """The likelihood to second order at these weights: one pass over the rows."""
        likelihood, outputs = self.problem.likelihood, self.predict(weights)
        return Linearised(
            outputs,
            likelihood.log_likelihood(outputs),
            self.correlate(likelihood.gradient(outputs)),
            self.gram(likelihood.curvature(outputs)),
        )

    def bend(self, outputs: Any, covariance: Array) -> tuple[Any, Array]:
        r"""Derivatives of :math:`\log|\boldsymbol\Sigma^{-1}|`, by the outputs and by the active weights."""
        change = self.problem.likelihood.curvature_change(outputs, self.spread(covariance))
        return change, self.correlate(change)

    def score(
        self, problem: LaplaceProblem, design: Design, outputs: Any, change: Any, root: Array, bend: Array
    ) -> Scored:
        """T&F eqs 24-25 at these outputs, for the functions of ``design``: one pass over the rows."""
        likelihood = problem.likelihood
        curvature, gradient = likelihood.curvature(outputs), likelihood.gradient(outputs)
        half = self.weigh(curvature, root)
        found = []
        for k in range(problem.n_outputs):
            products, norms = design.moments(
                np.column_stack([gradient[:, k], change[:, k], half[k]]), curvature[:, k, k]
            )
            explained = np.einsum("ma,ma->m", products[:, 2:], products[:, 2:])
            found.append((norms, products[:, 0], explained, products[:, 1] - products[:, 2:] @ (root.T @ bend)))
        return Scored(*(np.concatenate(parts) for parts in zip(*found, strict=True)))

    def slopes(self, weights: Array) -> Slopes:
        """Norms of all functions in the curvature, and their products with the gradient and the active columns."""
        problem, outputs = self.problem, self.predict(weights)
        curvature, outer = problem.likelihood.curvature(outputs), range(problem.n_outputs)
        norms = np.concatenate([problem.design.sqnorms(curvature[:, k, k]) for k in outer])
        quality = problem.design.correlate(problem.likelihood.gradient(outputs)).T.ravel()
        weighed = self.weigh(curvature, np.eye(len(self.indices)))
        inner = np.concatenate([problem.design.correlate(weighed[k]) for k in outer])
        return Slopes(norms, quality, inner)

    def predict(self, weights: Array) -> Array:
        """Outputs, (N, K)."""
        y = np.zeros(self.problem.likelihood.shape)
        for k, group in enumerate(self.groups):
            y[:, k] = self.values[:, group] @ weights[group]
        return y

    def correlate(self, rows: Array) -> Array:
        """Inner product of every active function with its output's column of ``rows``, (N, K) -> (a,)."""
        return np.einsum("na,na->a", self.values, rows[:, self.outputs])

    def gram(self, blocks: Array) -> Array:
        r""":math:`\boldsymbol\Phi_a^\top\mathbf B\boldsymbol\Phi_a` for row blocks, (N, K, K)."""
        result = np.empty((len(self.indices), len(self.indices)))
        for k, left in enumerate(self.groups):
            for m, right in enumerate(self.groups[: k + 1]):
                part = self.values[:, left].T @ (blocks[:, k, m, None] * self.values[:, right])
                result[np.ix_(left, right)] = part
                result[np.ix_(right, left)] = part.T
        return result

    def spread(self, covariance: Array) -> Array:
        """Posterior covariance of the outputs of every row, (N, K, K)."""
        n, k_outputs = self.problem.likelihood.shape
        result = np.empty((n, k_outputs, k_outputs))
        for k, left in enumerate(self.groups):
            for m, right in enumerate(self.groups[: k + 1]):
                half = self.values[:, left] @ covariance[np.ix_(left, right)]
                result[:, k, m] = result[:, m, k] = np.einsum("na,na->n", half, self.values[:, right])
        return result

    def weigh(self, blocks: Array, mixing: Array) -> Array:
        r""":math:`\mathbf B_n\boldsymbol\Phi_n` times ``mixing`` for row blocks, (K, N, columns)."""
        mixed = np.stack([self.values[:, g] @ mixing[g] for g in self.groups], axis=1)  # (N, K, c)
        return np.einsum("nkl,nlc->knc", blocks, mixed)


def find_mode(active: ActiveColumns, alpha: Array, start: Array) -> Mode:
    """Damped Newton to the mode of the posterior (T&F eq. 10), from a warm start.

    The line search makes it converge from anywhere: the log posterior is strictly concave.
    """
    # In a working set the mode is found only as closely as decisions need; what is reported is computed again.
    enough, last = (_NEWTON_DECREMENT, 2) if active.problem.parent is None else (_ROUGH_DECREMENT, 1)
    weights = start.copy()
    here = active.linearise(weights)
    height = here.log_likelihood - _penalty(alpha, weights)
    precision = here.gram + np.diag(alpha)
    final = 0
    for _ in range(_NEWTON_STEPS if len(alpha) else 0):
        gradient = here.gradient - alpha * weights
        step = cho_solve((cholesky(precision), False), gradient)
        decrement = float(gradient @ step)
        # Convergence is quadratic: two full steps, below what the height can resolve, settle log|Σ| to the last digits.
        final += decrement <= enough * max(1.0, abs(height))
        there = active.linearise(weights + step)  # where the full step is accepted, a step is one pass over the rows
        length = 1.0
        if not final and there.log_likelihood - _penalty(alpha, weights + step) < height + 1e-4 * decrement:
            length = _line_search(active, alpha, weights, step, height, decrement)
            there = active.linearise(weights + length * step) if length else here
        weights, here = weights + length * step, there
        height = here.log_likelihood - _penalty(alpha, weights)
        precision = here.gram + np.diag(alpha)
        if final == last or length == 0.0:
            break
    return _mode(here, alpha, weights)


def mode_at(active: ActiveColumns, alpha: Array, weights: Array) -> Mode:
    """What there is at weights that are known to be the mode."""
    return _mode(active.linearise(weights), alpha, weights)


def _mode(here: Linearised, alpha: Array, weights: Array) -> Mode:
    precision = here.gram + np.diag(alpha)
    evidence = log_evidence(here.log_likelihood, weights, alpha, log_det(cholesky(precision)))
    return Mode(weights, here.outputs, precision, evidence)


def _penalty(alpha: Array, weights: Array) -> float:
    """What the prior takes off the log likelihood (T&F eq. 10)."""
    return 0.5 * float(alpha @ weights**2)


def _line_search(
    active: ActiveColumns, alpha: Array, weights: Array, step: Array, height: float, decrement: float
) -> float:
    """Largest of ½, ¼, … that ascends enough (Armijo); zero if none does above rounding."""
    length = 0.5
    while length > 1e-12:
        trial = weights + length * step
        if active.log_likelihood(trial) - _penalty(alpha, trial) >= height + 1e-4 * length * decrement:
            return length
        length *= 0.5
    return 0.0
