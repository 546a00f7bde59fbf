"""``sparsebayes bench``: what the library costs beside its rivals, on this machine."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def command(
    rows: Annotated[
        list[str] | None, typer.Argument(metavar="[ROW]...", help="Rows to run; all by default.", show_default=False)
    ] = None,
    quick: Annotated[bool, typer.Option("--quick", help="Small sizes; ends within two minutes.")] = False,
    repeats: Annotated[
        int | None, typer.Option("--repeats", min=1, help="Rounds of each row; 5, or 3 in a quick run.")
    ] = None,
    out: Annotated[Path | None, typer.Option("--out", "-o", help="JSON file to write as well.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object instead of a table.")] = False,
) -> None:
    """Measure fits, predictions and memory beside other libraries; every figure is a ratio of the same run.

    \b
    Examples:
      sparsebayes bench --quick
      sparsebayes bench sinc ripley --out results.json
      sparsebayes bench --json > results.json
      sparsebayes bench variables --quick

    Contestants run in turn, so that all see the same machine; medians count. A rival that is not installed is reported
    as not run. All rows together take the better part of an hour.
    """
    from rich.console import Console

    from sparsebayes.atomic import check_target
    from sparsebayes.benchmarks import run

    names = run.choose_rows(rows, quick=quick)
    if out is not None:
        check_target(out)
    progress = Console(stderr=True, highlight=False, markup=False)
    results = run.run_rows(names, quick=quick, repeats=repeats, tell=progress.print)
    if out is not None:
        run.write(results, out)
    if as_json:
        typer.echo(run.as_json(results))
    else:
        run.show(results, Console(highlight=False, markup=False, width=None if progress.is_terminal else 160))
