"""Which inputs, and how sure: exact attributions with error bars.

>>> import numpy as np
>>> from sparsebayes import RVR
>>> from sparsebayes.explain import attributions
>>> X = np.random.default_rng(0).standard_normal((50, 2))
>>> found = attributions(RVR().fit(X, X[:, 0] ** 2), X)
>>> found.values.shape, found.std.shape
((50, 2), (50, 2))
"""

from .shapley import Attributions, attributions, shapley

__all__ = ["Attributions", "attributions", "shapley"]
