import numpy as np
import pytest
from sklearn.linear_model import LassoCV

from sparsebayes import SparseBayesRegressor
from sparsebayes.applications.images import RandomProjections, Wavelets


@pytest.mark.parametrize("wavelet", ["haar", "daubechies4"])
@pytest.mark.parametrize("shape", [16, (8, 16)])
def test_wavelets_are_orthonormal(wavelet, shape):
    psi = Wavelets(shape, wavelet)
    dense = psi @ np.eye(psi.shape[1])
    np.testing.assert_allclose(dense.T @ dense, np.eye(psi.shape[1]), atol=1e-12)
    np.testing.assert_allclose(psi.rmatmat(np.eye(psi.shape[0])), dense.T, atol=1e-12)


def test_daubechies_wavelets_do_not_see_a_ramp():
    coefficients = Wavelets(64, "daubechies4", levels=1).rmatvec(np.arange(64.0))
    assert np.abs(coefficients[32:63]).max() < 1e-10  # all details but the one across the periodic border


def test_random_projections_have_orthonormal_rows():
    R = RandomProjections(20, 50, random_state=0)
    dense = R @ np.eye(50)
    np.testing.assert_allclose(dense @ dense.T, np.eye(20), atol=1e-12)
    np.testing.assert_allclose(R.rmatmat(np.eye(20)), dense.T, atol=1e-12)


def test_a_wavelet_sparse_image_is_recovered_from_random_projections():
    rng = np.random.default_rng(0)
    side, n_kept, noise = 32, 50, 0.01
    psi = Wavelets((side, side))
    coefficients = np.zeros(side**2)
    coefficients[rng.choice(side**2, n_kept, replace=False)] = rng.standard_normal(n_kept)
    R = RandomProjections(int(0.4 * side**2), side**2, rng)
    dictionary = R @ psi
    t = dictionary @ coefficients + noise * rng.standard_normal(R.shape[0])
    model = SparseBayesRegressor(fit_intercept=False, tol=5.0).fit(dictionary, t)
    lasso = LassoCV(fit_intercept=False, cv=3, alphas=20).fit(dictionary @ np.eye(side**2), t)
    assert np.sum((model.coef_ - coefficients) ** 2) <= np.sum((lasso.coef_ - coefficients) ** 2)
    assert np.sqrt(model.noise_variance_) == pytest.approx(noise, rel=0.2)
    assert len(model.relevance_) <= 1.1 * n_kept


def test_bad_settings_are_refused():
    with pytest.raises(ValueError, match="at most 2"):
        Wavelets(12, levels=3)
    with pytest.raises(ValueError, match="wavelet='mexican'"):
        Wavelets(16, "mexican")
    with pytest.raises(ValueError, match="at most n_samples=10"):
        RandomProjections(11, 10)
