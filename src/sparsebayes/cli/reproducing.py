"""What ``reproduce`` does, once its options are read."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import typer
from rich.console import Console
from rich.table import Table

from sparsebayes.atomic import check_target
from sparsebayes.cli.exits import NOT_REPRODUCED
from sparsebayes.studies.framework import Outcome, Study, Verdict
from sparsebayes.studies.page import UNEXPLAINED, figure_text, write_page
from sparsebayes.studies.registry import all_studies, choose
from sparsebayes.studies.reproduction import as_json as text_of
from sparsebayes.studies.reproduction import record, run_study, write

_STYLES = {Verdict.WORSE: "bold red", Verdict.TOLERATED: "yellow", Verdict.BETTER: "green", Verdict.MET: "green"}
# Width of tables where there is no terminal to ask.
_WIDTH = 150


def list_studies(*, as_json: bool) -> None:
    """Print the name of every study, its paper, and its figure or table."""
    studies = all_studies().values()
    if as_json:
        fields = ("name", "paper", "what", "caption", "left_out")
        typer.echo(text_of([{field: getattr(study, field) for field in fields} for study in studies]))
        return
    table = Table(title="Studies: sparsebayes reproduce NAME")
    for heading in ("name", "paper", "figure or table", "shows"):
        table.add_column(heading, overflow="fold", no_wrap=heading == "name")
    for study in studies:
        table.add_row(study.name, study.paper, study.what, study.caption)
    _console().print(table)


def reproduce(names: list[str], *, quick: bool, out: Path, page: Path | None, as_json: bool) -> None:
    """Run studies, print and write what they found, and write a page of all that the folder holds.

    Parameters
    ----------
    names : list of str
        Studies; ``all`` is every one.
    quick : bool
        Measure less.
    out : Path
        Folder for JSON and pictures.
    page : Path or None
        Page to write from the folder's JSON.
    as_json : bool
        Print for machines.
    """
    if not names and page is None:
        raise ValueError("name a study, or 'all'; sparsebayes reproduce --list shows them")
    studies = choose(names)
    if page is not None:
        check_target(page)
    if studies:
        out.mkdir(parents=True, exist_ok=True)
    progress = Console(stderr=True, highlight=False, markup=False)
    records, acceptable = [], True
    for study in studies:
        if sys.stderr.isatty():
            progress.print(f"{study.name} ...")
        outcome = run_study(study, quick)
        trouble = write(study, outcome, quick, out)
        acceptable &= outcome.acceptable
        if as_json:
            records.append(record(study, outcome, quick))
        else:
            show(study, outcome, quick, trouble)
    _finish(records, studies, page, out, as_json)
    if not acceptable:
        raise typer.Exit(NOT_REPRODUCED)


def show(study: Study, outcome: Outcome, quick: bool, trouble: str = "") -> None:
    """Print what a study found."""
    console = _console()
    title = f"{study.name}: {study.paper}, {study.what}"
    if outcome.skipped or outcome.failed:
        console.print(f"{title}\n  {'not run' if outcome.skipped else 'FAILED'}: {outcome.skipped or outcome.failed}\n")
        return
    table = Table(title=f"{title} ({outcome.seconds:.0f} s)", title_justify="left")
    for heading in ("quantity", "paper", "ours", "verdict", "remarks"):
        table.add_column(heading, overflow="fold", justify="right" if heading in ("paper", "ours") else "left")
    for row in outcome.rows:
        found = row.as_dict()
        settings = f"with {row.settings}" if row.settings else ""
        why = row.why or (UNEXPLAINED if row.verdict is Verdict.WORSE else "")
        remarks = "; ".join(part for part in (row.difference, row.reduced, settings, why) if part)
        style = _STYLES.get(row.verdict, "")
        paper = figure_text(found["paper"]) + ("" if row.source == "paper" else f" ({row.source})")
        table.add_row(row.quantity, paper, figure_text(found["ours"]), str(row.verdict), remarks, style=style)
    console.print(table)
    if quick and study.left_out:
        console.print(f"left out: {study.left_out}")
    if trouble:
        console.print(trouble)
    console.print()


def _finish(records: list[dict[str, Any]], studies: list[Study], page: Path | None, out: Path, as_json: bool) -> None:
    """Write the page, and say where everything is."""
    if page is not None:
        write_page(page, out)
    if as_json:
        typer.echo(json.dumps({"out": str(out), "studies": json.loads(text_of(records))}, indent=1))
        return
    console = _console()
    if studies:
        console.print(f"figures and pictures: {out}", soft_wrap=True)
    if page is not None:
        console.print(f"page: {page}", soft_wrap=True)


def _console() -> Console:
    return Console(highlight=False, markup=False, width=None if sys.stdout.isatty() else _WIDTH)
