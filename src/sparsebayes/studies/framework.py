"""What a study of a paper's table or figure is, and how its figures are judged.

A row compares one of our figures with the paper's: the same quantity, of the same problems, at the same size; what is
not so stands beside and is not judged.  Its tolerance is absolute and stated with its reason; it only separates "worse
within tolerance" from "worse", and never makes a worse figure look equal.  It follows from the paper's figure and from
how much was measured, or was fixed beforehand.  It never follows from our own figures: a method that fails now and then
has a wide spread, and would be forgiven for it.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Protocol


class Verdict(StrEnum):
    """How a figure of ours stands to the paper's."""

    MET = "met"
    BETTER = "better"
    TOLERATED = "worse within tolerance"
    WORSE = "worse"
    NOT_RUN = "not run"
    BESIDE = "beside"


class Direction(StrEnum):
    """Which way a figure is better; a row that only stands beside the others is not judged."""

    LOWER = "lower"
    HIGHER = "higher"
    EQUAL = "equal"
    BESIDE = "beside"


LOWER, HIGHER, EQUAL, BESIDE = Direction.LOWER, Direction.HIGHER, Direction.EQUAL, Direction.BESIDE

# A figure that is better by no more than this fraction of the paper's is called met.
_SAME = 0.01


@dataclass(frozen=True)
class Row:
    """One figure of a study.

    Parameters
    ----------
    quantity : str
        What was measured.
    paper : float or None
        The paper's figure, or that of ``source``.
    ours : float or None
        Our figure; None where it was not measured, and ``why`` says why not.
    direction : Direction
        Which way is better.
    tolerance : float
        How much worse, in units of the figure, is still within tolerance.
    allowed : str
        What the tolerance is.
    why : str
        Where ours differs: why.
    source : str
        Whose figure stands in ``paper`` where the paper prints none, such as a rival on the same data.
    reduced : str
        What a quick run measured it on, where that is less than the paper did.
    settings : str
        Settings of ours that are not the defaults.
    """

    quantity: str
    paper: float | None
    ours: float | None
    direction: Direction = LOWER
    tolerance: float = 0.0
    allowed: str = ""
    why: str = ""
    source: str = "paper"
    reduced: str = ""
    settings: str = ""

    @property
    def gap(self) -> float:
        """By how much ours is worse; negative where it is better."""
        if self.ours is None or self.paper is None:
            return math.nan
        match self.direction:
            case Direction.HIGHER:
                return self.paper - self.ours
            case Direction.EQUAL:
                return abs(self.ours - self.paper)
            case _:
                return self.ours - self.paper

    @property
    def verdict(self) -> Verdict:
        """How ours stands to the paper's."""
        if self.ours is None:
            return Verdict.NOT_RUN
        if self.direction is Direction.BESIDE or self.paper is None:
            return Verdict.BESIDE
        if self.direction is Direction.EQUAL:
            return Verdict.MET if self.gap <= self.tolerance else Verdict.WORSE
        if self.gap <= 0.0:
            return Verdict.BETTER if self.gap < -_SAME * abs(self.paper) else Verdict.MET
        return Verdict.TOLERATED if self.gap <= self.tolerance else Verdict.WORSE  # NaN is worse

    @property
    def difference(self) -> str:
        """How far ours is from the paper's, in words; nothing where there is nothing to say."""
        if self.ours is None or not self.paper or self.direction is Direction.BESIDE:
            return ""
        ratio = self.ours / self.paper - 1.0
        if abs(ratio) < 0.005:
            return "the same"
        if abs(ratio) >= 2.0:
            return f"{self.ours / self.paper:.3g} times"
        return f"{abs(ratio):.0%} {'more' if ratio > 0 else 'less'}"

    def as_dict(self) -> dict[str, Any]:
        """For machines."""
        return {
            "quantity": self.quantity,
            "paper": self.paper,
            "ours": self.ours,
            "source": self.source,
            "direction": str(self.direction),
            "tolerance": self.tolerance,
            "allowed": self.allowed,
            "verdict": str(self.verdict),
            "difference": self.difference,
            "why": self.why,
            "reduced": self.reduced,
            "settings": self.settings,
        }


