"""What must not matter does not matter: units, order, copies, and how many threads the machine has."""

import numpy as np
import pytest
from exploring import seeds
from hypothesis import example, given
from hypothesis import strategies as st
from invariance_cases import (
    FIXED,
    FIXED_KERNEL,
    KERNEL,
    KERNEL_CLASSES,
    LINEAR,
    LINEAR_CLASSES,
    SUM,
    all_regressors,
    classification,
    few,
    fewer,
    of_rows,
    regression,
    same_predictions,
    scales,
)
from sklearn.base import clone
from threadpoolctl import threadpool_limits

from sparsebayes import RVR, SparseBayesRegressor
from sparsebayes.basis import Heaviside
from sparsebayes.datasets import make_friedman1, make_sinc2d

# -- regression: units -------------------------------------------------------------------------------------


@all_regressors
@given(seed=seeds, scale=scales)
@few
def test_units_of_the_targets(estimator, seed, scale):
    X, y = regression(estimator, seed)
    model = clone(estimator).fit(X, y)
    other = clone(estimator)
    if estimator.noise_variance is not None:
        other.set_params(noise_variance=estimator.noise_variance * scale**2)
    other.fit(X, y * scale)
    np.testing.assert_array_equal(other.relevance_, model.relevance_)
    same_predictions(model, other, X, X, y, scale=scale)
    np.testing.assert_allclose(other.noise_variance_, model.noise_variance_ * scale**2, rtol=1e-5)
    shift = len(y) * np.log(scale)
    np.testing.assert_allclose(other.log_marginal_likelihood_, model.log_marginal_likelihood_ - shift, atol=1e-5)


@pytest.mark.parametrize("estimator", [LINEAR, KERNEL, FIXED, FIXED_KERNEL], ids=str)
@given(seed=seeds, sign=st.sampled_from([1.0, -1.0]))
@few
def test_origin_of_the_targets(estimator, seed, sign):
    X, y = regression(estimator, seed)
    offset = sign * 1e4 * np.std(y)
    model, other = clone(estimator).fit(X, y), clone(estimator).fit(X, y + offset)
    np.testing.assert_array_equal(other.relevance_, model.relevance_)
    same_predictions(model, other, X, X, y, offset=offset)


@pytest.mark.parametrize("estimator", [LINEAR, FIXED], ids=str)
@given(seed=seeds)
@few
def test_units_of_the_columns(estimator, seed):
    X, y = regression(estimator, seed)
    units = np.random.default_rng(seed + 1).choice([1e-6, 1.0, 1e6], X.shape[1])
    model, other = clone(estimator).fit(X, y), clone(estimator).fit(X * units, y)
    np.testing.assert_array_equal(other.relevance_, model.relevance_)
    same_predictions(model, other, X, X * units, y)
    np.testing.assert_allclose(other.coef_ * units, model.coef_, rtol=1e-5, atol=1e-6 * np.abs(model.coef_).max())


@given(seed=seeds, scale=scales)
@few
def test_units_of_the_inputs_of_a_kernel(seed, scale):
    X, y = regression(KERNEL, seed)
    model, other = RVR().fit(X, y), RVR().fit(X * scale, y)
    np.testing.assert_array_equal(other.relevance_, model.relevance_)
    same_predictions(model, other, X, X * scale, y)


# -- regression: order and copies --------------------------------------------------------------------------


@all_regressors
@given(seed=seeds)
@few
def test_order_of_the_rows(estimator, seed):
    X, y = regression(estimator, seed)
    order = np.random.default_rng(seed + 1).permutation(len(y))
    model, other = clone(estimator).fit(X, y), clone(estimator).fit(X[order], y[order])
    if of_rows(estimator):
        np.testing.assert_array_equal(np.sort(order[other.relevance_]), model.relevance_)
    elif estimator is not SUM:
        np.testing.assert_array_equal(other.relevance_, model.relevance_)
    same_predictions(model, other, X, X, y)


@pytest.mark.parametrize("seed", range(2))
def test_order_and_copies_of_many_rows(seed):
    """Of a kernel that is compressed: many centres have remainders that are equal but for rounding."""
    X, y = make_sinc2d(2000, noise=0.1, random_state=seed)
    rng = np.random.default_rng(seed)
    order, weight = rng.permutation(len(y)), rng.integers(0, 3, len(y))
    for rows, model in [
        (order, RVR(gamma=1 / 2.5**2).fit(X, y)),
        (np.repeat(np.arange(len(y)), weight), RVR(gamma=1 / 2.5**2).fit(X, y, weight)),
    ]:
        other = RVR(gamma=1 / 2.5**2).fit(X[rows], y[rows])
        np.testing.assert_array_equal(np.sort(rows[other.relevance_]), model.relevance_)
        same_predictions(model, other, X, X, y)


