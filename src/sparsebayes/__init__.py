"""Sparse Bayesian learning: the evidence decides which few functions stay.

>>> from sparsebayes import RVR
>>> from sparsebayes.datasets import make_sinc
>>> X, y = make_sinc(100, noise=0.1, random_state=0)
>>> RVR(gamma=1 / 4**2).fit(X, y).status_.converged
True

Names are imported when they are first used, so that ``import sparsebayes`` costs next to nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from sparsebayes._version import __version__

if TYPE_CHECKING:
    from sparsebayes import applications, basis, datasets, explain, report, tables
    from sparsebayes.estimators import (
        RVC,
        RVR,
        ARDRegression,
        SparseBayesClassifier,
        SparseBayesRegressor,
        SparseKernelPCA,
        path,
    )
    from sparsebayes.export import save
    from sparsebayes.inference import EM, Backfitting, MacKay, Sequential, SingleEffects, SubsetSelection, Variational
    from sparsebayes.tables import load

# Where each public name lives; a name with no entry on the right is a module of this package.
_HOMES = {
    "ARDRegression": "estimators",
    "EM": "inference",
    "Backfitting": "inference",
    "MacKay": "inference",
    "SingleEffects": "inference",
    "SubsetSelection": "inference",
    "RVC": "estimators",
    "RVR": "estimators",
    "Sequential": "inference",
    "SparseBayesClassifier": "estimators",
    "SparseBayesRegressor": "estimators",
    "SparseKernelPCA": "estimators",
    "Variational": "inference",
    "applications": "",
    "basis": "",
    "datasets": "",
    "explain": "",
    "load": "tables",
    "path": "estimators",
    "report": "",
    "save": "export",
    "tables": "",
}

__all__ = [
    "EM",
    "RVC",
    "RVR",
    "ARDRegression",
    "Backfitting",
    "MacKay",
    "Sequential",
    "SingleEffects",
    "SparseBayesClassifier",
    "SparseBayesRegressor",
    "SparseKernelPCA",
    "SubsetSelection",
    "Variational",
    "__version__",
    "applications",
    "basis",
    "datasets",
    "explain",
    "load",
    "path",
    "report",
    "save",
    "tables",
]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    home = _HOMES[name]
    value = getattr(import_module(f"{__name__}.{home}"), name) if home else import_module(f"{__name__}.{name}")
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOMES})
