"""The rows of the table: what is compared with what, and what it has to reach."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from sparsebayes.benchmarks.contestants import (
    AutomaticRelevance,
    Contestant,
    FastRVM,
    GaussianProcess,
    Lasso,
    Nothing,
    Ours,
    SklearnRVM,
    SupportVectors,
    TunedSupportVectors,
    compete,
)
from sparsebayes.benchmarks.measure import Check, Effort, Outcome, Row, interleave
from sparsebayes.benchmarks.problems import Problem, ripley, sinc2d, spikes

# Largest ratio of our time to a single fit of a support vector machine, by the number of rows.
_SINC = {1000: 1.5, 2000: 1.0, 4000: 1.0, 10_000: 0.5, 16_000: 0.5}
_RIPLEY = {1000: 3.0, 4000: 1.0, 20_000: 0.3}
_GIGABYTE = 2.0**30
_IMPORTS = {"nothing": "pass", "scikit-learn": "import sklearn.linear_model", "sparsebayes": "import sparsebayes"}


@dataclass(frozen=True)
class Plan:
    """How a run is made.

    Attributes
    ----------
    effort : Effort
        Repeats of a row.
    quick : bool
        Small sizes only.
    """

    effort: Effort
    quick: bool = False

    def sizes(self, limits: dict[int, float]) -> dict[int, float]:
        """Numbers of rows with their limits; the smallest alone in a quick run."""
        return {n: limit for n, limit in limits.items() if not self.quick or n <= 2000}


def against_support_vectors(plan: Plan) -> list[Row]:
    """Single fits of the 2-D sinc against SVR."""
    rows = []
    for n, limit in plan.sizes(_SINC).items():
        outcomes, notes = compete(sinc2d(n), [Ours(), SupportVectors(), Nothing()], plan.effort)
        rows.append(Row(f"2-D sinc, N = {n}, against SVR", outcomes, _better(outcomes, limit, 10.0), notes))
    return rows


def against_support_vector_classifier(plan: Plan) -> list[Row]:
    """Single fits of Ripley's mixture against SVC."""
    rows = []
    for n, limit in plan.sizes(_RIPLEY).items():
        outcomes, notes = compete(ripley(n), [Ours(), SupportVectors(), Nothing()], plan.effort)
        rows.append(Row(f"Ripley's mixture, N = {n}, against SVC", outcomes, _better(outcomes, limit, 50.0), notes))
    return rows


def against_cross_validation(plan: Plan) -> list[Row]:
    """Against support vector machines with the search over their penalties."""
    return [
        _against(f"{problem.name}, against cross-validation over C", problem, TunedSupportVectors(), 0.05, plan)
        for problem in (sinc2d(1000), ripley(1000))
    ]


def growth(plan: Plan) -> list[Row]:
    """Time from 4,000 rows to 16 times as many."""
    small, large = (500, 8000) if plan.quick else (4000, 64_000)
    ours = Ours()
    works = {f"N = {n}": ours.run(sinc2d(n)) for n in (small, large)}
    timed = interleave(works, plan.effort)
    outcomes = [ours.outcome(sinc2d(n), timed[f"N = {n}"]) for n in (small, large)]
    outcomes = [replace(o, name=f"sparsebayes, {name}") for o, name in zip(outcomes, works, strict=True)]
    grown = outcomes[1].median / outcomes[0].median
    return [Row(f"2-D sinc, from N = {small} to {large}", outcomes, [Check("growth of the time", grown, 25.0)])]


def sparse_linear(plan: Plan) -> list[Row]:
    """Automatic relevance determination for a random matrix, against ARDRegression and LassoCV."""
    problem = spikes(200, 600, 20) if plan.quick else spikes(1000, 5000, 100)
    contestants: list[Contestant] = [Ours(), AutomaticRelevance(), Lasso(), Nothing()]
    outcomes, notes = compete(problem, contestants, plan.effort)
    ours, ard, lasso = outcomes[:3]
    checks = [
        Check("times faster than ARDRegression", ard.median / ours.median, 20.0, at_least=True),
        Check("time / LassoCV", ours.median / lasso.median, 1.0),
    ]
    return [Row(problem.name, outcomes, checks, notes)]


