"""Error bars: what they are calibrated by, and how they are asked for."""

from __future__ import annotations

import copy
from dataclasses import dataclass, field, replace
from functools import partial
from numbers import Integral
from typing import Any, Self, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.sparse.linalg import LinearOperator
from scipy.stats import norm
from sklearn.base import clone
from sklearn.model_selection import PredefinedSplit, cross_validate
from sklearn.utils import get_tags
from sklearn.utils.validation import check_array, check_is_fitted

from sparsebayes.basis import Basis, Functions, Kernel
from sparsebayes.basis.arrays import is_elsewhere
from sparsebayes.design import DenseDesign, Design
from sparsebayes.estimators.checks import check_weights, choose
from sparsebayes.estimators.cluster import is_dask
from sparsebayes.estimators.dictionary import Dictionary
from sparsebayes.estimators.inputs import Inputs
from sparsebayes.estimators.rows import row_blocks
from sparsebayes.inference.fit.folds import Folds, Known, scattered
from sparsebayes.inference.models.active import ActiveSet
from sparsebayes.inference.models.problem import GaussianProblem
from sparsebayes.kernel_learning import Relearned
from sparsebayes.posterior import (
    Calibration,
    GaussianPosterior,
    PoissonPosterior,
    TrainingRows,
    added_variance,
    conformal_quantile,
    cross_interval,
    held_out_scores,
)
from sparsebayes.threads import one_thread
from sparsebayes.typing import Array, Index

# Rows that are enough to tell the quantiles of their errors to five per cent.
_ENOUGH = 400
# Parts that the rows are divided into.  Nothing is taken off for the rows that a search lacks: with five parts
# intervals for 50 % hold 57 on airfoil.
_PARTS = 10
# How far the noise is lowered for the second search on each part.
_KICK = 4.0
# What a search on a part settles for, in nats: with a hundredth intervals for 95 % hold the same within .005 on the
# smaller tables of the ledger (six draws of five), for about twice the time.
_SETTLED = 1.0
# Rows below which nothing is said.
_FEWEST = 20
# Share of the rows of the fit that its intervals for 95 % must hold, or nothing is said either.
_HELD = 0.75


def _own(design: Design) -> Design:
    """The design with values of its own, where they may be those that the caller holds."""
    return DenseDesign(design.columns(slice(None))) if isinstance(design, DenseDesign) else design


def _well_determined(posterior: GaussianPosterior, model: Known) -> float:
    r"""Number of weights that the data determine, :math:`\sum_m(1-\alpha_m\Sigma_{mm})`."""
    return float(np.sum(np.maximum(1.0 - model[1] * np.diagonal(posterior.covariance), 0.0)))


