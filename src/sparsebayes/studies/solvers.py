"""Solvers against each other: evidences at fixed noise, and the old relevance vector machine against the new.

Run ``python -m sparsebayes.studies.solvers gaps`` or ``... solvers speed [--rows 100 200 500 1000] [--draws 3]``.

``gaps`` fits twenty kernel problems at fixed noise with every solver from its own start.  The sequential algorithm is
also begun in eight random orders, the best of nine being its figure with several starts.

``speed`` repeats Figs 2-5 of Tipping & Faul 2003: two-dimensional sinc (width 2.5, noise 0.1) and Ripley's mixture
(width 0.5).  ``mackay`` lets functions leave as soon as the evidence allows; ``original`` only when their precision
exceeds 1e9, as programs of the time did.  Times are of the processor, the fit alone.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.spatial.distance import pdist

from sparsebayes import RVC, RVR, MacKay, Sequential, datasets
from sparsebayes.inference import Certificate, Solver
from sparsebayes.typing import Array

JOINT = ("mackay", "em", "variational")
ORDERS = 8


@dataclass(frozen=True)
class KernelProblem:
    """Standardised data, a kernel and a fixed noise variance."""

    name: str
    X: Array
    y: Array
    gamma: float
    noise_variance: float


def kernel_problems() -> Iterator[KernelProblem]:
    """Five draws each of two sinc problems, four, three and three of Friedman's."""
    for seed in range(5):
        X, y = datasets.make_sinc(100, noise=0.1, random_state=seed)
        yield KernelProblem(f"sinc {seed}", X, y, 1 / 4**2, 0.01)
        X, y = datasets.make_sinc2d(200, noise=0.1, random_state=seed)
        yield KernelProblem(f"sinc2d {seed}", X, y, 1 / 2.5**2, 0.01)
    for number, make, draws in (
        (1, datasets.make_friedman1, 4),
        (2, datasets.make_friedman2, 3),
        (3, datasets.make_friedman3, 3),
    ):
        for seed in range(draws):
            X, y = make(150, random_state=seed)
            Z = (X - X.mean(axis=0)) / X.std(axis=0)
            gamma = 0.5 / float(np.median(pdist(Z, "sqeuclidean")))
            yield KernelProblem(f"friedman{number} {seed}", Z, (y - y.mean()) / y.std(), gamma, 0.1)


def gaps() -> None:
    """Print the evidence of every solver relative to MacKay's, and whether all ends are certified."""
    print("problem         mackay      em   variational  sequential  several starts  functions  certified")
    worst = np.inf
    for problem in kernel_problems():
        fits = [_fit(problem, name) for name in (*JOINT, Sequential())]
        fits += [_fit(problem, Sequential(selection="random", random_state=k)) for k in range(ORDERS)]
        evidence = np.array([fit.log_marginal_likelihood_ for fit in fits])
        gap = evidence - evidence[0]
        several = float(np.max(gap[len(JOINT) :]))
        worst = min(worst, several)
        sizes = "/".join(str(len(fit.relevance_)) for fit in fits[:4])
        certified = all(isinstance(fit.certificate_, Certificate) and fit.certificate_.converged for fit in fits)
        print(
            f"{problem.name:<13} {evidence[0]:8.2f} {gap[1]:7.2f} {gap[2]:10.2f} {gap[3]:12.2f} {several:13.2f}"
            f"     {sizes:<14} {certified}",
            flush=True,
        )
    print(f"lowest several-start gap to mackay: {worst:.2f} nats")


def _fit(problem: KernelProblem, solver: str | Solver) -> RVR:
    model = RVR(gamma=problem.gamma, noise_variance=problem.noise_variance, solver=solver)
    return model.fit(problem.X, problem.y)


# -- old against new ---------------------------------------------------------------------------------------------

SOLVERS: dict[str, str | Solver] = {
    "sequential": "sequential",
    "schedule": Sequential(batch=1),
    "mackay": "mackay",
    "original": MacKay(alpha_max=1e9),
}


def sinc2d(n: int, seed: int) -> tuple[Any, Callable[[Any], float]]:
    """Regression data, and the root mean square error against the clean function."""
    X_test, _, clean = datasets.make_sinc2d(2000, random_state=1000 + seed, return_clean=True)

    def error(model: RVR) -> float:
        return float(np.sqrt(np.mean((np.asarray(model.predict(X_test)) - clean) ** 2)))

    return datasets.make_sinc2d(n, noise=0.1, random_state=seed), error


def ripley(n: int, seed: int) -> tuple[Any, Callable[[Any], float]]:
    """Classification data, and the test error."""
    X_test, y_test = datasets.make_ripley(5000, random_state=1000 + seed)
    return datasets.make_ripley(n, random_state=seed), lambda model: 1.0 - model.score(X_test, y_test)


def speed(rows: list[int], draws: int) -> None:
    """Print seconds, vectors and errors, means over the draws."""
    print("problem       N  solver       seconds  times sequential  vectors   error")
    for name, make, estimator, gamma in (("sinc2d", sinc2d, RVR, 1 / 2.5**2), ("ripley", ripley, RVC, 1 / 0.5**2)):
        for n in rows:
            first = None
            for solver_name, solver in SOLVERS.items():
                if estimator is RVC and solver_name == "schedule":
                    continue  # there is no noise to schedule
                found = []
                for seed in range(draws):
                    (X, y), error = make(n, seed)
                    begun = time.process_time()
                    model = estimator(gamma=gamma, solver=solver).fit(X, y)
                    found.append((time.process_time() - begun, len(model.relevance_), error(model)))
                seconds, vectors, mistake = np.mean(found, axis=0)
                first = seconds if first is None else first
                print(
                    f"{name:<8} {n:6d}  {solver_name:<11} {seconds:8.3f} {seconds / first:13.1f} {vectors:12.1f}"
                    f"  {mistake:8.4f}",
                    flush=True,
                )


def main() -> None:
    """Run one of the studies."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("study", choices=("gaps", "speed"))
    parser.add_argument("--rows", type=int, nargs="+", default=[100, 200, 500, 1000])
    parser.add_argument("--draws", type=int, default=3)
    arguments = parser.parse_args()
    if arguments.study == "gaps":
        gaps()
    else:
        speed(arguments.rows, arguments.draws)


if __name__ == "__main__":
    main()
