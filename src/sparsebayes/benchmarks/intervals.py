"""Whether error bars hold what they say: coverage, density and cost on the ledger's tables and on Boston's houses."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray
from rich.table import Table
from scipy.stats import norm

from sparsebayes.benchmarks.ledger.cases import Case, Problem, standardised
from sparsebayes.benchmarks.ledger.measure import negative_log_density, timed
from sparsebayes.benchmarks.ledger.problems import drawn
from sparsebayes.benchmarks.ledger.rivals import NotApplicableError, gaussian_process
from sparsebayes.benchmarks.ledger.tables import table_problems
from sparsebayes.datasets import load
from sparsebayes.estimators import RVR

Array = NDArray[np.float64]

LEVELS = (0.5, 0.8, 0.95)
# How widths may be learned; by default they are those of the ledger.
LEARNED = ("evidence", "ard")
_BOSTON_ROWS = 400
# Fits without a fold each, of conformal intervals.
_CONFORMAL_FOLDS = 10
# Small enough for a minute.
_QUICK = ("yacht", "laser", "boston")


@dataclass(frozen=True)
class Row:
    """What one kind of error bars does on one draw of a problem.

    Attributes
    ----------
    problem, seed, kind : str, int, str
        What was measured: ``"calibrated"``, ``"posterior"``, or one of ``RIVALS``.
    coverage : list of float
        Shares of the test rows in the intervals of each of ``LEVELS``.
    loss : float
        Mean negative log density of the test rows.
    std_scale : float
        What the posterior's standard deviation is multiplied by.
    cost : float
        Processor time of the fit with its calibration over that of the fit alone.
    """

    problem: str
    seed: int
    kind: str
    coverage: list[float]
    loss: float
    std_scale: float = 1.0
    cost: float = 1.0


def interval_problems(only: Iterable[str] = (), *, quick: bool = False) -> list[Problem]:
    """The regressions of the ledger and Boston, or those that are named."""
    known = [p for p in table_problems() if "regression" in p.kinds] + [Problem("boston", ("regression",), _boston)]
    names = [p.name for p in known]
    wanted = list(only) or (list(_QUICK) if quick else names)
    unknown = [name for name in wanted if name not in names]
    if unknown:
        raise ValueError(f"no problem is called {', '.join(map(repr, unknown))}; choose among {', '.join(names)}")
    return [p for p in known if p.name in wanted]


def _boston(seed: int) -> Case:
    X, y = load("boston_mass", return_X_y=True)
    order = np.random.default_rng(seed).permutation(len(y))
    train, test = order[:_BOSTON_ROWS], order[_BOSTON_ROWS:]
    y = (y - y.mean()) / y.std()
    learned, judged = standardised(X[train], X[test])
    return Case(learned, y[train], judged, y[test], gamma=1.0 / X.shape[1])


def measure(problem: str, seed: int, case: Case, gamma: str | None = None) -> list[Row]:
    """The library's two kinds of error bars on one draw; ``gamma`` says how widths are learned, if they are."""
    model, fitting = timed(lambda: RVR(gamma=gamma or case.gamma or "scale").fit(case.X, case.y))
    scale, calibrating = timed(lambda: float(model.std_scale_))
    rows = []
    for kind in ("calibrated", "posterior"):
        ends = (model.predict_interval(case.X_test, level, kind) for level in LEVELS)
        coverage = [float(np.mean((low <= case.y_test) & (case.y_test <= high))) for low, high in ends]
        loss = -float(np.mean(model.log_density(case.X_test, case.y_test, kind)))
        own = kind == "calibrated"
        cost = (fitting + calibrating) / fitting if own else 1.0
        rows.append(Row(problem, seed, kind, coverage, loss, scale if own else 1.0, cost))
    return rows


def _exact_process(problem: str, seed: int, case: Case) -> Row:
    mean, std, _, _ = gaussian_process(case)
    return _gaussian(problem, seed, "gp", case, mean, std)


def _ngboost(problem: str, seed: int, case: Case) -> Row:
    """Natural gradient boosting of a Gaussian, at its defaults."""
    try:
        from ngboost import NGBRegressor  # pyright: ignore[reportMissingImports]
    except ImportError as error:
        raise NotApplicableError("the package ngboost is not installed") from error
    found = NGBRegressor(verbose=False, random_state=seed).fit(case.X, case.y).pred_dist(case.X_test)
    mean, std = (np.asarray(found.params[name], dtype=np.float64) for name in ("loc", "scale"))
    return _gaussian(problem, seed, "ngboost", case, mean, std)


def _gaussian(problem: str, seed: int, kind: str, case: Case, mean: Array, std: Array) -> Row:
    """Of predictions that are Gaussian."""
    z = np.abs(case.y_test - mean) / std
    coverage = [float(np.mean(z <= norm.ppf(0.5 + 0.5 * level))) for level in LEVELS]
    return Row(problem, seed, kind, coverage, negative_log_density(mean, std, case.y_test))


