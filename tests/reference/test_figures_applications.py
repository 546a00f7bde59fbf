"""Figures of Tipping's lecture 4 (function approximation) and of Tipping 2001 (sparse kernel PCA)."""

import numpy as np
import pytest
from sklearn.datasets import load_digits

from sparsebayes.studies.small_models import banana, density, gaussian_process, kernel_pca, ripley, support_vectors


def test_the_mean_of_a_gaussian_process():
    draws = [gaussian_process(seed) for seed in range(5)]
    for rows, most in zip(zip(*draws, strict=True), (8, 18, 22), strict=True):
        assert np.mean([row.kept for row in rows]) <= most, rows
        assert max(row.figures["max error / noise"] for row in rows) <= 3.0, rows
        assert rows[0].kept <= most


def test_a_density_of_a_thousand_gaussians():
    row = density(0)
    assert row.source == 1000
    assert row.kept <= 49
    assert row.figures["relative error"] <= 0.01


def _check(row):
    assert row.source >= 300
    assert row.kept <= 20
    assert abs(row.figures["small error %"] - row.figures["SVC error %"]) <= 0.5


def test_a_support_vector_machine():
    _check(support_vectors(ripley(), 0))


@pytest.mark.skipif(banana() is None, reason="the banana set is not in SPARSEBAYES_DATA")
@pytest.mark.parametrize("seed", range(3))
def test_a_support_vector_machine_on_banana(seed):
    problem = banana()
    assert problem is not None
    _check(support_vectors(problem, seed))


def test_sparse_kernel_pca_on_digits():
    row = kernel_pca("digits", load_digits().data[:600] / 16.0, 0.003, 0.02, 10)
    assert row.kept <= 0.15 * row.source
    assert row.figures["mean cosine"] >= 0.95
