"""Estimators with scikit-learn's interface."""

from .classifiers import RVC, SparseBayesClassifier
from .paths import path
from .regressors import RVR, SparseBayesRegressor

__all__ = ["RVC", "RVR", "SparseBayesClassifier", "SparseBayesRegressor", "path"]
