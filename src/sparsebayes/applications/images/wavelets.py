r"""Orthonormal wavelets and random projections, as linear operators.

A signal :math:`x = \boldsymbol\Psi w` with few non-zero wavelet coefficients :math:`w` can be found from noisy
projections :math:`t = \mathbf R x + \epsilon`, fewer than it has samples: the dictionary is
:math:`\boldsymbol\Phi = \mathbf R\boldsymbol\Psi`.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.fft import dctn, idctn
from scipy.sparse.linalg import LinearOperator

from sparsebayes.applications.images.pixels import Array
from sparsebayes.basis.base import check_count

# Low-pass filters of Daubechies: the closed forms with one and with two vanishing moments.
_FILTERS = {
    "haar": np.array([1.0, 1.0]) / np.sqrt(2.0),
    "daubechies4": np.array([1.0 + np.sqrt(3.0), 3.0 + np.sqrt(3.0), 3.0 - np.sqrt(3.0), 1.0 - np.sqrt(3.0)])
    / (4.0 * np.sqrt(2.0)),
}


class Wavelets(LinearOperator):
    """The orthonormal matrix Ψ from wavelet coefficients to a periodic signal or image.

    ``matvec`` synthesises, ``rmatvec`` analyses.  An image is transformed alternately along rows and columns, from fine
    to coarse.

    Parameters
    ----------
    shape : int or tuple of int
        Length of the signal, or rows and columns of the image; multiples of 2^levels.
    wavelet : {"haar", "daubechies4"}
        The family: piecewise constant, or continuous.
    levels : int, optional
        Number of scales; as many as the sides can be halved by default.

    Examples
    --------
    >>> import numpy as np
    >>> from sparsebayes.applications.images import Wavelets
    >>> psi = Wavelets((8, 8))
    >>> image = np.zeros((8, 8))
    >>> image[:4] = 1.0
    >>> int(np.sum(np.abs(psi.rmatvec(image.ravel())) > 1e-12))
    2
    """

    def __init__(self, shape: int | tuple[int, ...], wavelet: str = "haar", levels: int | None = None) -> None:
        sides = (shape,) if isinstance(shape, int | np.integer) else tuple(shape)
        sides = tuple(check_count("shape", side) for side in sides)
        if wavelet not in _FILTERS:
            raise ValueError(f"wavelet={wavelet!r}; choose one of {', '.join(map(repr, _FILTERS))}")
        self._low = _FILTERS[wavelet]
        # The quadrature mirror of the low-pass filter.
        self._high = self._low[::-1] * (-1.0) ** np.arange(len(self._low))
        most = min(_halvings(side, len(self._low)) for side in sides)
        self._levels = most if levels is None else check_count("levels", levels)
        if self._levels > most:
            raise ValueError(f"levels={levels}; a signal of shape {sides} allows at most {most}")
        self.signal_shape = sides
        size = int(np.prod(sides))
        super().__init__(np.dtype(np.float64), (size, size))

    def _matvec(self, x: NDArray[Any]) -> Array:
        return self._matmat(np.reshape(x, (-1, 1)))[:, 0]

    def _rmatvec(self, x: NDArray[Any]) -> Array:
        return self._rmatmat(np.reshape(x, (-1, 1)))[:, 0]

    def _matmat(self, X: NDArray[Any]) -> Array:
        values = np.array(X, dtype=np.float64).reshape(*self.signal_shape, -1)
        for level in reversed(range(self._levels)):
            corner = self._corner(level)
            part = values[corner]
            for axis in range(len(self.signal_shape)):
                part = self._merge(part, axis)
            values[corner] = part
        return values.reshape(self.shape[0], -1)

    def _rmatmat(self, X: NDArray[Any]) -> Array:
        values = np.array(X, dtype=np.float64).reshape(*self.signal_shape, -1)
        for level in range(self._levels):
            corner = self._corner(level)
            part = values[corner]
            for axis in reversed(range(len(self.signal_shape))):
                part = self._split(part, axis)
            values[corner] = part
        return values.reshape(self.shape[0], -1)

    def _corner(self, level: int) -> tuple[slice, ...]:
        """The smooth part that is left before this level."""
        return tuple(slice(0, side >> level) for side in self.signal_shape)

    def _split(self, values: Array, axis: int) -> Array:
        """Smooth part and details along one axis, one after the other."""
        values = np.moveaxis(values, axis, 0)
        smooth = np.zeros_like(values[::2])
        detail = np.zeros_like(smooth)
        for place, (low, high) in enumerate(zip(self._low, self._high, strict=True)):
            shifted = np.roll(values, -place, axis=0)[::2]
            smooth += low * shifted
            detail += high * shifted
        return np.moveaxis(np.concatenate([smooth, detail]), 0, axis)

    def _merge(self, values: Array, axis: int) -> Array:
        """Inverse, and transpose, of :meth:`_split`."""
        values = np.moveaxis(values, axis, 0)
        half = len(values) // 2
        merged = np.zeros_like(values)
        for place, (low, high) in enumerate(zip(self._low, self._high, strict=True)):
            spread = np.zeros_like(values)
            spread[::2] = low * values[:half] + high * values[half:]
            merged += np.roll(spread, place, axis=0)
        return np.moveaxis(merged, 0, axis)


def _halvings(side: int, length: int) -> int:
    """How often a side can be halved with at least one filter left."""
    count = 0
    while side % 2 == 0 and side >= length:
        side //= 2
        count += 1
    return count


class RandomProjections(LinearOperator):
    """A random matrix R with orthonormal rows: random signs, a cosine transform, and a random choice of its outputs.

    Every projection mixes all samples, as those of a dense random matrix do, but a product costs O(n log n).

    Parameters
    ----------
    n_projections, n_samples : int
        Rows and columns.
    random_state : int or Generator, optional
        Source of randomness.
    """

    def __init__(
        self, n_projections: int, n_samples: int, random_state: int | np.random.Generator | None = None
    ) -> None:
        n_projections = check_count("n_projections", n_projections)
        n_samples = check_count("n_samples", n_samples)
        if n_projections > n_samples:
            raise ValueError(f"n_projections={n_projections}; expected at most n_samples={n_samples}")
        rng = np.random.default_rng(random_state)
        self._signs = rng.choice([-1.0, 1.0], size=n_samples)[:, None]
        self._chosen = np.sort(rng.choice(n_samples, size=n_projections, replace=False))
        super().__init__(np.dtype(np.float64), (n_projections, n_samples))

    def _matvec(self, x: NDArray[Any]) -> Array:
        return self._matmat(np.reshape(x, (-1, 1)))[:, 0]

    def _rmatvec(self, x: NDArray[Any]) -> Array:
        return self._rmatmat(np.reshape(x, (-1, 1)))[:, 0]

    def _matmat(self, X: NDArray[Any]) -> Array:
        return np.asarray(dctn(self._signs * X, axes=[0], norm="ortho"))[self._chosen]

    def _rmatmat(self, X: NDArray[Any]) -> Array:
        full = np.zeros((self.shape[1], X.shape[1]))
        full[self._chosen] = X
        return self._signs * np.asarray(idctn(full, axes=[0], norm="ortho"))
