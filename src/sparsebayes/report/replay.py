"""The search, so that it can be played again: which functions were in the model after every record."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sparsebayes.inference import Record


@dataclass(frozen=True)
class Chapter:
    """Consecutive records of one start.

    Attributes
    ----------
    first : int
        Number of its first record.
    begin : list of int or None
        Functions in the model before it; None where the records do not tell.
    """

    first: int
    begin: list[int] | None


def chapters(history: Sequence[Record], reached: int = -1, model: Sequence[int] = ()) -> list[Chapter]:
    """Divide a history into chapters and find what each began with.

    A start begins with nothing, or goes on from the best model so far; which it was shows in the number of functions
    that its records state.  Where neither fits, as where a search begins with all functions of a kicked model, the
    chapter in which the model was reached is played backwards from it; of others nothing is claimed.

    Parameters
    ----------
    history : sequence of Record
        Of one search.
    reached : int
        The record at which the model was reached.
    model : sequence of int
        Functions of the model.
    """
    found: list[Chapter] = []
    ends: dict[int, tuple[float, list[int] | None]] = {}
    for first, last in _runs(history):
        part = history[first:last]
        start = part[0].start
        best_first = [end for _, end in sorted(ends.values(), key=lambda end: -end[0])]
        own = ends[start][1] if start in ends else None
        candidates = [candidate for candidate in (own, [], *best_first) if candidate is not None]
        if first <= reached < last:
            until = part[: reached + 1 - first]
            before = _backwards(until, model)
            if set(play(until, before) or ()) == set(model):
                candidates.append(before)
        begin = next((candidate for candidate in candidates if play(part, candidate) is not None), None)
        found.append(Chapter(first, begin))
        ends[start] = (part[-1].objective, None if begin is None else play(part, begin))
    return found


def play(part: Sequence[Record], begin: Sequence[int]) -> list[int] | None:
    """Functions in the model after these records; None where they contradict what it began with."""
    inside = dict.fromkeys(begin)
    for record in part:
        if any(f in inside for f in record.added) or any(f not in inside for f in record.removed):
            return None
        inside |= dict.fromkeys(record.added)
        for f in record.removed:
            del inside[f]
        if len(inside) != record.n_active:
            return None
    return list(inside)


def _backwards(part: Sequence[Record], end: Sequence[int]) -> list[int]:
    """Functions in the model before these records, if it has these functions after them."""
    inside = dict.fromkeys(end)
    for record in reversed(part):
        inside = {f: None for f in inside if f not in record.added} | dict.fromkeys(record.removed)
    return list(inside)


def _runs(history: Sequence[Record]) -> list[tuple[int, int]]:
    edges = [k for k in range(len(history)) if k == 0 or history[k].start != history[k - 1].start]
    return list(zip(edges, [*edges[1:], len(history)], strict=True))
