"""Test images by name."""

import os
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sparsebayes.datasets.loader import FOLDER, DatasetNotFoundError

# Images of the data folder, and those that come with scikit-learn.
_FOLDER_IMAGES = ("camera", "coins", "phantom", "text")
_SCIKIT_LEARN_IMAGES = ("china", "flower")


def load_image(name: str) -> NDArray[np.uint8]:
    """Load a test image.

    Reading it needs Pillow (``pip install "sparsebayes[images]"``).

    Parameters
    ----------
    name : {"camera", "coins", "phantom", "text", "china", "flower"}
        The first four are read from ``images/NAME.png`` in the folder named by the environment variable
        ``SPARSEBAYES_DATA``, the others come with scikit-learn.

    Returns
    -------
    ndarray of uint8
        (rows, columns), or (rows, columns, 3) for colour.
    """
    if name not in _FOLDER_IMAGES + _SCIKIT_LEARN_IMAGES:
        known = ", ".join(map(repr, _FOLDER_IMAGES + _SCIKIT_LEARN_IMAGES))
        raise ValueError(f"Unknown image {name!r}. Known: {known}.")
    pillow = _pillow()
    if name in _SCIKIT_LEARN_IMAGES:
        from sklearn.datasets import load_sample_image

        return np.array(load_sample_image(f"{name}.jpg"), dtype=np.uint8)
    folder = os.environ.get(FOLDER)
    path = Path(folder or ".").expanduser() / "images" / f"{name}.png"
    if not folder or not path.is_file():
        state = f"is {folder!r} and has no images/{name}.png" if folder else "is not set"
        raise DatasetNotFoundError(
            f"Image {name!r} is not at hand: the environment variable {FOLDER} {state}. "
            f"Set it to a folder that holds images/{name}.png, or use {' or '.join(map(repr, _SCIKIT_LEARN_IMAGES))}."
        )
    with pillow.open(path) as image:
        return np.array(image if image.mode in ("L", "RGB") else image.convert("RGB"), dtype=np.uint8)


def _pillow() -> Any:
    try:
        from PIL import Image
    except ImportError as error:
        raise ImportError('reading images needs Pillow: pip install "sparsebayes[images]"') from error
    return Image
