"""Kernels on many rows that do not compress: a part of the rows first, then all of them, among stated candidates."""

import signal

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone

from sparsebayes import RVR, SparseBayesRegressor
from sparsebayes.basis import RBF
from sparsebayes.basis.kernels import scattered_rows
from sparsebayes.benchmarks.large import Fit, growth
from sparsebayes.design import DenseDesign, compress_kernel
from sparsebayes.estimators import dictionary
from sparsebayes.estimators.progress import Progress
from sparsebayes.inference import Sequential, Status
from sparsebayes.inference.models import problem as problems
from sparsebayes.inference.models.problem import GaussianProblem

LIMIT = 120


@pytest.fixture
def few(monkeypatch):
    """What thousands of rows are otherwise, a hundred are here."""
    monkeypatch.setattr(dictionary, "_CANDIDATES", LIMIT)
    monkeypatch.setattr(dictionary, "_FEWEST_CANDIDATES", 40)
    monkeypatch.setattr(dictionary, "_HIGH_RANK", 30)


def problem(n=600, d=6, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d))
    return X, np.sin(X[:, 0]) + 0.5 * X[:, 1] * X[:, 2] + 0.2 * rng.standard_normal(n)


def test_a_part_of_the_functions_are_candidates_and_it_is_said(few):
    X, y = problem()
    model = RVR().fit(X, y)
    assert model.certificate_.left_aside == len(X) - LIMIT
    assert model.certificate_.converged
    assert "480 further functions of the dictionary were no candidates" in str(model.summary())
    assert set(model.relevance_) <= set(scattered_rows(X, LIMIT))
    assert_array_equal(model.relevance_vectors_, X[model.relevance_])


def test_all_rows_are_learned_from(few):
    X, y = problem(2000)
    unseen, truth = problem(500, seed=1)
    part = scattered_rows(X[:1500], LIMIT)
    all_rows, fewer = RVR().fit(X[:1500], y[:1500]), RVR().fit(X[part], y[part])
    assert fewer.certificate_.left_aside == 0
    assert np.mean((all_rows.predict(unseen) - truth) ** 2) < 0.8 * np.mean((fewer.predict(unseen) - truth) ** 2)


def test_the_certificate_is_that_of_the_candidates_on_all_rows(few):
    X, y = problem()
    model = RVR(gamma=0.1).fit(X, y)
    centres = X[scattered_rows(X, LIMIT)]
    given = SparseBayesRegressor(RBF(0.1**-0.5, centres=centres)).fit(X, y)
    assert given.certificate_.left_aside == 0
    # The search on all rows from many places may end elsewhere, and hardly higher.
    assert model.log_marginal_likelihood_ > given.log_marginal_likelihood_ - 0.01 * abs(given.log_marginal_likelihood_)
    assert_allclose(model.certificate_.log_evidence, model.log_marginal_likelihood_)


@pytest.mark.parametrize("width", [0.3, 3.0, 30.0], ids=["apart", "alike", "nearly dependent"])
def test_few_rows_have_the_inner_products_of_all(width):
    rng = np.random.default_rng(0)
    X, weights = rng.standard_normal((500, 2)), rng.uniform(0.5, 2.0, 500)
    targets = rng.standard_normal((500, 2))
    values = np.column_stack([RBF(width).bind(X[:60]).evaluate(X), np.ones(500)])
    every = np.ones(61, dtype=bool)
    whole = GaussianProblem(DenseDesign(values), targets, weights, every)
    whole.sample = GaussianProblem(DenseDesign(values[:60]), targets[:60], weights[:60], every)
    small = whole.on_fewer_rows()
    assert small.design.shape[0] <= 61
    assert small.mean_square == pytest.approx(whole.mean_square)
    scale = np.sqrt(whole.sqnorms)
    assert_allclose(small.sqnorms, whole.sqnorms, rtol=1e-12)
    assert_allclose(small.projection / scale[:, None], whole.projection / scale[:, None], atol=1e-11 * scale.max())
    # What those before it leave of a function: from inner products a part of 1e-3 of its norm is rounding here.
    left, expected = (np.abs(np.diagonal(np.linalg.qr(p.columns(np.arange(61)), mode="r"))) for p in (small, whole))
    shows = expected[: len(left)] > 1e-5 * scale[: len(left)]
    assert_allclose(left[shows], expected[: len(left)][shows], rtol=1e-3)
    assert np.all(expected[len(left) :] < 1e-5 * scale[len(left) :])


