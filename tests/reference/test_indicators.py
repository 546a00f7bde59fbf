"""Two classes whose functions a regression on their indicator chooses, against dense algebra."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.linalg import helmert
from scipy.optimize import minimize
from scipy.special import expit, log_expit
from sklearn.datasets import load_digits
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import log_loss

from sparsebayes import RVC, Sequential, SparseBayesClassifier, datasets
from sparsebayes.inference import Status
from sparsebayes.inference.fit.indicators import contrasts
from sparsebayes.testing import check_posterior


def rings(seed, n=90):
    """Two classes of five inputs, of which two matter."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 5))
    return X, (np.hypot(X[:, 0], X[:, 1]) + 0.3 * rng.normal(size=n) > 1.1).astype(int)


def laplace(Phi, alpha, t, counts):
    """Laplace's evidence by a general optimiser and one determinant."""

    def fall(w):
        y = Phi @ w
        height = counts @ log_expit(np.where(t > 0, y, -y)) - 0.5 * alpha @ w**2
        return -height, -(Phi.T @ (counts * (t - expit(y))) - alpha * w)

    found = minimize(fall, np.zeros(len(alpha)), jac=True, method="BFGS", options={"gtol": 1e-10, "maxiter": 5000})
    y = Phi @ found.x
    H = Phi.T @ ((counts * expit(y) * expit(-y))[:, None] * Phi) + np.diag(alpha)
    return -found.fun + 0.5 * np.sum(np.log(alpha)) - 0.5 * np.linalg.slogdet(H)[1]


@pytest.mark.parametrize("K", [2, 3, 5])
def test_contrasts_have_the_inner_products_of_the_indicators(K):
    rng = np.random.default_rng(K)
    classes, counts = np.eye(K)[rng.integers(K, size=40)], rng.uniform(0.5, 2.0, 40)
    centred = classes - np.average(classes, axis=0, weights=counts)
    found = contrasts(classes, counts)
    assert found.shape == (40, K - 1)
    expected = centred @ helmert(K).T
    assert_allclose(found @ found.T, (expected @ expected.T) * (0.5 if K == 2 else 1.0), atol=1e-12)


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("weighted", [False, True])
def test_the_evidence_is_laplace_s_and_no_other_scale_has_more(seed, weighted):
    X, t = rings(seed)
    counts = np.random.default_rng(seed).integers(1, 4, len(t)).astype(float) if weighted else np.ones(len(t))
    model = RVC(gamma=0.3, evidence="indicators").fit(X, t, sample_weight=counts)
    assert model.status_ is Status.INDICATORS
    Phi = np.column_stack([np.exp(-0.3 * np.sum((X[:, None] - X[model.relevance_]) ** 2, axis=2)), np.ones(len(t))])
    alpha = model.alpha_[0]
    here = laplace(Phi, alpha, t, counts)
    assert model.log_marginal_likelihood_ == pytest.approx(here, rel=1e-6)
    for factor in (0.01, 0.1, 0.5, 2.0, 10.0, 100.0):
        assert laplace(Phi, factor * alpha, t, counts) < here
    check_posterior(model, X, t, sample_weight=counts)


def test_relative_precisions_are_those_of_the_regression():
    """Of a fit of the indicator by least squares, at the noise that it learns there."""
    X, t = rings(0)
    model = RVC(gamma=0.3, evidence="indicators", fit_intercept=False).fit(X, t)
    alpha = model.alpha_[0]
    Phi = np.exp(-0.3 * np.sum((X[:, None] - X[model.relevance_]) ** 2, axis=2))
    centred = t - t.mean()

    def evidence(logs):
        noise, prior = np.exp(logs[0]), np.exp(logs[1:])
        C = noise * np.eye(len(t)) + (Phi / prior) @ Phi.T
        return 0.5 * (np.linalg.slogdet(C)[1] + centred @ np.linalg.solve(C, centred))

    begun = np.concatenate([[np.log(np.var(t) / 2.0)], np.log(30.0 * alpha)])
    found = minimize(evidence, begun, method="L-BFGS-B", options={"maxiter": 2000, "ftol": 1e-14, "gtol": 1e-9})
    ratio = np.log(alpha) - found.x[1:]
    assert np.ptp(ratio) < 0.01


@pytest.mark.parametrize("seed", range(3))
def test_copies_of_rows_are_weights(seed):
    X, t = rings(seed, n=60)
    counts = np.random.default_rng(seed).integers(1, 4, len(t))
    weighted = RVC(gamma=0.3, evidence="indicators").fit(X, t, sample_weight=counts)
    copied = RVC(gamma=0.3, evidence="indicators").fit(np.repeat(X, counts, axis=0), np.repeat(t, counts))
    assert weighted.log_marginal_likelihood_ == pytest.approx(copied.log_marginal_likelihood_, rel=1e-9)
    assert_allclose(weighted.predict_proba(X), copied.predict_proba(X), rtol=1e-6)


def test_the_certificate_says_how_far_a_compression_may_be_off():
    X, t = datasets.make_ripley(800, random_state=0)
    model, exact = (RVC(gamma=4.0, evidence="indicators", compression=c).fit(X, t) for c in ("auto", False))
    assert 0.0 < model.certificate_.compression_error < 1e-3
    assert exact.certificate_.compression_error == 0.0