@dataclass
class LeftOutRows:
    """What is needed to search again on parts of the rows, without the values of all functions.

    The searches cost about as much as the fit, and many models are never asked for error bars: so they are made when
    these are first wanted, or before the model is saved or exported.

    Attributes
    ----------
    rows : Design or ndarray
        The training rows; where the columns of X are the functions, the dictionary on them.
    functions : Functions or None
        The dictionary without the intercept; None where ``rows`` has its values.
    bias : int or None
        Place of the intercept.
    eligible, centres : ndarray
        Functions that may enter, and the row on which each is centred.
    groups : list of list of int
        Which targets each problem has.
    targets : list of ndarray, each of shape (N, T)
        Targets of each problem, in units of their noise.
    models : list of tuples of ndarray
        Functions that each problem has kept, with precisions in these units.
    weights : ndarray of shape (N,)
        Sample weights.
    leverages : list of float
        Posterior variance of the output over the noise, on average over the training rows, of each problem.
    precisions : list of ndarray of shape (N,) or None
        Precisions of the rows in units of the noise of each problem, where they differ.
    cost : float
        What a function costs in the search.
    tuned : bool
        Whether parameters of the kernel, several, were learned from these rows.  They climb again on parts, from where
        they are.
    """

    rows: Any
    functions: Functions | None
    bias: int | None
    eligible: NDArray[np.bool_]
    centres: Index | None
    groups: list[list[int]]
    targets: list[Array]
    models: list[Known]
    leverages: list[float]
    weights: Array
    precisions: list[Array | None]
    cost: float
    tuned: bool = False
    found: list[Calibration] | None = field(default=None, init=False)

    @classmethod
    def of(
        cls,
        X: Any,
        dictionary: Dictionary,
        posteriors: list[GaussianPosterior],
        models: list[Known],
        y: Array,
        weights: Array,
        cost: float,
        *,
        shared: bool,
        precisions: list[Array | None],
        tuned: bool,
    ) -> LeftOutRows | None:
        """Of a fit, together where its targets share their support; None where it cannot be repeated on parts."""
        noise = np.sqrt([posterior.noise_variance for posterior in posteriors])
        offset = np.array([posterior.offset for posterior in posteriors])
        n_functions = dictionary.design.shape[1]
        repeatable = Folds.possible(GaussianProblem(dictionary.design, y, weights, np.ones(n_functions, dtype=bool)))
        if float(np.sum(weights)) < _FEWEST or not repeatable or not np.all(noise > 0.0):
            return None
        scaled = (y - offset) / noise
        n_targets = len(posteriors)
        # Of targets that share their support a constant one has none, and is no row that was left out.
        together = [k for k, posterior in enumerate(posteriors) if shared and len(posterior.mean)]
        groups = [[k] for k in range(n_targets) if k not in together]
        groups = [together, *groups] if together else groups
        return cls(
            # Copies: the caller may write into X, on whose rows functions are centred too, or which is the design.
            np.array(X) if dictionary.functions is not None else _own(dictionary.design),
            copy.deepcopy(dictionary.functions),
            dictionary.bias,
            dictionary.eligible,
            dictionary.centre_rows(),
            groups,
            [scaled[:, group] for group in groups],
            [(models[k][0], models[k][1] * noise[k] ** 2) for k, *_ in groups],
            [_well_determined(posteriors[k], models[k]) / float(np.sum(weights)) for k, *_ in groups],
            weights,
            [precisions[group[0]] for group in groups],
            cost,
            tuned,
        )

    def calibrations(self) -> list[Calibration]:
        """One for each target; the rows are given back once they are known."""
        if self.found is None:
            with one_thread():
                design = self._design()
                each = zip(self.targets, self.models, self.leverages, self.precisions, strict=True)
                found = [one for problem in each for one in self._calibrate(design, *problem)]
                self.found = [found[k] for k in np.argsort([k for group in self.groups for k in group])]
            self.rows = self.functions = self.centres = None
            self.targets, self.models, self.leverages, self.precisions = [], [], [], []
        return self.found

    def _design(self) -> Design:
        """Values of all functions."""
        if self.functions is None:
            return self.rows
        values = self.functions.evaluate(self.rows)
        return DenseDesign(values if self.bias is None else np.insert(values, self.bias, 1.0, axis=1))

    def _calibrate(
        self, design: Design, t: Array, model: Known, leverage: float, precisions: Array | None
    ) -> list[Calibration]:
        """Calibrations of targets with one support, in units of their noise."""
        problem = GaussianProblem(
            design, t, self.weights, self.eligible, self.bias, centres=self.centres, inclusion_cost=self.cost
        )
        problem = problem if precisions is None else problem.precise(precisions)
        size = len(model[0])
        if problem.mean_square == 0.0 or size == 0:  # where nothing was chosen there is no optimism
            return [Calibration()] * problem.n_targets
        again = Relearned(self.rows, self.functions, self.bias) if self.tuned and self.functions is not None else None
        found = Folds(
            problem,
            _PARTS,
            _ENOUGH,
            _KICK,
            fold=scattered(problem, _PARTS),
            whole=model,
            reshape=again,
            tol=_SETTLED,
        ).left_out(1.0, size)
        # A single search on fewer rows keeps other numbers of functions than the fit, and is as much more or less
        # certain everywhere: how certain it is of a row beside others is what can be carried over.
        spread = found.spread * leverage / np.maximum(found.leverage, np.finfo(float).tiny)
        each = [
            replace(Calibration.of(errors, found.noise, spread, found.weights), leverage=leverage)
            for errors in found.errors.T
        ]
        # A model is nearer to the rows that it was fitted to than to others: bars that miss many of these come from
        # searches on parts that found nothing like it: where most targets are zero empty models meet them exactly.
        active = ActiveSet.from_model(problem, model[0].tolist(), model[1], 1.0)
        values = design.columns(model[0])
        errors = t - values @ active.mean
        spread = np.maximum(
            np.einsum("na,na->n", values @ active.covariance, values), 0.0
        )  # rounding may take it below
        held = [
            one.share_held(mine, problem.relative_noise, spread, problem.counts)
            for one, mine in zip(each, errors.T, strict=True)
        ]
        return [one if share >= _HELD else Calibration() for one, share in zip(each, held, strict=True)]


