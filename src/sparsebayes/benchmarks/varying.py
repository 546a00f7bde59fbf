"""Noise that varies: whether it is found where it does, what it is worth, and that constant noise stays constant."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from rich.table import Table

from sparsebayes.benchmarks.ledger.cases import NotAtHandError
from sparsebayes.benchmarks.ledger.problems import PROBLEMS
from sparsebayes.datasets import DatasetNotFoundError, load, make_sinc
from sparsebayes.estimators import RVR

Array = NDArray[np.float64]

# Rows of the motorcycle's that are learned from.
_LEARNED = 100
# Rows and places of the simulation.
_ROWS, _PLACES = 400, 50
# Tables on which intervals are looked at by the predicted standard deviation, in so many parts and at this level.
_TABLES, _PARTS, _LEVEL = ("california", "cpu_small", "protein"), 5, 0.9


@dataclass(frozen=True)
class Check:
    """One figure and the range that it should be in."""

    what: str
    value: float
    low: float
    high: float

    @property
    def met(self) -> bool:
        """Whether it is in the range."""
        return self.low <= self.value <= self.high


def motorcycle(n_splits: int = 10) -> list[Check]:
    """Silverman's motorcycle: what varying noise gains on rows left out, and its intervals in thirds of the times.

    The width is learned with constant noise and is the same for both.
    """
    try:
        X, y = load("mcycle", return_X_y=True)
    except DatasetNotFoundError as error:
        raise NotAtHandError(str(error)) from error
    third = np.searchsorted(np.quantile(X[:, 0], [1 / 3, 2 / 3]), X[:, 0])
    gains, inside, where = [], [], []
    for seed in range(n_splits):
        order = np.random.default_rng(seed).permutation(len(y))
        train, test = order[:_LEARNED], order[_LEARNED:]
        constant = RVR(gamma="evidence").fit(X[train], y[train])
        varying = RVR(constant.kernel_, noise="varies").fit(X[train], y[train])
        gains.append(np.mean(varying.log_density(X[test], y[test]) - constant.log_density(X[test], y[test])))
        low, high = varying.predict_interval(X[test])
        inside.append((low <= y[test]) & (y[test] <= high))
        where.append(third[test])
    covered, part = np.concatenate(inside), np.concatenate(where)
    found = [Check("mcycle: nats gained for each row left out", float(np.mean(gains)), 0.25, np.inf)]
    names = ("first", "middle", "last")
    return found + [
        Check(f"mcycle: share in 95 % intervals, {name} third", float(np.mean(covered[part == k])), 0.90, 0.98)
        for k, name in enumerate(names)
    ]


def simulated(n_seeds: int = 20) -> list[Check]:
    r"""A sine with :math:`\sigma(x) = 0.05 + 0.4x^2` on [-1, 1]: how far the noise that is found is off.

    Of the medians over the draws, one for each of 50 places, the largest.
    """
    places = np.linspace(-1.0, 1.0, _PLACES)[:, None]
    errors = []
    for seed in range(n_seeds):
        rng = np.random.default_rng(seed)
        x = rng.uniform(-1.0, 1.0, (_ROWS, 1))
        y = np.sin(3.0 * x[:, 0]) + _deviation(x) * rng.standard_normal(_ROWS)
        errors.append(np.abs(RVR(noise="varies").fit(x, y).predict_noise(places) / _deviation(places) - 1.0))
    worst = float(np.max(np.median(errors, axis=0)))
    return [
        Check("sigma(x) = .05 + .4 x²: relative error, median of draws, worst place", worst, 0.0, 0.2),
        Check("sigma(x) = .05 + .4 x²: relative error, median of all", float(np.median(errors)), 0.0, 0.2),
    ]


def _deviation(x: Array) -> Array:
    return 0.05 + 0.4 * x[:, 0] ** 2


def constant(n_seeds: int = 20) -> list[Check]:
    """The sinc problem, whose noise is constant: in which share of the draws it is found to be."""
    chosen = 0
    for seed in range(n_seeds):
        X, y = make_sinc(100, noise=0.1, random_state=seed)
        chosen += not RVR(gamma=1 / 9, noise="varies").fit(X, y).noise_varies_
    return [Check("sinc: share of the draws with constant noise", chosen / n_seeds, 0.9, 1.0)]


def conditional(tables: Iterable[str] = _TABLES, seed: int = 0) -> list[Check]:
    """Intervals of 90 % of one draw of some of the ledger's tables, in fifths of the predicted standard deviation."""
    found = []
    for name in tables:
        case = PROBLEMS[name].draw(seed)
        model = RVR(gamma=case.gamma or "scale", noise="varies").fit(case.X, case.y)
        low, high = model.predict_interval(case.X_test, _LEVEL)
        inside = (low <= case.y_test) & (case.y_test <= high)
        parts = np.array_split(inside[np.argsort(high - low, kind="stable")], _PARTS)
        found += [
            Check(f"{name}: share in 90 % intervals, fifth {k} by width", float(np.mean(part)), 0.86, 0.94)
            for k, part in enumerate(parts, start=1)
        ]
    return found


PARTS: dict[str, Callable[[], list[Check]]] = {
    "mcycle": motorcycle,
    "growing": simulated,
    "sinc": constant,
    "tables": conditional,
}


def run(tell: Callable[[str], None]) -> Iterator[Check]:
    """Checks as they come; what cannot be measured is told and left out."""
    for name, part in PARTS.items():
        tell(f"varying noise: {name} ...")
        try:
            yield from part()
        except NotAtHandError as error:
            tell(f"{name}: {error}")


def table(checks: list[Check]) -> Table:
    """The figures, for a terminal."""
    found = Table(title="figures and the ranges that they should be in")
    for heading in ("row", "measured", "expected", "met"):
        found.add_column(heading, justify="left" if heading == "row" else "right")
    for check in checks:
        expected = f">= {check.low:g}" if np.isinf(check.high) else f"{check.low:g} to {check.high:g}"
        found.add_row(check.what, f"{check.value:.3f}", expected, "yes" if check.met else "no")
    return found
