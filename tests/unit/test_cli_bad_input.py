import os
import sys
from pathlib import Path

import pytest
from commands import fail, problem, succeed, write, write_problem

from sparsebayes.export import load, save


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


def rows(*cells, header="a,b,y", n=30):
    """A table whose first rows are given, and whose other rows are good."""
    good = [f"{k},{k * k % 7},{k % 5 + 0.5}" for k in range(n)]
    return "\n".join([header, *cells, *good[: n - len(cells)]]).encode() + b"\n"


class TestTables:
    @pytest.mark.parametrize(
        ("content", "words"),
        [
            (b"\x89PNG\r\n\x1a\n\x00\x00\xff", ["text file"]),
            (b"a,y\n1,\x002\n", ["text file"]),
            ("a,größe,y\n1,2,3\n".encode("latin-1"), ["single row", "add rows"]),
            (b"", ["empty"]),
            (b"\n\n", ["empty"]),
            (b"a,b,y\n", ["no rows"]),
            (b"a,b,y\n1,2,3\n1,2\n", ["line 3", "2 cells", "3"]),
            (b"a;b;y\n1;2;3;4\n", ["line 2", "4 cells", "semicolons"]),
            (b"a,a,y\n1,2,3\n", ["'a'", "more than once"]),
            (b',a,y\n0,1,"2\n', ["CSV"]),
            (b"a,,y\n0,1,2\n1,2,3\n", ["column 2", "no name"]),
            (b"y\n1\n2\n3\n", ["no column to learn from"]),
            (b"a,y\n1,1\n1,2\n1,3\n", ["no column to learn from", "one value only"]),
            (b"a,b\n1,2\n", ["'y'", "'a', 'b'"]),
            (rows("1,inf,2"), ["'b'", "infinite", "row 1"]),
            (rows("1,1e200,2"), ["'b'", "rescale"]),
            (b"a,b,y\n1,2,high\n2,3,high\n", ["'y'", "one class only", "--target"]),
            (b"a,b,y\n1,2,7\n2,3,7\n5,1,7\n", ["'y' is 7 in every row", "--target"]),
            (b"a,b,y\n1,2,2020-01-01\n2,3,2021-01-01\n", ["'y'", "dates", "days since"]),
            (b"a,b,Yy\n1,2,3\n2,3,4\n", ["--target 'y' is not a column", "did you mean 'Yy'?"]),
            (b"1.5,2,3\n2,3,4\n", ["'column1', 'column2', 'column3'", "first line holds values, not names"]),
            (b"a,b,y\n1,2,\n2,3,NA\n", ["'y'", "no values"]),
            (rows("1,2,low"), ["'y'", "single row", "'low'"]),
        ],
        ids=range(23),
    )
    def test_fit(self, content, words, folder):
        Path("data.csv").write_bytes(content)
        message = fail("fit", "data.csv", "--target", "y")
        assert "data.csv" in message
        assert all(word in message for word in words), message

    def test_no_file_and_no_folder(self):
        assert fail("fit", "data.csv", "-t", "y") == "error: data.csv: No such file or directory\n"
        Path("data.csv").mkdir()
        assert "data.csv" in fail("fit", "data.csv", "-t", "y")

    def test_no_target_lists_the_columns(self):
        write_problem()
        assert "'a', 'b [m]', 'größe', 'y'" in fail("fit", "data.csv")

    def test_a_target_of_text_in_regression(self):
        write("data.csv", ["a", "y"], [range(40), ["low", "high"] * 20])
        message = fail("fit", "data.csv", "-t", "y", "--task", "regression")
        assert "'y' is not numeric ('low' in data row 1)" in message
        assert "--task classification" in message

    def test_a_target_of_numbers_in_classification(self):
        write("data.csv", ["a", "y"], [range(80), [k / 7 for k in range(80)]])
        assert "--task regression" in fail("fit", "data.csv", "-t", "y", "--task", "classification")

    def test_a_slip_in_a_column_of_numbers_is_named(self):
        write("data.csv", ["a", "y"], [[*map(str, range(99)), "1O0"], range(100)])
        message = fail("fit", "data.csv", "-t", "y")
        assert "'a' is not numeric: '1O0' in data row 100" in message
        assert "--drop" in message

    def test_a_hundred_thousand_columns(self):
        n = 100_000
        header, row = ",".join(f"c{k}" for k in range(n)), ",".join("1" * n)
        Path("data.csv").write_text(f"{header}\n{row}\n{row}\n")
        message = fail("fit", "data.csv", "-t", "c0")
        assert "100000 columns" in message
        assert len(message) < 300

    def test_many_columns_are_not_all_listed(self):
        Path("data.csv").write_text(",".join(f"c{k}" for k in range(1000)) + "\n" + ",".join("1" * 1000) + "\n")
        assert "980 more" in fail("fit", "data.csv", "-t", "y")

    def test_parquet(self):
        pyarrow = pytest.importorskip("pyarrow")
        parquet = pytest.importorskip("pyarrow.parquet")
        Path("data.parquet").write_bytes(b"a,b,y\n1,2,3\n")
        assert "not a Parquet file" in fail("fit", "data.parquet", "-t", "y")
        parquet.write_table(pyarrow.table({"a": pyarrow.array([], pyarrow.int64())}), "data.parquet")
        assert "no rows" in fail("fit", "data.parquet", "-t", "a")

    def test_parquet_without_the_extra(self, monkeypatch):
        write_problem()
        succeed("fit", "data.csv", "-t", "y", "--no-report")
        monkeypatch.setitem(sys.modules, "pyarrow", None)
        assert 'pip install "sparsebayes[files]"' in fail("fit", "data.parquet", "-t", "y")
        assert "sparsebayes[files]" in fail("predict", "data.model", "data.csv", "--out", "out.parquet")


