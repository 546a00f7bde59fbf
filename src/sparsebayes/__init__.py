"""Sparse Bayesian learning: the evidence decides which few functions stay.

>>> from sparsebayes import RVR
>>> from sparsebayes.datasets import make_sinc
>>> X, y = make_sinc(100, noise=0.1, random_state=0)
>>> RVR(gamma=1 / 4**2).fit(X, y).status_.converged
True
"""

from sparsebayes import basis, datasets
from sparsebayes._version import __version__
from sparsebayes.estimators import RVC, RVR, SparseBayesClassifier, SparseBayesRegressor, path
from sparsebayes.export import load, save
from sparsebayes.inference import Sequential

__all__ = [
    "RVC",
    "RVR",
    "Sequential",
    "SparseBayesClassifier",
    "SparseBayesRegressor",
    "__version__",
    "basis",
    "datasets",
    "load",
    "path",
    "save",
]
