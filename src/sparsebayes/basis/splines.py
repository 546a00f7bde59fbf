"""Splines at centres; the equations are those of the report on Tipping (2001), PHJ below."""

from __future__ import annotations

import numpy as np

from .base import Floats
from .kernels import Kernel, SmoothWidthKernel, squared_distances


class ThinPlateSpline(SmoothWidthKernel):
    """The thin-plate spline K(x, c) = ρ² log ρ with ρ = ‖(x − c)/width‖, zero at the centre.

    Parameters
    ----------
    width : float or (d,) array-like, default=1.0
        Positive; one for all inputs, or one for each.
    centres : None, int or (m, d) array-like, default=None
        All training rows, that many of them, or the centres themselves.
    """

    kind = "thin_plate_spline"

    def _evaluate(self, X: Floats, centres: Floats) -> Floats:
        values = squared_distances(self.scaled(X), self.scaled(centres))
        logs = np.zeros_like(values)
        np.log(values, out=logs, where=values > 0.0)
        values *= logs
        values *= 0.5  # ρ² log ρ = ½ ρ² log ρ²
        return values

    def _slope(self, X: Floats, centres: Floats) -> Floats:
        values = squared_distances(self.scaled(X), self.scaled(centres))
        logs = np.zeros_like(values)
        np.log(values, out=logs, where=values > 0.0)
        return -1.0 - logs  # dK/dρ² = ½(log ρ² + 1), and ρ² falls by twice the squared scaled difference


class LinearSpline(Kernel):
    """The linear spline of Tipping's sinc example, a product over the inputs.

    K(x, c) = Π_j [1 + x c + x c m − (x + c) m²/2 + m³/3] with m = min(x, c), each at input j.

    Parameters
    ----------
    centres : None, int or (m, d) array-like, default=None
        All training rows, that many of them, or the centres themselves.
    """

    kind = "linear_spline"

    def _evaluate(self, X: Floats, centres: Floats) -> Floats:
        values = np.ones((X.shape[0], centres.shape[0]))
        for x, c in zip(X.T[:, :, None], centres.T[:, None, :], strict=True):
            low = np.minimum(x, c)
            product = x * c
            values *= 1.0 + product + low * (product + low * (low / 3.0 - (x + c) / 2.0))  # PHJ eq. 22
        return values
