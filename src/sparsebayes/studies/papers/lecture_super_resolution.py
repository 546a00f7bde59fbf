"""Super-resolution: sixteen small, shifted, rotated and blurred images become one that is four times as large."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from sklearn.datasets import load_digits

from sparsebayes.applications import super_resolve
from sparsebayes.applications.images import make_views, psnr, registration_error
from sparsebayes.datasets import DatasetNotFoundError, load_image
from sparsebayes.studies.drawing import image_panels
from sparsebayes.studies.framework import BESIDE, HIGHER, LECTURE, LOWER, Outcome, Row, Study
from sparsebayes.typing import Array

_SEED = 1
_NOISE = 0.01
_VIEWS, _SCALE = 16, 4
# What a quick run takes of the picture.
_PART = (slice(38, 134), slice(100, 260))


def scene() -> Array:
    """Text; where it is not at hand, handwritten digits in rows."""
    try:
        return load_image("text").astype(np.float64) / 255.0
    except DatasetNotFoundError:
        digits = np.asarray(load_digits(return_X_y=True)[0], dtype=np.float64)[:24].reshape(24, 8, 8) / 16.0
        rows = np.vstack([np.hstack(list(digits[k : k + 8])) for k in (0, 8, 16)])
        return np.asarray(np.kron(rows, np.ones((7, 7))), dtype=np.float64)


def run(quick: bool) -> Outcome:
    """Registration and sharpness, beside the first view enlarged."""
    from PIL import Image

    image, count, scale = scene(), _VIEWS, _SCALE
    image = image[_PART] if quick else image
    reduced = f"{image.shape[0]} x {image.shape[1]} pixels of the scene" if quick else ""
    views, motion = make_views(image, count, scale=scale, shift=2.0, degrees=2.0, noise=_NOISE, random_state=_SEED)
    rows, columns = views[0].shape
    truth = image[: scale * rows, : scale * columns]
    found = super_resolve(views, scale=scale)
    small = Image.fromarray(views[0].astype(np.float32))
    enlarged = small.resize((scale * columns, scale * rows), Image.Resampling.BICUBIC)
    bicubic = np.asarray(enlarged, dtype=np.float64)
    ours, theirs = psnr(np.clip(found.image, 0.0, 1.0), truth), psnr(bicubic, truth)
    wrong = registration_error(found.motion, motion, views[0].shape)
    why = "the lecture shows pictures only"
    hard = f"{why}; where the views are hardly blurred, the registration can go astray"
    figures = [
        Row("PSNR, dB", theirs + 3.0, ours, HIGHER, why=hard, source="bicubic + 3 dB", reduced=reduced),
        Row(
            "registration, error in small pixels", 0.1, wrong, LOWER, why=hard, source="asked for here", reduced=reduced
        ),
        Row("blur learned / true", None, found.blur / 2.0**-1.5, BESIDE, reduced=reduced),
        Row("noise learned / true", None, found.noise / _NOISE, BESIDE, reduced=reduced),
    ]
    pictures = {
        f"one of {count} views": views[0],
        f"bicubic, {theirs:.1f} dB": bicubic,
        f"super-resolved, {ours:.1f} dB": found.image,
        "truth": truth,
    }
    return Outcome(figures, {"pictures": pictures})


def draw(figure: Any, data: Mapping[str, Any]) -> None:
    """A view, its enlargement, the result and the truth."""
    image_panels(figure.subplots(1, len(data["pictures"])), data["pictures"])


STUDY = Study(
    "lecture4-super-resolution",
    LECTURE,
    "image super-resolution",
    "The scene is integrated out to find shifts, rotations and blur; then it is computed at a higher resolution.",
    run,
    draw,
    "all but 96 x 160 pixels of the scene",
    seed=_SEED,
    size=(12.0, 3.0),
)
