"""What a function is, whichever list it stands in: its specification, and never its number or a row."""

from __future__ import annotations

import numpy as np

from .base import Floats, Functions, Index

# Where functions of one family are.
_PLACE = ("centre", "threshold")
# Part of the largest of its kind by which a coordinate of one place may differ: steps of a pipeline round differently
# in fit_transform, where a model got its centres, and in transform, where it is asked about them.
_ROUNDING = 1e-9


def families(functions: Functions) -> list[str]:
    """What each function is apart from its place."""
    return [
        repr({key: value for key, value in spec.items() if key not in _PLACE}) for spec in functions.specifications()
    ]


def same_functions(functions: Functions, among: Functions) -> list[Index]:
    """For each function its numbers among others, in order: several where these have copies, none where it is none.

    Parameters
    ----------
    functions, among : Functions
        What to look for, and where.
    """
    members: dict[str, list[int]] = {}
    for number, family in enumerate(families(among)):
        members.setdefault(family, []).append(number)
    places, found = _places(among), []
    unit = np.abs(places).max(axis=0)
    unit[unit == 0.0] = 1.0
    for family, place in zip(families(functions), _places(functions), strict=True):
        alike = np.array(members.get(family, []), dtype=np.intp)
        apart = (np.abs(places[alike] - place) / unit).max(axis=1)
        found.append(alike[apart <= min(_ROUNDING, np.min(apart, initial=np.inf))])
    return found


def _places(functions: Functions) -> Floats:
    """Centres, zero where a function has none."""
    centres = functions.centres
    return np.zeros((len(functions), 1)) if centres is None else np.nan_to_num(centres)
