"""What the data say about each parameter that was learned."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from sparsebayes.basis import Functions, Parameter
from sparsebayes.inference import ParameterStatus
from sparsebayes.inference.fit.settings import Warm
from sparsebayes.inference.models.evidence import Array
from sparsebayes.kernel_learning.learner import Learned, Learner
from sparsebayes.kernel_learning.trials import Trial

# Functions as wide as this many times the extent of the data vary by a hundredth over all of it.
_INFINITE = 10.0
# A parameter is arbitrary where moving it by a factor of e either way changes the evidence by less.
_FLAT = 1e-3


def statuses(learner: Learner, found: Learned, functions: Functions, extent: Array) -> list[ParameterStatus]:
    """One for each parameter of the functions.

    Parameters
    ----------
    learner, found : Learner, Learned
        What was done, and what came of it.
    functions : Functions
        The functions whose parameters were learned.
    extent : ndarray of shape (d,)
        Largest minus smallest value of each input.
    """
    trial = _settled(found) if found.trial.factors == (1.0,) else learner.single
    models = learner.search.held(trial)
    matters = np.zeros(len(trial.log_theta), dtype=bool)
    if any(len(model.indices) for model in models):
        matters = learner.matters(trial.log_theta, models)
    learned = ParameterStatus.JUDGED if found.overruled else ParameterStatus.LEARNED
    return [_status(learner, trial, k, p, matters, extent, learned) for k, p in enumerate(functions.parameters)]


def _status(
    learner: Learner,
    trial: Trial,
    k: int,
    p: Parameter,
    matters: NDArray[np.bool_],
    extent: Array,
    learned: ParameterStatus,
) -> ParameterStatus:
    limits, value = learner.limits, trial.log_theta[k]
    whole = float(np.sqrt(np.sum(extent**2)) if p.feature is None else extent[p.feature])
    if whole == 0.0 and p.length:
        return ParameterStatus.CONSTANT
    if np.isfinite(limits.off[k]) and not limits.live(trial.log_theta)[k] and trial.size:
        return ParameterStatus.OFF
    if not matters[k]:
        return ParameterStatus.FLAT if learner.used(trial, k) else ParameterStatus.UNUSED
    if p.feature is None and p.length * (value - p.length * np.log(_INFINITE * whole)) > 0.0:
        return ParameterStatus.INFINITE
    if value <= limits.prior.lower[k] or value >= limits.prior.upper[k]:
        return ParameterStatus.ZERO
    if all(abs(learner.change(trial, k, shift)) < _FLAT for shift in (-1.0, 1.0)):
        return ParameterStatus.FLAT
    return learned


def _settled(found: Learned) -> Trial:
    """The trial with the models that the last search found."""
    active = [result.active for result in found.results]
    return replace(found.trial, models=tuple(map(Warm.of, active)), means=tuple(a.mean for a in active))
