"""The ledger: rows, limits, absent data, records, comparisons and the page."""

import json
import sys
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.stats import multivariate_normal, norm
from sklearn import metrics

from sparsebayes import RVR, SparseBayesRegressor, datasets
from sparsebayes.basis import RBF
from sparsebayes.benchmarks.ledger import KINDS, PROBLEMS, Case, NotAtHandError, Problem, Record, Row, measure
from sparsebayes.benchmarks.ledger import choose_problems as choose
from sparsebayes.benchmarks.ledger.ablation import Variation, variations
from sparsebayes.benchmarks.ledger.apart import measure_apart
from sparsebayes.benchmarks.ledger.compare import changes, conclusions
from sparsebayes.benchmarks.ledger.measure import attempt, log_loss, negative_log_density
from sparsebayes.benchmarks.ledger.page import read_records, render
from sparsebayes.benchmarks.ledger.problems import read_seeds
from sparsebayes.benchmarks.ledger.record import commit, new_record
from sparsebayes.benchmarks.ledger.rivals import measure_rival, settled_evidence
from sparsebayes.cli.ledger import read_option
from sparsebayes.inference.models import gaussian
from sparsebayes.inference.search import climb, starts
from support.commands import call, fail


def draw(seed):
    X, y = datasets.make_sinc(40, noise=0.1, random_state=seed)
    X_test, y_test, clean = datasets.make_sinc(50, noise=0.1, random_state=100 + seed, return_clean=True)
    return Case(X, y, X_test, y_test, gamma=0.1, clean=clean)


SMALL = Problem("small", ("papers",), draw)


def test_a_row_says_what_the_fit_says():
    case, row = draw(3), measure(SMALL, 3)
    model = RVR(gamma=0.1).fit(case.X, case.y)
    mean, std = model.predict(case.X_test, return_std=True)
    assert (row.problem, row.seed, row.state, row.status) == ("small", 3, "measured", "CONVERGED")
    assert row.evidence == pytest.approx(model.log_marginal_likelihood_)
    assert row.error == pytest.approx(np.sqrt(np.mean((mean - case.clean) ** 2)))
    assert row.loss == pytest.approx(-np.mean(norm.logpdf(case.y_test, mean, std)))
    assert (row.kept, row.moves, row.certified) == (len(model.relevance_), model.n_iter_, True)
    assert row.noise_variance == pytest.approx(model.noise_variance_)
    assert 0.0 <= row.gain <= 1e-3
    assert row.seconds > 0.0


def test_options_reach_the_estimator_and_its_solver():
    plain = measure(SMALL, 0)
    assert measure(SMALL, 0, gamma=5.0).evidence != plain.evidence
    assert measure(SMALL, 0, noise_variance=0.04).noise_variance == 0.04
    assert measure(SMALL, 0, solver__effort="fast").moves != plain.moves
    with pytest.raises(ValueError, match="RVR has no parameter 'nonsense'"):
        measure(SMALL, 0, nonsense=1)


def test_classes_are_measured_by_their_probabilities():
    row = measure("ripley", 0)
    assert 0.05 < row.error < 0.15
    assert 0.15 < row.loss < 0.35
    assert row.noise_variance is None


def test_losses():
    p = np.array([[0.7, 0.2, 0.1], [0.1, 0.8, 0.1]])
    labels = np.array(["a", "b", "c"])
    assert log_loss(p, labels, np.array(["a", "c"])) == pytest.approx(metrics.log_loss(["a", "c"], p, labels=labels))
    assert log_loss(p, labels, np.array(["a", "unknown"])) == pytest.approx(-0.5 * np.log(0.7 * 1e-15))
    assert negative_log_density(np.zeros(2), np.ones(2), np.array([1.0, -2.0])) == pytest.approx(
        -np.mean(norm.logpdf([1.0, -2.0]))
    )


