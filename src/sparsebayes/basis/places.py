"""Where functions are: points such that functions with points close to each other are alike."""

from __future__ import annotations

from abc import ABC, abstractmethod
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.spatial import KDTree

from .base import Floats, Index


class Places(ABC):
    """The points of M functions, in units in which a distance of one makes two of them different."""

    @abstractmethod
    def __len__(self) -> int:
        """Number of functions."""

    @abstractmethod
    def at(self, numbers: Any) -> Floats:
        """Points of some functions, (k, d)."""

    @abstractmethod
    def nearest(self, points: Floats) -> Index:
        """For every point (k, d) the function next to it; of several at one place, the first."""


class HostPlaces(Places):
    """Points in memory.

    Parameters
    ----------
    points : (M, d) ndarray
        The points.
    distinct : (M,) boolean array
        Those that are no copy of an earlier one.
    """

    def __init__(self, points: Floats, distinct: NDArray[np.bool_]) -> None:
        self._points, self._distinct = points, distinct

    def __len__(self) -> int:
        return len(self._points)

    def at(self, numbers: Any) -> Floats:
        """Points of some functions."""
        return self._points[numbers]

    @cached_property
    def _tree(self) -> tuple[KDTree, Index]:
        numbers = np.flatnonzero(self._distinct)
        # A balanced tree takes four times as long to make, and is asked a few hundred times only.
        return KDTree(self._points[numbers], balanced_tree=False, compact_nodes=False), numbers

    def nearest(self, points: Floats) -> Index:
        """The function next to every point."""
        tree, numbers = self._tree
        return numbers[np.asarray(tree.query(points)[1], dtype=np.intp)]