def test_probabilities_of_separable_classes_are_not_timid():
    X, y = load_digits(return_X_y=True)
    two = (y == 3) | (y == 5)
    X, y = X[two] / 16.0, y[two]
    order = np.random.default_rng(0).permutation(len(y))
    train, test = order[:120], order[120:]
    model = RVC(evidence="indicators").fit(X[train], y[train])
    plain = log_loss(y[test], model.predict_proba(X[test], moderated=False))
    assert model._posteriors[0].temper < 1.0
    assert log_loss(y[test], model.predict_proba(X[test])) < 1.2 * plain


def test_a_spread_of_classes_that_overlap_is_kept_whole():
    """Where rows that are left out do not ask for less, probabilities are integrated over all of the covariance."""
    X, t = rings(1, n=300)
    t = np.where(np.random.default_rng(0).random(len(t)) < 0.2, 1 - t, t)
    assert RVC(gamma=0.3, evidence="indicators").fit(X, t)._posteriors[0].temper == 1.0


class TestAuto:
    """Which evidence chooses where nobody says."""

    def test_a_rich_dictionary_is_left_to_the_regression(self):
        X, t = rings(0, n=200)
        model = RVC(gamma=1.0).fit(X, t)
        assert model.status_ is Status.INDICATORS
        assert not model.certificate_.converged

    def test_few_columns_are_left_to_laplace(self):
        X, t = rings(0, n=200)
        model = SparseBayesClassifier().fit(X, t)
        assert model.status_ is Status.CONVERGED
        assert model.certificate_.converged

    def test_a_smooth_kernel_is_left_to_the_regression_which_predicts_as_well(self):
        new, observed = datasets.make_ripley(2000, random_state=99)
        losses = []
        for seed in range(8):
            X, t = datasets.make_ripley(250, random_state=seed)
            models = RVC(gamma=4.0).fit(X, t), RVC(gamma=4.0, evidence="laplace").fit(X, t)
            assert [model.status_ for model in models] == [Status.INDICATORS, Status.CONVERGED]
            losses.append([log_loss(observed, model.predict_proba(new)) for model in models])
        ours, papers = np.mean(losses, axis=0)
        assert ours < papers + 0.005

    def test_a_checkpoint_is_kept_of_a_search_by_laplace(self, tmp_path):
        X, t = rings(0, n=60)
        model = RVC(gamma=1.0, checkpoint=str(tmp_path / "search.json")).fit(X, t)
        assert model.status_ is Status.CONVERGED

    def test_a_regression_is_not_kept(self, tmp_path):
        X, t = rings(0, n=60)
        with pytest.raises(ValueError, match=r"checkpoint.*evidence='laplace'"):
            RVC(gamma=1.0, evidence="indicators", checkpoint=str(tmp_path / "search.json")).fit(X, t)

    def test_copies_of_columns_count_once(self):
        X, t = rings(0, n=60)
        many = SparseBayesClassifier().fit(np.tile(X, 4), t)
        assert many.status_ is Status.CONVERGED
        assert_allclose(
            many.predict_proba(np.tile(X, 4)), SparseBayesClassifier().fit(X, t).predict_proba(X), atol=1e-6
        )


@pytest.mark.parametrize(("n", "most"), [(90, 10), (240, 15)])
def test_one_function_for_sixteen_rows_at_most(n, most):
    X, t = rings(0, n)
    assert len(RVC(gamma=0.3, evidence="indicators", fit_intercept=False).fit(X, t).relevance_) == most


def test_pure_noise_keeps_next_to_nothing():
    rng = np.random.default_rng(0)
    kept = [
        len(RVC(evidence="indicators").fit(rng.normal(size=(100, 4)), rng.integers(2, size=100)).relevance_)
        for _ in range(10)
    ]
    assert np.median(kept) <= 5


def test_a_search_that_is_complete_is_no_other_for_its_last_move():
    X, t = rings(0)
    plain = RVC(gamma=0.3, evidence="indicators").fit(X, t)
    exact = RVC(gamma=0.3, evidence="indicators", max_iter=plain.n_iter_).fit(X, t)
    assert exact.status_ is Status.INDICATORS
    assert_allclose(exact.predict_proba(X), plain.predict_proba(X))


@pytest.mark.filterwarnings("ignore:Interrupted")
def test_a_callback_that_stops_changes_no_probability():
    X, t = rings(0)
    plain = RVC(gamma=0.3, evidence="indicators").fit(X, t)
    stopped = RVC(gamma=0.3, evidence="indicators", solver=Sequential(callback=lambda record, model: True)).fit(X, t)
    assert stopped.status_ is Status.INTERRUPTED
    assert_allclose(stopped.predict_proba(X), plain.predict_proba(X))


def test_moves_can_run_out():
    X, t = rings(0)
    with pytest.warns(ConvergenceWarning, match="raise max_iter"):
        model = RVC(gamma=0.3, evidence="indicators", max_iter=3).fit(X, t)
    assert model.status_ is Status.MAX_ITER
    assert model.n_iter_ >= 3


def test_conservative_support_keeps_nothing_of_pure_noise():
    rng = np.random.default_rng(0)
    for _ in range(5):
        X, t = rng.normal(size=(80, 6)), rng.integers(2, size=80)
        assert len(RVC(support="conservative", evidence="indicators").fit(X, t).relevance_) == 0
