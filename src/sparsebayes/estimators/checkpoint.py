"""The file in which a long search keeps its state: data like the model file, complete or not there.

Sums over rows that are elsewhere, from which a search begins, take long too, and have a file beside it.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import time
import zipfile
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from scipy.sparse import issparse
from sklearn.base import BaseEstimator

from sparsebayes.atomic import check_target, write_atomically
from sparsebayes.inference.fit.settings import Checkpoint

FORMAT = "sparsebayes-checkpoint"
VERSION = 2
# Seconds between two writes while the search goes on.
_SECONDS = 10.0
# Settings that do not decide where the search is, only how long it goes on and who looks.
_FREE = ("checkpoint", "verbose", "max_iter", "callback")


@dataclass
class CheckpointFile:
    """Checkpoints of the searches of one fit, each under its number.

    Attributes
    ----------
    path : str
        The file.
    fingerprint : str
        Of data and settings: a checkpoint of another fit is refused.
    """

    path: str
    fingerprint: str
    searches: dict[str, dict[str, Any]] = field(default_factory=dict)

    @classmethod
    def open(cls, path: Any, fingerprint: str) -> CheckpointFile:
        """Read the file if there is one."""
        if not isinstance(path, str | os.PathLike):
            raise TypeError(f"checkpoint={path!r}: expected the name of a file, or None")
        target = check_target(path)
        return cls(str(target), fingerprint, _read(target, fingerprint) if target.exists() else {})

    def search(self, number: int) -> Search:
        """The checkpoints of one search."""
        return Search(self, str(number))

    def write(self) -> None:
        """Write all of it."""
        document = {
            "format": FORMAT,
            "version": VERSION,
            "fingerprint": self.fingerprint,
            "searches": self.searches,
        }
        write_atomically(self.path, json.dumps(document, separators=(",", ":")).encode("ascii"))

    @property
    def sums(self) -> KeptSums:
        """The file of sums beside this one."""
        return KeptSums(self.path, self.fingerprint)

    def remove(self) -> None:
        """Remove the files, once they are of no more use."""
        for path in (self.path, self.sums.path):
            Path(path).unlink(missing_ok=True)


@dataclass(frozen=True)
class KeptSums:
    """Sums over rows that are elsewhere, each under the name of what was summed, and how many stages are in it.

    Attributes
    ----------
    beside : str
        The file of the search, beside which this one lies.
    fingerprint : str
        Of data and settings: sums of another fit are refused.
    """

    beside: str
    fingerprint: str

    @property
    def path(self) -> str:
        """The file."""
        return f"{self.beside}.npz"

    def restore(self, name: str) -> tuple[Any, int]:
        """The sum so far and its stages; None and no stage where it was not begun."""
        kept = self._read()
        return (kept[name], int(kept[f"{name}.stages"])) if name in kept else (None, 0)

    def keep(self, name: str, total: Any, stages: int) -> None:
        """Write this sum in the place of the last, beside all others."""
        kept = self._read() | {"fingerprint": self.fingerprint, name: total, f"{name}.stages": stages}
        content = io.BytesIO()
        np.savez(content, **kept)
        write_atomically(self.path, content.getvalue())

    def _read(self) -> dict[str, Any]:
        if not Path(self.path).exists():
            return {}
        try:
            with np.load(self.path, allow_pickle=False) as file:
                kept = dict(file)
        except (ValueError, EOFError, zipfile.BadZipFile):
            raise _refused(self.path, "it is no file of sums") from None
        if str(kept.get("fingerprint")) != self.fingerprint:
            raise _refused(self.path, "it belongs to a fit of other data or with other settings")
        return kept


@dataclass
class Search:
    """Keeper of one search of a fit."""

    file: CheckpointFile
    name: str
    last: float = field(default_factory=time.monotonic)

    def restore(self) -> Checkpoint | None:
        """The last checkpoint."""
        saved = self.file.searches.get(self.name)
        try:
            return None if saved is None else Checkpoint(**saved)
        except TypeError:
            raise _refused(self.file.path, "its entries are not those of a checkpoint") from None

    def due(self) -> bool:
        """Whether the last one is some seconds old."""
        return time.monotonic() - self.last > _SECONDS

    def keep(self, checkpoint: Checkpoint) -> None:
        """Write this one in the place of the last."""
        self.file.searches[self.name] = asdict(checkpoint)
        self.file.write()
        self.last = time.monotonic()


def fingerprint(est: BaseEstimator, *data: Any) -> str:
    """Digest of an estimator's settings and of the data that it is fitted on."""
    digest = hashlib.sha256()
    digest.update(type(est).__name__.encode())
    for name, value in sorted(est.get_params().items()):
        if name.rpartition("__")[2] not in _FREE:
            digest.update(name.encode())
            _feed(digest, value)
    for part in data:
        _feed(digest, part)
    return digest.hexdigest()


def _feed(digest: Any, part: Any) -> None:
    if issparse(part):
        for array in (part.data, part.indices, part.indptr):
            _feed(digest, array)
    elif isinstance(part, np.ndarray):
        digest.update(repr((part.shape, part.dtype.str)).encode())
        digest.update(np.ascontiguousarray(part).data if part.dtype.kind != "O" else repr(part.tolist()).encode())
    elif isinstance(part, BaseEstimator) or hasattr(part, "shape"):  # its parameters come by themselves; no entries
        digest.update(repr((type(part).__name__, getattr(part, "shape", None))).encode())
    elif callable(part):
        digest.update(f"{part.__module__}.{part.__qualname__}".encode())
    else:
        digest.update(repr(part).encode())


def _read(path: Path, expected: str) -> dict[str, dict[str, Any]]:
    try:
        document = json.loads(path.read_bytes())
    except ValueError:
        raise _refused(path, "it is not a JSON document") from None
    if not isinstance(document, dict) or document.get("format") != FORMAT or document.get("version") != VERSION:
        raise _refused(path, f"it does not say that it is a {FORMAT} of version {VERSION}")
    if document.get("fingerprint") != expected:
        raise _refused(path, "it belongs to a fit of other data or with other settings")
    searches = document.get("searches")
    if not isinstance(searches, dict) or not all(isinstance(saved, dict) for saved in searches.values()):
        raise _refused(path, "it holds no searches")
    return searches


def _refused(path: Any, why: str) -> ValueError:
    return ValueError(f"checkpoint={os.fspath(path)!r} cannot be gone on from: {why}; remove the file or name another")
