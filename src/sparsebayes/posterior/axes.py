r"""Principal axes of a covariance in feature space that few feature vectors span (Tipping 2001, sparse kernel PCA).

With :math:`\mathbf K_{aa}=\mathbf R^\top\mathbf R` for the kept (centred) feature vectors
:math:`\boldsymbol\Phi_a`, the vectors :math:`\boldsymbol\Phi_a^\top\mathbf R^{-1}` are orthonormal, and every axis in
their span is :math:`\boldsymbol\Phi_a^\top\mathbf R^{-1}\mathbf v` with a unit vector v.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from sparsebayes.inference.models.linalg import cholesky, inverse_upper
from sparsebayes.typing import Array, Index

AXES = ("sample", "model")

# Axes along which the data vary by less than this part of their largest variance are rounding.
_FLAT = 1e-12


@dataclass(frozen=True)
class FeatureAxes:
    r"""Orthonormal axes :math:`\boldsymbol\Phi_a^\top\mathbf a_k` in feature space.

    Attributes
    ----------
    coefficients : ndarray of shape (a, k)
        The vectors :math:`\mathbf a_k`.
    projections : ndarray of shape (N, k)
        Of the training rows.
    """

    coefficients: Array
    projections: Array

    @property
    def variances(self) -> Array:
        """Variance of the training rows along each axis."""
        return np.mean(self.projections**2, axis=0)

    @classmethod
    def of(cls, centred: Array, kept: Index, prior_variance: Array, which: str, count: int | None) -> FeatureAxes:
        r"""Leading axes, in descending order of variance.

        Parameters
        ----------
        centred : ndarray of shape (N, N)
            Centred kernel matrix.
        kept : ndarray of int, shape (a,)
            Kept rows.
        prior_variance : ndarray of shape (a,)
            Their :math:`w_i` in the covariance :math:`\sigma^2\mathbf I+\sum_i w_i\phi_i\phi_i^\top`.
        which : {"sample", "model"}
            Axes of the rows' own covariance within the span, or of the model covariance.
        count : int, optional
            How many; by default all.
        """
        factor = cholesky(centred[np.ix_(kept, kept)])
        basis = inverse_upper(factor)
        inside = centred[:, kept] @ basis
        sample, model = inside.T @ inside / len(inside), (factor * prior_variance) @ factor.T
        values, vectors = np.linalg.eigh(sample if which == "sample" else model)
        order = np.argsort(-values, kind="stable")
        order = order[values[order] > _FLAT * values[order[0]]][:count]
        vectors = vectors[:, order]
        projections = inside @ vectors
        # An eigenvector has no sign of its own: the largest projection is positive.
        largest = np.argmax(np.abs(projections), axis=0)
        sign = np.sign(projections[largest, np.arange(len(order))])
        return cls(basis @ (vectors * sign), projections * sign)


@dataclass(frozen=True)
class Projector:
    r"""Projections of new points, :math:`\mathbf k(\mathbf x)^\top\mathbf B - \mathbf c`.

    Centring a new point needs its product with the mean of all feature vectors.  The mean is either replaced by its own
    projection on the kept vectors, so that only these are needed, or kept whole.

    Attributes
    ----------
    rows : ndarray of int
        Training rows whose kernels are needed.
    coefficients : ndarray of shape (len(rows), k)
        The matrix B.
    shift : ndarray of shape (k,)
        The vector c.
    error : float
        Root mean square change of the training rows' projections against exact centring, relative to their size.
    """

    rows: Index
    coefficients: Array
    shift: Array
    error: float

    @classmethod
    def sparse(cls, kernel: Array, kept: Index, axes: FeatureAxes) -> Projector:
        """Only the kept rows are needed."""
        mean = np.linalg.lstsq(kernel[np.ix_(kept, kept)], kernel[kept].mean(axis=1), rcond=_FLAT)[0]
        coefficients = axes.coefficients - np.outer(mean, axes.coefficients.sum(axis=0))
        raw = kernel[:, kept] @ coefficients
        shift = raw.mean(axis=0)
        error = np.sum((raw - shift - axes.projections) ** 2) / np.sum(axes.projections**2)
        return cls(kept, coefficients, shift, float(np.sqrt(error)))

    @classmethod
    def exact(cls, kernel: Array, kept: Index, axes: FeatureAxes) -> Projector:
        """All rows are needed, for the mean."""
        n = len(kernel)
        coefficients = np.tile(-axes.coefficients.sum(axis=0) / n, (n, 1))
        coefficients[kept] += axes.coefficients
        return cls(np.arange(n, dtype=np.intp), coefficients, (kernel @ coefficients).mean(axis=0), 0.0)
