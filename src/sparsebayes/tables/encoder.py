"""From the columns of a table to a matrix of numbers: standardised numbers, and an indicator for every category."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sparsebayes.export import ModelFileError

from .table import MAX_COLUMNS, Table, as_number, list_names, shortened

Array = NDArray[np.float64]

MAX_LEVELS = 50
# A column of texts with more levels than this, most of them numbers, is a column of numbers with a slip in it.
_MOSTLY = 0.5


@dataclass(frozen=True)
class Numeric:
    """A column of numbers: a missing one is filled in, then all are centred and scaled."""

    name: str
    centre: float
    scale: float
    fill: float

    @property
    def features(self) -> list[str]:
        """Names of the matrix columns that it becomes."""
        return [self.name]

    def encode(self, table: Table) -> tuple[Array, int, int]:
        """Matrix columns, missing values filled in, unknown categories."""
        values = table.numbers(self.name)
        missing = np.isnan(values)
        return ((np.where(missing, self.fill, values) - self.centre) / self.scale)[:, None], int(missing.sum()), 0


@dataclass(frozen=True)
class Category:
    """A column of categories: an indicator for each level, one alone where there are two levels.

    A missing value is a level of its own where the training rows had one; a level that they did not have is none.
    """

    name: str
    levels: tuple[str, ...]

    @property
    def _shown(self) -> tuple[str, ...]:
        return self.levels[1:] if len(self.levels) == 2 else self.levels

    @property
    def features(self) -> list[str]:
        """Names of the matrix columns that it becomes."""
        return [f"{self.name} = {level or '(missing)'}" for level in self._shown]

    def encode(self, table: Table) -> tuple[Array, int, int]:
        """Matrix columns, missing values filled in, unknown categories."""
        cells = table.texts(self.name)
        unknown = sum(cell not in self.levels for cell in cells)
        return np.array([[float(cell == level) for level in self._shown] for cell in cells]), 0, unknown


Column = Numeric | Category


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
            raise ValueError(
                f"{table.path} lacks the input column{'s' * (len(absent) > 1)} {list_names(absent)}; "
                f"found {list_names(table.names)}"
            )
        with np.errstate(over="ignore"):  # the estimator refuses infinite inputs, in words
            blocks, filled, unknown = zip(*(column.encode(table) for column in self.columns), strict=True)
        return Encoded(np.hstack(blocks), sum(filled), sum(unknown))

    def to_data(self) -> list[dict[str, Any]]:
        """Return plain data, for a model file."""
        return [
            {"number": c.name, "centre": c.centre, "scale": c.scale, "fill": c.fill}
            if isinstance(c, Numeric)
            else {"category": c.name, "levels": list(c.levels)}
            for c in self.columns
        ]

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
    table: Table, rows: NDArray[np.intp], *, leave_out: Collection[str], categorical: Collection[str] = ()
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

    Returns
    -------
    encoder : Encoder
    notes : list of str
        What was left out or made up, a sentence each.
    """
    columns: list[Column] = []
    notes: list[str] = []
    training = table.take(rows)
    for name in table.names:
        if name in leave_out:
            continue
        column, note = _learn_column(table, training, name, name in categorical)
        columns += [column] if column is not None else []
        notes += [note] if note else []
    encoder = Encoder(tuple(columns))
    if not columns:
        raise ValueError(f"{table.path} has no column to learn from: {'; '.join(notes) or 'only the target is there'}")
    if len(encoder.features) > MAX_COLUMNS:
        raise ValueError(
            f"{table.path}: with an indicator for every category there are {len(encoder.features)} inputs, and there "
            f"may be {MAX_COLUMNS}; leave columns out with --drop"
        )
    return encoder, notes


def _learn_column(table: Table, training: Table, name: str, as_category: bool) -> tuple[Column | None, str]:
    if not as_category and table.parse(name) is not None:
        table.numbers(name)  # infinite and huge values are refused wherever they are
        return _learn_number(training.numbers(name), name)
    levels = tuple(sorted(set(training.texts(name))))
    if len(set(table.texts(name))) > MAX_LEVELS:
        _refuse_slip(table, name)
        return None, f"{name!r} left out: {len(set(table.texts(name)))} different texts are too many for categories"
    if len(levels) < 2:
        return None, f"{name!r} left out: it has one value only"
    return Category(name, levels), ""


def _learn_number(values: Array, name: str) -> tuple[Column | None, str]:
    present = values[~np.isnan(values)]
    if len(present) == 0:
        return None, f"{name!r} left out: it has no values"
    fill = float(np.median(present))
    filled = np.where(np.isnan(values), fill, values)
    scale = float(np.std(filled))
    if np.ptp(filled) == 0.0 or scale == 0.0:
        return None, f"{name!r} left out: it has one value only"
    missing = len(values) - len(present)
    note = f"{name!r}: {missing} missing value{'s' * (missing > 1)} filled in with the median {fill:.6g}"
    return Numeric(name, float(np.mean(filled)), scale, fill), note if missing else ""


def _refuse_slip(table: Table, name: str) -> None:
    cells = [str(cell) for cell in table.columns[name]]
    if np.mean([as_number(cell) is not None for cell in cells]) > _MOSTLY:
        row, cell = table.first_text(name)
        raise ValueError(
            f"{table.path}: column {name!r} is not numeric: {shortened(cell)} in data row {row + 1}, where most cells "
            f"are numbers; mend it, or leave the column out with --drop"
        )


def _column(item: Any) -> Column:
    if isinstance(item, dict) and set(item) == {"number", "centre", "scale", "fill"}:
        numbers = [item["centre"], item["scale"], item["fill"]]
        good = type(item["number"]) is str and all(type(value) is float for value in numbers)
        if good and bool(np.all(np.isfinite(numbers))) and item["scale"] > 0.0:
            return Numeric(item["number"], *numbers)
    if isinstance(item, dict) and set(item) == {"category", "levels"}:
        levels = item["levels"]
        good = type(item["category"]) is str and isinstance(levels, list) and len(levels) > 1
        if good and all(type(level) is str for level in levels) and len(set(levels)) == len(levels):
            return Category(item["category"], tuple(levels))
    raise ModelFileError("the model file does not describe its input columns in the way that 'sparsebayes fit' does")
