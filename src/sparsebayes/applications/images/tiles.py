r"""Which functions describe a tile: sparse Bayesian regression with the noise as the approximation error.

All tiles share one dictionary, so what depends on it alone (its values, their norms, which are copies of others) is
computed once, and the correlations :math:`\boldsymbol\Phi^\top\mathbf t` of all tiles are one product.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from joblib import Parallel, delayed
from numpy.typing import NDArray

from sparsebayes.applications.images.pixels import Array, tile_pixels
from sparsebayes.basis import Basis
from sparsebayes.basis.base import Index, Specification
from sparsebayes.design import DenseDesign, representatives
from sparsebayes.inference import Sequential
from sparsebayes.inference.run import Settings, run

# A function enters a tile if it brings so many nats: what it costs in the file is about that.
_PRICE = 3.0
# Functions whose norm on the tile is a smaller part of the largest of their kind hardly reach into it.
_SMALL = 0.3
# Tiles handed to another process at once.
_BATCH = 64


@dataclass(frozen=True)
class TileDictionary:
    """Functions of unit norm on a square tile.

    Attributes
    ----------
    Phi : (tile², M) ndarray
        Their values; the columns are contiguous.
    kinds : (M,) array of int
        Number of each function's shape, its specification but for the centre.
    """

    Phi: Array
    kinds: Index

    @classmethod
    def build(cls, basis: Basis, tile: int) -> TileDictionary:
        """Evaluate the basis on the pixels of a tile and drop what hardly reaches into it."""
        pixels = tile_pixels(tile)
        functions = basis.bind(pixels)
        values = functions.evaluate(pixels)
        kinds = _kinds(functions.specifications())
        norms = np.linalg.norm(values, axis=0)
        largest = np.zeros(kinds.max() + 1)
        np.maximum.at(largest, kinds, norms)
        stays = np.flatnonzero(norms > _SMALL * largest[kinds])
        Phi = values[:, stays] / norms[stays]
        first = representatives(DenseDesign(Phi)) == np.arange(Phi.shape[1])
        return cls(np.asfortranarray(Phi[:, first]), kinds[stays[first]])

    @cached_property
    def design(self) -> DenseDesign:
        """The dictionary as the solver takes it."""
        return DenseDesign(self.Phi)


def _kinds(specifications: list[Specification]) -> Index:
    """Number the different specifications, centres left out."""
    shapes = [json.dumps({k: v for k, v in spec.items() if k != "centre"}) for spec in specifications]
    number = {shape: place for place, shape in enumerate(dict.fromkeys(shapes))}
    return np.array([number[shape] for shape in shapes], dtype=np.intp)


@dataclass(frozen=True)
class TileProblem:
    """The problem of one tile, with everything that is the same for all tiles computed beforehand."""

    design: DenseDesign
    target: Array
    projection: Array
    sqnorms: Array
    eligible: NDArray[np.bool_]
    bias: int | None = None
    n_targets: int = 1

    @property
    def n_functions(self) -> int:
        """Number of candidate functions."""
        return self.design.shape[1]

    @property
    def n_effective(self) -> float:
        """Number of pixels."""
        return float(len(self.target))

    @property
    def mean_square(self) -> float:
        """Mean square of the pixels."""
        return float(np.mean(self.target**2))

    def columns(self, idx: Index) -> Array:
        """Columns of the dictionary."""
        return self.design.columns(idx)

    def correlate(self, vectors: Array) -> Array:
        """Correlations of all functions with vectors."""
        return self.design.correlate(vectors)


@dataclass(frozen=True)
class Selection:
    """The functions of one tile, in ascending order, and the posterior mean of their weights."""

    functions: Index
    weights: Array


def select(dictionary: TileDictionary, tiles: Array, noise: float, n_jobs: int | None = None) -> list[Selection]:
    """Find the functions of every tile by the sequential algorithm.

    Parameters
    ----------
    dictionary : TileDictionary
        Candidate functions.
    tiles : (n, tile²) ndarray
        What is to be described.
    noise : float
        Standard deviation σ of the approximation error.
    n_jobs : int, optional
        Processes, as in scikit-learn.
    """
    parts = [tiles[start : start + _BATCH] for start in range(0, len(tiles), _BATCH)]
    found = Parallel(n_jobs)(delayed(_select)(dictionary, part, noise) for part in parts)
    return [selection for part in found if part is not None for selection in part]


def _select(dictionary: TileDictionary, tiles: Array, noise: float) -> list[Selection]:
    design = dictionary.design
    n_functions = design.shape[1]
    projections = design.correlate(np.ascontiguousarray(tiles.T))
    sqnorms, eligible = np.ones(n_functions), np.ones(n_functions, dtype=bool)
    settings = Settings(tol=_PRICE, max_iter=4 * tiles.shape[1], noise_variance=noise**2)
    rng = np.random.default_rng(0)
    selections = []
    for target, projection in zip(tiles, projections.T, strict=True):
        problem = TileProblem(design, target[:, None], projection[:, None], sqnorms, eligible)
        active = run(problem, Sequential(), settings, rng).active
        order = np.argsort(active.indices)
        functions = np.array(active.indices, dtype=np.intp)[order]
        selections.append(Selection(functions, active.mean[order, 0]))
    return selections
