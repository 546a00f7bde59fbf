"""sinc(x1) + 0.1 x2: extra columns in the dictionary, and scales of the inputs learned by the evidence."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from sparsebayes.studies.dictionary_learning import extra_columns_draw
from sparsebayes.studies.framework import BESIDE, HIGHER, LOWER, ONE_FUNCTION, TIPPING, Outcome, Row, Study, of_squares

_SEED = 0


def run(quick: bool) -> Outcome:
    """Means over draws of 100 examples with noise 0.1."""
    draws = 5 if quick else 20
    found = [extra_columns_draw(_SEED + k) for k in range(draws)]
    reduced = f"{draws} of 20 draws" if quick else ""
    mean = {
        name: float(np.mean([getattr(one, name) for one in found]))
        for name in ("mse", "functions", "off", "svm_mse", "svm_vectors")
    }
    given = 'kernel=Polynomial(2) + RBF(4), gamma="ard"'
    size = "printed as RMS, but by its size a mean squared error"
    rows = [
        Row(
            "mean squared error",
            0.0053,
            mean["mse"],
            LOWER,
            *of_squares(0.0053, 8.0, draws),
            size,
            reduced=reduced,
            settings=given,
        ),
        Row("functions", 8.0, mean["functions"], LOWER, *ONE_FUNCTION, reduced=reduced, settings=given),
        Row(
            "mean squared error / that of the SVM",
            0.0053 / 0.0194,
            mean["mse"] / mean["svm_mse"],
            BESIDE,
            reduced=reduced,
        ),
        Row(
            "share of draws in which the scale of x2 is off", 1.0, mean["off"], HIGHER, reduced=reduced, settings=given
        ),
        Row("mean squared error of the SVM", 0.0194, mean["svm_mse"], BESIDE, reduced=reduced),
        Row("support vectors", 75.0, mean["svm_vectors"], BESIDE, reduced=reduced),
    ]
    side = np.linspace(-10.0, 10.0, 60)
    plane = np.column_stack([v.ravel() for v in np.meshgrid(side, side)])
    surface = np.asarray(found[0].model.predict(plane)).reshape(60, 60)
    truth = (np.sinc(plane[:, 0] / np.pi) + 0.1 * plane[:, 1]).reshape(60, 60)
    return Outcome(rows, {"side": side, "ours": surface, "truth": truth})


def draw(figure: Any, data: Mapping[str, Any]) -> None:
    """The function, its approximation, and what is between them."""
    pictures = {"sinc(x1) + 0.1 x2": data["truth"], "approximation": data["ours"]}
    pictures |= {"approximation less function": data["ours"] - data["truth"]}
    levels = np.linspace(-1.4, 2.1, 15)
    for panel, (title, values) in zip(figure.subplots(1, 3, sharey=True), pictures.items(), strict=True):
        shown = panel.contourf(data["side"], data["side"], values, levels if "less" not in title else 12, cmap="RdBu_r")
        figure.colorbar(shown, ax=panel)
        panel.set_title(title, fontsize=9)
        panel.set_xlabel("x1")
    figure.axes[0].set_ylabel("x2")


STUDY = Study(
    "tipping-scales",
    TIPPING,
    "sinc + linear with learned scales",
    "Linear and quadratic columns beside the kernels, whose scales are learned; x2 enters linearly only.",
    run,
    draw,
    "15 of 20 draws",
    seed=_SEED,
    size=(11.0, 3.6),
)