@pytest.mark.parametrize("estimator", [LINEAR, KERNEL, FIXED], ids=str)
@given(seed=seeds)
@few
def test_order_of_the_columns(estimator, seed):
    X, y = regression(estimator, seed)
    order = np.random.default_rng(seed + 1).permutation(X.shape[1])
    model, other = clone(estimator).fit(X, y), clone(estimator).fit(X[:, order], y)
    if of_rows(estimator):
        np.testing.assert_array_equal(other.relevance_, model.relevance_)
    else:
        np.testing.assert_array_equal(np.sort(order[other.relevance_]), model.relevance_)
    same_predictions(model, other, X, X[:, order], y)


@all_regressors
@given(seed=seeds)
@few
def test_an_integer_weight_is_so_many_rows(estimator, seed):
    X, y = regression(estimator, seed)
    weight = np.random.default_rng(seed + 1).integers(0, 4, len(y))
    weight[0] = 1
    model = clone(estimator).fit(X, y, weight)
    rows = np.repeat(np.arange(len(y)), weight)
    other = clone(estimator).fit(X[rows], y[rows])
    if of_rows(estimator):
        np.testing.assert_array_equal(rows[other.relevance_], model.relevance_)
    elif estimator is not SUM:
        np.testing.assert_array_equal(other.relevance_, model.relevance_)
    same_predictions(model, other, X, X, y)
    np.testing.assert_allclose(other.log_marginal_likelihood_, model.log_marginal_likelihood_, atol=1e-6)


@all_regressors
@given(seed=seeds)
@few
def test_a_weight_of_zero_is_no_row(estimator, seed):
    X, y = regression(estimator, seed)
    rng = np.random.default_rng(seed + 1)
    weight = np.where(rng.random(len(y)) < 0.3, 0.0, rng.uniform(0.5, 2.0, len(y)))
    weight[0] = 1.0
    kept = np.flatnonzero(weight)
    X_odd, y_odd = X.copy(), y.copy()  # whatever stands in such a row
    X_odd[weight == 0], y_odd[weight == 0] = 1e3, -1e5
    model = clone(estimator).fit(X_odd, y_odd, weight)
    other = clone(estimator).fit(X[kept], y[kept], weight[kept])
    if of_rows(estimator):
        np.testing.assert_array_equal(kept[other.relevance_], model.relevance_)
    elif estimator is not SUM:
        np.testing.assert_array_equal(other.relevance_, model.relevance_)
    same_predictions(model, other, X, X, y)


@all_regressors
@given(seed=seeds)
@fewer
def test_every_row_twice_is_a_weight_of_two(estimator, seed):
    X, y = regression(estimator, seed)
    model = clone(estimator).fit(X, y, np.full(len(y), 2.0))
    other = clone(estimator).fit(np.vstack([X, X]), np.concatenate([y, y]))
    if of_rows(estimator):
        # Of two equal rows the first is the centre.
        np.testing.assert_array_equal(other.relevance_, model.relevance_)
    same_predictions(model, other, X, X, y)


@pytest.mark.parametrize("seed", [0, 5])
def test_a_constant_is_the_intercept_whatever_the_order_of_the_columns(seed):
    """A step up at the least value of the first column was kept in its place, and fell to zero below that value."""
    rng = np.random.default_rng(seed)
    X, new = rng.standard_normal((60, 3)), 4.0 * rng.standard_normal((50, 3))
    y = np.sin(2.0 * X[:, 0]) + 0.3 * rng.standard_normal(60) + 2.0
    model, other = (SparseBayesRegressor(Heaviside()).fit(inputs, y) for inputs in (X, X[:, ::-1]))
    np.testing.assert_allclose(other.predict(new[:, ::-1]), model.predict(new), rtol=1e-6)
    assert model.intercept_ == pytest.approx(other.intercept_)


@pytest.mark.parametrize("estimator", [LINEAR, FIXED], ids=str)
@given(seed=seeds)
@few
def test_copies_of_columns_change_nothing(estimator, seed):
    X, y = regression(estimator, seed)
    d = X.shape[1]
    copied = np.random.default_rng(seed + 1).integers(0, d, 4)
    double = np.column_stack([X, X[:, copied], X])
    model, other = clone(estimator).fit(X, y), clone(estimator).fit(double, y)
    np.testing.assert_array_equal(other.relevance_, model.relevance_)
    same_predictions(model, other, X, double, y)


@given(seed=seeds, factor=st.sampled_from([-1.0, 2.0, 0.3, 1.0 + 1e-13, 1e3]))
@example(seed=42572, factor=0.3)
@few
def test_multiples_of_a_column_are_never_kept_together(seed, factor):
    X, y = regression(LINEAR, seed)
    d = X.shape[1]
    double = np.column_stack([X, factor * X])
    model, other = SparseBayesRegressor().fit(X, y), SparseBayesRegressor().fit(double, y)
    origin = other.relevance_ % d
    assert len(np.unique(origin)) == len(origin)
    # They are other functions to choose from, so that the path, though not the model, may differ within tol.
    np.testing.assert_array_equal(np.sort(origin), model.relevance_)
    # They are more functions that could be irrelevant, so that the guard may hold the noise of one model and not of the
    # other: of that one the certificate says what releasing the noise would gain.
    held = [one.certificate_.noise_gain if one.certificate_.noise_held else 0.0 for one in (other, model)]
    found, expected = (one.log_marginal_likelihood_ + gain for one, gain in zip((other, model), held, strict=True))
    np.testing.assert_allclose(found, expected, atol=5 * model.tol)
    np.testing.assert_allclose(other.predict(double), model.predict(X), atol=0.02 * np.std(y))


