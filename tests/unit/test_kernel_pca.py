"""Sparse kernel PCA: the likelihood it maximises, its components, and what it refuses."""

import pickle

import numpy as np
import pandas as pd
import pytest
from numpy.testing import assert_allclose
from sklearn.base import clone
from sklearn.decomposition import KernelPCA
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import KernelCenterer, StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from sparsebayes import SparseKernelPCA
from sparsebayes.basis import RBF


def clusters(seed=0, n=30):
    rng = np.random.default_rng(seed)
    return np.vstack([rng.normal(c, 0.1, (n, 2)) for c in ((-0.5, -0.2), (0.0, 0.6), (0.5, 0.0))])


X = clusters()


def cosines(first, second):
    inner = np.sum(first * second, axis=0)
    return np.abs(inner) / np.linalg.norm(first, axis=0) / np.linalg.norm(second, axis=0)


@parametrize_with_checks(
    [SparseKernelPCA(), SparseKernelPCA(0.02), SparseKernelPCA(0.02, 2, axes="model", centring="exact")]
)
def test_scikit_learn_checks(estimator, check):
    check(estimator)


def log_likelihood(K, noise, w):
    """Of the covariance σ²I + Σ wᵢφᵢφᵢᵀ, by dense algebra in the coordinates of the eigenvectors of K."""
    values, vectors = np.linalg.eigh(K)
    rank = values > 1e-10
    Phi = vectors[:, rank] * np.sqrt(values[rank])  # rows are feature vectors
    C = noise * np.eye(Phi.shape[1]) + (Phi.T * w) @ Phi
    return -0.5 * (len(K) * np.linalg.slogdet(C)[1] + np.trace(np.linalg.solve(C, Phi.T @ Phi)))


def test_the_fit_is_a_fixed_point_of_tippings_update():
    noise = 0.05
    model = SparseKernelPCA(noise, gamma=4.0, tol=1e-10).fit(X)
    K = KernelCenterer().fit_transform(rbf_kernel(X, gamma=4.0))
    kept, w = model.relevance_, model.weights_
    covariance = np.linalg.inv(np.diag(1.0 / w) + K[np.ix_(kept, kept)] / noise)
    means = covariance @ K[kept] / noise
    updated = np.sum(means**2, axis=1) / (len(X) * (1.0 - np.diagonal(covariance) / w))
    assert_allclose(updated, w, rtol=1e-3)


def test_no_other_weights_have_a_higher_likelihood():
    noise = 0.05
    model = SparseKernelPCA(noise, gamma=4.0, tol=1e-8).fit(X)
    K = KernelCenterer().fit_transform(rbf_kernel(X, gamma=4.0))
    w = np.zeros(len(X))
    w[model.relevance_] = model.weights_
    best = log_likelihood(K, noise, w)
    for i in range(len(X)):
        for change in (0.9 * w[i], 1.1 * w[i]) if w[i] else (0.001, 0.01):
            other = w.copy()
            other[i] = change
            assert log_likelihood(K, noise, other) <= best + 1e-6


@pytest.mark.parametrize("seed", range(4))
def test_three_clusters_as_in_tipping_2001(seed):
    data = clusters(seed)
    model = SparseKernelPCA(0.04, 3, gamma=10.0).fit(data)
    reference = KernelPCA(3, kernel="rbf", gamma=10.0).fit_transform(data)
    assert len(model.relevance_) <= 0.15 * len(data)
    assert np.mean(cosines(model.transform(data), reference)) >= 0.95


def test_axes_of_the_model_agree_too():
    model = SparseKernelPCA(0.04, 2, gamma=10.0, axes="model").fit(X)
    reference = KernelPCA(2, kernel="rbf", gamma=10.0).fit_transform(X)
    assert np.mean(cosines(model.transform(X), reference)) >= 0.95


