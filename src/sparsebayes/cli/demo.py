"""``sparsebayes demo``: the main job on bundled data, in a few seconds."""

from __future__ import annotations

import io
import time
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sparsebayes.cli.summary import Rows, describe, judge, plain_console, show
from sparsebayes.datasets import load, make_sinc
from sparsebayes.estimators import RVR
from sparsebayes.export.atomic import write_atomically
from sparsebayes.report import plot_fit

Array = NDArray[np.float64]

_WIDTH = 4.0  # of the sinc problem's functions, in Tipping (2001)
_SEED = 0


def run_demo(out: Path) -> None:
    """Fit the sinc function and Boston's house prices, print how well, and draw the first.

    Parameters
    ----------
    out : Path
        Folder for the picture ``sinc.png``.
    """
    console = plain_console()
    out.mkdir(parents=True, exist_ok=True)
    X, y = make_sinc(100, noise=0.1, random_state=_SEED)
    est, sinc = _sinc(X, y)
    show(console, "Relevance vector regression", {"sinc (1 input)": sinc, "Boston (13 inputs)": _boston()})
    picture = out / "sinc.png"
    try:
        write_atomically(picture, _draw(est, X, y))
    except ImportError as error:
        message = f"No picture: {error}"
    else:
        message = f"Picture: {picture}"
    console.print(message, soft_wrap=True)


def _sinc(X: Array, y: Array) -> tuple[RVR, Rows]:
    est, rows = _fit(RVR(gamma=1.0 / _WIDTH**2), X, y)
    new, observed, clean = make_sinc(1000, noise=0.1, spacing="random", return_clean=True, random_state=_SEED + 1)
    error = float(np.sqrt(np.mean((np.asarray(est.predict(new)) - clean) ** 2)))
    return est, _kept_first(rows, judge(est, new, observed) | {"RMSE to the truth": f"{error:.3g}"})


def _boston() -> Rows:
    X, y = load("boston_mass", return_X_y=True)
    order = np.random.default_rng(_SEED).permutation(len(y))
    test, train = np.split(order, [len(y) // 5])
    X = (X - X[train].mean(axis=0)) / X[train].std(axis=0)
    est, rows = _fit(RVR(), X[train], y[train])
    return _kept_first(rows, judge(est, X[test], y[test]))


def _fit(est: RVR, X: Array, y: Array) -> tuple[RVR, Rows]:
    began = time.perf_counter()
    est.fit(X, y)
    seconds = time.perf_counter() - began
    return est, describe(est, n_candidates=len(y), what="training rows", seconds=seconds)


def _kept_first(rows: Rows, quality: Rows) -> Rows:
    """How sparse and how good before all the rest."""
    return {"kept": rows["kept"], **quality, **rows}


def _draw(est: RVR, X: Array, y: Array) -> bytes:
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise ImportError('plots need Matplotlib: pip install "sparsebayes[plot]"') from error
    # A figure of its own, not of pyplot: nothing is shown, no window system is asked for.
    figure = Figure(figsize=(7, 4), layout="constrained")
    axes: Any = plot_fit(est, X, y, ax=figure.subplots(), truth=lambda x: np.sinc(x / np.pi))
    axes.set_title(f"sinc with noise 0.1: {len(est.relevance_)} of {len(y)} functions kept")
    content = io.BytesIO()
    figure.savefig(content, format="png", dpi=150)
    return content.getvalue()
