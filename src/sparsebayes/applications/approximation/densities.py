"""Kernel density estimates as sums of kernels."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

import numpy as np
from scipy.stats import gaussian_kde
from sklearn.neighbors import KernelDensity

from sparsebayes.applications.approximation.expansion import Expansion, Source
from sparsebayes.applications.approximation.models import SmallKDE
from sparsebayes.applications.approximation.reading import confirm
from sparsebayes.basis import RBF, Callable, Kernel
from sparsebayes.typing import Array


@dataclass(frozen=True)
class DensityKernel:
    """A normalised kernel of scikit-learn's density estimator, as ``k(X, Z)``."""

    kernel: str
    bandwidth: float

    def __call__(self, X: Array, Z: Array) -> Array:
        """Values of the kernel at each z, on all rows of X."""
        one = KernelDensity(kernel=self.kernel, bandwidth=self.bandwidth).fit(np.zeros((1, X.shape[1])))
        return np.column_stack([np.exp(one.score_samples(X - z)) for z in Z])


def read_kernel_density(model: KernelDensity) -> Source:
    """A ``KernelDensity``; made small, it is one again."""
    if model.metric != "euclidean":
        raise ValueError(f"metric={model.metric!r} of this KernelDensity; supported is 'euclidean'")
    points = np.array(model.tree_.data, dtype=np.float64)
    n, d = points.shape
    given = model.tree_.sample_weight
    weights = np.full(n, 1.0) if given is None else np.array(given, dtype=np.float64)
    height, kernel = _kernel(model.kernel, float(model.bandwidth_), d)

    def build(expansion: Expansion) -> KernelDensity:
        settings = {**model.get_params(), "bandwidth": model.bandwidth_}
        return KernelDensity(**settings).fit(expansion.centres, sample_weight=expansion.weights[:, 0])

    source = Source(
        points, (kernel,), (height * weights / weights.sum())[None, :, None], np.zeros(1), build, mass=1.0 / height
    )
    return confirm(source, lambda X: np.exp(model.score_samples(X)))


def read_gaussian_kde(model: gaussian_kde) -> Source:
    """SciPy's estimate, whose Gaussians share one covariance matrix."""
    covariance = np.atleast_2d(np.asarray(model.covariance, dtype=np.float64))
    frame = np.asarray(np.linalg.inv(np.linalg.cholesky(covariance)), dtype=np.float64)
    points = np.asarray(model.dataset, dtype=np.float64).T @ frame.T
    height, kernel = _kernel("gaussian", 1.0, points.shape[1])
    height *= float(abs(np.linalg.det(frame)))
    weights = np.asarray(model.weights, dtype=np.float64)
    source = Source(
        points,
        (kernel,),
        (height * weights)[None, :, None],
        np.zeros(1),
        partial(SmallKDE, covariance=covariance),
        mass=1.0 / height,
        frame=frame,
    )
    return confirm(source, lambda X: model(np.linalg.solve(frame, X.T)))


def _kernel(name: str, bandwidth: float, n_features: int) -> tuple[float, Kernel]:
    """Height of the normalised kernel, and the kernel of height one; other kernels are normalised as they are."""
    if name != "gaussian":
        return 1.0, Callable(DensityKernel(name, bandwidth))
    height = (2.0 * np.pi * bandwidth**2) ** (-0.5 * n_features)
    if not 0.0 < height < np.inf:
        raise ValueError(
            f"a Gaussian of bandwidth {bandwidth:.3g} in {n_features} dimensions has a height of {height:.3g}: rescale "
            "the inputs"
        )
    return float(height), RBF(width=np.sqrt(2.0) * bandwidth)
