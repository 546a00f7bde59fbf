r"""A sum of single effects (Wang, Sarkar, Carbonetto & Stephens 2020) on any design; ``docs/explain.md`` has the model.

The posterior is approximated by a product over the effects, each with a probability for every candidate to be the one
that carries it (:math:`\alpha_{lm}`) and one for its being there (:math:`\rho_l`).  Columns are measured in units of
their own length, :math:`\|\phi_m\|^2_{\mathbf W}=n`, and the constant, where the model has one, is projected out.  With
the products of the columns with what the other effects leave,
:math:`\mathbf q_l=\boldsymbol\Phi^\top\mathbf W(\mathbf t-\boldsymbol\Phi\sum_{k\ne l}\bar{\mathbf b}_k)`,
:math:`\lambda=nV/\sigma^2` and :math:`\kappa=\lambda/(1+\lambda)`,

.. math::

    \log\mathrm{BF}_m = \tfrac12\kappa\frac{q_{lm}^2}{n\sigma^2}+\tfrac12\log(1-\kappa) ,\quad
    \alpha_{lm}\propto \mathrm{BF}_m ,\quad \frac{\rho_l}{1-\rho_l}=\frac1M\sum_m\mathrm{BF}_m ,\quad
    E[w_l|m] = \kappa\,q_{lm}/n ,\quad \mathrm{var}[w_l|m]=\kappa\,\sigma^2/n .
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array
from scipy.special import expit, xlogy

from sparsebayes.design import Design
from sparsebayes.inference.models.active import ActiveSet
from sparsebayes.inference.models.interface import Active
from sparsebayes.inference.models.problem import GaussianProblem
from sparsebayes.inference.solvers.solver import Info, Kind, Solver, State, is_count
from sparsebayes.inference.status import Status
from sparsebayes.typing import Array, Index

# Part of an effect's probability below which a candidate is left out of it.
_NEGLIGIBLE = 1e-7
# Candidates of one effect up to which their columns of the Gram matrix are kept.
_FEW = 64
# Bytes of kept columns of the Gram matrix.
_KEPT_BYTES = 1 << 28
# Squared sine of the angle to the constant below which a column is one.
_CONSTANT = 1e-10
# What is left of a target below this part of its largest value is rounding error.
_ROUNDING = 4.0 * np.finfo(float).eps
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

    A ``constant`` is a function that is fitted beside the candidates, without a prior; ``size``, the number of
    observations, is the squared length that columns are scaled to; ``candidates`` may carry an effect, by default all
    that are not constant; ``unexplained`` is the sum of squares of the target outside the rows.
    """

    def __init__(
        self,
        design: Design,
        target: Array,
        weights: Array,
        *,
        constant: Array | None,
        size: float,
        candidates: NDArray[np.bool_] | None = None,
        unexplained: float = 0.0,
    ) -> None:
        self.design, self.weights, self.size, self.constant = design, weights, float(size), constant
        # The constant takes one observation for itself.
        self.observations = max(self.size - (constant is not None), 1.0)
        self.unit = np.zeros(len(target))
        if constant is not None:
            self.unit = constant / np.sqrt(float(weights @ np.square(constant)))
            rounding = _ROUNDING * np.max(np.abs(target), initial=0.0)
            target = target - self.fitted(target)
            target[np.abs(target) <= rounding] = 0.0
        self._means = design.correlate(weights * self.unit)
        squares = design.sqnorms(weights)
        norms = squares - np.square(self._means)
        self.usable = norms > _CONSTANT * np.where(squares > 0.0, squares, 1.0)
        if candidates is not None:
            self.usable &= candidates
        self.scale = np.where(self.usable, np.sqrt(self.size / np.where(self.usable, norms, 1.0)), 0.0)
        self.products = self.scale * design.correlate(weights * target)
        self.total = float(weights @ np.square(target)) + unexplained
        self._kept: dict[int, Array] = {}

    def fitted(self, target: Array) -> Array:
        """What the constant takes of a target, on the rows."""
        return self.unit * float(self.weights @ (self.unit * target))

    def values(self, idx: Index) -> Array:
        """Some candidates on the rows, scaled, and without what the constant takes of them, (N, k)."""
        return self.scale[idx] * (self.design.columns(idx) - np.outer(self.unit, self._means[idx]))

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
        missing = np.unique([i for i in wanted if i not in self._kept]).astype(np.intp)
        if (len(self._kept) + len(missing)) * 8 * self.design.shape[1] > _KEPT_BYTES:
            self._kept.clear()
            missing = np.unique(wanted)
        if len(missing):
            found = self.design.gram(missing, self.weights) - np.outer(self._means, self._means[missing])
            found *= self.scale[:, None] * self.scale[missing]
            self._kept.update(zip(missing.tolist(), np.ascontiguousarray(found.T), strict=True))
        return np.array([self._kept[i] for i in wanted]).reshape(len(wanted), self.design.shape[1])

    def cosines(self, idx: Sequence[int] | Index) -> Array:
        """Absolute cosines between some candidates and all, (k, M): correlations, where there is a constant."""
        return np.minimum(np.abs(self.columns(idx)) / self.size, 1.0)