@pytest.mark.parametrize("name", sorted(name for name, p in PROBLEMS.items() if p.kinds == ("papers",)))
def test_papers_problems_can_be_drawn_anywhere(name, monkeypatch):
    monkeypatch.delenv("SPARSEBAYES_DATA", raising=False)
    first, again, other = PROBLEMS[name].draw(0), PROBLEMS[name].draw(0), PROBLEMS[name].draw(1)
    assert np.array_equal(first.X, again.X)
    assert np.array_equal(first.y, again.y)
    if name not in ("blocks", "blocks_mixed"):  # these have no noise, and so nothing random
        assert not np.array_equal(first.y, other.y)
    assert len(first.X) == len(first.y)
    assert len(first.X_test) == len(first.y_test)


def test_absent_data_are_reported(tmp_path, monkeypatch):
    monkeypatch.setenv("SPARSEBAYES_DATA", str(tmp_path))
    for name in ("yacht", "banana", "digits"):
        with pytest.raises(NotAtHandError, match="SPARSEBAYES_DATA"):
            measure(name, 0)
    row = measure_apart("yacht", 0)
    assert (row.state, row.evidence) == ("not at hand", None)
    assert "yacht.csv" in row.note
    result = call("bench", "ledger", "--only", "yacht", "--seeds", "0")
    assert result.exit_code == 0
    assert "not at hand" in result.stdout


def test_tables_are_shuffled_cut_and_standardised(tmp_path, monkeypatch):
    rng = np.random.default_rng(0)
    table = np.column_stack([rng.standard_normal((308, 2)), np.ones(308), rng.standard_normal(308)])
    (tmp_path / "uci20").mkdir()
    np.savetxt(tmp_path / "uci20" / "yacht.csv", table, delimiter=",", header="a,b,c,y", comments="")
    monkeypatch.setenv("SPARSEBAYES_DATA", str(tmp_path))
    case = PROBLEMS["yacht"].draw(1)
    assert case.X.shape == (250, 3)
    assert case.X_test.shape == (58, 3)
    assert case.gamma == 1.0 / 3.0
    assert np.allclose(case.X.mean(axis=0), 0.0)
    assert np.allclose(case.X.std(axis=0), [1.0, 1.0, 0.0])
    both = np.concatenate([case.y, case.y_test])
    assert both.std() == pytest.approx(1.0)
    order = np.random.default_rng(1).permutation(308)
    y = table[order, -1]
    assert np.allclose(both, (y - y.mean()) / y.std())


def test_a_fit_over_its_limit_is_ended():
    row = measure_apart("spikes_large", 0, limit=1.0)  # takes many seconds anywhere
    assert (row.state, row.seconds) == ("over limit", None)


def test_a_row_from_another_process_is_the_same():
    here, there = measure("sinc", 1, gamma=0.2), measure_apart("sinc", 1, options={"gamma": 0.2})
    assert replace(there, seconds=None) == replace(here, seconds=None)


def test_failures_are_rows():
    row = measure_apart("sinc", 0, options={"nonsense": 1})
    assert row.state == "failed"
    assert "nonsense" in row.note

    def fails():
        raise RuntimeError("it does not work here")

    assert attempt(SMALL, 2, "gp", fails) == Row("small", 2, "gp", "failed", note="RuntimeError: it does not work here")


@pytest.mark.parametrize("name", ["svr", "gp"])
def test_rivals_are_measured(name):
    row, case = measure_rival(name, SMALL, 0), draw(0)
    assert row.method == name
    assert row.error < 0.5 * np.std(case.clean)
    if name == "gp":
        assert row.loss < 0.0
        assert row.noise_variance == pytest.approx(0.01, rel=0.6)


class OtherMachine:
    """Stands for the package fastrvm: two functions, at precisions and a noise that are not the best."""

    def __init__(self, gamma):
        self.gamma = gamma

    def fit(self, X, y):
        self.relevance_, self.alpha_, self.beta_, self.n_iter_ = np.array([10, 20]), np.ones((1, 2)), 1.0, 5
        return self

    def predict(self, X, return_std):
        return np.zeros(len(X)), np.ones(len(X))