def test_the_order_of_the_rows_does_not_matter(few):
    X, y = problem()
    order = np.random.default_rng(3).permutation(len(X))
    one, other = RVR().fit(X, y), RVR().fit(X[order], y[order])
    assert_array_equal(np.sort(order[other.relevance_]), one.relevance_)
    assert_allclose(other.predict(X), one.predict(X), atol=1e-6 * y.std())


def test_weights_are_copies(few):
    X, y = problem(300)
    twice = np.arange(300) % 3 == 0
    copies = np.concatenate([np.arange(300), np.flatnonzero(twice)])
    one, other = RVR(gamma=0.2).fit(X, y, 1.0 + twice), RVR(gamma=0.2).fit(X[copies], y[copies])
    assert_allclose(other.predict(X), one.predict(X), atol=1e-5 * y.std())


@pytest.mark.parametrize(
    "settings",
    [{"compression": False}, {"solver": Sequential(exchange="converged")}, {"likelihood": "student-t"}],
    ids=["compression", "exchange", "likelihood"],
)
def test_what_needs_all_functions_has_them(few, settings):
    X, y = problem(150)
    assert RVR(**settings).fit(X, y).certificate_.left_aside == 0


def test_smooth_kernels_are_compressed_as_before(few):
    rng = np.random.default_rng(0)
    X = rng.uniform(-1.0, 1.0, (800, 1))
    model = RVR(gamma=1.0).fit(X, np.sin(3.0 * X[:, 0]) + 0.1 * rng.standard_normal(800))
    assert model.certificate_.left_aside == 0
    assert model.certificate_.converged


def test_a_fixed_noise_stays(few):
    X, y = problem()
    model = RVR(noise_variance=0.04).fit(X, y)
    assert model.noise_variance_ == pytest.approx(0.04)
    assert model.certificate_.left_aside > 0


def test_within_a_start_the_objective_never_falls(few):
    X, y = problem()
    history = RVR().fit(X, y).history_
    for start in {record.start for record in history}:
        objective = [record.objective for record in history if record.start == start]
        assert np.all(np.diff(objective) > -1e-9 * len(X))


def test_what_is_shown_moves_while_a_part_of_the_rows_is_searched(few, capsys):
    X, y = problem()
    RVR(verbose=2).fit(X, y)
    assert capsys.readouterr().out.count("start -1") > 5


def test_the_share_that_is_done_grows_to_the_certificate(few, monkeypatch):
    shares, stages = [], []
    monkeypatch.setattr(problems, "_TILE_ROWS", 50)
    monkeypatch.setattr(Progress, "reached", lambda self, what, share: (stages.append(what), shares.append(share)))
    X, y = problem()
    RVR().fit(X, y)
    assert np.all(np.diff(shares) >= 0.0)
    assert 0.0 < shares[0] < shares[-1] < 1.0
    assert list(dict.fromkeys(stages)) == [
        "a pass over all rows",
        "the search on a part of the rows",
        "the search",
        "the certificate",
    ]
    assert stages.count("a pass over all rows") >= 12


def test_the_share_that_is_done_is_printed(few, capsys):
    X, y = problem()
    RVR(verbose=1).fit(X, y)
    lines = [line for line in capsys.readouterr().out.splitlines() if "% done" in line]
    assert len(lines) >= 4
    assert lines[-1].startswith("the certificate, about 89% done")
    assert all("s left" in line for line in lines)


def test_several_targets_share_what_is_done(few, monkeypatch):
    shares = []
    monkeypatch.setattr(Progress, "reached", lambda self, what, share: shares.append(share))
    X, y = problem(300)
    RVR().fit(X, np.column_stack([y, -y]))
    assert np.all(np.diff(shares) >= 0.0)
    assert min(shares) < 0.1 < 0.9 < max(shares)


