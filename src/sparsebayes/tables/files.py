"""Tables in files: CSV with the standard library alone, packed or not; Parquet, Feather and Excel with extras."""

from __future__ import annotations

import csv
import gzip
import io
import re
import zipfile
import zlib
from collections.abc import Mapping, Sequence
from pathlib import Path, PurePath
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sparsebayes.atomic import write_atomically

from .cells import as_number, is_missing
from .table import HEADERLESS, MAX_COLUMNS, Array, Table, as_cells, list_names

_PARQUET = (".parquet", ".pq")
_FEATHER = (".feather", ".arrow", ".ipc")
_EXCEL = (".xlsx", ".xlsm")
# pandas stores the labels of rows under such names; they are no data.
_PANDAS_INDEX = re.compile(r"__index_level_\d+__")
_DELIMITERS = {",": "commas", ";": "semicolons", "\t": "tabs", "|": "bars"}
_DECIMAL_COMMA = re.compile(r"[+-]?\d*,\d+([eE][+-]?\d+)?")
# Characters that no text file has, and binary files have soon.
_BINARY = re.compile("[\0-\x08\x0e-\x1a\x1c-\x1f]")
_YEARS = range(1800, 2201)

Columns = tuple[list[str], list[Any], list[str]]


def read_table(path: Path) -> Table:
    """Read a table by its suffix: Parquet, Feather, Excel, and else CSV with a header; .gz and .zip are unpacked.

    Parameters
    ----------
    path : Path
        The file.
    """
    if path.suffix.lower() in (*_PARQUET, *_FEATHER):
        _pyarrow()  # a missing extra is said before anything is read
    inner, content = _unpack(path, path.read_bytes())
    suffix, categories = PurePath(inner).suffix.lower(), frozenset[str]()
    if suffix in _PARQUET or suffix in _FEATHER:
        (names, columns, notes), categories = _read_arrow(path, content, suffix in _FEATHER)
    elif suffix in _EXCEL:
        names, columns, notes = _read_excel(path, content)
    else:
        names, columns, notes = _read_csv(path, content)
    names, columns = _without_row_numbers(path, names, columns)
    twice = sorted({name for name in names if names.count(name) > 1}) if len(set(names)) < len(names) else []
    if twice:
        raise ValueError(f"{path}: the column name {list_names(twice)} occurs more than once; rename the columns")
    if not columns or len(columns[0]) == 0:
        raise ValueError(f"{path} has a header but no rows")
    headed = suffix not in (*_PARQUET, *_FEATHER) and not any(HEADERLESS in note for note in notes)
    return Table(path, dict(zip(names, columns, strict=True)), tuple(notes), 2 if headed else 1, categories)


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
    write_atomically(path, csv_text(columns).encode("utf-8"))


