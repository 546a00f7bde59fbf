"""What is reported of a fit: how it ended, what each move did, and the proof, recomputed from the data."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from enum import Enum
from typing import Any

import numpy as np

from sparsebayes.design import CompressedDesign, ScreenedDesign
from sparsebayes.inference.models.interface import Active
from sparsebayes.inference.objective import FLAT, Hyperpriors, NoiseProfile, score, verify
from sparsebayes.typing import Array, Index


class Status(Enum):
    """How a fit ended; the value is a sentence with the remedy where one is needed."""

    CONVERGED = "Converged: no single move would raise the objective by more than tol."
    EMPTY = "Converged to an empty model: no function raises the evidence; the intercept alone predicts."
    CONSTANT = "The targets are constant: the intercept alone predicts, without noise."
    MAX_ITER = "Stopped at max_iter moves before convergence: raise max_iter, or raise tol."
    NOISE_FLOOR = (
        "Converged, but the noise variance ran to its floor: the functions can reproduce the targets exactly, so the "
        "data do not determine the noise; fix noise_variance or use fewer functions."
    )
    NOISE_UNDETERMINED = (
        "Converged, but the functions use up nearly all rows, so that the data hardly determine the noise: fix "
        "noise_variance, use fewer functions, or support='conservative'."
    )
    NOISE_HELD = (
        "Converged with the noise held: learned with all functions it would have collapsed, so it was learned with "
        "those that pass the conservative test; fix noise_variance, or use support='conservative', to choose yourself."
    )
    STALLED = (
        "Stopped where rounding hides the remaining moves: the functions are nearly dependent; use fewer or narrower "
        "functions."
    )
    BOUND = (
        "Converged: no update raises the bound that backfitting maximises. The bound lies below the evidence; the "
        "certificate says what single moves of the evidence would still gain, and solver='sequential' makes them."
    )
    SUBSET = (
        "Ended by its rule: as many functions were removed as it allows, or none was left to add. The rule lowers a "
        "penalised squared error and does not maximise the evidence; the certificate says what single moves of the "
        "evidence would still gain, and solver='sequential' makes them."
    )
    SINGLE_EFFECTS = (
        "Converged: no further effect, and no other place of one, raises the bound of single effects. That is not the "
        "evidence of the functions that carry them; the certificate says what single moves of the evidence would "
        "still gain, and solver='sequential' makes them."
    )
    INDICATORS = (
        "Converged: functions and their precisions relative to one another are those of a regression on the indicators "
        "of the classes, and the scale of all of them has the most evidence. The certificate says what single moves of "
        "that evidence would still gain, and evidence='laplace' makes them, for fewer functions that predict worse "
        "where classes can be separated."
    )
    KERNEL = (
        "Converged, but the data do not determine every parameter of the kernel: kernel_status_ names those that ran "
        "to a limit or make no difference; fix them, or give gamma as a number."
    )
    INTERRUPTED = "Interrupted: the model is the last complete state; fit again to continue to convergence."

    @property
    def noise_remedy(self) -> str:
        """A further remedy where there is noise: not for classes or counts."""
        return {
            Status.MAX_ITER: " Where the noise is learned, fixing noise_variance helps too.",
            Status.STALLED: " Fixing a larger noise_variance helps too.",
        }.get(self, "")

    @property
    def converged(self) -> bool:
        """Whether the search ended where its own rule says that it may."""
        return self not in (Status.MAX_ITER, Status.STALLED, Status.INTERRUPTED)


class ParameterStatus(Enum):
    """What the evidence says about one parameter of the kernel."""

    LEARNED = "Determined by the data."
    JUDGED = "Determined by rows left out: another value has more evidence, but predicts them worse."
    OFF = "The functions do not vary along this input: the evidence finds it irrelevant."
    INFINITE = "Ran to where the functions no longer vary over the data."
    ZERO = "Ran to where each function sees only the rows at its own centre."
    FLAT = "All values near this one are equally good."
    CONSTANT = "The input is constant, so that its scale makes no difference."
    UNUSED = "No function with this parameter was kept; it stayed where it began."

    @property
    def degenerate(self) -> bool:
        """Whether the value is arbitrary; that an input is irrelevant is a finding, not a failure."""
        arbitrary = ParameterStatus.INFINITE, ParameterStatus.ZERO, ParameterStatus.FLAT, ParameterStatus.CONSTANT
        return self in arbitrary


@dataclass(frozen=True)
class Record:
    """One entry of ``history_``.

    Attributes
    ----------
    start : int
        Which start this belongs to; within one start the objective never falls, except with ``solver="subset"``, which
        does not maximise it.
    move : str
        ``"add"``, ``"reestimate"``, ``"delete"``, ``"exchange"``, ``"merge"``, ``"split"``, ``"sweep"`` (several
        re-estimations at once), ``"shift"`` (all functions give way to neighbours), ``"noise"`` or ``"kernel"``
        (parameters of the kernel, precisions and noise together).
    function : int
        Index of the function moved; -1 where there are several, or none.
    n_moves : int
        How many single moves the entry stands for (a noise update counts none).
    evidence, objective, n_active, noise_variance : float, float, int, float
        Log evidence, objective, functions in the model, and noise variance after the move.
    added, removed : tuple of int
        Functions that the move brought into the model, and that it took out.
    """

    start: int
    move: str
    function: int
    n_moves: int
    evidence: float
    objective: float
    n_active: int
    noise_variance: float
    added: tuple[int, ...] = ()
    removed: tuple[int, ...] = ()


# The noise is degenerate when hardly a row is left to estimate it from.
_DEGENERATE = 0.05


@dataclass(frozen=True)
class Certificate:
    r"""How close a model is to a local maximum of the objective, in scale-free quantities, recomputed from the data.

    Attributes
    ----------
    log_evidence, objective : float
        The evidence, and the same plus the log priors in use.
    excluded_theta, excluded_function : float, int
        Largest :math:`\theta/s = q^2/s - 1` among the functions left out, and whose it is (-1: none could be added).
        Positive means that the score promises a gain (which, where gains are only predicted, may have been refused).
    excluded_gain : float
        Rise of the objective that the best addition would bring.
    kept_log_alpha, kept_function : float, int
        Largest :math:`|\Delta\log\alpha|` that re-estimation would bring among the functions kept (infinite where one
        would be deleted), and whose it is (-1 in an empty model).
    kept_gain : float
        Rise of the objective that the best re-estimation or deletion would bring; flat directions are no failure.
    noise_gradient, noise_gain : float
        :math:`|\partial\,\mathrm{objective}/\partial\log\sigma^2|`, and the rise of the objective at the best noise;
        zero where the noise was given.
    condition_number : float
        Of the posterior precision scaled to unit diagonal.
    noise_degenerate : bool
        Whether the noise is at its floor, or the functions use up nearly all rows.
    start, tol : int, float
        Which start won, numbered from 0 in the order in which they were made, and the tolerance in nats.
    compression_error : float
        Bound on the error of the entries of the dictionary that all of this was computed from; zero where that was the
        dictionary itself.
    left_aside : int
        Functions of the dictionary that were no candidates, or that promised too little to be looked at closely, of
        which nothing is said here.
    noise_held : bool
        Whether the noise was learned, and then held where it would have collapsed; ``noise_gain`` says what releasing
        it would bring, with everything else as it is.
    """

    log_evidence: float
    objective: float
    excluded_theta: float
    excluded_function: int
    excluded_gain: float
    kept_log_alpha: float
    kept_function: int
    kept_gain: float
    noise_gradient: float
    noise_gain: float
    condition_number: float
    noise_degenerate: bool
    start: int
    tol: float
    compression_error: float = 0.0
    left_aside: int = 0
    noise_held: bool = False

    @property
    def gain(self) -> float:
        """What the best single move would bring; a noise that is held is not moved."""
        return max(self.excluded_gain, self.kept_gain, 0.0 if self.noise_held else self.noise_gain)

    @property
    def converged(self) -> bool:
        """Whether no single move would gain more than ``tol``."""
        return self.gain <= self.tol

    def holding(self, active: Active, hyperpriors: Hyperpriors) -> Certificate:
        """The certificate where the noise is held because it would have collapsed: what releasing it would gain."""
        gradient, gain, _ = _noise(active, hyperpriors)
        return replace(self, noise_gradient=gradient, noise_gain=gain, noise_degenerate=True, noise_held=True)


def certificate_of(
    out: tuple[Index, Array, Array],
    kept: tuple[Index, Array, Array],
    noise: tuple[float, float, bool] = (0.0, 0.0, False),
    **others: Any,
) -> Certificate:
    r"""The certificate of a model by what single moves would bring.

    ``out`` are functions left out, their :math:`\theta/s`, and what adding each gains; ``kept`` those in the model, the
    change of each :math:`\log\alpha`, and its gain; ``noise`` the gradient, the gain, and whether it is degenerate.
    """
    (outside, theta, additions), (inside, shift, moves) = out, kept
    excluded = int(np.argmax(theta)) if np.any(np.isfinite(theta)) else -1
    moved = int(np.argmax(shift)) if len(inside) else -1
    return Certificate(
        excluded_theta=float(theta[excluded]) if excluded >= 0 else -1.0,
        excluded_function=int(outside[excluded]) if excluded >= 0 else -1,
        excluded_gain=float(np.max(additions, initial=0.0)),
        kept_log_alpha=float(shift[moved]) if moved >= 0 else 0.0,
        kept_function=int(inside[moved]) if moved >= 0 else -1,
        kept_gain=float(np.max(moves, initial=0.0)),
        noise_gradient=noise[0],
        noise_gain=noise[1],
        noise_degenerate=noise[2],
        **others,
    )


def certify(
    active: Active,
    *,
    learn_noise: bool,
    tol: float,
    start: int,
    refused: frozenset[int] = frozenset(),
    hyperpriors: Hyperpriors = FLAT,
) -> Certificate:
    """Certify a model that was just recomputed on the data.

    Functions in ``refused`` were tried on this very model and did not raise the objective, whatever their score says.
    """
    found, design, log_evidence = active.statistics(), active.problem.design, active.evidence()
    scores = score(active, found, hyperpriors)
    scores.gain[list(refused)] = 0.0
    promised = scores.gain > tol
    verify(active, scores, tol)
    rounding = promised & (scores.gain == 0.0)
    inside = np.flatnonzero(scores.in_model)
    out = np.flatnonzero(found.movable & ~scores.in_model & ~rounding)
    with np.errstate(invalid="ignore", divide="ignore"):
        shift = np.abs(np.log(scores.best[inside]) - np.log(scores.alpha[inside]))
    theta = found.q2[out] / np.where(found.s[out] > 0.0, found.s[out], 1.0) - 1.0
    return certificate_of(
        (out, theta, scores.gain[~scores.in_model]),
        (inside, shift, scores.gain[inside]),
        _noise(active, hyperpriors) if learn_noise else (0.0, 0.0, False),
        log_evidence=log_evidence,
        objective=log_evidence + active.log_prior() + hyperpriors.log_prior(active, noise=learn_noise),
        condition_number=active.condition_number(),
        start=start,
        tol=tol,
        compression_error=design.error if isinstance(design, CompressedDesign | ScreenedDesign) else 0.0,
    )


def really_refused(active: Active, refused: Iterable[int], tol: float) -> set[int]:
    """Those of the functions that do not gain although their score says so, each tried in full on this very model.

    In a working set modes are found roughly; a proof cannot stand on that.
    """
    scores = score(active)

    def gains(i: int) -> bool:
        trial = active.changed(i, float(scores.best[i]), tol)
        return trial is not None and trial.objective() > active.objective() + tol

    return {i for i in refused if scores.gain[i] <= tol or not gains(i)}


def _noise(active: Active, hyperpriors: Hyperpriors) -> tuple[float, float, bool]:
    """Gradient and gain of the noise, and whether the data determine it at all."""
    profile, floor = NoiseProfile.of(active, hyperpriors), active.problem.noise_floor
    left = 1.0 - active.problem.share(float(np.sum(active.well_determined)))
    degenerate = 1.0 / active.beta <= 1.01 * floor or left < _DEGENERATE
    return float(abs(profile.slope(profile.here))), profile.maximum()[1], bool(degenerate)
