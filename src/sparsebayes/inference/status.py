"""What is reported of a fit: how it ended, and what each move did."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum


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
        return self in (
            ParameterStatus.INFINITE,
            ParameterStatus.ZERO,
            ParameterStatus.FLAT,
            ParameterStatus.CONSTANT,
        )


@dataclass(frozen=True)
class Record:
    """One entry of ``history_``.

    Attributes
    ----------
    start : int
        Which start this belongs to; the objective never falls within one start.
    move : str
        ``"add"``, ``"reestimate"``, ``"delete"``, ``"exchange"``, ``"merge"``, ``"split"``, ``"sweep"`` (several
        re-estimations at once), ``"shift"`` (all functions give way to neighbours), ``"noise"`` or ``"kernel"``
        (parameters of the kernel, precisions and noise together).
    function : int
        Index of the function moved; -1 where there are several, or none.
    n_moves : int
        How many single moves the entry stands for (a noise update counts none).
    evidence, objective : float
        Log evidence and objective after the move.
    n_active : int
        Functions in the model after the move.
    noise_variance : float
        Noise variance after the move.
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
