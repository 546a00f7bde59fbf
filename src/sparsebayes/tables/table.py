"""Tables of numbers and texts: CSV with the standard library alone, Parquet with the extra ``files``."""

from __future__ import annotations

import csv
import hashlib
import io
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sparsebayes.atomic import write_atomically

Array = NDArray[np.float64]

_PARQUET = (".parquet", ".pq")
_MISSING = frozenset({"", "na", "n/a", "nan", "null", "none", "?"})
# pandas stores the labels of rows under such names; they are no data.
_PANDAS_INDEX = re.compile(r"__index_level_\d+__")
_NAMES_SHOWN = 20
_DELIMITERS = {",": "commas", ";": "semicolons", "\t": "tabs", "|": "bars"}
_DECIMAL_COMMA = re.compile(r"[+-]?\d*,\d+([eE][+-]?\d+)?")
_LARGEST = 1e150  # squares of larger numbers overflow

MAX_COLUMNS = 10_000


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

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return len(next(iter(self.columns.values())))

    @property
    def fingerprint(self) -> str:
        """Checksum of names and cells, which tells whether two tables are the same."""
        digest = hashlib.sha256()
        for name, cells in self.columns.items():
            numbers = self.parse(name)
            content = "\0".join(map(str, cells)).encode() if numbers is None else numbers.tobytes()
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
        )

    def parse(self, name: str) -> Array | None:
        """Return a column as numbers, NaN where one is missing; None if a cell is not a number."""
        cells = self.columns[name]
        if isinstance(cells, np.ndarray):
            return cells
        values = np.empty(len(cells))
        for row, cell in enumerate(cells):
            number = as_number(cell)
            if number is None:
                return None
            values[row] = number
        return values

    def texts(self, name: str) -> list[str]:
        """Return a column as texts, empty where a value is missing; whole numbers have no decimals."""
        cells = self.columns[name]
        if isinstance(cells, np.ndarray):
            return ["" if np.isnan(v) else str(int(v)) if v == np.round(v) else repr(v) for v in cells.tolist()]
        return ["" if is_missing(cell) else cell.strip() for cell in cells]

    def first_text(self, name: str) -> tuple[int, str]:
        """Row and content of the first cell that is not a number."""
        return next((row, cell) for row, cell in enumerate(self.columns[name]) if as_number(str(cell)) is None)

    def numbers(self, name: str) -> Array:
        """Return a column of numbers, NaN where one is missing; ValueError names what is wrong with it."""
        values = self.parse(name)
        if values is None:
            row, cell = self.first_text(name)
            raise ValueError(f"{self.path}: column {name!r} is not numeric: {shortened(cell)} in data row {row + 1}")
        infinite = np.flatnonzero(np.isinf(values))
        if len(infinite):
            raise ValueError(f"{self.path}: column {name!r} has an infinite value in data row {infinite[0] + 1}")
        largest = float(np.nanmax(np.abs(values))) if not np.all(np.isnan(values)) else 0.0
        if largest > _LARGEST:
            raise ValueError(f"{self.path}: column {name!r} has values of {largest:.3g}; rescale it")
        return values


def as_table(data: Any, name: str = "the table") -> Table:
    """Return a mapping of columns, or a data frame of pandas or Polars, as a table.

    Parameters
    ----------
    data : Table, mapping of str to sequence, or data frame
        Columns of equal length.
    name : str
        What messages call it.
    """
    if isinstance(data, Table):
        return data
    columns: dict[str, Array | list[str]] = {}
    for key in data.columns if hasattr(data, "columns") else data:
        values = np.asarray(data[key])
        if values.ndim != 1:
            raise ValueError(f"{name}: column {str(key)!r} has shape {values.shape}; expected one value for each row")
        if values.dtype.kind in "biuf":
            columns[str(key)] = values.astype(np.float64)
        else:
            columns[str(key)] = ["" if _is_null(cell) else str(cell) for cell in values.tolist()]
    lengths = {len(values) for values in columns.values()}
    if len(lengths) != 1 or 0 in lengths:
        raise ValueError(f"{name} has columns of {sorted(lengths)} rows; expected one number of rows, at least 1")
    return Table(Path(name), columns)


