"""Noise that depends on the inputs: who may ask for it, and what a fit of it leaves."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from sparsebayes.estimators.dictionary import Kept
from sparsebayes.estimators.validation import choose, resolve_solver
from sparsebayes.inference import Sequential
from sparsebayes.inference.fit.varying import LogVariance
from sparsebayes.posterior import VaryingNoise

Array = NDArray[np.float64]

CONSTANT, VARIES = NOISES = ("constant", "varies")


def check_varying(est: Any, n_targets: int) -> None:
    """Refuse settings that noise that varies cannot be learned with, before anything is computed.

    Parameters
    ----------
    est : estimator
        Its parameters.
    n_targets : int
        Number of targets.
    """
    if choose("noise", est.noise, NOISES) == CONSTANT:
        return
    if est.likelihood != "gaussian":
        counts = est.likelihood == "poisson"
        why = "the variance of a count is its rate" if counts else "it gives every row a weight of its own"
        raise ValueError(
            f"noise='varies' is for likelihood='gaussian'; got likelihood={est.likelihood!r}: {why}; use "
            "noise='constant', or likelihood='gaussian'"
        )
    if est.noise_variance is not None:
        raise ValueError(
            f"noise_variance={est.noise_variance!r} fixes the noise, and noise='varies' learns it; use "
            "noise_variance=None, or noise='constant'"
        )
    if est.checkpoint is not None:
        raise ValueError(
            f"checkpoint={est.checkpoint!r}: searches with noise='varies' are not kept; use checkpoint=None, or "
            "noise='constant'"
        )
    if est.shared_support and n_targets > 1:
        raise ValueError(
            "noise='varies' weighs the rows of each target by itself: use shared_support=False, or noise='constant'"
        )
    if est._learned_gamma is not None:
        raise ValueError(
            f"gamma={est._learned_gamma!r}: the kernel is learned with noise='constant' only; fit again with "
            "noise='varies' and the kernel_ that was learned"
        )
    solver = resolve_solver(est.solver, est.effort)
    if not isinstance(solver, Sequential) or solver.candidates is not None or solver.split_merge:
        raise ValueError(
            f"solver={est.solver!r}: noise='varies' is learned by the sequential solver, without candidates and "
            "split_merge; use solver='sequential', or noise='constant'"
        )


def varying_noise(noise: LogVariance, kept: Kept, unit: float) -> VaryingNoise:
    """The log variance over the kept functions, for a target in units of which the fit was ``unit``."""
    active = noise.active
    where, order = kept.order(active.indices)
    return VaryingNoise(
        functions=where,
        mean=active.mean[order],
        covariance=active.covariance[np.ix_(order, order)],
        offset=noise.offset + 2.0 * float(np.log(unit)),
    )
