import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from commands import call, fail, problem, succeed, write, write_problem

import sparsebayes.tables.learning as learning
from sparsebayes import RVR
from sparsebayes.basis import RBF
from sparsebayes.cli import commands, demonstration
from sparsebayes.export import load
from sparsebayes.inference import ParameterStatus
from sparsebayes.tables import TableModel, read_table

PROGRAM = [sys.executable, "-c", "from sparsebayes.cli.main import run; run()"]


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def data():
    return write_problem()


class TestDemo:
    def test_prints_draws_and_reports(self):
        pytest.importorskip("matplotlib")
        output = succeed("demo")
        for words in ("of 100 training rows", "95 %", "noise", "log evidence", "Converged", "by fold"):
            assert words in output
        assert Path("demo/sinc.png").read_bytes().startswith(b"\x89PNG")
        assert {path.name for path in Path("demo").iterdir()} == {"sinc.png", "sinc.html"}

    def test_without_matplotlib_says_how_to_get_the_picture(self, monkeypatch):
        for name in [name for name in sys.modules if name.partition(".")[0] == "matplotlib"]:
            monkeypatch.delitem(sys.modules, name)
        monkeypatch.setitem(sys.modules, "matplotlib", None)
        monkeypatch.setattr(demonstration, "_boston", lambda: ({}, {}))  # tested above, and the slower half
        assert 'pip install "sparsebayes[plot]"' in succeed("demo", "--out", "some/where").splitlines()[-1]
        assert [path.name for path in Path("some/where").iterdir()] == ["sinc.html"]


