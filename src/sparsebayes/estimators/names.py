"""What functions are called: the one place that knows, for summaries, tables, reports and explanations."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import Any

import numpy as np

from sparsebayes.basis.base import Specification

# Numbers of a list that a name shows.
_SHOWN = 4
# What a name says already.
_SAID = ("kind", "feature", "threshold", "powers", "column", "centre")


def name_functions(
    specifications: Sequence[Specification],
    rows: Sequence[int],
    inputs: Sequence[str],
    called: Sequence[int] | None = None,
) -> list[str]:
    """Names of functions, by what they are and not by where they stand in a dictionary.

    Where several would have one name, as functions of two widths on the same row, what they differ in is added.

    Parameters
    ----------
    specifications : sequence of dict
        What they are.
    rows : sequence of int
        Training row that each is centred on, -1 where that is none or is not known.
    inputs : sequence of str
        Names of the columns of X; x0, x1, … where it is empty.
    called : sequence of int, optional
        What the training rows are called; their numbers, from 0, by default.
    """
    names = [_name(spec, int(row), inputs, called) for spec, row in zip(specifications, rows, strict=True)]
    alike: dict[str, list[int]] = defaultdict(list)
    for k, name in enumerate(names):
        alike[name].append(k)
    for same in alike.values():
        for key in _differing([specifications[k] for k in same]):
            for k in same:
                names[k] += f", {key} {_text(specifications[k].get(key))}"
    return names


def _name(spec: Specification, row: int, inputs: Sequence[str], called: Sequence[int] | None) -> str:
    kind = str(spec["kind"])
    if kind == "linear":
        return _input(spec["feature"], inputs)
    if kind == "heaviside":
        return f"{_input(spec['feature'], inputs)} >= {spec['threshold']:g}"
    if kind == "polynomial":
        factors = ((_input(j, inputs), p) for j, p in enumerate(spec["powers"]) if p)
        return " ".join(name if p == 1 else f"{name}^{p}" for name, p in factors)
    if kind == "precomputed":
        return f"{kind} {spec['column']}"
    if "centre" not in spec:
        return kind
    if row < 0:
        return f"{kind} at {_text(spec['centre'])}"
    return f"{kind} of row {row if called is None else called[row]}"


def _input(feature: int, inputs: Sequence[str]) -> str:
    return str(inputs[feature]) if len(inputs) else f"x{feature}"


def _differing(specifications: list[Specification]) -> list[str]:
    """Entries in which functions of one name differ."""
    first, *others = specifications
    return [key for key in first if key not in _SAID and any(spec.get(key) != first[key] for spec in others)]


def _text(value: Any) -> str:
    """A number, or the first few of a list of them."""
    numbers = np.ravel(value)
    if numbers.dtype.kind not in "iuf":
        return str(value)
    shown = [f"{number:.4g}" for number in numbers[:_SHOWN]] + ["…"] * (len(numbers) > _SHOWN)
    return shown[0] if len(shown) == 1 else f"({', '.join(shown)})"
