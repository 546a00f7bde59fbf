"""From the columns of a table to a matrix of numbers: what :mod:`sparsebayes.export.columns` describes, done here."""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sparsebayes.export import ModelFileError
from sparsebayes.export.columns import CYCLES, KINDS, Category, Column, Date, Numeric
from sparsebayes.typing import Array

from .cells import as_number, is_missing
from .table import MAX_COLUMNS, Table, did_you_mean, list_names, shortened

MAX_LEVELS = 50
# A column of texts with more levels than a few codes, most of them numbers, is a column of numbers with a slip in it.
_FEW_CODES = 10
_MOSTLY = 0.5
# Dates that span less of a year than this do not show what the season does.
_PART_OF_YEAR = 0.5
# With fewer rows than this, values that are all different say nothing.
_FEWEST_FOR_IDS = 10
_WORDS = re.compile(r"[A-Za-z][a-z]*|[A-Z]+")
_ID_WORDS = frozenset(
    _WORDS.findall("id ids identifier uid uuid guid key index idx no nr number row rowid record serial")
)
_TIME_WORDS = frozenset(
    _WORDS.findall("year years month months week weeks day days hour hours minute minutes second seconds")
    + _WORDS.findall("time date step age t x")
)


@dataclass(frozen=True)
class Encoded:
    """A matrix, and what had to be made up for it."""

    X: Array
    filled: int
    unknown: int


@dataclass(frozen=True)
class Encoder:
    """Which columns a model takes, and how they become numbers; plain data that travels in the model file."""

    columns: tuple[Column, ...]

    @property
    def names(self) -> list[str]:
        """Names of the table's columns that are used."""
        return [column.name for column in self.columns]

    @property
    def features(self) -> list[str]:
        """Names of the columns of the matrix."""
        return [feature for column in self.columns for feature in column.features]

    def encode(self, table: Table) -> Encoded:
        """Return the matrix of a table that has these columns; others are ignored."""
        absent = [name for name in self.names if name not in table.columns]
        if absent:
            others = [name for name in table.names if name not in self.names]
            raise ValueError(
                f"{table.path} lacks the input column{'s' * (len(absent) > 1)} {list_names(absent)}; "
                f"found {list_names(table.names)}{did_you_mean(absent, others)}"
            )
        with np.errstate(over="ignore"):  # the estimator refuses infinite inputs, in words
            blocks, filled, unknown = zip(*(_encode(column, table) for column in self.columns), strict=True)
        return Encoded(np.hstack(blocks), sum(filled), sum(unknown))

    def to_data(self) -> list[dict[str, Any]]:
        """Return plain data, for a model file."""
        return [_to_data(column) for column in self.columns]

    @classmethod
    def from_data(cls, data: Any, n_features: int) -> Encoder:
        """Return the encoder that :meth:`to_data` described; ModelFileError where it does not fit together."""
        if not isinstance(data, list) or not data:
            raise ModelFileError("the model file does not describe its input columns")
        encoder = cls(tuple(_column(item) for item in data))
        if len(set(encoder.names)) < len(encoder.names) or len(encoder.features) != n_features:
            raise ModelFileError(f"the model's columns make {len(encoder.features)} inputs, and it takes {n_features}")
        return encoder


def learn_encoder(
    table: Table,
    rows: NDArray[np.intp],
    *,
    leave_out: Collection[str],
    categorical: Collection[str] = (),
    use: Collection[str] = (),
) -> tuple[Encoder, list[str]]:
    """Decide what each column is, and learn its centre and scale, or its levels, from the training rows.

    Parameters
    ----------
    table : Table
        All rows; they decide what a column is.
    rows : ndarray of int
        The training rows.
    leave_out : collection of str
        Columns that are no inputs, such as the target.
    categorical : collection of str
        Columns of numbers that are names of categories.
    use : collection of str
        Columns to take although they look like names of the rows.

    Returns
    -------
    encoder : Encoder
    notes : list of str
        What was left out or made up, a sentence each.
    """
    columns: list[Column] = []
    notes: list[str] = []
    training = table.take(rows)
    candidates = [name for name in table.names if name not in leave_out]
    asides = {name: why for name in candidates if name not in use and (why := _names_rows(table, name))}
    if len(asides) == len(candidates):  # a counter that is all there is to learn from is taken
        named = [name for name in asides if table.meaning(name).kind == "text" or table.meaning(name).category]
        asides = {name: asides[name] for name in named}
    for name in candidates:
        if name in asides:
            notes.append(f"{name!r} set aside: {asides[name]}; --use {name} takes it")
            continue
        column, found = _learn_column(table, training, name, name in categorical)
        columns += [column] if column is not None else []
        notes += found
    encoder = Encoder(tuple(columns))
    if not columns:
        raise ValueError(f"{table.path} has no column to learn from: {'; '.join(notes) or 'only the target is there'}")
    if len(encoder.features) > MAX_COLUMNS:
        raise ValueError(
            f"{table.path}: with an indicator for every category there are {len(encoder.features)} inputs, and there "
            f"may be {MAX_COLUMNS}; leave columns out with --drop"
        )
    return encoder, notes


