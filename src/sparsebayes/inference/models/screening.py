r"""Statistics of all functions at a mode, exact wherever they could decide anything.

Of a function left out, three numbers decide: its sparsity :math:`s = \phi^\top\mathbf C\phi`, where :math:`\mathbf C`
is the curvature of the rows less what the model explains of it, its quality :math:`q = \mathbf g^\top\phi`, and
:math:`D = \mathbf v^\top\phi` (docs/classification.md, section 4).  Where a partial Cholesky factorisation of remaining
diagonals d stands in for the dictionary, no entry is wrong by more than :math:`\sqrt{d_nd_m}`, so that

.. math::

    |q-\hat q| \le \sqrt{d_m}\sum_n|g_n|\sqrt{d_n}, \qquad
    |\sqrt s-\sqrt{\hat s}| \le \sqrt{d_m}\Big(\sum_n B_nd_n\Big)^{1/2} .

Functions that these bounds rule out need not be evaluated: they can neither gain nor be the best of those that do not.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sparsebayes.basis.arrays import HOST, Place
from sparsebayes.design import CompressedDesign, DenseDesign, Design
from sparsebayes.inference.models.evidence import Array

Flags = NDArray[np.bool_]

# What rounding may add to a remaining diagonal.
_ROUNDING = 1e-14
# Part of the dictionary beyond which it costs less to evaluate all of it than to pick functions out.
_MANY = 0.5


def may_gain(
    S: Array, Q: Array, beta: float, whitened: Array, weights: Array, stand_in: CompressedDesign, candidates: Flags
) -> Flags:
    r"""Candidates of a Gaussian problem that may gain, or may have the largest q²/s of all, given what a stand-in says.

    S (M,) and Q (M, T) are from the model's exact residuals and the stand-in's columns; ``whitened`` are the residuals
    times the roots of the weights, (N, T).  The curvature of row n is beta times its weight.
    """
    rows, columns = (np.sqrt(np.maximum(d, _ROUNDING)) for d in stand_in.remainders)
    e_q = beta * np.outer(columns, (np.sqrt(weights) * rows) @ np.abs(whitened))
    e_s = columns * np.sqrt(beta * float(weights @ rows**2))
    e_q2 = np.mean(e_q * (2.0 * np.abs(Q) + e_q), axis=1)
    return _may_decide(np.maximum(S, 0.0), np.mean(Q**2, axis=1), e_s, e_q2, candidates)


def _may_decide(s: Array, q2: Array, e_s: Array, e_q2: Array, candidates: Flags) -> Flags:
    r"""Candidates that may gain, or may have the largest q²/s of all, given errors of :math:`\sqrt s` and q²."""
    least, most = (np.maximum(np.sqrt(s) + sign * e_s, 0.0) ** 2 for sign in (-1.0, 1.0))
    with np.errstate(divide="ignore", invalid="ignore"):
        at_most = np.where(least > 0.0, (q2 + e_q2) / least, np.inf)
        at_least = np.where(most > 0.0, (q2 - e_q2) / most, -np.inf)
    best = float(np.max(at_least[candidates], initial=-np.inf))
    return candidates & (at_most >= min(1.0, best))


@dataclass(frozen=True)
class Measured:
    r"""Squared norms, ``s``, ``q`` and ``D`` of all functions, by output and column."""

    norm: Array
    s: Array
    q: Array
    D: Array

    @classmethod
    def of(cls, place: Place, moments: Iterable[tuple[Any, Any]]) -> Measured:
        """From the moments of :class:`Directions`, output after output: four numbers of each come to the host."""
        parts = []
        for found, norm in moments:
            inner = found[:, 2:]
            parts.append([norm, norm - place.along(inner, inner), found[:, 0], found[:, 1]])
        norm, s, q, D = place.fetch([place.join(list(values), 0) for values in zip(*parts, strict=True)])
        return cls(norm, np.maximum(s, 0.0), q, D)

    @property
    def q2(self) -> Array:
        """The effective squared quality, with which the slope of the evidence is exact."""
        return self.q * (self.q - self.D)


@dataclass(frozen=True)
class Directions:
    r"""What functions are multiplied with, by output, where the rows live.

    Attributes
    ----------
    place : Place
        Where that is.
    gradient, along : arrays of shape (N, K)
        The vectors g and v.
    curvature : array of shape (N, K)
        Diagonals of the curvature of the rows.
    half : array of shape (K, N, a)
        Such that :math:`s = \phi^\top\mathrm{diag}(B)\phi - \|\mathrm{half}^\top\phi\|^2`.
    """

    place: Place
    gradient: Any
    along: Any
    curvature: Any
    half: Any

    def moments(self, design: Design) -> Iterator[tuple[Any, Any]]:
        """Products of all functions with g, v and half, and their squared norms, output after output."""
        for k in range(self.gradient.shape[1]):
            beside = [self.gradient[:, k : k + 1], self.along[:, k : k + 1], self.half[k, ...]]
            moments = design.moments if self.place is HOST else design.moments_there
            yield moments(self.place.join(beside, 1), self.curvature[:, k])

    def measure(self, design: Design) -> Measured:
        """The statistics of the functions of a design."""
        return Measured.of(self.place, self.moments(design))

    def screen(self, design: Design, stand_in: CompressedDesign, candidates: NDArray[np.bool_]) -> Measured:
        """Statistics of all functions from a stand-in, and from the design itself for candidates that may matter."""
        rough = self.measure(stand_in)
        matters = np.any(self._contend(rough, stand_in, candidates).reshape(self.gradient.shape[1], -1), axis=0)
        columns = np.flatnonzero(matters)
        if len(columns) > _MANY * len(matters):
            return self.measure(design)
        exact, outputs = self.measure(DenseDesign(design.columns(columns))), self.gradient.shape[1]
        places = (np.arange(outputs)[:, None] * design.shape[1] + columns).ravel()
        for field in fields(Measured):
            getattr(rough, field.name)[places] = getattr(exact, field.name)
        return rough

    def _contend(self, rough: Measured, stand_in: CompressedDesign, candidates: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """Candidates that may gain, or may have the largest q²/s of all."""
        rows, columns = (np.sqrt(np.maximum(d, _ROUNDING)) for d in stand_in.remainders)
        e_q, e_v = (np.outer(rows @ np.abs(v), columns).ravel() for v in (self.gradient, self.along))
        e_s = np.outer(np.sqrt(rows**2 @ self.curvature), columns).ravel()
        e_q2 = e_q * np.abs(rough.q - rough.D) + (np.abs(rough.q) + e_q) * (e_q + e_v)
        return _may_decide(rough.s, rough.q2, e_s, e_q2, candidates)
