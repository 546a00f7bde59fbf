"""Fits that take long: progress, Ctrl-C, checkpoints; and what large dictionaries may be held in."""

import json
import logging
import signal
import subprocess
import sys
import time
from contextlib import contextmanager

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import cross_val_score

from sparsebayes import RVC, RVR, ARDRegression, Sequential, SparseBayesRegressor, datasets, load, save
from sparsebayes.basis import RBF
from sparsebayes.design import CompressedDesign, DenseDesign
from sparsebayes.estimators import progress
from sparsebayes.estimators.dictionary import Dictionary
from sparsebayes.estimators.progress import Progress
from sparsebayes.inference import Record, Status
from sparsebayes.inference.fit.interrupt import asked_to_stop

WIDTH = 2.5


def sinc(n=900):
    return datasets.make_sinc2d(n, noise=0.1, random_state=0)


def stop_after(count):
    seen = []

    def callback(record, active):
        seen.append(record)
        return len(seen) >= count

    return Sequential(callback=callback)


# -- Ctrl-C ------------------------------------------------------------------------------------------------

INTERRUPTED_FIT = """
import signal, sys, warnings
import numpy as np
from sparsebayes import RVR, Sequential, datasets

warnings.simplefilter("ignore")
signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell's background jobs ignore it
X, y = datasets.make_sinc2d(400, noise=0.1, random_state=0)

def callback(record, active):
    if record.n_active == 3:
        print("searching", flush=True)
        sys.stdin.readline()

model = RVR(gamma=0.16, solver=Sequential(batch=1, callback=callback))
try:
    model.fit(X, y)
except KeyboardInterrupt:
    print("raised", end=" ")
print(model.status_.name, len(model.relevance_), np.isfinite(model.predict(X)).all(), flush=True)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="signals of other systems")
def test_ctrl_c_leaves_the_last_complete_state():
    process = subprocess.Popen(
        [sys.executable, "-c", INTERRUPTED_FIT], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    try:
        assert process.stdout.readline().strip() == "searching"
        process.send_signal(signal.SIGINT)
        time.sleep(0.2)  # the signal reaches the process while it waits for the line
        out, _ = process.communicate("\n", timeout=60)
    finally:
        process.kill()
    raised, status, kept, finite = out.split()
    assert (raised, status, finite) == ("raised", "INTERRUPTED", "True")
    assert 1 <= int(kept) <= 5
    assert process.returncode == 0


@pytest.mark.parametrize("records", [1, 10, 40])
def test_an_interrupt_ends_the_learning_of_widths(records):
    X, y = datasets.make_sinc(60, noise=0.1, random_state=0)
    seen = []

    def callback(record, active):
        seen.append(record)
        return len(seen) == records

    with pytest.warns(ConvergenceWarning, match="Interrupted"):
        model = RVR(gamma="evidence", solver=Sequential(callback=callback)).fit(X, y)
    assert (model.status_.name, len(seen)) == ("INTERRUPTED", records)
    assert np.isfinite(model.predict(X)).all()


@contextmanager
def handled_by(handler):
    """Where the tests run in the background, a shell has set the signal to be ignored."""
    before = signal.signal(signal.SIGINT, handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def test_a_signal_between_two_searches_is_not_lost():
    with handled_by(signal.default_int_handler):
        with asked_to_stop() as outer:
            signal.raise_signal(signal.SIGINT)
            with asked_to_stop() as inner:
                assert inner()
            assert outer()
            with pytest.raises(KeyboardInterrupt):
                signal.raise_signal(signal.SIGINT)
        assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def signal_at(record_number):
    """A solver during whose search the user presses Ctrl-C."""
    seen = []

    def callback(record, active):
        seen.append(record)
        if len(seen) == record_number:
            signal.raise_signal(signal.SIGINT)

    return Sequential(callback=callback), seen


@pytest.mark.parametrize("make", [RVR, SparseBayesRegressor, RVC], ids=["RVR", "columns", "RVC"])
@pytest.mark.filterwarnings("ignore:Interrupted")
def test_an_interrupted_fit_stores_the_best_so_far_and_raises(make):
    X, y = datasets.make_sinc2d(60, noise=0.1, random_state=0)
    solver, _ = signal_at(1)
    model = make(solver=solver)
    labels = X[:, 0] > 1.0 if isinstance(model, RVC) else y
    with handled_by(signal.default_int_handler), pytest.raises(KeyboardInterrupt):
        model.fit(X, labels)
    assert model.status_ is Status.INTERRUPTED
    assert model.predict(X).shape == y.shape


@pytest.mark.filterwarnings("ignore:Interrupted")
def test_an_interrupt_ends_the_loop_around_fits():
    """A cross-validation does not go on with the next fold."""
    X, y = datasets.make_sinc(60, noise=0.1, random_state=0)
    solver, seen = signal_at(3)
    model = RVR(gamma=1.0, solver=solver)
    with handled_by(signal.default_int_handler), pytest.raises(KeyboardInterrupt):
        cross_val_score(model, X, y)
    assert len(seen) == 3


@pytest.mark.filterwarnings("ignore:Interrupted")
def test_where_one_fit_calls_another_the_outer_one_raises():
    X, y = datasets.make_sinc2d(60, noise=0.1, random_state=0)
    solver, _ = signal_at(1)
    model = ARDRegression(solver=solver)
    with handled_by(signal.default_int_handler), pytest.raises(KeyboardInterrupt):
        model.fit(X, y)
    assert model.predict(X).shape == y.shape


def test_verbose_names_the_start_that_is_kept(capsys):
    X, y = datasets.make_sinc(60, noise=0.1, random_state=0)
    model = RVR(gamma=1.0, verbose=1).fit(X, y)
    last = capsys.readouterr().out.splitlines()[-1]
    assert last == (
        f"kept: start {model.certificate_.start}  functions {len(model.relevance_):4d}  "
        f"objective {model.certificate_.objective:.4f}"
    )


def test_a_handler_of_the_callers_own_stays_in_place():
    def own(number, frame):
        raise AssertionError

    with handled_by(own):
        RVR(gamma=1.0).fit(*datasets.make_sinc(30, random_state=0))
        assert signal.getsignal(signal.SIGINT) is own


# -- checkpoints -------------------------------------------------------------------------------------------


def resumed(tmp_path, part):
    """A regression in one go, and one that was broken off and went on from its checkpoint."""
    X, y = sinc()
    path = tmp_path / "search.json"
    whole = RVR(gamma=1 / WIDTH**2).fit(X, y)
    made = round(part * len(whole.history_))
    model = RVR(gamma=1 / WIDTH**2, checkpoint=str(path), solver=stop_after(made))
    with pytest.warns(ConvergenceWarning):
        assert model.fit(X, y).status_ is Status.INTERRUPTED
    assert path.exists()
    model.set_params(solver__callback=None).fit(X, y)
    assert not path.exists()
    return whole, model


@pytest.mark.parametrize("part", [0.05, 0.5, 0.9])
def test_a_regression_goes_on_to_the_same_answer(tmp_path, part):
    whole, model = resumed(tmp_path, part)
    assert_array_equal(model.relevance_, whole.relevance_)
    assert model.log_marginal_likelihood_ == pytest.approx(whole.log_marginal_likelihood_, rel=1e-10)


@pytest.mark.parametrize("part", [0.05, 0.5, 0.9])
def test_a_regression_goes_on_by_the_same_moves(tmp_path, part):
    whole, model = resumed(tmp_path, part)
    assert [r.move for r in model.history_] == [r.move for r in whole.history_]


@pytest.mark.parametrize("multi_class", ["softmax", "ovr"])
def test_a_classification_goes_on_to_the_same_answer(tmp_path, multi_class):
    X, y = datasets.load("iris", return_X_y=True)
    X, y = X[::3], y[::3]
    settings = {"gamma": 0.5, "multi_class": multi_class, "shared_support": False, "evidence": "laplace"}
    whole = RVC(**settings).fit(X, y)
    model = RVC(solver=stop_after(3), checkpoint=str(tmp_path / "search.json"), **settings)
    with pytest.warns(ConvergenceWarning):
        model.fit(X, y)
    model.set_params(solver__callback=None).fit(X, y)
    assert_array_equal(model.relevance_, whole.relevance_)
    assert_allclose(model.coef_, whole.coef_, rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("likelihood", ["outliers", "student-t"])
@pytest.mark.parametrize("seed", range(3))
def test_a_checkpoint_changes_nothing_where_rows_are_weighed(tmp_path, likelihood, seed):
    """Every search under other weights began at the end of the one before it, up to 7 nats below, without a word."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((80, 3))
    y = np.sin(2.0 * X[:, 0]) + 0.3 * X[:, 2] + 0.2 * rng.standard_normal(80)
    y[:8] += 8.0 * rng.standard_normal(8)
    path, settings = tmp_path / "search.json", {"gamma": 0.5, "likelihood": likelihood}
    whole = RVR(**settings).fit(X, y)
    kept = RVR(**settings, checkpoint=str(path)).fit(X, y)
    assert kept.log_marginal_likelihood_ == pytest.approx(whole.log_marginal_likelihood_, rel=1e-10)
    broken = RVR(**settings, checkpoint=str(path), solver=stop_after(4))
    with pytest.warns(ConvergenceWarning):
        assert broken.fit(X, y).status_ is Status.INTERRUPTED
    resumed = broken.set_params(solver__callback=None).fit(X, y)
    assert resumed.log_marginal_likelihood_ == pytest.approx(whole.log_marginal_likelihood_, rel=1e-10)
    assert_array_equal(resumed.relevance_, whole.relevance_)


