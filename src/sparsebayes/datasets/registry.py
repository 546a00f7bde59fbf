"""What is known of a data set: where it lies, what its columns mean, whom to cite."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from sparsebayes.datasets.splits import SplitRule

Task = Literal["regression", "classification"]


@dataclass(frozen=True)
class Arrays:
    """Which arrays of an ``.npz`` file are what; several keys are stacked row-wise."""

    data: tuple[str, ...] = ("X",)
    target: tuple[str, ...] = ("y",)
    extras: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    feature_names: str | None = None
    divisor: float = 1.0


@dataclass(frozen=True)
class OpenML:
    """A data set on OpenML, with the number that is its only unambiguous name there."""

    name: str
    data_id: int


@dataclass(frozen=True)
class ScikitLearn:
    """A loader of ``sklearn.datasets`` whose data scikit-learn ships."""

    loader: str
    options: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class DataSet:
    """One entry of the catalogue.

    Parameters
    ----------
    name : str
        Name under which :func:`sparsebayes.datasets.load` knows the set.
    task : {"regression", "classification"}
        What the target asks for.
    shape : tuple of int
        Rows, and features before categories are coded; every copy that is read must agree.
    target : tuple of str
        Names of the target columns.
    citation, licence : str
        Whom to cite; under what terms the numbers came.
    paths : tuple of str
        Files relative to the data folder; several are joined row-wise.
    bundled : tuple of str
        Files inside the package that hold the same rows.
    scikit_learn, openml : ScikitLearn, OpenML or None
        The set elsewhere.
    splits : SplitRule or None
        The published training and test rows.
    extras : tuple of str
        Columns that are neither features nor targets.
    classes : tuple of str
        Names of the sorted class labels, where the labels do not speak for themselves.
    arrays : Arrays
        Meaning of the arrays, for ``.npz`` files.
    """

    name: str
    task: Task
    shape: tuple[int, int]
    target: tuple[str, ...]
    citation: str
    licence: str
    paths: tuple[str, ...] = ()
    bundled: tuple[str, ...] = ()
    scikit_learn: ScikitLearn | None = None
    openml: OpenML | None = None
    splits: SplitRule | None = None
    extras: tuple[str, ...] = ()
    classes: tuple[str, ...] = ()
    arrays: Arrays = field(default_factory=Arrays)
