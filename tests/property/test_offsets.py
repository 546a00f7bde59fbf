"""Where zero is on the scale of an input is a convention: models of the columns of X do not know it."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from scipy.sparse.linalg import aslinearoperator

from sparsebayes import SparseBayesClassifier, SparseBayesRegressor, load, save
from sparsebayes.basis import Bias, Linear
from sparsebayes.design import CentredSparse, DenseDesign, MappedDesign, centred, representatives
from sparsebayes.export import make_plan
from sparsebayes.testing.design import DesignConformance

OFFSETS = np.array([1e6, -3e5, 273.15, 0.0, 1.0, 1e4])


def rows(n=150, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, 6))
    y = 3.0 + X @ [1.0, 0.0, -2.0, 0.0, 0.5, 0.0] + 0.1 * rng.standard_normal(n)
    return X, y, rng.integers(1, 4, n).astype(float)


def labels(y, kind):
    return (y > 3).astype(int) if kind == "two" else np.digitize(y, [1.5, 4.5])


def mapped(tmp_path, X):
    np.save(tmp_path / "X.npy", X)
    return np.load(tmp_path / "X.npy", mmap_mode="r")


# -- the reproductions -----------------------------------------------------------------------------------


def test_a_large_offset_hides_nothing():
    X, y, _ = rows()
    far = SparseBayesRegressor().fit(X + 1e6, y)
    assert far.score(X + 1e6, y) > 0.99
    assert far.status_.name == "CONVERGED"
    assert {0, 2, 4} <= set(far.relevance_)


@pytest.mark.parametrize("kind", ["two", "three"])
def test_a_large_offset_hides_nothing_from_a_classifier(kind):
    X, y, _ = rows()
    c = labels(y, kind)
    far = SparseBayesClassifier().fit(X + 1e8, c)
    assert far.score(X + 1e8, c) > 0.9
    # Inputs of 1e8 have eight digits left after the point.
    assert_allclose(far.predict_proba(X + 1e8), SparseBayesClassifier().fit(X, c).predict_proba(X), atol=1e-5)


# -- invariance --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(12))
def test_offsets_and_units_change_no_model(seed):
    X, y, w = rows(60, seed)
    scale = np.array([1.8, 1e-3, 1.0, 5.0, 1e3, 2.0])
    here = SparseBayesRegressor().fit(X, y, w)
    there = SparseBayesRegressor().fit(OFFSETS + scale * X, y, w)
    assert_array_equal(there.relevance_, here.relevance_)
    assert_allclose(there.coef_ * scale, here.coef_, rtol=1e-5, atol=1e-9)
    for new in (X, X[:5] + 3.0):
        mean, std = here.predict(new, return_std=True)
        found, spread = there.predict(OFFSETS + scale * new, return_std=True)
        assert_allclose(found, mean, rtol=0, atol=1e-6 * y.std())
        assert_allclose(spread, std, rtol=1e-6)
    assert there.log_marginal_likelihood_ == pytest.approx(here.log_marginal_likelihood_, abs=1e-4)


@pytest.mark.parametrize("likelihood", ["student-t", "outliers", "poisson"])
def test_offsets_change_no_model_of_other_likelihoods(likelihood):
    X, y, w = rows()
    y = np.round(np.exp(0.3 * y)) if likelihood == "poisson" else y
    here = SparseBayesRegressor(likelihood=likelihood).fit(X, y, w)
    there = SparseBayesRegressor(likelihood=likelihood).fit(OFFSETS + X, y, w)
    assert_array_equal(there.relevance_, here.relevance_)
    assert_allclose(there.predict(OFFSETS + X), here.predict(X), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("kind", ["two", "three"])
@pytest.mark.parametrize("multi_class", ["softmax", "ovr"])
def test_offsets_change_no_classes(kind, multi_class):
    X, y, w = rows(120, 4)
    c = labels(y, kind)
    here = SparseBayesClassifier(multi_class=multi_class).fit(X, c, w)
    there = SparseBayesClassifier(multi_class=multi_class).fit(OFFSETS + X, c, w)
    assert_array_equal(there.relevance_, here.relevance_)
    assert_allclose(there.predict_proba(OFFSETS + X), here.predict_proba(X), atol=1e-5)
    assert_allclose(here.decision_function(X).shape, there.decision_function(X).shape)


def test_weights_are_still_copies():
    X, y, w = rows(60, 2)
    X = OFFSETS + X
    copies = np.repeat(np.arange(len(X)), w.astype(int))
    one, other = SparseBayesRegressor().fit(X, y, w), SparseBayesRegressor().fit(X[copies], y[copies])
    assert_array_equal(one.relevance_, other.relevance_)
    assert_allclose(one.X_offset_, other.X_offset_, rtol=1e-12)
    assert_allclose(one.predict(X), other.predict(X), rtol=1e-8)
    # Rows of weight zero are not data: no mean may know them.
    wild = np.vstack([np.full((1, 6), 1e30), X])
    same = SparseBayesRegressor().fit(wild, np.append(1e20, y), np.append(0.0, w))
    assert_allclose(same.X_offset_, one.X_offset_)
    assert_allclose(same.predict(X), one.predict(X))


# -- what the fitted model says ----------------------------------------------------------------------------------


@pytest.mark.parametrize("targets", [1, 2])
@pytest.mark.parametrize("shared", [False, True])
def test_coefficients_and_intercept_are_those_of_the_columns_as_given(targets, shared):
    X, y, w = rows()
    X = OFFSETS + X
    Y = y if targets == 1 else np.column_stack([y, X[:, 5] - y])
    model = SparseBayesRegressor(shared_support=shared).fit(X, Y, w)
    assert_allclose(X @ model.coef_.T + model.intercept_, model.predict(X), rtol=0, atol=1e-7)
    assert_array_equal(np.flatnonzero(np.atleast_2d(model.coef_).any(axis=0)), model.relevance_)


def test_the_variance_is_that_of_centred_columns():
    X, y, w = rows()
    X = OFFSETS + X
    model = SparseBayesRegressor().fit(X, y, w)
    assert_allclose(model.X_offset_, np.average(X, axis=0, weights=w), rtol=0, atol=1e-9)
    u = (X - np.average(X, axis=0, weights=w))[:, model.relevance_]
    # Brute force: the posterior of ridge regression with these precisions, on centred columns and targets.
    t = y - np.average(y, weights=w)
    precision = np.diag(model.alpha_) + u.T @ (w[:, None] * u) / model.noise_variance_
    mean = np.linalg.solve(precision, u.T @ (w * t)) / model.noise_variance_
    assert_allclose(model.coef_[model.relevance_], mean, rtol=1e-8)
    variance = model.noise_variance_ + np.einsum("na,na->n", u @ np.linalg.inv(precision), u)
    assert_allclose(model.predict(X, return_std=True, uncertainty="posterior")[1], np.sqrt(variance), rtol=1e-8)
    C = model.noise_variance_ * np.diag(1.0 / w) + u @ np.diag(1.0 / model.alpha_) @ u.T
    # A weight of k is k copies: the evidence of the copies has a factor for the spread that copies do not have.
    n = w.sum()
    log = -0.5 * (
        n * np.log(2 * np.pi * model.noise_variance_)
        + np.linalg.slogdet(precision)[1]
        - np.sum(np.log(model.alpha_))
        + t @ np.linalg.solve(C, t)
    )
    assert model.log_marginal_likelihood_ == pytest.approx(log, rel=1e-9)


def test_a_basis_that_is_written_down_is_taken_as_it_is():
    X, y, _ = rows()
    for basis in (Linear(), Bias() + Linear()):
        model = SparseBayesRegressor(basis, fit_intercept=False).fit(X + 5.0, y)
        assert "X_offset_" not in vars(model)
    plain = SparseBayesRegressor(fit_intercept=False).fit(X, y)
    assert_array_equal(plain.X_offset_, np.zeros(6))
    assert_allclose(plain.predict(X), SparseBayesRegressor(Linear(), fit_intercept=False).fit(X, y).predict(X))


@pytest.mark.parametrize("kind", ["regression", "two", "three"])
def test_constant_columns_are_never_kept(kind):
    X, y, w = rows()
    X = np.column_stack([np.full(len(X), 0.1), X, np.full(len(X), 1e7 / 3)])
    target = y if kind == "regression" else labels(y, kind)
    for array in (X, sparse.csr_array(X), aslinearoperator(X)):
        model = (SparseBayesRegressor if kind == "regression" else SparseBayesClassifier)().fit(array, target, w)
        assert not {0, 7} & set(model.relevance_)


# -- storages ----------------------------------------------------------------------------------------------------


def test_every_storage_gives_the_same_model(tmp_path):
    X, y, w = rows()
    X = OFFSETS + X
    here = SparseBayesRegressor().fit(X, y, w)
    std = here.predict(X, return_std=True, uncertainty="posterior")[1]
    for array in (
        np.asfortranarray(X),
        sparse.csr_array(X),
        sparse.csc_matrix(X),
        aslinearoperator(X),
        mapped(tmp_path, X),
        [(X[:70], y[:70], w[:70]), (X[70:], y[70:], w[70:])],
    ):
        there = SparseBayesRegressor().fit(*((array,) if isinstance(array, list) else (array, y, w)))
        assert_array_equal(there.relevance_, here.relevance_)
        assert_allclose(there.X_offset_, here.X_offset_, rtol=1e-10)
        assert_allclose(there.predict(X), here.predict(X), rtol=0, atol=1e-7)
        assert_allclose(there.predict(X, return_std=True, uncertainty="posterior")[1], std, rtol=1e-7)
        if not isinstance(array, list | np.memmap):  # of rows in chunks none can be left out
            assert_allclose(there.predict(X, return_std=True)[1], here.predict(X, return_std=True)[1], rtol=1e-7)
        new = X if isinstance(array, list) else array
        assert_allclose(there.predict(new), here.predict(X), rtol=0, atol=1e-7)


def test_a_file_with_more_columns_than_rows(tmp_path):
    rng = np.random.default_rng(3)
    X = 1e5 + rng.standard_normal((50, 80))
    y = X[:, 3] - X[:, 50] + 0.01 * rng.standard_normal(50)
    here, there = SparseBayesRegressor().fit(X, y), SparseBayesRegressor().fit(mapped(tmp_path, X), y)
    assert {3, 50} <= set(here.relevance_)
    assert_array_equal(there.relevance_, here.relevance_)
    assert_allclose(there.predict(X), here.predict(X), rtol=0, atol=1e-6)


def test_partial_fits_with_a_wild_first_row_of_no_weight():
    X, y, w = rows()
    X = OFFSETS + X
    model = SparseBayesRegressor()
    first = np.vstack([np.full((1, 6), 1e30), X[:70]])
    model.partial_fit(first, np.append(1e25, y[:70]), np.append(0.0, w[:70])).partial_fit(X[70:], y[70:], w[70:])
    assert_allclose(model.predict(X), SparseBayesRegressor().fit(X, y, w).predict(X), rtol=0, atol=1e-7)


def test_sparse_columns_stay_sparse():
    Phi = sparse.random_array((400, 3000), density=0.01, rng=np.random.default_rng(0), format="csc")
    y = 5.0 + Phi[:, [7]].toarray()[:, 0] * 3.0 + 0.01 * np.random.default_rng(1).standard_normal(400)
    design, means = centred(Phi, np.ones(400))
    assert isinstance(design, CentredSparse)
    assert design._Phi.nnz == Phi.nnz
    assert_allclose(means, Phi.mean(axis=0))
    one, other = SparseBayesRegressor().fit(Phi, y), SparseBayesRegressor().fit(Phi.toarray(), y)
    assert 7 in one.relevance_
    assert_array_equal(one.relevance_, other.relevance_)
    assert_allclose(one.predict(Phi), other.predict(Phi.toarray()), atol=1e-9)


def test_on_a_device():
    strict = pytest.importorskip("array_api_strict", reason="array-api-strict is not installed")
    X, y, w = rows()
    X = OFFSETS + X
    for model, t in ((SparseBayesRegressor(), y), (SparseBayesClassifier(), labels(y, "two"))):
        here = type(model)().fit(X, t, w)
        there = model.fit(strict.asarray(X), strict.asarray(t), w)
        assert_array_equal(there.relevance_, here.relevance_)
        assert_allclose(there.intercept_, here.intercept_, rtol=1e-7)
        assert_allclose(np.asarray(there.predict(strict.asarray(X))), here.predict(X), rtol=0, atol=1e-7)


def test_on_a_cluster():
    da = pytest.importorskip("dask.array", reason="Dask is not installed")
    import dask

    X, y, _ = rows()
    X = np.column_stack([OFFSETS + X, np.full(len(X), 0.1)])
    with dask.config.set(scheduler="synchronous"):
        for estimator, t in ((SparseBayesRegressor, y), (SparseBayesClassifier, labels(y, "two"))):
            here = estimator().fit(X, t)
            there = estimator().fit(da.from_array(X, chunks=(60, 7)), da.from_array(t, chunks=60))
            assert_array_equal(there.relevance_, here.relevance_)
            assert_allclose(there.intercept_, here.intercept_, rtol=1e-7)
            found = there.predict(da.from_array(X, chunks=(60, 7))).compute()
            assert_allclose(found, here.predict(X), rtol=0, atol=1e-7)


def test_saved_models_and_exports_take_the_offset_off(tmp_path):
    X, y, w = rows()
    X = OFFSETS + X
    model = SparseBayesRegressor().fit(X, y, w)
    save(model, tmp_path / "one.model")
    mean, std = load(tmp_path / "one.model").predict(X, return_std=True)
    assert_array_equal(mean, model.predict(X))
    plan = make_plan(model)
    unused = np.setdiff1d(np.arange(6), model.relevance_)
    assert_array_equal(plan.centre[unused], 0.0)
    values = (X - plan.centre)[:, model.relevance_]
    assert_allclose(values @ plan.weights[0] + plan.offsets[0], mean, rtol=1e-12)
    variance = plan.noise[0] + np.einsum("na,na->n", values @ plan.covariances[0], values)
    assert_allclose(np.sqrt(variance), std, rtol=1e-10)


@pytest.mark.parametrize("library", ["array_api_strict", "torch"])
def test_copies_stay_copies_on_a_device(library):
    xp = pytest.importorskip(library)
    X = 7.3 + np.random.default_rng(0).standard_normal((97, 12))
    X[:, [5, 11]] = X[:, [2]]
    design = centred(xp.asarray(X), np.random.default_rng(1).uniform(0.5, 2.0, 97))[0]
    expected = np.arange(12)
    expected[[5, 11]] = 2
    assert_array_equal(representatives(design), expected)


class CentredConformance(DesignConformance):
    """Columns less their means, compared with the same done to an array; means are rounded to 1e-12 of the spread."""

    rtol = 1e-10

    weights = np.random.default_rng(9).uniform(0.5, 2.0, 23)

    def matrix(self, n=23, m=11, seed=0):
        Phi = super().matrix(n, m, seed)
        return Phi - np.average(Phi, axis=0, weights=self.weights[:n])

    def shifted(self, Phi):
        """Columns with means, whose centred ones are these (the mean of Φ is zero)."""
        raw = Phi - Phi[0]  # zeros, which sparse storage leaves out
        raw[:, 0] += 30.0  # none: the mean is taken off its entries
        return raw


class TestCentredSparse(CentredConformance):
    def make(self, Phi):
        return centred(sparse.csc_array(self.shifted(Phi)), self.weights[: len(Phi)])[0]


class TestCentredDense(CentredConformance):
    def make(self, Phi):
        return centred(self.shifted(Phi), self.weights[: len(Phi)])[0]


class TestCentredOperator(CentredConformance):
    def make(self, Phi):
        return centred(aslinearoperator(self.shifted(Phi)), self.weights[: len(Phi)])[0]


def test_kinds_of_centred_designs(tmp_path):
    X, _, w = rows()
    assert isinstance(centred(X, w)[0], DenseDesign)
    assert isinstance(centred(mapped(tmp_path, X), w)[0], MappedDesign)
    assert_allclose(centred(mapped(tmp_path, X), w)[0].columns([2]), centred(X, w)[0].columns([2]), rtol=1e-14)