def test_a_search_that_ran_out_of_moves_goes_on_with_more(tmp_path):
    X, y = sinc(400)
    path = tmp_path / "search.json"
    model = RVR(gamma=1 / WIDTH**2, checkpoint=str(path), max_iter=20)
    with pytest.warns(ConvergenceWarning):
        assert model.fit(X, y).status_ is Status.MAX_ITER
    model.set_params(max_iter=10_000).fit(X, y)
    assert_array_equal(model.relevance_, RVR(gamma=1 / WIDTH**2).fit(X, y).relevance_)


def test_a_checkpoint_of_another_fit_is_refused(tmp_path):
    X, y = sinc(400)
    path = tmp_path / "search.json"
    model = RVR(gamma=1 / WIDTH**2, checkpoint=str(path), solver=stop_after(5))
    with pytest.warns(ConvergenceWarning):
        model.fit(X, y)
    with pytest.raises(ValueError, match="other data"):
        model.fit(X, y + 1)
    with pytest.raises(ValueError, match="other settings"):
        model.set_params(gamma=1.0).fit(X, y)
    path.write_text("{}")
    with pytest.raises(ValueError, match="remove the file"):
        model.fit(X, y)


def test_a_checkpoint_is_plain_data(tmp_path):
    X, y = sinc(400)
    path = tmp_path / "search.json"
    with pytest.warns(ConvergenceWarning):
        RVR(gamma=1 / WIDTH**2, checkpoint=str(path), solver=stop_after(5)).fit(X, y)
    assert json.loads(path.read_text())["format"] == "sparsebayes-checkpoint"