class TestRequests:
    @pytest.mark.parametrize(
        ("options", "words"),
        [
            (["--gamma", "wide"], ["--gamma 'wide'", "'scale'"]),
            (["--gamma", "-1"], ["gamma=-1.0", "positive"]),
            (["--gamma", "1", "--kernel", "columns"], ["--gamma", "columns"]),
            (["--kernel", "cosine"], ["--kernel 'cosine'", "'rbf'"]),
            (["--solver", "magic"], ["--solver 'magic'", "'sequential'"]),
            (["--task", "ranking"], ["--task 'ranking'", "'regression'"]),
            (["--test", "1.5"], ["--test 1.5"]),
            (["--seed", "-1"], ["--seed -1"]),
            (["--drop", "z"], ["--drop 'z'", "'a'"]),
            (["--categorical", "y"], ["'y'", "target"]),
            (["--noise-variance", "-1"], ["noise_variance=-1.0"]),
            (["--noise", "wavy"], ["--noise 'wavy'", "'varies'"]),
            (["--noise", "varies", "--likelihood", "outliers"], ["--noise varies", "--likelihood outliers"]),
            (["--noise", "varies", "--noise-variance", "1"], ["--noise varies", "--noise-variance 1.0"]),
            (["--noise", "varies", "--solver", "mackay"], ["--noise varies", "--solver mackay"]),
            (["--out", "nowhere/out.model"], ["nowhere", "create it"]),
            (["--report", "nowhere/out.html"], ["nowhere", "create it"]),
            (["--out", "data.csv"], ["data.csv", "name another"]),
            (["--report", "data.model"], ["data.model", "twice"]),
            (["--out", "."], ["folder"]),
        ],
        ids=lambda value: " ".join(value),
    )
    def test_fit(self, options, words):
        write_problem()
        message = fail("fit", "data.csv", "-t", "y", *options)
        assert all(word in message for word in words), message

    def test_where_no_folder_can_be(self):
        Path("taken").touch()
        assert "taken" in fail("demo", "--out", "taken")


