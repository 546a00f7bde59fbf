import csv
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

import sparsebayes.cli.fitting as fitting
from sparsebayes import RVR, SparseBayesRegressor
from sparsebayes.cli.main import app
from sparsebayes.cli.tables import read_table, write_table
from sparsebayes.export import load, save
from sparsebayes.report import plot_fit

PROGRAM = Path(sys.executable).with_name("sparsebayes")


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def problem(n=40, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, 3)) * [1.0, 10.0, 100.0] + [0.0, 5.0, -300.0]
    return X, 2.0 * X[:, 0] - 0.3 * X[:, 1] + 0.1 * rng.standard_normal(n)


def write(path, names, columns):
    with open(path, "w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(names)
        writer.writerows(np.column_stack(columns).tolist())


@pytest.fixture
def data():
    X, y = problem()
    write("data.csv", ["a", "b [m]", "größe", "y"], [X, y])
    return X, y


def call(*arguments):
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


def succeed(*arguments):
    result = call(*arguments)
    assert result.exit_code == 0, result.output
    assert result.stderr == ""
    return result.stdout


def fail(*arguments):
    """One line on stderr, status 2, no traceback, and nothing written."""
    before = {path: path.read_bytes() for path in Path().rglob("*") if path.is_file()}
    result = call(*arguments)
    assert result.exit_code == 2, result.output
    assert result.stdout == ""
    assert result.stderr.startswith("error: ")
    assert result.stderr.count("\n") == 1
    assert "Traceback" not in result.stderr
    assert {path: path.read_bytes() for path in Path().rglob("*") if path.is_file()} == before
    return result.stderr


def fit(*options, data="data.csv", target="y"):
    return ("fit", data, "--target", target, "--out", "out.model", *options)


class TestDemo:
    def test_prints_and_draws(self):
        pytest.importorskip("matplotlib")
        output = succeed("demo")
        for words in ("of 100 training rows", "95 %", "noise", "log evidence", "Converged", "certificate", "sinc.png"):
            assert words in output
        assert Path("demo/sinc.png").read_bytes().startswith(b"\x89PNG")
        assert [path.name for path in Path("demo").iterdir()] == ["sinc.png"]

    def test_goes_where_it_is_told(self):
        pytest.importorskip("matplotlib")
        succeed("demo", "--out", "some/where")
        assert Path("some/where/sinc.png").is_file()

    def test_without_matplotlib_says_how_to_get_the_picture(self, monkeypatch):
        for name in [name for name in sys.modules if name.partition(".")[0] == "matplotlib"]:
            monkeypatch.delitem(sys.modules, name)
        monkeypatch.setitem(sys.modules, "matplotlib", None)
        output = succeed("demo")
        assert 'pip install "sparsebayes[plot]"' in output.splitlines()[-1]
        assert list(Path("demo").iterdir()) == []

    def test_where_no_folder_can_be(self):
        Path("taken").touch()
        assert "taken" in fail("demo", "--out", "taken")


class TestFitAndPredict:
    @pytest.mark.parametrize("kernel", ["rbf", "linear", "poly", "laplacian", "columns"])
    def test_every_kernel(self, kernel, data):
        X, y = data
        output = succeed(*fit("--kernel", kernel))
        assert "40 rows, 3 inputs" in output
        _, metadata = load("out.model", with_metadata=True)
        Z = (X - X.mean(axis=0)) / X.std(axis=0)
        expected = (SparseBayesRegressor() if kernel == "columns" else RVR(kernel)).fit(Z, y)
        assert metadata["columns"] == ["a", "b [m]", "größe"]
        assert metadata["target"] == "y"
        succeed("predict", "out.model", "data.csv", "--out", "out.csv")
        table = read_table(Path("out.csv"))
        assert table.names == ["mean", "std"]
        mean, std = expected.predict(Z, return_std=True)
        np.testing.assert_array_equal(table.numbers("mean"), mean)
        np.testing.assert_array_equal(table.numbers("std"), std)

    def test_names_the_columns_kept(self, data):
        assert "'b [m]'" in succeed(*fit("--kernel", "columns"))

    def test_options_reach_the_estimator(self, data):
        succeed(*fit("--gamma", "0.25", "--noise-variance", "0.04"))
        est = load("out.model")
        assert (est.gamma, est.noise_variance, est.noise_variance_) == (0.25, 0.04, pytest.approx(0.04))
        succeed(*fit("--gamma", "scale"))
        assert load("out.model").gamma == "scale"

    def test_parquet_and_csv_agree(self, data):
        pandas = pytest.importorskip("pandas")
        pytest.importorskip("pyarrow")
        X, y = data
        frame = pandas.DataFrame(np.column_stack([X, y]), columns=["a", "b [m]", "größe", "y"])
        frame.set_index(np.arange(40)[::-1]).to_parquet("data.parquet")  # an index that is stored as a column
        succeed(*fit())
        coef = load("out.model").coef_
        succeed(*fit(data="data.parquet"))
        np.testing.assert_array_equal(load("out.model").coef_, coef)
        succeed("predict", "out.model", "data.parquet", "--out", "out.csv")
        succeed("predict", "out.model", "data.csv", "--out", "out.parquet")
        for name in ("mean", "std"):
            from_csv, from_parquet = (read_table(Path(out)).numbers(name) for out in ("out.csv", "out.parquet"))
            np.testing.assert_array_equal(from_csv, from_parquet)

    def test_order_and_other_columns_do_not_matter(self, data):
        X, _ = data
        succeed(*fit())
        succeed("predict", "out.model", "data.csv", "--out", "out.csv")
        names = ["größe", "name", "a", "b [m]"]
        with open("new.csv", "w", encoding="utf-8-sig") as file:
            file.write(",".join(names) + "\r\n\r\n")
            file.writelines(f' {c!r},"x, ""y""",{a!r} ,{b!r}\r\n' for a, b, c in X.tolist())
        succeed("predict", "out.model", "new.csv", "--out", "again.csv")
        assert Path("again.csv").read_text() == Path("out.csv").read_text()

    def test_a_constant_column_and_a_constant_target(self):
        write("data.csv", ["a", "b", "y"], [np.arange(10.0), np.ones(10), np.full(10, 2.5)])
        succeed(*fit())
        succeed("predict", "out.model", "data.csv", "--out", "out.csv")
        np.testing.assert_allclose(read_table(Path("out.csv")).numbers("mean"), 2.5)

    def test_an_early_stop_is_in_the_summary_and_no_warning(self, data, monkeypatch):
        monkeypatch.setattr(fitting, "RVR", lambda *a, **k: RVR(*a, **k, max_iter=1))
        assert "Stopped at max_iter" in succeed(*fit())

    def test_through_the_installed_program(self, data):
        environment = os.environ | {"OPENBLAS_NUM_THREADS": "1", "PYTHONWARNINGS": "error", "COLUMNS": "100"}

        def run(*arguments):
            return subprocess.run([PROGRAM, *arguments], capture_output=True, text=True, env=environment, timeout=120)

        done = run(*fit())
        assert (done.returncode, done.stderr) == (0, "")
        done = run("predict", "out.model", "data.csv", "--out", "out.csv")
        assert (done.returncode, done.stderr) == (0, "")
        done = run("predict", "out.model", "nowhere.csv", "--out", "out2.csv")
        assert (done.returncode, done.stdout) == (2, "")
        assert done.stderr == "error: nowhere.csv: No such file or directory\n"
        assert not Path("out2.csv").exists()


class TestBadTables:
    @pytest.mark.parametrize(
        ("content", "words"),
        [
            (b"\x89PNG\r\n\x1a\n\x00\x00\xff", ["text file"]),
            (b"a,y\n1,\x002\n", ["text file"]),
            ("a,größe,y\n1,2,3\n".encode("latin-1"), ["UTF-8"]),
            (b"", ["empty"]),
            (b"\n\n", ["empty"]),
            (b"a,b,y\n", ["no rows"]),
            (b"a,b,y\n1,2,3\n1,2\n", ["line 3", "2 cells", "3"]),
            (b"a,b,y\n1,2,3,4\n", ["line 2", "4 cells"]),
            (b"a,a,y\n1,2,3\n", ["'a'", "more than once"]),
            (b',a,y\n0,1,"2\n', ["CSV"]),
            (b",a,y\n0,1,2\n1,2,3\n", ["column 1", "no name"]),
            (b"y\n1\n2\n", ["'y'", "inputs"]),
            (b"a,b\n1,2\n", ["'y'", "'a', 'b'"]),
            (b"a,town,y\n1,Rome,2\n2,3,3\n", ["'town'", "'Rome'", "not numeric"]),
            (b"a,b,y\n1,1_000,2\n", ["'b'", "not numeric"]),
            (b"a,b,y\n1,,2\n2,NaN,3\n3,1,4\n", ["'b'", "2 missing values", "row 1"]),
            (b"a,b,y\n1,2,2\n2,3,na\n", ["'y'", "1 missing value "]),
            (b"a,b,y\n1,inf,2\n", ["'b'", "infinite"]),
            (b"a,b,y\n1,1e200,2\n1,2,3\n", ["'b'", "rescale"]),
            (b"a,b,y\n1,2,high\n", ["'y'", "not numeric"]),
        ],
        ids=range(20),
    )
    def test_fit(self, content, words, folder):
        Path("data.csv").write_bytes(content)
        message = fail(*fit())
        assert "data.csv" in message
        assert all(word in message for word in words), message

    def test_no_file(self):
        assert fail(*fit()) == "error: data.csv: No such file or directory\n"

    def test_a_folder(self):
        Path("data.csv").mkdir()
        assert "data.csv" in fail(*fit())

    def test_many_columns_are_not_all_listed(self):
        Path("data.csv").write_text(",".join(f"c{k}" for k in range(1000)) + "\n" + ",".join("1" * 1000) + "\n")
        message = fail(*fit())
        assert "980 more" in message

    def test_parquet(self):
        pyarrow = pytest.importorskip("pyarrow")
        parquet = pytest.importorskip("pyarrow.parquet")
        Path("data.parquet").write_bytes(b"a,b,y\n1,2,3\n")
        assert "not a Parquet file" in fail(*fit(data="data.parquet"))
        parquet.write_table(pyarrow.table({"a": [1, None], "b": ["x", "z"], "y": [1.0, 2.0]}), "data.parquet")
        assert "'a' has 1 missing value" in fail(*fit(data="data.parquet"))
        parquet.write_table(pyarrow.table({"a": [True, False], "b": ["x", None], "y": [1.0, 2.0]}), "data.parquet")
        assert "'b' is not numeric" in fail(*fit(data="data.parquet"))
        parquet.write_table(pyarrow.table({"a": pyarrow.array([], pyarrow.int64())}), "data.parquet")
        assert "no rows" in fail(*fit(data="data.parquet"))

    def test_parquet_without_the_extra(self, monkeypatch, data):
        succeed(*fit())
        monkeypatch.setitem(sys.modules, "pyarrow", None)
        assert 'pip install "sparsebayes[files]"' in fail(*fit(data="data.parquet"))
        assert "sparsebayes[files]" in fail("predict", "out.model", "data.csv", "--out", "out.parquet")


class TestBadRequests:
    @pytest.mark.parametrize(
        ("options", "words"),
        [
            (["--gamma", "wide"], ["--gamma 'wide'", "'scale'"]),
            (["--gamma", "-1"], ["gamma=-1.0", "positive"]),
            (["--gamma", "1", "--kernel", "columns"], ["--gamma", "columns"]),
            (["--noise-variance", "-1"], ["noise_variance=-1.0"]),
            (["--out", "nowhere/out.model"], ["nowhere", "create it"]),
            (["--out", "data.csv"], ["data.csv", "name another"]),
            (["--out", "."], ["folder"]),
        ],
        ids=lambda value: " ".join(value),
    )
    def test_fit(self, options, words, data):
        message = fail(*fit(*options))
        assert all(word in message for word in words), message

    def test_usage_errors_are_those_of_typer(self, data):
        for arguments in (["fit", "data.csv"], fit("--kernel", "cosine"), ["nothing"]):
            result = call(*arguments)
            assert result.exit_code == 2
            assert "Usage" in result.stderr

    def test_help_and_version(self):
        assert "predict" in succeed("--help")
        assert succeed("--version").startswith("sparsebayes ")


class TestBadModels:
    @pytest.fixture(autouse=True)
    def model(self, data):
        succeed(*fit())

    def predict(self, *, model="out.model", data="data.csv", out="out.csv"):
        return fail("predict", model, data, "--out", out)

    def test_no_file(self):
        assert self.predict(model="nowhere") == "error: nowhere: No such file or directory\n"
        assert self.predict(data="nowhere") == "error: nowhere: No such file or directory\n"

    def test_corrupt(self):
        content = Path("out.model").read_bytes()
        Path("out.model").write_bytes(content[: len(content) // 2])
        assert "out.model" in self.predict()
        assert "data.csv" in self.predict(model="data.csv", data="data.csv")

    def test_misnamed_columns(self):
        X, _ = problem()
        write("new.csv", ["A", "b [m]", "c"], [X])
        message = self.predict(data="new.csv")
        assert "lacks the input columns 'a', 'größe'" in message
        assert "found 'A', 'b [m]', 'c'" in message

    def test_bad_cells(self):
        Path("new.csv").write_text("a,b [m],größe\n1,2,\n", encoding="utf-8")
        assert "'größe' has 1 missing value" in self.predict(data="new.csv")

    @pytest.mark.parametrize("out", ["out.xlsx", "out", "nowhere/out.csv", "out.model", "data.csv"])
    def test_bad_outputs(self, out):
        assert Path(out).parts[0] in self.predict(out=out)

    @pytest.mark.parametrize(
        "metadata",
        [
            None,
            {},
            {"columns": 3},
            {"columns": ["a"], "target": "y", "centre": [0.0], "scale": [1.0]},
            {"columns": ["a"] * 3, "target": "y", "centre": [0.0] * 3, "scale": [1.0, 1.0, 0.0]},
            {"columns": ["a"] * 3, "target": "y", "centre": [0.0] * 3, "scale": [1.0, 1.0, "1"]},
            {"columns": ["a"] * 3, "target": "y", "centre": [float("nan")] * 3, "scale": [1.0] * 3},
        ],
        ids=range(7),
    )
    def test_a_model_that_fit_did_not_write(self, metadata):
        save(load("out.model"), "out.model", metadata=metadata)
        assert "columns" in self.predict()

    def test_a_failure_while_writing_leaves_the_old_table(self, monkeypatch):
        succeed("predict", "out.model", "data.csv", "--out", "out.csv")

        def full(*arguments):
            raise OSError(28, "No space left on device")

        monkeypatch.setattr(os, "replace", full)
        assert self.predict() == "error: No space left on device\n"


def test_tables_keep_every_digit():
    values = np.array([0.1, -0.0, 1e-308, 1 / 3, 12345678901234567.0])
    write_table(Path("out.csv"), {"mean": values})
    np.testing.assert_array_equal(read_table(Path("out.csv")).numbers("mean"), values)


class TestPlotFit:
    @pytest.fixture(autouse=True)
    def backend(self):
        pytest.importorskip("matplotlib").use("Agg")

    def test_shows_everything(self):
        from matplotlib import pyplot

        X = np.linspace(-5, 5, 40)[:, None]
        y = np.sinc(X[:, 0])
        est = RVR(noise_variance=0.01).fit(X, y)
        ax = plot_fit(est, X, y, truth=lambda x: np.sinc(x))
        labels = ax.get_legend_handles_labels()[1]
        assert f"relevance vectors ({len(est.relevance_)})" in labels
        assert len(labels) == 5
        circles = ax.get_lines()[-1]
        np.testing.assert_array_equal(circles.get_xdata(), X[est.relevance_, 0])
        np.testing.assert_array_equal(circles.get_ydata(), y[est.relevance_])
        assert plot_fit(SparseBayesRegressor().fit(X, y), X, y, ax=ax) is ax
        pyplot.close(ax.figure)

    @pytest.mark.parametrize(("X", "y"), [(np.ones((3, 2)), np.ones(3)), (np.ones((3, 1)), np.ones((3, 2)))])
    def test_what_it_cannot_show(self, X, y):
        with pytest.raises(ValueError, match="expected"):
            plot_fit(None, X, y)

    def test_without_matplotlib(self, monkeypatch):
        monkeypatch.setitem(sys.modules, "matplotlib", None)
        with pytest.raises(ImportError, match="sparsebayes\\[plot\\]"):
            plot_fit(None, np.ones((3, 1)), np.ones(3))