# -- progress ----------------------------------------------------------------------------------------------


def record():
    return Record(0, "add", 3, 1, -5.0, -5.0, 4, 0.1)


def test_short_work_says_nothing(caplog, capfd):
    with caplog.at_level(logging.INFO, "sparsebayes"), Progress() as shown:
        shown.observe(record())
    assert not caplog.records
    assert capfd.readouterr() == ("", "")


def test_long_work_is_logged_where_there_is_no_terminal(caplog, monkeypatch):
    monkeypatch.setattr(progress, "_PATIENCE", 0.01)
    with caplog.at_level(logging.INFO, "sparsebayes"), Progress() as shown:
        shown.observe(record())
        deadline = time.monotonic() + 10
        while not caplog.records and time.monotonic() < deadline:
            time.sleep(0.01)
    assert "4 functions" in caplog.text


def test_what_is_left_is_estimated_from_the_share_that_is_done(caplog, monkeypatch):
    monkeypatch.setattr(progress, "_PATIENCE", 0.01)
    with caplog.at_level(logging.INFO, "sparsebayes"), Progress() as shown:
        shown.observe(record())
        shown.reached("the search", 0.25)
        deadline = time.monotonic() + 10
        while not caplog.records and time.monotonic() < deadline:
            time.sleep(0.01)
    assert "the search, about 25% done" in caplog.text
    assert "s left" in caplog.text


