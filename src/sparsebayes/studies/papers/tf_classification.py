"""Figs 4 and 5: run time, error and sparsity on Ripley's mixture as N grows."""

from __future__ import annotations

from sparsebayes import datasets
from sparsebayes.studies.framework import TIPPING_FAUL, Outcome, Study
from sparsebayes.studies.growth import Draw, Growth, curves, draw_growth, judge, measure

_FULL = (1000, 10)


def make(n: int, seed: int) -> Draw:
    """Tested on 10,000 rows of their own."""
    return (*datasets.make_ripley(n, random_state=seed), *datasets.make_ripley(10_000, random_state=1000 + seed))


def run(quick: bool) -> Outcome:
    """Sizes from 100 to 4000, the old algorithm up to 1000."""
    sizes = (100, 250, 1000) if quick else (100, 200, 500, 1000, 2000, 4000)
    at, draws, fixed = (1000, 3, 250) if quick else (*_FULL, 1000)
    problem = Growth(make, 1.0, True, 298.0, 12.84, 0.38, sizes, 1000, fixed, draws, at, "gamma=1")
    found = measure(problem)
    return Outcome(judge(problem, found, _FULL), curves(problem, found))


STUDY = Study(
    "tf-classification",
    TIPPING_FAUL,
    "Figs 4 and 5",
    "Classification: run time, error and sparsity of the new and the old algorithm, and of an SVM, as N grows.",
    run,
    draw_growth,
    'N above 1000 (above 250 for solver="mackay"), and 7 of 10 draws',
    size=(11.0, 3.8),
)
