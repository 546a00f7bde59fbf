"""Estimators that may be given a kernel matrix in the place of inputs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sklearn.base import BaseEstimator as Base
else:
    Base = object


class MayBePrecomputed(Base):
    """``kernel="precomputed"``: the columns of X belong to the training rows, as scikit-learn's tools must know."""

    kernel: Any

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.pairwise = self._precomputed
        return tags

    @property
    def _precomputed(self) -> bool:
        return isinstance(self.kernel, str) and self.kernel == "precomputed"
