r"""The judge: what a noise level is worth, and how wide error bars must be, on rows that the search has not seen.

A row that had its say in the choice of functions cannot tell a good model from one whose noise has collapsed, whatever
is left out analytically.  Searches on four fifths of the rows, each from nothing, can; and they measure how far
left-out rows are from their predictions in units of the predicted standard deviation (``docs/trust.md``).

Rows with the same targets and the same functions are kept together, so that a weight of k is k copies of the row here
too, and folds follow from the sorted targets, so that neither the order of the rows nor the units and the sign of the
targets matter.  Two noise levels are compared on folds dealt by turns, which are alike.  Error bars need folds dealt at
random (:func:`scattered`): by turns two rows that follow one another, of twins say, are never left out together, as new
rows may be.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from sparsebayes.design import DenseDesign, representatives
from sparsebayes.inference.models.evidence import Array
from sparsebayes.inference.models.gaussian import GaussianModel, Gram
from sparsebayes.inference.models.problem import GaussianProblem, Index
from sparsebayes.inference.search.climb import climb

# Parts that the rows are divided into.
FOLDS = 5
# Entries of a dictionary up to which it is searched again on parts of its rows.
_ENTRIES = 1 << 25
# What a search on a part of the rows settles for, in nats.
_COARSE = 1e-2
# Size at which the search at a lowered noise ends, in that of the model before, and functions besides.
_KICKED, _SPARE = 1.5, 8
# The most, in nats, by which a single row may speak for or against: a mean is at the mercy of single rows.
VOICE = 3.0
# Logarithm of a ratio of errors that is no accident: -.03 to .003 on noise alone, .05 to .15 on Friedman's functions.
_CLEARLY = 0.02
# Part of its terms up to which a sum is rounding, and decimals to which targets agree.
_ROUNDING, _DECIMALS = 1e-9, 9

# Functions, weights and their covariance of a search on a part of the rows at one inverse noise variance.
Found = tuple[Index, Array, Array]
# Functions and their precisions.
Known = tuple[Index, Array]
# Rows of a part that is searched, and rows left out of it.
Cut = tuple[NDArray[np.bool_], NDArray[np.bool_]]
# Makes functions of other values out of those of a model on a part of the rows: the model with them, and their values
# on the rows left out.
Reshape = Callable[[GaussianModel, NDArray[np.bool_], NDArray[np.bool_]], tuple[GaussianModel, Array]]


@dataclass(frozen=True)
class LeftOut:
    r"""How rows that were left out are predicted.

    ``errors`` (n, T) are targets less their predictions; ``noise`` and ``spread`` (n,) the variance of the noise and
    the posterior variance of the output; ``leverage`` (n,) is spread over noise on average over the rows that the same
    search was given, :math:`\sum_m\gamma_m/N`; ``weights`` (n,) say how often each row counts.
    """

    errors: Array
    noise: Array
    spread: Array
    leverage: Array
    weights: Array

    @property
    def variance(self) -> Array:
        """Predicted variance of an observation."""
        return self.noise + self.spread


class Folds:
    """Searches on parts of the rows of a problem with the noise held, made once for each noise level.

    Parameters
    ----------
    problem : GaussianProblem
        With rows of its own (see :meth:`possible`).
    parts, enough : int, float
        Parts that the rows are divided into, and the weight of left-out rows from which on no further part is searched.
    kick : float, optional
        By how much the noise is lowered, and raised again, for a second search from where the first ended.
    fold : ndarray of int, optional
        Part of every row, where several dictionaries are to be compared on the same ones.
    search : callable, optional
        Searches the problem of a part at one inverse noise variance, in place of the loop on inner products.
    whole : tuple of ndarray, optional
        Functions that were found on all rows, and their precisions: where they have more evidence on the rows of a part
        than what the search there has found, it goes on from them.
    reshape : callable, optional
        Learns on each part what the shape of the functions should be, where all rows had a say in it.
    tol : float
        What a search settles for, in nats.
    """

    def __init__(
        self,
        problem: GaussianProblem,
        parts: int = FOLDS,
        enough: float = np.inf,
        kick: float | None = None,
        fold: Index | None = None,
        search: Callable[[GaussianProblem, float], Found] | None = None,
        whole: Known | None = None,
        reshape: Reshape | None = None,
        tol: float = _COARSE,
    ) -> None:
        self.problem, self.parts, self.enough, self.kick = problem, parts, enough, kick
        self.search, self.whole, self.reshape, self.tol = search, whole, reshape, tol
        if fold is not None:
            self.fold = fold
        self._known: dict[float, LeftOut] = {}

    @staticmethod
    def possible(problem: GaussianProblem) -> bool:
        """Whether the problem has rows of its own, few enough, and some in every fold."""
        rows, functions = problem.design.shape
        few = problem.parent is None and problem.rowwise and rows * functions <= _ENTRIES
        if not few or problem.n_effective < FOLDS:
            return False
        # Rows with different targets are different, which is cheaper to see than whether their functions are.
        return len(np.unique(problem.targets[problem.weights > 0.0, 0])) >= FOLDS or problem.different >= FOLDS

    def prefer(self, beta: float, other: float, size: int) -> bool:
        """Whether rows left out speak for one inverse noise variance rather than another."""
        difference = self.densities(beta, size) - self.densities(other, size)
        return float(np.average(np.clip(difference, -VOICE, VOICE), weights=self.weights)) > 0.0

    def errs_less(self, beta: float, other: float, size: int) -> bool:
        """Whether rows left out are clearly nearer to their predictions at one inverse noise variance than at another.

        A search that keeps many functions is too sure of itself, and may still predict better than one that keeps few.
        One that misses a large effect errs by it in all rows of its fold, so that folds are compared, by the ratio of
        their errors, without the two extreme ones.
        """
        first = np.cumsum([0, *(len(targets) for _, _, targets in self._divided)])[:-1]
        here, there = (
            np.add.reduceat(self.weights / self._noise() * self.squared_errors(level, size), first)
            for level in (beta, other)
        )
        return 0.5 * float(np.mean(np.sort(np.log(here / there))[1:-1])) < -_CLEARLY

    def densities(self, beta: float, size: int) -> Array:
        """Log density of every row under a search on the other folds with the noise held."""
        found = self.left_out(beta, size)
        return _log_density(found.errors, found.variance)

    def calibrated_densities(self, beta: float, size: int) -> Array:
        r"""Log density of every row, every variance multiplied by the factor at which their sum is largest.

        A model's error bars are multiplied so before they are used (the mean of the standardised squared errors).
        """
        found = self.left_out(beta, size)
        by_row = np.mean(found.errors**2, axis=1) / found.variance
        factor = float(np.average(by_row, weights=self.weights))
        return _log_density(found.errors, max(factor, np.finfo(float).tiny) * found.variance)

    def squared_errors(self, beta: float, size: int) -> Array:
        """Squared error of every row under the same searches, summed over the targets."""
        return np.sum(self.left_out(beta, size).errors ** 2, axis=1)

    def left_out(self, beta: float, size: int) -> LeftOut:
        """Errors and predicted variances of the rows that were left out, those of one part after those of another.

        Half of the functions that a search may take in is ``size``.
        """
        if beta not in self._known:
            parts = [
                self._without(data, values, targets, cut, beta, 2 * size)
                for (data, values, targets), cut in zip(self._divided, self._cut, strict=True)
            ]
            errors, spreads, leverages = (np.concatenate(each) for each in zip(*parts, strict=True))
            self._known[beta] = LeftOut(errors, self._noise() / beta, spreads, leverages, self.weights)
        return self._known[beta]

    def _without(
        self, data: Gram, values: Array, targets: Array, cut: Cut, beta: float, limit: int
    ) -> tuple[Array, Array, Array]:
        """Errors, posterior variances and leverages of the rows left out of one part."""
        if self.search is not None and data.mean_square > 0.0:
            functions, mean, covariance = self.search(data.problem, beta)
            phi, leverage = values[:, functions], np.nan  # a search of another kind does not say it
        else:
            model = _climbed(data, beta, limit, self.kick, self.tol)
            if self.whole is not None:
                model = _recovered(model, self.whole, limit, self.tol)
            phi = values[:, model.functions]
            if self.reshape is not None and model.size:
                model, phi = self.reshape(model, *cut)
            mean, covariance = model.mean, model.covariance
            leverage = float(np.sum(model.posterior.well_determined)) / data.problem.n_effective
        spread = np.maximum(np.einsum("na,na->n", phi @ covariance, phi), 0.0)
        return targets - phi @ mean, spread, np.full(len(phi), leverage)

    @cached_property
    def fold(self) -> Index:
        """Fold of every row."""
        return self._rank % self.parts

    @cached_property
    def _rank(self) -> Index:
        return _ranked(self.problem)

    @property
    def weights(self) -> Array:
        """Weights of the rows that are left out once, in the order of the densities."""
        return np.concatenate([self.problem.counts[out] for _, out in self._cut])

    def _noise(self) -> Array:
        """Noise of these rows, relative to that of the problem."""
        return np.concatenate([self.problem.relative_noise[out] for _, out in self._cut])

    @cached_property
    def _cut(self) -> list[Cut]:
        """Rows of each part that is searched, and rows left out of it."""
        parts = [(self.fold != k, self.fold == k) for k in range(self.parts)]
        reached = np.cumsum([0.0, *(np.sum(self.problem.counts[out]) for _, out in parts)])[:-1] < self.enough
        return [part for part, wanted in zip(parts, reached, strict=True) if wanted and part[1].any()]

    @cached_property
    def _divided(self) -> list[tuple[Gram, Array, Array]]:
        """Inner products of each training part, and functions and targets of the rows left out."""
        problem, parts = self.problem, []
        values = problem.design.columns(np.arange(problem.n_functions))
        copy_of = representatives(problem.design)
        for kept, out in self._cut:
            # A function would not be there without the rows that it and its copies are centred on.
            there = np.bincount(copy_of, ~np.isin(problem.rows, np.flatnonzero(out)), problem.n_functions) > 0.0
            offered = self._different(values, kept, out, problem.eligible & there[copy_of])
            parts.append((Gram(_part(problem, values[kept], kept, offered)), values[out], problem.targets[out]))
        return parts

    def _different(
        self, values: Array, kept: NDArray[np.bool_], out: NDArray[np.bool_], offered: NDArray[np.bool_]
    ) -> NDArray[np.bool_]:
        """Those of the functions that are offered which differ on the rows of a part.

        Of copies there, which say different things of the rows left out, one is chosen by what it says of these, not by
        its place; one that was found on all rows comes first.
        """
        functions = np.flatnonzero(offered)
        if np.array_equal(representatives(DenseDesign(values[kept][:, functions])), np.arange(len(functions))):
            return offered
        rows = np.flatnonzero(out)
        said = values[rows[np.argsort(self._rank[rows], kind="stable")]][:, functions]
        found = np.isin(functions, () if self.whole is None else self.whole[0])
        functions = functions[np.lexsort([*said, ~found])]
        first = representatives(DenseDesign(values[kept][:, functions])) == np.arange(len(functions))
        return np.isin(np.arange(len(offered)), functions[first])


def _log_density(error: Array, variance: Array) -> Array:
    """Log density of rows with these errors, summed over the targets."""
    return -0.5 * np.sum(np.log(2.0 * np.pi * variance)[:, None] + error**2 / variance[:, None], axis=1)


def _part(
    problem: GaussianProblem, values: Array, kept: NDArray[np.bool_], eligible: NDArray[np.bool_]
) -> GaussianProblem:
    share = float(np.sum(problem.counts[kept]) / np.sum(problem.counts))
    return GaussianProblem(
        DenseDesign(values),
        problem.targets[kept],
        problem.weights[kept],
        eligible,
        inclusion_cost=problem.inclusion_cost,
        n_observations=share * problem.n_effective,
    )


def _climbed(data: Gram, beta: float, limit: int, kick: float | None, tol: float) -> GaussianModel:
    """What the loop finds on a part of the rows with the noise held."""
    model = GaussianModel.empty(data, beta, learn_noise=False)
    if data.mean_square == 0.0:  # all targets of a part may be zero where those left out are not
        return model
    model = climb(model, tol, limit=max(limit, 1))
    if kick is not None and model.size:
        fuller = model.at_noise(kick * beta, learn_noise=False)
        fuller = climb(fuller, tol, limit=_KICKED * model.size + _SPARE)
        other = climb(fuller.at_noise(beta, learn_noise=False), tol, limit=max(limit, 1))
        model = other if other.objective > model.objective else model
    return model


def _recovered(model: GaussianModel, whole: Known, limit: int, tol: float) -> GaussianModel:
    """What was found on a part of the rows, or what the search had missed there, as rows of the part alone say.

    Where rows are few a search now and then ends in a tangle of wrong functions that a fit with all its starts would
    have left, which says nothing of the error bars.
    """
    data = model.data
    functions, alpha = whole
    offered = data.eligible[functions]
    known = functions[offered].tolist(), alpha[offered], model.beta
    other = GaussianModel.weighing(data, *known, learn_noise=False)
    if other.objective <= model.objective + tol:
        return model
    return climb(other, tol, limit=max(limit, 1))


def scattered(problem: GaussianProblem, parts: int) -> Index:
    """Fold of every row, dealt at random: the same for the same rows in any order."""
    rank = _ranked(problem)
    return np.random.default_rng(0).permutation(int(np.max(rank)) + 1)[rank] % parts


def _ranked(problem: GaussianProblem) -> Index:
    """Place of every row in the order of the targets, that of its copies too."""
    key = _oriented(problem)[:, None]
    if len(np.unique(key)) < len(key):
        key = np.hstack([key, problem.sums(problem.design)])
    return np.unique(key, axis=0, return_inverse=True)[1].reshape(-1)


def _oriented(problem: GaussianProblem) -> Array:
    """Targets for an order that is the same for a + bt, with b of either sign: their longer tail comes last.

    Where both tails are alike it is the one where the functions are larger; where these do not tell either, rows as far
    from the middle have one place.  Of several targets it is their sum.
    """
    counts = problem.counts
    apart = problem.targets - np.average(problem.targets, axis=0, weights=counts)
    unit = np.max(np.abs(apart), axis=0)
    apart = apart / np.where(unit > 0.0, unit, 1.0)
    longer = _sign(counts, apart**3)
    if not np.all(longer):
        by_functions = _sign(counts, apart * problem.sums(problem.design)[:, :1])
        longer = np.where(longer == 0.0, by_functions, longer)
    return np.round(np.sum(np.where(longer == 0.0, np.abs(apart), longer * apart), axis=1), _DECIMALS)


def _sign(counts: Array, values: Array) -> Array:
    """Signs of weighted sums of columns, zero where a sum is rounding."""
    total = counts @ values
    return np.where(np.abs(total) > _ROUNDING * (counts @ np.abs(values)), np.sign(total), 0.0)
