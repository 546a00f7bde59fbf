"""From a file, or what a library hands out, to numbers.

Files are read with the standard library and NumPy alone, since pandas is optional.
"""

import csv
import gzip
import io
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib.resources.abc import Traversable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sparsebayes.datasets.registry import DataSet
from sparsebayes.datasets.splits import Content, Splits

FloatArray = NDArray[np.float64]
MISSING = ("", "NA", "?")


@dataclass(frozen=True)
class Raw:
    """What every reader returns. `labels` holds the target as it stands in the source."""

    data: FloatArray
    feature_names: list[str]
    labels: NDArray[Any]
    n_columns: int
    splits: Splits = field(default_factory=dict)
    extras: Mapping[str, NDArray[Any]] = field(default_factory=dict)
    classes: tuple[str, ...] = ()


def read_files(entry: DataSet, files: Sequence[Traversable]) -> Raw:
    """Read the files of one data set, CSV (also gzipped) or NPZ."""
    if files[0].name.endswith(".npz"):
        return _from_arrays(entry, _read_npz(files[0]))
    parts = [_read_csv(file) for file in files]
    columns = {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
    return _from_columns(entry, columns)


def read_frame(data: Any, target: Any) -> Raw:
    """Read a DataFrame of features and a Series of targets.

    Splits are left out: they are rules on row numbers, and the rows may stand in another order.
    """
    columns = {str(name): _texts_or_numbers(data[name]) for name in data.columns}
    coded, names = _code(columns)
    return Raw(coded, names, _texts_or_numbers(target), n_columns=len(columns))


def read_scikit_learn(bunch: Mapping[str, Any]) -> Raw:
    """Take over a set that a ``sklearn.datasets.load_*`` function returned."""
    data = np.asarray(bunch["data"], dtype=np.float64)
    names = [str(name) for name in bunch["feature_names"]]
    classes = tuple(str(name) for name in bunch.get("target_names", ()))
    return Raw(data, names, np.asarray(bunch["target"]), n_columns=data.shape[1], classes=classes)


def numeric(values: NDArray[Any]) -> FloatArray | None:
    """Return the values as numbers, with NaN for missing ones, or None where they are not all numbers."""
    try:
        return values.astype(np.float64)
    except ValueError:
        pass
    try:
        return np.where(np.isin(values, MISSING), "nan", values).astype(np.float64)
    except ValueError:
        return None


def _read_csv(file: Traversable) -> dict[str, NDArray[Any]]:
    content = file.read_bytes()
    text = (gzip.decompress(content) if file.name.endswith(".gz") else content).decode()
    header, *rows = csv.reader(io.StringIO(text, newline=""))
    return {name: np.array(column) for name, column in zip(header, zip(*rows, strict=True), strict=True)}


def _read_npz(file: Traversable) -> dict[str, NDArray[Any]]:
    with np.load(io.BytesIO(file.read_bytes()), allow_pickle=False) as archive:
        return dict(archive)


def _texts_or_numbers(series: Any) -> NDArray[Any]:
    values = np.asarray(series)
    return values if values.dtype.kind in "biuf" else values.astype(str)


def _from_columns(entry: DataSet, columns: Content) -> Raw:
    others = (*entry.target, *entry.extras, *(entry.splits.uses if entry.splits else ()))
    absent = [name for name in others if name not in columns]
    if absent:
        raise ValueError(f"The file of data set {entry.name!r} lacks the columns {absent}; it has {list(columns)}.")
    features = {name: values for name, values in columns.items() if name not in others}
    data, names = _code(features)
    targets = [columns[name] for name in entry.target]
    return Raw(
        data,
        names,
        targets[0] if len(targets) == 1 else np.column_stack(targets),
        n_columns=len(features),
        splits=entry.splits(columns, len(data)) if entry.splits else {},
        extras={name: columns[name] for name in entry.extras},
    )


def _from_arrays(entry: DataSet, content: Content) -> Raw:
    layout = entry.arrays
    data = _stack(content, layout.data).astype(np.float64) / layout.divisor
    width = data.shape[1]
    names = content[layout.feature_names] if layout.feature_names else [f"x{i}" for i in range(width)]
    return Raw(
        data,
        [str(name) for name in names],
        _stack(content, layout.target),
        n_columns=width,
        splits=entry.splits(content, len(data)) if entry.splits else {},
        extras={name: _stack(content, keys) for name, keys in layout.extras.items()},
    )


def _stack(content: Content, keys: Sequence[str]) -> NDArray[Any]:
    return np.concatenate([content[key] for key in keys])


def _code(columns: Content) -> tuple[FloatArray, list[str]]:
    """One column per number, and one indicator ``name=level`` per level (sorted) of a column of texts."""
    blocks: list[FloatArray] = []
    names: list[str] = []
    for name, values in columns.items():
        numbers = numeric(values)
        if numbers is not None:
            blocks.append(numbers[:, np.newaxis])
            names.append(name)
        else:
            levels = np.unique(values)
            blocks.append((values[:, np.newaxis] == levels).astype(np.float64))
            names.extend(f"{name}={level}" for level in levels)
    return np.hstack(blocks), names
