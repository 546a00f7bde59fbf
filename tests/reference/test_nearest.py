"""The Gaussian nearest to a classifier's posterior, against brute force."""

import warnings

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.special import expit
from sklearn.datasets import load_digits, load_iris, load_wine
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import log_loss
from sklearn.model_selection import train_test_split
from sklearn.preprocessing import StandardScaler

from sparsebayes import RVC
from sparsebayes.design import DenseDesign
from sparsebayes.inference.models.mode import LaplaceProblem
from sparsebayes.inference.models.nearest import nearest_root
from sparsebayes.likelihood import Bernoulli, Categorical, expected_slope
from sparsebayes.testing import check_posterior


def problem(seed, n=12, separable=True):
    """Two functions on a few rows, their signs, precisions, and the mode of the weights by plain Newton steps."""
    rng = np.random.default_rng(seed)
    Phi, alpha = rng.standard_normal((n, 2)), 10.0 ** rng.uniform(-3.0, 0.0, 2)
    signs = np.sign(Phi @ [1.0, -0.5] + (0.0 if separable else 2.0) * rng.standard_normal(n))
    w = np.zeros(2)
    for _ in range(200):
        p = expit(signs * (Phi @ w))
        precision = Phi.T @ ((p * (1.0 - p))[:, None] * Phi) + np.diag(alpha)
        w = w + 0.5 * np.linalg.solve(precision, Phi.T @ (signs * (1.0 - p)) - alpha * w)
    return Phi, signs, alpha, w, np.linalg.inv(precision)


def nearest(Phi, alpha, w, laplace):
    columns = active_columns(Phi, Bernoulli(np.zeros(len(Phi)), np.ones(len(Phi))))
    root = nearest_root(lambda root: columns.expected_gram(w, root), alpha, np.linalg.cholesky(laplace))
    return root @ root.T


