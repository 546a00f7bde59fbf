"""Models made small: how they are read, what comes back, what is refused."""

import pickle

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.stats import gaussian_kde
from sklearn.base import clone, is_classifier, is_regressor
from sklearn.datasets import load_iris
from sklearn.exceptions import NotFittedError
from sklearn.frozen import FrozenEstimator
from sklearn.gaussian_process import GaussianProcessRegressor
from sklearn.gaussian_process.kernels import RBF, ConstantKernel, Matern, WhiteKernel
from sklearn.kernel_ridge import KernelRidge
from sklearn.linear_model import LinearRegression
from sklearn.neighbors import KernelDensity
from sklearn.svm import SVC, SVR, NuSVC, NuSVR

from sparsebayes.applications import sparsify
from sparsebayes.applications.approximation.gaussians import products
from sparsebayes.datasets import make_sinc

X, Y = make_sinc(60, noise=0.1, random_state=0)
GRID = np.linspace(-10.0, 10.0, 400)[:, None]
MIXED = ConstantKernel(0.2) * RBF(2.5) + 0.1 * RBF(1.0) * RBF(3.0) + WhiteKernel(0.01) + ConstantKernel(0.1)


def process(kernel=None, y=Y, **settings):
    kernel = RBF(2.5) if kernel is None else kernel
    return GaussianProcessRegressor(kernel, alpha=0.01, optimizer=None, **settings).fit(X, y)


def test_products_of_gaussians_are_their_integrals():
    x = np.linspace(-12.0, 12.0, 4001)
    step = x[1] - x[0]
    first, second = np.array([0.7, 2.0]), np.array([0.3, 0.5])
    a, b = np.array([[0.4, -1.0]]), np.array([[1.1, 0.3], [-2.0, 0.0]])

    def integral(p, q, u, v):
        return np.sum(np.exp(-p * (x - u) ** 2 - q * (x - v) ** 2)) * step

    sums = [np.prod([integral(first[j], second[j], a[0, j], c[j]) for j in (0, 1)]) for c in b]
    assert_allclose(products(first, a, second, b)[0], sums, rtol=1e-10)


@pytest.mark.parametrize(
    ("model", "points"),
    [
        (process(), None),
        (process(MIXED), None),
        (process(MIXED, y=5.0 + 3.0 * Y, normalize_y=True), None),
        (process(y=np.column_stack([Y, 2.0 - Y])), None),
        (process(y=np.column_stack([Y, 2.0 - Y]), normalize_y=True), None),
        (process(Matern(2.0)), GRID),
        (SVR(gamma=0.1).fit(X, Y), None),
        (NuSVR().fit(X, Y), None),
        (SVR(kernel="poly", degree=2, coef0=1.0).fit(X, Y), GRID),
        (SVR(kernel="linear").fit(X, Y), GRID),
        (KernelRidge(kernel="rbf", gamma=0.1, alpha=0.1).fit(X, Y), None),
        (KernelRidge(kernel="rbf", alpha=0.1).fit(X, np.column_stack([Y, Y**2])), None),
        (KernelRidge(kernel="laplacian", gamma=0.2, alpha=0.1).fit(X, Y), GRID),
        (KernelRidge(kernel=lambda a, b: np.minimum(a, b).sum() + 11.0, alpha=0.1).fit(X, Y), GRID[::2]),
    ],
    ids=lambda value: type(value).__name__,
)
def test_a_regressor_made_small_predicts_as_its_source(model, points):
    small = sparsify(model, 0.01, points=points)
    report = small.approximation_
    assert is_regressor(small)
    error = np.abs(small.predict(GRID) - model.predict(GRID))
    assert small.predict(GRID).shape == model.predict(GRID).shape
    assert np.max(error[(GRID[:, 0] >= X.min()) & (GRID[:, 0] <= X.max())]) < 0.05
    assert report.n_functions < report.n_source
    assert report.n_functions == len(small.relevance_vectors_) == small.coef_.shape[1]
    assert report.status.converged
    assert small.score(X, model.predict(X)) > 0.99


def test_the_stated_error_is_the_error():
    model = process()
    small = sparsify(model, 0.02)
    wide = np.linspace(-40.0, 40.0, 16001)[:, None]
    squared = (small.predict(wide) - model.predict(wide)) ** 2
    report = small.approximation_
    assert_allclose(report.integrated_squared_error, np.sum(squared) * (wide[1, 0] - wide[0, 0]), rtol=1e-4)
    assert_allclose(report.density, 60 / np.ptp(X))
    assert_allclose(report.mean_squared_error, report.integrated_squared_error * report.density / 60)
    assert_allclose(report.relative_error, np.sum(squared) / np.sum(model.predict(wide) ** 2), rtol=1e-4)
    assert_allclose(report.max_error, np.max(np.abs(small.predict(X) - model.predict(X))), rtol=1e-8)


