r"""The posterior mean of the scene on a high-resolution grid, for all pixels together.

With the images :math:`\mathbf y_k = \mathbf W_k\mathbf x + \epsilon` and the prior
:math:`\mathbf x\sim\mathcal N(m, \mathbf Z)`, the mean solves

.. math::

    \Big(\sum_k\mathbf W_k^\top\mathbf W_k + \sigma^2\mathbf Z^{-1}\Big)(\mathbf x - m)
        = \sum_k\mathbf W_k^\top(\mathbf y_k - m) .

The :math:`\mathbf W_k` are sparse, :math:`\mathbf Z^{-1}` is a product of Fourier transforms.  Conjugate gradients need
few steps, since the pixels of all images together cover the scene almost evenly: then
:math:`\sum_k\mathbf W_k^\top\mathbf W_k` is almost a convolution, and Fourier transforms almost solve the system.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.fft import irfft2, next_fast_len, rfft2
from scipy.sparse import csr_array, vstack
from scipy.sparse.linalg import LinearOperator, cg

from sparsebayes.applications.images.pixels import Array
from sparsebayes.applications.images.registration import Motion, centred_pixels
from sparsebayes.applications.images.scene import Scene

# The point spread is cut off after so many standard deviations.
_CUT = 3.0
# The system is solved to this part of its right-hand side, in at most so many steps.
_TOLERANCE = 1e-4
_MOST_STEPS = 300


@dataclass(frozen=True)
class Grid:
    """High-resolution pixels: those of the result, with a border that images may look at.

    Attributes
    ----------
    shape : tuple of int
        Rows and columns with the border.
    border : int
        Its width on the first sides.
    result : tuple of int
        Rows and columns of the result.
    scale : int
        Pixels of the grid per pixel of the low resolution.
    """

    shape: tuple[int, int]
    border: int
    result: tuple[int, int]
    scale: int

    @classmethod
    def around(cls, shape: tuple[int, ...], motion: Motion, scene: Scene, scale: int) -> Grid:
        """A grid that holds everything that any image sees."""
        pixels = centred_pixels(shape)
        reach = max(float(np.max(np.abs(motion.places(k, pixels) - pixels))) for k in range(len(motion.angles)))
        border = int(np.ceil(scale * (reach + _CUT * scene.blur))) + 1
        result = (scale * shape[0], scale * shape[1])
        rows, columns = (int(next_fast_len(side + 2 * border, real=True) or 0) for side in result)
        return cls((rows, columns), border, result, scale)

    def coordinates(self, places: Array) -> Array:
        """Places of the scene, relative to its centre, in pixels of this grid."""
        return self.scale * places + 0.5 * (np.array(self.result) - 1.0) + self.border

    def crop(self, values: Array) -> Array:
        """The result without the border."""
        inside = slice(self.border, self.border + self.result[0]), slice(self.border, self.border + self.result[1])
        return values.reshape(self.shape)[inside]


def posterior_mean(images: Array, motion: Motion, scene: Scene, scale: int) -> Array:
    """Posterior mean of the scene.

    Parameters
    ----------
    images : (K, rows, columns, channels) ndarray
        What was seen.
    motion : Motion
        From where.
    scene : Scene
        Prior, blur, and noise; only their ratios matter.
    scale : int
        Pixels of the result per pixel of the images, along each side.

    Returns
    -------
    (scale · rows, scale · columns, channels) ndarray
    """
    grid = Grid.around(images.shape[1:3], motion, scene, scale)
    W = _observation(images.shape[1:3], motion, scene, grid)
    spectrum = _prior_spectrum(grid, scene)
    seen = len(images) / scale**2 * _blur_spectrum(grid, scene) ** 2  # of WᵀW, were it a convolution
    penalty = scene.noise**2 / spectrum

    def normal(x: Array) -> Array:
        return W.T @ (W @ x) + _filter(x, penalty, grid)

    def nearly_solve(x: Array) -> Array:
        return _filter(x, 1.0 / (seen + penalty), grid)

    size = grid.shape[0] * grid.shape[1]
    A = LinearOperator((size, size), matvec=normal, dtype=np.float64)  # pyright: ignore[reportCallIssue]
    M = LinearOperator((size, size), matvec=nearly_solve, dtype=np.float64)  # pyright: ignore[reportCallIssue]
    channels = []
    for channel in np.moveaxis(images, 3, 0):
        level = float(np.mean(channel))
        solution, _ = cg(A, W.T @ (channel.ravel() - level), M=M, rtol=_TOLERANCE, maxiter=_MOST_STEPS)
        channels.append(level + grid.crop(solution))
    return np.stack(channels, axis=2)


def _observation(shape: tuple[int, ...], motion: Motion, scene: Scene, grid: Grid) -> csr_array:
    """The matrix W of all images: normalised Gaussian weights of the grid's pixels about each place (T&B eq. 3)."""
    pixels = centred_pixels(shape)
    width = grid.scale * scene.blur
    radius = max(1, int(np.ceil(_CUT * width)))
    offsets = np.argwhere(np.ones((2 * radius + 1, 2 * radius + 1), dtype=bool)) - radius
    parts = []
    for k in range(len(motion.angles)):
        at = grid.coordinates(motion.places(k, pixels))
        nearest = np.round(at).astype(np.int64)
        distances = np.sum((nearest[:, None, :] + offsets - at[:, None, :]) ** 2, axis=2)
        # Relative to the nearest pixel, so that a very narrow blur does not underflow.
        weights = np.exp(-(distances - distances.min(axis=1, keepdims=True)) / (2.0 * width**2))
        weights /= weights.sum(axis=1, keepdims=True)
        cells = nearest[:, None, :] + offsets
        columns = np.clip(cells[..., 0], 0, grid.shape[0] - 1) * grid.shape[1] + np.clip(
            cells[..., 1], 0, grid.shape[1] - 1
        )
        starts = np.arange(0, columns.size + 1, columns.shape[1])
        size = (len(pixels), grid.shape[0] * grid.shape[1])
        parts.append(csr_array((weights.ravel(), columns.ravel().astype(np.int32), starts), shape=size))
    return csr_array(vstack(parts, format="csr"))


def _frequencies(grid: Grid) -> Array:
    """Squared angular frequencies of the grid, in radians per pixel of the low resolution."""
    rows, columns = grid.shape
    down = 2.0 * np.pi * grid.scale * np.fft.fftfreq(rows)
    right = 2.0 * np.pi * grid.scale * np.fft.rfftfreq(columns)
    return down[:, None] ** 2 + right**2


def _prior_spectrum(grid: Grid, scene: Scene) -> Array:
    """Eigenvalues of Z, from the transform of the covariance on the torus."""
    squares = _frequencies(grid)
    density = np.zeros_like(squares)
    for variance, scale in zip(scene.variances, scene.squared_scales, strict=True):
        density += np.pi * variance * scale * np.exp(-0.25 * scale * squares)
    return grid.scale**2 * density


def _blur_spectrum(grid: Grid, scene: Scene) -> Array:
    """Transform of the point spread."""
    return np.exp(-0.5 * scene.blur**2 * _frequencies(grid))


def _filter(x: Array, spectrum: Array, grid: Grid) -> Array:
    transformed = np.asarray(rfft2(x.reshape(grid.shape))) * spectrum
    return np.asarray(irfft2(transformed, s=grid.shape)).ravel()
