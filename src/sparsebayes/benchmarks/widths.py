"""What learning the widths is worth: beside one width as given, a grid of nine, an exact Gaussian process, and trees.

Models of this library are judged by the same measure: the log density of training rows under searches on the other
folds, each at the kernel and the noise of the model in question, with calibrated error bars
(``inference/fit/folds.py``), beside evidence.  All are judged by error and log density on test rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from operator import sub, truediv
from typing import Any

import numpy as np

from sparsebayes.basis import RBF, Basis
from sparsebayes.benchmarks.ledger.cases import Case
from sparsebayes.benchmarks.ledger.measure import log_loss, negative_log_density, timed
from sparsebayes.benchmarks.ledger.problems import choose_problems, drawn
from sparsebayes.benchmarks.ledger.rivals import gaussian_process
from sparsebayes.benchmarks.small import small_problems
from sparsebayes.design import DenseDesign
from sparsebayes.inference.fit.folds import Folds
from sparsebayes.inference.models.problem import GaussianProblem
from sparsebayes.threads import one_thread

PROBLEMS = (
    *("energy", "yacht", "laser", "airfoil", "concrete", "wine_red"),
    *("abalone", "california", "cpu_small", "protein"),
)
LEARNED = ("evidence", "ard", "multiscale")
# Widths of the grid, as multiples of that of gamma="scale".
GRID = tuple(float(factor) for factor in 2.0 ** np.arange(-2.0, 2.5, 0.5))
WAYS = ("ard",)
# What may stand beside one width as given and the ways to learn: the best of the grid, an exact Gaussian process with a
# length for each input, and gradient boosting.
BESIDE = ("grid", "gp", "trees")
# Rows that are left out for the density, where there are more.
_ENOUGH = 1000.0
# Rows that are predicted at once for the time of a prediction.
_PREDICTED = 20_000


@dataclass(frozen=True)
class Figures:
    """One way to choose the widths on one draw.

    Attributes
    ----------
    problem, seed, way : str, int, str
        What was measured; ``"scale"``, a way to learn, ``"best of the grid"``, ``"gp"`` or ``"trees"``.
    evidence, density : float or None
        Log evidence in nats, and mean log density of training rows left out.
    error : float
        Root mean square error on the test rows, or rate of errors.
    loss : float or None
        Mean of -log p of the test targets.
    kept, share : int or None, float or None
        Functions in the model, and that over the number of training rows.
    seconds : float
        Processor time of the fit.
    status : str
        Of the parameters.
    million : float or None
        Processor time of a million predictions.
    """

    problem: str
    seed: int
    way: str
    evidence: float | None
    density: float | None
    error: float
    loss: float | None
    kept: int | None
    share: float | None
    seconds: float
    status: str = ""
    million: float | None = None


def check_ways(ways: Sequence[str], beside: Sequence[str]) -> None:
    """Refuse names that nothing has."""
    for given, known in ((ways, LEARNED), (beside, BESIDE)):
        unknown = [name for name in given if name not in known]
        if unknown:
            raise ValueError(f"nothing is called {', '.join(map(repr, unknown))}; choose among {', '.join(known)}")


def measure_widths(
    only: Iterable[str],
    seeds: Iterable[int],
    ways: Sequence[str],
    tell: Callable[[str], None],
    beside: Sequence[str] = BESIDE,
) -> Iterator[Figures]:
    """All ways on all draws, each as soon as it is measured; data that are not at hand are told of and left out."""
    named = list(only) or PROBLEMS
    small = [problem for problem in small_problems() if problem.name in named]
    others = [name for name in named if name not in {problem.name for problem in small}]
    problems = small + (choose_problems(["regression", "classification"], others) if others else [])
    for problem, seed, case in drawn(problems, list(seeds), tell):
        for way in ("scale", *ways):
            yield (_classes if case.classes else _learned)(problem.name, seed, case, way)
        for name in beside:
            if not case.classes:
                yield _BESIDE[name](problem.name, seed, case)
            elif name == "grid":
                yield _searched_grid(problem.name, seed, case)


def medians(figures: Sequence[Figures]) -> list[Figures]:
    """Of each way on each problem, over the seeds; the seed is then how many there were."""
    groups: dict[tuple[str, str], list[Figures]] = {}
    for one in figures:
        groups.setdefault((one.problem, one.way), []).append(one)
    return [_median(rows) for rows in groups.values()]


_MEASURED = ("evidence", "density", "error", "loss", "kept", "share", "seconds", "million")


def _median(rows: Sequence[Figures]) -> Figures:
    def middle(name: str) -> Any:
        values = [getattr(row, name) for row in rows if getattr(row, name) is not None]
        return float(np.median(values)) if values else None

    figures = {name: middle(name) for name in _MEASURED}
    states = dict.fromkeys(state for row in rows for state in row.status.split())
    return Figures(rows[0].problem, len(rows), rows[0].way, status=" ".join(states), **figures)


def as_rows(figures: Sequence[Figures]) -> list[dict[str, Any]]:
    """For JSON."""
    return [asdict(one) for one in figures]


@dataclass(frozen=True)
class Bar:
    """A figure that a way to learn is held to, the lower the better."""

    problem: str
    way: str
    name: str
    figure: float
    limit: float

    @property
    def met(self) -> bool:
        """Whether the figure is at most the limit."""
        return self.figure <= self.limit


# What is held against which way, by ratio or by difference of the medians, and at most; the last two of classes only.
_BARS: tuple[tuple[str, str, Callable[[float, float], float], float], ...] = (
    ("error", "gp", truediv, 1.15),
    ("error", "trees", truediv, 1.0),
    ("error", "scale", truediv, 1.02),
    ("loss", "gp", sub, 0.05),
    ("seconds", "gp", truediv, 1.0),
    ("seconds", "scale", truediv, 20.0),
    ("million", "gp", truediv, 0.1),
    ("loss", "best of the grid", sub, 0.0),
    ("seconds", "best of the grid", truediv, 1.0),
)
_SHARE = 0.15
# A width that two ways arrive at is the same to so many nats.
_ROUNDING = 1e-6


def bars(figures: Sequence[Figures]) -> list[Bar]:
    """What every way to learn is held to on every problem: its choices on the worst draw, and medians."""
    found, middle = [], {(one.problem, one.way): one for one in medians(figures)}
    for (problem, way), mine in middle.items():
        if way not in LEARNED:
            continue
        found += [
            Bar(problem, way, f"{name} short by", value, _ROUNDING) for name, value in _short(figures, problem, way)
        ]
        found += [Bar(problem, way, "share", mine.share, _SHARE)] if mine.share is not None else []
        for name, beside, compare, limit in _BARS:
            ours, theirs = getattr(mine, name), getattr(middle.get((problem, beside)), name, None)
            searched = beside == "best of the grid" and mine.density is not None
            if ours is not None and theirs is not None and not searched:
                sign = "/" if compare is truediv else "-"
                found.append(Bar(problem, way, f"{name} {sign} {beside}", compare(ours, theirs), limit))
    return found


def _short(figures: Sequence[Figures], problem: str, way: str) -> Iterator[tuple[str, float]]:
    """By how much the choice falls short of one width at most; of evidence where rows left out overruled it, too."""
    rows = {(one.seed, one.way): one for one in figures if one.problem == problem}
    for name in ("density", "evidence"):
        pairs = [
            (getattr(other, name), getattr(one, name))
            for (seed, known), one in rows.items()
            for other in (rows.get((seed, "scale")), rows.get((seed, "best of the grid")))
            if known == way and other is not None and one.density is not None
            if name == "density" or "JUDGED" not in one.status.split()
        ]
        short = [theirs - ours for theirs, ours in pairs if theirs is not None and ours is not None]
        if short:
            yield name, max(short)


def _million(predict: Callable[[Any], Any], rows: Any) -> float:
    """Processor time of a million predictions, from many at once."""
    many = np.resize(np.asarray(rows), (_PREDICTED, rows.shape[1]))
    return 1e6 / _PREDICTED * timed(lambda: predict(many))[1]


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
    return float(np.mean(Folds(problem, fold=by_target, enough=_ENOUGH).calibrated_densities(beta, max(size, 1))))


def _learned(name: str, seed: int, case: Case, way: str, gamma: float | None = None) -> Figures:
    from sparsebayes import RVR

    model, seconds = timed(lambda: RVR(gamma=way if gamma is None else gamma).fit(case.X, case.y))
    variance = float(np.var(case.X))
    width = (case.X.shape[1] * variance) ** 0.5 if gamma is None else gamma**-0.5
    kernel = getattr(model, "kernel_", None) or RBF(width)
    density = left_out_density(case, kernel, 1.0 / model.noise_variance_, len(model.relevance_))
    mean, million = model.predict(case.X_test), _million(model.predict, case.X_test)
    loss = -float(np.mean(model.log_density(case.X_test, case.y_test)))
    evidence, kept = float(model.log_marginal_likelihood_), len(model.relevance_)
    share, states = kept / len(case.y), _states(model)
    return Figures(name, seed, way, evidence, density, case.error(mean), loss, kept, share, seconds, states, million)


def _classes(name: str, seed: int, case: Case, way: str, gamma: float | None = None) -> Figures:
    from sparsebayes import RVC

    model, seconds = timed(lambda: RVC(gamma=way if gamma is None else gamma).fit(case.X, case.y))
    loss = log_loss(model.predict_proba(case.X_test), model.classes_, case.y_test)
    error, kept = case.error(model.predict(case.X_test)), len(model.relevance_)
    evidence, share = float(np.sum(model.log_marginal_likelihood_)), kept / len(case.y)
    return Figures(name, seed, way, evidence, None, error, loss, kept, share, seconds, _states(model))


def _searched_grid(name: str, seed: int, case: Case) -> Figures:
    """One of nine widths of classes by a search with cross-validation, as one would make it by hand."""
    from sklearn.model_selection import GridSearchCV, StratifiedKFold

    from sparsebayes import RVC

    first = 1.0 / (case.X.shape[1] * float(np.var(case.X)))
    widths = {"gamma": [first / factor**2 for factor in GRID]}
    parts = StratifiedKFold(5, shuffle=True, random_state=0)
    search = GridSearchCV(RVC(), widths, scoring="neg_log_loss", cv=parts, refit=False)
    found, seconds = timed(lambda: search.fit(case.X, case.y))
    best = _classes(name, seed, case, "best of the grid", found.best_params_["gamma"])
    return replace(best, density=float(found.best_score_), seconds=seconds + best.seconds)


def _states(model: Any) -> str:
    return " ".join(dict.fromkeys(status.name for status in getattr(model, "kernel_status_", {}).values()))


def _best_of_grid(name: str, seed: int, case: Case) -> Figures:
    """The highest evidence and the highest density of nine widths, each; the error is that of the highest density."""
    first = 1.0 / (case.X.shape[1] * float(np.var(case.X)))
    rows = [_learned(name, seed, case, "grid", first / factor**2) for factor in GRID]
    best = max(rows, key=lambda row: row.density or -np.inf)
    evidence = max(row.evidence for row in rows if row.evidence is not None)
    seconds = sum(row.seconds for row in rows)
    return replace(best, way="best of the grid", evidence=evidence, seconds=seconds)


def _process(name: str, seed: int, case: Case) -> Figures:
    mean, std, fitted, seconds = gaussian_process(case)
    evidence = float(fitted.log_marginal_likelihood_value_) - len(case.y) * float(np.log(np.std(case.y)))
    loss, million = negative_log_density(mean, std, case.y_test), _million(fitted.predict, case.X_test)
    error, n = case.error(mean), len(case.y)
    return Figures(name, seed, "gp", evidence, None, error, loss, n, 1.0, seconds, million=million)


def _trees(name: str, seed: int, case: Case) -> Figures:
    """Gradient boosting at its defaults; its density is that of the spread of its own errors on rows left out."""
    from sklearn.ensemble import HistGradientBoostingRegressor
    from sklearn.model_selection import cross_val_predict

    model = HistGradientBoostingRegressor(random_state=0)
    fitted, seconds = timed(lambda: model.fit(case.X, case.y))
    with one_thread():  # several wait for each other where the machine is busy
        left_out = cross_val_predict(model, case.X, case.y, cv=5)
        mean, spread = fitted.predict(case.X_test), float(np.sqrt(np.mean((left_out - case.y) ** 2)))
    loss = negative_log_density(mean, np.full(len(mean), spread), case.y_test)
    return Figures(name, seed, "trees", None, None, case.error(mean), loss, None, None, seconds)


_BESIDE: dict[str, Callable[[str, int, Case], Figures]] = {
    "grid": _best_of_grid,
    "gp": _process,
    "trees": _trees,
}
