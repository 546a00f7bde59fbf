"""Estimators with scikit-learn's interface."""

from .ard import ARDRegression
from .classifiers import RVC, SparseBayesClassifier
from .kernel_pca import SparseKernelPCA
from .regressors import RVR, SparseBayesRegressor

__all__ = ["RVC", "RVR", "ARDRegression", "SparseBayesClassifier", "SparseBayesRegressor", "SparseKernelPCA"]
