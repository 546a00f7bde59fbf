"""Learning the dictionary: the problems of docs/dictionary.md, measured.

Run ``python -m sparsebayes.studies.dictionary_learning [NAME ...] [--draws N]``; the names are those of ``STUDIES``.
Times are of the processor, on one thread; errors and vectors of the table are divided by those of the paper's support
vector machine.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.model_selection import GridSearchCV, KFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVR

from sparsebayes import RVC, RVR, Sequential, SparseBayesRegressor, datasets
from sparsebayes.basis import RBF, Polynomial
from sparsebayes.typing import Array

Split = tuple[Array, Array, Array, Array]

# Tipping 2001: error and vectors of the support vector machine, and whether the error is a root mean square.
PAPER = {
    "sinc": (0.0378, 45.2, True),
    "sinc, uniform": (0.0215, 44.3, True),
    "friedman2": (4140.0, 110.3, False),
    "friedman3": (0.0202, 106.5, False),
    "boston": (8.04, 142.8, False),
}


def timed(fit: Callable[[], Any]) -> tuple[Any, float]:
    """What a fit returns, and the processor time it took."""
    begin = time.process_time()
    model = fit()
    return model, time.process_time() - begin


def draw(name: str, seed: int) -> Split:
    """Training inputs and targets, test inputs and (noise-free) targets; inputs standardised."""
    if name.startswith("sinc"):
        kind = "uniform" if "uniform" in name else "gaussian"
        X, y, clean = datasets.make_sinc(100, noise=0.1, distribution=kind, random_state=seed, return_clean=True)
        split = X, y, X, clean
    elif name == "boston":
        data = datasets.load("boston")
        order = np.random.default_rng(seed).permutation(len(data.target))
        train, test = order[:481], order[481:]
        split = data.data[train], data.target[train], data.data[test], data.target[test]
    else:
        make = getattr(datasets, f"make_{name}")
        split = (*make(240, random_state=seed), *make(1000, noise=0.0, random_state=1000 + seed))
    centre, spread = np.mean(split[0], axis=0), np.std(split[0], axis=0)
    return (split[0] - centre) / spread, split[1], (split[2] - centre) / spread, split[3]


def error(model: Any, split: Split, root: bool = False) -> float:
    """Mean squared error on the test part, or its root."""
    square = float(np.mean((model.predict(split[2]) - split[3]) ** 2))
    return float(np.sqrt(square)) if root else square


def table(draws: int) -> Iterator[str]:
    """Tipping 2001's regression table with ``gamma="evidence"``."""
    ratios = []
    for name, (svm, vectors, root) in PAPER.items():
        found = []
        for seed in range(draws):
            split = draw(name, seed)
            model, seconds = timed(lambda split=split: RVR(gamma="evidence").fit(*split[:2]))
            found.append((error(model, split, root), len(model.relevance_), seconds))
        mean = np.mean(found, axis=0)
        ratios.append((mean[0] / svm, mean[1] / vectors))
        yield f"{name:14s} error {mean[0]:8.4g} ({mean[0] / svm:.3f})  vectors {mean[1]:5.1f}  {mean[2]:.2f} s"
    yield "normalised means: error {:.3f} (at most 0.865), vectors {:.3f} (at most 0.15)".format(
        *np.mean(ratios, axis=0)
    )


@dataclass(frozen=True)
class ExtraColumns:
    """One draw of sinc(x1) + 0.1 x2: our model and a support vector machine, and the errors of both."""

    model: RVR
    rms: float
    mse: float
    functions: int
    off: bool
    svm_rms: float
    svm_mse: float
    svm_vectors: int


