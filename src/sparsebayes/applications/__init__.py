"""What sparse Bayesian models are good for beyond regression and classification."""

from sparsebayes.applications.approximation import sparsify
from sparsebayes.applications.images import SparseCode, SuperResolution, compress, decompress, super_resolve

__all__ = ["SparseCode", "SuperResolution", "compress", "decompress", "sparsify", "super_resolve"]
