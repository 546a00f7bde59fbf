"""What learning the widths is worth: beside one width as given, a grid of nine, and an exact Gaussian process.

All are judged by the same measure: the log density of every training row under searches on the other folds, each at the
kernel and the noise of the model in question (``inference/fit/folds.py``), beside evidence and error on test rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from sparsebayes.basis import RBF, Basis
from sparsebayes.benchmarks.ledger.cases import Case, NotAtHandError
from sparsebayes.benchmarks.ledger.measure import timed
from sparsebayes.benchmarks.ledger.problems import choose_problems
from sparsebayes.benchmarks.ledger.rivals import RIVALS
from sparsebayes.design import DenseDesign
from sparsebayes.inference.fit.folds import Folds
from sparsebayes.inference.models.problem import GaussianProblem

PROBLEMS = ("energy", "yacht", "laser", "airfoil", "concrete", "wine_red")
# Widths of the grid, as multiples of that of gamma="scale".
GRID = tuple(float(factor) for factor in 2.0 ** np.arange(-2.0, 2.5, 0.5))
WAYS = ("ard",)


@dataclass(frozen=True)
class Figures:
    """One way to choose the widths on one draw.

    Attributes
    ----------
    problem, seed, way : str, int, str
        What was measured; ``"scale"``, a way to learn, ``"best of the grid"`` or ``"gp"``.
    evidence, density : float or None
        Log evidence in nats, and mean log density of training rows left out.
    error : float
        Root mean square error on the test rows.
    kept : int
        Functions in the model.
    seconds : float
        Processor time of the fit.
    status : str
        Of the parameters.
    """

    problem: str
    seed: int
    way: str
    evidence: float | None
    density: float | None
    error: float
    kept: int
    seconds: float
    status: str = ""


def measure_widths(
    only: Iterable[str], seeds: Iterable[int], ways: Sequence[str], tell: Callable[[str], None]
) -> list[Figures]:
    """All ways on all draws; data that are not at hand are told of and left out."""
    found: list[Figures] = []
    for problem in choose_problems(["regression"], list(only) or PROBLEMS):
        for seed in seeds:
            tell(f"{problem.name}, seed {seed}")
            try:
                case = problem.draw(seed)
            except NotAtHandError as error:
                tell(str(error))
                break
            found += [_learned(problem.name, seed, case, way) for way in ("scale", *ways)]
            found.append(_best_of_grid(problem.name, seed, case))
            found.append(_process(problem.name, seed, case))
    return found


def as_rows(figures: Sequence[Figures]) -> list[dict[str, Any]]:
    """For JSON."""
    return [asdict(one) for one in figures]


def left_out_density(case: Case, kernel: Basis, beta: float, size: int) -> float:
    """Mean log density of training rows under searches without them, at this kernel and noise."""
    n, t = len(case.y), np.asarray(case.y - np.mean(case.y), dtype=np.float64)
    values = kernel.bind(case.X).evaluate(case.X)
    terms = values.shape[1] // n
    centres = np.tile(np.arange(n), terms)
    Phi = np.column_stack([values, np.ones(n)])
    every = np.ones(Phi.shape[1], dtype=bool)
    problem = GaussianProblem(DenseDesign(Phi), t[:, None], np.ones(n), every, Phi.shape[1] - 1, centres=centres)
    by_target = np.argsort(np.argsort(t, kind="stable"), kind="stable") % 5
    return float(np.mean(Folds(problem, fold=by_target).densities(beta, max(size, 1))))


def _learned(name: str, seed: int, case: Case, way: str, gamma: float | None = None) -> Figures:
    from sparsebayes import RVR

    model, seconds = timed(lambda: RVR(gamma=way if gamma is None else gamma).fit(case.X, case.y))
    variance = float(np.var(case.X))
    width = (case.X.shape[1] * variance) ** 0.5 if gamma is None else gamma**-0.5
    kernel = getattr(model, "kernel_", None) or RBF(width)
    density = left_out_density(case, kernel, 1.0 / model.noise_variance_, len(model.relevance_))
    states = dict.fromkeys(status.name for status in getattr(model, "kernel_status_", {}).values())
    error = case.error(model.predict(case.X_test))
    evidence, kept = float(model.log_marginal_likelihood_), len(model.relevance_)
    return Figures(name, seed, way, evidence, density, error, kept, seconds, " ".join(states))


def _best_of_grid(name: str, seed: int, case: Case) -> Figures:
    """The highest evidence and the highest density of nine widths, each; the error is that of the highest density."""
    first = 1.0 / (case.X.shape[1] * float(np.var(case.X)))
    rows = [_learned(name, seed, case, "grid", first / factor**2) for factor in GRID]
    best = max(rows, key=lambda row: row.density or -np.inf)
    evidence = max(row.evidence for row in rows if row.evidence is not None)
    seconds = sum(row.seconds for row in rows)
    return Figures(name, seed, "best of the grid", evidence, best.density, best.error, best.kept, seconds)


def _process(name: str, seed: int, case: Case) -> Figures:
    found = RIVALS["gp"](case)
    return Figures(name, seed, "gp", None, None, found["error"], found["kept"], found["seconds"])
