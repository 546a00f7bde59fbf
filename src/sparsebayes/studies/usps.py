"""Tipping 2001, classification table, USPS: ten classes of handwritten digits by one joint softmax.

Run ``python -m sparsebayes.studies.usps [--rows N] [--limit SECONDS]`` with ``SPARSEBAYES_DATA`` set.  The width is
chosen on a subset of the training rows, by the error on other training rows; then all of them are fitted once.
"""

from __future__ import annotations

import argparse
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.spatial.distance import pdist

from sparsebayes import RVC, datasets
from sparsebayes.typing import Array

# Test error (%) and (row, class) pairs printed by Tipping 2001.
PAPER = (5.1, 316)
# Values of gamma to choose from, as multiples of the inverse median squared distance.
WIDTHS = (0.7, 1.5, 3.0)
# Rows of the subset, and rows by which the widths are judged.
_SUBSET, _JUDGED = 1200, 2500
# Nats that no single move may gain in the end, on the subset and on all rows: evidences are in the hundreds.
_ROUGH, _TOL = 2.0, 0.1
# Seconds after which the one fit is asked to end: the step at hand, up to 64 trials, and the certificate take the rest
# of ten minutes.
LIMIT = 500.0
# More than any fit makes: a joint re-estimation counts as many moves as there are precisions.
_MOVES = 10**7


@dataclass(frozen=True)
class Fit:
    """The one fit: test error (%), (row, class) pairs, seconds, and what the certificate says."""

    gamma: float
    error: float
    pairs: int
    seconds: float
    log_evidence: float
    excluded_gain: float
    kept_gain: float
    status: str
    certified: bool

    @property
    def met(self) -> bool:
        """At most the paper's error with at most its pairs."""
        return self.error <= PAPER[0] and self.pairs <= PAPER[1]


@dataclass(frozen=True)
class Width:
    """A width on trial: its error on rows that were left out, and the evidence of its model of the subset."""

    gamma: float
    error: float
    log_evidence: float


def try_widths(X: Array, y: NDArray[Any], seed: int = 0) -> list[Width]:
    """Models of a subset, judged on other rows; that which errs least comes first."""
    order = np.random.default_rng(seed).permutation(len(X))
    small, judged = order[:_SUBSET], order[_SUBSET : _SUBSET + _JUDGED]
    median = float(np.median(pdist(X[small[:400]], "sqeuclidean")))
    tried = []
    for gamma in np.array(WIDTHS) / median:
        model = RVC(gamma=float(gamma), tol=_ROUGH, max_iter=_MOVES).fit(X[small], y[small])
        error = float(np.mean(model.predict(X[judged]) != y[judged]))
        tried.append(Width(float(gamma), error, model.log_marginal_likelihood_))
    return sorted(tried, key=lambda width: width.error)


def fit(data: Any, train: NDArray[np.intp], gamma: float, limit: float) -> Fit:
    """Fit the training rows with the time at hand, and judge the test rows."""
    begun = time.perf_counter()
    with _interrupted_after(limit):
        model: Any = RVC(gamma=gamma, tol=_TOL, max_iter=_MOVES).fit(data.data[train], data.target[train])
    seconds = time.perf_counter() - begun
    test, certificate = data.test_idx, model.certificate_
    return Fit(
        gamma=gamma,
        error=100.0 * float(np.mean(model.predict(data.data[test]) != data.target[test])),
        pairs=int(np.sum(np.isfinite(model.alpha_))),
        seconds=seconds,
        log_evidence=model.log_marginal_likelihood_,
        excluded_gain=certificate.excluded_gain,
        kept_gain=certificate.kept_gain,
        status=model.status_.name,
        certified=certificate.converged,
    )


@contextmanager
def _interrupted_after(seconds: float) -> Iterator[None]:
    """Ask the fit to end as Ctrl-C would: it ends after the step at hand, with what it has and its certificate."""
    timer = threading.Timer(seconds, signal.raise_signal, [signal.SIGINT])
    before = signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background jobs ignore the signal
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
        signal.signal(signal.SIGINT, before)


def main() -> None:
    """Print what one fit of all rows reaches."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, help="fit so many random training rows only")
    parser.add_argument("--limit", type=float, default=LIMIT, help="seconds after which the fit is ended")
    arguments = parser.parse_args()
    data = datasets.load("usps")
    train = np.random.default_rng(0).permutation(data.train_idx)[: arguments.rows]
    print(f"width on {_SUBSET} of {len(train)} rows:")
    tried = try_widths(data.data[train], data.target[train])
    for width in tried:
        print(f"  gamma {width.gamma:.5f}: error {width.error:.2%}, evidence {width.log_evidence:.1f}")
    found = fit(data, train, tried[0].gamma, arguments.limit)
    print(f"gamma {found.gamma:.5f}, log evidence {found.log_evidence:.2f}, {found.seconds:.0f} s, {found.status}")
    print(f"test error {found.error:.2f} % (paper {PAPER[0]} %), {found.pairs} pairs (paper {PAPER[1]})")
    print(
        f"certificate: best addition {found.excluded_gain:.3g} nats, best re-estimation or deletion "
        f"{found.kept_gain:.3g} nats, {'converged' if found.certified else 'not converged'} at {_TOL} nats"
    )
    print("met" if found.met else "missed")


if __name__ == "__main__":
    main()
