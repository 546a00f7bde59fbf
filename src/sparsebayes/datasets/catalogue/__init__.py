"""The table of real data sets. Names are the names of the files, but where two sets would share one."""

from sparsebayes.datasets.catalogue.classification import CLASSIFICATION
from sparsebayes.datasets.catalogue.regression import REGRESSION

CATALOGUE = {entry.name: entry for entry in (*REGRESSION, *CLASSIFICATION)}

__all__ = ["CATALOGUE"]
