"""Measuring: contestants in turn, so that all see the same machine, and medians of what they took."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from statistics import median
from typing import Any

import numpy as np


@dataclass
class Timed:
    """Seconds of every repeat, and what the last one returned."""

    seconds: list[float] = field(default_factory=list)
    value: Any = None

    @property
    def median(self) -> float:
        """Median of the repeats."""
        return median(self.seconds)


@dataclass(frozen=True)
class Effort:
    """How much measuring is worth.

    Attributes
    ----------
    repeats : int
        Rounds, each with every contestant once.
    seconds : float
        No further round of a row begins after this time.
    """

    repeats: int = 5
    seconds: float = 600.0


@dataclass(frozen=True)
class Outcome:
    """What one contestant took, and what it achieved.

    Attributes
    ----------
    name : str
        Who it is.
    seconds : list of float
        Of each repeat.
    error : float or None
        Root mean square error, or rate of errors, on rows that were not learned from.
    vectors : int or None
        Functions that prediction needs.
    status : str
        How its search says that it ended; empty where it does not say.
    """

    name: str
    seconds: list[float]
    error: float | None = None
    vectors: int | None = None
    status: str = ""

    @property
    def median(self) -> float:
        """Median of the repeats."""
        return median(self.seconds)


@dataclass(frozen=True)
class Check:
    """A figure and what it has to reach."""

    what: str
    value: float
    limit: float
    at_least: bool = False

    @property
    def passed(self) -> bool:
        """Whether the figure is within its limit."""
        return bool(np.isfinite(self.value)) and (
            self.value >= self.limit if self.at_least else self.value <= self.limit
        )


@dataclass(frozen=True)
class Row:
    """One row of the table: contestants, ours first, and the figures drawn from them."""

    name: str
    outcomes: list[Outcome]
    checks: list[Check]
    notes: list[str] = field(default_factory=list)

    @property
    def passed(self) -> bool:
        """Whether every figure is within its limit."""
        return all(check.passed for check in self.checks)


def interleave(contestants: Mapping[str, Callable[[], Any]], effort: Effort) -> dict[str, Timed]:
    """Run the contestants in turn, round by round.

    Parameters
    ----------
    contestants : mapping of str to callable
        Each is called without arguments.
    effort : Effort
        How many rounds.
    """
    found = {name: Timed() for name in contestants}
    began = time.perf_counter()
    for _ in range(effort.repeats):
        for name, work in contestants.items():
            start = time.perf_counter()
            found[name].value = work()
            found[name].seconds.append(time.perf_counter() - start)
        if time.perf_counter() - began > effort.seconds:
            break
    return found
