"""``sparsebayes reproduce``: the papers' tables and figures, computed anew and judged."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def command(
    names: Annotated[
        list[str] | None,
        typer.Argument(metavar="[NAME]...", help="Studies to run, or 'all'; --list names them.", show_default=False),
    ] = None,
    list_only: Annotated[bool, typer.Option("--list", help="Name every study, and run none.")] = False,
    quick: Annotated[
        bool, typer.Option("--quick", help="About a minute for each study at most; says what it leaves out.")
    ] = False,
    out: Annotated[Path, typer.Option("--out", "-o", help="Folder for the files; made if need be.")] = Path(
        "reproduction"
    ),
    page: Annotated[
        Path | None, typer.Option("--page", help="Page to write from the JSON files in the folder.", show_default=False)
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object instead of tables.")] = False,
) -> None:
    """Compute the papers' tables and figures: their value, ours, and a verdict.

    \b
    Examples:
      sparsebayes reproduce --list
      sparsebayes reproduce tipping-sinc
      sparsebayes reproduce all --quick --out results
      sparsebayes reproduce --page reproduction.md --out results

    Each study leaves NAME.json, NAME.png and NAME.svg in the folder. Data sets that are not bundled are read from the
    folder named by SPARSEBAYES_DATA; a study whose data are not at hand is reported as not run, and the others go on.

    Exit status 0: no figure is worse than the paper's beyond its stated tolerance; 4: one is, or a study failed.
    """
    from sparsebayes.cli.reproducing import list_studies, reproduce

    if list_only:
        list_studies(as_json=as_json)
        return
    reproduce(names or [], quick=quick, out=out, page=page, as_json=as_json)
