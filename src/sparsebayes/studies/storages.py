"""The page of what goes with what, made from the declarations that every fit is checked against.

    python -m sparsebayes.studies.storages --page docs/storages.md

``tests/equivalence/test_matrix.py`` compares every cell with what a fit does.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from sparsebayes import RVC, RVR, SparseBayesClassifier, SparseBayesRegressor
from sparsebayes.basis import RBF, Basis, Bias, Heaviside, Polynomial
from sparsebayes.estimators.checks import (
    STORAGES,
    Ask,
    Storage,
    asks_of_classification,
    asks_of_regression,
    asks_of_solver,
    classes_that_share,
    likelihood_asks,
)
from sparsebayes.inference import SOLVERS, Sequential
from sparsebayes.inference.solvers.solver import Kind, Need

_HEAD = """# What goes with what

Every solver, likelihood and option either works for all the kinds of `X` below and gives the same model as the same
rows in memory, or is refused before anything is computed. The error names the parameter and says what to do instead.

In the tables **yes** means that it works, a number that it is refused for the reason with that number at the end of
the page, and — that the solver does not take this likelihood.

Four things differ from one kind to another:

- With many rows not every row has a candidate function, and which ones have depends on where the rows are: beyond 2,000
  rows on Dask, and beyond 3,000 in memory where the kernel does not compress ([many rows](scale.md)).
- Error bars are calibrated on rows left out only where single rows are at hand: with chunks, Dask, devices and the
  columns of a memory-mapped array `std_scale_` is 1 ([trust](trust.md)).
- Where the functions of a regression use up more than a tenth of the rows, its noise is checked on rows left out.
  Chunks, partitions and memory-mapped arrays without kernels on the rows have only sums over rows: a row with a weight
  of three is three rows there, and a start is accepted up to a quarter of the rows: the model may be
  another one.
- `checkpoint` is for searches that take long. Where a classifier's functions come from a regression on the classes
  (several classes that share functions, `evidence="indicators"`) it is refused everywhere.

