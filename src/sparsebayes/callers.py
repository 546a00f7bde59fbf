"""Whose line a warning is about."""

from __future__ import annotations

import inspect
import os
from pathlib import Path

_PACKAGE = str(Path(__file__).parent) + os.sep


def stack_level() -> int:
    """Return the ``stacklevel`` with which ``warnings.warn`` points to the first line outside of this package.

    Python shows a warning once for each line, so that all warnings at a line of ours would count as one.
    """
    frame, level = inspect.currentframe(), 0
    while frame is not None and frame.f_code.co_filename.startswith(_PACKAGE):
        frame, level = frame.f_back, level + 1
    return level
