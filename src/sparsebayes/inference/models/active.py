r"""The small posterior of the active set: add, re-estimate, delete.

The active columns are kept in factored form, :math:`\mathbf W^{1/2}\boldsymbol\Phi_a = \mathbf U\mathbf R` with
orthonormal :math:`\mathbf U`, together with the correlations :math:`\mathbf C = \mathbf U^\top\mathbf
W^{1/2}\boldsymbol\Phi` of the whole dictionary.  Every statistic then follows from small matrices: with the QR
factorisation of :math:`[\sqrt\beta\mathbf R; \mathbf A^{1/2}]` the condition number of the posterior precision
enters under a square root, which is what makes dictionaries such as the linear spline safe in double precision
(forming :math:`\boldsymbol\Phi^\top\boldsymbol\Phi` would square it).  Between exact refreshes the statistics are
carried by the rank-one formulae of Tipping & Faul 2003, Appendix A.
"""

from __future__ import annotations

import copy
from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from sparsebayes.design import RESOLVED, ScreenedDesign, projected
from sparsebayes.inference.models.evidence import (
    Array,
    Statistics,
    best_moves,
    contribution,
    leave_one_out,
)
from sparsebayes.inference.models.gaussian import GaussianModel, Gram
from sparsebayes.inference.models.interface import Noisy
from sparsebayes.inference.models.linalg import tall_qr
from sparsebayes.inference.models.problem import GaussianProblem
from sparsebayes.inference.models.screening import may_gain
from sparsebayes.inference.models.small import SmallPosterior, SmallProblem

# A column whose part outside the active span is below this fraction of its norm lies inside it: the remainder is
# rounding error, and normalising it would fill U with noise.
_IN_SPAN = 1e-13
# Largest variance inflation factor Σ_jj (α_j + β‖φ_j‖²) at which the factors alone give Q to nine digits.
_COLLINEAR = 1e5
# Exact refresh after this many rank-one updates, or as soon as the drift check says so.
_REFRESH_EVERY = 50
_DRIFT = 1e-9
# Entries of a dictionary that are evaluated for a certificate at most; beyond, it names the error of the compression.
_EVALUATED = 2_000_000_000