def test_rows_are_scattered_whatever_their_order():
    X = np.random.default_rng(0).standard_normal((500, 3))
    X[100:200] = X[:100]
    X[0, 0], X[100, 0] = 0.0, -0.0
    order = np.random.default_rng(1).permutation(500)
    one, other = scattered_rows(X, 50), order[scattered_rows(X[order], 50)]
    assert_array_equal(np.unique(X[one], axis=0), np.unique(X[other], axis=0))
    assert len(np.unique(X[scattered_rows(X, 500)], axis=0)) == len(scattered_rows(X, 500)) == 400
    assert np.ptp(np.bincount(scattered_rows(X, 200) // 100, minlength=5)[[0, 2, 3, 4]]) < 40


def test_growth_is_the_slope_of_the_logarithms():
    fits = [Fit("t", n, 1, n**1.2 / 1e3, 0.0, 0.0, 0.0, 1, "CONVERGED", 0) for n in (1000, 3000, 9000)]
    assert growth(fits)["t"] == pytest.approx(1.2)
    assert growth(fits[:1]) == {}


def test_pivots_follow_from_the_centres_and_not_from_their_order():
    X = np.random.default_rng(0).uniform(-10.0, 10.0, (9000, 2))
    order = np.random.default_rng(1).permutation(len(X))
    one, other = (compress_kernel(RBF(4.0).bind(rows), rows, 1e-5, 1500) for rows in (X, X[order]))
    assert_array_equal(order[other.landmarks], one.landmarks)


@pytest.mark.parametrize("effort", ["fast", "default"])
@pytest.mark.filterwarnings("ignore:Interrupted")
def test_a_search_that_is_broken_off_on_a_part_of_the_rows_has_learned_its_noise(few, monkeypatch, effort):
    def press(self, what, share):
        if what == "the search on a part of the rows" and signal.getsignal(signal.SIGINT) is not before:
            signal.raise_signal(signal.SIGINT)

    X, y = problem()
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        monkeypatch.setattr(Progress, "reached", press)
        model = RVR(effort=effort)
        with pytest.raises(KeyboardInterrupt):
            model.fit(X, y)
    finally:
        signal.signal(signal.SIGINT, before)
    assert model.status_ is Status.INTERRUPTED
    assert model.certificate_.noise_gain < 0.1
    assert model.noise_variance_ > 0.02


@pytest.mark.parametrize("noise_variance", [None, 0.04])
def test_sums_of_many_rows_count_for_fewer_observations_at_first(monkeypatch, noise_variance):
    """What is found is settled and climbed on from at their true number; where noise is known, no kick follows."""
    rng = np.random.default_rng(0)
    X = rng.uniform(-1.0, 1.0, (100_000, 3))
    y = np.sin(3.0 * X[:, 0]) + X[:, 1] * X[:, 2] + 0.2 * rng.standard_normal(len(X))
    chunks = list(zip(np.array_split(X, 5), np.array_split(y, 5), strict=True))
    model = SparseBayesRegressor(RBF(0.7, centres=80), noise_variance=noise_variance)
    whole, stages = clone(model).fit(chunks), []
    monkeypatch.setattr(dictionary, "_FEWEST_CANDIDATES", 80)
    monkeypatch.setattr(Progress, "reached", lambda self, what, share: stages.append(what))
    first = clone(model).fit(chunks)
    assert "the search on a part of the rows" in stages
    assert {record.start for record in first.history_} == {0}
    assert first.status_.converged
    assert first.certificate_.left_aside == 0
    assert first.log_marginal_likelihood_ > whole.log_marginal_likelihood_ - 1.0
    assert_allclose(first.predict(X), whole.predict(X), atol=0.01)


def test_sums_of_few_rows_are_searched_as_they_are(monkeypatch):
    monkeypatch.setattr(dictionary, "_FEWEST_CANDIDATES", 80)
    stages = []
    monkeypatch.setattr(Progress, "reached", lambda self, what, share: stages.append(what))
    X, y = problem(600)
    SparseBayesRegressor(RBF(2.0, centres=80)).fit([(X, y)])
    assert "the search on a part of the rows" not in stages
