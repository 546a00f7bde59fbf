"""Several classes that share functions, against dense algebra."""

import pickle
from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.linalg import helmert
from scipy.special import log_softmax, softmax
from sklearn.datasets import load_digits, load_wine
from sklearn.metrics import log_loss

from sparsebayes import RVC, SparseBayesClassifier, datasets
from sparsebayes.design import DenseDesign
from sparsebayes.inference import Settings, Status
from sparsebayes.inference.fit.classes import certify_classes, run_classes
from sparsebayes.inference.models.classes import ClassModel, ClassRows
from sparsebayes.inference.models.gaussian import Gram
from sparsebayes.inference.models.mode import LaplaceProblem
from sparsebayes.inference.models.problem import GaussianProblem
from sparsebayes.inference.search.climb import climb
from sparsebayes.inference.search.starts import Schedule
from sparsebayes.likelihood import Categorical
from sparsebayes.testing import check_posterior


def problem_of(seed, n=60, classes=4, weighted=False):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 2))
    Phi = np.c_[np.exp(-0.7 * ((X[:, None] - X[None]) ** 2).sum(2)), np.ones(n)] * rng.uniform(0.1, 10.0, n + 1)
    labels = np.digitize(X[:, 0] + 0.5 * rng.normal(size=n), [-0.7, 0.0, 0.7][: classes - 1])
    weights = rng.integers(1, 4, n).astype(float) if weighted else np.ones(n)
    return LaplaceProblem(DenseDesign(Phi), Categorical(np.eye(classes)[labels], weights), np.ones(n + 1, bool), n)


def _regression(problem):
    """The regression on K - 1 contrasts of the K classes."""
    targets, counts = problem.likelihood.targets, problem.likelihood.weights
    centred = targets - np.average(targets, axis=0, weights=counts)
    return GaussianProblem(
        problem.design, centred @ helmert(targets.shape[1]).T, counts, problem.candidates, problem.bias
    )


def model_of(problem, functions=(3, 11, 20, 60), alpha=(0.3, 1.0, 2.0, 0.1)):
    model = ClassModel.of(ClassRows(problem), np.array(functions, dtype=int), np.array(alpha))
    return model.at(model.alpha, 1e-14)


def exact_laplace(model):
    """Laplace's evidence of all K P weights, by one dense matrix."""
    rows, P, K = model.rows, model.size, model.rows.n_classes
    W = model.weights
    p = softmax(model.values @ W, axis=1)
    H = np.zeros((K * P, K * P))
    for n in range(len(p)):
        curvature = rows.counts[n] * (np.diag(p[n]) - np.outer(p[n], p[n]))
        H += np.kron(curvature, np.outer(model.values[n], model.values[n]))
    H += np.diag(np.tile(model.alpha, K))
    fit = rows.counts @ np.sum(rows.targets * log_softmax(model.values @ W, axis=1), axis=1)
    prior = 0.5 * K * np.sum(np.log(model.alpha)) - 0.5 * model.alpha @ np.sum(W**2, axis=1)
    return fit + prior - 0.5 * np.linalg.slogdet(H)[1]


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("weighted", [False, True])
def test_the_evidence_is_below_that_of_laplace_by_little(seed, weighted):
    model = model_of(problem_of(seed, weighted=weighted))
    exact = exact_laplace(model)
    assert exact - 0.05 * abs(exact) < model.evidence <= exact


def test_with_two_classes_it_is_that_of_laplace():
    model = model_of(problem_of(0, classes=2))
    assert_allclose(model.evidence, exact_laplace(model), rtol=1e-10)


def test_where_all_classes_are_equally_likely_it_is_that_of_laplace():
    model = model_of(problem_of(1), alpha=(1e9, 1e9, 1e9, 1e9))
    assert_allclose(model.evidence, exact_laplace(model), rtol=1e-9)


@pytest.mark.parametrize("seed", range(4))
def test_the_mode_has_no_slope(seed):
    model = model_of(problem_of(seed, weighted=True))
    p = softmax(model.values @ model.weights, axis=1)
    slope = (
        model.values.T @ (model.rows.counts[:, None] * (model.rows.targets - p)) - model.alpha[:, None] * model.weights
    )
    assert np.max(np.abs(slope)) < 1e-5
    assert_allclose(model.weights.sum(axis=1), 0.0, atol=1e-6)