def other_rivals(plan: Plan) -> list[Row]:
    """Other packages for the same models, and the Gaussian process, which keeps all rows."""
    contestants: list[Contestant] = [Ours(), FastRVM(), SklearnRVM(), GaussianProcess(), Nothing()]
    size = 300 if plan.quick else 1000
    rows = []
    for problem in (sinc2d(size), ripley(size)):
        usable = [c for c in contestants if not (problem.classes and isinstance(c, GaussianProcess))]
        outcomes, notes = compete(problem, usable, plan.effort)
        ratios = [Check(f"time / {o.name}", outcomes[0].median / o.median, np.inf) for o in outcomes[1:-1]]
        rows.append(Row(f"{problem.name}, against other packages", outcomes, ratios, notes))
    return rows


def compression(plan: Plan) -> list[Row]:
    """The same search with and without compression, both evidences computed without it."""
    from sparsebayes import Sequential

    rows = []
    for n in (1000,) if plan.quick else (1000, 2000, 4000):
        problem, solver = sinc2d(n), Sequential(batch=1)
        on, off = Ours("on", solver=solver), Ours("off", solver=solver, compression=False)
        timed = interleave({"on": on.run(problem), "off": off.run(problem)}, plan.effort)
        outcomes = [on.outcome(problem, timed["on"]), off.outcome(problem, timed["off"])]
        with_, without = timed["on"].value, timed["off"].value
        gained = with_.log_marginal_likelihood_ - without.log_marginal_likelihood_
        checks = [
            Check("|difference of log evidence| per kept function", abs(gained) / max(1, len(with_.relevance_)), 0.01),
            Check("time on / off", outcomes[0].median / outcomes[1].median, np.inf),
        ]
        rows.append(Row(f"compression on and off, N = {n}", outcomes, checks, [f"log evidence on - off: {gained:.4g}"]))
    return rows


def importing(plan: Plan) -> list[Row]:
    """``import sparsebayes`` against scikit-learn's linear models, each in a process of its own."""
    works = {name: _process(code) for name, code in _IMPORTS.items()}
    timed = interleave(works, plan.effort)
    outcomes = [Outcome(name, timed[name].seconds) for name in ("sparsebayes", "scikit-learn", "nothing")]
    ours, reference, nothing = (outcome.median for outcome in outcomes)
    ratio = (ours - nothing) / (reference - nothing)
    return [Row("import", outcomes, [Check("time / import sklearn.linear_model", ratio, 1.2)])]


def predicting(plan: Plan) -> list[Row]:
    """Predictions for many rows with 40 functions, against the bare expression in NumPy."""
    from sparsebayes import SparseBayesRegressor
    from sparsebayes.basis import RBF

    n, width = (200_000 if plan.quick else 1_000_000), 2.5
    rng = np.random.default_rng(0)
    centres, weights = rng.uniform(-10.0, 10.0, (40, 2)), rng.standard_normal(40)
    X, Z = rng.uniform(-10.0, 10.0, (400, 2)), rng.uniform(-10.0, 10.0, (n, 2))
    y = np.exp(-np.square(X[:, None] - centres).sum(axis=2) / width**2) @ weights
    model = SparseBayesRegressor(RBF(width, centres), noise_variance=1e-6).fit(X, y)
    kept, coef, intercept = model.relevance_vectors_, model.coef_, model.intercept_

    def bare() -> Any:
        squares = np.square(Z).sum(axis=1)[:, None] + np.square(kept).sum(axis=1) - 2.0 * Z @ kept.T
        return np.exp(-squares / width**2) @ coef + intercept

    timed = interleave({"sparsebayes": lambda: model.predict(Z), "NumPy": bare}, plan.effort)
    apart = float(np.max(np.abs(timed["sparsebayes"].value - timed["NumPy"].value)))
    outcomes = [Outcome(name, found.seconds, vectors=len(kept)) for name, found in timed.items()]
    ratio = outcomes[0].median / outcomes[1].median
    return [Row(f"predicting {n} rows", outcomes, [Check("time / NumPy", ratio, 2.0), Check("apart", apart, 1e-6)])]


