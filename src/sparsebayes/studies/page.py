"""The page of all studies, made from their JSON files: no figure on it is typed by hand."""

from __future__ import annotations

import json
import re
from collections import Counter
from pathlib import Path
from typing import Any

from sparsebayes.atomic import write_atomically
from sparsebayes.studies.framework import Verdict
from sparsebayes.studies.registry import all_studies

_HEAD = """<!-- Made by `sparsebayes reproduce --page FILE`; changes by hand are lost. -->
# The papers, reproduced

Tables and figures of the papers that this library implements, computed by `sparsebayes reproduce all{quick}`
and judged. This page is made from the JSON files of that run by `sparsebayes reproduce --page FILE`.

{run}

- **met**: as good as the paper's figure, or better by no more than 1 %; **better**: by more than that.
- **worse within tolerance**: worse, by no more than the tolerance stated with the row. **worse**: beyond it.
- **beside**: not judged, because it is not ours (a support vector machine's figure, shown because the paper shows it)
  or because the paper has nothing that is measured alike.
- Tolerances follow from the paper's figures and from how much was measured, or were fixed beforehand; none grows with
  the spread of our own figures.
- Support vector machines are scikit-learn's, with a cross-validation of their own, on the same data as ours. Ratios to
  a support vector machine are to the one that ran beside; the paper's are to the paper's.
- Ours are the defaults of the library; settings that are not are named in the row.
"""

# What stands in the place of a reason that nobody has found yet.
UNEXPLAINED = "no reason is known"


def figure_text(value: float | None) -> str:
    """A figure as it is printed: four digits, or nothing."""
    return "" if value is None else f"{value:.4g}"


def write_page(page: Path, folder: Path) -> None:
    """Write the page from the JSON files of a folder, and copy its pictures beside it.

    Parameters
    ----------
    page : Path
        Markdown file to write; pictures go to ``images/STEM`` in its folder.
    folder : Path
        Where ``NAME.json`` and ``NAME.png`` are.
    """
    records = read_records(folder)
    if not records:
        raise ValueError(f"{folder} has no study's JSON file; run sparsebayes reproduce all --out {folder} first")
    pictures = page.parent / "images" / page.stem
    pictures.mkdir(parents=True, exist_ok=True)
    drawn = set()
    for name in records:
        picture = folder / f"{name}.png"
        if picture.is_file():
            write_atomically(pictures / picture.name, picture.read_bytes())
            drawn.add(name)
    write_atomically(page, render(list(records.values()), drawn, f"images/{page.stem}").encode())


def read_records(folder: Path) -> dict[str, dict[str, Any]]:
    """Records of the studies that the folder has, in the order of the list."""
    paths = {name: folder / f"{name}.json" for name in all_studies()}
    return {name: json.loads(path.read_text(encoding="utf-8")) for name, path in paths.items() if path.is_file()}


def render(records: list[dict[str, Any]], drawn: set[str], pictures: str) -> str:
    """Text of the page."""
    quick = any(found["quick"] for found in records)
    parts = [_HEAD.format(quick=" --quick" if quick else "", run=_run(records, quick)), _summary(records)]
    parts.append(_worse(records))
    parts += [_section(found, f"{pictures}/{found['name']}.png" if found["name"] in drawn else "") for found in records]
    return "\n".join(parts)


def _run(records: list[dict[str, Any]], quick: bool) -> str:
    machine, seconds = records[0]["machine"], sum(found["seconds"] for found in records)
    packages = ", ".join(f"{name} {number}" for name, number in machine["packages"].items() if number)
    text = (
        f"The run took {seconds / 60:.0f} minutes on {machine['cores']} cores ({machine['processor']}), shared "
        f"with other work, with Python {machine['python']}, {packages}."
    )
    less = " It was a **quick** run: every study says what it left out, and every row what it was measured on."
    return text + (less if quick else "")


def _summary(records: list[dict[str, Any]]) -> str:
    kinds = [str(kind) for kind in Verdict if kind is not Verdict.BESIDE]
    lines = [f"| study | name | {' | '.join(kinds)} | seconds |", "|---|---|" + "---|" * (len(kinds) + 1)]
    for found in records:
        counts = Counter(row["verdict"] for row in found["rows"])
        cells = [str(counts[kind] or "") for kind in kinds]
        if found["skipped"] or found["failed"]:
            cells[-1] = "failed" if found["failed"] else "all"
        lines.append(f"| {_link(found)} | `{found['name']}` | {' | '.join(cells)} | {found['seconds']:.0f} |")
    return "\n".join([*lines, ""])


def _worse(records: list[dict[str, Any]]) -> str:
    """Every figure that is worse beyond its tolerance, and every study that failed, with the reason."""
    lines = ["## What is worse", ""]
    rows = [(found, row) for found in records for row in found["rows"] if row["verdict"] == Verdict.WORSE]
    failed = [found for found in records if found["failed"]]
    if not rows and not failed:
        return "\n".join([*lines, "Nothing, beyond the tolerances stated.", ""])
    lines += ["| study | quantity | paper | ours | reason |", "|---|---|---|---|---|"]
    for found, row in rows:
        cells = [_link(found), row["quantity"], _paper(row), figure_text(row["ours"]), row["why"] or UNEXPLAINED]
        lines.append(_cells(cells))
    lines += [_cells([_link(found), "all", "", "", f"failed: {found['failed']}"]) for found in failed]
    return "\n".join([*lines, ""])


def title(found: dict[str, Any]) -> str:
    """Heading of a study: the paper, and its figure or table."""
    return f"{found['paper']}, {found['what']}"


def _link(found: dict[str, Any]) -> str:
    """To the heading, by the anchor that GitHub and Sphinx give it."""
    anchor = re.sub(r"[^\w\- ]", "", title(found).lower()).replace(" ", "-")
    return f"[{title(found)}](#{anchor})"


def _section(found: dict[str, Any], picture: str) -> str:
    lines = [f"## {title(found)}", "", f"{found['caption']} (`sparsebayes reproduce {found['name']}`)", ""]
    if found["skipped"] or found["failed"]:
        why = found["skipped"] or found["failed"]
        return "\n".join([*lines, f"**{'Not run' if found['skipped'] else 'Failed'}**: {why}", ""])
    if picture:
        lines += [f"![{found['caption']}]({picture})", ""]
    lines += ["| quantity | paper | ours | verdict | remarks |", "|---|---|---|---|---|"]
    lines += [_row(row) for row in found["rows"]]
    lines.append("")
    if found["left_out"]:
        lines += [f"Left out of the quick run: {found['left_out']}.", ""]
    return "\n".join(lines)


def _row(row: dict[str, Any]) -> str:
    tolerance = f"tolerance {figure_text(row['tolerance'])}: {row['allowed']}" if row["allowed"] else ""
    settings = f"with {row['settings']}" if row["settings"] else ""
    why = row["why"] or (UNEXPLAINED if row["verdict"] == Verdict.WORSE else "")
    remarks = "; ".join(part for part in (row["difference"], row["reduced"], settings, why, tolerance) if part)
    verdict = f"**{row['verdict']}**" if row["verdict"] == Verdict.WORSE else row["verdict"]
    return _cells([row["quantity"], _paper(row), figure_text(row["ours"]), verdict, remarks])


def _paper(row: dict[str, Any]) -> str:
    return figure_text(row["paper"]) + ("" if row["source"] == "paper" else f" ({row['source']})")


def _cells(cells: list[str]) -> str:
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"
