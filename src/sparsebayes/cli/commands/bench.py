"""``sparsebayes bench``: what the library costs beside its rivals, on this machine."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperGroup


class _RowsByDefault(TyperGroup):
    """What is no command of the group is a row, so that ``bench sinc`` needs no further word."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Put the command in front that is meant where none is named."""
        return super().parse_args(ctx, args if args and args[0] in self.commands else ["rows", *args])


group = typer.Typer(cls=_RowsByDefault, rich_markup_mode=None)


@group.callback(help="Measure the library on this machine, beside other libraries and earlier versions.")
def _options() -> None:
    """Take no options of its own."""


@group.command("rows")
def rows_beside_rivals(
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

    Other measurements, each with a help of its own: 'bench ledger' (the search against its earlier states), 'bench
    intervals' (do error bars hold), 'bench classes', 'bench widths' and 'bench large'.
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


def _deliver(document: str, tables: list[Any], out: Path | None, as_json: bool, progress: Any) -> None:
    """Write what was measured where that was asked for, and print it as one JSON object or as tables."""
    from rich.console import Console

    from sparsebayes.atomic import write_atomically

    if out is not None:
        write_atomically(out, document.encode())
    if as_json:
        typer.echo(document)
        return
    console = Console(highlight=False, markup=False, width=None if progress.is_terminal else 140)
    for table in tables:
        console.print(table)


@group.command("intervals")
def intervals(
    only: Annotated[list[str] | None, typer.Option("--only", help="Problems by name.", show_default=False)] = None,
    seeds: Annotated[
        str | None, typer.Option("--seeds", help="Draws, such as 0-4 or 0,3; 0-9, or 0 in a quick run.")
    ] = None,
    quick: Annotated[bool, typer.Option("--quick", help="Three small tables, one draw.")] = False,
    varying: Annotated[bool, typer.Option("--varying", help="Noise that varies, and nothing else.")] = False,
    chances: Annotated[bool, typer.Option("--chances", help="Counts and classes, and nothing else.")] = False,
    rival: Annotated[
        list[str] | None, typer.Option("--rival", help="gp, conformal, ngboost or mapie beside.", show_default=False)
    ] = None,
    gamma: Annotated[
        str | None, typer.Option("--gamma", help="Learn widths: evidence or ard; by default they are given.")
    ] = None,
    out: Annotated[Path | None, typer.Option("--out", "-o", help="JSON file to write as well.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object instead of a table.")] = False,
) -> None:
    """Measure whether error bars hold what they say, on rows that were not learned from.

    \b
    Examples:
      sparsebayes bench intervals --quick
      sparsebayes bench intervals --seeds 0-2 --only concrete --rival gp
      sparsebayes bench intervals --gamma ard --only boston
      sparsebayes bench intervals --varying
      sparsebayes bench intervals --chances --seeds 0

    Shares of the test rows in intervals of 50, 80 and 95 %, the log density, what the posterior's standard deviation is
    multiplied by, and what that costs beside the fit; and, in a full run or alone, noise that varies with the inputs,
    intervals of counts, and the calibration error of probabilities of classes.
    """
    from dataclasses import asdict

    from rich.console import Console

    from sparsebayes.atomic import check_target
    from sparsebayes.benchmarks import chances as others
    from sparsebayes.benchmarks import intervals as bars
    from sparsebayes.benchmarks import varying as noise
    from sparsebayes.benchmarks.ledger.problems import read_seeds

    bars.check(rival or [], gamma)
    part = varying or chances
    everything = not (part or only or quick)
    problems = [] if part else bars.interval_problems(only or (), quick=quick)
    tables = others.problems(only or ()) if chances or everything else []
    draws = read_seeds(seeds or ("0" if quick else "0-9"))
    if out is not None:
        check_target(out)
    progress = Console(stderr=True, highlight=False, markup=False)
    rows = list(bars.run(problems, draws, rival or [], progress.print, gamma))
    checks = list(noise.run(progress.print)) if varying or everything else []
    checks += others.counts() if chances or everything else []
    classes = others.summary(list(others.run(tables, draws, progress.print)))
    if not rows and not checks:
        raise ValueError("nothing could be measured: SPARSEBAYES_DATA must name the folder of the tables")
    judged = [asdict(check) | {"met": check.met} for check in checks]
    document = bars.as_json(rows, checks=judged, classes=[asdict(row) for row in classes])
    shown = [bars.table(rows)] if rows else []
    shown += [noise.table(checks)] if checks else []
    shown += [others.table(classes)] if classes else []
    _deliver(document, shown, out, as_json, progress)


@group.command("large")
def large(
    only: Annotated[list[str] | None, typer.Option("--only", help="Tables by name.", show_default=False)] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print a line of JSON for each fit.")] = False,
) -> None:
    """Measure fits of large real tables at default settings: seconds, memory, error and certificate.

    \b
    Examples:
      sparsebayes bench large
      sparsebayes bench large --only california --only protein

    Every fit runs in a process of its own. SPARSEBAYES_DATA names the folder of the tables.
    """
    import json
    from dataclasses import asdict

    from sparsebayes.benchmarks import large as tables

    unknown = [name for name in only or [] if name not in tables.SIZES]
    if unknown:
        raise ValueError(f"no table is called {', '.join(map(repr, unknown))}; choose among {', '.join(tables.SIZES)}")
    fits = []
    for fit in tables.run_large(only or list(tables.SIZES)):
        fits.append(fit)
        typer.echo(json.dumps(asdict(fit)) if as_json else tables.line(fit))
    if not as_json:
        for name, exponent in tables.growth(fits).items():
            typer.echo(f"{name}: processor seconds grow like the rows to the power {exponent:.2f}")


@group.command("classes")
def classes(
    only: Annotated[list[str] | None, typer.Option("--only", help="Problems by name.", show_default=False)] = None,
    seeds: Annotated[
        str | None, typer.Option("--seeds", help="Draws, such as 0-4 or 0,3; 0-4, or 0 in a quick run.")
    ] = None,
    evidence: Annotated[
        str | None, typer.Option("--evidence", help="What chooses functions: indicators or laplace; auto by default.")
    ] = None,
    quick: Annotated[bool, typer.Option("--quick", help="Three small tables, one draw.")] = False,
    out: Annotated[Path | None, typer.Option("--out", "-o", help="JSON file to write as well.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object instead of a table.")] = False,
) -> None:
    """Measure classifiers on real tables, beside a support vector machine and logistic regression.

    \b
    Examples:
      sparsebayes bench classes --quick
      sparsebayes bench classes --seeds 0-2 --only image --only digits
      sparsebayes bench classes --only image --evidence laplace

    Errors, log losses (of the support vector machine by Platt's method), functions and seconds of processor time.
    """
    from rich.console import Console

    from sparsebayes.atomic import check_target
    from sparsebayes.benchmarks import classes as classifiers
    from sparsebayes.benchmarks.ledger.problems import read_seeds

    problems = classifiers.class_problems(only or (), quick=quick)
    draws = read_seeds(seeds or ("0" if quick else "0-4"))
    if out is not None:
        check_target(out)
    progress = Console(stderr=True, highlight=False, markup=False)
    options = {} if evidence is None else {"evidence": evidence}
    rows = list(classifiers.run(problems, draws, progress.print, **options))
    if not rows:
        raise ValueError("nothing could be measured: SPARSEBAYES_DATA must name the folder of the tables")
    _deliver(classifiers.as_json(rows), [classifiers.table(rows)], out, as_json, progress)


@group.command("ledger")
def ledger(
    kind: Annotated[
        list[str] | None,
        typer.Option("--kind", help="regression, classification or papers; all by default.", show_default=False),
    ] = None,
    only: Annotated[list[str] | None, typer.Option("--only", help="Problems by name.", show_default=False)] = None,
    seeds: Annotated[str, typer.Option("--seeds", help="Draws, such as 0-4 or 0,3.")] = "0-1",
    limit: Annotated[float, typer.Option("--limit", min=1.0, help="Seconds of processor time of a fit.")] = 120.0,
    options: Annotated[
        list[str] | None,
        typer.Option("--options", metavar="NAME=VALUE", help="Parameters of the estimators.", show_default=False),
    ] = None,
    rival: Annotated[
        list[str] | None, typer.Option("--rival", help="fastrvm, svr or gp beside.", show_default=False)
    ] = None,
    record: Annotated[Path | None, typer.Option("--record", help="JSON file to write.")] = None,
    resume: Annotated[
        bool, typer.Option("--resume", help="Keep the rows that the record has, and measure the others.")
    ] = False,
    note: Annotated[str, typer.Option("--note", help="What a reader of the record should know.")] = "",
    against: Annotated[Path | None, typer.Option("--against", help="Earlier record to compare with.")] = None,
    source: Annotated[
        Path | None, typer.Option("--from", help="Take the rows from this record and measure nothing.")
    ] = None,
    page: Annotated[Path | None, typer.Option("--page", help="Page to make of all records.")] = None,
    ablate: Annotated[
        Path | None, typer.Option("--ablate", help="Page to make of what each policy and constant is worth.")
    ] = None,
    records: Annotated[Path, typer.Option("--records", help="Folder of the records of the page.")] = Path(
        "benchmarks", "ledger"
    ),
) -> None:
    """Measure the search on fixed problems, and hold it against an earlier record.

    \b
    Examples:
      sparsebayes bench ledger --kind regression
      sparsebayes bench ledger --only yacht --options gamma=ard --rival fastrvm
      sparsebayes bench ledger --record benchmarks/ledger/0.2.json --note "one loop"
      sparsebayes bench ledger --against benchmarks/ledger/0.1.json
      sparsebayes bench ledger --page docs/ledger.md
      sparsebayes bench ledger --ablate docs/ablation.md --only energy --only yacht --seeds 0

    Every fit runs in a process of its own, which is ended at its limit. Data that are not at hand are reported. The
    whole takes the better part of an hour. A page alone is made without measuring.
    """
    from sparsebayes.cli.ledger import Wanted, keep_ledger

    keep_ledger(
        Wanted(
            kinds=kind or [],
            only=only or [],
            seeds=seeds,
            limit=limit,
            options=options or [],
            rivals=rival or [],
            record=record,
            resume=resume,
            note=note,
            against=against,
            source=source,
            page=page,
            ablate=ablate,
            records=records,
        )
    )


@group.command("widths")
def widths(
    only: Annotated[
        list[str] | None, typer.Option("--only", "--problem", help="Problems by name.", show_default=False)
    ] = None,
    seeds: Annotated[str, typer.Option("--seeds", "--seed", help="Draws, such as 0-4 or 0,3.")] = "0-4",
    way: Annotated[
        list[str] | None, typer.Option("--way", help="evidence, ard or multiscale; ard by default.", show_default=False)
    ] = None,
    beside: Annotated[
        list[str] | None,
        typer.Option("--beside", help="grid, gp or trees; all by default, nothing by none.", show_default=False),
    ] = None,
    out: Annotated[Path | None, typer.Option("--out", "-o", help="JSON file to write as well.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object instead of a table.")] = False,
) -> None:
    """Measure what learning the widths is worth beside one width, a grid of nine, an exact Gaussian process and trees.

    \b
    Examples:
      sparsebayes bench widths --problem yacht --seed 0
      sparsebayes bench widths --problem protein --seeds 0-2 --beside gp --out protein.json
      sparsebayes bench widths --way ard --way multiscale --json
      sparsebayes bench widths --problem banana --problem german --beside none

    The density is that of training rows left out, by searches on the other folds. Of several draws the medians are
    shown, and the rows themselves are in the JSON. A second table holds the ways to learn against the others. Data that
    are not at hand are reported. The whole takes some hours, nearly all of them for the Gaussian process on 3,000 rows.
    """
    import json
    from dataclasses import asdict

    from rich.console import Console
    from rich.table import Table

    from sparsebayes.atomic import check_target, write_atomically
    from sparsebayes.benchmarks import widths as bench
    from sparsebayes.benchmarks.ledger.problems import read_seeds

    others = bench.BESIDE if beside is None else [name for name in beside if name != "none"]
    ways, draws = way or bench.WAYS, read_seeds(seeds)
    bench.check_ways(ways, others)
    if out is not None:
        check_target(out)
    progress = Console(stderr=True, highlight=False, markup=False)
    found = []
    for one in bench.measure_widths(only or (), draws, ways, progress.print, others):
        found.append(one)
        progress.print(f"  {one.way}: error {one.error:.4g}, {one.seconds:.1f} s")
    held = [asdict(bar) | {"met": bar.met} for bar in bench.bars(found)]
    figures = {"rows": bench.as_rows(found), "medians": bench.as_rows(bench.medians(found)), "bars": held}
    document = json.dumps(figures, indent=1)
    if out is not None:
        write_atomically(out, document.encode())
    if as_json:
        typer.echo(document)
        return
    rows = bench.as_rows(bench.medians(found) if len(draws) > 1 else found)
    console = Console(highlight=False, markup=False, width=None if progress.is_terminal else 160)
    for shown in (rows, held):
        table = Table(*(shown[0] if shown else ["problem"]))
        for row in shown:
            table.add_row(*(f"{v:.4g}" if isinstance(v, float) else "" if v is None else str(v) for v in row.values()))
        console.print(table)
