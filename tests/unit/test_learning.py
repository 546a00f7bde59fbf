"""Kernel parameters by evidence, restarts, paths and summaries, as users meet them."""

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from sparsebayes import RVC, RVR, Sequential, SparseBayesClassifier, SparseBayesRegressor, datasets, load, path, save
from sparsebayes.basis import RBF, Bias, Heaviside, Kernel, Laplacian, Linear, LinearSpline
from sparsebayes.inference import ParameterStatus, Status


def sinc(seed=1, n=60):
    X, y = datasets.make_sinc(n, noise=0.1, random_state=seed)
    return X, y


def two_inputs(n=80, seed=0):
    """The second input is irrelevant."""
    rng = np.random.default_rng(seed)
    X = rng.uniform(-3, 3, (n, 2))
    return X, np.sin(2 * X[:, 0]) + 0.1 * rng.standard_normal(n)


def test_one_scale_beats_a_poor_guess():
    X, y = sinc()
    guess = RVR().fit(X, y)
    model = RVR(gamma="evidence").fit(X, y)
    assert model.log_marginal_likelihood_ > guess.log_marginal_likelihood_ + 5
    assert 1.5 < model.kernel_.width < 4.5
    assert model.kernel_status_ == {"width": ParameterStatus.LEARNED}
    assert model.status_ is Status.CONVERGED
    assert {f["width"] for f in model.relevance_functions_ if f["kind"] == "rbf"} == {model.kernel_.width}


def test_irrelevant_input_switches_off():
    X, y = two_inputs()
    model = RVR(gamma="ard").fit(X, y)
    assert model.kernel_status_ == {"width[0]": ParameterStatus.LEARNED, "width[1]": ParameterStatus.OFF}
    assert model.status_ is Status.CONVERGED
    moved = X.copy()
    moved[:, 1] = 0.0
    np.testing.assert_allclose(model.predict(moved), model.predict(X), atol=0.02)


def test_inputs_that_grew_into_the_model_by_chance_leave_it():
    """On this draw the first maximum found has a ninth input, and a model without it scores 17 nats more."""
    X, y = datasets.make_friedman1(240, random_state=102)
    model = RVR(gamma="ard").fit((X - X.mean(axis=0)) / X.std(axis=0), y)
    assert [status is ParameterStatus.OFF for status in model.kernel_status_.values()] == 5 * [False] + 5 * [True]
    assert model.certificate_.converged


def test_an_input_that_columns_beside_explain_switches_off():
    """No process says where to look for the widths of a sum."""
    rng = np.random.default_rng(0)
    X = rng.uniform(-10, 10, (100, 2))
    y = np.sinc(X[:, 0] / np.pi) + 0.1 * X[:, 1] + 0.1 * rng.standard_normal(100)
    model = RVR(kernel=Linear() + RBF(4.0), gamma="ard").fit(X, y)
    assert list(model.kernel_status_.values()) == [ParameterStatus.LEARNED, ParameterStatus.OFF]


def test_the_fit_with_the_learned_kernel_is_the_learned_fit():
    X, y = sinc()
    model = RVR(gamma="evidence").fit(X, y)
    again = RVR(kernel=model.kernel_, solver=Sequential(exchange="converged")).fit(X, y)
    assert again.log_marginal_likelihood_ >= model.log_marginal_likelihood_ - 2.0


@pytest.mark.parametrize("task", ["regression", "targets"])
@pytest.mark.parametrize("climbs", [False, True])
def test_objective_never_falls_within_a_start(task, climbs):
    """A process says where to look for the widths of a kernel; those of a sum climb."""
    X, y = two_inputs()
    model = RVR(kernel=RBF(1.0) + RBF(3.0), gamma="evidence") if climbs else RVR(gamma="ard")
    model.fit(X, np.column_stack([y, X[:, 1] + y**2]) if task == "targets" else y)
    histories = model.history_ if isinstance(model.history_[0], list) else [model.history_]
    for history in histories:
        assert any(record.move == "kernel" for record in history) is climbs
        last = {}
        for record in history:
            slack = 1e-9 * max(1.0, abs(record.objective), len(X))
            assert record.objective >= last.get(record.start, -np.inf) - slack
            last[record.start] = record.objective


def test_certificate_carries_the_prior():
    X, y = sinc()
    certificate = RVR(gamma="evidence").fit(X, y).certificate_
    assert certificate.converged
    assert certificate.log_evidence - 2.0 < certificate.objective < certificate.log_evidence


def test_the_price_of_functions_is_in_the_comparison_of_scales_only():
    X, y = two_inputs()
    model = RVR(gamma="ard").fit(X, y)
    certificate = model.certificate_
    assert certificate.converged
    assert len(model.relevance_) > 2  # at 2.5 nats each, their price would show
    assert certificate.log_evidence - 3.0 < certificate.objective < certificate.log_evidence


def test_fits_are_reproducible():
    X, y = two_inputs()
    first, second = (RVR(gamma="ard", n_restarts=2).fit(X, y) for _ in range(2))
    assert first.kernel_.width == second.kernel_.width
    assert first.coef_.tobytes() == second.coef_.tobytes()


