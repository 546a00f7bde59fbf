"""``sparsebayes demo``: the main job on bundled data, in a few seconds."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def command(
    out: Annotated[Path, typer.Option("--out", "-o", help="Folder for the pictures; made if need be.")] = Path("demo"),
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object instead of a table.")] = False,
) -> None:
    """Fit two bundled problems, print what was kept and how good it is, and draw and report on one.

    \b
    Example:
      sparsebayes demo
    """
    from sparsebayes.cli.demonstration import run_demo

    run_demo(out, as_json=as_json)
