"""Which variables, and how sure: inclusion probabilities, credible sets, exact attributions with error bars.

>>> import numpy as np
>>> from sparsebayes import SparseBayesRegressor
>>> from sparsebayes.explain import inclusion, shapley
>>> X = np.random.default_rng(0).standard_normal((100, 5))
>>> model = SparseBayesRegressor().fit(X, X[:, 0] - 2.0 * X[:, 3])
>>> inclusion(model, X, X[:, 0] - 2.0 * X[:, 3]).inclusion.round(2).tolist()
[1.0, 0.0, 0.0, 1.0, 0.0]
>>> shapley(model, X, as_array=True).shape
(100, 5)
"""

from .inclusion import CredibleSet, CredibleSets, Inclusion, inclusion, single_effects
from .shapley import Attributions, attributions, shapley

__all__ = [
    "Attributions",
    "CredibleSet",
    "CredibleSets",
    "Inclusion",
    "attributions",
    "inclusion",
    "shapley",
    "single_effects",
]
