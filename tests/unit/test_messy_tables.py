"""Tables as people send them: each gives the intended model, or one sentence that says what is wrong."""

import csv
import io
from pathlib import Path

import numpy as np
import pytest
from commands import fail
from messy import CASES

from sparsebayes.tables import Options, learn, read_table

OPTIONS = Options(kernel="columns", test=0.0)
GOOD = [name for name, case in CASES.items() if not case.error]
TYPED = [name for name in GOOD if not CASES[name].text_only]
BAD = [name for name, case in CASES.items() if case.error]


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def fitted(name):
    Path("data.csv").write_bytes(CASES[name].bytes)
    return learn(read_table(Path("data.csv")), CASES[name].target, OPTIONS)


def test_there_are_forty():
    assert len(CASES) >= 40


@pytest.mark.parametrize("name", GOOD)
def test_the_intended_model(name):
    case, study = CASES[name], fitted(name)
    assert {column.name: type(column).__name__ for column in study.model.encoder.columns} == case.inputs
    assert study.target.task == case.task
    said = "; ".join(study.notes)
    assert all(words in said for words in case.notes), said


@pytest.mark.parametrize("name", BAD)
def test_one_clear_sentence(name):
    Path("data.csv").write_bytes(CASES[name].bytes)
    message = fail("fit", "data.csv", "--target", CASES[name].target)
    assert all(words in message for words in CASES[name].error), message
    assert len(message) < 300


@pytest.mark.parametrize("name", TYPED)
def test_parquet_and_data_frames_give_the_same_model(name):
    """Once with the cells as texts, once as pandas types them."""
    pandas = pytest.importorskip("pandas", reason="needs the extra files")
    pytest.importorskip("pyarrow", reason="needs the extra files")
    case, study = CASES[name], fitted(name)
    rows = list(csv.reader(io.StringIO(case.bytes.decode())))
    texts = pandas.DataFrame(rows[1:], columns=rows[0])
    typed = pandas.read_csv(io.BytesIO(case.bytes), skipinitialspace=True)
    for frame in (texts, typed):
        frame.to_parquet("data.parquet")
        for data in (frame, read_table(Path("data.parquet"))):
            other = learn(data, case.target, OPTIONS)
            assert other.model.encoder.names == study.model.encoder.names
            np.testing.assert_allclose(other.X, study.X, rtol=0, atol=1e-12)
            ours, theirs = other.model.estimator.coef_, study.model.estimator.coef_
            np.testing.assert_allclose(ours, theirs, rtol=1e-12, atol=1e-12)
