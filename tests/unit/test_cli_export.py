"""``sparsebayes export``: models of the program and of Python, in other languages."""

import sqlite3
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from typer.testing import CliRunner

from sparsebayes import RVR
from sparsebayes.cli.main import app
from sparsebayes.export import save


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def houses():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((40, 2)) * [1.0, 100.0] + [0.0, -300.0]
    frame = pd.DataFrame(X, columns=["a", "größe [m]"]).assign(y=2.0 * X[:, 0] - 0.03 * X[:, 1])
    frame.to_csv("data.csv", index=False)
    assert call("fit", "data.csv", "--target", "y", "--out", "y.model").exit_code == 0
    assert call("predict", "y.model", "data.csv", "--out", "said.csv").exit_code == 0
    return frame, pd.read_csv("said.csv")


def call(*arguments):
    return CliRunner().invoke(app, [str(argument) for argument in arguments])


def test_onnx_takes_the_units_of_the_table(houses):
    pytest.importorskip("onnx", reason="needs the extra onnx")
    runtime = pytest.importorskip("onnxruntime", reason="needs the package onnxruntime")
    frame, said = houses
    result = call("export", "y.model", "--format", "onnx", "--out", "y.onnx")
    assert result.exit_code == 0, result.output
    session = runtime.InferenceSession("y.onnx", providers=["CPUExecutionProvider"])
    mean, std = session.run(["mean", "std"], {name: frame[name].to_numpy() for name in ("a", "größe [m]")})
    np.testing.assert_allclose(mean, said["mean"], rtol=1e-5, atol=1e-5)
    np.testing.assert_allclose(std, said["std"], rtol=1e-5, atol=1e-5)


def test_sql_reads_the_columns_of_the_table(houses):
    frame, said = houses
    assert call("export", "y.model", "--format", "sql", "--table", "houses", "--out", "y.sql").exit_code == 0
    connection = sqlite3.connect(":memory:")
    connection.execute('CREATE TABLE houses (a, "größe [m]", y)')
    connection.executemany("INSERT INTO houses VALUES (?, ?, ?)", frame.to_numpy().tolist())
    rows = connection.execute(Path("y.sql").read_text(encoding="utf-8")).fetchall()
    np.testing.assert_allclose(rows, said[["mean", "std"]], rtol=1e-6, atol=1e-6)


def test_c_has_the_name_that_is_asked_for(houses):
    assert call("export", "y.model", "--format", "c", "--name", "house", "--out", "y.c").exit_code == 0
    source = Path("y.c").read_text(encoding="ascii")
    assert "void house_predict(const house_row *row, double *mean, double *std)" in source
    assert "double grosse_m; /* gr??e [m] */" in source


def test_a_model_that_was_saved_from_python():
    save(RVR().fit([[0.0], [1.0], [2.0]], [0.0, 1.0, 0.5]), "python.model")
    assert call("export", "python.model", "--format", "sql", "--out", "python.sql").exit_code == 0
    assert '"x0"' in Path("python.sql").read_text()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["missing.model", "--format", "c", "--out", "y.c"], "No such file"),
        (["data.csv", "--format", "c", "--out", "y.c"], "cannot be read as a model"),
        (["y.model", "--format", "c", "--out", "y.model"], "is the file that is read"),
        (["y.model", "--format", "c", "--out", "nowhere/y.c"], "create it first"),
        (["y.model", "--format", "c", "--name", "2x", "--out", "y.c"], "C identifier"),
        (["y.model", "--format", "sql", "--table", "", "--out", "y.sql"], "not empty"),
        (["precomputed.model", "--format", "onnx", "--out", "y.onnx"], "precomputed"),
    ],
)
def test_what_cannot_be_is_one_line(houses, arguments, words):
    save(RVR("precomputed").fit(np.eye(3), [0.0, 1.0, 2.0]), "precomputed.model")
    before = sorted(Path().iterdir())
    result = call("export", *arguments)
    assert result.exit_code == 2
    assert result.stderr.count("\n") == 1
    assert words in result.stderr
    assert sorted(Path().iterdir()) == before


def test_an_unknown_language(houses):
    assert call("export", "y.model", "--format", "cobol", "--out", "y.cob").exit_code == 2
    assert not Path("y.cob").exists()
