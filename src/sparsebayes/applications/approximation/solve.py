"""The search for the few functions, with analytic moments or on given points."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import nnls

from sparsebayes.applications.approximation.expansion import Approximation, Expansion, Source
from sparsebayes.applications.approximation.gaussians import gaussian_moments, precision
from sparsebayes.design import DenseDesign, representatives
from sparsebayes.estimators.checks import check_relative_noise
from sparsebayes.estimators.task import warn_unconverged
from sparsebayes.inference import Sequential, Settings
from sparsebayes.inference.fit.run import run
from sparsebayes.inference.models.problem import GaussianProblem, moment_problem
from sparsebayes.typing import Array


@dataclass(frozen=True)
class Request:
    """What is asked for, validated; places and points are in the coordinates of the source's kernels."""

    noise: float
    places: Array
    points: Array | None
    log_density: float
    tol: float
    max_iter: int


def log_volume(source: Source) -> float:
    """Log volume of the box around the source's points; where it is flat, the width of a Gaussian stands in."""
    extent = np.ptp(source.points, axis=0)
    width = np.ones_like(extent)
    if source.gaussian:
        width = np.max([precision(kernel, len(extent)) ** -0.5 for kernel in source.kernels], axis=0)
    return float(np.sum(np.log(np.where(extent > 0.0, extent, width))))


def approximate(source: Source, request: Request) -> tuple[Expansion, Approximation]:
    """Choose functions under the likelihood of the request, weigh them, and measure the error."""
    problem = _on_points(source, request) if request.points is not None else _in_closed_form(source, request)
    check_relative_noise(np.array([request.noise**2]), np.array([problem.mean_square]))
    settings = Settings(tol=request.tol, max_iter=request.max_iter, noise_variance=request.noise**2)
    result = run(problem, Sequential(batch=1), settings, np.random.default_rng(0))
    warn_unconverged([result.status])
    order = np.argsort(result.active.indices)
    kept = np.array(result.active.indices, dtype=np.intp)[order]
    weights = result.active.mean[order]
    unconstrained = None
    if source.mass is not None:
        unconstrained = _relative(problem, _squared_error(problem, kept, weights))
        weights = density_weights(problem, kept, source.mass, request.noise)
        kept, weights = kept[weights[:, 0] > 0.0], weights[weights[:, 0] > 0.0]
    functions = source.functions_at(request.places).restrict(kept) if len(kept) else None
    expansion = Expansion(functions, weights, source.offset)
    squared = _squared_error(problem, kept, weights)
    log_density = None if request.points is not None else request.log_density + log_frame(source)
    report = Approximation(
        n_functions=len(kept),
        n_source=len(source.points) * len(source.kernels),
        noise=request.noise,
        density=None if log_density is None else float(np.exp(log_density)),
        integrated_squared_error=None if log_density is None else squared * float(np.exp(-log_density)),
        mean_squared_error=squared / problem.n_effective,
        relative_error=_relative(problem, squared),
        max_error=_largest_error(source, expansion, request),
        unconstrained_error=unconstrained,
        status=result.status,
        certificate=result.certificate,
    )
    return expansion, report


def _in_closed_form(source: Source, request: Request) -> GaussianProblem:
    return moment_problem(gaussian_moments(source, request.places, request.log_density, request.noise))


def _on_points(source: Source, request: Request) -> GaussianProblem:
    """The integral as a sum over points, which together count as much as the source's own."""
    points = request.points if request.points is not None else source.points
    design = DenseDesign(source.functions_at(request.places).evaluate(points))
    eligible = representatives(design) == np.arange(design.shape[1])
    targets = source.expansion.evaluate(points) - source.offset
    return GaussianProblem(design, targets, np.full(len(points), len(source.points) / len(points)), eligible)


def density_weights(problem: GaussianProblem, kept: NDArray[np.intp], mass: float, noise: float) -> Array:
    r"""Best non-negative weights of these functions that integrate to one.

    On the simplex :math:`\mathbf 1^\top\mathbf u=1` the error is :math:`\|\mathbf A\mathbf u\|^2` with
    :math:`\mathbf A=\boldsymbol\Phi-\mathbf t\mathbf 1^\top`.  For :math:`\mathbf w=s\mathbf u`, the minimum over s of
    :math:`\|\mathbf A\mathbf w\|^2+(\mathbf 1^\top\mathbf w-1)^2` rises with :math:`\|\mathbf A\mathbf u\|^2`, so that
    non-negative least squares, normalised, finds the best u exactly.
    """
    if len(kept) == 0:
        raise ValueError(
            f"noise={noise:.3g} is so large that the density is zero to within it; choose a smaller one, such as a "
            f"tenth of the density's root mean square {np.sqrt(problem.mean_square):.3g}"
        )
    A = problem.columns(kept) / mass - problem.target
    A = np.linalg.qr(A)[1]
    A = A / max(float(np.max(np.abs(A))), np.finfo(float).tiny)
    u, _ = nnls(np.vstack([A, np.ones((1, A.shape[1]))]), np.append(np.zeros(len(A)), 1.0))
    return (u / np.sum(u) / mass)[:, None]


def _squared_error(problem: GaussianProblem, kept: NDArray[np.intp], weights: Array) -> float:
    return float(np.sum((problem.target - problem.columns(kept) @ weights) ** 2))


def _relative(problem: GaussianProblem, squared: float) -> float:
    whole = float(np.sum(problem.target**2))
    return squared / whole if whole > 0.0 else 0.0


def _largest_error(source: Source, expansion: Expansion, request: Request) -> float:
    where = [source.points, request.places] + ([] if request.points is None else [request.points])
    whole = source.expansion
    return max(float(np.max(np.abs(whole.evaluate(X) - expansion.evaluate(X)), initial=0.0)) for X in where)


def log_frame(source: Source) -> float:
    """Log of the volume in the kernels' coordinates per unit volume."""
    return 0.0 if source.frame is None else float(np.linalg.slogdet(source.frame)[1])
