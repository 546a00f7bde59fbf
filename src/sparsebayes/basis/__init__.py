"""What φ is: families of basis functions, composed with ``+``.

>>> from sparsebayes.basis import Bias, Linear, RBF
>>> Bias() + Linear() + RBF(2.5)
Bias() + Linear() + RBF(width=2.5)
"""

from .base import Basis, Functions, Sum, from_specifications
from .custom import Callable, Precomputed
from .gabor import Gabor
from .kernels import (
    RBF,
    Cauchy,
    Kernel,
    Laplacian,
    LinearSpline,
    PolynomialKernel,
    Sigmoid,
    ThinPlateSpline,
    WidthKernel,
)
from .simple import Bias, Linear, Polynomial
from .steps import Heaviside

__all__ = [
    "RBF",
    "Basis",
    "Bias",
    "Callable",
    "Cauchy",
    "Functions",
    "Gabor",
    "Heaviside",
    "Kernel",
    "Laplacian",
    "Linear",
    "LinearSpline",
    "Polynomial",
    "PolynomialKernel",
    "Precomputed",
    "Sigmoid",
    "Sum",
    "ThinPlateSpline",
    "WidthKernel",
    "from_specifications",
]