def test_integrals_and_many_points_agree():
    model = process()
    wide = np.linspace(-20.0, 20.0, 2001)[:, None]  # beyond it, all is zero
    # The points share the weight of 60 source points; the same weight in closed form is this density.
    closed = sparsify(model, 0.05, density=60 / 40)
    summed = sparsify(model, 0.05, points=wide)
    assert_allclose(summed.relevance_vectors_, closed.relevance_vectors_)
    assert_allclose(summed.coef_, closed.coef_, rtol=2e-2)
    assert summed.approximation_.density is None


def test_less_noise_keeps_more_and_errs_less():
    model = process()
    reports = [sparsify(model, noise).approximation_ for noise in (0.3, 0.03, 0.003)]
    assert [r.n_functions for r in reports] == sorted(r.n_functions for r in reports)
    errors = [r.integrated_squared_error for r in reports]
    assert errors == sorted(errors, reverse=True)


def test_candidates_may_stand_anywhere():
    places = np.linspace(-10.0, 10.0, 31)[:, None] + 0.05
    small = sparsify(process(), 0.05, candidates=places)
    assert np.isin(small.relevance_vectors_, places).all()
    assert small.approximation_.max_error < 0.1


@pytest.mark.parametrize(("shape", "break_ties"), [("ovr", True), ("ovr", False), ("ovo", False)])
def test_several_classes(shape, break_ties):
    features, labels = load_iris(return_X_y=True)
    names = np.array(["a", "b", "c"])[labels]
    model = SVC(gamma=0.3, decision_function_shape=shape, break_ties=break_ties).fit(features, names)
    small = sparsify(model, 0.02, points=features)
    assert is_classifier(small)
    assert np.mean(small.predict(features) == model.predict(features)) > 0.98
    assert_allclose(small.decision_function(features), model.decision_function(features), atol=0.1)
    assert small.approximation_.n_functions < len(model.support_)


@pytest.mark.parametrize("machine", [SVC(gamma=0.5), NuSVC(gamma=0.5, nu=0.3)])
def test_two_classes(machine):
    rng = np.random.default_rng(0)
    features = rng.standard_normal((200, 2))
    labels = np.where(np.sum(features**2, axis=1) + 0.3 * rng.standard_normal(200) > 1.5, 1, -1)
    model = machine.fit(features, labels)
    small = sparsify(model, 0.1)
    assert_allclose(small.decision_function(features), model.decision_function(features), atol=0.3)
    assert np.mean(small.predict(features) != model.predict(features)) < 0.02
    assert set(small.predict(features)) == {-1, 1}