def test_the_other_machine_is_judged_by_its_functions(monkeypatch):
    monkeypatch.setitem(sys.modules, "fastrvm", SimpleNamespace(RVR=OtherMachine))
    row, case = measure_rival("fastrvm", SMALL, 0), draw(0)
    basis = RBF(0.1**-0.5, case.X[[10, 20]])
    ours = SparseBayesRegressor(basis).fit(case.X, case.y)
    assert row.evidence == pytest.approx(ours.log_marginal_likelihood_, abs=0.01)
    assert row.error == pytest.approx(np.sqrt(np.mean(case.clean**2)))
    assert row.loss == pytest.approx(-np.mean(norm.logpdf(case.y_test)))
    assert (row.kept, row.moves, row.noise_variance) == (2, 5, 1.0)


def test_a_machine_that_is_not_installed_says_so(monkeypatch):
    monkeypatch.setitem(sys.modules, "fastrvm", None)
    row = measure_rival("fastrvm", SMALL, 0)
    assert (row.state, row.note) == ("not applicable", "the package fastrvm is not installed")


def test_rivals_say_what_they_are_not_for():
    row = measure_rival("gp", PROBLEMS["n50_m100"], 0)
    assert row.state == "not applicable"
    assert row.note


def test_the_evidence_of_a_gaussian_process_is_that_of_the_targets_as_they_are():
    def scaled(seed):
        case = draw(seed)
        return replace(case, y=100.0 * case.y, y_test=100.0 * case.y_test, clean=100.0 * case.clean)

    plain, large = measure_rival("gp", SMALL, 0), measure_rival("gp", Problem("large", ("papers",), scaled), 0)
    assert large.evidence == pytest.approx(plain.evidence - 40 * np.log(100.0))
    assert large.loss == pytest.approx(plain.loss + np.log(100.0))


def test_settled_evidence_is_the_maximum():
    rng = np.random.default_rng(0)
    values, t = rng.standard_normal((30, 3)), rng.standard_normal(30)
    t += values[:, 0] - 0.5 * values[:, 1]

    def negative(logs):
        covariance = np.exp(logs[-1]) * np.eye(30) + (values / np.exp(logs[:-1])) @ values.T
        return -multivariate_normal.logpdf(t, np.zeros(30), covariance)

    brute = minimize(negative, np.zeros(4), method="L-BFGS-B", bounds=[(-30.0, 30.0)] * 4)
    assert settled_evidence(values, t, np.ones(3), 1.0) == pytest.approx(-brute.fun, abs=1e-5)


def row(problem="sinc", seed=0, **figures):
    defaults = {"evidence": 10.0, "error": 0.2, "loss": 0.5, "kept": 7, "certified": True, "seconds": 2.0}
    return Row(problem, seed, **{**defaults, **figures})


def test_records_come_back_as_they_were(tmp_path):
    rows = [row(), row("yacht", state="not at hand", evidence=None), row("pima", noise_variance=0.1)]
    record = new_record(rows, {"seeds": [0], "limit": 5.0}, "a note")
    record.save(tmp_path / "r.json")
    assert Record.load(tmp_path / "r.json") == record
    assert record.version in record.title


def test_records_hold_no_numbers_that_json_does_not_have(tmp_path):
    Record([row(loss=np.inf, evidence=np.nan)]).save(tmp_path / "r.json")

    def refuse(name):
        raise AssertionError(name)

    content = json.loads((tmp_path / "r.json").read_text(), parse_constant=refuse)
    assert "loss" not in content["rows"][0]
    assert Record.load(tmp_path / "r.json").rows[0].evidence is None


