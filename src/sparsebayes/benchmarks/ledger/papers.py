"""The papers' problems, each a draw of its generator, or a published split where the seed is 0."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import numpy as np

from sparsebayes import datasets
from sparsebayes.basis import RBF, Basis, Bias, Heaviside, LinearSpline
from sparsebayes.benchmarks.ledger.cases import Array, Case, Problem, standardised

# Test rows come from another stream than any training rows do.
_APART = 10_000
_CONSERVATIVE = {"support": "conservative"}


def paper_problems() -> list[Problem]:
    """All of them, except Raetsch's sets, which are tables."""
    draws: dict[str, Callable[[int], Case]] = {
        "sinc": _sinc,
        "sinc2d": _sinc2d,
        "spline": _spline,
        "friedman1": partial(_friedman, datasets.make_friedman1, 1.0),
        "friedman2": partial(_friedman, datasets.make_friedman2, 125.0),
        "friedman3": partial(_friedman, datasets.make_friedman3, 0.1),
        "boston": _boston,
        "blocks": partial(_blocks, 0.0, 7.0, ()),
        "blocks_mixed": partial(_blocks, 0.0, 7.0, (0.01, 0.02, 0.05, 0.1)),
        "blocks_noisy": partial(_blocks, 0.5, None, ()),
        "spikes": partial(_spikes, 256, 1024, 40, 0.005, {}),
        "spikes_conservative": partial(_spikes, 256, 1024, 40, 0.005, _CONSERVATIVE),
        "spikes_large": partial(_spikes, 1000, 5000, 100, 0.005, {}),
        "spikes_large_conservative": partial(_spikes, 1000, 5000, 100, 0.005, _CONSERVATIVE),
        "n50_m100": partial(_spikes, 50, 100, 8, 0.1 / np.sqrt(50.0), {}),
        "pure_noise": _pure_noise,
        "ripley": partial(_published, "ripley_synth", 1.0 / 0.5**2, False),
        "pima": partial(_published, "pima_ripley", 1.0 / 7.0, True),
    }
    return [Problem(name, ("papers",), draw) for name, draw in draws.items()]


def _sinc(seed: int) -> Case:
    """Tipping 2001: 100 points, noise 0.1, Gaussians of width 4."""
    X, y = datasets.make_sinc(100, noise=0.1, random_state=seed)
    X_test, y_test, clean = datasets.make_sinc(1000, noise=0.1, return_clean=True, random_state=_APART + seed)
    return Case(X, y, X_test, y_test, gamma=1.0 / 4.0**2, clean=clean)


def _sinc2d(seed: int) -> Case:
    """Tipping & Faul 2003: 1,000 points, noise 0.1, Gaussians of width 2.5."""
    X, y = datasets.make_sinc2d(1000, noise=0.1, random_state=seed)
    X_test, y_test, clean = datasets.make_sinc2d(5000, noise=0.1, return_clean=True, random_state=_APART + seed)
    return Case(X, y, X_test, y_test, gamma=1.0 / 2.5**2, clean=clean)


def _spline(seed: int) -> Case:
    """Tipping 2001's figure: a linear spline on every one of 100 points, uniform noise of ±0.2."""
    settings = {"noise": 0.2, "distribution": "uniform"}
    X, y = datasets.make_sinc(100, random_state=seed, **settings)
    X_test, y_test, clean = datasets.make_sinc(1000, return_clean=True, random_state=_APART + seed, **settings)
    return Case(X, y, X_test, y_test, basis=Bias() + LinearSpline(), clean=clean, settings={"fit_intercept": False})


def _friedman(make: Callable[..., Any], noise: float, seed: int) -> Case:
    """240 points; gamma = 1 / inputs on standardised inputs is scikit-learn's "scale"."""
    X, y = make(240, noise=noise, random_state=seed)
    X_test, y_test, clean = make(1000, noise=noise, return_clean=True, random_state=_APART + seed)
    return Case(*_inputs(X, y, X_test), y_test, gamma=1.0 / X.shape[1], clean=clean)


def _inputs(X: Array, y: Any, X_test: Array) -> tuple[Array, Any, Array]:
    learned, judged = standardised(X, X_test)
    return learned, y, judged


def _boston(seed: int) -> Case:
    """481 rows to learn from, as in Tipping 2001; the splits are our own."""
    data = datasets.load("boston")
    order = np.random.default_rng(seed).permutation(len(data.target))
    train, test = order[:481], order[481:]
    X, y, X_test = _inputs(data.data[train], data.target[train], data.data[test])
    return Case(X, y, X_test, data.target[test], gamma=1.0 / X.shape[1])


def _blocks(noise: float, sd: float | None, widths: tuple[float, ...], seed: int) -> Case:
    """1,024 steps, alone or among Gaussians of several widths; without noise at the variance of the lecture."""
    X, y, clean = datasets.make_blocks(1024, noise=noise, sd=sd, return_clean=True, random_state=seed)
    _, again = datasets.make_blocks(1024, noise=noise, sd=sd, random_state=_APART + seed)
    basis: Basis = Heaviside()
    for width in widths:
        basis = basis + RBF(width)
    settings: Mapping[str, Any] = {"fit_intercept": False} | ({} if noise else {"noise_variance": 0.1**2})
    return Case(X, y, X, again, basis=basis, clean=clean, settings=settings)


def _spikes(n: int, m: int, k: int, noise: float, settings: Mapping[str, Any], seed: int) -> Case:
    """Weights of ±1 seen through a random matrix; further rows of the same kind judge them."""
    X, y, w = datasets.make_spikes(n, m, k, noise=noise, random_state=seed)
    rng = np.random.default_rng(_APART + seed)
    X_test = rng.standard_normal((1000, m)) / np.sqrt(n)
    clean = X_test @ w
    y_test = clean + noise * rng.standard_normal(len(clean))
    return Case(X, y, X_test, y_test, clean=clean, settings={"fit_intercept": False, **settings})


def _pure_noise(seed: int) -> Case:
    """Nothing to learn in 240 rows of three inputs."""
    rng = np.random.default_rng(seed)
    X, X_test = rng.standard_normal((240, 3)), rng.standard_normal((1000, 3))
    y, y_test = rng.standard_normal(240), rng.standard_normal(1000)
    return Case(X, y, X_test, y_test, gamma=1.0 / 3.0, clean=np.zeros(1000))


def _published(name: str, gamma: float, scale: bool, seed: int) -> Case:
    """The published split for seed 0; for others all rows are shuffled and cut at the same place."""
    data = datasets.load(name)
    rows = np.concatenate([data.train_idx, data.test_idx])
    if seed:
        rows = np.random.default_rng(seed).permutation(rows)
    train, test = np.split(rows, [len(data.train_idx)])
    X, X_test = data.data[train], data.data[test]
    if scale:
        X, X_test = standardised(X, X_test)
    return Case(X, data.target[train], X_test, data.target[test], gamma=gamma, classes=True)
