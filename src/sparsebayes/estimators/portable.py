"""State of an estimator for pickle, copy, joblib and skops."""

from __future__ import annotations

from typing import Any, ClassVar

from sklearn.base import BaseEstimator

from sparsebayes.inference import Status


class Portable(BaseEstimator):
    """An estimator whose statuses travel by name: skops rebuilds objects without arguments, which an enum refuses."""

    # What stays behind: the training data would make a file large, and give away what a model need not.
    _left_behind: ClassVar[tuple[str, ...]] = ("_fitted_to", "_effects", "_inclusion")

    def _complete(self) -> None:
        """Compute what the fit has put off, so that what travels is whole."""

    def __getstate__(self) -> dict[str, Any]:
        self._complete()
        state: dict[str, Any] = {name: value for name, value in vars(self).items() if name not in self._left_behind}
        status = state.get("status_")
        if status is not None:
            state["status_"] = [s.name for s in status] if isinstance(status, list) else status.name
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        status = state.get("status_")
        if status is not None:
            state = state | {"status_": [Status[s] for s in status] if isinstance(status, list) else Status[status]}
        vars(self).update(state)
