"""A warning points to the line that the user can change, and not to one of ours."""

import warnings

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from sparsebayes import RVC, RVR, SparseBayesRegressor
from sparsebayes.datasets import make_sinc

X, y = make_sinc(60, noise=0.1, random_state=0)
FITS = {
    "regression": lambda: RVR(max_iter=2).fit(X, y),
    "widths": lambda: RVR(max_iter=2, gamma="evidence").fit(X, y),
    "robust": lambda: RVR(max_iter=2, likelihood="student-t").fit(X, y),
    "columns": lambda: SparseBayesRegressor(max_iter=2).fit(np.vander(X[:, 0] / 10.0, 8), y),
    "two classes": lambda: RVC(max_iter=2, evidence="laplace").fit(X, X[:, 0] > 0),
    "one against the rest": lambda: RVC(max_iter=2, multi_class="ovr").fit(X, np.arange(60) % 3),
}


@pytest.mark.parametrize("fit", FITS.values(), ids=FITS)
def test_warnings_are_at_the_line_of_the_call(fit):
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        fit()
    assert found
    for warning in found:
        assert issubclass(warning.category, ConvergenceWarning)
        assert warning.filename == __file__
