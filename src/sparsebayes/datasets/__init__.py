"""The papers' problems: generators of the synthetic ones, loaders of the real ones.

Generators (``make_*``) follow scikit-learn's habits and can hand out the noise-free target. :func:`load`
finds real sets inside the package, in scikit-learn, in the folder named by the environment variable
``SPARSEBAYES_DATA``, or on OpenML; :func:`list_datasets` says which set is where.
"""

from sparsebayes.datasets.designs import make_ripley, make_spikes
from sparsebayes.datasets.functions import (
    make_friedman1,
    make_friedman2,
    make_friedman3,
    make_sinc,
    make_sinc2d,
)
from sparsebayes.datasets.images import load_image
from sparsebayes.datasets.loader import DatasetNotFoundError, list_datasets, load
from sparsebayes.datasets.signals import blocks_jumps, make_blocks, make_bumps, make_doppler, make_heavisine

__all__ = [
    "DatasetNotFoundError",
    "blocks_jumps",
    "list_datasets",
    "load",
    "load_image",
    "make_blocks",
    "make_bumps",
    "make_doppler",
    "make_friedman1",
    "make_friedman2",
    "make_friedman3",
    "make_heavisine",
    "make_ripley",
    "make_sinc",
    "make_sinc2d",
    "make_spikes",
]