@pytest.mark.parametrize("seed", range(4))
def test_newton_s_step_is_that_of_dense_algebra_in_few_products(seed):
    """With the precision of every class against the others beside it, of these precisions or of nearby ones."""
    model = model_of(problem_of(seed, n=200, classes=5, weighted=True), range(0, 200, 8), np.full(25, 1e-3))
    moved = replace(model, alpha=4.0 * model.alpha)
    P, K, p = model.size, model.rows.n_classes, softmax(model.values @ model.weights, axis=1)
    H = np.diag(np.tile(moved.alpha, K))
    for row, q, count in zip(model.values, p, model.rows.counts, strict=True):
        H += count * np.kron(np.diag(q) - np.outer(q, q), np.outer(row, row))
    slope = -3.0 * model.alpha[:, None] * model.weights
    expected = np.linalg.solve(H, slope.T.ravel()).reshape(K, P).T
    for factors in (moved._factors, model._factors):
        step, arrived = moved._newton_step(slope, factors)
        assert arrived
        assert_allclose(np.vdot(step, slope), np.vdot(expected, slope), rtol=1e-2)


def frozen(model, curvature, alpha):
    """The evidence with rows as curved as given."""
    grams = [model.values.T @ (c[:, None] * model.values) + np.diag(alpha) for c in curvature.T]
    occam = model.rows.n_classes * np.sum(np.log(alpha)) - sum(np.linalg.slogdet(gram)[1] for gram in grams)
    return model.height + 0.5 * model.share * occam


def test_scores_are_the_slope_of_the_evidence_of_the_problem_that_is_gaussian_at_the_mode():
    model = model_of(problem_of(2))
    for i in (7, 30, 41):
        found = model.outside(np.array([i]))
        grown = model.with_functions(np.array([i]), np.array([1e6]))
        grown = grown.at(grown.alpha, 1e-15)
        gained = frozen(grown, model.curvature, grown.alpha) - frozen(model, model.curvature, model.alpha)
        assert_allclose(2e6 * gained, found.relevance(model.share)[0], rtol=1e-3)


def test_settled_precisions_are_a_fixed_point():
    *_, model = ClassModel.of(ClassRows(problem_of(3)), np.arange(0, 61, 4), np.full(16, 0.1)).sweeps(1e-9)
    assert 0 < model.size < 16
    determined = model.share * np.sum(1.0 - model.alpha[:, None] * model.variance, axis=1)
    # Precisions are compared with others at steps of a tenth of their logarithm.
    assert_allclose(model.alpha, determined / np.sum(model.weights**2, axis=1), rtol=0.05)
    assert np.max(model.reestimates().gain) <= 1e-9


def test_the_model_without_a_function_is_found_from_the_one_with_it():
    model = model_of(problem_of(4))
    smaller = model.only(np.array([True, False, True, True]))
    again = model_of(problem_of(4), (3, 20, 60), (0.3, 2.0, 0.1))
    assert_allclose(smaller.at(smaller.alpha, 1e-14).evidence, again.evidence, rtol=1e-9)


@pytest.mark.parametrize("seed", range(3))
def test_what_is_certified_is_so(seed):
    """No function outside gains when it is added, and none inside is better with another precision."""
    problem = problem_of(seed, n=90, classes=3)
    model = RVC(kernel="rbf", gamma=0.5, evidence="laplace").fit(*_rows(problem))
    certificate = model.certificate_
    assert model.status_ is Status.CONVERGED
    assert certificate.converged
    assert certificate.tol == 0.1


