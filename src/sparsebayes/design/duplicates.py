"""Columns that are the same function twice."""

from __future__ import annotations

from collections.abc import Iterator
from hashlib import blake2b

import numpy as np

from sparsebayes.basis.base import Index

from .protocol import BLOCK_BYTES, Design


def representatives(design: Design) -> Index:
    """Return, for every column, the lowest index of a column with exactly the same entries.

    Two identical columns cannot both be in the model: the evidence does not tell them apart and the posterior
    precision is singular without the prior. Candidates are found by a fingerprint (products with two fixed
    random vectors, and the norm) in O(M log M) beside the products; only candidates are produced and
    compared. Zero columns represent themselves, since they never enter a model.

    Parameters
    ----------
    design : Design
        The design.

    Returns
    -------
    (M,) integer array
    """
    n, m = design.shape
    result = np.arange(m, dtype=np.intp)
    limit = max(2, BLOCK_BYTES // (8 * max(1, n)))
    for members in _packs(_candidates(design), limit):
        first: dict[bytes, int] = {}
        for start in range(0, members.size, limit):
            chunk = members[start : start + limit]
            # Adding zero turns -0.0 into 0.0, the only entries that are equal with different bytes.
            columns = np.ascontiguousarray(design.columns(chunk).T) + 0.0
            for member, column in zip(chunk.tolist(), columns, strict=True):
                # 256 bits of a cryptographic hash stand for the column: one pass, no pairs.
                result[member] = first.setdefault(blake2b(column, digest_size=32).digest(), member)
    return result


def _candidates(design: Design) -> list[Index]:
    """Return groups of two or more columns, each in ascending order, that rounding alone could tell apart."""
    n = design.shape[0]
    norms = np.sqrt(design.sqnorms())
    probes = np.random.default_rng(20010601).standard_normal((n, 2))
    prints = np.column_stack([design.correlate(probes), norms])
    # A product may round equal columns differently in different places of Φ. The error of a sum of n terms
    # of size ‖φ‖/√n grows at most like n ε ‖φ‖ in BLAS, and in practice like its root.
    slack = 4.0 * max(n, 1) * np.finfo(np.float64).eps * norms
    live = np.flatnonzero(norms > 0.0)
    label = np.zeros(live.size, dtype=np.intp)
    order = np.arange(live.size)
    for print_ in prints[live].T:
        order = np.lexsort((print_, label))
        new = np.diff(label[order]) != 0
        new |= np.diff(print_[order]) > np.maximum(slack[live][order][1:], slack[live][order][:-1])
        label[order] = np.concatenate([[0], np.cumsum(new)])[: live.size]
    starts = np.searchsorted(label[order], np.arange(label.max(initial=-1) + 2))
    several = np.flatnonzero(np.diff(starts) > 1)  # few, where there may be thousands that are alone
    return [np.sort(live[order[starts[k] : starts[k + 1]]]) for k in several]


def _packs(groups: list[Index], limit: int) -> Iterator[Index]:
    """Yield groups together up to ``limit`` columns; one larger than that comes alone."""
    pack: list[Index] = []
    size = 0
    for group in groups:
        if pack and size + group.size > limit:
            yield np.concatenate(pack)
            pack, size = [], 0
        pack.append(group)
        size += group.size
    if pack:
        yield np.concatenate(pack)