@given(seed=seeds)
@few
def test_repeated_centres_are_never_kept_together(seed):
    X, y = regression(KERNEL, seed)
    rng = np.random.default_rng(seed + 1)
    rows = np.concatenate([np.arange(len(y)), rng.integers(0, len(y), 10)])
    noisy = y[rows] + 0.1 * rng.standard_normal(len(rows))  # equal inputs, other targets
    model = RVR().fit(X[rows], noisy)
    centres = model.relevance_vectors_
    assert len(np.unique(centres, axis=0)) == len(centres)
    assert np.all(model.relevance_ < len(y))


@pytest.mark.parametrize("seed", range(4))
def test_copies_beyond_a_small_dictionary_are_weights(seed):
    """How many functions there are to begin from is a number of different ones."""
    X, y = make_friedman1(150, random_state=1)
    counts = np.random.default_rng(seed).multinomial(250, np.full(150, 1 / 150)) + 1
    model = RVR(gamma=0.3).fit(X, y, sample_weight=counts)
    other = RVR(gamma=0.3).fit(np.repeat(X, counts, axis=0), np.repeat(y, counts))
    assert other.log_marginal_likelihood_ == pytest.approx(model.log_marginal_likelihood_, abs=1e-3)
    np.testing.assert_allclose(other.predict(X), model.predict(X), atol=1e-4 * np.std(y))


@given(seed=seeds)
@fewer
def test_order_of_the_targets(seed):
    X, y = regression(LINEAR, seed)
    rng = np.random.default_rng(seed + 1)
    Y = np.column_stack([y, X[:, 0] + 0.1 * rng.standard_normal(len(y)), 100.0 * rng.standard_normal(len(y))])
    for shared in (False, True):
        model = SparseBayesRegressor(shared_support=shared).fit(X, Y)
        other = SparseBayesRegressor(shared_support=shared).fit(X, Y[:, ::-1])
        np.testing.assert_array_equal(other.relevance_, model.relevance_)
        sd = Y.std(axis=0)
        np.testing.assert_allclose(other.predict(X)[:, ::-1] / sd, model.predict(X) / sd, rtol=0, atol=1e-6)


@given(seed=seeds)
@fewer
def test_units_of_targets_that_share_their_support(seed):
    X, y = regression(LINEAR, seed)
    rng = np.random.default_rng(seed + 1)
    Y = np.column_stack([y, X[:, 0] + 0.1 * rng.standard_normal(len(y))])
    units = np.array([1e6, 1e-6])
    model = SparseBayesRegressor(shared_support=True).fit(X, Y)
    other = SparseBayesRegressor(shared_support=True).fit(X, Y * units)
    np.testing.assert_array_equal(other.relevance_, model.relevance_)
    sd = Y.std(axis=0)
    np.testing.assert_allclose(other.predict(X) / units / sd, model.predict(X) / sd, rtol=0, atol=1e-6)
    np.testing.assert_allclose(other.noise_variance_, model.noise_variance_ * units**2, rtol=1e-5)


# -- threads -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("estimator", [LINEAR, KERNEL, LINEAR_CLASSES, KERNEL_CLASSES], ids=str)
@pytest.mark.parametrize("seed", [0, 1])
def test_threads_of_the_algebra(estimator, seed):
    make = regression if estimator in (LINEAR, KERNEL) else classification
    X, y = make(estimator, seed)
    X, y = (
        np.tile(X, (4, 1)) + 0.01 * np.random.default_rng(seed).standard_normal((4 * len(y), X.shape[1])),
        np.tile(y, 4),
    )
    found = []
    for threads in (1, 2):
        with threadpool_limits(limits=threads, user_api="blas"):
            model = clone(estimator).fit(X, y)
            found.append((model.relevance_, model.predict(X)))
    np.testing.assert_array_equal(found[0][0], found[1][0])
    np.testing.assert_allclose(found[0][1], found[1][1], rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("estimator", [LINEAR, KERNEL, LINEAR_CLASSES, KERNEL_CLASSES], ids=str)
def test_the_same_fit_twice(estimator):
    make = regression if estimator in (LINEAR, KERNEL) else classification
    X, y = make(estimator, 3)
    model, other = clone(estimator).fit(X, y), clone(estimator).fit(X, y)
    np.testing.assert_array_equal(model.predict(X), other.predict(X))
    assert model.history_ == other.history_