def _names_rows(table: Table, name: str) -> str:
    """Why a column only names the rows: each has a text of its own, or they are numbered; empty where it does not."""
    n = table.n_rows
    meaning = table.meaning(name)
    if n < _FEWEST_FOR_IDS or meaning.kind not in ("number", "text"):
        return ""
    if meaning.kind == "text" or meaning.category:
        texts = table.texts(name)
        if not meaning.category and _mostly_numbers(texts):
            return ""
        return "each row has a text of its own" if len(set(texts)) == n and "" not in texts else ""
    values = table.parse(name)
    assert values is not None
    if not np.all(np.isfinite(values)) or np.any(values != np.round(values)) or len(np.unique(values)) < n:
        return ""
    low, high = float(values.min()), float(values.max())
    words = {word.lower() for word in _WORDS.findall(name)}
    if words & _TIME_WORDS:
        return ""
    if words & _ID_WORDS:
        return "its name and its values, whole numbers that are all different, are those of an identifier"
    if high - low == n - 1 and low in (0.0, 1.0):
        return f"it numbers the rows ({low:.0f} to {high:.0f}, each once)"
    return ""


def _learn_column(table: Table, training: Table, name: str, as_category: bool) -> tuple[Column | None, list[str]]:
    meaning = table.meaning(name)
    as_category = as_category or meaning.category
    if not as_category and meaning.kind == "number":
        table.numbers(name)  # infinite and huge values are refused wherever they are
        return _learn_number(training.numbers(name), name, meaning.removed, meaning.decimal)
    if not as_category and meaning.kind == "date":
        return _learn_date(table, training, name)
    kind = meaning.kind if meaning.kind in KINDS and not meaning.removed else "text"
    levels, everywhere = tuple(sorted(set(training.texts(name, kind)))), set(table.texts(name, kind))
    if not as_category and len(everywhere) > _FEW_CODES:
        _refuse_slip(table, name)
    if len(everywhere) > MAX_LEVELS:
        return None, [f"{name!r} left out: {len(everywhere)} different texts are too many for categories"]
    if len(levels) < 2:
        return None, [f"{name!r} left out: it has one value only"]
    return Category(name, levels, kind), []


def _learn_number(values: Array, name: str, removed: tuple[str, ...], decimal: str) -> tuple[Column | None, list[str]]:
    found, notes = _standard(values, name)
    if found is None:
        return None, notes
    if removed or decimal != ".":
        notes.append(f"{name!r}: read as numbers, without {list_names(list(removed)) if removed else 'decimal commas'}")
    return Numeric(name, *found, removed, decimal), notes


def _learn_date(table: Table, training: Table, name: str) -> tuple[Column | None, list[str]]:
    meaning = table.meaning(name)
    days = training.days(name, meaning.day_first)
    found, notes = _standard(days, name)
    if found is None:
        return None, notes
    everywhere = table.days(name, meaning.day_first)
    year = np.nanmax(days) - np.nanmin(days) >= _PART_OF_YEAR * CYCLES["year"]
    clock = bool(np.any(np.nan_to_num(everywhere) % 1.0 > 0.0))
    cycles = tuple(cycle for cycle, there in (("year", year), ("day", clock)) if there)
    parts = " and ".join(f"the time of the {cycle}" for cycle in cycles)
    order = "day" if meaning.day_first else "month"
    guess = f"; that the {order} comes first is a guess, write 2024-03-31 to be sure" if meaning.ambiguous else ""
    notes.append(f"{name!r}: dates, taken as a number of days{f', and as {parts}' if parts else ''}{guess}")
    return Date(name, *found, cycles, meaning.day_first), notes


def _standard(values: Array, name: str) -> tuple[tuple[float, float, float] | None, list[str]]:
    """Centre, scale and the value for missing ones; None where there is nothing to learn from."""
    present = values[~np.isnan(values)]
    if len(present) == 0:
        return None, [f"{name!r} left out: it has no values"]
    fill = float(np.median(present))
    filled = np.where(np.isnan(values), fill, values)
    scale = float(np.std(filled))
    if np.ptp(filled) == 0.0 or scale == 0.0:
        return None, [f"{name!r} left out: it has one value only"]
    missing = len(values) - len(present)
    note = f"{name!r}: {missing} missing value{'s' * (missing > 1)} filled in with the median {fill:.6g}"
    return (float(np.mean(filled)), scale, fill), [note] if missing else []


