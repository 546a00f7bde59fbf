"""The joint solvers on random small problems: they ascend, end in a proof or a warning, and never in a NaN."""

import warnings
from functools import partial

import numpy as np
import pytest
from exploring import examples, seeds
from hypothesis import given
from hypothesis import strategies as st
from sklearn.exceptions import ConvergenceWarning
from solver_cases import KINDS, dictionary, tolerance

from sparsebayes import EM, RVC, RVR, MacKay, SparseBayesClassifier, SparseBayesRegressor, Variational
from sparsebayes.design import as_design
from sparsebayes.inference.fit.run import run
from sparsebayes.inference.fit.settings import Settings
from sparsebayes.inference.models.problem import GaussianProblem
from sparsebayes.inference.status import Status

many, few = examples(50), examples(15)
SOLVERS = (MacKay, EM, Variational)
makers = st.sampled_from(SOLVERS)
priors = st.sampled_from([0.0, 1e-4, 1.0])


def random_problem(seed):
    """Dictionary, targets, and the fixed noise or None."""
    rng = np.random.default_rng(seed)
    n, m = int(rng.integers(5, 30)), int(rng.integers(1, 45))
    X = dictionary(rng, n, m, KINDS[seed % len(KINDS)])
    w = np.where(rng.random(m) < 0.2, rng.standard_normal(m), 0.0) / np.maximum(np.abs(X).max(axis=0), 1e-300)
    y = X @ w + rng.choice([0.01, 0.3, 1.0]) * rng.standard_normal(n)
    return X, y, [None, None, 0.1, 0.01][int(rng.integers(4))]


def solve(X, y, noise, solver, max_iter=25):
    problem = GaussianProblem(as_design(X), y[:, None], np.ones(len(y)), np.ones(X.shape[1], dtype=bool))
    return run(problem, solver, Settings(1e-3, max_iter, noise), np.random.default_rng(0))


class Watch:
    """A callback that follows one quantity, and lets it fall only with a new start, or where the size may change."""

    def __init__(self, measure, n, equal_size):
        self.measure, self.n, self.equal_size = measure, n, equal_size
        self.start, self.value, self.size, self.count = 0, -np.inf, -1, 0

    def __call__(self, record, active):
        value = self.measure(record, active)
        assert np.isfinite(value)
        if record.start != self.start:  # the noise guard searches again
            self.start, self.value = record.start, -np.inf
        if not self.equal_size or active.size == self.size:
            assert value >= self.value - tolerance(value, self.n), (record, self.value)
        self.value, self.size = value, active.size
        self.count += 1


@pytest.mark.parametrize("block", range(5))
def test_the_evidence_of_em_never_falls(block):
    """Five hundred problems, in five parts."""
    for seed in range(100 * block, 100 * block + 100):
        X, y, noise = random_problem(seed)
        watch = Watch(lambda record, active: record.evidence, len(y), equal_size=False)
        solve(X, y, noise, EM(callback=watch))
        assert watch.count


def lower_bound(noise, record, active):
    return Variational().lower_bound(active, learn_noise=noise is None)


def both(one, other, record, active):
    one(record, active)
    other(record, active)


@pytest.mark.parametrize("block", range(5))
def test_the_variational_bound_never_falls_at_equal_size(block):
    for seed in range(100 * block, 100 * block + 100):
        X, y, noise = random_problem(seed)
        bound = Watch(partial(lower_bound, noise), len(y), equal_size=True)
        objective = Watch(lambda record, active: record.objective, len(y), equal_size=False)
        solve(X, y, noise, Variational(callback=partial(both, bound, objective)))
        assert bound.count


def usable(model, X):
    certificates = model.certificate_ if isinstance(model.certificate_, list) else [model.certificate_]
    for certificate in certificates:
        assert np.isfinite([certificate.objective, certificate.kept_gain, certificate.excluded_gain]).all()
    assert np.all(np.isfinite(model.coef_))
    assert np.isfinite(model.log_marginal_likelihood_)
    if hasattr(model, "classes_"):
        assert np.all(np.isfinite(model.predict_proba(X)))
    else:
        mean, std = model.predict(X, return_std=True)
        assert np.all(np.isfinite(mean))
        assert np.all(std > 0)


