"""Every row predicted once by a model that has not seen it: the whole way from a table to a model, fold by fold."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.model_selection import KFold, StratifiedKFold

from .learning import Options, Study, learn
from .target import CLASSIFICATION, FEWEST_OF_A_CLASS


def cross_validate(study: Study, options: Options, n_folds: int) -> dict[str, NDArray[Any]]:
    """Refit the model of a study on folds of all its rows.

    Centres, levels, widths and functions are learned anew in every fold; which functions (``rbf``, ``columns`` or
    ``both``) is what the study found.

    Parameters
    ----------
    study : Study
        What :func:`learn` returned.
    options : Options
        What it was asked for.
    n_folds : int
        Number of folds.

    Returns
    -------
    dict of str to ndarray
        As :meth:`TableModel.predict`, for every row of the study.
    """
    y = study.target.values
    classifies = study.target.task == CLASSIFICATION
    most = int(np.unique(y, return_counts=True)[1].min()) if classifies else len(y) // 2
    if not 2 <= n_folds <= most:
        few = "the rarest class has" if classifies else "half of the rows are"
        raise ValueError(f"--cv {n_folds}: expected a number of folds from 2 to {most}, since {few} {most} rows")
    left = most - -(-most // n_folds)
    if classifies and left < FEWEST_OF_A_CLASS:
        raise ValueError(
            f"--cv {n_folds}: the rarest class has {most} rows, of which a fold would leave {left} to learn from, and "
            f"a class needs at least {FEWEST_OF_A_CLASS}; add rows, or put classes together"
        )
    splitter = (StratifiedKFold if classifies else KFold)(n_folds, shuffle=True, random_state=options.seed)
    asked = replace(options, kernel=study.model.functions, task=study.target.task, test=0.0)
    found: dict[str, NDArray[Any]] = {}
    for train, test in splitter.split(np.zeros(len(y)), y):
        model = learn(study.table.take(train), study.target.name, asked).model
        for name, values in model.predict(study.table.take(test)).items():
            found.setdefault(name, np.empty(len(y), dtype=object if values.dtype.kind in "UO" else np.float64))
            found[name][test] = values
    return found
