"""What is to be predicted: numbers or classes, and why."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .cells import Meaning
from .encoder import MAX_LEVELS
from .table import HEADERLESS, Table, did_you_mean, list_names, shortened

REGRESSION, CLASSIFICATION = "regression", "classification"
TASKS = (REGRESSION, CLASSIFICATION)

# Rows that a class must have.
FEWEST_OF_A_CLASS = 2
# Whole numbers with no more values than this may be codes of classes; the user is told how to say so.
_FEW = 10
# Counts that are larger on average are as good as Gaussian.
_LARGEST_MEAN_COUNT = 100.0
_COUNTS = "if they are counts, --likelihood poisson takes them as such"


@dataclass(frozen=True)
class Target:
    """The target of a table.

    Attributes
    ----------
    name : str
        Its column.
    task : {"regression", "classification"}
        What it is.
    reason : str
        Why.
    values : ndarray
        Numbers, or labels as texts, of the rows that have one.
    rows : ndarray of int
        Those rows.
    """

    name: str
    task: str
    reason: str
    values: NDArray[Any]
    rows: NDArray[np.intp]


def read_target(table: Table, name: str | None, task: str | None = None) -> Target:
    """Read the target and decide what it is, unless ``task`` says so.

    Parameters
    ----------
    table : Table
        The table.
    name : str or None
        Column of the target; None is an error that lists the columns.
    task : {"regression", "classification"}, optional
        Given by the user.
    """
    if name is None or name not in table.names:
        what = "no --target is given" if name is None else f"--target {name!r} is not a column"
        near = did_you_mean([name], table.names) if name is not None else ""
        # Where the first line holds values and no names, that is why a name is not there.
        noted = f"; {HEADERLESS}" if any(note.startswith(HEADERLESS) for note in table.notes) else ""
        raise ValueError(f"{what}; the columns of {table.path} are {list_names(table.names)}{near}{noted}")
    numbers, meaning = table.parse(name), table.meaning(name)
    if meaning.kind == "date":
        raise ValueError(
            f"{table.path}: the target {name!r} is a column of dates, which is neither a number nor a class; make it a "
            "number, such as the days since a start"
        )
    if task == REGRESSION and numbers is None:
        row, cell = table.first_text(name)
        raise ValueError(
            f"{table.path}: the target {name!r} is not numeric ({shortened(cell)} in data row {row + 1}), so it cannot "
            "be a regression; leave out --task, or use --task classification"
        )
    chosen, reason = (task, "as asked") if task is not None else _decide(numbers, meaning)
    if chosen == REGRESSION:
        values = table.numbers(name)
        rows = np.flatnonzero(~np.isnan(values))
    else:
        values = np.array(table.texts(name))
        rows = np.flatnonzero(values != "")
    if len(rows) == 0:
        raise ValueError(f"{table.path}: the target {name!r} has no values")
    return Target(name, chosen, reason, values[rows], rows)


def check_target(table: Table, target: Target) -> None:
    """Raise where nothing can be learned: a single row, one value only, or a class of one row."""
    if len(target.rows) < 2:
        raise ValueError(
            f"{table.path} has a single row with a {target.name!r}, and nothing can be learned from one; add rows"
        )
    if target.task == CLASSIFICATION:
        _check_classes(table, target)
    elif np.all(target.values == target.values[0]):
        raise ValueError(
            f"{table.path}: the target {target.name!r} is {target.values[0]:.6g} in every row, so there is nothing to "
            "learn; choose another with --target"
        )


def check_counts(table: Table, target: Target) -> None:
    """Raise where a value is no count, before anything is fitted."""
    wrong = target.values[(target.values < 0.0) | (target.values != np.round(target.values))]
    if len(wrong):
        raise ValueError(
            f"{table.path}: the target {target.name!r} has the value {wrong[0]:.6g}, and --likelihood poisson takes "
            "counts only (0, 1, 2, …); leave it out"
        )


def _decide(numbers: NDArray[np.float64] | None, meaning: Meaning) -> tuple[str, str]:
    if meaning.category:
        return CLASSIFICATION, "its type is that of categories"
    if numbers is None:
        return CLASSIFICATION, "its values are true and false" if meaning.kind == "boolean" else "its values are texts"
    present = numbers[np.isfinite(numbers)]
    n_values = len(np.unique(present))
    if n_values == 2 and len(present) > 2:
        return CLASSIFICATION, "it has two values"
    whole = np.array_equal(present, np.round(present))
    if n_values <= _FEW and whole:
        return (
            REGRESSION,
            f"its values are numbers, {n_values} different ones; if they name classes, say --task classification"
            + (f"; {_COUNTS}" if np.all(present >= 0.0) else ""),
        )
    if whole and np.all(present >= 0.0) and np.mean(present) < _LARGEST_MEAN_COUNT:
        return REGRESSION, f"its values are numbers; {_COUNTS}"
    return REGRESSION, "its values are numbers"


def _check_classes(table: Table, target: Target) -> None:
    classes, counts = np.unique(target.values, return_counts=True)
    if len(classes) < 2:
        raise ValueError(
            f"{table.path}: the target {target.name!r} has one class only, {shortened(str(classes[0]))}; choose "
            "another with --target"
        )
    if len(classes) > MAX_LEVELS:
        raise ValueError(
            f"{table.path}: the target {target.name!r} has {len(classes)} different values, and there may be "
            f"{MAX_LEVELS} classes; "
            + ("use --task regression" if table.parse(target.name) is not None else "group them, or choose another")
        )
    if np.min(counts) < FEWEST_OF_A_CLASS:
        lonely = [str(name) for name in classes[counts < FEWEST_OF_A_CLASS]]
        raise ValueError(
            f"{table.path}: the target {target.name!r} has classes with a single row ({list_names(lonely)}); "
            f"a class needs at least {FEWEST_OF_A_CLASS} rows: add some, put classes together, or take the row out"
        )