class TestFitAndPredict:
    @pytest.mark.parametrize("kernel", ["rbf", "linear", "poly", "laplacian", "columns", "both"])
    def test_every_kernel(self, kernel, data):
        output = succeed("fit", "data.csv", "-t", "y", "--kernel", kernel, "--no-report")
        assert "40 rows (32 to learn from, 8 to test)" in output
        model = TableModel.load("data.model")
        assert model.encoder.names == ["a", "b [m]", "größe"]
        succeed("predict", "data.model", "data.csv", "--out", "out.csv")
        table = read_table(Path("out.csv"))
        assert table.names == ["mean", "std", "lower", "upper"]
        mean, std = model.estimator.predict(model.encode(read_table(Path("data.csv"))).X, return_std=True)
        np.testing.assert_array_equal(table.numbers("mean"), mean)
        np.testing.assert_array_equal(table.numbers("std"), std)

    def test_standardises_by_the_training_rows(self, data):
        X, y = data
        succeed("fit", "data.csv", "-t", "y", "--kernel", "rbf", "--no-report")
        model = TableModel.load("data.model")
        study = learning.reopen(model, read_table(Path("data.csv")))
        train = X[study.train]
        scaled = (train - train.mean(axis=0)) / train.std(axis=0)
        expected = RVR(gamma="evidence").fit(scaled, y[study.train])
        np.testing.assert_allclose(model.estimator.coef_, expected.coef_, rtol=1e-6)
        assert len(study.test) == 8

    def test_learns_the_width_from_some_of_many_rows(self, data, monkeypatch):
        monkeypatch.setattr(learning, "_ROWS_FOR_WIDTH", 20)
        output = succeed("fit", "data.csv", "-t", "y", "--kernel", "rbf", "--no-report")
        assert "learned from 20 of the 32 training rows" in " ".join(output.split())
        est = load("data.model")
        assert (type(est.kernel), est.gamma) == (RBF, "scale")
        assert est.kernel.width != pytest.approx(np.sqrt(3.0))  # what gamma="scale" would have been

    def test_another_solver_takes_the_width_that_was_learned(self, data):
        succeed("fit", "data.csv", "-t", "y", "--kernel", "rbf", "--no-report")
        learned = load("data.model").kernel_
        succeed("fit", "data.csv", "-t", "y", "--kernel", "rbf", "--solver", "mackay", "--no-report")
        est = load("data.model")
        assert (est.solver, est.kernel.width) == ("mackay", pytest.approx(learned.width, rel=1e-6))

    def test_widths_of_the_inputs_are_told(self, data):
        output = succeed("fit", "data.csv", "-t", "y", "--gamma", "ard", "--effort", "fast")
        est = load("data.model")
        assert (est.gamma, est.effort) == ("ard", "fast")
        assert list(est.kernel_status_.values())[2] is ParameterStatus.OFF  # the third input is not in the target
        assert "widths by input" in output
        assert "inputs without effect" in output
        page = Path("data.html").read_text(encoding="utf-8")
        again = succeed("report", "data.model", "data.csv")
        for told in (output, page, again):
            assert "widths by input" in told
            assert "gain by learning" in told
            assert "nats of evidence" in told

    @pytest.mark.parametrize(
        ("arguments", "words"),
        [
            (["--effort", "much"], "--effort 'much': expected one of"),
            (["--effort", "fast", "--solver", "mackay"], "--effort fast has no meaning with --solver mackay"),
            (["--gamma", "ards"], "--gamma 'ards'"),
        ],
    )
    def test_an_effort_that_is_none_is_refused(self, data, arguments, words):
        assert words in fail("fit", "data.csv", "-t", "y", *arguments)

    def test_writes_a_report_beside_the_model(self, data):
        output = succeed("fit", "data.csv", "--target", "y", "--out", "my.model")
        assert "my.html" in output
        assert Path("my.html").read_text(encoding="utf-8").startswith("<!DOCTYPE html>")
        assert {path.name for path in Path().iterdir()} == {"data.csv", "my.model", "my.html"}

    def test_json_says_it_all(self, data):
        content = json.loads(succeed("fit", "data.csv", "-t", "y", "--kernel", "rbf", "--json"))
        assert content["task"] == "regression"
        assert content["rows"] == {"train": 32, "test": 8}
        assert content["test_rows"]["low"] <= content["test_rows"]["rmse"] <= content["test_rows"]["high"]
        assert content["converged"] is True
        assert content["candidates"] == {"n": 32, "what": "training rows"}
        assert (content["model"], content["report"]) == ("data.model", "data.html")
        answer = json.loads(succeed("predict", "data.model", "data.csv", "--out", "p.csv", "--json"))
        assert answer["rows"] == 40
        again = json.loads(succeed("report", "data.model", "data.csv", "--json"))
        assert again["test_rows"] == content["test_rows"]
        assert (again["reason"], again["seconds"]) == ("as in the fit", None)

    def test_options_reach_the_estimator(self, data):
        succeed("fit", "data.csv", "-t", "y", "--gamma", "0.25", "--noise-variance", "0.04", "--no-report")
        est = load("data.model")
        assert (est.gamma, est.noise_variance, est.noise_variance_) == (0.25, 0.04, pytest.approx(0.04))
        assert est.solver == "sequential"

    def test_noise_that_varies(self):
        rng = np.random.default_rng(0)
        x = rng.uniform(-1.0, 1.0, 200)
        y = np.sin(3.0 * x) + (0.05 + 0.5 * x**2) * rng.standard_normal(200)
        for name, targets in (("varies", y), ("constant", np.sin(3.0 * x) + 0.2 * rng.standard_normal(200))):
            write(f"{name}.csv", ["x", "y"], [x, targets])
            options = ("-t", "y", "--noise", "varies", "--kernel", "rbf", "--test", "0")
            content = json.loads(succeed("fit", f"{name}.csv", *options, "--json"))
            est = TableModel.load(f"{name}.model").estimator
            assert est.noise == "varies"
            assert est.noise_varies_ == content["noise_varies"] == (name == "varies")
            assert ("from place to place" in content["facts"]["noise (std)"]) == (name == "varies")
            assert any("the noise is constant" in note for note in content["notes"]) == (name == "constant")
            assert ("The noise varies" in Path(f"{name}.html").read_text(encoding="utf-8")) == (name == "varies")

    def test_classes_from_texts_with_everything_that_tables_have(self):
        rng = np.random.default_rng(0)
        size = rng.normal(size=120)
        colour = rng.choice(["red", "green", "blue"], 120)
        label = np.where(size + (colour == "red") > 0.3, "yes", "no")
        sizes = [f"{value!r}" for value in size.tolist()]
        sizes[3] = "NA"
        names = [f"item {k}" for k in range(120)]
        write("d.csv", ["name", "size", "colour", "same", "label"], [names, sizes, colour, ["x"] * 120, label])
        content = json.loads(succeed("fit", "d.csv", "-t", "label", "--kernel", "rbf", "--json"))
        assert (content["task"], content["reason"]) == ("classification", "its values are texts")
        assert content["inputs"] == ["size", "colour"]
        notes = " ".join(content["notes"])
        assert "'name' set aside: each row has a text of its own" in notes
        assert "'same' left out" in notes
        assert content["test_rows"]["accuracy"] > 0.8
        Path("new.csv").write_text("colour,size\nred,1\nviolet,\n")
        output = succeed("predict", "d.model", "new.csv", "--out", "p.csv")
        assert "1 missing numbers" in output
        assert "1 cells hold categories" in output
        table = read_table(Path("p.csv"))
        assert table.names == ["class", "p(no)", "p(yes)"]
        assert table.columns["class"][0] == "yes"

    def test_a_table_of_new_rows_is_all_test_rows(self, data):
        succeed("fit", "data.csv", "-t", "y")
        X, y = problem(25, seed=1)
        write("new.csv", ["a", "b [m]", "größe", "y"], [*X.T.tolist(), y.tolist()])
        output = " ".join(succeed("report", "data.model", "new.csv", "--out", "new.html").replace("│", " ").split())
        assert "all its rows are test rows" in output
        assert "25 test rows" in Path("new.html").read_text(encoding="utf-8")

    def test_training_rows_in_another_table_are_no_test_rows(self, data):
        succeed("fit", "data.csv", "-t", "y", "--kernel", "rbf", "--no-report", "--test", "0")
        X, y = problem(25, seed=1)
        old, targets = data
        rows = np.column_stack([np.vstack([X, old[:30]]), np.concatenate([y, targets[:30]])])
        write("mixed.csv", ["a", "b [m]", "größe", "y"], rows[::-1].T.tolist())
        content = json.loads(succeed("report", "data.model", "mixed.csv", "--json"))
        assert content["rows"] == {"train": 30, "test": 25}
        assert "30 of its 55 rows are rows that the model learned from" in content["notes"][0]
        write("some.csv", ["a", "b [m]", "größe", "y"], [*old[:7].T.tolist(), targets[:7].tolist()])
        content = json.loads(succeed("report", "data.model", "some.csv", "--json"))
        assert content["rows"] == {"train": 7, "test": 0}
        assert content["verdict"]["findings"][0]["text"].startswith("No rows were held back")

    def test_parquet_and_csv_agree(self, data):
        pandas = pytest.importorskip("pandas")
        pytest.importorskip("pyarrow")
        X, y = data
        frame = pandas.DataFrame(np.column_stack([X, y]), columns=["a", "b [m]", "größe", "y"])
        frame.set_index(np.arange(40)[::-1]).to_parquet("data.parquet")  # an index that is stored as a column
        succeed("fit", "data.csv", "-t", "y", "--kernel", "rbf", "--no-report")
        succeed("fit", "data.parquet", "-t", "y", "--kernel", "rbf", "--no-report", "--out", "p.model")
        np.testing.assert_array_equal(load("p.model").coef_, load("data.model").coef_)
        succeed("predict", "p.model", "data.parquet", "--out", "out.csv")
        succeed("predict", "p.model", "data.csv", "--out", "out.parquet")
        for name in ("mean", "std"):
            from_csv, from_parquet = (read_table(Path(out)).numbers(name) for out in ("out.csv", "out.parquet"))
            np.testing.assert_array_equal(from_csv, from_parquet)

    def test_order_and_other_columns_do_not_matter(self, data):
        X, _ = data
        succeed("fit", "data.csv", "-t", "y", "--no-report")
        succeed("predict", "data.model", "data.csv", "--out", "out.csv")
        with open("new.csv", "w", encoding="utf-8-sig") as file:
            file.write("größe,name,a,b [m]\r\n\r\n")
            file.writelines(f' {c!r},"x, ""y""",{a!r} ,{b!r}\r\n' for a, b, c in X.tolist())
        succeed("predict", "data.model", "new.csv", "--out", "again.csv")
        assert Path("again.csv").read_text() == Path("out.csv").read_text()

    def test_an_early_stop_has_a_status_of_its_own(self, data, monkeypatch):
        monkeypatch.setattr(learning, "RVR", lambda *a, **k: RVR(*a, **k, max_iter=1))
        # With the width learned, one search goes on from the last, and one move of each is enough here.
        assert "Stopped at max_iter" in succeed("fit", "data.csv", "-t", "y", "--gamma", "scale", status=3)
        assert TableModel.load("data.model").estimator.max_iter == 1

    def test_few_rows_are_all_learned_from(self):
        write("data.csv", ["a", "y"], [range(10), [2.5 * k for k in range(10)]])
        assert "no test part" in succeed("fit", "data.csv", "-t", "y", "--no-report")
        succeed("predict", "data.model", "data.csv", "--out", "out.csv")
        np.testing.assert_allclose(read_table(Path("out.csv")).numbers("mean"), 2.5 * np.arange(10), atol=0.1)

    def test_as_a_program(self, data):
        environment = os.environ | {"OPENBLAS_NUM_THREADS": "1", "PYTHONWARNINGS": "error", "COLUMNS": "100"}

        def run(*arguments):
            command = [*PROGRAM, *arguments]
            return subprocess.run(command, capture_output=True, text=True, env=environment, timeout=240)

        done = run("fit", "data.csv", "-t", "y")
        assert (done.returncode, done.stderr) == (0, "")
        done = run("predict", "data.model", "nowhere.csv", "--out", "out.csv")
        assert (done.returncode, done.stdout) == (2, "")
        assert done.stderr == "error: nowhere.csv: No such file or directory\n"
        assert not Path("out.csv").exists()


class TestHelp:
    def test_every_command_teaches_by_example(self):
        names = [path.stem for path in Path(commands.__file__).parent.glob("[a-z]*.py")]
        overview = succeed("--help")
        for name in names:
            assert f"\n  {name} " in overview
            text = succeed(name, "--help")
            assert "Example" in text
            assert f"sparsebayes {name}" in text

    def test_usage_errors_are_those_of_typer(self, data):
        for arguments in (["fit"], ["nothing"], ["fit", "data.csv", "--cosine"]):
            result = call(*arguments)
            assert result.exit_code == 2
            assert "Usage" in result.stderr

    def test_version(self):
        assert succeed("--version").startswith("sparsebayes ")

    @pytest.mark.parametrize(("found", "says"), [(None, "NumPy only"), (object(), "compiled settling")])
    def test_version_says_whether_the_compiled_part_is_in_use(self, monkeypatch, found, says):
        monkeypatch.setattr("sparsebayes.inference.models.compiled.library", lambda: found)
        assert f"({says})" in succeed("--version")
