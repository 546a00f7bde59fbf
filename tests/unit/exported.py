"""Models of every kind that is exported, and rows to compare them on."""

import functools

import numpy as np
from sklearn.base import is_classifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MaxAbsScaler, MinMaxScaler, StandardScaler

from sparsebayes import RVC, RVR, ARDRegression, SparseBayesClassifier, SparseBayesRegressor
from sparsebayes.basis import (
    RBF,
    Bias,
    Cauchy,
    Gabor,
    Heaviside,
    Laplacian,
    Linear,
    LinearSpline,
    Polynomial,
    PolynomialKernel,
    Sigmoid,
    ThinPlateSpline,
)

N_ROWS = 10_000
D = 3
_rng = np.random.default_rng(0)
X = _rng.standard_normal((60, D))
Y = np.sin(X[:, 0]) + X[:, 1] + 0.1 * _rng.standard_normal(60)
HEAVY = np.sin(X[:, 0]) + X[:, 1] + 0.1 * np.random.default_rng(1).standard_t(2, 60)
TWO_TARGETS = np.column_stack([Y, np.cos(X[:, 0]) + 0.1 * _rng.standard_normal(60)])
UNEVEN = X[:, 1] + 0.1 * np.exp(1.5 * X[:, 0]) * np.random.default_rng(2).standard_normal(60)
EVEN = X[:, 0] + 0.1 * np.random.default_rng(3).standard_normal(60)
TWO = np.array(["no", "yes"])[(Y > 0.3).astype(int)]
THREE = np.array([3, 5, 9])[(Y > -0.5).astype(int) + (Y > 0.8)]
# Far beyond the training rows as well, where splines and polynomials are large.
ROWS = 2.0 * _rng.standard_normal((N_ROWS, D))

_UNFITTED = {
    "rbf": (RVR(gamma=0.3), Y),
    "linear": (RVR("linear"), Y),
    "poly": (RVR("poly", gamma=0.5, coef0=1.0), Y),
    "laplacian": (RVR("laplacian", gamma=0.5), Y),
    "sigmoid": (RVR(Sigmoid(0.3, -0.1)), Y),
    "sum of kernels on rows": (RVR(RBF(0.8) + RBF(3.0)), Y),
    "columns": (SparseBayesRegressor(), Y),
    "columns without an intercept": (SparseBayesRegressor(fit_intercept=False), Y),
    "widths": (SparseBayesRegressor(Bias() + Linear() + RBF([0.5, 1.0, 2.0])), Y),
    "laplacian widths": (SparseBayesRegressor(Laplacian([2.0, 1.0, 4.0], centres=20)), Y),
    "cauchy": (SparseBayesRegressor(Cauchy(0.7)), Y),
    "linear spline": (SparseBayesRegressor(LinearSpline()), Y),
    "thin plate": (SparseBayesRegressor(ThinPlateSpline(2.0)), Y),
    "gabor": (SparseBayesRegressor(Gabor((1.0, 2.0), cycles=(0.0, 0.3), aspect=1.5)), Y),
    "steps": (SparseBayesRegressor(Heaviside()), Y),
    "monomials": (SparseBayesRegressor(Polynomial(3)), Y),
    "polynomial kernel": (SparseBayesRegressor(PolynomialKernel(4, 0.3, 1.0)), Y),
    "two targets": (RVR(gamma=0.3), TWO_TARGETS),
    "shared support": (RVR(gamma=0.3, shared_support=True), TWO_TARGETS),
    "nothing kept": (SparseBayesRegressor(RBF(0.01)), np.full(60, 2.0)),
    "student-t": (RVR(gamma=0.3, likelihood="student-t"), HEAVY),
    "two heavy tails": (SparseBayesRegressor(likelihood="student-t"), np.column_stack([HEAVY, Y])),
    "outliers": (RVR(gamma=0.3, likelihood="outliers"), HEAVY),
    "noise that varies": (SparseBayesRegressor(noise="varies"), UNEVEN),
    "noise of which one varies": (SparseBayesRegressor(noise="varies"), np.column_stack([EVEN, UNEVEN])),
    "ard": (ARDRegression(), Y),
    "standardised": (make_pipeline(StandardScaler(), RVR(gamma=0.3)), Y),
    "scaled twice": (make_pipeline(MaxAbsScaler(), MinMaxScaler((-1, 2)), ARDRegression()), Y),
    "two classes": (RVC(gamma=0.3), TWO),
    "two classes of columns": (SparseBayesClassifier(), Y > 0.3),
    "softmax": (RVC(gamma=0.3), THREE),
    "softmax of monomials": (SparseBayesClassifier(Polynomial(2)), THREE),
    "one against the rest": (RVC(gamma=0.3, multi_class="ovr"), THREE),
    "standardised classes": (make_pipeline(StandardScaler(), RVC("linear")), THREE.astype(float)),
}
CLASSIFICATIONS = [name for name, (est, _) in _UNFITTED.items() if is_classifier(est)]
REGRESSIONS = [name for name in _UNFITTED if name not in CLASSIFICATIONS]


@functools.cache
def model(name):
    est, y = _UNFITTED[name]
    return est.fit(X[:, :2] if name == "gabor" else X, y)


def rows(name):
    """Rows with as many inputs as the model takes."""
    return ROWS[:, : model(name).n_features_in_]


@functools.cache
def expected(name):
    """Mean and standard deviation as (n, targets), or labels and probabilities."""
    if name in CLASSIFICATIONS:
        return model(name).predict(rows(name)), model(name).predict_proba(rows(name))
    return tuple(values.reshape(N_ROWS, -1) for values in model(name).predict(rows(name), return_std=True))


def far_out(classes=3, **settings):
    """A classifier of columns, and rows so far out that squares of their values are no numbers."""
    rng = np.random.default_rng(0)
    inputs = rng.standard_normal((60, 2))
    labels = np.digitize(inputs[:, 0] + 0.3 * rng.standard_normal(60), [-0.5, 0.5] if classes == 3 else [0.0])
    far = [[1e200, 1.0], [-1e200, 1.0], [1e200, 1e200], [1e308, -1e308], [1e154, 0.0], [0.0, -1e160], [1.0, 1.0]]
    return SparseBayesClassifier(**settings).fit(inputs, labels), np.array(far)