@dataclass(frozen=True)
class Effect:
    """One single effect, for the scaled columns.

    Each candidate carries it with probability ``alpha`` (M,), given that it is there; that it is has the probability
    ``exists``, and the log Bayes factor ``evidence``; ``mean`` (M,) and ``variance`` are those of its size then;
    ``product`` is the Gram matrix times the expected coefficients, where it is there.
    """

    alpha: Array
    exists: float
    evidence: float
    mean: Array
    variance: float | Array
    product: Array | float = 0.0

    @property
    def expected(self) -> Array:
        """Expected coefficients."""
        return self.exists * self.alpha * self.mean

    @property
    def squares(self) -> Array:
        """Expected squares of the coefficients."""
        return self.exists * self.alpha * (np.square(self.mean) + self.variance)

    @property
    def square(self) -> float:
        """Expected square of its size."""
        return self.exists * float(self.alpha @ (np.square(self.mean) + self.variance))

    @property
    def there(self) -> bool:
        """Whether it is more probable than not that it is there."""
        return self.exists > 0.5

    @property
    def lead(self) -> int:
        """The most probable candidate."""
        return int(np.argmax(self.alpha))


def shares(exponents: Array) -> tuple[Array, float]:
    """Probabilities in proportion to exponentials, and the log of the sum of these."""
    # There may be no candidate at all, if all columns are constant.
    top = max(float(exponents.max()), -np.finfo(float).max)
    alpha = np.exp(exponents - top)
    total = max(float(alpha.sum()), np.finfo(float).tiny)
    alpha /= total
    alpha[alpha < _NEGLIGIBLE] = 0.0
    return alpha, top + float(np.log(total))


@dataclass(frozen=True)
class Hyperparameters:
    """Noise variance, and prior variance of the (scaled) effects."""

    noise: float
    prior: float


@dataclass(frozen=True)
class Effects:
    """All effects, and the products of the columns with what they leave unexplained."""

    effects: tuple[Effect, ...]
    residual: Array
    hyper: Hyperparameters

    @property
    def expected(self) -> Array:
        """Expected coefficients of the scaled columns."""
        return sum((effect.expected for effect in self.effects if effect.there), np.zeros_like(self.residual))

    @property
    def inclusion(self) -> Array:
        """Probability that each candidate carries an effect."""
        none = np.ones_like(self.residual)
        for effect in self.effects:
            none *= 1.0 - effect.exists * effect.alpha
        return 1.0 - none

    def together(self, candidates: Index) -> float:
        """Probability that one of these candidates carries an effect."""
        return 1.0 - float(np.prod([1.0 - effect.exists * np.sum(effect.alpha[candidates]) for effect in self.effects]))


