"""What can be said of each kept function, as a table."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.stats import norm

from sparsebayes.frames import data_frame
from sparsebayes.inference.objective import Support, SupportRule
from sparsebayes.typing import Array

# Columns of the table, and what they are called where it is printed.
_TITLES = {
    "output": "output",
    "function": "function",
    "weight": "weight",
    "std": "std",
    "evidence_lost": "evidence lost",
    "signal_to_noise": "q2/s",
    "sign_probability": "P(sign)",
    "inclusion": "P(effect)",
}
_DIGITS = 6


@dataclass(frozen=True)
class SupportReport:
    """One row for each kept function (and target or class), the intercept last.

    Attributes
    ----------
    output : tuple
        Target number or class of each row.
    function : tuple of str
        Which function.
    weight, std : ndarray
        Posterior mean and standard deviation of its weight.
    evidence_lost : ndarray
        Fall of the log evidence if this function alone were removed, in nats.
    signal_to_noise : ndarray
        q²/s of the function: about 1 for one that has nothing to do with the targets.
    sign_probability : ndarray
        Posterior probability that the weight has the sign of its mean.
    threshold : float
        Smallest signal-to-noise ratio with which a function stayed.
    expected_false : float
        Expected number of irrelevant functions above the threshold, if all candidates were irrelevant, at one given
        model with the true noise.  A search sees many models, and a learned noise comes out low: it can keep more.
    inclusion : ndarray, optional
        Probability that the function carries an effect, with all others that could carry it in its place; NaN for the
        intercept.
    """

    output: tuple[Any, ...]
    function: tuple[str, ...]
    weight: Array
    std: Array
    evidence_lost: Array
    signal_to_noise: Array
    sign_probability: Array
    threshold: float
    expected_false: float
    inclusion: Array | None = None

    @property
    def columns(self) -> list[str]:
        """Names of the columns of the table."""
        return [name for name in _TITLES if getattr(self, name) is not None]

    def __len__(self) -> int:
        return len(self.function)

    def rows(self) -> Iterator[tuple[Any, ...]]:
        """Rows of the table."""
        return zip(*(getattr(self, name) for name in self.columns), strict=True)

    def to_frame(self) -> Any:
        """The table as a pandas DataFrame."""
        return data_frame({name: list(getattr(self, name)) for name in self.columns})

    def __str__(self) -> str:
        titles = [_TITLES[name] for name in self.columns]
        cells = [[str(a), b, *(f"{v:.{_DIGITS - 2}g}" for v in rest)] for a, b, *rest in self.rows()]
        widths = [max(len(title), *(len(row[k]) for row in cells), 0) for k, title in enumerate(titles)]
        lines = [_line(titles, widths), *(_line(row, widths) for row in cells)]
        lines.append(
            f"{len(self)} functions kept with q2/s above {self.threshold:.3g}; at one given model with the true noise, "
            f"{self.expected_false:.3g} of as many irrelevant candidates would exceed it"
        )
        return "\n".join(lines)


def _line(cells: Sequence[str], widths: list[int]) -> str:
    left = [cell.ljust(width) for cell, width in zip(cells[:2], widths[:2], strict=True)]
    right = [cell.rjust(width) for cell, width in zip(cells[2:], widths[2:], strict=True)]
    return "  ".join(left + right).rstrip()


def sign_probability(mean: Array, variance: Array) -> Array:
    """Probability that a Gaussian weight has the sign of its mean."""
    return norm.cdf(np.abs(mean) / np.sqrt(variance))


def make_report(
    labels: list[list[Any]],
    posteriors: Sequence[Any],
    supports: Sequence[Support],
    functions: list[str],
    rule: SupportRule,
) -> SupportReport:
    """Put the table together.

    Parameters
    ----------
    labels : list of list
        Target or class of every weight of every posterior.
    posteriors, supports : sequences
        Posteriors with ``functions``, ``mean`` and ``covariance``, and what is known of their functions.
    functions : list of str
        Names of all kept functions.
    rule : SupportRule
        Rule by which they were kept.
    """
    means = np.concatenate([p.mean for p in posteriors])
    variances = np.concatenate([np.diagonal(p.covariance) for p in posteriors])
    return SupportReport(
        output=tuple(label for some in labels for label in some),
        function=tuple(functions[k] for p in posteriors for k in p.functions),
        weight=means,
        std=np.sqrt(variances),
        evidence_lost=np.concatenate([s.evidence_lost for s in supports]),
        signal_to_noise=np.concatenate([s.signal_to_noise for s in supports]),
        sign_probability=sign_probability(means, variances),
        threshold=rule.threshold,
        expected_false=rule.expected_false,
    )