def active_columns(Phi, likelihood):
    """Each column as a function of the output that its turn is."""
    columns = Phi.shape[1] // likelihood.shape[1]
    problem = LaplaceProblem(DenseDesign(Phi), likelihood, np.ones(Phi.shape[1], dtype=bool))
    return problem.active([k // columns * Phi.shape[1] + k for k in range(Phi.shape[1])])


def bound(Phi, signs, alpha, w, S):
    """What the nearest Gaussian maximises, by numerical integration row by row."""
    total = -0.5 * np.sum(alpha * np.diagonal(S)) + 0.5 * np.linalg.slogdet(S)[1]
    for mean, variance in zip(signs * (Phi @ w), np.einsum("na,ab,nb->n", Phi, S, Phi), strict=True):
        s = np.sqrt(variance)
        fit = quad(lambda z, m=mean, s=s: np.logaddexp(0.0, -m - s * z) * np.exp(-(z**2) / 2), -12, 12)[0]
        total -= fit / np.sqrt(2.0 * np.pi)
    return total


@pytest.mark.parametrize("separable", [True, False])
@pytest.mark.parametrize("seed", range(4))
def test_no_other_covariance_is_nearer(seed, separable):
    Phi, signs, alpha, w, laplace = problem(seed, separable=separable)
    S = nearest(Phi, alpha, w, laplace)
    best, rng = bound(Phi, signs, alpha, w, S), np.random.default_rng(seed)
    assert best > bound(Phi, signs, alpha, w, laplace)
    root = np.linalg.cholesky(S)
    for size in (0.02, 0.3):
        for _ in range(6):
            other = root @ (np.eye(2) + size * rng.standard_normal((2, 2)))
            assert bound(Phi, signs, alpha, w, other @ other.T) < best


def test_where_the_data_say_much_it_is_that_of_laplace():
    Phi, _, alpha, w, laplace = problem(0, n=20_000, separable=False)
    np.testing.assert_allclose(nearest(Phi, alpha, w, laplace), laplace, rtol=1e-3, atol=1e-3 * laplace.max())


def test_begun_elsewhere_it_ends_in_the_same_place():
    Phi, _, alpha, w, laplace = problem(1)
    S = nearest(Phi, alpha, w, laplace)
    for factor in (1e-6, 1e3):
        np.testing.assert_allclose(nearest(Phi, alpha, w, factor * laplace), S, rtol=1e-6)


def weighted_and_separable(seed):
    """Classes that a line separates, every row many times: where steps to and fro are at their worst."""
    rng = np.random.default_rng(seed)
    n = rng.integers(20, 80)
    X = rng.standard_normal((n, 2)) * rng.choice([0.3, 1, 5])
    y = (X @ rng.standard_normal(2) > 0).astype(int)
    return X, y, float(10.0 ** rng.uniform(-2.5, 1)), np.full(n, 10.0 ** rng.integers(0, 4))


@pytest.mark.parametrize("seed", [10, 14, 26, 27])
def test_it_settles_where_every_row_saturates(seed):
    """The first two took more than 200 steps, and were then returned as they were, without a word."""
    X, y, gamma, weights = weighted_and_separable(seed)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = RVC(gamma=gamma).fit(X, y, sample_weight=weights)
    if np.min(model.alpha_) > 1e-35:  # below, plain inverses have no digits left to compare with
        check_posterior(model, X, y, weights)


def test_it_says_where_it_does_not_settle():
    """An implied precision that depends on how often it was asked for has no fixed point."""
    asked = []

    def expected(root):
        asked.append(root)
        return (3.0 if len(asked) % 2 else 30.0) * root.T @ root

    with pytest.warns(ConvergenceWarning, match="sigma_ are known to"):
        nearest_root(expected, np.ones(2), np.eye(2))


def test_what_is_left_at_the_level_of_rounding_is_no_failure():
    rng, asked = np.random.default_rng(0), []

    def expected(root):
        asked.append(root)
        return (3.0 + 1e-6 * rng.standard_normal()) * root.T @ root

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        root = nearest_root(expected, np.ones(2), np.eye(2))
    np.testing.assert_allclose(root @ root.T, 0.25 * np.eye(2), rtol=1e-4, atol=1e-5)
    assert len(asked) < 100


def test_expected_slope():
    rng = np.random.default_rng(0)
    means, deviations = rng.uniform(-12.0, 12.0, 200), 10.0 ** rng.uniform(-3.0, 2.0, 200)
    deviations[:20], deviations[20:40], deviations[40:50] = 1.0, 1.001, 0.0
    found = expected_slope(np, means, deviations**2)
    for slope, mean, s in zip(found, means, deviations, strict=True):
        # In the units of whichever factor is the narrower one, which is where the integrand is.
        if s <= 1.0:
            value = quad(lambda z, m=mean, s=s: expit(m + s * z) * expit(-m - s * z) * np.exp(-(z**2) / 2), -12, 12)[0]
        else:
            value = quad(
                lambda y, m=mean, s=s: expit(y) * expit(-y) * np.exp(-(((y - m) / s) ** 2) / 2), -40, 40, limit=500
            )[0]
            value /= s
        assert slope == pytest.approx(value / np.sqrt(2.0 * np.pi), abs=1e-8)


def test_two_outputs_are_one_difference():
    rng = np.random.default_rng(3)
    Phi, w, counts = rng.standard_normal((30, 4)), 3.0 * rng.standard_normal(4), rng.uniform(0.5, 2.0, 30)
    root = rng.standard_normal((4, 4))
    coupled = active_columns(Phi, Categorical(np.eye(2)[np.zeros(30, dtype=int)], counts)).expected_gram(w, root)
    signs = np.array([1.0, 1.0, -1.0, -1.0])
    single = active_columns(Phi * signs, Bernoulli(np.zeros(30), counts)).expected_gram(w, root)
    np.testing.assert_allclose(coupled, single, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("gamma", [0.01, 0.3, 10.0, 100.0])
@pytest.mark.parametrize("classes", [2, 3])
def test_audit_of_separable_classes(gamma, classes):
    """Where Laplace's covariance is widest: the covariance solves its equation, computed anew on a fine grid."""
    X, y = load_iris(return_X_y=True)
    y = np.minimum(y, classes - 1)
    # Of narrow kernels on separable classes priors are next to nothing (1e-38), and outputs all but undetermined: the
    # shares of two classes are then not what they are at the mode, and the covariance is that of its equation only.
    check_posterior(RVC(gamma=gamma, shared_support=False).fit(X, y), X, y, softmax=0.1 if gamma < 1.0 else np.inf)


@pytest.mark.parametrize(
    ("gamma", "weight", "evidence"),
    [(0.1, 1e3, "auto"), (0.01, 1e4, "auto"), (0.01, 1e5, "auto"), (0.01, 1e4, "laplace"), (0.01, 1e5, "laplace")],
)
def test_nearly_dependent_functions(gamma, weight, evidence):
    """Conditions beyond rounding: variances stay what they are, sums of squares."""
    rng = np.random.default_rng(0)
    centres = 0.7 * rng.standard_normal((2, 2))
    y = rng.integers(0, 2, 80)
    X = centres[y] + rng.standard_normal((80, 2))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model = RVC(gamma=gamma, evidence=evidence).fit(X, y, sample_weight=np.full(80, weight))
    assert np.all(np.isfinite(model.sigma_))
    p = model.predict_proba(X)
    np.testing.assert_allclose(p, model.predict_proba(X, moderated=False), atol=0.05)


@pytest.mark.parametrize("multi_class", ["softmax", "ovr"])
@pytest.mark.parametrize(("load", "n"), [(load_iris, 60), (load_wine, 60), (load_digits, 120)])
def test_probabilities_of_separable_classes_are_better_than_the_plug_in(load, n, multi_class):
    X, y = load(return_X_y=True)
    moderated, plug_in, sure, right = [], [], [], []
    for seed in range(1 if load is load_digits else 5):
        parts = train_test_split(X, y, train_size=n, random_state=seed, stratify=y)
        scale = StandardScaler().fit(parts[0])
        model = RVC(
            gamma=0.3 / X.shape[1], multi_class=multi_class, shared_support=False, evidence="laplace", tol=0.1
        ).fit(scale.transform(parts[0]), parts[2])
        p = model.predict_proba(scale.transform(parts[1]))
        moderated.append(log_loss(parts[3], p))
        plug_in.append(log_loss(parts[3], model.predict_proba(scale.transform(parts[1]), moderated=False)))
        sure.append(np.mean(np.max(p, axis=1)))
        right.append(np.mean(np.argmax(p, axis=1) == parts[3]))
    assert np.mean(moderated) < np.mean(plug_in)
    assert abs(np.mean(sure) - np.mean(right)) < 0.06
