"""Calibration of error bars, put off until somebody asks for them."""

from __future__ import annotations

import copy
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sparsebayes.basis import Functions
from sparsebayes.design import DenseDesign, Design
from sparsebayes.estimators.dictionary import Dictionary
from sparsebayes.inference.fit.folds import Folds, Known, scattered
from sparsebayes.inference.models.problem import GaussianProblem
from sparsebayes.kernel_learning import Relearned
from sparsebayes.posterior import Calibration, GaussianPosterior
from sparsebayes.threads import one_thread

Array = NDArray[np.float64]
Index = NDArray[np.intp]

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
        return [Calibration.of(errors, found.noise, spread, found.weights) for errors in found.errors.T]
