"""Find a real data set, read it, and hand it out as scikit-learn does."""

import difflib
import os
from collections.abc import Callable
from http.client import HTTPException
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sparsebayes.datasets.catalogue import CATALOGUE
from sparsebayes.datasets.readers import Raw, numeric, read_files, read_frame, read_scikit_learn
from sparsebayes.datasets.registry import DataSet

FOLDER = "SPARSEBAYES_DATA"
Found = tuple[Raw, str]


class DatasetNotFoundError(FileNotFoundError):
    """A known data set lies neither in the data folder nor could it be downloaded."""


def list_datasets() -> dict[str, tuple[str, ...]]:
    """Return the names that :func:`load` knows, each with the places where it looks, in that order.

    Returns
    -------
    places : dict of str to tuple of str
        For example ``{"abalone": ("SPARSEBAYES_DATA/regression/abalone.csv", "OpenML abalone (183)"), …}``.
    """
    return {name: tuple(_places(entry)) for name, entry in sorted(CATALOGUE.items())}


def load(name: str, *, return_X_y: bool = False) -> Any:
    """Load a real data set by name.

    The set is looked for inside the package, in scikit-learn, in the folder named by the environment variable
    ``SPARSEBAYES_DATA``, and on OpenML (downloaded once, then cached by scikit-learn; needs pandas).

    Parameters
    ----------
    name : str
        One of the names of :func:`list_datasets`.
    return_X_y : bool, default=False
        Return ``(data, target)`` instead of a Bunch.

    Returns
    -------
    bunch : sklearn.utils.Bunch
        With the fields

        - `data`: float64 array of shape (n_samples, n_features). A column of texts becomes one 0/1 column per
          level, in sorted order and none left out, named ``column=level``. Missing numbers are NaN.
        - `target`: for classification the codes 0 … K−1 of the sorted labels (scikit-learn's own codes for
          its own sets); for regression float64 of shape (n_samples,), or (n_samples, n_outputs) for several.
        - `feature_names`: list of str.
        - `target_names` (classification): the label of each code; or `target_name` (regression): a str, or a
          list of str for several outputs.
        - `name`, `task` ("regression" or "classification"), `source` (where it was read), `citation`,
          `licence`.
        - `train_idx`, `test_idx` and for some sets `validation_idx`, where a split is published with the
          data: index arrays, or lists of index arrays where there are several splits. A copy from OpenML has
          none, since the order of its rows may differ.
        - `extras`: dict of what else the file holds that is neither features nor targets.

    Raises
    ------
    ValueError
        If the name is unknown, or the copy that was found does not have the expected shape.
    DatasetNotFoundError
        If the set is known but not at hand.

    Examples
    --------
    >>> from sparsebayes.datasets import load
    >>> ripley = load("ripley_synth")
    >>> ripley.data[ripley.train_idx].shape
    (250, 2)
    """
    entry = _entry(name)
    raw, source = _find(entry)
    bunch = _bunch(entry, raw, source)
    return (bunch.data, bunch.target) if return_X_y else bunch


def _entry(name: str) -> DataSet:
    if name in CATALOGUE:
        return CATALOGUE[name]
    by_lower = {known.lower(): known for known in CATALOGUE}
    near = [by_lower[match] for match in difflib.get_close_matches(str(name).lower(), by_lower, n=3)]
    hint = f" Did you mean {' or '.join(map(repr, near))}?" if near else ""
    raise ValueError(f"Unknown data set {name!r}.{hint} Known: {', '.join(sorted(CATALOGUE))}.")


def _places(entry: DataSet) -> list[str]:
    places = [f"package {file}" for file in entry.bundled]
    if entry.scikit_learn:
        places.append(f"scikit-learn {entry.scikit_learn.loader}")
    places.extend(f"{FOLDER}/{path}" for path in entry.paths)
    if entry.openml:
        places.append(f"OpenML {entry.openml.name} ({entry.openml.data_id})")
    return places


