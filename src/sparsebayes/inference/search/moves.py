r"""Moves of several functions at once: exchange, merge and split, evaluated exactly (docs/dictionary.md).

Taking functions J out of the model changes S and Q of all functions by low rank (T&F eqs 40, 41),

.. math::

    S^{-J}_{mn} = S_{mn} + c_{mJ}\,\Sigma_{JJ}^{-1}\,c_{Jn}, \qquad
    Q^{-J}_m = Q_m + c_{mJ}\,\Sigma_{JJ}^{-1}\,\mu_J, \qquad
    c_{mJ} = \beta\,\phi_m^\top W\Phi\Sigma_{\cdot J} ,

so that no other model is computed for what an exchange (j out, i in), a merge (j, k out, i in) or a split (j out, i, i'
in) would gain.  A candidate whose s is not above rounding is never considered, and the moves that look best stand only
if the evidence, computed anew, rises.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sparsebayes.inference.models.evidence import Array, best_alpha, contribution
from sparsebayes.inference.models.interface import Active
from sparsebayes.inference.models.linalg import cosines

# Fraction of βφᵀWφ above which s has correct digits after a deletion.
_RESOLVED = 1e-11
# Moves of one kind that are tried in earnest before giving up: what they gain beyond the prediction comes from the
# precisions that follow, so the best prediction need not be the best move.
_TRIALS = 3
# Partners that a function is merged with, and candidates for each half of a split, best first.
_NEIGHBOURS = 4
_HALVES = 24
_ALTERNATIONS = 8


@dataclass(frozen=True)
class Swap:
    """Functions out (places in the model) and in (numbers in the dictionary, with precisions), and the gain."""

    kind: str
    out: tuple[int, ...]
    into: tuple[int, ...]
    alpha: tuple[float, ...]
    gain: float


@dataclass(frozen=True)
class Linearised:
    """The weighted Gaussian problem at the present model: S, Q, their changes, and the squared norms."""

    active: Active
    S: Array
    Q: Array
    cross: Array
    norms: Array

    @classmethod
    def of(cls, active: Active) -> Linearised:
        """Of a regression model exactly; of another one at its mode."""
        return cls(active, *active.linearised())

    def without(self, out: list[int]) -> tuple[Array, Array]:
        """``s`` and mean ``q²`` of all functions once these are out of the model (T&F eqs 40, 41)."""
        block = np.linalg.inv(self.active.covariance[np.ix_(out, out)])
        c, mean = self.cross[:, out], self.active.means[out]
        s = self.S + np.einsum("mj,jk,mk->m", c, block, c)
        return s, np.mean((self.Q + c @ (block @ mean)) ** 2, axis=1)

    def open(self, s: Array) -> NDArray[np.bool_]:
        """Functions outside the model that may take the place of others, and whose ``s`` is above rounding."""
        problem = self.active.problem
        offered = None if self.active.approximate else problem.offered
        allowed = problem.eligible if offered is None else problem.eligible | (offered & (self.norms > 0.0))
        allowed = allowed & (s > _RESOLVED * self.norms)
        allowed[self.active.indices] = False
        return allowed

    def additions(self, out: list[int]) -> tuple[Array, Array]:
        """Best precision of every function once these are out, and what it would then bring; -inf where none may."""
        s, q2 = self.without(out)
        best = best_alpha(s, q2)
        allowed = self.open(s) & np.isfinite(best)
        return best, np.where(allowed, self.active.problem.n_targets * contribution(best, s, q2), -np.inf)

    def lost(self, out: list[int]) -> float:
        r"""What functions bring: :math:`\tfrac12[\mu_J^\top\Sigma_{JJ}^{-1}\mu_J + T\log|\mathbf A_J\Sigma_{JJ}|]`."""
        block = self.active.covariance[np.ix_(out, out)]
        mean = self.active.means[out]
        _, log_det = np.linalg.slogdet(block * self.active.alpha[out])
        quadratic = float(np.sum(mean * np.linalg.solve(block, mean)))
        return 0.5 * (quadratic + self.active.problem.n_targets * float(log_det))


Proposals = Callable[[Active, float], Iterator[Swap]]


def best_exchanges(active: Active, tol: float) -> Iterator[Swap]:
    """The exchanges that promise most, best first."""
    found = Linearised.of(active)
    yield from _best([_replace(found, "exchange", [j]) for j in range(active.size)], tol)


def best_merges(active: Active, tol: float) -> Iterator[Swap]:
    """Two functions of the model replaced by one, best first; partners are those with the most in common."""
    found = Linearised.of(active)
    yield from _best([_replace(found, "merge", [j, k]) for j, k in _partners(active)], tol)


def best_splits(active: Active, tol: float) -> Iterator[Swap]:
    r"""One function of the model replaced by two, best first; regression only.

    Two functions nearly on top of each other always fit a little better than one, so that a split has to bring
    :math:`\tfrac12\log N` nats: what one weight more is worth.
    """
    if active.approximate:
        return
    tol = max(tol, 0.5 * float(np.log(active.problem.n_effective)))
    linear = Linearised.of(active)
    found: list[Swap] = []
    for j in range(active.size):
        s, _ = linear.without([j])
        likeness = np.where(linear.open(s), linear.cross[:, j] ** 2 / np.where(s > 0.0, s, 1.0), -np.inf)
        near = np.argsort(-likeness, kind="stable")[:_HALVES]
        near = near[np.isfinite(likeness[near])]
        if len(near) < 2:
            continue
        first, second, alphas, gain = _pair(linear, j, near)
        pair = int(near[first]), int(near[second])
        found.append(Swap("split", (j,), pair, alphas, gain - linear.lost([j]) - active.problem.inclusion_cost))
    yield from _best(found, tol)


def perform(active: Active, swap: Swap) -> Active | None:
    """The model after the move, computed on a copy; None where the objective does not rise."""
    stays = [k for k in range(active.size) if k not in swap.out]
    functions = [*(active.indices[k] for k in stays), *swap.into]
    after = active.like(active.problem, functions, np.append(active.alpha[stays], swap.alpha))
    return after if after.objective() > active.objective() else None


# -- low-rank changes --------------------------------------------------------------------------------------


def _replace(found: Linearised, kind: str, out: list[int]) -> Swap:
    """The best function to take the place of these."""
    alpha, gain = found.additions(out)
    i = int(np.argmax(gain))
    spared = found.active.problem.inclusion_cost * (len(out) - 1)
    return Swap(kind, tuple(out), (i,), (float(alpha[i]),), float(gain[i]) - found.lost(out) + spared)


def _partners(active: Active) -> Iterator[tuple[int, int]]:
    """Pairs of functions with strongly correlated weights, each once."""
    likeness = cosines(active.covariance)
    np.fill_diagonal(likeness, -1.0)
    order = np.argsort(-likeness, axis=1, kind="stable")[:, :_NEIGHBOURS]
    pairs = {(min(j, int(k)), max(j, int(k))) for j in range(active.size) for k in order[j] if k != j}
    yield from sorted(pairs)


def _pair(linear: Linearised, j: int, near: NDArray[np.intp]) -> tuple[int, int, tuple[float, float], float]:
    """Best two of these functions to take the place of function j: which, their precisions, and what they bring.

    The two precisions are found by turns, each exactly given the other, for all pairs at once.
    """
    active = linear.active
    block, change = 1.0 / active.covariance[j, j], linear.cross[near, j]
    columns = active.problem.columns(near)
    shared = active.beta * (columns.T @ active.problem.columns(np.array(active.indices)))
    joint = active.beta * (columns.T @ columns) - shared @ active.covariance @ shared.T
    joint += block * np.outer(change, change)
    q = linear.Q[near] + block * change[:, None] * active.mean[j]
    targets = active.problem.n_targets
    s, q2, product = np.diagonal(joint).copy(), np.mean(q**2, axis=1), q @ q.T / targets
    (s1, p1), (s2, p2) = (s[:, None], q2[:, None]), (s[None, :], q2[None, :])  # of the first and second of each pair
    alpha, second = best_alpha(s1, p1), best_alpha(s2, p2)
    beside, kept = s2, p2  # of the second once the first is in the model
    for _ in range(_ALTERNATIONS):
        alpha = best_alpha(*_given(s1, p1, s2, p2, joint, product, second))
        beside, kept = _given(s2, p2, s1, p1, joint, product, alpha)
        second = best_alpha(beside, kept)
    total = targets * (contribution(alpha, s1, p1) + contribution(second, beside, kept))
    usable = np.isfinite(alpha) & np.isfinite(second) & (beside > _RESOLVED * linear.norms[near])
    total = np.where(usable & ~np.eye(len(near), dtype=bool), total, -np.inf)
    i, k = np.unravel_index(int(np.argmax(total)), total.shape)
    return int(i), int(k), (float(alpha[i, k]), float(second[i, k])), float(total[i, k])


def _given(
    s: Array, q2: Array, s_other: Array, q2_other: Array, joint: Array, product: Array, alpha: Array
) -> tuple[Array, Array]:
    """``s`` and ``q²`` of one function once another is in the model with this precision (T&F eqs 30, 31)."""
    with np.errstate(invalid="ignore"):
        weight = np.where(np.isfinite(alpha), joint / (alpha + s_other), 0.0)
    return np.maximum(s - weight * joint, 0.0), q2 - 2.0 * weight * product + weight**2 * q2_other


def _best(found: list[Swap], tol: float) -> Iterator[Swap]:
    for swap in sorted(found, key=lambda swap: -swap.gain)[:_TRIALS]:
        if swap.gain > tol:
            yield swap