@pytest.mark.parametrize("factor", [1e-3, 1e4])
def test_units_of_the_inputs_do_not_matter(factor):
    X, y = two_inputs()
    model, scaled = RVR(gamma="ard").fit(X, y), RVR(gamma="ard").fit(factor * X, y)
    np.testing.assert_allclose(scaled.predict(factor * X), model.predict(X), atol=1e-3)
    assert scaled.kernel_.width[0] == pytest.approx(factor * model.kernel_.width[0], rel=1e-2)


def test_sum_of_kernels_learns_each_and_keeps_the_rest():
    X, y = sinc()
    model = RVR(kernel=Bias() + Linear() + RBF(4.0) + Laplacian(3.0) + LinearSpline(), gamma="evidence")
    model.fit(X, y)
    assert set(model.kernel_status_) == {"rbf__width", "laplacian__width"}
    assert model.kernel_.get_params()["rbf__width"] > 0
    assert model.certificate_.converged


def test_classification_learns_the_width():
    data = datasets.load("ripley_synth")
    train, test = data.train_idx, data.test_idx
    model = RVC(gamma="evidence").fit(data.data[train], data.target[train])
    assert model.score(data.data[test], data.target[test]) > 0.895
    assert model.kernel_gain_["density"] > 0.0


def test_several_targets_share_the_kernel():
    X, y = sinc()
    model = RVR(gamma="evidence").fit(X, np.column_stack([y, 2 * y + 0.1 * np.cos(X[:, 0])]))
    assert isinstance(model.kernel_.width, float)
    assert model.predict(X).shape == (60, 2)


# -- what the data do not say ------------------------------------------------------------------------------


def test_constant_input_is_named():
    X, y = sinc()
    model = RVR(gamma="ard").fit(np.column_stack([X, np.full(60, 3.0)]), y)
    assert model.kernel_status_["width[1]"] is ParameterStatus.CONSTANT
    assert model.status_ is Status.KERNEL
    assert np.all(np.isfinite(model.predict(np.column_stack([X, np.full(60, 3.0)]))))


def test_a_scale_that_makes_no_difference_is_named():
    """The slope of a linear kernel is absorbed by the precisions."""
    X, y = sinc()
    model = RVR(kernel="poly", degree=1, gamma="evidence").fit(X, y + X[:, 0])
    assert model.kernel_status_ == {"gamma": ParameterStatus.FLAT}
    assert model.status_ is Status.KERNEL


def test_a_scale_that_runs_to_infinity_is_named():
    """A line is best made of two functions that are as wide as can be."""
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (40, 1))
    model = RVR(gamma="evidence").fit(X, 3 * X[:, 0] + 0.001 * rng.standard_normal(40))
    assert model.kernel_status_ == {"width": ParameterStatus.INFINITE}
    assert model.status_ is Status.KERNEL
    assert 20.0 < model.kernel_.width < np.inf


def test_a_scale_so_small_that_functions_see_one_row_is_named():
    X = np.arange(20.0)[:, None]
    y = np.zeros(20)
    y[[3, 11]] = 1.0, -1.0
    model = RVR(kernel=RBF(1e-2), gamma="evidence", noise_variance=0.01).fit(X, y)
    assert model.kernel_status_ == {"width": ParameterStatus.FLAT}
    assert model.status_ is Status.KERNEL


def test_a_term_without_functions_in_the_model_stays_where_it_began():
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (40, 1))
    model = RVR(kernel=Linear() + RBF(0.7), gamma="evidence", fit_intercept=False, noise_variance=0.01)
    model.fit(X, 3 * X[:, 0] + 0.1 * rng.standard_normal(40))
    if model.kernel_status_["rbf__width"] is ParameterStatus.UNUSED:
        assert all(f["kind"] != "rbf" for f in model.relevance_functions_)
    else:
        assert any(f["kind"] == "rbf" for f in model.relevance_functions_)


def test_pure_noise_and_identical_rows_end_finite():
    rng = np.random.default_rng(0)
    X = np.repeat(rng.uniform(-1, 1, (10, 2)), 4, axis=0)
    model = RVR(gamma="ard").fit(X, rng.standard_normal(40))
    assert np.all(np.isfinite(model.kernel_.width))
    assert np.all(np.isfinite(model.predict(X)))
    constant = RVR(gamma="evidence").fit(X, np.ones(40))
    assert constant.status_ is Status.CONSTANT


# -- restarts, paths, summaries, files ---------------------------------------------------------------------


def test_restarts_never_end_lower():
    rng = np.random.default_rng(1)
    Phi = rng.standard_normal((40, 1)) * 3 + rng.standard_normal((40, 60))
    y = Phi[:, :4].sum(axis=1) + rng.standard_normal(40)
    plain = SparseBayesRegressor(noise_variance=1.0).fit(Phi, y)
    more = SparseBayesRegressor(noise_variance=1.0, n_restarts=5).fit(Phi, y)
    assert more.log_marginal_likelihood_ >= plain.log_marginal_likelihood_ - 1e-6
    last = [max(record.start for record in model.history_) for model in (plain, more)]
    assert last[1] == last[0] + 5


