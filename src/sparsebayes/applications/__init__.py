"""What sparse Bayesian models are good for beyond regression: each application a small interface on the same solvers."""

from sparsebayes.applications.images import SparseCode, SuperResolution, compress, decompress, super_resolve

__all__ = ["SparseCode", "SuperResolution", "compress", "decompress", "super_resolve"]