@pytest.mark.parametrize(("seed", "gamma"), [(4, 1.0), (5, 3.0), (8, 3.0)])
def test_precisions_that_only_promise_to_gain_are_no_failure(seed, gamma):
    """Of the problem that is Gaussian at the mode other precisions of some functions kept have more evidence."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(50, 2))
    y = np.digitize(X[:, 0] + 0.3 * rng.normal(size=50), [-0.5, 0.5])
    model = RVC(gamma=gamma, evidence="laplace").fit(X, y)
    assert model.status_ is Status.CONVERGED
    Phi = np.exp(-gamma * ((X[:, None] - X) ** 2).sum(2))
    problem = LaplaceProblem(
        DenseDesign(np.c_[Phi, np.ones(50)]), Categorical(np.eye(3)[y], np.ones(50)), np.ones(51, bool)
    )
    functions = np.append(model.relevance_, 50)[: len(model.alpha_[0])]  # with the constant, where it is kept
    found = model_of(problem, functions, model.alpha_[0] / ClassRows(problem).norms[functions] ** 2)
    assert found.evidence == pytest.approx(model.log_marginal_likelihood_, rel=1e-6)
    promised = found.reestimates()
    assert np.max(promised.gain) > model.certificate_.tol  # else nothing would be seen here
    for j in np.flatnonzero(promised.gain > model.certificate_.tol):
        moved = np.where(np.arange(found.size) == j, promised.alpha, found.alpha)
        there = found.at(moved) if np.isfinite(moved[j]) else found.only(np.isfinite(moved))
        assert there.objective <= found.objective + model.certificate_.tol


def test_a_function_of_the_model_is_none_that_is_missing():
    problem = problem_of(6, n=80, classes=3)
    best = int(np.argmax(model_of(problem, (), ()).scores().gain))
    model = model_of(problem, (best,), (300.0,))  # held back so much that a copy of it would gain
    out = np.setdiff1d(np.flatnonzero(ClassRows(problem).eligible), model.functions)
    certificate = certify_classes(model, 0.1)
    assert np.max(model.scores_of(model.functions).gain) > np.max(model.scores_of(out).gain)
    assert certificate.excluded_gain == pytest.approx(np.max(model.scores_of(out).gain), rel=1e-9)
    assert certificate.excluded_function in out
    assert certificate.left_aside == 0
    assert certify_classes(model, 0.1, among=20).left_aside == len(out) - 20


def _rows(problem):
    labels = np.argmax(problem.likelihood.targets, axis=1)
    rng = np.random.default_rng(5)
    return np.c_[labels + 0.6 * rng.normal(size=len(labels)), rng.normal(size=len(labels))], labels


def test_no_addition_to_what_was_found_brings_a_nat():
    """Gains are certified for the problem that is Gaussian at the mode; as the mode moves, they may be more."""
    problem = problem_of(6, n=80, classes=3)
    result = run_classes(problem, _regression(problem), RVC()._checked_solver(), _settings(), "laplace")
    rows = ClassRows(problem)
    columns, outputs = problem.split(result.active.indices)
    kept = columns[outputs == 0]
    model = ClassModel.of(rows, kept, result.active.alpha[outputs == 0] / rows.norms[kept] ** 2)
    model = model.at(model.alpha, 1e-12)
    for i in np.setdiff1d(np.arange(problem.design.shape[1]), kept):
        for alpha in (0.01, 0.1, 1.0, 10.0):
            grown = model.with_functions(np.array([i]), np.array([alpha]))
            assert grown.objective <= model.objective + 1.0
    assert certify_classes(model, 0.1).log_evidence == pytest.approx(result.certificate.log_evidence, abs=1e-3)


def test_a_certificate_sees_a_function_that_is_missing_and_what_functions_cost():
    problem = replace(problem_of(6, n=80, classes=3), inclusion_cost=1.5)
    rows = ClassRows(problem)
    model = model_of(problem, (3, 11), (1.0, 1.0))
    certificate = certify_classes(model, 0.1)
    assert certificate.objective == pytest.approx(certificate.log_evidence - 2 * 1.5)
    out = np.setdiff1d(np.arange(problem.design.shape[1]), model.functions)
    really = [
        model.with_functions(np.array([i]), np.array([alpha])).objective - model.objective
        for i in out[rows.eligible[out]]
        for alpha in (0.01, 0.1, 1.0)
    ]
    assert max(really) > 3.0  # else nothing would be seen here
    assert not certificate.converged
    assert certificate.excluded_gain > 0.5 * max(really)  # of the problem that is Gaussian at the mode: often more
    free = certify_classes(model_of(replace(problem, inclusion_cost=0.0), (3, 11), (1.0, 1.0)), 0.1)
    assert certificate.excluded_gain == pytest.approx(free.excluded_gain - 1.5, rel=1e-6)


@pytest.mark.parametrize("seed", range(2))
def test_outputs_of_rows_left_out_are_those_of_modes_without_a_copy_of_each(seed):
    """To first order, and all directions taken for equally curved."""
    problem = problem_of(seed, weighted=True)
    model, counts, targets = model_of(problem), problem.likelihood.weights, problem.likelihood.targets
    found, exact = model.left_out_outputs(model.every(1)) - model.outputs, []
    for n in range(0, 60, 3):
        fewer = replace(problem, likelihood=Categorical(targets, np.where(np.arange(60) == n, counts - 1.0, counts)))
        units = ClassRows(fewer).norms[model.functions] / model.rows.norms[model.functions]
        exact.append((model_of(fewer, model.functions, model.alpha * units**2).outputs - model.outputs)[n])
    assert np.linalg.norm(found[::3] - exact) < 0.65 * np.linalg.norm(exact)
    assert np.vdot(found[::3], exact) == pytest.approx(np.vdot(found[::3], found[::3]), rel=0.3)


def test_a_certificate_sees_a_function_that_costs_more_than_it_brings():
    problem = problem_of(6, n=80, classes=3)
    settled = model_of(problem).settled(1e-6)
    assert certify_classes(settled, 0.1).kept_gain < 0.1
    dear = ClassRows(replace(problem, inclusion_cost=5.0))
    model = ClassModel.of(dear, settled.functions, settled.alpha)
    really = [model.only(np.arange(model.size) != j, 1e-10).objective - model.objective for j in range(model.size)]
    assert max(really) > 3.0  # else nothing would be seen here
    certificate = certify_classes(model, 0.1)
    assert not certificate.converged
    assert max(really) < certificate.kept_gain < 1.5 * max(really)  # of the problem that is Gaussian at the mode


def test_the_condition_number_is_that_of_the_worst_class_at_unit_diagonal():
    model = model_of(problem_of(3, weighted=True), functions=range(0, 60, 5), alpha=np.full(12, 1e-3))
    conditions = []
    for curvature in model.curvature.T:
        precision = model.values.T @ (curvature[:, None] * model.values) + np.diag(model.alpha)
        scale = np.sqrt(np.diag(precision))
        conditions.append(np.linalg.cond(precision / np.outer(scale, scale)))
    assert max(conditions) > 10.0
    assert certify_classes(model, 0.1).condition_number == pytest.approx(max(conditions), rel=1e-6)


def _settings():

    return Settings(tol=1e-3, max_iter=10_000)


@pytest.mark.parametrize("seed", range(4))
def test_settling_never_lowers_the_objective(seed):
    """The fixed point is that of another problem, and may lie lower than where the way to it begins."""
    begun = ClassModel.of(ClassRows(problem_of(seed)), np.arange(0, 61, 3), np.full(21, 0.02))
    assert begun.settled(1e-6).objective >= begun.objective
    assert begun.settled(1e-6).objective >= begun.settled(0.1).objective


class TestIndicators:
    """Functions and relative precisions of a regression, and one scale for all of them."""

    @pytest.mark.parametrize("weighted", [False, True])
    def test_precisions_are_those_of_the_regression_times_a_number(self, weighted):
        problem = problem_of(3, n=80, classes=3, weighted=weighted)
        result = run_classes(problem, _regression(problem), RVC()._checked_solver(), _settings())
        columns, outputs = problem.split(result.active.indices)
        kept, alpha = columns[outputs == 0], result.active.alpha[outputs == 0]
        limit = max(10, int(problem.likelihood.weights.sum()) // 8)
        found = climb(Schedule().begin(Gram(_regression(problem)), None), 0.03, most=limit)
        found = found.settled(1e-15)
        assert set(kept.tolist()) == {*found.indices, problem.bias}
        expected = dict(zip(found.indices, found.alpha, strict=True))
        ratio = np.array([a / expected[m] for m, a in zip(kept.tolist(), alpha, strict=True) if m in expected])
        assert_allclose(ratio, ratio[0], rtol=1e-9)
        assert result.status is Status.INDICATORS

    @pytest.mark.parametrize("seed", range(3))
    def test_no_other_scale_has_more_evidence(self, seed):
        problem = problem_of(seed, n=80, classes=3)
        result = run_classes(problem, _regression(problem), RVC()._checked_solver(), _settings())
        model = result.active.model
        assert_allclose(model.evidence, result.certificate.log_evidence, rtol=1e-12)
        for factor in (0.01, 0.1, 0.5, 2.0, 10.0, 100.0):
            assert model.at(factor * model.alpha, 1e-12).evidence < model.evidence

    def test_a_part_of_many_rows_says_where_to_begin_and_all_of_them_where_to_end(self):
        X, y = clouds(20_000, 5)
        Phi = np.exp(-0.1 * ((X[:, None] - X[:100]) ** 2).sum(2))
        problem = LaplaceProblem(DenseDesign(Phi), Categorical(np.eye(5)[y], np.ones(len(y))), np.ones(100, bool))
        model = run_classes(problem, _regression(problem), RVC()._checked_solver(), _settings()).active.model
        assert len(model.outputs) == len(y)
        for factor in (0.25, 4.0):
            assert model.at(factor * model.alpha, 1e-9).evidence < model.evidence

    def test_it_predicts_better_than_more_evidence_where_classes_can_be_separated(self):
        """Ten digits, 1,078 rows to learn from: the papers' sparse classifiers err by 4 to 6 per cent."""
        X, y = load_digits(return_X_y=True)
        order = np.random.default_rng(0).permutation(len(y))
        train, test = order[:1078], order[1078:]
        scale = X[train].std(axis=0)
        X = (X - X[train].mean(axis=0)) / np.where(scale > 0.0, scale, 1.0)
        model, other = (
            RVC(gamma=1 / 64, evidence=evidence).fit(X[train], y[train]) for evidence in ("indicators", "laplace")
        )
        losses = [log_loss(y[test], one.predict_proba(X[test])) for one in (model, other)]
        assert model.score(X[test], y[test]) > 0.965
        assert losses[0] < min(0.1, losses[1] - 0.03)
        assert other.log_marginal_likelihood_ > model.log_marginal_likelihood_ + 10.0
        assert len(model.relevance_) <= 1078 / 8 + 8

    def test_a_class_between_two_others_is_not_masked(self):
        """A regression on indicators has next to no slope for the class in the middle, and no constant at all."""
        x = np.random.default_rng(0).normal(size=(150, 1)) + np.repeat([-5.0, 0.0, 5.0], 50)[:, None]
        y = np.repeat([0, 1, 2], 50)
        model = SparseBayesClassifier().fit(x, y)
        assert model.status_ is Status.INDICATORS
        assert model.score(x, y) > 0.95

    def test_a_scale_of_evidence_is_refused_by_name(self):
        with pytest.raises(ValueError, match=r"evidence='bayes'.*'auto', 'indicators', 'laplace'"):
            RVC(evidence="bayes").fit(np.eye(4), [0, 1, 2, 0])


