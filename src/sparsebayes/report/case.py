"""What a report is about: a model, the rows it learned from and was tested on, and what its inputs are called."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import is_classifier

from sparsebayes.basis import Functions, Linear
from sparsebayes.basis.identity import same_functions
from sparsebayes.estimators.summary import Weight

from .measures import ClassificationTest, RegressionTest, contributions, importances, judge
from .svg import number

Array = NDArray[np.float64]

_SEED = 0
_YEAR = 365.2425
_SCREENED = 60
_ROWS_SHUFFLED = 400


@dataclass(frozen=True)
class Input:
    """One input as people know it: which columns of X it is, and its own units.

    Attributes
    ----------
    name : str
        What it is called.
    columns : tuple of int
        Columns of X; several for a category.
    centre, scale : float
        A value of the input is ``centre + scale * X[:, column]``.
    levels : tuple of str
        Of a category, in the order of the columns; one more than columns where the first level has none.
    periods : tuple of float
        Of a date, the cycles in days whose cosines and sines are its further columns.
    dated : bool
        Whether it is a date, in days since 1970-01-01.
    """

    name: str
    columns: tuple[int, ...]
    centre: float = 0.0
    scale: float = 1.0
    levels: tuple[str, ...] = ()
    periods: tuple[float, ...] = ()
    dated: bool = False

    def values(self, X: Array) -> Array:
        """Values of a number in its own units, from rows of X."""
        return self.restore(X[:, self.columns[0]])

    def restore(self, values: Array) -> Array:
        """Values of a number in its own units, from its column of X."""
        return self.centre + self.scale * values

    def axis(self, values: Array) -> Array:
        """Values for a chart: a date is a year with decimals."""
        return 1970.0 + values / _YEAR if self.dated else values

    def encode(self, values: Array) -> Array:
        """The columns of X for values of a number, or of a date in days, in its own units."""
        parts = [(values - self.centre) / self.scale]
        for period in self.periods:
            parts += [np.cos(2.0 * np.pi / period * values), np.sin(2.0 * np.pi / period * values)]
        return np.column_stack(parts)

    def text(self, row: Array) -> str:
        """Value in one row of X, for people."""
        if not self.levels:
            value = self.centre + self.scale * row[self.columns[0]]
            return str(np.datetime64("1970-01-01") + round(value)) if self.dated else number(float(value))
        shown = self.levels[-len(self.columns) :]
        held = [level or "(missing)" for level, column in zip(shown, self.columns, strict=True) if row[column] > 0.5]
        return held[0] if held else self.levels[0] if len(shown) < len(self.levels) else "?"


@dataclass(frozen=True)
class Case:
    """Everything that a report shows.

    Attributes
    ----------
    est : estimator
        Fitted, of one target.
    X, y : ndarray
        Training rows.
    X_test, y_test : ndarray
        Rows held back; may be empty.
    inputs : list of Input
        What the columns of X are.
    target : str
        What is predicted.
    title : str
        Of the page.
    facts : dict of str to str
        What to say first, line by line.
    notes : list of str
        What else to say.
    model_file : str, optional
        Where the model is.
    row_numbers : list of int, optional
        What the training rows are called; their numbers, from 0, by default.
    test_numbers : list of int, optional
        The same of the rows held back.
    unseen : bool
        Whether the rows held back are none that it learned from.
    verdict : Verdict, optional
        What to think of it; made from the case by default.
    explanation : Explanation, optional
        Which columns carry effects, and what each input does to the predictions; not shown by default.
    """

    est: Any
    X: Array
    y: NDArray[Any]
    X_test: Array
    y_test: NDArray[Any]
    inputs: list[Input]
    target: str
    title: str
    facts: dict[str, str] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    model_file: str | None = None
    row_numbers: list[int] | None = None
    test_numbers: list[int] | None = None
    unseen: bool = True
    verdict: Any = None
    explanation: Any = None

    @cached_property
    def terms(self) -> list[tuple[Weight, float]]:
        """The kept weights with the size of their terms, the largest first."""
        rows = self.X if len(self.X) else self.X_test
        return contributions(self.est, rows, self.names, self.row_numbers)

    @cached_property
    def functions(self) -> Functions | None:
        """The functions that were searched, by their numbers in the history; None where that cannot be told any more.

        They are those of the basis on the training rows, where these are at hand and none was left out: as many as were
        searched, and the kept ones stand where they stood.
        """
        X = self.X if len(self.X) else self.X_test
        found = self.est._bind(X, np.ones(len(X)), np.arange(len(X)))
        found = Linear().bind(X) if found is None else found
        if len(found) != vars(self.est).get("_n_candidates"):
            return None
        numbers = self.est._numbers
        kept = same_functions(self.est._functions.restrict(np.arange(len(numbers))), found) if len(numbers) else []
        return found if all(m in same for m, same in zip(numbers, kept, strict=True)) else None

    @property
    def classifies(self) -> bool:
        """Whether classes are predicted."""
        return is_classifier(self.est)

    @property
    def tested(self) -> bool:
        """Whether rows were held back."""
        return len(self.y_test) > 0 and self.unseen

    @property
    def judged(self) -> tuple[Array, NDArray[Any]]:
        """Rows to judge the model by: those held back, or else those it learned from."""
        return (self.X_test, self.y_test) if len(self.y_test) else (self.X, self.y)

    @property
    def judged_numbers(self) -> Sequence[int]:
        """What the rows that it is judged by are called."""
        numbers = self.test_numbers if len(self.y_test) else self.row_numbers
        return range(len(self.judged[1])) if numbers is None else numbers

    @property
    def rows_name(self) -> str:
        """What the rows that it is judged by are called."""
        return "test rows" if self.tested else "training rows"

    def counted(self, n: int) -> str:
        """So many of the rows that it is judged by, in words."""
        return f"{n} {self.rows_name if n != 1 else self.rows_name.removesuffix('s')}"

    @cached_property
    def result(self) -> RegressionTest | ClassificationTest:
        """How good it is on the rows that it is judged by."""
        return judge(self.est, *self.judged)

    @property
    def names(self) -> list[str]:
        """Names of the columns of X."""
        names = [""] * self.X_test.shape[1]
        for item in self.inputs:
            shown = item.levels[-len(item.columns) :]
            cycles = ("time of the year" if period == _YEAR else "time of the day" for period in item.periods)
            parts = ["", *(f" ({f} of the {cycle})" for cycle in cycles for f in ("cosine", "sine"))]
            for k, column in enumerate(item.columns):
                names[column] = f"{item.name} = {shown[k] or '(missing)'}" if shown else f"{item.name}{parts[k]}"
        return names

    @cached_property
    def importances(self) -> list[tuple[Input, float, float]]:
        """Inputs with how much shuffling each costs, mean and standard deviation; the largest first."""
        X, y = self.sample(_ROWS_SHUFFLED)
        screened = self._screened(X)
        rises = importances(self.est, X, y, [item.columns for item in screened])
        found = [(item, float(r.mean()), float(r.std())) for item, r in zip(screened, rises, strict=True)]
        return sorted(found, key=lambda entry: -entry[1])

    def _screened(self, X: Array) -> list[Input]:
        """The inputs to look at: all, or those that go with the predictions most where there are many."""
        if len(self.inputs) <= _SCREENED:
            return self.inputs
        output = np.asarray(self.est.predict_proba(X)[:, -1] if self.classifies else self.est.predict(X))
        centred = X - X.mean(axis=0)
        scale = np.sqrt(np.sum(centred**2, axis=0))
        strength = np.abs(centred.T @ (output - output.mean())) / np.where(scale > 0.0, scale, 1.0)
        return sorted(self.inputs, key=lambda item: -max(strength[list(item.columns)]))[:_SCREENED]

    def sample(self, most: int) -> tuple[Array, NDArray[Any]]:
        """At most so many of the rows that it is judged by, drawn at random."""
        X, y = self.judged
        if len(y) <= most:
            return X, y
        rows = np.sort(np.random.default_rng(_SEED).choice(len(y), most, replace=False))
        return X[rows], y[rows]
