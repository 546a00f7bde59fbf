"""Fig. 1: the evidence as a function of one precision has one maximum, finite or at infinity."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize_scalar
from scipy.spatial.distance import cdist

from sparsebayes import RVR, datasets
from sparsebayes.report.style import BLUE, RED
from sparsebayes.studies.framework import EQUAL, LOWER, TIPPING_FAUL, Outcome, Row, Study
from sparsebayes.typing import Array

_GAMMA = 1 / 4**2
_SEED = 0


def log_evidence(t: Array, C: Array) -> float:
    """Eq. 7 from the covariance of the targets, by brute force."""
    factor = np.linalg.cholesky(C)
    white = np.linalg.solve(factor, t)
    return float(-0.5 * (len(t) * np.log(2.0 * np.pi) + white @ white) - np.sum(np.log(np.diag(factor))))


def contribution(alpha: Array, s: float, q2: float) -> Array:
    """Eq. 18, the part of the evidence that depends on one precision."""
    return 0.5 * (np.log(alpha) - np.log(alpha + s) + q2 / (alpha + s))


def one_function(t: Array, C: Array, phi: Array) -> dict[str, Any]:
    """Along one function's precision: the contribution, and the evidence computed anew; ``C`` is without it."""
    solved = np.linalg.solve(C, np.column_stack([phi, t]))
    s, q2 = float(phi @ solved[:, 0]), float(phi @ solved[:, 1]) ** 2  # eq. 19
    peak = s**2 / (q2 - s) if q2 > s else np.inf  # eqs 20, 21
    middle = peak if np.isfinite(peak) else s
    alpha = middle * np.geomspace(1e-4, 1e6, 2001)
    without = log_evidence(t, C)
    picked = slice(None, None, 40)
    anew = np.array([log_evidence(t, C + np.outer(phi, phi) / a) - without for a in alpha[picked]])
    return {
        "s": s,
        "q2": q2,
        "peak": peak,
        "alpha": alpha,
        "ell": contribution(alpha, s, q2),
        "picked": alpha[picked],
    } | {"anew": anew}


def run(quick: bool) -> Outcome:
    """A kept and a left-out function of a fitted model of the sinc function."""
    X, y = datasets.make_sinc(100, noise=0.1, random_state=_SEED)
    model = RVR(gamma=_GAMMA, fit_intercept=False).fit(X, y)
    K, kept = np.exp(-_GAMMA * cdist(X, X, "sqeuclidean")), model.relevance_
    t = y  # without an intercept nothing is centred
    noise = float(np.ravel(model.noise_variance_)[0])

    def covariance(places: NDArray[Any], alpha: Array) -> Array:
        return noise * np.eye(len(y)) + (K[:, places] / alpha) @ K[:, places].T

    inside = one_function(t, covariance(kept[1:], model.alpha_[1:]), K[:, kept[0]])
    full = covariance(kept, model.alpha_)
    # The function left out that overlaps least with the others shows the second case most plainly.
    left = [one_function(t, full, K[:, m]) for m in range(0, len(y), 5) if m not in kept]
    outside = max((found for found in left if found["q2"] < found["s"]), key=lambda found: found["s"] - found["q2"])
    # Both are decisions of the fit, held against the evidence by brute force along the precision.
    best = _best_precision(t, covariance(kept[1:], model.alpha_[1:]), K[:, kept[0]], float(model.alpha_[0]))
    gain = max(float(np.max(found["anew"])) for found in left)
    tol, settings = float(model.tol), "gamma=1/4², fit_intercept=False"
    rows = [
        Row(
            "a function kept: its α / that of the largest evidence, by brute force",
            1.0,
            float(model.alpha_[0]) / best,
            EQUAL,
            0.05,
            "a maximum is flat: at 5 % off it less than 1e-3 nats are lost",
            source="eq. 20",
            settings=settings,
        ),
        Row(
            f"{len(left)} functions left out: most that any precision would gain, nats, by brute force",
            0.0,
            max(gain, 0.0),
            LOWER,
            tol,
            "tol of the fit",
            source="eq. 21",
            settings=settings,
        ),
    ]
    return Outcome(rows, {"inside": inside, "outside": outside})


def _best_precision(t: Array, C: Array, phi: Array, begin: float) -> float:
    """Where the evidence itself, computed anew at every step, is largest."""
    found = minimize_scalar(
        lambda log: -log_evidence(t, C + np.outer(phi, phi) * np.exp(-log)),
        bounds=(np.log(begin) - 10.0, np.log(begin) + 10.0),
        method="bounded",
        options={"xatol": 1e-6},
    )
    return float(np.exp(found.x))


def draw(figure: Any, data: Mapping[str, Any]) -> None:
    """Both cases side by side, as in the paper."""
    for panel, key, title in zip(
        figure.subplots(1, 2), ("inside", "outside"), ("q² > s: belongs in", "q² < s: stays out"), strict=True
    ):
        found = data[key]
        panel.semilogx(found["alpha"], found["ell"], color=BLUE, label="ℓ(α), eq. 18")
        panel.plot(found["picked"], found["anew"], ".", color=RED, markersize=4, label="evidence computed anew")
        if np.isfinite(found["peak"]):
            panel.axvline(found["peak"], color="black", linestyle=":", label="α = s²/(q² − s), eq. 20")
        else:
            panel.axhline(0.0, color="black", linestyle=":", label="limit α → ∞, eq. 21")
        panel.set_ylim(max(float(np.min(found["ell"])), float(np.max(found["ell"])) - 12.0), None)
        panel.set_xlabel("α")
        panel.set_ylabel("log evidence, less that without the function")
        panel.set_title(title, fontsize=9)
        panel.legend(fontsize=8, loc="lower right" if np.isinf(found["peak"]) else "upper right")


STUDY = Study(
    "tf-fig1",
    TIPPING_FAUL,
    "Fig. 1",
    "The evidence depends on one precision through ℓ(α), whose single maximum is finite or at infinity.",
    run,
    draw,
    seed=_SEED,
)
