"""Two records side by side: what became worse comes first."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

from rich.table import Table

from sparsebayes.benchmarks.ledger.measure import Row


@dataclass(frozen=True)
class Change:
    """The same draw in two records."""

    before: Row
    after: Row

    @property
    def evidence(self) -> float | None:
        """Rise of the log evidence, in nats."""
        old, new = self.before.evidence, self.after.evidence
        return None if old is None or new is None else new - old

    @property
    def error(self) -> float | None:
        """Test error as a multiple of what it was."""
        return ratio(self.before.error, self.after.error)

    @property
    def seconds(self) -> float | None:
        """Seconds as a multiple of what they were."""
        return ratio(self.before.seconds, self.after.seconds)

    @property
    def lost(self) -> bool:
        """Whether there were figures and are none now."""
        return self.before.measured and not self.after.measured

    @property
    def uncertified(self) -> bool:
        """Whether a certificate was lost."""
        return bool(self.before.certified) and self.after.certified is False

    @property
    def badness(self) -> tuple[bool, float, float]:
        """What sorts changes: lost figures, then lost evidence, then risen error."""
        return self.lost, -(self.evidence or 0.0), self.error or 1.0


def ratio(old: float | None, new: float | None) -> float | None:
    """How many times the old one the new one is; None where that has no meaning."""
    return None if old is None or new is None or old <= 0.0 else new / old


def changes(before: Iterable[Row], after: Iterable[Row]) -> list[Change]:
    """Rows that both have, the worst first."""
    old = {row.key: row for row in before}
    found = [Change(old[row.key], row) for row in after if row.key in old]
    return sorted(found, key=lambda change: change.badness, reverse=True)


def change_table(found: list[Change], title: str) -> Table:
    """For the terminal."""
    table = Table(title=title)
    for heading in ("problem", "seed", "evidence", "nats", "error", "x", "kept", "seconds", "x", "certificate"):
        table.add_column(heading, justify="left" if heading in ("problem", "certificate") else "right")
    for change in found:
        before, after = change.before, change.after
        name = after.problem if after.method == "sparsebayes" else f"{after.problem}, {after.method}"
        table.add_row(
            name,
            str(after.seed),
            _both(before.evidence, after.evidence, ".1f"),
            number(change.evidence, "+.2f"),
            _both(before.error, after.error, ".4g"),
            number(change.error, ".3f"),
            _both(before.kept, after.kept, "d"),
            _both(before.seconds, after.seconds, ".3g"),
            number(change.seconds, ".2f"),
            _verdict(change),
        )
    return table


def conclusions(found: list[Change]) -> list[str]:
    """What the table comes to, in sentences."""
    evidence = [change.evidence for change in found if change.evidence is not None]
    lines = [f"{len(found)} rows in both; {sum(change.lost for change in found)} had figures and have none now"]
    if evidence:
        lines.append(
            f"evidence: {sum(evidence) / len(evidence):+.2f} nats on average, {min(evidence):+.2f} at worst, "
            f"{max(evidence):+.2f} at best; lower by more than 1 nat in {sum(value < -1.0 for value in evidence)}"
        )
    for what, values in (("error", [c.error for c in found]), ("seconds", [c.seconds for c in found])):
        positive = [value for value in values if value]
        if positive:
            mean = math.exp(sum(map(math.log, positive)) / len(positive))
            lines.append(f"{what}: x {mean:.3f} in the geometric mean, x {max(positive):.3f} at worst")
    lost = [f"{c.after.problem} {c.after.seed}" for c in found if c.uncertified]
    lines.append(f"certificates lost: {', '.join(lost) or 'none'}")
    return lines


def number(value: float | None, form: str) -> str:
    """A figure, or nothing where there is none."""
    return "" if value is None else format(value, form)


def _both(old: float | None, new: float | None, form: str) -> str:
    if old is None and new is None:
        return ""
    return f"{number(old, form) or '-'} > {number(new, form) or '-'}"


def _verdict(change: Change) -> str:
    if not (change.before.measured and change.after.measured):
        return f"{_state(change.before)} > {_state(change.after)}"
    if change.after.certified is None:
        return ""
    old, new = ("proved" if row.certified else "open" for row in (change.before, change.after))
    return new if old == new else f"{old} > {new}"


def _state(row: Row) -> str:
    return row.status if row.measured else row.state