def _encode(column: Column, table: Table) -> tuple[Array, int, int]:
    """Matrix columns, missing values filled in, unknown categories."""
    if isinstance(column, Category):
        cells = table.texts(column.name, column.kind)
        places = {level: place for place, level in enumerate(column.shown)}
        indicators = np.zeros((len(cells), len(column.shown)))
        for row, cell in enumerate(cells):
            if cell in places:
                indicators[row, places[cell]] = 1.0
        return indicators, 0, sum(cell not in column.levels for cell in cells)
    if isinstance(column, Numeric):
        values = table.checked(column.name, table.read_numbers(column.name, column.removed, column.decimal))
        cycles: tuple[str, ...] = ()
    else:
        values, cycles = table.days(column.name, column.day_first), column.cycles
    missing = np.isnan(values)
    filled = np.where(missing, column.fill, values)
    parts = [(filled - column.centre) / column.scale]
    for cycle in cycles:
        angle = 2.0 * np.pi / CYCLES[cycle] * filled
        parts += [np.cos(angle), np.sin(angle)]
    return np.column_stack(parts), int(missing.sum()), 0


def _mostly_numbers(cells: list[str]) -> bool:
    present = [as_number(cell) is not None for cell in cells if not is_missing(cell)]
    return bool(present) and float(np.mean(present)) > _MOSTLY


def _refuse_slip(table: Table, name: str) -> None:
    if _mostly_numbers([str(cell) for cell in table.columns[name]]):
        row, cell = table.first_text(name)
        raise ValueError(
            f"{table.path}: column {name!r} is not numeric: {shortened(cell)} in data row {row + 1}, where most cells "
            f"are numbers; mend it, leave the column out with --drop, or take its cells as names with --categorical"
        )


def _to_data(column: Column) -> dict[str, Any]:
    """Plain data of a column; what is as it usually is, is not written."""
    if isinstance(column, Category):
        data: dict[str, Any] = {"category": column.name, "levels": list(column.levels)}
        return data if column.kind == "text" else data | {"kind": column.kind}
    numbers = {"centre": column.centre, "scale": column.scale, "fill": column.fill}
    if isinstance(column, Date):
        return {"date": column.name, **numbers, "cycles": list(column.cycles), "day_first": column.day_first}
    signs = {"removed": list(column.removed), "decimal": column.decimal}
    return {"number": column.name, **numbers, **(signs if column.removed or column.decimal != "." else {})}


_ALIEN = "the model file does not describe its input columns in the way that 'sparsebayes fit' does"


# What plain data of a column must and may have, and of which type, by the entry that names the column.
_STANDARDISED = {"centre": float, "scale": float, "fill": float}
_FORMS: dict[str, tuple[dict[str, type], dict[str, type]]] = {
    "category": ({"levels": list}, {"kind": str}),
    "number": (_STANDARDISED, {"removed": list, "decimal": str}),
    "date": (_STANDARDISED | {"cycles": list, "day_first": bool}, {}),
}


def _column(item: Any) -> Column:
    """The column that :func:`_to_data` described; ModelFileError where it did not."""
    what = next((key for key in _FORMS if isinstance(item, dict) and key in item), None)
    if what is None:
        raise ModelFileError(_ALIEN)
    needed, optional = _FORMS[what]
    found = _checked(item, {what: str, **needed}, optional)
    column = _READERS[what](found)
    if column is None:
        raise ModelFileError(_ALIEN)
    return column


def _category(found: dict[str, Any]) -> Category | None:
    levels, kind = found["levels"], found.get("kind", "text")
    distinct = _are_texts(levels) and len(set(levels)) == len(levels) > 1
    return Category(found["category"], tuple(levels), kind) if distinct and kind in KINDS else None


def _number(found: dict[str, Any]) -> Numeric | None:
    removed, decimal = found.get("removed", []), found.get("decimal", ".")
    signs = _are_texts(removed) and "" not in removed and decimal in (".", ",")
    return Numeric(found["number"], *_standards(found), tuple(removed), decimal) if signs else None


def _date(found: dict[str, Any]) -> Date | None:
    cycles = found["cycles"]
    known = _are_texts(cycles) and set(cycles) <= set(CYCLES)
    return Date(found["date"], *_standards(found), tuple(cycles), found["day_first"]) if known else None


_READERS = {"category": _category, "number": _number, "date": _date}


def _standards(found: dict[str, Any]) -> tuple[float, float, float]:
    centre, scale, fill = (found[key] for key in _STANDARDISED)
    if not np.all(np.isfinite([centre, scale, fill])) or scale <= 0.0:
        raise ModelFileError(_ALIEN)
    return centre, scale, fill


def _checked(item: dict[str, Any], needed: dict[str, type], optional: dict[str, type]) -> dict[str, Any]:
    kinds = {key: type(value) for key, value in item.items()}
    known = {key: kind for key, kind in (needed | optional).items() if key in needed or key in kinds}
    if kinds != known:
        raise ModelFileError(_ALIEN)
    return item


def _are_texts(items: list[Any]) -> bool:
    return all(type(item) is str for item in items)