class Search:
    """The search for the effects of one problem.

    ``noise`` is None where it is to be learned; there are at most ``max_effects``, by default a quarter of the rows and
    at least ten; sweeps end where one raises the bound by less than ``rise``.
    """

    def __init__(
        self, problem: Correlations, *, noise: float | None, max_effects: int | None = None, rise: float = _RISE
    ) -> None:
        self.problem, self.noise, self.rise = problem, noise, rise
        self.max_effects = min(max_effects or max(10, int(problem.size) // 4), len(problem.usable))
        self._log_count = float(np.log(max(problem.usable.sum(), 1)))

    def hyper(self, noise: float, prior: float) -> Hyperparameters:
        """Noise variance, and a prior variance such that an effect can be told from none."""
        return Hyperparameters(noise, max(prior, _SMALLEST * noise / self.problem.size))

    def state(self, effects: Iterable[Effect], hyper: Hyperparameters) -> Effects:
        """Effects, and what they leave."""
        effects, residual = tuple(effects), self.problem.products.copy()
        for effect in effects:
            residual -= effect.product
        return Effects(effects, residual, hyper)

    # -- one effect ----------------------------------------------------------------------------------------

    def effect(self, q: Array, hyper: Hyperparameters, error: float | None = None) -> Effect:
        r"""Posterior of an effect, given the products with what the others leave.

        With ``error`` T, the expected sum of squares that they leave, the noise is integrated out of the probabilities:
        :math:`\mathrm{BF}_m = (1-\kappa q_m^2/nT)^{-n/2}(1-\kappa)^{1/2}`.
        """
        n, noise = self.problem.size, hyper.noise
        kappa = hyper.prior / (hyper.prior + noise / n)
        explained = (kappa / n) * np.square(q)
        if error is None:
            exponents = 0.5 * explained / noise
        else:
            left = np.maximum(1.0 - explained / max(error, np.finfo(float).tiny), _EXACT)
            exponents = -0.5 * self.problem.observations * np.log(left)
        alpha, total = shares(np.where(self.problem.usable, exponents, -np.inf))
        evidence = total - self._log_count + 0.5 * float(np.log1p(-kappa))
        found = Effect(alpha, float(expit(evidence)), evidence, kappa * q / n, kappa * noise / n)
        return replace(found, product=self.problem.times(found.expected)) if found.there else found

    def placed(self, b: Array, hyper: Hyperparameters) -> Effect:
        """An effect of known coefficients: until it is updated, only its product counts."""
        return Effect(np.sign(np.abs(b)), 1.0, 0.0, b, hyper.noise / self.problem.size, self.problem.times(b))

    def price(self, effect: Effect, prior: float) -> float:
        """Divergence of an effect from its prior, less the log 2 that its absence costs."""
        alpha, there = effect.alpha[effect.alpha > 0.0], effect.exists
        where = float(alpha @ np.log(alpha)) + self._log_count
        size = 0.5 * (effect.square / (there * prior) - 1.0 - float(np.log(effect.variance / prior)))
        return there * (where + size) + float(xlogy(there, there) + xlogy(1.0 - there, 1.0 - there))

    # -- all of them ---------------------------------------------------------------------------------------

    def bound(self, state: Effects) -> float:
        r"""Lower bound of the log evidence: expected log density of the targets less every effect's divergence."""
        noise, prior = state.hyper.noise, state.hyper.prior
        likelihood = self.problem.observations * float(np.log(2.0 * np.pi * noise)) + self.expected_error(state) / noise
        return -0.5 * likelihood - sum(self.price(effect, prior) for effect in state.effects)

    def expected_error(self, state: Effects) -> float:
        """Expected weighted sum of squared errors."""
        error = self.problem.total - float(state.expected @ (self.problem.products + state.residual))
        spread = sum(self.problem.size * e.square - float(np.dot(e.expected, e.product)) for e in state.effects)
        return max(error, 0.0) + spread

    def sweep(self, state: Effects) -> Effects:
        """Update every effect once, and leave out those that are probably not there."""
        residual, effects = state.residual, list[Effect]()
        for old in state.effects:
            residual = residual + old.product
            updated = self.effect(residual, state.hyper)
            if updated.there:
                effects.append(updated)
                residual = residual - updated.product
        return Effects(tuple(effects), residual, state.hyper)

    def learn(self, state: Effects) -> Effects:
        """Noise and prior variance that raise the bound most, given the effects."""
        noise, prior = state.hyper.noise, state.hyper.prior
        if state.effects:
            prior = sum(e.square for e in state.effects) / sum(e.exists for e in state.effects)
        if self.noise is None:
            noise = max(self.expected_error(state), _EXACT * self.problem.total) / self.problem.observations
        return replace(state, hyper=self.hyper(noise, prior))

    def settle(self, state: Effects, *, learn: bool = True, beyond: float = -np.inf) -> Effects:
        """Sweeps until the bound rises no more, or too slowly to come beyond a given one."""
        before = -np.inf
        for _ in range(_SWEEPS):
            count = len(state.effects)
            state = self.sweep(state)
            bound = self.bound(state)
            state = self.learn(state) if learn else state
            rise, before = bound - before, bound
            if len(state.effects) == count and (rise < self.rise or bound + _HOPE * rise < beyond):
                break
        return state

    # -- how many, and which -------------------------------------------------------------------------------

    def start(self, places: Sequence[int], noise: float | None) -> Effects:
        """Effects at given candidates, fitted together; with the noise that they leave, unless one is given."""
        n, products = self.problem.size, self.problem.products
        at = np.array([m for m in places if self.problem.usable[m]], dtype=np.intp)
        gram = self.problem.columns(at)[:, at]
        weights = np.linalg.solve(gram + 1e-6 * n * np.eye(len(at)), products[at])
        if len(at) > self.max_effects:
            return self.start(at[np.argsort(-np.abs(weights), kind="stable")[: self.max_effects]].tolist(), noise)
        noise = self.noise if noise is None else noise
        if noise is None:
            left = max(self.problem.total - float(weights @ products[at]), _EXACT * self.problem.total)
            noise = max(left, np.finfo(float).tiny) / max(self.problem.observations - len(at), 1.0)
        prior = np.mean(np.square(weights)) if len(at) else np.max(np.square(products), initial=0.0) / n**2
        hyper = self.hyper(noise, float(prior))
        expected = weights[:, None] * (np.arange(len(products)) == at[:, None])
        return self.state((self.placed(b, hyper) for b in expected), hyper)

    def extend(self, state: Effects) -> Iterator[Effects]:
        """These effects, and with one more as long as it is more probable than not that there is one."""
        yield state
        while len(state.effects) < self.max_effects:
            fresh = self.effect(state.residual, state.hyper)
            if not fresh.there:
                return
            grown = self.settle(self.state((*state.effects, fresh), state.hyper))
            lasted = len(grown.effects) > len(state.effects)
            # If it drove another out, or did not last, what is left must be better by itself.
            if lasted or self.bound(grown) > self.bound(state):
                state = grown
                yield state
            if not lasted:
                return

    def exchange(self, state: Effects) -> Effects | None:
        """A better state that updates of one effect at a time cannot reach; None if there is none.

        A candidate that correlates with two causes can hold the place of both.  The hyperparameters are held, so that
        the bounds can be compared.
        """
        state = self.settle(state, learn=False)
        best = self.bound(state)
        for k in range(len(state.effects)):
            for trial in self._trials(state, k):
                settled = self.settle(trial, learn=False, beyond=best)
                if self.bound(settled) > best + 10.0 * _RISE:
                    return settled
        return None

    def _trials(self, state: Effects, k: int) -> Iterator[Effects]:
        """Sums like this one in which effect k is elsewhere, or nowhere."""
        effect, others, hyper = state.effects[k], state.effects[:k] + state.effects[k + 1 :], state.hyper
        q = state.residual + effect.product
        cosines = self.problem.cosines([effect.lead])[0]
        if any(cosines[other.lead] > _RELATED for other in others):
            yield self.state(others, hyper)
        # Relatives that explain a good part of what the effect does, and are none of its own likely candidates.
        related = (cosines > _RELATED) & (effect.alpha < 0.01) & self.problem.usable
        size = np.where(related & (np.abs(q) > 0.5 * np.abs(q[effect.lead])), np.abs(q), 0.0)
        for m in np.argsort(-size)[: min(_ALTERNATIVES, np.count_nonzero(size))]:
            first = self.placed(np.where(np.arange(len(q)) == m, effect.mean, 0.0), hyper)
            second = self.effect(q - first.product, hyper)
            yield self.state((*others, first, second), hyper)

    def climb(self, state: Effects) -> Iterator[Effects]:
        """From given effects to the end."""
        state = self.settle(state) if state.effects else state
        for _ in range(_EXCHANGES):
            for grown in self.extend(state):
                state = grown
                yield state
            exchanged = self.exchange(state)
            if exchanged is None:
                return
            state = self.settle(exchanged)

    def run(self, places: Sequence[int], noise: float | None) -> Iterator[Effects]:
        """From given candidates, and from none.

        A noise that is learned from the start on lets the first effects explain the rest away.  So effects are also
        added one by one at noises that are held, and released when there is none to add.
        """
        state = self.start(places, noise)
        for climbed in self.climb(state):
            state = climbed
            yield state
        if self.noise is not None or len(state.effects) > _FEW_EFFECTS:
            return
        most = min(self.max_effects, _FEW_EFFECTS)
        for share in _HELD:
            held = share * max(self.problem.total / self.problem.observations, np.finfo(float).tiny)
            search = Search(self.problem, noise=held, max_effects=most, rise=_ROUGHLY)
            *_, begun = search.extend(search.start([], held))
            yield from self.climb(begun)

    def finish(self, state: Effects) -> Effects:
        """The effects as they are reported, and what one more would be, if there may be one: probably none."""
        error, effects = None, list(state.effects)
        if self.noise is None:
            error = self.expected_error(state)
            for k, old in enumerate(state.effects):
                q = state.residual + old.product
                left = error + 2.0 * float(old.expected @ q) - self.problem.size * old.square
                effects[k] = self.effect(q, state.hyper, left)
        if len(effects) < self.max_effects:
            effects.append(self.effect(state.residual, state.hyper, error))
        return replace(state, effects=tuple(effects))


@dataclass(frozen=True)
class Found:
    """The effects of a fit, in units of the functions and the targets: what a search for them may go on from.

    ``weights`` (L, M) are those expected of every function by each effect, ``noise`` the noise variance, ``prior`` the
    variance of the weights of functions whose mean square is one.
    """

    weights: csr_array
    noise: float
    prior: float

    @classmethod
    def of(cls, problem: Correlations, state: Effects) -> Found:
        """Those of a search."""
        expected = np.reshape([e.expected for e in state.effects], (len(state.effects), len(problem.scale)))
        return cls(csr_array(expected * problem.scale), state.hyper.noise, state.hyper.prior)

    def scaled(self, unit: float) -> Found:
        """Of targets in units this much smaller."""
        return Found(self.weights * unit, unit**2 * self.noise, unit**2 * self.prior)

    def again(self, search: Search) -> Effects:
        """The same effects of the same problem, or of one that hardly differs, settled."""
        scale = search.problem.scale
        # A constant, which the fit had as its last function, is none of the candidates.
        expected = self.weights.toarray()[:, : len(scale)] / np.where(scale > 0.0, scale, np.inf)
        hyper = Hyperparameters(self.noise, self.prior)
        return search.settle(search.state((search.placed(b, hyper) for b in expected), hyper))


@dataclass(kw_only=True)
class SingleEffectsState(State):
    """The search, its further steps, and the best effects so far."""

    search: Search
    steps: Iterator[Effects]
    best: Effects | None = None
    tol: float = 0.0

    @property
    def n_active(self) -> int:
        """Number of effects."""
        return 0 if self.best is None else len(self.best.effects)

    @property
    def noise_variance(self) -> float:
        """That of the best effects."""
        return 1.0 / self.active.beta if self.best is None else self.best.hyper.noise


@dataclass(eq=False, repr=False)
class SingleEffects(Solver[SingleEffectsState]):
    r"""A sum of single effects (regression only): which functions, where several could do the same.

    What is maximised is the bound of single effects, whose weights share one prior variance.  The model has the most
    probable function of every effect, with precisions and noise by its own evidence; which functions could stand in for
    it, ``inclusion_`` and ``credible_sets()`` of the estimator say.

    Parameters
    ----------
    max_effects : int, optional
        Largest number of effects; None means a quarter of the rows, and at least ten.
    tol, max_iter, random_state, callback : optional
        As in ``Sequential``.  An iteration is an effect that comes, or an exchange; ``tol`` is for the model's
        precisions and the certificate.
    """

    takes = frozenset({Kind.GAUSSIAN, Kind.ROBUST})
    takes_why = "its effects are those of a regression; inclusion_ and credible_sets() answer after every other solver"
    status_if_uncertified = Status.SINGLE_EFFECTS
    takes_shared = False

    max_effects: int | None = None

    @property
    def in_batches(self) -> bool:
        """The search starts from the functions that the evidence chooses."""
        return True

    def check(self) -> None:
        """Raise where a setting is out of range."""
        check_max_effects(self.max_effects)
        super().check()

    def init(self, active: Active, learn_noise: bool, rng: np.random.Generator) -> SingleEffectsState:
        """Nothing yet; the first effects will be at the functions of this model."""
        problem: GaussianProblem = active.problem
        bias, noise = problem.bias, 1.0 / active.beta
        candidates = Correlations(
            problem.design,
            problem.targets[:, 0],
            problem.weights,
            constant=None if bias is None else problem.design.columns([bias])[:, 0],
            size=problem.n_effective,
            candidates=problem.eligible,
            unexplained=problem.unexplained,
        )
        search = Search(candidates, noise=None if learn_noise else noise, max_effects=self.max_effects)
        steps = search.run(active.indices, noise)
        return SingleEffectsState(active, learn_noise, -np.inf, rng, search=search, steps=steps)

    def step(self, state: SingleEffectsState, tol: float) -> Info | None:
        """One effect more, or others; the best so far stay."""
        state.tol = tol
        found = next(state.steps, None)
        if found is None:
            return None
        bound = state.search.bound(found)
        if bound > state.evidence:
            state.best, state.evidence = found, bound
        return Info("sweep", n_moves=1)

    def model(self, state: SingleEffectsState) -> Active:
        """The most probable function of every effect, and the constant, at the joint maximum of their evidence."""
        if state.best is None:
            return state.active.recompute()
        problem: GaussianProblem = state.active.problem
        scale = state.search.problem.scale
        alpha = {e.lead: 1.0 / (e.square * scale[e.lead] ** 2) for e in state.best.effects}
        if problem.bias is not None and problem.eligible[problem.bias]:
            # To begin with, it may have the variance of the targets.
            alpha[problem.bias] = problem.sqnorms[problem.bias] / (problem.n_effective * problem.mean_square)
        functions = sorted(alpha)
        precisions = np.array([alpha[i] for i in functions])
        begun = ActiveSet.from_model(problem, functions, precisions, 1.0 / state.noise_variance)
        return begun.settled(state.tol, learn_noise=state.learn_noise)

    def effects(self, state: SingleEffectsState) -> Found | None:
        """The effects themselves."""
        return None if state.best is None else Found.of(state.search.problem, state.best)


def check_max_effects(value: Any) -> None:
    """Refuse a largest number of effects that is none."""
    if value is not None and not is_count(value):
        raise ValueError(f"max_effects={value!r}: expected None or a positive integer")
