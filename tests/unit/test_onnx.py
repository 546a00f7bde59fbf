"""ONNX graphs say what the models say, and onnxruntime computes it."""

import sys

import numpy as np
import pytest
from exported import CLASSIFICATIONS, N_ROWS, REGRESSIONS, ROWS, TWO, X, expected, far_out, model, rows

from sparsebayes import RVC
from sparsebayes.export import to_onnx

onnx = pytest.importorskip("onnx", reason="needs the extra onnx")
runtime = pytest.importorskip("onnxruntime", reason="needs the package onnxruntime")

TOLERANCE = {"rtol": 1e-5, "atol": 1e-5}


def run(graph, rows):
    session = runtime.InferenceSession(graph.SerializeToString(), providers=["CPUExecutionProvider"])
    names = [output.name for output in session.get_outputs()]
    return dict(zip(names, session.run(None, {"X": rows}), strict=True))


@pytest.mark.parametrize("name", REGRESSIONS)
def test_regressions_agree(name):
    said = run(to_onnx(model(name)), rows(name))
    for key, values in zip(("mean", "std"), expected(name), strict=True):
        assert said[key].shape == ((N_ROWS, 2) if values.shape[1] == 2 else (N_ROWS,))
        np.testing.assert_allclose(said[key].reshape(N_ROWS, -1), values, **TOLERANCE)


@pytest.mark.parametrize("name", CLASSIFICATIONS)
def test_classifications_agree(name):
    said = run(to_onnx(model(name)), ROWS)
    labels, probabilities = expected(name)
    np.testing.assert_allclose(said["probabilities"], probabilities, **TOLERANCE)
    np.testing.assert_array_equal(said["label"], labels)


@pytest.mark.parametrize("name", ["rbf", "monomials", "steps"])
def test_single_precision_outside_is_double_inside(name):
    rows = ROWS.astype(np.float32)
    said = run(to_onnx(model(name), dtype="float32"), rows)
    mean, std = model(name).predict(rows, return_std=True)
    assert said["mean"].dtype == np.float32
    np.testing.assert_allclose(said["mean"], mean, **TOLERANCE)
    np.testing.assert_allclose(said["std"], std, **TOLERANCE)


def test_no_rows_and_one_row():
    graph = to_onnx(model("widths"))
    assert run(graph, ROWS[:0])["mean"].shape == (0,)
    np.testing.assert_allclose(run(graph, ROWS[:1])["mean"], expected("widths")[0][0], **TOLERANCE)


def test_labels_keep_their_type():
    assert run(to_onnx(model("two classes")), ROWS[:5])["label"].dtype == object
    assert run(to_onnx(model("two classes of columns")), ROWS[:5])["label"].dtype == bool
    assert run(to_onnx(model("softmax")), ROWS[:5])["label"].dtype == np.int64
    assert run(to_onnx(RVC().fit(X, TWO.astype(object))), ROWS[:5])["label"].dtype == object


def test_an_unknown_dtype():
    with pytest.raises(ValueError, match=r"dtype='float16'.*'float64'"):
        to_onnx(model("rbf"), dtype="float16")


def test_the_missing_package_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "onnx", None)
    with pytest.raises(ImportError, match=r"sparsebayes\[onnx\]"):
        to_onnx(model("rbf"))


@pytest.mark.parametrize("settings", [{}, {"multi_class": "ovr"}, {"classes": 2}], ids=["softmax", "ovr", "two"])
def test_classes_far_out_have_the_probabilities_of_predict_proba(settings):
    fitted, far = far_out(**settings)
    said = run(to_onnx(fitted), far)
    np.testing.assert_allclose(said["probabilities"], fitted.predict_proba(far), **TOLERANCE)
    np.testing.assert_array_equal(said["label"], fitted.predict(far))
