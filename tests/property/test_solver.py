"""The sequential solver on random small problems: it ascends, it says what is true, and it stops when told to."""

import numpy as np
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from scipy.special import expit
from sklearn.exceptions import ConvergenceWarning

from sparsebayes import RVC, RVR, Sequential, SparseBayesClassifier, SparseBayesRegressor
from sparsebayes.basis import RBF
from sparsebayes.inference.sequential import INITIALISATIONS, SELECTIONS
from sparsebayes.inference.status import Status

# Derandomised: a failure here is to be looked at, not to come and go.
many = settings(
    max_examples=120,
    deadline=None,
    derandomize=True,
    database=None,
    phases=(Phase.explicit, Phase.generate),  # a smaller seed is no smaller problem
    suppress_health_check=list(HealthCheck),
)
few = settings(many, max_examples=20)
seeds = st.integers(0, 10_000)
Long = np.longdouble


# -- brute force -------------------------------------------------------------------------------------------


def cholesky(matrix):
    """Lower factor in extended precision, which LAPACK has not got."""
    lower = np.array(matrix, dtype=Long)
    for j in range(len(lower)):
        lower[j, j] = np.sqrt(lower[j, j])
        lower[j + 1 :, j] /= lower[j, j]
        lower[j + 1 :, j + 1 :] -= np.outer(lower[j + 1 :, j], lower[j + 1 :, j])
    return np.tril(lower)


def brute_evidence(Phi, alpha, noise, t):
    """Log of the Gaussian density of the columns of t under C = σ²I + ΦA⁻¹Φᵀ (T&F eq. 7), and its rounding error."""
    Phi, t = np.asarray(Phi, dtype=Long), np.asarray(t, dtype=Long)
    C = Long(noise) * np.eye(len(t), dtype=Long) + (Phi / np.asarray(alpha, dtype=Long)) @ Phi.T
    lower = cholesky(C)
    white = t.copy()
    for j in range(len(t)):
        white[j] /= lower[j, j]
        white[j + 1 :] -= lower[j + 1 :, j, None] * white[j]
    log_det = 2 * np.sum(np.log(np.diagonal(lower)))
    n, targets = t.shape
    value = -0.5 * (targets * (n * np.log(2 * Long(np.pi)) + log_det) + np.sum(white**2))
    error = np.finfo(Long).eps * n * float(np.trace(C)) / noise * float(np.sum(white**2))
    return float(value), error


def tolerance(value, n):
    return 1e-9 * max(1.0, abs(value), n)


class Audit:
    """A callback that recomputes the evidence of every model it is shown."""

    def __init__(self, Phi, every=7):
        self.Phi, self.every = Phi, every
        self.last = {}
        self.count = 0

    def __call__(self, record, active):
        n = len(self.Phi)
        assert record.n_active == len(active.indices) == len(set(active.indices))
        assert np.all(active.alpha > 0)
        assert np.all(np.isfinite(active.alpha))
        np.testing.assert_allclose(record.noise_variance, 1.0 / active.beta, rtol=1e-12)
        assert record.evidence == record.objective == pytest.approx(active.evidence(), rel=1e-12, abs=1e-12)
        before = self.last.get(record.start, -np.inf)
        assert record.objective >= before - tolerance(record.objective, n), (record, before)
        self.last[record.start] = record.objective
        self.count += 1
        if self.count <= 30 or self.count % self.every == 0:
            t = active.problem.targets
            value, error = brute_evidence(self.Phi[:, active.indices], active.alpha, 1.0 / active.beta, t)
            assert abs(value - record.evidence) <= 1e-8 * max(1.0, abs(value), n) + error, (record, value)


# -- problems ----------------------------------------------------------------------------------------------


