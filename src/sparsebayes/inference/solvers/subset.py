r"""SBLA, the greedy subset selection of Bo, Wang & Jiao 2005.

All weights share one prior precision, so that the model is that of ridge regression on a subset P of the functions,
:math:`\lambda = \alpha\sigma^2`.  One function is added at a time, that of the row with the largest residual; then the
function that the fit misses least is removed if it is missed by no more than
:math:`\varepsilon = \mathbf t^\top\mathbf t/(lT)`; the search ends when more than M have been removed.  What the
printed algorithm leaves open is settled in ``docs/subset.md``.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from numbers import Integral

import numpy as np

from sparsebayes.inference.models.active import ActiveSet
from sparsebayes.inference.models.evidence import Array, gaussian_log_likelihood
from sparsebayes.inference.models.interface import Active
from sparsebayes.inference.models.problem import GaussianProblem
from sparsebayes.inference.solvers.solver import Info, Kind, Need, Solver, State, is_number, is_positive
from sparsebayes.inference.status import Status

RETURNING = ("later", "at once", "never")

# A function whose part outside the span of the subset is below this fraction of its norm adds nothing but rounding.
_IN_SPAN = 1e-12
# What rounding may take off a number of rows, which is a sum of weights.
_ROUNDING = 1e-12


class Subset:
    r"""The subset P: ``indices``, and its ridge regression by rank-one updates, in O(nl) each.

    With :math:`\mathbf H = \boldsymbol\Phi_P^\top\boldsymbol\Phi_P + \lambda\mathbf I`: ``inverse``
    :math:`\mathbf R = \mathbf H^{-1}`, ``weights`` :math:`\mathbf R\boldsymbol\Phi_P^\top\mathbf t` (n, T), ``log_det``
    :math:`\log|\mathbf H|`.
    """

    def __init__(self, problem: GaussianProblem, ridge: float) -> None:
        self.problem, self.ridge = problem, ridge
        rows, targets = problem.target.shape
        self.indices: list[int] = []
        self.columns = np.zeros((rows, 0), order="F")
        self.inverse = np.zeros((0, 0))
        self.weights = np.zeros((0, targets))
        self.log_det = 0.0

    @property
    def size(self) -> int:
        """Number n of functions."""
        return len(self.indices)

    @property
    def residual(self) -> Array:
        r""":math:`-g = \mathbf t - \boldsymbol\Phi_P\mathbf w`, whitened (eq. 10; step 8 as printed lacks t)."""
        return self.problem.target - self.columns @ self.weights

    @property
    def misfit(self) -> float:
        r""":math:`\mathbf t^\top\mathbf t + L(\mathbf w) = \mathbf t^\top(\mathbf t - \boldsymbol\Phi_P\mathbf w)`."""
        return float(np.sum(self.problem.target * self.residual))

    def losses(self) -> Array:
        r""":math:`\Delta f_k = w_k^2/R_{kk}`, what removing each function costs (eq. 16), summed over the targets."""
        return np.sum(self.weights**2, axis=1) / np.diagonal(self.inverse)

    def add(self, i: int) -> bool:
        """Add a function (eqs 7-9); False if it is in the span of the subset up to rounding."""
        column = self.problem.columns(np.array([i]))
        beta = self._regress(column)[:, 0]
        # H_ss − h_sᵀβ as a sum of squares, which does not cancel
        outside = column[:, 0] - self.columns @ beta
        schur = float(outside @ outside) + self.ridge * (1.0 + float(beta @ beta))
        if schur <= _IN_SPAN * float(np.sum(column**2)):
            return False
        direction = np.append(beta, -1.0)
        # βᵀb_P − b_s = −φ_sᵀ(t − Φ_P w), which does not cancel
        slope = -(column.T @ self.residual)[0]
        self.inverse = np.pad(self.inverse, (0, 1)) + np.outer(direction, direction) / schur  # eq. 7
        self.weights = np.pad(self.weights, ((0, 1), (0, 0))) + direction[:, None] * slope / schur  # eq. 9
        self.columns = np.asfortranarray(np.hstack([self.columns, column]))
        self.indices.append(i)
        self.log_det += float(np.log(schur))
        return True

    def remove(self, k: int) -> None:
        """Remove the k-th function (eqs 11, 13)."""
        column, pivot = self.inverse[:, k].copy(), float(self.inverse[k, k])
        keep = np.delete(np.arange(self.size), k)
        self.weights = (self.weights - column[:, None] * self.weights[k] / pivot)[keep]  # eq. 13
        self.inverse = (self.inverse - np.outer(column, column) / pivot)[np.ix_(keep, keep)]  # eq. 11
        self.columns = np.asfortranarray(self.columns[:, keep])
        self.indices.pop(k)
        self.log_det += float(np.log(pivot))

    def _regress(self, column: Array) -> Array:
        r""":math:`\mathbf R\boldsymbol\Phi_P^\top` times a whitened column, refined once: rounding would add up."""
        found = self.inverse @ (self.columns.T @ column)
        return found + self.inverse @ (self.columns.T @ (column - self.columns @ found) - self.ridge * found)


@dataclass(kw_only=True)
class SubsetState(State):
    """The subset, what was removed from it, and what may be added."""

    subset: Subset
    removed: int = 0
    barred: set[int] = field(default_factory=set)

    @property
    def n_active(self) -> int:
        """Functions in the subset."""
        return self.subset.size

    @property
    def noise_variance(self) -> float:
        """The noise given, or the one that maximises the evidence at this λ."""
        if not self.learn_noise:
            return 1.0 / self.active.beta
        problem = self.subset.problem
        mean = self.subset.misfit / (problem.n_effective * problem.n_targets)
        return max(mean, problem.noise_floor)


@dataclass(eq=False, repr=False)
class SubsetSelection(Solver[SubsetState]):
    r"""Greedy selection by the largest residual, with removal (regression only).

    Parameters
    ----------
    ridge : float
        :math:`\lambda`, noise variance over prior variance of the weights; in units of squared values of the functions,
        and so meant for functions of about unit height, as kernels are.
    threshold : float
        T: a function is removed when that costs less than the mean square of the targets divided by T.
    removals : int, optional
        M: the search ends when more functions than this were removed; None means a tenth of the rows.
    returning : {"later", "at once", "never"}
        When a removed function is a candidate again: after the next step (default); at the next one, where the same
        function may be chosen and removed until the search ends; or never, which keeps many more functions.
    tol, max_iter, random_state, callback : optional
        As in ``Sequential``.  ``tol`` is only for the certificate: the search has its own rule.
    """

    takes = frozenset({Kind.GAUSSIAN, Kind.ROBUST})
    takes_why = "it lowers a squared error"
    takes_support = False
    status_if_uncertified = Status.SUBSET

    ridge: float = 1e-3
    threshold: float = 1e4
    removals: int | None = None
    returning: str = "later"

    def check(self) -> None:
        """Raise where a setting is out of range."""
        self.expect("a positive, finite number", is_positive, "ridge", "threshold")
        self.expect(
            "None or an integer, at least 0", lambda n: n is None or (is_number(n, Integral) and n >= 0), "removals"
        )
        self.expect_one_of(returning=RETURNING)
        super().check()

    # -- the solver contract -------------------------------------------------------------------------------

    def needs(self, kind: Kind, *, centred: bool) -> dict[Need, str]:
        """Single rows, where functions belong to them."""
        return {Need.ROWS: "takes the function of the row with the largest residual"} if centred else {}

    def init(self, active: Active, learn_noise: bool, rng: np.random.Generator) -> SubsetState:
        """An empty subset."""
        subset = Subset(active.problem, self.ridge)
        return SubsetState(active, learn_noise, active.evidence(), rng, subset=subset)

    def step(self, state: SubsetState, tol: float) -> Info | None:
        """Steps 2-8 of the algorithm: add one function, then remove one if that costs next to nothing."""
        subset, problem = state.subset, state.subset.problem
        limit = problem.n_effective / 10.0 if self.removals is None else self.removals
        if state.removed > limit * (1.0 + _ROUNDING):
            return None
        chosen = self._choose(state)
        if chosen is None:
            return None
        if self.returning == "later":
            state.barred.clear()
        losses, move, moves = subset.losses(), "add", 1
        least = int(np.argmin(losses))  # eq. 17
        if losses[least] <= problem.n_targets * problem.mean_square / self.threshold:
            if self.returning != "at once":
                state.barred.add(subset.indices[least])
            subset.remove(least)
            state.removed += 1
            move, moves = "exchange", 2
        state.evidence = self._evidence(state)
        return Info(move, chosen, moves)

    def model(self, state: SubsetState) -> Active:
        """Exact posterior of the subset, every precision λ/σ²."""
        beta = 1.0 / state.noise_variance
        alpha = np.full(state.subset.size, self.ridge * beta)
        return ActiveSet.from_model(state.subset.problem, state.subset.indices, alpha, beta)

    # -- one step ------------------------------------------------------------------------------------------

    def _choose(self, state: SubsetState) -> int | None:
        """Add the candidate with the largest score that the subset does not span; None if there is none."""
        subset, problem = state.subset, state.subset.problem
        scores = self._scores(subset)
        scores[~problem.eligible] = -1.0
        scores[[*subset.indices, *state.barred]] = -1.0
        while np.max(scores, initial=-1.0) >= 0.0:
            i = int(np.argmax(scores))
            if subset.add(i):
                return i
            scores[i] = -1.0
        return None

    @staticmethod
    def _scores(subset: Subset) -> Array:
        """Residual at the row where each function is centred (eq. 10).

        For a function without a row: the root mean square of what it alone would take off the residuals, which is in
        the same units.
        """
        problem, residual = subset.problem, subset.residual
        scores = np.zeros(problem.n_functions)
        rows = problem.rows
        centred = rows >= 0
        weighed = problem.row_scale > 0.0  # an outlier may weigh nothing, and then asks for nothing
        size = np.sqrt(np.mean(residual**2, axis=1)) / np.where(weighed, problem.row_scale, np.inf)
        scores[centred] = size[rows[centred]]
        if not np.all(centred):
            norms = np.sqrt(np.where(problem.sqnorms > 0.0, problem.sqnorms, 1.0) * problem.n_effective)
            taken = np.sqrt(np.mean(problem.correlate(residual) ** 2, axis=1)) / norms
            scores[~centred] = taken[~centred]
        return scores

    def _evidence(self, state: SubsetState) -> float:
        r"""Log evidence at this noise: :math:`|\mathbf C| = \sigma^{2N}|\mathbf H|\lambda^{-n}`."""
        subset, problem = state.subset, state.subset.problem
        n = problem.n_targets * problem.n_effective
        fit = gaussian_log_likelihood(subset.misfit, 1.0 / state.noise_variance, n)
        return fit - 0.5 * problem.n_targets * (subset.log_det - subset.size * float(np.log(self.ridge)))
