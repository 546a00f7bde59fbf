"""A run of the benchmarks: rows as they come, then the table, and a file for machines."""

from __future__ import annotations

import json
import math
import time
from collections.abc import Callable, Iterable
from dataclasses import asdict
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from sparsebayes.atomic import write_atomically
from sparsebayes.benchmarks.measure import Effort, Row
from sparsebayes.benchmarks.rows import ROWS, Plan
from sparsebayes.benchmarks.variables import VARIABLES
from sparsebayes.machine import describe_machine

# A quick run begins no further row after this time, and gives each this many seconds.
_QUICK_SECONDS = 75.0
_QUICK_EFFORT = Effort(repeats=3, seconds=6.0)
# What a quick run is made of: rows that say something at sizes that take seconds.
_QUICK = ("import", "predict", "sinc", "ripley", "compression", "linear", "disk", "rivals", "growth")

# Rows that are run only where their group, or one of them, is asked for.
GROUPS: dict[str, dict[str, Callable[[Plan], list[Row]]]] = {"variables": VARIABLES}


def _all() -> dict[str, Callable[[Plan], list[Row]]]:
    """Every row that can be asked for by its name."""
    return ROWS | {name: row for group in GROUPS.values() for name, row in group.items()}


def choose_rows(only: Iterable[str] | None, *, quick: bool) -> list[str]:
    """Names of the rows to run; a name that is none is refused."""
    asked = list(only or (_QUICK if quick else ROWS))
    names = [name for some in asked for name in GROUPS.get(some, {some: None})]
    unknown = [name for name in names if name not in _all()]
    if unknown:
        known = ", ".join([*ROWS, *GROUPS])
        raise ValueError(f"no row is called {', '.join(map(repr, unknown))}; choose among {known}")
    return names


def run_rows(
    names: list[str], *, quick: bool, repeats: int | None, tell: Callable[[str], None] = lambda text: None
) -> dict[str, Any]:
    """Run rows and return all that was measured, with the machine that it was measured on."""
    effort = _QUICK_EFFORT if quick else Effort()
    plan = Plan(effort if repeats is None else Effort(repeats, effort.seconds), quick)
    began = time.perf_counter()
    machine, rows, left_out = describe_machine(), list[Row](), list[str]()
    for name in names:
        if quick and time.perf_counter() - began > _QUICK_SECONDS:
            left_out.append(name)
            continue
        tell(f"{name} ...")
        rows.extend(_all()[name](plan))
    return {
        "machine": machine,
        "quick": quick,
        "seconds": time.perf_counter() - began,
        "rows": rows,
        "left_out": left_out,
    }


def show(results: dict[str, Any], console: Console) -> None:
    """Print what was measured as a table."""
    table = Table(title="sparsebayes and its rivals: medians of interleaved repeats")
    for heading in ("row", "contestant", "seconds", "error", "vectors", "status", "figures"):
        table.add_column(heading, overflow="fold")
    for row in results["rows"]:
        figures = [*(_figure(check) for check in row.checks), *row.notes]
        for place, outcome in enumerate(row.outcomes):
            table.add_row(
                row.name if place == 0 else "",
                outcome.name,
                f"{outcome.median:.3g}",
                "" if outcome.error is None else f"{outcome.error:.4g}",
                "" if outcome.vectors is None else str(outcome.vectors),
                outcome.status,
                "\n".join(figures) if place == 0 else "",
            )
        if not row.outcomes:
            table.add_row(row.name, "", "", "", "", "", "\n".join(figures))
        table.add_section()
    console.print(table)
    machine = results["machine"]
    packages = ", ".join(f"{name} {number}" for name, number in machine["packages"].items() if number)
    console.print(f"{machine['processor']}, {machine['cores']} cores, load {machine['load']}, {machine['system']}")
    console.print(f"Python {machine['python']}, {packages}, {', '.join(machine['blas'])}")
    if results["left_out"]:
        console.print(f"left out for want of time: {', '.join(results['left_out'])}")


def as_json(results: dict[str, Any]) -> str:
    """What was measured, for machines."""
    rows = [
        {
            **asdict(row),
            "passed": row.passed,
            "outcomes": [asdict(outcome) | {"median": outcome.median} for outcome in row.outcomes],
            "checks": [asdict(c) | {"passed": c.passed, "limit": _finite(c.limit)} for c in row.checks],
        }
        for row in results["rows"]
    ]
    return json.dumps({**results, "rows": rows}, indent=1)


def write(results: dict[str, Any], path: Path) -> None:
    """Write the file for machines."""
    write_atomically(path, as_json(results).encode())


def _figure(check: Any) -> str:
    if not math.isfinite(check.limit):
        return f"{check.what}: {check.value:.3g}"
    sign = ">=" if check.at_least else "<="
    return f"{check.what}: {check.value:.3g} ({sign} {check.limit:g}: {'yes' if check.passed else 'NO'})"


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None
