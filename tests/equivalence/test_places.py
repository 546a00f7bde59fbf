"""Wherever the rows live, the model is the same: NumPy, other array libraries, Dask, blocks made on the way, a file."""

from functools import cache

import numpy as np
import pytest

from sparsebayes import RVC, RVR, SparseBayesRegressor, datasets
from sparsebayes.basis import RBF
from sparsebayes.design import compressed
from sparsebayes.estimators import devices, dictionary

strict = pytest.importorskip("array_api_strict", reason="array-api-strict is not installed")
pytest.importorskip("array_api_compat", reason="array-api-compat is not installed")

# Predictions may differ by this part of the targets' standard deviation.
CLOSE = 1e-6


def torch():
    module = pytest.importorskip("torch", reason="PyTorch is not installed")
    module.set_num_threads(1)  # the problems are small, and tests share the cores
    return module


def regression(k):
    """Ten problems; the eighth has every row twice."""
    rng = np.random.default_rng(k)
    if k < 4:
        X, y = datasets.make_sinc2d(80 + 10 * k, random_state=k)
    else:
        X = rng.uniform(-2.0, 2.0, (70, 1 + k % 4))
        y = np.sin(2.0 * X[:, 0]) + (X**2).sum(axis=1) + 0.2 * rng.standard_normal(len(X))
    return (np.repeat(X, 2, axis=0), np.repeat(y, 2)) if k == 7 else (X, y)


def classification(k):
    """Ten problems, two or three classes; the eighth has every row twice."""
    rng = np.random.default_rng(100 + k)
    n = 30 if k % 5 == 4 else 40
    X = rng.standard_normal((n, 2))
    y = (X[:, 0] + 0.5 * X[:, 1] ** 2 + 0.5 * rng.standard_normal(n) > 0.3).astype(int)
    if k % 5 == 4:
        y = y + (X[:, 1] > 0.8)
    return (np.repeat(X, 2, axis=0), np.repeat(y, 2)) if k == 7 else (X, y)


@cache
def on_numpy(estimator, k):
    return estimator().fit(*(regression if estimator is RVR else classification)(k))


def in_memory_map(tmp_path):
    def put(array):
        path = tmp_path / f"{array.ndim}.npy"
        np.save(path, array)
        return np.load(path, mmap_mode="r")

    return put


@pytest.fixture(params=["array-api-strict", "torch", "memmap", "lazy"])
def put(request, tmp_path, monkeypatch):
    if request.param == "lazy":
        monkeypatch.setattr(dictionary, "_DENSE_BYTES", 0)
        return np.asarray
    return {
        "array-api-strict": lambda: strict.asarray,
        "torch": lambda: torch().asarray,
        "memmap": lambda: in_memory_map(tmp_path),
    }[request.param]()


@pytest.mark.parametrize("k", range(10))
def test_regression(k, put):
    X, y = regression(k)
    here = on_numpy(RVR, k)
    there = RVR().fit(put(X), put(y))
    np.testing.assert_array_equal(there.relevance_, here.relevance_)
    mean, std = there.predict(put(X), return_std=True, uncertainty="posterior")
    expected, spread = here.predict(X, return_std=True, uncertainty="posterior")
    np.testing.assert_allclose(np.asarray(mean), expected, rtol=0, atol=CLOSE * y.std())
    np.testing.assert_allclose(np.asarray(std), spread, rtol=0, atol=CLOSE * y.std())


@pytest.mark.parametrize("k", range(10))
def test_classification(k, put):
    X, y = classification(k)
    here = on_numpy(RVC, k)
    there = RVC().fit(put(X), put(y))
    np.testing.assert_array_equal(there.relevance_, here.relevance_)
    np.testing.assert_allclose(np.asarray(there.predict_proba(put(X))), here.predict_proba(X), rtol=0, atol=CLOSE)
    np.testing.assert_array_equal(np.asarray(there.predict(put(X))), here.predict(X))


def test_predictions_stay_in_the_namespace_of_their_inputs():
    X, y = regression(0)
    model = RVR().fit(strict.asarray(X), strict.asarray(y))
    assert type(model.predict(strict.asarray(X))) is type(strict.asarray(X))
    assert isinstance(model.predict(X), np.ndarray)


@pytest.mark.parametrize("put", [strict.asarray, lambda z: torch().asarray(z)], ids=["array-api-strict", "torch"])
def test_compressed_on_a_device(put):
    X, y = datasets.make_sinc2d(800, random_state=3)
    here = RVR(gamma=1 / 9).fit(X, y)
    there = RVR(gamma=1 / 9).fit(put(X), put(y))
    np.testing.assert_array_equal(there.relevance_, here.relevance_)
    np.testing.assert_allclose(np.asarray(there.predict(put(X))), here.predict(X), rtol=0, atol=CLOSE * y.std())
    assert there.certificate_.converged


