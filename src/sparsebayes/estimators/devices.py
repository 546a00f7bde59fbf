"""Inputs that live on a device: their validation, their dictionary, and predictions that go back there."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sparsebayes.basis import Basis, Functions
from sparsebayes.basis.arrays import ArrayFunctions, Place, bind_elsewhere, evaluate_elsewhere, is_elsewhere, to_floats
from sparsebayes.basis.base import Joined
from sparsebayes.design import ArrayCompressed, ArrayDesign, ArrayKernelDesign, ArrayStack, Native, compress_elsewhere
from sparsebayes.estimators.checks import check_largest
from sparsebayes.typing import Array

# Largest dictionary, or compression of one, that is held on a device; a larger one is made in blocks when it is needed.
_HELD_BYTES = 2**33
# Entries of a kernel matrix from which on compressing it is tried, and the error that it may have in the search.
_WORTH_IT = 500_000
_REMAINDER = 1e-5
# Up to this many entries the certificate is computed from the kernel itself.  Beyond, the compression is the design,
# made so close that its bounded error is below what the certificate resolves, as far as memory allows.
_RECOMPUTED = 30_000_000
_CLOSE_REMAINDER = 1e-9
_CLOSE_ROWS = 400_000
_HUGE_REMAINDER = 1e-6


def check_arrays(X: Any, y: Any, *, multi_output: bool = False) -> tuple[Any, NDArray[Any]]:
    """Validate training arrays of one device; the targets, a few numbers a row, come to the host."""
    place = Place.of(X)
    if X.ndim != 2 or 0 in X.shape:
        raise ValueError(f"X has shape {tuple(X.shape)}: expected (samples, features), at least one of each")
    X = to_floats(X, "X")
    check_largest("X", float(place.xp.max(place.xp.abs(X))))
    if y is None:
        raise ValueError("y is None: expected a target for each row of X")
    if is_elsewhere(y) and Place.of(y) != place:
        raise ValueError(f"X is {place} and y is {Place.of(y)}: expected both in one namespace and on one device")
    targets = place.get(y) if is_elsewhere(y) else np.asarray(y)
    if targets.ndim > (2 if multi_output else 1) and targets.shape[1:] != (1,):
        raise ValueError(f"y has shape {targets.shape}: expected one target for each row")
    if len(targets) != X.shape[0]:
        raise ValueError(f"X has {X.shape[0]} rows and y has {len(targets)}: expected as many")
    if targets.dtype.kind == "f" and not np.all(np.isfinite(targets)):
        raise ValueError(f"y contains NaN or infinity ({place})")
    return X, targets


def check_new_array(X: Any, n_features: int) -> Any:
    """Validate inputs of a prediction."""
    if X.ndim != 2 or X.shape[1] != n_features:
        raise ValueError(f"X has shape {tuple(X.shape)}; the model was fitted on {n_features} features")
    return to_floats(X, "X")


def scale_elsewhere(X: Any, weights: Array) -> float:
    """Variance of all entries of X, each row as often as its weight says."""
    place = Place.of(X)
    w = place.put(weights / np.sum(weights))[:, None]
    mean = place.xp.mean(place.xp.sum(w * X, axis=0))
    return float(place.xp.mean(place.xp.sum(w * (X - mean) ** 2, axis=0)))


def bind_and_compress(
    X: Any, basis: Basis, *, compress: bool, single: bool
) -> tuple[Functions, Native, ArrayCompressed | None]:
    """Functions on training rows of a device, their design, and its compression where that pays and is possible."""
    functions = bind_elsewhere(basis, X)
    stand_in = _compress(functions, X, single) if compress else None
    if isinstance(functions, ArrayFunctions) and stand_in is not None:
        huge = X.shape[0] * len(functions) > _RECOMPUTED
        return functions, stand_in if huge else ArrayKernelDesign(functions, X), stand_in
    parts = functions.parts if isinstance(functions, Joined) else [functions]
    designs = [_design(part, X, single) for part in parts]
    return functions, designs[0] if len(designs) == 1 else ArrayStack(designs), None


def _compress(functions: Functions, X: Any, single: bool) -> ArrayCompressed | None:
    """A design of low rank where the kernel is smooth enough for that to pay."""
    n, m = X.shape[0], len(functions)
    if not isinstance(functions, ArrayFunctions) or not functions.compressible or n * m < _WORTH_IT:
        return None
    tolerance = _REMAINDER
    if n * m > _RECOMPUTED:
        tolerance = _CLOSE_REMAINDER if n + m <= _CLOSE_ROWS else _HUGE_REMAINDER
    rank = min(n // 2, m // 2, _HELD_BYTES // (8 * m))
    return compress_elsewhere(functions, X, tolerance, rank, single=single)


def _design(part: Functions, X: Any, single: bool) -> Native:
    if isinstance(part, ArrayFunctions) and 8 * X.shape[0] * len(part) > _HELD_BYTES:
        return ArrayKernelDesign(part, X)
    values = evaluate_elsewhere(part, X)
    xp = Place.of(X).xp
    return ArrayDesign(xp.astype(values, xp.float32) if single else values)


def map_elsewhere(X: Any, width: int, work: Callable[[Any], Any]) -> Any:
    """Apply ``work`` to runs of rows, and put what it returns for each (an array, or a tuple of them) back in place."""
    place = Place.of(X)
    found = [work(X[part, :]) for part in place.chunks(X.shape[0], width)]
    if isinstance(found[0], tuple):
        return tuple(_return(place, [part[i] for part in found]) for i in range(len(found[0])))
    return _return(place, found)


def _return(place: Place, parts: list[NDArray[Any]]) -> Any:
    whole = np.concatenate(parts)
    if whole.dtype.kind not in "fiub":
        return whole  # labels that are not numbers live on the host only
    return place.put(whole, None if whole.dtype.kind == "f" else place.xp.int64)