def csv_text(columns: Mapping[str, NDArray[Any]]) -> str:
    """Return columns of numbers or texts as CSV, to the last digit; what is not a number is empty."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(columns)
    for row in zip(*(values.tolist() for values in columns.values()), strict=True):
        writer.writerow(["" if cell != cell else cell for cell in row])
    return text.getvalue()


def _unpack(path: Path, content: bytes) -> tuple[str, bytes]:
    """Name and content of the file inside .gz or .zip."""
    suffix = path.suffix.lower()
    try:
        if suffix == ".gz":
            return path.stem, gzip.decompress(content)
        if suffix == ".zip":
            with zipfile.ZipFile(io.BytesIO(content)) as archive:
                held = [n for n in archive.namelist() if not n.endswith("/") and not n.startswith("__MACOSX")]
                if len(held) != 1:
                    raise ValueError(f"{path} holds {len(held)} files ({list_names(held)}); expected one table")
                return held[0], archive.read(held[0])
    except (OSError, EOFError, zlib.error, zipfile.BadZipFile, RuntimeError) as error:
        raise ValueError(f"{path} cannot be unpacked: {error}") from error
    return path.name, content


def _read_csv(path: Path, content: bytes) -> Columns:
    text, notes = _decode(path, content)
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
    if delimiter != ",":  # where commas do not separate cells they may be the decimal point
        body = [_with_points(list(column)) for column in zip(*rows[1:], strict=True)]
        rows[1:] = [list(row) for row in zip(*body, strict=True)]
    names = [name.strip() for name in rows[0]]
    if _lacks_header(rows):
        names = [f"column{k + 1}" for k in range(len(rows[0]))]
        notes.append(f"{HEADERLESS}: the columns are called {list_names(names[:2])} … {names[-1]!r}")
        rows.insert(0, names)
    return names, [list(column) for column in zip(*rows[1:], strict=True)], notes


def _decode(path: Path, content: bytes) -> tuple[str, list[str]]:
    """Text of a file: UTF-8, UTF-16 where it says so, and else what Windows writes in Western Europe."""
    notes = []
    try:
        text = content.decode("utf-16" if content[:2] in (b"\xff\xfe", b"\xfe\xff") else "utf-8-sig")
    except UnicodeDecodeError:
        text = content.decode("cp1252", errors="replace") if b"\0" not in content else "\0"
        notes.append("the file is not in UTF-8 and was read as Windows-1252 (Western European)")
    if _BINARY.search(text):
        raise ValueError(f"{path} is not a text file; expected CSV (or Parquet, Feather or Excel, named so)")
    return text, notes


def _delimiter(text: str) -> str:
    """What separates the names in the header: the candidate that occurs most often outside quotes."""
    header = re.sub(r'"[^"]*"', "", text.lstrip().partition("\n")[0])
    return max(_DELIMITERS, key=header.count)


def _with_points(cells: list[str]) -> list[str]:
    """Numbers with decimal commas as Python reads them, where all the cells are such numbers."""
    if not all(_DECIMAL_COMMA.fullmatch(cell.strip()) or as_number(cell) is not None for cell in cells):
        return cells
    return [cell.replace(",", ".") if _DECIMAL_COMMA.fullmatch(cell.strip()) else cell for cell in cells]


def _lacks_header(rows: list[list[str]]) -> bool:
    """Whether the first row is a row like the others: mostly numbers, which are no counts 0, 1, … and no years."""
    if len(rows) < 2:
        return False
    head = [as_number(_with_points([cell])[0]) if not is_missing(cell) else None for cell in rows[0]]
    numbers = [value for value in head if value is not None]
    if 2 * len(numbers) < len(head) or not numbers:
        return False
    counts = all(value == int(value) for value in numbers if np.isfinite(value)) and np.all(np.diff(numbers) == 1)
    years = len(set(numbers)) == len(numbers) and all(value in _YEARS for value in numbers)
    return not (len(numbers) > 1 and (counts or years))


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


def _read_arrow(path: Path, content: bytes, feather: bool) -> tuple[Columns, frozenset[str]]:
    """The columns, and which of them hold categories by their type."""
    pyarrow, parquet = _pyarrow()
    source = pyarrow.BufferReader(content)
    kind = "Feather" if feather else "Parquet"
    try:
        if feather:
            from pyarrow import feather as reader

            table = reader.read_table(source)
        else:
            table = parquet.ParquetFile(source).read()
    except (pyarrow.ArrowException, OSError) as error:
        raise ValueError(f"{path} is not a {kind} file that can be read: {error}") from error
    _check_width(path, table.num_columns)
    keep = [k for k, name in enumerate(table.column_names) if not _PANDAS_INDEX.fullmatch(name)]
    if not keep or table.num_rows == 0:
        raise ValueError(f"{path} has no rows or no columns")
    names = [table.column_names[k] for k in keep]
    categories = frozenset(field.name for field in table.schema if pyarrow.types.is_dictionary(field.type))
    return (names, [_from_arrow(pyarrow, table.column(k)) for k in keep], []), categories | _of_pandas(table.schema)


def _of_pandas(schema: Any) -> frozenset[str]:
    """Columns that pandas notes as categorical: Parquet has dictionaries of texts, and of numbers none."""
    noted = schema.pandas_metadata or {}
    return frozenset(c.get("field_name") for c in noted.get("columns", []) if c.get("pandas_type") == "categorical")


def _from_arrow(pyarrow: Any, column: Any) -> Array | list[str]:
    kinds = pyarrow.types
    if kinds.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    if kinds.is_integer(column.type) or kinds.is_decimal(column.type):
        return np.array(column.cast(pyarrow.float64(), safe=False).to_numpy(), dtype=np.float64)
    if kinds.is_floating(column.type):
        return as_cells(np.array(column.to_numpy()))
    if kinds.is_timestamp(column.type):
        column = column.cast(pyarrow.timestamp("us", column.type.tz), safe=False)
    values = np.empty(len(column), dtype=object)
    values[:] = column.to_pylist()
    return as_cells(values)


def _read_excel(path: Path, content: bytes) -> Columns:
    filled = {title: rows for title, rows in _sheets(path, content).items() if rows}
    if not filled:
        raise ValueError(f"{path} is empty; expected a header line and rows of numbers")
    title, rows = next(iter(filled.items()))
    width = max(len(row) for row in rows)
    _check_width(path, width)
    names = ["" if cell is None else str(cell).strip() for cell in _filled_up(rows[0], width)]
    cells = np.empty((len(rows) - 1, width), dtype=object)
    for values, row in zip(cells, rows[1:], strict=True):
        values[:] = _filled_up(row, width)
    notes = [f"read from the first of {len(filled)} sheets, {title!r}"] if len(filled) > 1 else []
    return names, [as_cells(column) for column in cells.T], notes


def _sheets(path: Path, content: bytes) -> dict[str, list[list[Any]]]:
    """The rows of every sheet that hold anything, each as far as its last filled cell."""
    try:
        import openpyxl
    except ImportError as error:
        raise ImportError('Excel files need openpyxl: pip install "sparsebayes[excel]"; or save it as CSV') from error
    try:
        book = openpyxl.load_workbook(io.BytesIO(content), read_only=True, data_only=True)
        sheets = {sheet.title: list(sheet.iter_rows(values_only=True)) for sheet in book.worksheets}
        book.close()
    except (zipfile.BadZipFile, KeyError, ValueError, OSError) as error:
        raise ValueError(f"{path} is not an Excel file that can be read: {error}") from error
    return {title: list(filter(None, map(_shortened, rows))) for title, rows in sheets.items()}


def _shortened(row: Sequence[Any]) -> list[Any]:
    last = max((k for k, cell in enumerate(row) if cell is not None), default=-1)
    return list(row[: last + 1])


def _filled_up(row: list[Any], width: int) -> list[Any]:
    return row + [None] * (width - len(row))


def _pyarrow() -> tuple[Any, Any]:
    try:
        import pyarrow
        from pyarrow import parquet
    except ImportError as error:
        raise ImportError('Parquet files need pyarrow: pip install "sparsebayes[files]"; or use CSV') from error
    return pyarrow, parquet
