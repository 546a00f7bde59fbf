"""Estimators with scikit-learn's interface."""

from .ard import ARDRegression
from .classifiers import RVC, SparseBayesClassifier
from .kernel_pca import SparseKernelPCA
from .paths import path
from .regressors import RVR, SparseBayesRegressor

# Sparse Bayesian models with a posterior, in the order in which messages name them; and all that can be exported.
MODELS = (RVR, RVC, SparseBayesRegressor, SparseBayesClassifier)
EXPORTED = (*MODELS, ARDRegression)

__all__ = [
    "EXPORTED",
    "MODELS",
    "RVC",
    "RVR",
    "ARDRegression",
    "SparseBayesClassifier",
    "SparseBayesRegressor",
    "SparseKernelPCA",
    "path",
]
