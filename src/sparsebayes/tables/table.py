"""Tables of numbers and texts, with one meaning for every column whatever the file was."""

from __future__ import annotations

import difflib
import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sparsebayes.typing import Array

from .cells import Meaning, as_category, as_days, as_number, as_truth, cleaned, is_missing, meaning_of

_NAMES_SHOWN = 20
_LARGEST = 1e150  # squares of larger numbers overflow

MAX_COLUMNS = 10_000
# How the note of a file without names begins.
HEADERLESS = "the first line holds values, not names"


@dataclass(frozen=True)
class Table:
    """Named columns of equal length, numbers or the texts of cells.

    Truth values and dates are held as texts, as a CSV file has them, so that a column means the same in every file.

    Attributes
    ----------
    path : Path
        Where it was read, for messages.
    columns : dict of str to ndarray or list of str
        The columns in their order; a missing number is NaN, a missing text empty.
    notes : tuple of str
        What there is to say of the reading.
    first_row : int
        What the first row is called: 2 in a file whose first line has the names, as a spreadsheet numbers them.
    categories : frozenset of str
        Columns whose type says that they hold categories, whatever their labels are.
    """

    path: Path
    columns: Mapping[str, Array | list[str]]
    notes: tuple[str, ...] = ()
    first_row: int = 1
    categories: frozenset[str] = frozenset()
    _known: dict[str, Meaning] = field(default_factory=dict, repr=False, compare=False)

    @property
    def names(self) -> list[str]:
        """Names of the columns."""
        return list(self.columns)

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return len(next(iter(self.columns.values())))

    @property
    def fingerprint(self) -> str:
        """Checksum of names and cells, which tells whether two tables are the same."""
        digest = hashlib.sha256()
        for name in self.columns:
            numbers = self.parse(name)
            content = "\0".join(self.texts(name)).encode() if numbers is None else numbers.tobytes()
            digest.update(b"%d %d " % (len(name.encode()), len(content)) + name.encode() + content)
        return digest.hexdigest()

    def take(self, rows: Sequence[int] | NDArray[np.intp]) -> Table:
        """Return the table of some of the rows."""
        return Table(
            self.path,
            {
                name: cells[np.asarray(rows)] if isinstance(cells, np.ndarray) else [cells[k] for k in rows]
                for name, cells in self.columns.items()
            },
            self.notes,
            self.first_row,
            self.categories,
            self._known,  # what a column is, all rows have decided
        )

    def meaning(self, name: str) -> Meaning:
        """Return what a column is."""
        if name not in self._known:
            cells = self.columns[name]
            meaning = Meaning("number") if isinstance(cells, np.ndarray) else meaning_of(cells)
            self._known[name] = as_category(meaning) if name in self.categories else meaning
        return self._known[name]

    def parse(self, name: str) -> Array | None:
        """Return a column as numbers, NaN where one is missing; None if a cell is not a number."""
        meaning = self.meaning(name)
        return self.read_numbers(name, meaning.removed, meaning.decimal) if meaning.kind == "number" else None

    def read_numbers(self, name: str, removed: Sequence[str] = (), decimal: str = ".") -> Array:
        """Return a column as numbers, NaN where one is missing; ValueError where a cell is none.

        Parameters
        ----------
        name : str
            The column.
        removed, decimal : sequence of str, str
            Signs to take out of texts, and what stands before their decimals.
        """
        cells = self.columns[name]
        if isinstance(cells, np.ndarray):
            return cells
        values = np.empty(len(cells))
        for row, cell in enumerate(cells):
            number = as_number(cleaned(cell, removed, decimal) if removed or decimal != "." else cell)
            if number is None:
                truth = as_truth(cell)  # as numbers, truth values are 1 and 0
                if truth is None:
                    raise ValueError(
                        f"{self.path}: column {name!r} is not numeric: {shortened(cell)} in data row {row + 1}; "
                        "a number is needed there, or an empty cell for a gap"
                    )
                number = float(truth == "True")
            values[row] = number
        return values

    def days(self, name: str, day_first: bool) -> Array:
        """Return a column of dates as days since 1970-01-01, NaN where one is missing; ValueError where one is none."""
        cells = self.columns[name]
        numbers = isinstance(cells, np.ndarray)
        values = np.empty(len(cells))
        for row, cell in enumerate(self.texts(name) if numbers else cells):
            found = as_days(cell, day_first)
            if found is None:
                raise ValueError(
                    f"{self.path}: column {name!r} has {shortened(cell)} in data row {row + 1}; expected a date, such "
                    "as 2024-03-31"
                )
            values[row] = found
        return values

    def texts(self, name: str, kind: str | None = None) -> list[str]:
        """Return a column as texts, empty where a value is missing.

        Parameters
        ----------
        name : str
            The column.
        kind : {"text", "boolean", "number"}, optional
            What its cells are; by default what they look like.  Whole numbers have no decimals, truth values are
            ``True`` and ``False``, and dates are days.
        """
        cells, meaning = self.columns[name], self.meaning(name)
        kind = meaning.kind if kind is None else kind
        if isinstance(cells, np.ndarray):
            texts = [_text_of(value) for value in cells.tolist()]
            return [as_truth(text) or text for text in texts] if kind == "boolean" else texts
        if kind == "date":
            return [_text_of(value) for value in self.days(name, meaning.day_first).tolist()]
        return [_READ_AS.get(kind, _as_text)(cell.strip(), meaning) for cell in cells]

    def first_text(self, name: str) -> tuple[int, str]:
        """Row and content of the first cell that is not a number."""
        return next((row, cell) for row, cell in enumerate(self.columns[name]) if as_number(str(cell)) is None)

    def numbers(self, name: str) -> Array:
        """Return a column of numbers, NaN where one is missing; ValueError names what is wrong with it."""
        meaning = self.meaning(name)
        return self.checked(name, self.read_numbers(name, meaning.removed, meaning.decimal))

    def checked(self, name: str, values: Array) -> Array:
        """Return the numbers of a column; ValueError where one is infinite or far too large."""
        infinite = np.flatnonzero(np.isinf(values))
        if len(infinite):
            raise ValueError(f"{self.path}: column {name!r} has an infinite value in data row {infinite[0] + 1}")
        largest = float(np.nanmax(np.abs(values))) if not np.all(np.isnan(values)) else 0.0
        if largest > _LARGEST:
            raise ValueError(f"{self.path}: column {name!r} has values of {largest:.3g}; rescale it")
        return values


