"""The columns of a table as a model takes them: plain data, from which every language writes the encoding itself.

A column becomes one or more *features*, the inputs of the model's functions:

========  =========================================================================================
number    (x − centre) / scale, with a fixed value in the place of a missing one
category  an indicator for each level, one alone where there are two levels
date      (d − centre) / scale of the days d since 1970-01-01, and the cosine and sine of its cycles
========  =========================================================================================
"""

from __future__ import annotations

from dataclasses import dataclass

# What cells say where a value is missing, in lower case; a cell is stripped of spaces first.
MISSING = ("", "na", "n/a", "n.a.", "#n/a", "nan", "nat", "null", "none", "<na>", "?")
# What a column of truth values may say, in lower case, beside the two words that make it one.
TRUE, FALSE = ("true", "t", "1", "1.0"), ("false", "f", "0", "0.0")
# The cycles that dates follow, in days.
CYCLES = {"year": 365.2425, "day": 1.0}
KINDS = ("text", "boolean", "number")


@dataclass(frozen=True)
class Numeric:
    """A column of numbers: a missing one is filled in, then all are centred and scaled.

    Attributes
    ----------
    name : str
        Of the column.
    centre, scale : float
        What is subtracted, and what is divided by.
    fill : float
        Stands for a missing value.
    removed : tuple of str
        Signs that texts of it have around and between the digits, such as a currency or thousands separators.
    decimal : str
        What stands before the decimals in such texts.
    """

    name: str
    centre: float
    scale: float
    fill: float
    removed: tuple[str, ...] = ()
    decimal: str = "."

    @property
    def features(self) -> list[str]:
        """Names of the model's inputs that it becomes."""
        return [self.name]


@dataclass(frozen=True)
class Category:
    """A column of categories: an indicator for each level, one alone where there are two levels.

    A missing value is a level of its own where the training rows had one; a level that they did not have is none.

    Attributes
    ----------
    name : str
        Of the column.
    levels : tuple of str
        In their order; empty stands for a missing value.
    kind : {"text", "boolean", "number"}
        What the cells are: texts compare letter by letter, while truth values and numbers may be written in several
        ways.
    """

    name: str
    levels: tuple[str, ...]
    kind: str = "text"

    @property
    def shown(self) -> tuple[str, ...]:
        """Levels that have an indicator."""
        return self.levels[1:] if len(self.levels) == 2 else self.levels

    @property
    def features(self) -> list[str]:
        """Names of the model's inputs that it becomes."""
        return [f"{self.name} = {level or '(missing)'}" for level in self.shown]


@dataclass(frozen=True)
class Date:
    """A column of dates: days since 1970-01-01, centred and scaled, and where in its cycles the moment lies.

    Attributes
    ----------
    name : str
        Of the column.
    centre, scale, fill : float
        As of a number, in days.
    cycles : tuple of str
        Which of ``CYCLES`` are inputs as well, each as a cosine and a sine.
    day_first : bool
        Whether texts such as 3/4/2024 are days before months; dates in ISO order are not in question.
    """

    name: str
    centre: float
    scale: float
    fill: float
    cycles: tuple[str, ...] = ()
    day_first: bool = False

    @property
    def features(self) -> list[str]:
        """Names of the model's inputs that it becomes."""
        return [self.name, *(f"{self.name} ({f} of the {cycle})" for cycle in self.cycles for f in ("cos", "sin"))]


Column = Numeric | Category | Date
