"""Whether stated chances come true where targets are no numbers: intervals of counts, and probabilities of classes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from rich.table import Table

from sparsebayes.benchmarks.ledger.cases import Case, Problem
from sparsebayes.benchmarks.ledger.problems import drawn
from sparsebayes.benchmarks.ledger.tables import table_problems
from sparsebayes.benchmarks.varying import Check
from sparsebayes.estimators import RVC, RVR

Array = NDArray[np.float64]

# Tables of two classes and of several that take seconds.
_TABLES = ("banana", "breast_cancer", "titanic", "waveform", "segment")
_GROUPS = 10
_LEAST = 1e-12
# Rows of the simulated counts that are learned from and judged by.
_ROWS, _NEW = 200, 1000


@dataclass(frozen=True)
class Row:
    """What the probabilities of a model are worth on one draw of a problem.

    Attributes
    ----------
    problem, seed, kind : str, int, str
        What was measured: ``"moderated"`` (the default) or ``"mode"``.
    error : float
        Calibration error of the class that is predicted.
    loss : float
        Mean negative log probability of the true class.
    """

    problem: str
    seed: int
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


def measure(problem: str, seed: int, case: Case) -> list[Row]:
    """Both kinds of probabilities on one draw."""
    model = RVC(gamma=case.gamma or "scale", **case.settings).fit(case.X, case.y)
    truth = np.searchsorted(model.classes_, case.y_test)
    rows = []
    for kind, moderated in (("moderated", True), ("mode", False)):
        p = model.predict_proba(case.X_test, moderated=moderated)
        best = np.argmax(p, axis=1)
        error = calibration_error(np.max(p, axis=1), best == truth)
        loss = -float(np.mean(np.log(np.maximum(p[np.arange(len(truth)), truth], _LEAST))))
        rows.append(Row(problem, seed, kind, error, loss))
    return rows


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
    known = {p.name: p for p in table_problems() if "classification" in p.kinds}
    wanted = list(only) or list(_TABLES)
    unknown = [name for name in wanted if name not in known]
    if unknown:
        raise ValueError(f"no problem is called {', '.join(map(repr, unknown))}; choose among {', '.join(known)}")
    return [known[name] for name in wanted]


def run(tables: list[Problem], seeds: list[int], tell: Callable[[str], None]) -> Iterator[Row]:
    """Rows as they come; what cannot be measured is told and left out."""
    for problem, seed, case in drawn(tables, seeds, tell):
        yield from measure(problem.name, seed, case)


def summary(rows: list[Row]) -> list[Row]:
    """Means over the seeds of every problem and kind; the seed is their number."""
    pairs = list(dict.fromkeys((row.problem, row.kind) for row in rows))
    found = []
    for name, kind in pairs:
        mine = [row for row in rows if (row.problem, row.kind) == (name, kind)]
        error, loss = (float(np.mean([getattr(row, field) for row in mine])) for field in ("error", "loss"))
        found.append(Row(name, len(mine), kind, error, loss))
    return found


def table(rows: list[Row]) -> Table:
    """The means, for a terminal."""
    found = Table(title="probabilities of classes: calibration error, and mean negative log probability")
    for heading in ("problem", "draws", "kind", "error", "loss"):
        found.add_column(heading, justify="left" if heading in ("problem", "kind") else "right")
    for row in summary(rows):
        found.add_row(row.problem, str(row.seed), row.kind, f"{row.error:.3f}", f"{row.loss:.3f}")
    return found
