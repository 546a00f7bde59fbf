r"""Single effects on two classes, every candidate judged at its own mode.

A Gaussian bound of the logistic likelihood (Jaakkola & Jordan) is tight about the outputs that it was made for: with an
effect at one candidate it describes all others as if that one were right, and its probability comes out too near one.
So what the search has found is settled once more without it.  With the outputs :math:`\mathbf o` that the other effects
are expected to have, a candidate is a logistic regression on one column (and the constant),

.. math::

    f_m(w,c) = \sum_n\omega_n\log\sigma\bigl(s_n(o_n+c+w\phi_{nm})\bigr)-\frac{w^2}{2V} ,

and Laplace's approximation at its mode says what its effect is worth beside none:

.. math::

    \log\mathrm{BF}_m = f_m(\hat w,\hat c)-f_m(0,\hat c_0)-\tfrac12\log V-\tfrac12\log\frac{|\mathbf H_m|}{H_0} .

Probabilities and V follow as in :mod:`sparsebayes.inference.solvers.single_effects`.  The effects take turns until they
stay; these are limited, for where classes separate V never ceases to rise.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy.special import expit, log_expit

from sparsebayes.inference.models.bound import bound_curvature
from sparsebayes.inference.solvers.single_effects import Correlations, Effect, Effects, Hyperparameters, shares
from sparsebayes.typing import Array, Index

from .problems import TwoClasses

# Numbers held at once: of more candidates, those of the highest scores are tried.
_NUMBERS = 1 << 20
# Steps to the modes, and the rise below which they end.
_STEPS, _RISE = 100, 1e-5
# Squared signal-to-noise ratio of effects at least, of rows whose curvature is the largest, a quarter.
_SMALLEST = 36.0
# Turns of all effects, and the change of an inclusion probability below which they end.
_TURNS, _SAME = 20, 1e-3


@dataclass(frozen=True)
class Logistic:
    """Two classes, and the candidates that may tell them apart.

    Attributes
    ----------
    problem : Correlations
        The candidates, in the metric of the sample weights.
    signs : ndarray of shape (N,)
        1 or -1.
    prior : float
        Variance of an effect of a column whose mean square is one.
    """

    problem: Correlations
    signs: Array
    prior: float

    @classmethod
    def settled(
        cls, bounded: Correlations, state: Effects, classes: TwoClasses, *, limit: int
    ) -> tuple[Correlations, Effects]:
        """Effects that were found by a bound, without it; and what one more would be, if there may be one."""
        signs, weights = classes.signs, classes.weights
        size = float(weights.sum())
        problem = Correlations(bounded.design, signs, weights, constant=bounded.constant, size=size)
        ratio = bounded.scale / np.where(problem.usable, problem.scale, np.inf)
        effects = tuple(replace(effect, mean=ratio * effect.mean) for effect in state.effects)
        task = cls(problem, signs, prior=_SMALLEST / size)
        task = replace(task, prior=task._learned(effects))
        return problem, task.turns(Effects(effects, np.zeros_like(ratio), Hyperparameters(1.0, task.prior)), limit)

    def turns(self, state: Effects, limit: int) -> Effects:
        """Every effect beside the others, and their prior variance, as often as something changes."""
        task = self
        for _ in range(_TURNS):
            effects = [effect for effect in state.effects if effect.there]
            total = sum(map(self._outputs, effects), np.zeros(len(self.signs)))
            for k, old in enumerate(effects):
                beside = total - self._outputs(old)
                effects[k] = task.effect(beside)
                total = beside + self._outputs(effects[k])
            if len(effects) < limit:
                effects.append(task.effect(total))
            before, state = state, Effects(tuple(effects), state.residual, Hyperparameters(1.0, task.prior))
            if np.abs(state.inclusion - before.inclusion).max() < _SAME:
                break
            task = replace(task, prior=task._learned([effect for effect in effects if effect.there]))
        return state

    def _learned(self, effects: Sequence[Effect]) -> float:
        """Prior variance of the largest evidence, such that an effect can be told from none."""
        if not effects:
            return self.prior
        mean = sum(effect.square for effect in effects) / sum(effect.exists for effect in effects)
        return max(mean, _SMALLEST / self.problem.size)

    def effect(self, offset: Array) -> Effect:
        """An effect beside these outputs of the others."""
        usable = self.problem.usable
        (nothing,), _, _, (constant,) = self._modes(np.zeros((len(offset), 1)), offset)
        tried = self._tried(offset + constant)
        exponents, mean, variance = np.full(len(usable), -np.inf), np.zeros(len(usable)), np.zeros(len(usable))
        exponents[tried], mean[tried], variance[tried], _ = self._modes(self.problem.values(tried), offset)
        exponents -= nothing + np.log(max(int(usable.sum()), 1))
        alpha, evidence = shares(exponents)
        return Effect(alpha, float(expit(evidence)), evidence, mean, variance)

    def _outputs(self, effect: Effect) -> Array:
        """What an effect is expected to add to the outputs, if it is there."""
        support = np.flatnonzero(effect.expected) if effect.there else np.zeros(0, dtype=np.intp)
        return self.problem.values(support) @ effect.expected[support]

    def _tried(self, outputs: Array) -> Index:
        """Candidates that may carry an effect: those of the highest scores, where all would be too many."""
        usable, most = np.flatnonzero(self.problem.usable), max(1, _NUMBERS // len(outputs))
        if len(usable) <= most:
            return usable
        design, weights = self.problem.design, self.problem.weights
        curvature = weights * expit(outputs) * expit(-outputs)
        slope = design.correlate(weights * self.signs * expit(-self.signs * outputs))
        square = design.sqnorms(curvature)
        if self.problem.constant is not None:
            square = square - np.square(design.correlate(curvature)) / curvature.sum()
        score = np.square(slope[usable]) / np.maximum(square[usable], np.finfo(float).tiny)
        return np.sort(usable[np.argsort(-score, kind="stable")[:most]])

    def _modes(self, columns: Array, offset: Array) -> tuple[Array, Array, Array, Array]:
        r"""Of a logistic regression on each column: log evidence, weight and its variance, and constant.

        By Newton's method on all at once; where a step does not rise, one by the curvature of the bound,
        :math:`\tanh(y/2)/2y`, which always does.
        """
        place = np.zeros((2, columns.shape[1]))
        height, outputs = self._height(place, columns, offset)
        for _ in range(_STEPS):
            trial = place + self._step(place, outputs, columns, expit(outputs) * expit(-outputs))
            there, reached = self._height(trial, columns, offset)
            rises = there >= height
            if not rises.all():
                safe = place + self._step(place, outputs, columns, bound_curvature(np.abs(outputs)))
                trial = np.where(rises, trial, safe)
                there, reached = self._height(trial, columns, offset)
            rise, place, height, outputs = there - height, trial, there, reached
            if np.max(rise, initial=0.0) < _RISE:
                break
        ww, wc, cc = self._hessian(expit(outputs) * expit(-outputs), columns)
        determinant = ww * cc - np.square(wc)
        return height - 0.5 * np.log(self.prior * determinant), place[0], cc / determinant, place[1]

    def _height(self, place: Array, columns: Array, offset: Array) -> tuple[Array, Array]:
        """Log posteriors of weights and constants, and their outputs."""
        outputs = offset[:, None] + place[1] + place[0] * columns
        fit = self.problem.weights @ log_expit(self.signs[:, None] * outputs)
        return fit - 0.5 * np.square(place[0]) / self.prior, outputs

    def _step(self, place: Array, outputs: Array, columns: Array, curvature: Array) -> Array:
        signs = self.signs[:, None]
        gradient = self.problem.weights[:, None] * signs * expit(-signs * outputs)
        w = np.einsum("nk,nk->k", gradient, columns) - place[0] / self.prior
        c = gradient.sum(axis=0) if self.problem.constant is not None else np.zeros_like(w)
        ww, wc, cc = self._hessian(curvature, columns)
        return np.stack([cc * w - wc * c, ww * c - wc * w]) / (ww * cc - np.square(wc))

    def _hessian(self, curvature: Array, columns: Array) -> tuple[Array, Array, Array]:
        """Entries of the Hessians of weight and constant."""
        curvature = self.problem.weights[:, None] * curvature
        ww = np.einsum("nk,nk,nk->k", curvature, columns, columns) + 1.0 / self.prior
        if self.problem.constant is None:
            return ww, np.zeros_like(ww), np.ones_like(ww)
        return ww, np.einsum("nk,nk->k", curvature, columns), curvature.sum(axis=0)
