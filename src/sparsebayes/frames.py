"""Tables of results as data frames, where pandas is installed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any


def data_frame(data: Any, columns: Sequence[str] | None = None) -> Any:
    """Return a pandas DataFrame of a mapping of columns, or of a matrix with names for its columns."""
    try:
        import pandas
    except ImportError as error:
        raise ImportError('a DataFrame needs pandas: pip install "sparsebayes[files]"') from error
    return pandas.DataFrame(data, columns=None if columns is None else pandas.Index(list(columns)))
