"""Estimators with scikit-learn's interface."""

from .regressors import RVR, SparseBayesRegressor

__all__ = ["RVR", "SparseBayesRegressor"]