def test_nothing_is_shown_on_request(caplog, monkeypatch):
    monkeypatch.setattr(progress, "_PATIENCE", 0.0)
    with caplog.at_level(logging.INFO, "sparsebayes"), Progress(-1) as shown:
        shown.observe(record())
        time.sleep(0.05)
    assert not caplog.records


# -- storage -----------------------------------------------------------------------------------------------


def test_compression_is_off_with_one_argument():
    X, y = sinc(800)
    basis = RBF(WIDTH)
    assert isinstance(Dictionary.build(X, basis, fit_intercept=True).stand_in, CompressedDesign)
    assert Dictionary.build(X, basis, fit_intercept=True, compress=False).stand_in is None
    on, off = (RVR(gamma=1 / WIDTH**2, compression=c).fit(X, y) for c in ("auto", False))
    assert abs(on.log_marginal_likelihood_ - off.log_marginal_likelihood_) <= 0.01 * len(on.relevance_)


def test_compression_and_storage_are_parameters_like_any_other(tmp_path):
    X, y = sinc(100)
    model = RVR(gamma=0.16, compression=False, storage="float32")
    assert clone(model).get_params() == model.get_params()
    save(model.fit(X, y), tmp_path / "a.model")
    assert load(tmp_path / "a.model").compression is False
    for name, value in (("compression", True), ("compression", "on"), ("storage", "float16")):
        with pytest.raises(ValueError, match=name):
            RVR(**{name: value}).fit(X, y)


def test_single_precision_keeps_the_support():
    X, y, _ = datasets.make_spikes(120, 60, 5, noise=0.01, random_state=0)
    double, single = (SparseBayesRegressor(storage=s).fit(X, y) for s in ("float64", "float32"))
    assert_array_equal(double.relevance_, single.relevance_)
    assert_allclose(double.coef_, single.coef_, atol=1e-6)
    held = Dictionary.build(X.astype(np.float32), None, fit_intercept=False, single=True).design
    assert isinstance(held, DenseDesign)
    assert held._Phi.dtype == np.float32
    assert held.columns([0]).dtype == np.float64


def test_single_precision_of_a_kernel_is_close():
    X, y = sinc(300)
    settings = {"gamma": 1 / WIDTH**2, "compression": False, "noise_variance": 0.01}
    double, single = (RVR(storage=s, **settings).fit(X, y) for s in ("float64", "float32"))
    assert_allclose(double.predict(X), single.predict(X), atol=5e-3)


# -- prediction --------------------------------------------------------------------------------------------


def test_many_rows_are_predicted_as_few_are():
    X, y = sinc(200)
    Z = np.random.default_rng(0).uniform(-10, 10, (20_001, 2))
    model = RVR(gamma=1 / WIDTH**2).fit(X, y)
    mean, std = model.predict(Z, return_std=True)
    few = model.predict(Z[12_345:12_350], return_std=True)
    assert_allclose(mean[12_345:12_350], few[0], rtol=1e-12)
    assert_allclose(std[12_345:12_350], few[1], rtol=1e-12)
    classifier = RVC(gamma=1.0).fit(X, y > 0.2)
    assert_allclose(classifier.predict_proba(Z)[-3:], classifier.predict_proba(Z[-3:]), rtol=1e-12)


def test_a_noise_that_is_held_is_held_with_a_checkpoint_too(tmp_path):
    """What is kept of the search whose noise collapsed is nothing to go on from."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((60, 200))
    y = X[:, 0] + 0.5 * rng.standard_normal(60)
    plain = SparseBayesRegressor().fit(X, y)
    kept = SparseBayesRegressor(checkpoint=str(tmp_path / "search.json")).fit(X, y)
    assert plain.status_ is kept.status_ is Status.NOISE_HELD
    assert_array_equal(kept.relevance_, plain.relevance_)
    assert_allclose(kept.noise_variance_, plain.noise_variance_, rtol=1e-9)
