r"""A sum of single effects (Wang, Sarkar, Carbonetto & Stephens 2020) on any design.

.. math::

    \mathbf t = \boldsymbol\Phi\sum_{l=1}^L\mathbf b_l + \boldsymbol\epsilon ,\qquad
    \mathbf b_l = w_l\,\mathbf e_{m_l} ,\quad m_l\sim\text{uniform},\quad w_l\sim N(0, V) ,

and effect l is there at all with probability one half.  Those that are then less probable than not are left out of the
sum; what one more would be is reported, but explains nothing.  The posterior is approximated by a product over the
effects, each with a probability for every candidate to be the one that carries it (:math:`\alpha_{lm}`) and one for its
being there (:math:`\rho_l`): twins share the probability of one effect, where a single support has to choose.

Columns are measured in units of their own length, so that nothing depends on what an input is measured in; the
constant, where the model has one, is projected out.  With :math:`\|\phi_m\|^2_{\mathbf W}=n` for all m, an update of an
effect needs only the products of the columns with what the other effects leave,
:math:`\mathbf q_l=\boldsymbol\Phi^\top\mathbf W(\mathbf t-\boldsymbol\Phi\sum_{k\ne l}\bar{\mathbf b}_k)`: with
:math:`z_m^2=q_{lm}^2/(n\sigma^2)`, :math:`\lambda=nV/\sigma^2` and :math:`\kappa=\lambda/(1+\lambda)`,

.. math::

    \log\mathrm{BF}_m = \tfrac12\kappa z_m^2+\tfrac12\log(1-\kappa) ,\qquad
    \alpha_{lm}\propto e^{\kappa z_m^2/2} ,\qquad
    E[w_l|m] = \kappa\,q_{lm}/n ,\quad \mathrm{var}[w_l|m]=\kappa\,\sigma^2/n ,

and :math:`\rho_l/(1-\rho_l)=\frac1M\sum_m\mathrm{BF}_m`.  Every update raises the bound

.. math::

    F = -\tfrac n2\log 2\pi\sigma^2-\frac1{2\sigma^2}E\|\mathbf t-\boldsymbol\Phi\mathbf b\|^2_{\mathbf W}
        -\sum_l\mathrm{KL}_l ,

and so do those of V and σ².

At the end a noise that was learned is integrated out of every effect's probabilities (:meth:`SingleEffects.finish`): of
few rows it is known only roughly, and the noise of the largest bound is that beside the candidates that happen to fit
best.  With :math:`T_l=E\|\mathbf t-\boldsymbol\Phi\sum_{k\ne l}\mathbf b_k\|^2`, the density :math:`1/\sigma^2` and
:math:`\lambda` as it was found,

.. math::

    \log\mathrm{BF}_m = -\tfrac n2\log\Bigl(1-\frac{\kappa\,q_{lm}^2}{n\,T_l}\Bigr)+\tfrac12\log(1-\kappa) .
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from scipy.special import expit

from sparsebayes.design import Design
from sparsebayes.typing import Array, Index

# Part of an effect's probability below which a candidate is left out of it.
_NEGLIGIBLE = 1e-7
# Candidates of one effect up to which their columns of the Gram matrix are kept.
_FEW = 64
# Bytes of kept columns of the Gram matrix.
_KEPT_BYTES = 1 << 28
# Squared sine of the angle to the constant below which a column is one.
_CONSTANT = 1e-10
# Sweeps, and the rise of the bound per sweep below which they end: at last, and where another search goes on.
_SWEEPS, _RISE, _ROUGHLY = 200, 1e-4, 0.1
# Sweeps with the rise of the last one that may have to make up what a trial is behind.
_HOPE = 10.0
# Part of the target's variance below which the noise is rounding error.
_EXACT = 1e-12
# Squared signal-to-noise ratio that effects have at least under their prior.  Where none is found the evidence would
# take their variance to zero, and an effect of no size can be anywhere.
_SMALLEST = 9.0
# Cosine of the angle between two candidates from which on one may stand for the other.
_RELATED = 0.3
# Alternatives tried for one effect, and exchanges made.
_ALTERNATIVES, _EXCHANGES = 8, 100
# Parts of the target's variance at which the noise is held while effects are added, and effects up to which that is
# worth its time.
_HELD, _FEW_EFFECTS = (1.0, 0.1, 0.03), 20


class Correlations:
    """A weighted design in units of its columns' lengths: its products with the target and with itself.

    Parameters
    ----------
    design : Design
        The candidates.
    target : ndarray of shape (N,)
        What they are to explain.
    weights : ndarray of shape (N,)
        Of the rows.
    constant : bool
        Whether a constant is fitted beside the candidates, without a prior.
    size : float
        The squared length that columns are scaled to: the number of observations.
    """

    def __init__(self, design: Design, target: Array, weights: Array, *, constant: bool, size: float) -> None:
        self.design, self.weights, self.size = design, weights, float(size)
        # The constant takes one observation for itself.
        self.observations = max(self.size - constant, 1.0)
        total = float(weights.sum())
        mean = float(weights @ target) / total if constant else 0.0
        centred = weights * (target - mean)
        self._means = design.correlate(weights) / np.sqrt(total) if constant else np.zeros(design.shape[1])
        squares = design.sqnorms(weights)
        norms = squares - np.square(self._means)
        self.usable = norms > _CONSTANT * np.where(squares > 0.0, squares, 1.0)
        self.scale = np.where(self.usable, np.sqrt(self.size / np.where(self.usable, norms, 1.0)), 0.0)
        self.products = self.scale * design.correlate(centred)
        self.total = float(centred @ (target - mean))
        self._kept: dict[int, Array] = {}

    def times(self, b: Array) -> Array:
        """Gram matrix times coefficients of the scaled columns."""
        support = np.flatnonzero(b)
        if len(support) == 0:
            return np.zeros_like(b)
        if len(support) <= _FEW:
            return b[support] @ self.columns(support)
        scaled = self.scale[support] * b[support]
        found = self.design.correlate(self.weights * self.design.matvec(scaled, support))
        return self.scale * (found - self._means * float(self._means[support] @ scaled))

    def columns(self, idx: Sequence[int] | Index) -> Array:
        """Columns of the Gram matrix as rows, (k, M)."""
        wanted = [int(i) for i in idx]
        missing = np.array([i for i in dict.fromkeys(wanted) if i not in self._kept], dtype=np.intp)
        if len(missing):
            if (len(self._kept) + len(missing)) * 8 * self.design.shape[1] > _KEPT_BYTES:
                self._kept.clear()
                missing = np.unique(np.array(wanted, dtype=np.intp))
            found = self.design.gram(missing, self.weights) - np.outer(self._means, self._means[missing])
            found *= self.scale[:, None] * self.scale[missing]
            self._kept.update(zip(missing.tolist(), np.ascontiguousarray(found.T), strict=True))
        return np.stack([self._kept[i] for i in wanted])

    def cosines(self, i: int, idx: Index) -> Array:
        """Cosines of the angles between one candidate and others: correlations, where there is a constant."""
        return self.columns([i])[0, idx] / self.size


@dataclass(frozen=True)
class Effect:
    """One single effect, for the scaled columns.

    Attributes
    ----------
    alpha : ndarray of shape (M,)
        Probability that each candidate carries it, given that it is there.
    exists : float
        Probability that it is.
    evidence : float
        Log Bayes factor of its being there.
    mean : ndarray of shape (M,)
        Its size, if a candidate carries it; its variance is ``variance``.
    variance : float
        The same for all candidates.
    product : ndarray of shape (M,)
        Gram matrix times the expected coefficients.
    price : float
        Divergence from the prior, above that of no effect.
    """

    alpha: Array
    exists: float
    evidence: float
    mean: Array
    variance: float
    product: Array
    price: float

    @property
    def expected(self) -> Array:
        """Expected coefficients."""
        return self.exists * self.alpha * self.mean

    @property
    def square(self) -> float:
        """Expected square of its size."""
        return self.exists * float(self.alpha @ (np.square(self.mean) + self.variance))

    @property
    def there(self) -> bool:
        """Whether it is more probable than not that it is there."""
        return self.exists >= 0.5

    @property
    def lead(self) -> int:
        """The most probable candidate."""
        return int(np.argmax(self.alpha))


@dataclass(frozen=True)
class Hyperparameters:
    """Noise variance, and prior variance of the (scaled) effects."""

    noise: float
    prior: float


@dataclass(frozen=True)
class State:
    """All effects, and the products of the columns with what they leave unexplained."""

    effects: tuple[Effect, ...]
    residual: Array
    hyper: Hyperparameters

    @property
    def expected(self) -> Array:
        """Expected coefficients of the scaled columns."""
        return sum((effect.expected for effect in self.effects if effect.there), np.zeros_like(self.residual))


class SingleEffects:
    """The search for the effects of one problem.

    Parameters
    ----------
    problem : Correlations
        Candidates and target.
    noise : float or None
        Noise variance where it is given, None where it is to be learned.
    prior : float or None
        Prior variance of the effects of scaled columns where it is given.
    max_effects : int
        Largest number of effects.
    rise : float
        Of the bound in a sweep, below which sweeps end.
    """

    def __init__(
        self,
        problem: Correlations,
        *,
        noise: float | None,
        prior: float | None = None,
        max_effects: int,
        rise: float = _RISE,
    ) -> None:
        self.problem, self.noise, self.prior, self.max_effects, self.rise = problem, noise, prior, max_effects, rise
        count = int(problem.usable.sum())
        self._log_prior = np.where(problem.usable, -np.log(max(count, 1)), -np.inf)

    # -- one effect ----------------------------------------------------------------------------------------

    def effect(self, q: Array, hyper: Hyperparameters, error: float | None = None) -> Effect:
        """Posterior of an effect, given the products with what the others leave.

        With ``error``, the expected sum of squares that they leave, the noise is integrated out of the probabilities.
        """
        n, noise = self.problem.size, hyper.noise
        ratio = n * hyper.prior / noise
        kappa = ratio / (1.0 + ratio)
        explained = (kappa / n) * np.square(q)
        if error is None:
            exponents = self._log_prior + 0.5 * explained / noise
        else:
            left = np.maximum(1.0 - explained / max(error, np.finfo(float).tiny), _EXACT)
            exponents = self._log_prior - 0.5 * self.problem.observations * np.log(left)
        # There may be no candidate at all, if all columns are constant.
        top = max(float(exponents.max()), -np.finfo(float).max)
        alpha = np.where(self.problem.usable, np.exp(np.maximum(exponents - top, -700.0)), 0.0)
        total = max(float(alpha.sum()), np.finfo(float).tiny)
        evidence = top + float(np.log(total)) - 0.5 * float(np.log1p(ratio))
        alpha /= total
        alpha[alpha < _NEGLIGIBLE] = 0.0
        exists = float(expit(evidence))
        mean, variance = kappa * q / n, kappa * noise / n
        found = Effect(alpha, exists, evidence, mean, variance, np.zeros_like(q), 0.0)
        if not found.there:
            return found
        expected = found.expected
        gain = (float(expected @ q) - 0.5 * n * found.square) / noise
        return replace(found, product=self.problem.times(expected), price=gain - float(np.logaddexp(0.0, evidence)))

    def at(self, m: int, q: Array, hyper: Hyperparameters) -> Effect:
        """An effect of which it is known that candidate m carries it."""
        n, noise = self.problem.size, hyper.noise
        ratio = n * hyper.prior / noise
        kappa = ratio / (1.0 + ratio)
        alpha = np.zeros_like(q)
        alpha[m] = 1.0
        mean, variance = kappa * q / n, kappa * noise / n
        evidence = float(self._log_prior[m] + 0.5 * kappa * q[m] ** 2 / (n * noise) - 0.5 * np.log1p(ratio))
        found = Effect(alpha, 1.0, evidence, mean, variance, np.zeros(0), 0.0)
        gain = (mean[m] * q[m] - 0.5 * n * found.square) / noise
        return replace(found, product=mean[m] * self.problem.columns([m])[0], price=gain - evidence)

    # -- all of them ---------------------------------------------------------------------------------------

    def bound(self, state: State) -> float:
        """The lower bound F of the log evidence."""
        noise = state.hyper.noise
        return (
            -0.5 * self.problem.observations * float(np.log(2.0 * np.pi * noise))
            - 0.5 * self.expected_error(state) / noise
            - sum(effect.price for effect in state.effects)
        )

    def expected_error(self, state: State) -> float:
        """Expected weighted sum of squared errors."""
        expected = state.expected
        error = self.problem.total - float(np.dot(expected, self.problem.products + state.residual))
        spread = sum(self.problem.size * e.square - float(e.expected @ e.product) for e in state.effects)
        return max(error, 0.0) + spread

    def sweep(self, state: State) -> State:
        """Update every effect once, and leave out those that are probably not there."""
        residual, effects = state.residual, list[Effect]()
        for old in state.effects:
            q = residual + old.product
            updated = self.effect(q, state.hyper)
            residual = q
            if updated.there:
                effects.append(updated)
                residual = q - updated.product
        return State(tuple(effects), residual, state.hyper)

    def learn(self, state: State) -> State:
        """Noise and prior variance that raise the bound most, given the effects."""
        hyper, there = state.hyper, sum(effect.exists for effect in state.effects)
        prior = hyper.prior
        if self.prior is None and there > 0.0:
            prior = sum(effect.square for effect in state.effects) / there
        noise = hyper.noise
        if self.noise is None:
            noise = max(self.expected_error(state), _EXACT * self.problem.total) / self.problem.observations
        return replace(state, hyper=replace(hyper, noise=noise, prior=self._at_least(prior, noise)))

    def _at_least(self, prior: float, noise: float) -> float:
        """A prior variance such that an effect can be told from none."""
        return max(prior, _SMALLEST * noise / self.problem.size) if self.prior is None else self.prior

    def settle(self, state: State, *, learn: bool = True, beyond: float = -np.inf) -> State:
        """Sweeps until the bound rises no more, or too slowly to come beyond a given one."""
        before = -np.inf
        for _ in range(_SWEEPS):
            count = len(state.effects)
            state = self.sweep(state)
            bound = self.bound(state)
            if learn:
                state = self.learn(state)
            rise, before = bound - before, bound
            if len(state.effects) == count and (rise < self.rise or bound + _HOPE * rise < beyond):
                break
        return state

    # -- how many, and which -------------------------------------------------------------------------------

    def start(self, places: Sequence[int], noise: float) -> State:
        """Effects at given candidates, fitted together."""
        n, products = self.problem.size, self.problem.products
        places = [m for m in places if self.problem.usable[m]]
        if not places:
            best = float(np.max(np.square(products))) / n**2
            return State((), products.copy(), Hyperparameters(noise, self._at_least(best, noise)))
        gram = self.problem.columns(places)[:, places]
        weights = np.linalg.solve(gram + 1e-6 * n * np.eye(len(places)), products[places])
        hyper = Hyperparameters(noise, self._at_least(float(np.mean(np.square(weights))), noise))
        effects, residual = [], products - weights @ self.problem.columns(places)
        for m, w in zip(places, weights, strict=True):
            own = w * self.problem.columns([m])[0]
            effects.append(self.at(m, residual + own, hyper))
            residual = residual + own - effects[-1].product
        return State(tuple(effects), residual, hyper)

    def extend(self, state: State) -> State:
        """One effect more, as long as it is more probable than not that there is one."""
        while len(state.effects) < self.max_effects:
            fresh = self.effect(state.residual, state.hyper)
            if not fresh.there:
                break
            grown = State((*state.effects, fresh), state.residual - fresh.product, state.hyper)
            grown = self.settle(grown)
            if len(grown.effects) <= len(state.effects):
                # It drove another out, or did not last: what is left must be better by itself.
                return grown if self.bound(grown) > self.bound(state) else state
            state = grown
        return state

    def exchange(self, state: State) -> State | None:
        """A better state that updates of one effect at a time cannot reach; None if there is none.

        A candidate that correlates with two causes can hold the place of both.  For every effect, with its place taken
        by each of its relatives in turn, the others are fitted again with one effect more; and without it altogether.
        The hyperparameters are held, so that the bounds can be compared.
        """
        state = self.settle(state, learn=False)
        best = self.bound(state)
        for k in range(len(state.effects)):
            for trial in self._trials(state, k):
                settled = self.settle(trial, learn=False, beyond=best)
                if self.bound(settled) > best + 10.0 * _RISE:
                    return settled
        return None

    def _trials(self, state: State, k: int) -> list[State]:
        """States like this one in which effect k is elsewhere, or nowhere."""
        effect = state.effects[k]
        q = state.residual + effect.product
        cosines = np.abs(self.problem.columns([effect.lead])[0]) / self.problem.size
        others = state.effects[:k] + state.effects[k + 1 :]
        trials = []
        if any(cosines[other.lead] > _RELATED for other in others):
            trials.append(State(others, q, state.hyper))
        # Relatives that explain a good part of what the effect does, and are none of its own likely candidates.
        related = (cosines > _RELATED) & (effect.alpha < 0.01) & self.problem.usable
        related &= np.abs(q) > 0.5 * np.abs(q[effect.lead])
        for m in np.argsort(-np.abs(np.where(related, q, 0.0)))[:_ALTERNATIVES]:
            if not related[m]:
                break
            first = self.at(int(m), q, state.hyper)
            second = self.effect(q - first.product, state.hyper)
            left = q - first.product - second.product
            trials.append(State((*others, first, second), left, state.hyper))
        return trials

    def climb(self, state: State) -> State:
        """From given effects to the end."""
        state = self.extend(self.settle(state) if state.effects else state)
        for _ in range(_EXCHANGES):
            exchanged = self.exchange(state)
            if exchanged is None:
                break
            state = self.extend(self.settle(exchanged))
        return state

    def run(self, places: Sequence[int], noise: float) -> State:
        """The best that is found from given candidates, and from none.

        A noise that is learned from the start on lets the first effects, or the many of a model with more candidates
        than rows, explain the rest away.  So effects are also added one by one at noises that are held, and released
        when there is none to add.
        """
        found = [self.climb(self.start(places, noise))]
        if self.noise is None and len(found[0].effects) <= _FEW_EFFECTS:
            variance = max(self.problem.total / self.problem.observations, np.finfo(float).tiny)
            for share in _HELD:
                held = SingleEffects(
                    self.problem,
                    noise=share * variance,
                    prior=self.prior,
                    max_effects=min(self.max_effects, _FEW_EFFECTS),
                    rise=_ROUGHLY,
                )
                found.append(self.climb(held.extend(held.start([], share * variance))))
        return max(found, key=self.bound)

    def finish(self, state: State) -> State:
        """The effects as they are reported, and what one more would be: probably none."""
        if self.noise is not None:
            return replace(state, effects=(*state.effects, self.effect(state.residual, state.hyper)))
        error, effects = self.expected_error(state), list[Effect]()
        for old in state.effects:
            q = state.residual + old.product
            without = error + 2.0 * float(old.expected @ q) - self.problem.size * old.square
            effects.append(self.effect(q, state.hyper, without))
        return replace(state, effects=(*effects, self.effect(state.residual, state.hyper, error)))
