"""Function approximation: the mean of a Gaussian process, and a density of a thousand Gaussians, by few functions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from sklearn.neighbors import KernelDensity

from sparsebayes.applications import sparsify
from sparsebayes.report.style import GREY, RED
from sparsebayes.studies.framework import BESIDE, LECTURE, LOWER, ONE_FUNCTION, Outcome, Row, Study, of_mean_count
from sparsebayes.studies.small_models import clusters_and_ring, density, gaussian_process, process

_SEED = 0
_KEPT = ((7, "σ = 0.1, 100 places"), (15, "σ = 0.001, 100 places"), (20, "σ = 0.001, 2000 places"))
_DENSITY = 49


def run(quick: bool) -> Outcome:
    """Sizes and errors, means over draws; the pictures are of the first."""
    draws = 3 if quick else 10
    reduced = f"{draws} of 10 draws" if quick else ""
    drawn = "the lecture shows one draw of data that it does not describe further"
    processes = [gaussian_process(_SEED + k) for k in range(draws)]
    rows = []
    for (kept, what), found in zip(_KEPT, zip(*processes, strict=True), strict=True):
        counts = [row.kept for row in found]
        rows.append(
            Row(
                f"Gaussian process, {what}: functions",
                kept,
                float(np.mean(counts)),
                LOWER,
                *ONE_FUNCTION,
                drawn,
                reduced=reduced,
            )
        )
        worst = float(np.mean([row.figures["max error / noise"] for row in found]))
        rows.append(Row(f"Gaussian process, {what}: largest error / σ", None, worst, BESIDE, reduced=reduced))
    densities = [density(_SEED + k) for k in range(draws)]
    counts = [row.kept for row in densities]
    relative = float(np.mean([row.figures["relative error"] for row in densities]))
    rows += [
        Row(
            "density of 1000 Gaussians: Gaussians kept",
            _DENSITY,
            float(np.mean(counts)),
            LOWER,
            *of_mean_count(_DENSITY),
            drawn,
            reduced=reduced,
        ),
        Row("density: ∫(f − g)² / ∫f²", None, relative, BESIDE, reduced=reduced),
    ]
    return Outcome(rows, _pictures())


def _pictures() -> dict[str, Any]:
    model = process(_SEED)
    x, y = np.asarray(model.X_train_)[:, 0], np.asarray(model.y_train_)
    grid = np.linspace(x.min(), x.max(), 2000)[:, None]
    fits = []
    for (_, what), noise, candidates in zip(_KEPT, (0.1, 0.001, 0.001), (None, None, grid), strict=True):
        small = sparsify(model, noise, candidates=candidates)
        count = small.approximation_.n_functions
        fits.append({"mean": small.predict(grid), "title": f"{what}: {count} functions"})
    points = clusters_and_ring(1000, _SEED)
    full = KernelDensity(bandwidth=0.5).fit(points)
    small = sparsify(full, 0.012)
    side = np.linspace(-6.5, 6.5, 60)
    plane = np.column_stack([v.ravel() for v in np.meshgrid(side, side)])
    return {
        "x": x,
        "y": y,
        "grid": grid[:, 0],
        "mean": model.predict(grid),
        "fits": fits,
        "side": side,
        "full": np.exp(full.score_samples(plane)).reshape(60, 60),
        "small": np.exp(small.score_samples(plane)).reshape(60, 60),
        "centres": np.asarray(small.tree_.data),
    }


def draw(figure: Any, data: Mapping[str, Any]) -> None:
    """The lecture's three pictures of a process, and the density before and after."""
    panels = figure.subplots(2, 3)
    for panel, fit in zip(panels[0], data["fits"], strict=True):
        panel.plot(data["x"], data["y"], ".", color=GREY, markersize=3)
        panel.plot(data["grid"], data["mean"], color="black", linewidth=2.5, alpha=0.4, label="process mean")
        panel.plot(data["grid"], fit["mean"], "--", color=RED, linewidth=1.2, label="approximation")
        panel.set_title(fit["title"], fontsize=9)
        panel.set_ylim(None, 1.45)
        panel.legend(fontsize=7, loc="upper left")
    for panel, key, title in zip(
        panels[1],
        ("full", "small", "gap"),
        (
            "density of 1000 Gaussians",
            f"density of {len(data['centres'])} Gaussians",
            f"difference, at most {np.max(np.abs(data['small'] - data['full'])):.2g}",
        ),
        strict=True,
    ):
        values = data["small"] - data["full"] if key == "gap" else data[key]
        # The square root shows the ring beside the clusters.
        shade = values if key == "gap" else np.sqrt(values)
        limit = float(np.max(np.abs(shade)))
        low, colours = (-limit, "RdBu") if key == "gap" else (0.0, "Blues")
        panel.contourf(data["side"], data["side"], shade, np.linspace(low, limit, 14), cmap=colours)
        if key == "small":
            panel.plot(*data["centres"].T, ".", color=RED, markersize=4)
        panel.set_aspect("equal")
        panel.set_title(title, fontsize=9)
    panels[0][0].set_ylabel("y")


STUDY = Study(
    "lecture4-approximation",
    LECTURE,
    "function approximation",
    "A Gaussian process and a kernel density made small: how many functions for the accuracy asked for.",
    run,
    draw,
    "7 of 10 draws",
    seed=_SEED,
    size=(11.0, 6.5),
)
