"""One row of the ledger: one method on one draw of one problem."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sparsebayes.benchmarks.ledger.cases import Array, Case, NotAtHandError, Problem
from sparsebayes.benchmarks.ledger.problems import PROBLEMS
from sparsebayes.estimators.summary import listed
from sparsebayes.threads import one_thread

OURS = "sparsebayes"

MEASURED = "measured"
NOT_AT_HAND = "not at hand"
NOT_APPLICABLE = "not applicable"
OVER_LIMIT = "over limit"
FAILED = "failed"

# A probability of zero for what happened costs this much, and not infinity.
_LEAST = 1e-15


@dataclass(frozen=True)
class Row:
    r"""What one method achieved on one draw; figures are None where there is none.

    Attributes
    ----------
    problem, seed, method : str, int, str
        What was measured.
    state : str
        "measured", or why it was not: "not at hand", "not applicable", "over limit", "failed".
    evidence : float or None
        Log evidence in nats, exact in regression, Laplace's approximation in classification.
    error : float or None
        Root mean square error or rate of errors on the test rows.
    loss : float or None
        Mean of :math:`-\log p` of the test targets.
    kept : int or None
        Functions in the model.
    status : str
        How the search says that it ended.
    gain : float or None
        Certificate: largest rise of the objective that a single move would still bring.
    certified : bool or None
        Whether that is below the tolerance, for all models of the fit.
    seconds : float or None
        Processor time of the fit, BLAS on one thread.
    moves : int or None
        Moves of the search.
    noise_variance : float or None
        Of regression.
    note : str
        What else is to say.
    """

    problem: str
    seed: int
    method: str = OURS
    state: str = MEASURED
    evidence: float | None = None
    error: float | None = None
    loss: float | None = None
    kept: int | None = None
    status: str = ""
    gain: float | None = None
    certified: bool | None = None
    seconds: float | None = None
    moves: int | None = None
    noise_variance: float | None = None
    note: str = ""

    @property
    def key(self) -> tuple[str, int, str]:
        """What rows of two records have in common."""
        return self.problem, self.seed, self.method

    @property
    def measured(self) -> bool:
        """Whether there are figures."""
        return self.state == MEASURED

    def as_dict(self) -> dict[str, Any]:
        """For JSON: without what is empty, and without numbers that JSON does not have."""
        return {name: value for name, value in asdict(finite(self)).items() if value is not None and value != ""}


def measure(problem: Problem | str, seed: int, **options: Any) -> Row:
    """Fit this library to one draw of a problem, in this process.

    Parameters
    ----------
    problem : Problem or str
        A problem, or the name of one.
    seed : int
        Which draw.
    **options
        Parameters of the estimator, over those of the problem; ``solver__name`` sets one of the default solver's.

    Raises
    ------
    NotAtHandError
        If the data are absent.
    ValueError
        If the estimator of this problem has no such parameter.
    """
    if isinstance(problem, str):
        problem = PROBLEMS[problem]
    case = problem.draw(seed)
    model = build(case, options)
    fitted, seconds = timed(lambda: model.fit(case.X, case.y))
    certificates = listed(fitted.certificate_)
    row = Row(
        problem.name,
        seed,
        evidence=float(np.sum(fitted.log_marginal_likelihood_)),
        kept=len(fitted.relevance_),
        status=", ".join(dict.fromkeys(status.name for status in listed(fitted.status_))),
        gain=float(max(c.gain for c in certificates)),
        certified=all(c.converged for c in certificates),
        seconds=seconds,
        moves=int(fitted.n_iter_),
        noise_variance=None if case.classes else float(fitted.noise_variance_),
    )
    if case.classes:
        loss = log_loss(fitted.predict_proba(case.X_test), fitted.classes_, case.y_test)
        return replace(row, error=case.error(fitted.predict(case.X_test)), loss=loss)
    mean, std = fitted.predict(case.X_test, return_std=True)
    return replace(row, error=case.error(mean), loss=negative_log_density(mean, std, case.y_test))


def build(case: Case, options: Mapping[str, Any]) -> Any:
    """The estimator of a case with its own settings and further options, not fitted."""
    from sparsebayes import RVC, RVR, Sequential, SparseBayesRegressor

    if case.gamma is None:
        model: Any = SparseBayesRegressor(case.basis, **case.settings)
    else:
        model = (RVC if case.classes else RVR)(gamma=case.gamma, **case.settings)
    if any(name.startswith("solver__") for name in options) and isinstance(model.solver, str):
        model.set_params(solver=Sequential())
    unknown = [name for name in options if name not in model.get_params()]
    if unknown:
        raise ValueError(f"{type(model).__name__} has no parameter {', '.join(map(repr, unknown))}")
    return model.set_params(**options)


def attempt(problem: Problem, seed: int, method: str, work: Callable[[], Row]) -> Row:
    """A row in any case: absent data and failures are rows too, and end no run."""
    try:
        return work()
    except NotAtHandError as error:
        return Row(problem.name, seed, method, NOT_AT_HAND, note=str(error))
    except Exception as error:
        return Row(problem.name, seed, method, FAILED, note=f"{type(error).__name__}: {error}")


def timed(fit: Callable[[], Any]) -> tuple[Any, float]:
    """What a fit returns, and the processor time that it took with BLAS on one thread."""
    with one_thread(), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # how it ended is in the row
        begun = time.process_time()
        found = fit()
        return found, time.process_time() - begun


def log_loss(probability: Array, classes: NDArray[Any], y: NDArray[Any]) -> float:
    """Mean of -log p of the true class; a class that was not learned has probability zero."""
    places = {label: place for place, label in enumerate(classes.tolist())}
    true = [p[places[label]] if label in places else 0.0 for p, label in zip(probability, y.tolist(), strict=True)]
    return float(-np.mean(np.log(np.maximum(true, _LEAST))))


def negative_log_density(mean: Array, std: Array, y: Array) -> float:
    """Mean of -log p under normal predictions."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return float(np.mean(0.5 * np.log(2.0 * np.pi * std**2) + 0.5 * ((y - mean) / std) ** 2))


def finite(row: Row) -> Row:
    """The row with None for every figure that is not finite."""
    figures = {name: value for name, value in asdict(row).items() if isinstance(value, float)}
    return replace(row, **{name: None for name, value in figures.items() if not np.isfinite(value)})
