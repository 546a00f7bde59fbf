"""Section 6.2: larger data sets, the dictionary searched in parts, up to a million points."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

import numpy as np

from sparsebayes import RVR, datasets
from sparsebayes.report.style import BLUE, RED
from sparsebayes.studies.framework import BESIDE, EQUAL, LOWER, TIPPING_FAUL, Outcome, Row, Study
from sparsebayes.studies.real_sets import one_certificate

_SEED = 0
_NOISE = 0.1
_FULL = 1_000_000


def fit(n: int) -> dict[str, float]:
    """One size of the two-dimensional sinc problem, as many candidates as points."""
    X, y = datasets.make_sinc2d(n, noise=_NOISE, random_state=_SEED)
    X_test, _, clean = datasets.make_sinc2d(5000, random_state=_SEED + 1000, return_clean=True)
    begun = time.perf_counter()
    model = RVR(gamma=1 / 2.5**2).fit(X, y)
    seconds = time.perf_counter() - begun
    return {
        "seconds": seconds,
        "error": float(np.sqrt(np.mean((np.asarray(model.predict(X_test)) - clean) ** 2))),
        "vectors": len(model.relevance_),
        "converged": float(one_certificate(model.certificate_).converged),
    }


def run(quick: bool) -> Outcome:
    """Growing sizes; the figures are those of the largest."""
    sizes = [1000, 5000, 20_000] if quick else [1000, 10_000, 100_000, _FULL]
    found = {n: fit(n) for n in sizes}
    n, last = sizes[-1], found[sizes[-1]]
    reduced = f"N = {n} instead of {_FULL}" if quick else ""
    # What would be left if the kept functions were known and least squares had only to find their weights.
    floor = _NOISE * np.sqrt((last["vectors"] + 1) / n)
    rows = [
        Row(
            "certified: no candidate would gain",
            1.0,
            last["converged"],
            EQUAL,
            reduced=reduced,
            settings="gamma=1/2.5²",
        ),
        Row(
            "RMS error, times that of least squares on as many functions",
            2.0,
            last["error"] / floor,
            LOWER,
            source="asked for here",
            why="the paper only reports success",
            reduced=reduced,
            settings="gamma=1/2.5²",
        ),
        Row("points", float(_FULL), float(n), BESIDE, reduced=reduced),
        Row("seconds", None, last["seconds"], BESIDE, reduced=reduced),
        Row("vectors", None, float(last["vectors"]), BESIDE, reduced=reduced),
    ]
    return Outcome(
        rows, {"N": sizes} | {key: [found[n][key] for n in sizes] for key in ("seconds", "error", "vectors")}
    )


def draw(figure: Any, data: Mapping[str, Any]) -> None:
    """Time and error against N."""
    left, right = figure.subplots(1, 2)
    left.loglog(data["N"], data["seconds"], "o-", color=BLUE)
    left.set_ylabel("seconds")
    right.loglog(data["N"], data["error"], "o-", color=RED, label="RMS error")
    floor = [_NOISE * np.sqrt((m + 1) / n) for n, m in zip(data["N"], data["vectors"], strict=True)]
    right.loglog(data["N"], floor, ":", color="black", label="least squares on as many functions")
    for n, e, m in zip(data["N"], data["error"], data["vectors"], strict=True):
        right.annotate(f"{m} vectors", (n, e), textcoords="offset points", xytext=(4, 6), fontsize=8)
    right.margins(x=0.2, y=0.15)
    right.set_ylabel("RMS error")
    right.legend(fontsize=8, loc="lower left")
    for panel in (left, right):
        panel.set_xlabel("N, points and candidates")
        panel.grid(alpha=0.3)


STUDY = Study(
    "tf-million",
    TIPPING_FAUL,
    "section 6.2",
    "The same algorithm on more and more data, with as many candidates as points.",
    run,
    draw,
    "sizes above 20,000; the whole goes to a million points",
    seed=_SEED,
)
