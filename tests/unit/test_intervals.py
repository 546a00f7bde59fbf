"""``sparsebayes bench intervals``: what is measured of error bars."""

import json
import sys

import numpy as np
import pytest

from sparsebayes import RVC, RVR, datasets
from sparsebayes.benchmarks import chances, intervals, varying
from sparsebayes.benchmarks.intervals import Row, interval_problems, measure, run, summary
from sparsebayes.benchmarks.ledger.cases import Case, NotAtHandError, Problem


def draw(seed):
    X, y = datasets.make_sinc(60, noise=0.1, random_state=seed)
    new, observed = datasets.make_sinc(200, noise=0.1, spacing="random", random_state=seed + 100)
    return Case(X, y, new, observed, gamma=1 / 9)


def absent(seed):
    raise NotAtHandError("its rows are elsewhere")


def test_a_row_says_what_the_model_says():
    case = draw(0)
    own, posterior = measure("sinc", 0, case)
    model = RVR(gamma=case.gamma).fit(case.X, case.y)
    assert (own.kind, posterior.kind) == ("calibrated", "posterior")
    assert own.std_scale == pytest.approx(model.std_scale_)
    assert own.cost > 1.0
    for row in (own, posterior):
        assert row.loss == pytest.approx(-np.mean(model.log_density(case.X_test, case.y_test, row.kind)))
        low, high = model.predict_interval(case.X_test, 0.8, row.kind)
        assert row.coverage[1] == pytest.approx(np.mean((low <= case.y_test) & (case.y_test <= high)))


def test_widths_may_be_learned():
    case = draw(0)
    own = next(run([Problem("sinc", ("regression",), draw)], [0], [], lambda text: None, "evidence"))
    learned = RVR(gamma="evidence").fit(case.X, case.y)
    assert own.loss == pytest.approx(-np.mean(learned.log_density(case.X_test, case.y_test)))
    assert own.loss != measure("sinc", 0, case)[0].loss


def test_the_gaussian_process_stands_beside():
    rows = list(run([Problem("sinc", ("regression",), draw)], [0], ["gp"], lambda text: None))
    assert [row.kind for row in rows] == ["calibrated", "posterior", "gp"]
    assert 0.85 <= rows[-1].coverage[-1] <= 1.0


def test_conformal_intervals_stand_beside():
    case = draw(0)
    row = list(run([Problem("sinc", ("regression",), draw)], [0], ["conformal"], lambda text: None))[-1]
    model = RVR(gamma=case.gamma).fit(case.X, case.y).calibrate(case.X, case.y, folds=10)
    low, high = model.predict_interval(case.X_test, 0.8, "conformal")
    assert row.coverage[1] == pytest.approx(np.mean((low <= case.y_test) & (case.y_test <= high)))


@pytest.mark.parametrize("name", ["ngboost", "mapie"])
def test_rivals_that_are_not_installed_are_told_and_left_out(name, monkeypatch):
    monkeypatch.setitem(sys.modules, {"mapie": "mapie.regression"}.get(name, name), None)
    told = []
    rows = list(run([Problem("sinc", ("regression",), draw)], [0], [name], told.append))
    assert [row.kind for row in rows] == ["calibrated", "posterior"]
    assert "is not installed" in told[-1]


def test_what_is_absent_is_told_and_left_out():
    told = []
    assert list(run([Problem("far", ("regression",), absent)], [0, 1], [], told.append)) == []
    assert told[-1] == "far: its rows are elsewhere"


def test_means_are_over_draws_and_then_over_problems():
    rows = [
        Row("a", 0, "posterior", [0.4, 0.7, 0.9], 1.0),
        Row("a", 1, "posterior", [0.6, 0.9, 1.0], 3.0),
        Row("b", 0, "posterior", [0.2, 0.2, 0.2], 8.0),
    ]
    a, b, both = summary(rows)
    assert (a.seed, a.coverage, a.loss) == (2, pytest.approx([0.5, 0.8, 0.95]), 2.0)
    assert (b.seed, b.loss) == (1, 8.0)
    assert (both.problem, both.loss) == ("mean", 5.0)
    assert json.loads(intervals.as_json(rows))["means"][-1]["loss"] == 5.0
    assert intervals.table(rows).row_count == 3


