"""NumPy arrays as plain JSON values and back, to the last bit."""

from __future__ import annotations

import base64
import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .errors import ModelFileError

_NUMERIC = ("b1", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f4", "f8")
_MAX_DIMENSIONS = 32
# NumPy pads every text of an array to the longest. Padding may take this many characters, or this many times
# those of the texts: a short file must not ask for gigabytes.
_PADDED_CHARACTERS = 1 << 20
_PADDED_RATIO = 16


def encode_array(array: NDArray[Any]) -> dict[str, Any]:
    """Return dtype, shape, memory order and content; TypeError for a dtype that is neither numbers nor text."""
    # The order matters to the last bit: BLAS rounds a matrix and its transpose differently.
    order = "F" if array.flags.f_contiguous and not array.flags.c_contiguous else "C"
    body: dict[str, Any] = {"dtype": array.dtype.str[1:], "shape": list(array.shape), "order": order}
    if array.dtype.kind in "UO":
        items = array.ravel(order).tolist()
        if not all(isinstance(item, str) for item in items):
            raise TypeError("is an array of Python objects other than str")
        items = [str(item) for item in items]  # NumPy's strings among objects, too
        if array.dtype.kind == "O":
            body["dtype"] = "O"
        elif not _padding_is_fair(array.dtype.itemsize // 4, items):
            raise TypeError("is an array of texts of very different lengths: convert it with .astype(object)")
        return body | {"items": items}
    if body["dtype"] not in _NUMERIC:
        raise TypeError(f"is an array of dtype {array.dtype}")
    little = array.astype(array.dtype.newbyteorder("<"), copy=False)
    return body | {"base64": base64.b64encode(little.tobytes(order)).decode("ascii")}


def decode_array(body: Any) -> NDArray[Any]:
    """Return the array that :func:`encode_array` described; ModelFileError where the parts do not fit."""
    if not isinstance(body, dict) or set(body) not in (
        {"dtype", "shape", "order", "base64"},
        {"dtype", "shape", "order", "items"},
    ):
        raise ModelFileError("an array lacks its dtype, shape, order or content")
    dtype, shape, order = body["dtype"], body["shape"], body["order"]
    if order not in ("C", "F"):
        raise ModelFileError(f"an array has the memory order {order!r}, expected 'C' or 'F'")
    if (
        not isinstance(shape, list)
        or len(shape) > _MAX_DIMENSIONS
        or not all(type(length) is int and length >= 0 for length in shape)
    ):
        raise ModelFileError("an array has a shape that is not a short list of lengths")
    if not isinstance(dtype, str):
        raise ModelFileError("an array has a dtype that is not a name")
    flat = _texts(dtype, body["items"]) if "items" in body else _numbers(dtype, body["base64"])
    if flat.size != math.prod(shape):
        raise ModelFileError(f"an array of shape {tuple(shape)} holds {flat.size} entries")
    return flat.reshape(shape, order=order)


def _numbers(dtype: str, text: Any) -> NDArray[Any]:
    if dtype not in _NUMERIC:
        raise ModelFileError(f"an array has the dtype {dtype!r}, expected one of {', '.join(_NUMERIC)}")
    if not isinstance(text, str):
        raise ModelFileError("an array of numbers has content that is not base64 text")
    content = base64.b64decode(text, validate=True)
    little = np.dtype(f"<{dtype}")
    if len(content) % little.itemsize:
        raise ModelFileError(f"an array of dtype {dtype} holds {len(content)} bytes, which is no whole number")
    # A copy, since an array on top of bytes could not be written to.
    array = np.frombuffer(content, dtype=little).astype(little.newbyteorder("="))
    if dtype == "b1" and np.any(np.frombuffer(content, dtype=np.uint8) > 1):
        raise ModelFileError("an array of truth values holds other bytes than 0 and 1")
    return array


def _texts(dtype: str, items: Any) -> NDArray[Any]:
    if not isinstance(items, list) or not all(type(item) is str for item in items):
        raise ModelFileError("an array of texts has content that is not a list of texts")
    if dtype == "O":
        array = np.empty(len(items), dtype=object)
        array[:] = items
        return array
    width = int(dtype[1:]) if dtype[:1] == "U" and dtype[1:].isascii() and dtype[1:].isdigit() else -1
    if width < max((len(item) for item in items), default=0) or not _padding_is_fair(width, items):
        raise ModelFileError(f"an array of texts has the dtype {dtype!r}, which does not fit them")
    return np.array(items, dtype=f"U{width}")


def _padding_is_fair(width: int, items: list[str]) -> bool:
    padded = max(width, 1) * max(len(items), 1)
    return padded <= max(_PADDED_CHARACTERS, _PADDED_RATIO * sum(map(len, items)))
