"""The settling of a Gaussian model in C (``settle.c``), where a compiler was at hand when the package was installed.

A settling of a few dozen functions is some hundred small operations, each of which costs less than the interpreted call
that asks for it.  ``gaussian.py`` has the same statements in NumPy; they serve where there is no library.
"""

from __future__ import annotations

import ctypes
import hashlib
import os
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
from scipy.linalg import cython_blas, cython_lapack  # pyright: ignore[reportAttributeAccessIssue]

from sparsebayes.typing import Array, Index

SOURCE = Path(__file__).with_name("settle.c")
# No suffix that Python would take for that of a module.
LIBRARY = SOURCE.with_suffix(".library")
# Set to 0, it has the functions in NumPy serve although there is a library.
SWITCH = "SPARSEBAYES_COMPILED"

_ROUTINES = ("dpotrf", "dpotrs", "dlauum")


class Task(ctypes.Structure):
    """What is settled, and by which rules; the fields are those of ``Model`` in ``settle.c``."""

    _fields_ = (
        *((name, ctypes.c_int) for name in ("size", "targets", "learn_noise")),
        *((name, ctypes.c_double) for name in ("n", "sumsq", "cost", "tol")),
        *((name, ctypes.c_double) for name in ("low", "high", "most_certain", "rounding")),
        ("sweeps", ctypes.c_int),
        *((name, ctypes.c_double) for name in ("longer", "longest", "shorter", "shortest")),
        *((name, ctypes.c_int) for name in ("steps", "polish")),
        *((name, ctypes.c_double) for name in ("near_by", "reach")),
        *((name, ctypes.c_int) for name in ("n_lengths", "n_shifts")),
        *((name, ctypes.POINTER(ctypes.c_double)) for name in ("lengths", "shifts")),
    )

    def searching(self, lengths: Sequence[float], shifts: Sequence[float]) -> Task:
        """This task with lengths of a step, and multiples of the identity, that are tried in their order."""
        self.n_lengths, self.n_shifts = len(lengths), len(shifts)
        self.lengths = (ctypes.c_double * len(lengths))(*lengths)
        self.shifts = (ctypes.c_double * len(shifts))(*shifts)
        return self


class Library:
    """The compiled function and the routines of LAPACK that it calls."""

    def __init__(self, path: Path) -> None:
        library = ctypes.CDLL(str(path))
        made_of = ctypes.c_char * 64
        if made_of.in_dll(library, "sparsebayes_source").value.decode() != _digest():
            raise OSError(f"{path} was compiled from another source")
        self._lapack = (ctypes.c_void_p * len(_ROUTINES))(*map(_address, _ROUTINES))
        self._settle = library.sparsebayes_settle
        self._settle.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int, *[ctypes.c_void_p] * 8]
        self._settle.restype = ctypes.c_int

    def settle(
        self, task: Task, gram: Array, projection: Array, alpha: Array, beta: float, *, closely: bool
    ) -> tuple[Index, Array, float, Array, Array, Array, float, float] | None:
        """Settle a model of these inner products from alpha and beta, by Newton's method or roughly by the fixed point.

        The places of the functions that are left come back, and their posterior as ``gaussian.Posterior`` has it; None
        where there is no posterior.  The size and number of targets of the task are set here.
        """
        task.size, task.targets = a, targets = projection.shape
        gram = np.ascontiguousarray(gram, dtype=np.float64)
        projection = np.ascontiguousarray(projection.T, dtype=np.float64)  # C reads by columns
        functions, numbers = np.arange(a, dtype=np.intc), np.array([beta, 0.0, 0.0])
        alpha, inverse = np.array(alpha, dtype=np.float64), np.empty(a * a)
        half, mean = np.empty(a * targets), np.empty(a * targets)
        arrays = gram, projection, functions, alpha, numbers, inverse, half, mean
        addresses = [array.__array_interface__["data"][0] for array in arrays]  # several times as fast as array.ctypes
        b = self._settle(self._lapack, ctypes.byref(task), closely, *addresses)
        if b == -2:
            raise MemoryError("there is not enough memory to settle the precisions")
        if b < 0:
            return None
        beta, fit, log_evidence = numbers.tolist()
        inverse = inverse[: b * b].reshape(b, b, order="F")
        half, mean = (values[: b * targets].reshape(b, targets, order="F") for values in (half, mean))
        return functions[:b].astype(np.intp), alpha[:b], beta, inverse, half, mean, fit, log_evidence


@lru_cache(maxsize=1)
def library() -> Library | None:
    """The compiled function; None where there is none, or it is not wanted."""
    if os.environ.get(SWITCH) == "0":
        return None
    return load(LIBRARY)


def load(path: Path) -> Library | None:
    """A library in a file; None where there is none that can be used here."""
    try:
        return Library(path) if path.exists() else None
    except (OSError, AttributeError, ValueError, KeyError):
        return None


def _digest() -> str:
    return hashlib.sha256(SOURCE.read_bytes()).hexdigest()


def _address(name: str) -> int:
    """Where a routine of SciPy's LAPACK is, whose integers have 32 bits."""
    capsule: Any = (cython_lapack.__pyx_capi__ | cython_blas.__pyx_capi__)[name]
    name_of, address_of = ctypes.pythonapi.PyCapsule_GetName, ctypes.pythonapi.PyCapsule_GetPointer
    name_of.restype, name_of.argtypes = ctypes.c_char_p, [ctypes.py_object]
    address_of.restype, address_of.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    signature = name_of(capsule)
    if b", int *" not in signature:
        raise OSError(f"{name} has the signature {signature!r}")
    return address_of(capsule, signature)