def clouds(n, classes, seed=0):
    """Points of classes in the plane, two overlapping clouds each."""
    places = np.random.default_rng(12).uniform(-4.0, 4.0, (2 * classes, 2))
    rng = np.random.default_rng(seed)
    part = rng.integers(0, 2 * classes, n)
    return places[part] + 0.6 * rng.normal(size=(n, 2)), part // 2


def test_ten_classes_of_many_rows():
    """The best that can be known errs by .342, at a log loss of .753."""
    X, y = clouds(20_000, 10)
    model = RVC().fit(X, y)
    new, observed = clouds(10_000, 10, seed=1)
    assert log_loss(observed, model.predict_proba(new)) < 0.77
    assert model.certificate_.left_aside + len(model.relevance_) < 20_000  # some are looked at closely
    assert 0.0 < model.certificate_.compression_error < 1e-4


@pytest.mark.parametrize("evidence", ["indicators", "laplace"])
def test_a_compressed_kernel_leads_to_the_same_model(evidence):
    X, y = clouds(800, 10)
    model, exact = (RVC(evidence=evidence, compression=c).fit(X, y) for c in ("auto", False))
    assert model.certificate_.compression_error > exact.certificate_.compression_error == 0.0
    assert_array_equal(model.relevance_, exact.relevance_)
    assert_allclose(model.predict_proba(X), exact.predict_proba(X), atol=1e-4)


