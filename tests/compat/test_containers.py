"""Everything X may come as: tables, dtypes, layouts, sparse arrays and operators."""

import functools

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy import sparse
from scipy.sparse.linalg import LinearOperator, aslinearoperator
from shared import (
    classification,
    data_for,
    each,
    one_of_each,
    outputs,
)
from sklearn.base import clone, is_classifier, is_regressor

from sparsebayes import RVC, RVR, SparseBayesClassifier, SparseBayesRegressor
from sparsebayes.basis import RBF

# -- tables ------------------------------------------------------------------------------------------------


def frames(X, names):
    return {"pandas": pd.DataFrame(X, columns=names), "polars": pl.DataFrame(X, schema=names)}


@each
@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_tables_in_and_names_kept(estimator, library):
    X, y = data_for(estimator)
    names = ["height", "weight", "age"][: X.shape[1]]
    frame = frames(X, names)[library]
    target = pd.Series(y) if library == "pandas" else pl.Series("y", y)
    model = clone(estimator).fit(frame, target)
    assert list(model.feature_names_in_) == names
    plain = clone(estimator).fit(X, y)
    assert not hasattr(plain, "feature_names_in_")
    np.testing.assert_allclose(outputs(model, frame), outputs(plain, X), rtol=1e-10, atol=1e-12)


@one_of_each
@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_columns_in_the_wrong_order_are_refused(estimator, library):
    X, y = data_for(estimator)
    names = ["height", "weight", "age"][: X.shape[1]]
    model = clone(estimator).fit(frames(X, names)[library], y)
    with pytest.raises(ValueError, match="same order"):
        model.predict(frames(X[:, ::-1], names[::-1])[library])
    with pytest.raises(ValueError, match="unseen at fit time"):
        model.predict(frames(X, ["height", "mass", "age"][: X.shape[1]])[library])
    with pytest.warns(UserWarning, match="does not have valid feature names"):
        model.predict(X)
    with pytest.warns(UserWarning, match="was fitted without feature names"):
        clone(estimator).fit(X, y).predict(frames(X, names)[library])


@one_of_each
def test_a_missing_value_in_a_table_is_refused(estimator):
    X, y = data_for(estimator)
    frame = pd.DataFrame(X)
    frame.columns = [f"x{j}" for j in range(X.shape[1])]
    frame.loc[3, "x1"] = None
    with pytest.raises(ValueError, match="NaN"):
        clone(estimator).fit(frame, y)


def test_labels_as_categories_and_as_strings_of_pandas():
    X, y = classification(30, k=3)
    plain = SparseBayesClassifier().fit(X, y)
    for labels in (pd.Series(y, dtype="category"), pd.Series(y, dtype="string"), pd.Series(y, dtype=object), list(y)):
        model = SparseBayesClassifier().fit(X, labels)
        assert list(model.classes_) == ["ant", "bee", "cow"]
        np.testing.assert_array_equal(model.predict(X).astype(str), plain.predict(X))


# -- dtypes and layouts ------------------------------------------------------------------------------------


@each
def test_layouts_make_no_difference(estimator):
    X, y = data_for(estimator)
    expected = outputs(clone(estimator).fit(X, y), X)
    read_only_X, read_only_y = X.copy(), y.copy()
    read_only_X.flags.writeable = read_only_y.flags.writeable = False
    wide = np.zeros((2 * len(X), 2 * X.shape[1]))
    wide[::2, ::2] = X
    variants = {
        "Fortran": (np.asfortranarray(X), y),
        "read-only": (read_only_X, read_only_y),
        "strided": (wide[::2, ::2], y),
        "reversed": (X[::-1, ::-1].copy()[::-1, ::-1], y),
        "lists": (X.tolist(), y.tolist()),
        "tuples": (tuple(map(tuple, X)), tuple(y)),
        "objects": (X.astype(object), y),
        "big-endian": (X.astype(">f8"), y),
    }
    for name, (X_variant, y_variant) in variants.items():
        model = clone(estimator).fit(X_variant, y_variant)
        np.testing.assert_allclose(outputs(model, X_variant), expected, rtol=1e-8, atol=1e-9, err_msg=name)
        np.testing.assert_allclose(outputs(model, X), expected, rtol=1e-8, atol=1e-9, err_msg=name)


@each
def test_float32_is_the_same_numbers_in_float64(estimator):
    X, y = data_for(estimator)
    X = X.astype(np.float32)
    if is_regressor(estimator):
        y = y.astype(np.float32)
        wide_y = y.astype(np.float64)
    else:
        wide_y = y
    model = clone(estimator).fit(X, y)
    wide = clone(estimator).fit(X.astype(np.float64), wide_y)
    np.testing.assert_array_equal(outputs(model, X), outputs(wide, X.astype(np.float64)))
    assert model.coef_.dtype == np.float64