def million(plan: Plan) -> list[Row]:
    """One million points in memory, in a process of its own, so that its memory can be told."""
    n = 100_000 if plan.quick else 1_000_000
    found = _child("memory", n)
    outcome = Outcome("sparsebayes", [found["seconds"]], found["error"], found["vectors"], found["status"])
    checks = [
        Check("seconds", found["seconds"], 60.0),
        Check("peak memory, GB", found["peak"] / _GIGABYTE, 6.0),
        Check("RMSE", found["error"], 0.002 if n == 1_000_000 else np.inf),
    ]
    return [Row(f"2-D sinc, {n} points in memory", [outcome], checks)]


def on_disk(plan: Plan) -> list[Row]:
    """Rows that stay in a file: memory-mapped, and Parquet; each in a process of its own."""
    n = 100_000 if plan.quick else 1_000_000
    reference = _child("columns", n)
    rows = []
    for kind in ("memmap", "parquet"):
        found = _child(kind, n)
        if "absent" in found:
            rows.append(Row(f"{n} x 10 from {kind}", [], [], [f"not run, {found['absent']}"]))
            continue
        outcome = Outcome("sparsebayes", [found["seconds"]], found["error"], found["vectors"], found["status"])
        checks = [
            Check("peak memory over the interpreter's, GB", (found["peak"] - found["own"]) / _GIGABYTE, 2.0),
            Check("same support as in memory", float(found["support"] == reference["support"]), 1.0, at_least=True),
        ]
        rows.append(Row(f"{n} x 10 from {kind}", [outcome], checks))
    return rows


def streaming(plan: Plan) -> list[Row]:
    """A file of many rows by ``partial_fit``, block by block, beside the fit of all rows in memory."""
    n = 100_000 if plan.quick else 10_000_000
    found, reference = _child("stream", n), _child("columns", n)
    outcome = Outcome("sparsebayes", [found["seconds"]], found["error"], found["vectors"], found["status"])
    apart = float(np.max(np.abs(np.subtract(found["predicted"], reference["predicted"]))))
    checks = [
        Check("peak memory over the interpreter's, GB", (found["peak"] - found["own"]) / _GIGABYTE, 0.1),
        Check("same support as in memory", float(found["support"] == reference["support"]), 1.0, at_least=True),
        Check("apart from the fit of the whole", apart, 1e-6),
    ]
    return [Row(f"{n} x 10 by partial_fit", [outcome], checks)]


ROWS: dict[str, Callable[[Plan], list[Row]]] = {
    "import": importing,
    "predict": predicting,
    "sinc": against_support_vectors,
    "ripley": against_support_vector_classifier,
    "compression": compression,
    "linear": sparse_linear,
    "disk": on_disk,
    "stream": streaming,
    "tuned": against_cross_validation,
    "rivals": other_rivals,
    "growth": growth,
    "million": million,
}


def _better(outcomes: list[Outcome], time_limit: float, fewer: float) -> list[Check]:
    """Faster, no less accurate, and with far fewer vectors than the rival."""
    ours, rival = outcomes[:2]
    return [
        Check(f"time / {rival.name}", ours.median / rival.median, time_limit),
        Check(f"error / {rival.name}", (ours.error or 0.0) / (rival.error or np.nan), 1.0),
        Check("times fewer vectors", (rival.vectors or 0) / max(1, ours.vectors or 0), fewer, at_least=True),
    ]


def _against(name: str, problem: Problem, rival: Contestant, limit: float, plan: Plan) -> Row:
    effort = replace(plan.effort, repeats=1) if plan.quick else plan.effort
    outcomes, notes = compete(problem, [Ours(), rival, Nothing()], effort)
    return Row(name, outcomes, [Check("time / rival", outcomes[0].median / outcomes[1].median, limit)], notes)


def _process(code: str) -> Callable[[], Any]:
    return lambda: subprocess.run([sys.executable, "-c", code], check=True)


def _child(kind: str, n: int) -> dict[str, Any]:
    """Run one measurement in a process of its own."""
    command = [sys.executable, "-m", "sparsebayes.benchmarks.child", kind, str(n)]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    return json.loads(done.stdout.splitlines()[-1])
