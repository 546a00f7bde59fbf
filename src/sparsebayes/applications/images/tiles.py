r"""Which functions describe a tile: sparse Bayesian regression with the noise as the approximation error.

All tiles share one dictionary, so its values, and which functions are copies of others, are computed once.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from joblib import Parallel, delayed

from sparsebayes.applications.images.pixels import Array, tile_pixels
from sparsebayes.basis import Basis
from sparsebayes.basis.base import Index, Specification
from sparsebayes.design import DenseDesign, representatives
from sparsebayes.inference import Sequential
from sparsebayes.inference.fit.run import run
from sparsebayes.inference.fit.settings import Settings
from sparsebayes.inference.models.problem import GaussianProblem

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
    design, rows = dictionary.design, np.ones(tiles.shape[1])
    eligible = np.ones(design.shape[1], dtype=bool)
    settings = Settings(tol=_PRICE, max_iter=4 * tiles.shape[1], noise_variance=noise**2)
    rng = np.random.default_rng(0)
    selections = []
    for target in tiles:
        problem = GaussianProblem(design, target[:, None], rows, eligible)
        active = run(problem, Sequential(), settings, rng).active
        order = np.argsort(active.indices)
        functions = np.array(active.indices, dtype=np.intp)[order]
        selections.append(Selection(functions, active.mean[order, 0]))
    return selections