@pytest.mark.parametrize("text", ["[]", "{}", '{"format": 2, "rows": []}', "nonsense", '{"format": 1, "rows": [{}]}'])
def test_other_files_are_refused(text, tmp_path):
    (tmp_path / "r.json").write_text(text)
    with pytest.raises(ValueError, match="no record of the ledger"):
        Record.load(tmp_path / "r.json")


def test_a_commit_is_named_only_where_this_file_is_in_it():
    assert commit() == "" or len(commit().removesuffix("+")) == 10


def test_the_worst_comes_first():
    before = [row(seed=seed) for seed in range(4)]
    after = [
        row(seed=0, evidence=12.0, error=0.1),
        row(seed=1, evidence=7.0, certified=False),
        row(seed=2, state="over limit", evidence=None, error=None, seconds=None, certified=None),
        row(seed=3, seconds=8.0),
        row(seed=9),
    ]
    found = changes(before, after)
    assert [change.after.seed for change in found] == [2, 1, 3, 0]
    assert [change.evidence for change in found] == [None, -3.0, 0.0, 2.0]
    assert found[3].error == 0.5
    assert found[2].seconds == 4.0
    text = "\n".join(conclusions(found))
    assert "1 had figures and have none now" in text
    assert "-3.00 at worst" in text
    assert "lower by more than 1 nat in 1" in text
    assert f"seconds: x {4.0 ** (1 / 3):.3f}" in text
    assert "certificates lost: sinc 1" in text


def test_the_page_shows_records_in_order_of_time(tmp_path):
    old = [row(seed=0), row(seed=1, evidence=20.0), row("yacht", state="not at hand", evidence=None)]
    new = [row(seed=0, evidence=13.0), row(seed=1, state="over limit", evidence=None), row("yacht")]
    Record(new, version="0.2", when="2031-01-01").save(tmp_path / "a.json")
    Record(old, version="0.1", when="2030-01-01", note="the first").save(tmp_path / "b.json")
    page = render(read_records(tmp_path))
    assert "| problem | b | a |" in page
    assert "15.0 / 0.2 / 0.500 / 7 / 2 of 2 / 2 |" in page
    assert "13.0 (+3.0) / 0.2 / 0.500 / 7 / 1 of 1 / 2; seed 1 over limit |" in page
    assert "| yacht | not at hand | 10.0 / " in page
    assert "the first" in page
    with pytest.raises(ValueError, match="no record"):
        read_records(tmp_path / "empty")