class TestModels:
    @pytest.fixture(autouse=True)
    def model(self, folder):
        write_problem()
        succeed("fit", "data.csv", "-t", "y", "--kernel", "columns", "--no-report", "--out", "out.model")

    @pytest.mark.parametrize("command", [("predict", "--out", "out.csv"), ("report", "--out", "out.html")])
    def test_a_corrupt_model(self, command):
        name, *options = command
        assert fail(name, "nowhere", "data.csv", *options) == "error: nowhere: No such file or directory\n"
        content = Path("out.model").read_bytes()
        Path("out.model").write_bytes(content[: len(content) // 2])
        assert "out.model" in fail(name, "out.model", "data.csv", *options)
        Path("out.model").write_bytes(content.replace(b'"centre":', b'"center":', 1))
        assert "checksum" in fail(name, "out.model", "data.csv", *options)
        assert "data.csv" in fail(name, "data.csv", "data.csv", *options)

    def test_misnamed_columns(self):
        X, _ = problem()
        write("new.csv", ["A", "b [m]", "c"], X.T.tolist())
        message = fail("predict", "out.model", "new.csv", "--out", "out.csv")
        assert "lacks the input columns 'a', 'größe'" in message
        assert "found 'A', 'b [m]', 'c'" in message

    def test_a_report_needs_the_target(self):
        X, _ = problem()
        write("new.csv", ["a", "b [m]", "größe"], X.T.tolist())
        message = fail("report", "out.model", "new.csv")
        assert "'y' is not a column" in message
        assert "--target" not in message  # which report does not have

    def test_text_where_numbers_were(self):
        Path("new.csv").write_text("a,b [m],größe\n1,2,high\n", encoding="utf-8")
        message = fail("predict", "out.model", "new.csv", "--out", "out.csv")
        assert "'größe' is not numeric: 'high'" in message
        assert "or an empty cell for a gap" in message

    @pytest.mark.parametrize("out", ["out.xlsx", "out", "nowhere/out.csv", "out.model", "data.csv"])
    def test_outputs(self, out):
        assert Path(out).parts[0] in fail("predict", "out.model", "data.csv", "--out", out)

    @pytest.mark.parametrize(
        "change",
        [
            {"columns": 3},
            {"columns": []},
            {"columns": [{"number": "a", "centre": 0.0, "scale": 1.0, "fill": 0.0}]},
            {"columns": [{"number": "a", "centre": 0.0, "scale": 0.0, "fill": 0.0}] * 3},
            {"columns": [{"number": "a", "centre": float("nan"), "scale": 1.0, "fill": 0.0}] * 3},
            {"columns": [{"category": "a", "levels": ["x"]}] * 3},
            {"columns": [{"category": "a", "levels": "xyz"}]},
            {"target": 1},
            {"test_fraction": 2.0},
            {"seed": -1},
            {"more": 1},
        ],
        ids=range(11),
    )
    def test_a_model_that_fit_did_not_write(self, change):
        est, metadata = load("out.model", with_metadata=True)
        save(est, "out.model", metadata=(metadata or {}) | change)
        assert "out.model" in fail("predict", "out.model", "data.csv", "--out", "out.csv")

    def test_a_model_saved_from_python(self):
        save(load("out.model"), "out.model")
        assert "sparsebayes.load" in fail("predict", "out.model", "data.csv", "--out", "out.csv")

    def test_a_failure_while_writing_leaves_the_old_files(self, monkeypatch):
        succeed("predict", "out.model", "data.csv", "--out", "out.csv")

        def full(*arguments):
            raise OSError(28, "No space left on device")

        monkeypatch.setattr(os, "replace", full)
        assert fail("predict", "out.model", "data.csv", "--out", "out.csv") == "error: No space left on device\n"
        assert "No space" in fail("fit", "data.csv", "-t", "y", "--out", "out.model")
        assert "No space" in fail("report", "out.model", "data.csv")
