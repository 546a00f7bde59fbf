"""Error bars, robust likelihoods, counts, and what is said of the support."""

import pickle

import numpy as np
import pytest
from scipy.special import expit, gammaln, log_expit, log_softmax, softmax
from scipy.stats import multivariate_normal, norm
from scipy.stats import t as student
from sklearn.base import clone
from sklearn.datasets import load_iris, load_wine
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import roc_auc_score
from sklearn.preprocessing import StandardScaler

from sparsebayes import RVC, RVR, SparseBayesClassifier, SparseBayesRegressor, datasets, load, save
from sparsebayes.basis import Heaviside, LinearSpline
from sparsebayes.design import DenseDesign
from sparsebayes.estimators.summary import verdict
from sparsebayes.inference import EM, MacKay, Status, Variational
from sparsebayes.inference.fit.robust import near_trimmed_fit
from sparsebayes.inference.models.problem import GaussianProblem
from sparsebayes.inference.objective import SupportRule
from sparsebayes.posterior import conformal_quantile

X, Y = datasets.make_sinc(100, noise=0.1, random_state=0)
FAR = np.array([[200.0], [-300.0]])


@pytest.fixture(scope="module")
def model():
    return RVR(gamma=1 / 16).fit(X, Y)


# -- noise ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(3))
def test_weights_do_not_let_the_noise_collapse_under_the_conservative_rule(seed):
    """A function that follows the noise of one row passes its test where that row counts four times."""
    rows, targets = datasets.make_friedman1(80, random_state=seed)
    weights = np.random.default_rng(seed).integers(1, 5, 80)
    model = RVR(gamma=0.3, support="conservative").fit(rows, targets, sample_weight=weights)
    assert model.noise_variance_ > 0.5
    assert len(model.relevance_) < 20
    assert model.certificate_.converged


@pytest.mark.parametrize("seed", range(3))
def test_a_solver_with_an_aim_of_its_own_says_that_the_noise_has_collapsed(seed):
    rng = np.random.default_rng(seed)
    rows = rng.normal(size=(40, 60))
    targets = rows @ (0.3 * rng.normal(size=60)) + rng.normal(size=40)
    model = SparseBayesRegressor(solver="backfitting").fit(rows, targets)
    assert model.noise_variance_ < 1e-6
    assert model.status_ in (Status.NOISE_FLOOR, Status.NOISE_UNDETERMINED)


@pytest.mark.parametrize("solver", ["single-effects", "backfitting"])
@pytest.mark.parametrize("seed", range(3))
def test_a_held_noise_certifies_nothing_for_a_solver_with_an_aim_of_its_own(solver, seed):
    rng = np.random.default_rng(seed)
    model = SparseBayesRegressor(solver=solver).fit(rng.normal(size=(60, 200)), rng.normal(size=60))
    if model.status_ is Status.NOISE_HELD:
        assert model.certificate_.converged
    assert model.status_ is not Status.CONVERGED


@pytest.mark.parametrize("k", [3, 8])
@pytest.mark.parametrize("seed", range(5))
def test_noise_is_held_where_the_evidence_would_let_it_collapse(k, seed):
    X, y, _ = datasets.make_spikes(50, 100, k, noise=0.1 / np.sqrt(50), random_state=seed)
    model = SparseBayesRegressor(fit_intercept=False).fit(X, y)
    assert 0.5 <= model.noise_variance_ / (0.01 / 50) <= 2.0
    assert model.status_ is Status.NOISE_HELD
    assert model.certificate_.noise_degenerate


@pytest.mark.parametrize("seed", [0, 3, 4])
def test_noise_is_not_held_high_where_many_functions_predict_better(seed):
    X, y = datasets.make_friedman1(240, noise=1.0, random_state=seed)
    model = RVR(gamma="scale").fit(X, y)
    assert model.status_ is Status.CONVERGED
    assert 0.5 <= model.noise_variance_ <= 2.0


@pytest.mark.parametrize("seed", [0, 4, 5])
def test_many_functions_that_err_less_on_rows_left_out_are_believed(seed):
    """By their densities alone ten functions were kept, with the noise at seven times its variance."""
    X, y = datasets.make_friedman1(150, noise=1.0, random_state=seed)
    new, observed = datasets.make_friedman1(2000, noise=1.0, random_state=99)
    model = RVR(gamma=0.5).fit(X, y)
    assert len(model.relevance_) > 30
    assert np.sqrt(np.mean((model.predict(new) - observed) ** 2)) < 2.5  # 2.7 to 3


@pytest.mark.parametrize("seed", [6, 8])
def test_narrow_functions_on_noise_alone_leave_it_noise(seed):
    rng = np.random.default_rng(seed)
    X, y = rng.standard_normal((60, 3)), rng.standard_normal(60)
    model = RVR(gamma=5.0).fit(X, y)
    assert model.noise_variance_ > 0.3 * np.var(y)


def test_a_collapsing_search_is_ended_on_the_way():
    X, y, _ = datasets.make_spikes(200, 600, 20, noise=0.005, random_state=0)
    model = SparseBayesRegressor(fit_intercept=False).fit(X, y)
    first = [record.n_active for record in model.history_ if record.start == 0]
    assert model.status_ is Status.NOISE_HELD
    assert model.certificate_.converged
    assert max(first) < 0.75 * len(y)  # left to itself it ends with nearly as many functions as there are rows
    assert len({record.noise_variance for record in model.history_ if record.start > 0}) == 1


def test_a_fixed_noise_is_honoured_exactly():
    X, y, _ = datasets.make_spikes(50, 100, 3, noise=0.01, random_state=0)
    model = SparseBayesRegressor(fit_intercept=False, noise_variance=0.37e-3).fit(X, y)
    assert model.noise_variance_ == pytest.approx(0.37e-3, rel=1e-12)


