"""What is claimed of irrelevant functions under the conservative rule holds where it is claimed: at the true noise."""

import numpy as np

from sparsebayes import SparseBayesRegressor
from sparsebayes.studies.irrelevant import expected, kept


def test_fewer_are_kept_at_the_true_noise_than_expected_at_one_model():
    counts = [kept(40, 200, seed, 1.0) for seed in range(60)]
    assert np.mean(counts) <= expected(200) + 3.0 * np.std(counts, ddof=1) / np.sqrt(len(counts))
    assert expected(200) < 1.0


def test_the_report_says_under_which_conditions():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((40, 20))
    model = SparseBayesRegressor(support="conservative").fit(X, X[:, 0] + 0.1 * rng.standard_normal(40))
    text = str(model.support_report())
    assert "true noise" in text
    assert "one given model" in text