def as_table(data: Any, name: str = "the table") -> Table:
    """Return a mapping of columns, or a data frame of pandas or Polars, as a table.

    A categorical column holds categories, whatever its labels are: 1 and 2 may be names.

    Parameters
    ----------
    data : Table, mapping of str to sequence, or data frame
        Columns of equal length.
    name : str
        What messages call it.
    """
    if isinstance(data, Table):
        return data
    keys = getattr(data, "columns", list(data) if isinstance(data, Mapping) else None)
    if keys is None:
        raise TypeError(
            f"{name} is of type {type(data).__name__}: expected a data frame, or a mapping from names of columns to "
            "their values; a bare array goes to the estimator itself (estimator_)"
        )
    columns: dict[str, Array | list[str]] = {}
    categories = frozenset(str(key) for key in keys if _is_categorical(data[key]))
    for key in keys:
        values = np.asarray(data[key])
        if values.ndim != 1:
            raise ValueError(f"{name}: column {str(key)!r} has shape {values.shape}; expected one value for each row")
        columns[str(key)] = as_cells(values)
    lengths = {len(values) for values in columns.values()}
    if len(lengths) != 1 or 0 in lengths:
        raise ValueError(f"{name} has columns of {sorted(lengths)} rows; expected one number of rows, at least 1")
    return Table(Path(name), columns, categories=categories)


def _is_categorical(values: Any) -> bool:
    """Whether a column says by its type that it holds categories: of pandas, Polars or Arrow."""
    return str(getattr(values, "dtype", "")).lower().startswith(("category", "categorical", "enum", "dictionary<"))


def as_cells(values: NDArray[Any]) -> Array | list[str]:
    """Return an array as a column: numbers, or texts as a CSV file would have them."""
    kind = values.dtype.kind
    if kind in "iu" or values.dtype == np.float64:
        return values.astype(np.float64)
    if kind == "f":  # the shortest text of a short float is the number that was meant
        return np.array([float(str(value)) for value in values], dtype=np.float64)
    if kind == "M":
        return ["" if value is None else str(value) for value in values.astype("datetime64[us]").tolist()]
    if kind == "m":
        return np.where(np.isnat(values), np.nan, values.astype("timedelta64[us]").astype(np.float64) / 86400e6)
    cells = values.tolist()
    if kind == "O" and all(_is_null(cell) or type(cell) in (int, float) for cell in cells):
        return np.array([np.nan if _is_null(cell) else float(cell) for cell in cells])
    return ["" if _is_null(cell) else str(cell) for cell in cells]


def list_names(names: list[str]) -> str:
    """Names for a message, not more than fit one."""
    shown = ", ".join(shortened(name) for name in names[:_NAMES_SHOWN])
    return shown if len(names) <= _NAMES_SHOWN else f"{shown} and {len(names) - _NAMES_SHOWN} more"


def did_you_mean(wrong: Sequence[str], known: Sequence[str]) -> str:
    """A question for a message: which of the known names was meant; empty where none is near."""
    folded = {name.casefold().strip(): name for name in reversed(known)}
    found = []
    for name in wrong:
        near = difflib.get_close_matches(name.casefold().strip(), list(folded), n=1, cutoff=0.6)
        found += [folded[near[0]]] if near else []
    return f"; did you mean {list_names(found)}?" if found else ""


def shortened(text: str) -> str:
    """Text in quotes for a message, cut where it is long."""
    return repr(text if len(text) <= 40 else f"{text[:37]}...")


def _text_of(value: float) -> str:
    if np.isnan(value):
        return ""
    return str(int(value)) if np.isfinite(value) and value == np.round(value) else repr(value)


def _as_text(cell: str, _: Meaning) -> str:
    return "" if is_missing(cell) else cell


def _as_truth_text(cell: str, _: Meaning) -> str:
    truth = as_truth(cell)
    return cell if truth is None else truth


def _as_number_text(cell: str, meaning: Meaning) -> str:
    value = as_number(cleaned(cell, meaning.removed, meaning.decimal))
    return cell if value is None else _text_of(value)


# How a cell of a column of texts is written where the column is one of these; as it stands in all others.
_READ_AS = {"boolean": _as_truth_text, "number": _as_number_text}


def _is_null(cell: Any) -> bool:
    if cell is None or str(cell) in ("<NA>", "NaT"):
        return True
    return bool(cell != cell) if isinstance(cell, float) else False
