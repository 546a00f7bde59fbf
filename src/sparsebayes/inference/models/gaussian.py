r"""A Gaussian model whose every step after the inner products of its functions costs nothing in rows.

With functions scaled to unit norm, :math:`\mathbf G=\boldsymbol\Phi^\top\mathbf W\boldsymbol\Phi` and
:math:`\mathbf b=\boldsymbol\Phi^\top\mathbf W\mathbf t`, the posterior of the functions in the model, the evidence and
all scores follow from the rows of :math:`\mathbf G` that belong to them (T&F eqs 6, 7, 24, 25):

.. math::

    \boldsymbol\Sigma^{-1} = \beta\mathbf G_{aa}+\mathbf A = \mathbf L\mathbf L^\top, \quad
    \boldsymbol\mu = \beta\boldsymbol\Sigma\mathbf b_a, \quad
    S_m = \beta - \beta^2\|\mathbf L^{-1}\mathbf g_m\|^2, \quad
    Q_m = \beta(b_m - \boldsymbol\mu^\top\mathbf g_m) .

A row is computed once, when its function first enters a model, and serves all models of all starts.  Forming G squares
the condition of the columns.  Where that loses digits that matter, the posterior is made of the columns' coordinates
in an orthonormal basis, which squares nothing and costs a few times more (``Posterior._from_functions``).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import get_blas_funcs, get_lapack_funcs, qr

from sparsebayes.inference.models.compiled import Library, Task, library
from sparsebayes.inference.models.evidence import (
    REACH,
    SHIFTS,
    Array,
    Scores,
    best_additions,
    gaussian_evidence,
    idle,
    joint_newton,
    sumsq,
)
from sparsebayes.inference.models.linalg import BLOCK, inverse_upper, log_det, padded, reflected, rotated
from sparsebayes.inference.models.problem import GaussianProblem, Index

_CHOLESKY, _INVERT = get_lapack_funcs(("potrf", "trtri"), (np.zeros(1),))
(_MULTIPLY,) = get_blas_funcs(("trmm",), (np.zeros(1),))

# Part of a function that the model must leave over for its score to be above the rounding of G, and of its own columns.
_RESOLVED = 1e-8
_RESOLVED_BY_FUNCTIONS = 1e-12
# Part of a function below which it lies in the span of others.
_SPANNED = 1e-13
# What rounding of the inner products may change an evidence by, as a part of it.
_ROUNDING = 1e-5
# Noise variance, as a part of the targets' mean square, below which residuals from inner products are mostly rounding.
_LEAST_NOISE = 1e-7
# Sweeps of the fixed point in one settling at most.
_SWEEPS = 40
# Newton steps of one settling at most, and lengths of a step that are tried one after the other.
_STEPS = 60
_LENGTHS = (1.0, 0.3, 0.1, 0.01)
# Steps of polishing, made where none moves a logarithm farther than this.
_POLISH, _NEAR = 3, 1e-3
# Over-relaxation of the fixed point: it creeps where functions overlap, so steps grow while they ascend.
_LONGER, _LONGEST, _SHORTER, _SHORTEST = 1.3, 1.9, 0.4, 0.05
# Range of a precision, of a function of unit norm beside targets of unit variance.
_RANGE = (1e-14, 1e14)


def _rules() -> Task:
    """What the compiled settling is told: these constants."""
    return Task(
        rounding=_ROUNDING,
        sweeps=_SWEEPS,
        longer=_LONGER,
        longest=_LONGEST,
        shorter=_SHORTER,
        shortest=_SHORTEST,
        steps=_STEPS,
        polish=_POLISH,
        near_by=_NEAR,
        reach=REACH,
    ).searching(_LENGTHS, SHIFTS)


_RULES = _rules()


class Gram:
    """Inner products of the functions of a problem with all others, row by row as they are asked for.

    Attributes
    ----------
    problem : GaussianProblem
        Where they come from.
    norms : ndarray of shape (M,)
        Norms of the functions, by which they are divided.
    projection : ndarray of shape (M, T)
        Inner products with the targets.
    mean_square, sumsq : float
        Mean square of the targets, the scale of the noise, and their sum of squares.
    """

    def __init__(self, problem: GaussianProblem) -> None:
        self.problem = problem
        self.eligible = problem.eligible
        self.norms = np.sqrt(np.where(problem.sqnorms > 0.0, problem.sqnorms, 1.0))
        self.projection = problem.projection / self.norms[:, None]
        self.n, self.n_targets = problem.n_effective, problem.n_targets
        self.mean_square = problem.mean_square
        self.sumsq = self.mean_square * self.n * self.n_targets
        self._slot = np.full(problem.n_functions, -1, dtype=np.intp)
        self._rows, self._used = np.empty((0, problem.n_functions)), 0
        self._spanned = np.zeros(problem.n_functions, dtype=bool)
        self._basis, self._coordinates = np.empty((len(problem.target), 0)), np.empty((0, problem.n_functions))

    def columns(self, functions: Index) -> Array:
        """Functions of unit norm on the whitened rows."""
        values = self.problem.columns(functions)
        values /= self.norms[functions]
        return values

    def rows(self, functions: Index) -> Array:
        """Rows of G, (k, M); a copy."""
        return self._rows[self._learned(functions)]

    def among(self, functions: Index) -> Array:
        """Inner products of functions with one another, (k, k)."""
        # Numbers of the entries, which NumPy takes several times as fast as pairs of rows and columns.
        starts = self._learned(functions)[:, None] * self._rows.shape[1]
        return self._rows.ravel().take(starts + functions)

    def between(self, functions: Index) -> Array:
        """Inner products of functions with one another, most of which may never be asked for again, (k, k)."""
        columns = self.columns(functions)
        return columns.T @ columns

    def coordinates(self, functions: Index) -> tuple[Array, Array]:
        """Coordinates of all functions and of the targets, (k, M) and (k, T), in an orthonormal basis.

        The basis spans these functions and all that were asked for before; it grows by a block of functions at a time.
        """
        fresh, known = functions[~self._spanned[functions]], self._basis.shape[1]
        for start in range(0, len(fresh), BLOCK):
            new = _orthonormal(self.columns(fresh[start : start + BLOCK]), self._basis)
            self._basis = np.hstack([self._basis, new])
        if len(fresh):
            rows = self.problem.correlate(self._basis[:, known:]).T / self.norms
            self._coordinates, self._spanned[fresh] = np.vstack([self._coordinates, rows]), True
        return self._coordinates, self._basis.T @ self.problem.target

    def _learned(self, functions: Index) -> Index:
        """Where the rows of these functions are, computed now where they are not known yet."""
        places = self._slot[functions]
        fresh = functions[places < 0]
        if len(fresh):
            used = self._used + len(fresh)
            if used > len(self._rows):
                grown = np.empty((max(used, 2 * len(self._rows), 32), self._rows.shape[1]))
                grown[: self._used] = self._rows[: self._used]
                self._rows = grown
            self._rows[self._used : used] = self.problem.correlate(self.columns(fresh)).T
            self._rows[self._used : used] /= self.norms
            self._slot[fresh] = np.arange(self._used, used)
            self._used = used
            places = self._slot[functions]
        return places


@dataclass(frozen=True, eq=False)
class Products:
    """What posteriors of some functions (a,) of unit norm are made from, at all precisions and noise levels.

    Attributes
    ----------
    suffice : bool
        Whether that is their inner products, and refused where rounding would decide; if not, it is the functions
        themselves, which takes longer.
    """

    data: Gram
    functions: Index
    suffice: bool = True

    @cached_property
    def gram(self) -> Array:
        """Inner products of the functions with one another, (a, a)."""
        return self.data.among(self.functions)

    @property
    def projection(self) -> Array:
        """Inner products of the functions with the targets, (a, T)."""
        return self.data.projection[self.functions]

    def restricted(self, stays: NDArray[np.bool_] | Index) -> Products:
        """Of some of the functions only."""
        return Products(self.data, self.functions[stays], self.suffice)

    @cached_property
    def root(self) -> tuple[Array, Array, Array]:
        r"""Q, R and :math:`\mathbf Q^\top\mathbf t` of :math:`\boldsymbol\Phi=\mathbf{QR}`, in coordinates."""
        values, targets = self.data.coordinates(self.functions)
        q, r = np.linalg.qr(values[:, self.functions])
        return q, r, q.T @ targets


@dataclass(frozen=True)
class SmallPosterior:
    r"""Posterior of the active weights at one :math:`(\boldsymbol\alpha, \beta)`, from their columns in factored form.

    ``root`` is upper triangular with :math:`\boldsymbol\Sigma` = root rootᵀ, and the mean is root times ``half``.
    """

    mean: Array
    half: Array
    root: Array
    log_det_precision: float
    residual_sumsq: float
    reflections: Sequence[Array] = ()

    @classmethod
    def of(cls, R: Array, z: Array, rest: float, alpha: Array, beta: float) -> SmallPosterior:
        r"""By reflections that turn :math:`(\sqrt\beta\,\mathbf R; \mathbf A^{1/2})` into a triangle.

        Nothing is squared: the condition number of the precision enters under a root, so that functions may be as
        nearly dependent as their columns can show.

        Parameters
        ----------
        R, z : ndarray of shape (u, a), (u, T)
            Coordinates of the active columns, a triangle with u ≤ a, and of the targets, in an orthonormal basis.
        rest : float
            Sum of squares of the targets outside it.
        alpha, beta : ndarray of shape (a,), float
            Hyperparameters.
        """
        a, scale = len(alpha), np.sqrt(beta)
        if not a:
            nothing = np.zeros((0, z.shape[1]))
            return cls(nothing, nothing, np.zeros((0, 0)), 0.0, rest + float(np.vdot(z, z)))
        triangle, reflections = reflected(padded(scale * R, a), np.sqrt(alpha))
        root, half = inverse_upper(triangle), rotated(reflections, padded(scale * z, a))
        mean = root @ half
        left = z - R @ mean
        return cls(mean, half, root, log_det(triangle), rest + float(np.vdot(left, left)), reflections)

    @cached_property
    def covariance(self) -> Array:
        r""":math:`\boldsymbol\Sigma`."""
        return self.root @ self.root.T

    def evidence(self, alpha: Array, beta: float, n: float) -> float:
        """Log evidence of n observations, at the hyperparameters that this is the posterior of."""
        return gaussian_evidence(self.residual_sumsq, self.mean, alpha, beta, self.log_det_precision, n)


@dataclass(frozen=True, eq=False)
class Posterior:
    r"""Posterior of some functions at one (α, β), and the objective there.

    Attributes
    ----------
    products : Products
        Of the functions.
    alpha, beta : ndarray of shape (a,), float
        Precisions of functions of unit norm, and inverse noise variance.
    inverse : ndarray of shape (a, a)
        :math:`\mathbf L^{-1}`, where :math:`\boldsymbol\Sigma^{-1}=\mathbf L\mathbf L^\top`.
    half : ndarray of shape (a, T)
        :math:`\mathbf L^{-1}\mathbf b`, which :math:`\beta\mathbf L^{-\top}` takes to the mean.
    mean : ndarray of shape (a, T)
        Posterior mean of the weights.
    residual_sumsq, log_evidence : float
        Sum of squared residuals, and the log evidence.
    rotation : sequence of ndarray or None
        Reflections that make :math:`\mathbf L^\top` of the functions themselves, where inner products were not enough.
    """

    products: Products
    alpha: Array
    beta: float
    inverse: Array
    half: Array
    mean: Array
    residual_sumsq: float
    log_evidence: float
    rotation: Sequence[Array] | None = None

    @classmethod
    def of(cls, products: Products, alpha: Array, beta: float) -> Posterior | None:
        """From inner products or, where these do not suffice, from the functions; None where rounding would decide."""
        made = cls._from_products if products.suffice or not len(alpha) else cls._from_functions
        return made(products, alpha, beta)

    @classmethod
    def _from_products(cls, products: Products, alpha: Array, beta: float) -> Posterior | None:
        r"""By Cholesky's factor of :math:`\beta\mathbf G+\mathbf A`; None where that is at the mercy of rounding.

        Errors of eps in the inner products change the evidence by about :math:`\beta\sum_j\mu_j^2` times that.
        """
        data, gram, projection = products.data, products.gram, products.projection
        precision = beta * gram
        precision.flat[:: len(alpha) + 1] += alpha
        factor, failed = _CHOLESKY(precision, lower=1, clean=1)  # as in C, so that both take the same way
        if failed:
            return None
        inverse = _INVERT(factor, lower=1)[0] if len(alpha) else factor
        half = inverse @ projection
        mean = inverse.T @ (beta * half)
        fit = data.sumsq - 2.0 * float(np.vdot(projection, mean)) + float(np.vdot(mean, gram @ mean))
        fit = max(fit, np.finfo(float).eps * data.sumsq)
        log_evidence = gaussian_evidence(fit, mean, alpha, beta, log_det(factor), data.n)
        if np.finfo(float).eps * beta * float(np.vdot(mean, mean)) > _ROUNDING * max(1.0, abs(log_evidence)):
            return None
        return cls(products, alpha, beta, inverse, half, mean, fit, log_evidence)

    @classmethod
    def _from_functions(cls, products: Products, alpha: Array, beta: float) -> Posterior | None:
        """From the coordinates of the functions in an orthonormal basis."""
        data, (_, r, c) = products.data, products.root
        rest = max(data.sumsq - float(np.vdot(c, c)), np.finfo(float).eps * data.sumsq)
        made = SmallPosterior.of(r, c, rest, alpha, beta)
        log_evidence = made.evidence(alpha, beta, data.n)
        inverse, half = made.root.T, made.half / beta
        return cls(products, alpha, beta, inverse, half, made.mean, made.residual_sumsq, log_evidence, made.reflections)

    @cached_property
    def variance(self) -> Array:
        r""":math:`\Sigma_{jj}`."""
        return np.einsum("ij,ij->j", self.inverse, self.inverse)

    @cached_property
    def covariance(self) -> Array:
        r""":math:`\boldsymbol\Sigma`."""
        return self.inverse.T @ self.inverse

    @cached_property
    def well_determined(self) -> Array:
        r""":math:`\gamma_j = 1-\alpha_j\Sigma_{jj}`."""
        return np.maximum(1.0 - self.alpha * self.variance, 0.0)

    @property
    def resolution(self) -> float:
        """Part of a function that must be left over for its score to be above rounding."""
        return _RESOLVED if self.rotation is None else _RESOLVED_BY_FUNCTIONS

    @cached_property
    def explained(self) -> Array:
        r""":math:`\mathbf L^{-1}\mathbf G_{a\cdot}`, (a, M)."""
        data = self.products.data
        if self.rotation is not None:
            q, _, _ = self.products.root
            values, _ = data.coordinates(self.products.functions)
            # Zeros stand below where functions are dependent, so that there are fewer directions.
            all_of_them = padded(q.T @ values[: len(q)], len(self.alpha))
            return rotated(self.rotation, all_of_them) / np.sqrt(self.beta)
        rows = data.rows(self.products.functions)
        # From the right with the transposes, which lie in memory as BLAS wants them: nothing is copied.
        return _MULTIPLY(1.0, self.inverse, rows.T, side=1, lower=1, trans_a=1, overwrite_b=1).T if len(rows) else rows

    def restricted(self, stays: NDArray[np.bool_]) -> Posterior | None:
        """Of some of the functions only."""
        return Posterior.of(self.products.restricted(stays), self.alpha[stays], self.beta)


def _orthonormal(columns: Array, basis: Array) -> Array:
    """An orthonormal basis of what columns of unit norm have outside the span of another one.

    Twice is enough (Kahan and Parlett) of both together: what is left of a column after its neighbours may be so small
    that the first pass has left some of ``basis`` in it.
    """
    for least in (_SPANNED, 0.0):
        found: Any = qr(columns - basis @ (basis.T @ columns), mode="economic", pivoting=True)
        columns = found[0][:, np.abs(np.diagonal(found[1])) > least]
    return columns


@dataclass(frozen=True, eq=False)
class GaussianModel:
    """Functions of unit norm with precisions and a noise level; a :class:`~sparsebayes.inference.search.climb.Model`.

    ``learn_noise`` says whether settling moves the noise too.
    """

    posterior: Posterior
    learn_noise: bool

    @classmethod
    def empty(cls, data: Gram, beta: float, learn_noise: bool) -> GaussianModel:
        """The model without functions."""
        return cls.weighing(data, [], np.zeros(0), beta, learn_noise)

    @classmethod
    def weighing(
        cls, data: Gram, indices: list[int], alpha: Array, beta: float, learn_noise: bool, *, suffice: bool = True
    ) -> GaussianModel:
        """The model of these functions, their precisions in the units of the functions; empty where it has none.

        It is made of the functions themselves where inner products do not, or need not, ``suffice``.
        """
        functions = np.array(indices, dtype=np.intp)
        for enough in (True, False) if suffice else (False,):
            products = Products(data, functions, enough)
            posterior = Posterior.of(products, alpha / data.norms[functions] ** 2, beta)
            if posterior is not None:
                return cls(posterior, learn_noise)
        return cls.empty(data, beta, learn_noise)

    # -- what is reported ----------------------------------------------------------------------------------

    @property
    def data(self) -> Gram:
        """Inner products, shared with all other models of the problem."""
        return self.posterior.products.data

    @property
    def functions(self) -> Index:
        """Functions in the model, (a,)."""
        return self.posterior.products.functions

    @property
    def indices(self) -> list[int]:
        """Functions in the model."""
        return self.functions.tolist()

    @property
    def size(self) -> int:
        """Number of functions in the model."""
        return len(self.functions)

    @property
    def problem(self) -> GaussianProblem:
        """The problem that is solved."""
        return self.data.problem

    @property
    def beta(self) -> float:
        """Inverse noise variance."""
        return self.posterior.beta

    @property
    def alpha(self) -> Array:
        """Precisions of the weights, in the units of the functions themselves."""
        return self.posterior.alpha * self.data.norms[self.functions] ** 2

    @property
    def mean(self) -> Array:
        """Posterior mean of the weights, (a, T)."""
        return self.posterior.mean / self.data.norms[self.functions, None]

    @property
    def covariance(self) -> Array:
        """Posterior covariance of the weights of one target."""
        norms = self.data.norms[self.functions]
        return self.posterior.covariance / norms / norms[:, None]

    def evidence(self) -> float:
        """Log evidence."""
        return self.posterior.log_evidence

    @property
    def objective(self) -> float:
        """Log evidence and log prior of the support."""
        return self._worth(self.posterior)

    @property
    def used(self) -> float:
        """Share of the rows that the functions use up, the sum of all γ over their number, each counted once."""
        return self.data.problem.share(float(self.posterior.well_determined.sum()))

    # -- the protocol of the loop --------------------------------------------------------------------------

    def scores(self) -> Scores:
        """Gains of all functions outside the model (T&F eqs 18-25)."""
        data, (s, q) = self.data, self._outside
        q2 = sumsq(q) / data.n_targets
        open_ = (q2 > s) & (s > self.posterior.resolution * self.beta) & data.eligible
        open_[self.functions] = False
        some = np.flatnonzero(open_)
        gain, alpha = np.zeros(len(s)), np.full(len(s), np.inf)
        best, gain[some] = best_additions(s[some], q2[some], data.n_targets, data.problem.inclusion_cost)
        low, high = self._range()
        alpha[some] = np.minimum(np.maximum(best, low), high)
        return Scores(gain, alpha)

    def overlaps(self, functions: Index) -> Array:
        """Cosines of functions outside the model, as far as the model does not explain them."""
        explained = self.posterior.explained[:, functions]
        left = self.beta * self.data.between(functions) - self.beta**2 * (explained.T @ explained)
        root = np.sqrt(np.maximum(self._outside[0][functions], self.posterior.resolution * self.beta))
        return np.abs(left) / root / root[:, None]

    def joined(self, functions: Index, alpha: Array, tol: float) -> GaussianModel | None:
        """With these functions more, roughly settled."""
        grown = np.concatenate([self.functions, functions])
        precisions = np.concatenate([self.posterior.alpha, alpha])
        products = Products(self.data, grown, self.posterior.products.suffice)
        compiled = library() if products.suffice else None
        if compiled is not None:
            return self._compiled(compiled, products, precisions, tol, closely=False)
        posterior = Posterior.of(products, precisions, self.beta)
        return None if posterior is None else GaussianModel(posterior, self.learn_noise)._relaxed(tol)

    def settled(self, tol: float) -> GaussianModel:
        """At the joint maximum of all precisions and the noise, by Newton's method."""
        here = self.posterior
        compiled = library() if here.products.suffice else None
        if compiled is None:
            return self._settled(tol)
        return self._compiled(compiled, here.products, here.alpha, tol, closely=True) or self

    @property
    def hides(self) -> bool:
        """Whether some functions are too near to those in the model for its posterior to tell what they would gain."""
        s, _ = self._outside
        hidden = self.data.eligible & (s <= self.posterior.resolution * self.beta)
        hidden[self.functions] = False
        return bool(hidden.any())

    def exactly(self) -> GaussianModel:
        """From the functions themselves: for where some others are too near to them for inner products to tell."""
        products = Products(self.data, self.functions, suffice=False)
        posterior = Posterior.of(products, self.posterior.alpha, self.beta)
        return self if posterior is None else GaussianModel(posterior, self.learn_noise)

    # -- starts --------------------------------------------------------------------------------------------

    def at_noise(self, beta: float, learn_noise: bool) -> GaussianModel:
        """The same functions and precisions at another noise level."""
        here = self.posterior
        moved = here if beta == here.beta else Posterior.of(here.products, here.alpha, beta)
        return GaussianModel(moved or here, learn_noise)

    def _empty(self) -> GaussianModel:
        """Without functions, all of the targets being noise where that is learned."""
        beta = 1.0 / self.data.mean_square if self.learn_noise else self.beta
        return GaussianModel.empty(self.data, beta, self.learn_noise)

    # -- settling ------------------------------------------------------------------------------------------
    # Roughly, while functions come and go, by MacKay's fixed point (``_relaxed``); closely, at the end, by Newton's
    # method (``_settled``), whose last steps are below rounding (``_polished``).  What does not pay leaves on the way.

    def _compiled(
        self, compiled: Library, products: Products, alpha: Array, tol: float, *, closely: bool
    ) -> GaussianModel | None:
        """What ``_settled`` or ``_relaxed`` make of these functions, by the same statements in C."""
        data, (low, high) = self.data, self._range()
        task = Task.from_buffer_copy(_RULES)
        task.learn_noise, task.tol = self.learn_noise, tol
        task.n, task.sumsq, task.cost = data.n, data.sumsq, data.problem.inclusion_cost
        task.low, task.high, task.most_certain = low, high, self._most_certain()
        found = compiled.settle(task, products.gram, products.projection, alpha, self.beta, closely=closely)
        if found is None:
            return None
        left = found[0]
        if closely and not len(left):
            return self._empty()
        products = products if len(left) == len(alpha) else products.restricted(left)
        return GaussianModel(Posterior(products, *found[1:]), self.learn_noise)

    # What follows is called where nothing is compiled, and for models that are made of their functions;
    # SPARSEBAYES_COMPILED=0 has it called always.

    def _settled(self, tol: float) -> GaussianModel:
        """Newton's method; what leaves the model on the way and where it ends."""
        here = self.posterior
        for _ in range(_STEPS):
            here = self._without_idle(here)
            if not len(here.alpha):
                return self._empty()
            new = self._newton(here)
            if new is None:
                break
            rise, here = self._worth(new) - self._worth(here), new
            if rise < tol:
                break
        return GaussianModel(self._polished(here), self.learn_noise)

    def _relaxed(self, tol: float) -> GaussianModel:
        r"""Roughly settled: MacKay's fixed point :math:`\alpha_j=\gamma_j/\mu_j^2`, over-relaxed, only upwards."""
        here, step = self.posterior, 1.0
        for _ in range(_SWEEPS):
            stays = ~self._idle(here)
            new = self._fixed_point(here, stays, step)
            rise = -np.inf if new is None else self._worth(new) - self._worth(here)
            if new is not None and rise > 0.0:
                here, step = new, min(_LONGER * step, _LONGEST)
                if rise < tol or not len(here.alpha):
                    break
            elif step < _SHORTEST:
                break
            else:
                step *= _SHORTER
        return GaussianModel(self._without_idle(here), self.learn_noise)

    def _fixed_point(self, here: Posterior, stays: NDArray[np.bool_], step: float) -> Posterior | None:
        """One sweep over the precisions of those that stay, and the noise (T&F step 9; Tipping 2001, PHJ eqs 12-13)."""
        data, well = self.data, np.maximum(here.well_determined, 1e-12)
        wanted = well / np.maximum(sumsq(here.mean) / data.n_targets, np.finfo(float).tiny)
        low, high = self._range()
        change = np.log(np.clip(wanted, low, high)) - np.log(here.alpha)
        alpha = np.clip(here.alpha * np.exp(step * change), low, high)
        beta = here.beta
        if self.learn_noise:
            free = max(data.n - float(well.sum()), np.finfo(float).eps * data.n)
            wanted_beta = data.n_targets * free / here.residual_sumsq
            beta = min(beta * (wanted_beta / beta) ** step, self._most_certain())
        products = here.products if stays.all() else here.products.restricted(stays)
        return Posterior.of(products, alpha[stays], beta)

    def _newton(self, here: Posterior) -> Posterior | None:
        """One safeguarded Newton step in all log precisions and the log noise; None where none ascends."""
        step = self._newton_step(here)
        for length in _LENGTHS:
            new = self._along(here, length * step, self._range())
            if new is not None and self._worth(new) > self._worth(here):
                return new
        return None

    def _newton_step(self, here: Posterior) -> Array:
        """Newton's step in all log precisions, and in the log noise where it is learned."""
        return joint_newton(
            here.mean, here.covariance, here.residual_sumsq, here.alpha, here.beta, self.data.n, self.learn_noise
        )

    def _polished(self, here: Posterior) -> Posterior:
        """Near the maximum, steps whose gain is below rounding: the result then depends on the data alone."""
        for _ in range(_POLISH):
            step = self._newton_step(here)
            if float(np.abs(step).max()) > _NEAR:
                break
            new = self._along(here, step, (0.0, np.inf))
            if new is None:
                break
            here = new
        return here

    def _along(self, here: Posterior, step: Array, within: tuple[float, float]) -> Posterior | None:
        """After this change of all log precisions, which stay in a range, and of the log noise."""
        alpha = np.clip(here.alpha * np.exp(step[: len(here.alpha)]), *within)
        beta = min(here.beta * float(np.exp(step[-1])), self._most_certain()) if self.learn_noise else here.beta
        return Posterior.of(here.products, alpha, beta)

    def _without_idle(self, here: Posterior) -> Posterior:
        """Without the functions that are best left out (T&F eq. 21: q² ≤ s, or not worth what they cost)."""
        while len(here.alpha):
            leaves = self._idle(here)
            if not leaves.any():
                break
            fewer = here.restricted(~leaves)
            if fewer is None or self._worth(fewer) < self._worth(here):
                # Together they were worth something: the one that matters least goes first.
                leaves = np.arange(len(leaves)) == np.argmin(np.where(leaves, sumsq(here.mean) * here.alpha, np.inf))
                fewer = here.restricted(~leaves)
            if fewer is None or self._worth(fewer) < self._worth(here):
                break
            here = fewer
        return here

    def _idle(self, here: Posterior) -> NDArray[np.bool_]:
        return idle(here.alpha, here.variance, here.well_determined, here.mean, self.data.problem.inclusion_cost)

    def _worth(self, posterior: Posterior) -> float:
        return posterior.log_evidence - self.data.problem.inclusion_cost * len(posterior.alpha)

    def _most_certain(self) -> float:
        """The largest inverse noise variance that is learned here, or the present one where that is larger."""
        suffice = self.posterior.products.suffice
        return max(self.beta, 1.0 / (_LEAST_NOISE * self.data.mean_square if suffice else self.problem.noise_floor))

    def _range(self) -> tuple[float, float]:
        """Precisions that are told from zero and infinity, in the units of the targets."""
        return _RANGE[0] / self.data.mean_square, _RANGE[1] / self.data.mean_square

    # -- what the model leaves over ------------------------------------------------------------------------

    @cached_property
    def _outside(self) -> tuple[Array, Array]:
        """S and Q of all functions (T&F eqs 24-25), which of those outside the model are s and q."""
        beta, explained = self.beta, self.posterior.explained
        s = beta - beta**2 * np.einsum("am,am->m", explained, explained)
        # G_{a·}ᵀμ with μ = Σβb and both factors of Σ
        q = beta * (self.data.projection - beta * (explained.T @ self.posterior.half))
        return s, q