def test_what_is_known_of_functions_is_computed_once_and_travels():
    X, y = datasets.load("iris", return_X_y=True)
    model = RVC().fit(X, y)
    twin = pickle.loads(pickle.dumps(model))
    assert_allclose(
        model.support_report().to_frame()["evidence_lost"], twin.support_report().to_frame()["evidence_lost"]
    )
    assert model._supports.all() is model._supports.all()


def test_classes_share_functions_and_their_precisions():
    X, y = datasets.load("iris", return_X_y=True)
    model = RVC().fit(X, y)
    assert model.coef_.shape == (3, len(model.relevance_))
    assert_array_equal(model.alpha_, np.tile(model.alpha_[0], (3, 1)))
    assert_allclose(model.coef_.sum(axis=0), 0.0, atol=1e-4 * np.max(np.abs(model.coef_)))
    own = RVC(shared_support=False).fit(X, y)
    assert np.any(np.isinf(own.alpha_))


def test_the_order_of_the_classes_makes_no_difference():
    X, y = datasets.load("wine", return_X_y=True)
    X = (X - X.mean(0)) / X.std(0)
    model, other = RVC().fit(X, y), RVC().fit(X, 2 - y)
    assert_array_equal(model.relevance_, other.relevance_)
    assert_allclose(model.predict_proba(X), other.predict_proba(X)[:, ::-1], atol=1e-6)