def test_the_command(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    first = call("bench", "ledger", "--only", "sinc", "--seeds", "0", "--record", "first.json", "--note", "a note")
    assert first.exit_code == 0, first.output
    assert "CONVERGED" in first.stdout
    assert Record.load(tmp_path / "first.json").note == "a note"
    second = call("bench", "ledger", "--only", "sinc", "--seeds", "0-1", "--against", "first.json")
    assert "1 rows in both" in second.stdout
    assert "+0.00 nats on average" in second.stdout
    again = call("bench", "ledger", "--from", "first.json", "--against", "first.json")
    assert "certificates lost: none" in again.stdout
    page = call("bench", "ledger", "--page", "ledger.md", "--records", ".")
    assert (page.exit_code, page.stdout) == (0, "")
    assert "| sinc | " in (tmp_path / "ledger.md").read_text()


def test_a_record_is_gone_on_with(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    arguments = ("bench", "ledger", "--only", "sinc", "--seeds", "0-1", "--record", "r.json", "--resume")
    settings = {"limit": 120.0, "options": {}, "seconds": "processor time of the fit, BLAS on one thread"}
    begun = new_record([row(seed=0, evidence=-1234.5)], settings)
    begun.save(tmp_path / "r.json")
    assert call(*arguments).exit_code == 0
    kept, measured = Record.load(tmp_path / "r.json").rows
    assert kept == begun.rows[0]
    assert measured == replace(measure("sinc", 1), seconds=measured.seconds)
    assert "is of" in fail(*arguments, "--options", "gamma=0.5")
    assert "--record" in fail("bench", "ledger", "--only", "sinc", "--resume")


def test_wrong_requests_are_refused_before_anything_is_measured(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert "no problem is called 'nope'" in fail("bench", "ledger", "--only", "nope")
    assert "no kind is called 'nope'" in fail("bench", "ledger", "--kind", "nope")
    assert "is of kind regression" in fail("bench", "ledger", "--kind", "regression", "--only", "sinc")
    assert "no rival is called 'nope'" in fail("bench", "ledger", "--only", "sinc", "--rival", "nope")
    assert "NAME=VALUE" in fail("bench", "ledger", "--only", "sinc", "--options", "gamma")
    assert "such as 0-4" in fail("bench", "ledger", "--only", "sinc", "--seeds", "x")
    assert "give one of them" in fail("bench", "ledger", "--from", "a.json", "--record", "b.json")
    assert "absent.json" in fail("bench", "ledger", "--against", "absent.json")


def test_options_are_read():
    assert read_option("gamma=0.5") == ("gamma", 0.5)
    assert read_option("solver=mackay") == ("solver", "mackay")
    assert read_option("compression=False") == ("compression", False)
    assert read_seeds("0-2,7") == [0, 1, 2, 7]
    assert read_seeds("3") == [3]


def test_problems_are_chosen():
    assert {problem.name for problem in choose()} == set(PROBLEMS)
    assert [problem.name for problem in choose(only=["sinc"])] == ["sinc"]
    assert "banana" in {problem.name for problem in choose(["papers"])}
    assert all({problem.name for problem in choose([kind])} for kind in KINDS)


def test_the_page_of_the_documentation_is_that_of_the_records():
    root = Path(__file__).parents[2]
    made = render(read_records(root / "benchmarks" / "ledger"))
    assert (root / "docs" / "ledger.md").read_text(encoding="utf-8") == made


# -- ablation ------------------------------------------------------------------------------------------------


def test_a_variation_changes_the_search_that_is_measured_and_no_other():
    plain = measure_apart("boston", 0)
    variation = next(v for v in variations() if v.name == "no kicks")
    varied = measure_apart("boston", 0, variation=variation.as_dict())
    assert varied.evidence < plain.evidence - 1.0
    assert starts.KICKS
    assert measure_apart("boston", 0).evidence == plain.evidence


def test_every_constant_of_the_search_is_varied_to_both_sides():
    named = [(v.module, v.attribute) for v in variations() if "instead of" in v.name]
    assert {("search.climb", "_OVERLAP"), ("fit.folds", "VOICE"), ("fit.run", "LITTLE_MORE")} <= set(named)
    assert all(named.count(pair) == 2 for pair in named)


@pytest.mark.parametrize(
    ("module", "attribute", "value", "read"),
    [
        ("search.climb", "_OVERLAP", 0.25, lambda: climb.climb.__kwdefaults__["overlap"]),
        ("models.gaussian", "_SWEEPS", 20, lambda: gaussian._RULES.sweeps),
    ],
)
def test_a_constant_is_changed_where_it_was_read_at_import(module, attribute, value, read):
    """Else the page would say of every default, and of all that is compiled, that it decides nothing."""
    before = read()
    Variation("", module, attribute, value).apply()
    try:
        assert read() == value
    finally:
        Variation("", module, attribute, before).apply()
    assert read() == before


def test_the_command_makes_the_page_of_ablations(tmp_path, monkeypatch):
    monkeypatch.setattr("sparsebayes.cli.ledger.variations", lambda: variations()[:1])
    page = tmp_path / "ablation.md"
    call("bench", "ledger", "--only", "sinc", "--seeds", "0", "--ablate", page)
    assert "| no kicks | " in page.read_text()
    assert f"at commit\n{commit() or 'unknown'}:" in page.read_text()
