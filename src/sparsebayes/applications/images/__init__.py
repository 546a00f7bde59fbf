"""Images: compression by a dictionary, super-resolution, and recovery of wavelet-sparse images."""

from sparsebayes.applications.images.code import SparseCode
from sparsebayes.applications.images.compression import compress, decompress
from sparsebayes.applications.images.pixels import psnr
from sparsebayes.applications.images.registration import Motion
from sparsebayes.applications.images.superresolution import SuperResolution, super_resolve
from sparsebayes.applications.images.views import make_views, registration_error
from sparsebayes.applications.images.wavelets import RandomProjections, Wavelets

__all__ = [
    "Motion",
    "RandomProjections",
    "SparseCode",
    "SuperResolution",
    "Wavelets",
    "compress",
    "decompress",
    "make_views",
    "psnr",
    "registration_error",
    "super_resolve",
]
