r"""Bayesian backfitting (D'Souza, Vijayakumar & Schaal 2004, sections 3-5): no inversion where rows are many.

Every function is a branch of a fan-in with a share :math:`\psi_m` of the noise :math:`s` as hidden noise of its own.
With the factorial posterior of the paper the log evidence is bounded by

.. math::

    \mathcal F = \log\mathcal N(\mathbf t|\boldsymbol\Phi\mathbf b, s\mathbf I)
                 - \tfrac12\sum_m\Big[\alpha_m b_m^2 + \log\Big(1+\frac{\|\phi_m\|^2}{\psi_m\alpha_m}\Big)\Big] ,

and every update raises it: sweeps over the weights (``branches.py``), the precisions in closed form, the noise.  The
derivation is in ``docs/backfitting.md``.  In classification the bound of Jaakkola & Jordan makes each cycle such a
problem.  Only the model that is left at the end is factored, for its exact posterior, evidence and certificate.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from numbers import Integral, Real

import numpy as np

from sparsebayes.inference.models.active import ActiveSet
from sparsebayes.inference.models.evidence import Array
from sparsebayes.inference.models.interface import Active
from sparsebayes.inference.models.jaakkola import bound_constant, bound_curvature, bound_problem, two_classes
from sparsebayes.inference.models.problem import FLOOR
from sparsebayes.inference.objective.noise import maximise_noise
from sparsebayes.inference.solvers.branches import Branches
from sparsebayes.inference.solvers.needs import Kind
from sparsebayes.inference.solvers.solver import Info, Solver, State
from sparsebayes.inference.status import Status
from sparsebayes.likelihood.gaussian import gaussian_log_likelihood

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


@dataclass(kw_only=True)
class BackfittingState(State):
    """The branches, the noise, and in classification the parameters of the bound."""

    branches: Branches
    noise: float
    xi: Array | None = None
    log_prior: float = 0.0

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


class Backfitting(Solver):
    """Bayesian backfitting.

    Parameters
    ----------
    precisions : {"each", "single"}
        One precision for each function (relevance determination, the backfitting relevance vector machine), or a single
        one for all (ridge regression whose ridge is learned; nothing leaves).
    updates : {"conjugate", "sequential", "parallel"}
        How the weights are swept: conjugate directions made of sweeps there and back, or, up to 300 rows or functions,
        the maximum where they end; one function after the other (eq. 6); or all at once as in EM (eq. 9).
    inner : int
        Most sweeps between two updates of the precisions; there are fewer once they gain nothing, and each cycle begins
        where the last one ended.  (The first may make more, since what leaves is decided early.)
    initial : float
        First precisions, as a fraction of those at which all functions together have the variance of the targets.
    noise_start : float
        First noise variance where it is learned, as a fraction of that of the targets.
    a, b : float
        Gamma hyperprior of the precisions (eq. 8); the rate b is relative to (mean square of the targets) / (mean
        square of the function).
    tol, max_iter, random_state : optional
        As in the estimators; where given here, they win.  An iteration is one cycle.
    callback : callable, optional
        ``callback(record, active)`` after every cycle; returning True stops the fit.  The model that it is shown is
        factored for the purpose.
    """

    takes = frozenset({Kind.GAUSSIAN, Kind.ROBUST, Kind.LOGISTIC})
    takes_why = "it bounds the logistic of two classes, and has no bound for others"

    def __init__(
        self,
        precisions: str = "each",
        updates: str = "conjugate",
        inner: int = 40,
        initial: float = 1e-4,
        noise_start: float = 0.05,
        a: float = 0.0,
        b: float = 0.0,
        tol: float | None = None,
        max_iter: int | None = None,
        random_state: int | None = None,
        callback: Callable[..., bool | None] | None = None,
    ) -> None:
        self.precisions = precisions
        self.updates = updates
        self.inner = inner
        self.initial = initial
        self.noise_start = noise_start
        self.a = a
        self.b = b
        self.tol = tol
        self.max_iter = max_iter
        self.random_state = random_state
        self.callback = callback

    @property
    def ends(self) -> Status:
        """The bound is what converges."""
        return Status.BOUND

    def check(self) -> None:
        """Raise where a setting is out of range."""
        for name, known in (("precisions", PRECISIONS), ("updates", UPDATES)):
            if getattr(self, name) not in known:
                choices = ", ".join(map(repr, known))
                raise ValueError(f"{name}={getattr(self, name)!r} is not known; choose one of {choices}")
        for name in ("inner", "max_iter"):
            value = getattr(self, name)
            if not (name == "max_iter" and value is None) and not (_is_number(value, Integral) and value >= 1):
                raise ValueError(f"{name}={value!r}: expected a positive integer")
        for name in ("initial", "noise_start", "tol"):
            value = getattr(self, name)
            if not (name == "tol" and value is None) and not (_is_number(value) and 0.0 < value < np.inf):
                raise ValueError(f"{name}={value!r}: expected a positive, finite number")
        for name in ("a", "b"):
            value = getattr(self, name)
            if not (_is_number(value) and 0.0 <= value < np.inf):
                raise ValueError(f"{name}={value!r}: expected a finite number, at least 0")
        if self.a > 0.0 and self.b == 0.0:
            raise ValueError(f"b={self.b!r}: expected a positive rate where the shape a={self.a!r} is positive")
        if self.callback is not None and not callable(self.callback):
            raise ValueError(f"callback={self.callback!r}: expected a callable or None")

    # -- the solver contract -------------------------------------------------------------------------------

    def init(self, active: Active, learn_noise: bool, rng: np.random.Generator) -> BackfittingState:
        """All functions, with weights zero."""
        problem, xi, scale = active.problem, None, 0.0
        if not active.exact:
            xi, scale = np.zeros(problem.design.shape[0]), 1.0
            problem = bound_problem(problem, xi)
        indices = np.flatnonzero(problem.eligible)
        sqnorms = problem.sqnorms[indices]
        total = problem.n_effective * (scale or problem.mean_square)
        alpha = np.full(len(indices), self.initial * float(np.sum(sqnorms)) / (total or 1.0))
        branches = Branches(problem, indices, np.zeros((len(indices), problem.n_targets)), alpha)
        noise = self.noise_start * problem.mean_square if learn_noise else 1.0 / active.beta
        state = BackfittingState(
            active=active, learn_noise=learn_noise, evidence=0.0, rng=rng, branches=branches, noise=noise, xi=xi
        )
        self._assess(state)
        return state

    def step(self, state: State, tol: float) -> Info | None:
        """One cycle: some sweeps over the weights, then the precisions, the noise and the bound of each row."""
        state = _own(state)
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
        if self.precisions == "each":
            self._prune(state)
        self._assess(state)
        gain = state.objective - before
        if max(gain, left) <= _SETTLED * tol and state.branches.size == size:
            state.settled = True
            return None
        return Info("sweep", n_moves=1)

    def shown(self, state: State) -> Active:
        """The model, factored."""
        return self.model(state)

    def model(self, state: State) -> Active:
        r"""Exact posterior of the functions that are left, without those whose :math:`\theta` is not positive.

        The noise, whose estimate here does not know what the fit has used up, is moved to the maximum of the evidence.
        """
        state = _own(state)
        problem, branches = state.active.problem, state.branches
        indices = branches.indices.tolist()
        beta, empty = 1.0 / state.noise, state.active
        found = self._relevant(lambda i, alpha: empty.like(problem, i, alpha, beta=beta), indices, branches.alpha)
        if state.learn_noise and isinstance(found, ActiveSet):
            maximise_noise(found)
        return found

    def _relevant(self, build: Callable[[list[int], Array], Active], indices: list[int], alpha: Array) -> Active:
        active = build(indices, alpha)
        while self.precisions == "each" and active.size:
            s, q2 = active.leave_one_out()
            stays = np.flatnonzero(q2 > s)
            if len(stays) == active.size:
                break
            active = build([active.indices[j] for j in stays], active.alpha[stays])
        return active

    # -- one cycle -----------------------------------------------------------------------------------------

    def _sweep(self, state: BackfittingState, tol: float) -> float:
        """Partial inner updates; returns what the last one gained."""
        branches, gain = state.branches, 0.0
        steps = self.inner if state.position >= 0 else _FIRST * self.inner
        state.position += 1
        if self.updates == "conjugate":
            if branches.few and branches.exact(state.noise) is not None:
                return 0.0
            return branches.conjugate(state.noise, steps, _SETTLED * tol)
        for _ in range(steps):
            if self.updates == "sequential":
                gain = branches.sequential(state.noise)
            else:
                gain = branches.parallel(state.noise, 1.0 / (branches.size + 1))
            if gain <= _SETTLED * tol:
                break
        return gain

    def _hidden(self, state: BackfittingState) -> float:
        r""":math:`\psi`: all the noise where a precision is shared, next to none where each function has its own."""
        if self.precisions == "single":
            return state.noise
        return _HIDDEN * (1.0 if state.xi is not None else state.branches.problem.mean_square)

    def _rates(self, state: BackfittingState) -> Array:
        problem = state.branches.problem
        scale = 1.0 if state.xi is not None else problem.mean_square
        return self.b * scale * problem.n_effective / state.branches.sqnorms

    def _precisions(self, state: BackfittingState) -> None:
        r"""Precisions at the maximum of the bound.

        The fixed point of eq. 10 with the variance :math:`\psi/(\|\phi\|^2+\psi\alpha)` of eq. 9's posterior is a
        quadratic equation; with a single precision eq. 10 itself is used.
        """
        branches, psi = state.branches, self._hidden(state)
        if branches.size == 0:
            return
        F, targets = branches.sqnorms, branches.problem.n_targets
        a, rates = self.a / targets, self._rates(state) / targets
        if self.precisions == "single":
            second = float(np.sum(branches.mean_squares + psi / (F + psi * branches.alpha)))  # eq. 10
            branches.alpha[:] = (2.0 * a + branches.size) / (2.0 * float(np.mean(rates)) + second)
            return
        c = np.maximum(branches.mean_squares + 2.0 * rates, np.finfo(float).tiny ** 0.5)
        linear = F * c - 2.0 * a * psi
        root = np.sqrt(linear**2 + 4.0 * psi * c * F * (1.0 + 2.0 * a))
        positive = linear > 0.0
        small = np.where(positive, 1.0, 2.0 * psi * c)
        branches.alpha = np.where(positive, 2.0 * F * (1.0 + 2.0 * a) / (linear + root), (root - linear) / small)

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
        state.xi = np.sqrt(outputs**2 + spread)
        problem = bound_problem(state.active.problem, state.xi)
        state.branches = Branches(problem, branches.indices, branches.weights, branches.alpha)

    def _prune(self, state: BackfittingState) -> None:
        r"""Leave out functions whose precision has outgrown the data and, since :math:`\alpha > Q^2`, will grow on."""
        branches = state.branches
        if branches.size == 0:
            return
        Q2 = np.mean((branches.correlate(branches.residual) / state.noise) ** 2, axis=1)
        leaves = (state.noise * branches.alpha > _OUTWEIGHED * branches.sqnorms) & (branches.alpha > 4.0 * Q2)
        if np.any(leaves):
            branches.restrict(~leaves)

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
        state.log_prior = self._log_prior(state)

    def _log_prior(self, state: BackfittingState) -> float:
        """Log Gamma densities relative to their largest values, so that a function that has left counts nothing."""
        branches = state.branches
        if self.b == 0.0 or branches.size == 0:
            return 0.0
        rates = self._rates(state)
        scaled = rates * branches.alpha if self.precisions == "each" else np.mean(rates) * branches.alpha[:1]
        log = self.a * (np.log(scaled / self.a) + 1.0) if self.a > 0.0 else 0.0
        return float(np.sum(log - scaled))


def _own(state: State) -> BackfittingState:
    if not isinstance(state, BackfittingState):
        raise TypeError("this state was not made by Backfitting.init")
    return state


def _is_number(value: object, kind: type = Real) -> bool:
    return isinstance(value, kind) and not isinstance(value, bool | np.bool_)