def test_all_rows_kept_is_kernel_pca():
    data = X[::6]
    model = SparseKernelPCA(1e-6, 5, gamma=1.0, centring="exact").fit(data)
    reference = KernelPCA(5, kernel="rbf", gamma=1.0).fit(data)
    assert_allclose(np.abs(model.transform(X)), np.abs(reference.transform(X)), atol=1e-3)
    assert_allclose(model.explained_variance_, reference.eigenvalues_ / len(data), rtol=1e-3)


def test_components_are_uncorrelated_and_explain_variance():
    model = SparseKernelPCA(0.03, gamma=10.0, centring="exact").fit(X)
    Z = model.transform(X)
    covariance = Z.T @ Z / len(X)
    assert_allclose(covariance, np.diag(model.explained_variance_), atol=1e-10)
    assert_allclose(Z.mean(axis=0), 0.0, atol=1e-12)
    assert np.all(np.diff(model.explained_variance_) <= 0.0)
    total = np.trace(KernelCenterer().fit_transform(rbf_kernel(X, gamma=10.0))) / len(X)
    assert_allclose(model.explained_variance_ratio_, model.explained_variance_ / total)
    assert 0.7 < np.sum(model.explained_variance_ratio_) <= 1.0


def test_sparse_centring_needs_only_the_kept_rows():
    sparse = SparseKernelPCA(0.04, 3, gamma=10.0, centring="sparse").fit(X)
    exact = SparseKernelPCA(0.04, 3, gamma=10.0, centring="exact").fit(X)
    difference = sparse.transform(X) - exact.transform(X)
    change = np.sqrt(np.sum(difference**2) / np.sum(exact.transform(X) ** 2))
    assert_allclose(sparse.centring_error_, change, rtol=1e-6)
    assert sparse.centring_error_ < 0.05
    assert exact.centring_error_ == 0.0
    auto = SparseKernelPCA(0.04, 3, gamma=10.0).fit(X)
    assert_allclose(auto.transform(X), sparse.transform(X))


def test_auto_centring_is_exact_where_the_kept_rows_do_not_span_the_mean():
    settings = {"noise": 0.25, "n_components": 2, "gamma": 4.0}
    assert SparseKernelPCA(**settings, centring="sparse").fit(X).centring_error_ > 0.05
    assert SparseKernelPCA(**settings).fit(X).centring_error_ == 0.0


def test_more_noise_keeps_fewer_rows():
    kept = [len(SparseKernelPCA(noise, gamma=10.0).fit(X).relevance_) for noise in (0.1, 0.05, 0.01)]
    assert kept == sorted(kept)
    assert kept[0] < kept[-1]


def test_a_precomputed_kernel_and_a_basis_give_the_same():
    K = rbf_kernel(X, gamma=4.0)
    named = SparseKernelPCA(0.05, 2, gamma=4.0).fit(X)
    given = SparseKernelPCA(0.05, 2, kernel="precomputed").fit(K)
    basis = SparseKernelPCA(0.05, 2, kernel=RBF(0.5)).fit(X)
    assert given.relevance_.tolist() == named.relevance_.tolist() == basis.relevance_.tolist()
    new = clusters(1)
    assert_allclose(given.transform(rbf_kernel(new, X, gamma=4.0)), named.transform(new), atol=1e-6)
    assert_allclose(basis.transform(new), named.transform(new), atol=1e-6)
    with pytest.raises(ValueError, match="pre-images"):
        given.inverse_transform(given.transform(K))


def test_preimages():
    model = SparseKernelPCA(0.03, gamma=10.0).fit(X)
    back = model.inverse_transform(model.transform(X))
    assert back.shape == X.shape
    assert np.mean((back - X) ** 2) < 0.05 * np.mean(X.var(axis=0))
    two = SparseKernelPCA(0.03, 2, gamma=10.0).fit(X)
    centres = two.inverse_transform(np.stack([two.transform(X)[30 * k : 30 * k + 30].mean(axis=0) for k in range(3)]))
    assert_allclose(centres, [X[30 * k : 30 * k + 30].mean(axis=0) for k in range(3)], atol=0.1)


