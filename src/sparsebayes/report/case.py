"""What a report is about: a model, the rows it learned from and was tested on, and what its inputs are called."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import is_classifier

from sparsebayes.estimators.summary import Weight

from .measures import ClassificationTest, RegressionTest, contributions, judge

Array = NDArray[np.float64]

_SEED = 0


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
    """

    name: str
    columns: tuple[int, ...]
    centre: float = 0.0
    scale: float = 1.0
    levels: tuple[str, ...] = ()

    def values(self, X: Array) -> Array:
        """Values of a number in its own units, from rows of X."""
        return self.restore(X[:, self.columns[0]])

    def restore(self, values: Array) -> Array:
        """Values of a number in its own units, from its column of X."""
        return self.centre + self.scale * values

    def text(self, row: Array) -> str:
        """Value in one row of X, for people."""
        if not self.levels:
            return f"{self.centre + self.scale * row[self.columns[0]]:.4g}"
        shown = self.levels[-len(self.columns) :]
        held = [level for level, column in zip(shown, self.columns, strict=True) if row[column] > 0.5]
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

    @cached_property
    def terms(self) -> list[tuple[Weight, float]]:
        """The kept weights with the size of their terms, the largest first."""
        rows = self.X if len(self.X) else self.X_test
        return contributions(self.est, rows, self.names, self.row_numbers)

    @property
    def classifies(self) -> bool:
        """Whether classes are predicted."""
        return is_classifier(self.est)

    @property
    def tested(self) -> bool:
        """Whether rows were held back."""
        return len(self.y_test) > 0

    @property
    def judged(self) -> tuple[Array, NDArray[Any]]:
        """Rows to judge the model by: those held back, or else those it learned from."""
        return (self.X_test, self.y_test) if self.tested else (self.X, self.y)

    @property
    def rows_name(self) -> str:
        """What the rows that it is judged by are called."""
        return "test rows" if self.tested else "training rows"

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
            for k, column in enumerate(item.columns):
                names[column] = f"{item.name} = {shown[k] or '(missing)'}" if shown else item.name
        return names

    def sample(self, most: int) -> tuple[Array, NDArray[Any]]:
        """At most so many of the rows that it is judged by, drawn at random."""
        X, y = self.judged
        if len(y) <= most:
            return X, y
        rows = np.sort(np.random.default_rng(_SEED).choice(len(y), most, replace=False))
        return X[rows], y[rows]
