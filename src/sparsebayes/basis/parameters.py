"""What can be learned about a kernel: positive magnitudes, in their logarithms, with derivatives."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Parameter:
    r"""One magnitude :math:`\theta` of a kernel; it is learned as :math:`\log\theta`, its sign stays.

    Attributes
    ----------
    name : str
        As in ``set_params``, with the input in brackets where there is one for each: ``"rbf__width[2]"``.
    value : float
        Present magnitude.
    feature : int or None
        The input that it scales; None where it belongs to all of them.
    length : int
        1 for a length in the units of the inputs, -2 for the factor of a product of two inputs, 0 for a number without
        units: what makes priors and limits free of scale.
    """

    name: str
    value: float
    feature: int | None
    length: int

    def prefixed(self, term: str) -> Parameter:
        """The same parameter of a term of a sum."""
        return replace(self, name=f"{term}__{self.name}")


class Learnable(ABC):
    r"""A kernel :math:`K(x, c)` with magnitudes :math:`\theta_p` that have derivatives.

    The derivative is a product, :math:`\partial K/\partial\log\theta_p = K'(x, c)\,u_p(x, c)`, so that the common
    factor is computed once for all p.
    """

    @abstractmethod
    def magnitudes(self, n_features: int) -> list[Parameter]:
        """Its parameters at their present values."""

    @abstractmethod
    def with_magnitudes(self, values: Sequence[float], n_features: int) -> Self:
        """The kernel with other magnitudes, in the same order."""

    @abstractmethod
    def per_input(self, n_features: int) -> Self:
        """The kernel with one scale for each input instead of one for all."""

    @abstractmethod
    def _slope(self, X: Floats, centres: Floats) -> Floats:
        """The common factor K' of all derivatives, (n, m)."""

    @abstractmethod
    def _partial(self, X: Floats, centres: Floats, parameter: Parameter) -> Floats:
        """The factor u of one derivative, (n, m)."""

    def derivative(self, X: Floats, centres: Floats, parameter: Parameter) -> Floats:
        r""":math:`\partial K(x_i, c_m)/\partial\log\theta`, (n, m)."""
        return self._slope(X, centres) * self._partial(X, centres, parameter)

    def pullback(self, X: Floats, centres: Floats, gradient: Floats) -> Floats:
        r""":math:`\sum_{im} G_{im}\,\partial K(x_i, c_m)/\partial\log\theta_p` for every p."""
        weighted = gradient * self._slope(X, centres)
        return np.array(
            [float(np.vdot(weighted, self._partial(X, centres, p))) for p in self.magnitudes(X.shape[1])], dtype=float
        )


def broadcast_scale(value: Any, n_features: int) -> list[float]:
    """One scale for each input, from one for all or from themselves."""
    return np.broadcast_to(np.asarray(value, dtype=np.float64), (n_features,)).tolist()


def scale_parameters(name: str, value: Any, length: int) -> list[Parameter]:
    """The parameters of a scale that is one number, or one for each input."""
    array = np.abs(np.asarray(value, dtype=np.float64))
    if array.ndim == 0:
        return [Parameter(name, float(array), None, length)]
    return [Parameter(f"{name}[{j}]", float(v), j, length) for j, v in enumerate(array)]