Solvers declare which likelihoods they take and what they need of the rows (`Solver.takes`, `Solver.needs`), storages
what they cannot give (`estimators/checks.py`). This page is made from these declarations by `python -m
sparsebayes.studies.storages --page docs/storages.md`, and `tests/equivalence/test_matrix.py` checks that fits keep to
them.
"""


def page() -> str:
    """The page as Markdown."""
    reasons: list[str] = []

    def cell(storage: Storage, asks: list[Ask]) -> str:
        for ask in asks:
            if ask.need in storage.lacks:
                reason = f"{ask.why or ask.need.value}, and {storage.lacks[ask.need]}: {storage.instead}"
                if reason not in reasons:
                    reasons.append(reason)
                return str(reasons.index(reason) + 1)
        return "yes"

    def table(first: str, rows: list[tuple[str, list[Ask] | None]]) -> list[str]:
        lines = [f"| {first} | " + " | ".join(storage.name for storage in STORAGES) + " |"]
        lines.append("|---" * (len(STORAGES) + 1) + "|")
        for name, asks in rows:
            cells = ["—" if asks is None else cell(storage, asks) for storage in STORAGES]
            lines.append(f"| {name} | " + " | ".join(cells) + " |")
        return lines

    sections = [
        _HEAD,
        "## Estimators\n",
        *table("functions", _estimators()),
        "\n## Solvers and likelihoods\n",
        *table("solver, likelihood", _solvers()),
        "\n## Options\n",
        *table("option", _options()),
        "\n## Reasons\n",
        *(f"{k}. {reason}." for k, reason in enumerate(reasons, 1)),
    ]
    return "\n".join(sections) + "\n"


def _estimators() -> list[tuple[str, list[Ask] | None]]:
    solver, fixed = Sequential(), RBF(1.0, centres=[[0.0]])

    def regressor(basis: Basis) -> list[Ask]:
        return asks_of_regression(SparseBayesRegressor(basis), solver)

    return [
        ("`RVR`: a kernel on every row", asks_of_regression(RVR(), solver)),
        ("`SparseBayesRegressor()`: the columns of X", asks_of_regression(SparseBayesRegressor(), solver)),
        ("`SparseBayesRegressor(basis)`", regressor(Bias() + fixed)),
        ("`SparseBayesRegressor(RBF(1.0))`: a kernel on every row", regressor(RBF(1.0))),
        ("`SparseBayesRegressor(RBF(1.0, centres=100))`", regressor(RBF(1.0, centres=100))),
        ("`SparseBayesRegressor(Polynomial(2))`, `Precomputed()`", regressor(Polynomial(2))),
        ("`SparseBayesRegressor(Heaviside())`, `Gabor()`", regressor(Heaviside())),
        ("`RVC`: a kernel on every row", asks_of_classification(RVC(), solver)),
        ("`SparseBayesClassifier()`", asks_of_classification(SparseBayesClassifier(), solver)),
        ("`SparseBayesClassifier(basis)`", asks_of_classification(SparseBayesClassifier(fixed), solver)),
    ]


def _solvers() -> list[tuple[str, list[Ask] | None]]:
    rows: list[tuple[str, list[Ask] | None]] = []
    for name, kind in SOLVERS.items():
        solver = kind()
        for likelihood in Kind:
            asks = likelihood_asks(likelihood) + asks_of_solver(solver, likelihood, centred=False)
            rows.append((f"`{name}`, {likelihood.value}", asks if likelihood in kind.takes else None))
        if Need.ROWS in solver.needs(Kind.GAUSSIAN, centred=True):
            asks = asks_of_solver(solver, Kind.GAUSSIAN, centred=True)
            rows.append((f"`{name}`, gaussian, functions centred on rows", asks))
    return rows


def _options() -> list[tuple[str, list[Ask] | None]]:
    exchange, made = Sequential(exchange="converged"), Sequential(split_merge=True)
    several = asks_of_solver(Sequential(), Kind.SOFTMAX, centred=False)
    needs = {
        "`sample_weight`, `class_weight`": Need.WEIGHTS,
        "weights of zero": Need.LEFT_OUT,
        '`gamma="evidence"`, `"ard"`': Need.WIDTHS,
        "several targets": Need.TARGETS,
        "`n_restarts`": Need.RESTARTS,
        "`checkpoint`, regression": Need.CHECKPOINT,
        "`device`": Need.DEVICE,
    }
    return [
        ("several classes jointly, `shared_support=True` (the default)", [*several, classes_that_share(3)]),
        ("several classes jointly, `shared_support=False`", several),
        ('`noise="varies"`', asks_of_regression(SparseBayesRegressor(noise="varies"), Sequential())),
        ("`Sequential(exchange=…)`, regression", asks_of_solver(exchange, Kind.GAUSSIAN, centred=False)),
        ("`Sequential(exchange=…)`, classification", asks_of_solver(exchange, Kind.LOGISTIC, centred=False)),
        ("`Sequential(split_merge=True)`, `candidates=…`", asks_of_solver(made, Kind.GAUSSIAN, centred=False)),
        ('`support="conservative"`, `noise_variance`, `fit_intercept`', []),
        *((name, [Ask(name, need, "")]) for name, need in needs.items()),
        ("`checkpoint`, classification", [Ask("", need, "") for need in (Need.PASSES, Need.STEPS)]),
    ]


def main() -> None:
    """Print the page, or write it."""
    parser = argparse.ArgumentParser(description="the page of what goes with what")
    parser.add_argument("--page", type=Path, help="file to write; standard output by default")
    path = parser.parse_args().page
    if path is None:
        print(page(), end="")
    else:
        path.write_text(page(), encoding="utf-8")


if __name__ == "__main__":
    main()