def test_names_and_copies():
    frame = pd.DataFrame(X, columns=["a", "b"])
    model = SparseKernelPCA(0.05, 2, gamma=4.0).set_output(transform="pandas").fit(frame)
    assert model.transform(frame).columns.tolist() == ["sparsekernelpca0", "sparsekernelpca1"]
    assert model.get_feature_names_out().tolist() == ["sparsekernelpca0", "sparsekernelpca1"]
    assert_allclose(pickle.loads(pickle.dumps(model)).transform(frame), model.transform(frame))
    assert_allclose(clone(model).fit(frame).transform(frame), model.transform(frame))
    pipeline = make_pipeline(StandardScaler(), SparseKernelPCA(0.05, 2))
    assert pipeline.fit_transform(X).shape == (90, 2)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"noise": 0.0}, "noise=0.0"),
        ({"noise": None}, "noise=None"),
        ({"noise": "other"}, "noise='other'.*or 'auto'"),
        ({"gamma": "evidence"}, "gamma='evidence'.*'scale', 'auto', or a positive number"),
        ({"noise": 10.0}, "choose a smaller one"),
        ({"n_components": 0}, "n_components=0"),
        ({"n_components": 1.5}, "n_components=1.5"),
        ({"axes": "other"}, "axes='other'"),
        ({"centring": "none"}, "centring='none'"),
        ({"kernel": "other"}, "kernel='other'"),
        ({"kernel": "precomputed"}, "expected one function for each row"),
        ({"kernel": "sigmoid", "gamma": 5.0, "coef0": -2.0}, "positive semi-definite"),
        ({"kernel": RBF(1.0, centres=5)}, "expected one function for each row"),
        ({"tol": 0.0}, "tol=0.0"),
        ({"solver": "other"}, "solver='other'"),
    ],
)
def test_bad_settings(settings, message):
    with pytest.raises(ValueError, match=message):
        SparseKernelPCA(**{"noise": 0.05, **settings}).fit(X)


@pytest.mark.parametrize("shape", [(100, 1), (100, 4), (60, 20), (40, 200)], ids=str)
@pytest.mark.parametrize("kernel", ["rbf", "linear", "poly", "laplacian"])
def test_the_default_noise_keeps_rows_of_plain_data(kernel, shape):
    model = SparseKernelPCA(kernel=kernel).fit(np.random.default_rng(0).normal(size=shape))
    assert model.noise == "auto"
    assert len(model.relevance_) > 0


def test_the_default_noise_goes_with_the_scale_of_the_kernel():
    K = rbf_kernel(X, gamma=4.0)
    one, other = (SparseKernelPCA(kernel="precomputed").fit(scale * K) for scale in (1.0, 1e4))
    assert other.noise_ == pytest.approx(1e4 * one.noise_)
    np.testing.assert_array_equal(other.relevance_, one.relevance_)
    values = np.linalg.eigvalsh(KernelCenterer().fit_transform(K)) / len(K)
    assert one.noise_ == pytest.approx(0.2 * np.average(values, weights=values))


def test_bad_inputs():
    with pytest.raises(ValueError, match="NaN"):
        SparseKernelPCA(0.05).fit([[1.0, np.nan], [0.0, 1.0]])
    with pytest.raises(ValueError, match="minimum of 2"):
        SparseKernelPCA(0.05).fit([[1.0, 2.0]])
    with pytest.raises(ValueError, match="choose a smaller one"):
        SparseKernelPCA(0.05).fit(np.ones((10, 2)))
    with pytest.raises(ValueError, match="all rows of X are the same"):
        SparseKernelPCA().fit(np.full((10, 2), 0.1))
    model = SparseKernelPCA(0.05, 2).fit(X)
    with pytest.raises(ValueError, match="columns"):
        model.inverse_transform(np.zeros((3, 5)))


def test_without_arguments():
    model = SparseKernelPCA()
    assert clone(model).get_params() == model.get_params()
    projected = model.fit(X).transform(X)
    assert projected.shape == (len(X), model.n_components_)
    assert 0 < len(model.relevance_) < len(X) / 2
