"""A model of tables: an estimator, and how columns become its inputs, in one file that is data and never code."""

from __future__ import annotations

import hashlib
import os
from dataclasses import dataclass, field
from typing import Any, Literal, overload

import numpy as np
from numpy.typing import NDArray
from sklearn.base import is_classifier

from sparsebayes.export import ModelFileError, make_plan, save
from sparsebayes.export import load as load_estimator
from sparsebayes.export.plan import Plan

from .encoder import Encoded, Encoder
from .table import as_table

_KEYS = {"columns": list, "target": str, "test_fraction": float, "seed": int, "table_sha256": str}


@dataclass(frozen=True)
class Split:
    """Which rows of which table were held back: enough to do it again.

    Attributes
    ----------
    fraction : float
        Part of the rows that was held back for the test.
    seed : int
        Of the shuffle.
    fingerprint : str
        Of the table.
    rows : ndarray of uint64
        Checksums of the training rows, inputs and target, in order of size: they tell whether a row was among them.
    """

    fraction: float
    seed: int
    fingerprint: str
    rows: NDArray[np.uint64] = field(default_factory=lambda: np.empty(0, dtype=np.uint64), compare=False)


@dataclass(frozen=True)
class TableModel:
    """A fitted estimator that takes tables.

    Attributes
    ----------
    estimator : estimator
        Takes the encoder's matrix.
    encoder : Encoder
        Takes tables.
    target : str
        Name of what is predicted.
    split : Split
        What it was trained on.
    """

    estimator: Any
    encoder: Encoder
    target: str
    split: Split

    def __repr__(self) -> str:
        """One line: what it predicts, from how many columns, by which estimator."""
        return f"TableModel({self.target!r} from {len(self.encoder.names)} columns, estimator={self.estimator!r})"

    @property
    def estimator_(self) -> Any:
        """The fitted estimator, under the name that scikit-learn gives to what is fitted."""
        return self.estimator

    @property
    def classifies(self) -> bool:
        """Whether classes are predicted."""
        return is_classifier(self.estimator)

    @property
    def functions(self) -> str:
        """What the functions are: ``"columns"``, ``"both"``, or ``"rbf"`` and other kernels on the rows."""
        parameters = self.estimator._as_fitted.get_params(deep=False)
        if "kernel" in parameters:
            return parameters["kernel"] if isinstance(parameters["kernel"], str) else "rbf"
        return "columns" if parameters["basis"] is None else "both"

    def encode(self, data: Any) -> Encoded:
        """Return the matrix of a table, mapping of columns, or data frame."""
        return self.encoder.encode(as_table(data))

    def predict(self, data: Any) -> dict[str, NDArray[Any]]:
        """Predict the rows of a table, mapping of columns, or data frame.

        Returns
        -------
        dict of str to ndarray
            ``mean`` and ``std`` of a new observation; of classes, ``class`` and a column ``p(label)`` for each.
        """
        return self.predict_encoded(self.encode(data).X)

    def predict_encoded(self, X: NDArray[np.float64], coverage: float | None = None) -> dict[str, NDArray[Any]]:
        """Predict from the encoder's matrix; as :meth:`predict`.

        Parameters
        ----------
        X : ndarray
            The encoder's matrix.
        coverage : float, optional
            Of a regression, adds ``lower`` and ``upper``, between which this share of new observations should fall.
        """
        if not self.classifies:
            mean, std = self.estimator.predict(X, return_std=True)
            ends = () if coverage is None else self.estimator.predict_interval(X, coverage)
            return {"mean": mean, "std": std, **dict(zip(("lower", "upper"), ends, strict=False))}
        probabilities = self.estimator.predict_proba(X)
        by_class = {f"p({label})": p for label, p in zip(self.estimator.classes_, probabilities.T, strict=True)}
        return {"class": self.estimator.predict(X), **by_class}

    def to_plan(self) -> Plan:
        """Reduce it to what every language can compute, from the columns of the table itself."""
        return make_plan(self.estimator).of_columns(self.encoder.columns)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write a model file; atomic, like :func:`sparsebayes.save`."""
        metadata = {
            "columns": self.encoder.to_data(),
            "target": self.target,
            "test_fraction": self.split.fraction,
            "seed": self.split.seed,
            "table_sha256": self.split.fingerprint,
            "rows": self.split.rows,
        }
        save(self.estimator, path, metadata=metadata)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> TableModel:
        """Read a model file that :meth:`save` or ``sparsebayes fit`` wrote."""
        return cls._of(path, *load_estimator(path, with_metadata=True))

    @classmethod
    def _of(cls, path: str | os.PathLike[str], estimator: Any, metadata: dict[str, Any] | None) -> TableModel:
        """Put it together from what the file held."""
        if metadata is None:
            raise ModelFileError(
                f"{os.fspath(path)} does not say which columns it takes: it was saved from Python, not by "
                "'sparsebayes fit'; predict with sparsebayes.load in Python"
            )
        # Files from before rows were noted do not have them.
        rows = metadata.setdefault("rows", np.empty(0, dtype=np.uint64))
        kinds = {key: type(value) for key, value in metadata.items()}
        if kinds != _KEYS | {"rows": np.ndarray} or rows.dtype != np.uint64 or rows.ndim != 1:
            raise ModelFileError(
                f"{os.fspath(path)} does not describe its input columns in the way that 'sparsebayes fit' does"
            )
        split = Split(metadata["test_fraction"], metadata["seed"], metadata["table_sha256"], rows)
        if not 0.0 <= split.fraction < 1.0 or split.seed < 0:
            raise ModelFileError(f"{os.fspath(path)}: a test part of {split.fraction} with seed {split.seed} cannot be")
        try:
            encoder = Encoder.from_data(metadata["columns"], estimator.n_features_in_)
        except ModelFileError as error:
            raise ModelFileError(f"{os.fspath(path)}: {error}") from error
        return cls(estimator, encoder, metadata["target"], split)


def row_checksums(X: NDArray[np.float64], y: NDArray[Any]) -> NDArray[np.uint64]:
    """A checksum of every row, inputs and target; the same row has the same whatever file it comes from."""
    values = np.ascontiguousarray(X) + 0.0  # which makes a negative zero a zero
    found = [
        int.from_bytes(hashlib.blake2b(row.tobytes() + str(target).encode(), digest_size=8).digest(), "little")
        for row, target in zip(values, y.tolist(), strict=True)
    ]
    return np.array(found, dtype=np.uint64)


@overload
def load(path: str | os.PathLike[str], with_metadata: Literal[False] = False) -> Any: ...


@overload
def load(path: str | os.PathLike[str], with_metadata: Literal[True]) -> tuple[Any, dict[str, Any] | None]: ...


def load(path: str | os.PathLike[str], with_metadata: bool = False) -> Any:
    """Read a model file: a model of tables where ``sparsebayes fit`` wrote it, and else the estimator that was saved.

    No code in the file is executed, since there is none; what is wrong with a file is said as by
    :func:`sparsebayes.export.load`.

    Parameters
    ----------
    path : path-like
        A file that :func:`sparsebayes.save`, :meth:`TableModel.save` or ``sparsebayes fit`` wrote.
    with_metadata : bool, default=False
        Return the bare estimator, and with it what was passed to :func:`sparsebayes.save` as ``metadata``.

    Returns
    -------
    TableModel or estimator
        A model of tables takes data frames and mappings of columns, and has the bare estimator as ``estimator_``;
        it predicts the same numbers to the last bit.
    metadata : dict or None
        Only with ``with_metadata=True``.
    """
    estimator, metadata = load_estimator(path, with_metadata=True)
    if with_metadata:
        return estimator, metadata
    of_tables = metadata is not None and set(_KEYS) <= set(metadata)
    return TableModel._of(path, estimator, metadata) if of_tables else estimator