UNCERTAINTIES = ("calibrated", "posterior", "augmented", "conformal")
# Coverage at which a conformal interval is made into a standard deviation.
_COVERAGE = 0.95
# Test points whose functions are put on the training rows at once.
_BLOCK = 1000
# Decimals to which the functions of copies of a row agree.
_DECIMALS = 9


def localised_kernel(basis: Basis | None) -> Kernel | None:
    """The first term of a basis whose functions vanish far from their centres."""
    terms = () if basis is None else basis._terms()
    return next((term for term in terms if isinstance(term, Kernel) and term.localised), None)


class ErrorBars(Inputs):
    """Predictions with error bars."""

    likelihood: str
    _posteriors: list[GaussianPosterior | PoissonPosterior]
    _single: bool
    _training: TrainingRows | None
    _kernel: Kernel | None
    _scores: Array | None
    _score_counts: Array | None
    # Fits without one fold of the rows each, and the fold of every row, where calibrate() was asked for them.
    _refits: list[Any] | None = None
    _fold: Index | None = None
    # One for each target; None where error bars are the posterior's (models from before there were others, too).
    _calibration: LeftOutRows | list[Calibration] | None = None

    def predict(self, X: Any, return_std: bool = False, uncertainty: str = "calibrated") -> Array | tuple[Array, Array]:
        """Predictive mean and, on request, standard deviation.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            New inputs.
        return_std : bool
            Also return the standard deviation of a new *observation*: the noise is included.
        uncertainty : {"calibrated", "posterior", "augmented", "conformal"}
            Where the standard deviation comes from: the posterior, its two parts, of the noise and of the output,
            multiplied by ``noise_scale_`` and ``spread_scale_``, such that 1.96 of them either side hold 95 % of rows
            that searches on parts of the data had left out, near the others and far from them; the posterior alone
            (Tipping 2001, eq. 15); the posterior with a function added at each new input, so that it grows away from
            the data (localised kernels); or the scores of rows not seen (see :meth:`calibrate`), as half the width of
            the 95 % interval over 1.96.  The mean is the same for all four.

        Returns
        -------
        mean : ndarray of shape (n_samples,) or (n_samples, n_targets)
        std : ndarray of the same shape, only with ``return_std=True``
        """
        choose("uncertainty", uncertainty, UNCERTAINTIES)
        check_is_fitted(self)
        width = None if self._single else len(self._posteriors)
        if not return_std:
            return self._map(X, self._means, width)
        if not (is_dask(X) or is_elsewhere(X)):
            return self._predict(self._values(X), X, uncertainty)
        if uncertainty == "augmented":
            raise ValueError("uncertainty='augmented' needs the training rows here; pass X as a NumPy array")
        if uncertainty == "conformal" and self._refits is not None:
            raise ValueError("uncertainty='conformal' asks the fits without each fold; pass X as a NumPy array")
        if is_dask(X):
            both = [self._map(X, partial(self._one, uncertainty=uncertainty, which=k), width) for k in (0, 1)]
            return both[0], both[1]
        return self._map(X, lambda values: self._predict(values, X, uncertainty), width)

    def _one(self, values: Array, uncertainty: str, which: int) -> Array:
        """Mean or standard deviation."""
        return self._predict(values, None, uncertainty)[which]

    def _means(self, values: Array) -> Array:
        return self._shaped([posterior.predict(values) for posterior in self._posteriors])

    def _predict(self, values: Array, X: Any, uncertainty: str) -> tuple[Array, Array]:
        """Means and standard deviations from the values of the kept functions."""
        mean = self._means(values)
        if uncertainty == "conformal":
            deviations = 2.0 * norm.ppf(0.5 + 0.5 * _COVERAGE)
            bars = [(high - low) / deviations for low, high in self._conformal(X, values, _COVERAGE)]
        elif uncertainty == "augmented":
            further = self._added_variance(X, values)
            bars = [p.standard_deviation(values, v) for p, v in zip(self._gaussian(), further, strict=True)]
        elif uncertainty == "calibrated" and self._calibration is not None:
            both = zip(self._calibrations(), self._gaussian(), strict=True)
            bars = [c.standard_deviation(p, values) for c, p in both]
        else:
            bars = [p.standard_deviation(values) for p in self._posteriors]
        return mean, self._shaped(bars)

    def predict_interval(self, X: Any, coverage: float = 0.95, uncertainty: str = "calibrated") -> tuple[Array, Array]:
        """Central intervals of new observations.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            New inputs.
        coverage : float
            Probability that an observation lies inside.
        uncertainty : {"calibrated", "posterior", "augmented", "conformal"}
            As in :meth:`predict`; calibrated intervals have the shape of the errors of rows left out as well as their
            size.

        Returns
        -------
        low, high : ndarray of shape (n_samples,) or (n_samples, n_targets)
            Infinite where a conformal interval of this coverage needs more rows.
        """
        choose("uncertainty", uncertainty, UNCERTAINTIES)
        if not 0.0 < coverage < 1.0:
            raise ValueError(f"coverage={coverage!r}: expected a number between 0 and 1")
        values = self._values(X)
        if uncertainty == "conformal":
            ends = self._conformal(X, values, coverage)
        elif uncertainty == "augmented":
            further = self._added_variance(X, values)
            ends = [p.interval(values, coverage, v) for p, v in zip(self._gaussian(), further, strict=True)]
        elif uncertainty == "calibrated" and self._calibration is not None:
            both = zip(self._calibrations(), self._gaussian(), strict=True)
            ends = [c.interval(p, values, coverage) for c, p in both]
        else:
            ends = [p.interval(values, coverage) for p in self._posteriors]
        return self._shaped([low for low, _ in ends]), self._shaped([high for _, high in ends])

    def sample_y(
        self, X: Any, n_samples: int = 1, random_state: int | np.random.Generator | None = 0, noise: bool = True
    ) -> Array:
        """Draw from the posterior, whose spread ``std_scale_`` has no part in.

        Parameters
        ----------
        X : array-like of shape (n_samples_X, n_features)
            Inputs.
        n_samples : int
            Number of draws, each of one whole function.
        random_state : int, Generator or None
            Seed.
        noise : bool
            Draw new observations (default), or the model's output without noise.

        Returns
        -------
        ndarray of shape (n_samples_X, n_samples) or (n_samples_X, n_targets, n_samples)
        """
        values = self._values(X)
        rng = np.random.default_rng(random_state)
        draws = np.stack([p.sample(values, n_samples, rng, noise=noise) for p in self._posteriors], axis=1)
        return draws[:, 0] if self._single else draws

    def log_density(self, X: Any, y: ArrayLike, uncertainty: str = "calibrated") -> Array:
        """Log predictive density of each observation, summed over several targets; of a regular one with outliers.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Inputs.
        y : array-like of shape (n_samples,) or (n_samples, n_targets)
            Observations.
        uncertainty : {"calibrated", "posterior"}
            As in :meth:`predict_interval`.

        Returns
        -------
        ndarray of shape (n_samples,)
        """
        choose("uncertainty", uncertainty, UNCERTAINTIES[:2])
        values = self._values(X)
        targets = self._targets(y, len(values))
        if uncertainty == "posterior" or self._calibration is None:
            return np.sum([p.log_density(values, t) for p, t in zip(self._posteriors, targets.T, strict=True)], axis=0)
        each = zip(self._calibrations(), self._gaussian(), targets.T, strict=True)
        return np.sum([c.log_density(p, values, t) for c, p, t in each], axis=0)

    def predict_noise(self, X: Any) -> Array:
        """Standard deviation of the noise alone: how far observations scatter about a mean that were known exactly.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            New inputs.

        Returns
        -------
        ndarray of shape (n_samples,) or (n_samples, n_targets)
            The same everywhere unless ``noise_varies_``; for Student's t its scale.  ``std_scale_`` has no part in it.
        """
        if self._as_fitted.likelihood == "poisson":
            raise ValueError("predict_noise: counts (likelihood='poisson') have no noise but that of their rate")
        values = self._values(X)
        return self._shaped([np.broadcast_to(np.sqrt(p.noise(values)), len(values)).copy() for p in self._gaussian()])

    @property
    def std_scale_(self) -> float | Array:
        """What the posterior's standard deviation is multiplied by, typically: one factor for each target."""
        return self._factors([calibration.std_scale for calibration in self._calibrations()])

    @property
    def noise_scale_(self) -> float | Array:
        """What the noise's part of the standard deviation is multiplied by, one factor for each target."""
        return self._factors([calibration.noise_scale for calibration in self._calibrations()])

    @property
    def spread_scale_(self) -> float | Array:
        """What the part of the model's output is multiplied by, one factor for each target."""
        return self._factors([calibration.spread_scale for calibration in self._calibrations()])

    def calibrate(self, X: Any, y: ArrayLike, sample_weight: ArrayLike | None = None, folds: int | None = None) -> Self:
        """Learn the width of conformal intervals, from rows that were not used for fitting or by fits without them.

        Without it ``uncertainty="conformal"`` rests on the training rows, each left out of the posterior but not of the
        choice of the functions.  With it the coverage is guaranteed: on rows that were not used for fitting what is
        asked for, c; by fits without each fold (CV+) about c, and 2c - 1 however badly the model fits, less what few
        rows take off (``posterior/conformal.py``).

        Parameters
        ----------
        X, y : array-like
            Rows that were not used for fitting; with ``folds``, the training rows.
        sample_weight : array-like of shape (n_samples,), optional
            A weight of k is exactly k copies of the row.
        folds : int, optional
            Fit again as often, each time without one of so many parts of the rows, chosen at random, copies of a row
            together: the same model, whatever its parameters have been set to since.  The fits are kept with the model;
            a new observation is predicted by all of them, and its interval need not be centred on the prediction.
        """
        values = self._values(X)
        targets = self._targets(y, len(values))
        counts = check_weights(sample_weight, len(values))
        self._gaussian()
        self._refits = self._fold = None
        if folds is None:
            self._scores, self._score_counts = self._held_out(values, targets), counts
            return self
        fitted = self._as_fitted
        if get_tags(fitted).input_tags.pairwise:
            raise ValueError("folds: rows of a precomputed kernel cannot be left out; calibrate on rows not seen")
        if isinstance(X, LinearOperator):
            raise ValueError("folds: rows of a LinearOperator cannot be left out; calibrate on rows not seen")
        found = cross_validate(
            clone(fitted),
            X,
            y,
            cv=_apart(values, targets, folds),
            params=None if sample_weight is None else {"sample_weight": counts},
            return_estimator=True,
            return_indices=True,
            error_score=cast("Any", "raise"),
        )
        scores, fold = np.empty(targets.shape), np.empty(len(targets), dtype=np.intp)
        for k, (refit, out) in enumerate(zip(found["estimator"], found["indices"]["test"], strict=True)):
            scores[out], fold[out] = refit._held_out(refit._values(X), targets)[out], k
            refit._store_no_rows()  # what these are for is done
        self._scores, self._score_counts, self._refits, self._fold = scores, counts, found["estimator"], fold
        return self

    # -- parts ---------------------------------------------------------------------------------------------

    def _calibrations(self) -> list[Calibration]:
        """What the posteriors' error bars lack, found when it is first asked for."""
        check_is_fitted(self)
        if self._calibration is None:
            return [Calibration()] * len(self._posteriors)
        return self._calibration if isinstance(self._calibration, list) else self._calibration.calibrations()

    def _complete(self) -> None:
        if self._calibration is not None:
            self._calibration = self._calibrations()

    def _factors(self, each: list[float]) -> float | Array:
        return each[0] if self._single else np.array(each)

    def _shaped(self, columns: list[Array]) -> Array:
        return columns[0] if self._single else np.column_stack(columns)

    def _targets(self, y: ArrayLike, n: int) -> Array:
        targets = check_array(y, ensure_2d=False, dtype="float64", input_name="y")
        targets = targets.reshape(len(targets), -1)
        if targets.shape != (n, len(self._posteriors)):
            raise ValueError(f"y has shape {np.shape(y)}: expected {n} rows and {len(self._posteriors)} target(s)")
        return targets

    def _gaussian(self) -> list[GaussianPosterior]:
        """Posteriors with a noise level."""
        if not all(isinstance(posterior, GaussianPosterior) for posterior in self._posteriors):
            raise ValueError(
                f"uncertainty: likelihood={self._as_fitted.likelihood!r} has uncertainty='posterior' only, the other "
                "kinds need residuals with a common scale"
            )
        return cast("list[GaussianPosterior]", self._posteriors)

    def _held_out(self, values: Array, targets: Array) -> Array:
        """Scores of rows that had no part in the fit."""
        each = zip(self._gaussian(), targets.T, strict=True)
        return np.column_stack([held_out_scores(p, values, t) for p, t in each])

    def _conformal(self, X: Any, values: Array, coverage: float) -> list[tuple[Array, Array]]:
        """Ends of conformal intervals of every target."""
        posteriors, counts = self._gaussian(), self._score_counts
        if self._scores is None or counts is None:
            raise ValueError(
                "uncertainty='conformal': the model has no scores, because its fit kept no rows; call calibrate(X, y) "
                "first"
            )
        if self._refits is not None and self._fold is not None:
            both = [refit._predict(refit._values(X), X, "posterior") for refit in self._refits]
            means, stds = (np.stack(some).reshape(len(both), len(values), -1) for some in zip(*both, strict=True))
            ends = [np.empty((2, len(values))) for _ in posteriors]
            for k, scores in enumerate(self._scores.T):
                for part in row_blocks(len(values), _BLOCK):
                    ends[k][:, part] = cross_interval(
                        means[:, part, k], stds[:, part, k], scores, counts, self._fold, coverage
                    )
            return [(low, high) for low, high in ends]
        found = []
        for scores, p in zip(self._scores.T, posteriors, strict=True):
            mean, half = p.predict(values), conformal_quantile(scores, counts, coverage) * p.standard_deviation(values)
            found.append((mean - half, mean + half))
        return found

    def _added_variance(self, X: Any, values: Array) -> list[Array]:
        """Variance that a function at each new input adds, for every target."""
        posteriors = self._gaussian()
        if self._training is None or self._kernel is None:
            raise ValueError(
                "uncertainty='augmented' adds a function at each new input, which needs a localised kernel (RBF, "
                "Laplacian or Cauchy) and the training rows, which are kept by a fit on an array in memory only; use "
                "uncertainty='posterior', or 'conformal' (after calibrate(X, y) where rows were not kept)"
            )
        inputs, rows = np.asarray(self._check_new(X), dtype=np.float64), self._training
        training = self._functions.evaluate(rows.X) if self._functions is not None else np.zeros((len(rows.X), 0))
        further = [np.empty(len(inputs)) for _ in posteriors]
        for start in range(0, len(inputs), _BLOCK):
            part = slice(start, start + _BLOCK)
            added = self._kernel.at(inputs[part]).evaluate(rows.X)
            for k, posterior in enumerate(posteriors):
                prior = max(float(rows.variance[k]), posterior.noise_variance)
                further[k][part] = added_variance(posterior, values[part], training, added, rows.weights[:, k], prior)
        return further


def _apart(values: Array, targets: Array, folds: int) -> PredefinedSplit:
    """Parts of the rows, dealt at random, those with the same values of all functions and the same targets together."""
    told_by = np.column_stack([targets, np.round(values, _DECIMALS)])
    rank = np.unique(told_by, axis=0, return_inverse=True)[1].reshape(-1)
    different = int(np.max(rank)) + 1
    if not isinstance(folds, Integral) or not 2 <= folds <= different:
        raise ValueError(f"folds={folds!r}: expected a number from 2 to that of the different rows, {different}")
    return PredefinedSplit(np.random.default_rng(0).permutation(different)[rank] % folds)