@pytest.mark.parametrize("classes", [3, 4])
def test_the_signal_to_noise_ratio_of_a_weak_function_is_the_score_statistic_of_multinomial_regression(classes):
    """Where classes are alike, that is q^2/s per direction: its mean is one for a column without an effect."""
    rng = np.random.default_rng(0)
    labels = np.arange(400 * classes) % classes
    x = rng.standard_normal(len(labels)) + 0.35 * (labels == 1)
    x -= x.mean()
    model = SparseBayesClassifier(fit_intercept=False, evidence="indicators").fit(x[:, None], labels)
    # Of the scores x'(t_k - 1/K) the covariance is x'x (I - 11'/K) / K, of rank K - 1.
    scores = x @ (np.eye(classes)[labels] - 1.0 / classes)
    statistic = scores @ np.linalg.pinv(x @ x * (np.eye(classes) - 1.0 / classes) / classes) @ scores / (classes - 1)
    found = model.support_report().signal_to_noise
    assert statistic > 5.0
    assert_allclose(found, np.full(classes, statistic), rtol=0.05)


@pytest.mark.parametrize("evidence", ["indicators", "laplace"])
def test_evidence_lost_is_that_of_the_model_without(evidence):
    problem = problem_of(7, n=80, classes=3)
    result = run_classes(problem, _regression(problem), RVC()._checked_solver(), _settings(), evidence)
    rows = ClassRows(problem)
    columns, outputs = problem.split(result.active.indices)
    kept, alpha, support = columns[outputs == 0], result.active.alpha[outputs == 0], result.active.support()
    for j in range(len(kept)):
        stays = np.arange(len(kept)) != j
        without = ClassModel.of(rows, kept[stays], alpha[stays] / rows.norms[kept[stays]] ** 2)
        lost = result.certificate.log_evidence - without.evidence
        assert_allclose(support.evidence_lost[j], lost, atol=5e-3)


def test_left_out_outputs_are_those_of_a_refit_without_the_row():
    problem = problem_of(8, n=50, classes=3)
    model = model_of(problem, (3, 11, 20, 50))
    predicted = model.left_out_outputs(model)
    moved = np.abs(predicted - model.outputs).max(axis=1)
    for n in np.argsort(-moved)[:5]:
        rest = np.arange(50) != n
        part = LaplaceProblem(
            DenseDesign(problem.design.columns(slice(None))[rest]),
            Categorical(problem.likelihood.targets[rest], np.ones(49)),
            problem.candidates,
            50,
        )
        rows = ClassRows(part)
        scale = (rows.norms / model.rows.norms)[model.functions]
        refit = ClassModel.of(rows, model.functions, model.alpha * scale**2).at(model.alpha * scale**2, 1e-12)
        outputs = (model.values[n] / scale) @ refit.weights
        outputs -= outputs.mean()
        here = predicted[n] - predicted[n].mean()
        before = model.outputs[n] - model.outputs[n].mean()
        assert np.linalg.norm(here - outputs) < 0.6 * np.linalg.norm(before - outputs)