@each
@pytest.mark.parametrize("dtype", [np.int8, np.int64, np.uint8, bool])
def test_integer_inputs(estimator, dtype):
    rng = np.random.default_rng(0)
    X = rng.integers(0, 2 if dtype is bool else 6, (30, 3)).astype(dtype)
    y = X[:, 0].astype(np.int64) * 2 + (rng.random(30) < 0.1)
    if is_classifier(estimator):
        y = (y > y.mean()).astype(np.int64)
    model = clone(estimator).fit(X, y)
    same = clone(estimator).fit(X.astype(np.float64), y if is_classifier(estimator) else y.astype(np.float64))
    np.testing.assert_array_equal(outputs(model, X), outputs(same, X.astype(np.float64)))
    if is_classifier(estimator):
        assert model.predict(X).dtype == y.dtype


# -- sparse arrays and operators ---------------------------------------------------------------------------


def sparse_problem(classes=0):
    """A problem with a sparse X: regression, or that many classes."""
    rng = np.random.default_rng(7)
    X = rng.standard_normal((60, 12)) * (rng.random((60, 12)) < 0.3)
    y = 3.0 * X[:, 2] - 2.0 * X[:, 11] + X[:, 7]
    if classes == 2:
        return X, (y + 0.3 * rng.standard_normal(60) > 0).astype(int)
    if classes == 3:
        return X, np.digitize(y + 0.3 * rng.standard_normal(60), [-1.0, 1.0])
    return X, y + 0.1 * rng.standard_normal(60) + 5.0


CONTAINERS = {
    "csr_array": sparse.csr_array,
    "csc_array": sparse.csc_array,
    "csr_matrix": sparse.csr_matrix,
    "csc_matrix": sparse.csc_matrix,
    "coo_array": sparse.coo_array,
    "operator": aslinearoperator,
    "operator of products": lambda X: LinearOperator(
        X.shape, matvec=lambda v: X @ v.ravel(), rmatvec=lambda v: X.T @ v.ravel(), dtype=X.dtype
    ),
}


@functools.cache
def dense_fit(fit_intercept, classes):
    X, y = sparse_problem(classes)
    return (SparseBayesClassifier if classes else SparseBayesRegressor)(fit_intercept=fit_intercept).fit(X, y)


def assert_storage_makes_no_difference(container, fit_intercept, classes):
    X, y = sparse_problem(classes)
    dense = dense_fit(fit_intercept, classes)
    model = clone(dense).fit(CONTAINERS[container](X), y)
    np.testing.assert_array_equal(model.relevance_, dense.relevance_)
    np.testing.assert_allclose(model.coef_, dense.coef_, rtol=1e-8, atol=1e-8)
    np.testing.assert_allclose(outputs(model, CONTAINERS[container](X)), outputs(dense, X), rtol=1e-8, atol=1e-8)
    np.testing.assert_allclose(outputs(model, X), outputs(dense, X), rtol=1e-8, atol=1e-8)


@pytest.mark.parametrize("container", CONTAINERS, ids=str)
@pytest.mark.parametrize("fit_intercept", [True, False])
def test_storage_makes_no_difference(container, fit_intercept):
    assert_storage_makes_no_difference(container, fit_intercept, classes=0)


@pytest.mark.parametrize("container", ["csr_array", "csc_array", "operator"])
@pytest.mark.parametrize("classes", [2, 3])
def test_storage_makes_no_difference_to_a_classifier(container, classes):
    assert_storage_makes_no_difference(container, classes == 2, classes)


@pytest.mark.parametrize("container", ["csr_array", "csc_array"])
def test_weights_and_sparse_arrays(container):
    X, y = sparse_problem()
    weight = np.arange(60) % 3.0
    dense = SparseBayesRegressor().fit(X, y, weight)
    model = SparseBayesRegressor().fit(CONTAINERS[container](X), y, weight)
    np.testing.assert_array_equal(model.relevance_, dense.relevance_)
    np.testing.assert_allclose(model.predict(CONTAINERS[container](X)), dense.predict(X), rtol=1e-8)


def test_positive_weights_and_an_operator():
    X, y = sparse_problem()
    weight = 1.0 + np.arange(60) % 3.0
    dense = SparseBayesRegressor().fit(X, y, weight)
    model = SparseBayesRegressor().fit(aslinearoperator(X), y, weight)
    np.testing.assert_array_equal(model.relevance_, dense.relevance_)
    np.testing.assert_allclose(model.predict(aslinearoperator(X)), dense.predict(X), rtol=1e-8)


@pytest.mark.parametrize("estimator", [RVR(), RVC(), SparseBayesRegressor(basis=RBF(1.0))], ids=lambda e: str(e))
def test_sparse_inputs_of_a_kernel_are_refused(estimator):
    X, y = sparse_problem(2)
    with pytest.raises(TypeError, match=r"[Ss]parse"):
        clone(estimator).fit(sparse.csr_array(X), y)


@pytest.mark.parametrize("estimator", [RVR(), RVC(), SparseBayesRegressor(basis=RBF(1.0))], ids=lambda e: str(e))
def test_an_operator_in_a_kernel_is_refused(estimator):
    X, y = sparse_problem(2)
    with pytest.raises((TypeError, ValueError)):
        clone(estimator).fit(aslinearoperator(X), y)
