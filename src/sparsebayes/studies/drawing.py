"""What the pictures of several studies share."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from sparsebayes.report.style import BLUE, GREY, RED
from sparsebayes.typing import Array

PAPER, OURS, OTHER = "#bbbbbb", BLUE, "#e08214"


def fit_panel(panel: Any, data: Mapping[str, Any], title: str, vectors: str = "relevance vectors") -> None:
    """Data, a function and its vectors: ``x, y, grid, mean, at`` and, where known, ``truth`` and ``std``."""
    if "std" in data:
        half = 1.96 * np.asarray(data["std"])
        panel.fill_between(data["grid"], data["mean"] - half, data["mean"] + half, color=BLUE, alpha=0.15, linewidth=0)
    panel.plot(data["x"], data["y"], ".", color=GREY, markersize=3, label="data")
    if "truth" in data:
        panel.plot(data["grid"], data["truth"], "--", color="black", linewidth=1, label="true function")
    panel.plot(data["grid"], data["mean"], color=BLUE, linewidth=1.5, label="fit")
    at = np.asarray(data["at"])
    panel.plot(
        data["x"][at],
        data["y"][at],
        "o",
        markerfacecolor="none",
        markeredgecolor=RED,
        markersize=8,
        label=f"{vectors} ({len(at)})",
    )
    panel.set_title(title, fontsize=9)
    panel.set_xlabel("x")
    panel.legend(fontsize=7)


def bars(panel: Any, names: Sequence[str], groups: Mapping[str, Sequence[float | None]], title: str) -> None:
    """Groups of horizontal bars with their values; None is left blank."""
    palette = (OURS,) if len(groups) == 1 else (PAPER, OURS, OTHER, RED)
    colours = dict(zip(groups, palette, strict=False))
    height = 0.8 / len(groups)
    for k, (label, values) in enumerate(groups.items()):
        known = [0.0 if value is None else value for value in values]
        places = np.arange(len(names)) + (k - 0.5 * (len(groups) - 1)) * height
        drawn = panel.barh(places, known, height, color=colours[label], label=label)
        texts = ["" if value is None else f"{value:.3g}" for value in values]
        panel.bar_label(drawn, texts, padding=2, fontsize=7)
    panel.set_yticks(np.arange(len(names)), names)
    panel.invert_yaxis()
    panel.margins(x=0.15)
    panel.set_title(title, fontsize=9)


def legend_below(figure: Any, panel: Any, columns: int = 4) -> None:
    """One legend for all panels."""
    figure.legend(*panel.get_legend_handles_labels(), loc="outside lower center", ncols=columns, fontsize=8)


def image_panels(panels: Any, pictures: Mapping[str, Array]) -> None:
    """Grey or colour pictures with their titles."""
    for panel, (title, picture) in zip(panels, pictures.items(), strict=True):
        panel.imshow(np.clip(picture, 0.0, 1.0), cmap="gray", vmin=0.0, vmax=1.0, interpolation="nearest")
        panel.set_title(title, fontsize=9)
        panel.set_axis_off()