def extra_columns_draw(seed: int) -> ExtraColumns:
    """Extra columns and ``gamma="ard"``; beside it SVR, tuned by cross-validation."""
    rng = np.random.default_rng(seed)
    X, T = rng.uniform(-10, 10, (100, 2)), rng.uniform(-10, 10, (1000, 2))
    y = np.sinc(X[:, 0] / np.pi) + 0.1 * X[:, 1] + 0.1 * rng.standard_normal(100)
    split = X, y, T, np.sinc(T[:, 0] / np.pi) + 0.1 * T[:, 1]
    model = RVR(kernel=Polynomial(2) + RBF(4.0), gamma="ard").fit(X, y)
    length = next(f["width"][1] for f in model.relevance_functions_ if f["kind"] == "rbf")
    svm = GridSearchCV(
        make_pipeline(StandardScaler(), SVR(epsilon=0.1)),
        {"svr__C": [1.0, 10.0, 100.0], "svr__gamma": [0.1, 0.3, 1.0, 3.0]},
        cv=5,
    ).fit(X, y)
    return ExtraColumns(
        model,
        error(model, split, True),
        error(model, split),
        len(model.relevance_functions_),
        bool((np.ptp(X[:, 1]) / length) ** 2 < 0.01),
        error(svm, split, True),
        error(svm, split),
        len(svm.best_estimator_[-1].support_),
    )


def extra_columns(draws: int) -> Iterator[str]:
    """sinc(x1) + 0.1 x2 with extra columns and ``gamma="ard"``; beside it SVR, tuned by cross-validation."""
    found = [extra_columns_draw(seed) for seed in range(draws)]

    def mean(name: str) -> float:
        return float(np.mean([getattr(drawn, name) for drawn in found]))

    yield (
        f"RMS {mean('rms'):.4f}, MSE {mean('mse'):.5f}, functions {mean('functions'):.1f}, "
        f"second scale off in {sum(drawn.off for drawn in found)} of {draws}; "
        f"SVR: RMS {mean('svm_rms'):.4f}, vectors {mean('svm_vectors'):.1f}"
    )


def friedman1(draws: int) -> Iterator[str]:
    """Friedman 1: does ``gamma="ard"`` find the five irrelevant inputs?"""
    found = []
    for seed in range(draws):
        split = draw("friedman1", seed)
        one = RVR().fit(*split[:2])
        learned = RVR(gamma="evidence").fit(*split[:2])
        model, seconds = timed(lambda split=split: RVR(gamma="ard").fit(*split[:2]))
        names = [status.name for status in model.kernel_status_.values()]
        right = names[5:] == ["OFF"] * 5 and "OFF" not in names[:5]
        found.append((error(one, split), error(learned, split), error(model, split), right, seconds))
        errors = "  ".join(f"{value:.3f}" for value in found[-1][:3])
        yield f"  draw {seed}: MSE {errors}  {'right' if right else names}"
    scale, learned, ard, right, seconds = np.mean(found, axis=0)
    yield (
        f'MSE gamma="scale" {scale:.3f}, "evidence" {learned:.3f}, "ard" {ard:.3f} '
        f"({ard / min(scale, learned):.0%} of the better); "
        f"all inputs right in {right * draws:.0f} of {draws}; {seconds:.1f} s"
    )


def correlated_dictionary(seed: int) -> tuple[Array, Array]:
    """60 rows, 120 columns with correlations above 0.9, 5 true ones."""
    rng = np.random.default_rng(seed)
    Phi = 4.0 * rng.standard_normal((60, 1)) + rng.standard_normal((60, 120))
    w = np.zeros(120)
    w[rng.choice(120, 5, replace=False)] = rng.choice([-1.0, 1.0], 5) * rng.uniform(1, 2, 5)
    return Phi, Phi @ w + 0.5 * rng.standard_normal(60)


