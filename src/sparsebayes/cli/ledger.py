"""What ``sparsebayes bench ledger`` does, once its options are read."""

from __future__ import annotations

import ast
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.console import Console

from sparsebayes.atomic import check_target, write_atomically
from sparsebayes.benchmarks.ledger.ablation import ablate, line, page, variations
from sparsebayes.benchmarks.ledger.apart import Run
from sparsebayes.benchmarks.ledger.compare import change_table, changes, conclusions
from sparsebayes.benchmarks.ledger.page import read_records, render
from sparsebayes.benchmarks.ledger.problems import choose_problems, read_seeds
from sparsebayes.benchmarks.ledger.record import Record, new_record
from sparsebayes.benchmarks.ledger.report import row_table
from sparsebayes.benchmarks.ledger.rivals import RIVALS


@dataclass(frozen=True)
class Wanted:
    """The options of the command, as they were given."""

    kinds: list[str]
    only: list[str]
    seeds: str
    limit: float
    options: list[str]
    rivals: list[str]
    record: Path | None
    resume: bool
    note: str
    against: Path | None
    source: Path | None
    page: Path | None
    ablate: Path | None
    records: Path

    @property
    def page_alone(self) -> bool:
        """Whether nothing is to be measured or compared."""
        return self.page is not None and self.record is None and self.against is None and self.source is None

    def run(self) -> Run:
        """What is to be measured; whatever cannot be is refused."""
        unknown = [name for name in self.rivals if name not in RIVALS]
        if unknown:
            raise ValueError(f"no rival is called {', '.join(map(repr, unknown))}; choose among {', '.join(RIVALS)}")
        options = dict(map(read_option, self.options))
        return Run(choose_problems(self.kinds, self.only), read_seeds(self.seeds), options, self.rivals, self.limit)


def read_option(text: str) -> tuple[str, Any]:
    """Name and value of ``name=value``; a value that is no literal of Python is a text."""
    name, equals, value = text.partition("=")
    if not equals or not name.isidentifier():
        raise ValueError(f"--options must be NAME=VALUE, got {text!r}")
    try:
        return name, ast.literal_eval(value)
    except (ValueError, SyntaxError):
        return name, value


def keep_ledger(wanted: Wanted) -> None:
    """Measure or read rows, record them, show them or hold them against others, and make the page."""
    for path in (wanted.record, wanted.page, wanted.ablate):
        if path is not None:
            check_target(path)
    if wanted.record is not None and wanted.source is not None:
        raise ValueError("--record writes what was measured, and --from measures nothing: give one of them")
    earlier = None if wanted.against is None else Record.load(wanted.against)
    progress = Console(stderr=True, highlight=False, markup=False)
    console = Console(highlight=False, markup=False, width=None if progress.is_terminal else 160)
    if wanted.ablate is not None:
        _ablated(wanted, wanted.ablate, progress, console)
        return
    if not wanted.page_alone:
        found = _measured(wanted, progress) if wanted.source is None else Record.load(wanted.source)
        known = set() if earlier is None else {row.key for row in earlier.rows}
        new = [row for row in found.rows if row.key not in known]
        if new:
            console.print(row_table(new, f"the ledger, {found.title}"))
        if earlier is not None:
            pairs = changes(earlier.rows, found.rows)
            console.print(change_table(pairs, f"{earlier.title} > {found.title}, the worst first"))
            console.print("\n".join(conclusions(pairs)))
    if wanted.page is not None:
        write_atomically(wanted.page, render(read_records(wanted.records)).encode())


def _measured(wanted: Wanted, progress: Console) -> Record:
    """Measure, and keep the record row by row: a run that is interrupted leaves what it has."""
    run = wanted.run()
    settings = {
        "limit": run.limit,
        "options": dict(run.options),
        "seconds": "processor time of the fit, BLAS on one thread",
    }
    found = new_record([], settings, wanted.note)
    if wanted.resume:
        found = _begun(wanted.record, found)
    for row in run.rows(found.rows, progress.print):
        found.rows.append(row)
        if wanted.record is not None:
            found.save(wanted.record)
    return found


def _ablated(wanted: Wanted, path: Path, progress: Console, console: Console) -> None:
    """Measure every variation of the search, and keep the page line by line."""
    run, lines = wanted.run(), []
    for variation, found in ablate(run, variations(), progress.print):
        lines.append(line(variation.name, found))
        console.print(lines[-1])
        write_atomically(path, page(run, lines).encode())


def _begun(path: Path | None, new: Record) -> Record:
    """The record to go on with; rows of another program or other settings must not be mixed with new ones."""
    if path is None:
        raise ValueError("--resume goes on with a record: name it with --record")
    begun = Record.load(path)
    if (begun.version, begun.commit, begun.settings) != (new.version, new.commit, new.settings):
        raise ValueError(f"{path} is of {begun.title} with {begun.settings}, not of {new.title} with {new.settings}")
    return begun
