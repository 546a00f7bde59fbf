"""What the tests of bad input share: models, data, and what a sane model is."""

from dataclasses import asdict

import numpy as np
import pytest
from sklearn.base import clone, is_classifier
from sklearn.exceptions import NotFittedError

from sparsebayes import RVC, RVR, SparseBayesClassifier, SparseBayesRegressor
from sparsebayes.inference.status import Status

REGRESSORS = [RVR(), SparseBayesRegressor()]
CLASSIFIERS = [RVC(), SparseBayesClassifier(), RVC(multi_class="ovr"), RVC(evidence="laplace")]
each = pytest.mark.parametrize("estimator", REGRESSORS + CLASSIFIERS, ids=str)
each_regressor = pytest.mark.parametrize("estimator", REGRESSORS, ids=str)
each_classifier = pytest.mark.parametrize("estimator", CLASSIFIERS, ids=str)

RNG = np.random.default_rng(0)
N = 20
X = RNG.standard_normal((N, 3))
Y = 2.0 * X[:, 0] + 0.1 * RNG.standard_normal(N)
LABELS = (X[:, 0] + 0.5 * RNG.standard_normal(N) > 0).astype(int)
# Fields of a certificate that are numbers whatever the model; kept_log_alpha is infinite where a deletion is due.
FINITE = (
    "log_evidence",
    "objective",
    "excluded_theta",
    "excluded_gain",
    "kept_gain",
    "noise_gradient",
    "noise_gain",
    "condition_number",
    "tol",
)


def targets(estimator):
    return LABELS if is_classifier(estimator) else Y


def as_list(value):
    return value if isinstance(value, list) else [value]


def assert_never_falls(history, certificate):
    """Within a start the objective never falls, and the model that is kept is not worse than where its start ended."""
    last = {}
    for record in history:
        slack = 1e-9 * max(1.0, abs(record.objective), N)
        assert record.objective >= last.get(record.start, -np.inf) - slack, record
        last[record.start] = record.objective
    if certificate.start in last:
        end = last[certificate.start]
        assert certificate.objective >= end - 1e-6 * max(1.0, abs(end))


def assert_sane(model, X):
    """A finite model: weights, precisions, evidence, certificate, and everything it says about X."""
    assert np.all(np.isfinite(model.coef_))
    assert np.all(np.isfinite(model.intercept_))
    assert np.all(np.asarray(model.alpha_) > 0)
    for covariance in as_list(model.sigma_):
        assert np.all(np.isfinite(covariance))
    assert np.isfinite(model.log_marginal_likelihood_)
    for certificate in as_list(model.certificate_):
        fields = asdict(certificate)
        assert all(np.isfinite(fields[name]) for name in FINITE), certificate
        assert not np.isnan(certificate.kept_log_alpha)
    for status, certificate in zip(as_list(model.status_), as_list(model.certificate_), strict=True):
        assert isinstance(status, Status)
        assert certificate.converged or not status.converged or status is Status.INDICATORS  # which says so
    histories = model.history_ if model.history_ and isinstance(model.history_[0], list) else [model.history_]
    for history, certificate in zip(histories, as_list(model.certificate_), strict=True):
        assert_never_falls(history, certificate)
    if is_classifier(model):
        for moderated in (True, False):
            proba = model.predict_proba(X, moderated=moderated)
            assert np.all((proba >= 0) & (proba <= 1))
            np.testing.assert_allclose(proba.sum(axis=1), 1.0, rtol=1e-9)
        assert np.all(np.isfinite(model.decision_function(X)))
        assert set(model.predict(X)) <= set(model.classes_)
    else:
        assert np.all(np.asarray(model.noise_variance_) > 0)
        mean, std = model.predict(X, return_std=True)
        assert np.all(np.isfinite(mean))
        assert np.all(np.isfinite(std) & (std > 0))


def fitted(estimator, X, y, *further):
    model = clone(estimator).fit(X, y, *further)
    assert_sane(model, X)
    return model


def refused(estimator, X, y, words, *further, error=ValueError):
    """The fit fails in these words, and leaves nothing behind that could predict."""
    model = clone(estimator)
    with pytest.raises(error, match=words):
        model.fit(X, y, *further)
    with pytest.raises((NotFittedError, AttributeError)):
        model.predict(np.zeros((2, 3)))


def fitted_or_refused(estimator, X, y, *further):
    """Where both an answer and an error are right: nothing else may happen, warnings of NumPy least of all."""
    model = clone(estimator)
    try:
        model.fit(X, y, *further)
    except (ValueError, TypeError) as error:
        complaint = str(error)
    else:
        assert_sane(model, X)
        return model
    assert any(word in complaint for word in ("rescale", "magnitude", "overflow", "representable", "too large"))
    return None
