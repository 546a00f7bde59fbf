"""Figs 2 and 3: run time, error and sparsity on the two-dimensional sinc function as N grows."""

from __future__ import annotations

from sparsebayes import datasets
from sparsebayes.studies.framework import TIPPING_FAUL, Outcome, Study
from sparsebayes.studies.growth import Draw, Growth, curves, draw_growth, judge, measure

_FULL = (1000, 10)


def make(n: int, seed: int) -> Draw:
    """Noise of 0.1; tested against the function itself."""
    X_test, _, clean = datasets.make_sinc2d(2000, random_state=1000 + seed, return_clean=True)
    X, y = datasets.make_sinc2d(n, noise=0.1, random_state=seed)
    return X, y, X_test, clean


def run(quick: bool) -> Outcome:
    """Sizes from 100 to 4000, the old algorithm up to 1000."""
    sizes = (100, 500, 1000) if quick else (100, 200, 500, 1000, 2000, 4000)
    at, draws = (1000, 3) if quick else _FULL
    problem = Growth(make, 1 / 2.5**2, False, 257.0, 14.42, 1.03, sizes, 1000, 1000, draws, at, "gamma=1/2.5²")
    found = measure(problem)
    return Outcome(judge(problem, found, _FULL), curves(problem, found))


STUDY = Study(
    "tf-regression",
    TIPPING_FAUL,
    "Figs 2 and 3",
    "Regression: run time, error and sparsity of the new and the old algorithm, and of an SVM, as N grows.",
    run,
    draw_growth,
    "N above 1000, and 7 of 10 draws",
    size=(11.0, 3.8),
)
