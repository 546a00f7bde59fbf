"""Order-recursive matching pursuit, the greedy baseline of the lecture's table on the blocks signal.

At each step the function enters that lowers the squared error most when all weights are fitted anew (that is what
distinguishes it from plain and from orthogonal matching pursuit).  Nothing is ever removed.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from sparsebayes.typing import Array

# A candidate whose part outside the span chosen so far is below this fraction of its norm lies in it.
_IN_SPAN = 1e-10


@dataclass(frozen=True)
class Pursuit:
    """Functions in the order in which they were added, their least-squares weights, and the errors on the way."""

    indices: list[int]
    weights: Array
    errors: list[float]


def ormp(Phi: Array, t: Array, *, n_functions: int | None = None, error: float = 0.0) -> Pursuit:
    """Add functions until there are ``n_functions``, or the mean squared error is at most ``error``.

    The candidates are kept orthogonal to what was chosen, so that a step costs O(NM).

    Parameters
    ----------
    Phi : ndarray of shape (N, M)
        The dictionary.
    t : ndarray of shape (N,)
        Targets.
    n_functions : int, optional
        Most functions to add; None means no limit but the rank.
    error : float
        Mean squared error at which to stop.
    """
    n, m = Phi.shape
    limit = min(n, m) if n_functions is None else min(n_functions, n, m)
    candidates = np.array(Phi, dtype=np.float64, order="F")
    norms = np.einsum("nm,nm->m", candidates, candidates)
    smallest = _IN_SPAN**2 * norms
    residual = np.array(t, dtype=np.float64)
    indices: list[int] = []
    errors = [float(np.mean(residual**2))]
    while len(indices) < limit and errors[-1] > error:
        usable = (norms > smallest) & (norms > 0.0)
        drop = np.where(usable, (candidates.T @ residual) ** 2 / np.where(usable, norms, 1.0), -1.0)
        best = int(np.argmax(drop))
        if drop[best] <= 0.0:
            break
        direction = candidates[:, best] / np.sqrt(norms[best])
        residual -= direction * (direction @ residual)
        along = direction @ candidates
        candidates -= np.outer(direction, along)
        norms = np.einsum("nm,nm->m", candidates, candidates)
        norms[best] = 0.0
        indices.append(best)
        errors.append(float(np.mean(residual**2)))
    weights = np.asarray(np.linalg.lstsq(Phi[:, indices], t, rcond=None)[0], dtype=np.float64)
    return Pursuit(indices, weights, errors)
