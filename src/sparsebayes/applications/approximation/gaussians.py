r"""Integrals of products of Gaussians, in closed form.

.. math::

    \int \prod_j e^{-\eta_j(x_j-c_j)^2}\,e^{-\eta'_j(x_j-c'_j)^2}\,d\mathbf x
    = \prod_j \sqrt{\frac{\pi}{\eta_j+\eta'_j}}\; e^{-\frac{\eta_j\eta'_j}{\eta_j+\eta'_j}(c_j-c'_j)^2}
"""

from __future__ import annotations

import numpy as np

from sparsebayes.applications.approximation.expansion import Source
from sparsebayes.basis import Kernel
from sparsebayes.basis.kernels import squared_distances
from sparsebayes.design import MomentDesign
from sparsebayes.typing import Array

# Rounding of the source's own norm may reach this fraction of what the noise allows.
_ROUNDING = 1e-2


def precision(kernel: Kernel, n_features: int) -> Array:
    r""":math:`\eta_j = 1/\mathrm{width}_j^2` of a Gaussian kernel."""
    width = np.asarray(kernel.get_params()["width"], dtype=np.float64)
    return np.broadcast_to(width**-2.0, (n_features,))


def products(first: Array, A: Array, second: Array, B: Array, log_factor: float = 0.0) -> Array:
    r"""Integrals of the products of Gaussians of precision ``first`` at A with those of precision ``second`` at B.

    They are multiplied by the exponential of ``log_factor``, here so that it can balance what alone would overflow.
    """
    scale = np.sqrt(first * second / (first + second))
    log_height = log_factor + 0.5 * float(np.sum(np.log(np.pi / (first + second))))
    return np.exp(log_height - squared_distances(A * scale, B * scale))


def gaussian_moments(source: Source, places: Array, log_density: float, noise: float) -> MomentDesign:
    r"""Moments of all kernels at these places under the likelihood :math:`e^{-\rho/(2\sigma^2)\int(y-f)^2}`.

    Parameters
    ----------
    source : Source
        The function f, a sum of Gaussians.
    places : ndarray of shape (m, d)
        Where candidates stand.
    log_density : float
        :math:`\log\rho`.
    noise : float
        :math:`\sigma`, to judge whether rounding matters.
    """
    n, d = source.points.shape
    etas = [precision(kernel, d) for kernel in source.kernels]
    weights = np.vstack(list(source.weights))

    def gram(A: Array, B: Array) -> Array:
        return np.block([[products(first, A, second, B, log_density) for second in etas] for first in etas])

    own = gram(source.points, source.points)
    tt = np.einsum("it,it->t", weights, own @ weights)
    size = np.abs(weights)
    rounding = np.finfo(float).eps * float(np.max(np.einsum("it,it->t", size, own @ size)))
    if rounding > _ROUNDING * n * noise**2:
        raise ValueError(
            f"noise={noise:.3g} is below what the source's weights resolve: they cancel, and their integrals are "
            f"exact to about {np.sqrt(rounding / n):.1g} only; pass points= to compare on points, or a larger noise"
        )
    same = places is source.points
    G = own if same else gram(places, places)
    b = own @ weights if same else gram(places, source.points) @ weights
    return MomentDesign(G, b, np.maximum(tt, 0.0), n)
