"""New centres between and around those of the kept functions, for moves that split and merge."""

from __future__ import annotations

from functools import reduce

import numpy as np
from numpy.typing import NDArray

from sparsebayes.basis import Functions
from sparsebayes.basis.identity import families
from sparsebayes.typing import Array

# Steps away from a kept centre, as fractions of the extent of each input, and places on the way to its neighbours.
_STEPS = tuple(0.5**k for k in (4, 6, 8, 10))
_BETWEEN = (0.25, 0.5, 0.75)


def refined(functions: Functions, kept: list[int], extent: Array) -> Functions | None:
    """Functions like the kept ones at new centres; None where all such are already there.

    A function steps along every input that it has a place on; two neighbours of the same kind can meet in between.
    """
    centres = functions.centres
    if centres is None:
        return None
    kinds = families(functions)
    known = {(kinds[m], centres[m].tobytes()) for m in range(len(functions))}
    fresh: list[Functions] = []
    for m in kept:
        places = np.flatnonzero(np.isfinite(centres[m]))
        partners = [k for k in kept if k != m and kinds[k] == kinds[m] and _same(centres[k], centres[m])]
        offered = [*_around(centres[m], places, extent), *_towards(centres[m], centres[partners])]
        new = [c for c in offered if (kinds[m], c.tobytes()) not in known]
        known |= {(kinds[m], c.tobytes()) for c in new}
        if new:
            fresh.append(functions.at_centres(m, np.array(new)))
    return reduce(lambda left, right: left.join(right), fresh) if fresh else None


def _same(left: Array, right: Array) -> bool:
    return bool(np.all(np.isfinite(left) == np.isfinite(right)) and np.any(np.isfinite(left)))


def _around(centre: Array, places: NDArray[np.intp], extent: Array) -> list[Array]:
    found = []
    for j in places:
        for step in _STEPS:
            for sign in (-1.0, 1.0):
                moved = centre.copy()
                moved[j] += sign * step * extent[j]
                found.append(moved)
    return found


def _towards(centre: Array, partners: Array) -> list[Array]:
    """Places on the way to the nearest neighbour."""
    if len(partners) == 0:
        return []
    nearest = partners[int(np.argmin(np.nansum((partners - centre) ** 2, axis=1)))]
    return [centre + part * (nearest - centre) for part in _BETWEEN]