def fitted(model, X, y):
    """Fit; a search that stopped early must have said so."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model.fit(X, y)
    statuses = model.status_ if isinstance(model.status_, list) else [model.status_]
    assert all(issubclass(w.category, ConvergenceWarning) for w in caught), [str(w.message) for w in caught]
    assert bool(caught) == (not all(status.converged for status in statuses))
    usable(model, X)
    return model


@given(seed=seeds, make=makers, a=priors, c=priors, fit_intercept=st.booleans())
@many
def test_regression_ascends_and_ends_well(seed, make, a, c, fit_intercept):
    X, y, noise = random_problem(seed)
    watch = Watch(lambda record, active: record.objective, len(y), equal_size=False)
    solver = make(a, a, c, c, callback=watch)
    model = fitted(
        SparseBayesRegressor(fit_intercept=fit_intercept, noise_variance=noise, solver=solver, max_iter=2000), X, y
    )
    assert model.certificate_.converged or not model.status_.converged


@given(seed=seeds, make=makers, a=priors, classes=st.sampled_from([2, 3]))
@few
def test_classification_ascends_and_ends_well(seed, make, a, classes):
    X, y, _ = random_problem(seed)
    labels = np.digitize(y, np.quantile(y, np.arange(1, classes) / classes))
    labels[:classes] = np.arange(classes)
    watch = Watch(lambda record, active: record.objective, len(y), equal_size=False)
    solver = make(a, a, callback=watch if classes == 2 and a < 1.0 else None)  # a = 1: the next test
    model = SparseBayesClassifier(solver=solver, multi_class="ovr" if make is Variational else "softmax", max_iter=300)
    fitted(model, X, labels)


@pytest.mark.xfail(strict=True, reason="precisions are settled by the evidence alone before the model is finished")
def test_classification_ascends_with_a_strong_prior():
    """Where sweeps end and single moves begin, the objective with the hyperpriors falls by half a nat."""
    X, y, _ = random_problem(4611)
    labels = np.digitize(y, np.quantile(y, [0.5]))
    labels[:2] = [0, 1]
    watch = Watch(lambda record, active: record.objective, len(y), equal_size=False)
    fitted(SparseBayesClassifier(solver=EM(1.0, 1.0, callback=watch), max_iter=300), X, labels)


@pytest.mark.parametrize("make", SOLVERS)
@pytest.mark.parametrize("max_iter", [1, 3, 10])
@pytest.mark.parametrize("estimator", [RVR, SparseBayesRegressor, RVC, SparseBayesClassifier])
def test_max_iter_warns_with_the_remedy(make, max_iter, estimator):
    rng = np.random.default_rng(5)
    X = rng.standard_normal((30, 50))
    y = X[:, 0] - X[:, 1] + 0.3 * rng.standard_normal(30)
    y = y if estimator in (RVR, SparseBayesRegressor) else (y > 0).astype(int)
    with pytest.warns(ConvergenceWarning, match="raise max_iter"):
        model = estimator(solver=make(), max_iter=max_iter).fit(X, y)
    assert model.status_ is Status.MAX_ITER
    assert model.n_iter_ == max_iter
    usable(model, X)


@pytest.mark.parametrize("make", SOLVERS)
def test_a_callback_stops_the_fit(make):
    X, y, _ = random_problem(4)
    with pytest.warns(ConvergenceWarning, match="Interrupted"):
        model = SparseBayesRegressor(solver=make(callback=lambda record, active: True)).fit(X, y)
    assert model.status_ is Status.INTERRUPTED
    assert len(model.history_) == 1
    usable(model, X)


@pytest.mark.parametrize("make", SOLVERS)
def test_constant_targets(make):
    X = np.random.default_rng(0).standard_normal((10, 3))
    model = SparseBayesRegressor(solver=make()).fit(X, np.full(10, 3.0))
    assert model.status_ is Status.CONSTANT
    np.testing.assert_allclose(model.predict(X), 3.0)


@pytest.mark.parametrize("make", SOLVERS)
@pytest.mark.parametrize("shared", [True, False])
def test_several_targets(make, shared):
    rng = np.random.default_rng(1)
    X = rng.standard_normal((40, 10))
    Y = X[:, :3] * [1.0, 10.0, 0.1] + rng.standard_normal((40, 3)) * [0.1, 1.0, 0.01]
    model = SparseBayesRegressor(solver=make(), shared_support=shared).fit(X, Y)
    assert {0, 1, 2} <= set(model.relevance_)
    assert model.score(X, Y) > 0.95
    usable(model, X)


@pytest.mark.parametrize("make", SOLVERS)
@pytest.mark.parametrize("name", ["a", "b", "c", "d"])
@pytest.mark.parametrize("value", [-1.0, np.nan, np.inf, "1", None, True])
def test_bad_hyperpriors_are_named(make, name, value):
    X, y, _ = random_problem(0)
    with pytest.raises(ValueError, match=rf"^{name}="):
        SparseBayesRegressor(solver=make(**{name: value})).fit(X, y)


@pytest.mark.parametrize("make", SOLVERS)
@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"a": 1.0, "b": 0.0}, "a=1.0 with b=0"),
        ({"c": 1.0, "d": 0.0}, "c=1.0 with d=0"),
        ({"tol": 0.0}, "tol=0.0"),
        ({"max_iter": 0}, "max_iter=0"),
        ({"callback": 3}, "callback=3"),
    ],
)
def test_bad_settings_are_named(make, settings, words):
    X, y, _ = random_problem(0)
    with pytest.raises(ValueError, match=words):
        SparseBayesRegressor(solver=make(**settings)).fit(X, y)


@pytest.mark.parametrize("value", [0.5, -1.0, "big", np.inf, True])
def test_a_bad_limit_is_named(value):
    X, y, _ = random_problem(0)
    with pytest.raises(ValueError, match=r"^alpha_max="):
        SparseBayesRegressor(solver=MacKay(alpha_max=value)).fit(X, y)
