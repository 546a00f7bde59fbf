"""Gabor functions: waves under a Gaussian envelope, the dictionary for images."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from .base import Basis, Floats, Functions, Specification, check_count, check_real, check_training, positions


@dataclass(frozen=True)
class Waves:
    """One entry per function: where it is, how wide, and how it oscillates.

    Attributes
    ----------
    centres : (M, 2) ndarray
        Centres of the envelopes.
    width : (M,) ndarray
        Standard deviation of the envelope across the stripes.
    aspect : (M,) ndarray
        Width along the stripes, as a multiple of that across.
    cycles : (M,) ndarray
        Cycles of the wave within one width.
    orientation, phase : (M,) ndarray
        Direction of the wave and its phase at the centre, in radians.
    """

    centres: Floats
    width: Floats
    aspect: Floats
    cycles: Floats
    orientation: Floats
    phase: Floats

    def take(self, idx: Any) -> Waves:
        """Return the entries ``idx``."""
        return Waves(*(getattr(self, field.name)[idx] for field in fields(self)))


class GaborFunctions(Functions):
    """A list of Gabor functions of two inputs.

    Parameters
    ----------
    waves : Waves
        Their parameters.
    """

    def __init__(self, waves: Waves) -> None:
        super().__init__(2)
        self.waves = waves

    def __len__(self) -> int:
        return len(self.waves.width)

    @property
    def centres(self) -> Floats:
        """The (M, 2) centres of the envelopes."""
        return self.waves.centres

    def _evaluate(self, X: Floats, idx: Any) -> Floats:
        waves = self.waves.take(idx)
        first = (X[:, :1] - waves.centres[:, 0]) / waves.width
        second = (X[:, 1:] - waves.centres[:, 1]) / waves.width
        cosine, sine = np.cos(waves.orientation), np.sin(waves.orientation)
        across = cosine * first + sine * second
        along = (cosine * second - sine * first) / waves.aspect
        envelope = np.exp(-0.5 * (across**2 + along**2))
        return envelope * np.cos(2.0 * np.pi * waves.cycles * across + waves.phase)

    def restrict(self, idx: Any) -> GaborFunctions:
        """Return just the functions ``idx``, in that order."""
        return GaborFunctions(self.waves.take(positions(idx, len(self))))

    def specifications(self) -> list[Specification]:
        """Return the identity of every function as plain, JSON-able data."""
        names = ("width", "aspect", "cycles", "orientation", "phase")
        columns = [getattr(self.waves, name).tolist() for name in names]
        return [
            {"kind": Gabor.kind, "centre": centre, **dict(zip(names, values, strict=True))}
            for centre, *values in zip(self.waves.centres.tolist(), *columns, strict=True)
        ]


class Gabor(Basis):
    r"""Gabor functions on a grid, in several widths, frequencies and directions.

    With :math:`u` and :math:`v` the coordinates across and along the stripes, from the centre in units of the width,

    .. math:: \phi(x) = \exp\{-\tfrac12(u^2 + v^2/a^2)\}\,\cos(2\pi f u + \psi) .

    Every width has its own grid of centres, which covers the range of the training inputs.  For ``cycles=0`` the
    functions are Gaussian blobs, one of each orientation where they are elongated, and without phases.

    Parameters
    ----------
    widths : sequence of float
        Standard deviations of the envelope, in units of the inputs.
    cycles : sequence of float
        Cycles f of the wave within one width.
    orientations : int
        Number of directions, evenly over half a turn.
    phases : int
        Number of phases ψ, evenly over half a turn (the other half is a change of sign): 2 are the cosine and the sine.
    aspect : float
        Elongation a of the envelope along the stripes.
    spacing : float
        Distance of neighbouring centres, in widths.

    Examples
    --------
    >>> import numpy as np
    >>> from sparsebayes.basis import Gabor
    >>> pixels = np.argwhere(np.ones((8, 8))).astype(float)
    >>> Gabor(widths=(2.0,), cycles=(0.25,), orientations=4, phases=2, spacing=2.0).bind(pixels)
    <GaborFunctions: 72 functions of 2 inputs>
    """

    kind = "gabor"
    identity = ("centre", "width", "aspect", "cycles", "orientation", "phase")

    def __init__(
        self,
        widths: ArrayLike = (1.0, 2.0, 4.0),
        *,
        cycles: ArrayLike = (0.0, 0.25),
        orientations: int = 4,
        phases: int = 2,
        aspect: float = 1.0,
        spacing: float = 1.0,
    ) -> None:
        self.widths = widths
        self.cycles = cycles
        self.orientations = orientations
        self.phases = phases
        self.aspect = aspect
        self.spacing = spacing

    def bind(self, X: ArrayLike, *, random_state: Any = None) -> Functions:
        """Lay a grid of functions of every width over the range of two inputs."""
        X = check_training(X)
        if X.shape[1] != 2:
            raise ValueError(
                f"X has {X.shape[1]} features; Gabor functions take two, such as row and column of a pixel"
            )
        widths = _check_list("widths", self.widths, minimum=np.finfo(float).tiny)
        cycles = _check_list("cycles", self.cycles, minimum=0.0)
        for name in ("aspect", "spacing"):
            if check_real(name, getattr(self, name)) <= 0.0:
                raise ValueError(f"{name}={getattr(self, name)!r}; expected a positive number")
        shapes = np.array([shape for f in cycles.tolist() for shape in self._shapes(f)])
        low, high = X.min(axis=0), X.max(axis=0)
        parts = [_waves(_grid(low, high, self.spacing * width), width, self.aspect, shapes) for width in widths]
        return GaborFunctions(Waves(*(np.concatenate(values) for values in zip(*parts, strict=True))))

    def _shapes(self, cycles: float) -> list[tuple[float, float, float]]:
        """All (cycles, orientation, phase) of one frequency that are functions of their own."""
        orientations = check_count("orientations", self.orientations)
        phases = check_count("phases", self.phases)
        if cycles == 0.0:
            phases, orientations = 1, 1 if self.aspect == 1.0 else orientations
        return [
            (cycles, np.pi * o / orientations, np.pi * p / phases) for o in range(orientations) for p in range(phases)
        ]

    @classmethod
    def _rebuild(cls, parameters: Specification, members: list[Specification], n_features: int) -> Functions:
        if n_features != 2:
            raise ValueError(f"a gabor specification is a function of 2 inputs, not of {n_features}")
        centres = np.array([member["centre"] for member in members], dtype=np.float64).reshape(len(members), 2)
        rest = (np.array([member[name] for member in members], dtype=np.float64) for name in cls.identity[1:])
        return GaborFunctions(Waves(centres, *rest))


def _check_list(name: str, values: ArrayLike, *, minimum: float) -> Floats:
    try:
        array = np.atleast_1d(np.asarray(values, dtype=np.float64))
    except (TypeError, ValueError):
        array = np.array([np.nan])
    if array.ndim != 1 or array.size == 0 or not (np.isfinite(array) & (array >= minimum)).all():
        bound = "positive" if minimum > 0.0 else "non-negative"
        raise ValueError(f"{name}={values!r}; expected a sequence of {bound} numbers")
    return array


def _grid(low: Floats, high: Floats, step: float) -> Floats:
    """Points this far apart or slightly less, the outermost at the edges of the box."""
    axes = [np.linspace(a, b, int(np.ceil((b - a) / step)) + 1) for a, b in zip(low, high, strict=True)]
    return np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1).reshape(-1, 2)


def _waves(centres: Floats, width: float, aspect: float, shapes: NDArray[np.float64]) -> tuple[Floats, ...]:
    """Every shape at every centre, shapes varying slowest."""
    n = len(centres)
    count = n * len(shapes)
    cycles, orientation, phase = np.repeat(shapes, n, axis=0).T
    return np.tile(centres, (len(shapes), 1)), np.full(count, width), np.full(count, aspect), cycles, orientation, phase
