"""Sparse kernel PCA: the leading components of all rows, from few of them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from sklearn.datasets import load_digits
from sklearn.decomposition import KernelPCA

from sparsebayes import SparseKernelPCA
from sparsebayes.report.style import RED
from sparsebayes.studies.framework import BESIDE, HIGHER, LECTURE, LOWER, Outcome, Row, Study
from sparsebayes.studies.small_models import clusters, kernel_pca

_SEED = 0
_NOISE, _GAMMA, _COMPONENTS = 0.04, 10.0, 3
# The lecture shows pictures only.
_ASKED = "asked for here"


def run(quick: bool) -> Outcome:
    """Three clusters, and handwritten digits."""
    draws = 5 if quick else 20
    found = [kernel_pca("", clusters(_SEED + k), _NOISE, _GAMMA, _COMPONENTS) for k in range(draws)]
    size = 600 if quick else 1797
    digits = kernel_pca("", np.asarray(load_digits(return_X_y=True)[0])[:size] / 16.0, 0.003, 0.02, 10)
    few, less = (f"{draws} of 20 draws", f"{size} of 1797 digits") if quick else ("", "")
    cosine, share = (np.mean([row.figures["mean cosine"] for row in found]), np.mean([row.kept for row in found]) / 90)
    rows = [
        Row(
            "three clusters: agreement of components with all rows'",
            0.95,
            float(cosine),
            HIGHER,
            source=_ASKED,
            reduced=few,
        ),
        Row("three clusters: share of the rows kept", 0.15, float(share), LOWER, source=_ASKED, reduced=few),
        Row(
            "digits: agreement of ten components",
            0.95,
            digits.figures["mean cosine"],
            HIGHER,
            source=_ASKED,
            reduced=less,
        ),
        Row("digits: share of the rows kept", 0.15, digits.kept / size, LOWER, source=_ASKED, reduced=less),
        Row("digits: worst of ten components", None, digits.figures["worst cosine"], BESIDE, reduced=less),
    ]
    return Outcome(rows, _pictures())


def _pictures() -> dict[str, Any]:
    X = clusters(_SEED)
    side = np.linspace(-1.0, 1.0, 60)
    plane = np.column_stack([v.ravel() for v in np.meshgrid(side, side)])
    model = SparseKernelPCA(_NOISE, _COMPONENTS, gamma=_GAMMA).fit(X)
    full = KernelPCA(_COMPONENTS, kernel="rbf", gamma=_GAMMA).fit(X)
    ours, theirs = model.transform(plane), full.transform(plane)
    signs = np.sign(np.sum(ours * theirs, axis=0))
    return {
        "X": X,
        "kept": X[model.relevance_],
        "side": side,
        "sparse": (ours * signs).T.reshape(-1, 60, 60),
        "full": theirs.T.reshape(-1, 60, 60),
    }


def draw(figure: Any, data: Mapping[str, Any]) -> None:
    """Contours of the components, of all rows above and of few below."""
    panels = figure.subplots(2, _COMPONENTS, sharex=True, sharey=True)
    for line, key, what in zip(panels, ("full", "sparse"), ("all rows", f"{len(data['kept'])} rows"), strict=True):
        for k, (panel, values) in enumerate(zip(line, data[key], strict=True)):
            panel.contourf(data["side"], data["side"], values, 12, cmap="Blues")
            panel.plot(*data["X"].T, ".", color="black", markersize=2)
            if key == "sparse":
                panel.plot(*data["kept"].T, "o", markerfacecolor="none", markeredgecolor=RED, markersize=8)
            panel.set_title(f"component {k + 1} from {what}", fontsize=9)
            panel.set_aspect("equal")


STUDY = Study(
    "lecture4-kernel-pca",
    LECTURE,
    "sparse kernel PCA",
    "Kernel principal components from few rows, beside those from all rows.",
    run,
    draw,
    "15 of 20 draws of the clusters, 1197 of 1797 digits",
    seed=_SEED,
    size=(9.0, 6.2),
)
