"""Tipping's lecture 4, function approximation, and Tipping 2001, sparse kernel PCA: sizes and errors.

Run ``python -m sparsebayes.studies.small_models [--draws N] [--out FILE.json]``.  The support vector machine is trained
on Rätsch's banana set where ``SPARSEBAYES_DATA`` has it, else on Ripley's.
"""

from __future__ import annotations

import argparse
import json
import time
import warnings
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.datasets import load_digits
from sklearn.decomposition import KernelPCA
from sklearn.exceptions import ConvergenceWarning
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, WhiteKernel
from sklearn.neighbors import KernelDensity
from sklearn.svm import SVC

from sparsebayes import SparseKernelPCA, datasets
from sparsebayes.applications import sparsify
from sparsebayes.typing import Array

_REPEATS = 5


@dataclass(frozen=True)
class Row:
    """One line: what was made small, the sizes before and after, and its figures by name."""

    what: str
    source: int
    kept: int
    figures: dict[str, float]


@dataclass(frozen=True)
class SVCProblem:
    """Data, how much of it to train on, the machine's settings, and the error in its decisions that is accepted."""

    name: str
    X: Array
    y: NDArray[Any]
    n_train: int
    gamma: Any
    C: float
    noise: float


def process(seed: int) -> GaussianProcessRegressor:
    """A Gaussian process on 100 noisy values of the sinc function, its kernel learned."""
    X, y = datasets.make_sinc(100, noise=0.1, random_state=seed)
    kernel = ConstantKernel() * RBF(3.0) + WhiteKernel(0.01)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return GaussianProcessRegressor(kernel).fit(X, y)


def gaussian_process(seed: int) -> list[Row]:
    """The lecture's three pictures: two noise levels, and many places to choose from."""
    model = process(seed)
    points = np.asarray(model.X_train_, dtype=np.float64)
    places = np.linspace(points.min(), points.max(), 2000)[:, None]
    rows = []
    for noise, candidates in ((0.1, None), (0.001, None), (0.001, places)):
        small = sparsify(model, noise, candidates=candidates)
        error = float(np.max(np.abs(small.predict(places) - model.predict(places))))
        where = 100 if candidates is None else len(candidates)
        what = f"Gaussian process, noise {noise}, {where} places"
        rows.append(Row(what, 100, small.approximation_.n_functions, {"max error / noise": error / noise}))
    return rows


def clusters_and_ring(n: int, seed: int) -> Array:
    """Three clusters inside a ring, a quarter of the points each."""
    rng = np.random.default_rng(seed)
    quarter = n // 4
    blobs = [rng.normal(c, s, (quarter, 2)) for c, s in (((-2.0, -2.0), 0.5), ((2.5, -1.5), 0.4), ((0.0, 3.0), 0.6))]
    angle = rng.uniform(0.0, 2.0 * np.pi, n - 3 * quarter)
    radius = rng.normal(5.0, 0.25, n - 3 * quarter)
    return np.vstack([*blobs, np.column_stack([radius * np.cos(angle), radius * np.sin(angle)])])


def density(seed: int, n: int = 1000, noise: float = 0.012) -> Row:
    """A kernel density of many Gaussians."""
    model = KernelDensity(bandwidth=0.5).fit(clusters_and_ring(n, seed))
    report = sparsify(model, noise).approximation_
    figures = {"relative error": report.relative_error, "before weights are a density": report.unconstrained_error}
    return Row(f"density, noise {noise}", n, report.n_functions, figures)


def banana() -> SVCProblem | None:
    """Rätsch's banana set, where it is at hand."""
    try:
        data = datasets.load("banana")
    except (OSError, ValueError):
        return None
    return SVCProblem("banana", data.data, data.target, 1000, gamma=0.3, C=3.0, noise=0.4)


def ripley() -> SVCProblem:
    """Ripley's two classes, drawn anew."""
    X, y = datasets.make_ripley(5300, random_state=0)
    return SVCProblem("Ripley", X, y, 1500, gamma=4.0, C=1.0, noise=0.3)


def support_vectors(problem: SVCProblem, seed: int) -> Row:
    """A support vector classifier, its test error and the time of its predictions."""
    X, y, noise = problem.X, problem.y, problem.noise
    order = np.random.default_rng(seed).permutation(len(X))
    train, test = order[: problem.n_train], order[problem.n_train :]
    model = SVC(gamma=problem.gamma, C=problem.C).fit(X[train], y[train])
    small = sparsify(model, noise)
    figures = {
        "SVC error %": 100.0 * float(np.mean(model.predict(X[test]) != y[test])),
        "small error %": 100.0 * float(np.mean(small.predict(X[test]) != y[test])),
        "times faster": _seconds(model.predict, X[test]) / _seconds(small.predict, X[test]),
    }
    return Row(f"SVC on {problem.name}, noise {noise}", len(model.support_), small.approximation_.n_functions, figures)


def _seconds(predict: Callable[[Array], Any], X: Array) -> float:
    best = np.inf
    for _ in range(_REPEATS):
        begun = time.perf_counter()
        predict(X)
        best = min(best, time.perf_counter() - begun)
    return best


def clusters(seed: int) -> Array:
    """Three Gaussian clusters of 30 points."""
    rng = np.random.default_rng(seed)
    return np.vstack([rng.normal(c, 0.1, (30, 2)) for c in ((-0.5, -0.2), (0.0, 0.6), (0.5, 0.0))])


def kernel_pca(what: str, X: Array, noise: float, gamma: float, n_components: int) -> Row:
    """Agreement of the leading components with those of all rows, as cosines of their projections."""
    begun = time.perf_counter()
    model = SparseKernelPCA(noise, n_components, gamma=gamma).fit(X)
    seconds = time.perf_counter() - begun
    ours = model.transform(X)
    full = KernelPCA(n_components, kernel="rbf", gamma=gamma).fit_transform(X)[:, : ours.shape[1]]
    cosine = np.abs(np.sum(ours * full, axis=0)) / np.linalg.norm(ours, axis=0) / np.linalg.norm(full, axis=0)
    figures = {"mean cosine": float(np.mean(cosine)), "worst cosine": float(np.min(cosine)), "seconds": seconds}
    return Row(f"kernel PCA, {what}", len(X), len(model.relevance_), figures)


def main() -> None:
    """Print the table, and write it as JSON on request."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--draws", type=int, default=5)
    parser.add_argument("--out", type=Path)
    arguments = parser.parse_args()
    digits = np.asarray(load_digits(return_X_y=True)[0]) / 16.0
    jobs: list[Callable[[], list[Row]]] = []
    for seed in range(arguments.draws):
        jobs.append(lambda seed=seed: gaussian_process(seed))
        jobs.append(lambda seed=seed: [density(seed)])
        jobs.append(lambda seed=seed: [support_vectors(banana() or ripley(), seed)])
        jobs.append(lambda seed=seed: [kernel_pca("three clusters", clusters(seed), 0.04, 10.0, 3)])
    jobs.append(lambda: [kernel_pca("digits", digits, 0.003, 0.02, 10)])
    rows = []
    for job in jobs:
        for row in job():
            rows.append(row)
            figures = "  ".join(f"{name} {value:.4g}" for name, value in row.figures.items())
            print(f"{row.what:<45} {row.source:5d} -> {row.kept:4d}   {figures}", flush=True)
    if arguments.out is not None:
        arguments.out.write_text(json.dumps([asdict(row) for row in rows], indent=2) + "\n")


if __name__ == "__main__":
    main()
