"""Running studies of the papers: what they found, as files for machines and as pictures."""

from __future__ import annotations

import io
import json
import math
import os
import time
import warnings
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from sparsebayes.atomic import write_atomically
from sparsebayes.datasets import DatasetNotFoundError
from sparsebayes.datasets.loader import FOLDER
from sparsebayes.machine import describe_machine
from sparsebayes.studies.framework import Outcome, Study

# Arrays of more numbers than this are pictures; a file of figures only says how large they are.
_LARGEST = 5000
_DIGITS = 8
NO_MATPLOTLIB = 'no picture: it needs Matplotlib, pip install "sparsebayes[plot]"'


def run_study(study: Study, quick: bool) -> Outcome:
    """Run a study; what is not at hand skips it, and what goes wrong is told and not raised."""
    begun = time.perf_counter()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            outcome = study.run(quick=quick)
        except (DatasetNotFoundError, ImportError) as error:
            outcome = Outcome(skipped=_line(error))
        except Exception as error:
            outcome = Outcome(failed=f"{type(error).__name__}: {_line(error)}")
    told = list(dict.fromkeys(f"{w.category.__name__}: {_line(w.message)}" for w in caught))
    return replace(outcome, seconds=time.perf_counter() - begun, warnings=told)


def _line(text: object) -> str:
    """One line, without the place of the data folder: records are published."""
    folder = os.environ.get(FOLDER)
    line = " ".join(str(text).split())
    return line.replace(folder, "...") if folder else line


def record(study: Study, outcome: Outcome, quick: bool) -> dict[str, Any]:
    """All that is known of a run, for machines."""
    return {
        "name": study.name,
        "paper": study.paper,
        "what": study.what,
        "caption": study.caption,
        "quick": quick,
        "left_out": study.left_out if quick else "",
        "seed": study.seed,
        "seconds": round(outcome.seconds, 2),
        "skipped": outcome.skipped,
        "failed": outcome.failed,
        "acceptable": outcome.acceptable,
        "rows": [row.as_dict() for row in outcome.rows],
        "data": outcome.data,
        "warnings": outcome.warnings,
        "machine": describe_machine(),
    }


def as_json(found: Any) -> str:
    """Text of a record; numbers that JSON has not are null, large arrays only their shape."""
    return json.dumps(_plain(found), indent=1, ensure_ascii=False, allow_nan=False)


def _plain(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, np.ndarray):
        return _plain(value.tolist()) if value.size <= _LARGEST else {"shape": list(value.shape)}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float):
        return float(f"{value:.{_DIGITS}g}") if math.isfinite(value) else None
    return value


def write(study: Study, outcome: Outcome, quick: bool, folder: Path) -> str:
    """Write NAME.json, NAME.png and NAME.svg; return why there is no picture, or nothing."""
    write_atomically(folder / f"{study.name}.json", as_json(record(study, outcome, quick)).encode())
    if not outcome.rows or not outcome.data:
        return ""
    try:
        pictures = draw(study, outcome)
    except ImportError:
        return NO_MATPLOTLIB
    for form, content in pictures.items():
        write_atomically(folder / f"{study.name}.{form}", content)
    return ""


def draw(study: Study, outcome: Outcome) -> dict[str, bytes]:
    """The picture of an outcome as PNG and as SVG; the same outcome gives the same bytes."""
    from matplotlib import rc_context
    from matplotlib.figure import Figure

    style: Any = {
        "svg.hashsalt": study.name,
        "font.size": 9.0,
        "axes.spines.top": False,
        "axes.spines.right": False,
        "legend.frameon": False,
    }
    with rc_context(style):
        # A figure of its own, not of pyplot: nothing is shown, no window system is asked for.
        figure = Figure(figsize=study.size, layout="constrained")
        study.draw(figure, outcome.data)
        figure.suptitle(f"{study.paper}, {study.what}", fontsize=10)
        pictures = {}
        for form in ("png", "svg"):
            content = io.BytesIO()
            figure.savefig(content, format=form, dpi=110, metadata={"Date": None} if form == "svg" else None)
            pictures[form] = content.getvalue()
    return pictures
