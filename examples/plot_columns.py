"""
Which columns matter
====================

With the columns of X as functions the model is linear, and most of its weights are exactly zero.
"""

import numpy as np

from sparsebayes import SparseBayesRegressor
from sparsebayes.datasets import load
from sparsebayes.report import plot_relevance

boston = load("boston_mass")
X = (boston.data - boston.data.mean(axis=0)) / boston.data.std(axis=0)
model = SparseBayesRegressor().fit(X, boston.target)
print(f"{len(model.relevance_)} of {X.shape[1]} columns kept, noise {np.sqrt(model.noise_variance_):.2f}")
plot_relevance(model, X, feature_names=list(boston.feature_names))
