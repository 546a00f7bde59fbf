"""``sparsebayes bench classes``: what is measured of classifiers."""

import json

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss
from sklearn.svm import SVC

from sparsebayes import RVC, datasets
from sparsebayes.benchmarks import classes
from sparsebayes.benchmarks.classes import class_problems, run, summary
from sparsebayes.benchmarks.ledger.cases import Case, NotAtHandError, Problem
from sparsebayes.benchmarks.ledger.measure import Row
from sparsebayes.benchmarks.small import small_problems


def draw(seed):
    X, y = datasets.make_ripley(80, random_state=seed)
    new, labels = datasets.make_ripley(200, random_state=seed + 100)
    return Case(X, y, new, labels, gamma=4.0, classes=True)


def absent(seed):
    raise NotAtHandError("its rows are elsewhere")


def test_rows_say_what_the_models_say():
    case = draw(0)
    ours, svc, logistic = run([Problem("ripley", ("classification",), draw)], [0], lambda text: None)
    model = RVC(gamma=4.0).fit(case.X, case.y)
    assert ours.error == pytest.approx(1.0 - model.score(case.X_test, case.y_test))
    assert ours.loss == pytest.approx(log_loss(case.y_test, model.predict_proba(case.X_test)))
    assert ours.evidence == pytest.approx(model.log_marginal_likelihood_)
    machine = SVC(gamma=4.0).fit(case.X, case.y)
    assert svc.error == pytest.approx(1.0 - machine.score(case.X_test, case.y_test))
    assert svc.kept == len(machine.support_)
    assert 0.0 < svc.loss < 1.0
    plain = LogisticRegression().fit(case.X, case.y)
    assert logistic.loss == pytest.approx(log_loss(case.y_test, plain.predict_proba(case.X_test)), rel=1e-3)
    assert all(row.seconds > 0.0 for row in (ours, svc, logistic))


def test_options_reach_the_estimator():
    ours, *_ = run([Problem("ripley", ("classification",), draw)], [0], lambda text: None, max_iter=1)
    assert ours.status == "MAX_ITER"


def test_what_is_absent_is_told_and_left_out():
    told = []
    assert list(run([Problem("far", ("classification",), absent)], [0, 1], told.append)) == []
    assert told[-1] == "far: its rows are elsewhere"


def test_means_are_over_draws():
    rows = [
        Row("a", 0, evidence=-3.0, error=0.1, loss=0.2, kept=4, seconds=1.0, status="CONVERGED"),
        Row("a", 1, evidence=-5.0, error=0.3, loss=0.4, kept=6, seconds=3.0, status="CONVERGED"),
        Row("a", 0, "svc", error=0.2, loss=0.5, kept=50, seconds=0.5),
    ]
    ours, svc = summary(rows)
    assert (ours.seed, ours.evidence, ours.kept, ours.seconds, ours.status) == (2, -4.0, 5.0, 2.0, "CONVERGED")
    assert (ours.error, ours.loss) == (pytest.approx(0.2), pytest.approx(0.3))
    assert svc.evidence is None
    shown = classes.table(rows)
    assert shown.row_count == 2
    assert list(shown.columns[8].cells) == ["4.0", ""]
    assert np.isclose(json.loads(classes.as_json(rows))["means"][0]["error"], 0.2)


def test_a_class_of_one_row_has_no_log_loss_of_platt():
    ours, svc, logistic = run(class_problems(["alone"]), [0], lambda text: None)
    assert np.isfinite(ours.loss)
    assert svc.loss is None
    assert svc.error < 0.2
    shown = classes.table([ours, svc, logistic])
    assert list(shown.columns[5].cells)[1] == ""


@pytest.mark.parametrize("problem", small_problems(), ids=lambda problem: problem.name)
def test_small_tables_are_drawn_anew_with_every_seed(problem):
    first, again, other = problem.draw(0), problem.draw(0), problem.draw(1)
    np.testing.assert_array_equal(first.X, again.X)
    assert not np.array_equal(first.X, other.X)
    np.testing.assert_allclose(first.X.mean(axis=0), 0.0, atol=1e-9)
    assert len(np.unique(first.y)) == len(np.unique(first.y_test)) > 1


def test_problems_are_chosen_by_name():
    assert [problem.name for problem in class_problems(["image", "banana"])] == ["banana", "image"]
    assert all({"classification", "small", "odd"} & set(problem.kinds) for problem in class_problems())
    with pytest.raises(ValueError, match="no problem is called 'nowhere'"):
        class_problems(["nowhere"])
