"""Image compression: a picture by few Gabor functions, beside JPEG at the same size of the file."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sparsebayes.applications import compress, decompress
from sparsebayes.applications.images import psnr
from sparsebayes.datasets import DatasetNotFoundError, load_image
from sparsebayes.studies.drawing import image_panels
from sparsebayes.studies.framework import BESIDE, HIGHER, LECTURE, Outcome, Row, Study

_RATES = (0.25, 0.5, 1.0)
# Side of the part that a quick run takes: of a smaller one JPEG's header would be a good part of the file.
_SIDE = 256
_TOLERANCE = 3.0


def picture(side: int | None) -> tuple[str, NDArray[np.uint8]]:
    """The camera man, or where it is not at hand the green of a picture that comes with scikit-learn."""
    try:
        name, image = "camera", load_image("camera")
    except DatasetNotFoundError:
        name, image = "china", load_image("china")[..., 1]
    if side is None:
        return name, image
    top, left = (np.array(image.shape[:2]) - side) // 3
    return name, np.ascontiguousarray(image[top : top + side, left : left + side])


def run(quick: bool) -> Outcome:
    """Several bit rates; of our file everything is counted, of JPEG's not its header, which is none of its merit."""
    from sparsebayes.studies.images import jpeg  # needs Pillow

    name, image = picture(_SIDE if quick else None)
    reduced = f"{_SIDE} x {_SIDE} pixels of {name}" if quick else ""
    rows, pictures = [], {"original": image / 255.0}
    for rate in _RATES:
        file = compress(image, bits_per_pixel=rate).to_bytes()
        found = decompress(file)
        ours, theirs, whole = psnr(found, image), jpeg(image, len(file), header=False), jpeg(image, len(file))
        what = f"PSNR at {8 * len(file) / image.size:.2f} bit/pixel, dB"
        rows.append(
            Row(
                what,
                theirs,
                ours,
                HIGHER,
                _TOLERANCE,
                "3 dB: JPEG is thirty years of tuning for this task",
                "the lecture shows a picture only",
                source="JPEG, its header not counted",
                reduced=reduced,
            )
        )
        rows.append(Row(f"{what}, beside whole files", whole, ours, BESIDE, source="JPEG", reduced=reduced))
        pictures[f"{rate} bit/pixel, {ours:.1f} dB (JPEG {theirs:.1f})"] = found / 255.0
    return Outcome(rows, {"pictures": pictures})


def draw(figure: Any, data: Mapping[str, Any]) -> None:
    """The original and its approximations."""
    image_panels(figure.subplots(1, len(data["pictures"])), data["pictures"])


STUDY = Study(
    "lecture4-compression",
    LECTURE,
    "image compression",
    "An image approximated by few Gabor functions, the accepted error in the place of the noise.",
    run,
    draw,
    f"all but {_SIDE} x {_SIDE} pixels",
    size=(12.0, 3.6),
)
