"""The model file: one JSON document, versioned, checked, written atomically and read without executing anything.

The format is described in ``docs/model-file.md``.
"""

from __future__ import annotations

import hashlib
import json
import os
from pathlib import Path
from typing import Any, Literal, NoReturn, overload

from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from sparsebayes._version import __version__
from sparsebayes.atomic import write_atomically

from .codec import decode, decode_estimator, encode, encode_estimator
from .errors import ModelFileError

FORMAT = "sparsebayes-model"
VERSION = 1

# Everything that parts of the wrong type or size can raise while they are put together.
_UNFIT = (ValueError, TypeError, LookupError, AttributeError, OverflowError, RecursionError, MemoryError)


def save(est: BaseEstimator, path: str | os.PathLike[str], metadata: dict[str, Any] | None = None) -> None:
    """Write a fitted estimator to a model file.

    The file is complete or not there: a failed save leaves an old file as it was.

    Parameters
    ----------
    est : estimator or Pipeline
        A fitted regressor or classifier of this library, or a pipeline that ends in one and whose other steps are
        scikit-learn's own scalers, encoders, imputers and the like.
    path : path-like
        The file to write; replaced if it exists.
    metadata : dict, optional
        Plain data to travel with the model, such as column names.

    Raises
    ------
    TypeError
        If the estimator holds what is not data, such as a kernel given as a function (the message names the attribute),
        or is another one, such as ``SparseKernelPCA``.
    sklearn.exceptions.NotFittedError
        If the estimator is not fitted.
    """
    if metadata is not None and not isinstance(metadata, dict):
        raise TypeError(f"metadata is of type {type(metadata).__name__}; expected a dict with text keys, or None")
    try:
        estimator = encode_estimator(est)
        check_is_fitted(est)
        text = _canonical({"estimator": estimator, "metadata": encode(metadata, "metadata")})
    except RecursionError:
        raise TypeError("cannot save the model: an attribute is nested too deeply, or holds itself") from None
    head = {"format": FORMAT, "version": VERSION, "sparsebayes": __version__, "sha256": _digest(text)}
    # The payload goes in as the text that was hashed, which also spares writing it out a second time.
    document = f'{json.dumps(head)[:-1]}, "payload": {text}}}\n'
    write_atomically(path, document.encode("utf-8"))


@overload
def load(path: str | os.PathLike[str], with_metadata: Literal[False] = False) -> Any: ...


@overload
def load(path: str | os.PathLike[str], with_metadata: Literal[True]) -> tuple[Any, dict[str, Any] | None]: ...


def load(path: str | os.PathLike[str], with_metadata: bool = False) -> Any:
    """Read an estimator from a model file; no code in the file is executed, since there is none.

    Parameters
    ----------
    path : path-like
        A file written by :func:`save`.
    with_metadata : bool, default=False
        Also return what was passed to :func:`save` as ``metadata``.

    Returns
    -------
    est : estimator
        Fitted; it predicts the same numbers to the last bit.  ``inclusion_`` and ``credible_sets`` need the training
        rows, which are not in the file.
    metadata : dict or None
        Only with ``with_metadata=True``.

    Raises
    ------
    ModelFileError
        If the file is not a model file, is truncated or altered, or comes from a later version.
    OSError
        If the file cannot be read.
    """
    content = Path(path).read_bytes()
    try:
        payload = _checked_payload(content)
        est, metadata = decode_estimator(payload["estimator"]), decode(payload["metadata"])
        if metadata is not None and not isinstance(metadata, dict):
            raise ModelFileError("its metadata are not named values")
    except _UNFIT as error:
        reason = str(error) if isinstance(error, ModelFileError) else f"its content does not fit together: {error}"
        raise ModelFileError(f"{os.fspath(path)} cannot be read as a model: {_one_sentence(reason)}") from error
    return (est, metadata) if with_metadata else est


def _checked_payload(content: bytes) -> dict[str, Any]:
    try:
        document = json.loads(content.decode("utf-8"), parse_constant=_refuse_constant)
    except RecursionError:
        raise ModelFileError("it is nested too deeply") from None
    except ValueError:
        raise ModelFileError(
            "it is not a JSON document; it is another kind of file, or it was truncated or altered"
        ) from None
    if not isinstance(document, dict) or document.get("format") != FORMAT:
        raise ModelFileError(f"it does not say that its format is {FORMAT!r}; it is another kind of file")
    version = document.get("version")
    if type(version) is not int or version != VERSION:
        raise ModelFileError(
            f"its format version is {version!r} and this version of sparsebayes reads {VERSION}; "
            "upgrade sparsebayes if the file is newer"
        )
    if set(document) != {"format", "version", "sparsebayes", "sha256", "payload"}:
        raise ModelFileError("its entries are not those of a model file; it was altered")
    payload = document["payload"]
    if document["sha256"] != _digest(_canonical(payload)):
        raise ModelFileError("its checksum does not match its content; it was altered")
    if not isinstance(payload, dict) or set(payload) != {"estimator", "metadata"}:
        raise ModelFileError("its payload is not an estimator and its metadata")
    return payload


def _canonical(payload: Any) -> str:
    """Return the payload as text in exactly one way: no spaces, ASCII only, entries in their order."""
    return json.dumps(payload, separators=(",", ":"), ensure_ascii=True, allow_nan=False)


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode("ascii")).hexdigest()


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")


def _one_sentence(text: str) -> str:
    return " ".join(text.split())[:500]
