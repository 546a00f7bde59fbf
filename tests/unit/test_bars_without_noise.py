"""Error bars of targets that have next to no noise."""

from __future__ import annotations

import numpy as np
import pytest

from sparsebayes import SparseBayesRegressor


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("noise", [1e-6, 1e-5, 1e-4])
def test_bars_of_a_line_are_as_long_as_its_noise(noise: float) -> None:
    """Inner products do not tell noise of a part in a million: searches without some rows lost the line itself."""
    rng = np.random.default_rng(0)
    X = rng.uniform(-3, 3, (60, 1))
    model = SparseBayesRegressor().fit(X, 3 * X[:, 0] + 1 + noise * rng.standard_normal(60))

    _, std = model.predict(X, return_std=True)

    np.testing.assert_allclose(std, noise, rtol=0.5)
