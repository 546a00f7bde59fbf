"""Whether stated chances come true where targets are no numbers: intervals of counts, and probabilities of classes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from rich.table import Table

from sparsebayes.benchmarks.ledger.cases import Case, Problem
from sparsebayes.benchmarks.ledger.problems import drawn
from sparsebayes.benchmarks.ledger.tables import RAETSCH, table_problems
from sparsebayes.benchmarks.small import small_problems
from sparsebayes.benchmarks.varying import Check
from sparsebayes.estimators import RVC, RVR

Array = NDArray[np.float64]

# Pima and the published splits of Raetsch's sets.
_TABLES = ("pima_ripley", *RAETSCH)
_GROUPS = 10
_LEAST = 1e-12
# Rows of the simulated counts that are learned from and judged by.
_ROWS, _NEW = 200, 1000


@dataclass(frozen=True)
class Stated:
    """Probabilities on the test rows of one draw of a problem.

    Attributes
    ----------
    problem, kind : str
        What was measured: ``"moderated"`` (the default) or ``"mode"``.
    probability, hit : ndarray of shape (n,)
        Probability of the class that is predicted, and whether it was the true one.
    true : ndarray of shape (n,)
        Probability of the true class.
    """

    problem: str
    kind: str
    probability: Array
    hit: NDArray[np.bool_]
    true: Array


@dataclass(frozen=True)
class Row:
    """What probabilities are worth on all draws of a problem together.

    A calibration error of few rows is mostly chance (about .1 for a hundred), and its mean over draws no less.

    Attributes
    ----------
    problem, draws, rows, kind : str, int, int, str
        What was measured, and on how many test rows of how many draws.
    error : float
        Calibration error of the class that is predicted.
    loss : float
        Mean negative log probability of the true class.
    """

    problem: str
    draws: int
    rows: int
    kind: str
    error: float
    loss: float


def calibration_error(probability: Array, hit: NDArray[np.bool_]) -> float:
    """Mean distance, over ten groups of as many rows, between what was stated and how often it came true.

    Parameters
    ----------
    probability, hit : ndarray of shape (n,)
        Probability of the class that is predicted, and whether it was the true one.
    """
    groups = np.array_split(np.argsort(probability, kind="stable"), min(_GROUPS, len(probability)))
    gaps = [len(rows) * abs(float(np.mean(probability[rows]) - np.mean(hit[rows]))) for rows in groups]
    return sum(gaps) / len(probability)


def measure(problem: str, case: Case) -> list[Stated]:
    """Both kinds of probabilities on one draw."""
    model = RVC(gamma=case.gamma or "scale", **case.settings).fit(case.X, case.y)
    truth = np.searchsorted(model.classes_, case.y_test)
    found = []
    for kind, moderated in (("moderated", True), ("mode", False)):
        p = model.predict_proba(case.X_test, moderated=moderated)
        true = np.take_along_axis(p, truth[:, None], axis=1)[:, 0]
        found.append(Stated(problem, kind, np.max(p, axis=1), np.argmax(p, axis=1) == truth, true))
    return found


def counts(n_seeds: int = 10) -> list[Check]:
    r"""Simulated counts with rate :math:`e^{1+\sin 2x}`: shares of new ones in intervals, which hold that much or more.

    A count is a whole number, so that an interval may have to hold more than it says.
    """
    levels, shares = (0.8, 0.95), []
    for seed in range(n_seeds):
        rng = np.random.default_rng(seed)
        x = rng.uniform(-3.0, 3.0, (_ROWS + _NEW, 1))
        y = rng.poisson(np.exp(1.0 + np.sin(2.0 * x[:, 0])))
        model = RVR(gamma=1.0, likelihood="poisson").fit(x[:_ROWS], y[:_ROWS])
        ends = [model.predict_interval(x[_ROWS:], level) for level in levels]
        shares.append([np.mean((low <= y[_ROWS:]) & (y[_ROWS:] <= high)) for low, high in ends])
    found = np.mean(shares, axis=0)
    return [
        Check(f"counts: share in {level:.0%} intervals", float(share), level - 0.02, min(level + 0.12, 0.99))
        for level, share in zip(levels, found, strict=True)
    ]


def problems(only: Iterable[str] = ()) -> list[Problem]:
    """The classifications that are measured, or those of the ledger that are named."""
    known = {p.name: p for p in [*table_problems(), *small_problems()] if set(p.kinds) & {"classification", "small"}}
    wanted = list(only) or list(_TABLES)
    unknown = [name for name in wanted if name not in known]
    if unknown:
        raise ValueError(f"no problem is called {', '.join(map(repr, unknown))}; choose among {', '.join(known)}")
    return [known[name] for name in wanted]


def run(tables: list[Problem], seeds: list[int], tell: Callable[[str], None]) -> Iterator[Stated]:
    """Probabilities as they come; what cannot be measured is told and left out."""
    for problem, _, case in drawn(tables, seeds, tell):
        yield from measure(problem.name, case)


def summary(stated: list[Stated]) -> list[Row]:
    """One row for every problem and kind, of the test rows of all draws together, and the means over problems."""
    found = []
    for name, kind in dict.fromkeys((one.problem, one.kind) for one in stated):
        mine = [one for one in stated if (one.problem, one.kind) == (name, kind)]
        fields = ("probability", "hit", "true")
        probability, hit, true = (np.concatenate([getattr(one, field) for one in mine]) for field in fields)
        loss = -float(np.mean(np.log(np.maximum(true, _LEAST))))
        found.append(Row(name, len(mine), len(hit), kind, calibration_error(probability, hit), loss))
    means = []
    for kind in dict.fromkeys(row.kind for row in found):
        mine = [row for row in found if row.kind == kind]
        draws, rows = sum(row.draws for row in mine), sum(row.rows for row in mine)
        error, loss = (float(np.mean([getattr(row, field) for row in mine])) for field in ("error", "loss"))
        means.append(Row("mean", draws, rows, kind, error, loss))
    return found + means


def table(rows: list[Row]) -> Table:
    """For a terminal."""
    found = Table(title="probabilities of classes: calibration error, and mean negative log probability")
    for heading in ("problem", "draws", "rows", "kind", "error", "loss"):
        found.add_column(heading, justify="left" if heading in ("problem", "kind") else "right")
    for row in rows:
        found.add_row(row.problem, str(row.draws), str(row.rows), row.kind, f"{row.error:.3f}", f"{row.loss:.3f}")
    return found