def test_restarts_of_a_classifier():
    data = datasets.load("iris")
    model = SparseBayesClassifier(n_restarts=1).fit(data.data, data.target)
    assert model.certificate_.converged


@pytest.mark.parametrize("parameter", ["gamma", "noise_variance"])
def test_path_is_warm_and_each_model_converged(parameter):
    X, y = sinc()
    values = [0.03, 0.06, 0.12]
    models = path(RVR(gamma=0.1), X, y, parameter, values)
    assert [getattr(model, parameter) for model in models] == values
    for model in models:
        assert model.certificate_.converged
        assert not hasattr(model, "_thread")
    assert {record.start for record in models[1].history_} <= {0}


def test_summary_says_what_removal_costs():
    X, y = sinc()
    model = RVR(gamma=0.1, fit_intercept=False, noise_variance=0.01).fit(X, y)
    terms = model.terms()
    assert len(terms) == len(model.relevance_)
    assert [t.evidence for t in terms] == sorted((t.evidence for t in terms), reverse=True)
    weakest = terms[-1]
    Phi = RBF(1 / np.sqrt(0.1)).bind(X).evaluate(X)
    keep = [f["centre"] != weakest.function["centre"] for f in model.relevance_functions_]

    def evidence(chosen, alpha):
        C = 0.01 * np.eye(60) + (Phi[:, chosen] / alpha) @ Phi[:, chosen].T
        return -0.5 * (np.linalg.slogdet(2 * np.pi * C)[1] + y @ np.linalg.solve(C, y))

    fall = evidence(model.relevance_, model.alpha_) - evidence(model.relevance_[keep], model.alpha_[keep])
    assert weakest.evidence == pytest.approx(fall, rel=1e-6)
    assert weakest.fit >= weakest.evidence

    def height(chosen, alpha):
        columns = Phi[:, chosen]
        weights = np.linalg.solve(columns.T @ columns / 0.01 + np.diag(alpha), columns.T @ y / 0.01)
        return -0.5 * np.sum((y - columns @ weights) ** 2) / 0.01 - 0.5 * weights @ (alpha * weights)

    fall = height(model.relevance_, model.alpha_) - height(model.relevance_[keep], model.alpha_[keep])
    assert weakest.fit == pytest.approx(fall, rel=1e-6)


def test_summary_of_several_classes_and_targets():
    data = datasets.load("iris")
    model = SparseBayesClassifier().fit(data.data, data.target)
    assert {term.output for term in model.terms()} <= {0, 1, 2}
    X, y = sinc()
    assert {term.output for term in RVR(gamma=0.1).fit(X, np.column_stack([y, -y])).terms()} == {0, 1}


def test_a_learned_model_is_saved_with_its_kernel(tmp_path):
    X, y = two_inputs()
    model = RVR(gamma="ard").fit(X, y)
    save(model, tmp_path / "model.json")
    again = load(tmp_path / "model.json")
    assert again.kernel_.width == model.kernel_.width
    assert again.kernel_status_ == model.kernel_status_
    np.testing.assert_array_equal(again.predict(X), model.predict(X))


class Tent(Kernel):
    """Without derivatives."""

    kind = "tent_without_derivatives"

    def _evaluate(self, X, centres):
        return np.maximum(0.0, 1.0 - np.abs(X[:, None, 0] - centres[None, :, 0]))


@pytest.mark.parametrize(
    ("estimator", "message"),
    [
        (RVR(kernel=LinearSpline(), gamma="ard"), "kernel with parameters"),
        (RVR(kernel=Tent(), gamma="evidence"), "kernel with parameters"),
        (RVR(kernel=Heaviside(), gamma="evidence"), "kernel with parameters"),
        (RVR(gamma="evidences"), "gamma='evidences' is not known"),
        (RVR(n_restarts=-1), "n_restarts=-1"),
        (RVR(solver=Sequential(exchange=True)), "exchange=True"),
        (RVR(gamma="ard", solver=Sequential(split_merge=True)), "split_merge"),
    ],
)
def test_what_cannot_be_learned_is_said(estimator, message):
    X, y = sinc()
    with pytest.raises(ValueError, match=message):
        estimator.fit(X, y)


def test_a_path_over_anything_else_is_refused():
    X, y = sinc()
    with pytest.raises(ValueError, match="parameter='tol'"):
        path(RVR(), X, y, "tol", [1e-3])


def test_an_early_stop_of_the_last_search_is_told():
    rng = np.random.default_rng(0)
    X = rng.uniform(-2.0, 2.0, (32, 3))
    y = np.sin(X[:, 0]) + 0.1 * rng.standard_normal(32)
    with pytest.warns(ConvergenceWarning, match="max_iter"):
        model = RVR(gamma="evidence", max_iter=1).fit(X, y)
    assert model.status_ is Status.MAX_ITER
    assert not model.certificate_.converged
