"""The page of the ledger: one column for each record, the oldest first."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from statistics import fmean

from sparsebayes.benchmarks.ledger.compare import number
from sparsebayes.benchmarks.ledger.measure import OURS, Row
from sparsebayes.benchmarks.ledger.problems import KINDS, PROBLEMS
from sparsebayes.benchmarks.ledger.record import Record

_HEAD = """# The ledger

A search in sparse Bayesian models depends on its path: a change can leave every test green and end in a worse maximum,
and a certificate of convergence does not show it. So each state of the search is recorded on the same problems. A cell
is *log evidence / test error / log loss / functions / certified seeds / seconds*, means over the seeds that were
measured; in brackets stands the change of the evidence since the column before, on the seeds that both have. The error
is the root mean square error or the rate of errors, the log loss the mean of $-\\log p$ of the test targets. Seconds
are processor time on whatever machine made the record, and compare within a row only roughly.

Classifiers whose functions come from a regression on the classes (since `indicators`) count as not certified: their
certificate is of Laplace's evidence, which did not choose them. `_ovr` is one model for each class against the rest;
other rows of several classes are one model, in which classes share functions (`_laplace`: chosen by Laplace's
evidence) or (`_joint`, the default of 0.1) do not.

This page is made from the files in `benchmarks/ledger` by `sparsebayes bench ledger --page docs/ledger.md`;
`sparsebayes bench ledger --against benchmarks/ledger/0.1.json` holds the present state against one of them.
"""

_TITLES = {
    "regression": "Real tables, regression",
    "classification": "Real tables, classification",
    "papers": "The papers' problems",
}


def read_records(folder: Path) -> dict[str, Record]:
    """Records of a folder by file name, the oldest first."""
    found = {path.stem: Record.load(path) for path in sorted(folder.glob("*.json"))}
    if not found:
        raise ValueError(f"there is no record in {folder}; make one with --record")
    return dict(sorted(found.items(), key=lambda item: item[1].when))


def render(records: dict[str, Record]) -> str:
    """The page as Markdown."""
    parts = [_HEAD, "## Records\n", *_legend(records), ""]
    for kind in KINDS:
        names = _names(records, kind)
        if names:
            parts += [f"## {_TITLES[kind]}\n", *_table(records, names), ""]
    return "\n".join(parts)


def _legend(records: dict[str, Record]) -> list[str]:
    lines = ["| record | version | commit | measured | seeds | note |", "|---|---|---|---|---|---|"]
    for name, record in records.items():
        seeds = ", ".join(str(seed) for seed in sorted({row.seed for row in record.rows}))
        lines.append(f"| {name} | {record.version} | {record.commit} | {record.when[:10]} | {seeds} | {record.note} |")
    return lines


def _names(records: dict[str, Record], kind: str) -> list[str]:
    """Problems of a kind that some record has; each under the first of its kinds only."""
    known = {row.problem for record in records.values() for row in record.rows}
    return [name for name, problem in PROBLEMS.items() if problem.kinds[0] == kind and name in known]


def _table(records: dict[str, Record], names: Iterable[str]) -> list[str]:
    lines = [f"| problem | {' | '.join(records)} |", "|---" * (1 + len(records)) + "|"]
    for name in names:
        cells, last = [], list[Row]()
        for record in records.values():
            rows = [row for row in record.rows if row.problem == name and row.method == OURS]
            cells.append(_cell(rows, last))
            last = rows or last
        lines.append(f"| {name} | {' | '.join(cells)} |")
    return lines


def _cell(rows: Sequence[Row], last: Sequence[Row]) -> str:
    measured = [row for row in rows if row.measured]
    missing = [f"seed {row.seed} {row.state}" for row in rows if not row.measured]
    if not measured:
        return ", ".join(dict.fromkeys(row.state for row in rows))
    proved = f"{sum(bool(row.certified) for row in measured)} of {len(measured)}"
    figures = [
        f"{_mean(measured, 'evidence', '.1f')}{_rise(measured, last)}",
        _mean(measured, "error", ".4g"),
        _mean(measured, "loss", ".3f"),
        _mean(measured, "kept", ".4g"),
        proved,
        _mean(measured, "seconds", ".2g"),
    ]
    return "; ".join([" / ".join(figures), *missing])


def _mean(rows: Sequence[Row], name: str, form: str) -> str:
    values = [value for row in rows if (value := getattr(row, name)) is not None]
    return number(fmean(values), form) if values else "–"


def _rise(rows: Sequence[Row], last: Sequence[Row]) -> str:
    before = {row.seed: row.evidence for row in last if row.evidence is not None}
    rises = [row.evidence - before[row.seed] for row in rows if row.evidence is not None and row.seed in before]
    return f" ({fmean(rises):+.1f})" if rises else ""
