"""``sparsebayes bench intervals``: what is measured of error bars."""

import json

import numpy as np
import pytest

from sparsebayes import RVR, datasets
from sparsebayes.benchmarks import intervals, varying
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


def test_the_gaussian_process_stands_beside():
    rows = list(run([Problem("sinc", ("regression",), draw)], [0], ["gp"], lambda text: None))
    assert [row.kind for row in rows] == ["calibrated", "posterior", "gp"]
    assert 0.85 <= rows[-1].coverage[-1] <= 1.0


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
    assert json.loads(intervals.as_json([], [{"met": True}]))["varying"] == [{"met": True}]