def plane(seed):
    """A plane in three inputs with little noise, and rows to predict."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(60, 3))
    y = X[:, 0] - 2.0 * X[:, 1] + 0.1 * rng.normal(size=60)
    new = rng.normal(size=(500, 3))
    return X, y, new, new[:, 0] - 2.0 * new[:, 1]


def test_a_plane_with_little_noise_is_no_collapse():
    models = [RVR().fit(*plane(seed)[:2]) for seed in range(8)]
    assert (
        sum(model.status_ is Status.NOISE_HELD for model in models) <= 2
    )  # once five of them, with nine times the noise
    levels = np.array([model.noise_variance_ for model in models]) / 0.01
    assert 0.5 < np.median(levels) < 3.0
    assert np.all((levels > 0.2) & (levels < 6.0))


@pytest.mark.parametrize("seed", range(3))
def test_the_noise_of_inputs_in_units_of_their_spread_is_not_held_high(seed):
    inputs, y = datasets.make_friedman1(240, noise=1.0, random_state=seed)
    model = RVR().fit((inputs - inputs.mean(axis=0)) / inputs.std(axis=0), y)
    assert model.status_ is Status.CONVERGED
    assert 0.2 < model.noise_variance_ < 2.0  # once six to eight times the truth


def test_rows_left_out_may_speak_for_a_noise_that_is_low():
    """The suspect errs hardly less than the conservative model; what its error bars say of left-out rows saves it."""
    rng = np.random.default_rng(1)
    inputs = rng.normal(size=(40, 2))
    clean = inputs[:, 0] - 2.0 * inputs[:, 1] + np.sin(2.0 * inputs[:, 0] * inputs[:, 1])
    model = RVR().fit(inputs, clean + 0.05 * rng.normal(size=40))
    assert model.status_ is Status.CONVERGED
    assert 0.2 < model.noise_variance_ / 0.05**2 < 3.0  # nearly eight times the truth where it is held


@pytest.mark.parametrize("seed", range(8))
def test_a_noise_does_not_collapse_because_every_row_counts_four_times(seed):
    X, y, new, truth = plane(seed)
    once, weighted = RVR().fit(X, y), RVR().fit(X, y, sample_weight=np.full(60, 4.0))
    errors = [np.sqrt(np.mean((model.predict(new) - truth) ** 2)) for model in (once, weighted)]
    assert errors[1] < 1.25 * errors[0]  # 1.6 times, and 2.1 times, where the guard counted weights for rows
    assert weighted.noise_variance_ > 1e-3
    copies = RVR().fit(np.repeat(X, 4, axis=0), np.repeat(y, 4))
    assert copies.status_ is weighted.status_
    assert copies.noise_variance_ == pytest.approx(weighted.noise_variance_, rel=1e-6)


def test_rows_that_differ_are_counted_once():
    rng = np.random.default_rng(0)
    values, target = rng.normal(size=(40, 30)), rng.integers(0, 3, 40).astype(float)[:, None]

    def share(rows, weights):
        problem = GaussianProblem(DenseDesign(values[rows]), target[rows], weights, np.ones(30, dtype=bool))
        return problem.share(10.0)

    every = np.arange(40)
    assert share(every, np.ones(40)) == pytest.approx(10 / 40)
    assert share(np.repeat(every, 3), np.ones(120)) == pytest.approx(10 / 40)
    assert share(every, np.full(40, 3.0)) == pytest.approx(10 / 40)
    assert share(every, np.full(40, 0.5)) == pytest.approx(10 / 20)
    assert share(every, np.where(every < 30, 2.0, 0.0)) == pytest.approx(10 / 30)
    # Rows with the same target are different rows wherever any function tells them apart.
    unit = GaussianProblem(DenseDesign(np.eye(40)), np.ones((40, 1)), np.ones(40), np.ones(40, dtype=bool))
    assert unit.share(10.0) == pytest.approx(10 / 40)


def test_the_certificate_says_what_a_noise_that_is_held_costs():
    X, y, _ = datasets.make_spikes(50, 100, 3, noise=0.1 / np.sqrt(50), random_state=0)
    model = SparseBayesRegressor(fit_intercept=False).fit(X, y)
    found = model.certificate_
    assert model.status_ is Status.NOISE_HELD
    assert found.noise_held

    def evidence(noise):
        phi = X[:, model.relevance_]
        return multivariate_normal(cov=noise * np.eye(50) + (phi / model.alpha_) @ phi.T).logpdf(y - model.intercept_)

    levels = model.noise_variance_ * np.exp(np.linspace(-12.0, 4.0, 4001))
    assert evidence(model.noise_variance_) == pytest.approx(found.log_evidence, abs=1e-6)
    gain = max(evidence(level) for level in levels) - found.log_evidence
    assert gain > 1.0
    assert found.noise_gain == pytest.approx(gain, rel=1e-3)
    step = 1e-5
    slope = evidence(model.noise_variance_ * np.exp(step)) - evidence(model.noise_variance_ * np.exp(-step))
    assert found.noise_gradient == pytest.approx(abs(slope) / (2 * step), rel=1e-4)
    assert found.converged  # of moves other than the noise
    assert f"releasing it would, by {gain:.3g} nats" in verdict([found])


def test_a_given_noise_is_no_noise_that_is_held():
    X, y, _ = datasets.make_spikes(50, 100, 3, noise=0.01, random_state=0)
    given = SparseBayesRegressor(fit_intercept=False, noise_variance=3e-5)
    # Of chunks there are no rows to leave out, and the conservative rule's objective would judge.
    for model in (clone(given).fit(X, y), clone(given).partial_fit(X, y)):
        assert model.status_ is Status.CONVERGED
        assert not model.certificate_.noise_held
        assert model.certificate_.noise_gain == 0.0


def test_a_degenerate_noise_is_never_silent():
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((20, 60)), rng.standard_normal(20)
    model = SparseBayesRegressor().fit(X, y)
    assert model.certificate_.noise_degenerate
    assert model.status_ is Status.NOISE_HELD


# -- support -------------------------------------------------------------------------------------------------


def test_the_conservative_rule_finds_spikes_and_little_else():
    X, y, w = datasets.make_spikes(256, 1024, 40, noise=0.005, random_state=0)
    model = SparseBayesRegressor(fit_intercept=False, support="conservative").fit(X, y)
    true, kept = set(np.flatnonzero(w)), set(model.relevance_)
    assert true <= kept
    assert len(kept - true) <= 2
    assert np.sqrt(model.noise_variance_) == pytest.approx(0.005, rel=0.2)
    assert model.certificate_.converged


def test_the_conservative_rule_finds_the_jumps_of_noisy_blocks():
    X, y = datasets.make_blocks(1024, noise=1.0, sd=7.0, random_state=0)
    model = SparseBayesRegressor(Heaviside(), fit_intercept=False, support="conservative").fit(X, y)
    places = X[model.relevance_, 0]
    assert all(np.min(np.abs(places - jump)) <= 1 / 1024 for jump in datasets.blocks_jumps())
    assert len(places) <= 14


def test_the_conservative_rule_holds_for_every_function_kept_and_left_out():
    X, y, _ = datasets.make_spikes(60, 90, 5, noise=0.02, random_state=3)
    model = SparseBayesRegressor(fit_intercept=False, support="conservative").fit(X, y)
    report = model.support_report()
    assert np.all(report.signal_to_noise > report.threshold)
    assert model.certificate_.excluded_theta + 1.0 <= report.threshold * (1.0 + 1e-6)
    assert model.certificate_.objective < model.certificate_.log_evidence


@pytest.mark.parametrize("classes", [False, True])
@pytest.mark.parametrize("kind", [MacKay, EM, Variational])
def test_the_conservative_rule_holds_beside_priors_of_the_precisions(kind, classes):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((100, 30))
    y = X[:, 0] + 0.2 * X[:, 1] + rng.standard_normal(100)
    settings = {"support": "conservative", "solver": kind(a=1e-6, b=1e-6, c=1e-6, d=1e-6)}
    model = SparseBayesClassifier(**settings) if classes else SparseBayesRegressor(**settings)
    model.fit(X, y > 0.0 if classes else y)
    report = model.support_report()
    assert 0 in model.relevance_
    assert np.all(report.signal_to_noise > report.threshold)
    assert model.certificate_.converged
    falls = np.diff([record.objective for record in model.history_ if record.start == model.certificate_.start])
    assert np.min(falls, initial=0.0) > -1e-9 * abs(model.certificate_.objective)
    assert model.history_[-1].objective == pytest.approx(model.certificate_.objective, rel=1e-6)


@pytest.mark.parametrize("m", [2, 10, 1000, 10**6])
@pytest.mark.parametrize("targets", [1, 3])
def test_the_expected_number_of_false_functions_is_bounded(m, targets):
    rule = SupportRule.named("conservative", m, targets)
    assert rule.expected_false <= 1.0 / np.sqrt(np.pi * np.log(m))
    assert rule.cost == pytest.approx(0.5 * targets * (rule.threshold - 1.0 - np.log(rule.threshold)))


@pytest.mark.parametrize("targets", [1, 2, 5])
def test_irrelevant_functions_exceed_the_threshold_as_often_as_it_says(targets):
    rule = SupportRule.named("conservative", 20, targets)
    ratio = np.mean(np.random.default_rng(0).standard_normal((400_000, targets)) ** 2, axis=1)
    assert 20 * np.mean(ratio > rule.threshold) == pytest.approx(rule.expected_false, rel=0.05)
    assert rule.expected_false == pytest.approx(SupportRule.named("conservative", 20).expected_false)


def test_the_support_report_is_a_table(model):
    report = model.support_report()
    frame = report.to_frame()
    assert len(report) == len(frame) == len(model.alpha_)
    assert "evidence lost" in str(report)
    worst = int(np.argmin(report.evidence_lost))
    values = model._values(X)[:, np.arange(len(report)) != worst]
    noise, alpha = model.noise_variance_, np.delete(model.alpha_, worst)
    t = Y - model._posteriors[0].offset
    C = noise * np.eye(len(t)) + (values / alpha) @ values.T
    without = -0.5 * (len(t) * np.log(2 * np.pi) + np.linalg.slogdet(C)[1] + t @ np.linalg.solve(C, t))
    assert report.evidence_lost[worst] == pytest.approx(model.log_marginal_likelihood_ - without, rel=1e-6)


def test_evidence_lost_by_targets_that_share_a_support_is_that_of_all_of_them():
    """The function is removed from every target, by the densities of the targets without it."""
    both = np.column_stack([Y, np.cos(X[:, 0]) + 0.3 * np.random.default_rng(1).standard_normal(len(Y))])
    model = RVR(gamma=1 / 16, shared_support=True).fit(X, both)
    found = model._supports[0]

    def evidence(stays):
        total = 0.0
        for k, posterior in enumerate(model._posteriors):
            values, alpha = model._values(X)[:, posterior.functions][:, stays], model.alpha_[k][stays]
            C = posterior.noise_variance * np.eye(len(Y)) + (values / alpha) @ values.T
            total += multivariate_normal.logpdf(both[:, k] - posterior.offset, cov=C)
        return total

    everyone = np.arange(len(found.evidence_lost))
    assert evidence(everyone >= 0) == pytest.approx(model.log_marginal_likelihood_, rel=1e-9)
    for j in everyone:
        assert found.evidence_lost[j] == pytest.approx(evidence(everyone >= 0) - evidence(everyone != j), rel=1e-6)
    # What is fit is the fall of the exponents alone: the rest is the price of a weight for each target.
    squares = [posterior.mean**2 / np.diagonal(posterior.covariance) for posterior in model._posteriors]
    np.testing.assert_allclose(found.fit_lost, 0.5 * np.sum(squares, axis=0), rtol=1e-6)


def test_the_support_report_of_one_class_against_the_rest_is_of_that_class():
    data = datasets.load("iris")
    few, labels = data.data[::3], data.target[::3]
    weight = np.where(labels == 0, 3.0, 1.0)
    report = SparseBayesClassifier(multi_class="ovr").fit(few, labels, weight).support_report()
    for k in range(3):
        alone = SparseBayesClassifier().fit(few, labels == k, weight).support_report()
        mine = [j for j, output in enumerate(report.output) if output == k]
        assert [report.function[j] for j in mine] == list(alone.function)
        np.testing.assert_allclose(report.weight[mine], alone.weight, rtol=1e-6)


@pytest.mark.parametrize("multi_class", ["softmax", "ovr"])
def test_the_support_report_names_classes(multi_class):
    data = datasets.load("iris")
    few, labels = data.data[::3], data.target[::3]
    report = SparseBayesClassifier(multi_class=multi_class).fit(few, labels).support_report()
    assert set(report.output) <= set(labels)
    assert np.all((report.sign_probability >= 0.5) & (report.sign_probability <= 1.0))


# -- error bars ----------------------------------------------------------------------------------------------


def test_augmented_bars_grow_away_from_the_data(model):
    far = model.predict(FAR, return_std=True, uncertainty="augmented")[1]
    at_data = model.predict(X, return_std=True, uncertainty="augmented")[1]
    assert np.all(far**2 >= (model.noise_variance_ + np.var(Y)) * (1.0 - 1e-12))
    assert np.min(far) >= np.max(at_data)
    assert np.all(at_data >= model.predict(X, return_std=True, uncertainty="posterior")[1])


def test_augmented_bars_are_those_of_the_enlarged_model(model):
    place = np.array([[1.3]])
    posterior = model._posteriors[0]
    Phi = np.hstack([model._values(X)[:, posterior.functions], np.exp(-((X - place) ** 2) / 16)])
    alpha = np.append(model.alpha_, 1.0 / np.var(Y))
    covariance = np.linalg.inv(Phi.T @ Phi / model.noise_variance_ + np.diag(alpha))
    row = np.append(model._values(place)[0, posterior.functions], 1.0)
    expected = np.sqrt(model.noise_variance_ + row @ covariance @ row)
    assert model.predict(place, True, "augmented")[1] == pytest.approx(expected, rel=1e-6)
    low, high = model.predict_interval(place, coverage=0.9, uncertainty="augmented")
    assert high - low == pytest.approx(2.0 * norm.ppf(0.95) * expected, rel=1e-6)


def test_augmented_bars_of_a_robust_model_weigh_rows_as_it_does():
    place, y = np.array([[1.3]]), Y.copy()
    y[np.abs(X[:, 0] - 1.3) < 1.5] += 5.0  # next to it nothing is believed
    model = RVR(gamma=1 / 16, likelihood="outliers").fit(X, y)
    assert np.sum(model.outlier_probability_ > 0.9) > 5
    Phi = np.hstack([model._values(X)[:, model._posteriors[0].functions], np.exp(-((X - place) ** 2) / 16)])
    believed = (1.0 - model.outlier_probability_)[:, None]
    alpha = np.append(model.alpha_, 1.0 / np.var(y))
    covariance = np.linalg.inv(Phi.T @ (believed * Phi) / model.noise_variance_ + np.diag(alpha))
    row = np.append(model._values(place)[0, model._posteriors[0].functions], 1.0)
    expected = np.sqrt(model.noise_variance_ + row @ covariance @ row)
    assert model.predict(place, True, "augmented")[1] == pytest.approx(expected, rel=1e-2)


@pytest.mark.parametrize("likelihood", ["gaussian", "student-t", "poisson"])
def test_what_is_written_into_the_inputs_after_the_fit_changes_nothing(likelihood):
    inputs, y = X.copy(), np.round(10.0 * np.abs(Y)) if likelihood == "poisson" else Y.copy()
    model = RVR(gamma=1 / 16, likelihood=likelihood).fit(inputs, y)
    kinds = ["posterior"] if likelihood == "poisson" else ["posterior", "augmented", "conformal"]
    before = [model.predict(X, return_std=True, uncertainty=kind) for kind in kinds]
    inputs[...], y[...] = 1e3, 1e3
    for kind, (mean, std) in zip(kinds, before, strict=True):
        again = model.predict(X, return_std=True, uncertainty=kind)
        np.testing.assert_array_equal(again[0], mean)
        np.testing.assert_array_equal(again[1], std)


@pytest.mark.parametrize(
    ("est", "noise"), [(RVC(max_iter=1), False), (RVR(max_iter=1), True)], ids=["classes", "noise"]
)
def test_remedies_are_for_what_the_model_has(est, noise):
    y = (Y > 0.3).astype(int) if isinstance(est, RVC) else Y
    with pytest.warns(ConvergenceWarning, match="raise max_iter") as caught:
        est.fit(X, y)
    assert ("noise_variance" in str(caught[0].message)) == noise
    assert "noise_variance" not in Status.STALLED.value
    assert "noise_variance" in Status.STALLED.noise_remedy


def test_augmented_bars_need_a_localised_kernel():
    spline = SparseBayesRegressor(LinearSpline()).fit(X, Y)
    with pytest.raises(ValueError, match="localised"):
        spline.predict(X, return_std=True, uncertainty="augmented")


def test_the_mean_does_not_depend_on_the_kind_of_bars(model):
    for kind in ("augmented", "conformal"):
        np.testing.assert_array_equal(model.predict(X, True, kind)[0], model.predict(X))


def test_calibrated_intervals_cover_whatever_the_noise():
    rng = np.random.default_rng(0)
    inputs = rng.uniform(-10, 10, (3000, 1))
    y = np.sinc(inputs[:, 0] / np.pi) + 0.1 * rng.standard_t(2, 3000)
    model = RVR(gamma=1 / 16, noise_variance=1e-3).fit(inputs[:200], y[:200]).calibrate(inputs[200:1200], y[200:1200])
    low, high = model.predict_interval(inputs[1200:], 0.9, "conformal")
    assert np.mean((y[1200:] >= low) & (y[1200:] <= high)) == pytest.approx(0.9, abs=0.03)


def test_left_out_scores_are_those_of_refits_with_the_same_functions(model):
    posterior, noise = model._posteriors[0], model.noise_variance_
    values = model._values(X)[:, posterior.functions]
    for n in (0, 17, 99):
        rest = np.arange(len(X)) != n
        covariance = np.linalg.inv(values[rest].T @ values[rest] / noise + np.diag(model.alpha_))
        mean = covariance @ (values[rest].T @ (Y[rest] - posterior.offset)) / noise
        std = np.sqrt(noise + values[n] @ covariance @ values[n])
        expected = abs(Y[n] - posterior.offset - values[n] @ mean) / std
        assert model._scores[n, 0] == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize("likelihood", ["outliers", "student-t"])
def test_left_out_scores_of_a_robust_model_weigh_rows_as_it_does(likelihood):
    rng = np.random.default_rng(1)
    y = np.where(rng.random(100) < 0.1, 3.0 * rng.standard_normal(100), Y)
    model = RVR(gamma=1 / 16, likelihood=likelihood).fit(X, y)
    posterior, noise, degrees = model._posteriors[0], model.noise_variance_, np.inf
    values, residuals = model._values(X)[:, posterior.functions], y - model.predict(X)
    if likelihood == "outliers":
        weights = 1.0 - model.outlier_probability_
    else:
        degrees = model.degrees_of_freedom_
        spread = np.einsum("na,ab,nb->n", values, posterior.covariance, values)
        weights = (degrees + 1.0) / (degrees + (residuals**2 + spread) / noise)
    assert np.min(weights) < 0.1  # else nothing would be seen here
    for n in (0, int(np.argmin(weights)), 99):
        rest = np.arange(len(X)) != n
        weighted = weights[rest, None] * values[rest] / noise
        covariance = np.linalg.inv(weighted.T @ values[rest] + np.diag(model.alpha_))
        mean = covariance @ (weighted.T @ (y[rest] - posterior.offset))
        std = np.sqrt(student.ppf(norm.cdf(1.0), degrees) ** 2 * noise + values[n] @ covariance @ values[n])
        expected = abs(y[n] - posterior.offset - values[n] @ mean) / std
        assert model._scores[n, 0] == pytest.approx(expected, rel=1e-2)


def test_a_quantile_that_needs_more_rows_is_infinite():
    assert conformal_quantile(np.arange(9.0), np.ones(9), 0.95) == np.inf
    assert conformal_quantile(np.arange(19.0), np.ones(19), 0.95) == 18.0


@pytest.mark.parametrize("coverage", [0.5, 0.9, 0.999])
def test_intervals_by_fits_without_each_fold_are_those_of_the_paper(coverage):
    """Barber et al. 2021, eq. 11 with scaled residuals, by loops; a weight of two is two rows."""
    counts = np.where(np.arange(100) % 5, 1.0, 2.0)
    model = RVR(gamma=1 / 16).fit(X, Y, counts).calibrate(X, Y, counts, folds=4)
    low, high = model.predict_interval(FAR, coverage, "conformal")
    ends = []
    for k in range(4):
        kept, out = model._fold != k, model._fold == k
        part = RVR(gamma=1 / 16).fit(X[kept], Y[kept], counts[kept])
        mean, std = part.predict(X[out], True, "posterior")
        there, spread = part.predict(FAR, True, "posterior")
        for score, count in zip(np.abs(Y[out] - mean) / std, counts[out], strict=True):
            ends += [(there - score * spread, there + score * spread)] * int(count)
    n, ends = len(ends), np.sort(np.array(ends), axis=0)
    place = int(np.ceil((n + 1) * coverage - 1e-9))
    expected = (ends[n - place, 0], ends[place - 1, 1]) if place <= n else (np.full(len(FAR), -np.inf), np.inf)
    # Low and high ends are ordered apart from one another.
    np.testing.assert_allclose(low, expected[0], rtol=1e-9)
    np.testing.assert_allclose(high, expected[1], rtol=1e-9)
    std = model.predict(FAR, True, "conformal")[1]
    ends = model.predict_interval(FAR, 0.95, "conformal")
    np.testing.assert_allclose(std, (ends[1] - ends[0]) / (2.0 * 1.959964), rtol=1e-6)


def test_copies_of_a_row_are_left_out_together():
    rows = np.repeat(np.arange(100), 3)
    copied = RVR(gamma=1 / 16).fit(X[rows], Y[rows]).calibrate(X[rows], Y[rows], folds=5)
    weighted = RVR(gamma=1 / 16).fit(X, Y, np.full(100, 3.0)).calibrate(X, Y, np.full(100, 3.0), folds=5)
    for one, other in zip(*(m.predict_interval(FAR, 0.9, "conformal") for m in (copied, weighted)), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-5)


@pytest.mark.parametrize("folds", [1, 101, 2.5])
def test_parts_that_cannot_be_are_refused(folds):
    with pytest.raises(ValueError, match=r"folds=.*expected a number from 2"):
        RVR(gamma=1 / 16).fit(X, Y).calibrate(X, Y, folds=folds)


def test_error_bars_do_not_follow_what_is_written_into_x():
    """Columns of X that nothing was taken off are the dictionary itself."""
    rng = np.random.default_rng(0)
    given = rng.standard_normal((150, 12))
    y = given[:, 0] + given[:, 1] + 0.3 * rng.standard_normal(150)
    expected = SparseBayesRegressor(fit_intercept=False).fit(given.copy(), y).std_scale_
    model = SparseBayesRegressor(fit_intercept=False).fit(given, y)
    given[:] = 0.0
    assert model.std_scale_ == expected


def test_fits_without_each_fold_hold_what_they_guarantee():
    """Straight lines for what is none, with a thousandth of its noise: the posterior holds next to nothing."""
    rng = np.random.default_rng(3)
    held, plain = [], []
    for _ in range(40):
        x = rng.uniform(-1.0, 1.0, (140, 5))
        y = np.sin(4.0 * x[:, 0]) * x[:, 1] + x[:, 2] + 0.3 * rng.standard_t(3.0, 140)
        model = SparseBayesRegressor(noise_variance=1e-4).fit(x[:40], y[:40]).calibrate(x[:40], y[:40], folds=8)
        for kind, found in (("conformal", held), ("posterior", plain)):
            low, high = model.predict_interval(x[40:], 0.8, kind)
            found.append(np.mean((low <= y[40:]) & (y[40:] <= high)))
    assert np.mean(plain) < 0.2
    # Guaranteed are 2 * .8 - 1, less .09 for 40 rows; as a rule it is .8.
    assert 0.78 <= np.mean(held) <= 0.9
    assert np.min(held) >= 2 * 0.8 - 1.0 - 0.09


def test_fits_without_each_fold_travel_with_the_model(tmp_path):
    both = np.column_stack([Y, Y**2])
    model = RVR(gamma=1 / 16).fit(X, both).calibrate(X, both, folds=3)
    ends = model.predict_interval(FAR, 0.9, "conformal")
    assert np.shape(ends) == (2, len(FAR), 2)
    save(model, tmp_path / "model.sb")
    for again in (load(tmp_path / "model.sb"), pickle.loads(pickle.dumps(model))):
        np.testing.assert_array_equal(again.predict_interval(FAR, 0.9, "conformal"), ends)
    assert not np.array_equal(model.calibrate(X, both).predict_interval(FAR, 0.9, "conformal"), ends)
    assert model.fit(X, both)._refits is None


def test_rows_of_a_precomputed_kernel_are_not_left_out():
    K = np.exp(-((X - X.T) ** 2) / 16.0)
    with pytest.raises(ValueError, match="folds: rows of a precomputed kernel"):
        RVR("precomputed").fit(K, Y).calibrate(K, Y, folds=5)


def test_draws_have_the_predicted_mean_and_spread(model):
    draws = model.sample_y(X[:5], 20_000, random_state=1)
    mean, std = model.predict(X[:5], return_std=True, uncertainty="posterior")
    np.testing.assert_allclose(draws.mean(axis=1), mean, atol=5e-3)
    np.testing.assert_allclose(draws.std(axis=1), std, rtol=0.03)


def test_error_bars_survive_saving(tmp_path, model):
    save(model, tmp_path / "model.sb")
    again = load(tmp_path / "model.sb")
    for kind in ("calibrated", "posterior", "augmented", "conformal"):
        np.testing.assert_array_equal(again.predict(FAR, True, kind)[1], model.predict(FAR, True, kind)[1])
    assert str(again.support_report()) == str(model.support_report())


# -- robust likelihoods and counts ---------------------------------------------------------------------------


@pytest.mark.parametrize("likelihood", ["outliers", "student-t"])
def test_outliers_are_found_and_do_little_harm(likelihood):
    rng = np.random.default_rng(1)
    bad = np.zeros(100, dtype=bool)
    bad[rng.choice(100, 20, replace=False)] = True
    spoilt = np.where(bad, rng.uniform(-5, 5, 100), Y)
    robust = RVR(gamma=1 / 16, likelihood=likelihood).fit(X, spoilt)
    plain = RVR(gamma=1 / 16).fit(X, spoilt)
    clean = np.sinc(X[:, 0] / np.pi)
    assert np.std(robust.predict(X) - clean) < 0.25 * np.std(plain.predict(X) - clean)
    assert roc_auc_score(bad, robust.outlier_probability_) >= 0.95


@pytest.mark.parametrize("likelihood", ["outliers", "student-t"])
def test_robust_fits_do_not_depend_on_units_or_row_order(likelihood):
    rng = np.random.default_rng(2)
    inputs = rng.standard_normal((40, 2))
    y = inputs @ [1.0, -2.0] + 0.1 * rng.standard_normal(40)
    y[:6] += 8.0
    one = SparseBayesRegressor(likelihood=likelihood).fit(inputs, y)
    order = rng.permutation(40)
    other = clone(one).fit(inputs[order], 1e3 * y[order] + 7.0)
    np.testing.assert_allclose(other.predict(inputs), 1e3 * one.predict(inputs) + 7.0, rtol=1e-4)
    np.testing.assert_allclose(other.outlier_probability_, one.outlier_probability_[order], atol=1e-3)


def test_a_trimmed_fit_ignores_outliers_at_the_ends():
    x = np.linspace(0.0, 1.0, 30)
    y = 2.0 * x
    x[:8], y[:8] = 5.0, -10.0
    near = near_trimmed_fit(np.column_stack([x, np.ones(30)]), y + 1e-3 * np.sin(50.0 * x), np.ones(30))
    np.testing.assert_array_equal(near[:8], False)
    assert near[8:].mean() > 0.8


def test_sure_outliers_leave_the_gaussian_fit_of_the_other_rows():
    spoilt, weights = Y.copy(), np.ones(len(Y))
    spoilt[::10] += np.where(np.arange(10) % 2 == 0, 50.0, -50.0)
    weights[::10] = 0.0
    plain = RVR(gamma=1 / 16).fit(X, Y, sample_weight=weights)
    robust = RVR(gamma=1 / 16, likelihood="outliers").fit(X, spoilt)
    np.testing.assert_allclose(robust.outlier_probability_[::10], 1.0)
    np.testing.assert_allclose(robust.predict(X), plain.predict(X), atol=0.2 * np.sqrt(plain.noise_variance_))
    assert robust.noise_variance_ == pytest.approx(plain.noise_variance_, rel=0.1)


@pytest.mark.parametrize("likelihood", ["outliers", "student-t"])
def test_a_robust_noise_is_held_where_the_evidence_would_let_it_collapse(likelihood):
    X, y, _ = datasets.make_spikes(50, 100, 3, noise=0.1 / np.sqrt(50), random_state=0)
    model = SparseBayesRegressor(fit_intercept=False, likelihood=likelihood).fit(X, y)
    assert 0.25 <= model.noise_variance_ / (0.01 / 50) <= 2.0
    assert model.status_ is Status.NOISE_HELD
    assert model.certificate_.noise_degenerate


def test_rows_of_weight_zero_have_no_outlier_probability():
    weights = np.ones(100)
    weights[:10] = 0.0
    model = RVR(gamma=1 / 16, likelihood="outliers").fit(X, Y, sample_weight=weights)
    assert np.all(np.isnan(model.outlier_probability_[:10]))
    assert np.all(model.outlier_probability_[10:] < 0.5)


def test_counts_have_the_rate_of_the_model():
    rng = np.random.default_rng(0)
    inputs = np.sort(rng.uniform(-3, 3, (300, 1)), axis=0)
    rate = np.exp(1.0 + np.sin(2.0 * inputs[:, 0]))
    model = RVR(gamma=1.0, likelihood="poisson").fit(inputs, rng.poisson(rate))
    mean, std = model.predict(inputs, return_std=True)
    assert np.sqrt(np.mean((mean / rate - 1.0) ** 2)) < 0.15
    assert np.all(std > np.sqrt(mean))
    low, high = model.predict_interval(inputs)
    fresh = rng.poisson(rate)
    assert np.mean((fresh >= low) & (fresh <= high)) >= 0.93
    np.testing.assert_allclose(model.sample_y(inputs[:3], 20_000).mean(axis=1), mean[:3], rtol=0.05)


@pytest.mark.parametrize("slope", [0.0, 1.0], ids=["of one rate", "of many"])
def test_a_weight_of_counts_is_as_many_copies(slope):
    rng = np.random.default_rng(2)
    inputs, weight = rng.uniform(-2, 2, (60, 1)), rng.integers(0, 6, 60)
    y, rows = rng.poisson(np.exp(1.0 + slope * inputs[:, 0])), np.repeat(np.arange(60), weight)
    est = SparseBayesRegressor(likelihood="poisson")
    weighted, copied = clone(est).fit(inputs, y, weight), clone(est).fit(inputs[rows], y[rows])
    assert len(weighted.relevance_) == slope
    assert weighted.log_marginal_likelihood_ == pytest.approx(copied.log_marginal_likelihood_, rel=1e-9)
    for found, expected in zip(weighted.predict(inputs, True), copied.predict(inputs, True), strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-6)


@pytest.mark.parametrize(
    ("settings", "y", "message"),
    [
        ({"likelihood": "poisson"}, Y, "no counts"),
        ({"likelihood": "poisson", "noise_variance": 1.0}, np.ones(100), "noise_variance"),
        ({"likelihood": "outliers"}, np.ones(100), "constant"),
        ({"likelihood": "student-t", "shared_support": True}, np.column_stack([Y, Y]), "shared_support"),
        ({"support": "all"}, Y, "support"),
    ],
)
def test_what_cannot_be_is_refused_in_words(settings, y, message):
    with pytest.raises(ValueError, match=message):
        RVR(**settings).fit(X, y)


# -- hard cases ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("support", ["evidence", "conservative"])
def test_one_informative_column_among_thousands(support):
    rng = np.random.default_rng(0)
    inputs = rng.standard_normal((60, 5000))
    model = SparseBayesRegressor(support=support).fit(inputs, 3.0 * inputs[:, 1234] + 0.1 * rng.standard_normal(60))
    assert 1234 in model.relevance_
    assert np.isfinite(model.noise_variance_)
    if support == "conservative":
        assert len(model.relevance_) <= 3


@pytest.mark.parametrize("likelihood", ["gaussian", "outliers", "student-t", "poisson"])
def test_hard_targets_give_finite_answers(likelihood):
    rng = np.random.default_rng(0)
    few = np.zeros(100)
    few[::10] = 1.0
    for y, weights in ((rng.integers(0, 2, 100), None), (rng.integers(0, 30, 100), None), (np.arange(100), few)):
        model = RVR(likelihood=likelihood, max_iter=500).fit(X, y, sample_weight=weights)
        assert np.all(np.isfinite(model.predict(X, return_std=True)))


def test_the_conservative_support_does_not_depend_on_units_or_order():
    rng = np.random.default_rng(5)
    inputs, y, _ = datasets.make_spikes(50, 100, 8, noise=0.1 / np.sqrt(50), random_state=5)
    one = SparseBayesRegressor(support="conservative").fit(inputs, y)
    rows, columns = rng.permutation(50), rng.permutation(100)
    scales = 10.0 ** rng.integers(-3, 4, 100)
    other = clone(one).fit((inputs * scales)[np.ix_(rows, columns)], 1e-4 * y[rows])
    assert set(columns[other.relevance_]) == set(one.relevance_)
    np.testing.assert_allclose(
        other.predict((inputs * scales)[:, columns]), 1e-4 * one.predict(inputs), rtol=1e-5, atol=1e-8
    )


def plain_laplace(Phi, alpha, fit, gradient, curvature):
    """Log evidence of a model by plain damped Newton steps from zero weights; columns by row and output."""
    w = np.zeros(len(alpha))

    def height(w):
        return fit(Phi @ w) - 0.5 * alpha @ w**2

    for _ in range(300):
        uphill = np.einsum("nka,nk->a", Phi, gradient(Phi @ w)) - alpha * w
        precision = np.einsum("nka,nkb->ab", Phi, curvature(Phi @ w) @ Phi, optimize=True) + np.diag(alpha)
        step = np.linalg.solve(precision, uphill)
        if np.sqrt(uphill @ step) < 1e-9:
            break
        w = w + next((p * step for p in 0.5 ** np.arange(60) if height(w + p * step) >= height(w)), 0.0 * step)
    return height(w) + 0.5 * np.sum(np.log(alpha)) - 0.5 * np.linalg.slogdet(precision)[1], height(w)


def plain_softmax(t):
    """Log likelihood, gradient and curvature of one-hot classes."""

    def curvature(y):
        p = softmax(y, axis=1)
        return np.einsum("nk,kl->nkl", p, np.eye(p.shape[1])) - p[:, :, None] * p[:, None, :]

    return lambda y: np.sum(t * log_softmax(y, axis=1)), lambda y: t - softmax(y, axis=1), curvature


def check_losses(model, Phi, alpha, *likelihood, certified=True):
    """Every loss that is reported is that of a model without the function, computed anew."""
    whole, height = plain_laplace(Phi, alpha, *likelihood)
    assert whole == pytest.approx(model.log_marginal_likelihood_, rel=1e-6)
    report, terms = model.support_report(), model.terms()
    assert sorted(term.evidence for term in terms) == sorted(report.evidence_lost)
    for j in range(len(alpha)):
        stays = np.arange(len(alpha)) != j
        without, low = plain_laplace(Phi[:, :, stays], alpha[stays], *likelihood)
        assert report.evidence_lost[j] == pytest.approx(whole - without, rel=1e-4, abs=1e-5)
        term = next(term for term in terms if term.evidence == report.evidence_lost[j])
        assert term.fit == pytest.approx(height - low, rel=1e-4, abs=1e-5)
    if certified:
        assert model.certificate_.converged
        assert np.min(report.evidence_lost) >= 0.0


def test_evidence_lost_of_classes_is_that_of_the_model_without():
    data = load_wine()
    wine, labels = StandardScaler().fit_transform(data.data), data.target
    model = SparseBayesClassifier(shared_support=False).fit(wine, labels)
    posterior = model._posteriors[0]
    Phi = np.zeros((len(wine), 3, len(posterior.mean)))
    for j, (m, k) in enumerate(zip(posterior.functions, posterior.outputs, strict=True)):
        Phi[:, k, j] = model._values(wine)[:, m]
    check_losses(model, Phi, model.alpha_[np.isfinite(model.alpha_)], *plain_softmax(np.eye(3)[labels]))
    # By the problem that is Gaussian at the mode (T&F eq. 18) less would be lost, by nats.
    alpha, variance = model.alpha_[np.isfinite(model.alpha_)], np.diagonal(posterior.covariance)
    linear = 0.5 * (posterior.mean**2 / variance + np.log(alpha * variance))
    assert np.max(model.support_report().evidence_lost - linear) > 5.0


@pytest.mark.parametrize("evidence", ["indicators", "laplace"])
def test_evidence_lost_of_two_classes_is_that_of_the_model_without(evidence):
    data = load_iris()
    few, t = data.data[::2], (data.target[::2] == 1).astype(float)
    model = RVC(gamma=0.3, evidence=evidence).fit(few, t)
    Phi = model._values(few)[:, None, model._posteriors[0].functions]
    check_losses(
        model,
        Phi,
        model.alpha_[0],
        lambda y: np.sum(log_expit(np.where(t > 0.5, y[:, 0], -y[:, 0]))),
        lambda y: t[:, None] - expit(y),
        lambda y: (expit(y) * expit(-y))[:, :, None],
        certified=evidence == "laplace",
    )


@pytest.mark.parametrize("seed", range(4))
def test_evidence_lost_of_counts_is_that_of_the_model_without(seed):
    rng = np.random.default_rng(seed)
    inputs = rng.uniform(-3, 3, (70, 2))
    t = rng.poisson(np.exp(np.sin(inputs[:, 0]) + 0.5 * inputs[:, 1] - 1)).astype(float)
    model = RVR(gamma=0.5, likelihood="poisson").fit(inputs, t)
    o = model._posteriors[0].offset
    check_losses(
        model,
        model._values(inputs)[:, None],
        model.alpha_,
        lambda y: np.sum(t * (y[:, 0] + o) - np.exp(np.minimum(y[:, 0] + o, 300)) - gammaln(t + 1)),
        lambda y: t[:, None] - np.exp(y + o),
        lambda y: np.exp(y + o)[:, :, None],
    )


def test_evidence_lost_under_a_bound_is_of_the_bound_at_its_best():
    """Of the variational solver, whose bound is the log evidence that it reports."""
    data = load_iris()
    few, labels = data.data[50::2, :2], data.target[50::2]
    model = RVC(gamma=0.3, solver="variational").fit(few, labels)
    posterior, signs = model._posteriors[0], np.where(labels == 2, 0.5, -0.5)
    Phi, alpha = model._values(few)[:, posterior.functions], model.alpha_[0]

    def bound(Phi, alpha):
        xi = np.ones(len(Phi))
        for _ in range(3000):
            slope = np.tanh(xi / 2) / (4 * xi)
            covariance = np.linalg.inv(2 * (Phi.T * slope) @ Phi + np.diag(alpha))
            mean = covariance @ (Phi.T @ signs)
            xi = np.sqrt(np.einsum("na,ab,nb->n", Phi, covariance + np.outer(mean, mean), Phi))
        rows = log_expit(xi) - xi / 2 + slope * xi**2
        inner = 0.5 * mean @ np.linalg.solve(covariance, mean)
        return np.sum(rows) + inner + 0.5 * np.linalg.slogdet(covariance)[1] + 0.5 * np.sum(np.log(alpha))

    lost = model.support_report().evidence_lost
    for j in range(len(alpha)):
        stays = np.arange(len(alpha)) != j
        assert lost[j] == pytest.approx(bound(Phi, alpha) - bound(Phi[:, stays], alpha[stays]), abs=1e-4)