def dictionary(rng, n, m, kind):
    X = rng.standard_normal((n, m))
    if kind == "correlated":
        X = X + 3.0 * rng.standard_normal((n, 1))
    elif kind == "copies":
        X = X[:, rng.integers(0, max(1, m // 2), m)]
    elif kind == "near copies":
        X = X[:, rng.integers(0, max(1, m // 2), m)] + 10.0 ** rng.integers(-12, -2) * rng.standard_normal((n, m))
    elif kind == "smooth":
        at = np.sort(rng.uniform(0.0, 1.0, n))[:, None]
        X = np.exp(-(((at - np.linspace(0.0, 1.0, m)) / 0.3) ** 2))
    elif kind == "scales":
        X = X * 10.0 ** rng.integers(-5, 6, m)
    return X


KINDS = ("independent", "correlated", "copies", "near copies", "smooth", "scales")


@st.composite
def problems(draw):
    """A dictionary, targets, and how to solve it."""
    rng = np.random.default_rng(draw(seeds))
    n, m = draw(st.integers(5, 40)), draw(st.integers(1, 60))
    X = dictionary(rng, n, m, draw(st.sampled_from(KINDS)))
    w = np.where(rng.random(m) < 0.2, rng.standard_normal(m), 0.0) / np.maximum(np.abs(X).max(axis=0), 1e-300)
    y = X @ w + draw(st.sampled_from([0.01, 0.3, 1.0])) * rng.standard_normal(n)
    noise = draw(st.sampled_from([None, None, 0.1, 0.01]))
    return X, y, noise


solvers = st.builds(
    dict,
    selection=st.sampled_from(SELECTIONS),
    initialisation=st.sampled_from(INITIALISATIONS),
    sweeps=st.booleans(),
    noise=st.sampled_from(["starts", "schedule"]),
)


def full(X, fit_intercept):
    """The dictionary with the intercept."""
    return np.column_stack([X, np.ones(len(X))]) if fit_intercept else X


# -- one target --------------------------------------------------------------------------------------------


@given(problem=problems(), solver=solvers, fit_intercept=st.booleans())
@many
def test_the_objective_never_falls_and_is_the_evidence(problem, solver, fit_intercept):
    X, y, noise = problem
    audit = Audit(full(X, fit_intercept))
    model = SparseBayesRegressor(
        fit_intercept=fit_intercept,
        noise_variance=noise,
        solver=Sequential(callback=audit, **solver),
        random_state=0,
    ).fit(X, y)
    assert len(model.history_) == audit.count
    assert model.status_.converged
    assert model.certificate_.converged, (model.status_, model.certificate_)
    check_certificate(model.certificate_)
    check_history(model, y)
    check_model(model, X, y, fit_intercept)


def check_history(model, y):
    """``history_`` in the user's units agrees with the certificate, and the best start won."""
    ends = {}
    for record in model.history_:
        assert record.objective >= ends.get(record.start, -np.inf) - tolerance(record.objective, len(y))
        ends[record.start] = record.objective
    if not ends:
        return
    assert model.certificate_.objective == pytest.approx(model.log_marginal_likelihood_, rel=1e-12, abs=1e-12)
    slack = 1e-6 * max(1.0, *map(abs, ends.values()))
    won = model.certificate_.start
    # The best start won, as far as they went; what comes after its last record may raise the objective by less than
    # tol, never lower it.  Where the guard holds the noise, the starts before it maximised over the noise as well.
    if model.status_ is not Status.NOISE_HELD:
        assert model.certificate_.objective >= ends[0] - slack
    if won in ends:
        assert -slack <= model.certificate_.objective - ends[won] <= 3 * model.tol + slack
    if len(model.alpha_):
        assert model.n_iter_ >= 1


def check_model(model, X, y, fit_intercept):
    """Every fitted attribute against dense linear algebra, in the user's units."""
    offset = y.mean() if fit_intercept else 0.0
    biased = len(model.alpha_) > len(model.relevance_)
    Phi = np.column_stack([X[:, model.relevance_], np.ones((len(y), int(biased)))])
    noise = model.noise_variance_
    value, error = brute_evidence(Phi, model.alpha_, noise, (y - offset)[:, None])
    assert abs(value - model.log_marginal_likelihood_) <= 1e-7 * max(1.0, abs(value), len(y)) + error
    if model.certificate_.condition_number > 1e9:
        return  # the weights themselves are not determined to more digits than these
    precision = Phi.T @ Phi / noise + np.diag(model.alpha_)
    scale = 1.0 / np.sqrt(np.diagonal(precision))
    covariance = np.linalg.inv(precision * np.outer(scale, scale)) * np.outer(scale, scale)
    np.testing.assert_allclose(
        model.sigma_ / np.outer(scale, scale), covariance / np.outer(scale, scale), rtol=1e-4, atol=1e-5
    )
    weights = covariance @ (Phi.T @ (y - offset)) / noise
    fitted, std = model.predict(X, return_std=True)
    sd = max(np.std(y), 1e-12)
    np.testing.assert_allclose(fitted / sd, (Phi @ weights + offset) / sd, atol=1e-5)
    spread = np.sqrt(noise + np.einsum("na,ab,nb->n", Phi, covariance, Phi))
    np.testing.assert_allclose(std / sd, spread / sd, rtol=1e-5, atol=1e-7)
    bias = weights[-1] if biased else 0.0
    np.testing.assert_allclose((model.intercept_ - offset - bias) / sd, 0.0, atol=1e-4)


@given(problem=problems(), seed=seeds)
@few
def test_the_objective_with_weights_is_that_of_repeated_rows(problem, seed):
    X, y, noise = problem
    weight = np.random.default_rng(seed).integers(1, 4, len(y))
    model = SparseBayesRegressor(fit_intercept=False, noise_variance=noise).fit(X, y, weight)
    rows = np.repeat(np.arange(len(y)), weight)
    Phi = X[np.ix_(rows, model.relevance_)]
    value, error = brute_evidence(Phi, model.alpha_, model.noise_variance_, y[rows, None])
    assert abs(value - model.log_marginal_likelihood_) <= 1e-7 * max(1.0, abs(value), len(rows)) + error


@given(problem=problems())
@few
def test_copies_are_never_both_in_the_model(problem):
    X, y, noise = problem
    double = np.column_stack([X, X])

    def look(record, active):
        kept = [i % X.shape[1] for i in active.indices]
        assert len(set(kept)) == len(kept)

    solver = Sequential(callback=look)
    SparseBayesRegressor(fit_intercept=False, noise_variance=noise, solver=solver).fit(double, y)


@given(problem=problems(), solver=solvers)
@settings(many, max_examples=100)
def test_no_single_move_gains_more_than_tol(problem, solver):
    """The certificate, by brute force: delete, add or change any one function of the final model."""
    X, y, noise = problem
    noise = noise or 0.1
    model = SparseBayesRegressor(
        fit_intercept=False, noise_variance=noise, solver=Sequential(**solver), random_state=0
    ).fit(X, y)
    kept, alpha, t = model.relevance_, model.alpha_, y[:, None]
    here, error = brute_evidence(X[:, kept], alpha, noise, t)
    allowed = model.tol + 2 * error + 1e-7 * max(1.0, abs(here))
    for j in range(len(kept)):
        left = np.delete(np.arange(len(kept)), j)
        assert brute_evidence(X[:, kept[left]], alpha[left], noise, t)[0] <= here + allowed
        for factor in (0.5, 0.9, 1.1, 2.0):
            changed = np.where(np.arange(len(kept)) == j, factor * alpha, alpha)
            assert brute_evidence(X[:, kept], changed, noise, t)[0] <= here + allowed
    for m in np.setdiff1d(np.arange(X.shape[1]), kept):
        for factor in (1e-2, 1.0, 1e2):
            grown = np.append(alpha, factor * np.sum(X[:, m] ** 2) / noise / len(y))
            assert brute_evidence(X[:, [*kept, m]], grown, noise, t)[0] <= here + allowed


def check_certificate(certificate):
    """Numbers, and numbers that agree with each other."""
    gains = [certificate.excluded_gain, certificate.kept_gain, certificate.noise_gain]
    assert np.all(np.isfinite(gains)), certificate
    assert min(gains) >= -1e-9, certificate
    assert certificate.converged == (max(gains) <= certificate.tol)
    assert not np.isnan(certificate.kept_log_alpha)
    assert np.all(np.isfinite([certificate.objective, certificate.noise_gradient, certificate.excluded_theta]))
    # What belongs in the model gains by being added.
    assert certificate.excluded_gain > 0 or certificate.excluded_theta <= 1e-9, certificate


class Ascent:
    """A callback that watches the objective alone."""

    def __init__(self, n):
        self.n, self.last = n, {}

    def __call__(self, record, active):
        before = self.last.get(record.start, -np.inf)
        assert record.objective >= before - tolerance(record.objective, self.n), (record, before)
        self.last[record.start] = record.objective


FUNCTIONS = {"sine": lambda x: np.sin(6 * x), "exponential": np.exp, "cubic": lambda x: x**3 - x}


@pytest.mark.parametrize("width", [0.1, 0.3, 1.0])
@pytest.mark.parametrize("n", [20, 50, 100])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_smooth_functions_without_noise(name, n, width):
    """The noise runs to its floor and the functions become collinear, on the tamest of data."""
    x = np.linspace(0.0, 1.0, n)[:, None]
    y = FUNCTIONS[name](x[:, 0])
    model = RVR(gamma=width**-2, max_iter=2000, solver=Sequential(callback=Ascent(n))).fit(x, y)
    assert model.status_.converged
    check_certificate(model.certificate_)
    assert model.certificate_.converged
    if n == 100 and width < 1.0:
        assert np.max(np.abs(model.predict(x) - y)) < 0.1 * np.std(y)


@pytest.mark.parametrize("noise", [0.09, 1e-2, 1e-3, 1e-4])
@pytest.mark.parametrize("n", [20, 40])
@pytest.mark.parametrize("seed", range(4))
def test_noise_that_is_fixed_too_low(noise, n, seed):
    """Targets with a noise of 0.3, and the model told that it is less."""
    rng = np.random.default_rng(seed)
    x = np.sort(rng.uniform(0.0, 1.0, n))[:, None]
    y = np.sin(6.0 * x[:, 0]) + 0.3 * rng.standard_normal(n)
    solver = Sequential(callback=Ascent(n))
    model = RVR(gamma=0.3**-2, noise_variance=noise, max_iter=2000, solver=solver).fit(x, y)
    assert model.status_.converged
    check_certificate(model.certificate_)
    assert model.certificate_.converged


@pytest.mark.parametrize("seed", [541, 639])
def test_convergence_is_not_claimed_in_vain(seed):
    """Where the noise moves last, what it makes relevant is still to be added."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((7, 49))
    y = X @ np.where(rng.random(49) < 0.2, rng.standard_normal(49), 0) / 2 + 0.01 * rng.standard_normal(7)
    solver = Sequential(selection="ordered", sweeps=False, noise="schedule")
    model = SparseBayesRegressor(fit_intercept=False, solver=solver).fit(X, y)
    assert model.certificate_.converged or not model.status_.converged


@pytest.mark.parametrize("selection", SELECTIONS)
@pytest.mark.parametrize("seed", [8, 29, 36, 59])
@pytest.mark.parametrize(("n", "m"), [(6, 29), (9, 30)])
def test_functions_in_the_span_of_the_model(selection, seed, n, m):
    """With as many functions as rows every other lies in their span, and may be relevant all the same."""
    rng = np.random.default_rng(seed)
    X, y = rng.standard_normal((n, m)), rng.standard_normal(n)
    solver = Sequential(selection=selection)
    model = SparseBayesRegressor(fit_intercept=False, noise_variance=0.01, solver=solver, random_state=0).fit(X, y)
    check_certificate(model.certificate_)
    kept, t = model.relevance_, y[:, None]
    here, _ = brute_evidence(X[:, kept], model.alpha_, 0.01, t)
    for i in np.setdiff1d(np.arange(m), kept):
        for alpha in 10.0 ** np.arange(-3, 4):
            grown, _ = brute_evidence(X[:, [*kept, i]], np.append(model.alpha_, alpha), 0.01, t)
            assert grown <= here + model.tol + 1e-6


@given(problem=problems(), solver=solvers)
@few
def test_a_seed_fixes_the_fit(problem, solver):
    X, y, noise = problem
    models = [
        SparseBayesRegressor(noise_variance=noise, solver=Sequential(**solver), random_state=5).fit(X, y)
        for _ in range(2)
    ]
    assert models[0].history_ == models[1].history_
    np.testing.assert_array_equal(models[0].coef_, models[1].coef_)


def test_the_seed_of_the_solver_wins():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((30, 40))
    y = X[:, :5].sum(axis=1) + rng.standard_normal(30)

    def moves(outer, inner):
        solver = Sequential(selection="random", random_state=inner)
        return SparseBayesRegressor(solver=solver, random_state=outer).fit(X, y).history_

    assert moves(1, 7) == moves(2, 7) != moves(1, 8)
    assert moves(3, None) == moves(3, None) != moves(4, None)


# -- several targets ---------------------------------------------------------------------------------------


def several(seed, n=30, m=12, targets=3):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, m))
    W = np.where(rng.random((m, targets)) < 0.3, rng.standard_normal((m, targets)), 0.0)
    return X, X @ W * [1.0, 100.0, 0.01][:targets] + rng.standard_normal((n, targets)) * [0.1, 30.0, 0.01][:targets]


@given(seed=seeds, fixed=st.booleans(), selection=st.sampled_from(SELECTIONS))
@few
def test_independent_targets_are_separate_fits(seed, fixed, selection):
    X, Y = several(seed)
    noise = [0.01, 900.0, 1e-4] if fixed else [None] * 3
    solver = Sequential(selection=selection)
    together = SparseBayesRegressor(noise_variance=noise if fixed else None, solver=solver, random_state=1).fit(X, Y)
    mean, std = together.predict(X, return_std=True)
    evidence = 0.0
    union = set()
    for k in range(3):
        alone = SparseBayesRegressor(noise_variance=noise[k], solver=solver, random_state=1).fit(X, Y[:, k])
        np.testing.assert_allclose(together.coef_[k], alone.coef_, rtol=1e-10, atol=1e-12)
        np.testing.assert_allclose(together.intercept_[k], alone.intercept_, rtol=1e-10)
        np.testing.assert_allclose(together.noise_variance_[k], alone.noise_variance_, rtol=1e-10)
        own = alone.predict(X, return_std=True)
        np.testing.assert_allclose(mean[:, k], own[0], rtol=1e-9, atol=1e-9)
        np.testing.assert_allclose(std[:, k], own[1], rtol=1e-9)
        assert together.status_[k] is alone.status_
        moves = [[(r.start, r.move, r.function) for r in model] for model in (together.history_[k], alone.history_)]
        assert moves[0] == moves[1]
        finite = np.isfinite(together.alpha_[k][: len(together.relevance_)])
        np.testing.assert_array_equal(together.relevance_[finite], alone.relevance_)
        evidence += alone.log_marginal_likelihood_
        union |= set(alone.relevance_)
    assert list(together.relevance_) == sorted(union)
    np.testing.assert_allclose(together.log_marginal_likelihood_, evidence, rtol=1e-10)


@given(seed=seeds, fixed=st.booleans())
@few
def test_shared_support_is_one_support(seed, fixed):
    X, Y = several(seed)
    noise = [0.01, 900.0, 1e-4] if fixed else None
    model = SparseBayesRegressor(shared_support=True, noise_variance=noise).fit(X, Y)
    assert model.status_.converged
    assert model.certificate_.converged
    assert np.all(np.isfinite(model.alpha_))
    assert model.alpha_.shape[0] == 3
    assert np.all(model.coef_[:, model.relevance_] != 0.0)
    assert np.all(np.delete(model.coef_, model.relevance_, axis=1) == 0.0)
    # In units of each target's standard deviation, or of its noise, there is one precision for all.
    unit = np.sqrt(model.noise_variance_)
    relative = model.alpha_ * unit[:, None] ** 2
    np.testing.assert_allclose(relative, np.broadcast_to(relative[0], relative.shape), rtol=1e-9)
    biased = model.alpha_.shape[1] > len(model.relevance_)
    Phi = np.column_stack([X[:, model.relevance_], np.ones((len(X), int(biased)))])
    values = [
        brute_evidence(Phi, model.alpha_[k], model.noise_variance_[k], (Y - Y.mean(axis=0))[:, [k]])[0]
        for k in range(3)
    ]
    np.testing.assert_allclose(model.log_marginal_likelihood_, sum(values), rtol=1e-8)


@given(seed=seeds)
@few
def test_shared_support_ascends(seed):
    X, Y = several(seed)
    audit = Audit(X)
    solver = Sequential(callback=audit)
    SparseBayesRegressor(shared_support=True, fit_intercept=False, solver=solver).fit(X, Y)
    assert audit.count > 0


def test_one_column_of_targets_is_one_target():
    X, Y = several(0)
    column, vector = SparseBayesRegressor().fit(X, Y[:, :1]), SparseBayesRegressor().fit(X, Y[:, 0])
    assert column.predict(X).shape == (30, 1)
    np.testing.assert_array_equal(column.predict(X)[:, 0], vector.predict(X))
    shared = SparseBayesRegressor(shared_support=True).fit(X, Y[:, :1])
    np.testing.assert_allclose(shared.predict(X), column.predict(X), rtol=1e-9)


def test_a_constant_target_among_others():
    X, Y = several(1)
    Y[:, 1] = 4.0
    for shared in (False, True):
        model = SparseBayesRegressor(shared_support=shared).fit(X, Y)
        mean, std = model.predict(X, return_std=True)
        assert np.all(np.isfinite(mean))
        assert np.all(np.isfinite(std) & (std > 0))
        np.testing.assert_allclose(mean[:, 1], 4.0)
        assert np.all(np.isfinite(model.noise_variance_))


# -- candidates made on the way ----------------------------------------------------------------------------


def nearby(centres, rng):
    """New centres near those kept."""
    return np.vstack([centres + 0.3 * rng.standard_normal(centres.shape), rng.uniform(-3.0, 3.0, (3, 1))])


def waves(seed, n=30):
    rng = np.random.default_rng(seed)
    X = np.sort(rng.uniform(-3.0, 3.0, (n, 1)), axis=0)
    return X, np.sin(2.0 * X[:, 0]) + 0.1 * rng.standard_normal(n)


@given(
    seed=seeds,
    noise_variance=st.sampled_from([None, 0.01]),
    noise=st.sampled_from(["schedule", "starts"]),
    fit_intercept=st.booleans(),
)
@few
def test_generated_candidates_keep_or_raise_the_evidence(seed, noise_variance, noise, fit_intercept):
    X, y = waves(seed)
    calls = []

    def generate(centres, rng):
        calls.append(centres.copy())
        return nearby(centres, rng)

    def fit(candidates):
        solver = Sequential(candidates=candidates, noise=noise, rounds=3)
        basis = RBF(1.0, centres=6)
        return SparseBayesRegressor(
            basis, fit_intercept=fit_intercept, noise_variance=noise_variance, solver=solver, random_state=0
        ).fit(X, y)

    plain, grown = fit(None), fit(generate)
    assert calls
    assert all(centres.shape[1] == 1 for centres in calls)
    assert grown.log_marginal_likelihood_ >= plain.log_marginal_likelihood_ - 1e-6
    assert grown.status_.converged
    assert grown.certificate_.converged
    # The kept functions are what predicts.
    kernel = np.exp(-((X - grown.relevance_vectors_.T) ** 2))
    np.testing.assert_allclose(grown.predict(X), kernel @ grown.coef_ + grown.intercept_, atol=1e-8)
    biased = len(grown.alpha_) > len(grown.relevance_)
    Phi = np.column_stack([kernel, np.ones((len(y), int(biased)))])
    offset = y.mean() if fit_intercept else 0.0
    value, error = brute_evidence(Phi, grown.alpha_, grown.noise_variance_, (y - offset)[:, None])
    assert abs(value - grown.log_marginal_likelihood_) <= 1e-7 * max(1.0, abs(value)) + error


def test_generated_candidates_are_used():
    """From one centre that explains little, the candidates find the rest."""
    X, y = waves(0, n=60)
    solver = Sequential(candidates=nearby, rounds=20)
    poor = SparseBayesRegressor(RBF(0.7, centres=[[2.9]])).fit(X, y)
    rich = SparseBayesRegressor(RBF(0.7, centres=[[2.9]]), solver=solver, random_state=0).fit(X, y)
    assert rich.log_marginal_likelihood_ > poor.log_marginal_likelihood_ + 10.0
    assert rich.score(X, y) > 0.9
    assert len(rich.relevance_vectors_) == len(rich.coef_) == len(rich.relevance_)


def test_generated_candidates_of_several_targets_need_one_support():
    rng = np.random.default_rng(0)
    x = np.linspace(-1.0, 1.0, 30)[:, None]
    Y = np.column_stack([np.sin(3.0 * x[:, 0]), x[:, 0] ** 2]) + 0.05 * rng.standard_normal((30, 2))
    solver = Sequential(candidates=lambda centres, rng: rng.uniform(-1.0, 1.0, (5, 1)))
    with pytest.raises(ValueError, match="shared_support=True"):
        RVR(gamma=4.0, solver=solver).fit(x, Y)
    assert RVR(gamma=4.0, solver=solver, shared_support=True, random_state=0).fit(x, Y).status_.converged


def test_no_candidates_are_no_failure():
    """A generator that has nothing to offer is done, not wrong."""
    X, y = waves(1)
    solver = Sequential(candidates=lambda centres, rng: np.empty((0, 1)))
    model = SparseBayesRegressor(RBF(1.0, centres=6), solver=solver).fit(X, y)
    plain = SparseBayesRegressor(RBF(1.0, centres=6)).fit(X, y)
    np.testing.assert_allclose(model.predict(X), plain.predict(X), atol=1e-9)


def test_candidates_that_are_there_already_change_nothing():
    X, y = waves(2)
    solver = Sequential(candidates=lambda centres, rng: centres)
    model = SparseBayesRegressor(RBF(1.0, centres=6), solver=solver, fit_intercept=False).fit(X, y)
    plain = SparseBayesRegressor(RBF(1.0, centres=6), fit_intercept=False).fit(X, y)
    np.testing.assert_allclose(model.predict(X), plain.predict(X), atol=1e-6)
    assert len(np.unique(model.relevance_vectors_)) == len(model.relevance_vectors_)


# -- stopping ----------------------------------------------------------------------------------------------


def stop_after(moves):
    """A callback that stops the fit after so many records."""
    seen = []

    def callback(record, active):
        seen.append(record)
        return len(seen) >= moves

    return callback


@pytest.mark.parametrize("stop", [1, 2, 5, 20, 60])
@pytest.mark.parametrize("make", [RVR, SparseBayesRegressor, RVC, SparseBayesClassifier])
def test_a_callback_stops_the_fit(make, stop):
    X, Y = several(3, n=40)
    y = Y[:, 0] if make in (RVR, SparseBayesRegressor) else (Y[:, 0] > 0).astype(int)
    model = make(solver=Sequential(callback=stop_after(stop)))
    total = len(make().fit(X, y).history_)
    if total < stop:
        pytest.skip(f"the fit takes {total} moves")
    with pytest.warns(ConvergenceWarning, match="Interrupted"):
        model.fit(X, y)
    assert model.status_ is Status.INTERRUPTED
    assert len(model.history_) == stop
    usable(model, X)


def usable(model, X):
    assert np.all(np.isfinite(model.coef_))
    assert np.isfinite(model.log_marginal_likelihood_)
    assert np.isfinite(model.certificate_.objective)
    if hasattr(model, "classes_"):
        assert np.all(np.isfinite(model.predict_proba(X)))
    else:
        mean, std = model.predict(X, return_std=True)
        assert np.all(np.isfinite(mean))
        assert np.all(std > 0)


def test_a_callback_that_says_nothing_changes_nothing():
    X, Y = several(4)
    plain = SparseBayesRegressor().fit(X, Y[:, 0])
    for answer in (None, False):
        solver = Sequential(callback=lambda record, active, answer=answer: answer)
        np.testing.assert_array_equal(SparseBayesRegressor(solver=solver).fit(X, Y[:, 0]).coef_, plain.coef_)


@pytest.mark.parametrize("max_iter", [1, 2, 3, 5, 8])
@pytest.mark.parametrize("make", [RVR, SparseBayesRegressor, RVC, SparseBayesClassifier])
def test_max_iter_warns(make, max_iter):
    X, Y = several(5, n=40)
    y = Y[:, 0] if make in (RVR, SparseBayesRegressor) else (Y[:, 0] > 0).astype(int)
    needed = make(solver=Sequential(noise="schedule")).fit(X, y).n_iter_
    if needed <= max_iter:
        pytest.skip(f"the fit takes {needed} moves")
    model = make(max_iter=max_iter)
    with pytest.warns(ConvergenceWarning, match="raise max_iter"):
        model.fit(X, y)
    assert model.status_ is Status.MAX_ITER
    assert model.n_iter_ >= max_iter
    usable(model, X)


def test_max_iter_of_the_solver_wins():
    X, Y = several(5)
    with pytest.warns(ConvergenceWarning, match="raise max_iter"):
        SparseBayesRegressor(max_iter=1000, solver=Sequential(max_iter=2)).fit(X, Y[:, 0])
    assert SparseBayesRegressor(max_iter=2, solver=Sequential(max_iter=1000)).fit(X, Y[:, 0]).status_.converged


def test_the_more_moves_the_higher():
    """Cut short at every length, the evidence is that of the history."""
    X, Y = several(6)
    y = Y[:, 0]
    solver = Sequential(noise="schedule")
    whole = SparseBayesRegressor(solver=solver).fit(X, y)
    for k, record in enumerate(whole.history_[:-1], start=1):
        cut = Sequential(noise="schedule", callback=stop_after(k))
        with pytest.warns(ConvergenceWarning):
            model = SparseBayesRegressor(solver=cut).fit(X, y)
        np.testing.assert_allclose(model.log_marginal_likelihood_, record.evidence, rtol=1e-9, atol=1e-9)


# -- classes -----------------------------------------------------------------------------------------------


def laplace_evidence(Phi, alpha, y):
    """Laplace's log evidence of a logistic model, by plain damped Newton from zero in extended precision."""
    Phi, alpha = np.asarray(Phi, dtype=Long), np.asarray(alpha, dtype=Long)
    sign = np.where(y > 0, Long(1), Long(-1))

    def height(w):
        return -np.sum(np.logaddexp(Long(0), -sign * (Phi @ w))) - 0.5 * np.sum(alpha * w**2)

    def factor(w):
        p = expit((Phi @ w).astype(Long))
        return cholesky((Phi * (p * (1 - p))[:, None]).T @ Phi + np.diag(alpha))

    def solve(lower, b):
        x = b.copy()
        for j in range(len(x)):
            x[j] /= lower[j, j]
            x[j + 1 :] -= lower[j + 1 :, j] * x[j]
        for j in reversed(range(len(x))):
            x[j] /= lower[j, j]
            x[:j] -= lower[j, :j] * x[j]
        return x

    w = np.zeros(len(alpha), dtype=Long)
    for _ in range(500):
        gradient = Phi.T @ (sign * expit(-sign * (Phi @ w))) - alpha * w
        step = solve(factor(w), gradient)
        if gradient @ step < 1e-24:
            break
        length = Long(1)
        while height(w + length * step) < height(w) and length > 1e-10:
            length /= 2
        w = w + length * step
    log_det = 2 * np.sum(np.log(np.diagonal(factor(w))))
    return float(height(w) + 0.5 * np.sum(np.log(alpha)) - 0.5 * log_det)


@st.composite
def labelled(draw):
    rng = np.random.default_rng(draw(seeds))
    n, m = draw(st.integers(6, 40)), draw(st.integers(1, 20))
    X = dictionary(rng, n, m, draw(st.sampled_from(KINDS)))
    output = X[:, 0] / np.abs(X[:, 0]).max() + draw(st.sampled_from([0.0, 0.3, 2.0])) * rng.standard_normal(n)
    y = (output > np.median(output)).astype(int)
    y[0], y[1] = 0, 1
    return X, y


@given(problem=labelled(), solver=solvers, fit_intercept=st.booleans())
@settings(many, max_examples=60)
def test_two_classes_ascend_to_a_laplace_evidence(problem, solver, fit_intercept):
    X, y = problem
    Phi = full(X, fit_intercept)
    count = 0
    last = -np.inf

    def look(record, active):
        nonlocal count, last
        assert record.objective >= last - tolerance(record.objective, len(y))
        last = record.objective
        count += 1
        if count <= 5 or count % 10 == 0:
            value = laplace_evidence(Phi[:, active.indices], active.alpha, y)
            assert abs(value - record.evidence) <= 1e-6 * max(1.0, abs(value)), (record, value)

    model = SparseBayesClassifier(
        fit_intercept=fit_intercept, solver=Sequential(callback=look, **solver), random_state=0
    ).fit(X, y)
    assert model.status_.converged
    assert model.certificate_.converged
    value = laplace_evidence(
        np.column_stack([X[:, model.relevance_], np.ones((len(y), model.alpha_.shape[1] - len(model.relevance_)))]),
        model.alpha_[0],
        y,
    )
    assert abs(value - model.log_marginal_likelihood_) <= 1e-6 * max(1.0, abs(value))


@given(problem=labelled(), multi_class=st.sampled_from(["softmax", "ovr"]), seed=seeds)
@few
def test_several_classes_ascend(problem, multi_class, seed):
    X, _ = problem
    X = X[:, :8]
    rng = np.random.default_rng(seed)
    y = np.digitize(X[:, 0] / np.abs(X[:, 0]).max() + 0.5 * rng.standard_normal(len(X)), [-0.3, 0.3])
    y[:3] = [0, 1, 2]
    model = SparseBayesClassifier(multi_class=multi_class).fit(X, y)
    histories = model.history_ if multi_class == "ovr" else [model.history_]
    for history in histories:
        objective = np.array([record.objective for record in history])
        assert np.all(np.diff(objective) >= -1e-9 * np.maximum(1.0, np.maximum(np.abs(objective[1:]), len(y))))
    statuses = model.status_ if multi_class == "ovr" else [model.status_]
    certificates = model.certificate_ if multi_class == "ovr" else [model.certificate_]
    assert all(status.converged for status in statuses)
    assert all(certificate.converged for certificate in certificates)
    np.testing.assert_allclose(model.predict_proba(X).sum(axis=1), 1.0, rtol=1e-9)
