"""What the command line says of a fitted model."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table as RichTable

from sparsebayes.inference import Certificate

Array = NDArray[np.float64]
Rows = dict[str, str]

_RESAMPLES = 2000
# Half-width of a central 95 % interval of a Gaussian, in standard deviations.
_TWO_SIDED_95 = 1.959963984540054


def plain_console() -> Console:
    """Return a console that prints names of files and columns as they are, whatever brackets they have."""
    return Console(markup=False, emoji=False, highlight=False)


def describe(est: Any, *, n_candidates: int, what: str, seconds: float) -> Rows:
    """Return what was learned, line by line.

    Parameters
    ----------
    est : estimator
        A fitted regressor of one target.
    n_candidates : int
        How many functions it could choose from.
    what : str
        What those functions are, in the plural.
    seconds : float
        How long the fit took.
    """
    return {
        "kept": f"{len(est.relevance_)} of {n_candidates} {what}",
        "noise (sd)": f"{np.sqrt(est.noise_variance_):.3g}",
        "log evidence": f"{est.log_marginal_likelihood_:.2f}",
        "status": est.status_.value,
        "certificate": verdict(est.certificate_),
        "time": f"{seconds:.2f} s",
    }


def verdict(certificate: Certificate) -> str:
    """What the certificate proves, in a sentence."""
    gain = max(certificate.excluded_gain, certificate.kept_gain, certificate.noise_gain)
    if certificate.converged:
        return f"Proved on the data: no single move gains more than {certificate.tol:g} nats."
    return f"Not proved: a single move would still gain {gain:.3g} nats."


def judge(est: Any, X: Array, y: Array, *, seed: int = 0) -> Rows:
    """Return the error on rows that the fit has not seen, with its uncertainty, and how honest the error bars are."""
    mean, std = est.predict(X, return_std=True)
    squares = (y - mean) ** 2
    rng = np.random.default_rng(seed)
    drawn = squares[rng.integers(len(squares), size=(_RESAMPLES, len(squares)))]
    low, high = np.percentile(np.sqrt(drawn.mean(axis=1)), [2.5, 97.5])
    inside = float(np.mean(np.abs(y - mean) <= _TWO_SIDED_95 * std))
    return {
        "test rows": str(len(y)),
        "test RMSE": f"{np.sqrt(squares.mean()):.3g}",
        "its 95 % interval": f"{low:.3g} to {high:.3g}",
        "in 95 % error bars": f"{100 * inside:.1f} % of test rows",
    }


def show(console: Console, title: str, models: dict[str, Rows]) -> None:
    """Print models side by side, one line for each thing that is said of them.

    Parameters
    ----------
    console : Console
        Where to print.
    title : str
        Title of the table.
    models : dict of str to dict
        The lines of each model by its name.
    """
    table = RichTable(title=title, title_justify="left", show_header=len(models) > 1)
    table.add_column("")
    for name in models:
        table.add_column(name, overflow="fold")
    for label in dict.fromkeys(label for rows in models.values() for label in rows):
        table.add_row(label, *(rows.get(label, "-") for rows in models.values()))
    console.print(table)
