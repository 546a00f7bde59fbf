"""Which candidates, and how sure: ``inclusion_`` and ``credible_sets`` of a fitted estimator."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from importlib import import_module
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import check_is_fitted

from sparsebayes.estimators.task import FittedTo

Array = NDArray[np.float64]


class Explained:
    """Adds inclusion probabilities and credible sets, computed when they are first asked for."""

    _fitted_to: FittedTo | None = None
    _effects: Sequence[Any] | None = None
    _inclusion: Any = None

    @property
    def inclusion_(self) -> Array:
        """Probability that each candidate of the dictionary carries an effect, of shape (M,), or (K, M) for K outputs.

        Computed when it is first asked for, by :func:`sparsebayes.explain.inclusion` on the data of the fit.
        """
        return self._explain().inclusion

    def credible_sets(self, coverage: float = 0.95, min_abs_corr: float = 0.5) -> Any:
        """Sets of candidates, each of which holds one effect with at least this probability.

        Parameters
        ----------
        coverage : float, default=0.95
            Probability that an effect is there and that one of the set carries it.
        min_abs_corr : float, default=0.5
            Smallest absolute correlation of any two members of a set.

        Returns
        -------
        sparsebayes.explain.CredibleSets
            The best supported first; printable, and a pandas DataFrame by ``to_frame()``.
        """
        return self._explain().credible_sets(coverage, min_abs_corr)

    def to_inference_data(
        self, X: Any, y: ArrayLike, *, draws: int = 1000, random_state: int | np.random.Generator | None = 0
    ) -> Any:
        """Draws of the weights, outputs and predictions, for ArviZ.

        Parameters
        ----------
        X, y : array-like
            Rows with their targets: those of the fit, or others.
        draws : int, default=1000
            Independent draws from the posterior.
        random_state : int, Generator or None, default=0
            Seed.

        Returns
        -------
        arviz.InferenceData, or xarray.DataTree with ArviZ 1
            As by :func:`sparsebayes.export.to_inference_data`.
        """
        export = import_module("sparsebayes.export")  # a layer above
        return export.to_inference_data(self, X, y, draws=draws, random_state=random_state)

    def _explain(self) -> Any:
        check_is_fitted(self)
        if self._inclusion is None:
            if self._fitted_to is None:
                raise AttributeError(
                    f"this {type(self).__name__} does not hold the data that it was fitted to (it was saved or "
                    "copied, or learned from chunks, a device or a cluster, or from very many numbers): use "
                    "sparsebayes.explain.inclusion(model, X, y)"
                )
            data = self._fitted_to
            # Explanations are a layer above the estimators; they are fetched by name, and only where they are wanted.
            explain = import_module("sparsebayes.explain")
            with warnings.catch_warnings():
                # The rows were checked when they were fitted, and have lost their names since.
                warnings.filterwarnings("ignore", "X does not have valid feature names")
                self._inclusion = explain.inclusion(self, data.X, data.y, data.sample_weight)
        return self._inclusion
