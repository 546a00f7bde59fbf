"""The closed forms of all basis functions, written once for every language that a model is exported to.

A block of functions that differ only in numbers is one :class:`Node`, an expression of the inputs and of tables of
those numbers.  The writers of ONNX, C and SQL know operations and no kernels; a new kernel is one more entry of
``KERNELS``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sparsebayes.basis import Functions
from sparsebayes.basis.base import Specification

Array = NDArray[Any]


@dataclass(frozen=True, eq=False)
class Node:
    """An operation and what it is applied to.

    A node is a number for each function, or, where it is made from ``inputs`` or a table with a column for each input,
    a number for each function and input, until ``total`` or ``product`` takes the inputs together.

    Attributes
    ----------
    op : str
        ``inputs``, ``table`` or ``pick`` (leaves); ``add``, ``subtract``, ``multiply``, ``divide``, ``minimum``,
        ``at_least`` (1 or 0), ``power`` (to an integer >= 0), ``negative``, ``absolute``, ``exp``, ``cos``, ``tanh``,
        ``xlogx`` (0 at 0); ``total`` and ``product`` over the inputs.
    args : tuple of Node
        What it is applied to.
    values : ndarray, optional
        Numbers of a table, of shape (), (M, 1) or (1, d) or (M, d) for M functions of d inputs; (M,) for one number of
        each function.  For ``pick`` the (M,) numbers of the inputs that the functions look at.
    """

    op: str
    args: tuple[Node, ...] = ()
    values: Array | None = None

    def __add__(self, other: Node) -> Node:
        return Node("add", (self, other))

    def __sub__(self, other: Node) -> Node:
        return Node("subtract", (self, other))

    def __mul__(self, other: Node) -> Node:
        return Node("multiply", (self, other))

    def __truediv__(self, other: Node) -> Node:
        return Node("divide", (self, other))

    def __neg__(self) -> Node:
        return Node("negative", (self,))

    def __pow__(self, other: Node) -> Node:
        return Node("power", (self, other))

    @property
    def per_input(self) -> bool:
        """Whether there is a number for each input."""
        if self.op in ("total", "product", "pick"):
            return False
        if self.op == "table":
            return self.table.ndim == 2
        return self.op == "inputs" or any(arg.per_input for arg in self.args)

    @property
    def table(self) -> Array:
        """Numbers of a leaf."""
        if self.values is None:
            raise TypeError(f"a node {self.op!r} has no numbers of its own")
        return self.values


def table(values: Any) -> Node:
    """Numbers as a leaf."""
    return Node("table", values=np.asarray(values))


def apply(op: str, *args: Node) -> Node:
    """Apply a named operation."""
    return Node(op, args)


@dataclass(frozen=True)
class Block:
    """``count`` functions that one expression gives."""

    count: int
    expression: Node


INPUTS = Node("inputs")
_HALF, _ONE, _TWO, _THREE = (table(number) for number in (0.5, 1.0, 2.0, 3.0))
_SQUARE = table(2)


def _difference(centres: Node, parameters: Specification) -> Node:
    width = np.asarray(parameters["width"], dtype=np.float64)
    return (INPUTS - centres) / table(width if width.ndim == 0 else width[None, :])


def _squared_distance(centres: Node, parameters: Specification) -> Node:
    return apply("total", _difference(centres, parameters) ** _SQUARE)


def _rbf(c: Node, p: Specification) -> Node:
    return apply("exp", -_squared_distance(c, p))


def _laplacian(c: Node, p: Specification) -> Node:
    return apply("exp", -apply("total", apply("absolute", _difference(c, p))))


def _cauchy(c: Node, p: Specification) -> Node:
    return _ONE / (_ONE + _squared_distance(c, p))


def _thin_plate_spline(c: Node, p: Specification) -> Node:
    return _HALF * apply("xlogx", _squared_distance(c, p))  # ρ² log ρ = ½ ρ² log ρ²


def _linear_spline(c: Node, p: Specification) -> Node:
    low, product = apply("minimum", INPUTS, c), INPUTS * c
    return apply("product", _ONE + product + low * (product + low * (low / _THREE - (INPUTS + c) / _TWO)))


def _inner(c: Node, p: Specification) -> Node:
    return table(float(p["gamma"])) * apply("total", INPUTS * c) + table(float(p["coef0"]))


def _polynomial_kernel(c: Node, p: Specification) -> Node:
    return _inner(c, p) ** table(int(p["degree"]))


def _sigmoid(c: Node, p: Specification) -> Node:
    return apply("tanh", _inner(c, p))


# K(x, c) by kind, from the centres and the kernel's parameters.
KERNELS: dict[str, Callable[[Node, Specification], Node]] = {
    "rbf": _rbf,
    "laplacian": _laplacian,
    "cauchy": _cauchy,
    "thin_plate_spline": _thin_plate_spline,
    "linear_spline": _linear_spline,
    "polynomial_kernel": _polynomial_kernel,
    "sigmoid": _sigmoid,
}


def _pick(specs: Sequence[Specification]) -> Node:
    return Node("pick", values=np.array([spec["feature"] for spec in specs], dtype=np.int64))


def _heaviside(specs: Sequence[Specification]) -> Node:
    return apply("at_least", _pick(specs), table(np.array([spec["threshold"] for spec in specs])))


def _polynomial(specs: Sequence[Specification]) -> Node:
    return apply("product", INPUTS ** table(np.array([spec["powers"] for spec in specs], dtype=np.int64)))


def _bias(specs: Sequence[Specification]) -> Node:
    return table(np.ones(len(specs)))


def _gabor(specs: Sequence[Specification]) -> Node:
    centre, width, aspect, cycles, turn, phase = (
        np.array([spec[name] for spec in specs], dtype=np.float64)
        for name in ("centre", "width", "aspect", "cycles", "orientation", "phase")
    )
    offset = INPUTS - table(centre)
    cosine, sine = np.cos(turn) / width, np.sin(turn) / width
    across = apply("total", offset * table(np.column_stack([cosine, sine])))
    along = apply("total", offset * table(np.column_stack([-sine, cosine]) / aspect[:, None]))
    envelope = apply("exp", -(_HALF * (across**_SQUARE + along**_SQUARE)))
    return envelope * apply("cos", table(2.0 * np.pi * cycles) * across + table(phase))


# Functions that share no parameters by kind, from all their specifications.
SIMPLE: dict[str, Callable[[Sequence[Specification]], Node]] = {
    "bias": _bias,
    "linear": _pick,
    "heaviside": _heaviside,
    "polynomial": _polynomial,
    "gabor": _gabor,
}


def blocks(functions: Functions) -> list[Block]:
    """Return the closed forms of functions, in their order.

    Raises
    ------
    TypeError
        Where a function has none: code that the user brought, or columns that the caller computes.
    """
    found = []
    for (kind, shared), run in groupby(functions.specifications(), key=_family):
        specs = list(run)
        if kind in SIMPLE:
            expression = SIMPLE[kind](specs)
        elif kind in KERNELS:
            centres = table(np.array([spec["centre"] for spec in specs], dtype=np.float64))
            expression = KERNELS[kind](centres, dict(shared))
        else:
            raise TypeError(_no_closed_form(kind))
        found.append(Block(len(specs), expression))
    return found


def _family(spec: Specification) -> tuple[str, tuple[tuple[str, Any], ...]]:
    """What the functions of a block have in common: the kind, and for a kernel its parameters."""
    kind = spec["kind"]
    shared = () if kind in SIMPLE else tuple(item for item in spec.items() if item[0] not in ("kind", "centre"))
    return kind, shared


def _no_closed_form(kind: str) -> str:
    known = f"those of the kinds {', '.join(sorted([*SIMPLE, *KERNELS]))} have one"
    if kind == "precomputed":
        return (
            "cannot export a model of a precomputed matrix: its functions are columns that the caller computes, so "
            "there is no closed form of the inputs; fit with a kernel by name or a Basis"
        )
    if kind == "callable":
        return (
            "cannot export a model whose kernel is a Python function: there is no closed form to write down; "
            f"fit with a kernel by name or a Basis ({known})"
        )
    return f"cannot export functions of kind {kind!r}: no closed form is known; {known}"
