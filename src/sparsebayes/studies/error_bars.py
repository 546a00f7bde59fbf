"""The three kinds of error bars on one picture: ``python -m sparsebayes.studies.error_bars FILE``."""

from __future__ import annotations

import sys

import numpy as np

from sparsebayes import RVR

_KINDS = (
    ("posterior", "#2166ac", "posterior: shrinks where no function reaches"),
    ("augmented", "#b2182b", "augmented: grows away from the data"),
    ("conformal", "#1b7837", "conformal: calibrated on rows left out"),
)


def main(path: str) -> None:
    """Draw data with a gap, the mean, and 95 % intervals of the three kinds."""
    from matplotlib import pyplot

    rng = np.random.default_rng(0)
    x = np.sort(np.concatenate([rng.uniform(-10, -2, 50), rng.uniform(4, 10, 40)]))
    y = np.sinc(x / np.pi) + 0.1 * rng.standard_normal(len(x))
    model = RVR(gamma=1 / 2**2).fit(x[:, None], y)
    grid = np.linspace(-18, 18, 800)[:, None]
    figure, ax = pyplot.subplots(figsize=(8, 4.2), layout="constrained")
    ax.plot(x, y, ".", color="#555555", markersize=4, label="data")
    ax.plot(grid, model.predict(grid), color="black", linewidth=1.5, label="mean, the same for all")
    for kind, colour, label in _KINDS:
        low, high = model.predict_interval(grid, 0.95, kind)
        ax.plot(grid, low, color=colour, linewidth=1.4, linestyle="-" if kind == "augmented" else "--", label=label)
        ax.plot(grid, high, color=colour, linewidth=1.4, linestyle="-" if kind == "augmented" else "--")
    ax.set_xlim(-18, 18)
    ax.set_xlabel("x")
    ax.set_ylabel("y, with 95 % intervals of a new observation")
    ax.legend(frameon=False, fontsize="small", loc="upper left")
    figure.savefig(path, dpi=120)


if __name__ == "__main__":
    main(sys.argv[1])
