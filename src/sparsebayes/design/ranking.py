"""Which functions left out of a model promise most: the only thing about a large dictionary that a search must know."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sparsebayes.basis.base import Floats, Index

from .protocol import Design

# A function whose s is below this fraction of its norm (times β) lies in the span of the model up to rounding: s, and
# with it the gain, has no correct digit.
RESOLVED = 1e-14


@dataclass(frozen=True)
class Promising:
    """Functions, the one with the largest q²/s first, and their s and q² (the mean over the targets)."""

    numbers: Index
    s: Floats
    q2: Floats


class Ranking:
    r"""The order of the functions of a design by :math:`q^2/s`, which is that of what they would gain.

    Parameters
    ----------
    design : Design
        The functions.
    norms : (M,) ndarray
        Their weighted squared norms.
    eligible : (M,) boolean array
        Those that may be chosen.
    """

    def __init__(self, design: Design, norms: Floats, eligible: NDArray[np.bool_]) -> None:
        self.design, self.norms, self.eligible = design, norms, eligible

    def best(self, V: Floats, P: Floats, scale: float, members: Index, count: int) -> Promising:
        r"""The best functions that are no members and gain at all.

        Parameters
        ----------
        V, P : (N, T), (N, p) ndarray
            With :math:`Q = \boldsymbol\Phi^\top\mathbf V`, and :math:`S` the squared norm times ``scale`` less the sum
            of squares of :math:`\boldsymbol\Phi^\top\mathbf P`.
        scale : float
            Inverse noise variance.
        members : (k,) integer array
            Functions that are not asked for.
        count : int
            How many at most.
        """
        q, squares = self.design.project(V, P)
        s, q2 = scale * self.norms - squares, np.einsum("mt,mt->m", q, q) / q.shape[1]
        rises = self.eligible & (q2 > s) & (s > RESOLVED * scale * self.norms)
        rises[members] = False
        numbers = np.flatnonzero(rises)
        numbers = numbers[np.argsort(-q2[numbers] / s[numbers], kind="stable")][:count]
        return Promising(numbers, s[numbers], q2[numbers])
