"""Forty tables as people send them, each with what a careful reader would make of it.

A case is the text of a CSV file (bytes where the encoding is in question) with the target, and what is intended: the
inputs of the model with the kind of each, and words of the notes; or words of the one sentence that refuses it.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

N = 24
_RNG = np.random.default_rng(7)
X = _RNG.uniform(0, 10, N).round(3)
Z = _RNG.normal(size=N).round(3)
Y = (2.0 * X + Z + 0.1 * _RNG.normal(size=N)).round(3)
TOWN = _RNG.choice(["Pisa", "Rome", "Ulm"], N)
TRUTH = _RNG.random(N) < 0.5
DAYS = np.datetime64("2020-01-01") + _RNG.integers(0, 900, N)
NUMBER, CATEGORY, DATE = "Numeric", "Category", "Date"


@dataclass(frozen=True)
class Messy:
    """One table: its content, the target, and what is intended."""

    content: str | bytes
    target: str = "y"
    inputs: dict[str, str] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    error: tuple[str, ...] = ()
    task: str = "regression"
    text_only: bool = False  # what is wrong is in the text, and no Parquet file or data frame could have it

    @property
    def bytes(self) -> bytes:
        return self.content if isinstance(self.content, bytes) else self.content.encode("utf-8")


def table(columns, separator=",", header=True):
    """Text of a table; what holds the separator is quoted."""

    def cell(value):
        text = str(value)
        return '"' + text.replace('"', '""') + '"' if any(c in text for c in (separator, '"', "\n")) else text

    lines = [separator.join(map(cell, columns))] if header else []
    lines += [separator.join(map(cell, row)) for row in zip(*columns.values(), strict=True)]
    return "\n".join(lines) + "\n"


def with_x(**columns):
    return table({"x": X, **columns, "y": Y})


def blanks(values, mark, step=5):
    return [mark if k % step == 2 else value for k, value in enumerate(values)]


def both(**kinds):
    return {"x": NUMBER, **kinds}


CASES = {
    # Numbers.
    "plain": Messy(with_x(z=Z), inputs=both(z=NUMBER)),
    "semicolons and decimal commas": Messy(
        table({"x": X, "z": Z, "y": Y}, ";").replace(".", ","), inputs=both(z=NUMBER), text_only=True
    ),
    "gaps as NA": Messy(with_x(z=blanks(Z, "NA")), inputs=both(z=NUMBER), notes=("'z': ", "median")),
    "gaps as question marks": Messy(with_x(z=blanks(Z, "?")), inputs=both(z=NUMBER), notes=("median",)),
    "gaps as null and nothing": Messy(with_x(z=blanks(blanks(Z, "null"), "", 7)), inputs=both(z=NUMBER)),
    "spaces around cells": Messy(with_x(z=[f"  {v} " for v in Z]), inputs=both(z=NUMBER)),
    "dollars": Messy(
        with_x(z=[f"${1000 * abs(v):,.2f}" for v in Z]), inputs=both(z=NUMBER), notes=("read as numbers", "'$'")
    ),
    "a target in euros": Messy(
        table({"x": X, "z": Z, "y": [f"{v:.2f} €" for v in Y]}), inputs=both(z=NUMBER), notes=("'y': read as numbers",)
    ),
    "per cent": Messy(with_x(z=[f"{50 + v:.1f} %" for v in Z]), inputs=both(z=NUMBER), notes=("'%'",)),
    "continental thousands": Messy(
        with_x(z=[f"{1000 + 100 * v:,.2f}".translate(str.maketrans(",.", ".,")) for v in Z]),
        inputs=both(z=NUMBER),
        notes=("read as numbers",),
    ),
    "a unit": Messy(with_x(z=[f"{v} kg" for v in Z]), inputs=both(z=NUMBER), notes=("'kg'",)),
    "a unit without a space": Messy(with_x(z=[f"{v}kg" for v in Z]), inputs=both(z=NUMBER), notes=("'kg'",)),
    "thousands as k": Messy(with_x(z=[f"${abs(v):.1f}k" for v in Z]), inputs=both(z=NUMBER), notes=("'$'", "'k'")),
    "house numbers": Messy(with_x(z=[f"{k % 4 + 1}{'a' * (k % 2)}" for k in range(N)]), inputs=both(z=CATEGORY)),
    "gaps as n.a.": Messy(with_x(z=blanks(blanks(Z, "n.a."), "#N/A", 7)), inputs=both(z=NUMBER), notes=("median",)),
    "scientific notation": Messy(with_x(z=[f"{v:e}" for v in Z]), inputs=both(z=NUMBER)),
    "whole numbers with decimals": Messy(with_x(z=[f"{k % 4}.0" for k in range(N)]), inputs=both(z=NUMBER)),
    "huge offset": Messy(with_x(z=[repr(float(1e9 + v)) for v in Z]), inputs=both(z=NUMBER)),
    # Truth values and categories.
    "True and False": Messy(with_x(z=TRUTH), inputs=both(z=CATEGORY)),
    "TRUE and FALSE": Messy(with_x(z=[str(v).upper() for v in TRUTH]), inputs=both(z=CATEGORY)),
    "truth with gaps": Messy(with_x(z=blanks([str(v).lower() for v in TRUTH], "")), inputs=both(z=CATEGORY)),
    "yes and no": Messy(with_x(z=np.where(TRUTH, "yes", "no")), inputs=both(z=CATEGORY)),
    "towns": Messy(with_x(z=TOWN), inputs=both(z=CATEGORY)),
    "towns with gaps": Messy(with_x(z=blanks(TOWN, "N/A")), inputs=both(z=CATEGORY)),
    "commas and quotes in towns": Messy(with_x(z=np.where(TRUTH, 'a "b", c', "line\nbreak")), inputs=both(z=CATEGORY)),
    "accents in names and cells": Messy(
        table({"größe": X, "ville": np.where(TRUTH, "Orléans", "Besançon"), "y": Y}),
        inputs={"größe": NUMBER, "ville": CATEGORY},
    ),
    # Dates.
    "ISO dates": Messy(with_x(z=DAYS), inputs=both(z=DATE), notes=("'z': dates", "time of the year")),
    "dates with the day first": Messy(
        with_x(z=[f"{d[8:]}.{d[5:7]}.{d[:4]}" for d in map(str, DAYS)]), inputs=both(z=DATE)
    ),
    "dates with the month first": Messy(
        with_x(z=[f"{d[5:7]}/{d[8:]}/{d[:4]}" for d in map(str, DAYS)]), inputs=both(z=DATE)
    ),
    "times": Messy(
        with_x(z=[f"{d}T{k % 24:02d}:30:00" for k, d in enumerate(DAYS)]), inputs=both(z=DATE), notes=("of the day",)
    ),
    "months": Messy(with_x(z=[d[:7] for d in map(str, DAYS)]), inputs=both(z=DATE), notes=("time of the year",)),
    "dates with gaps": Messy(with_x(z=blanks(DAYS, "NaT")), inputs=both(z=DATE), notes=("median",)),
    # Columns that are no inputs.
    "a counter named id": Messy(with_x(id=range(501, 501 + N)), inputs=both(), notes=("'id' set aside",)),
    "a counter from one": Messy(with_x(patient=range(1, N + 1)), inputs=both(), notes=("numbers the rows",)),
    "names of people": Messy(
        with_x(name=[f"person {chr(97 + k)}" for k in range(N)]), inputs=both(), notes=("text of its own",)
    ),
    "years are no counter": Messy(with_x(year=range(1990, 1990 + N)), inputs=both(year=NUMBER)),
    "an empty column": Messy(with_x(z=[""] * N), inputs=both(), notes=("'z' left out: it has no values",)),
    "a constant column": Messy(with_x(z=["same"] * N), inputs=both(), notes=("one value only",)),
    "row numbers of pandas": Messy(table({"": range(N), "x": X, "y": Y}), inputs=both(), text_only=True),
    # Targets.
    "classes of texts": Messy(
        table({"x": X, "y": np.where(X > 5, "big", "small")}), inputs=both(), task="classification"
    ),
    "classes of truth values": Messy(table({"x": X, "y": X > 5}), inputs=both(), task="classification"),
    "gaps in the target": Messy(
        table({"x": X, "y": blanks(Y, "")}), inputs=both(), notes=("rows left out: they have no 'y'",)
    ),
    "a constant target": Messy(table({"x": X, "y": [3.5] * N}), error=("'y' is 3.5 in every row", "--target")),
    "one row of a class": Messy(
        table({"x": X, "y": ["rare"] + ["common"] * (N - 1)}), error=("single row", "'rare'", "at least 2")
    ),
    "one row": Messy("x,y\n1,2\n", error=("single row", "add rows")),
    "a target of dates": Messy(table({"x": X, "y": DAYS}), error=("dates", "days since a start")),
    "a name that is nearly right": Messy(with_x(z=Z), target="Y ", error=("did you mean 'y'",)),
    # Files.
    "without a header": Messy(
        table({"x": X, "z": Z, "y": Y}, header=False),
        target="column3",
        inputs={"column1": NUMBER, "column2": NUMBER},
        notes=("holds values, not names",),
        text_only=True,
    ),
    "Windows-1252": Messy(
        table({"größe": X, "y": Y}).encode("cp1252"),
        inputs={"größe": NUMBER},
        notes=("not in UTF-8",),
        text_only=True,
    ),
    "UTF-16": Messy(table({"größe": X, "y": Y}).encode("utf-16"), inputs={"größe": NUMBER}, text_only=True),
    "a byte-order mark": Messy(b"\xef\xbb\xbf" + with_x(z=Z).encode(), inputs=both(z=NUMBER), text_only=True),
    "a slip of the pen": Messy(
        with_x(z=["1O0", *(100 * Z[1:])]), error=("'z' is not numeric: '1O0' in data row 1", "--drop", "--categorical")
    ),
    "a short line": Messy(with_x(z=Z) + "1,2\n", error=("line 26", "2 cells", "header has 3"), text_only=True),
    "a name that occurs twice": Messy(
        with_x(z=Z).replace("z,y", "x,y", 1), error=("'x'", "more than once"), text_only=True
    ),
    "nothing": Messy(b"", error=("empty",), text_only=True),
}