@pytest.mark.parametrize(
    ("name", "X", "y"),
    [
        ("one row in a class", np.random.default_rng(0).normal(size=(60, 2)), np.r_[2, np.arange(59) % 2]),
        ("identical rows", np.ones((30, 2)), np.arange(30) % 3),
        ("rows with several labels", np.repeat(np.random.default_rng(1).normal(size=(5, 2)), 8, 0), np.arange(40) % 3),
    ],
)
def test_odd_tables_have_finite_probabilities(name, X, y):
    model = RVC().fit(X, y)
    p = model.predict_proba(X)
    assert np.all(np.isfinite(np.log(p[np.arange(len(y)), y]))), name


def test_a_checkpoint_is_refused_with_the_way_out(tmp_path):
    X, y = datasets.load("iris", return_X_y=True)
    with pytest.raises(ValueError, match="shared_support=False"):
        RVC(checkpoint=str(tmp_path / "search.json")).fit(X, y)


def test_columns_in_other_units_make_no_difference():
    X, y = datasets.load("iris", return_X_y=True)
    model, other = SparseBayesClassifier().fit(X, y), SparseBayesClassifier().fit(X * [1e6, 1e-6, 1.0, 3.0], y)
    assert_array_equal(model.relevance_, other.relevance_)
    assert_allclose(model.predict_proba(X), other.predict_proba(X * [1e6, 1e-6, 1.0, 3.0]), atol=1e-5)


def test_the_audit_of_a_posterior_knows_shared_functions():
    X, y = datasets.load("iris", return_X_y=True)
    weights = np.random.default_rng(0).integers(1, 3, len(y))
    model = RVC().fit(X, y, weights)
    check_posterior(model, X, y, weights)
    posterior = model._posteriors[0]
    model._posteriors[0] = replace(posterior, covariance=0.3 * posterior.covariance)
    with pytest.raises(AssertionError, match="covariance: off by"):
        check_posterior(model, X, y, weights)
    model._posteriors[0] = posterior
    model.alpha_[:, 0] *= 1.1
    with pytest.raises(AssertionError, match="does not agree"):
        check_posterior(model, X, y, weights)


class TestHowSureTheWeightsAre:
    """Probabilities of separable classes are integrated over a part of the covariance, which the weights keep whole."""

    def fitted(self):
        X, y = load_wine(return_X_y=True)
        X = (X - X.mean(axis=0)) / X.std(axis=0)
        return X, SparseBayesClassifier().fit(X, y)

    def test_by_the_curvature_at_the_mode(self):
        X, model = self.fitted()
        (posterior,) = model._posteriors
        assert posterior.temper < 1.0
        Phi = np.c_[X[:, model.relevance_], np.ones(len(X))]
        W = np.c_[model.coef_[:, model.relevance_], model.intercept_]
        p = softmax(Phi @ W.T, axis=1)
        K, P = W.shape
        for k in range(K):
            curved = K / (K - 1) * p[:, k] * (1 - p[:, k])
            expected = np.linalg.inv((Phi * curved[:, None]).T @ Phi + np.diag(model.alpha_[k, :P]))
            mine = slice(k * P, (k + 1) * P)
            assert_allclose(model.sigma_[mine, mine], expected, rtol=1e-6, atol=1e-9)

    def test_signs_are_no_surer_than_the_evidence(self):
        """A function that is hardly missed, by a nat or two, does not have weights of ten standard deviations."""
        _, model = self.fitted()
        report = model.support_report()
        hardly_missed = report.evidence_lost < 2.0
        assert hardly_missed.any()
        assert np.all(np.abs(report.weight[hardly_missed]) < 3.0 * report.std[hardly_missed])


@pytest.mark.parametrize("weight", [1e4, 1e6, 1e12])
def test_rows_of_great_weight_end_in_a_model(weight):
    for seed in range(3):
        rng = np.random.default_rng(seed)
        X = rng.normal(size=(60, 2))
        height = np.sin(2 * X[:, 0]) + X[:, 1] + 0.3 * rng.normal(size=60)
        labels = np.digitize(height, [-0.7, 0.7])
        model = RVC().fit(X, labels, np.full(60, weight))
        assert model.score(X, labels) == 1.0
        assert np.all(np.isfinite(model.predict_proba(X)))
