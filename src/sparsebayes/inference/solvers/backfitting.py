r"""Bayesian backfitting (D'Souza, Vijayakumar & Schaal 2004, sections 3-5): no inversion where rows are many.

Every function is a branch of a fan-in with a share :math:`\psi_m` of the noise :math:`s` as hidden noise of its own.
Sweeps over the weights (:class:`Branches`), precisions in closed form and the noise raise the bound

.. math::

    \mathcal F = \log\mathcal N(\mathbf t|\boldsymbol\Phi\mathbf b, s\mathbf I)
                 - \tfrac12\sum_m\Big[\alpha_m b_m^2 + \log\Big(1+\frac{\|\phi_m\|^2}{\psi_m\alpha_m}\Big)\Big]

on the log evidence; in classification the bound of Jaakkola & Jordan makes each cycle such a problem.  Only the model
that is left at the end is factored.  ``docs/backfitting.md`` derives all of it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import islice

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import solve_triangular

from sparsebayes.inference.models.bound import bound_constant, bound_curvature, bound_problem, two_classes
from sparsebayes.inference.models.evidence import Array, gaussian_log_likelihood
from sparsebayes.inference.models.interface import Active
from sparsebayes.inference.models.linalg import solve_cholesky, try_cholesky
from sparsebayes.inference.models.problem import FLOOR, GaussianProblem, Index
from sparsebayes.inference.objective import Hyperpriors, log_gamma_prior, with_best_noise
from sparsebayes.inference.solvers.solver import Info, Kind, Solver, State, is_count, is_positive
from sparsebayes.inference.status import Status

PRECISIONS = ("each", "single")
UPDATES = ("conjugate", "sequential", "parallel")

# The share of the noise that a branch hides is this fraction of the targets' mean square, so that it is never more than
# the noise; it sets where the bound lies, and hardly what is found.
_HIDDEN = FLOOR
# Sweeps of the first cycle, as a multiple of those of the others.
_FIRST = 5
# A function leaves when its prior outweighs the data by this factor and its precision is still growing.
_OUTWEIGHED = 1e4
# The search ends when a cycle gains less than this fraction of the tolerance: progress is linear near the end.
_SETTLED = 0.01
# Functions whose inner products are kept together.
_BLOCK = 64
# Columns are held in memory up to this many bytes, and fetched from the design block by block beyond.
_HELD_BYTES = 1 << 30
# Rows or functions up to which the maximum is computed instead of climbed to: a factor is worth some 25 steps of
# conjugate gradients, and where functions are nearly dependent 40 do not suffice (docs/backfitting.md).
_FEW = 300


class Branches:
    r"""The fan-in: functions with their weights and precisions, and what they leave of the (whitened) targets.

    The log posterior of the weights at noise :math:`s`,
    :math:`-\frac{1}{2s}\|\mathbf t - \boldsymbol\Phi\mathbf b\|^2 - \tfrac12\sum_m\alpha_m b_m^2`, is climbed at O(NM)
    a sweep.  Functions come in blocks whose inner products
    :math:`\mathbf G` are kept, so that a sweep through a block is one forward substitution with the lower triangle of
    :math:`\mathbf G + s\mathbf A`: exactly the Gauss-Seidel sweep, at the speed of matrix products.

    ``indices`` (m,), ``weights`` (m, T), ``alpha`` (m,) and ``sqnorms`` (m,) are those of the functions; ``residual``
    (N, T) is :math:`\mathbf t-\boldsymbol\Phi\mathbf b`, whitened.
    """

    def __init__(self, problem: GaussianProblem, indices: Index, weights: Array, alpha: Array) -> None:
        self.problem = problem
        self.indices, self.weights, self.alpha = indices, weights.copy(), alpha.copy()
        held = 8 * len(problem.target) * len(indices) <= _HELD_BYTES
        self._held = np.asfortranarray(problem.columns(indices)) if held else None
        self.sqnorms = problem.sqnorms[indices]
        self.residual = problem.target - self.product(weights)

    @cached_property
    def _grams(self) -> list[Array]:
        return [values.T @ values for _, values in self._blocks()]

    @property
    def size(self) -> int:
        """Number of functions."""
        return len(self.indices)

    @property
    def residual_sumsq(self) -> float:
        """Weighted sum of squares over all targets."""
        return float(np.sum(self.residual**2))

    @property
    def mean_squares(self) -> Array:
        r""":math:`\langle b_m\rangle^2`, the mean over targets that share their precisions."""
        return np.mean(self.weights**2, axis=1)

    # -- products ------------------------------------------------------------------------------------------

    def _blocks(self, reverse: bool = False) -> Iterator[tuple[slice, Array]]:
        starts = range(0, self.size, _BLOCK)
        for start in reversed(starts) if reverse else starts:
            block = slice(start, min(start + _BLOCK, self.size))
            yield block, self._held[:, block] if self._held is not None else self.problem.columns(self.indices[block])

    def product(self, weights: Array) -> Array:
        r""":math:`\boldsymbol\Phi\mathbf w`, whitened."""
        result = np.zeros(self.problem.target.shape)
        for block, values in self._blocks():
            result += values @ weights[block]
        return result

    def correlate(self, rows: Array) -> Array:
        r""":math:`\boldsymbol\Phi^\top` times whitened vectors."""
        parts = [values.T @ rows for _, values in self._blocks()]
        return np.concatenate(parts) if parts else np.zeros((0, rows.shape[1]))

    def squares(self, variance: Array) -> Array:
        r""":math:`\sum_m v_m\phi_{im}^2` for every whitened row."""
        result = np.zeros(len(self.problem.target))
        for block, values in self._blocks():
            result += values**2 @ variance[block]
        return result

    # -- ways to climb -------------------------------------------------------------------------------------

    def exact(self, noise: float) -> bool:
        r"""Go to the maximum, where rows or functions are few and rounding is not in the way; whether it did.

        With functions no more than rows :math:`\mathbf b=(\boldsymbol\Phi^\top\boldsymbol\Phi+s\mathbf A)^{-1}
        \boldsymbol\Phi^\top\mathbf t`, else :math:`\mathbf b=\mathbf A^{-1}\boldsymbol\Phi^\top(\boldsymbol\Phi
        \mathbf A^{-1}\boldsymbol\Phi^\top+s\mathbf I)^{-1}\mathbf t`, of functions scaled by their prior deviations.
        """
        if self._held is None or not 0 < min(self._held.shape) <= _FEW:
            return False
        root = np.sqrt(self.alpha)
        scaled, target = self._held / root, self.problem.target
        wide = scaled.shape[1] > scaled.shape[0]
        square = scaled @ scaled.T if wide else scaled.T @ scaled
        square.flat[:: len(square) + 1] += noise
        factor = try_cholesky(square)
        if factor is None:
            return False
        if wide:
            dual = solve_cholesky(factor, target)
            dual += solve_cholesky(factor, target - scaled @ (scaled.T @ dual) - noise * dual)
            weights = scaled.T @ dual
        else:
            weights = solve_cholesky(factor, scaled.T @ target)
            weights += solve_cholesky(factor, scaled.T @ (target - scaled @ weights) - noise * weights)
        before, old = self._height(noise), (self.weights, self.residual)
        self.weights = weights / root[:, None]
        self.residual = target - self._held @ self.weights
        if self._height(noise) < before:  # nothing is left but rounding
            self.weights, self.residual = old
        return True

    def parallel(self, noise: float) -> Iterator[float]:
        r"""All functions at once, by a fraction of the way (eq. 9, with :math:`\psi_{zm}` = noise / (m + 1))."""
        share = 1.0 / (self.size + 1)
        total = (self.sqnorms + share * noise * self.alpha)[:, None]
        while True:
            before, correlation = self._height(noise), self.correlate(self.residual)
            self.weights = (self.sqnorms[:, None] * self.weights + share * correlation) / total
            self.residual = self.problem.target - self.product(self.weights)
            yield self._height(noise) - before

    def sequential(self, noise: float) -> Iterator[float]:
        """Every function in turn, all the way (eq. 6, with the precisions)."""
        while True:
            before = self._height(noise)
            self._sweep(self.weights, self.residual, noise)
            yield self._height(noise) - before

    def conjugate(self, noise: float) -> Iterator[float]:
        """Conjugate gradients in the metric of a sweep there and back, which takes the root of the number of sweeps."""
        prior = noise * self.alpha[:, None]
        direction, last = np.zeros_like(self.weights), np.full(self.weights.shape[1], np.inf)
        while True:
            trial, rows = self.weights.copy(), self.residual.copy()
            self._sweep(trial, rows, noise)
            self._sweep(trial, rows, noise, back=True)
            change = trial - self.weights
            slope = np.sum((self.correlate(self.residual) - prior * self.weights) * change, axis=0)
            direction = change + slope / last * direction
            outputs = self.product(direction)
            curvature = np.sum(outputs**2, axis=0) + np.sum(prior * direction**2, axis=0)
            length = np.where(curvature > 0.0, slope / np.where(curvature > 0.0, curvature, 1.0), 0.0)
            self.weights += length * direction
            self.residual -= outputs * length
            last = np.where(slope > 0.0, slope, 1.0)
            yield 0.5 * float(np.sum(length * slope)) / noise

    def _sweep(self, weights: Array, rows: Array, noise: float, *, back: bool = False) -> None:
        """One Gauss-Seidel sweep, in place."""
        for block, values in self._blocks(reverse=back):
            gram = self._grams[block.start // _BLOCK]
            prior = noise * self.alpha[block]
            triangle = (np.triu(gram) if back else np.tril(gram)) + np.diag(prior)
            target = values.T @ rows - prior[:, None] * weights[block]
            change = solve_triangular(triangle, target, lower=not back, check_finite=False)
            weights[block] += change
            rows -= values @ change

    def _height(self, noise: float) -> float:
        """Log posterior of the weights, up to a constant."""
        return -0.5 * (self.residual_sumsq / noise + float(np.sum(self.alpha @ self.weights**2)))


@dataclass(kw_only=True)
class BackfittingState(State):
    """The branches, the noise, and in classification the parameters of the bound; whether cycles go on."""

    branches: Branches
    noise: float
    xi: Array | None = None
    log_prior: float = 0.0
    cycles: int = 0
    settled: bool = False

    @property
    def objective(self) -> float:
        """Bound on the evidence, and the log priors of the precisions."""
        return self.evidence + self.log_prior

    @property
    def n_active(self) -> int:
        """Functions that have not left."""
        return self.branches.size

    @property
    def noise_variance(self) -> float:
        """Noise variance."""
        return self.noise


@dataclass(eq=False, repr=False)
class Backfitting(Solver[BackfittingState]):
    """Bayesian backfitting.

    Parameters
    ----------
    precisions : {"each", "single"}
        One precision for each function (relevance determination, the backfitting relevance vector machine), or a single
        one for all but the constant (ridge regression whose ridge is learned; nothing else leaves).
    updates : {"conjugate", "sequential", "parallel"}
        How the weights are swept: in conjugate directions (up to 300 rows or functions, the maximum where they end);
        one function after the other (eq. 6); or all at once as in EM (eq. 9).
    inner : int
        Most sweeps between two updates of the precisions; there are fewer once they gain nothing, and more at first.
    initial : float
        First precisions, as a fraction of those at which all functions together have the variance of the targets, each
        the same share of it; a single precision is the mean of these.
    noise_start : float
        First noise variance where it is learned, as a fraction of that of the targets.
    a, b : float
        Gamma hyperprior of the precisions (eq. 8); the rate b is relative to (mean square of the targets) / (mean
        square of the function).
    tol, max_iter, random_state, callback : optional
        As in ``Sequential``; an iteration is one cycle, and the model that a callback is shown is factored for it.
    """

    takes = frozenset({Kind.GAUSSIAN, Kind.ROBUST, Kind.LOGISTIC})
    takes_why = "it bounds the logistic of two classes, and has no bound for others"
    status_if_uncertified = Status.BOUND

    precisions: str = "each"
    updates: str = "conjugate"
    inner: int = 40
    initial: float = 1e-4
    noise_start: float = 0.05
    a: float = 0.0
    b: float = 0.0

    def check(self) -> None:
        """Raise where a setting is out of range."""
        self.expect_one_of(precisions=PRECISIONS, updates=UPDATES)
        self.expect("a positive integer", is_count, "inner")
        self.expect("a positive, finite number", is_positive, "initial", "noise_start")
        Hyperpriors(self.a, self.b).check()
        super().check()

    # -- the solver contract -------------------------------------------------------------------------------

    def init(self, active: Active, learn_noise: bool, rng: np.random.Generator) -> BackfittingState:
        """All functions, with weights zero."""
        xi = None if active.exact else np.zeros(active.problem.design.shape[0])
        problem = active.problem if xi is None else bound_problem(active.problem, xi)
        total = problem.n_effective * active.problem.mean_square
        # Targets that are zero leave nothing to follow.
        indices = np.flatnonzero(problem.eligible & (total > 0.0))
        alpha = self.initial * len(indices) * problem.sqnorms[indices] / (total or 1.0)
        shared = self._shared(problem, indices)
        if shared.any():
            alpha[shared] = np.mean(alpha[shared])
        branches = Branches(problem, indices, np.zeros((len(indices), problem.n_targets)), alpha)
        noise = self.noise_start * problem.mean_square if learn_noise else 1.0 / active.beta
        state = BackfittingState(active, learn_noise, 0.0, rng, branches=branches, noise=noise, xi=xi)
        self._assess(state)
        return state

    def step(self, state: BackfittingState, tol: float) -> Info | None:
        """One cycle: some sweeps over the weights, then the precisions, the noise and the bound of each row."""
        if state.settled:
            return None
        before = state.objective
        left = self._sweep(state, tol)
        size = state.branches.size
        self._precisions(state)
        if state.learn_noise:
            self._noise(state)
        if state.xi is not None:
            self._rows(state, state.xi)
        self._prune(state)
        self._assess(state)
        gain = state.objective - before
        if max(gain, left) <= _SETTLED * tol and state.branches.size == size:
            state.settled = True
            return None
        return Info("sweep", n_moves=1)

    def model(self, state: BackfittingState) -> Active:
        r"""Exact posterior of the functions that are left, without those whose :math:`\theta` is not positive.

        The noise's estimate here does not know what the fit has used up: it is moved to the maximum of the evidence.
        """
        empty, indices, alpha = state.active, state.branches.indices, state.branches.alpha
        while True:
            found = empty.like(empty.problem, indices.tolist(), alpha, beta=1.0 / state.noise)
            s, q2 = found.leave_one_out()
            stays = (q2 > s) | self._shared(empty.problem, indices)
            if np.all(stays):
                break
            indices, alpha = indices[stays], alpha[stays]
        return with_best_noise(found) if state.learn_noise else found

    # -- one cycle -----------------------------------------------------------------------------------------

    def _sweep(self, state: BackfittingState, tol: float) -> float:
        """Partial inner updates; returns what the last one gained."""
        branches, gain = state.branches, 0.0
        steps = self.inner if state.cycles else _FIRST * self.inner
        state.cycles += 1
        if self.updates == "conjugate" and branches.exact(state.noise):
            return 0.0
        way = {"conjugate": branches.conjugate, "sequential": branches.sequential, "parallel": branches.parallel}
        for gain in islice(way[self.updates](state.noise), steps):
            if gain <= _SETTLED * tol:
                break
        return gain

    def _shared(self, problem: GaussianProblem, indices: Index) -> NDArray[np.bool_]:
        """Functions that have one precision together: none, or all but the constant, which no ridge should shrink."""
        if self.precisions == "each":
            return np.zeros(len(indices), dtype=np.bool_)
        return indices != (-1 if problem.bias is None else problem.bias)

    def _hidden(self, state: BackfittingState) -> float:
        r""":math:`\psi`: all the noise where a precision is shared, next to none where each function has its own."""
        if self.precisions == "single":
            return state.noise
        return _HIDDEN * state.active.problem.mean_square

    def _rates(self, state: BackfittingState) -> Array:
        branches = state.branches
        return self.b * state.active.problem.mean_square * branches.problem.n_effective / branches.sqnorms

    def _precisions(self, state: BackfittingState) -> None:
        r"""Precisions at the maximum of the bound, the root of a quadratic equation; a single one by eq. 10."""
        branches, psi = state.branches, self._hidden(state)
        if branches.size == 0:
            return
        F, targets = branches.sqnorms, branches.problem.n_targets
        a, rates = self.a / targets, self._rates(state) / targets
        shared = self._shared(branches.problem, branches.indices)
        second = float(np.sum((branches.mean_squares + psi / (F + psi * branches.alpha))[shared]))  # eq. 10
        c = np.maximum(branches.mean_squares + 2.0 * rates, np.finfo(float).tiny ** 0.5)
        linear = F * c - 2.0 * a * psi
        root = np.sqrt(linear**2 + 4.0 * psi * c * F * (1.0 + 2.0 * a))
        positive = linear > 0.0
        small = np.where(positive, 1.0, 2.0 * psi * c)
        branches.alpha = np.where(positive, 2.0 * F * (1.0 + 2.0 * a) / (linear + root), (root - linear) / small)
        if shared.any():
            rate = 2.0 * float(np.mean(rates[shared]))
            branches.alpha[shared] = (2.0 * a + np.count_nonzero(shared)) / (rate + second)

    def _noise(self, state: BackfittingState) -> None:
        r"""Noise at the maximum of the bound: the mean squared residual, with the weights' variance where it counts."""
        branches = state.branches
        problem = branches.problem
        spread = 0.0
        if self.precisions == "single":
            spread = float(np.sum(state.noise * branches.sqnorms / (branches.sqnorms + state.noise * branches.alpha)))
        n = problem.n_effective
        noise = branches.residual_sumsq / (n * problem.n_targets) + spread / n
        state.noise = max(noise, problem.noise_floor)

    def _rows(self, state: BackfittingState, xi: Array) -> None:
        r""":math:`\xi_n^2 = \langle y_n\rangle^2 + \sum_m\phi_{nm}^2/(\|\phi_m\|^2+\psi\alpha_m)`."""
        branches, psi = state.branches, self._hidden(state)
        curvature = two_classes(state.active.problem).weights * bound_curvature(xi)
        outputs = (branches.problem.target - branches.residual)[:, 0] / np.sqrt(curvature)
        spread = branches.squares(1.0 / (branches.sqnorms + psi * branches.alpha)) / curvature
        state.xi = followed = np.sqrt(outputs**2 + spread)
        problem = bound_problem(state.active.problem, followed)
        state.branches = Branches(problem, branches.indices, branches.weights, branches.alpha)

    def _prune(self, state: BackfittingState) -> None:
        r"""Leave out functions whose precision has outgrown the data and, since :math:`\alpha > Q^2`, will grow on."""
        branches = state.branches
        Q2 = np.mean((branches.correlate(branches.residual) / state.noise) ** 2, axis=1)
        stays = (state.noise * branches.alpha <= _OUTWEIGHED * branches.sqnorms) | (branches.alpha <= 4.0 * Q2)
        stays |= self._shared(branches.problem, branches.indices)
        if not np.all(stays):
            indices, weights, alpha = branches.indices[stays], branches.weights[stays], branches.alpha[stays]
            state.branches = Branches(branches.problem, indices, weights, alpha)

    def _assess(self, state: BackfittingState) -> None:
        """The bound on the evidence, and the log priors."""
        branches, psi = state.branches, self._hidden(state)
        targets = branches.problem.n_targets
        if state.xi is None:
            n = targets * branches.problem.n_effective
            fit = gaussian_log_likelihood(branches.residual_sumsq, 1.0 / state.noise, n)
        else:
            fit = bound_constant(state.active.problem, state.xi) - 0.5 * branches.residual_sumsq
        occam = np.log1p(branches.sqnorms / (psi * branches.alpha))
        state.evidence = fit - 0.5 * targets * float(np.sum(branches.alpha * branches.mean_squares + occam))
        rates, alpha, shared = self._rates(state), branches.alpha, self._shared(branches.problem, branches.indices)
        if shared.any():
            rates = np.concatenate([rates[~shared], np.mean(rates[shared], keepdims=True)], dtype=np.float64)
            alpha = np.concatenate([alpha[~shared], alpha[shared][:1]], dtype=np.float64)
        state.log_prior = float(np.sum(log_gamma_prior(alpha, self.a, rates))) if branches.size else 0.0