def _mapie(problem: str, seed: int, case: Case) -> Row:
    """CV+ of MAPIE on this library's model: plain residuals, of one width everywhere."""
    try:
        from mapie.regression import CrossConformalRegressor  # pyright: ignore[reportMissingImports]
    except ImportError as error:
        raise NotApplicableError("the package mapie, 1.0 or later, is not installed") from error
    model = CrossConformalRegressor(
        RVR(gamma=case.gamma or "scale"), confidence_level=list(LEVELS), method="plus", cv=_CONFORMAL_FOLDS
    )
    mean, ends = model.fit_conformalize(case.X, case.y).predict_interval(case.X_test)
    return _between(problem, seed, "mapie", case, np.asarray(mean), np.moveaxis(np.asarray(ends), 2, 0))


def _conformal(problem: str, seed: int, case: Case) -> Row:
    """CV+ of this library: residuals in units of the predicted standard deviation."""
    model = RVR(gamma=case.gamma or "scale").fit(case.X, case.y).calibrate(case.X, case.y, folds=_CONFORMAL_FOLDS)
    ends = [np.column_stack(model.predict_interval(case.X_test, level, "conformal")) for level in LEVELS]
    return _between(problem, seed, "conformal", case, np.asarray(model.predict(case.X_test)), np.array(ends))


def _between(problem: str, seed: int, kind: str, case: Case, mean: Array, ends: Array) -> Row:
    """Of intervals at each level, (L, m, 2); for a density they count as a Gaussian with the 95 % interval's width."""
    coverage = np.mean((ends[:, :, 0] <= case.y_test) & (case.y_test <= ends[:, :, 1]), axis=1)
    std = (ends[-1, :, 1] - ends[-1, :, 0]) / (2.0 * norm.ppf(0.5 + 0.5 * LEVELS[-1]))
    return Row(problem, seed, kind, coverage.tolist(), negative_log_density(mean, std, case.y_test))


RIVALS: dict[str, Callable[[str, int, Case], Row]] = {
    "gp": _exact_process,
    "conformal": _conformal,
    "ngboost": _ngboost,
    "mapie": _mapie,
}


def check(rivals: Iterable[str], gamma: str | None) -> None:
    """Refuse names that nothing here has."""
    unknown = [name for name in rivals if name not in RIVALS]
    if unknown:
        raise ValueError(f"no rival is called {', '.join(map(repr, unknown))}; choose among {', '.join(RIVALS)}")
    if gamma is not None and gamma not in LEARNED:
        raise ValueError(f"--gamma {gamma!r}: expected one of {', '.join(LEARNED)}")


def run(
    problems: list[Problem],
    seeds: list[int],
    rivals: Iterable[str],
    tell: Callable[[str], None],
    gamma: str | None = None,
) -> Iterator[Row]:
    """Rows as they come; what cannot be measured is told and left out."""
    for problem, seed, case in drawn(problems, seeds, tell):
        yield from measure(problem.name, seed, case, gamma)
        for rival in rivals:
            try:
                yield RIVALS[rival](problem.name, seed, case)
            except NotApplicableError as error:
                tell(f"{problem.name}: {error}")


def summary(rows: list[Row]) -> list[Row]:
    """Means over the seeds of every problem and kind, and over the problems at the end; the seed is their number."""
    pairs = list(dict.fromkeys((row.problem, row.kind) for row in rows))
    each = [_mean(name, [row for row in rows if (row.problem, row.kind) == (name, kind)]) for name, kind in pairs]
    kinds = list(dict.fromkeys(row.kind for row in each))
    return each + [_mean("mean", [row for row in each if row.kind == kind]) for kind in kinds]


def _mean(name: str, rows: list[Row]) -> Row:
    mean: Callable[[str], Any] = partial(_mean_of, rows)
    return Row(name, len(rows), rows[0].kind, mean("coverage").tolist(), mean("loss"), mean("std_scale"), mean("cost"))


def _mean_of(rows: list[Row], field: str) -> Any:
    return np.mean([getattr(row, field) for row in rows], axis=0)


def table(rows: list[Row]) -> Table:
    """The means, for a terminal."""
    found = Table(title="intervals of new observations: share inside, and mean negative log density")
    for heading in ("problem", "draws", "kind", *(f"{level:.0%}" for level in LEVELS), "NLPD", "std x", "cost"):
        found.add_column(heading, justify="left" if heading in ("problem", "kind") else "right")
    for row in summary(rows):
        figures = [f"{share:.3f}" for share in row.coverage]
        found.add_row(
            row.problem, str(row.seed), row.kind, *figures, f"{row.loss:.3f}", f"{row.std_scale:.2f}", f"{row.cost:.2f}"
        )
    return found


def as_json(rows: list[Row], **further: list[dict[str, Any]]) -> str:
    """All rows, their means, and what was measured besides, for machines."""
    document = {
        "levels": LEVELS,
        "rows": [asdict(row) for row in rows],
        "means": [asdict(row) for row in summary(rows)],
        **further,
    }
    return json.dumps(document, indent=1)
