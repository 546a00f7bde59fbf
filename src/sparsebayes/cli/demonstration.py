"""What ``demo`` does: the sinc function in one picture, and Boston's house prices by cross-validation."""

from __future__ import annotations

import io
import time
from pathlib import Path

import numpy as np
from sklearn.model_selection import KFold

from sparsebayes.atomic import write_atomically
from sparsebayes.cli.summary import Rows, learned, print_json, quality, show, tell
from sparsebayes.datasets import load, make_sinc
from sparsebayes.estimators import RVR
from sparsebayes.report import plot_fit, write_report
from sparsebayes.report.measures import RegressionTest, judge, regression_test
from sparsebayes.typing import Array

_WIDTH = 4.0  # of the sinc problem's functions, in Tipping (2001)
_FOLDS = 5
_SEED = 0
# Draws of the sinc problem that its error bars are judged by: a hundred rows tell their own noise to 7 %, so that from
# draw to draw 92 to 98 % of new rows are in bars for 95.
_DRAWS = 20


def run_demo(out: Path, *, as_json: bool = False) -> None:
    """Fit the sinc function and Boston's house prices, say how well, and draw the first.

    Parameters
    ----------
    out : Path
        Folder for ``sinc.png`` and ``sinc.html``.
    as_json : bool
        Print for machines.
    """
    out.mkdir(parents=True, exist_ok=True)
    (X, y), (new, observed, clean) = _sinc_rows(_SEED)
    est = RVR(gamma=1.0 / _WIDTH**2).fit(X, y)
    sinc, boston = _sinc(est, new, observed, clean), _boston()
    page = out / "sinc.html"
    write_report(page, est, X, y, X_test=new, y_test=observed, feature_names=["x"], title="sinc with noise 0.1")
    picture, trouble = _picture(out / "sinc.png", est, X, y)
    if as_json:
        print_json({"sinc": sinc[1], "boston": boston[1], "report": str(page), "picture": picture and str(picture)})
        return
    show("Relevance vector regression", {"sinc (1 input)": sinc[0], "Boston (13 inputs)": boston[0]})
    tell(f"Report: {page}")
    tell(trouble or f"Picture: {picture}")


def _sinc_rows(draw: int) -> tuple[tuple[Array, ...], tuple[Array, ...]]:
    """Rows to learn from, and new ones with what they would be without noise."""
    new = make_sinc(1000, noise=0.1, spacing="random", return_clean=True, random_state=2 * draw + 1)
    return make_sinc(100, noise=0.1, random_state=2 * draw), new


def _sinc(est: RVR, new: Array, observed: Array, clean: Array) -> tuple[Rows, dict[str, object]]:
    result = judge(est, new, observed)
    error = float(np.sqrt(np.mean((np.asarray(est.predict(new)) - clean) ** 2)))
    coverages = [_sinc_coverage(draw) for draw in range(_SEED, _SEED + _DRAWS)]
    rows = {"kept": f"{len(est.relevance_)} of 100 training rows", **quality(result, "test rows")}
    rows["in 95 % error bars"] = (
        f"{np.mean(coverages):.1%} over {_DRAWS} draws, from {min(coverages):.1%} to {max(coverages):.1%}; "
        f"{coverages[0]:.1%} in this one"
    )
    rows |= {"error to the truth": f"{error:.3g}", **learned(est)}
    return rows, {"kept": len(est.relevance_), **vars(result), "rmse_to_truth": error, "coverages": coverages}


def _sinc_coverage(draw: int) -> float:
    """Share of new rows in the error bars of a fit to one draw."""
    (X, y), (new, observed, _) = _sinc_rows(draw)
    low, high = RVR(gamma=1.0 / _WIDTH**2).fit(X, y).predict_interval(new)
    return float(np.mean((low <= observed) & (observed <= high)))


def _boston() -> tuple[Rows, dict[str, object]]:
    """Every house is predicted once, by a model that has not seen it."""
    X, y = load("boston_mass", return_X_y=True)
    folds = list(KFold(_FOLDS, shuffle=True, random_state=_SEED).split(X))
    mean, std = np.empty(len(y)), np.empty(len(y))
    kept, each = [], []
    began = time.perf_counter()
    for train, test in folds:
        centre, scale = X[train].mean(axis=0), X[train].std(axis=0)
        est = RVR().fit((X[train] - centre) / scale, y[train])
        mean[test], std[test] = est.predict((X[test] - centre) / scale, return_std=True)
        kept.append(len(est.relevance_))
        each.append(regression_test(y[test], mean[test], std[test]))
    seconds = time.perf_counter() - began
    result = regression_test(y, mean, std)
    rows = {
        "kept": f"{min(kept)} to {max(kept)} of {len(folds[0][0])} training rows",
        **quality(result, f"rows, each left out once in {_FOLDS} folds"),
        "error by fold": ", ".join(f"{fold.rmse:.2f}" for fold in each),
        "in error bars by fold": ", ".join(f"{fold.coverage:.0%}" for fold in each),
        "time": f"{seconds:.2f} s for {_FOLDS} fits",
    }
    return rows, {"kept": kept, **vars(result), "folds": [_brief(fold) for fold in each]}


def _brief(fold: RegressionTest) -> dict[str, float]:
    return {"rmse": fold.rmse, "coverage": fold.coverage}


def _picture(path: Path, est: RVR, X: Array, y: Array) -> tuple[Path | None, str]:
    """Draw the fit; where Matplotlib is missing, say how to get it."""
    try:
        from matplotlib.figure import Figure
    except ImportError:
        return None, 'No picture: plots need Matplotlib: pip install "sparsebayes[plot]"'
    # A figure of its own, not of pyplot: nothing is shown, no window system is asked for.
    figure = Figure(figsize=(7, 4), layout="constrained")
    shown = plot_fit(est, X, y, ax=figure.subplots(), truth=lambda x: np.sinc(x / np.pi))
    shown.ax_.set_title(f"sinc with noise 0.1: {len(est.relevance_)} of {len(y)} functions kept")
    content = io.BytesIO()
    figure.savefig(content, format="png", dpi=150)
    write_atomically(path, content.getvalue())
    return path, ""