@pytest.mark.parametrize("put", [strict.asarray, lambda z: torch().asarray(z)], ids=["array-api-strict", "torch"])
def test_pivots_from_all_over_the_inputs(put, monkeypatch):
    monkeypatch.setattr(compressed, "_MANY", 500)
    monkeypatch.setattr(compressed, "_SPREAD", 200)
    X, y = datasets.make_sinc2d(800, random_state=3)
    here, there = RVR(gamma=1 / 9).fit(X, y), RVR(gamma=1 / 9).fit(put(X), put(y))
    np.testing.assert_array_equal(there.relevance_, here.relevance_)
    np.testing.assert_allclose(np.asarray(there.predict(put(X))), here.predict(X), rtol=0, atol=CLOSE * y.std())
    assert here.certificate_.converged


@pytest.mark.parametrize("put", [strict.asarray, lambda z: torch().asarray(z)], ids=["array-api-strict", "torch"])
def test_compressed_classification_on_a_device(put):
    X, y = datasets.make_ripley(800, random_state=0)
    here, there = RVC(gamma=4.0).fit(X, y), RVC(gamma=4.0).fit(put(X), put(y))
    np.testing.assert_array_equal(there.relevance_, here.relevance_)
    np.testing.assert_allclose(np.asarray(there.predict_proba(put(X))), here.predict_proba(X), rtol=0, atol=CLOSE)


@pytest.mark.parametrize("put", [strict.asarray, lambda z: torch().asarray(z)], ids=["array-api-strict", "torch"])
def test_several_classes_compressed_on_a_device(put):
    X, _ = datasets.make_ripley(800, random_state=0)
    y = np.digitize(X[:, 0] + 0.2 * np.random.default_rng(0).normal(size=800), [-0.4, 0.2])
    here, there = RVC(gamma=4.0).fit(X, y), RVC(gamma=4.0).fit(put(X), put(y))
    assert here.certificate_.compression_error > 0.0
    np.testing.assert_array_equal(there.relevance_, here.relevance_)
    np.testing.assert_allclose(np.asarray(there.predict_proba(put(X))), here.predict_proba(X), rtol=0, atol=CLOSE)


def test_compression_that_is_the_design_itself(monkeypatch):
    monkeypatch.setattr(devices, "_RECOMPUTED", 1000)
    monkeypatch.setattr(dictionary, "_REMAINDER", 1e-9)  # the same landmarks on the host
    X, y = datasets.make_sinc2d(1200, random_state=4)
    here = SparseBayesRegressor(RBF(6.0, centres=X[::2])).fit(X, y)
    there = SparseBayesRegressor(RBF(6.0, centres=X[::2])).fit(strict.asarray(X), y)
    np.testing.assert_array_equal(there.relevance_, here.relevance_)
    np.testing.assert_allclose(there.predict(X), here.predict(X), rtol=0, atol=CLOSE * y.std())
    assert 0.0 < there.certificate_.compression_error < 1e-3


def test_blocks_on_a_device(monkeypatch):
    monkeypatch.setattr(devices, "_HELD_BYTES", 0)
    X, y = regression(1)
    here, there = RVR().fit(X, y), RVR().fit(strict.asarray(X), y)
    np.testing.assert_array_equal(there.relevance_, here.relevance_)


def test_single_precision_storage():
    X, y = regression(2)
    here, there = RVR().fit(X, y), RVR(storage="float32").fit(strict.asarray(X), y)
    np.testing.assert_allclose(there.predict(X), here.predict(X), rtol=0, atol=1e-3 * y.std())


def test_numpy_data_go_to_a_named_device():
    torch()
    X, y = regression(0)
    np.testing.assert_array_equal(RVR(device="cpu").fit(X, y).relevance_, RVR().fit(X, y).relevance_)


def test_columns_of_a_device():
    X, y, _ = datasets.make_spikes(60, 40, 5, noise=0.05, random_state=0)
    here, there = SparseBayesRegressor().fit(X, y), SparseBayesRegressor().fit(strict.asarray(X), y)
    np.testing.assert_array_equal(there.relevance_, here.relevance_)
    np.testing.assert_allclose(np.asarray(there.predict(strict.asarray(X))), here.predict(X), atol=1e-8)


def test_a_device_that_is_not_there_is_named():
    if torch().cuda.is_available():
        pytest.skip("there is a CUDA device here")
    X, y = regression(0)
    with pytest.raises(ValueError, match="device='cuda'"):
        RVR(device="cuda").fit(X, y)


def test_mixed_namespaces_are_named():
    X, y = regression(0)
    with pytest.raises(ValueError, match=r"torch.*array_api_strict"):
        RVR().fit(torch().asarray(X), strict.asarray(y))


def test_nan_on_a_device_is_named():
    X, y = regression(0)
    X[3, 0] = np.nan
    with pytest.raises(ValueError, match=r"X contains NaN.*array_api_strict"):
        RVR().fit(strict.asarray(X), y)


def test_a_basis_without_array_form_says_so():
    X, y = regression(0)
    with pytest.raises(TypeError, match="no form in the array API"):
        RVR(kernel=lambda A, B: A @ B.T).fit(strict.asarray(X), y)
