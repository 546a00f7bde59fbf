"""A model of tables: an estimator, and how columns become its inputs, in one file that is data and never code."""

from __future__ import annotations

import os
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import is_classifier

from sparsebayes.export import ModelFileError, load, save

from .encoder import Encoded, Encoder
from .table import as_table


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
    """

    fraction: float
    seed: int
    fingerprint: str


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

    @property
    def classifies(self) -> bool:
        """Whether classes are predicted."""
        return is_classifier(self.estimator)

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

    def predict_encoded(self, X: NDArray[np.float64]) -> dict[str, NDArray[Any]]:
        """Predict from the encoder's matrix; as :meth:`predict`."""
        if not self.classifies:
            mean, std = self.estimator.predict(X, return_std=True)
            return {"mean": mean, "std": std}
        probabilities = self.estimator.predict_proba(X)
        by_class = {f"p({label})": p for label, p in zip(self.estimator.classes_, probabilities.T, strict=True)}
        return {"class": self.estimator.predict(X), **by_class}

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write a model file; atomic, like :func:`sparsebayes.save`."""
        metadata = {
            "columns": self.encoder.to_data(),
            "target": self.target,
            "test_fraction": self.split.fraction,
            "seed": self.split.seed,
            "table_sha256": self.split.fingerprint,
        }
        save(self.estimator, path, metadata=metadata)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> TableModel:
        """Read a model file that :meth:`save` or ``sparsebayes fit`` wrote."""
        estimator, metadata = load(path, with_metadata=True)
        if metadata is None:
            raise ModelFileError(
                f"{os.fspath(path)} does not say which columns it takes: it was saved from Python, not by "
                "'sparsebayes fit'; predict with sparsebayes.load in Python"
            )
        kinds = {"columns": list, "target": str, "test_fraction": float, "seed": int, "table_sha256": str}
        if {key: type(value) for key, value in metadata.items()} != kinds:
            raise ModelFileError(
                f"{os.fspath(path)} does not describe its input columns in the way that 'sparsebayes fit' does"
            )
        split = Split(metadata["test_fraction"], metadata["seed"], metadata["table_sha256"])
        if not 0.0 <= split.fraction < 1.0 or split.seed < 0:
            raise ModelFileError(f"{os.fspath(path)}: a test part of {split.fraction} with seed {split.seed} cannot be")
        try:
            encoder = Encoder.from_data(metadata["columns"], estimator.n_features_in_)
        except ModelFileError as error:
            raise ModelFileError(f"{os.fspath(path)}: {error}") from error
        return cls(estimator, encoder, metadata["target"], split)
