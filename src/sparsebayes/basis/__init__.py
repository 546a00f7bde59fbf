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
    SmoothWidthKernel,
    WidthKernel,
)
from .parameters import Learnable, Parameter
from .products import PolynomialKernel, Sigmoid
from .simple import Bias, Linear, Polynomial
from .splines import LinearSpline, ThinPlateSpline
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
    "Learnable",
    "Linear",
    "LinearSpline",
    "Parameter",
    "Polynomial",
    "PolynomialKernel",
    "Precomputed",
    "Sigmoid",
    "SmoothWidthKernel",
    "Sum",
    "ThinPlateSpline",
    "WidthKernel",
    "from_specifications",
]
