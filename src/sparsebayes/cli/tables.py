"""Tables of numbers: CSV with nothing but the standard library, Parquet with the extra ``files``."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sparsebayes.export.atomic import write_atomically

Array = NDArray[np.float64]

_PARQUET = (".parquet", ".pq")
_MISSING = frozenset({"", "na", "n/a", "nan", "null", "none", "?"})
# pandas stores the labels of rows under such names; they are no data.
_PANDAS_INDEX = re.compile(r"__index_level_\d+__")
_NAMES_SHOWN = 20


@dataclass(frozen=True)
class Table:
    """Named columns of equal length, numbers or the texts of cells.

    Attributes
    ----------
    path : Path
        Where it was read, for messages.
    columns : dict of str to ndarray or list of str
        The columns in their order; a missing number is NaN, a missing text empty.
    """

    path: Path
    columns: Mapping[str, Array | list[str]]

    @property
    def names(self) -> list[str]:
        """Names of the columns."""
        return list(self.columns)

    def numbers(self, name: str) -> Array:
        """Return a column of finite numbers; ValueError names the column and what is wrong with it."""
        cells = self.columns[name]
        values = cells if isinstance(cells, np.ndarray) else self._parse(name, cells)
        missing = np.flatnonzero(np.isnan(values))
        if len(missing):
            raise ValueError(
                f"{self.path}: column {name!r} has {len(missing)} missing value{'s' * (len(missing) > 1)} "
                f"(the first in data row {missing[0] + 1}); fill them in, or remove the rows or the column"
            )
        infinite = np.flatnonzero(np.isinf(values))
        if len(infinite):
            raise ValueError(f"{self.path}: column {name!r} has an infinite value in data row {infinite[0] + 1}")
        return values

    def matrix(self, names: Iterable[str]) -> Array:
        """Return columns of finite numbers side by side."""
        return np.column_stack([self.numbers(name) for name in names])

    def _parse(self, name: str, cells: list[str]) -> Array:
        values = np.empty(len(cells))
        for row, cell in enumerate(cells):
            number = _number(cell)
            if number is None:
                raise ValueError(
                    f"{self.path}: column {name!r} is not numeric: {_shortened(cell)} in data row {row + 1}; "
                    "encode it as numbers or remove the column"
                )
            values[row] = number
        return values


def read_table(path: Path) -> Table:
    """Read a table, Parquet by its suffix and else CSV with a header.

    Parameters
    ----------
    path : Path
        The file.
    """
    names, columns = _read_parquet(path) if path.suffix.lower() in _PARQUET else _read_csv(path)
    twice = sorted({name for name in names if names.count(name) > 1}) if len(set(names)) < len(names) else []
    if twice:
        raise ValueError(f"{path}: the column name {list_names(twice)} occurs more than once; rename the columns")
    if not columns or len(columns[0]) == 0:
        raise ValueError(f"{path} has a header but no rows")
    return Table(path, dict(zip(names, columns, strict=True)))


def check_output(path: Path) -> None:
    """Raise where a table cannot be written under this name, before any work is done for it."""
    if path.suffix.lower() not in (".csv", *_PARQUET):
        raise ValueError(f"{path}: the name of a table to write must end in .csv or .parquet")
    if path.suffix.lower() in _PARQUET:
        _pyarrow()


def write_table(path: Path, columns: Mapping[str, Array]) -> None:
    """Write columns of numbers, to the last digit and atomically; CSV or Parquet by the suffix.

    Parameters
    ----------
    path : Path
        The file; replaced if it exists.
    columns : dict of str to ndarray
        Columns of equal length.
    """
    check_output(path)
    if path.suffix.lower() in _PARQUET:
        pyarrow, parquet = _pyarrow()
        sink = pyarrow.BufferOutputStream()
        parquet.write_table(pyarrow.table(dict(columns)), sink)
        write_atomically(path, sink.getvalue().to_pybytes())
        return
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows(zip(*(values.tolist() for values in columns.values()), strict=True))
    write_atomically(path, text.getvalue().encode("utf-8"))


def list_names(names: list[str]) -> str:
    """Names for a message, not more than fit one."""
    shown = ", ".join(_shortened(name) for name in names[:_NAMES_SHOWN])
    return shown if len(names) <= _NAMES_SHOWN else f"{shown} and {len(names) - _NAMES_SHOWN} more"


def _read_csv(path: Path) -> tuple[list[str], list[list[str]]]:
    content = path.read_bytes()
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError:
        text = "\0"
    if "\0" in text:
        raise ValueError(f"{path} is not a text file in UTF-8; expected CSV (or Parquet, named .parquet)")
    reader = csv.reader(io.StringIO(text, newline=""), strict=True)
    rows: list[list[str]] = []
    try:
        for row in filter(None, reader):
            if rows and len(row) != len(rows[0]):
                raise ValueError(
                    f"{path}: line {reader.line_num} has {len(row)} cells and the header has {len(rows[0])}; "
                    "expected the same number, separated by commas"
                )
            rows.append(row)
    except csv.Error as error:
        raise ValueError(f"{path}: line {reader.line_num} is not CSV: {error}") from error
    if not rows:
        raise ValueError(f"{path} is empty; expected a header line and rows of numbers")
    names = [name.strip() for name in rows[0]]
    return names, [list(column) for column in zip(*rows[1:], strict=True)]


def _read_parquet(path: Path) -> tuple[list[str], list[Array | list[str]]]:
    pyarrow, parquet = _pyarrow()
    content = pyarrow.BufferReader(path.read_bytes())
    try:
        table = parquet.ParquetFile(content).read()
    except pyarrow.ArrowException as error:
        raise ValueError(f"{path} is not a Parquet file that can be read: {error}") from error
    names = [name for name in table.column_names if not _PANDAS_INDEX.fullmatch(name)]
    if not names or table.num_rows == 0:
        raise ValueError(f"{path} has no rows or no columns")
    keep = [k for k, name in enumerate(table.column_names) if not _PANDAS_INDEX.fullmatch(name)]
    return names, [_from_arrow(pyarrow, table.column(k)) for k in keep]


def _from_arrow(pyarrow: Any, column: Any) -> Array | list[str]:
    kinds = pyarrow.types
    known = (kinds.is_integer, kinds.is_floating, kinds.is_boolean, kinds.is_decimal)
    if any(is_kind(column.type) for is_kind in known):
        return np.array(column.cast(pyarrow.float64(), safe=False).to_numpy(), dtype=np.float64)
    return ["" if value is None else str(value) for value in column.to_pylist()]


def _pyarrow() -> tuple[Any, Any]:
    try:
        import pyarrow
        from pyarrow import parquet
    except ImportError as error:
        raise ImportError('Parquet files need pyarrow: pip install "sparsebayes[files]"; or use CSV') from error
    return pyarrow, parquet


def _number(cell: str) -> float | None:
    """Value of a cell, NaN where it is missing, None where it is no number."""
    if cell.strip().lower() in _MISSING:
        return float("nan")
    try:
        # Python reads 1_000 as a number; in a table it is more likely a name.
        return None if "_" in cell else float(cell)
    except ValueError:
        return None


def _shortened(text: str) -> str:
    return repr(text if len(text) <= 40 else f"{text[:37]}...")