def read_table(path: Path) -> Table:
    """Read a table, Parquet by its suffix and else CSV with a header.

    Parameters
    ----------
    path : Path
        The file.
    """
    names, columns = _read_parquet(path) if path.suffix.lower() in _PARQUET else _read_csv(path)
    names, columns = _without_row_numbers(path, names, columns)
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


def write_table(path: Path, columns: Mapping[str, NDArray[Any]]) -> None:
    """Write columns of numbers or texts, to the last digit and atomically; CSV or Parquet by the suffix.

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
    shown = ", ".join(shortened(name) for name in names[:_NAMES_SHOWN])
    return shown if len(names) <= _NAMES_SHOWN else f"{shown} and {len(names) - _NAMES_SHOWN} more"


def _read_csv(path: Path) -> tuple[list[str], list[list[str]]]:
    content = path.read_bytes()
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError:
        text = "\0"
    if "\0" in text:
        raise ValueError(f"{path} is not a text file in UTF-8; expected CSV (or Parquet, named .parquet)")
    delimiter = _delimiter(text)
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True)
    rows: list[list[str]] = []
    try:
        for row in filter(None, reader):
            if not rows:
                _check_width(path, len(row))
            elif len(row) != len(rows[0]):
                raise ValueError(
                    f"{path}: line {reader.line_num} has {len(row)} cells and the header has {len(rows[0])}; "
                    f"expected the same number, separated by {_DELIMITERS[delimiter]}"
                )
            rows.append(row)
    except csv.Error as error:
        raise ValueError(f"{path}: line {reader.line_num} is not CSV: {error}") from error
    if not rows:
        raise ValueError(f"{path} is empty; expected a header line and rows of numbers")
    names = [name.strip() for name in rows[0]]
    columns = [list(column) for column in zip(*rows[1:], strict=True)]
    # Where commas do not separate cells they may be the decimal point.
    return names, columns if delimiter == "," else [_with_points(column) for column in columns]


def _delimiter(text: str) -> str:
    """What separates the names in the header: the candidate that occurs most often outside quotes."""
    header = re.sub(r'"[^"]*"', "", text.lstrip().partition("\n")[0])
    return max(_DELIMITERS, key=header.count)


def _with_points(cells: list[str]) -> list[str]:
    return [cell.replace(",", ".") if _DECIMAL_COMMA.fullmatch(cell.strip()) else cell for cell in cells]


def _check_width(path: Path, n: int) -> None:
    if n > MAX_COLUMNS:
        raise ValueError(
            f"{path} has {n} columns, and tables may have {MAX_COLUMNS}; choose fewer, or fit a matrix from Python "
            "with SparseBayesRegressor or SparseBayesClassifier"
        )


def _without_row_numbers(path: Path, names: list[str], columns: list[Any]) -> tuple[list[str], list[Any]]:
    """Leave out a first column without a name that only numbers the rows, as pandas writes it."""
    if "" not in names:
        return names, columns
    place = names.index("")
    cells = [as_number(str(cell)) for cell in columns[place]] if columns else []
    if place == 0 and any(cells == list(range(start, start + len(cells))) for start in (0, 1)):
        return names[1:], columns[1:]
    raise ValueError(f"{path}: column {place + 1} has no name; name it, or remove it")


def _read_parquet(path: Path) -> tuple[list[str], list[Array | list[str]]]:
    pyarrow, parquet = _pyarrow()
    content = pyarrow.BufferReader(path.read_bytes())
    try:
        table = parquet.ParquetFile(content).read()
    except pyarrow.ArrowException as error:
        raise ValueError(f"{path} is not a Parquet file that can be read: {error}") from error
    _check_width(path, table.num_columns)
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


def as_number(cell: str) -> float | None:
    """Value of a cell, NaN where it is missing, None where it is no number."""
    if is_missing(cell):
        return float("nan")
    try:
        # Python reads 1_000 as a number; in a table it is more likely a name.
        return None if "_" in cell else float(cell)
    except ValueError:
        return None


def is_missing(cell: str) -> bool:
    """Whether a cell stands for a value that is not there."""
    return cell.strip().lower() in _MISSING


def shortened(text: str) -> str:
    """Text in quotes for a message, cut where it is long."""
    return repr(text if len(text) <= 40 else f"{text[:37]}...")


def _is_null(cell: Any) -> bool:
    return cell is None or cell != cell or str(cell) == "<NA>"