def _from_package(entry: DataSet) -> Found | None:
    if not entry.bundled:
        return None
    folder = files("sparsebayes.datasets") / "data"
    raw = read_files(entry, [folder / file for file in entry.bundled])
    return raw, f"package: {', '.join(entry.bundled)}"


def _from_scikit_learn(entry: DataSet) -> Found | None:
    if entry.scikit_learn is None:
        return None
    from sklearn import datasets

    name = entry.scikit_learn.loader
    bunch = getattr(datasets, name)(**entry.scikit_learn.options)
    return read_scikit_learn(bunch), f"scikit-learn: {name}"


def _from_folder(entry: DataSet) -> Found | None:
    folder = os.environ.get(FOLDER)
    if not folder or not entry.paths:
        return None
    paths = [Path(folder).expanduser() / path for path in entry.paths]
    if not all(path.is_file() for path in paths):
        return None
    return read_files(entry, paths), f"{FOLDER}: {', '.join(entry.paths)}"


def _from_openml(entry: DataSet) -> Found | None:
    if entry.openml is None:
        return None
    from sklearn.datasets import fetch_openml

    try:
        data, target = fetch_openml(data_id=entry.openml.data_id, as_frame=True, parser="auto", return_X_y=True)
    except (OSError, HTTPException, ValueError, ImportError) as error:
        raise _not_found(entry, f"{type(error).__name__}: {error}") from error
    return read_frame(data, target), f"OpenML: {entry.openml.name} ({entry.openml.data_id})"


SOURCES: tuple[Callable[[DataSet], Found | None], ...] = (
    _from_package,
    _from_scikit_learn,
    _from_folder,
    _from_openml,
)


def _find(entry: DataSet) -> Found:
    for source in SOURCES:
        found = source(entry)
        if found is not None:
            return found
    raise _not_found(entry, "it is not on OpenML")


def _not_found(entry: DataSet, download: str) -> DatasetNotFoundError:
    folder = os.environ.get(FOLDER)
    state = f"is {folder!r} and has no such file" if folder else "is not set"
    return DatasetNotFoundError(
        f"Data set {entry.name!r} is not at hand: the environment variable {FOLDER} {state}, and there is no "
        f"download ({download}). Set {FOLDER} to a folder that holds {' and '.join(entry.paths)}."
    )


def _bunch(entry: DataSet, raw: Raw, source: str) -> Any:
    from sklearn.utils import Bunch

    shape = (len(raw.data), raw.n_columns)
    if shape != entry.shape or len(raw.labels) != entry.shape[0]:
        raise ValueError(
            f"Data set {entry.name!r} from {source} has {shape[0]} rows and {shape[1]} features, "
            f"expected {entry.shape[0]} and {entry.shape[1]}: it is another version."
        )
    return Bunch(
        data=raw.data,
        feature_names=raw.feature_names,
        name=entry.name,
        task=entry.task,
        source=source,
        citation=entry.citation,
        licence=entry.licence,
        extras={name: _plain(values) for name, values in raw.extras.items()},
        **_target(entry, raw),
        **raw.splits,
    )


def _plain(values: NDArray[Any]) -> NDArray[Any]:
    numbers = numeric(values)
    return values if numbers is None else numbers


def _target(entry: DataSet, raw: Raw) -> dict[str, Any]:
    if entry.task == "regression":
        name = entry.target[0] if len(entry.target) == 1 else list(entry.target)
        return {"target": raw.labels.astype(np.float64), "target_name": name}
    if raw.classes:
        return {"target": raw.labels.astype(np.int64), "target_names": list(raw.classes)}
    labels, codes = np.unique(_plain(raw.labels), return_inverse=True)
    names = entry.classes or [f"{label:g}" if labels.dtype.kind == "f" else str(label) for label in labels]
    return {"target": codes.astype(np.int64), "target_names": list(names)}
