"""Records: the rows of one state of the program, in a file that later states are held against."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from sparsebayes._version import __version__
from sparsebayes.atomic import write_atomically
from sparsebayes.benchmarks.ledger.measure import Row
from sparsebayes.machine import installed

_FORMAT = 1
_PACKAGES = ("numpy", "scipy", "scikit-learn", "fastrvm")


@dataclass(frozen=True)
class Record:
    """Rows, and what they are of.

    Attributes
    ----------
    rows : list of Row
        What was measured.
    version : str
        Of the package.
    commit : str
        Of the source; empty where there is none, and with a ``+`` where files had been changed since.
    when : str
        Time of the measurement, UTC.
    settings : mapping
        Seeds, limit, options: what has to be the same for two records to be comparable.
    packages : mapping
        Versions of what it was computed with.
    note : str
        What a reader should know.
    """

    rows: list[Row]
    version: str = __version__
    commit: str = ""
    when: str = ""
    settings: Mapping[str, Any] = field(default_factory=dict)
    packages: Mapping[str, str | None] = field(default_factory=dict)
    note: str = ""

    @property
    def title(self) -> str:
        """Version and commit."""
        return f"{self.version} ({self.commit})" if self.commit else self.version

    def save(self, path: Path) -> None:
        """Write the record; one row a line, so that differences can be read."""
        head = {"format": _FORMAT, **{name: value for name, value in asdict(self).items() if name != "rows"}}
        lines = ",\n".join("  " + json.dumps(row.as_dict()) for row in self.rows)
        text = json.dumps(head, indent=1).removesuffix("\n}") + f',\n "rows": [\n{lines}\n ]\n}}\n'
        write_atomically(path, text.encode())

    @classmethod
    def load(cls, path: Path) -> Record:
        """Read a record."""
        try:
            content = json.loads(path.read_text(encoding="utf-8"))
            if content.pop("format") != _FORMAT:
                raise ValueError("it is of another format")
            return cls(**{**content, "rows": [Row(**row) for row in content["rows"]]})
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise ValueError(f"{path} is no record of the ledger: {error}") from error


def new_record(rows: list[Row], settings: Mapping[str, Any], note: str = "") -> Record:
    """A record of the program as it runs now."""
    return Record(
        rows,
        commit=commit(),
        when=datetime.now(UTC).isoformat(timespec="seconds"),
        settings=settings,
        packages={name: installed(name) for name in _PACKAGES},
        note=note,
    )


def commit() -> str:
    """Short name of the commit that this file is of; empty where it is in no repository."""
    if _git("ls-files", "--error-unmatch", Path(__file__).name) is None:
        return ""
    changed = _git("status", "--porcelain", "--untracked-files=no", "--", ":/src")
    return f"{_git('rev-parse', '--short=10', 'HEAD')}{'+' if changed else ''}"


def _git(*arguments: str) -> str | None:
    try:
        done = subprocess.run(["git", *arguments], cwd=Path(__file__).parent, capture_output=True, text=True)
    except OSError:
        return None
    return done.stdout.strip() if done.returncode == 0 else None
