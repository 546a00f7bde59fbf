"""Rules that say which rows of a data set are for training and which for testing."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Content = Mapping[str, NDArray[Any]]
Indices = NDArray[np.intp]
Splits = dict[str, Indices] | dict[str, list[Indices]]


class SplitRule(ABC):
    """Makes the index arrays of a data set; one split gives arrays, several give lists of arrays."""

    @property
    def uses(self) -> tuple[str, ...]:
        """Columns that only define the split, so that they are no features."""
        return ()

    @abstractmethod
    def __call__(self, content: Content, n_rows: int) -> Splits:
        """Return the index arrays by name, from what the file holds and the number of rows."""


@dataclass(frozen=True)
class Consecutive(SplitRule):
    """Blocks of rows in this order: training, validation where there is one, and the rest for testing."""

    train: int
    validation: int = 0

    def __call__(self, content: Content, n_rows: int) -> Splits:
        """Return `train_idx`, `test_idx` and, where there is one, `validation_idx`."""
        train, validation, test = np.split(np.arange(n_rows), [self.train, self.train + self.validation])
        found = {"train_idx": train, "test_idx": test}
        return found | {"validation_idx": validation} if self.validation else found


@dataclass(frozen=True)
class Flagged(SplitRule):
    """A column that is true for the training rows."""

    column: str

    @property
    def uses(self) -> tuple[str, ...]:
        """The flag is no feature."""
        return (self.column,)

    def __call__(self, content: Content, n_rows: int) -> Splits:
        """Return the flagged rows as `train_idx`, the others as `test_idx`."""
        flag = content[self.column] == "True"
        return {"train_idx": np.flatnonzero(flag), "test_idx": np.flatnonzero(~flag)}


@dataclass(frozen=True)
class Seeded(SplitRule):
    """The 90/10 splits of Hernández-Lobato & Adams (2015), whose index files are permutations from seed 1."""

    count: int

    def __call__(self, content: Content, n_rows: int) -> Splits:
        """Return `count` splits."""
        rng = np.random.RandomState(1)
        orders = [rng.choice(n_rows, n_rows, replace=False) for _ in range(self.count)]
        cut = round(n_rows * 9 / 10)
        return {"train_idx": [order[:cut] for order in orders], "test_idx": [order[cut:] for order in orders]}


@dataclass(frozen=True)
class Stored(SplitRule):
    """Index matrices that stand in the file, one split per row."""

    def __call__(self, content: Content, n_rows: int) -> Splits:
        """Return the rows of `train_idx` and `test_idx`."""
        return {key: list(content[key].astype(np.intp)) for key in ("train_idx", "test_idx")}


@dataclass(frozen=True)
class PackedMasks(SplitRule):
    """Bit-packed test masks that stand in the file, one split per column."""

    key: str

    def __call__(self, content: Content, n_rows: int) -> Splits:
        """Return one split per mask."""
        masks = np.unpackbits(content[self.key], axis=0, count=n_rows).T.astype(bool)
        return {
            "train_idx": [np.flatnonzero(~mask) for mask in masks],
            "test_idx": [np.flatnonzero(mask) for mask in masks],
        }
