"""The benchmarks: turns, figures, absent rivals, and the command."""

import json

import numpy as np
import pytest

from sparsebayes.benchmarks import run
from sparsebayes.benchmarks.contestants import Contestant, Nothing, Ours, SupportVectors, compete
from sparsebayes.benchmarks.measure import Check, Effort, Outcome, Row, interleave
from sparsebayes.benchmarks.problems import ripley, sinc2d, spikes
from sparsebayes.benchmarks.rows import ROWS
from support.commands import call


def test_contestants_take_turns():
    order = []
    timed = interleave({name: lambda name=name: order.append(name) for name in "ab"}, Effort(repeats=3))
    assert order == ["a", "b"] * 3
    assert [len(t.seconds) for t in timed.values()] == [3, 3]


def test_no_round_begins_after_its_time():
    timed = interleave({"a": lambda: None}, Effort(repeats=50, seconds=0.0))
    assert len(timed["a"].seconds) == 1


class Absent(Contestant):
    name = package = "no-such-package"

    def build(self, problem):
        raise AssertionError


class Failing(Contestant):
    name, package = "failing", "pytest"

    def build(self, problem):
        raise RuntimeError("it does not work here")


def test_rivals_that_cannot_run_are_reported():
    outcomes, notes = compete(sinc2d(60), [Ours(), Absent(), Failing(), Nothing()], Effort(repeats=1))
    assert [outcome.name for outcome in outcomes] == ["sparsebayes", "nothing"]
    assert "not installed" in notes[0]
    assert "it does not work here" in notes[1]


@pytest.mark.parametrize("problem", [sinc2d(80), ripley(80)])
def test_learning_beats_nothing(problem):
    outcomes, notes = compete(problem, [Ours(), SupportVectors(), Nothing()], Effort(repeats=1))
    assert not notes
    assert outcomes[0].error < outcomes[2].error
    assert outcomes[1].error < outcomes[2].error
    assert 0 < outcomes[0].vectors < outcomes[1].vectors
    assert outcomes[0].status == ("INDICATORS (certificate open)" if problem.classes else "CONVERGED")


def test_a_problem_without_kernel_is_linear():
    outcomes, _ = compete(spikes(60, 80, 4), [Ours()], Effort(repeats=1))
    assert outcomes[0].error < 0.05


@pytest.mark.parametrize(
    ("check", "passed"),
    [(Check("a", 1.0, 1.0), True), (Check("a", 1.1, 1.0), False), (Check("a", 1.1, 1.0, at_least=True), True)],
)
def test_figures_know_their_limits(check, passed):
    assert check.passed is passed
    assert not Check("a", np.nan, 1.0).passed


def test_results_are_readable_by_machines():
    row = Row("r", [Outcome("a", [3.0, 1.0, 2.0])], [Check("free", 2.0, np.inf)])
    results = {"machine": run.describe_machine(), "quick": True, "seconds": 1.0, "rows": [row], "left_out": []}
    read = json.loads(run.as_json(results))
    assert read["rows"][0]["outcomes"][0]["median"] == 2.0
    assert read["rows"][0]["checks"][0]["limit"] is None
    assert read["machine"]["packages"]["numpy"]


def test_the_command(tmp_path, monkeypatch):
    row = Row("a row", [Outcome("sparsebayes", [1.0], 0.1, 4, "CONVERGED")], [Check("time / SVM", 0.5, 1.0)])
    monkeypatch.setitem(ROWS, "import", lambda plan: [row])
    result = call("bench", "import", "--quick", "--out", str(tmp_path / "r.json"))
    assert result.exit_code == 0
    assert "a row" in result.stdout
    assert json.loads((tmp_path / "r.json").read_text())["rows"][0]["passed"]
    assert call("bench", "nonsense").exit_code == 2


def test_a_group_stands_for_its_rows():
    names = run.choose_rows(["variables"], quick=True)
    assert names == list(run.GROUPS["variables"])
    assert not set(names) & set(run.choose_rows(None, quick=False))
    with pytest.raises(ValueError, match="variables"):
        run.choose_rows(["no-such-row"], quick=True)


def test_rows_about_variables():
    pytest.importorskip("shap")  # imported here, where the warnings of what it imports are no errors
    results = run.run_rows(["variables-enumeration", "variables-shapley", "variables-time"], quick=True, repeats=1)
    checks = {check.what: check for row in results["rows"] for check in row.checks}
    for what in ("|inclusion - exact|, mean", "additivity", "|exact - all coalitions|", "time / sequential fit"):
        assert checks[what].passed, what
