"""Posteriors of fitted estimators against brute force."""

import numpy as np
import pytest

from sparsebayes import RVC, RVR, SparseBayesRegressor, datasets
from sparsebayes.testing import check_posterior

RNG = np.random.default_rng(0)
X, Y = datasets.make_sinc(80, noise=0.1, random_state=0)
COUNTS = RNG.poisson(np.exp(1.0 + np.sin(X[:, 0])))
LABELS = (Y + 0.2 * RNG.standard_normal(80) > 0.1).astype(int)
WEIGHTS = RNG.integers(1, 4, 80).astype(float)


@pytest.mark.parametrize("weights", [None, WEIGHTS])
@pytest.mark.parametrize(
    ("est", "y"),
    [
        (RVR(gamma=0.1), 1e3 * Y + 5.0),
        (RVR(gamma=0.1, noise_variance=0.02), Y),
        (RVR(gamma=0.1, support="conservative"), Y),
        (RVR(gamma=0.5, likelihood="poisson"), COUNTS),
        (RVC(gamma=0.1), LABELS),
        (RVC(gamma=0.1), np.digitize(Y, [0.0, 0.4])),
        (RVC(gamma=0.1, shared_support=False), np.digitize(Y, [0.0, 0.4])),
    ],
    ids=["gaussian", "fixed", "conservative", "poisson", "two-classes", "shared", "softmax"],
)
def test_posteriors_agree_with_brute_force(est, y, weights):
    check_posterior(est.fit(X, y, sample_weight=weights), X, y, weights)


def test_a_wrong_posterior_is_found_out():
    model = RVR(gamma=0.1).fit(X, Y)
    model._posteriors[0].mean[0] *= 1.001
    with pytest.raises(AssertionError, match="mean: off by"):
        check_posterior(model, X, Y)


def test_three_classes_are_audited_by_the_softmax_itself():
    """By an integral over all outputs, which knows nothing of pairs: four classes, and a wrong covariance."""
    rng = np.random.default_rng(0)
    inputs = rng.standard_normal((80, 2))
    labels = np.argmax(np.column_stack([inputs, -inputs]) + 0.7 * rng.standard_normal((80, 4)), axis=1)
    model = RVC(gamma=0.3, shared_support=False).fit(inputs, labels)
    found = check_posterior(model, inputs, labels)
    assert found["softmax covariance"] < 0.05
    model._posteriors[0].covariance[...] *= 1.5
    with pytest.raises(AssertionError, match="softmax covariance: off by"):
        check_posterior(model, inputs, labels, rtol=np.inf)


def test_several_models_are_refused():
    model = SparseBayesRegressor().fit(X, np.column_stack([Y, -Y]))
    with pytest.raises(ValueError, match="one model"):
        check_posterior(model, X, Y)