def clusters(n=300, seed=0):
    rng = np.random.default_rng(seed)
    return np.vstack([rng.normal(c, s, (n // 2, 2)) for c, s in (((-2, 0), 0.6), ((2, 1), 0.8))])


@pytest.mark.parametrize("weights", [None, np.linspace(0.1, 1.0, 300)])
def test_a_density_stays_one(weights):
    data = clusters()
    model = KernelDensity(bandwidth=0.5).fit(data, sample_weight=weights)
    small = sparsify(model, 0.005)
    report = small.approximation_
    assert isinstance(small, KernelDensity)
    grid = np.stack(np.meshgrid(*[np.linspace(-7, 7, 71)] * 2), axis=-1).reshape(-1, 2)
    density, source = np.exp(small.score_samples(grid)), np.exp(model.score_samples(grid))
    assert np.all(density >= 0.0)
    assert_allclose(np.sum(density) * 0.04, 1.0, rtol=1e-6)
    squared = np.sum((density - source) ** 2) * 0.04
    assert_allclose(report.integrated_squared_error, squared, rtol=1e-4)
    assert_allclose(report.relative_error, squared / (np.sum(source**2) * 0.04), rtol=1e-4)
    assert report.relative_error < 0.02
    assert report.unconstrained_error > 0.0
    assert report.n_functions < 60
    assert small.sample(5, random_state=0).shape == (5, 2)


def test_other_density_kernels_on_points():
    data = clusters(150)
    model = KernelDensity(bandwidth=1.5, kernel="epanechnikov").fit(data)
    small = sparsify(model, 0.005, points=data)
    assert small.kernel == "epanechnikov"
    assert small.approximation_.n_functions < 100
    assert_allclose(np.exp(small.score_samples(data)), np.exp(model.score_samples(data)), atol=0.02)


def test_scipys_density():
    data = (clusters() @ np.array([[1.0, 0.7], [0.0, 2.0]])).T
    model = gaussian_kde(data)
    small = sparsify(model, 0.003)
    report = small.approximation_
    assert_allclose(small(data), model(data), atol=0.01)
    assert_allclose(small.pdf(data[:, 0]), small.evaluate(data[:, :1]))
    assert_allclose(np.exp(small.logpdf(data)), small(data))
    assert_allclose(np.sum(small.weights), 1.0)
    assert small.dataset.shape == (2, report.n_functions) == (small.d, small.n)
    sample = small.resample(20_000, seed=0)
    assert_allclose(np.cov(sample), small.covariance + np.cov(small.dataset, aweights=small.weights, ddof=0), rtol=0.1)
    # The volume is that of the user's coordinates.
    x, y = (np.linspace(low - 6, high + 6, 150) for low, high in zip(data.min(axis=1), data.max(axis=1), strict=True))
    grid = np.stack(np.meshgrid(x, y)).reshape(2, -1)
    cell = (x[1] - x[0]) * (y[1] - y[0])
    assert_allclose(report.integrated_squared_error, np.sum((small(grid) - model(grid)) ** 2) * cell, rtol=1e-3)


def test_scipys_density_in_one_dimension():
    data = np.random.default_rng(0).standard_normal(200)
    model = gaussian_kde(data)
    small = sparsify(model, 0.01)
    assert_allclose(small([0.0, 1.0]), model([0.0, 1.0]), atol=0.02)
    assert_allclose(small.integrate_box_1d(-1.0, 1.0), model.integrate_box_1d(-1.0, 1.0), atol=0.02)


def test_small_models_are_frozen_copied_and_pickled():
    small = sparsify(process(), 0.1)
    assert_allclose(pickle.loads(pickle.dumps(small)).predict(X), small.predict(X))
    assert_allclose(clone(small).predict(X), small.predict(X))
    assert_allclose(FrozenEstimator(small).fit(X, Y).predict(X), small.predict(X))
    assert small.n_features_in_ == 1
    with pytest.raises(TypeError, match="call sparsify"):
        small.fit(X, Y)
    with pytest.raises(ValueError, match="only the mean"):
        small.predict(X, return_std=True)


def test_too_much_noise_leaves_the_constant():
    small = sparsify(SVR(gamma=0.1).fit(X, Y), 100.0)
    assert small.approximation_.n_functions == 0
    assert_allclose(small.predict(X), np.full(60, SVR(gamma=0.1).fit(X, Y).intercept_[0]))


@pytest.mark.parametrize(
    ("model", "error", "message"),
    [
        (LinearRegression(), TypeError, "supported are fitted GaussianProcessRegressor"),
        (SVR, TypeError, "SVR itself"),
        ("svr", TypeError, "supported"),
        (SVR(), NotFittedError, "fit first"),
        (GaussianProcessRegressor(), NotFittedError, "fit first"),
        (KernelDensity(), NotFittedError, "fit first"),
        (KernelDensity().fit([[1.0, 2.0]]), ValueError, "one point"),
        (KernelDensity().fit([[1.0], [1.0]]), ValueError, "one point"),
        (KernelDensity(metric="manhattan").fit(X), ValueError, "euclidean"),
        (process(Matern(2.0)), ValueError, "points="),
        (SVR(kernel="linear").fit(X, Y), ValueError, "points="),
        (SVR(kernel="precomputed").fit(X @ X.T, Y), ValueError, "named kernels"),
        (SVR(kernel=lambda a, b: a @ b.T).fit(X, Y), ValueError, "named kernels"),
        (KernelRidge(kernel="precomputed").fit(X @ X.T, Y), ValueError, "named kernels"),
    ],
    ids=lambda value: getattr(value, "__name__", type(value).__name__),
)
def test_models_that_are_not_supported(model, error, message):
    with pytest.raises(error, match=message):
        sparsify(model, 0.1)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"noise": 0.0}, "noise=0.0"),
        ({"noise": np.nan}, "noise=nan"),
        ({"noise": "low"}, "noise='low'"),
        ({"noise": 1e-30}, "noise"),
        ({"tol": -1.0}, "tol=-1.0"),
        ({"max_iter": 0}, "max_iter=0"),
        ({"density": -1.0}, "density=-1.0"),
        ({"density": 1.0, "points": X}, "one of the two"),
        ({"points": [[np.nan]]}, "points contains NaN"),
        ({"points": np.zeros((0, 1))}, "points has shape"),
        ({"points": np.zeros((5, 2))}, "points has shape"),
        ({"candidates": [1.0, 2.0]}, "candidates has shape"),
        ({"candidates": [["a"]]}, "candidates is not"),
        ({"candidates": [[np.inf]]}, "candidates contains"),
    ],
)
def test_bad_settings(settings, message):
    with pytest.raises(ValueError, match=message):
        sparsify(process(), **{"noise": 0.1, **settings})


def test_a_density_lost_in_noise_is_refused():
    with pytest.raises(ValueError, match="root mean square"):
        sparsify(KernelDensity(bandwidth=0.5).fit(clusters()), 100.0)


def test_a_model_changed_after_its_fit_is_refused():
    model = KernelRidge(kernel="rbf", gamma=0.1, alpha=0.1).fit(X, Y)
    model.predict = lambda X: np.zeros(len(X))
    with pytest.raises(ValueError, match="not those of its fitted coefficients"):
        sparsify(model, 0.1)


def test_weights_that_cancel_beyond_double_precision_are_refused():
    exact = GaussianProcessRegressor(RBF(6.0), alpha=1e-13, optimizer=None).fit(X, Y)
    with pytest.raises(ValueError, match="pass points="):
        sparsify(exact, 1e-3)
