"""Table 1: which of 71 inputs matter?  The paper's recordings are not public; see ``studies.relevant_inputs``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from sparsebayes.datasets import DatasetNotFoundError
from sparsebayes.inference import Backfitting
from sparsebayes.studies.drawing import bars, legend_below
from sparsebayes.studies.framework import BESIDE, DSOUZA, HIGHER, LOWER, Outcome, Row, Study, standard_error
from sparsebayes.studies.relevant_inputs import FALSE, backfitting, pls, recording

_SEED = 0
# The paper's normalised error and that of its brute-force search.
_ERRORS = (0.8446, 0.84)


def run(quick: bool) -> Outcome:
    """Simulated recordings whose answer is known, and a public recording of as many neurons."""
    draws = 10 if quick else 20
    reduced = f"{draws} of 20 draws" if quick else ""
    ours, theirs = ([method(_SEED + k) for k in range(draws)] for method in (backfitting, pls))
    recall = [found.recall for found in ours]
    stand_in = "simulated: 71 collinear inputs, 20 relevant; the paper's recordings are not public"
    noise = "two standard errors of the draws"
    rows = [
        Row(
            "relevant inputs found",
            0.936,
            float(np.mean(recall)),
            HIGHER,
            2.0 * standard_error(recall),
            noise,
            stand_in,
            reduced=reduced,
        ),
        Row(
            "irrelevant inputs taken in",
            FALSE,
            float(np.mean([found.false for found in ours])),
            LOWER,
            source="asked for here",
            reduced=reduced,
        ),
        Row(
            "relevant inputs found by PLS, told how many there are",
            0.18,
            float(np.mean([found.recall for found in theirs])),
            BESIDE,
            why="simulated inputs are easier for it than neurons are",
            reduced=reduced,
        ),
    ]
    data = {"ours": vars(_mean(ours)), "PLS": vars(_mean(theirs))}
    try:
        squares, projected, found, share = recording(Backfitting(initial=10.0))
    except DatasetNotFoundError as error:
        rows.append(Row("public recording: normalised error", _ERRORS[0] / _ERRORS[1], None, why=str(error)))
        return Outcome(rows, data)
    rows += [
        Row(
            "public recording: error, ours / least squares on all neurons",
            _ERRORS[0] / _ERRORS[1],
            (1.0 - found) / (1.0 - squares),
            LOWER,
            why="the paper's ratio is to a brute-force search for the neurons",
        ),
        Row("public recording: share of the neurons used", 0.5, share, LOWER, source="asked for here"),
        Row("public recording: error of PLS / least squares", None, (1.0 - projected) / (1.0 - squares), BESIDE),
    ]
    data["recording"] = {"least squares": 1.0 - squares, "PLS": 1.0 - projected, "ours": 1.0 - found}
    return Outcome(rows, data)


def _mean(found: list[Any]) -> Any:
    kind = type(found[0])
    return kind(*(float(np.mean([getattr(one, key) for one in found])) for key in ("recall", "false", "r2")))


def draw(figure: Any, data: Mapping[str, Any]) -> None:
    """What was found, and the error on the recording."""
    left, right = figure.subplots(1, 2)
    groups = {
        "paper": [0.936, None, None],
        "ours": [data["ours"][key] for key in ("recall", "false", "r2")],
        "PLS": [data["PLS"][key] for key in ("recall", "false", "r2")],
    }
    bars(left, ["relevant inputs found", "irrelevant ones taken", "R² on new rows"], groups, "simulated recordings")
    left.set_xlim(0.0, 1.25)
    legend_below(figure, left)
    if "recording" in data:
        names = list(data["recording"])
        bars(right, names, {"ours": list(data["recording"].values())}, "public recording: error / variance")
        right.set_xlim(0.0, 0.6)
    else:
        right.set_axis_off()


STUDY = Study(
    "dsouza-table1",
    DSOUZA,
    "Table 1",
    "Bayesian backfitting finds the inputs that matter among 71.",
    run,
    draw,
    "10 of 20 draws",
    seed=_SEED,
    size=(10.0, 3.6),
)