def exchange(draws: int) -> Iterator[str]:
    """Exchange on correlated dictionaries, against plain greed and against 50 random restarts."""
    found = []
    for seed in range(draws):
        Phi, y = correlated_dictionary(seed)
        model = SparseBayesRegressor(fit_intercept=False, noise_variance=0.25)
        found.append(
            [
                model.set_params(solver=Sequential(exchange=kind), n_restarts=n).fit(Phi, y).log_marginal_likelihood_
                for kind, n in (("never", 0), ("converged", 0), ("always", 0), ("never", 50))
            ]
        )
    greedy, converged, always, restarts = np.array(found).T
    for name, value in (("converged", converged), ("always", always)):
        gain = value - greedy
        yield (
            f'"{name}": lowest gain over plain greed {np.min(gain):.2e}, mean {np.mean(gain):.3f} nats, '
            f"strictly better in {np.sum(gain > 1e-3)} of {draws}; "
            f"equal to the best of 50 restarts or better in {np.sum(value >= restarts - 1e-2)}"
        )
    yield f"50 restarts: mean gain {np.mean(restarts - greedy):.3f} nats"


def grid(draws: int) -> Iterator[str]:
    """``gamma="evidence"`` against a 5-fold cross-validated grid of 10 widths: time and test error."""
    ratios = []
    for name in (*PAPER, "friedman1"):
        found = []
        for seed in range(draws):
            split = draw(name, seed)
            widths = np.sqrt(split[0].shape[1]) * np.geomspace(0.2, 5.0, 10)
            folds = KFold(5, shuffle=True, random_state=seed)
            search = GridSearchCV(RVR(), {"gamma": 1.0 / widths**2}, cv=folds, scoring="neg_mean_squared_error")
            chosen, slow = timed(lambda split=split, search=search: search.fit(*split[:2]))
            model, fast = timed(lambda split=split: RVR(gamma="evidence").fit(*split[:2]))
            found.append((error(model, split), error(chosen, split), fast, slow))
        mean = np.mean(found, axis=0)
        ratios.append((mean[0] / mean[1], mean[2] / mean[3]))
        yield (
            f"{name:14s} MSE {mean[0]:.4g} against {mean[1]:.4g} ({ratios[-1][0]:.3f}), "
            f"time {mean[2]:.2f} s against {mean[3]:.2f} s"
        )
    yield "mean ratios: error {:.3f}, time {:.3f}".format(*np.mean(ratios, axis=0))


def grid_classification(draws: int) -> Iterator[str]:
    """The same for two classes, on fresh draws of Ripley's mixture."""
    found = []
    for seed in range(draws):
        X, y = datasets.make_ripley(250, random_state=seed)
        T, u = datasets.make_ripley(1000, random_state=1000 + seed)
        widths = np.std(X) * np.sqrt(2.0) * np.geomspace(0.2, 5.0, 10)
        search = GridSearchCV(RVC(), {"gamma": 1.0 / widths**2}, cv=5)
        chosen, slow = timed(lambda X=X, y=y, search=search: search.fit(X, y))
        model, fast = timed(lambda X=X, y=y: RVC(gamma="evidence").fit(X, y))
        found.append((1.0 - model.score(T, u), 1.0 - chosen.score(T, u), fast, slow))
    mean = np.mean(found, axis=0)
    yield f"error {mean[0]:.4f} against {mean[1]:.4f}, time {mean[2]:.2f} s against {mean[3]:.2f} s"


STUDIES: dict[str, tuple[Callable[[int], Iterator[str]], int]] = {
    "table": (table, 10),
    "extra_columns": (extra_columns, 20),
    "friedman1": (friedman1, 20),
    "exchange": (exchange, 100),
    "grid": (grid, 5),
    "grid_classification": (grid_classification, 5),
}


def main() -> None:
    """Run the studies named on the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", choices=[*STUDIES, []], default=[])
    parser.add_argument("--draws", type=int)
    arguments = parser.parse_args()
    for name in arguments.names or STUDIES:
        study, draws = STUDIES[name]
        print(f"{name}: {(study.__doc__ or '').strip()}")
        for line in study(arguments.draws or draws):
            print(f"  {line}", flush=True)


if __name__ == "__main__":
    main()