def test_problems_are_chosen_by_name():
    assert [p.name for p in interval_problems(["boston"])] == ["boston"]
    assert len(interval_problems()) == 11
    case = interval_problems(["boston"])[0].draw(0)
    assert case.X.shape == (400, 13)
    assert len(case.y_test) == 106
    with pytest.raises(ValueError, match="no problem is called 'nowhere'"):
        interval_problems(["nowhere"])


def test_intervals_by_the_predicted_deviation(monkeypatch):
    rng = np.random.default_rng(0)
    x = rng.uniform(-1.0, 1.0, (400, 1))
    y = np.sin(3.0 * x[:, 0]) + (0.05 + 0.4 * x[:, 0] ** 2) * rng.standard_normal(400)
    case = Case(x[:200], y[:200], x[200:], y[200:])
    monkeypatch.setitem(varying.PROBLEMS, "growing", Problem("growing", ("regression",), lambda seed: case))
    fifths = varying.conditional(["growing"])
    assert [check.what[-10:] for check in fifths] == [f"{k} by width" for k in range(1, 6)]
    assert np.mean([check.value for check in fifths]) == pytest.approx(0.9, abs=0.05)


def test_noise_that_varies_has_rows_of_its_own(monkeypatch):
    """The parts are the estimators', few draws here."""
    (worst, middle), (share,) = varying.simulated(1), varying.constant(2)
    assert 0.0 < middle.value < worst.value
    assert middle.met
    assert share.value in (0.0, 0.5, 1.0)
    monkeypatch.setattr(varying, "PARTS", {"sinc": lambda: [share], "mcycle": lambda: absent(0)})
    told = []
    assert list(varying.run(told.append)) == [share]
    assert told[-1] == "mcycle: its rows are elsewhere"
    assert varying.table([share, varying.Check("far", 3.0, 0.0, 1.0)]).row_count == 2
    assert not varying.Check("far", 3.0, 0.0, 1.0).met
    assert json.loads(intervals.as_json([], checks=[{"met": True}]))["checks"] == [{"met": True}]


def test_probabilities_that_come_true_have_no_calibration_error():
    stated = np.repeat([0.5, 0.75, 1.0], 40)
    hit = np.concatenate([np.arange(40) % 2 == 0, np.arange(40) % 4 > 0, np.ones(40, dtype=bool)])
    assert chances.calibration_error(stated, hit) == pytest.approx(0.0, abs=1e-12)
    assert chances.calibration_error(stated, ~hit) == pytest.approx((0.0 + 0.5 + 1.0) / 3.0)
    assert chances.calibration_error(np.array([0.9]), np.array([False])) == pytest.approx(0.9)


def test_classes_are_judged_by_their_probabilities():
    def drawn(seed):
        X, y = datasets.make_ripley(60, random_state=seed)
        new, observed = datasets.make_ripley(200, random_state=seed + 50)
        return Case(X, y, new, observed, gamma=4.0, classes=True)

    tables = [Problem("ripley", ("classification",), drawn), Problem("far", (), absent)]
    stated = list(chances.run(tables, [0, 1], lambda text: None))
    assert [one.kind for one in stated] == ["moderated", "mode"] * 2
    p, hit, true = [], [], []
    for seed in (0, 1):
        case = drawn(seed)
        model = RVC(gamma=4.0).fit(case.X, case.y)
        both = model.predict_proba(case.X_test)
        p.append(both.max(axis=1))
        hit.append(model.predict(case.X_test) == case.y_test)
        true.append(both[np.arange(200), np.searchsorted(model.classes_, case.y_test)])
    row, _, *means = chances.summary(stated)
    assert (row.problem, row.draws, row.rows, row.kind) == ("ripley", 2, 400, "moderated")
    assert row.loss == pytest.approx(-np.mean(np.log(np.concatenate(true))))
    assert row.error == pytest.approx(chances.calibration_error(np.concatenate(p), np.concatenate(hit)))
    assert [mean.error for mean in means] == [pytest.approx(one.error) for one in chances.summary(stated)[:2]]
    assert chances.table(chances.summary(stated)).row_count == 4
    assert [p.name for p in chances.problems(["titanic"])] == ["titanic"]
    with pytest.raises(ValueError, match="no problem is called 'energy'"):
        chances.problems(["energy"])


def test_intervals_of_counts_hold():
    few, most = chances.counts(2)
    assert 0.78 <= few.value <= most.value <= 1.0
    assert most.value >= 0.93
