"""``sparsebayes fit`` and ``sparsebayes predict``: tables in, models and tables out."""

from __future__ import annotations

import os
import time
import warnings
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning

from sparsebayes.cli.summary import describe, plain_console, show
from sparsebayes.cli.tables import Table, check_output, list_names, read_table, write_table
from sparsebayes.estimators import RVR, SparseBayesRegressor
from sparsebayes.export import ModelFileError, load, save
from sparsebayes.export.atomic import check_target

Array = NDArray[np.float64]

_LARGEST = 1e150  # squares of larger numbers overflow
_WITHOUT_GAMMA = ("linear", "columns")


@dataclass(frozen=True)
class Inputs:
    """Which columns a model takes and how they are standardised; it travels in the model file as metadata.

    Attributes
    ----------
    columns : list of str
        Input columns in their order.
    target : str
        Column that is predicted.
    centre, scale : list of float
        What is subtracted from each input, and what it is then divided by.
    """

    columns: list[str]
    target: str
    centre: list[float]
    scale: list[float]

    @classmethod
    def of(cls, table: Table, target: str) -> Inputs:
        """Take all columns but the target as inputs, and standardise them to mean 0 and standard deviation 1."""
        if target not in table.names:
            raise ValueError(f"--target {target!r} is not a column of {table.path}; found {list_names(table.names)}")
        columns = [name for name in table.names if name != target]
        if not columns:
            raise ValueError(f"{table.path} has no column besides the target {target!r}; expected inputs as well")
        if "" in columns:
            raise ValueError(
                f"{table.path}: column {table.names.index('') + 1} has no name; name it, or remove it if it only "
                "numbers the rows"
            )
        values = table.matrix(columns)
        largest = np.max(np.abs(values), axis=0)
        if np.max(largest) > _LARGEST:
            worst = columns[int(np.argmax(largest))]
            raise ValueError(f"{table.path}: column {worst!r} has values of {np.max(largest):.3g}; rescale it")
        scale = np.std(values, axis=0)
        return cls(columns, target, np.mean(values, axis=0).tolist(), np.where(scale > 0.0, scale, 1.0).tolist())

    @classmethod
    def from_metadata(cls, model: Path, metadata: dict[str, Any] | None, n_features: int) -> Inputs:
        """Read and check what ``fit`` stored."""
        if metadata is None:
            raise ValueError(
                f"{model} does not say which columns it takes: it was saved from Python, not by 'sparsebayes fit'; "
                "predict with sparsebayes.load in Python"
            )
        columns: Any = metadata.get("columns")
        centre: Any = metadata.get("centre")
        scale: Any = metadata.get("scale")
        if not (
            set(metadata) == {"columns", "target", "centre", "scale"}
            and _is_list(columns, str, n_features)
            and _is_list(centre, float, n_features)
            and _is_list(scale, float, n_features)
            and np.all(np.isfinite(centre))
            and np.all(np.isfinite(scale) & np.greater(scale, 0.0))
        ):
            raise ModelFileError(f"{model} does not describe its input columns in the way that 'sparsebayes fit' does")
        return cls(**metadata)

    def standardise(self, table: Table) -> Array:
        """Return the inputs of a table in the units of the model."""
        absent = [name for name in self.columns if name not in table.columns]
        if absent:
            raise ValueError(
                f"{table.path} lacks the input column{'s' * (len(absent) > 1)} {list_names(absent)}; "
                f"found {list_names(table.names)}"
            )
        values = table.matrix(self.columns)
        with np.errstate(over="ignore"):  # the estimator refuses infinite inputs, in words
            return (values - np.array(self.centre)) / np.array(self.scale)


def fit_file(
    data: Path, *, target: str, out: Path, kernel: str, gamma: str | None, noise_variance: float | None
) -> None:
    """Fit a table and save the model.

    Parameters
    ----------
    data : Path
        CSV or Parquet file.
    target : str
        Column to predict.
    out : Path
        Model file.
    kernel : str
        A kernel of RVR by name, or ``"columns"`` for a sparse linear model of the columns.
    gamma : str or None
        A number, ``"scale"`` or ``"auto"``; None is ``"scale"``.
    noise_variance : float or None
        Fixed noise variance, or None to learn it.
    """
    est = _estimator(kernel, gamma, noise_variance)
    check_paths(data, out)
    table = read_table(data)
    inputs = Inputs.of(table, target)
    X, y = inputs.standardise(table), table.numbers(target)
    began = time.perf_counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # the summary says how the search ended
        est.fit(X, y)
    seconds = time.perf_counter() - began
    save(est, out, metadata=asdict(inputs))
    linear = kernel == "columns"
    rows = {"data": f"{data}: {len(y)} rows, {len(inputs.columns)} inputs", "target": target}
    rows |= describe(
        est,
        n_candidates=len(inputs.columns) if linear else len(y),
        what="columns" if linear else "training rows",
        seconds=seconds,
    )
    if linear and len(est.relevance_):
        rows["columns kept"] = list_names([inputs.columns[k] for k in est.relevance_])
    show(plain_console(), "Sparse Bayesian regression", {"": rows | {"model file": str(out)}})


def predict_file(model: Path, data: Path, *, out: Path) -> None:
    """Predict the rows of a table with a saved model.

    Parameters
    ----------
    model : Path
        Model file of :func:`fit_file`.
    data : Path
        CSV or Parquet file that has the model's input columns.
    out : Path
        CSV or Parquet file for the columns ``mean`` and ``std``.
    """
    check_output(out)
    for read in (model, data):
        check_paths(read, out)
    est, metadata = load(model, with_metadata=True)
    inputs = Inputs.from_metadata(model, metadata, est.n_features_in_)
    mean, std = est.predict(inputs.standardise(read_table(data)), return_std=True)
    write_table(out, {"mean": mean, "std": std})
    plain_console().print(f"{len(mean)} predictions of {inputs.target!r} written to {out}", soft_wrap=True)


def _estimator(kernel: str, gamma: str | None, noise_variance: float | None) -> RVR | SparseBayesRegressor:
    if gamma is not None and kernel in _WITHOUT_GAMMA:
        raise ValueError(f"--gamma {gamma} has no meaning with --kernel {kernel}; leave it out")
    if kernel == "columns":
        return SparseBayesRegressor(noise_variance=noise_variance)
    return RVR(kernel, gamma=_gamma(gamma), noise_variance=noise_variance)


def _gamma(text: str | None) -> str | float:
    if text is None or text in ("scale", "auto"):
        return text or "scale"
    try:
        return float(text)
    except ValueError:
        raise ValueError(f"--gamma {text!r}: expected a positive number, 'scale' or 'auto'") from None


def check_paths(read: Path, write: Path) -> None:
    """Raise before any work where the result could not be written, or would overwrite what it is made from."""
    check_target(write)
    if read.exists() and write.exists() and os.path.samefile(read, write):
        raise ValueError(f"--out {write} is the file that is read; name another")


def _is_list(value: Any, kind: type, length: int) -> bool:
    return isinstance(value, list) and len(value) == length and all(type(item) is kind for item in value)