@dataclass(frozen=True)
class Outcome:
    """What a study found.

    Parameters
    ----------
    rows : list of Row
        The figures.
    data : mapping
        What the picture is drawn from: numbers, texts and arrays by name.
    seconds : float
        How long it took.
    skipped : str
        Why it was not run; empty where it was.
    failed : str
        How it failed; empty where it did not.
    warnings : list of str
        What fits warned of.
    """

    rows: list[Row] = field(default_factory=list)
    data: Mapping[str, Any] = field(default_factory=dict)
    seconds: float = 0.0
    skipped: str = ""
    failed: str = ""
    warnings: list[str] = field(default_factory=list)

    @property
    def acceptable(self) -> bool:
        """Nothing failed, and nothing is worse beyond its tolerance."""
        return not self.failed and all(row.verdict is not Verdict.WORSE for row in self.rows)


class Run(Protocol):
    """Measure everything; with ``quick``, less of it."""

    def __call__(self, quick: bool) -> Outcome:
        """Return what was found."""
        ...


@dataclass(frozen=True)
class Study:
    """A table or figure of a paper, as something that can be run.

    Parameters
    ----------
    name : str
        How it is called on the command line.
    paper, what : str
        The paper, and its figure or table.
    caption : str
        What it shows.
    run : callable
        ``run(quick)`` measures it.
    draw : callable
        ``draw(figure, data)`` draws the outcome's data on a Matplotlib figure.
    left_out : str
        What a quick run leaves out; empty where it is the whole.
    seed : int
        Where its random numbers begin; draw k of several uses ``seed + k``.
    size : tuple of float
        Of the picture, in inches.
    """

    name: str
    paper: str
    what: str
    caption: str
    run: Run
    draw: Callable[[Any, Mapping[str, Any]], None]
    left_out: str = ""
    seed: int = 0
    size: tuple[float, float] = (9.0, 4.0)


TIPPING_FAUL = "Tipping & Faul 2003"
LECTURE = "Tipping, lecture 4"
BO = "Bo, Wang & Jiao 2005"
TIPPING = "Tipping 2001"
DSOUZA = "D'Souza, Vijayakumar & Schaal 2004"


Tolerance = tuple[float, str]


def of_rate(percent: float, tested: int, errors: float = 2.0) -> Tolerance:
    """Standard errors of an error rate, in %, of the paper's size on so many test rows."""
    rate = percent / 100.0
    named = "two standard errors" if errors == 2.0 else "one standard error"
    return (
        errors * 100.0 * math.sqrt(rate * (1.0 - rate) / tested),
        f"{named} of the paper's rate on {tested} test rows",
    )


def of_squares(paper: float, degrees: float, draws: int = 1, *, root: bool = False) -> Tolerance:
    r"""Two standard errors of a mean square, or its root, of the paper's size with so many degrees of freedom.

    Least squares on k known functions errs by :math:`\sigma^2\chi_k^2/N`, whose relative standard deviation is
    :math:`\sqrt{2/k}`; that of a mean square of n independent residuals is :math:`\sqrt{2/n}`.  A root has half of it.
    A single draw is allowed one standard deviation, since the paper's is a single one, too.
    """
    relative = math.sqrt(2.0 / (degrees * draws)) * (0.5 if root else 1.0)
    if draws == 1:
        return paper * relative, f"one standard deviation of least squares with {degrees:g} degrees of freedom"
    return (
        2.0 * paper * relative,
        f"two standard errors of least squares with {degrees:g} degrees of freedom, {draws} draws",
    )


def of_mean_count(paper: float) -> Tolerance:
    """A fixed share of a mean number of vectors."""
    return 0.05 * paper, "5 % of the paper's"


ONE_FUNCTION: Tolerance = (1.0, "one function")
COMPARABLE: Tolerance = (0.02, "2 %: what is called comparable here")