class ActiveSet(Noisy):
    """Posterior of the functions in the model, and S and Q of all functions.

    Attributes
    ----------
    indices : list of int
        Functions in the model, in the order of the rows of ``covariance``.
    alpha : ndarray of shape (a,)
        Their prior precisions.
    beta : float
        Inverse noise variance.
    R, z : ndarray of shape (u, a), (u, T)
        Coordinates of the active columns, and of the targets, in the orthonormal basis U of u columns.
    mean, covariance : ndarray of shape (a, T), (a, a)
        Posterior of the weights (T&F eq. 6).
    S, Q : ndarray of shape (M,), (M, T)
        Sparsity and quality of every function (T&F eqs 24-25).
    """

    single_moves = True

    def __init__(self, problem: GaussianProblem, beta: float) -> None:
        self._clear(problem, beta)
        self.refresh()

    @classmethod
    def from_model(cls, problem: GaussianProblem, indices: list[int], alpha: Array, beta: float) -> ActiveSet:
        """Posterior of a given model, computed from the data."""
        active = cls.__new__(cls)
        active._clear(problem, beta)
        active.indices, active.alpha = list(indices), alpha.copy()
        active.rebuild()
        return active

    def like(
        self,
        problem: GaussianProblem,
        indices: list[int],
        alpha: Array,
        *,
        beta: float | None = None,
        mean: Array | None = None,
    ) -> ActiveSet:
        """The model of these functions; its weights follow, so that known ones are of no use."""
        return ActiveSet.from_model(problem, indices, alpha, self.beta if beta is None else beta)

    def recompute(self) -> ActiveSet:
        """The same model from scratch, on the whole dictionary and the data themselves."""
        problem, indices, below = self.problem, self.indices, None
        while problem.parent is not None:
            below, indices, problem = problem, problem.lift(indices), problem.parent
        screened = problem.screened(below)
        model = ActiveSet.from_model(screened, indices, self.alpha, self.beta)
        if isinstance(screened.design, ScreenedDesign):
            model._sharpen(screened, screened.design)
        return model

    def _sharpen(self, problem: GaussianProblem, design: ScreenedDesign) -> None:
        """Evaluate exactly the functions that bounds on what stands in for them cannot rule out (``screening.py``)."""
        self._correlations()  # one pass over the stand-in's columns, from which S and Q follow before and after
        residual = self._residual + self.U @ (self.z - self.R @ self.mean)
        outside = problem.eligible.copy()
        outside[self.indices] = False
        contend = may_gain(self.S, self.Q, self.beta, residual, problem.weights, design.stand_in, outside)
        contend[self.indices] = True
        idx = np.flatnonzero(contend)
        if len(idx) * len(residual) > _EVALUATED:
            return
        self.C[:, idx] = problem.exact_moments(idx, self.U).T
        design.error = 0.0
        self.refresh()

    def copy(self) -> ActiveSet:
        """Independent copy on the same problem."""
        twin = copy.copy(self)
        for name in ("alpha", "_U", "_C", "R", "z", "_residual", "mean", "covariance", "_S", "_Q"):
            held = getattr(self, name)
            setattr(twin, name, None if held is None else held.copy(order="K"))
        twin.indices = list(self.indices)
        return twin

    # -- the factors --------------------------------------------------------------------------------------

    def _clear(self, problem: GaussianProblem, beta: float) -> None:
        self.problem = problem
        self.beta = beta
        self.indices: list[int] = []
        self.alpha = np.zeros(0)
        rows, targets = problem.target.shape
        self._U = np.zeros((rows, 8), order="F")
        self._C: Array | None = None
        self.R = np.zeros((0, 0))
        self.z = np.zeros((0, targets))
        self._residual = problem.target.copy()
        self._post: SmallPosterior | None = None
        self._S: Array | None = None
        self._Q: Array | None = None
        self.updates = 0

    @property
    def U(self) -> Array:
        """Orthonormal basis of the active columns, (rows, u)."""
        return self._U[:, : len(self.R)]

    @property
    def C(self) -> Array:
        """Correlations of the dictionary with that basis, (u, M), made when a move first needs them."""
        return self._correlations()[: len(self.R)]

    def _correlations(self) -> Array:
        """Storage of C."""
        if self._C is None:
            found: Array = self.problem.correlate(self.U).T
            spare = self._U.shape[1] - len(self.R)
            self._C = np.vstack([found, np.zeros((spare, found.shape[1]))]) if spare else found
        return self._C

    @property
    def rest(self) -> float:
        """Sum of squares of the targets outside the span of U."""
        return float(np.sum(self._residual**2)) + self.problem.unexplained

    def posterior(self, alpha: Array | None = None, beta: float | None = None) -> SmallPosterior:
        """Exact small posterior at other hyperparameters of the same functions (cost O(a³), no data touched)."""
        if alpha is None and beta is None and self._post is not None:
            return self._post
        alpha = self.alpha if alpha is None else alpha
        beta = self.beta if beta is None else beta
        return SmallPosterior.of(self.small, alpha, beta)

    @property
    def small(self) -> SmallProblem:
        """What the posterior follows from."""
        return SmallProblem(self.R, self.z, self.rest)

    @property
    def S(self) -> Array:
        """Sparsity of every function."""
        if self._S is None:
            self._score()
        return self._S  # pyright: ignore[reportReturnType]

    @property
    def Q(self) -> Array:
        """Quality of every function."""
        if self._Q is None:
            self._score()
        return self._Q  # pyright: ignore[reportReturnType]

    def _score(self) -> None:
        """S and Q (T&F eqs 22, 24, 25) exactly from the factors; where C is not held, two numbers come for each."""
        beta, problem = self.beta, self.problem
        if not self.indices:
            self._S, self._Q = beta * problem.sqnorms, beta * problem.projection
            return
        mixing, fitted = beta * (self.R @ self.posterior().root), self.R @ self.mean
        if self._C is None:
            explained, squares = problem.project(self.U @ fitted, self.U @ mixing)
        else:
            C, rows = self.C, np.hstack([fitted, mixing]).T  # T&F eq. 24: β Σ^{1/2}ᵀ Φᵀ W φ_m
            explained, squares = projected(lambda some: rows @ C[:, some], fitted.shape[1], C.shape[1])
        self._S = beta * problem.sqnorms - squares
        if self._Q is None:  # a fragile model has found it from the residuals of the data
            self._Q = beta * (problem.projection - explained)

    def _grown(self, i: int) -> tuple[Array, Array, Array, Array]:
        """What enlarges the basis by column i, (rows, 0 or 1), its coefficients in the old one, and R and z then."""
        u, a = self.R.shape
        phi = self.problem.columns(np.array([i]))
        inner = np.zeros((u, 1))
        for _ in range(2):  # twice is enough (Kahan-Parlett)
            step = self.U.T @ phi
            phi = phi - self.U @ step
            inner += step
        rho = float(np.linalg.norm(phi))
        if rho <= _IN_SPAN * np.sqrt(self.problem.sqnorms[i]):
            return phi[:, :0], inner[:, 0], np.hstack([self.R, inner]), self.z
        new = phi / rho
        R = np.zeros((u + 1, a + 1))
        R[:u, :a], R[:u, a:], R[u, a] = self.R, inner, rho
        return new, inner[:, 0], R, np.vstack([self.z, new.T @ self._residual])

    def _append(self, i: int, alpha: float) -> tuple[Array, float]:
        """Orthogonalise column i against U; return its coefficients, and the norm of what enlarges the basis."""
        u, self._post = len(self.R), None
        new, inner, self.R, self.z = self._grown(i)
        self.indices.append(i)
        self.alpha = np.append(self.alpha, alpha)
        if not new.shape[1]:
            return inner, 0.0
        self._reserve(u + 1)
        self._U[:, u : u + 1] = new
        if self._C is not None:
            self._C[u] = self.problem.correlate(new)[:, 0]
        self._residual -= new @ self.z[u:]
        return inner, float(self.R[u, -1])

    def _drop(self, positions: list[int]) -> None:
        """Remove columns from the factors; the span shrinks, so what it explained returns to the residual."""
        u, self._post = len(self.R), None
        keep = [k for k in range(len(self.indices)) if k not in positions]
        b = min(u, len(keep))
        q, r = np.linalg.qr(self.R[:, keep], mode="complete")
        z = q.T @ self.z
        self._residual += self.U @ (q[:, b:] @ z[b:])
        if self._C is not None:
            self._C[:b] = q[:, :b].T @ self._C[:u]
        self._U[:, :b] = self.U @ q[:, :b]
        self.R, self.z = r[:b], z[:b]
        self.indices = [self.indices[k] for k in keep]
        self.alpha = self.alpha[keep]

    def _reserve(self, size: int) -> None:
        """Grow the storage of U and C by doubling, so that adding costs no copy on average."""
        capacity = self._U.shape[1]
        if size <= capacity:
            return
        enlarged = max(size, 2 * capacity)
        U = np.zeros((self._U.shape[0], enlarged), order="F")
        U[:, :capacity] = self._U
        self._U = U
        if self._C is not None:
            C = np.zeros((enlarged, self._C.shape[1]))
            C[:capacity] = self._C
            self._C = C

    # -- what the factors say ------------------------------------------------------------------------------

    @property
    def residual_sumsq(self) -> float:
        r""":math:`\|\mathbf t - \mathbf y\|^2` (weighted), over all targets."""
        return self.rest + float(np.sum((self.z - self.R @ self.mean) ** 2))

    def evidence(
        self, post: SmallPosterior | None = None, alpha: Array | None = None, beta: float | None = None
    ) -> float:
        """Log evidence of the model, at the given hyperparameters or at the current ones."""
        if post is None and alpha is None and beta is None:
            return self._present()
        post = self.posterior(alpha, beta) if post is None else post
        alpha = self.alpha if alpha is None else alpha
        beta = self.beta if beta is None else beta
        return post.evidence(alpha, beta, self.problem.n_effective)

    def _present(self) -> float:
        """Log evidence at the current hyperparameters; known after a refresh, and after an addition by eq. 18."""
        if self._evidence is None:
            self._evidence = self.evidence(self.posterior())
        return self._evidence

    def leave_one_out(self) -> tuple[Array, Array]:
        """``s`` and mean ``q²`` of the functions in the model, each with itself left out."""
        variance = np.diagonal(self.covariance)
        s, q = leave_one_out(self.alpha, variance, self.mean, self.S[self.indices], self.Q[self.indices])
        return s, np.mean(q**2, axis=1)

    def statistics(self) -> Statistics:
        """Statistics of all M functions."""
        alpha = np.full(self.problem.n_functions, np.inf)
        s = np.maximum(self.S, 0.0)
        q2 = np.einsum("mt,mt->m", self.Q, self.Q) / self.Q.shape[1]
        movable = self.problem.eligible & (s > RESOLVED * self.beta * self.problem.sqnorms)
        if self.size:
            alpha[self.indices] = self.alpha
            s[self.indices], q2[self.indices] = self.leave_one_out()
            movable[self.indices] = True
        return Statistics(alpha, s, q2, movable)

    def promising(self, count: int) -> tuple[NDArray[np.intp], Array]:
        """Functions of the problem of which the present one is a part that gain most, and what each would gain."""
        parent, part = self.problem.parent, self.problem
        columns = part.columns(np.array(self.indices, dtype=np.intp))
        residual = self.beta * (part.target - columns @ self.mean)
        basis = self.beta * (self.U @ (self.R @ self.posterior().root))
        scale = parent.row_scale[:, None]
        found = parent.ranking.best(scale * residual, scale * basis, self.beta, part.members, count)
        out = np.full(len(found.s), np.inf)
        _, gain = best_moves(out, found.s, found.q2, parent.n_targets, parent.inclusion_cost)
        return found.numbers, gain

    def linearised(self) -> tuple[Array, Array, Array, Array]:
        """The problem itself."""
        cross = self.beta * (self.C.T @ (self.R @ self.covariance))
        return self.S, self.Q, cross, self.beta * self.problem.sqnorms

    def beside(self, numbers: NDArray[np.intp], others: NDArray[np.intp]) -> tuple[Array, Array]:
        """Inner products of the model's functions and of others, and with what is left of the targets, times beta."""
        whole = self.problem.parent
        columns = whole.columns(np.concatenate([numbers, others]))
        residual = whole.target - columns[:, : self.size] @ self.mean
        return self.beta * (columns.T @ columns), self.beta * (columns.T @ residual)

    def condition_number(self) -> float:
        """Of the posterior precision scaled to unit diagonal."""
        if self.size == 0:
            return 1.0
        stacked = np.vstack([np.sqrt(self.beta) * self.R, np.diag(np.sqrt(self.alpha))])
        return float(np.linalg.cond(stacked / np.linalg.norm(stacked, axis=0)) ** 2)

    # -- exact computation ---------------------------------------------------------------------------------

    def refresh(self, post: SmallPosterior | None = None) -> None:
        """Recompute the posterior exactly from the factors (T&F eq. 6); S and Q follow when they are asked for."""
        self._post = SmallPosterior.of(self.small, self.alpha, self.beta) if post is None else post
        self.mean, self.covariance = self._post.mean, self._post.covariance
        self._evidence: float | None = self.evidence(self._post)
        self._S = self._Q = None
        self.updates = 0
        if self.fragile:
            self._refine()

    def doubtful(self, i: int) -> bool:
        """Whether function i and the model are so nearly dependent that its predicted gain may be rounding."""
        return self.fragile or bool(self.S[i] < self.beta * self.problem.sqnorms[i] / _COLLINEAR)

    def measured_gain(self, i: int, alpha: float) -> float:
        """What giving function i this precision (infinity takes it out) really gains."""
        if i not in self.indices:
            _, _, R, z = self._grown(i)
            grown = np.append(self.alpha, alpha)
            rest = self.rest - float(np.sum(z[len(self.z) :] ** 2))
            post = SmallPosterior.solve(R, z, rest, grown, self.beta)
            return self.evidence(post, grown) - self.evidence() - self.problem.inclusion_cost
        j = self.indices.index(i)
        others = np.arange(self.size) != j
        stays = others | np.isfinite(alpha)
        changed = np.where(others, self.alpha, alpha)[stays]
        post = SmallPosterior.solve(self.R[:, stays], self.z, self.rest, changed, self.beta)
        spared = self.problem.inclusion_cost * (self.size - len(changed))
        return self.evidence(post, changed) - self.evidence() + spared

    @property
    def fragile(self) -> bool:
        """Whether a variance inflation factor in the model is so large that rounding in the factors shows in Q."""
        precision = self.alpha + self.beta * self.problem.sqnorms[self.indices]
        return bool(np.any(precision * np.diagonal(self.covariance) > _COLLINEAR))

    def _refine(self) -> None:
        """Iterative refinement of the mean on the columns themselves, and Q from the residuals of the data."""
        columns = self.problem.columns(np.array(self.indices, dtype=np.intp))
        for _ in range(2):
            residual = self.problem.target - columns @ self.mean
            gradient = self.beta * (columns.T @ residual) - self.alpha[:, None] * self.mean
            self.mean = self.mean + self.covariance @ gradient
        self._Q = self.beta * self.problem.correlate(self.problem.target - columns @ self.mean)

    def set_hyperparameters(self, alpha: Array, beta: float, post: SmallPosterior | None = None) -> None:
        """Change all α and the noise together."""
        self.alpha, self.beta = alpha.copy(), beta
        self.refresh(post)

    def rebuild(self) -> None:
        """Factor the active columns anew from the data, then refresh."""
        columns = self.problem.columns(np.array(self.indices, dtype=np.intp))
        self._U, self.R = tall_qr(columns)
        self._C = None
        self.z = self._U.T @ self.problem.target
        self._residual = self.problem.target - self._U @ self.z
        self.refresh()

    def drift(self) -> float:
        r"""How far the updated statistics are from :math:`Q_j=\alpha_j\mu_j` and :math:`S_j=\alpha_j\gamma_j`.

        Relative to the largest :math:`|Q|` and to :math:`\beta\|\phi\|^2`.
        """
        if self.size == 0:
            return 0.0
        idx = self.indices
        scale_q = max(float(np.max(np.abs(self.Q))), np.finfo(float).tiny)
        error_q = np.max(np.abs(self.Q[idx] - self.alpha[:, None] * self.mean)) / scale_q
        error_s = np.abs(self.S[idx] - self.alpha * self.well_determined) / (self.beta * self.problem.sqnorms[idx])
        return float(max(error_q, np.max(error_s)))

    # -- the three moves -----------------------------------------------------------------------------------

    def add(self, i: int, alpha: float, at_least: float = 0.0) -> bool:
        """Add function i with precision alpha (T&F A.2)."""
        beta, S, Q = self.beta, self.S, self.Q
        R, C, S_i, Q_i = self.R, self.C, S[i], Q[i].copy()
        inner, rho = self._append(i, alpha)  # φ_i = U inner + ρ u
        sigma_i = 1.0 / (alpha + S_i)
        mu_i = sigma_i * Q_i
        projected = beta * (R.T @ inner)  # β Φᵀ W φ_i
        spread = self.covariance @ projected
        outside = inner - R @ spread  # e_i in the old basis; its part along the new direction is ρ
        correlation = beta * (C.T @ outside)  # β φ_mᵀ e_i
        if rho > 0.0:
            correlation += beta * rho * self._correlations()[len(R)]
        grown = np.empty((self.size, self.size))
        grown[:-1, :-1] = self.covariance + sigma_i * spread[:, None] * spread  # T&F eq. 28
        grown[:-1, -1] = grown[-1, :-1] = -sigma_i * spread
        grown[-1, -1] = sigma_i
        self.covariance = grown
        self.mean = np.vstack([self.mean - spread[:, None] * mu_i, mu_i])  # T&F eq. 29
        if self._evidence is not None:
            brings = contribution(np.array(alpha), np.array(S_i), np.array(np.mean(Q_i**2)))
            self._evidence += self.problem.n_targets * float(brings)
        self._S = S - sigma_i * correlation**2  # T&F eq. 30
        self._Q = Q - correlation[:, None] * mu_i  # T&F eq. 31
        self.updates += 1
        return True

    def reestimate(self, j: int, alpha: float) -> bool:
        """Give the j-th function in the model another precision (T&F A.3)."""
        kappa = 1.0 / (self.covariance[j, j] + 1.0 / (alpha - self.alpha[j]))
        self._rank_one(j, kappa)
        self.alpha[j], self._evidence = alpha, None
        return True

    def delete(self, j: int) -> bool:
        """Take the j-th function out of the model (T&F A.4)."""
        self._rank_one(j, 1.0 / self.covariance[j, j])
        self._evidence = None
        keep = [k for k in range(self.size) if k != j]
        self.covariance = self.covariance[np.ix_(keep, keep)]
        self.mean = self.mean[keep]
        self._drop([j])
        return True

    def restrict(self, stays: NDArray[np.bool_], alpha: Array, beta: float, post: SmallPosterior | None = None) -> None:
        """Delete several functions at once, and give those that stay other precisions and another noise."""
        if not np.all(stays):
            self._drop(np.flatnonzero(~stays).tolist())
        self.set_hyperparameters(alpha, beta, post)

    def moved(self, alpha: Array, beta: float) -> ActiveSet:
        """A copy at other hyperparameters."""
        twin = self.copy()
        twin.set_hyperparameters(alpha, beta)
        return twin

    def restricted(self, stays: NDArray[np.bool_]) -> ActiveSet:
        """A copy with some of its functions only."""
        twin = self.copy()
        twin.restrict(stays, self.alpha[stays], self.beta)
        return twin

    def sweep(self, tol: float) -> int:
        """Re-estimate together all precisions that gain; none if that gains less than the best of them alone.

        Over the active set s and q follow from the posterior, so this costs one small factorisation.
        """
        s, q2 = self.leave_one_out()
        best, gain = best_moves(self.alpha, s, q2, self.problem.n_targets, self.problem.inclusion_cost)
        changed = (gain > tol) & np.isfinite(best)
        if np.sum(changed) < 2:
            return 0
        alpha = np.where(changed, best, self.alpha)
        post = self.posterior(alpha)
        if self.evidence(post, alpha) - self.evidence() < np.max(gain[changed]):
            return 0
        self.set_hyperparameters(alpha, self.beta, post)
        return int(np.sum(changed))

    def settled(self, tol: float, *, learn_noise: bool) -> ActiveSet:
        """At the joint maximum of all precisions and, where it is learned, of the noise: by the model of the loop."""
        part, here = self.problem.restrict(np.array(self.indices, dtype=np.intp)), list(range(self.size))
        begun = GaussianModel.weighing(Gram(part), here, self.alpha, self.beta, learn_noise, suffice=False)
        found = begun.settled(tol)
        return self.like(self.problem, [self.indices[k] for k in found.indices], found.alpha, beta=found.beta)

    def swapped(self, out: Iterable[int], into: Sequence[int], alpha: Sequence[float]) -> ActiveSet | None:
        """The model with other functions in the place of some, by single moves; None where one is refused."""
        after = self.copy()
        for j in sorted(out, reverse=True):
            after.delete(j)
        if not all(after.add(i, precision) for i, precision in zip(into, alpha, strict=True)):
            return None
        after.refresh()
        return after

    def recondition(self) -> None:
        """Refresh exactly."""
        self.refresh()

    def maintain(self) -> None:
        """Refresh exactly after many updates, or when they have drifted."""
        if self.updates >= _REFRESH_EVERY or (self.updates and self.drift() > _DRIFT):
            self.refresh()

    def extend(self, problem: GaussianProblem) -> None:
        """Continue on a larger dictionary whose first functions are the present ones."""
        held, old = self._correlations(), self.problem.n_functions
        grown = np.zeros((len(held), problem.n_functions))
        grown[:, :old] = held
        self._C, self.problem = grown, problem
        self.C[:, old:] = self.U.T @ problem.columns(np.arange(old, problem.n_functions))
        if self.fragile:
            self.refresh()
            return
        if self._S is None or self._Q is None:
            return
        fresh = self.R.T @ self.C[:, old:]
        s = self.beta * problem.sqnorms[old:] - self.beta**2 * np.einsum("am,am->m", fresh, self.covariance @ fresh)
        self._S = np.append(self._S, s)
        self._Q = np.vstack([self._Q, self.beta * (problem.projection[old:] - fresh.T @ self.mean)])

    def _rank_one(self, j: int, kappa: float) -> None:
        """Rank-one change of the posterior and of S, Q along weight j (T&F eqs 33-36, 38-41)."""
        S, Q, column = self.S, self.Q, self.covariance[:, j].copy()
        mu = self.mean[j].copy()
        correlation = self.beta * (self.C.T @ (self.R @ column))
        self.covariance = self.covariance - kappa * column[:, None] * column
        self.mean = self.mean - kappa * column[:, None] * mu
        self._S = S + kappa * correlation**2
        self._Q = Q + kappa * correlation[:, None] * mu
        self._post = None
        self.updates += 1
